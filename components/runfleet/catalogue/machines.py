"""Machines: what each cloud's instance types hold and cost, with source and date.

The table is the file ``data/machines.csv``, one row per instance type; the column
``source`` is a key of ``data/machine_sources.csv``, which names the public
repository, file and commit. A blank cell means "no source says", never zero, so a
missing price can never look cheap. Clouds spell the same accelerator differently
(``H100-MEGA``, ``H100-NVL``, ``A100-PCIe``), so ``accelerator`` holds one name per
model, which runner classes use, beside the cloud's own in
``accelerator_as_named``; where such variants differ in memory, that column tells
them apart. Gaudi cards have the vendor ``habana``, whose device plugin serves them.

Rows that nobody can start any more, or that no node pool can use, stay in the table
with a status and the reason, so that a message can say why a machine is refused.
"""

from __future__ import annotations

import csv
import datetime as dt
import io
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib import resources
from pathlib import Path as FilePath

from runfleet.errors import InputError, Problem
from runfleet.spec.cells import Provider

MACHINES_NAME = "machines.csv"
SOURCES_NAME = "machine_sources.csv"

_ARCHITECTURES = ("amd64", "arm64", "s390x", "ppc64le")
_COLUMNS: tuple[str, ...] = (
    "provider",
    "machine",
    "arch",
    "vcpu",
    "memory_gib",
    "accelerator_vendor",
    "accelerator",
    "accelerator_as_named",
    "accelerator_count",
    "accelerator_memory_gib",
    "ondemand_usd_h",
    "spot_usd_h",
    "price_region",
    "status",
    "reason",
    "node_name",
    "as_of",
    "source",
)


class Status(StrEnum):
    """Whether a node pool can have a machine.

    ``available``: yes; ``unavailable``: it exists, but no node pool can use it or
    only chosen customers get it; ``retired``: new ones are not sold any more.
    """

    AVAILABLE = "available"
    UNAVAILABLE = "unavailable"
    RETIRED = "retired"


@dataclass(frozen=True)
class Machine:
    """One instance type of one cloud.

    Attributes:
        provider: Whose cloud it is.
        name: The cloud's name of the instance type.
        arch: CPU architecture as Kubernetes spells it.
        vcpu: Virtual CPUs.
        memory_gib: Memory in GiB, as advertised; a node can use a little less.
        accelerator_vendor: Whose device plugin serves it; empty without one.
        accelerator: Model in one spelling for all clouds; empty without one.
        accelerator_as_named: Model as the cloud's source spells it.
        accelerator_count: Accelerators; below 1 for a share, 0 without one.
        accelerator_memory_gib: Memory of each accelerator in GiB, if known.
        ondemand_usd_h: List price in USD per hour, if a source has it.
        spot_usd_h: Spot price in USD per hour, if a source has it.
        price_region: Region that the prices are of; empty without a price.
        status: Whether a node pool can have it.
        reason: Why not, or what else is to know; may be empty.
        node_name: What node pools call it, where that differs (IBM Cloud's worker
            flavours); empty where none is known or the name is the same.
        as_of: Day that the source is of.
        source: Where the row is from, as a key of :attr:`Machines.sources`.
    """

    provider: Provider
    name: str
    arch: str
    vcpu: float
    memory_gib: float
    accelerator_vendor: str
    accelerator: str
    accelerator_as_named: str
    accelerator_count: float
    accelerator_memory_gib: float | None
    ondemand_usd_h: float | None
    spot_usd_h: float | None
    price_region: str
    status: Status
    reason: str
    node_name: str
    as_of: dt.date
    source: str

    @property
    def family(self) -> str:
        """The part of an AWS name before the dot; elsewhere the whole name."""
        return self.name.split(".")[0]


@dataclass(frozen=True)
class Machines:
    """The table of machines.

    Attributes:
        rows: Machines by provider and name, in file order.
        sources: What each source key stands for.
    """

    rows: dict[tuple[Provider, str], Machine]
    sources: dict[str, str]

    @classmethod
    def load(cls, path: str | FilePath | None = None) -> Machines:
        """Read the package's table, or another one in the same form.

        Nothing is cached: keep the result where several look-ups are made.

        Args:
            path: A table to read instead; its sources stand beside it in
                ``machine_sources.csv``.

        Raises:
            InputError: Rows are malformed, or two name the same machine; all such
                rows are in it, with their lines.
        """
        if path is None:
            data = resources.files("runfleet.catalogue").joinpath("data")
            table = data.joinpath(MACHINES_NAME).read_text(encoding="utf-8")
            notes = data.joinpath(SOURCES_NAME).read_text(encoding="utf-8")
            return _read(MACHINES_NAME, table, SOURCES_NAME, notes)
        table_path = FilePath(path)
        notes_path = table_path.with_name(SOURCES_NAME)
        return _read(
            str(table_path), _text(table_path), str(notes_path), _text(notes_path)
        )

    def get(self, provider: Provider | str, name: str) -> Machine | None:
        """Return the machine of a provider by name, or ``None``."""
        return self.rows.get((Provider(provider), name))

    def of(self, provider: Provider | str) -> Iterator[Machine]:
        """Yield the machines of a provider, in file order."""
        wanted = Provider(provider)
        return (machine for machine in self if machine.provider is wanted)

    def providers_of(self, name: str) -> list[Provider]:
        """Return the providers that have a machine of this name."""
        return [machine.provider for machine in self if machine.name == name]

    def __iter__(self) -> Iterator[Machine]:
        """Yield all machines, in file order."""
        return iter(self.rows.values())

    def __len__(self) -> int:
        """Return how many machines there are."""
        return len(self.rows)


