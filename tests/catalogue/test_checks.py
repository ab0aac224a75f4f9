"""Machine checks: all problems of a fleet file in one report, with lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from runfleet.catalogue.read import read_fleet
from runfleet.errors import InputError

FLEET = """\
version: 1
project: p
owner: {team: t}
github: {organization: o, runner_groups: {g: {}}}
cells:
  aws:
    provider: aws
    account: "1"
    region: us-east-1
    zones: [us-east-1a, us-east-1b]
    cluster: c
    network: {cidr: 10.0.0.0/16}
    base_nodes: {machine: m7i.4xlarge}
    funder: f
    runner_group: g
pools:
  cpu:
    provider: aws
    arch: amd64
    machines:
      - {machine: c7i.4xlarge, disk: 100GiB}
      - {machine: c7i.2xlarge, disk: 100GiB}
  gpu:
    provider: aws
    arch: amd64
    gpu: true
    machines:
      - {machine: g5.12xlarge, disk: 100GiB}
runner_classes:
  small:
    role: tester
    trust: untrusted-pr
    vendor: intel
    pool: cpu
    hardware: {arch: amd64, vcpu: 12, memory: 24GiB}
    scale: 0..5
  gpus:
    role: tester
    trust: untrusted-pr
    vendor: nvidia
    pool: gpu
    hardware:
      {arch: amd64, vcpu: 8, memory: 32GiB, accelerator: {model: a10g, count: 4}}
    scale: 0..5
reservations:
  block:
    id: cr-1
    cell: aws
    machine: g5.12xlarge
    count: 1
    start: 2026-01-01
