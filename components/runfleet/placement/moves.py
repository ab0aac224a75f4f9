"""Move a fleet with one word, and place it.

>>> Fleet.load("fleet.yaml").to("gcp").lock()          # doctest: +SKIP

``aws``, ``gcp``, ``azure``, ``ibm`` and ``own`` move every class to the fleet's cells
of that provider; ``anywhere`` serves each class in every cell that can; ``cheapest``
serves it in the one cell that costs least. A class that says where it belongs stays
there, whatever the word is: ``cells`` names its cells, ``hardware.machine`` its
machine. A ``pool`` says how a class is served at home, in the cells of its pool's
provider, and is kept there: its shapes and weights are what people chose. Away from
home the class gets a pool (:mod:`runfleet.placement.generate`), or an explicit zero
with the reason.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path as FilePath

from runfleet.catalogue.machines import MACHINES_NAME, Machines
from runfleet.catalogue.read import read_fleet
from runfleet.errors import InputError, Problem
from runfleet.placement.explain import Explanation, explain, zero_reason
from runfleet.placement.fallbacks import make_fallbacks
from runfleet.placement.fit import Need, need_of
from runfleet.placement.generate import Away, generate, locked_machines
from runfleet.placement.ladder import DEPTH, OfferIndex, Ranked, RankKey, rank
from runfleet.placement.lock import Lock, Placed, Unplaced, fleet_digest, placed_at_home
from runfleet.placement.offers import (
    ByShape,
    Offer,
    PriceKind,
    by_shape,
    offers,
    pool_offers,
)
from runfleet.placement.problems import placement_problems
from runfleet.placement.quotas import Quotas, load_quotas
from runfleet.spec.cells import Cell, Provider
from runfleet.spec.classes import PlacementMode, RunnerClass
from runfleet.spec.fleet import Fleet
from runfleet.spec.grammar import MAX_SCALE_SET_NAME
from runfleet.spec.load import FleetFile
from runfleet.spec.pools import Capacity, Pool
from runfleet.spec.source import Path, nearest


class Target(StrEnum):
    """Where a fleet can be moved: a provider, every cell, or the cheapest one."""

    AWS = "aws"
    GCP = "gcp"
    AZURE = "azure"
    IBM = "ibm"
    OWN = "own"
    ANYWHERE = "anywhere"
    CHEAPEST = "cheapest"


@dataclass(frozen=True)
class Served:
    """A class in one cell, with the offers behind its rungs.

    Attributes:
        placed: What the lock says.
        rungs: The offers of its rungs, in the lock's order; a rung whose machine the
            catalogue does not hold has none.
        home: Whether it is served by its own pool.
    """

    placed: Placed
    rungs: Sequence[Ranked]
    home: bool


@dataclass(frozen=True)
class Placement:
    """A placed fleet.

    Attributes:
        fleet: The fleet, as the file has it.
        lock: What is committed.
        served: Where each class is served, by class.
        ladders: Best offers of each class over the cells that it may use, best first.
        offers: Every offer, by cell.
        needs: What one job of each class needs, by class.
        warnings: Stale and borrowed prices, and other things to know.
        allowed: Why a cell may not serve a class, by class and cell.
    """

    fleet: Fleet
    lock: Lock
    served: Mapping[str, Sequence[Served]]
    ladders: Mapping[str, Sequence[Ranked]]
    offers: Mapping[str, Sequence[Offer]]
    needs: Mapping[str, Need]
    warnings: Sequence[str]
    allowed: Mapping[str, Mapping[str, str]] = field(
        default_factory=dict[str, Mapping[str, str]]
    )

    def unpriced(self, runner_class: str) -> list[Offer]:
        """Return the offers that could serve a class if their price were known.

        Raises:
            KeyError: The class is external or there is none of this name.
        """
        need = self.needs[runner_class]
        rules = self.allowed.get(runner_class, {})
        return [
            offer
            for cell, found in self.offers.items()
            if not rules.get(cell)
            for offer in found
            if offer.usd_h is None
            and offer.kind is PriceKind.LIST
            and rank(need, offer) is not None
        ]

    def explain(self, runner_class: str) -> list[Explanation]:
        """Return why each offer that does not serve a class lost.

        Raises:
            KeyError: The class is external or there is none of this name.
        """
        need = self.needs[runner_class]
        served = self.served.get(runner_class, ())
        winners = [ranked.offer for entry in served for ranked in entry.rungs]
        ladder = self.ladders.get(runner_class, ())
        every = [offer for found in self.offers.values() for offer in found]
        rules = self.allowed.get(runner_class, {})
        return list(
            explain(
                need,
                every,
                winners,
                ladder[0] if ladder else None,
                lambda offer: rules.get(offer.cell, ""),
            )
        )


@dataclass(frozen=True)
class MovableFleet:
    """A fleet that can be moved with one word.

    Attributes:
        file: The fleet and the file that it was read from.
        machines: The table of machines.
        quotas: Quotas of the cells.
        moved_to: Where it was moved to; ``None`` when it was not.
        spot: Whether classes may use spot machines that do not say so themselves.
        unpriced: Whether machines without a price may serve a class in a cell where
            no priced one can. They never stand before a priced one. A class that is
            pinned to a cell or machine may use them there in any case.
    """

    file: FleetFile
    machines: Machines
    quotas: Quotas = field(default_factory=Quotas)
    moved_to: Target | None = None
    spot: bool = False
    unpriced: bool = False

    @classmethod
    def load(
        cls, path: str | FilePath, machines: Machines | None = None
    ) -> MovableFleet:
        """Read a fleet file, and what stands beside it.

        ``quotas.yaml`` beside it holds quotas, ``machines.csv`` (with
        ``machine_sources.csv``) machines that the package's table has not, such as
        one's own hardware.

        Args:
            path: The fleet file.
            machines: The table of machines; default: the package's own.

        Raises:
            InputError: A file has problems; all of them are in it.
        """
        table = machines if machines is not None else Machines.load()
        beside = FilePath(path).with_name(MACHINES_NAME)
        if beside.exists():
            more = Machines.load(beside)
            table = Machines(
                {**table.rows, **more.rows}, {**table.sources, **more.sources}
            )
        file = read_fleet(path, table)
        problems = list(placement_problems(file.fleet, file.source))
        if problems:
            raise InputError(problems)
        return cls(file, table, load_quotas(path, file.fleet, table))

    @property
    def fleet(self) -> Fleet:
        """The fleet with the pools that were made for it."""
        if self.moved_to is None:
            return self.file.fleet
        pools = self.lock().pools_of(self.file.fleet)
        return self.file.fleet.model_copy(update={"pools": pools})

    def to(self, word: str) -> MovableFleet:
        """Return the fleet moved to a provider, ``anywhere`` or ``cheapest``.

        Raises:
            InputError: There is no such word, or the fleet has no cell there.
        """
        if word not in list(Target):
            raise InputError(
                [
                    Problem(
                        self.file.source.file,
                        0,
                        "",
                        "there is no such place to move to",
                        found=word,
                        allowed=", ".join(Target),
                        nearest=nearest(word, list(Target)),
                    )
                ]
            )
        target = Target(word)
        providers = {str(cell.provider) for cell in self.file.fleet.cells.values()}
        if target in list(Provider) and str(target) not in providers:
            raise InputError(
                [
                    self.file.source.problem(
                        ("cells",),
                        f"the fleet has no cell on {target}",
                        found=word,
                        allowed=", ".join(
                            [*sorted(providers), Target.ANYWHERE, Target.CHEAPEST]
                        ),
                    )
                ]
            )
        return replace(self, moved_to=target)

    def place(self, today: dt.date | None = None) -> Placement:
        """Place every class.

        Args:
            today: Day that reservations must be running and prices be fresh on;
                default: today.

        Raises:
            InputError: A pin cannot be kept, or a class has no offer at all.
        """
        return _Placer(self, today or dt.date.today()).place()

    def lock(self, today: dt.date | None = None) -> Lock:
        """Return the lock of the placed fleet; see :meth:`place`."""
        return self.place(today).lock


@dataclass
class _Choice:
    """A class in one cell that could serve it: at home, or by a ladder."""

    cell: Cell
    key: RankKey
    ladder: list[Ranked]
    pool: Pool | None = None


class _Placer:
    """Places one fleet; holds what is gathered on the way."""

    def __init__(self, movable: MovableFleet, today: dt.date) -> None:
        self._movable, self._today = movable, today
        self._fleet = movable.file.fleet
        self._source = movable.file.source
        self._offers: dict[str, list[Offer]] = {}
        self._shapes: dict[str, ByShape] = {}
        self._indexes: dict[str, OfferIndex] = {}
        self._unplaced: list[Unplaced] = []
        self._problems: list[Problem] = []
        self._home: dict[tuple[str, str], Served] = {}
        self._away: list[Away] = []
        self._allowed: dict[str, dict[str, str]] = {}
        self._ladders: dict[str, list[Ranked]] = {}
        self._needs: dict[str, Need] = {}
        self._preferred: dict[str, list[str]] = {}

    def place(self) -> Placement:
        movable, fleet = self._movable, self._fleet
        for cell in fleet.cells.values():
            found = offers(movable.machines, fleet, cell, movable.quotas, self._today)
            self._offers[cell.name] = found
            self._shapes[cell.name] = by_shape(found)
        for runner_class in fleet.runner_classes.values():
            if runner_class.placement is PlacementMode.EXTERNAL:
                self._zero(runner_class.name, "external")
            else:
                self._class(runner_class)
        if self._problems:
            raise InputError(self._problems)
        made = generate(self._away, self._offers, fleet.pools)
        served: dict[tuple[str, str], Served] = dict(self._home)
        for placed in made.placed:
            key = (placed.runner_class, placed.cell)
            served[key] = Served(placed, made.rungs[key], home=False)
        # The order of the lock: by cell, then by class, as in the fleet file.
        in_order = [
            served[(name, cell)]
            for cell in fleet.cells
            for name in fleet.runner_classes
            if (name, cell) in served
        ]
        placed_list = [entry.placed for entry in in_order]
        moved = movable.moved_to is not None
        lock = Lock(
            fleet_sha256=fleet_digest(fleet),
            to=str(movable.moved_to) if movable.moved_to is not None else None,
            pools=dict(made.pools),
            machines=locked_machines(made),
            placed=placed_list,
            unplaced=self._unplaced,
            fallbacks=make_fallbacks(
                fleet, placed_list, self._preferred, list(fleet.cells)
            )
            if moved
            else [],
        )
        by_class: dict[str, list[Served]] = {}
        for entry in in_order:
            by_class.setdefault(entry.placed.runner_class, []).append(entry)
        return Placement(
            fleet=fleet,
            lock=lock,
            served=by_class,
            ladders=self._ladders,
            offers=self._offers,
            needs=self._needs,
            warnings=_warnings(in_order, self._today),
            allowed=self._allowed,
        )

    def _class(self, runner_class: RunnerClass) -> None:
        """Choose the cells of one class."""
        name = runner_class.name
        need = need_of(runner_class, self._bears_spot(runner_class))
        self._needs[name] = need
        rules = self._rules(runner_class)
        self._allowed[name] = {cell: why for cell, (why, _) in rules.items() if why}
        choices: list[_Choice] = []
        zeros: list[tuple[str, str]] = []
        for cell in self._fleet.cells.values():
            why, asked = rules[cell.name]
            if why:
                if asked:
                    zeros.append((cell.name, f"policy: {why}"))
                continue
            choice = self._in_cell(runner_class, need, cell)
            if choice is not None:
                choices.append(choice)
            else:
                zeros.append((cell.name, zero_reason(need, self._offers[cell.name])))
        if not choices:
            self._nowhere(runner_class, zeros)
            return
        choices.sort(key=lambda choice: choice.key)
        ranked = [rung for choice in choices for rung in choice.ladder]
        self._ladders[name] = sorted(ranked, key=lambda rung: rung.key)
        if self._movable.moved_to is Target.CHEAPEST and not _pinned(runner_class):
            choices = choices[:1]
        else:
            for cell_name, why in zeros:
                self._zero(name, why, cell_name)
        self._preferred[name] = [choice.cell.name for choice in choices]
        for choice in choices:
            self._take(runner_class, need, choice)

    def _in_cell(
        self, runner_class: RunnerClass, need: Need, cell: Cell
    ) -> _Choice | None:
        """Return how a cell can serve a class, or ``None`` when it cannot."""
        pool = self._fleet.pools.get(runner_class.pool or "")
        if pool is not None and pool.provider is cell.provider:
            return self._at_home(runner_class, need, cell, pool)
        index = self._indexes.get(cell.name)
        if index is None:
            index = self._indexes[cell.name] = OfferIndex(self._offers[cell.name])
        ladder = index.ladder(need)
        if not ladder and (self._movable.unpriced or _pinned(runner_class)):
            # Nothing here has a price, and somebody asked for this place all the same.
            ladder = index.unpriced(need)[:DEPTH]
        return _Choice(cell, ladder[0].key, ladder) if ladder else None

    def _at_home(
        self, runner_class: RunnerClass, need: Need, cell: Cell, pool: Pool
    ) -> _Choice:
        shapes = runner_class.machines(pool)
        anyhow = replace(need, spot=not need.release, machine="")
        found = pool_offers(self._shapes[cell.name], shapes)
        ladder = [r for offer in found if (r := rank(anyhow, offer)) is not None]
        if ladder:
            return _Choice(cell, min(rung.key for rung in ladder), ladder, pool)
        free = 0 if pool.provider is Provider.OWN else 2
        key = (free, float("inf"), True, cell.name, pool.name, "", "")
        return _Choice(cell, key, [], pool)

    def _take(self, runner_class: RunnerClass, need: Need, choice: _Choice) -> None:
        if choice.pool is not None:
            placed = placed_at_home(runner_class, choice.cell, choice.pool)
            served = Served(placed, choice.ladder, home=True)
            self._home[(runner_class.name, choice.cell.name)] = served
            return
        label = choice.cell.runner_label(runner_class.name)
        at: Path = ("runner_classes", runner_class.name)
        if len(label) > MAX_SCALE_SET_NAME or "." in label or "_" in label:
            self._problems.append(
                self._source.problem(
                    at,
                    f"the scale-set name that it has in cell {choice.cell.name} is not "
                    "valid",
                    found=label,
                    allowed=f"at most {MAX_SCALE_SET_NAME} letters, digits and -",
                )
            )
        self._away.append(Away(runner_class, choice.cell.name, need, choice.ladder))

    def _rules(self, runner_class: RunnerClass) -> dict[str, tuple[str, bool]]:
        """Return why each cell may not serve a class, and whether one asked for it.

        An empty text: it may. A cell that was asked for and may not serve the class
        gets an explicit zero; the others are not spoken of.
        """
        found: dict[str, tuple[str, bool]] = {}
        pinned_to = self._providers_of(runner_class)
        for cell in self._fleet.cells.values():
            found[cell.name] = self._rule(runner_class, cell, pinned_to)
        return found

    def _rule(
        self, runner_class: RunnerClass, cell: Cell, pinned_to: set[Provider]
    ) -> tuple[str, bool]:
        target = self._movable.moved_to
        pool = self._fleet.pools.get(runner_class.pool or "")
        asked = str(target) == str(cell.provider)
        if runner_class.cells is not None:
            if cell.name not in runner_class.cells:
                pinned = ", ".join(runner_class.cells)
                return f"the class is pinned to cells {pinned}", asked
        elif pinned_to:
            if cell.provider not in pinned_to:
                machine = runner_class.hardware.machine
                return f"the class is pinned to machine {machine}", asked
        elif target is not None and target in list(Provider):
            if not asked:
                return f"the fleet is moved to {target}", False
        elif target is None and pool is not None and pool.provider != cell.provider:
            return f"the class has pool {pool.name} and the fleet is not moved", False
        if pool is not None and pool.provider is cell.provider:
            excluded = cell.region in pool.exclude_regions
            why = f"pool {pool.name} says that {cell.region} does not have it"
            return (why, target is not None) if excluded else ("", False)
        if runner_class.release and cell.release_runner_group is None:
            return f"cell {cell.name} has no release runner group", True
        return "", False

    def _providers_of(self, runner_class: RunnerClass) -> set[Provider]:
        """Return the providers that have the machine a class is pinned to."""
        name = runner_class.hardware.machine
        return set(self._movable.machines.providers_of(name)) if name else set()

    def _bears_spot(self, runner_class: RunnerClass) -> bool:
        """Say whether a class may use spot machines: its own pool has some."""
        pool = self._fleet.pools.get(runner_class.pool or "")
        shapes = runner_class.machines(pool) if pool is not None else []
        return self._movable.spot or any(s.capacity is Capacity.SPOT for s in shapes)

    def _nowhere(
        self, runner_class: RunnerClass, zeros: Sequence[tuple[str, str]]
    ) -> None:
        """Refuse a class that nothing can serve, or give it explicit zeros."""
        target = self._movable.moved_to
        moved_to_one = target is not None and target in list(Provider)
        at_home = target is None and runner_class.pool is not None
        if at_home:
            self._zero(runner_class.name, "no cell has its pool")
        elif moved_to_one and not _pinned(runner_class):
            for cell, why in zeros:
                self._zero(runner_class.name, why, cell)
        else:
            what = "its pin cannot be kept" if _pinned(runner_class) else "no offer"
            at: Path = ("runner_classes", runner_class.name)
            part = "cells" if runner_class.cells is not None else "hardware"
            self._problems.append(
                self._source.problem(
                    (*at, part),
                    f"no offer at all can serve the class ({what}): "
                    + "; ".join(f"{cell}: {why}" for cell, why in zeros)
                    if zeros
                    else f"no cell of the fleet may serve the class ({what})",
                    allowed="other hardware, other cells, or `placement: external`",
                )
            )

    def _zero(self, name: str, why: str, cell: str | None = None) -> None:
        self._unplaced.append(Unplaced(runner_class=name, why=why, cell=cell))


def _pinned(runner_class: RunnerClass) -> bool:
    return runner_class.cells is not None or runner_class.hardware.machine is not None


def _warnings(served: Sequence[Served], today: dt.date) -> list[str]:
    """Return what to know of the prices and machines that were chosen."""
    found: list[str] = []
    for offer in (ranked.offer for entry in served for ranked in entry.rungs[:1]):
        where = f"{offer.provider} {offer.machine.name}"
        if offer.usd_h is None:
            found.append(f"{where}: no source has a price of it")
        if offer.stale(today):
            age = (today - offer.as_of).days
            found.append(f"{where}: the price is of {offer.as_of}, {age} days old")
        if offer.assumed:
            found.append(
                f"{where} in {offer.region}: the price is assumed, it is of "
                f"{offer.price_region}"
            )
    return list(dict.fromkeys(found))
