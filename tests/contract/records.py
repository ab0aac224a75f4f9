"""Records of a case: how they are made, and how one is changed for a mutation."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from runfleet.catalogue.pins import load_pins
from runfleet.placement import CellPlan, make_lock, plan_cell
from runfleet.placement.lock import LOCK_NAME, write_lock
from runfleet.rehearsal.record import Record, ResourceRecord, read_record
from runfleet.rehearsal.stacks import rehearse_stacks
from runfleet.spec import Fleet, load_fleet

CENTRAL = "central"


@dataclass(frozen=True)
class Rehearsed:
    """A case's fleet and its records.

    Attributes:
        root: The project's folder.
        fleet: The fleet.
        plan: What its cell builds.
        records: The records by stack: ``central`` and the cell.
        cell: Name of the cell.
    """

    root: Path
    fleet: Fleet
    plan: CellPlan
    records: Mapping[str, Record]
    cell: str

    @property
    def record(self) -> Record:
        """The cell's record."""
        return self.records[self.cell]

    def changed(self, edit: Callable[[Record], Record]) -> Rehearsed:
        """Return the same with the cell's record changed."""
        return replace(self, records={**self.records, self.cell: edit(self.record)})


def write_project(root: Path, fleet: str, cell: str) -> Fleet:
    """Write a project as a user has it: settings, program, fleet file and lock."""
    (root / "stacks").mkdir(parents=True)
    (root / "Pulumi.yaml").write_text(
        "name: runfleet\nruntime: python\nmain: stacks\nstackConfigDir: stacks\n"
    )
    (root / "stacks" / "__main__.py").write_text(
        "from runfleet import program\n\nprogram.run()\n"
    )
    for stack in (CENTRAL, cell):
        (root / "stacks" / f"Pulumi.{stack}.yaml").write_text(
            "config:\n  runfleet:fleet: fleet.yaml\n"
        )
    path = root / "fleet.yaml"
    path.write_text(fleet)
    made = load_fleet(path).fleet
    write_lock(make_lock(made), path.with_name(LOCK_NAME))
    return made


def rehearse_project(root: Path, cell: str, out: Path, emulate: bool = False) -> None:
    """Rehearse both stacks as ``runfleet rehearse`` does, each in its own process."""
    outcomes = rehearse_stacks(root, [CENTRAL, cell], out, emulate=emulate)
    assert [(o.stack, o.error) for o in outcomes] == [(CENTRAL, ""), (cell, "")]


def read_project(root: Path, fleet: Fleet, cell: str, out: Path) -> Rehearsed:
    """Read what a rehearsal wrote."""
    records = {
        stack: read_record(out / stack / "record.json") for stack in (CENTRAL, cell)
    }
    plan = plan_cell(fleet, make_lock(fleet), fleet.cells[cell], load_pins())
    return Rehearsed(root, fleet, plan, records, cell)


def only(record: Record, kind: str) -> ResourceRecord:
    """Return the one resource of a type."""
    (found,) = record.by_type(kind)
    return found


def change(
    record: Record,
    kind: str,
    edit: Callable[[dict[str, Any]], object],
    name: str = "",
) -> Record:
    """Return a record in which one resource's inputs are edited.

    Its outputs follow: what the program gives, the cloud gives back.

    Args:
        record: The record; it stays as it is.
        kind: Type of the resource.
        edit: Edits the inputs in place.
        name: Its logical name; the first of its type without one.
    """
    found = next(r for r in record.by_type(kind) if not name or r.name == name)
    inputs = copy.deepcopy(dict(found.inputs))
    edit(inputs)
    assert inputs != found.inputs, f"the edit of {found.name} changes nothing"
    outputs = {
        key: value
        for key, value in found.outputs.items()
        if key in inputs or key not in found.inputs
    }
    outputs |= {
        key: value
        for key, value in inputs.items()
        if value != found.inputs.get(key) or key not in found.inputs
    }
    return swap(record, found.urn, replace(found, inputs=inputs, outputs=outputs))


def swap(record: Record, urn: str, made: ResourceRecord | None) -> Record:
    """Return a record with a resource replaced, or left out with ``None``."""
    resources = [made if r.urn == urn else r for r in record.resources]
    return replace(record, resources=tuple(r for r in resources if r is not None))


def drop(record: Record, kind: str, name: str, also: str = "") -> Record:
    """Return a record without a resource.

    Args:
        record: The record.
        kind: Type of the resource.
        name: Its logical name.
        also: Type whose resources with the same parent are left out too.
    """
    found = next(r for r in record.by_type(kind) if r.name == name)
    gone = {found.urn} | {
        r.urn for r in record.children(found.parent) if r.type == also
    }
    return replace(
        record, resources=tuple(r for r in record.resources if r.urn not in gone)
    )


def depends_on(record: Record, urn: str) -> set[str]:
    """Return all that a resource depends on, directly or not.

    Parents count, as they do for the engine: a child is deleted before its parent.
    """
    known = {r.urn: r for r in record.resources}
    found: set[str] = set()
    wanted = [urn]
    while wanted:
        resource = known.get(wanted.pop())
        if resource is None:
            continue
        new = {*resource.dependencies, resource.parent} - found - {""}
        found |= new
        wanted += new
    return found


def texts(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield (path, text) of every text in some inputs, JSON inside texts included."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from texts(item, f"{path}.{key}")
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from texts(item, f"{path}[{index}]")
    elif isinstance(value, str):
        yield path, value
        if value.lstrip().startswith(("{", "[")):
            try:
                yield from texts(json.loads(value), path)
            except ValueError:
                return
