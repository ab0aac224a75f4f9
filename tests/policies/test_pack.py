"""The packs: the same rules give the same answers under Pulumi's policy engine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from policy_examples import aws, azure, gcp, iam, ibm, kubernetes
from policy_examples.support import LABELS, TODAY, Built, Example, build
from pulumi_policy import (
    EnforcementLevel,
    PolicyCustomTimeouts,
    PolicyProviderResource,
    PolicyResource,
    PolicyResourceOptions,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    StackValidationArgs,
    StackValidationPolicy,
)
from pulumi_policy.proxy import (
    UNKNOWN_STRING_VALUE,
    UnknownValueError,
    unknown_checking_proxy,
)
from ruamel.yaml import YAML

from runfleet_policies import pack as packs
from runfleet_policies.engine import Settings, evaluate
from runfleet_policies.registry import rule_named, stack_rules
from runfleet_policies.rule import Context, Pack, Rule

ROOT = Path(__file__).parents[2]
OPTIONS = PolicyResourceOptions(False, [], None, [], PolicyCustomTimeouts(0, 0, 0), [])
EXAMPLES: Sequence[Example] = [
    found
    for found in (
        *aws.EXAMPLES,
        *iam.EXAMPLES,
        *kubernetes.EXAMPLES,
        *gcp.EXAMPLES,
        *azure.EXAMPLES,
        *ibm.EXAMPLES,
    )
    if found.rule != "R-AWS-14"  # judges today's date, which a pack takes itself
]


@pytest.fixture(autouse=True)
def _stack(monkeypatch: pytest.MonkeyPatch) -> None:
    def context(rule: Rule, config: Any) -> Context:
        return Context("aws", TODAY, rule.settings(config))

    monkeypatch.setattr(packs, "_context", context)


def provider_of(found: Built, built: Sequence[Built]) -> PolicyProviderResource | None:
    urn = found.provider.rpartition("::")[0]
    for other in built:
        if other.urn == urn:
            props = unknown_checking_proxy(dict(other.inputs))
            return PolicyProviderResource(other.type, props, other.urn, other.name)
    return None


def run(example: Example) -> list[tuple[str, str]]:
    """Return (urn, message) of each violation that the policy reports."""
    rule = rule_named(example.rule)
    assert rule is not None
    policy = packs.policy(rule)
    built = build(example.build)  # type: ignore[arg-type]
    reported: list[tuple[str, str]] = []
    if isinstance(policy, ResourceValidationPolicy):
        for found in built:
            args = ResourceValidationArgs(
                found.type,
                unknown_checking_proxy(dict(found.inputs)),
                found.urn,
                found.name,
                OPTIONS,
                provider_of(found, built),
                dict(example.parameters),
            )

            def report(why: str, urn: str | None = None, at: Built = found) -> None:
                reported.append((urn or at.urn, why))

            policy.validate(args, report)
        return reported
    assert isinstance(policy, StackValidationPolicy)
    by_urn = {
        found.urn: PolicyResource(
            found.type,
            unknown_checking_proxy(dict(found.inputs)),
            found.urn,
            found.name,
            OPTIONS,
            provider_of(found, built),
            None,
            [],
            {},
        )
        for found in built
    }
    for found in built:
        by_urn[found.urn].property_dependencies = {
            name: [by_urn[urn] for urn in urns if urn in by_urn]
            for name, urns in found.property_dependencies.items()
        }
    args = StackValidationArgs(list(by_urn.values()), dict(example.parameters))
    policy.validate(
        args, lambda why, urn=None: reported.append((urn or "stack aws", why))
    )
    return reported


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: f"{e.rule}: {e.name}")
def test_a_pack_says_what_the_engine_says(example: Example) -> None:
    rule = rule_named(example.rule)
    assert rule is not None
    settings = Settings("aws", TODAY, {rule.id: example.parameters})
    findings = evaluate(build(example.build), [rule], settings)  # type: ignore[arg-type]
    expected = sorted((f.where.partition("#")[0], f.why) for f in findings)
    reported = sorted(set(run(example)))
    assert [urn for urn, _ in reported] == [urn for urn, _ in expected]
    for urn, why in expected:
        assert any(at == urn and why in text for at, text in reported), (why, reported)


def test_every_rule_about_resources_is_in_exactly_one_pack() -> None:
    names = [found.name for pack in Pack for found in packs.policies(pack)]
    assert sorted(names) == sorted(rule.id.lower() for rule in stack_rules())


def test_severity_level_and_parameters_reach_the_policy() -> None:
    rule = rule_named("R-AWS-07")
    assert rule is not None
    policy = packs.policy(rule)
    assert policy.enforcement_level is EnforcementLevel.MANDATORY
    assert policy.severity is not None
    assert policy.severity.value == "high"
    assert policy.remediation_steps == rule.fix
    assert policy.config_schema is not None
    assert policy.config_schema.properties == {
        "ports": {
            "type": "array",
            "items": {"type": "string"},
            "default": ["443"],
            "description": "Ports that may be opened to the world.",
        }
    }
    low = rule_named("R-AWS-26")
    assert low is not None
    assert packs.policy(low).enforcement_level is EnforcementLevel.ADVISORY


def test_an_unknown_value_is_given_to_the_engine_after_what_is_certain() -> None:
    rule = rule_named("R-AWS-16")
    assert rule is not None
    policy = packs.policy(rule)
    assert isinstance(policy, StackValidationPolicy)

    def volume(name: str, encrypted: Any) -> PolicyResource:
        props = unknown_checking_proxy({"encrypted": encrypted})
        kind = "aws:ebs/volume:Volume"
        return PolicyResource(kind, props, name, name, OPTIONS, None, None, [], {})

    reported: list[str] = []
    args = StackValidationArgs([volume("a", UNKNOWN_STRING_VALUE), volume("b", False)])
    with pytest.raises(UnknownValueError) as unknown:
        policy.validate(args, lambda why, urn=None: reported.append(f"{urn} {why}"))
    assert unknown.value.props == ["encrypted"]
    assert [why[:32] for why in reported] == ["b R-AWS-16: encrypted is false ["]


def _remediate(inputs: dict[str, Any], defaults: dict[str, str]) -> Any:
    rule = rule_named("R-TAG-01")
    assert rule is not None
    policy = packs.policy(rule)
    assert isinstance(policy, ResourceValidationPolicy)
    kind = "aws:ec2/vpc:Vpc"
    args = ResourceValidationArgs(
        kind,
        unknown_checking_proxy(inputs),
        "urn",
        "n",
        OPTIONS,
        None,
        {"defaults": defaults},
    )
    return policy.remediate(args)


def test_remediation_fills_missing_labels_and_changes_none() -> None:
    inputs = {"cidrBlock": "10.0.0.0/16", "tags": {"Name": "a", "ci_owner": "mine"}}
    defaults = {"ci_owner": "infra", "ci_env": "prod", "other": "x"}
    assert _remediate(inputs, defaults) == {
        "cidrBlock": "10.0.0.0/16",
        "tags": {"Name": "a", "ci_owner": "mine", "ci_env": "prod"},
    }
    assert _remediate({"tags": dict(LABELS)}, {"ci_env": "prod"}) is None
    assert _remediate({}, {}) is None


@pytest.mark.parametrize("pack", list(Pack))
def test_each_pack_has_its_program(pack: Pack) -> None:
    folder = ROOT / "policies" / str(pack)
    project = YAML(typ="safe").load(folder / "PulumiPolicy.yaml")
    assert project["runtime"]["name"] == "python"
    program = (folder / "__main__.py").read_text()
    assert f"run(Pack.{pack.name})" in program
