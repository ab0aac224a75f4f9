"""Scale sets: one AutoscalingRunnerSet per class, which starts a runner per job.

ARC's chart ``gha-runner-scale-set`` would hide these objects in a Helm release, so
they are written here as resources of their own. What the controller demands of them
is taken from the chart's behaviour at version 0.14.2
(``charts/gha-runner-scale-set/templates/autoscalingrunnerset.yaml`` of
actions/actions-runner-controller at 2ee6b3b).

Runner pods run the Actions runner and the container hooks, never a job's steps:
``ACTIONS_RUNNER_REQUIRE_JOB_CONTAINER`` is ``true``, so a workflow without a
``container:`` fails at once. The pods pass Pod Security ``restricted``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.meta import v1 as meta

from runfleet.catalogue.pins import Pins
from runfleet.placement.plan import CellPlan, PlannedClass
from runfleet.runners.access import MANAGER_BINDING, RUNNER_ACCOUNT
from runfleet.runners.job_pods import (
    DO_NOT_DISRUPT,
    HOOK_TEMPLATE,
    HOOKS_GROUP,
    TEMPLATE_KEY,
)
from runfleet.runners.scheduling import runner_placement
from runfleet.runners.tenancy import RUNNER_PRIORITY, ScaleLimits, cores

ARC_API = "actions.github.com/v1alpha1"
ARC_VERSION_PIN = "arc-version"
RUNNER_IMAGE_PIN = "arc-runner-image"
RUNNER_IMAGE_REPOSITORY = "ghcr.io/actions/actions-runner"
APP_SECRET = "github-app"
MAX_SCALE_SET_NAME = 45
"""The chart fails on longer names (gha-runner-scale-set 0.14.2)."""

RUNNER_UID = 1001
"""Uid of user ``runner`` (actions/runner, ``images/Dockerfile``); numeric, because
the kubelet cannot tell from a name that a user is not root."""

PREPARE_JOB_SECONDS = 7200
"""How long the hooks wait for a job pod: a node must start and an image be pulled.
The hooks' own default is 600 (``packages/k8s/src/k8s/index.ts``)."""

HISTOGRAM_BUCKETS = (
    30, 60, 120, 300, 600, 900, 1800, 3600,
    7200, 10800, 14400, 18000, 21600, 28800, 43200, 86400,
)  # fmt: skip
"""Seconds. The listener's own 45 buckets stop at one hour; jobs run for many."""

JOB_LABELS = ("repository", "job_workflow_name")
RESULT_LABELS = (*JOB_LABELS, "job_result")
"""``job_name``, ``event_name`` and the workflow references are left out: a matrix of
14 shards would make 14 times as many series."""

SCALE_SET_LABELS = ("name", "namespace", "repository", "organization", "enterprise")
SCALE_SET_GAUGES = (
    "gha_assigned_jobs",
    "gha_running_jobs",
    "gha_registered_runners",
    "gha_busy_runners",
    "gha_idle_runners",
    "gha_min_runners",
    "gha_max_runners",
    "gha_desired_runners",
)


@dataclass(frozen=True)
class ScaleSetArgs:
    """What a scale set is made from.

    Attributes:
        plan: The plan of the cell.
        planned: The class.
        limits: How many runners it may have.
    """

    plan: CellPlan
    planned: PlannedClass
    limits: ScaleLimits


def runner_image(pins: Pins) -> str:
    """Return the image of the runner; the pin is a reference, a digest or a tag."""
    pinned = pins.value(RUNNER_IMAGE_PIN)
    if "/" in pinned:
        return pinned
    separator = "@" if pinned.startswith("sha256:") else ":"
    return f"{RUNNER_IMAGE_REPOSITORY}{separator}{pinned}"


