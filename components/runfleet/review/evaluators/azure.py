"""Azure access as a whole: what identities in records may do, and who gets them.

Written from Azure's published rules (documentation read 2026-11), not from the code
that makes assignments: "Steps to determine whether a user has access to an Azure
resource", "Understand Azure role definitions", "Understand scope for Azure RBAC",
"Workload identity federation".

* An assignment gives its principal what its role holds, on its scope and everything
  below, where its condition is true. Assignments add up; nothing takes away.
* A role holds an action when one of its permission sets does: ``actions`` without
  ``notActions`` for managing, ``dataActions`` without ``notDataActions`` for content.
* A federated credential lets in tokens whose issuer, subject and audience are equal to
  its own, in every character.

A role that neither the record nor :data:`BUILT_IN` holds makes an answer unsure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol, cast

from runfleet.review.evaluators.azure_conditions import (
    VERSION,
    Condition,
    ConditionError,
    Question,
    matches,
    read_condition,
)
from runfleet.review.evaluators.decision import Truth, both, either, truth

EXCHANGE_AUDIENCE = "api://AzureADTokenExchange"
"""The audience that Entra takes tokens of other issuers for."""

NOT_CROSS_CHECKED = (
    "Azure: assignments on management groups, through groups and outside the records",
    "Azure: deny assignments, and what keeps pods from the nodes' metadata service",
)
"""What these answers take for granted."""


class Resource(Protocol):
    """A resource of a record, as far as this module reads it."""

    @property
    def urn(self) -> str:
        """Its URN."""
        ...

    @property
    def type(self) -> str:
        """Its type token."""
        ...

    @property
    def id(self) -> str:
        """Its resource id."""
        ...

    @property
    def inputs(self) -> Mapping[str, Any]:
        """Its inputs in wire names."""
        ...

    @property
    def outputs(self) -> Mapping[str, Any]:
        """Its outputs in wire names."""
        ...


@dataclass(frozen=True)
class Permissions:
    """One permission set of a role.

    Attributes:
        actions: Patterns of actions.
        not_actions: Patterns that are left out of them.
        data_actions: Patterns of data actions.
        not_data_actions: Patterns that are left out of those.
    """

    actions: tuple[str, ...] = ()
    not_actions: tuple[str, ...] = ()
    data_actions: tuple[str, ...] = ()
    not_data_actions: tuple[str, ...] = ()

    def holds(self, action: str, data: bool) -> bool:
        """Say whether it holds an action or a data action."""
        given = self.data_actions if data else self.actions
        without = self.not_data_actions if data else self.not_actions
        return any(matches(pattern, action) for pattern in given) and not any(
            matches(pattern, action) for pattern in without
        )


_BLOBS = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs"
_CONTAINERS = "Microsoft.Storage/storageAccounts/blobServices/containers"
_DELEGATION = "Microsoft.Storage/storageAccounts/blobServices/generateUserDelegationKey"
_REGISTRIES = "Microsoft.ContainerRegistry/registries"

BUILT_IN: Mapping[str, tuple[Permissions, ...]] = MappingProxyType(
    {
        # Owner
        "8e3af657-a8ff-443c-a75c-2fe8c4bcb635": (Permissions(actions=("*",)),),
        # Contributor
        "b24988ac-6180-42a0-ab88-20f7382dd24c": (
            Permissions(
                actions=("*",),
                not_actions=(
                    "Microsoft.Authorization/*/Delete",
                    "Microsoft.Authorization/*/Write",
                    "Microsoft.Authorization/elevateAccess/Action",
                    "Microsoft.Blueprint/blueprintAssignments/write",
                    "Microsoft.Blueprint/blueprintAssignments/delete",
                    "Microsoft.Compute/galleries/share/action",
                ),
            ),
        ),
        # Reader
        "acdd72a7-3385-48ef-bd42-f606fba81ae7": (Permissions(actions=("*/read",)),),
        # User Access Administrator
        "18d7d88d-d35e-4fb5-a5c3-7773c20a72d9": (
            Permissions(actions=("*/read", "Microsoft.Authorization/*")),
        ),
        # Storage Blob Data Reader
        "2a2b9908-6ea1-4ae2-8e65-a410df84e7d1": (
            Permissions(
                actions=(f"{_CONTAINERS}/read", f"{_DELEGATION}/action"),
                data_actions=(f"{_BLOBS}/read",),
            ),
        ),
        # Storage Blob Data Contributor
        "ba92f5b4-2d11-453d-a403-e96b0029c9fe": (
            Permissions(
                actions=(
                    f"{_CONTAINERS}/delete",
                    f"{_CONTAINERS}/read",
                    f"{_CONTAINERS}/write",
                    f"{_DELEGATION}/action",
                ),
                data_actions=(
                    f"{_BLOBS}/delete",
                    f"{_BLOBS}/read",
                    f"{_BLOBS}/write",
                    f"{_BLOBS}/move/action",
                    f"{_BLOBS}/add/action",
                ),
            ),
        ),
        # Storage Blob Data Owner
        "b7e6dc6d-f1e8-4753-8033-0f276bb0955b": (
            Permissions(
                actions=(f"{_CONTAINERS}/*", f"{_DELEGATION}/action"),
                data_actions=(f"{_BLOBS}/*",),
            ),
        ),
        # AcrPull
        "7f951dda-4ed3-4680-a7ca-43fe172d538d": (
            Permissions(actions=(f"{_REGISTRIES}/pull/read",)),
        ),
        # AcrPush
        "8311e382-0749-4cb8-b61a-304f252e45ec": (
            Permissions(
                actions=(f"{_REGISTRIES}/pull/read", f"{_REGISTRIES}/push/write")
            ),
        ),
    }
)
"""Built-in roles by GUID (Azure documentation, "Azure built-in roles")."""


@dataclass(frozen=True)
class RoleAssignment:
    """One role assignment.

    Attributes:
        urn: Resource that it is in the record.
        principal: Object id of who gets it.
        scope: Resource id of what it is on.
        role: GUID of the role's definition.
        condition: Its condition; ``None`` without one.
        readable: Whether the condition could be read.
    """

    urn: str
    principal: str
    scope: str
    role: str
    condition: Condition | None = None
    readable: bool = True


@dataclass(frozen=True)
class Credential:
    """One federated credential.

    Attributes:
        identity: Resource id of its identity.
        issuer: Issuer of the tokens that it takes.
        subject: Their subject; empty when an expression says it.
        audiences: Their audiences.
    """

    identity: str
    issuer: str
    subject: str
    audiences: tuple[str, ...]


@dataclass
class Inventory:
    """What records say of access.

    Attributes:
        identities: Principal of each user-assigned identity, by resource id.
        credentials: All federated credentials.
        assignments: All role assignments.
        roles: Permission sets by GUID of the definition.
        issuers: Issuer of each cluster, by its name.
        openings: Ways into a store that need no assignment.
        without_tls: Storage accounts that take requests without TLS 1.2.
        problems: Assignments that Azure would refuse.
    """

    identities: dict[str, str] = field(default_factory=dict[str, str])
    credentials: list[Credential] = field(default_factory=list[Credential])
    assignments: list[RoleAssignment] = field(default_factory=list[RoleAssignment])
    roles: dict[str, tuple[Permissions, ...]] = field(
        default_factory=lambda: dict(BUILT_IN)
    )
    issuers: dict[str, str] = field(default_factory=dict[str, str])
    openings: list[str] = field(default_factory=list[str])
    without_tls: set[str] = field(default_factory=set[str])
    problems: list[str] = field(default_factory=list[str])


@dataclass(frozen=True)
class Request:
    """One question.

    Attributes:
        principal: Object id of who asks.
        action: The action or data action.
        scope: Resource id of what it is on.
        data: Whether it is a data action.
        sub_operation: Its sub-operation.
        attributes: What is known of the request and its resource.
    """

    principal: str
    action: str
    scope: str
    data: bool = False
    sub_operation: str = ""
    attributes: Mapping[str, str | None] = field(
        default_factory=dict[str, "str | None"]
    )


class AzureAccess:
    """Everything about access that records say of one or several subscriptions."""

    def __init__(self, resources: Iterable[Resource]) -> None:
        """Read resources; those of other clouds are ignored."""
        self.inventory = read_inventory(resources)

    def decide(self, request: Request) -> Truth:
        """Say whether a request is allowed."""
        asked = Question(request.action, request.sub_operation, request.attributes)
        return either(
            self._gives(assignment, request, asked)
            for assignment in self.inventory.assignments
            if same(assignment.principal, request.principal)
        )

    def assignments_of(self, principal: str) -> list[RoleAssignment]:
        """Return the role assignments of a principal."""
        return [a for a in self.inventory.assignments if same(a.principal, principal)]

    def literals_of(self, principal: str) -> frozenset[str]:
        """Return what the conditions of a principal compare with."""
        found: set[str] = set()
        for assignment in self.assignments_of(principal):
            if assignment.condition is not None:
                found |= assignment.condition.literals()
        return frozenset(found)

    def identities_of(
        self, issuer: str, subject: str, audience: str = EXCHANGE_AUDIENCE
    ) -> dict[str, Truth]:
        """Return the identities that a token gets, and how surely, by resource id."""
        found: dict[str, Truth] = {}
        for credential in self.inventory.credentials:
            said = truth(credential.subject == subject)
            answer = both(
                [
                    truth(credential.issuer == issuer),
                    said if credential.subject else Truth.UNSURE,
                    truth(audience in credential.audiences),
                ]
            )
            if answer is not Truth.NO:
                known = found.get(credential.identity, Truth.NO)
                found[credential.identity] = either([known, answer])
        return found

    def _gives(
        self, assignment: RoleAssignment, request: Request, asked: Question
    ) -> Truth:
        sets = self.inventory.roles.get(assignment.role)
        return both(
            [
                covers(assignment.scope, request.scope),
                Truth.UNSURE
                if sets is None
                else truth(any(s.holds(request.action, request.data) for s in sets)),
                self._met(assignment, asked),
            ]
        )

    def _met(self, assignment: RoleAssignment, asked: Question) -> Truth:
        if not assignment.readable:
            return Truth.UNSURE
        if assignment.condition is None:
            return Truth.YES
        return assignment.condition.decide(asked)


def covers(scope: str, resource: str) -> Truth:
    """Say whether a scope holds a resource: it, or something above it.

    Ids compare without case; what a management group holds is not in a record.
    """
    outer, inner = scope.rstrip("/").lower(), resource.rstrip("/").lower()
    if "/managementgroups/" in outer:
        return Truth.UNSURE
    return truth(inner == outer or inner.startswith(f"{outer}/"))


def same(one: str, other: str) -> bool:
    """Say whether two ids are the same: Azure compares them without case."""
    return one.lower() == other.lower()


def read_inventory(resources: Iterable[Resource]) -> Inventory:
    """Read what resources say of access.

    Args:
        resources: Resources of one or several records.
    """
    found = Inventory()
    for resource in resources:
        package, _, kind = resource.type.partition(":")
        reader = _READERS.get(kind) if package == "azure-native" else None
        if reader is not None:
            reader(found, resource, {**resource.inputs, **resource.outputs})
    return found


def _identity(found: Inventory, resource: Resource, values: Mapping[str, Any]) -> None:
    found.identities[resource.id] = _text(values, "principalId")


def _credential(
    found: Inventory, resource: Resource, values: Mapping[str, Any]
) -> None:
    found.credentials.append(
        Credential(
            resource.id.partition("/federatedIdentityCredentials/")[0],
            _text(values, "issuer"),
            _text(values, "subject"),
            _texts(values.get("audiences")),
        )
    )


def _assignment(
    found: Inventory, resource: Resource, values: Mapping[str, Any]
) -> None:
    written = _text(values, "condition")
    version = _text(values, "conditionVersion")
    condition: Condition | None = None
    readable = True
    if written:
        try:
            condition = read_condition(written)
        except ConditionError as error:
            found.problems.append(f"{resource.urn}: {error}")
            readable = False
        if version != VERSION:
            found.problems.append(
                f"{resource.urn}: condition of version {version or 'none'}"
            )
            readable = False
    found.assignments.append(
        RoleAssignment(
            resource.urn,
            _text(values, "principalId"),
            _text(values, "scope"),
            _text(values, "roleDefinitionId").rpartition("/")[2].lower(),
            condition,
            readable,
        )
    )


def _role(found: Inventory, resource: Resource, values: Mapping[str, Any]) -> None:
    sets = cast("list[Mapping[str, Any]]", values.get("permissions") or [])
    found.roles[resource.id.rpartition("/")[2].lower()] = tuple(
        Permissions(
            _texts(each.get("actions")),
            _texts(each.get("notActions")),
            _texts(each.get("dataActions")),
            _texts(each.get("notDataActions")),
        )
        for each in sets
    )


def _cluster(found: Inventory, resource: Resource, values: Mapping[str, Any]) -> None:
    profile = cast("Mapping[str, Any]", values.get("oidcIssuerProfile") or {})
    issuer = _text(profile, "issuerURL")
    if issuer:
        found.issuers[resource.id.rpartition("/")[2]] = issuer


def _account(found: Inventory, resource: Resource, values: Mapping[str, Any]) -> None:
    name = resource.id.rpartition("/")[2]
    for key, safe, opening in (
        ("allowSharedKeyAccess", False, "takes shared keys"),
        ("allowBlobPublicAccess", False, "may have public containers"),
        ("isLocalUserEnabled", False, "has local users"),
        ("isSftpEnabled", False, "is open by SFTP"),
    ):
        default = key == "allowSharedKeyAccess"
        if values.get(key, default) is not safe:
            found.openings.append(f"storage account {name} {opening}")
    https = values.get("enableHttpsTrafficOnly", True)
    if https is not True or _text(values, "minimumTlsVersion") not in (
        "TLS1_2",
        "TLS1_3",
    ):
        found.without_tls.add(resource.id.lower())


def _container(found: Inventory, resource: Resource, values: Mapping[str, Any]) -> None:
    if _text(values, "publicAccess") not in ("", "None"):
        found.openings.append(f"container {resource.id} is public")


def _registry(found: Inventory, resource: Resource, values: Mapping[str, Any]) -> None:
    name = resource.id.rpartition("/")[2]
    for key, opening in (
        ("adminUserEnabled", "has an admin user"),
        ("anonymousPullEnabled", "is pulled by anyone"),
    ):
        if values.get(key, False) is not False:
            found.openings.append(f"registry {name} {opening}")


_READERS = {
    "authorization:RoleAssignment": _assignment,
    "authorization:RoleDefinition": _role,
    "containerregistry:Registry": _registry,
    "containerservice:ManagedCluster": _cluster,
    "managedidentity:FederatedIdentityCredential": _credential,
    "managedidentity:UserAssignedIdentity": _identity,
    "storage:BlobContainer": _container,
    "storage:StorageAccount": _account,
}


def _text(values: Mapping[str, Any], key: str) -> str:
    value = values.get(key)
    return value if isinstance(value, str) else ""


def _texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(str(each) for each in cast("Sequence[Any]", value))
    return ()
