"""The real fleet: every class has its nodes, its bounds and its names in each cell."""

from __future__ import annotations

from pathlib import Path

import pytest

from runfleet.placement import CellPlan
from runfleet.runners.devices import devices_in
from runfleet.runners.scale_sets import ScaleSetArgs, scale_set_spec
from runfleet.runners.scheduling import matching_node_pools, scheduling_problems
from runfleet.runners.tenancy import scale_limits
from runfleet.spec import Fleet, load_fleet
from runners.cells import plan_of

PLAYBOOK = Path(__file__).parents[2] / "playbooks" / "pytorch" / "fleet.yaml"


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    return load_fleet(PLAYBOOK).fleet


@pytest.fixture(params=["aws", "aws-ue2"])
def plan(fleet: Fleet, request: pytest.FixtureRequest) -> CellPlan:
    return plan_of(fleet, request.param)


def test_every_class_matches_exactly_its_pool(plan: CellPlan) -> None:
    assert len(plan.classes) == 44
    assert scheduling_problems(plan) == []
    for planned in plan.classes:
        shapes = {
            m.machine.machine for m in matching_node_pools(planned, plan.node_pools)
        }
        assert shapes == {rung.machine for rung in planned.placed.rungs}


def test_every_scale_set_is_bounded_and_named(plan: CellPlan) -> None:
    limits = scale_limits(plan)
    specs = {
        planned.name: scale_set_spec(ScaleSetArgs(plan, planned, limits[planned.name]))
        for planned in plan.classes
    }
    assert all(spec["maxRunners"] > 0 for spec in specs.values())
    assert all(spec["minRunners"] == 0 for spec in specs.values())
    assert len({spec["runnerScaleSetName"] for spec in specs.values()}) == 44
    assert {
        name for name, spec in specs.items() if "release" in spec["runnerGroup"]
    } == {"rel-l-arm64g3-44-340", "rel-l-x86iavx512-44-340"}


def test_the_only_devices_are_nvidias(plan: CellPlan) -> None:
    assert [device.vendor for device in devices_in(plan)] == ["nvidia"]
