"""Verbs on stores: full, partial, none, and what is allowed beyond them."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from review.evaluators.aws_cases import (
    ACCOUNT,
    BUCKET,
    CLUSTER,
    KEY,
    ROLE,
    ROOT,
    Thing,
    allow,
    association,
    bucket,
    document,
    key,
    role,
    trust,
)
from runfleet.review.evaluators.aws import AwsAccounts, Session
from runfleet.review.evaluators.aws_verbs import (
    Access,
    Store,
    pod_access,
    store_access,
    stray_permissions,
    verb_access,
)
from runfleet.spec.roles import StoreKind, Verb

FULL, PARTIAL, NONE, CANNOT_TELL = Access
CACHE = Store(StoreKind.CACHE, BUCKET)
TLS_ONLY = {
    "Effect": "Deny",
    "Principal": "*",
    "Action": "s3:*",
    "Resource": [BUCKET, f"{BUCKET}/*"],
    "Condition": {"Bool": {"aws:SecureTransport": "false"}},
}
LIST = allow(["s3:ListBucket", "s3:GetBucketLocation"], BUCKET)
READ = allow("s3:GetObject", f"{BUCKET}/*")
WRITE = allow(["s3:PutObject", "s3:AbortMultipartUpload"], f"{BUCKET}/*")


def access(things, store=CACHE):
    accounts = AwsAccounts.from_resources(things)
    assert accounts.problems == ()
    return verb_access(accounts, Session(ROLE), store)


def levels(found):
    return found.read, found.write, found.insert


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        ([], (NONE, NONE, NONE)),
        ([READ, LIST], (FULL, NONE, NONE)),
        ([READ], (PARTIAL, NONE, NONE)),
        ([WRITE], (NONE, FULL, NONE)),
        ([READ, LIST, WRITE], (FULL, FULL, NONE)),
        ([LIST, allow("s3:GetObject", f"{BUCKET}/a/*")], (PARTIAL, NONE, NONE)),
        ([allow("s3:PutObject", f"{BUCKET}/*.log")], (NONE, PARTIAL, NONE)),
        ([allow("s3:PutObject", "arn:aws:s3:::*")], (NONE, FULL, NONE)),
        ([allow("s3:PutObject", "arn:aws:s3:::cache2/*")], (NONE, NONE, NONE)),
    ],
)
def test_levels_on_a_bucket(statements, expected):
    found = access([*role(ROLE, *statements), *bucket("cache", TLS_ONLY)])
    assert levels(found) == expected
    assert (found.beyond, found.unclear, found.without_tls) == ((), (), ())
    assert found.of(Verb.WRITE) is expected[1]


def test_beyond_is_everything_else():
    more = allow(
        [
            "s3:DeleteObject",
            "s3:PutBucketPolicy",
            "s3:ListAllMyBuckets",
            "s3:GetObject*",
        ]
    )
    found = access([*role(ROLE, READ, LIST, more), *bucket("cache", TLS_ONLY)])
    assert found.beyond == (
        "s3:DeleteObject",
        "s3:GetObjectAcl",
        "s3:GetObjectLegalHold",
        "s3:GetObjectRetention",
        "s3:GetObjectTorrent",
        "s3:GetObjectVersionAcl",
        "s3:GetObjectVersionForReplication",
        "s3:GetObjectVersionTorrent",
        "s3:ListAllMyBuckets",
        "s3:PutBucketPolicy",
    )


def test_everything_on_a_bucket():
    found = access([*role(ROLE, allow("s3:*", [BUCKET, f"{BUCKET}/*"])), *bucket()])
    assert levels(found) == (FULL, FULL, NONE)
    assert "s3:DeleteBucket" in found.beyond
    assert "s3:ListAllMyBuckets" not in found.beyond
    assert {"s3:GetObject", "s3:PutObject", "s3:DeleteObject"} <= set(found.without_tls)


def test_a_bucket_policy_that_gives_more():
    statement = {
        "Effect": "Allow",
        "Principal": {"AWS": ROLE},
        "Action": "s3:DeleteObject",
        "Resource": f"{BUCKET}/old/*",
    }
    found = access([*role(), *bucket("cache", TLS_ONLY, statement)])
    assert levels(found) == (NONE, NONE, NONE)
    assert found.beyond == ("s3:DeleteObject",)


def encrypted(*statements):
    rules = [
        {
            "applyServerSideEncryptionByDefault": {
                "sseAlgorithm": "aws:kms",
                "kmsMasterKeyId": KEY,
            }
        }
    ]
    token = "aws:s3/bucketServerSideEncryptionConfiguration:"
    token += "BucketServerSideEncryptionConfiguration"
    sse = Thing(token, "sse", inputs={"bucket": "cache", "rules": rules})
    return [*role(ROLE, *statements), *bucket("cache", TLS_ONLY), sse, key()]


def test_the_key_of_a_bucket_counts():
    assert levels(access(encrypted(READ, LIST, WRITE))) == (PARTIAL, PARTIAL, NONE)
    use = allow(
        ["kms:Decrypt", "kms:GenerateDataKey"],
        KEY,
        Condition={"StringEquals": {"kms:ViaService": "s3.us-east-2.amazonaws.com"}},
    )
    found = access(encrypted(READ, LIST, WRITE, use))
    assert levels(found) == (FULL, FULL, NONE)
    assert found.beyond == ()
    admin = access(encrypted(READ, LIST, WRITE, allow("kms:*", KEY)))
    assert "kms:ScheduleKeyDeletion" in admin.beyond
    assert "kms:Decrypt" not in admin.beyond


def test_headers_are_those_that_a_client_would_choose():
    header = "s3:x-amz-server-side-encryption"
    needs = {
        **TLS_ONLY,
        "Action": "s3:PutObject",
        "Condition": {"StringNotEquals": {header: "aws:kms"}},
    }
    found = access([*role(ROLE, WRITE), *bucket("cache", needs)])
    assert found.write is FULL
    never = {**needs, "Condition": {"Null": {header: "false"}}}
    both = [*role(ROLE, WRITE), *bucket("cache", needs, never)]
    assert access(both).write is NONE


def test_stores_that_are_prefixes_of_one_bucket():
    statements = [
        allow("s3:GetObject", [f"{BUCKET}/trusted/*", f"{BUCKET}/release/*"]),
        LIST,
        allow("s3:PutObject", f"{BUCKET}/trusted/*"),
    ]
    accounts = AwsAccounts.from_resources(
        [*role(ROLE, *statements), *bucket("cache", TLS_ONLY)]
    )
    parts = [
        Store(StoreKind.CACHE, f"{BUCKET}/{level}/")
        for level in ("untrusted-pr", "trusted", "release")
    ]
    found = store_access(accounts, Session(ROLE), parts)
    assert [levels(each)[:2] for each in found] == [
        (NONE, NONE),
        (FULL, FULL),
        (FULL, NONE),
    ]
    assert [each.beyond for each in found] == [(), (), ()]
    assert stray_permissions(accounts, Session(ROLE), parts) == ()
    assert stray_permissions(accounts, Session(ROLE), parts[:2]) == (
        f"s3:getobject on {BUCKET}/release/*",
    )


REGISTRY = f"arn:aws:ecr:us-east-2:{ACCOUNT}:repository/ci/trusted"
PULL = ["ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"]
PUSH = [
    "ecr:InitiateLayerUpload",
    "ecr:UploadLayerPart",
    "ecr:CompleteLayerUpload",
    "ecr:PutImage",
    "ecr:BatchCheckLayerAvailability",
]
LOGIN = allow("ecr:GetAuthorizationToken")


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        ([LOGIN], (NONE, NONE, NONE)),
        ([allow([*PULL, PUSH[-1]], REGISTRY)], (PARTIAL, NONE, NONE)),
        ([LOGIN, allow([*PULL, PUSH[-1]], REGISTRY)], (FULL, NONE, NONE)),
        ([LOGIN, allow([*PUSH, PULL[0]], REGISTRY)], (NONE, FULL, NONE)),
        ([LOGIN, allow(PUSH[:2], REGISTRY)], (NONE, PARTIAL, NONE)),
    ],
)
def test_levels_on_a_repository(statements, expected):
    repository = Thing("aws:ecr/repository:Repository", "r", outputs={"arn": REGISTRY})
    found = access(
        [*role(ROLE, *statements), repository], Store(StoreKind.REGISTRY, REGISTRY)
    )
    assert levels(found) == expected
    if expected[:2] != (NONE, NONE):
        assert set(found.beyond) <= {"ecr:BatchCheckLayerAvailability"}


def test_a_pull_through_cache():
    prefix = f"arn:aws:ecr:us-east-2:{ACCOUNT}:repository/docker-hub/*"
    extra = ["ecr:BatchImportUpstreamImage", "ecr:CreateRepository", "ecr:TagResource"]
    things = role(ROLE, LOGIN, allow([*PULL, PUSH[-1], *extra], prefix))
    found = access(things, Store(StoreKind.REGISTRY, prefix, pull_through=True))
    assert (levels(found), found.beyond) == ((FULL, NONE, NONE), ())
    plain = access(things, Store(StoreKind.REGISTRY, prefix))
    assert plain.beyond == tuple(extra)
    one = allow([*PULL, PUSH[-1]], prefix.replace("*", "library/*"))
    part = access(role(ROLE, LOGIN, one), Store(StoreKind.REGISTRY, prefix))
    assert part.read is PARTIAL


def test_insert_only():
    stream = f"arn:aws:firehose:us-east-2:{ACCOUNT}:deliverystream/results"
    store = Store(StoreKind.TELEMETRY, stream)
    insert = ["firehose:PutRecord", "firehose:PutRecordBatch"]
    found = access(role(ROLE, allow(insert, stream)), store)
    assert (levels(found), found.beyond) == ((NONE, NONE, FULL), ())
    assert access(role(ROLE, allow(insert[0], stream)), store).insert is PARTIAL
    wide = access(role(ROLE, allow("firehose:*")), store)
    assert "firehose:UpdateDestination" in wide.beyond


def test_a_bucket_that_the_record_lacks_is_not_guessed():
    found = access(role(ROLE, READ, LIST))
    assert found.read is CANNOT_TELL
    assert "s3:GetObject" in found.unclear


def test_stray_permissions():
    accounts = AwsAccounts.from_resources(
        [
            *role(
                ROLE,
                READ,
                LIST,
                LOGIN,
                allow("s3:ListAllMyBuckets"),
                allow("s3:PutObject", "arn:aws:s3:::other/*"),
                allow("s3:PutObject", "arn:aws:s3:::cache2/*"),
                allow("ec2:*"),
                allow("iam:PassRole", ROLE),
                {"Effect": "Allow", "NotAction": "iam:*", "Resource": BUCKET},
            ),
            *bucket(),
        ]
    )
    assert stray_permissions(accounts, Session(ROLE), [CACHE]) == (
        "ec2:* on *",
        f"iam:passrole on {ROLE}",
        f"not iam:* on {BUCKET}",
        "s3:putobject on arn:aws:s3:::cache2/*",
        "s3:putobject on arn:aws:s3:::other/*",
    )


def test_a_prefix_that_a_session_tag_names():
    prefix = f"{BUCKET}/${{aws:PrincipalTag/kubernetes-namespace}}/*"
    accounts = AwsAccounts.from_resources(
        [*role(ROLE, allow("s3:PutObject", prefix)), *bucket()]
    )
    session = Session(ROLE, tags={"kubernetes-namespace": "ci"})
    own, other = (Store(StoreKind.CACHE, f"{BUCKET}/{name}/") for name in ("ci", "cd"))
    found = store_access(accounts, session, [CACHE, own, other])
    assert [each.write for each in found] == [PARTIAL, FULL, NONE]


def test_a_pod_has_the_access_of_every_role_it_reaches():
    second = f"arn:aws:iam::{ACCOUNT}:role/second"
    accounts = AwsAccounts.from_resources(
        [
            CLUSTER,
            association(policy=document(allow(["s3:GetObject", "sts:AssumeRole"]))),
            *role(ROLE, READ, WRITE, allow("sts:AssumeRole", second)),
            *role(
                second,
                allow("s3:DeleteObject", f"{BUCKET}/*"),
                trusts=[trust({"AWS": ROOT}, "sts:AssumeRole")],
            ),
            *bucket("cache", TLS_ONLY),
        ]
    )
    (found,) = pod_access(accounts, "ci", "tester", "cell", [CACHE])
    assert (levels(found), found.beyond) == (
        (PARTIAL, NONE, NONE),
        ("s3:DeleteObject",),
    )
    (none,) = pod_access(accounts, "ci", "default", "cell", [CACHE])
    assert levels(none) == (NONE, NONE, NONE)


def test_no_cloud_library_is_needed():
    code = (
        "import sys, runfleet.review.evaluators.aws_verbs;"
        "print({'boto3', 'botocore', 'pulumi', 'policy_sentry'} & {*sys.modules})"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == "set()\n"


def test_a_fleet_is_answered_quickly():
    things, stores = [], []
    for index in range(12):
        name = f"store-{index}"
        arn = f"arn:aws:s3:::{name}"
        tls = {**TLS_ONLY, "Resource": [arn, f"{arn}/*"]}
        things += bucket(name, tls)
        stores.append(Store(StoreKind.CACHE, arn))
    roles = [f"{ROLE}-{index}" for index in range(50)]
    for index, arn in enumerate(roles):
        granted = [stores[(index + step) % 12].arn for step in range(6)]
        things += role(
            arn,
            allow(["s3:ListBucket", "s3:GetBucketLocation"], granted),
            allow("s3:GetObject", [f"{each}/*" for each in granted]),
            allow("s3:PutObject", [f"{each}/*" for each in granted[:3]]),
        )
    started = time.process_time()
    accounts = AwsAccounts.from_resources(things)
    found = [store_access(accounts, Session(arn), stores) for arn in roles]
    spent = time.process_time() - started
    assert sum(each.read is FULL for row in found for each in row) == 300
    assert sum(each.write is FULL for row in found for each in row) == 150
    assert not any(each.beyond or each.without_tls for row in found for each in row)
    print(f"50 roles x 12 stores: {spent:.2f} s")
