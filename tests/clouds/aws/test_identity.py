"""RunnerIdentity: one role per class, bound to one service account, made of grants."""

from __future__ import annotations

import fnmatch
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pulumi
import pytest
from policy_sentry.querying.actions import get_action_data

from clouds.aws.recording import (
    ACCOUNT,
    CENTRAL_ACCOUNT,
    Recording,
    cell_plan,
    fleet,
    record,
)
from runfleet.clouds.aws import addresses
from runfleet.clouds.aws.grants import (
    MANAGED_POLICY_LIMIT,
    ROLE_POLICY_LIMIT,
    TRUST_POLICY_LIMIT,
    StoreArns,
    TooLongError,
    document,
    statements,
)
from runfleet.clouds.aws.identity import (
    BoundaryArgs,
    PermissionsBoundary,
    RunnerIdentity,
    RunnerIdentityArgs,
    boundary_document,
)
from runfleet.clouds.aws.stores import Stores, StoresArgs
from runfleet.clouds.protocols import StoreHandle
from runfleet.placement.plan import CellPlan
from runfleet.spec.cells import Provider
from runfleet.spec.load import load_fleet
from runfleet.spec.roles import Role, Scope, StoreKind, Trust, matrix

ROOT = Path(__file__).parents[3]
CLUSTER_ARN = f"arn:aws:eks:us-east-1:{ACCOUNT}:cluster/lf-ue1"


def imported_central(plan: CellPlan) -> dict[StoreKind, StoreHandle]:
    """Return the central stores as a cell sees them: another stack's outputs."""
    site = addresses.central_site(plan.fleet)
    assert site is not None
    handles: dict[StoreKind, StoreHandle] = {}
    for store in plan.central_stores:
        place = site.place(store)
        exported = {
            "bucket_id": place.bucket,
            "repository_id": place.repository,
            "stream_id": place.stream,
            "key_id": site.arn("kms", "key/central"),
        }
        handles[store.kind] = StoreHandle.imported(
            store.kind, Scope.CENTRAL, pulumi.Output.from_input(exported)
        )
    return handles


def make_cell(plan: CellPlan) -> Recording:
    def program(options: pulumi.ResourceOptions) -> None:
        local = Stores("aws-stores", StoresArgs.from_plan(plan), options).handles
        central = imported_central(plan)
        boundary = PermissionsBoundary(
            "aws-boundary", BoundaryArgs.from_plan(plan, local, central), options
        )
        for planned in plan.classes:
            if addresses.effective(planned.grants, plan.fleet):
                RunnerIdentity(
                    f"aws-{planned.name}-identity",
                    RunnerIdentityArgs.from_plan(
                        plan, planned, "lf-ue1", boundary.arn, local, central
                    ),
                    options,
                )

    return record(program)


@pytest.fixture(scope="module")
def cell() -> Recording:
    return make_cell(cell_plan())


def policy_of(found: Recording, name: str) -> list[dict[str, Any]]:
    return json.loads(found.one(name).inputs["policy"])["Statement"]


def test_children_of_an_identity(cell: Recording) -> None:
    own = [r for r in cell.all if "aws-tests-identity" in r.name]
    assert [(r.type, r.name, r.parent) for r in own] == [
        ("runfleet:aws:RunnerIdentity", "aws-tests-identity", ""),
        (
            "aws:eks/podIdentityAssociation:PodIdentityAssociation",
            "aws-tests-identity-association",
            "aws-tests-identity",
        ),
        (
            "aws:iam/rolePolicy:RolePolicy",
            "aws-tests-identity-policy",
            "aws-tests-identity",
        ),
        ("aws:iam/role:Role", "aws-tests-identity-role", "aws-tests-identity"),
    ]
    assert {r.provider for r in own if r.type.startswith("aws:")} == {"account"}


def test_the_role_is_exactly_this(cell: Recording) -> None:
    role = cell.one("aws-tests-identity-role")
    trust = json.loads(role.inputs["assumeRolePolicy"])
    assert trust == {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Sid": "OneServiceAccount",
                "Effect": "Allow",
                "Principal": {"Service": "pods.eks.amazonaws.com"},
                "Action": ["sts:AssumeRole", "sts:TagSession"],
                "Condition": {
                    "StringEquals": {
                        "aws:SourceAccount": ACCOUNT,
                        "aws:RequestTag/kubernetes-namespace": "j-tests--aws",
                        "aws:RequestTag/kubernetes-service-account": "job",
                    },
                    "ArnEquals": {"aws:SourceArn": CLUSTER_ARN},
                },
            }
        ],
    }
    rest = {k: v for k, v in role.inputs.items() if k != "assumeRolePolicy"}
    tags = rest.pop("tags")
    assert rest == {
        "name": "lf-ue1--job--tests",
        "description": "Jobs of runner class tests",
        "maxSessionDuration": 3600,
        "permissionsBoundary": f"arn:aws:iam::{ACCOUNT}:policy/lf-ue1--job--boundary",
    }
    assert (tags["ci_runner_class"], tags["ci_role"]) == ("tests", "tester")


