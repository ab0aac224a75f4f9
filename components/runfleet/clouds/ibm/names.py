"""Names and CRNs of IBM Cloud objects: one name encoder per object type, injective.

Each type has a length and an alphabet of its own; bucket names are shared by all
accounts of the world, registry namespaces by all accounts of a region. A name is made
from parts so that two different lists of parts never give one name:

* the parts are joined by ``--`` when that can be read back: no part is empty, none
  holds the separator, none starts or ends with a dash, and the whole is legal and short
  enough;
* otherwise the readable part is cut and ``-`` plus ten hexadecimal digits of the
  SHA-256 of all parts are added. A joined name that happens to end like that gets a
  digest too, so the two forms cannot meet.

The rule of a type without dashes (a custom role) is the digest alone.

Sources: the schema of IBM-Cloud/terraform-provider-ibm 2.5.0 and the pages of
cloud.ibm.com/docs that each rule names; cloud.ibm.com/docs/account, "Cloud Resource
Names".
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass

_DIGEST = 10
_DIGESTED = re.compile(rf"-[0-9a-f]{{{_DIGEST}}}$")
_SEPARATOR = "--"


@dataclass(frozen=True)
class NameRule:
    """The names that one type of object accepts.

    Attributes:
        kind: What the names are of, in words.
        limit: The most characters.
        pattern: Regular expression of the names that this encoder makes.
        prefix: What every name starts with, inside the limit.
        shared_by_all: Whether several accounts share the names, so that every name
            needs a digest, of the account among others.
    """

    kind: str
    limit: int
    pattern: str = r"[a-z](?:[a-z0-9-]*[a-z0-9])?"
    prefix: str = ""
    shared_by_all: bool = False

    def encode(self, *parts: str) -> str:
        """Return the name for a list of parts; different lists, different names.

        Args:
            *parts: What the object is, from the general to the special. For names that
                accounts share, the account must be among them.

        Raises:
            ValueError: There are no parts, or no legal name can be made of them.
        """
        if not parts:
            raise ValueError(f"the name of {self.kind} needs at least one part")
        joined = _SEPARATOR.join(parts)
        if self._reads_back(parts) and self.accepts(self.prefix + joined):
            return self.prefix + joined
        digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:_DIGEST]
        room = self.limit - len(self.prefix) - len(digest) - 1
        readable = re.sub(r"[^a-z0-9]+", "-", joined.lower()).strip("-") or "x"
        if not self.accepts(f"{self.prefix}{readable[0]}a-{digest}"):
            # The type wants a letter first.
            readable = f"x{readable}"
        name = f"{self.prefix}{readable[: max(room, 1)].strip('-')}-{digest}"
        if not self.accepts(name):
            raise ValueError(f"{name!r} is no name of {self.kind}: {self.pattern}")
        return name

    def accepts(self, name: str) -> bool:
        """Say whether a name is one that this encoder may make for the type."""
        return len(name) <= self.limit and bool(re.fullmatch(self.pattern, name))

    def _reads_back(self, parts: tuple[str, ...]) -> bool:
        return (
            not self.shared_by_all
            and not _DIGESTED.search(_SEPARATOR.join(parts))
            and all(
                part and _SEPARATOR not in part and part.strip("-") == part
                for part in parts
            )
        )


VPC_OBJECT = NameRule("an object of a VPC", 63)
"""VPC API reference: 63 of lower-case letters, digits and dashes, a letter first."""

CLUSTER = NameRule("a cluster", 35)
"""``cluster-create-vpc-gen2.md``: a letter first, 35 at most. Never encoded: the fleet
file's name is the cluster's."""

WORKER_POOL = NameRule("a worker pool", 32)
"""Names are labels of every worker; 32 keeps the workers' own names legal."""

RESOURCE_INSTANCE = NameRule("a service instance", 180)
"""Resource Controller API reference: 180."""

BUCKET = NameRule("a bucket", 63, r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])", shared_by_all=True)
"""Cloud Object Storage, "Bucket operations": 3 to 63; without dots, which break TLS."""

REGISTRY_NAMESPACE = NameRule(
    "a registry namespace", 17, r"[a-z0-9]+[a-z0-9_-]+[a-z0-9]+", shared_by_all=True
)
"""Container Registry: 4 to 30; 13 are kept for ``-untrusted-pr``."""

KEY = NameRule("a root key", 90)
"""Key Protect API reference: 2 to 90."""

TRUSTED_PROFILE = NameRule("a trusted profile", 100)
"""IAM Identity API reference, trusted profiles; 100 is within every limit it names."""

POLICY_LINK = NameRule("a link of a trusted profile", 100)
"""IAM Identity API reference, links of trusted profiles."""

RULES: tuple[NameRule, ...] = (
    VPC_OBJECT,
    CLUSTER,
    WORKER_POOL,
    RESOURCE_INSTANCE,
    BUCKET,
    REGISTRY_NAMESPACE,
    KEY,
    TRUSTED_PROFILE,
    POLICY_LINK,
)
"""Every rule, for tests and the reference."""


def custom_role(*parts: str) -> str:
    """Return the name of a custom role: 30 letters and digits, a capital first.

    Source: cloud.ibm.com/docs/account, "Creating custom roles".
    """
    digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    return f"Runfleet{digest[:20]}"


@dataclass(frozen=True)
class Place:
    """An account and region: what CRNs are made of.

    Attributes:
        account: Account id, 32 hexadecimal digits.
        region: Region, such as us-south.
    """

    account: str
    region: str

    def crn(
        self,
        service: str,
        instance: str = "",
        resource_type: str = "",
        resource: str = "",
        location: str | None = None,
    ) -> str:
        """Return the CRN of something in the account.

        Args:
            service: Name of the service, such as ``cloud-object-storage``.
            instance: Id of the service instance.
            resource_type: Type of the thing inside the instance.
            resource: Its name.
            location: Where it is; the region by default, ``global`` for storage.
        """
        where = self.region if location is None else location
        return (
            f"crn:v1:bluemix:public:{service}:{where}:a/{self.account}:{instance}:"
            f"{resource_type}:{resource}"
        )
