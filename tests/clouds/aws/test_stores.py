"""Stores: encrypted with their own key, never public, kept, and apart by trust."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pulumi
import pulumi_aws as aws
import pytest
from policy_sentry.querying.actions import get_action_data

from clouds.aws.recording import (
    ACCOUNT,
    CENTRAL_ACCOUNT,
    Recording,
    cell_plan,
    central_plan,
    fleet,
    record,
)
from runfleet.clouds.aws import addresses, names
from runfleet.clouds.aws.grants import TooLongError
from runfleet.clouds.aws.store_policies import (
    BUCKET_POLICY_LIMIT,
    KEY_ADMINISTRATION,
    KEY_POLICY_LIMIT,
    bucket_policy,
    key_policy,
    lifecycle,
    repository_policy,
)
from runfleet.clouds.aws.stores import Stores, StoresArgs
from runfleet.clouds.protocols import StoreHandle
from runfleet.placement.plan import CellPlan, CentralPlan
from runfleet.rehearsal.runner import rehearse
from runfleet.spec.roles import Scope, StoreKind, Trust
from runfleet.spec.stores import Store
from runfleet.spec.units import Duration

KEY = f"arn:aws:kms:us-east-1:{ACCOUNT}:key/aws-stores-key"
CACHE = names.S3_BUCKET.encode("pytorch", "aws", "cache", ACCOUNT, "us-east-1")
TRUSTS = ("untrusted-pr", "trusted", "release")


def make(plan: CellPlan | CentralPlan, name: str) -> tuple[Recording, dict[str, Any]]:
    """Make the stores of a plan; return what was registered and the handles."""
    values: dict[str, Any] = {}

    def program(options: pulumi.ResourceOptions) -> Any:
        stores = Stores(name, StoresArgs.from_plan(plan), options)

        def keep(found: dict[str, Any]) -> None:
            values.update(found)

        handles = {str(k): h.exported() for k, h in stores.handles.items()}
        return pulumi.Output.from_input(handles).apply(keep)

    return record(program), values


@pytest.fixture(scope="module")
def local() -> tuple[Recording, dict[str, Any]]:
    return make(cell_plan(), "aws-stores")


@pytest.fixture(scope="module")
def central() -> tuple[Recording, dict[str, Any]]:
    return make(central_plan(), "central-stores")


def test_what_a_cell_gets(local: tuple[Recording, dict[str, Any]]) -> None:
    found, handles = local
    assert Counter(r.type.rpartition(":")[2] for r in found.all) == {
        "Stores": 1,
        "Key": 1,
        "Alias": 1,
        "Bucket": 3,
        "BucketPublicAccessBlock": 3,
        "BucketOwnershipControls": 3,
        "BucketServerSideEncryptionConfiguration": 3,
        "BucketVersioning": 3,
        "BucketLifecycleConfiguration": 3,
        "BucketPolicy": 3,
        "Repository": 6,
        "LifecyclePolicy": 6,
        "Role": 1,
        "RolePolicy": 1,
        "RepositoryCreationTemplate": 3,
        "PullThroughCacheRule": 3,
    }
    assert set(handles) == {"cache", "artifacts", "shared", "registry"}


def test_what_central_gets(central: tuple[Recording, dict[str, Any]]) -> None:
    found, handles = central
    assert Counter(r.type.rpartition(":")[2] for r in found.all) == {
        "Stores": 1,
        "Key": 1,
        "Alias": 1,
        "Bucket": 5,
        "BucketPublicAccessBlock": 5,
        "BucketOwnershipControls": 5,
        "BucketServerSideEncryptionConfiguration": 5,
        "BucketVersioning": 5,
        "BucketLifecycleConfiguration": 5,
        "BucketObjectLockConfiguration": 1,
        "BucketPolicy": 5,
        "Repository": 6,
        "LifecyclePolicy": 6,
        "Role": 1,
        "RolePolicy": 1,
        "FirehoseDeliveryStream": 3,
    }
    assert set(handles) == {str(kind) for kind in StoreKind}


@pytest.mark.parametrize("which", ["local", "central"])
def test_everything_is_protected_kept_and_under_the_component(
    which: str, request: pytest.FixtureRequest
) -> None:
    found, _ = request.getfixturevalue(which)
    for child in found.all[1:]:
        assert child.protect, child.name
        assert child.retain, child.name
        assert child.parent == found.all[0].name
        assert child.name.startswith(f"{found.all[0].name}-")
        assert child.provider == "account"


def test_a_bucket_is_exactly_this(local: tuple[Recording, dict[str, Any]]) -> None:
    found, _ = local
    bucket = dict(found.one("aws-stores-cache").inputs)
    assert bucket.pop("tags")["ci_stack"] == "aws"
    assert bucket == {
        "bucket": CACHE,
        "forceDestroy": False,
        "objectLockEnabled": False,
    }
    assert found.one("aws-stores-cache-public-access").inputs == {
        "bucket": CACHE,
        "blockPublicAcls": True,
        "blockPublicPolicy": True,
        "ignorePublicAcls": True,
        "restrictPublicBuckets": True,
    }
    assert found.one("aws-stores-cache-ownership").inputs == {
        "bucket": CACHE,
        "rule": {"objectOwnership": "BucketOwnerEnforced"},
    }
    assert found.one("aws-stores-cache-encryption").inputs == {
        "bucket": CACHE,
        "rules": [
            {
                "applyServerSideEncryptionByDefault": {
                    "sseAlgorithm": "aws:kms",
                    "kmsMasterKeyId": KEY,
                },
                "bucketKeyEnabled": True,
            }
        ],
    }
    assert found.one("aws-stores-cache-versioning").inputs == {
        "bucket": CACHE,
        "versioningConfiguration": {"status": "Enabled"},
    }
    assert found.one("aws-stores-cache-lifecycle").inputs == {
        "bucket": CACHE,
        "rules": [
            {
                "id": "keep",
                "status": "Enabled",
                "filter": {"prefix": ""},
                "abortIncompleteMultipartUpload": {"daysAfterInitiation": 7},
                "expiration": {"days": 30},
                "noncurrentVersionExpiration": {"noncurrentDays": 30},
            }
        ],
    }
    policy = found.one("aws-stores-cache-policy")
    assert {"aws-stores-cache-public-access", "aws-stores-cache-ownership"} <= set(
        policy.dependencies
    )


def test_the_key_rotates_and_its_account_decides(
    local: tuple[Recording, dict[str, Any]],
) -> None:
    found, _ = local
    key = found.one("aws-stores-key").inputs
    assert (key["enableKeyRotation"], key["rotationPeriodInDays"]) == (True, 365)
    assert key["deletionWindowInDays"] == 30
    (statement,) = json.loads(key["policy"])["Statement"]
    assert statement["Principal"] == {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}
    assert statement["Action"] == list(KEY_ADMINISTRATION)
    assert found.one("aws-stores-key-alias").inputs == {
        "name": "alias/pytorch/aws/stores",
        "targetKeyId": "aws-stores-key",
    }
    for action in KEY_ADMINISTRATION:
        assert get_action_data(*action.split(":")), action


def test_the_bucket_policy_refuses_what_is_not_tls_or_not_our_key(
    local: tuple[Recording, dict[str, Any]],
) -> None:
    found, _ = local
    arn = f"arn:aws:s3:::{CACHE}"
    algorithm = "s3:x-amz-server-side-encryption"
    policy = json.loads(found.one("aws-stores-cache-policy").inputs["policy"])
    everybody, both = {"AWS": "*"}, [arn, f"{arn}/*"]
    assert [tuple(statement.values()) for statement in policy["Statement"]] == [
        (
            "TlsOnly",
            "Deny",
            everybody,
            "s3:*",
            both,
            {"Bool": {"aws:SecureTransport": "false"}},
        ),
        (
            "Tls12",
            "Deny",
            everybody,
            "s3:*",
            both,
            {"NumericLessThan": {"s3:TlsVersion": "1.2"}},
        ),
        (
            "OwnEncryptionOnly",
            "Deny",
            everybody,
            "s3:PutObject",
            [f"{arn}/*"],
            {
                "StringNotEquals": {algorithm: "aws:kms"},
                "Null": {algorithm: "false"},
            },
        ),
        (
            "OwnKeyOnly",
            "Deny",
            everybody,
            "s3:PutObject",
            [f"{arn}/*"],
            {
                "StringNotEquals": {f"{algorithm}-aws-kms-key-id": KEY},
                "Null": {f"{algorithm}-aws-kms-key-id": "false"},
            },
        ),
    ]


@pytest.mark.parametrize("trust", TRUSTS)
def test_repositories_by_trust(
    local: tuple[Recording, dict[str, Any]], trust: str
) -> None:
    found, handles = local
    repository = dict(found.one(f"aws-stores-registry-images-{trust}").inputs)
    repository.pop("tags")
    assert repository == {
        "name": f"pytorch/aws/registry/{trust}",
        "imageTagMutability": "IMMUTABLE",
        "imageScanningConfiguration": {"scanOnPush": True},
        "encryptionConfigurations": [{"encryptionType": "KMS", "kmsKey": KEY}],
        "forceDelete": False,
    }
    address = f"{ACCOUNT}.dkr.ecr.us-east-1.amazonaws.com/pytorch/aws/registry"
    assert handles["registry"]["repository"] == address
    assert handles["registry"]["extra"][f"repository/{trust}"] == f"{address}/{trust}"
    assert handles["registry"]["repository_id"] == (
        f"arn:aws:ecr:us-east-1:{ACCOUNT}:repository/pytorch/aws/registry"
    )


def test_the_pull_through_cache(local: tuple[Recording, dict[str, Any]]) -> None:
    found, handles = local
    assert found.one("aws-stores-registry-cache-quay").inputs == {
        "ecrRepositoryPrefix": "aws/quay",
        "upstreamRegistryUrl": "quay.io",
    }
    template = dict(found.one("aws-stores-registry-cache-quay-template").inputs)
    assert template.pop("resourceTags")["ci_managed_by"] == "runfleet"
    policy = json.loads(template.pop("lifecyclePolicy"))
    assert [r["selection"]["countNumber"] for r in policy["rules"]] == [14, 30]
    assert template == {
        "prefix": "aws/quay",
        "appliedFors": ["PULL_THROUGH_CACHE"],
        "description": "Images cached from quay.io",
        "encryptionConfigurations": [{"encryptionType": "KMS", "kmsKey": KEY}],
        "imageTagMutability": "IMMUTABLE",
        "customRoleArn": f"arn:aws:iam::{ACCOUNT}:role/pytorch--aws--image-cache",
    }
    role = found.one("aws-stores-registry-cache-role").inputs
    (trusted,) = json.loads(role["assumeRolePolicy"])["Statement"]
    assert trusted["Principal"] == {"Service": "ecr.amazonaws.com"}
    assert trusted["Condition"] == {"StringEquals": {"aws:SourceAccount": ACCOUNT}}
    ecr = f"arn:aws:ecr:us-east-1:{ACCOUNT}:repository/aws"
    made = json.loads(
        found.one("aws-stores-registry-cache-role-policy").inputs["policy"]
    )
    assert [s["Resource"] for s in made["Statement"]] == [
        [f"{ecr}/ecr/*", f"{ecr}/k8s/*", f"{ecr}/quay/*"],
        [KEY],
    ]
    assert handles["registry"]["extra"]["pull_through_ids"] == (
        f"{ecr}/ecr,{ecr}/k8s,{ecr}/quay"
    )
    assert handles["registry"]["extra"]["pull_through/quay"] == (
        f"{ACCOUNT}.dkr.ecr.us-east-1.amazonaws.com/aws/quay"
    )


def test_telemetry_streams_by_trust(central: tuple[Recording, dict[str, Any]]) -> None:
    found, handles = central
    key = f"arn:aws:kms:us-east-1:{ACCOUNT}:key/central-stores-key"
    bucket = handles["telemetry"]["bucket"]
    for trust in TRUSTS:
        stream = dict(found.one(f"central-stores-telemetry-stream-{trust}").inputs)
        stream.pop("tags")
        assert stream == {
            "name": f"pytorch--central--telemetry-{trust}",
            "destination": "extended_s3",
            "extendedS3Configuration": {
                "roleArn": f"arn:aws:iam::{ACCOUNT}:role/pytorch--central--delivery",
                "bucketArn": f"arn:aws:s3:::{bucket}",
                "prefix": f"{trust}/!{{timestamp:yyyy/MM/dd/HH}}/",
                "errorOutputPrefix": f"errors/{trust}/!{{firehose:error-output-type}}/"
                "!{timestamp:yyyy/MM/dd}/",
                "bufferingSize": 64,
                "bufferingInterval": 60,
                "compressionFormat": "GZIP",
                "kmsKeyArn": key,
            },
            "serverSideEncryption": {
                "enabled": True,
                "keyType": "CUSTOMER_MANAGED_CMK",
                "keyArn": key,
            },
        }
    telemetry = handles["telemetry"]
    assert telemetry["stream"] == "pytorch--central--telemetry"
    assert telemetry["stream_id"].endswith(
        ":deliverystream/pytorch--central--telemetry"
    )
    policy = json.loads(
        found.one("central-stores-telemetry-delivery-policy").inputs["policy"]
    )
    assert {r for s in policy["Statement"] for r in s["Resource"]} == {
        f"arn:aws:s3:::{bucket}",
        f"arn:aws:s3:::{bucket}/*",
        key,
    }


def test_releases_are_locked(central: tuple[Recording, dict[str, Any]]) -> None:
    found, _ = central
    assert found.one("central-stores-release").inputs["objectLockEnabled"] is True
    lock = found.one("central-stores-release-lock")
    assert lock.inputs["rule"] == {
        "defaultRetention": {"mode": "GOVERNANCE", "days": 365}
    }
    assert "central-stores-release-versioning" in lock.dependencies


@pytest.mark.parametrize(
    ("kind", "keep", "expiry", "superseded"),
    [
        ("cache", None, None, 30),
        ("cache", "12h", 1, 30),
        ("release", None, None, None),
        ("release", "90d", 90, 90),
        ("release", "7d", 7, 30),
    ],
)
def test_lifecycles(
    kind: str, keep: str | None, expiry: int | None, superseded: int | None
) -> None:
    store = Store(name=kind, keep=Duration.parse(keep) if keep else None)
    rule = lifecycle(store)
    assert rule.get("expiration") == ({"days": expiry} if expiry else None)
    assert rule.get("noncurrent_version_expiration") == (
        {"noncurrent_days": superseded} if superseded else None
    )


def test_handles_survive_the_way_through_another_stack(
    local: tuple[Recording, dict[str, Any]],
) -> None:
    _, handles = local
    seen: dict[str, Any] = {}

    def program(options: pulumi.ResourceOptions) -> Any:
        exported = pulumi.Output.from_input(handles["cache"])
        handle = StoreHandle.imported(StoreKind.CACHE, Scope.LOCAL, exported)
        return pulumi.Output.all(handle.bucket_id, handle.key_id).apply(
            lambda found: seen.update(found=found)
        )

    record(program)
    assert seen["found"] == [f"arn:aws:s3:::{CACHE}", KEY]


def test_an_existing_bucket_is_used_and_left_as_it_is() -> None:
    known = fleet()
    stores = dict(known.stores)
    stores[StoreKind.CACHE] = Store(name="cache", adopt="our-old-cache")
    stores[StoreKind.REGISTRY] = Store(name="registry", adopt="our/images")
    plan = cell_plan(known.model_copy(update={"stores": stores}))
    found, handles = make(plan, "aws-stores")
    assert not [name for name in found.names if name.startswith("aws-stores-cache")]
    assert not [name for name in found.names if "registry-images" in name]
    assert handles["cache"]["bucket_id"] == "arn:aws:s3:::our-old-cache"
    assert handles["registry"]["extra"]["repository/trusted"].endswith(
        "/our/images/trusted"
    )


def test_another_account_s_classes_are_let_in_by_exact_name() -> None:
    plan = central_plan(fleet(central=CENTRAL_ACCOUNT))
    found, _ = make(plan, "central-stores")
    role = f"arn:aws:iam::{ACCOUNT}:role/lf-ue1--job--"
    root = [f"arn:aws:iam::{ACCOUNT}:root"]
    site = addresses.plan_site(plan)
    bucket = site.bucket_arn(plan.fleet.stores[StoreKind.CACHE])
    policy = json.loads(found.one("central-stores-cache-policy").inputs["policy"])
    write = ["s3:AbortMultipartUpload", "s3:ListMultipartUploadParts", "s3:PutObject"]
    assert policy["Statement"][4:] == [
        {
            "Sid": "WriteTrusted",
            "Effect": "Allow",
            "Principal": {"AWS": root},
            "Action": write,
            "Resource": [f"{bucket}/trusted/*"],
            "Condition": {"ArnEquals": {"aws:PrincipalArn": [f"{role}builds"]}},
        },
        {
            "Sid": "WriteRelease",
            "Effect": "Allow",
            "Principal": {"AWS": root},
            "Action": write,
            "Resource": [f"{bucket}/release/*"],
            "Condition": {"ArnEquals": {"aws:PrincipalArn": [f"{role}releases"]}},
        },
    ]
    key = json.loads(found.one("central-stores-key").inputs["policy"])["Statement"][1]
    assert key["Condition"] == {
        "StringEquals": {"kms:ViaService": "s3.us-east-2.amazonaws.com"},
        "ArnEquals": {"aws:PrincipalArn": [f"{role}builds", f"{role}releases"]},
    }
    images = json.loads(
        found.one("central-stores-registry-images-trusted-policy").inputs["policy"]
    )
    assert [s["Condition"] for s in images["Statement"]] == [
        {"ArnEquals": {"aws:PrincipalArn": [f"{role}builds"]}}
    ]
    assert "central-stores-registry-images-untrusted-pr-policy" not in found.names


def test_another_account_s_classes_insert_with_a_role_each() -> None:
    found, _ = make(central_plan(fleet(central=CENTRAL_ACCOUNT)), "central-stores")
    inserts = [
        r
        for r in found.of("aws:iam/role:Role")
        if r.name.startswith("central-stores-telemetry-insert-")
    ]
    assert [r.inputs["name"] for r in inserts] == [
        "lf-ue1--telemetry--builds",
        "lf-ue1--telemetry--releases",
        "lf-ue1--telemetry--tests",
    ]
    (trusted,) = json.loads(inserts[-1].inputs["assumeRolePolicy"])["Statement"]
    assert trusted["Condition"] == {
        "ArnEquals": {
            "aws:PrincipalArn": [f"arn:aws:iam::{ACCOUNT}:role/lf-ue1--job--tests"]
        }
    }
    policy = json.loads(found.one(f"{inserts[-1].name}-policy").inputs["policy"])
    stream = "pytorch--central--telemetry-untrusted-pr"
    assert policy["Statement"][0]["Resource"] == [
        f"arn:aws:firehose:us-east-2:{CENTRAL_ACCOUNT}:deliverystream/{stream}"
    ]


def test_local_stores_let_the_promoter_of_another_account_read() -> None:
    plan = cell_plan(fleet(central=CENTRAL_ACCOUNT))
    found, _ = make(plan, "aws-stores")
    promoter = f"arn:aws:iam::{CENTRAL_ACCOUNT}:role/pytorch--central--promoter"
    policy = json.loads(found.one("aws-stores-cache-policy").inputs["policy"])
    read, listed = policy["Statement"][4:]
    assert read["Action"] == ["s3:GetObject"]
    assert read["Resource"] == [f"arn:aws:s3:::{CACHE}/{t}/*" for t in TRUSTS]
    assert listed["Action"] == ["s3:GetBucketLocation", "s3:ListBucket"]
    for statement in (read, listed):
        assert statement["Condition"] == {"ArnEquals": {"aws:PrincipalArn": [promoter]}}
    assert repository_policy(
        plan.fleet.stores[StoreKind.REGISTRY],
        Trust.UNTRUSTED_PR,
        addresses.peers(plan),
    )


def test_policies_of_a_fleet_like_pytorch_s_fit() -> None:
    peers = many(88)
    site = addresses.plan_site(central_plan())
    store = Store(name="cache")
    assert len(bucket_policy(site, store, peers, KEY)) < BUCKET_POLICY_LIMIT
    assert len(key_policy(site, peers)) < KEY_POLICY_LIMIT
    with pytest.raises(TooLongError, match="AWS accepts 20480"):
        bucket_policy(site, store, many(400), KEY)


def many(count: int) -> tuple[addresses.Peer, ...]:
    known = fleet(central=CENTRAL_ACCOUNT)
    builder = next(
        p for p in addresses.peers(central_plan(known)) if p.role.endswith("builds")
    )
    return tuple(
        addresses.Peer(
            f"arn:aws:iam::{ACCOUNT}:role/"
            + names.IAM_ROLE.encode(f"lf-prod-aws-ue{n % 2}", "job", f"class-{n:042d}"),
            builder.grants,
            Trust.TRUSTED,
        )
        for n in range(count)
    )


@pytest.mark.parametrize("central", [ACCOUNT, CENTRAL_ACCOUNT])
def test_moto_accepts_every_name_and_document(central: str) -> None:
    known = fleet(central=central)

    def program() -> None:
        for plan, name in ((cell_plan(known), "aws"), (central_plan(known), "central")):
            site = addresses.plan_site(plan)
            provider = aws.Provider(
                f"{name}-account",
                region=site.region,
                allowed_account_ids=[site.account],
            )
            Stores(
                f"{name}-stores",
                StoresArgs.from_plan(plan),
                pulumi.ResourceOptions(provider=provider),
            )

    found = rehearse(program, project="runfleet", stack="aws", emulate=True)
    assert len(found.by_type("aws:s3/bucketPolicy:BucketPolicy")) == 8
    assert len(found.by_type("aws:ecr/repository:Repository")) == 12
    inserts = 0 if central == ACCOUNT else 3
    assert len(found.by_type("aws:iam/role:Role")) == 2 + inserts