def test_the_association_binds_one_service_account(cell: Recording) -> None:
    found = cell.one("aws-tests-identity-association")
    inputs = {k: v for k, v in found.inputs.items() if k != "tags"}
    assert inputs == {
        "clusterName": "lf-ue1",
        "namespace": "j-tests--aws",
        "serviceAccount": "job",
        "roleArn": f"arn:aws:iam::{ACCOUNT}:role/lf-ue1--job--tests",
    }


def test_the_policy_is_made_of_the_grants_and_nothing_else(cell: Recording) -> None:
    plan = cell_plan()
    local, central = addresses.plan_site(plan), addresses.central_site(plan.fleet)
    assert central is not None

    def places(site: addresses.Site, key: str) -> Any:
        stores = plan.stores if site is local else plan.central_stores
        return {s.kind: replace(site.place(s), key=key) for s in stores}

    arns = StoreArns(
        places(local, f"arn:aws:kms:us-east-1:{ACCOUNT}:key/aws-stores-key"),
        places(central, central.arn("kms", "key/central")),
    )
    for planned in plan.classes:
        if planned.grants:
            trust = planned.runner_class.trust
            assert policy_of(cell, f"aws-{planned.name}-identity-policy") == (
                statements(planned.grants, trust, arns)
            )


def test_a_class_without_grants_has_no_identity(cell: Recording) -> None:
    assert not [name for name in cell.names if "nothing" in name]
    plan = cell_plan()
    nothing = next(p for p in plan.classes if p.name == "nothing")
    args = RunnerIdentityArgs.from_plan(plan, nothing, "lf-ue1", "arn:boundary", {}, {})
    with pytest.raises(ValueError, match="class nothing has no grants"):
        RunnerIdentity("x", args)


def test_two_classes_never_share_a_role(cell: Recording) -> None:
    roles = [
        r.inputs["roleArn"]
        for r in cell.of("aws:eks/podIdentityAssociation:PodIdentityAssociation")
    ]
    bound = [
        (r.inputs["namespace"], r.inputs["serviceAccount"])
        for r in cell.of("aws:eks/podIdentityAssociation:PodIdentityAssociation")
    ]
    assert len(set(roles)) == len(roles) == 3
    assert len(set(bound)) == 3


def test_what_pods_need_for_it(cell: Recording) -> None:
    plan = cell_plan()
    made: list[RunnerIdentity] = []

    def program(options: pulumi.ResourceOptions) -> None:
        local = Stores("s", StoresArgs.from_plan(plan), options).handles
        args = RunnerIdentityArgs.from_plan(
            plan, plan.classes[0], "lf-ue1", "arn:b", local, imported_central(plan)
        )
        made.append(RunnerIdentity("i", args, options))

    record(program)
    assert made[0].service_account_annotations == {}
    assert made[0].pod_labels == {}
    assert made[0].endpoints == ("169.254.170.23:80", "[fd00:ec2::23]:80")


def test_the_boundary_covers_every_policy_and_nothing_by_pattern(
    cell: Recording,
) -> None:
    boundary = policy_of(cell, "aws-boundary-policy")
    assert len(cell.of("aws:iam/policy:Policy")) == 1
    assert {s["Effect"] for s in boundary} == {"Allow"}
    within = {a for s in boundary for a in s["Action"]}
    assert not any("*" in action for action in within)
    services = {action.split(":")[0] for action in within}
    assert services == {"s3", "ecr", "firehose", "kms"}
    for name in ("tests", "builds", "releases"):
        for statement in policy_of(cell, f"aws-{name}-identity-policy"):
            for action in statement["Action"]:
                for resource in statement["Resource"]:
                    assert _within(boundary, action, resource), (action, resource)


def test_the_boundary_holds_regions_and_accounts(cell: Recording) -> None:
    boundary = {s["Sid"]: s for s in policy_of(cell, "aws-boundary-policy")}
    regions = {"aws:RequestedRegion": ["us-east-1", "us-east-2"]}
    assert boundary["Objects"]["Condition"] == {
        "StringEquals": {**regions, "aws:ResourceAccount": [ACCOUNT]}
    }
    for sid in ("Images", "ImageCache", "RegistryLogin", "Streams"):
        assert boundary[sid]["Condition"] == {"StringEquals": regions}
    assert boundary["Keys"]["Condition"] == {
        "StringEquals": {
            "kms:ViaService": [
                "s3.us-east-1.amazonaws.com",
                "s3.us-east-2.amazonaws.com",
            ]
        }
    }
    for statement in boundary.values():
        if statement["Resource"] == ["*"]:
            assert statement["Action"] == ["ecr:GetAuthorizationToken"]


