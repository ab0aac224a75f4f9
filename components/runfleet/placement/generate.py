"""Pools for classes that leave their own: one per machine family, weights by price.

A class that is placed where its own pool is not gets a pool of the machine family that
its best offer belongs to. Classes whose best offers are of one family share a pool, so
that their jobs share machines. A pool holds the family's shapes that serve its classes
best and, with lower weights, the best shapes of other families that serve all of them,
so that a shortage of one family is not the end of the cell. Whole-node classes have
pools of their own, because a job of another class on the node would break the promise;
release classes have machines of their own in the pool, because of their trust.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from runfleet.placement.fit import DISK_LIMIT_GIB, DISK_OF_SYSTEM_GIB, Need
from runfleet.placement.ladder import Ranked, rank
from runfleet.placement.lock import LockedMachine, Placed, Price, Rung, Shape
from runfleet.placement.offers import Offer, PriceKind
from runfleet.placement.tables import family_of
from runfleet.spec.cells import Provider
from runfleet.spec.classes import RunnerClass
from runfleet.spec.pools import Capacity, Pool, PoolMachine
from runfleet.spec.units import Size

MAX_SHAPES = 5
"""Shapes of the family that a pool has, unless a class needs another one."""

MAX_SUBSTITUTES = 2
"""Shapes of other families that a pool has behind them."""

_DISK_STEP_GIB = 50
_WEIGHT_STEP = 10
_NAME_LIMIT = 40


@dataclass(frozen=True)
class Away:
    """A class that is placed where its own pool is not.

    Attributes:
        runner_class: The class.
        cell: Name of the cell.
        need: What one of its jobs needs.
        ladder: Its best offers in the cell, best first; at least one.
    """

    runner_class: RunnerClass
    cell: str
    need: Need
    ladder: Sequence[Ranked]


@dataclass(frozen=True)
class Generated:
    """The pools that were made, and where they place the classes.

    Attributes:
        pools: Pools by name.
        placed: The classes, in the order in which they were given.
        rungs: The offers behind each class's rungs, by class and cell, in order.
    """

    pools: Mapping[str, Pool]
    placed: Sequence[Placed]
    rungs: Mapping[tuple[str, str], Sequence[Ranked]]


def generate(
    away: Iterable[Away],
    offers: Mapping[str, Sequence[Offer]],
    taken: Iterable[str] = (),
) -> Generated:
    """Make the pools that classes away from their own pool need.

    Args:
        away: The classes.
        offers: Every offer by cell.
        taken: Names of pools that there are already.
    """
    grouped: dict[_Family, list[Away]] = {}
    for entry in away:
        family = _family(entry.ladder[0].offer, entry.need.whole_node)
        grouped.setdefault(family, []).append(entry)
    pools: dict[str, Pool] = {}
    placed: dict[tuple[str, str], Placed] = {}
    rungs: dict[tuple[str, str], Sequence[Ranked]] = {}
    names = set(taken)
    for family, entries in grouped.items():
        made = _pool(family, entries, offers, names)
        names.add(made.pool.name)
        pools[made.pool.name] = made.pool
        for entry in entries:
            key = (entry.runner_class.name, entry.cell)
            ranked = made.rungs[key]
            rungs[key] = ranked
            weights = {
                shape.machine: shape.weight
                for shape in made.pool.machines
                if shape.release == entry.need.release
            }
            placed[key] = Placed(
                runner_class=entry.runner_class.name,
                cell=entry.cell,
                pool=made.pool.name,
                rungs=[
                    Rung(
                        machine=r.offer.machine.name,
                        weight=weights[r.offer.machine.name],
                        capacity=r.offer.kind.capacity,
                        jobs=r.jobs,
                    )
                    for r in ranked
                ],
            )
    return Generated(pools, list(placed.values()), rungs)


def locked_machines(generated: Generated) -> list[LockedMachine]:
    """Return the machines of made pools, with all that a stack needs to build them."""
    found: dict[tuple[str, str, str], LockedMachine] = {}
    for ranked in (r for rungs in generated.rungs.values() for r in rungs):
        offer = ranked.offer
        price = None
        if offer.usd_h is not None:
            price = Price(
                usd_h=offer.usd_h,
                region=offer.price_region,
                as_of=offer.as_of.isoformat(),
                assumed=True if offer.assumed else None,
            )
        key = (offer.cell, offer.machine.name, str(offer.kind.capacity))
        found[key] = LockedMachine(
            cell=offer.cell,
            machine=offer.machine.name,
            capacity=offer.kind.capacity,
            shape=shape_of(offer),
            limit=offer.limit,
            price=price,
        )
    return [found[key] for key in sorted(found)]


def shape_of(offer: Offer) -> Shape:
    """Return what an offer's machine holds and is called by node pools."""
    machine = offer.machine
    return Shape(
        node_name=machine.node_name,
        vcpu=machine.vcpu,
        memory_gib=machine.memory_gib,
        accelerator=machine.accelerator,
        accelerator_vendor=machine.accelerator_vendor,
        accelerators=machine.accelerator_count or None,
    )


