"""The packs' own programs, started as Pulumi's engine starts them and asked over gRPC.

The Pulumi CLI is not needed: a pack is a server, and this test is its engine. What
it does not prove is that the CLI finds and installs the pack.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import empty_pb2, json_format, struct_pb2
from policy_examples.support import LABELS
from pulumi.runtime.proto import analyzer_pb2, analyzer_pb2_grpc

from runfleet_policies.registry import rules_of
from runfleet_policies.rule import Pack
from runfleet_policies.values import UNKNOWN

ROOT = Path(__file__).parents[2]
MANDATORY = analyzer_pb2.EnforcementLevel.Value("MANDATORY")
REMEDIATE = analyzer_pb2.EnforcementLevel.Value("REMEDIATE")


def serve(pack: str) -> Iterator[analyzer_pb2_grpc.AnalyzerStub]:
    path = f"{ROOT / 'components'}{os.pathsep}{ROOT / 'policies'}"
    environment = {
        **os.environ,
        "PYTHONPATH": path,
        "PULUMI_PROJECT": "runfleet",
        "PULUMI_STACK": "aws",
        "PULUMI_CONFIG": json.dumps({}),
        "PULUMI_DRY_RUN": "true",
    }
    program = ROOT / "policies" / pack
    with subprocess.Popen(
        [sys.executable, str(program)],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
                yield analyzer_pb2_grpc.AnalyzerStub(channel)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def security() -> Iterator[analyzer_pb2_grpc.AnalyzerStub]:
    yield from serve("security")


@pytest.fixture(scope="module")
def labelling() -> Iterator[analyzer_pb2_grpc.AnalyzerStub]:
    yield from serve("labelling")


@pytest.fixture(scope="module")
def cost() -> Iterator[analyzer_pb2_grpc.AnalyzerStub]:
    yield from serve("cost")


@pytest.fixture
def configurable() -> Iterator[analyzer_pb2_grpc.AnalyzerStub]:
    yield from serve("security")


def request(kind: str, properties: dict[str, Any]) -> Any:
    struct = struct_pb2.Struct()
    json_format.ParseDict(properties, struct)
    return analyzer_pb2.AnalyzeRequest(
        type=kind,
        properties=struct,
        urn=f"urn:pulumi:aws::runfleet::{kind}::x",
        name="x",
    )


def names(found: Any) -> list[str]:
    return sorted(diagnostic.policyName for diagnostic in found.diagnostics)


@pytest.mark.parametrize("pack", list(Pack))
def test_a_pack_lists_its_rules(pack: Pack, request: pytest.FixtureRequest) -> None:
    stub = request.getfixturevalue(str(pack))
    info = stub.GetAnalyzerInfo(empty_pb2.Empty())
    assert info.name == f"runfleet-{pack}"
    listed = sorted(policy.name for policy in info.policies)
    assert listed == sorted(rule.id.lower() for rule in rules_of(pack))


def test_violations_are_mandatory_and_say_how_to_mend(security: Any) -> None:
    found = security.Analyze(
        request(
            "aws:eks/cluster:Cluster",
            {"vpcConfig": {"endpointPublicAccess": True}, "version": "1.99"},
        )
    )
    assert names(found) == ["r-aws-11", "r-aws-12", "r-aws-13"]
    first = next(d for d in found.diagnostics if d.policyName == "r-aws-11")
    assert first.enforcementLevel == MANDATORY
    assert "open to 0.0.0.0/0, the default" in first.message
    assert "Fix: set endpointPublicAccess to false" in first.message


def test_an_unknown_value_is_said_and_does_not_block(security: Any) -> None:
    found = security.Analyze(
        request(
            "aws:ec2/launchTemplate:LaunchTemplate",
            {"metadataOptions": UNKNOWN, "userData": ""},
        )
    )
    assert names(found) == ["r-aws-01", "r-aws-02"]
    for diagnostic in found.diagnostics:
        assert "can't run policy" in diagnostic.message
        assert diagnostic.enforcementLevel != MANDATORY


def test_a_stack_is_judged_as_a_whole(security: Any) -> None:
    struct = struct_pb2.Struct()
    json_format.ParseDict({"cidrBlock": "10.0.0.0/16", "id": "vpc-1"}, struct)
    found = security.AnalyzeStack(
        analyzer_pb2.AnalyzeStackRequest(
            resources=[
                analyzer_pb2.AnalyzerResource(
                    type="aws:ec2/vpc:Vpc", properties=struct, urn="urn:vpc", name="v"
                )
            ]
        )
    )
    assert names(found) == ["r-aws-08", "r-aws-09", "r-aws-10"]
    assert {diagnostic.urn for diagnostic in found.diagnostics} == {"urn:vpc"}


def test_configuration_turns_on_remediation_of_labels(labelling: Any) -> None:
    settings = struct_pb2.Struct()
    json_format.ParseDict({"defaults": {"ci_owner": "infra"}}, settings)
    labelling.Configure(
        analyzer_pb2.ConfigureAnalyzerRequest(
            policyConfig={
                "r-tag-01": analyzer_pb2.PolicyConfig(
                    enforcementLevel=REMEDIATE, properties=settings
                )
            }
        )
    )
    tags = {key: value for key, value in LABELS.items() if key != "ci_owner"}
    asked = request("aws:ec2/vpc:Vpc", {"tags": tags})
    found = labelling.Remediate(
        analyzer_pb2.AnalyzeRequest(
            type=asked.type, properties=asked.properties, urn=asked.urn, name="x"
        )
    )
    (remedy,) = found.remediations
    assert json_format.MessageToDict(remedy.properties) == {
        "tags": {**tags, "ci_owner": "infra"}
    }


def configure(stub: Any, name: str, level: str, **values: Any) -> None:
    settings = struct_pb2.Struct()
    json_format.ParseDict(values, settings)
    stub.Configure(
        analyzer_pb2.ConfigureAnalyzerRequest(
            policyConfig={
                name: analyzer_pb2.PolicyConfig(
                    enforcementLevel=analyzer_pb2.EnforcementLevel.Value(level),
                    properties=settings,
                )
            }
        )
    )


@pytest.mark.parametrize("level", ["ADVISORY", "MANDATORY", "DISABLED"])
def test_configuration_sets_the_level_of_a_rule(configurable: Any, level: str) -> None:
    configure(configurable, "r-aws-05", level)
    found = configurable.Analyze(
        request("aws:ec2/subnet:Subnet", {"mapPublicIpOnLaunch": True})
    )
    wanted = [] if level == "DISABLED" else [level]
    levels = [d.enforcementLevel for d in found.diagnostics]
    assert levels == [analyzer_pb2.EnforcementLevel.Value(name) for name in wanted]


def test_configuration_sets_parameters_and_keeps_the_other_defaults(
    configurable: Any,
) -> None:
    egress = {"type": "egress", "protocol": "tcp", "cidrBlocks": ["0.0.0.0/0"]}
    kind = "aws:ec2/securityGroupRule:SecurityGroupRule"
    asked = request(kind, {**egress, "fromPort": 8443, "toPort": 8443})
    assert names(configurable.Analyze(asked)) == ["r-aws-07"]
    configure(configurable, "r-aws-07", "MANDATORY", ports=["443", "8443"])
    assert names(configurable.Analyze(asked)) == []
    configure(configurable, "r-aws-07", "MANDATORY")
    assert names(configurable.Analyze(asked)) == ["r-aws-07"]


def test_a_parameter_of_a_rule_about_a_stack_is_heard(configurable: Any) -> None:
    struct = struct_pb2.Struct()
    json_format.ParseDict({"disablePublicServiceEndpoint": True}, struct)
    kind = "ibm:index/containerVpcCluster:ContainerVpcCluster"
    asked = analyzer_pb2.AnalyzeStackRequest(
        resources=[
            analyzer_pb2.AnalyzerResource(
                type=kind, properties=struct, urn="urn:c", name="c"
            )
        ]
    )
    assert names(configurable.AnalyzeStack(asked)) == ["r-ibm-11"]
    configure(configurable, "r-ibm-11", "ADVISORY", set_elsewhere=True)
    assert names(configurable.AnalyzeStack(asked)) == []


@pytest.mark.parametrize("pack", list(Pack))
def test_the_engine_is_told_levels_and_parameters(
    pack: Pack, request: pytest.FixtureRequest
) -> None:
    stub = request.getfixturevalue(str(pack))
    info = stub.GetAnalyzerInfo(empty_pb2.Empty())
    for policy in info.policies:
        rule = next(r for r in rules_of(pack) if r.id.lower() == policy.name)
        level = "MANDATORY" if rule.severity.rank < 2 else "ADVISORY"
        assert policy.enforcementLevel == analyzer_pb2.EnforcementLevel.Value(level)
        declared = json_format.MessageToDict(policy.configSchema.properties)
        assert set(declared) >= {p.name for p in rule.parameters}
