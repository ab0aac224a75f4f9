"""Where a stack's things are on Azure, known before they exist.

Role assignments and dependencies of other stacks name things by resource id, and a
resource id is made of names only. So both sides compute the same one and no stack has
to wait for another. Pure data: no Pulumi.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from runfleet.clouds.azure import names
from runfleet.errors import InputError, Problem
from runfleet.placement.plan import CENTRAL_STACK, CellPlan, CentralPlan
from runfleet.spec.cells import Provider
from runfleet.spec.fleet import Fleet
from runfleet.spec.roles import Grant, Scope, StoreKind, Trust
from runfleet.spec.stores import Store

PROMOTED = (
    StoreKind.CACHE,
    StoreKind.ARTIFACTS,
    StoreKind.SHARED,
    StoreKind.REGISTRY,
)
"""What the promoter moves; releases and telemetry it does not touch."""

REPOSITORY_KINDS = frozenset({StoreKind.REGISTRY, StoreKind.SHARED})
"""Kinds with image registries."""


@dataclass(frozen=True)
class Place:
    """A stack in a subscription and region: what names and ids start with.

    Attributes:
        name: Name of the cluster, or ``<project>-central``.
        project: The fleet's project.
        subscription: Subscription id.
        tenant: Entra tenant id.
        region: Region.
        labels: The required labels.
    """

    name: str
    project: str
    subscription: str
    tenant: str
    region: str
    labels: Mapping[str, str]

    @property
    def resource_group(self) -> str:
        """Name of the resource group that holds the stack's things."""
        return names.RESOURCE_GROUP.encode(self.name)

    @property
    def group_id(self) -> str:
        """Resource id of that resource group."""
        return f"{self.subscription_id}/resourceGroups/{self.resource_group}"

    @property
    def subscription_id(self) -> str:
        """Resource id of the subscription."""
        return f"/subscriptions/{self.subscription}"

    def global_name(self, rule: names.NameRule, *parts: str) -> str:
        """Return a name that is unique over all customers."""
        return rule.encode(self.name, *parts, self.subscription, self.region)

    def account(self, kind: StoreKind) -> str:
        """Return the name of the storage account of a store."""
        return self.global_name(names.STORAGE_ACCOUNT, str(kind))

    def registry(self, kind: StoreKind, trust: Trust) -> str:
        """Return the name of the registry of a store and trust level."""
        return self.global_name(names.REGISTRY, str(kind), str(trust))

    def container_id(self, store: Store) -> str:
        """Return the resource id of a store's container, which may exist already."""
        account, container = adopted(store) or (self.account(store.kind), store.name)
        return (
            f"{self.group_id}/providers/Microsoft.Storage/storageAccounts/{account}"
            f"/blobServices/default/containers/{container}"
        )


def place_of(plan: CellPlan | CentralPlan) -> Place:
    """Return where the things of a plan are.

    Raises:
        InputError: The tenant is not said.
    """
    project = plan.fleet.project
    if isinstance(plan, CellPlan):
        here, name, path = plan.cell, plan.cell.cluster, f"cells.{plan.cell.name}"
    else:
        here, name, path = plan.central, f"{project}-{CENTRAL_STACK}", "central"
    if not here.account_number:
        message = "must be the id of the Entra tenant"
        raise InputError([Problem("fleet file", 0, f"{path}.account_number", message)])
    return Place(
        name, project, here.account, here.account_number, here.region, plan.ci_labels
    )


def adopted(store: Store) -> tuple[str, str] | None:
    """Return account and container of a store that exists already.

    Raises:
        InputError: It is not written as ``<account>/<container>``.
    """
    if store.adopt is None:
        return None
    account, _, container = store.adopt.partition("/")
    if not names.STORAGE_ACCOUNT.accepts(account) or not container:
        message = "must be <storage account>/<container> on Azure"
        raise InputError(
            [
                Problem(
                    "fleet file", 0, f"stores.{store.name}.adopt", message, store.adopt
                )
            ]
        )
    return account, container


def central_here(fleet: Fleet) -> bool:
    """Say whether the central stores are on Azure."""
    return fleet.central is not None and fleet.central.provider is Provider.AZURE


def effective(
    grants: frozenset[Grant], fleet: Fleet, *, local: bool = True
) -> frozenset[Grant]:
    """Return the grants on stores that the fleet has on Azure.

    Args:
        grants: The grants of a class.
        fleet: The fleet.
        local: Whether the class has local stores; outside the fleet's cells it has
            none.
    """
    scopes = {Scope.LOCAL} if local else set[Scope]()
    if central_here(fleet):
        scopes.add(Scope.CENTRAL)
    known = {
        (store.kind, scope) for scope in scopes for store in fleet.stores_in(scope)
    }
    return frozenset(grant for grant in grants if (grant.store, grant.scope) in known)


def opened_to_internet(fleet: Fleet) -> frozenset[StoreKind]:
    """Return the kinds of central stores that classes outside Azure must reach.

    Everything else has no public network address at all. These have one, and take
    Entra tokens over TLS only: donated machines have no way into a private network.
    """
    return frozenset(
        grant.store
        for runner_class in fleet.external()
        if runner_class.federation
        for grant in runner_class.granted()
        if grant.scope is Scope.CENTRAL
    )
