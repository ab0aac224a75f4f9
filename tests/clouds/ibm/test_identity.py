"""Identities, stores, promoter, External Secrets, federation and budget."""

from __future__ import annotations

import itertools
import json

import pulumi
import pytest

from clouds.ibm.fleets import (
    ACCOUNT,
    FLEET,
    GROUP,
    SECRETS,
    cell_program,
    central_of,
    central_program,
    of_kind,
    one,
    plan_of,
    run,
)
from runfleet.clouds.ibm.federation import FederationError
from runfleet.clouds.ibm.floor import IbmFloor
from runfleet.clouds.ibm.grants import Policy, StorePlace, StorePlaces, policies
from runfleet.clouds.ibm.identity import link
from runfleet.clouds.ibm.resources.access import ComputeLink, IamTrustedProfile
from runfleet.clouds.ibm.tags import TAGGED_BESIDE, UNTAGGABLE, labels_of
from runfleet.clouds.protocols import StackSettings, WithReservations, WithSpot
from runfleet.errors import InputError
from runfleet.placement.plan import CellPlan, CentralPlan
from runfleet.rehearsal.record import Record
from runfleet.spec.roles import Role, Scope, StoreKind, Trust, matrix

PLACE = StorePlace(
    bucket="bucket",
    instance="guid",
    namespaces={trust: f"ns-{trust}" for trust in Trust},
    region="us-south",
    push_role="Pusher",
)
PLACES = StorePlaces(dict.fromkeys(StoreKind, PLACE), dict.fromkeys(StoreKind, PLACE))


def test_a_profile_is_linked_to_one_service_account(
    cell: Record, plan: CellPlan
) -> None:
    planned = next(p for p in plan.classes if p.name == "small")
    profile = one(cell, "ibm-identity-small-profile")
    assert dict(profile.inputs) == {
        "name": "demo-ibm--job--small",
        "description": "Jobs of runner class small",
    }
    found = one(cell, "ibm-identity-small-link")
    assert dict(found.inputs) == {
        "profileId": profile.outputs["profileId"],
        "crType": "IKS_SA",
        "link": {
            "crn": one(cell, "ibm-cluster-iks").outputs["crn"],
            "namespace": planned.job_namespace,
            "name": planned.service_account,
        },
        "name": found.inputs["name"],
    }
    policies_made = {
        r.urn
        for r in of_kind(cell, "IamTrustedProfilePolicy")
        if r.name.startswith("ibm-identity-small-")
    }
    assert policies_made <= set(found.dependencies)


def test_a_class_without_grants_has_no_identity(cell: Record) -> None:
    assert "idle" not in cell.outputs["roles"]
    assert not [r for r in cell.resources if "identity-idle" in r.name]
    assert set(cell.outputs["roles"]) == {"small", "release", "gpu"}
    assert len(set(cell.outputs["roles"].values())) == 3


def test_the_policies_of_a_class_are_exactly_these(cell: Record) -> None:
    prefix = "ibm-identity-gpu-"
    made = {
        r.name.removeprefix(prefix): r.inputs["roles"]
        for r in of_kind(cell, "IamTrustedProfilePolicy")
        if r.name.startswith(prefix)
    }
    push = [one(cell, "ibm-stores-push-role").inputs["displayName"]]
    assert made == {
        "read-cache-local": ["Content Reader"],
        "write-cache-local": ["Object Writer"],
        "read-artifacts-local": ["Content Reader"],
        "write-artifacts-local": ["Object Writer"],
        "read-registry-local-images-untrusted-pr": ["Reader"],
        "read-registry-local-images-trusted": ["Reader"],
        "read-registry-local-images-release": ["Reader"],
        "write-registry-local-images-untrusted-pr": push,
        "insert-telemetry-central": ["Object Writer"],
    }


def test_a_policy_names_bucket_and_prefix(cell: Record, plan: CellPlan) -> None:
    policy = one(cell, "ibm-identity-small-read-cache-local")
    inputs = dict(policy.inputs)
    profile = one(cell, "ibm-identity-small-profile")
    assert labels_of(inputs.pop("tags"))["ci_runner_class"] == "small"
    levels = ["trusted/*", "release/*"]
    assert inputs == {
        "iamId": profile.outputs["iamId"],
        "roles": ["Content Reader"],
        "resourceAttributes": [
            {"name": n, "value": v, "operator": "stringEquals"}
            for n, v in (
                ("serviceName", "cloud-object-storage"),
                ("serviceInstance", one(cell, "ibm-stores-objects").outputs["guid"]),
                ("resourceType", "bucket"),
                ("resource", one(cell, "ibm-stores-cache").inputs["bucketName"]),
            )
        ],
        "ruleConditions": [
            {
                "operator": "stringMatchAnyOf",
                "key": f"{{{{resource.attributes.{name}}}}}",
                "values": levels,
            }
            for name in ("path", "prefix")
        ],
        "ruleOperator": "or",
        "pattern": "attribute-based-condition:resource:literal-and-wildcard",
        "description": "ibm-identity-small: read-cache-local",
    }


