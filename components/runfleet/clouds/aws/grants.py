"""Grants as IAM statements: the one place where AWS permissions of jobs are made.

Everything here is pure data in, pure data out, so that the access matrix and the
tests can ask it without Pulumi. :func:`statements` turns grants (RFC-0049's matrix,
:mod:`runfleet.spec.roles`) and the addresses of the stores into an identity policy;
:func:`probes` says, for the same grant, where it must and where it must not work.

**What a verb means.** The actions are listed one by one, never as a pattern:

* *read* a bucket: ``s3:GetObject``, with ``s3:ListBucket`` so that a missing object
  reads as 404 and not as 403, and ``s3:GetBucketLocation``;
* *write* a bucket: ``s3:PutObject`` and the two actions of multipart uploads; no
  delete, no ACL, no version;
* *read* a registry: manifests and layers; through the pull-through cache also
  ``ecr:BatchImportUpstreamImage`` and, for the first pull of an image,
  ``ecr:CreateRepository`` and ``ecr:TagResource``, which AWS asks of whoever pulls
  (Amazon ECR user guide, "IAM permissions required to sync an upstream registry"),
  under the prefix of the cache only, where nobody can push;
* *write* a registry: the five upload actions, and ``ecr:BatchGetImage``, because a
  client asks for a manifest before it pushes one (the same guide, "IAM permissions
  for pushing an image"). Without ``ecr:GetDownloadUrlForLayer`` that reads no image;
* *insert* telemetry: ``firehose:PutRecord`` and ``PutRecordBatch``. A DynamoDB
  ``PutItem`` replaces the item of the same key, so it cannot be granted as
  insert-only; a delivery stream can only add.

**Trust.** Every store is split by the trust of the class that writes: prefixes
``untrusted-pr/``, ``trusted/`` and ``release/`` of a bucket, one repository and one
stream for each. A class writes under its own trust only and reads what classes of
the same or a higher trust wrote. So no pull request can poison a cache, an artifact
or an image that trusted or release code uses (SLSA Build L3 asks that builds cannot
influence each other, caches included).

**Keys.** ``kms:Decrypt`` and ``kms:GenerateDataKey`` are granted on the stores' own
keys and only through S3 (``kms:ViaService``). Pushing, pulling and inserting need no
key: ECR and Firehose use grants that were made when the store was created.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from runfleet.spec.roles import Grant, Scope, StoreKind, Trust, Verb

Statement = dict[str, Any]
"""One statement of an IAM policy document."""

VERSION = "2012-10-17"

ROLE_POLICY_LIMIT = 10_240
"""Characters of all inline policies of a role (IAM quotas, without white space)."""

MANAGED_POLICY_LIMIT = 6_144
"""Characters of a managed policy (IAM quotas)."""

TRUST_POLICY_LIMIT = 2_048
"""Characters of a role's trust policy (IAM quotas, default value)."""

READ_OBJECTS = ("s3:GetObject",)
LIST_BUCKET = ("s3:GetBucketLocation", "s3:ListBucket")
WRITE_OBJECTS = (
    "s3:AbortMultipartUpload",
    "s3:ListMultipartUploadParts",
    "s3:PutObject",
)
PULL = (
    "ecr:BatchCheckLayerAvailability",
    "ecr:BatchGetImage",
    "ecr:GetDownloadUrlForLayer",
)
IMPORT = (
    "ecr:BatchImportUpstreamImage",
    "ecr:CreateRepository",
    "ecr:TagResource",
)
PUSH = (
    "ecr:BatchCheckLayerAvailability",
    "ecr:BatchGetImage",
    "ecr:CompleteLayerUpload",
    "ecr:InitiateLayerUpload",
    "ecr:PutImage",
    "ecr:UploadLayerPart",
)
LOGIN = ("ecr:GetAuthorizationToken",)
INSERT = ("firehose:PutRecord", "firehose:PutRecordBatch")
ASSUME = ("sts:AssumeRole", "sts:TagSession")
USE_KEY = ("kms:Decrypt", "kms:GenerateDataKey")
"""A multipart upload reads back what it wrote, so writing needs both (S3 user guide,
"Uploading and copying objects using multipart upload")."""

USE_KEY_TO_READ = ("kms:Decrypt",)

BUCKET_KINDS = frozenset(
    {StoreKind.CACHE, StoreKind.ARTIFACTS, StoreKind.SHARED, StoreKind.RELEASE}
)
"""Kinds whose objects are in a bucket that grants name."""

REPOSITORY_KINDS = frozenset({StoreKind.REGISTRY, StoreKind.SHARED})
"""Kinds with image repositories."""


class TooLongError(ValueError):
    """A policy document is longer than AWS accepts."""


