"""Names of Azure objects: one encoder per object type, injective.

Every Azure type has a length and an alphabet of its own; storage accounts, registries
and key vaults share one namespace with the whole world. A name is made from parts
(cluster, purpose, class) so that two different lists of parts never give one name:

* the parts are joined by ``--`` (by the type's separator) when that can be read back;
* otherwise the readable part is cut and a digest of all parts is added. A joined name
  that happens to end like a digest is given a digest too, so the forms cannot meet.

Types that take no dash always have a digest: nothing could mark the end of a part.

Limits and alphabets: Azure documentation, "Naming rules and restrictions for Azure
resources" (https://learn.microsoft.com/azure/azure-resource-manager/management/
resource-name-rules), read 2026-11.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import uuid
from dataclasses import dataclass

_ROOT = uuid.UUID("1f0c1a52-3f5e-5c53-9d55-0d2b6b0f6a11")
"""Namespace of the GUIDs that are made here (version 5, RFC 9562)."""


@dataclass(frozen=True)
class NameRule:
    """The names that one Azure object type accepts.

    Attributes:
        kind: What the names are of, in words.
        limit: The most characters.
        pattern: Regular expression of the names that this encoder makes; lower case
            only, because Azure compares names without case.
        separator: What joins the parts; empty for types that take letters and
            digits only.
        digest: Characters of the digest: hexadecimal ones, or, where the type takes no
            dash, of base 32.
        shared_by_all: Whether the names are unique over all customers, so that every
            name needs a digest.
    """

    kind: str
    limit: int
    pattern: str
    separator: str = "--"
    digest: int = 10
    shared_by_all: bool = False

    def encode(self, *parts: str) -> str:
        """Return the name for a list of parts; different lists, different names.

        Args:
            *parts: What the object is, from the general to the special, such as
                ``("demo-eus", "control-plane")``. For names that all customers
                share, the subscription must be among them.

        Raises:
            ValueError: There are no parts, or the rule's limit leaves no room.
        """
        if not parts:
            raise ValueError(f"the name of {self.kind} needs at least one part")
        joined = self.separator.join(parts)
        if self._reads_back(parts) and self.accepts(joined):
            return joined
        dash = "-" if self.separator else ""
        mark = _digest(parts, self.digest, packed=not dash)
        room = self.limit - len(mark) - len(dash)
        readable = re.sub(r"[^a-z0-9]+", dash, joined.lower()).strip("-")
        readable = readable.lstrip("0123456789-")[:room].strip("-")
        name = f"{readable or 'x'}{dash}{mark}"
        if not self.accepts(name):
            raise ValueError(f"{name!r} is no name of {self.kind}: {self.pattern}")
        return name

    def accepts(self, name: str) -> bool:
        """Say whether a name is one that this encoder may make for the type."""
        return len(name) <= self.limit and bool(re.fullmatch(self.pattern, name))

    def _reads_back(self, parts: tuple[str, ...]) -> bool:
        joined = self.separator.join(parts)
        return (
            bool(self.separator)
            and not self.shared_by_all
            and not re.search(rf"-[0-9a-f]{{{self.digest}}}$", joined)
            and all(
                part and self.separator not in part and part.strip("-") == part
                for part in parts
            )
        )


_WORDS = r"[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?"
_DASHED = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"

RESOURCE_GROUP = NameRule("a resource group", 90, _WORDS)
"""1 to 90; not ending in a period."""

NETWORK = NameRule("a virtual network", 64, rf"(?=..){_WORDS}")
"""2 to 64."""

NETWORK_PART = NameRule("a part of a network", 80, _WORDS)
"""1 to 80: subnets, security groups, NAT gateways, public addresses, flow logs."""

PRIVATE_ENDPOINT = NameRule("a private endpoint", 64, rf"(?=..){_WORDS}")
"""2 to 64."""

CLUSTER = NameRule("an AKS cluster", 63, _DASHED)
"""1 to 63 letters, digits, underscores and dashes."""

AGENT_POOL = NameRule("an AKS node pool", 12, r"[a-z][a-z0-9]*", separator="", digest=9)
"""1 to 12 lower-case letters and digits, starting with a letter (Linux)."""

STORAGE_ACCOUNT = NameRule(
    "a storage account", 24, r"(?=...)[a-z0-9]+", separator="", shared_by_all=True
)
"""3 to 24 lower-case letters and digits, unique over all customers."""

REGISTRY = NameRule(
    "a container registry", 50, r"(?=.....)[a-z0-9]+", separator="", shared_by_all=True
)
"""5 to 50 letters and digits, unique over all customers."""

VAULT = NameRule(
    "a key vault",
    24,
    r"(?=...)(?!.*--)[a-z](?:[a-z0-9-]*[a-z0-9])?",
    shared_by_all=True,
)
"""3 to 24, starting with a letter, no two dashes in a row, unique over all."""

KEY = NameRule("a key", 127, _DASHED)
"""1 to 127 letters, digits and dashes."""

VAULT_SECRET = NameRule("a secret", 127, _DASHED, separator="-x-")
"""1 to 127 letters, digits and dashes; no slash, so names with one are encoded."""

DISK_ENCRYPTION_SET = NameRule("a disk encryption set", 80, _DASHED)
"""1 to 80."""

IDENTITY = NameRule("a user-assigned identity", 128, rf"(?=...){_DASHED}")
"""3 to 128, starting with a letter or digit."""

CREDENTIAL = NameRule("a federated credential", 120, rf"(?=...){_DASHED}")
"""3 to 120."""

WORKSPACE = NameRule("a log workspace", 63, rf"(?=....){_DASHED}")
"""4 to 63."""

DIAGNOSTICS = NameRule("a diagnostic setting", 260, _DASHED)
"""1 to 260."""

BUDGET = NameRule("a budget", 63, _DASHED)
"""1 to 63."""

KARPENTER_NAME = NameRule("a Karpenter object", 63, _DASHED)
"""Kubernetes label values end at 63; Karpenter labels nodes with both names."""

RULES: tuple[NameRule, ...] = (
    RESOURCE_GROUP,
    NETWORK,
    NETWORK_PART,
    PRIVATE_ENDPOINT,
    CLUSTER,
    AGENT_POOL,
    STORAGE_ACCOUNT,
    REGISTRY,
    VAULT,
    KEY,
    VAULT_SECRET,
    DISK_ENCRYPTION_SET,
    IDENTITY,
    CREDENTIAL,
    WORKSPACE,
    DIAGNOSTICS,
    BUDGET,
    KARPENTER_NAME,
)
"""Every rule, for tests and the reference."""


def guid(*parts: str) -> str:
    """Return the GUID of a role definition or assignment: the same in every run.

    Args:
        *parts: What it is, from the general to the special.
    """
    return str(uuid.uuid5(_ROOT, json.dumps(parts)))


def _digest(parts: tuple[str, ...], length: int, *, packed: bool) -> str:
    """Return hexadecimal digits of the SHA-256 of all parts, or base 32 if packed."""
    raw = hashlib.sha256(json.dumps(parts).encode()).digest()
    text = base64.b32encode(raw).decode().lower() if packed else raw.hex()
    return text[:length]