def test_a_write_is_under_the_own_trust_only(cell: Record) -> None:
    policy = one(cell, "ibm-identity-small-write-cache-local")
    assert policy.inputs["ruleConditions"] == [
        {
            "operator": "stringMatch",
            "key": "{{resource.attributes.path}}",
            "values": ["trusted/*"],
        }
    ]
    assert "ruleOperator" not in policy.inputs


@pytest.mark.parametrize(("role", "trust"), itertools.product(Role, Trust))
def test_policies_of_every_role_and_trust(role: Role, trust: Trust) -> None:
    made = policies(matrix(role), trust, PLACES)
    names = [policy.name for policy in made]
    assert len(names) == len(set(names))
    for policy in made:
        attributes = {a.name: a.value for a in policy.attributes}
        assert attributes["resource"]
        assert attributes["resourceType"] in ("bucket", "namespace")
        assert {a.operator for a in policy.attributes} == {"stringEquals"}
        assert not {"Manager", "Administrator", "Writer", "Editor"} & set(policy.roles)
        if attributes["resourceType"] == "bucket":
            assert patterns(policy)
            assert all(p.endswith("/*") for p in patterns(policy))
        if "write" in policy.name or "insert" in policy.name:
            assert str(trust) in json.dumps([patterns(policy), policy.name])


def patterns(policy: Policy) -> list[str]:
    return [p for c in policy.conditions for p in c.values or ()]


def test_stores_that_the_fleet_does_not_have_give_no_policy() -> None:
    assert policies(matrix(Role.RELEASER), Trust.RELEASE, StorePlaces()) == []


def test_central_grants_on_another_account_are_refused() -> None:
    text = FLEET.replace(
        f'  account: "{ACCOUNT}"\n  region: us-south\n  funder',
        f'  account: "{"f" * 32}"\n  region: us-south\n  funder',
        1,
    )
    with pytest.raises(InputError, match="must be in the account of the cell"):
        run(cell_program(plan_of(text)))


AWS_CENTRAL = FLEET.replace(
    f'central:\n  provider: ibm\n  account: "{ACCOUNT}"\n  region: us-south',
    'central:\n  provider: aws\n  account: "444455556666"\n  region: us-east-1',
)


def tokens_of(record: Record, name: str) -> list[tuple[str, str, float]]:
    outputs = one(record, name).outputs
    return [(t["audience"], t["path"], t["seconds"]) for t in outputs["tokens"]]


IAM_TOKEN = ("iam", "/var/run/secrets/tokens/sa-token", 3600)


def test_central_stores_on_aws_take_a_second_token_where_the_issuer_is_public() -> None:
    made = run(cell_program(plan_of(AWS_CENTRAL)))
    assert tokens_of(made, "ibm-identity-small") == [IAM_TOKEN]
    assert not [r for r in made.resources if "central" in r.name]
    text = AWS_CENTRAL.replace(
        "    settings:\n", "    settings:\n      oidc_issuer: https://issuer.example\n"
    )
    made = run(cell_program(plan_of(text)))
    aws = "sts.amazonaws.com"
    assert tokens_of(made, "ibm-identity-small") == [
        IAM_TOKEN,
        (aws, f"/var/run/secrets/tokens/{aws}", 3600),
    ]


def test_a_link_that_means_any_is_never_made() -> None:
    caught: list[str] = []

    def program() -> None:
        profile = IamTrustedProfile("p", name="p")
        try:
            link("p", profile, ComputeLink("crn", "", "job"), profile)
        except ValueError as error:
            caught.append(str(error))

    run(program)
    assert caught == ["p: a link without namespace and account means any"]


def test_buckets_are_private_encrypted_and_kept(cell: Record, central: Record) -> None:
    for record in (cell, central):
        for bucket in of_kind(record, "CosBucket"):
            inputs = bucket.inputs
            assert inputs["endpointType"] == "private"
            assert inputs["forceDelete"] is False
            assert inputs["kmsKeyCrn"].startswith("crn:v1:bluemix:public:kms:us-south:")
            assert inputs["regionLocation"] == "us-south"
            assert (bucket.protect, bucket.retain_on_delete) == (True, True)
            assert ("retentionRule" in inputs) != ("objectVersioning" in inputs)


