from __future__ import annotations

import pytest

from runfleet.placement import CellPlan
from runners.cells import IMAGE, Cluster, class_of
from runners.hooks import hook_pod, quality_of_service, with_limit_defaults


def test_the_template_of_a_gpu_class_is_exactly_this(
    plan: CellPlan, cluster: Cluster
) -> None:
    planned = class_of(plan, "l4")
    resources = {
        "cpu": "11500m",
        "memory": "40Gi",
        "ephemeral-storage": "150Gi",
        "nvidia.com/gpu": "2",
    }
    assert cluster.template(planned) == {
        "metadata": {
            "labels": {**planned.ci_labels, "example.com/use-identity": "true"},
            "annotations": {
                "karpenter.sh/do-not-disrupt": "true",
                "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
            },
        },
        "spec": {
            "serviceAccountName": "job",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "priorityClassName": "runfleet-job",
            "nodeSelector": {
                "workload-type": "github-runner",
                "node-fleet": "g6",
                "ci_trust": "shared",
            },
            "tolerations": [
                {
                    "key": "node-fleet",
                    "operator": "Equal",
                    "effect": "NoSchedule",
                    "value": "g6",
                },
                {"key": "instance-type", "operator": "Exists", "effect": "NoSchedule"},
                {
                    "key": "nvidia.com/gpu",
                    "operator": "Equal",
                    "effect": "NoSchedule",
                    "value": "true",
                },
            ],
            "activeDeadlineSeconds": 86400,
            "securityContext": {
                "fsGroup": 1001,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [
                {
                    "name": "$job",
                    "env": [
                        {"name": "TORCH_CI_MAX_MEMORY", "value": str(40 * 1024**3)}
                    ],
                    "resources": {"requests": resources, "limits": resources},
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "capabilities": {
                            "drop": ["ALL"],
                            "add": [
                                "CHOWN",
                                "DAC_OVERRIDE",
                                "FOWNER",
                                "FSETID",
                                "KILL",
                                "SETGID",
                                "SETUID",
                            ],
                        },
                        "privileged": False,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],
                }
            ],
            "volumes": [
                {
                    "name": "shm",
                    "emptyDir": {"medium": "Memory", "sizeLimit": "2Gi"},
                }
            ],
        },
    }


@pytest.mark.parametrize("name", ["x86-8-16", "x86-plain", "l4", "l4-4", "rel-x86"])
def test_job_pods_are_guaranteed_once_the_namespace_limits_are_applied(
    plan: CellPlan, cluster: Cluster, name: str
) -> None:
    planned = class_of(plan, name)
    pod = hook_pod(cluster.template(planned), IMAGE, services=("redis:7",))
    (limit,) = cluster.one("LimitRange", "limits", planned.job_namespace)["spec"][
        "limits"
    ]
    assert quality_of_service(pod) == "Burstable"
    assert quality_of_service(with_limit_defaults(pod, limit)) == "Guaranteed"


def test_what_the_hooks_build_keeps_their_init_container_and_work_group(
    plan: CellPlan, cluster: Cluster
) -> None:
    template = cluster.template(class_of(plan, "x86-8-16"))
    assert "initContainers" not in template["spec"]
    pod = hook_pod(template, IMAGE)
    assert [c["name"] for c in pod["spec"]["initContainers"]] == ["fs-init"]
    assert pod["spec"]["securityContext"]["fsGroup"] == 1001
    assert [c["name"] for c in pod["spec"]["containers"]] == ["job"]


def test_environment_of_the_class_reaches_its_jobs(
    plan: CellPlan, cluster: Cluster
) -> None:
    (job,) = cluster.template(class_of(plan, "x86-8-16"))["spec"]["containers"]
    assert job["env"] == [
        {"name": "PYTORCH_TEST", "value": "1"},
        {"name": "TORCH_CI_MAX_MEMORY", "value": str(16 * 1024**3)},
    ]


def test_release_jobs_select_release_nodes_and_bear_their_taint(
    plan: CellPlan, cluster: Cluster
) -> None:
    spec = cluster.template(class_of(plan, "rel-x86"))["spec"]
    assert spec["nodeSelector"]["ci_trust"] == "release"
    assert spec["priorityClassName"] == "runfleet-job-release"
    assert {
        "key": "ci_trust", "operator": "Equal", "effect": "NoSchedule",
        "value": "release",
    } in spec["tolerations"]  # fmt: skip
