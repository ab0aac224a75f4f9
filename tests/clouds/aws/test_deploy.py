"""The deploy role: it deploys the fleet, and nothing else in the account."""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pulumi
import pytest
from hypothesis import given
from hypothesis import strategies as st
from policy_sentry.querying.actions import get_action_data

from clouds.aws.recording import (
    ACCOUNT,
    CENTRAL_ACCOUNT,
    Recording,
    central_plan,
    fleet,
    record,
)
from runfleet.clouds.aws import addresses, deploy, deploy_actions, names
from runfleet.clouds.aws.belongings import Belongings
from runfleet.clouds.aws.budget import BudgetArgs
from runfleet.clouds.aws.deploy import (
    DeployRole,
    DeployRoleArgs,
    deploy_boundary,
    deploy_statements,
    deploy_subjects,
)
from runfleet.clouds.aws.grants import MANAGED_POLICY_LIMIT, document
from runfleet.spec.github import FederatedRepository
from runfleet.spec.roles import Scope, StoreKind

ISSUER = "https://token.actions.githubusercontent.com"
HOST = "token.actions.githubusercontent.com"
IAM = f"arn:aws:iam::{ACCOUNT}"
ADMIN = f"{IAM}:role/lf-admin"
PYTORCH = Belongings(
    partition="aws",
    account=ACCOUNT,
    regions=("us-east-1", "us-east-2"),
    project="pytorch",
    sites=("central", "aws", "aws-ue2"),
    clusters=("lf-prod-aws-ue1", "lf-prod-aws-ue2"),
    admins=(ADMIN,),
)
DEPLOY = DeployRoleArgs(
    fleet=PYTORCH,
    subjects=deploy_subjects(
        FederatedRepository(repository="pytorch-fdn/fleet"), "deploy-aws"
    ),
    provider_arn=f"{IAM}:oidc-provider/{HOST}",
    issuer=ISSUER,
    boundaries=[
        f"{IAM}:policy/lf-prod-aws-ue{n}--{kind}--boundary"
        for n in (1, 2)
        for kind in ("job", "secrets")
    ],
    state_bucket="fleet-state",
    secrets_key=f"arn:aws:kms:us-east-1:{ACCOUNT}:key/secrets",
)
REGIONS = {"aws:RequestedRegion": ["us-east-1", "us-east-2"]}


def _all(args: DeployRoleArgs = DEPLOY) -> Iterator[dict[str, Any]]:
    for found in deploy_statements(args).values():
        yield from found


def _statement(sid: str) -> dict[str, Any]:
    (found,) = [s for s in _all() if s["Sid"] == sid and s["Effect"] == "Allow"]
    return found


def _types_of(action: str) -> list[str]:
    """Return the ARN formats of the resource types that IAM gives an action."""
    service, _, name = action.partition(":")
    data = get_action_data(service, name)
    assert isinstance(data, dict), action
    formats = [entry["resource_arn_format"] for entry in data[service]]
    return [found for found in formats if found != "*"]


def _matches(arn: str, patterns: list[str]) -> bool:
    return any(fnmatch.fnmatchcase(arn, pattern) for pattern in patterns)


def test_every_document_fits_aws_with_room_for_more_cells() -> None:
    more = replace(
        PYTORCH,
        clusters=tuple(f"lf-prod-aws-region{n}" for n in range(5)),
        sites=("central", *(f"aws-region{n}" for n in range(5))),
    )
    for args in (DEPLOY, replace(DEPLOY, fleet=more)):
        documents = {**deploy_statements(args), "boundary": deploy_boundary(args)}
        for part, found in documents.items():
            assert len(document(found, MANAGED_POLICY_LIMIT, part)) <= 6144, part


def test_every_resource_that_can_be_named_is_named() -> None:
    for statement in _all():
        for action in statement["Action"]:
            assert "*" not in action
            types = _types_of(action)
            if statement["Effect"] == "Deny":
                continue
            if statement["Resource"] == ["*"]:
                assert not types, f"{action} can be given by ARN"
            else:
                assert types, f"{action} has no resource type"
                assert all(
                    arn.split(":")[5].strip("*") for arn in statement["Resource"]
                )


def test_every_action_reaches_something_that_it_is_about() -> None:
    """An action whose statement names no resource of its types would be refused."""
    for statement in _all():
        if statement["Effect"] == "Deny" or statement["Resource"] == ["*"]:
            continue
        for action in statement["Action"]:
            kinds = {_kind(found) for found in _types_of(action)}
            named = {_kind(arn) for arn in statement["Resource"]}
            assert kinds & named, f"{statement['Sid']}: {action} {kinds}"


