"""What a person reads after a rehearsal: one summary per stack.

Resources by type, runner classes and node pools, who may access what, findings,
unresolved pins. All of it is read from the records and the fleet file.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runfleet.catalogue.pins import PINS_NAME, load_pins
from runfleet.catalogue.read import read_fleet
from runfleet.placement.lock import LOCK_NAME, read_lock
from runfleet.placement.plan import CENTRAL_STACK, CellPlan, plan_cell
from runfleet.rehearsal.record import Record, read_record
from runfleet.review.access import Matrix, access_matrix, by_role
from runfleet.review.fleet import record_findings
from runfleet.spec.findings import Finding
from runfleet.spec.fleet import Fleet


@dataclass(frozen=True)
class ClassRow:
    """The classes of one role and trust level.

    Attributes:
        role: Role.
        trust: Trust level.
        classes: Number of classes.
        pools: Number of pools that serve them.
        node_pools: Number of node pools of these.
        at_most: Runners at most, over all classes; ``unbounded`` when one is.
    """

    role: str
    trust: str
    classes: int
    pools: int
    node_pools: int
    at_most: str

    def cells(self) -> tuple[object, ...]:
        """Return the cells of a table row."""
        return (
            self.role,
            self.trust,
            self.classes,
            self.pools,
            self.node_pools,
            self.at_most,
        )


@dataclass(frozen=True)
class AccessRow:
    """What the classes of one role may access.

    Attributes:
        who: The role.
        classes: Number of classes.
        may: What they may do.
        equal: Whether that is exactly what their grants say.
    """

    who: str
    classes: int
    may: str
    equal: str

    def cells(self) -> tuple[object, ...]:
        """Return the cells of a table row."""
        return (self.who, self.classes, self.may, self.equal)


@dataclass(frozen=True)
class Summary:
    """One stack.

    Attributes:
        stack: Its name.
        error: Why it does not rehearse; empty when it does.
        types: Number of resources by type.
        class_count: Runner classes that it serves.
        node_pools: Node pools that it has.
        classes: Its classes by role and trust level.
        access: Who may access what.
        identities: Cloud identities behind them.
        findings: Findings, waived ones included.
        unresolved_pins: Pins that nobody resolved.
    """

    stack: str
    error: str = ""
    types: Mapping[str, int] = field(default_factory=dict[str, int])
    class_count: int = 0
    node_pools: int = 0
    classes: tuple[ClassRow, ...] = ()
    access: tuple[AccessRow, ...] = ()
    identities: int = 0
    findings: tuple[Finding, ...] = ()
    unresolved_pins: tuple[str, ...] = ()

    @property
    def open_findings(self) -> list[Finding]:
        """Findings that no waiver covers."""
        return [finding for finding in self.findings if not finding.waived_by]

    @property
    def good(self) -> bool:
        """Whether there is nothing to mend."""
        return (
            not self.error
            and not self.open_findings
            and all(row.equal == "yes" for row in self.access)
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the summary as plain data for ``--json``."""
        return {
            "stack": self.stack,
            "error": self.error,
            "resources": sum(self.types.values()),
            "types": dict(self.types),
            "class_count": self.class_count,
            "node_pools": self.node_pools,
            "classes": [vars(row) for row in self.classes],
            "access": [vars(row) for row in self.access],
            "identities": self.identities,
            "findings": [finding.as_dict() for finding in self.findings],
            "unresolved_pins": list(self.unresolved_pins),
        }


def summarise(
    fleet_path: Path,
    out: Path,
    stacks: Sequence[str],
    today: dt.date,
    failed: Mapping[str, str],
) -> list[Summary]:
    """Read the records of stacks and sum up each.

    Args:
        fleet_path: The fleet file.
        out: Folder of the records.
        stacks: The stacks, in the order to show.
        today: The day that waivers and reservations are judged on.
        failed: Why stacks did not rehearse, by name; these have no record.

    Raises:
        InputError: The fleet file, its lock, waivers or a record has problems.
    """
    fleet = read_fleet(fleet_path).fleet
    records = {
        stack: read_record(out / stack / "record.json")
        for stack in stacks
        if stack not in failed
    }
    known = dict(records)
    central = out / CENTRAL_STACK / "record.json"
    if CENTRAL_STACK not in known and CENTRAL_STACK not in failed and central.exists():
        known[CENTRAL_STACK] = read_record(central)
    findings = record_findings(records.values(), fleet_path, today)
    matrix = access_matrix(fleet, known, fleet_path, records)
    summaries = [
        Summary(stack, error=failed[stack])
        if stack in failed
        else _summary(records[stack], fleet, fleet_path, matrix, findings)
        for stack in stacks
    ]
    about_waivers = tuple(findings.get("", ()))
    if about_waivers and summaries:
        summaries.append(Summary("(waivers)", findings=about_waivers))
    return summaries


def _summary(
    record: Record,
    fleet: Fleet,
    fleet_path: Path,
    matrix: Matrix,
    findings: Mapping[str, list[Finding]],
) -> Summary:
    plan: CellPlan | None = None
    if record.stack in fleet.cells:
        lock = read_lock(fleet_path.with_name(LOCK_NAME), fleet)
        pins = load_pins(fleet_path.with_name(PINS_NAME))
        plan = plan_cell(fleet, lock, fleet.cells[record.stack], pins)
    return Summary(
        stack=record.stack,
        types=record.count_by_type(),
        class_count=len(plan.classes) if plan else 0,
        node_pools=len(plan.node_pools) if plan else 0,
        classes=_classes(plan) if plan else (),
        access=tuple(
            AccessRow(role, count, may, equal)
            for stack, role, count, may, equal in by_role(matrix)
            if stack == record.stack
        ),
        identities=matrix.identities.get(record.stack, 0),
        findings=tuple(findings.get(record.stack, ())),
        unresolved_pins=tuple(str(name) for name in record.unresolved_pins),
    )


def _classes(plan: CellPlan) -> tuple[ClassRow, ...]:
    groups: dict[tuple[str, str], list[str]] = {}
    for planned in plan.classes:
        key = (str(planned.runner_class.role), str(planned.runner_class.trust))
        groups.setdefault(key, []).append(planned.name)
    rows: list[ClassRow] = []
    for (role, trust), names in groups.items():
        chosen = [planned for planned in plan.classes if planned.name in set(names)]
        pools = {planned.pool.name for planned in chosen}
        release = chosen[0].runner_class.release
        maxima = [planned.runner_class.scale.max for planned in chosen]
        total = sum(value or 0 for value in maxima)
        rows.append(
            ClassRow(
                role,
                trust,
                len(chosen),
                len(pools),
                sum(
                    1
                    for pool in plan.node_pools
                    if pool.pool.name in pools and pool.release == release
                ),
                "unbounded" if None in maxima else str(total),
            )
        )
    return tuple(rows)
