"""Every imported class keeps what its definition says.

The expectations are read from the source's files here, by rules that are restated
from pytorch/ci-infra at b1ce4a6 (``generate_nodepools.py``, ``generate_runners.py``
and the runner template), not through the importer.
"""

from __future__ import annotations

import pytest

from importers.osdc_source import (
    LIES,
    NODEPOOLS,
    RUNNERS,
    as_fleet,
    definitions,
    imported,
)
from runfleet.spec import Fleet, Role, RunnerClass, Trigger, Trust
from runfleet.spec.classes import extended_resources
from runfleet.spec.grammar import parse_label

RUNNER_DEFS = {d["runner"]["name"]: d["runner"] for d in definitions(RUNNERS).values()}
FLEET_DEFS = {d["fleet"]["name"]: d["fleet"] for d in definitions(NODEPOOLS).values()}


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    return as_fleet(imported().fleet)


def fleet_name(definition: dict) -> str:
    family = definition["instance_type"].split(".")[0]
    return definition.get("node_fleet", family)


def test_the_source_is_complete() -> None:
    assert len(RUNNER_DEFS) == 44
    assert len(FLEET_DEFS) == 30
    shapes = [
        machine
        for fleet in FLEET_DEFS.values()
        for section in ("instances", "release")
        for machine in fleet.get(section, [])
    ]
    assert len(shapes) == 87


def test_all_classes_and_pools_are_there(fleet: Fleet) -> None:
    assert set(fleet.runner_classes) == set(RUNNER_DEFS)
    assert set(fleet.pools) == set(FLEET_DEFS)
    assert sum(len(pool.machines) for pool in fleet.pools.values()) == 87


@pytest.mark.parametrize("name", sorted(RUNNER_DEFS))
def test_requests(fleet: Fleet, name: str) -> None:
    wanted, made = RUNNER_DEFS[name], fleet.runner_classes[name]
    assert made.hardware.vcpu == wanted["vcpu"]
    assert made.hardware.memory.kubernetes == wanted["memory"]
    assert made.hardware.disk.gib == wanted["disk_size"]
    assert made.gpus == wanted["gpu"]
    gpus = {"nvidia.com/gpu": str(wanted["gpu"])} if wanted["gpu"] else {}
    assert extended_resources(made) == gpus
    assert made.hardware.arch == FLEET_DEFS[fleet_name(wanted)]["arch"]


@pytest.mark.parametrize("name", sorted(RUNNER_DEFS))
def test_caps(fleet: Fleet, name: str) -> None:
    wanted, scale = RUNNER_DEFS[name], fleet.runner_classes[name].scale
    assert scale.min == 0
    assert scale.burst == wanted.get("max_burst_capacity")
    assert scale.fallback == wanted.get("hud_failure_base_capacity")
    assert scale.warm == wanted.get("proactive_capacity", 0)
    if "max_burst_capacity" in wanted:
        assert scale.max == wanted["max_burst_capacity"]
        assert scale.derived == "max_burst_capacity of the source"


@pytest.mark.parametrize("name", sorted(RUNNER_DEFS))
def test_rungs_and_weights(fleet: Fleet, name: str) -> None:
    wanted, made = RUNNER_DEFS[name], fleet.runner_classes[name]
    section = "release" if wanted.get("runner_class") == "release" else "instances"
    source = FLEET_DEFS[fleet_name(wanted)][section]
    expected = sorted(((m["weight"], m["type"]) for m in source), reverse=True)
    pool = fleet.pools[made.pool or ""]
    assert [(m.weight, m.machine) for m in made.machines(pool)] == expected


@pytest.mark.parametrize("name", sorted(FLEET_DEFS))
def test_taints_labels_and_disks_of_machines(fleet: Fleet, name: str) -> None:
    wanted, pool = FLEET_DEFS[name], fleet.pools[name]
    assert pool.gpu == wanted["gpu"]
    assert pool.arch == wanted["arch"]
    assert pool.exclude_regions == wanted.get("exclude_regions", [])
    source = [
        (machine, section == "release")
        for section in ("instances", "release")
        for machine in wanted.get(section, [])
    ]
    assert len(pool.machines) == len(source)
    for made, (machine, release) in zip(pool.machines, source, strict=True):
        taints = {(t.key, t.value, t.effect) for t in pool.taints(made)}
        expected = {
            ("node-fleet", name, "NoSchedule"),
            ("instance-type", machine["type"], "NoSchedule"),
        }
        if wanted["gpu"]:
            expected.add(("nvidia.com/gpu", "true", "NoSchedule"))
        if release:  # the source keeps release nodes apart by label; we taint too
            expected.add(("ci_trust", "release", "NoSchedule"))
        assert taints == expected
        labels = pool.node_labels(made)
        assert labels["workload-type"] == "github-runner"
        assert labels["node-fleet"] == name
        assert labels["instance-type"] == machine["type"]
        assert labels.get("nvidia.com/gpu") == ("true" if wanted["gpu"] else None)
        assert made.release is release
        assert made.weight == machine["weight"]
        assert made.disk.gib == machine["node_disk_size"]
        assert made.nvme == machine.get("has_nvme", False)
        assert made.bare_metal == machine.get("baremetal", False)
        assert made.topology_policy == machine.get("topology_manager_policy")
        assert made.topology_scope == machine.get("topology_manager_scope")
        assert made.capacity == machine.get("capacity_type", "on-demand")


