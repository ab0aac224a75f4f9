"""Accelerators: one row per kind says everything that the runner side needs.

A row names the extended resource that jobs ask for, how nodes with the device are
tainted and labelled, what advertises the device to Kubernetes, what watches its
health, and where the driver comes from on each cloud. Adding a vendor is a row and a
test; a row whose plugin has no pinned chart yet says so, and a class that needs it
is refused with that reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pulumi
from pulumi_kubernetes.helm.v3 import Release, RepositoryOptsArgs

from runfleet.errors import MissingError
from runfleet.placement.plan import CellPlan, PlannedClass
from runfleet.spec.cells import Provider
from runfleet.spec.pools import Taint

DEVICE_NAMESPACE = "device-plugins"


@dataclass(frozen=True)
class Chart:
    """A Helm chart that advertises a device.

    Attributes:
        name: Name of the chart.
        repository: Address of its repository.
        pin: Name of the pin of its version.
        values: Values that it gets.
    """

    name: str
    repository: str
    pin: str
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class BuiltIn:
    """A plugin that the cloud's own nodes bring along.

    Attributes:
        where: Which nodes.
    """

    where: str


@dataclass(frozen=True)
class NotPinned:
    """A plugin that this toolkit does not install yet.

    Attributes:
        source: Where it is published.
    """

    source: str


@dataclass(frozen=True)
class Device:
    """One kind of accelerator or device.

    Attributes:
        vendor: Who makes it, as runner classes spell it.
        resources: Extended resources that its plugin advertises.
        taint: Taint of nodes that have it.
        node_labels: Labels of nodes that have it, given by the pool.
        discovered: Label key that discovery on the node sets; empty if none.
        plugin: What advertises it.
        health: What watches its health.
        drivers: Where the driver comes from, by cloud; a cloud that is not named
            does not offer the device.
    """

    vendor: str
    resources: tuple[str, ...]
    taint: Taint
    node_labels: Mapping[str, str]
    discovered: str
    plugin: Chart | BuiltIn | NotPinned
    health: str
    drivers: Mapping[Provider, str]


_TOLERATE_ALL = [{"operator": "Exists"}]

DEVICES: tuple[Device, ...] = (
    Device(
        vendor="nvidia",
        resources=("nvidia.com/gpu",),
        taint=Taint("nvidia.com/gpu", "true"),
        node_labels={"nvidia.com/gpu": "true"},
        discovered="feature.node.kubernetes.io/pci-10de.present",
        plugin=Chart(
            name="nvidia-device-plugin",
            repository="https://nvidia.github.io/k8s-device-plugin",
            pin="nvidia-device-plugin-chart",
            values={
                "tolerations": _TOLERATE_ALL,
                # The chart's own affinity asks for labels of feature discovery,
                # which this cell does not run.
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {
                                    "matchExpressions": [
                                        {
                                            "key": "nvidia.com/gpu",
                                            "operator": "In",
                                            "values": ["true"],
                                        }
                                    ]
                                }
                            ]
                        }
                    }
                },
            },
        ),
        health="dcgm-exporter (NVIDIA/dcgm-exporter); XID errors in the kernel log",
        drivers={
            Provider.AWS: "AL2023 NVIDIA images",
            Provider.GCP: "node pool setting gpu_driver_installation_config",
            Provider.AZURE: "agent pool setting gpu_profile.driver=Install",
            Provider.IBM: "GPU operator; images come without drivers",
            Provider.OWN: "the host's packages",
        },
    ),
    Device(
        vendor="amd",
        resources=("amd.com/gpu",),
        taint=Taint("amd.com/gpu", "true"),
        node_labels={"amd.com/gpu": "true"},
        discovered="feature.node.kubernetes.io/pci-1002.present",
        plugin=NotPinned("github.com/ROCm/k8s-device-plugin or ROCm/gpu-operator"),
        health="device-metrics-exporter (ROCm/device-metrics-exporter)",
        drivers={
            Provider.AZURE: "AMD GPU operator; AKS installs none",
            Provider.AWS: "AMD GPU operator, on a custom image",
            Provider.OWN: "the host's packages",
        },
    ),
    Device(
        vendor="intel",
        resources=("gpu.intel.com/xe", "gpu.intel.com/i915"),
        taint=Taint("gpu.intel.com", "true"),
        node_labels={"gpu.intel.com": "true"},
        discovered="feature.node.kubernetes.io/pci-8086.present",
        plugin=NotPinned("github.com/intel/intel-device-plugins-for-kubernetes"),
        health="XPU Manager (intel/xpumanager)",
        drivers={Provider.OWN: "the kernel's xe or i915 module"},
    ),
    Device(
        vendor="habana",
        resources=("habana.ai/gaudi",),
        taint=Taint("habana.ai/gaudi", "true"),
        node_labels={"habana.ai/gaudi": "true"},
        discovered="feature.node.kubernetes.io/pci-1da3.present",
        plugin=NotPinned("vault.habana.ai, habana-k8s-device-plugin.yaml"),
        health="Gaudi metric exporter (vault.habana.ai)",
        drivers={
            Provider.AWS: "Gaudi base operator, on a custom image",
            Provider.IBM: "Gaudi base operator",
            Provider.OWN: "the host's packages (habanalabs)",
        },
    ),
    Device(
        vendor="google",
        resources=("google.com/tpu",),
        taint=Taint("google.com/tpu", "present"),
        node_labels={},
        discovered="cloud.google.com/gke-tpu-accelerator",
        plugin=BuiltIn("GKE's TPU nodes"),
        health="GKE's TPU metrics",
        drivers={Provider.GCP: "GKE's TPU nodes"},
    ),
    Device(
        vendor="aws",
        resources=("aws.amazon.com/neuron", "aws.amazon.com/neuroncore"),
        taint=Taint("aws.amazon.com/neuron", "true"),
        node_labels={"aws.amazon.com/neuron": "true"},
        discovered="",
        plugin=NotPinned("AWS Neuron Helm chart"),
        health="neuron-monitor",
        drivers={Provider.AWS: "AL2023 Neuron images"},
    ),
    Device(
        vendor="aws-efa",
        resources=("vpc.amazonaws.com/efa",),
        taint=Taint("vpc.amazonaws.com/efa", "true"),
        node_labels={"vpc.amazonaws.com/efa": "true"},
        discovered="",
        plugin=NotPinned("aws-efa-k8s-device-plugin Helm chart"),
        health="EFA counters of the node exporter",
        drivers={Provider.AWS: "AL2023 NVIDIA and Neuron images"},
    ),
)
"""All known devices. Resources, plugins and drivers: the vendors' installation guides
and the clouds' GPU pages; GKE's own taint for TPU nodes is ``google.com/tpu``."""


def device_of(planned: PlannedClass) -> Device | None:
    """Return the row of a class's accelerator; ``None`` for a class without.

    Raises:
        MissingError: There is no row for the vendor, or the cloud has no driver.
    """
    accelerator = planned.runner_class.hardware.accelerator
    if accelerator is None:
        return None
    row = next((d for d in DEVICES if accelerator.resource in d.resources), None)
    if row is None:
        raise MissingError(
            f"class {planned.name} asks for {accelerator.resource}, which no row of "
            "the device table gives",
            "a row in runfleet.runners.devices",
        )
    return row


def devices_in(plan: CellPlan) -> list[Device]:
    """Return the rows that a cell's classes need, in the table's order.

    Raises:
        MissingError: A class needs a device that cannot be had in this cell.
    """
    needed = {
        row.resources: row for p in plan.classes if (row := device_of(p)) is not None
    }
    for row in needed.values():
        if plan.cell.provider not in row.drivers:
            raise MissingError(
                f"{plan.cell.provider} has no driver for {row.resources[0]}",
                "a driver source in the row of runfleet.runners.devices",
            )
        if isinstance(row.plugin, NotPinned):
            raise MissingError(
                f"the device plugin of {row.resources[0]} is not pinned",
                f"a chart from {row.plugin.source} in runfleet.runners.devices",
            )
    return [row for row in DEVICES if row.resources in needed]


def make_plugins(
    resource_name: str,
    plan: CellPlan,
    devices: Iterable[Device],
    opts: pulumi.ResourceOptions,
) -> list[Release]:
    """Make the device plugins of a cell that come as charts."""
    return [
        Release(
            f"{resource_name}-{device.vendor}-device-plugin",
            name=device.plugin.name,
            chart=device.plugin.name,
            version=plan.pins.value(device.plugin.pin),
            namespace=DEVICE_NAMESPACE,
            repository_opts=RepositoryOptsArgs(repo=device.plugin.repository),
            values=dict(device.plugin.values),
            opts=opts,
        )
        for device in devices
        if isinstance(device.plugin, Chart)
    ]
