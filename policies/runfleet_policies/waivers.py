"""Waivers: dated, owned exceptions, read from ``waivers.yaml``.

A waiver covers the findings of one rule whose place matches a shell pattern, in
the stacks that match another, until a day. Applying waivers marks findings, it
never removes them; and it adds findings about the waivers themselves.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import cast

from pydantic import ValidationError

from runfleet.errors import InputError
from runfleet.spec.findings import Finding, Waivers
from runfleet.spec.load import model_problems
from runfleet.spec.source import Source, dotted, nearest, read_source
from runfleet_policies.registry import all_rules
from runfleet_policies.rule import Context, Rule
from runfleet_policies.view import WaiverView


@dataclass(frozen=True)
class WaiverFile:
    """Waivers, and the file they stand in.

    Attributes:
        waivers: The waivers.
        source: The file, with the line of each.
    """

    waivers: Waivers
    source: Source


def load_waivers(
    path: str | FilePath, rules: Iterable[Rule] | None = None
) -> WaiverFile:
    """Read a waiver file.

    Args:
        path: The file.
        rules: The rules that may be waived; default: all.

    Raises:
        InputError: The file has problems; all of them are in it.
    """
    return build_waivers(read_source(path), rules)


def build_waivers(source: Source, rules: Iterable[Rule] | None = None) -> WaiverFile:
    """Make waivers from a parsed file; see :func:`load_waivers`."""
    problems = list(source.problems)
    broken = {problem.path for problem in problems}
    waivers = Waivers()
    try:
        waivers = Waivers.model_validate({} if source.data is None else source.data)
    except ValidationError as error:
        problems += [
            found
            for found in model_problems(error, Waivers, source)
            if found.path not in broken
        ]
    known = [rule.id for rule in (all_rules() if rules is None else rules)]
    for index, name in enumerate(_rule_ids(source)):
        if name is not None and name not in known:
            problems.append(
                source.problem(
                    ("waivers", index, "rule"),
                    "is not a rule",
                    found=name,
                    nearest=nearest(name, known),
                )
            )
    if problems:
        raise InputError(problems)
    return WaiverFile(waivers, source)


def apply_waivers(
    file: WaiverFile,
    findings: Sequence[Finding],
    today: dt.date,
    stacks: Collection[str] = ("",),
    judged: Collection[str] | None = None,
) -> list[Finding]:
    """Mark the findings that waivers cover, and add those about the waivers.

    Args:
        file: The waivers.
        findings: What the rules found.
        today: The day that dates are compared with.
        stacks: Names of the stacks that were judged; the empty name stands for
            the fleet file. A waiver for other stacks is not called unused.
        judged: Ids of the rules that were applied; default: all. A waiver for
            another rule is not called unused.

    Returns:
        The findings in the same order, then those about waivers, in file order.
    """
    rules = all_rules()
    names = {rule.id for rule in rules} if judged is None else set(judged)
    names -= {rule.id for rule in rules if rule.waiver is not None}
    view = WaiverView(file.waivers, tuple(findings), frozenset(stacks), names)
    own: list[Finding] = []
    for rule in rules:
        if rule.waiver is None:
            continue
        context = Context(today=today, values=rule.settings())
        for breach in rule.waiver(view, context):
            own.append(
                Finding(
                    rule=rule.id,
                    severity=rule.severity,
                    where=dotted(breach.path),
                    why=breach.why,
                    fix=rule.fix,
                    file=file.source.file,
                    line=file.source.line(breach.path),
                )
            )
    own.sort(key=lambda found: (found.line, found.rule))
    return [*file.waivers.apply(list(findings), today), *own]


def unwaived(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings that no waiver covers: those that end with exit 1."""
    return [found for found in findings if not found.waived_by]


def _rule_ids(source: Source) -> list[str | None]:
    data = cast("object", source.data)
    if not isinstance(data, dict):
        return []
    entries = cast("dict[str, object]", data).get("waivers")
    if not isinstance(entries, list):
        return []
    found: list[str | None] = []
    for entry in cast("list[object]", entries):
        name: object = None
        if isinstance(entry, dict):
            name = cast("dict[str, object]", entry).get("rule")
        found.append(name if isinstance(name, str) else None)
    return found