def _text(path: FilePath) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        problem = Problem(str(path), 0, "", f"cannot be read: {reason}")
        raise InputError([problem]) from None


def _read(name: str, table: str, notes_name: str, notes: str) -> Machines:
    sources = _sources(notes_name, notes)
    reader = csv.reader(io.StringIO(table, newline=""), strict=True)
    problems: list[Problem] = []
    rows: dict[tuple[Provider, str], Machine] = {}
    try:
        header = next(reader, list[str]())
        if tuple(header) != _COLUMNS:
            found = ",".join(header)
            raise InputError(
                [
                    Problem(
                        name,
                        1,
                        "",
                        "does not start with the columns of a machine table",
                        found=found or "nothing",
                        allowed=",".join(_COLUMNS),
                    )
                ]
            )
        for cells in reader:
            line = reader.line_num
            if not cells:
                continue
            row = _Row(name, line, cells, problems)
            machine = row.machine(sources)
            if machine is None:
                continue
            key = (machine.provider, machine.name)
            if key in rows:
                row.report("machine", "stands twice", machine.name)
            else:
                rows[key] = machine
    except csv.Error as error:
        message = f"is not valid CSV: {error}"
        problems.append(Problem(name, reader.line_num, "", message))
    if problems:
        raise InputError(problems)
    return Machines(rows, sources)


def _sources(name: str, notes: str) -> dict[str, str]:
    try:
        rows = list(csv.reader(io.StringIO(notes, newline=""), strict=True))
    except csv.Error as error:
        raise InputError([Problem(name, 0, "", f"is not valid CSV: {error}")]) from None
    problems = [
        Problem(name, line, "", "has other than two columns", found=",".join(row))
        for line, row in enumerate(rows, 1)
        if len(row) != 2
    ]
    if problems:
        raise InputError(problems)
    return {row[0]: row[1] for row in rows[1:]}


class _Row:
    """One row while it is read: every wrong cell of it is reported."""

    def __init__(
        self, file: str, line: int, cells: list[str], problems: list[Problem]
    ) -> None:
        self._file, self._line, self._cells = file, line, cells
        self._problems = problems
        self._before = len(problems)

    def report(self, column: str, message: str, found: str, allowed: str = "") -> None:
        self._problems.append(
            Problem(self._file, self._line, column, message, found, allowed)
        )

    def machine(self, sources: dict[str, str]) -> Machine | None:
        """Return the machine of the row, or ``None`` after reporting what is wrong."""
        if len(self._cells) != len(_COLUMNS):
            found = str(len(self._cells))
            self.report("", f"has not {len(_COLUMNS)} cells", found)
            return None
        cell = dict(zip(_COLUMNS, self._cells, strict=True))
        provider = self._choice(cell, "provider", [str(p) for p in Provider])
        self._choice(cell, "arch", _ARCHITECTURES)
        status = self._choice(cell, "status", [str(s) for s in Status])
        self._choice(cell, "source", sorted(sources))
        if not cell["machine"]:
            self.report("machine", "is missing", "nothing")
        vcpu = self._number(cell, "vcpu")
        memory = self._number(cell, "memory_gib")
        for column in ("vcpu", "memory_gib"):
            if not cell[column]:
                self.report(column, "is missing", "nothing", "a number above 0")
        count = self._number(cell, "accelerator_count")
        if bool(cell["accelerator"]) != (count is not None):
            self.report(
                "accelerator_count",
                "an accelerator and its count go together",
                cell["accelerator_count"] or "nothing",
            )
        accelerator_memory = self._number(cell, "accelerator_memory_gib")
        ondemand = self._number(cell, "ondemand_usd_h")
        spot = self._number(cell, "spot_usd_h")
        if (ondemand or spot) and not cell["price_region"]:
            self.report("price_region", "a price has a region", "nothing")
        if status != Status.AVAILABLE and not cell["reason"]:
            self.report("reason", f"a machine that is {status} has a reason", "nothing")
        as_of = self._date(cell["as_of"])
        if len(self._problems) > self._before:
            return None
        return Machine(
            provider=Provider(provider),
            name=cell["machine"],
            arch=cell["arch"],
            vcpu=vcpu or 0,
            memory_gib=memory or 0,
            accelerator_vendor=cell["accelerator_vendor"],
            accelerator=cell["accelerator"],
            accelerator_as_named=cell["accelerator_as_named"],
            accelerator_count=count or 0,
            accelerator_memory_gib=accelerator_memory,
            ondemand_usd_h=ondemand,
            spot_usd_h=spot,
            price_region=cell["price_region"],
            status=Status(status),
            reason=cell["reason"],
            node_name=cell["node_name"],
            as_of=as_of,
            source=cell["source"],
        )

    def _choice(
        self, cell: dict[str, str], column: str, allowed: list[str] | tuple[str, ...]
    ) -> str:
        if cell[column] not in allowed:
            listed = ", ".join(allowed)
            found = cell[column] or "nothing"
            self.report(column, "is not one of the allowed values", found, listed)
        return cell[column]

    def _number(self, cell: dict[str, str], column: str) -> float | None:
        """Return a positive number, or ``None`` for a blank: unknown, not zero."""
        if not cell[column]:
            return None
        try:
            value = float(cell[column])
        except ValueError:
            value = 0.0
        if not 0 < value < float("inf"):
            allowed = "a number above 0, or blank when no source says"
            self.report(column, "is not a number above 0", cell[column], allowed)
            return None
        return value

    def _date(self, value: str) -> dt.date:
        try:
            return dt.date.fromisoformat(value)
        except ValueError:
            self.report("as_of", "is not a date", value or "nothing", "2026-08-21")
            return dt.date.min