@dataclass(frozen=True)
class _Family:
    """What machines of one pool have in common."""

    provider: Provider
    name: str
    arch: str
    accelerator: str
    accelerator_memory_gib: float
    whole_node: bool


@dataclass(frozen=True)
class _Made:
    pool: Pool
    rungs: Mapping[tuple[str, str], Sequence[Ranked]]


@dataclass(frozen=True)
class _Candidate:
    """A machine bought in one way, as it serves the classes of a pool.

    Attributes:
        offers: Its offers by cell.
        served: The ranked offer of each class and cell that it serves.
        score: Mean over those of its price against the class's best in its cell; 0
            for what is donated or reserved.
    """

    offers: Mapping[str, Offer]
    served: Mapping[tuple[str, str], Ranked]
    score: float

    @property
    def machine(self) -> str:
        return next(iter(self.offers.values())).machine.name

    @property
    def order(self) -> tuple[float, int, str]:
        return (self.score, -len(self.served), self.machine)


def _family(offer: Offer, whole_node: bool) -> _Family:
    machine = offer.machine
    return _Family(
        machine.provider,
        family_of(machine),
        machine.arch,
        machine.accelerator,
        machine.accelerator_memory_gib or 0.0,
        whole_node,
    )


def _pool(
    family: _Family,
    entries: Sequence[Away],
    offers: Mapping[str, Sequence[Offer]],
    taken: set[str],
) -> _Made:
    shapes: list[PoolMachine] = []
    rungs: dict[tuple[str, str], list[Ranked]] = {}
    for release in (False, True):
        group = [entry for entry in entries if entry.need.release is release]
        if not group:
            continue
        chosen = _chosen(family, group, offers)
        for place, candidate in enumerate(chosen):
            for key, ranked in candidate.served.items():
                rungs.setdefault(key, []).append(ranked)
            shapes.append(_machine(candidate, group, place, release))
    pool = Pool(
        name=_name(family, taken),
        provider=family.provider,
        arch=cast("Literal['amd64', 'arm64', 's390x', 'ppc64le']", family.arch),
        gpu=bool(family.accelerator),
        machines=shapes,
    )
    return _Made(pool, rungs)


def _chosen(
    family: _Family, group: Sequence[Away], offers: Mapping[str, Sequence[Offer]]
) -> list[_Candidate]:
    """Return the shapes of a pool for one kind of code, preferred first."""
    same: dict[str, list[Offer]] = {}
    other: dict[str, list[Offer]] = {}
    for cell in {entry.cell: None for entry in group}:
        for offer in offers[cell]:
            machine = offer.machine
            if machine.arch != family.arch or machine.accelerator != family.accelerator:
                continue
            kin = _family(offer, family.whole_node) == family
            (same if kin else other).setdefault(machine.name, []).append(offer)
    own = sorted(_candidates(same, group), key=lambda candidate: candidate.order)
    chosen = own[:MAX_SHAPES]
    for entry in group:
        key = (entry.runner_class.name, entry.cell)
        if not any(key in candidate.served for candidate in chosen):
            chosen.append(next(c for c in own if key in c.served))
    substitutes = [
        candidate
        for candidate in _candidates(other, group)
        if len(candidate.served) == len(group)
    ]
    substitutes.sort(key=lambda candidate: candidate.order)
    return chosen + substitutes[:MAX_SUBSTITUTES]


