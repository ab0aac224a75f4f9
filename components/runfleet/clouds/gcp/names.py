"""Names of Google Cloud objects: one encoder per object type, injective.

A name is made from parts (project, cell, purpose, class) so that two different lists
of parts never give one name of a type:

* the parts are joined when that can be read back: no part is empty, holds the
  separator, or starts or ends with a dash, and the whole is legal and short enough;
* otherwise the readable part is cut and ten hexadecimal digits of the SHA-256 of all
  parts are added; a joined name that happens to end like that gets digits too, so
  the two forms cannot meet.

Limits and alphabets are those of the REST references of each service
(https://cloud.google.com/, page named beside each rule, read 2026-08).
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass

_DIGEST = 10


@dataclass(frozen=True)
class NameRule:
    """The names that one object type accepts.

    Attributes:
        kind: What the names are of, in words.
        limit: The most characters.
        pattern: Regular expression of the names that this encoder makes.
        separator: What joins the parts.
        dash: What stands for a dash, where the type allows none.
        unique: Whether every name needs a digest: names of all projects share one
            namespace, or the alphabet has no separator.
    """

    kind: str
    limit: int
    pattern: str
    separator: str = "--"
    dash: str = "-"
    unique: bool = False

    def encode(self, *parts: str) -> str:
        """Return the name for a list of parts; different lists, different names.

        Args:
            *parts: What the object is, from the general to the special.

        Raises:
            ValueError: There are no parts, or no name can be made of them.
        """
        if not parts:
            raise ValueError(f"the name of {self.kind} needs at least one part")
        joined = self.separator.join(parts)
        plain = joined.replace("-", self.dash)
        if self._reads_back(parts) and self.accepts(plain):
            return plain
        digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:_DIGEST]
        room = self.limit - _DIGEST - 1
        readable = re.sub(r"[^a-z0-9]+", "-", joined.lower()).lstrip("-0123456789")
        readable = readable[:room].strip("-") or "x"
        name = f"{readable}-{digest}".replace("-", self.dash)
        if not self.accepts(name):
            raise ValueError(f"{name!r} is no name of {self.kind}: {self.pattern}")
        return name

    def accepts(self, name: str) -> bool:
        """Say whether a name is one that this encoder may make for the type."""
        return len(name) <= self.limit and bool(re.fullmatch(self.pattern, name))

    def _reads_back(self, parts: tuple[str, ...]) -> bool:
        joined = self.separator.join(parts)
        return (
            not self.unique
            and not re.search(rf"[-_][0-9a-f]{{{_DIGEST}}}$", joined)
            and all(
                part
                and self.separator not in part
                and part.strip("-") == part
                and (self.dash == "-" or self.dash not in part)
                for part in parts
            )
        )


_RFC_1035 = r"[a-z](?:[a-z0-9-]*[a-z0-9])?"

COMPUTE = NameRule("a Compute Engine object", 63, _RFC_1035)
"""Compute Engine REST reference: networks, subnets, routers, firewalls, routes."""

GKE_CLUSTER = NameRule("a GKE cluster", 40, _RFC_1035)
"""GKE REST reference, projects.locations.clusters: 40 characters."""

NODE_POOL = NameRule("a GKE node pool", 40, _RFC_1035)
"""GKE REST reference, projects.locations.clusters.nodePools: 40 characters."""

SERVICE_ACCOUNT = NameRule("a service account", 30, rf"(?=.{{6}}){_RFC_1035}")
"""IAM REST reference, projects.serviceAccounts.create: 6 to 30 characters."""

CUSTOM_ROLE = NameRule(
    "a custom role", 64, r"(?=...)[a-z](?:[a-z0-9_]*[a-z0-9])?", dash="_", unique=True
)
"""IAM REST reference, projects.roles.create: 3 to 64 of ``[a-zA-Z0-9_.]``."""

BUCKET = NameRule(
    "a bucket",
    63,
    r"(?!goog)(?!.*google)[a-z0-9](?:[a-z0-9-]*[a-z0-9])",
    unique=True,
)
"""Cloud Storage documentation, "Bucket naming requirements": 3 to 63, without dots."""

REPOSITORY = NameRule("a repository", 63, _RFC_1035)
"""Artifact Registry REST reference, projects.locations.repositories: 63."""

TOPIC = NameRule("a topic", 255, rf"(?!goog)(?=...){_RFC_1035}")
"""Pub/Sub REST reference, projects.topics.create: 3 to 255, not ``goog``."""

KMS = NameRule("a key or key ring", 63, _RFC_1035)
"""Cloud KMS REST reference, keyRings.create: 63 of ``[a-zA-Z0-9_-]``."""

WORKLOAD_POOL = NameRule(
    "a workload identity pool", 32, rf"(?!gcp-)(?=....){_RFC_1035}"
)
"""IAM REST reference, projects.locations.workloadIdentityPools: 4 to 32."""

SECRET = NameRule("a secret", 255, r"[A-Za-z0-9_-]+")
"""Secret Manager REST reference, projects.secrets.create: 255 of
``[a-zA-Z0-9_-]``."""

DNS_ZONE = NameRule("a managed zone", 63, _RFC_1035)
"""Cloud DNS REST reference, managedZones: 63 characters."""

RULES: tuple[NameRule, ...] = (
    COMPUTE,
    GKE_CLUSTER,
    NODE_POOL,
    SERVICE_ACCOUNT,
    CUSTOM_ROLE,
    BUCKET,
    REPOSITORY,
    TOPIC,
    KMS,
    WORKLOAD_POOL,
    SECRET,
    DNS_ZONE,
)
"""Every rule, for tests and the reference."""