def test_central_stores_in_another_account() -> None:
    plan = cell_plan(fleet(central=CENTRAL_ACCOUNT))
    found = make_cell(plan)
    statements = {s["Sid"]: s for s in policy_of(found, "aws-tests-identity-policy")}
    role = f"arn:aws:iam::{CENTRAL_ACCOUNT}:role/lf-ue1--telemetry--tests"
    assert statements["InsertTelemetryCentral"] == {
        "Sid": "InsertTelemetryCentral",
        "Effect": "Allow",
        "Action": ["sts:AssumeRole", "sts:TagSession"],
        "Resource": [role],
    }
    boundary = {s["Sid"]: s for s in policy_of(found, "aws-boundary-policy")}
    assert boundary["Telemetry"]["Resource"] == [
        f"arn:aws:iam::{CENTRAL_ACCOUNT}:role/lf-ue1-*telemetry-*"
    ]
    assert boundary["Objects"]["Condition"]["StringEquals"]["aws:ResourceAccount"] == [
        ACCOUNT,
        CENTRAL_ACCOUNT,
    ]


def test_every_document_fits_aws(cell: Recording) -> None:
    for role in cell.of("aws:iam/role:Role"):
        assert len(role.inputs["assumeRolePolicy"]) <= TRUST_POLICY_LIMIT
    for policy in cell.of("aws:iam/rolePolicy:RolePolicy"):
        assert len(policy.inputs["policy"]) <= ROLE_POLICY_LIMIT
    (boundary,) = cell.of("aws:iam/policy:Policy")
    assert len(boundary.inputs["policy"]) <= MANAGED_POLICY_LIMIT


def test_a_boundary_over_the_limit_is_refused() -> None:
    plan = cell_plan()
    site = addresses.plan_site(plan)
    places = [
        addresses.Site("p", f"cell-{n}", Scope.LOCAL, ACCOUNT, site.region).place(store)
        for n in range(30)
        for store in plan.stores
    ]
    with pytest.raises(TooLongError, match="AWS accepts 6144"):
        boundary_document(places, [ACCOUNT], ["us-east-1"])


def test_grants_on_stores_elsewhere_are_no_aws_grants() -> None:
    known = fleet()
    other = known.model_copy(
        update={"central": known.central.model_copy(update={"provider": "gcp"})}
        if known.central
        else {}
    )
    found = addresses.effective(matrix(Role.RELEASER), other)
    assert {grant.scope for grant in found} == {Scope.LOCAL}
    assert addresses.effective(matrix(Role.RELEASER), known) == matrix(Role.RELEASER)
    assert {
        g.text for g in addresses.effective(matrix(Role.TESTER), known, local=False)
    } == {"insert telemetry central"}


def test_condition_keys_exist_for_the_actions(cell: Recording) -> None:
    for action in ("kms:Decrypt", "kms:GenerateDataKey"):
        service, _, name = action.partition(":")
        data = get_action_data(service, name)
        assert isinstance(data, dict)
        assert any("kms:ViaService" in row["condition_keys"] for row in data[service])


def _within(boundary: list[dict[str, Any]], action: str, resource: str) -> bool:
    return any(
        action in statement["Action"]
        and any(fnmatch.fnmatchcase(resource, r) for r in statement["Resource"])
        for statement in boundary
    )


def test_role_names_differ_for_every_class_and_cell() -> None:
    plan = cell_plan()
    names = {
        addresses.job_role(plan.cell.model_copy(update={"cluster": cluster}), c)
        for cluster in ("lf-ue1", "lf-ue2")
        for c in plan.fleet.runner_classes.values()
    }
    assert len(names) == 2 * len(plan.fleet.runner_classes)
    assert all(len(name) <= 64 for name in names)


@pytest.mark.parametrize("trust", list(Trust))
def test_trust_is_part_of_no_name(trust: Trust) -> None:
    plan = cell_plan()
    one = plan.fleet.runner_classes["tests"]
    assert addresses.job_role(plan.cell, one) == addresses.job_role(
        plan.cell, one.model_copy(update={"trust": trust})
    )


def test_the_policies_of_the_whole_pytorch_fleet_fit() -> None:
    known = load_fleet(ROOT / "playbooks" / "pytorch" / "fleet.yaml").fleet
    central = addresses.central_site(known)
    assert central is not None
    cells = [c for c in known.cells.values() if c.provider is Provider.AWS]
    roles: set[str] = set()
    checked = 0
    for cell in cells:
        site = addresses.cell_site(known, cell)
        arns = StoreArns(
            *(
                {
                    store.kind: replace(
                        where.place(store), key=where.arn("kms", f"key/{'k' * 36}")
                    )
                    for store in known.stores_in(where.scope)
                }
                for where in (site, central)
            )
        )
        places = [*arns.local.values(), *arns.central.values()]
        regions = sorted({cell.region, central.region})
        boundary = boundary_document(places, [cell.account], regions)
        assert len(boundary) <= MANAGED_POLICY_LIMIT
        for runner_class in known.classes_in(cell):
            for role in Role:  # every class could become any role
                made = statements(matrix(role), runner_class.trust, arns)
                assert len(document(made, ROLE_POLICY_LIMIT, runner_class.name))
            roles.add(addresses.job_role(cell, runner_class))
            checked += 1
    assert checked == len(roles) >= 44