def _candidates(
    by_machine: Mapping[str, Sequence[Offer]], group: Sequence[Away]
) -> list[_Candidate]:
    """Return each machine, bought in the way that serves the classes best."""
    found: list[_Candidate] = []
    for of_machine in by_machine.values():
        # Node pools are named after their machine, so each is bought in one way.
        ways: dict[PriceKind, dict[str, Offer]] = {}
        for offer in of_machine:
            ways.setdefault(offer.kind, {}).setdefault(offer.cell, offer)
        candidates = [c for way in ways.values() if (c := _candidate(way, group))]
        if candidates:
            best = max(len(candidate.served) for candidate in candidates)
            found.append(
                min(
                    (c for c in candidates if len(c.served) == best),
                    key=lambda candidate: candidate.order,
                )
            )
    return found


def _candidate(way: Mapping[str, Offer], group: Sequence[Away]) -> _Candidate | None:
    served: dict[tuple[str, str], Ranked] = {}
    ratios: list[float] = []
    for entry in group:
        offer = way.get(entry.cell)
        ranked = rank(entry.need, offer) if offer is not None else None
        if ranked is None:
            continue
        free = ranked.offer.kind in (PriceKind.DONATED, PriceKind.RESERVED)
        best = entry.ladder[0].usd_job_h
        if ranked.usd_job_h is None and not free and best is not None:
            continue  # A machine without a price stands beside no priced one.
        served[(entry.runner_class.name, entry.cell)] = ranked
        ratios.append(_ratio(ranked, entry.need, best, free))
    if not served:
        return None
    return _Candidate(way, served, round(sum(ratios) / len(ratios), 9))


def _ratio(ranked: Ranked, need: Need, best: float | None, free: bool) -> float:
    """Return how dear a machine is for a class: 1 for the class's best in its cell.

    Where no price is known, the part of the machine that jobs leave empty stands in.
    """
    if free:
        return 0.0
    if not best or ranked.usd_job_h is None:
        used = ranked.jobs * need.vcpu / ranked.offer.machine.vcpu
        return 1 / used
    return ranked.usd_job_h / best


def _machine(
    candidate: _Candidate, group: Sequence[Away], place: int, release: bool
) -> PoolMachine:
    offer = next(iter(candidate.served.values())).offer
    machine = offer.machine
    disk = DISK_OF_SYSTEM_GIB + max(
        ranked.jobs * entry.need.disk_gib
        for entry in group
        if (ranked := candidate.served.get((entry.runner_class.name, entry.cell)))
        is not None
    )
    rounded = math.ceil(disk / _DISK_STEP_GIB) * _DISK_STEP_GIB
    return PoolMachine(
        machine=machine.name,
        weight=max(1, 100 - _WEIGHT_STEP * place),
        disk=Size.gib_of(min(rounded, DISK_LIMIT_GIB[machine.provider])),
        bare_metal="metal" in machine.name,
        release=release,
        capacity=offer.kind.capacity,
        reservations=_reservations(candidate)
        if offer.kind.capacity is Capacity.RESERVED
        else [],
    )


def _reservations(candidate: _Candidate) -> list[str]:
    return sorted({o.reservation for o in candidate.offers.values() if o.reservation})


def _name(family: _Family, taken: set[str]) -> str:
    """Return the name of a pool: provider, family, what sets it apart."""
    parts = [str(family.provider), family.name]
    if family.accelerator and family.accelerator not in family.name:
        parts.append(family.accelerator)
    if family.whole_node:
        parts.append("whole")
    base = "-".join(parts)[:_NAME_LIMIT].rstrip("-")
    name, number = base, 2
    while name in taken:
        end = f"-{number}"
        name, number = base[: _NAME_LIMIT - len(end)].rstrip("-") + end, number + 1
    return name
