from __future__ import annotations

from collections import Counter

import kubernetes_validate
import pytest

from runfleet.placement import CellPlan
from runners.cells import IMAGE, Cluster, class_of
from runners.hooks import hook_pod, with_limit_defaults

KUBERNETES = "1.34"

BUILT_IN = (
    "Namespace",
    "ResourceQuota",
    "LimitRange",
    "NetworkPolicy",
    "ServiceAccount",
    "Role",
    "RoleBinding",
    "ClusterRole",
    "ConfigMap",
    "PriorityClass",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
)


def test_a_class_is_sixteen_objects(plan: CellPlan, cluster: Cluster) -> None:
    prefix = "aws-runners-x86-8-16-"
    made = Counter(
        m.type.rpartition(":")[2] for m in cluster.made if m.name.startswith(prefix)
    )
    assert made == {
        "Namespace": 2,
        "ResourceQuota": 2,
        "LimitRange": 2,
        "NetworkPolicy": 2,
        "ServiceAccount": 2,
        "Role": 1,
        "RoleBinding": 2,
        "ConfigMap": 1,
        "ExternalSecret": 1,
        "AutoscalingRunnerSet": 1,
    }


def test_names_are_unique_and_derive_from_the_component(cluster: Cluster) -> None:
    names = Counter((m.type, m.name) for m in cluster.made)
    assert max(names.values()) == 1
    assert all(
        m.name.startswith("aws-runners")
        for m in cluster.made
        if not m.type.startswith("pulumi:")
    )
    components = {
        m.type: m.name for m in cluster.made if m.type.startswith("runfleet:")
    }
    assert components == {
        "runfleet:runners:Runners": "aws-runners",
        "runfleet:runners:RunnerClass": "aws-runners-rel-x86",
    }


@pytest.mark.parametrize("kind", BUILT_IN)
def test_every_built_in_object_is_valid(cluster: Cluster, kind: str) -> None:
    made = cluster.of(kind)
    assert made
    for resource in made:
        kubernetes_validate.validate(resource.inputs, KUBERNETES, strict=True)


def test_all_kinds_are_validated_or_known_extensions(cluster: Cluster) -> None:
    kinds = {
        m.type.rpartition(":")[2]
        for m in cluster.made
        if m.type.startswith("kubernetes:")
    }
    assert kinds - set(BUILT_IN) == {
        "Release",
        "ExternalSecret",
        "ClusterSecretStore",
        "AutoscalingRunnerSet",
    }


@pytest.mark.parametrize("name", ["x86-8-16", "x86-plain", "l4", "l4-4", "rel-x86"])
def test_runner_and_job_pods_are_valid(
    plan: CellPlan, cluster: Cluster, name: str
) -> None:
    planned = class_of(plan, name)
    (limit,) = cluster.one("LimitRange", "limits", planned.job_namespace)["spec"][
        "limits"
    ]
    job = with_limit_defaults(hook_pod(cluster.template(planned), IMAGE), limit)
    scale_set = cluster.one(
        "AutoscalingRunnerSet", planned.label, planned.runner_namespace
    )
    template = scale_set["spec"]["template"]
    runner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "runner", **template["metadata"]},
        "spec": template["spec"],
    }
    for pod in (job, runner):
        kubernetes_validate.validate(pod, KUBERNETES, strict=True)


def test_everything_carries_the_labels(plan: CellPlan, cluster: Cluster) -> None:
    owners = {}
    for planned in plan.classes:
        owners[planned.runner_namespace] = planned.ci_labels
        owners[planned.job_namespace] = planned.ci_labels
    for made in cluster.made:
        if not made.type.startswith("kubernetes:") or made.type.endswith(":Release"):
            continue
        metadata = made.inputs["metadata"]
        where = metadata.get("namespace", metadata["name"])
        expected = owners.get(where, plan.ci_labels)
        assert metadata["labels"].items() >= expected.items(), made.name


def test_runner_pods_pass_restricted_and_job_pods_baseline(
    plan: CellPlan, cluster: Cluster
) -> None:
    for planned in plan.classes:
        scale_set = cluster.one(
            "AutoscalingRunnerSet", planned.label, planned.runner_namespace
        )
        runner = scale_set["spec"]["template"]["spec"]
        assert runner["securityContext"]["runAsNonRoot"] is True
        job = cluster.template(planned)["spec"]
        for pod in (runner, job):
            assert pod["securityContext"]["seccompProfile"] == {
                "type": "RuntimeDefault"
            }
            assert {"hostNetwork", "hostPID", "hostIPC", "nodeName"}.isdisjoint(pod)
            assert all("hostPath" not in volume for volume in pod["volumes"])
            for container in pod["containers"]:
                context = container["securityContext"]
                assert context["privileged"] is False
                assert context["allowPrivilegeEscalation"] is False
                assert context["capabilities"]["drop"] == ["ALL"]
