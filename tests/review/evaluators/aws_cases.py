"""Small records for the tests of the AWS evaluator."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

ACCOUNT = "111122223333"
OTHER = "444455556666"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/ci/tester"
ROOT = f"arn:aws:iam::{ACCOUNT}:root"
SESSION = f"arn:aws:sts::{ACCOUNT}:assumed-role/tester/job-1"
BUCKET = "arn:aws:s3:::cache"
KEY = f"arn:aws:kms:us-east-2:{ACCOUNT}:key/0f3a"


@dataclass(frozen=True)
class Thing:
    type: str
    name: str
    id: str = ""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    outputs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def urn(self) -> str:
        return f"urn:pulumi:aws::runfleet::{self.type}::{self.name}"


def document(*statements: Mapping[str, Any], version: str = "2012-10-17") -> str:
    return json.dumps({"Version": version, "Statement": list(statements)})


def allow(action: Any, resource: Any = "*", **more: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": action, "Resource": resource, **more}


def deny(action: Any, resource: Any = "*", **more: Any) -> dict[str, Any]:
    return {**allow(action, resource, **more), "Effect": "Deny"}


def trust(principal: Any, action: Any, **more: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Principal": principal, "Action": action, **more}


POD_TRUST = trust(
    {"Service": "pods.eks.amazonaws.com"}, ["sts:AssumeRole", "sts:TagSession"]
)


def role(
    arn: str = ROLE, *statements: Mapping[str, Any], trusts: Any = (POD_TRUST,), **more
) -> list[Thing]:
    name = arn.rpartition("/")[2]
    things = [
        Thing(
            "aws:iam/role:Role",
            name,
            name,
            {"name": name, "assumeRolePolicy": document(*trusts), **more},
            {"arn": arn, "name": name},
        )
    ]
    if statements:
        things.append(
            Thing(
                "aws:iam/rolePolicy:RolePolicy",
                f"{name}-policy",
                f"{name}:grants",
                {"name": "grants", "role": name, "policy": document(*statements)},
            )
        )
    return things


def managed(arn: str, *statements: Mapping[str, Any]) -> Thing:
    name = arn.rpartition("/")[2]
    inputs = {"name": name, "policy": document(*statements)}
    return Thing("aws:iam/policy:Policy", name, arn, inputs, {"arn": arn})


def bucket(name: str = "cache", *statements: Mapping[str, Any]) -> list[Thing]:
    things = [
        Thing(
            "aws:s3/bucket:Bucket",
            name,
            name,
            {"bucket": name},
            {"bucket": name, "arn": f"arn:aws:s3:::{name}"},
        )
    ]
    if statements:
        things.append(
            Thing(
                "aws:s3/bucketPolicy:BucketPolicy",
                f"{name}-policy",
                name,
                {"bucket": name, "policy": document(*statements)},
            )
        )
    return things


def key(arn: str = KEY, *statements: Mapping[str, Any]) -> Thing:
    inputs = {"policy": document(*statements)} if statements else {}
    ident = arn.rpartition("/")[2]
    return Thing("aws:kms/key:Key", ident, ident, inputs, {"arn": arn, "keyId": ident})


def association(
    namespace: str = "ci", account: str = "tester", arn: str = ROLE, **more: Any
) -> Thing:
    inputs = {
        "clusterName": "cell",
        "namespace": namespace,
        "serviceAccount": account,
        "roleArn": arn,
        **more,
    }
    return Thing(
        "aws:eks/podIdentityAssociation:PodIdentityAssociation",
        f"{namespace}-{account}",
        "a-1",
        inputs,
        inputs,
    )


ISSUER = "oidc.eks.us-east-2.amazonaws.com/id/ABC"
CLUSTER = Thing(
    "aws:eks/cluster:Cluster",
    "cell",
    "cell",
    {"name": "cell"},
    {
        "name": "cell",
        "arn": f"arn:aws:eks:us-east-2:{ACCOUNT}:cluster/cell",
        "identities": [{"oidcs": [{"issuer": f"https://{ISSUER}"}]}],
    },
)


def provider(url: str, *audiences: str, account: str = ACCOUNT) -> Thing:
    host = url.removeprefix("https://")
    return Thing(
        "aws:iam/openIdConnectProvider:OpenIdConnectProvider",
        host,
        host,
        {"url": url, "clientIdLists": list(audiences)},
        {"arn": f"arn:aws:iam::{account}:oidc-provider/{host}", "url": host},
    )
