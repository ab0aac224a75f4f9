"""Waivers: reading them, applying them, and what is wrong with them."""

from __future__ import annotations

import datetime as dt

import pytest

from runfleet.errors import InputError
from runfleet.spec.findings import Finding, Severity
from runfleet.spec.source import parse_source
from runfleet_policies.waivers import (
    WaiverFile,
    apply_waivers,
    build_waivers,
    load_waivers,
    unwaived,
)

TODAY = dt.date(2026, 6, 1)


def waivers(text: str) -> WaiverFile:
    return build_waivers(parse_source("waivers.yaml", text))


def one(expires: str = "2026-06-01", resource: str = "a.*", stack: str = "*") -> str:
    return (
        "waivers:\n"
        "  - rule: R-LABEL-02\n"
        f"    resource: {resource}\n"
        f'    stack: "{stack}"\n'
        "    owner: infra\n"
        "    reason: because\n"
        f"    expires: {expires}\n"
    )


FINDING = Finding("R-LABEL-02", Severity.LOW, "a.b", "lies", "rename", "f.yaml", 3)


def test_a_waiver_marks_the_finding_until_its_last_day() -> None:
    found = apply_waivers(waivers(one()), [FINDING], TODAY)
    assert [(f.rule, f.waived_by) for f in found] == [("R-LABEL-02", "infra")]
    assert unwaived(found) == []


def test_an_expired_waiver_is_a_finding_and_covers_nothing() -> None:
    found = apply_waivers(waivers(one("2026-05-31")), [FINDING], TODAY)
    assert [(f.rule, f.waived_by, f.line) for f in found] == [
        ("R-LABEL-02", "", 3),
        ("R-WAIVER-01", "", 2),
    ]
    assert found[1].where == "waivers[0]"
    assert found[1].file == "waivers.yaml"
    assert found[1].why == (
        "the waiver of infra for R-LABEL-02 on a.* expired on 2026-05-31"
    )


def test_a_waiver_that_covers_nothing_is_a_finding() -> None:
    found = apply_waivers(waivers(one(resource="other")), [FINDING], TODAY)
    assert [(f.rule, f.why) for f in found] == [
        ("R-LABEL-02", "lies"),
        ("R-WAIVER-02", "no finding of R-LABEL-02 at other"),
    ]


def test_a_waiver_is_not_unused_where_its_rule_or_stack_was_not_judged() -> None:
    file = waivers(one(resource="other", stack="gcp"))
    assert apply_waivers(file, [], TODAY, stacks=["aws"]) == []
    assert apply_waivers(waivers(one()), [], TODAY, judged=["R-TAG-01"]) == []
    found = apply_waivers(file, [], TODAY, stacks=["aws", "gcp"])
    assert [f.rule for f in found] == ["R-WAIVER-02"]


def test_all_problems_are_reported_with_their_lines() -> None:
    text = (
        "waivers:\n"
        "  - rule: R-LABLE-02\n"
        "    resource: a\n"
        "    owner: infra\n"
        "    reason: because\n"
        "    expires: soon\n"
        "  - rule: R-TAG-01\n"
        "    resource: a\n"
        "    reson: because\n"
        "    owner: infra\n"
        "    expires: 2026-13-41\n"
    )
    with pytest.raises(InputError) as error:
        waivers(text)
    assert error.value.exit_code == 2
    found = [(p.line, p.path) for p in error.value.problems]
    assert found == [
        (2, "waivers[0].rule"),
        (6, "waivers[0].expires"),
        (7, "waivers[1].reason"),
        (9, "waivers[1].reson"),
        (11, "waivers[1].expires"),
    ]
    first = error.value.problems[0]
    assert (first.found, first.nearest) == ("R-LABLE-02", "R-LABEL-02")
    assert error.value.problems[3].nearest == "reason"


@pytest.mark.parametrize("text", ["", "waivers: []\n"])
def test_a_file_without_waivers_is_good(text: str) -> None:
    assert apply_waivers(waivers(text), [FINDING], TODAY) == [FINDING]


@pytest.mark.parametrize(
    "text", ["[]", "waivers: 3", "waivers: [3]", "other: 1", "waivers: {a: 1}"]
)
def test_a_file_of_another_shape_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        waivers(text)


def test_a_missing_file_is_one_problem() -> None:
    with pytest.raises(InputError, match=r"nowhere\.yaml: .*there is no such file"):
        load_waivers("nowhere.yaml")