@dataclass(frozen=True)
class StorePlace:
    """Where one store is, as ARNs; empty for what it does not have.

    Attributes:
        bucket: ARN of its bucket.
        repository: ARN that the ARNs of its repositories begin with; each one adds
            ``/`` and a trust level.
        pull_through: ARNs that the repositories of its pull-through cache begin with.
        stream: ARN that the ARNs of its streams begin with; each one adds ``-`` and a
            trust level.
        key: ARN of the key that encrypts it.
        insert_role: ARN of the role to assume for inserting from another account:
            delivery streams have no resource policy.
    """

    bucket: str = ""
    repository: str = ""
    pull_through: tuple[str, ...] = ()
    stream: str = ""
    key: str = ""
    insert_role: str = ""


@dataclass(frozen=True)
class StoreArns:
    """Where the stores are that an identity may be granted access to.

    Attributes:
        local: The cell's stores by kind.
        central: The central stores by kind.
    """

    local: Mapping[StoreKind, StorePlace] = field(
        default_factory=dict[StoreKind, StorePlace]
    )
    central: Mapping[StoreKind, StorePlace] = field(
        default_factory=dict[StoreKind, StorePlace]
    )

    def place(self, kind: StoreKind, scope: Scope) -> StorePlace | None:
        """Return where a store is, or ``None`` when the fleet does not have it."""
        stores = self.local if scope is Scope.LOCAL else self.central
        return stores.get(kind)


@dataclass(frozen=True)
class Probe:
    """Where one action that a grant is about must and must not be allowed.

    Attributes:
        action: The action that decides whether the grant works.
        inside: ARN patterns that it must be allowed on; ``*`` only as the last part.
        outside: ARN patterns of the same store that it must be refused on.
    """

    action: str
    inside: tuple[str, ...]
    outside: tuple[str, ...]


def readable(trust: Trust) -> tuple[Trust, ...]:
    """Return the trust levels whose writings a class of a trust level may read."""
    levels = list(Trust)
    return tuple(levels[levels.index(trust) :])


def statements(
    grants: Iterable[Grant], trust: Trust, arns: StoreArns
) -> list[Statement]:
    """Return the statements of the identity of a class.

    A grant on a store that the fleet does not have gives no statement.

    Args:
        grants: What the class may touch.
        trust: The trust level of the class.
        arns: Where the stores are.
    """
    found: list[Statement] = []
    keys: dict[str, tuple[str, set[str]]] = {}
    login = False
    for grant in _ordered(grants):
        place = arns.place(grant.store, grant.scope)
        if place is None:
            continue
        made = _grant_statements(grant, trust, place)
        found += made
        login = login or any("ecr:" in s["Action"][0] for s in made)
        if place.key and grant.store in BUCKET_KINDS:
            _, uses = keys.setdefault(place.key, (str(grant.scope).title(), set()))
            uses |= set(USE_KEY if grant.verb is Verb.WRITE else USE_KEY_TO_READ)
    if login:
        found.append(login_statement())
    for key, (scope, uses) in keys.items():
        found.append(key_statement(f"Key{scope}", key, sorted(uses)))
    return found


def probes(grant: Grant, trust: Trust, arns: StoreArns) -> tuple[Probe, ...]:
    """Return where a grant of a class must and must not work.

    A pattern such as ``arn:aws:s3:::bucket/trusted/*`` stands for every key under the
    prefix; :func:`example` makes an ARN of it. The answer is empty when the fleet does
    not have the store.

    Args:
        grant: The grant.
        trust: The trust level of the class.
        arns: Where the stores are.
    """
    place = arns.place(grant.store, grant.scope)
    if place is None:
        return ()
    levels = readable(trust) if grant.verb is Verb.READ else (trust,)
    others = [level for level in Trust if level not in levels]
    found: list[Probe] = []
    if grant.store in BUCKET_KINDS and place.bucket:
        found.append(
            Probe(
                "s3:GetObject" if grant.verb is Verb.READ else "s3:PutObject",
                tuple(f"{place.bucket}/{level}/*" for level in levels),
                tuple(f"{place.bucket}/{level}/*" for level in [*others, "elsewhere"]),
            )
        )
    if grant.store in REPOSITORY_KINDS and place.repository:
        reads = grant.verb is Verb.READ
        found.append(
            Probe(
                "ecr:GetDownloadUrlForLayer" if reads else "ecr:PutImage",
                (
                    *(f"{place.repository}/{level}" for level in levels),
                    *(f"{pulled}/*" for pulled in place.pull_through if reads),
                ),
                (
                    *(f"{place.repository}/{o}" for o in [*others, "elsewhere"]),
                    *(f"{pulled}/*" for pulled in place.pull_through if not reads),
                ),
            )
        )
    if grant.verb is Verb.INSERT and place.insert_role:
        found.append(Probe("sts:AssumeRole", (place.insert_role,), ()))
    elif grant.verb is Verb.INSERT and place.stream:
        found.append(
            Probe(
                "firehose:PutRecord",
                (f"{place.stream}-{trust}",),
                tuple(f"{place.stream}-{level}" for level in [*others, "elsewhere"]),
            )
        )
    return tuple(found)


def example(pattern: str) -> str:
    """Return an ARN that a probe's pattern stands for."""
    return pattern.replace("*", "probe/object")


