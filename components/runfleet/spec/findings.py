"""Findings and waivers: what can be built but breaks a rule.

An error (:class:`runfleet.errors.Problem`) cannot be built. A finding can, but a
rule forbids it; it ends a command with exit 1 unless a waiver covers it. A waiver
is dated, owned and bound to one rule and one resource pattern.
"""

from __future__ import annotations

import datetime as dt
import fnmatch
from dataclasses import dataclass, replace
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

from runfleet.spec.units import Day


class Severity(StrEnum):
    """How bad a finding is, worst first."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"

    @property
    def rank(self) -> int:
        """0 for the worst severity."""
        return list(Severity).index(self)


@dataclass(frozen=True)
class Finding:
    """A rule that something breaks.

    Attributes:
        rule: The rule's id, such as ``R-AWS-11``.
        severity: How bad it is.
        where: What breaks the rule: a path in the fleet file or a resource's URN.
        why: What is wrong, with the value found.
        fix: The one line that mends it.
        file: The file that it stands in, when known.
        line: 1-based line in that file, 0 when unknown.
        stack: The stack it was found in; empty for the fleet file itself.
        waived_by: The owner of the waiver that covers it; empty when none does.
        cannot_tell: True when a value was not known, so the rule could not be judged.
    """

    rule: str
    severity: Severity
    where: str
    why: str
    fix: str
    file: str = ""
    line: int = 0
    stack: str = ""
    waived_by: str = ""
    cannot_tell: bool = False

    def as_dict(self) -> dict[str, object]:
        """Return the finding as plain data for ``--json``."""
        return {
            "rule": self.rule,
            "severity": str(self.severity),
            "where": self.where,
            "why": self.why,
            "fix": self.fix,
            "file": self.file,
            "line": self.line,
            "stack": self.stack,
            "waived_by": self.waived_by,
            "cannot_tell": self.cannot_tell,
        }


class Waiver(BaseModel):
    """A dated, owned exception to one rule for one resource pattern."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rule: str = Field(description="Id of the rule that is waived.")
    resource: str = Field(
        description="Shell pattern over the finding's place, such as "
        "runner_classes.l-x86iamx-16-128."
    )
    stack: str = Field(default="*", description="Shell pattern over the stack name.")
    owner: str = Field(description="Who answers for the exception.")
    reason: str = Field(description="Why the rule does not apply here.")
    approval: str | None = Field(
        default=None, description="Link to where it was approved."
    )
    expires: Day = Field(description="Last day on which it counts.")

    def covers(self, finding: Finding, today: dt.date) -> bool:
        """Say whether this waiver covers a finding on a day."""
        return (
            self.rule == finding.rule
            and today <= self.expires
            and fnmatch.fnmatchcase(finding.where, self.resource)
            and fnmatch.fnmatchcase(finding.stack, self.stack)
        )


class Waivers(BaseModel):
    """The content of a ``waivers.yaml`` file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    waivers: list[Waiver] = Field(default_factory=list[Waiver])

    def apply(self, findings: list[Finding], today: dt.date) -> list[Finding]:
        """Return the findings, with the owner of the waiver that covers each."""
        applied: list[Finding] = []
        for finding in findings:
            owner = next(
                (w.owner for w in self.waivers if w.covers(finding, today)), ""
            )
            applied.append(replace(finding, waived_by=owner) if owner else finding)
        return applied
