"""The weaknesses of the fleet that is replaced, each found by the rule for it.

The model holds what github.com/pytorch/ci-infra had at b1ce4a6: the Kubernetes fleet
in ``osdc/`` and the deployment account of the older autoscaler in ``ali/``. It is
written with the same SDKs as our own stacks, so that the same rules judge it.
"""

from __future__ import annotations

from functools import lru_cache

import pulumi_aws as aws
import pulumi_kubernetes as k8s
import pytest
from policy_examples.kubernetes import (
    SECRETS,
    container,
    hook,
    pod,
    release,
    role,
    scale_set,
)
from policy_examples.support import (
    ACCOUNT,
    TODAY,
    allow,
    build,
    document,
    github_trust,
)

from runfleet.errors import InputError
from runfleet.spec.findings import Finding
from runfleet.spec.source import parse_source
from runfleet_policies.engine import Settings, evaluate
from runfleet_policies.registry import stack_rules
from runfleet_policies.waivers import build_waivers

HOST = {"volumes": [{"name": "cache", "hostPath": {"path": "/mnt/git-cache"}}]}
JOB_TEMPLATE = """\
  containers:
    - name: $job
  volumes:
    - name: cache
      hostPath: {path: /mnt/git-cache}
"""


def network() -> None:
    """``osdc/modules/eks``: an open API, subnets that give public addresses."""
    vpc = aws.ec2.Vpc("vpc", cidr_block="10.4.0.0/16")
    aws.ec2.Subnet(
        "public",
        vpc_id=vpc.id,
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


def runners() -> None:
    """``osdc/modules/arc*``: one namespace, account and Role for all classes."""
    k8s.core.v1.Namespace("arc-runners", metadata={"name": "runners"})
    open_runner = container()
    del open_runner["securityContext"]
    template = pod(open_runner, automountServiceAccountToken=True, **HOST)
    scale_set("ci", maxRunners=None, pod=template)
    scale_set("releases", runnerGroup="release-runners", pod=template)
    hook(JOB_TEMPLATE)
    role(SECRETS, {"resources": ["pods/exec"], "verbs": ["create"]})


def deployment() -> None:
    """``ali/aws``: a deployment role of every ref, a profile that writes all."""
    trust = document(github_trust("repo:pytorch/ci-infra:*", "StringLike"))
    deploy = aws.iam.Role("deploy", assume_role_policy=trust)
    aws.iam.RolePolicyAttachment(
        "administrator",
        role=deploy.name,
        policy_arn="arn:aws:iam::aws:policy/AdministratorAccess",
    )
    push = allow(["ecr:PutImage", "ecr:InitiateLayerUpload"])
    aws.iam.Policy("profile", policy=document(push, allow("s3:*")))


@lru_cache(maxsize=1)
def findings() -> list[Finding]:
    def program() -> None:
        network()
        runners()
        deployment()

    return evaluate(build(program), stack_rules(), Settings("aws", TODAY))


@pytest.mark.parametrize(
    ("weakness", "rule", "where"),
    [
        ("the API is open to 0.0.0.0/0", "R-AWS-11", "cluster"),
        ("public subnets", "R-AWS-05", "public"),
        ("no Pod Security label", "R-K8S-01", "arc-runners"),
        ("no network policy", "R-K8S-02", "arc-runners"),
        ("runners with hostPath", "R-K8S-03", "ci"),
        ("jobs with hostPath", "R-K8S-03", "hook"),
        ("runners without securityContext", "R-K8S-04", "ci"),
        ("jobs without securityContext", "R-K8S-04", "hook"),
        ("the Role reads Secrets and execs", "R-K8S-06", "runner-runners"),
        ("the App key is among them", "R-ARC-06", "runner-runners"),
        ("one account for CI and releases", "R-CLASS-01", "releases"),
        ("AdministratorAccess", "R-AWS-18", "administrator"),
        ("any ref of a repository may deploy", "R-AWS-20", "deploy"),
        ("push to every repository", "R-AWS-17", "profile"),
        ("everything in S3", "R-AWS-19", "profile"),
        ("no labels on a network", "R-TAG-01", "vpc"),
        ("no labels on a cluster", "R-TAG-01", "cluster"),
        ("no labels on a scale set", "R-TAG-01", "ci"),
        ("no maximum", "R-ARC-07", "ci"),
    ],
)
def test_each_weakness_is_found_where_it_is(
    weakness: str, rule: str, where: str
) -> None:
    places = {
        found.where.partition("#")[0].rpartition("::")[2]
        for found in findings()
        if found.rule == rule and not found.cannot_tell
    }
    assert where in places, weakness


def test_the_charts_own_role_is_found_too() -> None:
    found = evaluate(
        build(lambda: release(containerMode={"type": "kubernetes-novolume"})),
        stack_rules(),
        Settings("aws", TODAY),
    )
    assert "R-ARC-06" in {finding.rule for finding in found}


@pytest.mark.parametrize("missing", ["owner", "reason", "expires", "rule"])
def test_no_rule_is_skipped_without_a_name_a_reason_and_a_day(missing: str) -> None:
    # The incumbent's scanners skip whole folders and 17 checks for good.
    entry = {
        "rule": "R-AWS-11",
        "resource": "'*'",
        "owner": "infra",
        "reason": "imported",
        "expires": "2026-12-31",
    }
    lines = [f"  {key}: {value}" for key, value in entry.items() if key != missing]
    text = "waivers:\n-" + "\n".join(lines)[1:] + "\n"
    with pytest.raises(InputError) as error:
        build_waivers(parse_source("waivers.yaml", text))
    assert any(missing in problem.path for problem in error.value.problems)
