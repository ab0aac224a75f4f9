"""Offers: machines in a cell's region at a price, of every kind that can be bought.

For each cell, :func:`offers` lists every machine of the cell's cloud once at its list
price and, where a source has one, at its spot price; each reservation that lies in
the cell; and what a pool of the fleet file says is donated. A machine without a price
is an offer too: it is shown, and it never wins.

A price is of one region. In another region of the same cloud it is borrowed and
marked ``assumed``. A price older than :data:`STALE_AFTER_DAYS` is stale, which warns
and does not change the order.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from runfleet.catalogue.machines import Machine, Machines, Status
from runfleet.placement.fit import Allocatable, allocatable, features_of, per_job
from runfleet.placement.quotas import Quotas
from runfleet.placement.tables import Overhead, tables
from runfleet.spec.cells import Cell, Provider
from runfleet.spec.fleet import Fleet
from runfleet.spec.pools import Capacity, PoolMachine
from runfleet.spec.stores import Reservation

STALE_AFTER_DAYS = 90
"""Age in days from which a price warns."""


class PriceKind(StrEnum):
    """How an offer is bought, in the order in which offers are taken.

    ``donated``: nobody pays; its price is notional. ``reserved``: paid for already.
    ``list`` and ``spot``: by the hour; a spot machine can be taken away.
    """

    DONATED = "donated"
    RESERVED = "reserved"
    LIST = "list"
    SPOT = "spot"

    @property
    def capacity(self) -> Capacity:
        """The word that pools use for it."""
        return _CAPACITY[self]


_CAPACITY = {
    PriceKind.DONATED: Capacity.DONATED,
    PriceKind.RESERVED: Capacity.RESERVED,
    PriceKind.LIST: Capacity.ON_DEMAND,
    PriceKind.SPOT: Capacity.SPOT,
}


@dataclass(frozen=True, slots=True, eq=False)
class Offer:
    """A machine in a cell's region at a price.

    Attributes:
        machine: The machine.
        cell: Name of the cell.
        region: The cell's region; empty for own hardware.
        kind: How it is bought.
        usd_h: Price of the whole machine in USD per hour; ``None`` when no source
            has one. Of a donated or reserved machine it is what a list price would
            be, and does not count.
        price_region: Region that the price is of; empty without a price.
        as_of: Day that the price is of.
        room: What jobs can have of the machine.
        extra: What each job takes beside what its class asks for.
        features: Instruction sets that the machine has.
        limit: Most machines: of a reservation or by quota; ``None`` for unlimited.
        reservation: Name of the reservation; empty without one.
        refused: Why the machine cannot be had in this cell at all; empty if it can.
        refused_by: ``region``, ``quota`` or ``availability``: what refuses it.
    """

    machine: Machine
    cell: str
    region: str
    kind: PriceKind
    usd_h: float | None
    price_region: str
    as_of: dt.date
    room: Allocatable
    extra: Overhead
    features: frozenset[str]
    limit: int | None = None
    reservation: str = ""
    refused: str = ""
    refused_by: str = ""

    @property
    def provider(self) -> Provider:
        """Whose machine it is."""
        return self.machine.provider

    @property
    def assumed(self) -> bool:
        """Whether its price is borrowed from another region."""
        return self.usd_h is not None and self.price_region != self.region

    def stale(self, today: dt.date) -> bool:
        """Say whether its price is too old to trust."""
        return self.usd_h is not None and (today - self.as_of).days > STALE_AFTER_DAYS


def offers(
    machines: Machines,
    fleet: Fleet,
    cell: Cell,
    quotas: Quotas | None = None,
    today: dt.date | None = None,
) -> list[Offer]:
    """Return every offer in a cell, in the catalogue's order.

    Args:
        machines: The table of machines.
        fleet: The fleet: its reservations, donated machines and excluded regions.
        cell: The cell.
        quotas: Quotas of the cells; default: none are known, so none limit.
        today: Day on which reservations must be running; default: today.
    """
    day = today or dt.date.today()
    extra = per_job(cell)
    excluded = _excluded(fleet, cell)
    known = quotas or Quotas()
    own = cell.provider is Provider.OWN
    donated = _donated(fleet, cell)
    reservations = _reservations(fleet, cell, day)
    found: list[Offer] = []
    for machine in machines.of(cell.provider):
        refused_by, refused = _refusal(machine, cell, excluded)
        limit = known.limit(cell.name, machine)
        if not refused and limit == 0:
            refused_by, refused = "quota", known.why(cell.name, machine)
        room, features = allocatable(machine), features_of(machine)
        for kind, price in _kinds(machine, machine.name in donated or own):
            found.append(
                Offer(
                    machine=machine,
                    cell=cell.name,
                    region=cell.region,
                    kind=kind,
                    usd_h=price,
                    price_region=machine.price_region if price is not None else "",
                    as_of=machine.as_of,
                    room=room,
                    extra=extra,
                    features=features,
                    limit=limit,
                    refused=refused,
                    refused_by=refused_by,
                )
            )
        for reservation in reservations.get(machine.name, ()):
            found.append(
                Offer(
                    machine=machine,
                    cell=cell.name,
                    region=cell.region,
                    kind=PriceKind.RESERVED,
                    usd_h=machine.ondemand_usd_h,
                    price_region=machine.price_region,
                    as_of=machine.as_of,
                    room=room,
                    extra=extra,
                    features=features,
                    limit=reservation.count,
                    reservation=reservation.name,
                    refused=refused if refused_by == "availability" else "",
                    refused_by=refused_by if refused_by == "availability" else "",
                )
            )
    return found


ByShape = Mapping[tuple[str, Capacity], Offer]
"""Offers of one cell by machine and by the way that a pool buys it."""


def by_shape(offers: Iterable[Offer]) -> ByShape:
    """Return offers of one cell by machine and capacity."""
    return {(offer.machine.name, offer.kind.capacity): offer for offer in offers}


def pool_offers(offers: ByShape, shapes: Iterable[PoolMachine]) -> list[Offer]:
    """Return the offers that the shapes of a pool stand for, in the shapes' order.

    A shape whose machine the catalogue does not hold has no offer.
    """
    found = (
        offers.get((shape.machine, shape.capacity))
        or offers.get((shape.machine, Capacity.ON_DEMAND))
        or offers.get((shape.machine, Capacity.DONATED))
        for shape in shapes
    )
    return [offer for offer in found if offer is not None]


def _kinds(machine: Machine, donated: bool) -> Iterable[tuple[PriceKind, float | None]]:
    if donated:
        yield PriceKind.DONATED, machine.ondemand_usd_h
        return
    yield PriceKind.LIST, machine.ondemand_usd_h
    if machine.spot_usd_h is not None:
        yield PriceKind.SPOT, machine.spot_usd_h


def _refusal(
    machine: Machine, cell: Cell, excluded: Mapping[str, str]
) -> tuple[str, str]:
    """Return what refuses a machine in a cell, and why; empty when nothing does."""
    if machine.status is not Status.AVAILABLE:
        return "availability", f"is {machine.status}: {machine.reason}"
    if machine.provider is Provider.IBM and not machine.node_name:
        return "availability", "no worker flavour of it is known"
    if machine.name in excluded:
        pool = excluded[machine.name]
        return "region", f"pool {pool} says that {cell.region} does not have it"
    offered = tables().offered.get((machine.provider, machine.name))
    if offered is not None and cell.region not in offered:
        return "region", f"not sold in {cell.region}"
    return "", ""


def _excluded(fleet: Fleet, cell: Cell) -> dict[str, str]:
    """Return the machines that pools say a region does not have, and which pool."""
    return {
        shape.machine: pool.name
        for pool in fleet.pools.values()
        if pool.provider is cell.provider and cell.region in pool.exclude_regions
        for shape in pool.machines
    }


def _donated(fleet: Fleet, cell: Cell) -> set[str]:
    return {
        shape.machine
        for pool in fleet.pools_in(cell)
        for shape in pool.machines
        if shape.capacity is Capacity.DONATED
    }


def _reservations(
    fleet: Fleet, cell: Cell, day: dt.date
) -> dict[str, list[Reservation]]:
    found: dict[str, list[Reservation]] = {}
    for reservation in fleet.reservations.values():
        running = reservation.start <= day and (
            reservation.end is None or day <= reservation.end
        )
        if reservation.cell == cell.name and running:
            found.setdefault(reservation.machine, []).append(reservation)
    return found