def runner_pod_template(args: ScaleSetArgs) -> dict[str, Any]:
    """Return the pod template of a class's runners."""
    planned, cell = args.planned, args.plan.cell
    placement = runner_placement(planned, cell)
    image = runner_image(args.plan.pins)
    resources = {
        "cpu": cores(cell.runner_pods.cpu),
        "memory": cell.runner_pods.memory.kubernetes,
    }
    return {
        "metadata": {
            "labels": dict(planned.ci_labels),
            "annotations": dict(DO_NOT_DISRUPT),
        },
        "spec": {
            # Naming an account keeps the controller from making the account
            # "<name>-gha-rs-no-permission" and the default Role, which could read
            # the App's key.
            "serviceAccountName": RUNNER_ACCOUNT,
            "automountServiceAccountToken": True,
            "enableServiceLinks": False,
            "restartPolicy": "Never",
            "priorityClassName": RUNNER_PRIORITY,
            "nodeSelector": dict(placement.selector),
            "tolerations": placement.toleration_fields(),
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": RUNNER_UID,
                "runAsGroup": RUNNER_UID,
                "fsGroup": HOOKS_GROUP,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [
                {
                    "name": "runner",
                    "image": image,
                    "command": ["/home/runner/run.sh"],
                    "env": _runner_environment(planned, image),
                    "resources": {"requests": resources, "limits": resources},
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "capabilities": {"drop": ["ALL"]},
                        "privileged": False,
                    },
                    "volumeMounts": [
                        {"name": "work", "mountPath": "/home/runner/_work"},
                        {
                            "name": "hook-template",
                            "mountPath": _TEMPLATE_FOLDER,
                            "readOnly": True,
                        },
                    ],
                }
            ],
            "volumes": [
                {"name": "work", "emptyDir": {}},
                {"name": "hook-template", "configMap": {"name": HOOK_TEMPLATE}},
            ],
        },
    }


def scale_set_spec(args: ScaleSetArgs) -> dict[str, Any]:
    """Return the spec of a class's AutoscalingRunnerSet.

    A class's aliases are not registered: they are labels of older runners, which may
    still take jobs by them.

    Raises:
        ValueError: The label is longer than a scale set's name may be; the fleet
            file's own check refuses such a class before.
    """
    planned = args.planned
    if len(planned.label) > MAX_SCALE_SET_NAME:
        raise ValueError(
            f"{planned.label!r} has {len(planned.label)} characters, a scale set's "
            f"name at most {MAX_SCALE_SET_NAME}"
        )
    spec: dict[str, Any] = {
        "githubConfigUrl": args.plan.fleet.github.organization_url,
        "githubConfigSecret": APP_SECRET,
        "runnerGroup": planned.runner_group,
        "runnerScaleSetName": planned.label,
        "minRunners": args.limits.minimum,
    }
    if args.limits.maximum is not None:
        spec["maxRunners"] = args.limits.maximum
    return spec | {
        "template": runner_pod_template(args),
        "listenerTemplate": listener_template(),
        "listenerMetrics": listener_metrics(),
    }


def listener_template() -> dict[str, Any]:
    """Return the pod template of a scale set's listener, beside the controller.

    It tolerates the taint of the base nodes; all other nodes are tainted for jobs.
    """
    resources = {"cpu": "100m", "memory": "256Mi"}
    return {
        "spec": {
            "tolerations": [
                {
                    "key": "CriticalAddonsOnly",
                    "operator": "Exists",
                    "effect": "NoSchedule",
                }
            ],
            "securityContext": {
                "runAsNonRoot": True,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [
                {
                    "name": "listener",
                    "resources": {"requests": resources, "limits": resources},
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "capabilities": {"drop": ["ALL"]},
                        "readOnlyRootFilesystem": True,
                    },
                }
            ],
        }
    }


def listener_metrics() -> dict[str, Any]:
    """Return which series a listener gives, with few labels and long buckets."""
    buckets = list(HISTOGRAM_BUCKETS)
    return {
        "counters": {
            "gha_started_jobs_total": {"labels": list(JOB_LABELS)},
            "gha_completed_jobs_total": {"labels": list(RESULT_LABELS)},
        },
        "gauges": {
            gauge: {"labels": list(SCALE_SET_LABELS)} for gauge in SCALE_SET_GAUGES
        },
        "histograms": {
            "gha_job_startup_duration_seconds": {
                "labels": list(JOB_LABELS),
                "buckets": buckets,
            },
            "gha_job_execution_duration_seconds": {
                "labels": list(RESULT_LABELS),
                "buckets": buckets,
            },
        },
    }