def actions_of(verb: Verb, kind: StoreKind) -> frozenset[str]:
    """Return every action that a grant of a verb on a kind of store may need."""
    found: set[str] = set()
    if kind in BUCKET_KINDS and verb is Verb.READ:
        found |= {*READ_OBJECTS, *LIST_BUCKET, *USE_KEY_TO_READ}
    if kind in BUCKET_KINDS and verb is Verb.WRITE:
        found |= {*WRITE_OBJECTS, *USE_KEY}
    if kind in REPOSITORY_KINDS and verb is Verb.READ:
        found |= {*PULL, *IMPORT, *LOGIN}
    if kind in REPOSITORY_KINDS and verb is Verb.WRITE:
        found |= {*PUSH, *LOGIN}
    if kind is StoreKind.TELEMETRY and verb is Verb.INSERT:
        found |= {*INSERT, *ASSUME}
    return frozenset(found)


def pull_through_statements(pull_through: Sequence[str]) -> list[Statement]:
    """Return what a puller needs to read images through the pull-through cache.

    Nodes need it too when their kubelet is to pull images that no one pulled before.

    Args:
        pull_through: ARNs that the repositories of the cache begin with.
    """
    cached = [f"{pulled}/*" for pulled in pull_through]
    return [allow("ReadThroughCache", sorted({*PULL, *IMPORT}), cached)]


def login_statement() -> Statement:
    """Return the login to a registry, which IAM gives no resource type."""
    return allow("RegistryLogin", LOGIN, ["*"])


def key_statement(
    sid: str,
    key: str,
    actions: Sequence[str],
    condition: Mapping[str, Any] | None = None,
) -> Statement:
    """Return the use of a key through S3 and nothing else.

    Args:
        sid: Name of the statement.
        key: ARN of the key; the region in it is that of the service.
        actions: What may be done with the key.
        condition: Further conditions.
    """
    via = {"StringEquals": {"kms:ViaService": via_s3(key.split(":")[3])}}
    return allow(sid, actions, [key], {**via, **(condition or {})})


def allow(
    sid: str,
    actions: Sequence[str],
    resources: Sequence[str],
    condition: Mapping[str, Any] | None = None,
) -> Statement:
    """Return an allowing statement; its name keeps letters and digits only."""
    made: Statement = {
        "Sid": re.sub(r"[^A-Za-z0-9]", "", sid),
        "Effect": "Allow",
        "Action": list(actions),
        "Resource": list(resources),
    }
    if condition:
        made["Condition"] = dict(condition)
    return made


def document(found: Sequence[Mapping[str, Any]], limit: int, what: str) -> str:
    """Return a policy document as compact JSON.

    Args:
        found: Its statements.
        limit: The most characters that AWS accepts.
        what: Whose document it is, for the message.

    Raises:
        TooLongError: The document is longer than the limit.
    """
    text = json.dumps(
        {"Version": VERSION, "Statement": list(found)}, separators=(",", ":")
    )
    if len(text) > limit:
        raise TooLongError(
            f"the policy of {what} has {len(text)} characters, AWS accepts {limit}"
        )
    return text


def domain(region: str) -> str:
    """Return the domain of AWS endpoints in a region."""
    return "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"


def via_s3(region: str) -> str:
    """Return the value of ``kms:ViaService`` for S3 in a region."""
    return f"s3.{region}.{domain(region)}"


def _ordered(grants: Iterable[Grant]) -> list[Grant]:
    kinds, scopes, verbs = list(StoreKind), list(Scope), list(Verb)
    return sorted(
        {grant.text: grant for grant in grants}.values(),
        key=lambda g: (
            scopes.index(g.scope),
            kinds.index(g.store),
            verbs.index(g.verb),
        ),
    )


def _grant_statements(grant: Grant, trust: Trust, place: StorePlace) -> list[Statement]:
    name = f"{grant.verb}-{grant.store}-{grant.scope}".title()
    found: list[Statement] = []
    if grant.store in BUCKET_KINDS and place.bucket:
        if grant.verb is Verb.READ:
            keys = [f"{place.bucket}/{level}/*" for level in readable(trust)]
            found.append(allow(name, READ_OBJECTS, keys))
            found.append(allow(f"{name}List", LIST_BUCKET, [place.bucket]))
        elif grant.verb is Verb.WRITE:
            keys = [f"{place.bucket}/{trust}/*"]
            found.append(allow(name, WRITE_OBJECTS, keys))
    if grant.store in REPOSITORY_KINDS and place.repository:
        if grant.verb is Verb.READ:
            images = [f"{place.repository}/{level}" for level in readable(trust)]
            found.append(allow(f"{name}Images", PULL, images))
            if place.pull_through:
                found += pull_through_statements(place.pull_through)
        elif grant.verb is Verb.WRITE:
            images = [f"{place.repository}/{trust}"]
            found.append(allow(f"{name}Images", PUSH, images))
    if grant.store is StoreKind.TELEMETRY and grant.verb is Verb.INSERT:
        if place.insert_role:
            found.append(allow(name, ASSUME, [place.insert_role]))
        elif place.stream:
            found.append(allow(name, INSERT, [f"{place.stream}-{trust}"]))
    return found
