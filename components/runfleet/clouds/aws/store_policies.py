"""The documents of stores: resource policies, key policy, service roles, lifecycles.

Pure data in, JSON out, so that tests and the access matrix can read them without
Pulumi. :mod:`runfleet.clouds.aws.stores` puts them on the things that it makes.

Identities of other accounts are let in by name: the account's root as principal, and
the exact ARNs of the roles in ``aws:PrincipalArn``, because AWS refuses a policy that
names a role which does not exist yet.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from runfleet.clouds.aws.addresses import Peer, Site
from runfleet.clouds.aws.grants import (
    ASSUME,
    BUCKET_KINDS,
    INSERT,
    LIST_BUCKET,
    PULL,
    PUSH,
    READ_OBJECTS,
    ROLE_POLICY_LIMIT,
    TRUST_POLICY_LIMIT,
    USE_KEY,
    WRITE_OBJECTS,
    Statement,
    allow,
    document,
    key_statement,
    via_s3,
)
from runfleet.clouds.aws.names import partition
from runfleet.spec.roles import StoreKind, Trust, Verb
from runfleet.spec.stores import Store

BUCKET_POLICY_LIMIT = 20_480
"""Bytes of a bucket policy (S3 user guide, "Bucket policies")."""

REPOSITORY_POLICY_LIMIT = 10_240
"""Characters of a repository policy (ECR API reference, SetRepositoryPolicy)."""

KEY_POLICY_LIMIT = 32_768
"""Bytes of a key policy (KMS quotas)."""

RELEASE_LOCK_DAYS = 365
"""Days that a release is locked when the fleet file keeps releases forever."""

SUPERSEDED_DAYS = 30
"""Days that an overwritten or deleted object can still be restored."""

UNTAGGED_DAYS = 14
"""Days that an image without a tag is kept."""

CACHED_DAYS = 30
"""Days that the pull-through cache keeps an image that it fetched."""

KEY_ADMINISTRATION = (
    "kms:CancelKeyDeletion",
    "kms:CreateAlias",
    "kms:CreateGrant",
    "kms:Decrypt",
    "kms:DeleteAlias",
    "kms:DescribeKey",
    "kms:DisableKey",
    "kms:DisableKeyRotation",
    "kms:EnableKey",
    "kms:EnableKeyRotation",
    "kms:Encrypt",
    "kms:GenerateDataKey",
    "kms:GenerateDataKeyWithoutPlaintext",
    "kms:GetKeyPolicy",
    "kms:GetKeyRotationStatus",
    "kms:ListAliases",
    "kms:ListGrants",
    "kms:ListKeyPolicies",
    "kms:ListKeyRotations",
    "kms:ListResourceTags",
    "kms:PutKeyPolicy",
    "kms:ReEncryptFrom",
    "kms:ReEncryptTo",
    "kms:RetireGrant",
    "kms:RevokeGrant",
    "kms:RotateKeyOnDemand",
    "kms:ScheduleKeyDeletion",
    "kms:TagResource",
    "kms:UntagResource",
    "kms:UpdateAlias",
    "kms:UpdateKeyDescription",
)
"""What the key's own account may let its identities do, listed one by one."""


def bucket_policy(site: Site, store: Store, peers: Sequence[Peer], key: str) -> str:
    """Return the policy of a store's bucket.

    It refuses what is not TLS 1.2, what asks for another encryption or another key,
    and, across accounts, lets in the peers that have a grant on the store.

    Args:
        site: Where the bucket is.
        store: The store.
        peers: Identities of other accounts.
        key: ARN of the key that objects are encrypted with.
    """
    arn = site.bucket_arn(store)
    everything = [arn, f"{arn}/*"]
    algorithm = "s3:x-amz-server-side-encryption"
    found: list[Statement] = [
        _deny(
            "TlsOnly",
            "s3:*",
            everything,
            {"Bool": {"aws:SecureTransport": "false"}},
        ),
        _deny(
            "Tls12",
            "s3:*",
            everything,
            {"NumericLessThan": {"s3:TlsVersion": "1.2"}},
        ),
        _deny(
            "OwnEncryptionOnly",
            "s3:PutObject",
            [f"{arn}/*"],
            {
                "StringNotEquals": {algorithm: "aws:kms"},
                "Null": {algorithm: "false"},
            },
        ),
        _deny(
            "OwnKeyOnly",
            "s3:PutObject",
            [f"{arn}/*"],
            {
                "StringNotEquals": {f"{algorithm}-aws-kms-key-id": key},
                "Null": {f"{algorithm}-aws-kms-key-id": "false"},
            },
        ),
    ]
    if store.kind in BUCKET_KINDS:
        found += _peer_objects(arn, store.kind, peers)
    return document(found, BUCKET_POLICY_LIMIT, f"bucket {site.bucket(store)}")


