"""Where stores and identities are, known before they exist.

The promoter of stack ``central`` names the buckets of cells, whose stacks read
``central`` in turn: if each side read the other's outputs, the stacks would wait for
each other in a circle. So bucket and namespace names are made from the fleet file
alone, and both sides compute the same one. Pure data: no resource.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from runfleet.clouds.ibm import names
from runfleet.errors import InputError, Problem
from runfleet.placement.plan import CENTRAL_STACK, CellPlan, CentralPlan
from runfleet.spec.cells import Cell, Provider
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

DEFAULT_APP_SECRET = "runfleet-github-app"
"""Secret with the key of the one App, when the fleet file names no App."""

REGISTRIES = {
    "au-syd": "au.icr.io",
    "br-sao": "br.icr.io",
    "ca-tor": "ca.icr.io",
    "eu-de": "de.icr.io",
    "eu-es": "es.icr.io",
    "eu-gb": "uk.icr.io",
    "jp-osa": "jp2.icr.io",
    "jp-tok": "jp.icr.io",
    "us-south": "us.icr.io",
}
"""Domain of the registry of a region (ibm-cloud-docs/Registry, "Regions")."""

GLOBAL_REGISTRY = "icr.io"
"""Registry for regions without one of their own."""


@dataclass(frozen=True)
class Site:
    """Where the stores of one scope are.

    Attributes:
        project: The fleet's project.
        name: Name of the cell, or ``central``.
        scope: Local or central.
        account: Account id.
        region: Region.
        resource_group: Id of the resource group; ``None`` for the default one.
    """

    project: str
    name: str
    scope: Scope
    account: str
    region: str
    resource_group: str | None = None

    @property
    def registry(self) -> str:
        """Address of the registry that images are pushed to, privately."""
        return f"private.{REGISTRIES.get(self.region, GLOBAL_REGISTRY)}"

    @property
    def registry_region(self) -> str:
        """Region of that registry, as policies and CRNs name it."""
        return self.region if self.region in REGISTRIES else "global"

    def bucket(self, store: Store) -> str:
        """Return the name of a store's bucket, which may exist already."""
        return store.adopt or names.BUCKET.encode(
            self.project, self.name, str(store.kind), self.account, self.region
        )

    def namespace(self, store: Store, trust: Trust) -> str:
        """Return the registry namespace of a store for a trust level."""
        base = (
            store.adopt
            if store.adopt and store.kind is StoreKind.REGISTRY
            else names.REGISTRY_NAMESPACE.encode(
                self.project, self.name, str(store.kind), self.account, self.region
            )
        )
        return f"{base}-{trust}"

    @property
    def push_role(self) -> str:
        """Display name of the role that pushes images to these stores."""
        digest = names.custom_role(self.project, self.name)[-10:]
        return f"Runfleet push {self.name} {digest}"


def cell_site(fleet: Fleet, cell: Cell, resource_group: str | None = None) -> Site:
    """Return where a cell's stores are."""
    return Site(
        fleet.project, cell.name, Scope.LOCAL, cell.account, cell.region, resource_group
    )


def central_site(fleet: Fleet) -> Site | None:
    """Return where the central stores are; ``None`` when they are not on IBM Cloud."""
    central = fleet.central
    if central is None or central.provider is not Provider.IBM:
        return None
    return Site(
        fleet.project, CENTRAL_STACK, Scope.CENTRAL, central.account, central.region
    )


def plan_site(plan: CellPlan | CentralPlan, resource_group: str | None = None) -> Site:
    """Return where the stores of a plan are."""
    if isinstance(plan, CellPlan):
        return cell_site(plan.fleet, plan.cell, resource_group)
    place = plan.central
    return Site(
        plan.fleet.project, CENTRAL_STACK, Scope.CENTRAL, place.account, place.region
    )


def app_secret(fleet: Fleet, trust: Trust) -> str:
    """Return the name of the secret with the App's key of a trust level."""
    app = fleet.github.app_for(trust)
    return app.secret if app is not None else DEFAULT_APP_SECRET


def effective(grants: Iterable[Grant], plan: CellPlan) -> frozenset[Grant]:
    """Return the grants of a class on stores that IBM Cloud has for its cell.

    Central stores on another cloud are reached through that cloud, not with this
    identity.

    Raises:
        InputError: The central stores are on IBM Cloud, in another account: a trusted
            profile's policies reach its own account only.
    """
    fleet, site = plan.fleet, central_site(plan.fleet)
    scopes = {Scope.LOCAL} if site is None else set(Scope)
    known = {
        (store.kind, scope) for scope in scopes for store in fleet.stores_in(scope)
    }
    found = frozenset(g for g in grants if (g.store, g.scope) in known)
    if (
        site is not None
        and site.account != plan.cell.account
        and any(grant.scope is Scope.CENTRAL for grant in found)
    ):
        raise InputError(
            [
                Problem(
                    "fleet file",
                    0,
                    f"cells.{plan.cell.name}.account",
                    "central stores on IBM Cloud must be in the account of the cell: a "
                    "trusted profile's policies reach its own account only",
                    found=plan.cell.account,
                    allowed=site.account,
                )
            ]
        )
    return found


def federated(grants: Iterable[Grant], plan: CellPlan) -> frozenset[Grant]:
    """Return the grants of a class on central stores of another cloud."""
    fleet = plan.fleet
    if fleet.central is None or fleet.central.provider is Provider.IBM:
        return frozenset()
    known = {store.kind for store in fleet.stores_in(Scope.CENTRAL)}
    return frozenset(g for g in grants if g.scope is Scope.CENTRAL and g.store in known)
