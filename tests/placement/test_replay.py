"""The shortage of pytorch/ci-infra#952, replayed against capacity controllers.

For two hours no size of one accelerator family can be had in us-east-1, as on
2026-07-28. A controller is judged by :func:`assert_contained`; the fleet's own is
added to ``CONTROLLERS`` when it is there.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from placement.four_clouds import PYTORCH, TODAY, movable
from runfleet.catalogue.machines import Machines
from runfleet.catalogue.read import read_fleet
from runfleet.placement.fallbacks import Attempt, attempts
from runfleet.placement.lock import Lock, make_lock
from runfleet.placement.replay import (
    AlwaysAdvertise,
    AskFirst,
    CapacityController,
    Demand,
    Outcome,
    Shortage,
    replay,
)
from runfleet.spec.fleet import Fleet
from runfleet.spec.pools import Capacity

HOUR = 3600
G5 = Shortage("g5.*", 1 * HOUR, 3 * HOUR, frozenset({"us-east-1"}))
A10G = (
    "l-x86aavx2-29-113-a10g",
    "l-x86aavx2-45-167-a10g-4",
    "l-x86aavx2-189-704-a10g-8",
)
L4 = "l-x86aavx2-29-113-l4"
CONTROLLERS: list[Callable[[], CapacityController]] = [AskFirst]


@pytest.fixture(scope="module")
def pytorch() -> Fleet:
    return read_fleet(PYTORCH / "fleet.yaml").fleet


def run(
    fleet: Fleet, controller: CapacityController, lock: Lock | None = None
) -> dict[str, Outcome]:
    demands = [Demand(name, per_step=2) for name in (*A10G, L4)]
    placed = lock or make_lock(fleet)
    return replay(fleet, placed, demands, [G5], controller, until=5 * HOUR)


def assert_contained(outcomes: dict[str, Outcome]) -> None:
    """Nothing is stuck, nothing waits long, and few requests are refused."""
    for outcome in outcomes.values():
        assert outcome.stuck == 0
        assert outcome.stuck_for == 0
        assert outcome.waiting == 0
        assert outcome.longest_wait <= 120
        assert sum(outcome.started.values()) == outcome.queued
    assert sum(outcome.refused for outcome in outcomes.values()) < 600


@pytest.mark.parametrize("controller", CONTROLLERS)
def test_the_shortage_is_contained(
    pytorch: Fleet, controller: Callable[[], CapacityController]
) -> None:
    outcomes = run(pytorch, controller())
    assert_contained(outcomes)
    for name in A10G:
        # Two hours of five go to the other region, and back when it is over.
        assert outcomes[name].by_cell == {"aws": 360, "aws-ue2": 240}
    assert outcomes[L4].by_cell == {"aws": 600}
    assert outcomes[L4].refused == 0


def test_what_the_incumbent_did(pytorch: Fleet) -> None:
    """Runners over machines that do not start hold jobs until it is over."""
    outcomes = run(pytorch, AlwaysAdvertise())
    for name in A10G:
        assert outcomes[name].by_cell == {"aws": 600}
        assert outcomes[name].stuck == 240
        assert outcomes[name].stuck_for == 2 * HOUR
    # Three single-size classes ask each minute of two hours.
    assert sum(outcome.refused for outcome in outcomes.values()) >= 360
    assert outcomes[L4].stuck == 0


def test_a_class_with_one_cell_waits_unclaimed_and_starts_after() -> None:
    fleet = movable().fleet
    lock = make_lock(fleet)
    short = Shortage("g6.*", 0, HOUR)
    outcome = replay(fleet, lock, [Demand("l4", 1)], [short], AskFirst(), 3 * HOUR)[
        "l4"
    ]
    assert (outcome.stuck, outcome.waiting) == (0, 0)
    # A pause doubles up to fifteen minutes, so it is found again that soon.
    assert HOUR <= outcome.longest_wait <= HOUR + 900
    assert outcome.refused < 40


def test_other_clouds_take_over() -> None:
    moved = movable(machines=Machines.load()).to("anywhere")
    lock = moved.lock(TODAY)
    short = Shortage("g*.*", 0, HOUR)
    gone = Shortage("g2-*", 0, HOUR, frozenset({"us-central1"}))
    demand = [Demand("l4", 1)]
    started = replay(moved.file.fleet, lock, demand, [short], AskFirst(), HOUR)["l4"]
    assert started.by_cell == {"gcp": 60}
    started = replay(moved.file.fleet, lock, demand, [gone], AskFirst(), HOUR)["l4"]
    assert started.by_cell == {"aws": 60}


def test_sizes_and_zones_come_before_regions(pytorch: Fleet) -> None:
    lock = make_lock(pytorch)
    name = A10G[0]
    first = attempts(pytorch, lock, name)[0]
    one_size = Shortage(first.machine, 0, HOUR)
    one_zone = Shortage("g5.*", 0, HOUR, zones=frozenset({"us-east-1a"}))
    for short, step in ((one_size, "size"), (one_zone, "zone")):
        demand = [Demand(name, 1)]
        outcome = replay(pytorch, lock, demand, [short], AskFirst(), HOUR)[name]
        assert outcome.started == {step: 60}


def test_a_shortage_hits_where_and_when_it_is() -> None:
    attempt = Attempt(
        "start", "aws", "us-east-1a", "g5", "g5.8xlarge", Capacity.ON_DEMAND, 1
    )
    assert not G5.hits(attempt, "us-east-1", HOUR - 1)
    assert G5.hits(attempt, "us-east-1", HOUR)
    assert not G5.hits(attempt, "us-east-1", 3 * HOUR)
    assert not G5.hits(attempt, "us-east-2", HOUR)
    zoned = Shortage("g5.*", 0, 9, zones=frozenset({"us-east-1b"}))
    assert not zoned.hits(attempt, "us-east-1", 0)
    assert not Shortage("g6.*", 0, 9).hits(attempt, "us-east-1", 0)


def test_a_class_that_is_placed_nowhere_is_an_error(pytorch: Fleet) -> None:
    with pytest.raises(KeyError):
        replay(
            pytorch,
            make_lock(pytorch),
            [Demand("linux.idc.xpu", 1)],
            [],
            AskFirst(),
            60,
        )
