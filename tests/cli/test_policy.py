"""policy list and policy explain."""

from __future__ import annotations

import json

from cli.conftest import Cli


def test_every_rule_is_listed(cli: Cli) -> None:
    outcome = cli("policy", "list", "--json")
    assert outcome.code == 0
    rules = {rule["id"] for rule in json.loads(outcome.out)}
    assert {"R-AWS-20", "R-GCP-08", "R-AZ-09", "R-IBM-02", "R-LABEL-02"} <= rules
    table = cli("policy", "list")
    assert table.out.endswith(f"{len(rules)} rules\n")


def test_a_rule_is_explained(cli: Cli) -> None:
    outcome = cli("policy", "explain", "R-AWS-20")
    assert outcome.code == 0
    assert "R-AWS-20" in outcome.out
    data = json.loads(cli("policy", "explain", "R-AWS-20", "--json").out)
    assert data["id"] == "R-AWS-20"


def test_an_unknown_rule_names_the_nearest(cli: Cli) -> None:
    outcome = cli("policy", "explain", "R-AWS-99")
    assert outcome.code == 2
    assert "R-AWS-" in outcome.err
