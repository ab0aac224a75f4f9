"""The engine: unknown values, order, parameters, speed of growth, the tables."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import pytest
from policy_examples.support import LABELS, TODAY, Built, allow, document

from runfleet.spec.findings import Severity
from runfleet_policies import iam
from runfleet_policies.carriers import exemption, takes_tags
from runfleet_policies.engine import Settings, evaluate
from runfleet_policies.registry import all_rules, rule_named, stack_rules
from runfleet_policies.rule import Parameter, Rule
from runfleet_policies.values import UNKNOWN, UNKNOWNS

ROOT = Path(__file__).parents[2]
SECRET = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270"}


def resource(kind: str, inputs: dict[str, Any], name: str = "x") -> Built:
    urn = f"urn:pulumi:aws::runfleet::{kind}::{name}"
    return Built(urn, kind, name, inputs, f"{name}-id", inputs)


def judge(rule: str, *resources: Built) -> list[Any]:
    found = rule_named(rule)
    assert found is not None
    return evaluate(resources, [found], Settings(stack="aws", today=TODAY))


ROLE = "aws:iam/role:Role"
CLUSTER = "aws:eks/cluster:Cluster"
POLICY = "aws:iam/policy:Policy"
SET = "kubernetes:actions.github.com/v1alpha1:AutoscalingRunnerSet"


@pytest.mark.parametrize(
    ("rule", "kind", "inputs", "path"),
    [
        (
            "R-AWS-01",
            "aws:ec2/launchTemplate:LaunchTemplate",
            {"metadataOptions": {"httpTokens": UNKNOWN}},
            "metadataOptions.httpTokens",
        ),
        (
            "R-AWS-05",
            "aws:ec2/subnet:Subnet",
            {"mapPublicIpOnLaunch": "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7"},
            "mapPublicIpOnLaunch",
        ),
        (
            "R-AWS-06",
            "aws:ec2/securityGroup:SecurityGroup",
            {"ingress": "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2"},
            "ingress",
        ),
        ("R-AWS-11", CLUSTER, {"vpcConfig": UNKNOWN}, "vpcConfig"),
        ("R-AWS-13", CLUSTER, {"enabledClusterLogTypes": ["api", UNKNOWN]}, "[1]"),
        ("R-AWS-17", POLICY, {"policy": UNKNOWN}, "policy"),
        ("R-AWS-17", POLICY, {"policy": f'{{"a":"{UNKNOWN}"}}'}, "policy"),
        ("R-AWS-17", POLICY, {"policy": "{not json"}, "policy"),
        (
            "R-AWS-17",
            POLICY,
            {"policy": {"Statement": [allow(UNKNOWN)]}},
            "Statement[0].Action",
        ),
        (
            "R-AWS-17",
            POLICY,
            {"policy": {**SECRET, "value": "[secret]"}},
            "policy",
        ),
        ("R-AWS-19", POLICY, {"policy": UNKNOWN}, "policy"),
        ("R-AWS-20", ROLE, {"assumeRolePolicy": UNKNOWN}, "assumeRolePolicy"),
        ("R-K8S-03", SET, {"spec": {"template": {"spec": UNKNOWN}}}, "template.spec"),
        ("R-ARC-07", SET, {"spec": {"maxRunners": UNKNOWN}}, "maxRunners"),
        ("R-TAG-01", "aws:ec2/vpc:Vpc", {"tags": UNKNOWN}, "tags"),
        (
            "R-TAG-01",
            "aws:ec2/vpc:Vpc",
            {"tags": {**LABELS, "ci_owner": UNKNOWN}},
            "tags.ci_owner",
        ),
    ],
)
def test_an_unknown_value_never_passes(
    rule: str, kind: str, inputs: dict[str, Any], path: str
) -> None:
    findings = judge(rule, resource(kind, inputs))
    assert [found.cannot_tell for found in findings] == [True], findings
    assert findings[0].why.startswith("cannot tell: ")
    assert path in findings[0].where


def test_what_was_found_before_an_unknown_value_stays() -> None:
    found = judge(
        "R-AWS-13",
        resource(CLUSTER, {"enabledClusterLogTypes": ["api"]}, "one"),
        resource(CLUSTER, {"enabledClusterLogTypes": UNKNOWN}, "two"),
    )
    assert sorted(finding.cannot_tell for finding in found) == [False, True]


def test_a_known_secret_is_read_and_a_hidden_one_is_reported() -> None:
    data = "export API_TOKEN=abcdefghijkl\n"
    kind = "aws:ec2/launchTemplate:LaunchTemplate"
    shown = judge("R-AWS-25", resource(kind, {"userData": {**SECRET, "value": data}}))
    hidden = judge(
        "R-AWS-25", resource(kind, {"userData": {**SECRET, "value": "[secret]"}})
    )
    assert [found.why for found in shown] == ["holds a password or token"]
    assert [found.why for found in hidden] == [
        "the program marks its user data as a secret"
    ]


def test_findings_say_where_why_and_how_to_mend_worst_first() -> None:
    findings = evaluate(
        [
            resource("aws:kms/key:Key", {}),
            resource(POLICY, {"policy": document(allow("*"))}),
        ],
        [r for r in all_rules() if r.id in ("R-AWS-17", "R-AWS-26")],
        Settings(stack="aws", today=TODAY),
    )
    assert [(f.rule, f.severity) for f in findings] == [
        ("R-AWS-17", Severity.CRITICAL),
        ("R-AWS-26", Severity.LOW),
    ]
    first = findings[0]
    assert first.where == (f"urn:pulumi:aws::runfleet::{POLICY}::x#Statement[0]")
    assert first.why == "Action is *: every action is allowed"
    assert first.fix == "list the actions and the ARNs that are needed"
    assert first.stack == "aws"


def test_resources_that_are_only_read_are_not_judged() -> None:
    class Read(Built):
        external = True

    read = Read("urn", "aws:kms/key:Key", "k", {}, "k", {})
    assert judge("R-AWS-26", read) == []


def test_a_rule_needs_exactly_one_check() -> None:
    with pytest.raises(ValueError, match="exactly one check, has 0"):
        Rule("R-X", Severity.LOW, "t", "r", "f")


def test_rules_are_complete() -> None:
    for rule in all_rules():
        assert rule.id.startswith("R-")
        assert rule.title[0].isupper(), rule.id
        assert not rule.title.endswith("."), rule.id
        assert rule.rationale.endswith("."), rule.id
        assert "\n" not in rule.fix, rule.id
        assert not rule.fix.endswith("."), rule.id
        assert rule.anchors, rule.id
        for parameter in rule.parameters:
            assert parameter.schema["default"] == parameter.default
            assert parameter.what.endswith("."), rule.id


def test_parameters_declare_their_types() -> None:
    assert Parameter("a", ["x"], "A.").schema == {
        "type": "array",
        "items": {"type": "string"},
        "default": ["x"],
        "description": "A.",
    }
    assert Parameter("a", True, "A.").schema["type"] == "boolean"
    assert Parameter("a", 3, "A.").schema["type"] == "integer"


def test_the_whole_catalogue_of_this_cloud_is_there() -> None:
    ids = {rule.id for rule in all_rules()}
    wanted = {f"R-AWS-{n:02}" for n in range(1, 27)}
    wanted |= {f"R-K8S-{n:02}" for n in range(1, 9)}
    wanted |= {f"R-ARC-{n:02}" for n in range(1, 12)}
    wanted |= {f"R-GH-{n:02}" for n in range(1, 4)} | {"R-TAG-01", "R-CLASS-01"}
    assert wanted <= ids


def test_importing_the_rules_imports_no_pulumi() -> None:
    code = (
        "import sys, runfleet_policies.engine, runfleet_policies.waivers\n"
        "print([m for m in sys.modules if m.split('.')[0].startswith('pulumi')])"
    )
    path = f"{ROOT / 'components'}:{ROOT / 'policies'}"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"


def test_action_patterns_are_expanded_with_awss_table() -> None:
    assert iam.expand("s3:getobjectversion") == {"s3:getobjectversion"}
    assert iam.expand("s3:GetObject?cl") == {"s3:getobjectacl"}
    assert iam.expand("new-service:DoIt") == {"new-service:doit"}
    assert "iam:passrole" in iam.expand("iam:P*")
    assert iam.expand("*") == iam.table().all
    assert len(iam.table().all) > 15000


@pytest.mark.parametrize(
    ("pattern", "kind", "broad"),
    [
        ("*", "", True),
        ("arn:*", "", True),
        ("arn:aws:*", "", True),
        ("arn:aws:s3:::*", "", True),
        ("arn:aws:s3:::cache/*", "", False),
        ("arn:aws:iam::1:role/*", "", False),
        ("arn:aws:iam::1:role/*", "role", True),
        ("arn:aws:iam::1:role/ci-*", "role", False),
    ],
)
def test_scope_of_a_resource_pattern(pattern: str, kind: str, broad: bool) -> None:
    (statement,) = iam.statements({"policy": document(allow("a:B", pattern))}, "policy")
    assert statement.broad(kind) is broad


def _tables() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "policy_tables", ROOT / "policies" / "tables.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_action_table_is_what_its_source_gives() -> None:
    tables = _tables()
    assert json.loads((tables.DATA / "iam_actions.json").read_text()) == (
        tables.iam_actions()
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["aws_types", "gcp_types", "azure_types"])
def test_the_type_tables_are_what_their_sources_give(name: str) -> None:
    tables = _tables()
    committed = json.loads((tables.DATA / f"{name}.json").read_text())
    assert committed == getattr(tables, name)()


def test_types_without_labels_have_a_reason() -> None:
    assert takes_tags("aws:ec2/vpc:Vpc")
    assert takes_tags("aws:brandnew/thing:Thing")
    assert exemption("aws:ec2/vpc:Vpc") == ""
    assert "no tags" in exemption("aws:iam/rolePolicy:RolePolicy")
    assert exemption("github:index/actionsRunnerGroup:ActionsRunnerGroup")
    assert exemption("kubernetes:core/v1:ServiceAccount")
    assert exemption("kubernetes:core/v1:Namespace") == ""


def _one_class(at: int) -> list[Built]:
    """Return the ten resources of one runner class."""
    name = f"r{at}"
    rbac = "kubernetes:rbac.authorization.k8s.io/v1"
    meta = {"name": name, "namespace": name, "labels": LABELS}
    trust = {
        "Effect": "Allow",
        "Action": ["sts:AssumeRole", "sts:TagSession"],
        "Principal": {"Service": "pods.eks.amazonaws.com"},
    }
    grant = document(allow("s3:GetObject", f"arn:aws:s3:::c/{at}/*"))
    runner = {"serviceAccountName": name, "containers": [{"name": "runner"}]}
    hook = f"spec: {{serviceAccountName: {name}, containers: [{{name: $job}}]}}"
    subject = {"kind": "ServiceAccount", "name": name, "namespace": name}
    found: list[tuple[str, dict[str, Any]]] = [
        (ROLE, {"name": name, "assumeRolePolicy": document(trust), "tags": LABELS}),
        ("aws:iam/rolePolicy:RolePolicy", {"role": name, "policy": grant}),
        (
            "aws:eks/podIdentityAssociation:PodIdentityAssociation",
            {"namespace": name, "serviceAccount": name, "roleArn": name},
        ),
        ("kubernetes:karpenter.k8s.aws/v1:EC2NodeClass", {"spec": {"role": name}}),
        ("kubernetes:core/v1:Namespace", {"metadata": meta}),
        ("kubernetes:core/v1:ServiceAccount", {"metadata": meta}),
        ("kubernetes:core/v1:ConfigMap", {"metadata": meta, "data": {"a": hook}}),
        (SET, {"metadata": meta, "spec": {"template": {"spec": runner}}}),
        (f"{rbac}:Role", {"metadata": meta, "rules": [{"verbs": ["get"]}]}),
        (
            f"{rbac}:RoleBinding",
            {
                "metadata": meta,
                "roleRef": {"kind": "Role", "name": name},
                "subjects": [subject],
            },
        ),
    ]
    return [resource(kind, inputs, name) for kind, inputs in found]


def _many(count: int) -> list[Built]:
    return [found for at in range(count // 10) for found in _one_class(at)]


def _calls(count: int) -> int:
    """Return how many functions judging so many resources calls."""
    resources = _many(count)
    calls = 0

    def count_call(frame: FrameType, event: str, arg: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count_call)
    try:
        evaluate(resources, stack_rules(), Settings(stack="aws", today=TODAY))
    finally:
        sys.setprofile(None)
    return calls


def test_work_grows_with_the_number_of_resources_and_not_faster() -> None:
    _calls(1600)  # fills the caches of parsed documents
    assert _calls(1600) < 4.2 * _calls(400)


def test_unknown_marks_are_those_of_pulumi() -> None:
    from pulumi_policy import proxy

    marks = {v for k, v in vars(proxy).items() if k.startswith("UNKNOWN_")}
    assert marks == UNKNOWNS
