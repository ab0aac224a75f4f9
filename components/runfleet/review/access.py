"""The access matrix: what identities may do against what their grants say.

A row is one runner class, one verb, one part of one store. *Expected* comes from the
fleet file's grants and the rule of trust: a class reads what was written at its own
trust or a higher one, and writes at its own. *Allowed* comes from an evaluator that
is written from the cloud's published evaluation logic and reads the policies of the
record, never from the code that made them. The two must be equal in every row; what
an identity may do beyond its rows is a difference too.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, cast

from runfleet.catalogue.pins import load_pins
from runfleet.errors import MissingError
from runfleet.placement.lock import LOCK_NAME, make_lock, read_lock
from runfleet.placement.plan import CENTRAL_STACK, PlannedClass, plan_cell
from runfleet.rehearsal.record import Record, read_record
from runfleet.review.evaluators.parts import Answer, Part
from runfleet.spec.cells import Cell, Provider
from runfleet.spec.classes import RunnerClass
from runfleet.spec.fleet import Fleet
from runfleet.spec.github import FederatedRepository, GitHub
from runfleet.spec.roles import Grant, Scope, Trust, Verb


class Reader(Protocol):
    """A cloud's evaluator, as the matrix asks it."""

    problems: tuple[str, ...]
    not_cross_checked: Sequence[str]

    def parts(self, scope: Scope, exported: Mapping[str, Any]) -> list[Part]:
        """Return the parts of the stores that a stack exports."""
        ...

    def pod(
        self, namespace: str, service_account: str, cluster: str, parts: Sequence[Part]
    ) -> Answer:
        """Return what the pods of a service account may do with each part."""
        ...

    def federated(
        self,
        identity: str,
        subjects: Sequence[str],
        github: GitHub,
        parts: Sequence[Part],
    ) -> Answer:
        """Return what jobs with these token subjects may do through an identity."""
        ...


@dataclass(frozen=True)
class Row:
    """One cell of the matrix.

    Attributes:
        stack: Stack that the class runs in, or ``central`` for external classes.
        runner_class: Name of the class.
        role: Its role.
        verb: What is done.
        store: Kind of the store.
        scope: Local or central.
        part: Part of the store: trust level, images, copies of a registry.
        expected: Whether the grants say that it may.
        allowed: ``full``, ``partial``, ``none`` or ``cannot-tell``.
    """

    stack: str
    runner_class: str
    role: str
    verb: str
    store: str
    scope: str
    part: str
    expected: bool
    allowed: str

    @property
    def equal(self) -> bool:
        """Whether the policies allow exactly what the grants say."""
        return self.allowed == ("full" if self.expected else "none")

    def describe(self) -> str:
        """Say the row in one line."""
        expected = "may" if self.expected else "may not"
        return (
            f"{self.stack} {self.runner_class} ({self.role}) {expected} {self.verb} "
            f"{self.store} {self.scope} [{self.part}]: policies allow {self.allowed}"
        )


@dataclass(frozen=True)
class Beyond:
    """What an identity may do beyond its rows.

    Attributes:
        stack: Stack that the class runs in.
        runner_class: Name of the class.
        what: What it may do.
    """

    stack: str
    runner_class: str
    what: str

    def describe(self) -> str:
        """Say it in one line."""
        return f"{self.stack} {self.runner_class} beyond its grants: {self.what}"


@dataclass(frozen=True)
class Matrix:
    """The whole matrix.

    Attributes:
        rows: All rows.
        beyond: What identities may do beyond their rows.
        identities: Number of cloud identities behind the rows, by stack.
        not_cross_checked: Rules of the evaluators that no emulator confirms.
    """

    rows: tuple[Row, ...]
    beyond: tuple[Beyond, ...] = ()
    identities: Mapping[str, int] = field(default_factory=dict[str, int])
    not_cross_checked: tuple[str, ...] = ()

    @property
    def differences(self) -> list[Row | Beyond]:
        """Everything that is not as the grants say."""
        return [*(row for row in self.rows if not row.equal), *self.beyond]

    def as_dict(self) -> dict[str, Any]:
        """Return the matrix as plain data for ``--json``."""
        return {
            "rows": [{**vars(row), "equal": row.equal} for row in self.rows],
            "beyond": [vars(item) for item in self.beyond],
            "identities": dict(self.identities),
            "differences": [item.describe() for item in self.differences],
            "not_cross_checked": list(self.not_cross_checked),
        }


