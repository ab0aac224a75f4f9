"""Where a class goes when capacity is short, step by step.

The order is size, zone, region, cloud, donor: first the other machines of the pool in
the cell where the class starts, each in all zones of the cell; then the class's other
cells of the same provider; then those of other providers; then donated machines. Only
cells in which the class is deployed are steps: its label is registered there already,
so no job has to be taken back and asked for again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from runfleet.placement.lock import Fallback, Fallbacks, Lock, Placed
from runfleet.spec.cells import Cell, Provider
from runfleet.spec.fleet import Fleet
from runfleet.spec.pools import Capacity

Step = Literal["start", "size", "region", "cloud", "donor"]

_LATER = {"start": 0, "size": 0, "region": 1, "cloud": 2, "donor": 3}


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


def _steps(fleet: Fleet, entries: Sequence[Placed]) -> list[Fallback]:
    start = fleet.cells[entries[0].cell]
    steps: list[Fallback] = []
    for entry in entries:
        cell = fleet.cells[entry.cell]
        for rung in entry.rungs:
            steps.append(
                Fallback(
                    step=_step(start, cell, rung.capacity, first=not steps),
                    cell=cell.name,
                    pool=entry.pool,
                    machine=rung.machine,
                    capacity=rung.capacity,
                    jobs=rung.jobs or 1,
                    zones=list(cell.zones),
                )
            )
    return sorted(steps, key=lambda step: _LATER[step.step])


def _step(start: Cell, cell: Cell, capacity: Capacity, first: bool) -> Step:
    if first:
        return "start"
    if cell.name == start.name:
        return "size"
    if cell.provider is Provider.OWN or capacity is Capacity.DONATED:
        return "donor"
    return "region" if cell.provider is start.provider else "cloud"
