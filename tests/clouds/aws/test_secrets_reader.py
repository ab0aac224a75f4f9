"""The identity of External Secrets: exact rights on exact secrets, one pod account."""

from __future__ import annotations

import json
from typing import Any

import pulumi
import pytest

from clouds.aws.conftest import FLEET, LABELS, Record, Recording, plan_of
from runfleet.clouds.aws import addresses
from runfleet.clouds.aws.cluster import Cluster, ClusterArgs
from runfleet.clouds.aws.floor import AwsFloor
from runfleet.clouds.aws.secrets_reader import (
    SecretsReader,
    SecretsReaderArgs,
    reading,
)
from runfleet.errors import InputError
from runfleet.placement.plan import CellPlan

SECRETS = "arn:aws:secretsmanager:us-east-1:111122223333:secret"
KEY = "arn:aws:kms:us-east-1:111122223333:key/0ab-c"
ROLE = "demo-ue1--secrets-reader"


def _args(plan: CellPlan) -> SecretsReaderArgs:
    return SecretsReaderArgs.from_plan(
        plan, "demo-ue1", "external-secrets", "external-secrets"
    )


def _with_key(key: str) -> str:
    return FLEET.replace(
        "    release_runner_group: release\n",
        "    release_runner_group: release\n"
        f"    settings: {{app_secret_keys: ['{key}']}}\n",
    )


@pytest.fixture(scope="module")
def made(record: Record, plan: CellPlan) -> Recording:
    return record(lambda opts, _: SecretsReader("s", _args(plan), opts))


def test_exact_children(made: Recording) -> None:
    assert made.children("s") == {
        "s-boundary": "runfleet:aws:PermissionsBoundary",
        "s-role": "aws:iam/role:Role",
        "s-policy": "aws:iam/rolePolicy:RolePolicy",
        "s-association": "aws:eks/podIdentityAssociation:PodIdentityAssociation",
    }
    assert made["s"].type == "runfleet:aws:SecretsReader"
    assert {r.provider for r in made.resources if r.type[:8] == "aws:iam/"} == {"cloud"}


def test_it_reads_the_named_secrets_and_nothing_else(made: Recording) -> None:
    (only,) = made.statements("s-policy")
    assert only == {
        "Sid": "AppKeys",
        "Effect": "Allow",
        "Action": ["secretsmanager:DescribeSecret", "secretsmanager:GetSecretValue"],
        "Resource": [
            f"{SECRETS}:demo/github-app-??????",
            f"{SECRETS}:demo/github-app-release-??????",
            f"{SECRETS}:runfleet/github-app-??????",
        ],
    }
    assert made.statements("s-boundary-policy") == [only]


def test_a_key_of_the_secrets_own_is_used_through_secrets_manager_only() -> None:
    _, key = reading(_args(plan_of(_with_key(KEY))))
    assert (key["Action"], key["Resource"]) == (["kms:Decrypt"], [KEY])
    assert key["Condition"] == {
        "StringEquals": {"kms:ViaService": "secretsmanager.us-east-1.amazonaws.com"}
    }


def test_a_key_that_is_no_arn_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        _args(plan_of(_with_key("arn:aws:kms:us-east-1:111122223333:key/*")))
    (problem,) = caught.value.problems
    assert problem.path.startswith("cells.aws.settings.app_secret_keys")


def test_one_account_one_hour_and_a_boundary(made: Recording) -> None:
    role = made["s-role"].inputs
    assert role["name"] == ROLE
    assert role["maxSessionDuration"] == 3600
    assert role["permissionsBoundary"] == "arn:of:s-boundary-policy"
    assert made["s-boundary-policy"].inputs["name"] == "demo-ue1--secrets--boundary"
    assert role["tags"] == LABELS
    (trust,) = json.loads(role["assumeRolePolicy"])["Statement"]
    assert trust["Principal"] == {"Service": "pods.eks.amazonaws.com"}
    assert trust["Action"] == ["sts:AssumeRole", "sts:TagSession"]
    assert trust["Condition"] == {
        "StringEquals": {
            "aws:SourceAccount": "111122223333",
            "aws:RequestTag/kubernetes-namespace": "external-secrets",
            "aws:RequestTag/kubernetes-service-account": "external-secrets",
        },
        "ArnEquals": {
            "aws:SourceArn": "arn:aws:eks:us-east-1:111122223333:cluster/demo-ue1"
        },
    }
    assert made["s-association"].inputs == {
        "clusterName": "demo-ue1",
        "namespace": "external-secrets",
        "serviceAccount": "external-secrets",
        "roleArn": "arn:of:s-role",
        "tags": LABELS,
    }
    assert made["s-association"].after >= {"s-policy"}


def test_the_floor_says_what_must_exist_before_the_pods_start(
    record: Record, plan: CellPlan
) -> None:
    seen: dict[str, Any] = {}

    def build(opts: pulumi.ResourceOptions, _: Any) -> Cluster:
        args = ClusterArgs.from_plan(plan, "vpc-0", ["subnet-0"], ["subnet-1"], "sg-0")
        cluster = Cluster("c", args, opts)
        identity = AwsFloor().secrets_reader(
            "s", plan, cluster, "external-secrets", "external-secrets", opts
        )
        seen["annotations"] = identity.annotations
        (seen["added"],) = identity.ready
        return cluster

    made = record(build)
    assert seen["annotations"] == {}
    assert seen["added"]._name == "s-association"
    assert made["s-association"].inputs["clusterName"] == "demo-ue1"


def test_names_of_secrets_mean_themselves() -> None:
    text = FLEET.replace("secret: demo/github-app,", "secret: 'demo/*',")
    text = text.replace("secret: demo/github-app-release,", "secret: 'arn:aws:x',")
    with pytest.raises(InputError) as caught:
        _args(plan_of(text))
    assert [problem.path for problem in caught.value.problems] == [
        "github.apps.ci.secret",
        "github.apps.release.secret",
    ]


def test_a_class_without_an_app_uses_the_default_secret(plan: CellPlan) -> None:
    fleet = plan.fleet
    named = ("demo/github-app", "demo/github-app-release")
    assert addresses.app_secrets(fleet) == (*named, "runfleet/github-app")
    without = {k: c for k, c in fleet.runner_classes.items() if k != "small"}
    only = fleet.model_copy(update={"runner_classes": without})
    assert addresses.app_secrets(only) == named
    github = fleet.github.model_copy(update={"apps": {}})
    bare = fleet.model_copy(update={"github": github})
    assert addresses.app_secrets(bare) == ("runfleet/github-app",)
