"""The pod that a job runs in, as a template that the container hooks merge.

With container mode ``kubernetes-novolume`` the runner does not run steps itself: its
hooks start a job pod and work in it through the API server. The hooks build the pod
and lay the template of ``ACTIONS_RUNNER_CONTAINER_HOOK_TEMPLATE`` over it
(actions/runner-container-hooks, ``packages/k8s/src/k8s/utils.ts``): labels and
annotations are added, ``env``, ``volumeMounts`` and ``volumes`` are appended, the
container named ``$job`` is laid over the job container, and every other field of the
pod's spec replaces the hooks' own. So the template names no init containers, which
would drop the hooks' ``fs-init``, and repeats the hooks' ``fsGroup`` 1001.

Requests equal limits, so that a job gets what its label says: the pod is Guaranteed
together with the container limits of its namespace
(:func:`runfleet.runners.tenancy.job_container_limit`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi_kubernetes.core import v1 as core
from pulumi_kubernetes.meta import v1 as meta

from runfleet.placement.plan import PlannedClass
from runfleet.runners.scheduling import job_placement
from runfleet.runners.tenancy import JOB_PRIORITY, RELEASE_PRIORITY, cores
from runfleet.spec.classes import extended_resources

HOOK_TEMPLATE = "hook-template"
TEMPLATE_KEY = "job-pod.yaml"
JOB_CONTAINER = "job"

LONGEST_JOB_SECONDS = 86_400
"""GitHub keeps a job assigned for at most 24 hours; a job pod that outlives that has
lost its runner."""

HOOKS_GROUP = 1001
"""Group of the work volumes, as the hooks set it."""

SHARED_MEMORY = "2Gi"
"""Size of /dev/shm: NCCL needs more than the container default of 64 MiB."""

ROOT_CAPABILITIES = (
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
)
"""What package managers need in an image whose user is root. All other capabilities
are dropped; Pod Security ``baseline`` allows these, ``restricted`` warns of them."""

DO_NOT_DISRUPT: Mapping[str, str] = {
    "karpenter.sh/do-not-disrupt": "true",
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
}
"""Keeps Karpenter and the cluster autoscaler from taking a node with a job on it."""


def job_priority(planned: PlannedClass) -> str:
    """Return the priority class of a class's job pods."""
    return RELEASE_PRIORITY if planned.runner_class.release else JOB_PRIORITY


def job_resources(planned: PlannedClass) -> dict[str, str]:
    """Return what one job requests and is limited to."""
    hardware = planned.runner_class.hardware
    return {
        "cpu": cores(hardware.vcpu),
        "memory": hardware.memory.kubernetes,
        "ephemeral-storage": hardware.disk.kubernetes,
    } | extended_resources(planned.runner_class)


def job_pod_template(
    planned: PlannedClass, pod_labels: Mapping[str, pulumi.Input[str]] | None = None
) -> dict[str, Any]:
    """Return the pod template of a class's jobs.

    Args:
        planned: The class in its cell.
        pod_labels: Labels that the cloud's identity wants on its pods.
    """
    placement = job_placement(planned)
    resources = job_resources(planned)
    environment = {
        "TORCH_CI_MAX_MEMORY": str(int(planned.runner_class.hardware.memory)),
        **planned.runner_class.environment,
    }
    return {
        "metadata": {
            "labels": {**planned.ci_labels, **(pod_labels or {})},
            "annotations": dict(DO_NOT_DISRUPT),
        },
        "spec": {
            "serviceAccountName": planned.service_account,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "priorityClassName": job_priority(planned),
            "nodeSelector": dict(placement.selector),
            "tolerations": placement.toleration_fields(),
            "activeDeadlineSeconds": LONGEST_JOB_SECONDS,
            "securityContext": {
                "fsGroup": HOOKS_GROUP,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [
                {
                    "name": f"${JOB_CONTAINER}",
                    "env": [
                        {"name": name, "value": value}
                        for name, value in sorted(environment.items())
                    ],
                    "resources": {"requests": resources, "limits": resources},
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "capabilities": {
                            "drop": ["ALL"],
                            "add": list(ROOT_CAPABILITIES),
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
                    "emptyDir": {"medium": "Memory", "sizeLimit": SHARED_MEMORY},
                }
            ],
        },
    }


def make_hook_template(
    resource_name: str,
    planned: PlannedClass,
    pod_labels: Mapping[str, pulumi.Input[str]],
    opts: pulumi.ResourceOptions,
) -> core.ConfigMap:
    """Make the ConfigMap that runner pods mount the template from.

    The template is written as JSON, which is YAML too, so that its text depends on
    nothing but its content.
    """
    template = job_pod_template(planned, pod_labels)
    return core.ConfigMap(
        f"{resource_name}-hook-template",
        metadata=meta.ObjectMetaArgs(
            name=HOOK_TEMPLATE,
            namespace=planned.runner_namespace,
            labels=dict(planned.ci_labels),
        ),
        data={TEMPLATE_KEY: _text(template, pod_labels)},
        opts=opts,
    )


def _text(
    template: Mapping[str, Any], pod_labels: Mapping[str, pulumi.Input[str]]
) -> pulumi.Input[str]:
    if all(isinstance(value, str) for value in pod_labels.values()):
        return json.dumps(template, indent=2)
    return pulumi.Output.json_dumps(template, indent=2)