def test_how_long_stores_keep_things(cell: Record, central: Record) -> None:
    cache = one(cell, "ibm-stores-cache").inputs
    assert cache["objectVersioning"] == {"enable": True}
    assert cache["noncurrentVersionExpiration"] == {
        "enable": True,
        "noncurrentDays": 30,
        "ruleId": "replaced",
    }
    assert cache["expireRules"] == [{"enable": True, "days": 30, "ruleId": "old"}]
    assert "expireRules" not in one(cell, "ibm-stores-artifacts").inputs
    for kind, days in (("release", 730), ("telemetry", 365)):
        rule = one(central, f"central-stores-{kind}").inputs["retentionRule"]
        assert rule == {
            "default": days,
            "minimum": days,
            "maximum": days,
            "permanent": False,
        }


def test_handles_are_exported(cell: Record) -> None:
    registry = cell.outputs["stores"]["registry"]
    assert registry["repository"].startswith("private.us.icr.io/demo-")
    for trust in Trust:
        namespace = one(cell, f"ibm-stores-registry-images-{trust}")
        assert registry["extra"][f"namespace/{trust}"] == namespace.inputs["name"]
        assert registry["extra"][f"repository_id/{trust}"] == namespace.outputs["crn"]
        assert registry["extra"][f"repository/{trust}"] == (
            f"private.us.icr.io/{namespace.inputs['name']}"
        )
        assert registry["extra"][f"repository/{trust}"] == (
            f"{registry['repository']}-{trust}"
        )
    cache = cell.outputs["stores"]["cache"]
    assert cache["bucket_id"] == one(cell, "ibm-stores-cache").outputs["crn"]
    assert "repository" not in cache


def test_the_role_that_pushes_does_nothing_else(cell: Record, central: Record) -> None:
    roles = [
        one(cell, "ibm-stores-push-role"),
        one(central, "central-stores-push-role"),
    ]
    for role in roles:
        assert role.inputs["service"] == "container-registry"
        assert role.inputs["actions"] == ["container-registry.image.push"]
    assert len({role.inputs["displayName"] for role in roles}) == 2


def test_an_adopted_bucket_and_registry_are_taken_as_they_are() -> None:
    text = FLEET.replace("  cache: {keep: 30d}", "  cache: {adopt: my-cache}").replace(
        "  registry: {}", "  registry: {adopt: my-images}"
    )
    made = run(cell_program(plan_of(text)))
    assert not [r for r in made.resources if r.name == "ibm-stores-cache"]
    stores = made.outputs["stores"]
    assert stores["cache"]["bucket"] == "my-cache"
    assert stores["cache"]["bucket_id"].endswith(":bucket:my-cache")
    assert stores["registry"]["extra"]["namespace/trusted"] == "my-images-trusted"


def test_every_type_carries_its_labels_or_says_why(
    cell: Record, central: Record
) -> None:
    for record in (cell, central):
        tagged = {r.inputs["resourceId"] for r in of_kind(record, "ResourceTag")}
        for resource in record.resources:
            if not resource.type.startswith("ibm:") or resource.external:
                continue
            if resource.type in TAGGED_BESIDE:
                assert resource.outputs["crn"] in tagged, resource.name
            elif resource.type not in UNTAGGABLE:
                assert resource.inputs["tags"], resource.name
            elif resource.type.endswith(":ContainerVpcWorkerPool"):
                assert "ci_funder" in resource.inputs["labels"]


def test_external_secrets_reads_one_group_of_secrets(cell: Record) -> None:
    policy = one(cell, "ibm-secrets-app-keys")
    assert policy.inputs["roles"] == ["SecretsReader"]
    assert {a["name"]: a["value"] for a in policy.inputs["resourceAttributes"]} == {
        "serviceName": "secrets-manager",
        "serviceInstance": SECRETS,
        "resourceType": "secret-group",
        "resource": GROUP,
    }
    assert one(cell, "ibm-secrets-link").inputs["link"] == {
        "crn": one(cell, "ibm-cluster-iks").outputs["crn"],
        "namespace": "external-secrets",
        "name": "external-secrets",
    }


def test_where_the_apps_keys_are(plan: CellPlan, cell: Record) -> None:
    small, release = (
        next(p for p in plan.classes if p.name == name) for name in ("gpu", "release")
    )
    source = IbmFloor().app_secret(plan, small)
    assert source.store_kind == "ibm"
    assert source.key == "runfleet/kv/ci-app"
    profile = one(cell, "ibm-secrets-profile").inputs["name"]
    host = f"{SECRETS}.private.us-south.secrets-manager.appdomain.cloud"
    assert source.settings == {
        "serviceUrl": f"https://{host}",
        "auth": {
            "containerAuth": {
                "profile": profile,
                "tokenLocation": "/var/run/secrets/tokens/sa-token",
                "iamEndpoint": "https://private.iam.cloud.ibm.com",
            }
        },
    }
    assert IbmFloor().app_secret(plan, release).key == "runfleet/kv/release-app"


