"""What the fleet's verbs mean in AWS actions, and the table of all actions.

The meaning of each verb is written down here from AWS's Service Authorization
Reference and the user guides of the services, not from the code that grants. A verb
has

* *core* actions, which are the verb: with none of them the access is ``none``;
* *needed* actions, without which the core ones do not work: listing a bucket (a
  missing object reads as 403 otherwise), signing in to a registry, using a key;
* *companions*, which add nothing to what the verb already gives.

The table of every action with its access level and resource types is the data file
``aws_actions.json`` beside this module; source and date stand in it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final, cast

from runfleet.spec.roles import Verb


@dataclass(frozen=True)
class VerbActions:
    """The actions of one verb on one service."""

    core: tuple[str, ...]
    needed: tuple[str, ...] = ()
    companions: tuple[str, ...] = ()


VERB_ACTIONS: Final[Mapping[tuple[str, Verb], VerbActions]] = {
    ("s3", Verb.READ): VerbActions(
        core=("s3:GetObject",),
        needed=("s3:ListBucket", "kms:Decrypt"),
        companions=(
            "s3:GetBucketLocation",
            "s3:GetObjectAttributes",
            "s3:GetObjectTagging",
            "s3:GetObjectVersion",
            "s3:GetObjectVersionAttributes",
            "s3:GetObjectVersionTagging",
            "s3:ListBucketVersions",
            "kms:DescribeKey",
        ),
    ),
    ("s3", Verb.WRITE): VerbActions(
        core=("s3:PutObject",),
        needed=("kms:GenerateDataKey",),
        companions=(
            "s3:AbortMultipartUpload",
            "s3:GetBucketLocation",
            "s3:ListBucketMultipartUploads",
            "s3:ListMultipartUploadParts",
            # S3 decrypts its own data key to join the parts of an upload.
            "kms:Decrypt",
            "kms:DescribeKey",
        ),
    ),
    ("ecr", Verb.READ): VerbActions(
        core=("ecr:GetDownloadUrlForLayer",),
        needed=(
            "ecr:BatchGetImage",
            "ecr:GetAuthorizationToken",
            "ecr:BatchCheckLayerAvailability",
        ),
        companions=("ecr:DescribeImages", "ecr:DescribeRepositories", "ecr:ListImages"),
    ),
    ("ecr", Verb.WRITE): VerbActions(
        core=(
            "ecr:InitiateLayerUpload",
            "ecr:UploadLayerPart",
            "ecr:CompleteLayerUpload",
            "ecr:PutImage",
        ),
        needed=("ecr:GetAuthorizationToken", "ecr:BatchCheckLayerAvailability"),
        # Clients ask for a manifest before they push one (Amazon ECR User Guide,
        # "IAM permissions for pushing an image"); it is no image without layers.
        companions=("ecr:BatchGetImage",),
    ),
    ("firehose", Verb.INSERT): VerbActions(
        core=("firehose:PutRecord", "firehose:PutRecordBatch"),
        companions=("firehose:DescribeDeliveryStream",),
    ),
    ("dynamodb", Verb.INSERT): VerbActions(core=("dynamodb:PutItem",)),
    ("dynamodb", Verb.READ): VerbActions(
        core=("dynamodb:GetItem", "dynamodb:Query"),
        companions=(
            "dynamodb:BatchGetItem",
            "dynamodb:ConditionCheckItem",
            "dynamodb:DescribeTable",
            "dynamodb:Scan",
        ),
    ),
    ("secretsmanager", Verb.READ): VerbActions(
        core=("secretsmanager:GetSecretValue",),
        needed=("kms:Decrypt",),
        companions=("secretsmanager:DescribeSecret",),
    ),
}
"""What each verb means on each service.

``insert`` on DynamoDB needs a condition that forbids replacing an item, which IAM
cannot express; ``PutItem`` there is more than the verb. Firehose is the service that
really gives ``insert`` only.
"""

PULL_THROUGH_ACTIONS: Final = (
    "ecr:BatchImportUpstreamImage",
    "ecr:CreateRepository",
    "ecr:TagResource",
)
"""What AWS also asks of whoever pulls through a cache rule for the first time (Amazon
ECR User Guide, "IAM permissions required to sync an upstream registry")."""


@dataclass(frozen=True)
class ActionEntry:
    """One action of a service.

    Attributes:
        name: With its service, such as ``s3:GetObject``.
        level: ``Read``, ``Write``, ``List``, ``Tagging`` or ``Permissions
            management``.
        types: Resource types that it can be limited to; empty for none.
    """

    name: str
    level: str
    types: tuple[str, ...]


@cache
def service_actions(service: str) -> tuple[ActionEntry, ...]:
    """Return every action of a service, from the table beside this module.

    Raises:
        KeyError: The table does not hold the service.
    """
    return tuple(
        ActionEntry(f"{service}:{name}", row[0], tuple(row[1:]))
        for name, row in _table()["services"][service]["actions"].items()
    )


@cache
def arn_formats(service: str) -> dict[str, str]:
    """Return the ARN format of each resource type of a service."""
    return _table()["services"][service]["resources"]


@cache
def actions_by_name(service: str) -> dict[str, ActionEntry]:
    """Return the actions of a service by name, such as ``s3:GetObject``."""
    return {entry.name: entry for entry in service_actions(service)}


def known_services() -> frozenset[str]:
    """Return the services that the table of actions holds."""
    return frozenset(_table()["services"])


@cache
def _table() -> dict[str, Any]:
    package = files("runfleet.review.evaluators")
    text = package.joinpath("aws_actions.json").read_text("utf-8")
    return cast("dict[str, Any]", json.loads(text))