def repository_policy(store: Store, trust: Trust, peers: Sequence[Peer]) -> str | None:
    """Return the policy of one repository; ``None`` when no peer may use it."""
    found: list[Statement] = []
    for verb, actions in ((Verb.READ, PULL), (Verb.WRITE, PUSH)):
        allowed = [
            peer
            for peer in peers
            if granted(peer, verb, store.kind) and trust in peer.levels(verb)
        ]
        if allowed:
            found.append(
                {
                    "Sid": str(verb).title(),
                    "Effect": "Allow",
                    "Principal": {"AWS": _roots(allowed)},
                    "Action": list(actions),
                    "Condition": _only(allowed),
                }
            )
    if not found:
        return None
    return document(found, REPOSITORY_POLICY_LIMIT, f"{store.kind} {trust}")


def key_policy(site: Site, peers: Sequence[Peer]) -> str:
    """Return the policy of the stores' key.

    Its own account decides with its identities' policies; peers may use it for
    objects in the stores' buckets, through S3.
    """
    root = f"arn:{partition(site.region)}:iam::{site.account}:root"
    found: list[Statement] = [
        {
            "Sid": "OwnAccount",
            "Effect": "Allow",
            "Principal": {"AWS": root},
            "Action": list(KEY_ADMINISTRATION),
            "Resource": "*",
        }
    ]
    allowed = [p for p in peers if any(g.store in BUCKET_KINDS for g in p.grants)]
    if allowed:
        found.append(
            {
                "Sid": "OtherAccounts",
                "Effect": "Allow",
                "Principal": {"AWS": _roots(allowed)},
                "Action": list(USE_KEY),
                "Resource": "*",
                "Condition": {
                    "StringEquals": {"kms:ViaService": via_s3(site.region)},
                    **_only(allowed),
                },
            }
        )
    return document(found, KEY_POLICY_LIMIT, f"the key of {site.name}")


def peer_trust(peer: Peer) -> str:
    """Return the trust policy of the role that one class of another account assumes.

    Tags of the session come along, because those of EKS Pod Identity are transitive.
    """
    trusted = {
        "Sid": "OneClass",
        "Effect": "Allow",
        "Principal": {"AWS": _roots([peer])},
        "Action": list(ASSUME),
        "Condition": _only([peer]),
    }
    return document([trusted], TRUST_POLICY_LIMIT, peer.insert_role)


def insert_policy(site: Site, store: Store, peer: Peer) -> str:
    """Return what a class of another account may do with the streams of a store."""
    stream = site.place(store).stream
    streams = [f"{stream}-{trust}" for trust in peer.levels(Verb.INSERT)]
    made = [allow("Insert", INSERT, streams)]
    return document(made, ROLE_POLICY_LIMIT, peer.insert_role)


def service_trust(service: str, account: str) -> str:
    """Return the trust policy of a role that a service assumes for one account."""
    trusted = {
        "Sid": "Service",
        "Effect": "Allow",
        "Principal": {"Service": service},
        "Action": ["sts:AssumeRole"],
        "Condition": {"StringEquals": {"aws:SourceAccount": account}},
    }
    return document([trusted], TRUST_POLICY_LIMIT, service)


def _peer_objects(arn: str, kind: StoreKind, peers: Sequence[Peer]) -> list[Statement]:
    groups: dict[tuple[Verb, tuple[Trust, ...]], list[Peer]] = {}
    for peer in peers:
        for verb in (Verb.READ, Verb.WRITE):
            if granted(peer, verb, kind):
                groups.setdefault((verb, peer.levels(verb)), []).append(peer)
    found: list[Statement] = []
    for (verb, levels), members in groups.items():
        level = "".join(str(trust) for trust in levels).title().replace("-", "")
        actions = READ_OBJECTS if verb is Verb.READ else WRITE_OBJECTS
        parts: list[tuple[str, Sequence[str], list[str]]] = [
            (f"{verb}{level}", actions, [f"{arn}/{t}/*" for t in levels])
        ]
        if verb is Verb.READ:
            parts.append((f"list{level}", LIST_BUCKET, [arn]))
        for sid, listed, resources in parts:
            found.append(
                {
                    "Sid": sid[0].upper() + sid[1:],
                    "Effect": "Allow",
                    "Principal": {"AWS": _roots(members)},
                    "Action": list(listed),
                    "Resource": resources,
                    "Condition": _only(members),
                }
            )
    return found