@pytest.mark.parametrize("name", sorted(RUNNER_DEFS))
def test_tolerations(fleet: Fleet, name: str) -> None:
    wanted, made = RUNNER_DEFS[name], fleet.runner_classes[name]
    pool = fleet.pools[made.pool or ""]
    expected = {
        ("node-fleet", "Equal", fleet_name(wanted)),
        ("instance-type", "Exists", ""),
    }
    if wanted["gpu"]:
        expected.add(("nvidia.com/gpu", "Equal", "true"))
    if wanted.get("runner_class") == "release":
        expected.add(("ci_trust", "Equal", "release"))
    tolerations = made.tolerations(pool)
    assert {(t.key, t.operator, t.value) for t in tolerations} == expected
    for machine in made.machines(pool):
        assert all(
            any(taint.tolerated_by(t) for t in tolerations)
            for taint in pool.taints(machine)
        )


@pytest.mark.parametrize("name", sorted(RUNNER_DEFS))
def test_role_trust_and_triggers(fleet: Fleet, name: str) -> None:
    made = fleet.runner_classes[name]
    if RUNNER_DEFS[name].get("runner_class") == "release":
        assert (made.role, made.trust) == (Role.RELEASER, Trust.RELEASE)
        assert made.triggers == [Trigger.ON_DEMAND]
    else:
        assert (made.role, made.trust) == (Role.TESTER, Trust.UNTRUSTED_PR)
        assert made.triggers == list(Trigger)


def test_two_release_classes(fleet: Fleet) -> None:
    release = [c.name for c in fleet.runner_classes.values() if c.release]
    assert release == ["rel-l-arm64g3-44-340", "rel-l-x86iavx512-44-340"]


def vendor_of(fleet: Fleet, name: str) -> str:
    return fleet.runner_classes[name].vendor


def test_vendors_are_who_makes_the_hardware(fleet: Fleet) -> None:
    # The label's vendor letter is an instruction-set style, not who makes it.
    assert vendor_of(fleet, "l-x86aavx512-125-463") == "intel"  # m6i
    assert vendor_of(fleet, "l-x86iavx512-8-16") == "amd"  # c7a
    assert vendor_of(fleet, "l-x86iamx-8-16") == "intel"  # c7i
    assert vendor_of(fleet, "l-arm64g4-16-62") == "aws"  # m8g
    assert vendor_of(fleet, "l-x86iavx512-29-115-t4") == "nvidia"  # g4dn


def test_whole_nodes_are_those_with_the_prefix_b(fleet: Fleet) -> None:
    whole = {c.name for c in fleet.runner_classes.values() if c.hardware.whole_node}
    assert whole == {
        "l-barm64g3-62-226",
        "l-barm64g4-62-226",
        "l-barm64g4-94-344",
        "l-bx86iamx-92-167",
        "l-bx86iavx512-88-1000-a100-8",
        "l-bx86iavx512-94-344-t4-8",
    }


def test_features_come_from_the_label(fleet: Fleet) -> None:
    classes = fleet.runner_classes
    assert classes["l-x86iamx-8-16"].hardware.features == ["amx"]
    assert classes["l-x86iavx2-8-32"].hardware.features == ["avx2"]
    assert classes["l-arm64g4-16-62"].hardware.features == []


def lies(runner_class: RunnerClass) -> bool:
    claim = parse_label(runner_class.name)
    assert claim is not None
    size = (runner_class.hardware.vcpu, runner_class.hardware.memory.gib)
    return (claim.vcpu, claim.memory_gib) != size


