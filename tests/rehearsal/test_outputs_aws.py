"""Ids and ARNs of AWS types have the form that AWS gives them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from runfleet.rehearsal.providers.aws import derive, invoke, location
from runfleet.rehearsal.providers.subject import Derived, Subject

PROVIDER = {"region": "us-east-2", "allowedAccountIds": '["111122223333"]'}
HERE = "us-east-2:111122223333"
UUID = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
HEX = "0[0-9a-f]{16}"


def made(token: str, provider: dict[str, Any] | None = None, **inputs: Any) -> Derived:
    subject = Subject(
        urn=f"urn:pulumi:aws::fleet::aws:{token}::thing",
        type=f"aws:{token}",
        name="thing",
        inputs=inputs,
        provider=PROVIDER if provider is None else provider,
    )
    return derive(subject)


@pytest.mark.parametrize(
    ("token", "inputs", "id_", "arn"),
    [
        ("ec2/vpc:Vpc", {}, f"vpc-{HEX}", f"arn:aws:ec2:{HERE}:vpc/vpc-{HEX}"),
        (
            "ec2/subnet:Subnet",
            {},
            f"subnet-{HEX}",
            f"arn:aws:ec2:{HERE}:subnet/subnet-{HEX}",
        ),
        (
            "ec2/securityGroup:SecurityGroup",
            {},
            f"sg-{HEX}",
            f"arn:aws:ec2:{HERE}:security-group/sg-{HEX}",
        ),
        (
            "ec2/natGateway:NatGateway",
            {},
            f"nat-{HEX}",
            f"arn:aws:ec2:{HERE}:natgateway/nat-{HEX}",
        ),
        (
            "ec2/eip:Eip",
            {},
            f"eipalloc-{HEX}",
            f"arn:aws:ec2:{HERE}:elastic-ip/eipalloc-{HEX}",
        ),
        (
            "vpc/securityGroupIngressRule:SecurityGroupIngressRule",
            {},
            f"sgr-{HEX}",
            f"arn:aws:ec2:{HERE}:security-group-rule/sgr-{HEX}",
        ),
        (
            "iam/role:Role",
            {"name": "runner", "path": "/ci/"},
            "runner",
            "arn:aws:iam::111122223333:role/ci/runner",
        ),
        (
            "iam/policy:Policy",
            {"name": "cache"},
            "arn:aws:iam::111122223333:policy/cache",
            "arn:aws:iam::111122223333:policy/cache",
        ),
        (
            "iam/openIdConnectProvider:OpenIdConnectProvider",
            {"url": "https://token.actions.githubusercontent.com"},
            "arn:aws:iam::111122223333:oidc-provider/token.actions.githubusercontent.com",
            "arn:aws:iam::111122223333:oidc-provider/token.actions.githubusercontent.com",
        ),
        ("s3/bucket:Bucket", {"bucket": "cache"}, "cache", "arn:aws:s3:::cache"),
        ("kms/key:Key", {}, UUID, f"arn:aws:kms:{HERE}:key/{UUID}"),
        (
            "kms/alias:Alias",
            {"name": "alias/ci", "targetKeyId": "k"},
            "alias/ci",
            f"arn:aws:kms:{HERE}:alias/ci",
        ),
        (
            "cloudwatch/logGroup:LogGroup",
            {"name": "/aws/eks/c/cluster"},
            "/aws/eks/c/cluster",
            f"arn:aws:logs:{HERE}:log-group:/aws/eks/c/cluster",
        ),
        (
            "sqs/queue:Queue",
            {"name": "jobs"},
            "https://sqs.us-east-2.amazonaws.com/111122223333/jobs",
            f"arn:aws:sqs:{HERE}:jobs",
        ),
        (
            "cloudwatch/eventRule:EventRule",
            {"name": "spot"},
            "spot",
            f"arn:aws:events:{HERE}:rule/spot",
        ),
        (
            "ecr/repository:Repository",
            {"name": "ci/runner"},
            "ci/runner",
            f"arn:aws:ecr:{HERE}:repository/ci/runner",
        ),
        (
            "secretsmanager/secret:Secret",
            {"name": "app"},
            f"arn:aws:secretsmanager:{HERE}:secret:app-[a-z0-9]{{6}}",
            f"arn:aws:secretsmanager:{HERE}:secret:app-[a-z0-9]{{6}}",
        ),
        ("eks/cluster:Cluster", {"name": "c"}, "c", f"arn:aws:eks:{HERE}:cluster/c"),
        (
            "eks/nodeGroup:NodeGroup",
            {"clusterName": "c", "nodeGroupName": "base"},
            "c:base",
            f"arn:aws:eks:{HERE}:nodegroup/c/base/{UUID}",
        ),
        (
            "eks/addon:Addon",
            {"clusterName": "c", "addonName": "vpc-cni"},
            "c:vpc-cni",
            f"arn:aws:eks:{HERE}:addon/c/vpc-cni/{UUID}",
        ),
        (
            "dynamodb/table:Table",
            {"name": "t"},
            "t",
            f"arn:aws:dynamodb:{HERE}:table/t",
        ),
        (
            "kinesis/firehoseDeliveryStream:FirehoseDeliveryStream",
            {"name": "f"},
            f"arn:aws:firehose:{HERE}:deliverystream/f",
            f"arn:aws:firehose:{HERE}:deliverystream/f",
        ),
        (
            "budgets/budget:Budget",
            {"name": "funder"},
            "111122223333:funder",
            "arn:aws:budgets::111122223333:budget/funder",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and "/" in value else "",
)
def test_id_and_arn(token: str, inputs: dict[str, Any], id_: str, arn: str) -> None:
    found = made(token, **inputs)
    assert re.fullmatch(id_, found.id)
    assert re.fullmatch(arn, found.outputs["arn"])


def test_a_cluster_has_what_kubeconfigs_and_trust_policies_need() -> None:
    outputs = made(
        "eks/cluster:Cluster", name="c", vpcConfig={"subnetIds": ["a"]}
    ).outputs
    host = re.fullmatch(
        r"https://([0-9A-F]{32})\.gr7\.us-east-2\.eks\.amazonaws\.com",
        outputs["endpoint"],
    )
    assert host is not None
    issuer = outputs["identities"][0]["oidcs"][0]["issuer"]
    assert issuer == f"https://oidc.eks.us-east-2.amazonaws.com/id/{host[1]}"
    assert re.fullmatch(f"sg-{HEX}", outputs["vpcConfig"]["clusterSecurityGroupId"])
    assert outputs["vpcConfig"]["subnetIds"] == ["a"]
    assert outputs["certificateAuthority"]["data"].startswith("LS0tLS1CRUdJTi")


def test_automatic_names_are_stable_and_different() -> None:
    one = made("sqs/queue:Queue").outputs["name"]
    assert re.fullmatch("thing-[0-9a-f]{7}", one)
    assert made("sqs/queue:Queue").outputs["name"] == one
    assert made("iam/role:Role").outputs["name"] != one


def test_repository_url() -> None:
    url = made("ecr/repository:Repository", name="ci").outputs["repositoryUrl"]
    assert url == "111122223333.dkr.ecr.us-east-2.amazonaws.com/ci"


def test_pod_identity_and_access_entry() -> None:
    pod = made("eks/podIdentityAssociation:PodIdentityAssociation", clusterName="c")
    assert re.fullmatch("a-[a-z0-9]{17}", pod.id)
    role = "arn:aws:iam::111122223333:role/admin"
    entry = made("eks/accessEntry:AccessEntry", clusterName="c", principalArn=role)
    assert entry.id == f"c:{role}"
    prefix = f"arn:aws:eks:{HERE}:access-entry/c/role/111122223333/admin/"
    assert re.fullmatch(prefix + UUID, entry.outputs["accessEntryArn"])


def test_other_partitions() -> None:
    found = made("iam/role:Role", {"region": "us-gov-west-1"}, name="r")
    assert found.outputs["arn"] == "arn:aws-us-gov:iam::123456789012:role/r"


@pytest.mark.parametrize(
    ("inputs", "provider", "expected"),
    [
        ({}, {}, ("123456789012", "us-east-1")),
        ({}, PROVIDER, ("111122223333", "us-east-2")),
        ({"region": "eu-west-1"}, PROVIDER, ("111122223333", "eu-west-1")),
        (
            {},
            {"assumeRoles": '[{"roleArn":"arn:aws:iam::444455556666:role/deploy"}]'},
            ("444455556666", "us-east-1"),
        ),
        (
            {},
            {"assumeRole": {"roleArn": "arn:aws:iam::444455556666:role/deploy"}},
            ("444455556666", "us-east-1"),
        ),
    ],
)
def test_account_and_region(
    inputs: dict[str, Any], provider: dict[str, Any], expected: tuple[str, str]
) -> None:
    assert location(inputs, provider) == expected


def test_functions() -> None:
    token = "aws:index/getPartition:getPartition"
    assert invoke(token, {}, {"region": "cn-north-1"})["dnsSuffix"] == (
        "amazonaws.com.cn"
    )
    assert invoke("aws:ec2/getAmi:getAmi", {}, PROVIDER) is None
