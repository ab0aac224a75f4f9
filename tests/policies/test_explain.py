"""The list of rules, the explanation of one, and the pages made from them."""

from __future__ import annotations

import importlib.util
import json
import re
from functools import lru_cache
from pathlib import Path
from types import ModuleType

import pytest

from runfleet.errors import InputError
from runfleet.spec.findings import Severity, Waivers
from runfleet.spec.source import parse_source
from runfleet_policies.explain import (
    explain,
    explain_data,
    policy_table,
    waiver_of,
)
from runfleet_policies.registry import all_rules, rule_named
from runfleet_policies.statements import MISSING, OTHERWISE, statements
from runfleet_policies.waivers import build_waivers

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "policies"


@lru_cache(maxsize=1)
def pages() -> dict[str, str]:
    spec = importlib.util.spec_from_file_location(
        "policy_pages", ROOT / "policies" / "pages.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made: dict[str, str] = module.pages()
    return made


def test_the_table_is_plain_data_about_every_rule() -> None:
    table = policy_table()
    assert [row["id"] for row in table] == [rule.id for rule in all_rules()]
    assert json.loads(json.dumps(table)) == table
    (row,) = (row for row in table if row["id"] == "R-AWS-07")
    assert row == {
        "id": "R-AWS-07",
        "severity": "high",
        "area": "AWS",
        "pack": "security",
        "subject": "resource",
        "title": "Connections to the world use listed ports only",
        "anchors": ["S11", "S12", "S14", "CIS 2.2.4"],
        "types": [
            "aws:ec2/securityGroup:SecurityGroup",
            "aws:ec2/securityGroupRule:SecurityGroupRule",
            "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule",
            "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule",
        ],
        "parameters": ["ports"],
        "remediates": False,
    }


def test_the_catalogue_is_whole() -> None:
    counts = {
        "AWS": 26, "GCP": 14, "AZ": 13, "IBM": 11, "K8S": 8, "ARC": 11, "GH": 3,
        "TAG": 1, "CLASS": 1,
    }  # fmt: skip
    wanted = {
        f"R-{area}-{number:02}"
        for area, count in counts.items()
        for number in range(1, count + 1)
    }
    assert len(wanted) == 88
    assert wanted <= {rule.id for rule in all_rules()}
    critical = {f"R-GCP-{n:02}" for n in (3, 6, 7, 8)}
    critical |= {f"R-AZ-{n:02}" for n in (3, 9, 10)} | {"R-IBM-01", "R-IBM-02"}
    found = {
        rule.id
        for rule in all_rules()
        if rule.severity is Severity.CRITICAL
        and rule.id.split("-")[1] in ("GCP", "AZ", "IBM")
    }
    assert found == critical


def test_an_explanation_has_all_that_a_reader_needs() -> None:
    text = explain("r-aws-07")
    rule = rule_named("R-AWS-07")
    assert rule is not None
    flat = " ".join(text.split())
    for part in (
        "R-AWS-07 high AWS pack security",
        rule.rationale,
        rule.fix,
        "S12 Connections out are closed unless allowed",
        "CIS 2.2.4",
        "ports = ['443'] Ports that may be opened to the world.",
        "- rule: R-AWS-07",
    ):
        assert part in flat
    assert max(len(line) for line in text.splitlines()) <= 80


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.id)
def test_every_rule_can_be_explained(rule: object) -> None:
    name = rule.id  # type: ignore[attr-defined]
    data = explain_data(name)
    assert json.loads(json.dumps(data)) == data
    assert explain(name).startswith(f"{name}  ")
    entry = waiver_of(rule)  # type: ignore[arg-type]
    if entry:
        source = parse_source("waivers.yaml", "waivers:\n" + entry)
        found = build_waivers(source)
        assert isinstance(found.waivers, Waivers)
        assert [waiver.rule for waiver in found.waivers.waivers] == [name]
    else:
        assert name.startswith("R-WAIVER-")


@pytest.mark.parametrize(
    ("given", "close"),
    [("R-GPC-08", "R-GCP-08"), ("aws-11", "R-AWS-11"), ("nothing", "")],
)
def test_an_unknown_rule_is_one_clear_message(given: str, close: str) -> None:
    for function in (explain, explain_data):
        with pytest.raises(InputError) as error:
            function(given)
        (problem,) = error.value.problems
        assert problem.found == given
        assert problem.nearest == close
        assert error.value.exit_code == 2


def test_every_statement_of_the_drafts_is_listed_once() -> None:
    numbers = [found.id for found in statements()]
    wanted = [f"S{n:02}" for n in range(1, 37)] + [f"O{n:02}" for n in range(1, 61)]
    assert numbers == wanted
    assert {*OTHERWISE, *MISSING} <= set(numbers)
    optional = [found.id for found in statements() if found.optional]
    assert optional == ["O39", "O40", "O41", "O42"]


def test_rules_name_statements_that_exist() -> None:
    known = {found.id for found in statements()}
    named = {a for rule in all_rules() for a in rule.anchors}
    assert {a for a in named if re.fullmatch(r"[SO]\d\d", a)} <= known


def test_documents_that_answer_a_statement_exist() -> None:
    for answers in OTHERWISE.values():
        for answer in answers:
            assert answer.kind in ("document", "alert")
            assert answer.kind == "alert" or (ROOT / answer.where).is_file()


def test_a_statement_in_part_is_answered_by_something() -> None:
    answered = {a for rule in all_rules() for a in rule.anchors} | set(OTHERWISE)
    assert set(MISSING) <= answered


def test_the_committed_pages_are_those_of_the_rules() -> None:
    committed = {path.name for path in PAGES.glob("*")}
    assert committed == set(pages())
    for name, text in pages().items():
        found = (PAGES / name).read_text(encoding="utf-8")
        assert found == text, f"{name}: run `python policies/pages.py`"


def test_links_of_the_pages_lead_somewhere() -> None:
    for name, text in pages().items():
        for target in re.findall(r"\]\(([^)]+)\)", text):
            if not target.startswith("https://"):
                assert (PAGES / target).resolve().is_file(), (name, target)
