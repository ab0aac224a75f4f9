"""GitHub's tokens as identities: exact audience, exact subjects, one hour, no more."""

from __future__ import annotations

import fnmatch
import json
from typing import Any

import pulumi
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clouds.aws.recording import (
    ACCOUNT,
    CENTRAL_ACCOUNT,
    Recording,
    central_plan,
    fleet,
    record,
)
from runfleet.clouds.aws import addresses
from runfleet.clouds.aws.federation import (
    FederatedIdentity,
    FederatedIdentityArgs,
    GitHubOidc,
    GitHubOidcArgs,
    exact,
    subjects,
    web_identity_trust,
)
from runfleet.clouds.aws.grants import (
    MANAGED_POLICY_LIMIT,
    ROLE_POLICY_LIMIT,
    TRUST_POLICY_LIMIT,
    TooLongError,
)
from runfleet.clouds.aws.identity import BoundaryArgs, PermissionsBoundary
from runfleet.clouds.aws.promoter import Promoter, PromoterArgs
from runfleet.clouds.aws.stores import Stores, StoresArgs
from runfleet.placement.plan import CentralPlan
from runfleet.spec.github import FederatedRepository
from runfleet.spec.roles import StoreKind

ISSUER = "https://token.actions.githubusercontent.com"
HOST = "token.actions.githubusercontent.com"
PROVIDER = f"arn:aws:iam::{ACCOUNT}:oidc-provider/{HOST}"


def make(plan: CentralPlan) -> Recording:
    def program(options: pulumi.ResourceOptions) -> None:
        central = Stores("stores", StoresArgs.from_plan(plan), options).handles
        oidc = GitHubOidc(
            "github", GitHubOidcArgs(plan.fleet.github.oidc_issuer), options
        )
        boundary = PermissionsBoundary(
            "boundary", BoundaryArgs.for_central(plan, central), options
        )
        for runner_class in plan.external:
            FederatedIdentity(
                f"{runner_class.name}-identity",
                FederatedIdentityArgs.from_plan(
                    plan, runner_class, oidc.arn, boundary.arn, central
                ),
                options,
            )
        Promoter("promoter", PromoterArgs.from_plan(plan, oidc.arn, central), options)

    return record(program)


@pytest.fixture(scope="module")
def central() -> Recording:
    return make(central_plan())


def policy_of(found: Recording, name: str) -> dict[str, dict[str, Any]]:
    made = json.loads(found.one(name).inputs["policy"])["Statement"]
    return {statement["Sid"]: statement for statement in made}


def test_one_provider_with_the_exact_audience(central: Recording) -> None:
    (provider,) = central.of("aws:iam/openIdConnectProvider:OpenIdConnectProvider")
    assert provider.inputs["url"] == ISSUER
    assert provider.inputs["clientIdLists"] == ["sts.amazonaws.com"]


def test_an_adopted_provider_is_not_made_again() -> None:
    def program(options: pulumi.ResourceOptions) -> None:
        GitHubOidc("github", GitHubOidcArgs(ISSUER, adopt=PROVIDER), options)

    assert record(program).names == ["github"]


def test_the_role_of_an_external_class_is_exactly_this(central: Recording) -> None:
    role = dict(central.one("donated-identity-role").inputs)
    assert json.loads(role.pop("assumeRolePolicy")) == {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Sid": "ExactSubjects",
                "Effect": "Allow",
                "Principal": {"Federated": PROVIDER},
                "Action": ["sts:AssumeRoleWithWebIdentity"],
                "Condition": {
                    "StringEquals": {
                        f"{HOST}:aud": "sts.amazonaws.com",
                        f"{HOST}:sub": [
                            "repo:pytorch/pytorch:environment:ci%3Arocm",
                            "repo:pytorch@21003710/pytorch@65600975"
                            ":environment:ci%3Arocm",
                            "repo:pytorch/vision:environment:ci%3Arocm",
                        ],
                    }
                },
            }
        ],
    }
    assert role.pop("tags")["ci_vendor"] == "amd"
    assert role == {
        "name": "pytorch--federated--donated",
        "description": "Jobs of runner class donated, outside this cloud",
        "maxSessionDuration": 3600,
        "permissionsBoundary": f"arn:aws:iam::{ACCOUNT}:policy/"
        "pytorch--federated--boundary",
    }