"""


def check(tmp_path: Path, *changes: tuple[str, str]) -> list[str]:
    text = FLEET
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "fleet.yaml"
    path.write_text(text)
    try:
        read_fleet(path)
    except InputError as error:
        return [str(p).removeprefix(f"{path}:") for p in error.problems]
    return []


def test_a_good_fleet_has_no_problems(tmp_path: Path) -> None:
    assert check(tmp_path) == []


def test_unknown_machines_everywhere_with_their_nearest_spelling(
    tmp_path: Path,
) -> None:
    found = check(
        tmp_path,
        ("machine: m7i.4xlarge", "machine: m7i.4xlage"),
        ("machine: c7i.2xlarge", "machine: n2-standard-8"),
        ("    machine: g5.12xlarge\n", "    machine: g5.12xlarg\n"),
    )
    assert found == [
        "13: cells.aws.base_nodes.machine: aws has no machine of this name in the "
        "catalogue; found m7i.4xlage; did you mean m7i.4xlarge?",
        "22: pools.cpu.machines[1].machine: aws has no machine of this name in the "
        "catalogue; it is a machine of gcp; found n2-standard-8",
        "49: reservations.block.machine: aws has no machine of this name in the "
        "catalogue; found g5.12xlarg; did you mean g5.12xlarge?",
    ]


def test_a_machine_of_another_architecture(tmp_path: Path) -> None:
    found = check(tmp_path, ("machine: c7i.2xlarge", "machine: m7g.8xlarge"))
    assert found == [
        "22: pools.cpu.machines[1].machine: is arm64, pool cpu is amd64; found "
        "m7g.8xlarge; allowed: machines that are amd64"
    ]


def test_a_machine_that_is_not_sold_any_more(tmp_path: Path) -> None:
    found = check(tmp_path, ("machine: c7i.2xlarge", "machine: dl1.24xlarge"))
    assert found == [
        "22: pools.cpu.machines[1].machine: is retired: priced, but gone from the "
        "type lists of Karpenter 1.14.1 and of the AWS API; found dl1.24xlarge"
    ]


def test_a_gpu_pool_with_a_machine_without_gpus(tmp_path: Path) -> None:
    found = check(
        tmp_path,
        (
            "      - {machine: g5.12xlarge, disk: 100GiB}\n",
            "      - {machine: g5.12xlarge, disk: 100GiB}\n"
            "      - {machine: c7i.4xlarge, disk: 100GiB}\n",
        ),
    )
    assert found == [
        "29: pools.gpu.machines[1].machine: has no accelerator, pool gpu has "
        "`gpu: true`; found c7i.4xlarge"
    ]


@pytest.mark.parametrize(
    ("old", "new", "lacks"),
    [
        ("vcpu: 12", "vcpu: 17", "16 vCPU for 17"),
        ("memory: 24GiB", "memory: 33GiB", "32GiB for 33GiB"),
    ],
)
def test_a_class_that_no_machine_of_its_pool_holds(
    tmp_path: Path, old: str, new: str, lacks: str
) -> None:
    assert check(tmp_path, (old, new)) == [
        "35: runner_classes.small.hardware: no machine of pool cpu can hold the "
        f"class; c7i.4xlarge has {lacks}"
    ]


@pytest.mark.parametrize(
    ("accelerator", "lacks"),
    [
        ("{model: a10g, count: 8}", "4 a10g accelerators for 8 a10g"),
        ("{model: l4, count: 4}", "a10g for l4"),
        (
            "{model: a10g, count: 4, memory: 48GiB}",
            "24GiB per accelerator for 48GiB",
        ),
    ],
)
def test_accelerators_that_a_pool_does_not_have(
    tmp_path: Path, accelerator: str, lacks: str
) -> None:
    found = check(tmp_path, ("{model: a10g, count: 4}", accelerator))
    assert found == [
        "42: runner_classes.gpus.hardware: no machine of pool gpu can hold the class; "
        f"g5.12xlarge has {lacks}"
    ]


def test_a_class_is_held_by_one_of_its_machines(tmp_path: Path) -> None:
    # c7i.2xlarge (8 vCPU) alone could not; c7i.4xlarge can, which is enough.
    assert check(tmp_path, ("vcpu: 12", "vcpu: 16"), ("24GiB", "32GiB")) == []


def test_a_pinned_machine_that_cannot_hold_the_class(tmp_path: Path) -> None:
    found = check(tmp_path, ("memory: 24GiB}", "memory: 24GiB, machine: c7i.2xlarge}"))
    assert found == [
        "35: runner_classes.small.hardware.machine: cannot hold the class: it has "
        "8 vCPU for 12; 16GiB for 24GiB; found c7i.2xlarge"
    ]


def test_a_pinned_machine_that_its_pool_does_not_have(tmp_path: Path) -> None:
    found = check(tmp_path, ("memory: 24GiB}", "memory: 24GiB, machine: c7i.8xlarge}"))
    assert found == [
        "35: runner_classes.small.hardware.machine: is not a machine of pool cpu; "
        "found c7i.8xlarge; allowed: c7i.4xlarge, c7i.2xlarge"
    ]


def test_a_reservation_of_a_machine_that_no_pool_of_the_cell_has(
    tmp_path: Path,
) -> None:
    found = check(
        tmp_path, ("    machine: g5.12xlarge\n", "    machine: p5.48xlarge\n")
    )
    assert found == [
        "49: reservations.block.machine: no pool of cell aws has this machine; found "
        "p5.48xlarge; allowed: c7i.2xlarge, c7i.4xlarge, g5.12xlarge"
    ]


def test_external_classes_and_own_hardware_name_machines_freely(
    tmp_path: Path,
) -> None:
    own = """\
  own-lab:
    provider: own
    cluster: lab
    kubeconfig: secret
    base_nodes: {machine: whatever}
    funder: f
    runner_group: g
pools:
"""
    external = """\
  donated:
    role: tester
    trust: untrusted-pr
    vendor: amd
    placement: external
    hardware: {arch: amd64, vcpu: 999, memory: 9TiB, machine: a-rack}
    scale: 0..5
reservations:
"""
    assert check(tmp_path, ("pools:\n", own), ("reservations:\n", external)) == []


def test_machine_problems_come_with_the_file_s_own(tmp_path: Path) -> None:
    found = check(
        tmp_path,
        ("runner_group: g\n", "runner_group: h\n"),
        ("machine: m7i.4xlarge", "machine: nothing-like-it"),
    )
    assert [line.split(" ")[1] for line in found] == [
        "cells.aws.base_nodes.machine:",
        "cells.aws.runner_group:",
    ]
