"""``placement.lock.yaml``: the committed decision of where each class runs.

Stacks read the fleet file and this lock and nothing else, so a price that moves
never moves a fleet. Each entry says which cell serves a class, from which pool, on
which machines in which order (rungs), and for classes that no cell serves, why.

A fleet that was moved (:mod:`runfleet.placement.moves`) has more in its lock: where it
was moved to, the pools that were made for it, what each machine holds and is called by
node pools, and the order in which a class falls back from cell to cell. The fleet file
stays as it is, and the digest is of the file. These fields stand in the lock only
where they say something, so the lock of a fleet that was not moved holds none of them.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Any, ClassVar, Literal

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    field_serializer,
    model_serializer,
    model_validator,
)
from ruamel.yaml import YAML

from runfleet.errors import InputError, Problem
from runfleet.spec.base import PoolName, Spec, Version
from runfleet.spec.cells import Cell
from runfleet.spec.classes import PlacementMode, RunnerClass
from runfleet.spec.fleet import Fleet
from runfleet.spec.load import model_problems
from runfleet.spec.pools import Capacity, Pool
from runfleet.spec.source import Path, Source, is_mapping, read_source

LOCK_NAME = "placement.lock.yaml"


class LockError(InputError):
    """The lock does not fit the fleet file (exit 2)."""


class _Short(Spec):
    """A model whose later fields stand in the file only where they say something."""

    _optional: ClassVar[frozenset[str]] = frozenset()

    @model_serializer(mode="wrap")
    def _leave_out(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {
            key: value
            for key, value in handler(self).items()
            if key not in self._optional or value not in (None, "", [], {})
        }


class Shape(_Short):
    """What a machine holds and is called, so that a stack needs no catalogue."""

    _optional = frozenset(
        {"node_name", "accelerator", "accelerator_vendor", "accelerators"}
    )

    node_name: str = Field(
        default="", description="What node pools call it, where that differs."
    )
    vcpu: float = Field(gt=0, description="Virtual CPUs, as advertised.")
    memory_gib: float = Field(gt=0, description="Memory in GiB, as advertised.")
    accelerator: str = Field(default="", description="Model, one name on all clouds.")
    accelerator_vendor: str = Field(
        default="", description="Whose device plugin serves it."
    )
    accelerators: float | None = Field(
        default=None, description="Accelerators; below 1 for a share of one."
    )


class Price(_Short):
    """The price that a machine was chosen at: evidence, not read by stacks."""

    _optional = frozenset({"assumed"})

    usd_h: float = Field(ge=0, description="USD per hour of the whole machine.")
    region: str = Field(description="Region that the price is of.")
    as_of: str = Field(description="Day that the price is of.")
    assumed: Literal[True] | None = Field(
        default=None, description="Whether it is borrowed from another region."
    )


class LockedMachine(_Short):
    """A machine that a made pool has in a cell, with what a stack needs to build it."""

    _optional = frozenset({"limit", "price"})

    cell: str = Field(description="Cell.")
    machine: str = Field(description="Instance type.")
    capacity: Capacity = Field(description="How it is bought.")
    shape: Shape = Field(description="What it holds.")
    limit: int | None = Field(
        default=None, ge=1, description="Most machines, by quota or reservation."
    )
    price: Price | None = Field(
        default=None, description="What it was chosen at, if that is known."
    )


class Rung(_Short):
    """One step of the ladder: a machine shape that the autoscaler may start."""

    _optional = frozenset({"jobs"})

    machine: str = Field(description="Instance type.")
    weight: int = Field(ge=1, le=100, description="Preference; highest first.")
    capacity: Capacity = Field(description="How it is bought.")
    jobs: int | None = Field(
        default=None, ge=1, description="Jobs of the class that fit on one at once."
    )


class Placed(Spec):
    """A class in one cell."""

    runner_class: str = Field(description="Name of the class.")
    cell: str = Field(description="Cell that serves it.")
    pool: str = Field(description="Pool that serves it there.")
    rungs: list[Rung] = Field(min_length=1, description="Shapes, preferred first.")


class Unplaced(_Short):
    """A class that no cell serves, or one cell does not, and why."""

    _optional = frozenset({"cell"})

    runner_class: str = Field(description="Name of the class.")
    why: str = Field(description="external, or the reason for an explicit zero.")
    cell: str | None = Field(
        default=None, description="The cell that does not serve it; none means all."
    )


class Fallback(Spec):
    """One step of the order in which a class looks for capacity.

    ``start`` is where it goes first. Then come the other ``size`` of machines in the
    same cell, other cells of the same provider (``region``), of other providers
    (``cloud``), and donated machines (``donor``). In each cell its zones are tried one
    after the other, each with all machines of the step.
    """

    step: Literal["start", "size", "region", "cloud", "donor"] = Field(
        description="How it differs from the first."
    )
    cell: str = Field(description="Cell.")
    machines: list[str] = Field(
        min_length=1, description="Instance types, preferred first."
    )


class Fallbacks(Spec):
    """The steps of one class, first choice first."""

    runner_class: str = Field(description="Name of the class.")
    steps: list[Fallback] = Field(min_length=1, description="Steps, in order.")


class Lock(_Short):
    """The content of ``placement.lock.yaml``."""

    _optional = frozenset({"to", "pools", "machines", "fallbacks"})

    version: Version = 1
    fleet_sha256: str = Field(description="Digest of the fleet that was placed.")
    to: str | None = Field(
        default=None, description="Where the fleet was moved to, if it was."
    )
    pools: dict[PoolName, Pool] = Field(
        default_factory=dict[str, Pool],
        description="Pools that were made for classes away from their own pool.",
    )
    machines: list[LockedMachine] = Field(
        default_factory=list[LockedMachine],
        description="The machines of those pools, by cell.",
    )
    placed: list[Placed] = Field(default_factory=list[Placed])
    unplaced: list[Unplaced] = Field(default_factory=list[Unplaced])
    fallbacks: list[Fallbacks] = Field(
        default_factory=list[Fallbacks],
        description="Where each class goes when capacity is short, in order.",
    )

    @model_validator(mode="before")
    @classmethod
    def _names(cls, data: Any) -> Any:
        """Give each pool the key that it stands under as its name."""
        if not is_mapping(data) or not is_mapping(data.get("pools")):
            return data
        named = {
            key: {**entry, "name": key} if is_mapping(entry) else entry
            for key, entry in data["pools"].items()
        }
        return {**data, "pools": named}

    @field_serializer("pools")
    def _pools(self, pools: dict[str, Pool]) -> dict[str, Any]:
        return {
            name: pool.model_dump(mode="json", exclude_defaults=True)
            for name, pool in pools.items()
        }

    def machine_in(
        self, cell: str, machine: str, capacity: Capacity
    ) -> LockedMachine | None:
        """Return what the lock holds of a made pool's machine in a cell."""
        wanted = (cell, machine, capacity)
        found = (m for m in self.machines if (m.cell, m.machine, m.capacity) == wanted)
        return next(found, None)

    def pools_of(self, fleet: Fleet) -> dict[str, Pool]:
        """Return the pools of a fleet and those that were made for it, by name."""
        return {**fleet.pools, **self.pools}

    def in_cell(self, cell: str) -> list[Placed]:
        """Return the classes that a cell serves, in the lock's order."""
        return [placed for placed in self.placed if placed.cell == cell]


