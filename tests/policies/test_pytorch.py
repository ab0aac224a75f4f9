"""The fleet of PyTorch, and the weaknesses of the fleet that it replaces."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pulumi_aws as aws
import pulumi_kubernetes as k8s
import pytest
from policy_examples.kubernetes import SECRETS, container, pod, release, role, scale_set
from policy_examples.support import (
    ACCOUNT,
    TODAY,
    allow,
    build,
    document,
    github_trust,
)

from runfleet.spec import load_fleet
from runfleet_policies.engine import Settings, evaluate, evaluate_fleet
from runfleet_policies.registry import stack_rules

FLEET = Path(__file__).parents[2] / "playbooks" / "pytorch" / "fleet.yaml"

LIARS = {
    "l-arm64g3-16-62",
    "l-arm64g3-61-463",
    "l-arm64g4-16-62",
    "l-barm64g4-94-344",
    "l-bx86iavx512-94-344-t4-8",
    "l-x86aavx2-189-704-a10g-8",
    "l-x86aavx2-45-167-a10g-4",
    "l-x86aavx2-45-172-l4-4",
    "l-x86aavx512-125-463",
    "l-x86iamx-16-128",
    "l-x86iamx-46-84",
}


def test_exactly_the_seventeen_labels_that_lie_are_found() -> None:
    file = load_fleet(FLEET)
    found = evaluate_fleet(file.fleet, file.source, dt.date(2026, 6, 1))
    lies = {f.where.removeprefix("runner_classes.") for f in found
            if f.rule == "R-LABEL-02"}  # fmt: skip
    assert len(lies) == 17
    assert lies >= LIARS
    assert all(f.line and f.file == str(FLEET) for f in found)


def incumbent() -> None:
    """Model the weaknesses of pytorch/ci-infra at b1ce4a6."""
    network = aws.ec2.Vpc("vpc", cidr_block="10.4.0.0/16")
    aws.ec2.Subnet(
        "public",
        vpc_id=network.id,
        cidr_block="10.4.0.0/20",
        map_public_ip_on_launch=True,
    )
    aws.eks.Cluster(
        "cluster",
        role_arn=f"arn:aws:iam::{ACCOUNT}:role/cluster",
        vpc_config={
            "subnet_ids": ["subnet-1"],
            "endpoint_public_access": True,
            "public_access_cidrs": ["0.0.0.0/0"],
        },
    )
    deploy = aws.iam.Role(
        "deploy",
        assume_role_policy=document(
            github_trust("repo:pytorch/ci-infra:*", "StringLike")
        ),
    )
    aws.iam.RolePolicyAttachment(
        "administrator",
        role=deploy.name,
        policy_arn="arn:aws:iam::aws:policy/AdministratorAccess",
    )
    aws.iam.Policy(
        "profile",
        policy=document(
            allow(["ecr:PutImage", "ecr:InitiateLayerUpload"]), allow("s3:*")
        ),
    )
    k8s.core.v1.Namespace("runners", metadata={"name": "runners"})
    host = {
        "volumes": [{"name": "cache", "hostPath": {"path": "/mnt/git-cache"}}],
        "automountServiceAccountToken": True,
    }
    open_runner = container()
    del open_runner["securityContext"]
    scale_set("ci", maxRunners=None, pod=pod(open_runner, **host))
    scale_set("releases", runnerGroup="release-runners", pod=pod(open_runner, **host))
    role(SECRETS, {"resources": ["pods/exec"], "verbs": ["create"]})


@pytest.mark.parametrize(
    ("rule", "where"),
    [
        ("R-AWS-11", "cluster"),
        ("R-AWS-05", "public"),
        ("R-K8S-01", "runners"),
        ("R-K8S-02", "runners"),
        ("R-K8S-03", "ci"),
        ("R-K8S-04", "ci"),
        ("R-K8S-06", "runner-runners"),
        ("R-ARC-06", "runner-runners"),
        ("R-CLASS-01", "releases"),
        ("R-AWS-18", "administrator"),
        ("R-AWS-20", "deploy"),
        ("R-AWS-17", "profile"),
        ("R-AWS-19", "profile"),
        ("R-TAG-01", "vpc"),
        ("R-ARC-07", "ci"),
    ],
)
def test_each_weakness_is_found_where_it_is(rule: str, where: str) -> None:
    findings = evaluate(build(incumbent), stack_rules(), Settings("aws", TODAY))
    places = {
        f.where.partition("#")[0].rpartition("::")[2]
        for f in findings
        if f.rule == rule and not f.cannot_tell
    }
    assert where in places


def test_the_charts_own_role_is_found_too() -> None:
    findings = evaluate(
        build(lambda: release(containerMode={"type": "kubernetes-novolume"})),
        stack_rules(),
        Settings("aws", TODAY),
    )
    assert "R-ARC-06" in {found.rule for found in findings}
