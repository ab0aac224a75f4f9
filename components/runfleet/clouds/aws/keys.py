"""Encryption keys: one per purpose, rotated, and never lost by a ``destroy``.

Every key's policy gives the account's own IAM the last word (the first statement,
without which a key can become unmanageable) and then names who may use it. No
statement is open to everybody: AWS's sample for disks uses ``Principal: "*"`` with
conditions, here the service-linked role of Auto Scaling is named instead.

Sources, read 2026-08: KMS developer guide, "Default key policy"; CloudWatch Logs user
guide, "Encrypt log data using KMS"; EC2 Auto Scaling user guide, "Required KMS key
policy for use with encrypted volumes".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
import pulumi_aws as aws

from runfleet.clouds.aws.names import KMS_ALIAS, Place
from runfleet.clouds.aws.tags import tags

Statement = Mapping[str, Any]
"""A statement of a policy; values may be Pulumi outputs."""

_USE = (
    "kms:Decrypt",
    "kms:DescribeKey",
    "kms:Encrypt",
    "kms:GenerateDataKey",
    "kms:GenerateDataKeyWithoutPlaintext",
    "kms:ReEncryptFrom",
    "kms:ReEncryptTo",
)


def encryption_key(
    name: str,
    purpose: str,
    place: Place,
    statements: Sequence[Statement],
    parent: pulumi.Resource,
) -> aws.kms.Key:
    """Make a rotated key with an alias, protected and retained.

    Args:
        name: Name of the resource; the alias is ``<name>-alias``.
        purpose: One word for what it encrypts: last part of the alias.
        place: Where it is.
        statements: Who may use it, besides the account's IAM.
        parent: The component that it belongs to.
    """
    key = aws.kms.Key(
        name,
        description=f"{place.cluster}: encrypts {purpose}",
        enable_key_rotation=True,
        rotation_period_in_days=365,
        deletion_window_in_days=30,
        policy=policy_document([_administration(place), *statements]),
        tags=tags(place.labels, Name=name),
        opts=pulumi.ResourceOptions(parent=parent, protect=True, retain_on_delete=True),
    )
    aws.kms.Alias(
        f"{name}-alias",
        name=KMS_ALIAS.encode(place.cluster, purpose),
        target_key_id=key.key_id,
        opts=pulumi.ResourceOptions(parent=parent),
    )
    return key


def policy_document(statements: Sequence[Statement]) -> pulumi.Output[str]:
    """Return a policy document as JSON; outputs inside are waited for."""
    return pulumi.Output.json_dumps(
        {"Version": "2012-10-17", "Statement": list(statements)}
    )


def logs_may_use(place: Place, log_group: str) -> Statement:
    """Return the statement that lets CloudWatch Logs encrypt one log group."""
    arn = place.arn("logs", f"log-group:{log_group}")
    return {
        "Sid": "Logs",
        "Effect": "Allow",
        "Principal": {"Service": f"logs.{place.region}.amazonaws.com"},
        "Action": [
            "kms:Decrypt",
            "kms:DescribeKey",
            "kms:Encrypt",
            "kms:GenerateDataKey",
            "kms:ReEncryptFrom",
            "kms:ReEncryptTo",
        ],
        "Resource": "*",
        "Condition": {"ArnEquals": {"kms:EncryptionContext:aws:logs:arn": arn}},
    }


def role_may_use(sid: str, role_arn: pulumi.Input[str]) -> list[Statement]:
    """Return the statements that let a role use a key, and AWS services for it."""
    return [
        {
            "Sid": f"{sid}Use",
            "Effect": "Allow",
            "Principal": {"AWS": role_arn},
            "Action": list(_USE),
            "Resource": "*",
        },
        {
            "Sid": f"{sid}Grant",
            "Effect": "Allow",
            "Principal": {"AWS": role_arn},
            "Action": ["kms:CreateGrant"],
            "Resource": "*",
            "Condition": {"Bool": {"kms:GrantIsForAWSResource": "true"}},
        },
    ]


def auto_scaling_may_use(place: Place) -> list[Statement]:
    """Return the statements that let managed node groups start encrypted disks.

    The role exists in every account that has used Auto Scaling; in a new one it is
    made by ``aws iam create-service-linked-role --aws-service-name
    autoscaling.amazonaws.com``.
    """
    return role_may_use(
        "AutoScaling",
        place.role_arn(
            "aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling"
        ),
    )


def volumes_on(key_arn: pulumi.Input[str], region: str) -> list[Statement]:
    """Return the IAM statements of a role that starts machines with encrypted disks.

    Only through EC2, so the role cannot decrypt anything by itself.
    """
    via = {"kms:ViaService": f"ec2.{region}.amazonaws.com"}
    return [
        {
            "Sid": "EncryptVolumes",
            "Effect": "Allow",
            "Action": list(_USE),
            "Resource": [key_arn],
            "Condition": {"StringEquals": via},
        },
        {
            "Sid": "GrantVolumes",
            "Effect": "Allow",
            "Action": ["kms:CreateGrant"],
            "Resource": [key_arn],
            "Condition": {
                "StringEquals": via,
                "Bool": {"kms:GrantIsForAWSResource": "true"},
            },
        },
    ]


def _administration(place: Place) -> Statement:
    return {
        "Sid": "AccountIam",
        "Effect": "Allow",
        "Principal": {"AWS": f"arn:{place.partition}:iam::{place.account}:root"},
        "Action": "kms:*",
        "Resource": "*",
    }