def fleet_digest(fleet: Fleet) -> str:
    """Return the SHA-256 of a fleet's content (comments and order do not count)."""
    content = fleet.model_dump(mode="json", exclude_none=True)
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def make_lock(fleet: Fleet) -> Lock:
    """Place every class on the pool that its definition names.

    Each class is placed in every cell where its pool exists; a class that is
    external, or whose pool exists in no cell, is listed as unplaced with the reason.
    """
    placed: list[Placed] = []
    served: set[str] = set()
    for cell in fleet.cells.values():
        for runner_class in fleet.classes_in(cell):
            pool = fleet.pools[runner_class.pool or ""]
            placed.append(placed_at_home(runner_class, cell, pool))
            served.add(runner_class.name)
    unplaced = [
        Unplaced(
            runner_class=c.name,
            why="external"
            if c.placement is PlacementMode.EXTERNAL
            else "no cell has its pool",
        )
        for c in fleet.runner_classes.values()
        if c.name not in served
    ]
    return Lock(fleet_sha256=fleet_digest(fleet), placed=placed, unplaced=unplaced)


def placed_at_home(runner_class: RunnerClass, cell: Cell, pool: Pool) -> Placed:
    """Return a class as its own pool serves it: the pool's shapes and weights."""
    return Placed(
        runner_class=runner_class.name,
        cell=cell.name,
        pool=pool.name,
        rungs=[
            Rung(machine=m.machine, weight=m.weight, capacity=m.capacity)
            for m in runner_class.machines(pool)
        ],
    )


def write_lock(lock: Lock, path: str | FilePath) -> None:
    """Write a lock file in one step: the old one stays until the new one is whole.

    Raises:
        InputError: The file cannot be written there.
    """
    target = FilePath(path)
    temporary = target.with_name(f".{target.name}.tmp")
    yaml = YAML()
    yaml.width = 120
    text = io.StringIO("")
    text.write("# Written by `runfleet place --write`; do not edit by hand.\n")
    yaml.dump(lock.model_dump(mode="json"), text)  # type: ignore[reportUnknownMemberType]
    try:
        temporary.write_text(text.getvalue(), encoding="utf-8")
        temporary.replace(target)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        message = f"cannot be written: {error.strerror}"
        raise InputError([Problem(str(path), 0, "", message)]) from None