def _kind(arn: str) -> tuple[str, str]:
    """Return service and type of an ARN: ``("ec2", "subnet")``."""
    service, resource = arn.split(":")[2], ":".join(arn.split(":")[5:])
    if service in ("s3", "sns", "sqs"):
        return service, ""
    return service, re.split("[/:]", resource, maxsplit=1)[0]


def test_everything_is_in_the_account_and_in_the_regions() -> None:
    for statement in _all():
        if statement["Effect"] == "Deny" or statement["Sid"].startswith(
            ("State", "Secrets")
        ):
            continue
        services = {action.partition(":")[0] for action in statement["Action"]}
        if not services & {"iam", "budgets", "ce"}:
            assert statement["Condition"]["StringEquals"].items() >= REGIONS.items()
        for arn in statement["Resource"]:
            if arn == "*":
                continue
            kind = _kind(arn)
            open_kinds = {("ec2", "image"), ("ec2", "snapshot"), ("ec2", "prefix-list")}
            if kind not in open_kinds and kind[0] != "s3":
                assert arn.split(":")[4] == ACCOUNT, arn


def test_rights_over_iam_are_on_the_fleet_s_names_only() -> None:
    for statement in _all():
        if statement["Effect"] == "Allow" and statement["Action"][0][:4] == "iam:":
            assert all(
                f":{ACCOUNT}:" in r
                and r.endswith(("-*", ":role/aws-service-role/*", f"/{HOST}"))
                for r in statement["Resource"]
            )


def test_it_cannot_free_itself() -> None:
    found = {s["Sid"]: s for s in _all()}
    assert found["Pass"]["Condition"] == {
        "StringEquals": {"iam:PassedToService": list(deploy_actions.PASSED_TO)}
    }
    denied = {sid for sid, s in found.items() if s["Effect"] == "Deny"}
    assert denied == {"BoundedJobs", "KeepBoundaries", "NotItself", "NoOtherRole"}
    assert found["BoundedJobs"]["Condition"] == {
        "StringNotEquals": {"iam:PermissionsBoundary": list(DEPLOY.boundaries)}
    }
    assert {"iam:CreateRole", "iam:PutRolePolicy", "iam:AttachRolePolicy"} <= set(
        found["BoundedJobs"]["Action"]
    )
    for action in deploy_actions.CHANGE_ROLES:
        data = get_action_data("iam", action.removeprefix("iam:"))
        assert isinstance(data, dict)
        assert any(
            "iam:PermissionsBoundary" in r["condition_keys"] for r in data["iam"]
        )
    assert found["NotItself"]["Resource"] == [
        f"{IAM}:role/pytorch--deploy",
        f"{IAM}:policy/pytorch--deploy--boundary",
        *(f"{IAM}:policy/pytorch--deploy--{part}" for part in deploy.PARTS),
    ]
    assert {"iam:CreatePolicyVersion", "iam:PutRolePermissionsBoundary"} <= set(
        found["NotItself"]["Action"]
    )
    assert found["NoOtherRole"]["Action"] == ["sts:AssumeRole"]


def test_its_boundary_covers_its_policies_and_no_user() -> None:
    boundary = deploy_boundary(DEPLOY)
    allowed = [s for s in boundary if s["Effect"] == "Allow"]
    for statement in _all():
        if statement["Effect"] == "Deny":
            continue
        for action in statement["Action"]:
            for resource in statement["Resource"]:
                assert any(
                    _matches(action, s["Action"]) and _matches(resource, s["Resource"])
                    for s in allowed
                ), (statement["Sid"], action, resource)
    for action in ("iam:CreateUser", "iam:CreateAccessKey", "sts:AssumeRole"):
        assert not any(
            _matches(action, s["Action"])
            and _matches(f"{IAM}:user/pytorch--x", s["Resource"])
            for s in allowed
        )
    denied = {s["Sid"]: s for s in boundary if s["Effect"] == "Deny"}
    found = {s["Sid"]: s for s in deploy_statements(DEPLOY)["guards"]}
    assert denied == {sid: found[sid] for sid in ("NotItself", "KeepBoundaries")}


