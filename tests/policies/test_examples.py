"""Every rule has examples that keep it and examples that break it."""

from __future__ import annotations

import pytest
from policy_examples import aws, azure, fleet, gcp, iam, ibm, kubernetes
from policy_examples.support import TODAY, Example, build

from runfleet.spec import build_fleet
from runfleet.spec.findings import Finding
from runfleet.spec.source import parse_source
from runfleet_policies.engine import Settings, evaluate, evaluate_fleet
from runfleet_policies.registry import all_rules, rule_named

EXAMPLES: list[Example] = [
    *aws.EXAMPLES,
    *iam.EXAMPLES,
    *kubernetes.EXAMPLES,
    *gcp.EXAMPLES,
    *azure.EXAMPLES,
    *ibm.EXAMPLES,
    *fleet.EXAMPLES,
]


def judge(example: Example) -> list[Finding]:
    rule = rule_named(example.rule)
    assert rule is not None
    parameters = {rule.id: example.parameters}
    if isinstance(example.build, str):
        file = build_fleet(parse_source("fleet.yaml", example.build))
        return evaluate_fleet(file.fleet, file.source, TODAY, [rule], parameters)
    settings = Settings(stack="aws", today=TODAY, parameters=parameters)
    return evaluate(build(example.build), [rule], settings)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: f"{e.rule}: {e.name}")
def test_rule_judges_its_example(example: Example) -> None:
    findings = judge(example)
    reasons = [found.why for found in findings]
    assert not [found for found in findings if found.cannot_tell], reasons
    assert len(reasons) == len(example.breaks), reasons
    for part in example.breaks:
        assert any(part in why for why in reasons), (part, reasons)


def test_every_rule_has_a_passing_and_a_failing_example() -> None:
    judged = [rule.id for rule in all_rules() if rule.subject != "waiver"]
    passing = {example.rule for example in EXAMPLES if not example.breaks}
    failing = {example.rule for example in EXAMPLES if example.breaks}
    assert sorted(set(judged) - passing) == []
    assert sorted(set(judged) - failing) == []


def test_no_two_examples_of_a_rule_have_the_same_name() -> None:
    names = [(example.rule, example.name) for example in EXAMPLES]
    assert sorted(names) == sorted(set(names))
