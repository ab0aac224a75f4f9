"""VPC endpoints: which services are reached privately, and who gets through.

The policies let only this fleet's accounts through: credentials of another account,
smuggled into a job, are of no use there. What must stay open says why beside it.
Source: VPC user guide, "Control access to VPC endpoints using endpoint policies" and
ECR user guide, "Interface VPC endpoints", read 2026-08.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class InterfaceEndpoint:
    """A service that is reached through an interface endpoint.

    Attributes:
        service: Last part of the endpoint service's name.
        prefix: Prefix of the service's actions in policies.
        reason: Why the fleet needs it.
        perimeter: Whether a policy keeps other accounts out.
        anyone: Actions that need no credentials and stay open.
    """

    service: str
    prefix: str
    reason: str
    perimeter: bool = True
    anyone: tuple[str, ...] = ()


INTERFACE_ENDPOINTS: tuple[InterfaceEndpoint, ...] = (
    InterfaceEndpoint("ecr.api", "ecr", "nodes look images up"),
    InterfaceEndpoint("ecr.dkr", "ecr", "nodes pull images"),
    InterfaceEndpoint(
        "sts",
        "sts",
        "jobs and controllers exchange credentials",
        anyone=("sts:AssumeRoleWithWebIdentity",),
    ),
    InterfaceEndpoint("ec2", "ec2", "the autoscaler and the network plugin"),
    InterfaceEndpoint("logs", "logs", "agents ship logs"),
    InterfaceEndpoint(
        "eks-auth",
        "eks-auth",
        "Pod Identity: the agent on each node fetches credentials; only roles that "
        "the cluster knows can ask",
        perimeter=False,
    ),
    InterfaceEndpoint("eks", "eks", "deployments and nodes read the cluster"),
    InterfaceEndpoint("sqs", "sqs", "the autoscaler reads interruptions"),
    InterfaceEndpoint(
        "secretsmanager", "secretsmanager", "the GitHub App key is fetched"
    ),
    InterfaceEndpoint("kinesis-firehose", "firehose", "jobs insert telemetry"),
)
"""The services that nodes, system pods and jobs use."""

S3_WRITE = (
    "s3:AbortMultipartUpload",
    "s3:DeleteObject",
    "s3:GetObject",
    "s3:GetObjectAttributes",
    "s3:GetObjectTagging",
    "s3:GetObjectVersion",
    "s3:GetBucketLocation",
    "s3:ListBucket",
    "s3:ListBucketMultipartUploads",
    "s3:ListMultipartUploadParts",
    "s3:PutObject",
    "s3:PutObjectTagging",
)
"""What the fleet's own roles do in S3."""

S3_READ = ("s3:GetObject", "s3:GetObjectVersion", "s3:ListBucket")
"""What anyone may do in S3: image layers of ECR, Amazon Linux packages and public
data sets are in buckets of other accounts, and are read without their credentials."""


def endpoint_policy(endpoint: InterfaceEndpoint, accounts: Sequence[str]) -> str | None:
    """Return the policy of an interface endpoint; ``None`` when it has none."""
    if not endpoint.perimeter:
        return None
    statements: list[dict[str, Any]] = [
        {
            "Sid": "OwnAccounts",
            "Effect": "Allow",
            "Principal": "*",
            "Action": f"{endpoint.prefix}:*",
            "Resource": "*",
            "Condition": {"StringEquals": {"aws:PrincipalAccount": list(accounts)}},
        }
    ]
    if endpoint.anyone:
        statements.append(
            {
                "Sid": "WithoutCredentials",
                "Effect": "Allow",
                "Principal": "*",
                "Action": list(endpoint.anyone),
                "Resource": "*",
            }
        )
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


def s3_endpoint_policy(accounts: Sequence[str]) -> str:
    """Return the policy of the S3 endpoint: all may read, only we may write."""
    return json.dumps(
        {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Sid": "OwnAccounts",
                    "Effect": "Allow",
                    "Principal": "*",
                    "Action": list(S3_WRITE),
                    "Resource": "*",
                    "Condition": {
                        "StringEquals": {"aws:PrincipalAccount": list(accounts)}
                    },
                },
                {
                    "Sid": "ReadPublic",
                    "Effect": "Allow",
                    "Principal": "*",
                    "Action": list(S3_READ),
                    "Resource": "*",
                },
            ],
        }
    )