def test_exactly_seventeen_labels_lie(fleet: Fleet) -> None:
    found = {c.name for c in fleet.runner_classes.values() if lies(c)}
    assert len(LIES) == 17
    assert found == LIES


def test_gpu_claims_of_labels_are_true(fleet: Fleet) -> None:
    for runner_class in fleet.runner_classes.values():
        claim = parse_label(runner_class.name)
        assert claim is not None
        assert claim.gpu_count == runner_class.gpus
        accelerator = runner_class.hardware.accelerator
        assert claim.gpu == (accelerator.model if accelerator else "")


def test_derived_maxima_of_the_a100_classes(fleet: Fleet) -> None:
    scales = {
        name: (c.scale.max, c.scale.derived)
        for name, c in fleet.runner_classes.items()
        if "a100" in name
    }
    sibling = "the 48 GPUs of l-x86iavx512-11-125-a100, divided by"
    assert scales == {
        # ceil(38 x 1.25) = 48
        "l-x86iavx512-11-125-a100": (
            48,
            "measured peak of 38 jobs at once (linux.aws.a100) times 1.25, rounded up",
        ),
        "l-x86iavx512-22-250-a100-2": (24, f"{sibling} 2 GPUs per runner"),
        "l-x86iavx512-44-500-a100-4": (12, f"{sibling} 4 GPUs per runner"),
        "l-bx86iavx512-88-1000-a100-8": (6, f"{sibling} 8 GPUs per runner"),
    }


def test_no_maximum_is_open(fleet: Fleet) -> None:
    assert all(c.scale.max is not None for c in fleet.runner_classes.values())


def test_aliases_are_the_labels_of_arc_yaml(fleet: Fleet) -> None:
    classes = fleet.runner_classes
    assert classes["l-x86iavx512-8-64"].aliases == [
        "linux.2xlarge",
        "linux.c7i.2xlarge",
        "linux.r7i.2xlarge",
    ]
    assert classes["l-x86iavx512-11-125-a100"].aliases == ["linux.aws.a100"]
    aliases = [alias for c in classes.values() for alias in c.aliases]
    assert len(aliases) == len(set(aliases)) == 31


def test_consolidation_by_kind_of_pool(fleet: Fleet) -> None:
    after = {name: str(p.consolidate_after) for name, p in fleet.pools.items()}
    assert after["c7i-12xl"] == "5m"
    assert after["g5"] == "10m"
    assert after["g4dn-metal"] == "15m"  # bare metal only
    assert after["g4dn"] == "10m"  # mixed: the GPU value, and the report says so
    assert {str(p.disruption) for p in fleet.pools.values()} == {"20%"}
    notes = [e for e in imported().report if "baremetal_consolidate_after" in e.why]
    assert [(e.value, e.file.rsplit("/", 1)[1]) for e in notes] == [
        ("c7i-large", "c7i-large.yaml"),
        ("g4dn", "g4dn.yaml"),
    ]


def test_cells(fleet: Fleet) -> None:
    first, second = fleet.cells.values()
    assert (first.name, first.cluster, first.region) == (
        "aws",
        "lf-prod-aws-ue1",
        "us-east-1",
    )
    assert (second.name, second.cluster, second.region) == (
        "aws-ue2",
        "lf-prod-aws-ue2",
        "us-east-2",
    )
    for cell, cidr in ((first, "10.12.0.0/16"), (second, "10.16.0.0/16")):
        assert cell.account == "391835788720"
        assert cell.funder == "linux-foundation"
        assert cell.zones == [f"{cell.region}{letter}" for letter in "abc"]
        assert cell.network is not None
        assert cell.base_nodes is not None
        assert (cell.network.cidr, cell.network.nat) == (cidr, "per-zone")
        assert (cell.base_nodes.machine, cell.base_nodes.count) == ("m7i.4xlarge", 4)
        assert cell.api_access.mode == "private"
        assert cell.admins == ["lf_osdc_admin"]
        assert cell.label_prefix == "lf-"
        assert cell.runner_group == cell.cluster
        assert cell.release_runner_group == f"{cell.cluster}-release-runners"
        assert cell.runner_pods.pool == "c7i-runner"
        assert cell.runner_pods.cpu == 0.75
        assert cell.runner_pods.memory.gib == 1
        assert len(list(fleet.classes_in(cell))) == 44


def test_sources_name_file_and_revision(fleet: Fleet) -> None:
    assert fleet.runner_classes["l-x86iamx-8-16"].source == (
        "osdc/modules/arc-runners/defs/l-x86iamx-8-16.yaml@b1ce4a6"
    )