def read_lock(path: str | FilePath, fleet: Fleet) -> Lock:
    """Read the lock of a fleet.

    Raises:
        InputError: The file is missing or malformed.
        LockError: The lock was made for another state of the fleet file, or names
            a class, cell, pool or machine that the fleet does not have.
    """
    source = read_source(path)
    problems = [*source.problems]
    try:
        lock = Lock.model_validate(source.data)
    except ValidationError as error:
        problems += model_problems(error, Lock, source)
        raise InputError(problems) from None
    if problems:
        raise InputError(problems)
    if lock.fleet_sha256 != fleet_digest(fleet):
        problems.append(
            source.problem(
                ("fleet_sha256",),
                f"the lock is older than the fleet file; run `{_place_command(lock)}`",
            )
        )
    problems += _unknown(lock, fleet, source)
    if problems:
        raise LockError(problems)
    return lock


def _unknown(lock: Lock, fleet: Fleet, source: Source) -> Iterator[Problem]:
    """Yield what a lock says that its fleet does not bear out."""
    seen: set[tuple[str, str]] = set()
    pools = lock.pools_of(fleet)
    for name in lock.pools:
        if name in fleet.pools:
            yield source.problem(
                ("pools", name), "is a pool of the fleet file too", found=name
            )
    for index, placed in enumerate(lock.placed):
        at: Path = ("placed", index)
        missing = [
            (attribute, getattr(placed, attribute))
            for attribute, known in (
                ("runner_class", fleet.runner_classes),
                ("cell", fleet.cells),
                ("pool", pools),
            )
            if getattr(placed, attribute) not in known
        ]
        for attribute, name in missing:
            yield source.problem(
                (*at, attribute), "is not in the fleet file", found=name
            )
        if (placed.runner_class, placed.cell) in seen:
            yield source.problem(
                (*at, "runner_class"),
                f"is placed in cell {placed.cell} twice",
                found=placed.runner_class,
            )
        seen.add((placed.runner_class, placed.cell))
        if missing:
            continue
        pool = pools[placed.pool]
        cell = fleet.cells[placed.cell]
        if pool.provider != cell.provider or cell.region in pool.exclude_regions:
            yield source.problem(
                (*at, "pool"),
                f"does not exist in cell {placed.cell}",
                found=placed.pool,
            )
        shapes = fleet.runner_classes[placed.runner_class].machines(pool)
        machines = [shape.machine for shape in shapes]
        for place, rung in enumerate(placed.rungs):
            if rung.machine not in machines:
                yield source.problem(
                    (*at, "rungs", place, "machine"),
                    f"is not a machine of pool {pool.name} for this class",
                    found=rung.machine,
                    allowed=", ".join(machines),
                )
    yield from _unknown_steps(lock, fleet, source)
    named = {unplaced.runner_class for unplaced in lock.unplaced}
    for index, unplaced in enumerate(lock.unplaced):
        if unplaced.runner_class not in fleet.runner_classes:
            yield source.problem(
                ("unplaced", index, "runner_class"),
                "is not in the fleet file",
                found=unplaced.runner_class,
            )
    named |= {placed.runner_class for placed in lock.placed}
    for name in fleet.runner_classes:
        if name not in named:
            yield source.problem((), "says nothing of a class", found=name)


def _unknown_steps(lock: Lock, fleet: Fleet, source: Source) -> Iterator[Problem]:
    """Yield fallback steps, zeros and machines that do not fit the rest of the lock."""
    served = {
        (placed.runner_class, placed.cell): {rung.machine for rung in placed.rungs}
        for placed in lock.placed
    }
    for index, fallbacks in enumerate(lock.fallbacks):
        for place, step in enumerate(fallbacks.steps):
            known = served.get((fallbacks.runner_class, step.cell), set())
            for machine in step.machines:
                if machine not in known:
                    yield source.problem(
                        ("fallbacks", index, "steps", place),
                        f"{fallbacks.runner_class} is not placed there",
                        found=f"{machine} in cell {step.cell}",
                    )
    for index, unplaced in enumerate(lock.unplaced):
        if unplaced.cell is not None and unplaced.cell not in fleet.cells:
            yield source.problem(
                ("unplaced", index, "cell"),
                "is not in the fleet file",
                found=unplaced.cell,
                allowed=", ".join(fleet.cells),
            )
    described = {(m.cell, m.machine, m.capacity) for m in lock.machines}
    for index, placed in enumerate(lock.placed):
        for place, rung in enumerate(placed.rungs):
            made = placed.pool in lock.pools
            key = (placed.cell, rung.machine, rung.capacity)
            if made and key not in described:
                yield source.problem(
                    ("placed", index, "rungs", place, "machine"),
                    f"has no entry under `machines` for cell {placed.cell}, "
                    f"{rung.capacity}",
                    found=rung.machine,
                )


def _place_command(lock: Lock) -> str:
    to = f" --to {lock.to}" if lock.to is not None else ""
    return f"runfleet place{to} --write"
