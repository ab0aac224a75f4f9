"""Grants as Azure role assignments: the one place where permissions of jobs are made.

Everything here is pure data in, pure data out. :func:`assignments` turns grants
(RFC-0049's matrix, :mod:`runfleet.spec.roles`) into what is to be assigned: one of the
custom roles below, on one container or one registry, with a condition.

**What a verb means.** Azure's built-in roles are too wide: ``Storage Blob Data
Contributor`` deletes, ``AcrPush`` pulls. So there are five roles of our own, of one or
two actions each (:data:`ROLES`):

* *read* a container: ``blobs/read``, which is also listing;
* *write* a container: ``blobs/write`` and ``blobs/add/action``; no delete, no move, no
  tag, no change of the container;
* *insert*: ``blobs/add/action`` alone, which creates a blob that does not exist yet and
  can neither read nor replace one (Azure documentation, "Permissions for Blob service
  operations": Put Blob needs write, or add to create a new blob);
* *read* a registry: ``pull/read``; *write* a registry: ``push/write``.

**Trust.** Every store is split by the trust of the class that writes. In a container
the split is by prefix (``untrusted-pr/``, ``trusted/``, ``release/``), held by an ABAC
condition of version 2.0 on each assignment. A class writes under its own trust only
and reads what classes of the same or a higher trust wrote. Registries take conditions
on repositories only in a mode that this provider's API version (2023-01-01-preview)
cannot set, so there is one registry for each trust level and the scope of the
assignment is the whole split.

Sources (read 2026-11): Azure documentation, "Azure permissions for Storage" and "for
Containers"; "Azure role assignment condition format and syntax"; "Example Azure role
assignment conditions for Blob Storage", which gives the form of the two conditions:
listing is asked with the request's prefix, everything else with the blob's path.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from runfleet.clouds.azure.places import REPOSITORY_KINDS
from runfleet.spec.roles import Grant, Scope, StoreKind, Trust, Verb

BLOBS = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs"
REGISTRIES = "Microsoft.ContainerRegistry/registries"

READ_OBJECTS = f"{BLOBS}/read"
WRITE_OBJECTS = f"{BLOBS}/write"
ADD_OBJECTS = f"{BLOBS}/add/action"
PULL = f"{REGISTRIES}/pull/read"
PUSH = f"{REGISTRIES}/push/write"

CONDITION_VERSION = "2.0"
"""The only version that conditions may have on new assignments."""

CONTAINER = "container"
"""Target of an assignment on a store's container."""


@dataclass(frozen=True)
class GrantRole:
    """A custom role.

    Attributes:
        actions: Control-plane actions.
        data_actions: Data-plane actions.
        description: What it is for.
    """

    actions: tuple[str, ...]
    data_actions: tuple[str, ...]
    description: str


ROLES: Mapping[str, GrantRole] = MappingProxyType(
    {
        "object-reader": GrantRole((), (READ_OBJECTS,), "Reads and lists objects"),
        "object-writer": GrantRole(
            (), (ADD_OBJECTS, WRITE_OBJECTS), "Writes objects, deletes none"
        ),
        "record-adder": GrantRole(
            (), (ADD_OBJECTS,), "Adds records that it can neither read nor change"
        ),
        "image-reader": GrantRole((PULL,), (), "Pulls images"),
        "image-writer": GrantRole((PUSH,), (), "Pushes images"),
    }
)
"""The custom roles by name."""


@dataclass(frozen=True, order=True)
class Assignment:
    """One role assignment that an identity needs.

    Attributes:
        kind: Kind of the store.
        scope: Local or central.
        target: ``container``, or ``registry/<trust>``.
        role: Name of a role of :data:`ROLES`.
        condition: ABAC condition; empty where the scope says all.
    """

    kind: StoreKind
    scope: Scope
    target: str
    role: str
    condition: str = ""

    @property
    def key(self) -> str:
        """A name that is unique among the assignments of an identity."""
        return f"{self.scope}-{self.kind}-{self.target.replace('/', '-')}-{self.role}"


def readable(trust: Trust) -> tuple[Trust, ...]:
    """Return the trust levels whose writings a class of a trust level may read."""
    levels = list(Trust)
    return tuple(levels[levels.index(trust) :])


def assignments(grants: Iterable[Grant], trust: Trust) -> list[Assignment]:
    """Return the role assignments of the identity of a class.

    Args:
        grants: What the class may touch, on stores that exist.
        trust: The trust level of the class.
    """
    found: set[Assignment] = set()
    for grant in grants:
        levels = readable(trust) if grant.verb is Verb.READ else (trust,)
        found |= set(grant_assignments(grant, levels))
    return sorted(found)


def grant_assignments(grant: Grant, levels: Sequence[Trust]) -> list[Assignment]:
    """Return the role assignments of one grant at some trust levels.

    Args:
        grant: The grant.
        levels: The trust levels whose parts it is on.
    """
    kind, scope = grant.store, grant.scope
    found: list[Assignment] = []
    if kind is not StoreKind.REGISTRY:
        prefixes = [f"{level}/" for level in levels]
        role, condition = {
            Verb.READ: ("object-reader", read_condition(prefixes)),
            Verb.WRITE: ("object-writer", write_condition(prefixes)),
            Verb.INSERT: ("record-adder", write_condition(prefixes)),
        }[grant.verb]
        found.append(Assignment(kind, scope, CONTAINER, role, condition))
    if kind in REPOSITORY_KINDS and grant.verb is not Verb.INSERT:
        role = "image-reader" if grant.verb is Verb.READ else "image-writer"
        found += [
            Assignment(kind, scope, f"registry/{level}", role) for level in levels
        ]
    return found


def read_condition(prefixes: Sequence[str]) -> str:
    """Return the condition of reading under some prefixes, and listing them."""
    path = _any(f"@Resource[{BLOBS}:path] StringStartsWith", prefixes)
    prefix = _any(f"@Request[{BLOBS}:prefix] StringStartsWith", prefixes)
    listing = "SubOperationMatches{'Blob.List'}"
    action = f"ActionMatches{{'{READ_OBJECTS}'}}"
    return (
        f"((!({action} AND !{listing})) OR ({path})) AND "
        f"((!({action} AND {listing})) OR ({prefix}))"
    )


def write_condition(prefixes: Sequence[str]) -> str:
    """Return the condition of creating and replacing objects under some prefixes."""
    path = _any(f"@Resource[{BLOBS}:path] StringStartsWith", prefixes)
    return (
        f"((!(ActionMatches{{'{WRITE_OBJECTS}'}}) AND "
        f"!(ActionMatches{{'{ADD_OBJECTS}'}})) OR ({path}))"
    )


def _any(test: str, values: Sequence[str]) -> str:
    return " OR ".join(f"{test} '{value}'" for value in values)
