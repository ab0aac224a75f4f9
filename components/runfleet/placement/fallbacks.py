"""Where a class goes when capacity is short, step by step.

The order is size, zone, region, cloud, donor: first the other machines of the pool in
the zone where the class starts, then all of them in the cell's other zones; then the
class's other cells of the same provider; then those of other providers; then donated
machines. Only cells in which the class is deployed are steps: its label is registered
there already, so no job has to be taken back and asked for again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from runfleet.placement.lock import Fallback, Fallbacks, Lock, Placed
from runfleet.spec.cells import Cell, Provider
from runfleet.spec.fleet import Fleet
from runfleet.spec.pools import Capacity

Step = Literal["start", "size", "region", "cloud", "donor"]
AttemptStep = Literal["start", "size", "zone", "region", "cloud", "donor"]

_LATER = {"start": 0, "size": 0, "region": 1, "cloud": 2, "donor": 3}


@dataclass(frozen=True)
class Attempt:
    """One thing to try: a machine in a zone of a cell.

    Attributes:
        step: How it differs from the first attempt.
        cell: Name of the cell.
        zone: Zone; empty where the cell names none.
        pool: Pool of the class there.
        machine: Instance type.
        capacity: How it is bought.
        jobs: Jobs of the class that fit on one at once, 1 where nothing says more.
    """

    step: AttemptStep
    cell: str
    zone: str
    pool: str
    machine: str
    capacity: Capacity
    jobs: int


def attempts(fleet: Fleet, lock: Lock, runner_class: str) -> list[Attempt]:
    """Return everything that a class can try, in order, zone by zone.

    Args:
        fleet: The fleet.
        lock: Its lock.
        runner_class: Name of a class that is placed somewhere.

    Raises:
        KeyError: The class is placed nowhere.
    """
    placed = {p.cell: p for p in lock.placed if p.runner_class == runner_class}
    found: list[Attempt] = []
    by_cell: dict[str, list[Fallback]] = {}
    for step in fallbacks_of(fleet, lock)[runner_class]:
        by_cell.setdefault(step.cell, []).append(step)
    for cell_name, steps in by_cell.items():
        zones = fleet.cells[cell_name].zones or [""]
        for index, zone in enumerate(zones):
            for step in steps:
                name: AttemptStep = step.step
                if index and name in ("start", "size"):
                    name = "zone"
                found += _of_step(step, name, zone, placed[cell_name])
    return found


def fallbacks_of(fleet: Fleet, lock: Lock) -> dict[str, list[Fallback]]:
    """Return the steps of each class that is placed, by class.

    They are the lock's own where it holds them. Otherwise a class starts in the cell
    with the highest weight, the first in the fleet file of those.
    """
    if lock.fallbacks:
        return {entry.runner_class: entry.steps for entry in lock.fallbacks}
    order = sorted(fleet.cells, key=lambda name: -fleet.cells[name].weight)
    return {
        entry.runner_class: entry.steps
        for entry in make_fallbacks(fleet, lock.placed, {}, order)
    }


def make_fallbacks(
    fleet: Fleet,
    placed: Sequence[Placed],
    preferred: Mapping[str, Sequence[str]],
    order: Sequence[str],
) -> list[Fallbacks]:
    """Return the steps of each class.

    Args:
        fleet: The fleet.
        placed: Where classes are placed.
        preferred: Cells of a class, best first, by class.
        order: Cells, best first, for classes that ``preferred`` does not name.
    """
    by_class: dict[str, list[Placed]] = {}
    for entry in placed:
        by_class.setdefault(entry.runner_class, []).append(entry)
    found: list[Fallbacks] = []
    for name in fleet.runner_classes:
        entries = by_class.get(name)
        if entries:
            cells = list(preferred.get(name, order))
            entries.sort(key=lambda entry: cells.index(entry.cell))
            found.append(Fallbacks(runner_class=name, steps=_steps(fleet, entries)))
    return found


def _of_step(
    step: Fallback, name: AttemptStep, zone: str, placed: Placed
) -> Iterator[Attempt]:
    rungs = {rung.machine: rung for rung in placed.rungs}
    for machine in step.machines:
        rung = rungs[machine]
        yield Attempt(
            step=name,
            cell=step.cell,
            zone=zone,
            pool=placed.pool,
            machine=machine,
            capacity=rung.capacity,
            jobs=rung.jobs or 1,
        )


def _steps(fleet: Fleet, entries: Sequence[Placed]) -> list[Fallback]:
    first, *others = entries
    start = fleet.cells[first.cell]
    machines = [rung.machine for rung in first.rungs]
    steps = [Fallback(step="start", cell=start.name, machines=machines[:1])]
    if machines[1:]:
        steps.append(Fallback(step="size", cell=start.name, machines=machines[1:]))
    later = [
        Fallback(
            step=_step(start, fleet.cells[entry.cell], entry),
            cell=entry.cell,
            machines=[rung.machine for rung in entry.rungs],
        )
        for entry in others
    ]
    return steps + sorted(later, key=lambda step: _LATER[step.step])


def _step(start: Cell, cell: Cell, entry: Placed) -> Step:
    donated = all(rung.capacity is Capacity.DONATED for rung in entry.rungs)
    if cell.provider is Provider.OWN or donated:
        return "donor"
    return "region" if cell.provider is start.provider else "cloud"
