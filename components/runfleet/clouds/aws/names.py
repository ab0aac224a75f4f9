"""Names and ARNs of AWS objects: one name encoder per object type, injective.

Logical names in Pulumi are free, names in AWS are not: each type has a length and an
alphabet of its own, some compare without case, and S3 buckets share one namespace
with the whole world. A name is made from parts (cluster, purpose, class) so that two
different lists of parts never give one name:

* the parts are joined by the type's separator when that can be read back: no part is
  empty, none holds the separator, none starts or ends with a dash, and the whole is
  legal in lower case and short enough;
* otherwise the readable part is cut and ``-`` plus ten hexadecimal digits of the
  SHA-256 of all parts are added. A joined name that happens to end like that is
  given a digest too, so the two forms cannot meet.

Limits and alphabets are those of the service API references
(https://docs.aws.amazon.com/), pages named beside each rule, read in 2026-08.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

_DIGEST = 10
_DIGESTED = re.compile(rf"-[0-9a-f]{{{_DIGEST}}}$")


@dataclass(frozen=True)
class NameRule:
    """The names that one AWS object type accepts.

    Attributes:
        kind: What the names are of, in words.
        limit: The most characters.
        pattern: Regular expression of the names that this encoder makes; lower case
            only, because several types compare names without case.
        separator: What joins the parts.
        prefix: What every name starts with, inside the limit.
        shared_by_all: Whether the names are unique over all accounts, so that every
            name needs a digest of the account and region.
    """

    kind: str
    limit: int
    pattern: str
    separator: str = "--"
    prefix: str = ""
    shared_by_all: bool = False

    def encode(self, *parts: str) -> str:
        """Return the name for a list of parts; different lists, different names.

        Args:
            *parts: What the object is, from the general to the special, such as
                ``("lf-prod-aws-ue1", "karpenter")``. For names that all accounts
                share, the account and region must be among them.

        Raises:
            ValueError: There are no parts, or the rule's limit leaves no room.
        """
        if not parts:
            raise ValueError(f"the name of {self.kind} needs at least one part")
        joined = self.separator.join(parts)
        plain = self.prefix + joined
        if self._reads_back(parts) and self.accepts(plain):
            return plain
        digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:_DIGEST]
        room = self.limit - len(self.prefix) - len(digest) - 1
        name = f"{self.prefix}{_readable(joined, room)}-{digest}"
        if not self.accepts(name):
            raise ValueError(f"{name!r} is no name of {self.kind}: {self.pattern}")
        return name

    def globs(self, *parts: str) -> tuple[str, ...]:
        """Return patterns that match every name whose first parts are these.

        They match names of other parts too when those read alike: a name that was
        cut and given a digest does not say where its parts end.

        Args:
            *parts: The first parts; at least one more follows in the names.
        """
        joined = self.separator.join(parts)
        room = self.limit - len(self.prefix) - _DIGEST - 1
        digested = f"{self.prefix}{_readable(joined, room)}-*"
        plain = f"{self.prefix}{joined}{self.separator}*"
        if self.shared_by_all or fnmatchcase(plain, digested):
            return (digested,)
        return plain, digested

    def accepts(self, name: str) -> bool:
        """Say whether a name is one that this encoder may make for the type."""
        return len(name) <= self.limit and bool(re.fullmatch(self.pattern, name))

    def _reads_back(self, parts: tuple[str, ...]) -> bool:
        joined = self.separator.join(parts)
        return (
            not self.shared_by_all
            and not _DIGESTED.search(joined)
            and all(
                part and self.separator not in part and part.strip("-") == part
                for part in parts
            )
        )


def _readable(joined: str, room: int) -> str:
    """Return what can be read of a name that is given a digest."""
    return re.sub(r"[^a-z0-9]+", "-", joined.lower())[:room].strip("-") or "x"


_WORDS = r"[a-z0-9]+(?:[._-]+[a-z0-9]+)*"

IAM_ROLE = NameRule("an IAM role", 64, _WORDS)
"""IAM API reference, CreateRole: 64 characters of ``[\\w+=,.@-]``, without case."""

IAM_POLICY = NameRule("an IAM policy", 128, _WORDS)
"""IAM API reference, CreatePolicy: 128 characters of ``[\\w+=,.@-]``, without case."""

S3_BUCKET = NameRule(
    "an S3 bucket",
    63,
    r"(?!xn--|sthree-|amzn-s3-demo-)[a-z0-9](?:[a-z0-9-]*[a-z0-9])(?<!-s3alias)",
    shared_by_all=True,
)
"""S3 user guide, bucket naming rules: 3 to 63; without dots, which break TLS."""

_PATH = r"[a-z0-9]+(?:[._-][a-z0-9]+)*(?:/[a-z0-9]+(?:[._-][a-z0-9]+)*)*"

ECR_REPOSITORY = NameRule("an ECR repository", 256, rf"(?=..){_PATH}", separator="/")
"""ECR API reference, CreateRepository: 2 to 256, single separators only."""

ECR_CACHE_PREFIX = NameRule(
    "an ECR pull-through cache prefix", 30, rf"(?=..){_PATH}", separator="/"
)
"""ECR API reference, CreatePullThroughCacheRule: 2 to 30."""

SQS_QUEUE = NameRule("an SQS queue", 80, r"[a-z0-9_-]+")
"""SQS API reference, CreateQueue: 80 characters of letters, digits, ``-``, ``_``."""

SNS_TOPIC = NameRule("an SNS topic", 256, r"[a-z0-9_-]+")
"""SNS API reference, CreateTopic: 256 characters of letters, digits, ``-``, ``_``."""

EKS_CLUSTER = NameRule("an EKS cluster", 100, r"[a-z0-9][a-z0-9_-]*")
"""EKS API reference, CreateCluster: 100, starts with a letter or digit."""

EKS_NODE_GROUP = NameRule("an EKS node group", 63, r"[a-z0-9][a-z0-9_-]*")
"""EKS API reference, CreateNodegroup: 63, starts with a letter or digit."""

LAUNCH_TEMPLATE = NameRule("a launch template", 128, rf"(?=...){_WORDS}")
"""EC2 API reference, CreateLaunchTemplate: 3 to 128 of ``[a-zA-Z0-9().\\-/_]``."""

SECURITY_GROUP = NameRule("a security group", 255, rf"(?!sg-){_WORDS}")
"""EC2 API reference, CreateSecurityGroup: 255, must not start with ``sg-``."""

KMS_ALIAS = NameRule(
    "a KMS alias",
    256,
    r"alias/(?!aws/)[a-z0-9_-]+(?:/[a-z0-9_-]+)*",
    separator="/",
    prefix="alias/",
)
"""KMS API reference, CreateAlias: 256 with ``alias/``; ``alias/aws/`` is reserved."""

LOG_GROUP = NameRule(
    "a log group",
    512,
    rf"/(?!aws/){_WORDS}(?:/{_WORDS})*",
    separator="/",
    prefix="/",
)
"""CloudWatch Logs API reference, CreateLogGroup: 512 of ``[.\\-_/#A-Za-z0-9]``."""

EVENT_RULE = NameRule("an event rule", 64, _WORDS)
"""EventBridge API reference, PutRule: 64 of ``[.\\-_A-Za-z0-9]``."""

BUDGET = NameRule("a budget", 100, _WORDS)
"""Budgets API reference, Budget: 100, without ``:`` and ``\\``."""

FIREHOSE = NameRule("a Firehose stream", 64, _WORDS)
"""Firehose API reference, CreateDeliveryStream: 64 of ``[a-zA-Z0-9_.-]``."""

SECRET = NameRule(
    "a secret",
    512,
    rf"{_WORDS}(?:/{_WORDS})*(?<!-[a-z0-9]{{6}})",
    separator="/",
)
"""Secrets Manager API reference, CreateSecret: 512 of ``[A-Za-z0-9/_+=.@-]``.

Its guide advises against names that end in a dash and six characters, because a
secret's ARN ends so; such names get a digest.
"""

KARPENTER_NAME = NameRule("a Karpenter object", 63, r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
"""Kubernetes label values end at 63; Karpenter labels nodes with both names."""

RULES: tuple[NameRule, ...] = (
    IAM_ROLE,
    IAM_POLICY,
    S3_BUCKET,
    ECR_REPOSITORY,
    ECR_CACHE_PREFIX,
    SQS_QUEUE,
    SNS_TOPIC,
    EKS_CLUSTER,
    EKS_NODE_GROUP,
    LAUNCH_TEMPLATE,
    SECURITY_GROUP,
    KMS_ALIAS,
    LOG_GROUP,
    EVENT_RULE,
    BUDGET,
    FIREHOSE,
    SECRET,
    KARPENTER_NAME,
)
"""Every rule, for tests and the reference."""


def partition(region: str) -> str:
    """Return the AWS partition of a region, the second part of its ARNs.

    Source: AWS General Reference, "Amazon Resource Names", read 2026-08.
    """
    if region.startswith("cn-"):
        return "aws-cn"
    return "aws-us-gov" if region.startswith("us-gov-") else "aws"


@dataclass(frozen=True)
class Place:
    """A cluster in an account and region: what names and ARNs start with.

    Attributes:
        cluster: Name of the cluster.
        account: Account id.
        region: Region.
        labels: The required labels.
    """

    cluster: str
    account: str
    region: str
    labels: Mapping[str, str]

    @property
    def partition(self) -> str:
        """AWS partition of the region."""
        return partition(self.region)

    def arn(self, service: str, resource: str) -> str:
        """Return the ARN of something of a service in this account and region."""
        return f"arn:{self.partition}:{service}:{self.region}:{self.account}:{resource}"

    @property
    def cluster_arn(self) -> str:
        """ARN of the cluster."""
        return self.arn("eks", f"cluster/{self.cluster}")

    def role_arn(self, role: str) -> str:
        """Return the ARN of a role that is named by name or by ARN."""
        if role.startswith("arn:"):
            return role
        return f"arn:{self.partition}:iam::{self.account}:role/{role}"

    def managed_policy(self, policy: str) -> str:
        """Return the ARN of a policy that AWS manages."""
        return f"arn:{self.partition}:iam::aws:policy/{policy}"