def test_an_external_tester_may_insert_telemetry_and_nothing_else(
    central: Recording,
) -> None:
    assert list(policy_of(central, "donated-identity-policy").values()) == [
        {
            "Sid": "InsertTelemetryCentral",
            "Effect": "Allow",
            "Action": ["firehose:PutRecord", "firehose:PutRecordBatch"],
            "Resource": [
                f"arn:aws:firehose:us-east-1:{ACCOUNT}:deliverystream/"
                "pytorch--central--telemetry-untrusted-pr"
            ],
        }
    ]


def test_a_class_without_central_grants_gets_no_identity() -> None:
    plan = central_plan()
    donated = plan.external[0].model_copy(update={"grants": "none"})
    args = FederatedIdentityArgs.from_plan(plan, donated, PROVIDER, "arn:b", {})
    with pytest.raises(ValueError, match="class donated has no grants on central"):
        FederatedIdentity("x", args)
    with pytest.raises(ValueError, match="names no GitHub environment"):
        FederatedIdentityArgs.from_plan(
            plan, donated.model_copy(update={"federation": None}), PROVIDER, "b", {}
        )


@pytest.mark.parametrize(
    "wide",
    [
        "repo:pytorch/pytorch:*",
        "repo:pytorch/*:environment:ci",
        "repo:pytorch/pytorch:pull_request",
        "repo:pytorch/pytorch:ref:refs/heads/main",
        "repo:pytorch/pytorc?:environment:ci",
    ],
)
def test_wide_subjects_are_refused(wide: str) -> None:
    with pytest.raises(ValueError, match="not bound to an environment"):
        exact(["repo:pytorch/pytorch:environment:ci", wide])
    with pytest.raises(ValueError, match="not bound"):
        web_identity_trust(PROVIDER, [wide], ISSUER)


def test_nobody_to_trust_is_an_error() -> None:
    with pytest.raises(ValueError, match="no repository is trusted"):
        exact([])


@given(
    environments=st.lists(
        st.text(st.characters(blacklist_characters="*?"), min_size=1),
        unique=True,
        min_size=2,
        max_size=4,
    )
)
def test_two_environments_never_share_a_subject(environments: list[str]) -> None:
    known = [FederatedRepository(repository="a/b", owner_id=1, repository_id=2)]
    found = [s for e in environments for s in subjects(known, e.replace("%3A", ""))]
    distinct = {e.replace("%3A", "") for e in environments}
    assert len(set(found)) == 2 * len(distinct)
    assert all(s.count(":") == 3 for s in found)


def test_too_many_repositories_are_an_error_and_not_a_cut() -> None:
    many = [FederatedRepository(repository=f"pytorch/repo-{n}") for n in range(60)]
    with pytest.raises(TooLongError, match="AWS accepts 2048"):
        web_identity_trust(PROVIDER, subjects(many, "ci"), ISSUER)


def test_the_promoter_is_one_environment_of_one_repository(central: Recording) -> None:
    role = central.one("promoter-role").inputs
    (trusted,) = json.loads(role["assumeRolePolicy"])["Statement"]
    assert trusted["Condition"]["StringEquals"][f"{HOST}:sub"] == [
        "repo:pytorch/pytorch:environment:promoter",
        "repo:pytorch@21003710/pytorch@65600975:environment:promoter",
    ]
    assert role["name"] == "pytorch--central--promoter"
    assert role["maxSessionDuration"] == 3600
    assert role["permissionsBoundary"].endswith("policy/pytorch--promoter--boundary")


