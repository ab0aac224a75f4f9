"""Roles, stores and grants: what a job on a runner class may touch.

The matrix is that of RFC-0049 ("multi-cloud CI", pytorch/rfcs PR #89, draft of
2026-03-09). Roles are cumulative: a builder may do all that a tester may. The
grants returned here are the only source of every identity's permissions, on
every cloud; a fleet file may narrow them and can never widen them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """What a job on a class may touch; each role includes the ones before it."""

    TESTER = "tester"
    BUILDER = "builder"
    PUBLISHER = "publisher"
    RELEASER = "releaser"

    @property
    def rank(self) -> int:
        """0 for the role with the least access, 3 for the one with the most."""
        return list(Role).index(self)


class Verb(StrEnum):
    """What an identity does with a store.

    ``insert`` adds records that the identity can neither read nor change.
    """

    READ = "read"
    WRITE = "write"
    INSERT = "insert"


class StoreKind(StrEnum):
    """The things that roles are granted on.

    ``cache`` holds compiler caches and downloads; ``artifacts`` build outputs and
    reports for other jobs; ``shared`` nightlies for end users; ``release``
    releases; ``registry`` container images; ``telemetry`` test and build results.
    """

    CACHE = "cache"
    ARTIFACTS = "artifacts"
    SHARED = "shared"
    RELEASE = "release"
    REGISTRY = "registry"
    TELEMETRY = "telemetry"


class Scope(StrEnum):
    """Where a store is: ``local`` to a cell, or ``central``, existing once."""

    LOCAL = "local"
    CENTRAL = "central"


class Trust(StrEnum):
    """What code may run on a class."""

    UNTRUSTED_PR = "untrusted-pr"
    TRUSTED = "trusted"
    RELEASE = "release"


class Trigger(StrEnum):
    """When jobs may ask for a class: RFC-0049's ladder, least frequent first."""

    ON_DEMAND = "on-demand"
    PERIODIC = "periodic"
    SOME_PRS = "some-prs"
    ALL_PRS = "all-prs"


@dataclass(frozen=True, order=True)
class Grant:
    """One permission: a role may do a verb on a store in a scope.

    Attributes:
        role: The least role that has the permission.
        verb: What may be done.
        store: On which kind of store.
        scope: In the cell's own store, or in the central one.
    """

    role: Role
    verb: Verb
    store: StoreKind
    scope: Scope

    @property
    def text(self) -> str:
        """The grant without its role, as written in a fleet file."""
        return f"{self.verb} {self.store} {self.scope}"


def _grants(role: Role, *texts: str) -> frozenset[Grant]:
    grants: set[Grant] = set()
    for text in texts:
        verb, store, scope = text.split()
        grants.add(Grant(role, Verb(verb), StoreKind(store), Scope(scope)))
    return frozenset(grants)


RFC_0049: dict[Role, frozenset[Grant]] = {
    Role.TESTER: _grants(
        Role.TESTER,
        "read cache local",
        "write cache local",
        "read artifacts local",
        "write artifacts local",
        "read registry local",
        "write registry local",
        "insert telemetry central",
    ),
    Role.BUILDER: _grants(
        Role.BUILDER,
        "write cache central",
        "write artifacts central",
        "write registry central",
    ),
    Role.PUBLISHER: _grants(
        Role.PUBLISHER, "write shared local", "write shared central"
    ),
    Role.RELEASER: _grants(Role.RELEASER, "write release central"),
}
"""What each role adds to the one before it (RFC-0049 section "roles")."""

ROLE_TRIGGERS: dict[Role, frozenset[Trigger]] = {
    Role.TESTER: frozenset(Trigger),
    Role.BUILDER: frozenset({Trigger.ON_DEMAND, Trigger.PERIODIC}),
    Role.PUBLISHER: frozenset({Trigger.ON_DEMAND, Trigger.PERIODIC}),
    Role.RELEASER: frozenset({Trigger.ON_DEMAND}),
}
"""The triggers that RFC-0049 allows for each role."""

STORE_SCOPES: dict[StoreKind, frozenset[Scope]] = {
    StoreKind.CACHE: frozenset(Scope),
    StoreKind.ARTIFACTS: frozenset(Scope),
    StoreKind.SHARED: frozenset(Scope),
    StoreKind.RELEASE: frozenset({Scope.CENTRAL}),
    StoreKind.REGISTRY: frozenset(Scope),
    StoreKind.TELEMETRY: frozenset({Scope.CENTRAL}),
}
"""In which scopes each kind of store exists."""


def matrix(role: Role) -> frozenset[Grant]:
    """Return all grants of a role, those of the roles below it included."""
    return frozenset(
        grant for lower in Role if lower.rank <= role.rank for grant in RFC_0049[lower]
    )


def parse_grant(text: str, role: Role) -> Grant | None:
    """Return the role's grant spelled ``verb store scope``, or ``None``.

    The answer is ``None`` for a text that the role's matrix does not hold, because
    a fleet file may narrow the matrix and not widen it.
    """
    wanted = " ".join(text.split())
    return next((grant for grant in matrix(role) if grant.text == wanted), None)
