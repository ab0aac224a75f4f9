"""Apply rules to the resources of a stack or to a fleet file.

The engine is a loop: resources are indexed by type once, each rule is given what
it is about, and what it yields becomes findings. A value that a check needs and
that is not known ends that check with a finding that says "cannot tell"; what the
check had already found stays.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from runfleet.spec.findings import Finding, Severity
from runfleet.spec.fleet import Fleet
from runfleet.spec.source import Source, dotted
from runfleet_policies.registry import fleet_rules
from runfleet_policies.rule import Breach, Context, Rule, guarded
from runfleet_policies.view import FleetView, ResourceLike, ResourceView, StackView


@dataclass(frozen=True)
class Settings:
    """What an evaluation is told.

    Attributes:
        stack: Name of the stack.
        today: The day that dates are compared with.
        parameters: Parameters by rule id, where they differ from the defaults.
    """

    stack: str = ""
    today: dt.date = field(default_factory=dt.date.today)
    parameters: Mapping[str, Mapping[str, Any]] = field(
        default_factory=dict[str, Mapping[str, Any]]
    )

    def context(self, rule: Rule) -> Context:
        """Return what the rule's check is told."""
        return Context(
            self.stack, self.today, rule.settings(self.parameters.get(rule.id))
        )


def evaluate(
    resources: Iterable[ResourceLike],
    rules: Iterable[Rule],
    settings: Settings | None = None,
) -> list[Finding]:
    """Judge the resources of one stack.

    Args:
        resources: The resources, as a record has them.
        rules: The rules; those for fleet files are passed over.
        settings: Stack name, day and parameters.

    Returns:
        Findings, worst first, then by rule and place.
    """
    chosen = settings or Settings()
    stack = StackView(resources, chosen.stack)
    findings: list[Finding] = []
    for rule in rules:
        context = chosen.context(rule)
        if rule.resource is not None:
            for resource in _once(stack.of(*rule.types)):
                for breach in breaches_of_resource(rule, resource, context):
                    findings.append(_finding(rule, breach, resource.urn, chosen.stack))
        elif rule.stack is not None:
            for breach in breaches_of_stack(rule, stack, context):
                urn = breach.urn or f"stack {chosen.stack or '(unnamed)'}"
                findings.append(_finding(rule, breach, urn, chosen.stack))
    return ordered(findings)


def evaluate_fleet(
    fleet: Fleet,
    source: Source,
    today: dt.date,
    rules: Iterable[Rule] | None = None,
    parameters: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[Finding]:
    """Judge a fleet file.

    Args:
        fleet: The fleet.
        source: The file that it was read from, for lines.
        today: The day that dates are compared with.
        rules: The rules; default: all. Those for resources are passed over.
        parameters: Parameters by rule id, where they differ from the defaults.

    Returns:
        Findings with file and line, in file order.
    """
    settings = Settings(today=today, parameters=parameters or {})
    view = FleetView(fleet, source)
    findings: list[Finding] = []
    for rule in fleet_rules() if rules is None else rules:
        if rule.fleet is None:
            continue
        for breach in rule.fleet(view, settings.context(rule)):
            found = _finding(rule, breach, dotted(breach.path), "")
            line = source.line(breach.line_path or breach.path)
            findings.append(replace(found, file=source.file, line=line))
    return sorted(findings, key=lambda f: (f.line, f.rule, f.where, f.why))


def breaches_of_resource(
    rule: Rule, resource: ResourceView, context: Context
) -> Iterator[Breach]:
    """Yield what a resource rule finds on one resource, unknown values included."""
    if rule.resource is not None:
        yield from guarded(rule.resource(resource, context))


def breaches_of_stack(
    rule: Rule, stack: StackView, context: Context
) -> Iterator[Breach]:
    """Yield what a stack rule finds on a stack, unknown values included."""
    if rule.stack is not None:
        yield from guarded(rule.stack(stack, context))


def ordered(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings worst first, then by rule, place and reason, each once."""
    unique = dict.fromkeys(findings)
    rank = {severity: severity.rank for severity in Severity}
    return sorted(unique, key=lambda f: (rank[f.severity], f.rule, f.where, f.why))


def _finding(rule: Rule, breach: Breach, place: str, stack: str) -> Finding:
    where = f"{place}#{breach.where_suffix}" if breach.where_suffix else place
    return Finding(
        rule=rule.id,
        severity=rule.severity,
        where=where,
        why=breach.why,
        fix=rule.fix,
        stack=stack,
        cannot_tell=breach.cannot_tell,
    )


def _once(views: Iterable[ResourceView]) -> Iterator[ResourceView]:
    seen: set[str] = set()
    for view in views:
        if view.urn not in seen:
            seen.add(view.urn)
            yield view