def test_the_promoter_reads_local_and_writes_central(central: Recording) -> None:
    plan = central_plan()
    cell = addresses.cell_site(plan.fleet, plan.fleet.cells["aws"])
    site, stores = addresses.plan_site(plan), plan.fleet.stores
    found = policy_of(central, "promoter-policy")
    local = [
        cell.bucket_arn(stores[StoreKind(k)]) for k in ("cache", "artifacts", "shared")
    ]
    assert found["ReadLocalObjects"]["Resource"] == [f"{b}/*" for b in local]
    assert found["ReadLocalObjects"]["Action"] == ["s3:GetObject"]
    assert found["ReadLocalBuckets"]["Resource"] == local
    ecr = f"arn:aws:ecr:us-east-1:{ACCOUNT}:repository/pytorch"
    assert found["ReadLocalImages"]["Resource"] == [
        f"{ecr}/aws/shared/*",
        f"{ecr}/aws/registry/*",
    ]
    assert found["KeyOfAws"] == {
        "Sid": "KeyOfAws",
        "Effect": "Allow",
        "Action": ["kms:Decrypt"],
        "Resource": [f"arn:aws:kms:us-east-1:{ACCOUNT}:key/*"],
        "Condition": {
            "StringEquals": {"kms:ViaService": "s3.us-east-1.amazonaws.com"},
            "ForAnyValue:StringEquals": {
                "kms:ResourceAliases": "alias/pytorch/aws/stores"
            },
        },
    }
    for kind in ("cache", "artifacts", "shared"):
        written = found[f"Write{kind.title()}"]
        assert written["Resource"] == [f"{site.bucket_arn(stores[StoreKind(kind)])}/*"]
        assert "s3:GetObject" not in written["Action"]
    touched = json.dumps(found)
    for kind in (StoreKind.RELEASE, StoreKind.TELEMETRY):
        assert site.bucket(stores[kind]) not in touched
    assert "firehose" not in touched
    assert "Delete" not in touched


def test_the_promoter_s_boundary_covers_its_policy(central: Recording) -> None:
    boundary = policy_of(central, "promoter-boundary-policy").values()
    for statement in policy_of(central, "promoter-policy").values():
        for action in statement["Action"]:
            for resource in statement["Resource"]:
                assert any(
                    action in b["Action"]
                    and any(fnmatch.fnmatchcase(resource, r) for r in b["Resource"])
                    for b in boundary
                ), (action, resource)
    keys = policy_of(central, "promoter-boundary-policy")["Keys"]["Condition"]
    assert keys["ForAnyValue:StringEquals"] == {
        "kms:ResourceAliases": [
            "alias/pytorch/aws/stores",
            "alias/pytorch/central/stores",
        ]
    }


def test_a_fleet_without_federation_has_no_promoter() -> None:
    known = fleet()
    github = known.github.model_copy(update={"federation": []})
    plan = central_plan(known.model_copy(update={"github": github}))
    with pytest.raises(ValueError, match=r"name one in `github\.federation`"):
        Promoter("x", PromoterArgs.from_plan(plan, PROVIDER, {}))


def test_every_document_fits_aws() -> None:
    found = make(central_plan(fleet(central=CENTRAL_ACCOUNT)))
    for role in found.of("aws:iam/role:Role"):
        assert len(role.inputs["assumeRolePolicy"]) <= TRUST_POLICY_LIMIT
    for policy in found.of("aws:iam/rolePolicy:RolePolicy"):
        assert len(policy.inputs["policy"]) <= ROLE_POLICY_LIMIT
    for policy in found.of("aws:iam/policy:Policy"):
        assert len(policy.inputs["policy"]) <= MANAGED_POLICY_LIMIT


def test_every_boundary_that_the_stacks_make_is_accepted(central: Recording) -> None:
    known = fleet()
    made = {
        f"arn:aws:iam::{ACCOUNT}:policy/{policy.inputs['name']}"
        for policy in central.of("aws:iam/policy:Policy")
    }
    cell = [
        f"arn:aws:iam::{ACCOUNT}:policy/lf-ue1--{kind}--boundary"
        for kind in ("job", "secrets")
    ]
    assert set(addresses.job_boundaries(known, ACCOUNT)) == {*made, *cell}
    apart = fleet(central=CENTRAL_ACCOUNT)
    assert addresses.job_boundaries(apart, ACCOUNT) == cell
    assert len(addresses.job_boundaries(apart, CENTRAL_ACCOUNT)) == 2