def test_whom_it_lets_into_clusters_is_named() -> None:
    clusters = [f"arn:aws:eks:*:{ACCOUNT}:cluster/lf-prod-aws-ue{n}" for n in (1, 2)]
    people = [ADMIN, f"{IAM}:role/pytorch--deploy"]
    admit = _statement("AdmitAdmins")
    assert (admit["Action"], admit["Resource"]) == (["eks:CreateAccessEntry"], clusters)
    assert admit["Condition"] == {
        "StringEquals": {**REGIONS, "eks:accessEntryType": "STANDARD"},
        "ArnEquals": {"eks:principalArn": people},
    }
    nodes = _statement("AdmitNodes")["Condition"]
    assert nodes["StringEquals"]["eks:accessEntryType"] == "EC2_LINUX"
    assert nodes["ArnLike"] == {
        "eks:principalArn": [
            f"{IAM}:role/{first}-*"
            for first in ("pytorch", "lf-prod-aws-ue1", "lf-prod-aws-ue2")
        ]
    }
    administer = _statement("Administer")
    assert administer["Resource"] == [
        f"arn:aws:eks:*:{ACCOUNT}:access-entry/lf-prod-aws-ue{n}/*" for n in (1, 2)
    ]
    assert administer["Condition"]["ArnEquals"] == {
        "eks:policyArn": "arn:aws:eks::aws:cluster-access-policy/"
        "AmazonEKSClusterAdminPolicy",
        "eks:principalArn": people,
    }
    others = {a for s in _all() for a in s["Action"] if "Access" in a and "eks:" in a}
    assert others == {
        "eks:AssociateAccessPolicy",
        "eks:CreateAccessEntry",
        "eks:DeleteAccessEntry",
        "eks:DescribeAccessEntry",
        "eks:DisassociateAccessPolicy",
        "eks:ListAccessEntries",
        "eks:ListAssociatedAccessPolicies",
    }


@pytest.mark.parametrize("sid", ["AdmitAdmins", "AdmitNodes", "Administer", "Remove"])
def test_iam_knows_the_keys_of_conditions(sid: str) -> None:
    statement = _statement(sid)
    keys = {key for block in statement["Condition"].values() for key in block}
    for action in statement["Action"]:
        service, _, name = action.partition(":")
        data = get_action_data(service, name)
        assert isinstance(data, dict)
        known = {key for entry in data[service] for key in entry["condition_keys"]}
        known |= {"aws:RequestedRegion"}
        known |= {f"{k.partition('/')[0]}/ci_project" for k in known if "/$" in k}
        assert keys <= known, action


def test_what_has_no_name_is_removed_only_with_the_project_s_label() -> None:
    removed = _statement("Remove")
    assert removed["Condition"]["StringEquals"] == {
        **REGIONS,
        "aws:ResourceTag/ci_project": "pytorch",
    }
    plain = {a for s in _all() if s["Sid"] != "Remove" for a in s["Action"]}
    assert not {a for a in plain if a.startswith(("ec2:Delete", "ec2:Release"))} - {
        "ec2:DeleteRoute",
        "ec2:DeleteTags",
    }
    opened = _statement("KeyPolicies")
    assert opened["Action"] == ["kms:PutKeyPolicy"]
    assert opened["Condition"] == removed["Condition"]
    assert _statement("KeyGrants")["Condition"]["Bool"] == {
        "kms:GrantIsForAWSResource": "true"
    }


def test_it_covers_every_job_role_name() -> None:
    (jobs,) = [
        s for s in deploy_statements(DEPLOY)["guards"] if s["Sid"] == "BoundedJobs"
    ]
    known = fleet()
    cell = known.cells["aws"].model_copy(update={"cluster": "lf-prod-aws-ue1"})
    long = known.runner_classes["tests"].model_copy(update={"name": "a" * 45})
    for name in (
        addresses.job_role(cell, known.runner_classes["tests"]),
        addresses.job_role(cell, long),
        addresses.federated_role("pytorch", long),
        addresses.promoter_role("pytorch"),
        addresses.secrets_role(cell),
    ):
        assert _matches(f"{IAM}:role/{name}", jobs["Resource"]), name


