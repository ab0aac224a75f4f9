"""What a job really gets of a machine, against published numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.four_clouds import machine
from runfleet.catalogue.machines import Machines
from runfleet.placement.fit import (
    Allocatable,
    Need,
    accelerator_jobs,
    allocatable,
    jobs_on,
    need_of,
    per_job,
    reserved,
)
from runfleet.placement.packing import pack
from runfleet.placement.tables import Overhead, family_of, tables
from runfleet.spec.cells import Provider
from spec.fleets import FULL, fleet_of

MACHINES = Machines.load()
NONE = Overhead()
ROOM = Allocatable(vcpu=16, memory_gib=64, accelerators=0, disk_gib=1000, pods=110)
PAIR = Allocatable(vcpu=16, memory_gib=64, accelerators=2, disk_gib=1000, pods=110)


def need(**changes: object) -> Need:
    given_: dict[str, object] = {"arch": "amd64", "vcpu": 4.0, "memory_gib": 8.0}
    return Need(**(given_ | changes))  # type: ignore[arg-type]


# Memory of the AKS page: 20 MB x 30 pods + 50 MB = 650 MB; at most a quarter.
# IKS page: 16 GB loses 1 + 0.8 + 0.8 GB, 256 GB loses 11.86 GB without eviction.
# CPU of the same pages: four cores lose 85 millicores on IKS, 28 lose 147.5.
@pytest.mark.parametrize(
    ("provider", "vcpu", "memory", "pods", "cpu_kept", "memory_kept"),
    [
        (Provider.AZURE, 2, 8, 30, 0.100, 650e6 / 1024**3),
        (Provider.AZURE, 1, 1, 250, 0.060, 0.25),
        (Provider.AZURE, 4, 64, 30, 0.140, 650e6 / 1024**3),
        (Provider.AZURE, 8, 64, 30, 0.180, 650e6 / 1024**3),
        (Provider.AZURE, 64, 64, 30, 0.740, 650e6 / 1024**3),
        (Provider.IBM, 4, 16, 110, 0.085, 2.6),
        (Provider.IBM, 28, 256, 110, 0.1475, 11.88),
        (Provider.GCP, 2, 4, 110, 0.070, 1.0),
        (Provider.GCP, 16, 64, 110, 0.110, 2.6 + 48 * 0.06),
        (Provider.AWS, 4, 16, 58, 0.080, (255 + 11 * 58) / 1024),
        (Provider.AWS, 192, 384, 737, 0.550, (255 + 11 * 737) / 1024),
        (Provider.OWN, 2, 4, 110, 0.070, 1.0),
    ],
)
def test_what_the_kubelet_keeps(
    provider: Provider,
    vcpu: float,
    memory: float,
    pods: int,
    cpu_kept: float,
    memory_kept: float,
) -> None:
    kept = reserved(provider, vcpu, memory, pods)
    assert kept.vcpu == pytest.approx(cpu_kept, abs=5e-4)
    assert kept.memory_gib == pytest.approx(memory_kept, abs=0.03)


# Totals over nodes for jobs, divided by the nodes, from
# osdc/docs/current_runner_load_distribution.md of pytorch/ci-infra.
@pytest.mark.parametrize(
    ("name", "vcpu", "memory"),
    [
        ("c7a.48xlarge", 51_022 / 267, 92_398 / 267),
        ("g4dn.12xlarge", 7_435 / 157, 27_277 / 157),
        ("g5.8xlarge", 18_711 / 596, 68_264 / 596),
        ("r7g.16xlarge", 7_610 / 120, 55_749 / 120),
        ("m8g.48xlarge", 2_866 / 15, 10_519 / 15),
    ],
)
def test_nodes_are_as_the_incumbent_counts_them(
    name: str, vcpu: float, memory: float
) -> None:
    """Theirs knew fewer daemon sets, so ours is a little less and never more."""
    of = MACHINES.get("aws", name)
    assert of is not None
    room = allocatable(of)
    assert vcpu - 0.2 < room.vcpu <= vcpu
    assert memory - 1.5 < room.memory_gib <= memory


def test_accelerator_nodes_carry_more_daemon_sets() -> None:
    plain, gpu = machine(), machine(accelerator="l4", accelerator_count=1)
    assert allocatable(plain).vcpu - allocatable(gpu).vcpu == pytest.approx(0.1)
    assert allocatable(gpu).accelerators == 1


def test_a_job_takes_more_than_its_class_says() -> None:
    fleet = fleet_of(FULL)
    with_pool, without = per_job(fleet.cells["aws"]), per_job(fleet.cells["gcp"])
    assert with_pool == Overhead(0.32, 522 / 1024)
    # The cell has no pool for runner pods, so they stand beside the jobs.
    assert without == Overhead(0.32 + 0.75, 522 / 1024 + 1)
    assert per_job(fleet.cells["gcp"]) is without


def test_need_of_a_class() -> None:
    fleet = fleet_of(FULL)
    h100 = need_of(fleet.runner_classes["l-x86iamx-22-225-h100"])
    assert h100 == Need(
        arch="amd64",
        vcpu=22,
        memory_gib=225,
        disk_gib=100,
        accelerator="h100",
        accelerators=1,
        accelerator_memory_gib=80,
        machine="p5.48xlarge",
    )
    assert need_of(fleet.runner_classes["l-x86iavx512-8-32"], spot=True).spot
    assert not need_of(fleet.runner_classes["rel-l-x86iavx512-8-64"], spot=True).spot


@pytest.mark.parametrize(
    ("wanted", "room", "extra", "jobs"),
    [
        (need(), ROOM, NONE, 4),
        (need(), ROOM, Overhead(0.01, 0), 3),
        (need(memory_gib=20), ROOM, NONE, 3),
        (need(disk_gib=400), ROOM, NONE, 2),
        (need(vcpu=17), ROOM, NONE, 0),
        (need(memory_gib=64.1), ROOM, NONE, 0),
        (need(whole_node=True), ROOM, NONE, 1),
        (need(vcpu=0.1, memory_gib=0.1), ROOM, NONE, 110),
        (need(accelerator="l4", accelerators=1), PAIR, NONE, 2),
        (need(accelerator="l4", accelerators=2), PAIR, NONE, 1),
        (need(accelerator="l4", accelerators=4), PAIR, NONE, 0),
        (need(accelerator="l4", accelerators=1), ROOM, NONE, 0),
    ],
)
def test_jobs_on_a_machine(
    wanted: Need, room: Allocatable, extra: Overhead, jobs: int
) -> None:
    assert jobs_on(wanted, room, extra) == jobs


@pytest.mark.parametrize(
    ("wanted", "has", "jobs"),
    [
        (1, 8, 8),
        (2, 8, 4),
        (8, 8, 1),
        (3, 8, 2),
        (0.5, 2, 2),  # whole devices are handed out whole
        (0.333, 0.333, 1),
        (0.167, 0.5, 1),
        (0.5, 0.333, 0),
        (1, 0.5, 0),
        (1, 0, 0),
    ],
)
def test_accelerators_of_a_machine(wanted: float, has: float, jobs: int) -> None:
    assert accelerator_jobs(wanted, has) == jobs


@pytest.mark.parametrize(
    ("provider", "name", "family"),
    [
        ("aws", "g6.48xlarge", "g6"),
        ("gcp", "c3-standard-44", "c3-standard"),
        ("gcp", "a2-ultragpu-1g", "a2-ultragpu"),
        ("azure", "Standard_NC24ads_A100_v4", "ncads-a100-v4"),
        ("azure", "Standard_D8as_v6", "das-v6"),
        ("ibm", "bx2-8x32", "bx2"),
        ("ibm", "gx3-16x80x1l4", "gx3"),
    ],
)
def test_families(provider: str, name: str, family: str) -> None:
    of = MACHINES.get(provider, name)
    assert of is not None
    assert family_of(of) == family


def test_every_family_of_amd64_machines_for_jobs_has_its_instruction_sets() -> None:
    unknown = {
        (str(m.provider), family_of(m))
        for m in MACHINES
        if m.arch == "amd64" and (m.provider, family_of(m)) not in tables().features
    }
    # TPU hosts and machines that no node pool can have.
    assert unknown <= {
        ("aws", "dl1"),
        ("gcp", "ct5lp-hightpu"),
        ("gcp", "ct5p-hightpu"),
        ("gcp", "ct6e-standard"),
        ("ibm", "gx3d-metal"),
        ("ibm", "gx4d"),
    }


def test_classes_share_machines() -> None:
    packed = pack(
        {"big": (need(vcpu=12, memory_gib=32), 2), "small": (need(), 3)}, ROOM, NONE
    )
    assert packed.machines == 3
    assert packed.contents == (
        ((("big", 1), ("small", 1)), 2),
        ((("small", 1),), 1),
    )
    assert packed.unfit == ()


def test_a_whole_node_is_shared_with_nobody() -> None:
    jobs = {"whole": (need(whole_node=True), 2), "small": (need(), 4)}
    packed = pack(jobs, ROOM, NONE)
    assert packed.contents == (((("whole", 1),), 2), ((("small", 4),), 1))


def test_accelerators_are_packed_whole() -> None:
    one = need(accelerator="l4", accelerators=1)
    cpu = need(vcpu=1, memory_gib=1)
    packed = pack({"gpu": (one, 3), "cpu": (cpu, 2)}, PAIR, NONE)
    assert packed.contents == (((("gpu", 2), ("cpu", 2)), 1), ((("gpu", 1),), 1))


def test_what_fits_nowhere_is_told() -> None:
    packed = pack({"huge": (need(vcpu=99), 5)}, ROOM, NONE)
    assert (packed.machines, packed.unfit) == (0, ("huge",))


mixes = st.dictionaries(
    st.sampled_from("abcdef"),
    st.tuples(
        st.builds(
            Need,
            arch=st.just("amd64"),
            vcpu=st.floats(0.5, 20),
            memory_gib=st.floats(0.5, 80),
            whole_node=st.booleans(),
        ),
        st.integers(0, 40),
    ),
)


@given(mixes)
def test_packing_holds_every_job_that_fits_and_overfills_nothing(
    jobs: dict[str, tuple[Need, int]],
) -> None:
    packed = pack(jobs, ROOM, NONE)
    held: dict[str, int] = {}
    for content, times in packed.contents:
        vcpu = sum(jobs[name][0].vcpu * count for name, count in content)
        memory = sum(jobs[name][0].memory_gib * count for name, count in content)
        assert vcpu <= ROOM.vcpu + 1e-3
        assert memory <= ROOM.memory_gib + 1e-3
        for name, count in content:
            held[name] = held.get(name, 0) + count * times
    wanted = {n: c for n, (_, c) in jobs.items() if c and n not in packed.unfit}
    assert held == wanted
    assert pack(dict(reversed(jobs.items())), ROOM, NONE) == packed