def read_records(folder: Path, fleet: Fleet) -> dict[str, Record]:
    """Read the records of all stacks of a fleet.

    Raises:
        MissingError: A record is missing; the message names the command to make it.
    """
    stacks = [*([CENTRAL_STACK] if fleet.central else []), *fleet.cells]
    records: dict[str, Record] = {}
    for stack in stacks:
        path = folder / stack / "record.json"
        if not path.exists():
            raise MissingError(
                f"there is no record of stack {stack} ({path})",
                f"runfleet rehearse {stack}",
            )
        records[stack] = read_record(path)
    return records


def access_matrix(
    fleet: Fleet,
    records: Mapping[str, Record],
    fleet_path: Path | None = None,
    stacks: Iterable[str] | None = None,
) -> Matrix:
    """Compare what every class may do with what its grants say.

    Args:
        fleet: The fleet.
        records: Records by stack; those of cells need that of ``central``.
        fleet_path: The fleet file, to read its lock; without it every class is
            taken to be where its definition puts it.
        stacks: Stacks to show; default: all that have a record.
    """
    wanted = set(records if stacks is None else stacks)
    lock = (
        read_lock(fleet_path.with_name(LOCK_NAME), fleet)
        if fleet_path is not None
        else make_lock(fleet)
    )
    central = records.get(CENTRAL_STACK)
    found = _Found()
    for cell in fleet.cells.values():
        if cell.name not in records or cell.name not in wanted:
            continue
        reader = _reader(cell.provider, _accounts(fleet, records, cell.provider))
        parts = reader.parts(Scope.LOCAL, records[cell.name].outputs["stores"])
        if central is not None:
            parts += reader.parts(Scope.CENTRAL, central.outputs["stores"])
        plan = plan_cell(fleet, lock, cell, load_pins())
        for planned in plan.classes:
            answer = reader.pod(
                planned.job_namespace, planned.service_account, cell.cluster, parts
            )
            found.add_planned(cell, planned, parts, answer)
        found.finish(reader)
    if central is not None and fleet.central is not None and CENTRAL_STACK in wanted:
        provider = fleet.central.provider
        reader = _reader(provider, _accounts(fleet, records, provider))
        parts = reader.parts(Scope.CENTRAL, central.outputs["stores"])
        federated: Mapping[str, str] = central.outputs.get("federated", {})
        for runner_class in fleet.external():
            identity = federated.get(runner_class.name)
            if identity is not None:
                subjects = expected_subjects(
                    fleet.github.federation, runner_class.federation or ""
                )
                answer = reader.federated(identity, subjects, fleet.github, parts)
                found.add_external(runner_class, parts, answer)
        found.finish(reader)
    return found.matrix()


def expected(grants: Iterable[Grant], trust: Trust, part: Part, verb: Verb) -> bool:
    """Say whether a class with grants and a trust level may do a verb on a part."""
    levels = list(Trust)
    for grant in grants:
        if (grant.verb, grant.store, grant.scope) != (verb, part.kind, part.scope):
            continue
        if part.trust is None:
            return verb is Verb.READ
        if verb is Verb.READ:
            return levels.index(part.trust) >= levels.index(trust)
        return part.trust is trust
    return False


def expected_subjects(
    repositories: Iterable[FederatedRepository], environment: str
) -> list[str]:
    """Return the token subjects of an environment's jobs, in both forms.

    Source: GitHub's OIDC reference; the second form is that of repositories made,
    renamed or transferred since 2026-07-15.
    """
    value = environment.replace(":", "%3A")
    found: list[str] = []
    for repository in repositories:
        owner, name = repository.repository.split("/")
        found.append(f"repo:{owner}/{name}:environment:{value}")
        if repository.owner_id is not None and repository.repository_id is not None:
            found.append(
                f"repo:{owner}@{repository.owner_id}/"
                f"{name}@{repository.repository_id}:environment:{value}"
            )
    return found