def test_what_belongs_to_a_fleet() -> None:
    known = fleet()
    cell = known.cells["aws"].model_copy(
        update={"admins": ["lf-admin", f"{IAM}:role/other"], "adopt_cluster": "old"}
    )
    known = known.model_copy(update={"cells": {"aws": cell}})
    assert Belongings.of(known, ACCOUNT) == Belongings(
        partition="aws",
        account=ACCOUNT,
        regions=("us-east-1", "us-east-2"),
        project="pytorch",
        sites=("central", "aws"),
        clusters=("lf-ue1", "old"),
        admins=(f"{IAM}:role/lf-admin", f"{IAM}:role/other"),
    )
    apart = fleet(central=CENTRAL_ACCOUNT)
    assert Belongings.of(apart, CENTRAL_ACCOUNT).clusters == ()
    assert Belongings.of(apart, CENTRAL_ACCOUNT).regions == ("us-east-2",)
    assert Belongings.of(apart, ACCOUNT).sites == ("aws",)
    with pytest.raises(ValueError, match="nothing of the fleet"):
        Belongings.of(apart, "999999999999")


def test_every_name_of_a_store_is_covered() -> None:
    known = fleet()
    own = Belongings.of(known, ACCOUNT)
    sites = [addresses.cell_site(known, known.cells["aws"])]
    central = addresses.central_site(known)
    assert central is not None
    for site in (*sites, central):
        for store in known.stores_in(site.scope):
            place = site.place(store)
            if place.bucket:
                assert _matches(place.bucket, own.buckets())
            if place.repository:
                assert _matches(f"{place.repository}/trusted", own.repositories())
            if place.stream:
                assert _matches(f"{place.stream}-untrusted-pr", own.streams())
        assert _matches(site.arn("kms", site.key_alias), own.aliases())
    assert {s.kind for s in known.stores_in(Scope.LOCAL)} >= {StoreKind.CACHE}
    budget = BudgetArgs.from_plan(central_plan(fleet(contact="#alerts")))
    assert budget is not None
    assert _matches(
        f"arn:aws:sns:us-east-2:{ACCOUNT}:{budget.topic_name}", own.alerts()
    )
    assert _matches(
        f"arn:aws:budgets::{ACCOUNT}:budget/{budget.budget_name}", own.budgets()
    )
    assert _matches(
        f"arn:aws:kms:us-east-2:{ACCOUNT}:{budget.key_alias}", own.aliases()
    )


PARTS = st.text("ab0-_.", min_size=1, max_size=40).filter(
    lambda text: text[0] in "ab0" and text[-1] in "ab0"
)


@given(
    rule=st.sampled_from(names.RULES),
    first=PARTS,
    more=st.lists(PARTS, min_size=1, max_size=3),
)
def test_globs_match_every_name_that_begins_so(
    rule: names.NameRule, first: str, more: list[str]
) -> None:
    try:
        name = rule.encode(first, *more)
    except ValueError:
        return
    assert _matches(name, list(rule.globs(first))), (name, rule.globs(first))


def test_globs_of_usual_names_are_short() -> None:
    assert names.IAM_ROLE.globs("lf-ue1") == ("lf-ue1-*",)
    assert names.S3_BUCKET.globs("pytorch", "aws") == ("pytorch-aws-*",)
    assert names.ECR_REPOSITORY.globs("pytorch") == ("pytorch/*", "pytorch-*")
    assert names.KMS_ALIAS.globs("lf") == ("alias/lf/*", "alias/lf-*")


def test_it_is_bound_to_one_environment_and_to_its_boundary() -> None:
    def program(options: pulumi.ResourceOptions) -> None:
        DeployRole("deploy", DEPLOY, options)

    found: Recording = record(program)
    role = found.one("deploy-role").inputs
    (trusted,) = json.loads(role["assumeRolePolicy"])["Statement"]
    assert trusted["Condition"]["StringEquals"] == {
        f"{HOST}:aud": "sts.amazonaws.com",
        f"{HOST}:sub": ["repo:pytorch-fdn/fleet:environment:deploy-aws"],
    }
    assert role["maxSessionDuration"] == 3600
    assert role["permissionsBoundary"] == f"{IAM}:policy/pytorch--deploy--boundary"
    attached = found.of("aws:iam/rolePolicyAttachment:RolePolicyAttachment")
    assert [r.inputs["policyArn"].rpartition("/")[2] for r in attached] == sorted(
        f"pytorch--deploy--{part}" for part in deploy.PARTS
    )
    assert all(r.protect for r in found.of("aws:iam/policy:Policy"))
    unbounded = replace(DEPLOY, boundaries=[])
    with pytest.raises(ValueError, match="needs the boundaries"):
        DeployRole("x", unbounded)