def test_a_cell_without_secrets_is_told_what_to_set() -> None:
    text = FLEET.replace("      secrets_manager:\n", "      max_nodes:\n")
    for line in (f"instance: {SECRETS}", f"group: {GROUP}", "group_name: runfleet"):
        text = text.replace(f"        {line}\n", "")
    text = text.replace("      max_nodes:\n", "      max_nodes: {bx2: 3}\n")
    with pytest.raises(InputError, match="must say where the Apps' keys are kept"):
        run(cell_program(plan_of(text)))


def test_the_promoter_reads_all_levels_and_writes_centrally(central: Record) -> None:
    made = {
        r.name.removeprefix("central-promoter-"): r
        for r in of_kind(central, "IamTrustedProfilePolicy")
    }
    reads = {name for name in made if name.startswith("read-")}
    assert "read-cache-ibm" in reads
    assert not any(
        "release-ibm" in n or "telemetry" in n for n in made if "-images-" not in n
    )
    condition = made["read-cache-ibm"].inputs["ruleConditions"][0]
    assert condition["values"] == ["untrusted-pr/*", "trusted/*", "release/*"]
    for trust in Trust:
        write = made[f"write-cache-{trust}"].inputs["ruleConditions"]
        assert [c["values"] for c in write] == [[f"{trust}/*"]]


def test_names_are_the_same_on_both_sides(cell: Record, central: Record) -> None:
    read = one(central, "central-promoter-read-cache-ibm")
    attributes = {a["name"]: a["value"] for a in read.inputs["resourceAttributes"]}
    assert attributes["resource"] == one(cell, "ibm-stores-cache").inputs["bucketName"]
    images = one(central, "central-promoter-read-registry-ibm-images-trusted")
    attributes = {a["name"]: a["value"] for a in images.inputs["resourceAttributes"]}
    namespace = one(cell, "ibm-stores-registry-images-trusted").inputs["name"]
    assert attributes["resource"] == namespace


def test_nobody_is_the_promoter_until_its_cluster_is_known(
    central: Record, central_plan: CentralPlan
) -> None:
    assert not [r for r in central.resources if r.type.endswith("ProfileLink")]
    crn = f"crn:v1:bluemix:public:containers-kubernetes:us-south:a/{ACCOUNT}:c0abc::"
    settings = StackSettings(values={"promoterCluster": crn})
    made = run(central_program(central_plan, settings), "central")
    assert one(made, "central-promoter-link").inputs["link"] == {
        "crn": crn,
        "namespace": "promoter",
        "name": "promoter",
    }
    wrong = StackSettings(values={"promoterCluster": "demo"})
    with pytest.raises(InputError, match="is no CRN of a cluster"):
        run(central_program(central_plan, wrong), "central")


def test_githubs_token_is_refused_and_not_imitated(central_plan: CentralPlan) -> None:
    runner_class = central_plan.fleet.runner_classes["small"]
    with pytest.raises(FederationError) as caught:
        IbmFloor().federated_identity(
            "x", central_plan, runner_class, {}, pulumi.ResourceOptions()
        )
    assert "takes no token of GitHub" in str(caught.value)
    assert caught.value.exit_code == 2


def test_what_the_floor_has_and_has_not() -> None:
    floor = IbmFloor()
    assert isinstance(floor, WithReservations)
    assert not isinstance(floor, WithSpot)


def test_the_budget_is_kept_by_one_stack_and_set_by_hand(
    cell: Record, central: Record
) -> None:
    outputs = one(central, "central-budget").outputs
    assert outputs["set_by_hand"] is True
    assert outputs["monthly"] == "20000.00 USD"
    assert outputs["notify_at"] == ["10000.00 USD", "20000.00 USD"]
    assert not [r for r in cell.resources if r.name == "ibm-budget"]


def test_an_api_key_is_a_secret_in_the_record(central_plan: CentralPlan) -> None:
    settings = StackSettings(values={"ibmcloudApiKey": "very-secret-key-value"})
    made = run(central_program(central_plan, settings), "central")
    assert "very-secret-key-value" not in json.dumps(
        [dict(r.inputs) for r in made.resources]
    )
    assert "ibmcloudApiKey" in one(made, "central-cloud").inputs


def test_scopes_are_never_mixed_up(cell: Record, central: Record) -> None:
    local = one(cell, "ibm-identity-small-write-cache-local")
    wide = one(cell, "ibm-identity-small-write-cache-central")
    by = {
        str(scope): {a["name"]: a["value"] for a in r.inputs["resourceAttributes"]}
        for scope, r in ((Scope.LOCAL, local), (Scope.CENTRAL, wide))
    }
    assert by["local"]["resource"] == one(cell, "ibm-stores-cache").inputs["bucketName"]
    assert (
        by["central"]["resource"]
        == one(central, "central-stores-cache").inputs["bucketName"]
    )
    assert central_of().stack == "central"
