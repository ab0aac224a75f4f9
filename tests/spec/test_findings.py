"""Findings and waivers: what covers what, and until when."""

from __future__ import annotations

import datetime as dt

import pytest
from pydantic import ValidationError

from runfleet.spec.findings import Finding, Severity, Waiver, Waivers

DAY = dt.date(2026, 9, 30)
FINDING = Finding(
    rule="R-SPEC-01",
    severity=Severity.MEDIUM,
    where="runner_classes.l-x86iamx-16-128",
    why="the label says 16 vCPU, the class gives 15",
    fix="rename it",
    file="fleet.yaml",
    line=7,
    stack="aws",
)


def waiver(**changes: object) -> Waiver:
    fields: dict[str, object] = {
        "rule": "R-SPEC-01",
        "resource": "runner_classes.*",
        "owner": "infra",
        "reason": "the name is the incumbent's",
        "expires": "2026-09-30",
    }
    return Waiver.model_validate(fields | changes)


@pytest.mark.parametrize(
    ("changes", "day", "covers"),
    [
        ({}, DAY, True),
        ({}, DAY + dt.timedelta(days=1), False),
        ({"rule": "R-SPEC-02"}, DAY, False),
        ({"resource": "runner_classes.l-x86iamx-16-128"}, DAY, True),
        ({"resource": "runner_classes.l-x86iamx-16"}, DAY, False),
        ({"resource": "Runner_classes.*"}, DAY, False),
        ({"stack": "aws*"}, DAY, True),
        ({"stack": "gcp"}, DAY, False),
    ],
)
def test_covers(changes: dict[str, object], day: dt.date, covers: bool) -> None:
    assert waiver(**changes).covers(FINDING, day) is covers


def test_apply_names_the_first_owner_and_keeps_the_rest() -> None:
    other = Finding("R-X", Severity.LOW, "cells.aws", "why", "fix")
    waivers = Waivers(waivers=[waiver(rule="R-Y"), waiver(owner="a"), waiver()])
    applied = waivers.apply([FINDING, other], DAY)
    assert [finding.waived_by for finding in applied] == ["a", ""]
    assert applied[1] is other
    assert applied[0].as_dict() == {
        "rule": "R-SPEC-01",
        "severity": "medium",
        "where": "runner_classes.l-x86iamx-16-128",
        "why": "the label says 16 vCPU, the class gives 15",
        "fix": "rename it",
        "file": "fleet.yaml",
        "line": 7,
        "stack": "aws",
        "waived_by": "a",
        "cannot_tell": False,
    }


@pytest.mark.parametrize("expires", [20260930, "soon", "2026-02-30", None])
def test_a_waiver_has_a_day(expires: object) -> None:
    with pytest.raises(ValidationError, match="a day such as 2026-09-30"):
        waiver(expires=expires)


def test_severities_are_ranked_worst_first() -> None:
    ranks = [severity.rank for severity in Severity]
    assert ranks == [0, 1, 2, 3]
    assert Severity.CRITICAL.rank == 0