def granted(peer: Peer, verb: Verb, kind: StoreKind) -> bool:
    """Say whether a peer may do a verb on a kind of store."""
    return any(g.verb is verb and g.store is kind for g in peer.grants)


def _roots(peers: Sequence[Peer]) -> list[str]:
    return sorted(
        {f"{':'.join(peer.role.split(':')[:5])}:root" for peer in peers},
    )


def _only(peers: Sequence[Peer]) -> dict[str, dict[str, list[str]]]:
    return {"ArnEquals": {"aws:PrincipalArn": sorted(peer.role for peer in peers)}}


def _deny(
    sid: str, action: str, resources: Sequence[str], condition: Mapping[str, object]
) -> Statement:
    return {
        "Sid": sid,
        "Effect": "Deny",
        "Principal": {"AWS": "*"},
        "Action": action,
        "Resource": list(resources),
        "Condition": dict(condition),
    }


def days_kept(store: Store) -> int | None:
    """Return how many days a store keeps things; ``None`` when forever."""
    return math.ceil(store.keep.seconds / 86_400) if store.keep else None


def lifecycle(store: Store) -> Mapping[str, Any]:
    """Return the lifecycle rule of a store's bucket, as the provider takes it.

    Objects go after the store's ``keep``; versions that were overwritten or deleted
    can be restored for a month. Releases are kept with all their versions, or, when
    the store has a ``keep``, as long as their lock lasts.
    """
    days = days_kept(store)
    superseded: int | None = SUPERSEDED_DAYS
    if store.kind is StoreKind.RELEASE:
        superseded = max(days, SUPERSEDED_DAYS) if days else None
    rule: dict[str, Any] = {
        "id": "keep",
        "status": "Enabled",
        "filter": {"prefix": ""},
        "abort_incomplete_multipart_upload": {"days_after_initiation": 7},
    }
    if days:
        rule["expiration"] = {"days": days}
    if superseded:
        rule["noncurrent_version_expiration"] = {"noncurrent_days": superseded}
    return rule


def lock_days(store: Store) -> int:
    """Return how many days a release is locked against deletion."""
    return days_kept(store) or RELEASE_LOCK_DAYS


def image_lifecycle(days: int | None) -> str:
    """Return the lifecycle policy of a repository.

    Args:
        days: After how many days images go; ``None`` for never. Images without a tag
            go after two weeks in any case.
    """
    rules = [_image_rule(1, "untagged", UNTAGGED_DAYS)]
    if days is not None:
        rules.append(_image_rule(2, "any", days))
    return json.dumps({"rules": rules}, separators=(",", ":"))


def _image_rule(priority: int, status: str, days: int) -> dict[str, object]:
    return {
        "rulePriority": priority,
        "description": f"{status} images go after {days} days",
        "selection": {
            "tagStatus": status,
            "countType": "sinceImagePushed",
            "countUnit": "days",
            "countNumber": days,
        },
        "action": {"type": "expire"},
    }


def cache_role_policy(arns: Sequence[str], key: str) -> str:
    """Return what ECR needs to make a repository with tags and a key.

    Amazon ECR user guide, "Creating an IAM role for repository creation templates".
    """
    create = ("ecr:CreateRepository", "ecr:ReplicateImage", "ecr:TagResource")
    keys = ("kms:CreateGrant", "kms:DescribeKey", "kms:RetireGrant")
    made = [
        allow("Repositories", create, [f"{arn}/*" for arn in arns]),
        allow("Key", keys, [key]),
    ]
    return document(made, ROLE_POLICY_LIMIT, "the image cache")


def delivery_role_policy(bucket: str, key: str) -> str:
    """Return what Firehose needs to deliver to a bucket.

    Firehose developer guide, "Grant Firehose access to an Amazon S3 destination".
    """
    made = [
        allow("Objects", ("s3:AbortMultipartUpload", "s3:PutObject"), [f"{bucket}/*"]),
        allow("Bucket", (*LIST_BUCKET, "s3:ListBucketMultipartUploads"), [bucket]),
        key_statement("Key", key, USE_KEY),
    ]
    return document(made, ROLE_POLICY_LIMIT, "telemetry delivery")