def by_role(matrix: Matrix) -> list[tuple[str, str, int, str, str]]:
    """Return one line per stack and role: classes, what they may do, equal or not."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in matrix.rows:
        groups.setdefault((row.stack, row.role), []).append(row)
    beyond = {(item.stack, item.runner_class) for item in matrix.beyond}
    lines: list[tuple[str, str, int, str, str]] = []
    for (stack, role), rows in groups.items():
        classes = {row.runner_class for row in rows}
        may = sorted(
            {f"{r.verb} {r.store} {r.scope}" for r in rows if r.allowed != "none"}
        )
        equal = all(row.equal for row in rows) and not any(
            (stack, name) in beyond for name in classes
        )
        lines.append(
            (stack, role, len(classes), ", ".join(may) or "nothing", _yes(equal))
        )
    return lines


def _yes(value: bool) -> str:
    return "yes" if value else "NO"


@dataclass
class _Found:
    rows: list[Row] = field(default_factory=list[Row])
    beyond: list[Beyond] = field(default_factory=list[Beyond])
    identities: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    unchecked: dict[str, None] = field(default_factory=dict[str, None])

    def add_planned(
        self, cell: Cell, planned: PlannedClass, parts: Sequence[Part], answer: Answer
    ) -> None:
        runner_class = planned.runner_class
        self._add(cell.name, runner_class, planned.grants, parts, answer)

    def add_external(
        self, runner_class: RunnerClass, parts: Sequence[Part], answer: Answer
    ) -> None:
        grants = runner_class.granted()
        self._add(CENTRAL_STACK, runner_class, grants, parts, answer)

    def _add(
        self,
        stack: str,
        runner_class: RunnerClass,
        grants: Iterable[Grant],
        parts: Sequence[Part],
        answer: Answer,
    ) -> None:
        granted = tuple(grants)
        self.identities.setdefault(stack, set()).update(answer.identities)
        for part, access in zip(parts, answer.access, strict=True):
            for verb in Verb:
                self.rows.append(
                    Row(
                        stack,
                        runner_class.name,
                        str(runner_class.role),
                        str(verb),
                        str(part.kind),
                        str(part.scope),
                        part.label,
                        expected(granted, runner_class.trust, part, verb),
                        str(access[str(verb)]),
                    )
                )
            for key in ("beyond", "unclear", "without_tls"):
                for action in access[key]:
                    what = f"{action} on {part.place} ({key.replace('_', ' ')})"
                    self.beyond.append(Beyond(stack, runner_class.name, what))
        for stray in answer.strays:
            self.beyond.append(Beyond(stack, runner_class.name, stray))

    def finish(self, reader: Reader) -> None:
        for problem in reader.problems:
            item = Beyond("-", "-", f"a policy document is malformed: {problem}")
            if item not in self.beyond:
                self.beyond.append(item)
        self.unchecked.update(dict.fromkeys(reader.not_cross_checked))

    def matrix(self) -> Matrix:
        return Matrix(
            tuple(self.rows),
            tuple(self.beyond),
            {stack: len(ids) for stack, ids in self.identities.items()},
            tuple(self.unchecked),
        )


def _accounts(
    fleet: Fleet, records: Mapping[str, Record], provider: Provider
) -> list[tuple[tuple[Any, ...], str]]:
    """Return the records of a provider's stacks, each with its account."""
    found: list[tuple[tuple[Any, ...], str]] = []
    for stack, record in records.items():
        cell = fleet.cells.get(stack)
        place = cell or (fleet.central if stack == CENTRAL_STACK else None)
        if place is not None and place.provider is provider:
            found.append((record.resources, place.account))
    return found


_READERS: Mapping[Provider, tuple[str, str]] = {
    Provider.AWS: ("aws_fleet", "AwsReader"),
    Provider.AZURE: ("azure_fleet", "AzureReader"),
    Provider.GCP: ("gcp_fleet", "GcpReader"),
    Provider.IBM: ("ibm", "IbmReader"),
}
"""The evaluator of each cloud: module and class."""


def _reader(provider: Provider, records: list[tuple[tuple[Any, ...], str]]) -> Reader:
    """Return the evaluator of a cloud over the records of its stacks."""
    if provider not in _READERS:
        raise MissingError(
            f"access on {provider} cannot be evaluated by this version",
            "an evaluator in runfleet.review.evaluators",
        )
    module, name = _READERS[provider]
    found = importlib.import_module(f"runfleet.review.evaluators.{module}")
    return cast("Reader", getattr(found, name)(records))
