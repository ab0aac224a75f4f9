"""The summary of a rehearsal: one per stack, read from records and fleet file."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from pathlib import Path

import pytest

from contract.records import Rehearsed, change
from contract.small import rehearse_small
from runfleet.catalogue.pins import load_pins
from runfleet.errors import InputError
from runfleet.rehearsal.record import write_record
from runfleet.review.summary import AccessRow, ClassRow, Summary, summarise
from runfleet.spec.findings import Finding, Severity

TODAY = dt.date(2026, 6, 1)
STACKS = ["central", "aws"]
TESTER_MAY = (
    "read cache local, read registry local, write cache local, write registry local"
)


@pytest.fixture(scope="module")
def rehearsed(tmp_path_factory: pytest.TempPathFactory) -> Rehearsed:
    return rehearse_small(tmp_path_factory.mktemp("summary") / "project")


@pytest.fixture
def made(rehearsed: Rehearsed, tmp_path: Path) -> Path:
    """A copy of the project, which a test may change."""
    return Path(shutil.copytree(rehearsed.root, tmp_path / "project"))


def summaries(root: Path, *stacks: str, **failed: str) -> list[Summary]:
    return summarise(root / "fleet.yaml", root / "out", stacks or STACKS, TODAY, failed)


def test_one_for_each_stack_in_the_order_asked_for(
    made: Path, rehearsed: Rehearsed
) -> None:
    assert [s.stack for s in summaries(made)] == STACKS
    assert [s.stack for s in summaries(made, "aws", "central")] == ["aws", "central"]
    for found in summaries(made):
        record = rehearsed.records[found.stack]
        assert found.types == record.count_by_type()
        assert found.as_dict()["resources"] == sum(record.count_by_type().values())
        assert found.error == ""


def test_rows_of_a_cell(made: Path) -> None:
    (found,) = summaries(made, "aws")
    assert (found.class_count, found.node_pools, found.identities) == (3, 1, 2)
    assert found.classes == (
        ClassRow("tester", "untrusted-pr", 2, 1, 1, "unbounded"),
        ClassRow("builder", "trusted", 1, 1, 1, "7"),
    )
    assert found.access == (
        AccessRow("tester", 2, TESTER_MAY, "yes"),
        AccessRow("builder", 1, "read cache local, write cache central", "yes"),
    )
    assert found.classes[1].cells() == ("builder", "trusted", 1, 1, 1, "7")
    assert found.access[0].cells() == ("tester", 2, TESTER_MAY, "yes")
    assert list(found.unresolved_pins) == load_pins().unresolved("aws")


def test_rows_of_central(made: Path) -> None:
    (found,) = summaries(made, "central")
    assert (found.class_count, found.node_pools, found.classes) == (0, 0, ())
    assert found.access == (AccessRow("publisher", 1, "write cache central", "yes"),)
    assert found.identities == 1
    assert found.unresolved_pins == ()


def test_access_to_central_stores_is_known_without_asking_for_central(
    made: Path,
) -> None:
    (alone,) = summaries(made, "aws")
    both = summaries(made)[1]
    assert alone.access == both.access
    shutil.rmtree(made / "out" / "central")
    (without,) = summaries(made, "aws")
    assert without.access[1].may == "read cache local"


def test_a_policy_that_differs_shows_and_is_not_good(
    made: Path, rehearsed: Rehearsed
) -> None:
    def widen(inputs: dict[str, str]) -> None:
        inputs["policy"] = inputs["policy"].replace("/trusted/*", "/*")

    record = change(
        rehearsed.record,
        "aws:iam/rolePolicy:RolePolicy",
        widen,
        "aws-identity-build-policy",
    )
    write_record(record, made / "out" / "aws" / "record.json")
    (found,) = summaries(made, "aws")
    assert [row.equal for row in found.access] == ["yes", "NO"]
    assert not found.good


def test_a_stack_that_does_not_rehearse_keeps_its_reason(made: Path) -> None:
    shutil.rmtree(made / "out" / "aws")
    central, found = summaries(made, aws="moto refused a range")
    assert found == Summary("aws", error="moto refused a range")
    assert not found.good
    assert central.error == ""
    assert central.access[0].may == "write cache central"


def test_a_failed_central_is_not_read_from_an_older_run(made: Path) -> None:
    central, found = summaries(made, central="it fails today")
    assert central == Summary("central", error="it fails today")
    assert found.access[1].may == "read cache local"


def test_findings_stand_at_their_stack(made: Path) -> None:
    central, aws = summaries(made)
    for found in (central, aws):
        assert all(finding.stack == found.stack for finding in found.findings)
        assert found.open_findings == list(found.findings)
    assert "R-ARC-07" in {finding.rule for finding in aws.findings}
    assert "R-ARC-07" not in {finding.rule for finding in central.findings}
    assert not aws.good


def test_a_waiver_covers_and_an_expired_one_is_shown(made: Path) -> None:
    aws = summaries(made)[1]
    (unbounded,) = [f for f in aws.findings if f.rule == "R-ARC-07"]
    resource = unbounded.where
    waiver = """\
waivers:
  - rule: R-ARC-07
    resource: "{}"
    reason: a test of waivers
    owner: infra
    expires: {}
"""
    path = made / "waivers.yaml"
    path.write_text(waiver.format(resource, "2026-12-31"))
    covered = summaries(made)[1]
    (found,) = [f for f in covered.findings if f.rule == "R-ARC-07"]
    assert found.waived_by == "infra"
    assert found not in covered.open_findings
    assert len(covered.open_findings) == len(aws.open_findings) - 1

    path.write_text(waiver.format(resource, "2026-05-31"))
    expired = summaries(made)
    (found,) = [f for f in expired[1].findings if f.rule == "R-ARC-07"]
    assert found in expired[1].open_findings
    assert [s.stack for s in expired] == [*STACKS, "(waivers)"]
    assert "2026-05-31" in expired[2].findings[0].why
    assert not expired[2].good


def finding(waived_by: str) -> Finding:
    return Finding(
        "R-A-1", Severity.HIGH, "a place", "a reason", "a fix", waived_by=waived_by
    )


def test_good() -> None:
    row = AccessRow("tester", 1, "nothing", "yes")
    assert Summary("aws").good
    assert Summary("aws", access=(row,), findings=(finding("infra"),)).good
    assert not Summary("aws", findings=(finding(""),)).good
    assert not Summary("aws", access=(AccessRow("tester", 1, "nothing", "NO"),)).good
    assert not Summary("aws", error="refused").good
    assert Summary("aws", unresolved_pins=("a",)).good


def test_as_plain_data(made: Path) -> None:
    data = summaries(made)[1].as_dict()
    assert list(data) == [
        "stack",
        "error",
        "resources",
        "types",
        "class_count",
        "node_pools",
        "classes",
        "access",
        "identities",
        "findings",
        "unresolved_pins",
    ]
    assert data["classes"][1] == {
        "role": "builder",
        "trust": "trusted",
        "classes": 1,
        "pools": 1,
        "node_pools": 1,
        "at_most": "7",
    }
    assert json.loads(json.dumps(data)) == data


def test_an_unreadable_record_is_bad_input(made: Path) -> None:
    path = made / "out" / "aws" / "record.json"
    path.write_text("{")
    with pytest.raises(InputError) as caught:
        summaries(made, "aws")
    assert caught.value.problems[0].file == str(path)
    assert caught.value.exit_code == 2
