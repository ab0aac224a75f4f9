"""What a placed fleet costs in a month at list price, at its least and at its most.

At the least, the runners that are kept ready (``scale.min``) stand; at the most, every
class runs as many jobs as it may (``scale.max``) all month. Jobs are packed onto the
first machine of each class's ladder that holds them, together with the other classes
that use the same machine of the same pool. Disks, traffic, licences and the control
plane are not in it. Donated and reserved machines cost nothing here; what they would
cost at list price is told apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runfleet.catalogue.machines import Machines
from runfleet.placement.fit import Need, allocatable, per_job
from runfleet.placement.ladder import Ranked
from runfleet.placement.moves import Placement
from runfleet.placement.offers import PriceKind
from runfleet.placement.packing import pack
from runfleet.spec.cells import Cell

HOURS = 730
"""Hours in a month: a year's 8,760 in twelve parts."""


@dataclass(frozen=True)
class CellCost:
    """What one cell costs in a month, in USD at list price.

    Attributes:
        cell: Name of the cell.
        classes: Classes that it serves.
        zeros: Classes that it was asked for and does not serve.
        minimum: With the runners that are kept ready, base nodes included.
        peak: With every class at its most, base nodes included.
        notional: Part of the peak that donated and reserved machines would add.
        machines: Machines at the peak, base nodes not included.
        unpriced: Classes whose machine has no price; they are in no sum.
        unbounded: Classes without a most; they are in no peak.
        assumed: Whether a price is borrowed from another region.
    """

    cell: str
    classes: int
    zeros: int
    minimum: float
    peak: float
    notional: float
    machines: int
    unpriced: Sequence[str]
    unbounded: Sequence[str]
    assumed: bool

    def as_dict(self) -> dict[str, object]:
        """Return it as plain data, sums rounded to a cent."""
        return {
            "cell": self.cell,
            "classes": self.classes,
            "zeros": self.zeros,
            "usd_month_minimum": round(self.minimum, 2),
            "usd_month_peak": round(self.peak, 2),
            "usd_month_notional": round(self.notional, 2),
            "machines_peak": self.machines,
            "unpriced": list(self.unpriced),
            "unbounded": list(self.unbounded),
            "assumed": self.assumed,
        }


@dataclass(frozen=True)
class _Use:
    """A class on the first machine of its ladder in a cell."""

    name: str
    need: Need
    ranked: Ranked
    low: int
    high: int | None


def monthly_costs(placement: Placement, machines: Machines) -> list[CellCost]:
    """Return what each cell of a placed fleet costs in a month.

    Args:
        placement: The placed fleet.
        machines: The table of machines, for base nodes.
    """
    return [_cell(placement, machines, c) for c in placement.fleet.cells.values()]


def _cell(placement: Placement, machines: Machines, cell: Cell) -> CellCost:
    groups: dict[tuple[str, str, str], list[_Use]] = {}
    unpriced: list[str] = []
    unbounded: list[str] = []
    classes = 0
    assumed = False
    for name, served in placement.served.items():
        for entry in (s for s in served if s.placed.cell == cell.name):
            classes += 1
            first = entry.rungs[0] if entry.rungs else None
            scale = placement.fleet.runner_classes[name].scale
            if first is None or first.offer.usd_h is None:
                unpriced.append(name)
                continue
            if scale.max is None:
                unbounded.append(name)
            assumed |= first.offer.assumed
            offer = first.offer
            key = (entry.placed.pool, offer.machine.name, str(offer.kind))
            need = placement.needs[name]
            use = _Use(name, need, first, scale.min, scale.max)
            groups.setdefault(key, []).append(use)
    base = _base_nodes(cell, machines)
    minimum = peak = base
    notional, count = 0.0, 0
    for uses in groups.values():
        offer = uses[0].ranked.offer
        price = (offer.usd_h or 0.0) * HOURS
        least = _packed(cell, uses, [use.low for use in uses])
        most = _packed(cell, uses, [use.high or 0 for use in uses])
        count += most
        if offer.kind in (PriceKind.DONATED, PriceKind.RESERVED):
            notional += most * price
            continue
        minimum += least * price
        peak += most * price
    zeros = sum(entry.cell == cell.name for entry in placement.lock.unplaced)
    return CellCost(
        cell=cell.name,
        classes=classes,
        zeros=zeros,
        minimum=minimum,
        peak=peak,
        notional=notional,
        machines=count,
        unpriced=unpriced,
        unbounded=unbounded,
        assumed=assumed,
    )


def _packed(cell: Cell, uses: Sequence[_Use], counts: Sequence[int]) -> int:
    """Return how many machines hold that many jobs of each class.

    Release jobs never share a machine with others, so they are packed apart.
    """
    room = allocatable(uses[0].ranked.offer.machine)
    total = 0
    for release in (False, True):
        jobs = {
            use.name: (use.need, count)
            for use, count in zip(uses, counts, strict=True)
            if use.need.release is release
        }
        total += pack(jobs, room, per_job(cell)).machines
    return total


def _base_nodes(cell: Cell, machines: Machines) -> float:
    if cell.base_nodes is None:
        return 0.0
    machine = machines.get(cell.provider, cell.base_nodes.machine)
    price = machine.ondemand_usd_h if machine is not None else None
    return (price or 0.0) * HOURS * cell.base_nodes.count
