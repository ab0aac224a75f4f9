from __future__ import annotations

import pytest

from runfleet.errors import MissingError
from runfleet.placement import CellPlan
from runfleet.runners.devices import (
    DEVICES,
    BuiltIn,
    Chart,
    NotPinned,
    device_of,
    devices_in,
)
from runfleet.spec.classes import Accelerator
from runners.cells import FLEET, Cluster, class_of, fleet_of, plan_of, record_runners


@pytest.mark.parametrize(
    ("vendor", "resource", "taint", "plugin"),
    [
        ("nvidia", "nvidia.com/gpu", "nvidia.com/gpu", Chart),
        ("amd", "amd.com/gpu", "amd.com/gpu", NotPinned),
        ("intel", "gpu.intel.com/xe", "gpu.intel.com", NotPinned),
        ("habana", "habana.ai/gaudi", "habana.ai/gaudi", NotPinned),
        ("google", "google.com/tpu", "google.com/tpu", BuiltIn),
        ("aws", "aws.amazon.com/neuron", "aws.amazon.com/neuron", NotPinned),
        ("aws-efa", "vpc.amazonaws.com/efa", "vpc.amazonaws.com/efa", NotPinned),
    ],
)
def test_each_vendor_has_a_row(
    vendor: str, resource: str, taint: str, plugin: type
) -> None:
    (row,) = [device for device in DEVICES if device.vendor == vendor]
    assert row.resources[0] == resource
    assert row.taint.key == taint
    assert isinstance(row.plugin, plugin)
    assert row.health
    assert row.drivers


def test_the_resource_of_every_vendor_that_classes_may_name_is_in_the_table() -> None:
    known = {resource for row in DEVICES for resource in row.resources}
    for vendor in ("nvidia", "amd", "intel", "habana", "google", "aws"):
        assert Accelerator(model="x", vendor=vendor).resource in known


def test_no_resource_is_in_two_rows() -> None:
    resources = [resource for row in DEVICES for resource in row.resources]
    assert len(resources) == len(set(resources))


def test_a_cell_gets_the_plugins_of_its_classes(
    plan: CellPlan, cluster: Cluster
) -> None:
    assert [device.vendor for device in devices_in(plan)] == ["nvidia"]
    assert device_of(class_of(plan, "x86-8-16")) is None
    release = cluster.release("nvidia-device-plugin")
    assert release["version"] == "0.19.0"
    assert release["namespace"] == "device-plugins"
    assert release["repositoryOpts"] == {
        "repo": "https://nvidia.github.io/k8s-device-plugin"
    }
    (term,) = release["values"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [
        {"key": "nvidia.com/gpu", "operator": "In", "values": ["true"]}
    ]
    gpu = next(pool for pool in plan.node_pools if pool.pool.gpu)
    assert gpu.labels["nvidia.com/gpu"] == "true"


def test_a_cell_without_accelerators_gets_none() -> None:
    plan = plan_of(fleet_of(without_gpus()))
    cluster = record_runners(plan)
    releases = {made.inputs["name"] for made in cluster.of("Release")}
    assert releases == {"arc", "external-secrets"}
    namespaces = {made.inputs["metadata"]["name"] for made in cluster.of("Namespace")}
    assert "device-plugins" not in namespaces


@pytest.mark.parametrize(
    ("vendor", "message"),
    [
        ("habana", "the device plugin of habana.ai/gaudi is not pinned"),
        ("google", "aws has no driver for google.com/tpu"),
        ("acme", "acme.com/accelerator, which no row of the device table gives"),
    ],
)
def test_a_device_that_cannot_be_had_is_refused_with_the_reason(
    vendor: str, message: str
) -> None:
    text = FLEET.replace("{model: l4, count: 2}", f"{{model: x, vendor: {vendor}}}")
    with pytest.raises(MissingError, match=message) as caught:
        devices_in(plan_of(fleet_of(text)))
    assert caught.value.exit_code == 3


def test_a_refused_device_stops_the_program_before_it_makes_anything() -> None:
    text = FLEET.replace("{model: l4, count: 2}", "{model: x, vendor: acme}")
    with pytest.raises(MissingError):
        record_runners(plan_of(fleet_of(text)))


def without_gpus() -> str:
    head, _, rest = FLEET.partition("  l4:\n")
    return head + rest[rest.index("  rel-x86:") :]
