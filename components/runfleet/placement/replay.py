"""Replay a shortage: what each class gets when machines cannot be had for a while.

A pure model of the loop that ends in a started job, in steps of a fixed length:

1. Jobs are queued.
2. The capacity controller (:class:`CapacityController`) asks for room, place by place.
3. The cloud grants or refuses each request; a :class:`Shortage` refuses.
4. The controller says how many runners it advertises in each place. GitHub gives a
   queued job to an advertised runner at once and never takes it back, so a runner
   that is advertised where there is no room holds its job until there is
   (pytorch/ci-infra#499): the job is stuck.

The controller of the fleet plugs in by the protocol. Two others stand here to compare
with: :class:`AlwaysAdvertise`, which does what the incumbent's listener did in
pytorch/ci-infra#952, when it advertised up to 202 runners over machines that did not
start; and :class:`AskFirst`, the least that a good one does.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from runfleet.placement.fallbacks import Attempt, attempts
from runfleet.placement.lock import Lock
from runfleet.spec.fleet import Fleet


@dataclass(frozen=True)
class Shortage:
    """Machines that cannot be had for a while.

    Attributes:
        machines: Pattern of their names, such as ``g5.*``.
        regions: Regions where; empty for all.
        zones: Zones where; empty for all of the regions.
        start: When it begins, in seconds.
        end: When it is over, in seconds.
    """

    machines: str
    start: int
    end: int
    regions: frozenset[str] = frozenset()
    zones: frozenset[str] = frozenset()

    def hits(self, attempt: Attempt, region: str, now: int) -> bool:
        """Say whether a machine in a place cannot be had now."""
        return (
            self.start <= now < self.end
            and fnmatch.fnmatchcase(attempt.machine, self.machines)
            and (not self.regions or region in self.regions)
            and (not self.zones or attempt.zone in self.zones)
        )


@dataclass(frozen=True)
class Demand:
    """Jobs of one class.

    Attributes:
        runner_class: Name of the class.
        per_step: Jobs queued in each step.
    """

    runner_class: str
    per_step: int


@dataclass(frozen=True)
class Answer:
    """What the cloud said to a request for room.

    Attributes:
        now: When, in seconds.
        runner_class: The class.
        attempt: What was asked for.
        asked: Jobs that room was asked for.
        granted: Jobs that room was given for; 0 when it was refused.
    """

    now: int
    runner_class: str
    attempt: Attempt
    asked: int
    granted: int


class CapacityController(Protocol):
    """What decides where room is asked for and what is advertised.

    The following is expected of one: it keeps its own account of what it was granted;
    it is asked in the order ``requests``, ``told`` once for each request,
    ``advertised``; and it never waits.
    """

    def requests(
        self, now: int, runner_class: str, order: Sequence[Attempt], queued: int
    ) -> Sequence[tuple[Attempt, int]]:
        """Return where to ask for room for how many jobs, in the order to ask."""
        ...

    def told(self, answer: Answer) -> None:
        """Hear what the cloud said to one request."""
        ...

    def advertised(
        self, now: int, runner_class: str, order: Sequence[Attempt]
    ) -> Mapping[Attempt, int]:
        """Return how many runners are advertised in each place for queued jobs."""
        ...


@dataclass
class Outcome:
    """What one class got.

    Attributes:
        queued: Jobs that were queued.
        started: Jobs that started, by the step they started in.
        by_cell: Jobs that started, by cell.
        refused: Requests for room that were refused.
        longest_wait: Longest time from queue to start, in seconds.
        waiting: Jobs that no runner had claimed at the end.
        stuck: Most jobs at once that a runner held without room.
        stuck_for: Longest time that a claimed job waited for room, in seconds.
    """

    queued: int = 0
    started: dict[str, int] = field(default_factory=dict[str, int])
    by_cell: dict[str, int] = field(default_factory=dict[str, int])
    refused: int = 0
    longest_wait: int = 0
    waiting: int = 0
    stuck: int = 0
    stuck_for: int = 0


@dataclass
class _Job:
    queued: int
    claimed: int = -1


@dataclass
class _State:
    """One class while it is replayed."""

    demand: Demand
    order: Sequence[Attempt]
    outcome: Outcome = field(default_factory=Outcome)
    waiting: list[_Job] = field(default_factory=list[_Job])
    held: dict[Attempt, list[_Job]] = field(default_factory=dict[Attempt, list[_Job]])
    room: dict[Attempt, int] = field(default_factory=dict[Attempt, int])


def replay(
    fleet: Fleet,
    lock: Lock,
    demands: Sequence[Demand],
    shortages: Sequence[Shortage],
    controller: CapacityController,
    until: int,
    step: int = 60,
) -> dict[str, Outcome]:
    """Replay a shortage and return what each class got.

    Args:
        fleet: The fleet.
        lock: Its lock.
        demands: The jobs of each class.
        shortages: What cannot be had, and when.
        controller: What decides where jobs go.
        until: End of the replay, in seconds.
        step: Length of a step, in seconds.

    Raises:
        KeyError: A class of the demand is placed nowhere.
    """
    states = [_State(d, attempts(fleet, lock, d.runner_class)) for d in demands]
    regions = {cell.name: cell.region for cell in fleet.cells.values()}
    for now in range(0, until, step):
        for state in states:
            _queue(state, now)
            _ask(state, now, controller, shortages, regions)
            _claim(state, now, controller)
            _start(state, now)
    for state in states:
        state.outcome.waiting = len(state.waiting)
    return {state.demand.runner_class: state.outcome for state in states}


class AlwaysAdvertise:
    """Advertises every queued job where it prefers it, room or not."""

    def requests(
        self, now: int, runner_class: str, order: Sequence[Attempt], queued: int
    ) -> Sequence[tuple[Attempt, int]]:
        """Ask for room in the first place for everything that is queued."""
        return [(order[0], queued)] if queued else []

    def told(self, answer: Answer) -> None:
        """Hear nothing."""

    def advertised(
        self, now: int, runner_class: str, order: Sequence[Attempt]
    ) -> Mapping[Attempt, int]:
        """Advertise without limit in the first place."""
        return {order[0]: 10**6}


class AskFirst:
    """Advertises only granted room, and walks on from a place that refused.

    A place that refused is asked for one job again after a pause that doubles up to a
    limit, so that it is found again when the shortage is over and few requests are
    refused while it lasts.

    Attributes:
        pause: First pause, in seconds.
        longest: Longest pause, in seconds.
    """

    def __init__(self, pause: int = 60, longest: int = 900) -> None:
        """Start with every place open."""
        self.pause, self.longest = pause, longest
        self._granted: dict[str, dict[Attempt, int]] = {}
        self._closed: dict[tuple[str, str, str], tuple[int, int]] = {}

    def requests(
        self, now: int, runner_class: str, order: Sequence[Attempt], queued: int
    ) -> Sequence[tuple[Attempt, int]]:
        """Ask where nothing refused lately, for all; else where a pause is over."""
        if not queued:
            return []
        asked: list[tuple[Attempt, int]] = []
        for attempt in order:
            until, _ = self._closed.get(_place(attempt), (0, 0))
            if now < until:
                continue
            if not until:
                return [*asked, (attempt, queued)]
            asked.append((attempt, 1))
        return asked

    def told(self, answer: Answer) -> None:
        """Keep what was granted; close a place that refused for a while."""
        place = _place(answer.attempt)
        if answer.granted:
            self._closed.pop(place, None)
            granted = self._granted.setdefault(answer.runner_class, {})
            granted[answer.attempt] = granted.get(answer.attempt, 0) + answer.granted
            return
        _, pause = self._closed.get(place, (0, 0))
        pause = min(self.longest, pause * 2 if pause else self.pause)
        self._closed[place] = (answer.now + pause, pause)

    def advertised(
        self, now: int, runner_class: str, order: Sequence[Attempt]
    ) -> Mapping[Attempt, int]:
        """Advertise what was granted since it was last asked."""
        return self._granted.pop(runner_class, {})


def _place(attempt: Attempt) -> tuple[str, str, str]:
    return attempt.cell, attempt.zone, attempt.machine


def _queue(state: _State, now: int) -> None:
    state.outcome.queued += state.demand.per_step
    state.waiting += [_Job(now) for _ in range(state.demand.per_step)]


def _ask(
    state: _State,
    now: int,
    controller: CapacityController,
    shortages: Sequence[Shortage],
    regions: Mapping[str, str],
) -> None:
    """Let the controller ask until all has room or it asks for no more."""
    left = len(state.waiting) + sum(len(jobs) for jobs in state.held.values())
    left -= sum(state.room.values())
    # Each place is asked at most once in a step, or a refusal could go on for ever.
    for _ in range(len(state.order)):
        asked = controller.requests(
            now, state.demand.runner_class, state.order, max(0, left)
        )
        if left <= 0 or not asked:
            return
        for attempt, count in asked:
            short = any(s.hits(attempt, regions[attempt.cell], now) for s in shortages)
            granted = 0 if short else min(count, left)
            state.outcome.refused += short
            state.room[attempt] = state.room.get(attempt, 0) + granted
            left -= granted
            controller.told(
                Answer(now, state.demand.runner_class, attempt, count, granted)
            )


def _claim(state: _State, now: int, controller: CapacityController) -> None:
    """Give queued jobs to advertised runners, oldest first."""
    offered = controller.advertised(now, state.demand.runner_class, state.order)
    for attempt in state.order:
        for _ in range(min(offered.get(attempt, 0), len(state.waiting))):
            job = state.waiting.pop(0)
            job.claimed = now
            state.held.setdefault(attempt, []).append(job)


def _start(state: _State, now: int) -> None:
    """Start the jobs whose runner has room; the others are stuck."""
    outcome = state.outcome
    stuck = 0
    for attempt, jobs in state.held.items():
        ready = min(len(jobs), state.room.get(attempt, 0))
        for job in jobs[:ready]:
            outcome.longest_wait = max(outcome.longest_wait, now - job.queued)
            outcome.stuck_for = max(outcome.stuck_for, now - job.claimed)
        if ready:
            name = attempt.step
            outcome.started[name] = outcome.started.get(name, 0) + ready
            outcome.by_cell[attempt.cell] = outcome.by_cell.get(attempt.cell, 0) + ready
            state.room[attempt] -= ready
            del jobs[:ready]
        stuck += len(jobs)
        for job in jobs:
            outcome.stuck_for = max(outcome.stuck_for, now - job.claimed)
    outcome.stuck = max(outcome.stuck, stuck)
