"""One word moves a fleet: where its classes go, what is made for them, what is not."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import runfleet
from placement.four_clouds import FLEET, PYTORCH, TODAY, movable
from runfleet.catalogue.machines import Machines
from runfleet.catalogue.pins import Pins
from runfleet.errors import InputError, Problem
from runfleet.placement.costs import monthly_costs
from runfleet.placement.fallbacks import attempts, fallbacks_of
from runfleet.placement.fit import allocatable, features_of, jobs_on, need_of, per_job
from runfleet.placement.lock import (
    Fallback,
    Lock,
    LockError,
    Placed,
    Rung,
    Shape,
    Unplaced,
    make_lock,
    read_lock,
    write_lock,
)
from runfleet.placement.moves import MovableFleet, Placement, Target
from runfleet.placement.plan import plan_cell
from runfleet.placement.quotas import Quotas
from runfleet.placement.report import place_report, write_placement
from runfleet.spec.classes import PlacementMode
from runfleet.spec.pools import Capacity
from runfleet.spec.units import Size
from spec.fleets import changed, line_of

MACHINES = Machines.load()
T4_AT_HOME = changed(("    cells: [azure]\n", ""), document=FLEET)


def lock_of(word: str | None, text: str = FLEET) -> Lock:
    fleet = movable(text, MACHINES)
    return (fleet.to(word) if word is not None else fleet).lock(TODAY)


def where(lock: Lock, name: str) -> list[tuple[str, str]]:
    return [(p.cell, p.pool) for p in lock.placed if p.runner_class == name]


def zeros(lock: Lock, name: str) -> dict[str | None, str]:
    return {u.cell: u.why for u in lock.unplaced if u.runner_class == name}


def test_a_fleet_that_is_not_moved_is_placed_as_before() -> None:
    text = changed(
        ("    vendor: nvidia\n    cells: [azure]\n", "    vendor: nvidia\n"
         "    pool: g6\n"),
        ("accelerator: {model: t4}", "accelerator: {model: l4}"),
        document=FLEET,
    )  # fmt: skip
    assert lock_of(None, text) == make_lock(movable(text).fleet)


def test_the_lock_of_pytorch_stays_byte_identical(tmp_path: Path) -> None:
    committed = PYTORCH / "placement.lock.yaml"
    fleet = MovableFleet.load(PYTORCH / "fleet.yaml")
    own = make_lock(fleet.fleet)
    if own.to is None and "\nto: " not in committed.read_text(encoding="utf-8"):
        write_lock(fleet.lock(), tmp_path / "lock.yaml")
        assert (tmp_path / "lock.yaml").read_bytes() == committed.read_bytes()


def test_a_class_moves_to_a_cloud_and_gets_a_pool_there() -> None:
    lock = lock_of("gcp")
    assert where(lock, "cpu") == [("gcp", "gcp-c3-standard")]
    assert where(lock, "l4") == [("gcp", "gcp-g2-standard-l4")]
    pool = lock.pools["gcp-g2-standard-l4"]
    assert (pool.name, pool.arch, pool.gpu) == ("gcp-g2-standard-l4", "amd64", True)
    # A job of 10 vCPU and its runner pod need 11.07: g2-standard-12 has 10.99 for
    # jobs, and g2-standard-48 holds one for each of its four accelerators.
    assert [(m.machine, m.weight, m.disk) for m in pool.machines] == [
        ("g2-standard-48", 100, Size.gib_of(450)),
        ("g2-standard-96", 90, Size.gib_of(850)),
        ("g2-standard-24", 80, Size.gib_of(250)),
        ("g2-standard-16", 70, Size.gib_of(150)),
        ("g2-standard-32", 60, Size.gib_of(150)),
    ]
    placed = next(p for p in lock.placed if p.runner_class == "l4")
    assert placed.rungs[0] == Rung(
        machine="g2-standard-48", weight=100, capacity=Capacity.ON_DEMAND, jobs=4
    )
    locked = lock.machine_in("gcp", "g2-standard-48", Capacity.ON_DEMAND)
    assert locked is not None
    assert locked.shape == Shape(
        vcpu=48,
        memory_gib=192,
        accelerator="l4",
        accelerator_vendor="nvidia",
        accelerators=4,
    )
    assert locked.price is not None
    assert (locked.price.usd_h, locked.price.region, locked.price.as_of) == (
        4.001665,
        "us-central1",
        "2026-08-03",
    )


def test_weights_fall_with_price_and_every_rung_fits() -> None:
    for word in ("gcp", "azure", "anywhere"):
        placement = movable(FLEET, MACHINES).to(word).place(TODAY)
        for served in placement.served.values():
            for entry in (s for s in served if not s.home):
                weights = [rung.weight for rung in entry.placed.rungs]
                assert weights == sorted(weights, reverse=True)
                assert [r.offer.machine.name for r in entry.rungs] == [
                    rung.machine for rung in entry.placed.rungs
                ]
                assert all(ranked.jobs >= 1 for ranked in entry.rungs)


def test_pins_win_over_the_word() -> None:
    lock = lock_of("gcp")
    assert where(lock, "t4") == [("azure", "azure-ncas-t4-v3")]
    assert zeros(lock, "t4") == {"gcp": "policy: the class is pinned to cells azure"}
    text = changed(
        ("accelerator: {model: l4}}", "accelerator: {model: l4}, "
         "machine: g6.48xlarge}"),
        document=FLEET,
    )  # fmt: skip
    pinned = lock_of("azure", text)
    assert where(pinned, "l4") == [("aws", "g6")]
    assert zeros(pinned, "l4")["azure"] == (
        "policy: the class is pinned to machine g6.48xlarge"
    )


def test_home_keeps_its_own_pool_and_weights() -> None:
    lock = lock_of("aws")
    assert set(lock.pools) == {"azure-ncas-t4-v3"}  # pinned to Azure
    assert where(lock, "cpu") == [("aws", "c7i"), ("aws-ue2", "c7i")]
    at_home = next(p for p in make_lock(movable().fleet).placed if p.pool == "c7i")
    assert lock.placed[0] == at_home
    assert zeros(lock, "l4") == {
        "aws-ue2": "policy: pool g6 says that us-east-2 does not have it"
    }


def test_a_class_that_fits_nowhere_gets_an_explicit_zero_and_no_pool() -> None:
    lock = lock_of("ibm", T4_AT_HOME)
    assert where(lock, "t4") == []
    assert zeros(lock, "t4") == {"ibm": "accelerator: no machine has t4"}
    assert zeros(lock, "z-big")["ibm"].startswith("architecture: no machine is s390x")
    assert {p.pool for p in lock.placed} == set(lock.pools)


def test_release_goes_only_where_a_release_runner_group_is() -> None:
    lock = lock_of("anywhere")
    assert [cell for cell, _ in where(lock, "rel")] == ["aws", "aws-ue2", "azure"]
    assert zeros(lock, "rel")["gcp"] == "policy: cell gcp has no release runner group"
    pool = lock.pools[dict(where(lock, "rel"))["azure"]]
    plan = plan_cell(movable().fleet, lock, movable().fleet.cells["azure"], Pins({}))
    released = [p for p in plan.node_pools if p.release]
    assert released
    assert {p.pool.name for p in released} == {pool.name}
    assert all(p.machine.capacity is not Capacity.SPOT for p in released)


def test_release_never_runs_on_spot_even_where_all_classes_may() -> None:
    fleet = replace(movable(FLEET, MACHINES), spot=True)
    text = changed(
        ("    cluster: demo-uc1\n", "    cluster: demo-uc1\n"
         "    release_runner_group: release\n"),
        document=FLEET,
    )  # fmt: skip
    spot = replace(movable(text, MACHINES), spot=True).to("gcp").place(TODAY)
    (served,) = spot.served["rel"]
    assert {rung.capacity for rung in served.placed.rungs} == {Capacity.ON_DEMAND}
    (other,) = fleet.to("gcp").place(TODAY).served["cpu"]
    assert {rung.capacity for rung in other.placed.rungs} == {Capacity.SPOT}


def test_cheapest_is_one_cell_and_no_other_is_cheaper() -> None:
    fleet = movable(FLEET, MACHINES)
    cheapest, anywhere = (fleet.to(w).place(TODAY) for w in ("cheapest", "anywhere"))
    for name in ("cpu", "l4"):
        (only,) = cheapest.served[name]
        best = min(r.key for r in only.rungs)
        for served in anywhere.served[name]:
            if served.rungs:
                assert best <= min(ranked.key for ranked in served.rungs)
    assert where(cheapest.lock, "z-big") == [("own-lab", "z")]


def test_an_unpriced_machine_serves_only_when_that_is_asked_for() -> None:
    assert where(lock_of("ibm"), "l4") == []
    assert zeros(lock_of("ibm"), "l4")["ibm"].startswith("price unknown: gx3-")
    asked = replace(movable(FLEET, MACHINES), unpriced=True).to("ibm").place(TODAY)
    assert where(asked.lock, "l4") == [("ibm", "ibm-gx3-l4")]
    assert "ibm gx3-16x80x1l4: no source has a price of it" in asked.warnings
    locked = asked.lock.machine_in("ibm", "gx3-16x80x1l4", Capacity.ON_DEMAND)
    assert locked is not None
    assert locked.price is None
    assert locked.shape.node_name == "gx3.16x80.l4"
    everywhere = replace(movable(FLEET, MACHINES), unpriced=True).to("cheapest")
    assert [cell for cell, _ in where(everywhere.lock(TODAY), "l4")] != ["ibm"]


def test_a_plan_builds_exactly_what_the_lock_says(tmp_path: Path) -> None:
    fleet = movable(FLEET, MACHINES)
    lock = replace(fleet, unpriced=True).to("anywhere").lock(TODAY)
    file = tmp_path / "placement.lock.yaml"
    write_lock(lock, file)
    assert read_lock(file, fleet.fleet) == lock
    seen: list[tuple[str, str]] = []
    for cell in fleet.fleet.cells.values():
        plan = plan_cell(fleet.fleet, lock, cell, Pins({}))
        seen += [(planned.name, cell.name) for planned in plan.classes]
        for planned in plan.classes:
            built = {
                pool.machine.machine
                for pool in plan.node_pools
                if pool.pool.name == planned.pool.name
                and pool.release == planned.runner_class.release
            }
            assert {rung.machine for rung in planned.placed.rungs} <= built
        for pool in plan.node_pools:
            if pool.pool.name in lock.pools:
                assert pool.shape is not None
                assert pool.node_name
    assert len(seen) == len(set(seen)) == len(lock.placed)
    # Nowhere only when the lock says so, with a reason.
    for name in fleet.fleet.runner_classes:
        assert any(name == placed for placed, _ in seen) or zeros(lock, name)


def test_node_pools_of_ibm_are_called_as_its_workers_are() -> None:
    fleet = movable(FLEET, MACHINES)
    lock = replace(fleet, unpriced=True).to("ibm").lock(TODAY)
    plan = plan_cell(fleet.fleet, lock, fleet.fleet.cells["ibm"], Pins({}))
    names = {pool.machine.machine: pool.node_name for pool in plan.node_pools}
    assert names["gx3-16x80x1l4"] == "gx3.16x80.l4"


def test_reservations_come_first_and_bring_their_limit() -> None:
    text = changed(
        ("runner_classes:\n",
         "reservations:\n"
         "  tpu: {id: r-1, cell: gcp, machine: g2-standard-96, count: 2, "
         "start: 2026-01-01}\nrunner_classes:\n"),
        document=FLEET,
    )  # fmt: skip
    placement = movable(text, MACHINES).to("gcp").place(TODAY)
    (served,) = placement.served["l4"]
    assert served.placed.rungs[0].machine == "g2-standard-96"
    assert served.placed.rungs[0].capacity is Capacity.RESERVED
    locked = placement.lock.machine_in("gcp", "g2-standard-96", Capacity.RESERVED)
    assert locked is not None
    assert locked.limit == 2
    pool = placement.lock.pools[served.placed.pool]
    assert pool.machines[0].reservations == ["tpu"]


def test_quotas_cap_and_refuse() -> None:
    quotas = Quotas({"gcp": {"accelerator/l4": 0}})
    lock = replace(movable(FLEET, MACHINES), quotas=quotas).to("gcp").lock(TODAY)
    assert zeros(lock, "l4")["gcp"].startswith("quota: g2-standard-")
    quotas = Quotas({"gcp": {"accelerator/l4": 3}})
    lock = replace(movable(FLEET, MACHINES), quotas=quotas).to("gcp").lock(TODAY)
    locked = lock.machine_in("gcp", "g2-standard-16", Capacity.ON_DEMAND)
    assert locked is not None
    assert locked.limit == 3


def test_fallbacks_are_in_order_of_distance() -> None:
    fleet = movable(FLEET, MACHINES)
    lock = fleet.to("anywhere").lock(TODAY)
    steps = fallbacks_of(fleet.fleet, lock)["cpu"]
    order = {"start": 0, "size": 1, "region": 2, "cloud": 3, "donor": 4}
    assert [order[s.step] for s in steps] == sorted(order[s.step] for s in steps)
    assert {step.cell for step in steps} == {cell for cell, _ in where(lock, "cpu")}
    tried = attempts(fleet.fleet, lock, "cpu")
    assert (tried[0].step, tried[0].zone) == ("start", "us-east-1a")
    kinds = [attempt.step for attempt in tried]
    firsts = [kinds.index(k) for k in ("start", "size", "zone", "region", "cloud")]
    assert firsts == sorted(firsts)
    assert len(tried) == len(set(tried))


def test_a_fleet_that_was_not_moved_falls_back_too() -> None:
    fleet = movable(FLEET, MACHINES).fleet
    lock = make_lock(fleet)
    assert lock.fallbacks == []
    assert fallbacks_of(fleet, lock)["cpu"] == [
        Fallback(step="start", cell="aws", machines=["c7i.8xlarge"]),
        Fallback(step="size", cell="aws", machines=["c7i.16xlarge"]),
        Fallback(
            step="region", cell="aws-ue2", machines=["c7i.8xlarge", "c7i.16xlarge"]
        ),
    ]
    zones = [(a.step, a.zone, a.machine) for a in attempts(fleet, lock, "cpu")][:4]
    assert zones == [
        ("start", "us-east-1a", "c7i.8xlarge"),
        ("size", "us-east-1a", "c7i.16xlarge"),
        ("zone", "us-east-1b", "c7i.8xlarge"),
        ("zone", "us-east-1b", "c7i.16xlarge"),
    ]


@pytest.mark.parametrize(
    ("word", "found", "allowed", "nearest"),
    [
        ("gpc", "gpc", "aws, gcp, azure, ibm, own, anywhere, cheapest", "gcp"),
        ("oracle", "oracle", "aws, gcp, azure, ibm, own, anywhere, cheapest", ""),
    ],
)
def test_an_unknown_word(word: str, found: str, allowed: str, nearest: str) -> None:
    with pytest.raises(InputError) as caught:
        movable().to(word)
    assert caught.value.exit_code == 2
    (problem,) = caught.value.problems
    assert (problem.found, problem.allowed, problem.nearest) == (
        found,
        allowed,
        nearest,
    )


def test_a_cloud_that_the_fleet_has_no_cell_on() -> None:
    start, end = FLEET.index("  ibm:\n"), FLEET.index("  own-lab:\n")
    text = FLEET[:start] + FLEET[end:]
    with pytest.raises(InputError) as caught:
        movable(text).to("ibm")
    assert caught.value.problems == [
        Problem(
            "fleet.yaml",
            line_of("cells:", text.replace("    cells: [azure]", "")),
            "cells",
            "the fleet has no cell on ibm",
            "ibm",
            "aws, azure, gcp, own, anywhere, cheapest",
        )
    ]


def test_a_pin_that_cannot_be_kept_names_the_line() -> None:
    text = FLEET.replace("cells: [azure]", "cells: [ibm]")
    for word in (None, "gcp"):
        fleet = movable(text, MACHINES)
        with pytest.raises(InputError) as caught:
            (fleet.to(word) if word else fleet).place(TODAY)
        (problem,) = caught.value.problems
        assert caught.value.exit_code == 2
        assert problem.path == "runner_classes.t4.cells"
        assert problem.line == line_of("cells: [ibm]", text)
        assert "ibm: accelerator: no machine has t4" in problem.message


def test_no_offer_at_all_is_refused_with_all_such_classes() -> None:
    text = T4_AT_HOME.replace("{model: t4}", "{model: gaudi9}")
    with pytest.raises(InputError) as caught:
        movable(text, MACHINES).to("anywhere").place(TODAY)
    (problem,) = caught.value.problems
    assert problem.path == "runner_classes.t4.hardware"
    assert problem.line == line_of("gaudi9", text)
    assert "aws: accelerator: no machine has gaudi9" in problem.message
    assert problem.allowed == "other hardware, other cells, or `placement: external`"


def test_a_label_that_a_scale_set_cannot_have() -> None:
    text = FLEET.replace("\n  l4:\n", "\n  linux.l4:\n")
    pooled = text.replace("    pool: g6\n", "")
    with pytest.raises(InputError) as caught:
        movable(pooled, MACHINES).to("gcp").place(TODAY)
    (problem,) = caught.value.problems
    assert problem.path == "runner_classes.linux.l4"
    assert problem.found == "linux.l4"


def test_a_lock_that_is_older_says_how_it_was_made(tmp_path: Path) -> None:
    file = tmp_path / "placement.lock.yaml"
    write_lock(lock_of("gcp"), file)
    newer = movable(FLEET.replace("scale: 0..8", "scale: 0..9"), MACHINES)
    with pytest.raises(LockError) as caught:
        read_lock(file, newer.fleet)
    (problem,) = caught.value.problems
    assert caught.value.exit_code == 2
    assert problem.line == 3
    assert problem.message == (
        "the lock is older than the fleet file; run `runfleet place --to gcp --write`"
    )


@pytest.mark.parametrize(
    ("change", "path", "message"),
    [
        (lambda lock: {"machines": []}, "placed[0].rungs[0].machine",
         "has no entry under `machines` for cell gcp, on-demand"),
        (lambda lock: {"pools": {}}, "placed[0].pool", "is not in the fleet file"),
        (lambda lock: {"unplaced": [*lock.unplaced[1:], lock.unplaced[0].model_copy(
            update={"cell": "mars"})]}, "unplaced[3].cell", "is not in the fleet file"),
        (lambda lock: {"fallbacks": [lock.fallbacks[0].model_copy(update={
            "steps": [Fallback(step="start", cell="aws", machines=["x"])]})]},
         "fallbacks[0].steps[0]", "cpu is not placed there"),
    ],
)  # fmt: skip
def test_a_moved_lock_that_does_not_hold_together(
    tmp_path: Path, change: object, path: str, message: str
) -> None:
    fleet = movable(FLEET, MACHINES)
    lock = fleet.to("gcp").lock(TODAY)
    file = tmp_path / "placement.lock.yaml"
    write_lock(lock.model_copy(update=change(lock)), file)  # type: ignore[operator]
    with pytest.raises(LockError) as caught:
        read_lock(file, fleet.fleet)
    assert (path, message) in [(p.path, p.message) for p in caught.value.problems]
    assert all(p.line >= 1 for p in caught.value.problems)


def test_load_reads_what_stands_beside_the_file(tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET, encoding="utf-8")
    (tmp_path / "quotas.yaml").write_text("gcp: {vcpu: 0}\n")
    loaded = runfleet.Fleet.load(path)
    assert isinstance(loaded, MovableFleet)
    moved = loaded.to("gcp")
    assert (loaded.moved_to, moved.moved_to) == (None, Target.GCP)
    assert zeros(moved.lock(TODAY), "cpu")["gcp"].startswith("quota: ")
    path.write_text(FLEET.replace("us-central1", "us-centrl1"), encoding="utf-8")
    with pytest.raises(InputError, match="gcp has no region of this name"):
        runfleet.Fleet.load(path)
    path.write_text(FLEET.replace("c7i.8xlarge", "c7i.9xlarge"), encoding="utf-8")
    with pytest.raises(InputError, match=r"did you mean c7i"):
        runfleet.Fleet.load(path)


def test_the_moved_fleet_has_the_made_pools() -> None:
    moved = movable(FLEET, MACHINES).to("gcp")
    assert set(moved.fleet.pools) > {"c7i", "g6", "gcp-c3-standard"}
    assert set(movable().fleet.pools) == {"c7i", "g6", "z"}


def test_writing_is_the_same_every_time(tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET, encoding="utf-8")
    texts = []
    for _ in range(2):
        target = write_placement(runfleet.Fleet.load(path).to("anywhere"), path)
        texts.append(target.read_bytes())
    assert texts[0] == texts[1]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [
        "fleet.yaml",
        "placement.lock.yaml",
    ]


def test_the_report_is_plain_data() -> None:
    report = place_report(movable(FLEET, MACHINES).to("gcp"), explained=True)
    assert json.loads(json.dumps(report)) == report
    assert report["to"] == "gcp"
    assert report["external"] == ["linux.rocm.gpu.gfx942.1"]
    cpu = next(entry for entry in report["classes"] if entry["class"] == "cpu")
    assert [entry["cell"] for entry in cpu["served"]] == ["gcp"]
    assert cpu["served"][0]["first"]["machine"] == cpu["served"][0]["machines"][0]
    assert sum(cpu["lost_counts"].values()) == len(cpu["lost"])
    l4 = next(entry for entry in report["classes"] if entry["class"] == "l4")
    assert l4["unpriced"] == []
    moved = place_report(movable(FLEET, MACHINES).to("anywhere"), only="l4")
    assert {"cell": "ibm", "machine": "gx3-16x80x1l4"} in moved["classes"][0][
        "unpriced"
    ]
    only = place_report(movable(FLEET, MACHINES), only="l4")
    assert [entry["class"] for entry in only["classes"]] == ["l4"]
    assert "lost" not in only["classes"][0]
    with pytest.raises(InputError) as caught:
        place_report(movable(FLEET, MACHINES), only="cpus")
    assert caught.value.problems[0].nearest == "cpu"


def test_costs_of_a_month() -> None:
    placement = movable(FLEET, MACHINES).to("aws").place(TODAY)
    costs = {cost.cell: cost for cost in monthly_costs(placement, MACHINES)}
    base = 3 * 0.8064 * 730
    assert costs["aws-ue2"].classes == 2
    # One cpu job is kept ready, on one c7i.8xlarge.
    c7i = 1.428 * 730
    assert costs["aws-ue2"].minimum == pytest.approx(base + c7i)
    # 40 cpu jobs, three to a machine, and two machines for four release jobs.
    assert costs["aws-ue2"].machines == 16
    assert costs["aws-ue2"].peak == pytest.approx(base + 16 * c7i)
    assert costs["aws-ue2"].assumed
    assert not costs["aws"].assumed
    assert costs["ibm"].minimum == pytest.approx(3 * 0.384 * 730)
    assert json.dumps([cost.as_dict() for cost in costs.values()])


def test_importing_runfleet_stays_cheap() -> None:
    code = (
        "import sys, runfleet; "
        "assert not {'pulumi', 'pydantic', 'boto3'} & set(sys.modules); "
        "runfleet.Fleet; assert 'pulumi' not in sys.modules; "
        "assert not hasattr(runfleet, 'Flet')"
    )
    paths = [str(Path(runfleet.__file__).parents[1])]
    subprocess.run(
        [sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(paths)}
    )


# Fleets of random classes.

hardware = st.fixed_dictionaries(
    {
        "arch": st.sampled_from(["amd64", "arm64"]),
        "vcpu": st.integers(1, 120),
        "memory": st.integers(1, 900),
        "model": st.sampled_from(["", "", "l4", "t4", "a100", "h100", "a10"]),
        "count": st.sampled_from([1, 2, 4, 8]),
        "whole": st.booleans(),
        "features": st.sampled_from(["", "avx2", "avx512", "amx"]),
    }
)


def with_classes(wanted: list[dict[str, object]]) -> str:
    head = FLEET[: FLEET.index("runner_classes:\n")]
    lines = [head + "runner_classes:"]
    for number, h in enumerate(wanted):
        accelerator = (
            f", accelerator: {{model: {h['model']}, count: {h['count']}}}"
            if h["model"]
            else ""
        )
        features = f", features: [{h['features']}]" if h["features"] else ""
        whole = str(h["whole"]).lower()
        lines.append(
            f"  c{number}: {{role: tester, trust: untrusted-pr, vendor: any, "
            f"scale: 0..9, hardware: {{arch: {h['arch']}, vcpu: {h['vcpu']}, "
            f"memory: {h['memory']}GiB, whole_node: {whole}{accelerator}{features}}}}}"
        )
    return "\n".join(lines) + "\n"


def placed_all(placement: Placement) -> Iterator[tuple[Placed, str]]:
    for placed in placement.lock.placed:
        yield placed, placed.runner_class


@settings(max_examples=40, deadline=None)
@given(st.lists(hardware, min_size=1, max_size=8), st.sampled_from(["gcp", "azure"]))
def test_every_placed_class_fits_and_every_other_is_zero(
    wanted: list[dict[str, object]], word: str
) -> None:
    fleet = movable(with_classes(wanted), MACHINES)
    placement = fleet.to(word).place(TODAY)
    served = {name for _, name in placed_all(placement)}
    zero = {u.runner_class for u in placement.lock.unplaced if u.why}
    assert served | zero == set(fleet.fleet.runner_classes)
    assert not served & zero
    for placed, name in placed_all(placement):
        runner_class = fleet.fleet.runner_classes[name]
        cell = fleet.fleet.cells[placed.cell]
        need = need_of(runner_class)
        pool = placement.lock.pools[placed.pool]
        assert str(cell.provider) == word == str(pool.provider)
        for rung in placed.rungs:
            of = MACHINES.get(cell.provider, rung.machine)
            assert of is not None
            assert (of.arch, of.accelerator) == (need.arch, need.accelerator)
            assert need.features <= features_of(of)
            assert jobs_on(need, allocatable(of), per_job(cell)) == rung.jobs
            assert of.ondemand_usd_h is not None
        shapes = {m.machine: m.weight for m in runner_class.machines(pool)}
        assert {r.machine: r.weight for r in placed.rungs}.items() <= shapes.items()


def test_external_classes_are_named_as_such() -> None:
    lock = lock_of("gcp")
    external = [
        c.name
        for c in movable().fleet.runner_classes.values()
        if c.placement is PlacementMode.EXTERNAL
    ]
    for name in external:
        assert Unplaced(runner_class=name, why="external") in lock.unplaced
