"""The controllers of the runner side: the only things that stay charts.

ARC's controller starts runners, the External Secrets operator brings the App's key,
and a device plugin per accelerator advertises it. Their namespaces enforce Pod
Security ``restricted``, but for device plugins, which mount the kubelet's socket
directory from the node; that exception is written on their namespace.

ARC's controller watches every namespace, because each class has its own; its rights
in them come from bindings that name one namespace each
(:mod:`runfleet.runners.access`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi_kubernetes.core import v1 as core
from pulumi_kubernetes.helm.v3 import Release, RepositoryOptsArgs

from runfleet.placement.plan import CellPlan
from runfleet.runners.access import CONTROLLER_ACCOUNT, CONTROLLER_NAMESPACE
from runfleet.runners.devices import DEVICE_NAMESPACE, devices_in, make_plugins
from runfleet.runners.isolation import make_policy, runner_reach
from runfleet.runners.scale_sets import ARC_VERSION_PIN
from runfleet.runners.tenancy import make_namespace, pod_security

ARC_CHART = (
    "oci://ghcr.io/actions/actions-runner-controller-charts/"
    "gha-runner-scale-set-controller"
)
ARC_IMAGE = "ghcr.io/actions/gha-runner-scale-set-controller"
ARC_IMAGE_PIN = "arc-controller-image"
METRICS_PORT = 8080
SECRETS_NAMESPACE = "external-secrets"
SECRETS_ACCOUNT = "external-secrets"
SECRETS_REPOSITORY = "https://charts.external-secrets.io"
SECRETS_PIN = "external-secrets-chart"

_BASE_NODES = [
    {"key": "CriticalAddonsOnly", "operator": "Exists", "effect": "NoSchedule"}
]
_POD_SECURITY = {
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
_CONTAINER_SECURITY = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}


@dataclass(frozen=True)
class Controllers:
    """The controllers of a cell.

    Attributes:
        arc: ARC's controller.
        secrets: The External Secrets operator.
        plugins: The device plugins.
        namespaces: Their namespaces.
    """

    arc: Release
    secrets: Release
    plugins: list[Release]
    namespaces: list[core.Namespace]


def arc_values(plan: CellPlan) -> dict[str, Any]:
    """Return the values of ARC's controller chart."""
    resources = {"cpu": "1", "memory": "1Gi"}
    values: dict[str, Any] = {
        "replicaCount": 2,
        "serviceAccount": {"create": True, "name": CONTROLLER_ACCOUNT},
        "flags": {
            "logLevel": "info",
            "logFormat": "json",
            # The chart's default of 2 makes one class wait for another.
            "runnerMaxConcurrentReconciles": 10,
        },
        "metrics": {
            "controllerManagerAddr": f":{METRICS_PORT}",
            "listenerAddr": f":{METRICS_PORT}",
            "listenerEndpoint": "/metrics",
        },
        "podSecurityContext": _POD_SECURITY,
        "securityContext": _CONTAINER_SECURITY,
        "resources": {"requests": resources, "limits": resources},
        "tolerations": _BASE_NODES,
    }
    digest = plan.pins.value(ARC_IMAGE_PIN)
    if digest.startswith("sha256:"):
        version = plan.pins.value(ARC_VERSION_PIN)
        values["image"] = {"repository": ARC_IMAGE, "tag": f"{version}@{digest}"}
    return values


def secrets_values(
    annotations: Mapping[str, pulumi.Input[str]] | None = None,
) -> dict[str, Any]:
    """Return the values of the External Secrets chart.

    The chart's own security contexts pass ``restricted``. What this cell does not
    use is off: generators of certificates and pushing secrets to the cloud.

    Args:
        annotations: Annotations of its service account, which some clouds bind its
            identity by.
    """
    account: dict[str, Any] = {"create": True, "name": SECRETS_ACCOUNT}
    if annotations:
        account["annotations"] = dict(annotations)
    return {
        "installCRDs": True,
        "replicaCount": 2,
        "leaderElect": True,
        "serviceAccount": account,
        "processPushSecret": False,
        "processClusterPushSecret": False,
        "tolerations": _BASE_NODES,
        "webhook": {"tolerations": _BASE_NODES},
        "certController": {"tolerations": _BASE_NODES},
    }


def make_controllers(
    resource_name: str,
    plan: CellPlan,
    api_addresses: Sequence[str] | None,
    opts: pulumi.ResourceOptions,
    secrets_annotations: Mapping[str, pulumi.Input[str]] | None = None,
) -> Controllers:
    """Make the controllers of a cell.

    Args:
        resource_name: Start of the logical names.
        plan: The plan of the cell.
        api_addresses: Ranges of the API server; ``None`` for the cell's own.
        opts: Parent, provider and dependencies.
        secrets_annotations: Annotations of External Secrets' service account.

    Raises:
        MissingError: A class needs a device that cannot be had in this cell.
    """
    devices = devices_in(plan)
    arc_namespace = make_namespace(
        f"{resource_name}-arc-namespace",
        CONTROLLER_NAMESPACE,
        plan.ci_labels | pod_security("system", "restricted"),
        {},
        opts,
    )
    secrets_namespace = make_namespace(
        f"{resource_name}-secrets-namespace",
        SECRETS_NAMESPACE,
        plan.ci_labels | pod_security("system", "restricted"),
        {},
        opts,
    )
    namespaces = [arc_namespace, secrets_namespace]
    # ARC's controller and listeners connect to the same things as runners do.
    arc_isolation = make_policy(
        f"{resource_name}-arc-isolation",
        CONTROLLER_NAMESPACE,
        plan.ci_labels,
        runner_reach(plan, api_addresses, ()),
        (),
        _after(opts, arc_namespace),
        scraped_ports=[METRICS_PORT],
    )
    arc = Release(
        f"{resource_name}-arc",
        name="arc",
        chart=ARC_CHART,
        version=plan.pins.value(ARC_VERSION_PIN),
        namespace=CONTROLLER_NAMESPACE,
        values=arc_values(plan),
        opts=_after(opts, arc_namespace, arc_isolation),
    )
    secrets = Release(
        f"{resource_name}-external-secrets",
        name="external-secrets",
        chart="external-secrets",
        version=plan.pins.value(SECRETS_PIN),
        namespace=SECRETS_NAMESPACE,
        repository_opts=RepositoryOptsArgs(repo=SECRETS_REPOSITORY),
        values=secrets_values(secrets_annotations),
        opts=_after(opts, secrets_namespace),
    )
    plugins: list[Release] = []
    if devices:
        device_namespace = make_namespace(
            f"{resource_name}-devices-namespace",
            DEVICE_NAMESPACE,
            plan.ci_labels | pod_security("system", "privileged"),
            {
                "runfleet/pod-security-exception": "device plugins mount "
                "/var/lib/kubelet/device-plugins of their node"
            },
            opts,
        )
        namespaces.append(device_namespace)
        plugins = make_plugins(
            resource_name, plan, devices, _after(opts, device_namespace)
        )
    return Controllers(arc, secrets, plugins, namespaces)


def _after(
    opts: pulumi.ResourceOptions, *resources: pulumi.Resource
) -> pulumi.ResourceOptions:
    return pulumi.ResourceOptions.merge(
        opts, pulumi.ResourceOptions(depends_on=list(resources))
    )
