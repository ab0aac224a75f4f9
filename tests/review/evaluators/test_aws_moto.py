"""The evaluator against moto's IAM enforcement, where moto evaluates at all."""

from __future__ import annotations

import json

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from moto.core import set_initial_no_auth_action_count

from review.evaluators.aws_cases import allow, bucket, deny, document, role
from runfleet.review.evaluators.aws import AwsAccounts, Request, Session
from runfleet.review.evaluators.aws_decide import NOT_CROSS_CHECKED

ACCOUNT = "123456789012"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/runner"
CACHE, OTHER = "arn:aws:s3:::cache", "arn:aws:s3:::other"
ONLY_CACHE = [CACHE, f"{CACHE}/*"]

POLICIES = {
    "nothing": [allow("ec2:DescribeInstances")],
    "read": [allow("s3:GetObject", f"{CACHE}/*"), allow("s3:ListBucket", CACHE)],
    "write": [allow("s3:PutObject", f"{CACHE}/*")],
    "prefix": [allow(["s3:GetObject", "s3:PutObject"], f"{CACHE}/ci/*")],
    "one key": [allow("s3:GetObject", f"{CACHE}/ci/log")],
    "all of one bucket": [allow("s3:*", ONLY_CACHE)],
    "wildcard action": [allow("s3:Get*", f"{CACHE}/*")],
    "objects of all buckets": [allow("s3:*Object", "arn:aws:s3:::*/*")],
    "everything": [allow("*")],
    "deny one prefix": [allow("s3:*"), deny("s3:*", f"{CACHE}/ci/*")],
    "deny an action": [allow("s3:*"), deny("s3:PutObject")],
    "deny stands first": [deny("s3:DeleteObject"), allow("s3:*", ONLY_CACHE)],
    "not action": [{"Effect": "Allow", "NotAction": ["s3:PutObject"], "Resource": "*"}],
}
CALLS = {
    "s3:GetObject": lambda s3, name, key: s3.get_object(Bucket=name, Key=key),
    "s3:PutObject": lambda s3, name, key: s3.put_object(Bucket=name, Key=key, Body=b""),
    "s3:DeleteObject": lambda s3, name, key: s3.delete_object(Bucket=name, Key=key),
    "s3:ListBucket": lambda s3, name, key: s3.list_objects_v2(Bucket=name),
}
PLACES = [
    ("cache", "ci/log"),
    ("cache", "ci/a:b"),
    ("cache", "top"),
    ("other", "ci/log"),
]


@pytest.fixture
def credentials(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")


def asked_of_moto(statements):
    """Return what moto allows a role with these statements, by call and place."""
    iam = boto3.client("iam")
    iam.create_role(
        RoleName="runner",
        AssumeRolePolicyDocument=json.dumps(
            {
                "Version": "2012-10-17",
                "Statement": {
                    "Effect": "Allow",
                    "Principal": {"AWS": ACCOUNT},
                    "Action": "sts:AssumeRole",
                },
            }
        ),
    )
    iam.put_role_policy(
        RoleName="runner", PolicyName="grants", PolicyDocument=document(*statements)
    )
    admin = boto3.client("s3")
    for name in ("cache", "other"):
        admin.create_bucket(Bucket=name)
    session = boto3.client("sts").assume_role(RoleArn=ROLE, RoleSessionName="job")
    keys = session["Credentials"]
    s3 = boto3.client(
        "s3",
        aws_access_key_id=keys["AccessKeyId"],
        aws_secret_access_key=keys["SecretAccessKey"],
        aws_session_token=keys["SessionToken"],
    )
    found = {}

    @set_initial_no_auth_action_count(0)
    def ask():
        for action, call in CALLS.items():
            for place in PLACES:
                try:
                    call(s3, *place)
                    found[action, place] = True
                except ClientError as error:
                    code = error.response["Error"]["Code"]
                    found[action, place] = code == "NoSuchKey"
                    assert code in ("NoSuchKey", "AccessDenied"), code

    ask()
    return found


@pytest.mark.parametrize("name", POLICIES)
def test_the_same_answers_as_moto(name, credentials):
    statements = POLICIES[name]
    accounts = AwsAccounts.from_resources(
        [*role(ROLE, *statements), *bucket("cache"), *bucket("other")]
    )
    with mock_aws():
        moto = asked_of_moto(statements)
    assert len(moto) == len(CALLS) * len(PLACES)
    for (action, (where, key)), allowed in moto.items():
        arn = f"arn:aws:s3:::{where}"
        if action != "s3:ListBucket":
            arn = f"{arn}/{key}"
        decision = accounts.decide(Request(Session(ROLE), action, arn))
        assert decision.allowed is allowed, (action, arn, decision.explain())
        assert decision.denied is not allowed


def test_what_moto_does_not_evaluate_is_listed():
    assert any("condition" in line for line in NOT_CROSS_CHECKED)
    assert any("boundar" in line for line in NOT_CROSS_CHECKED)
