"""What a rule is: its identity, its reasons, where it looks, and its check.

A rule is data plus one check function. The check yields a :class:`Breach` for each
thing that is wrong and yields nothing when all is well. Four subjects exist, and a
rule has a check for exactly one of them: a single resource, a whole stack (what no
single resource shows, such as a missing flow log), a fleet file, or waivers.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from runfleet.spec.findings import Severity
from runfleet.spec.source import Path
from runfleet_policies.values import CannotTell
from runfleet_policies.view import FleetView, ResourceView, StackView, WaiverView


class Pack(StrEnum):
    """The packs that rules are delivered in."""

    SECURITY = "security"
    LABELLING = "labelling"
    COST = "cost"


@dataclass(frozen=True)
class Breach:
    """One thing that breaks a rule.

    Attributes:
        why: What is wrong, with the value found.
        where_suffix: The part of the resource that is meant, such as
            ``Statement[1]``; empty for the whole resource.
        cannot_tell: True when a value was not known.
        urn: For stack rules: the resource that is meant; empty for the stack.
        path: For fleet rules: the place in the fleet file.
        line_path: For fleet rules: the place whose line is shown, when it lies
            deeper than ``path``.
    """

    why: str
    where_suffix: str = ""
    cannot_tell: bool = False
    urn: str = ""
    path: Path = ()
    line_path: Path = ()


@dataclass(frozen=True)
class Parameter:
    """A setting of a rule, with its default.

    Attributes:
        name: Name in the configuration.
        default: Value without configuration; its type is the parameter's type.
        what: What it sets, in one sentence.
    """

    name: str
    default: str | int | bool | list[str] | dict[str, str]
    what: str

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of the parameter, as a policy pack declares it."""
        kinds: dict[type, dict[str, Any]] = {
            bool: {"type": "boolean"},
            int: {"type": "integer"},
            str: {"type": "string"},
            list: {"type": "array", "items": {"type": "string"}},
            dict: {"type": "object", "additionalProperties": {"type": "string"}},
        }
        kind = kinds[type(self.default)]
        return {**kind, "default": self.default, "description": self.what}


@dataclass(frozen=True)
class Context:
    """What a check knows besides its subject.

    Attributes:
        stack: Name of the stack; empty for a fleet file.
        today: The day that dates are compared with.
        values: The rule's parameters, defaults filled in.
    """

    stack: str = ""
    today: dt.date = field(default_factory=dt.date.today)
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def strings(self, name: str) -> list[str]:
        """Return a parameter that is a list of texts."""
        return [str(item) for item in self.values[name]]

    def text(self, name: str) -> str:
        """Return a parameter that is a text."""
        return str(self.values[name])

    def number(self, name: str) -> int:
        """Return a parameter that is a whole number."""
        return int(self.values[name])

    def flag(self, name: str) -> bool:
        """Return a parameter that is a truth value."""
        return bool(self.values[name])


ResourceCheck = Callable[[ResourceView, Context], Iterable[Breach]]
StackCheck = Callable[[StackView, Context], Iterable[Breach]]
FleetCheck = Callable[[FleetView, Context], Iterable[Breach]]
WaiverCheck = Callable[[WaiverView, Context], Iterable[Breach]]
Remediation = Callable[[ResourceView, Context], Mapping[str, Any] | None]


@dataclass(frozen=True)
class Rule:
    """A rule with everything that a person needs to understand and mend a breach.

    Attributes:
        id: Stable id, such as ``R-AWS-11``.
        severity: How bad a breach is.
        title: What must hold, in one short sentence.
        rationale: Why, in one to three sentences.
        fix: The one line that mends a breach.
        pack: The pack that it is delivered in.
        anchors: What asks for it: numbered statements of the working group (S..,
            O..), CIS, SLSA, Pod Security Standards (PSS).
        types: Resource types that it looks at; ``*`` stands for any text.
        resource: Check of a single resource.
        stack: Check of a whole stack.
        fleet: Check of a fleet file.
        waiver: Check of waivers.
        parameters: Settings with their defaults.
        remediate: Returns mended inputs, or ``None`` when there is nothing to mend.
    """

    id: str
    severity: Severity
    title: str
    rationale: str
    fix: str
    pack: Pack = Pack.SECURITY
    anchors: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    resource: ResourceCheck | None = None
    stack: StackCheck | None = None
    fleet: FleetCheck | None = None
    waiver: WaiverCheck | None = None
    parameters: tuple[Parameter, ...] = ()
    remediate: Remediation | None = None

    def __post_init__(self) -> None:
        """Refuse a rule without exactly one check."""
        checks = (self.resource, self.stack, self.fleet, self.waiver)
        count = sum(check is not None for check in checks)
        if count != 1:
            raise ValueError(f"{self.id} needs exactly one check, has {count}")
        if self.resource is not None and not self.types:
            raise ValueError(f"{self.id} names no resource type")

    @property
    def subject(self) -> Literal["resource", "stack", "fleet", "waiver"]:
        """What the rule judges."""
        if self.resource is not None:
            return "resource"
        if self.stack is not None:
            return "stack"
        return "fleet" if self.fleet is not None else "waiver"

    def settings(self, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the rule's parameters: those given, defaults for the others."""
        chosen = given or {}
        return {p.name: chosen.get(p.name, p.default) for p in self.parameters}


def guarded(breaches: Iterable[Breach], urn: str = "") -> Iterator[Breach]:
    """Yield breaches; a value that is not known becomes the last of them.

    Args:
        breaches: What a check yields.
        urn: The resource that is being judged, for stack rules.
    """
    try:
        yield from breaches
    except CannotTell as unknown:
        why = f"cannot tell: {unknown}"
        yield Breach(why, where_suffix=unknown.path, cannot_tell=True, urn=urn)
