"""What cannot be placed in a fleet file, found before anything is placed.

``runfleet.catalogue.checks`` knows machines; these checks know regions: that a cell's
region exists on its cloud, and that a reservation lies where its cell is.
"""

from __future__ import annotations

from collections.abc import Iterator

from runfleet.errors import Problem
from runfleet.placement.tables import tables
from runfleet.spec.cells import Cell, Provider
from runfleet.spec.fleet import Fleet
from runfleet.spec.source import Path, Source, nearest


def placement_problems(fleet: Fleet, source: Source) -> Iterator[Problem]:
    """Yield unknown regions, and reservations that no cell can use.

    Args:
        fleet: A fleet that is well formed.
        source: The file that it was read from, for lines.
    """
    for cell in fleet.cells.values():
        known = tables().regions.get(cell.provider)
        if cell.provider is not Provider.OWN and known and cell.region not in known:
            yield source.problem(
                ("cells", cell.name, "region"),
                f"{cell.provider} has no region of this name",
                found=cell.region,
                allowed=", ".join(known),
                nearest=nearest(cell.region, list(known)),
            )
    for name, reservation in fleet.reservations.items():
        cell = fleet.cells.get(reservation.cell)
        if cell is None or reservation.zone is None:
            continue
        if reservation.zone not in cell.zones:
            yield source.problem(
                ("reservations", name, "zone"),
                _where(cell, reservation.zone),
                found=reservation.zone,
                allowed=", ".join(cell.zones),
                nearest=nearest(reservation.zone, list(cell.zones)),
            )
    for pool in fleet.pools.values():
        for index, shape in enumerate(pool.machines):
            for place, name in enumerate(shape.reservations):
                at: Path = ("pools", pool.name, "machines", index)
                yield from _unusable(
                    fleet, source, (*at, "reservations", place), pool.name, name
                )


def _unusable(
    fleet: Fleet, source: Source, at: Path, pool_name: str, name: str
) -> Iterator[Problem]:
    """Yield a problem when a pool draws from a reservation in a cell without it."""
    pool, reservation = fleet.pools[pool_name], fleet.reservations.get(name)
    cell = fleet.cells.get(reservation.cell) if reservation is not None else None
    if cell is None:
        return
    if cell.provider is not pool.provider or cell.region in pool.exclude_regions:
        places = [
            other.name
            for other in fleet.cells.values()
            if other.provider is pool.provider
            and other.region not in pool.exclude_regions
        ]
        yield source.problem(
            at,
            f"the reservation is in cell {cell.name}, where pool {pool_name} does not "
            "exist",
            found=name,
            allowed=f"reservations in {', '.join(places) or 'no cell'}",
        )


def _where(cell: Cell, zone: str) -> str:
    if cell.provider is Provider.AZURE or zone.startswith(cell.region):
        return f"is no zone of cell {cell.name}"
    return f"is not in region {cell.region}, where cell {cell.name} is"