def scale_set_labels(args: ScaleSetArgs) -> dict[str, str]:
    """Return the labels of a class's AutoscalingRunnerSet.

    The controller deletes a scale set whose ``app.kubernetes.io/version`` is not the
    version of the controller, so both come from one pin.
    """
    planned = args.planned
    return {
        **planned.ci_labels,
        "app.kubernetes.io/name": planned.label,
        "app.kubernetes.io/instance": planned.label,
        "app.kubernetes.io/version": args.plan.pins.value(ARC_VERSION_PIN),
        "app.kubernetes.io/component": "autoscaling-runner-set",
        "app.kubernetes.io/part-of": "gha-rs",
        "app.kubernetes.io/managed-by": "runfleet",
        "actions.github.com/scale-set-name": planned.label,
        "actions.github.com/scale-set-namespace": planned.runner_namespace,
    }


def scale_set_annotations(spec: Mapping[str, Any]) -> dict[str, str]:
    """Return the annotations of an AutoscalingRunnerSet with this spec.

    ``values-hash`` makes the controller renew the listener when anything changes.
    The clean-up annotations name objects whose finalizer the controller takes off
    once the scale set is gone from GitHub. Ours carry no finalizers: they are
    dependencies of the scale set, so that they outlive it. The chart also names a
    manager Role, which is a ClusterRole here, and the objects of container modes that
    it makes itself; those do not exist and are not named.
    """
    text = json.dumps(spec, sort_keys=True)
    return {
        # The chart's keys; it cuts the hash at 63 characters.
        "actions.github.com/values-hash": hashlib.sha256(text.encode()).hexdigest()[
            :63
        ],
        "actions.github.com/cleanup-manager-role-binding": MANAGER_BINDING,
    }


def make_scale_set(
    resource_name: str,
    args: ScaleSetArgs,
    dependencies: Sequence[pulumi.Resource],
    opts: pulumi.ResourceOptions,
) -> CustomResource:
    """Make the scale set of a class.

    Args:
        resource_name: Start of the logical name.
        args: What it is made from.
        dependencies: What must exist before it and must outlive it.
        opts: Parent and provider.
    """
    spec = scale_set_spec(args)
    return CustomResource(
        f"{resource_name}-scale-set",
        api_version=ARC_API,
        kind="AutoscalingRunnerSet",
        metadata=meta.ObjectMetaArgs(
            name=args.planned.label,
            namespace=args.planned.runner_namespace,
            labels=scale_set_labels(args),
            annotations=scale_set_annotations(spec),
        ),
        spec=spec,
        opts=pulumi.ResourceOptions.merge(
            opts, pulumi.ResourceOptions(depends_on=list(dependencies))
        ),
    )


_TEMPLATE_FOLDER = "/home/runner/hook-template"


def _runner_environment(planned: PlannedClass, image: str) -> list[dict[str, Any]]:
    """Return the environment of the runner container.

    The heap limits are what the incumbent runs in 1 GiB (pytorch/ci-infra at
    b1ce4a6, ``modules/arc-runners/templates/runner.yaml.tpl``).
    """
    values = {
        "ACTIONS_RUNNER_CONTAINER_HOOKS": "/home/runner/k8s-novolume/index.js",
        "ACTIONS_RUNNER_CONTAINER_HOOK_TEMPLATE": f"{_TEMPLATE_FOLDER}/{TEMPLATE_KEY}",
        "ACTIONS_RUNNER_IMAGE": image,
        "ACTIONS_RUNNER_KUBERNETES_NAMESPACE": planned.job_namespace,
        "ACTIONS_RUNNER_PREPARE_JOB_TIMEOUT_SECONDS": str(PREPARE_JOB_SECONDS),
        "ACTIONS_RUNNER_REQUIRE_JOB_CONTAINER": "true",
        "DOTNET_GCConserveMemory": "5",
        "DOTNET_GCHeapHardLimit": "C800000",
        "NODE_OPTIONS": "--max-old-space-size=128",
    }
    pod_name = {
        "name": "ACTIONS_RUNNER_POD_NAME",
        "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}},
    }
    return [
        pod_name,
        *({"name": name, "value": value} for name, value in values.items()),
    ]
