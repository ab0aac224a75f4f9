"""Where stores and identities are, known before they exist.

Policies on both sides of an account border must name each other: a bucket names the
roles that may write to it, a role names the bucket. If each side read the other's
outputs, the stacks would wait for each other in a circle. So every name is made from
the fleet file alone, and both sides compute the same one. Pure data: no Pulumi.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from runfleet.clouds.aws import names
from runfleet.clouds.aws.grants import (
    BUCKET_KINDS,
    REPOSITORY_KINDS,
    StorePlace,
    domain,
    readable,
)
from runfleet.clouds.aws.names import partition
from runfleet.placement.plan import CENTRAL_STACK, CellPlan, CentralPlan
from runfleet.spec.cells import Cell, Provider
from runfleet.spec.classes import RunnerClass
from runfleet.spec.fleet import Fleet
from runfleet.spec.roles import Grant, Role, Scope, StoreKind, Trust, Verb
from runfleet.spec.stores import Store

UPSTREAMS: Mapping[str, str] = {
    "ecr": "public.ecr.aws",
    "k8s": "registry.k8s.io",
    "quay": "quay.io",
}
"""Registries that a pull-through cache reads without credentials, by short name.

Amazon ECR user guide, "Creating a pull through cache rule": Docker Hub and GitHub's
registry need credentials, so they are not among them.
"""

PROMOTED = (
    StoreKind.CACHE,
    StoreKind.ARTIFACTS,
    StoreKind.SHARED,
    StoreKind.REGISTRY,
)
"""What the promoter moves; releases and telemetry it does not touch."""

DEFAULT_APP_SECRET = "runfleet/github-app"
"""Secret with the key of the one App, when the fleet file names no App."""

_STREAM = replace(names.FIREHOSE, limit=names.FIREHOSE.limit - len("-untrusted-pr"))


@dataclass(frozen=True)
class Site:
    """Where the stores of one scope are.

    Attributes:
        project: The fleet's project.
        name: Name of the cell, or ``central``.
        scope: Local or central.
        account: AWS account id.
        region: AWS region.
    """

    project: str
    name: str
    scope: Scope
    account: str
    region: str

    @property
    def key_alias(self) -> str:
        """Alias of the key that encrypts the stores."""
        return names.KMS_ALIAS.encode(self.project, self.name, "stores")

    @property
    def registry(self) -> str:
        """Address of the account's image registry."""
        return f"{self.account}.dkr.ecr.{self.region}.{domain(self.region)}"

    def bucket(self, store: Store) -> str:
        """Return the name of a store's bucket, which may exist already."""
        return store.adopt or names.S3_BUCKET.encode(
            self.project, self.name, str(store.kind), self.account, self.region
        )

    def repository(self, store: Store) -> str:
        """Return what the names of a store's repositories begin with."""
        if store.adopt and store.kind is StoreKind.REGISTRY:
            return store.adopt
        return names.ECR_REPOSITORY.encode(self.project, self.name, str(store.kind))

    def stream(self, store: Store) -> str:
        """Return what the names of a store's delivery streams begin with."""
        return _STREAM.encode(self.project, self.name, str(store.kind))

    def cache_prefix(self, upstream: str) -> str:
        """Return what the repositories of one upstream's cache begin with."""
        return names.ECR_CACHE_PREFIX.encode(self.name, upstream)

    def place(self, store: Store) -> StorePlace:
        """Return where a store is; its key's ARN is not known before it exists."""
        ecr = self.arn("ecr", "repository/")
        pulled = (
            tuple(f"{ecr}{self.cache_prefix(name)}" for name in UPSTREAMS)
            if store.kind is StoreKind.REGISTRY and self.scope is Scope.LOCAL
            else ()
        )
        has_repository = store.kind in REPOSITORY_KINDS
        has_stream = store.kind is StoreKind.TELEMETRY
        return StorePlace(
            bucket=self.bucket_arn(store) if store.kind in BUCKET_KINDS else "",
            repository=f"{ecr}{self.repository(store)}" if has_repository else "",
            pull_through=pulled,
            stream=self.arn("firehose", f"deliverystream/{self.stream(store)}")
            if has_stream
            else "",
        )

    def bucket_arn(self, store: Store) -> str:
        """Return the ARN of a store's bucket."""
        return f"arn:{partition(self.region)}:s3:::{self.bucket(store)}"

    def arn(self, service: str, resource: str) -> str:
        """Return the ARN of a thing in the site's account and region."""
        where = f"{self.region}:{self.account}"
        return f"arn:{partition(self.region)}:{service}:{where}:{resource}"


@dataclass(frozen=True)
class Peer:
    """An identity of another account that stores must let in by name.

    Attributes:
        role: ARN of its role.
        grants: What it may do.
        trust: Trust level of its class; ``None`` for the promoter, which reads and
            writes at every level.
        insert_role: Name of the role that it assumes here to insert telemetry.
    """

    role: str
    grants: frozenset[Grant]
    trust: Trust | None = None
    insert_role: str = ""

    @property
    def account(self) -> str:
        """The account that its role is in."""
        return self.role.split(":")[4]

    def levels(self, verb: Verb) -> tuple[Trust, ...]:
        """Return the trust levels at which it may do a verb."""
        if self.trust is None:
            return tuple(Trust)
        return readable(self.trust) if verb is Verb.READ else (self.trust,)


def cell_site(fleet: Fleet, cell: Cell) -> Site:
    """Return where a cell's stores are."""
    return Site(fleet.project, cell.name, Scope.LOCAL, cell.account, cell.region)


def central_site(fleet: Fleet) -> Site | None:
    """Return where the central stores are; ``None`` when they are not on AWS."""
    central = fleet.central
    if central is None or central.provider is not Provider.AWS:
        return None
    return Site(
        fleet.project, CENTRAL_STACK, Scope.CENTRAL, central.account, central.region
    )


def plan_site(plan: CellPlan | CentralPlan) -> Site:
    """Return where the stores of a plan are."""
    if isinstance(plan, CellPlan):
        return cell_site(plan.fleet, plan.cell)
    return Site(
        plan.fleet.project,
        CENTRAL_STACK,
        Scope.CENTRAL,
        plan.central.account,
        plan.central.region,
    )


def job_role(cell: Cell, runner_class: RunnerClass) -> str:
    """Return the name of the role of a class's jobs in a cell."""
    return names.IAM_ROLE.encode(cell.cluster, "job", runner_class.name)


def insert_role(cell: Cell, runner_class: RunnerClass) -> str:
    """Return the name of the role that a class assumes to insert telemetry.

    It is in the account of the central stores and exists only for classes of cells
    in other accounts.
    """
    return names.IAM_ROLE.encode(cell.cluster, "telemetry", runner_class.name)


def federated_role(project: str, runner_class: RunnerClass) -> str:
    """Return the name of the role of a class that runs outside the fleet's clusters."""
    return names.IAM_ROLE.encode(project, "federated", runner_class.name)


def secrets_role(cell: Cell) -> str:
    """Return the name of the role of External Secrets in a cell."""
    return names.IAM_ROLE.encode(cell.cluster, "secrets-reader")


def app_secret(fleet: Fleet, trust: Trust) -> str:
    """Return the name of the secret with the App's key of a trust level."""
    app = fleet.github.app_for(trust)
    return app.secret if app is not None else DEFAULT_APP_SECRET


def app_secrets(fleet: Fleet) -> tuple[str, ...]:
    """Return the names of all secrets with keys of Apps, sorted.

    Those that the fleet file names, and the default one when a class needs it.
    """
    known = {app.secret for app in fleet.github.apps.values()}
    used = {app_secret(fleet, c.trust) for c in fleet.runner_classes.values()}
    return tuple(sorted(known | used))


def promoter_role(project: str) -> str:
    """Return the name of the promoter's role."""
    return names.IAM_ROLE.encode(project, CENTRAL_STACK, "promoter")


def boundary_policy(*parts: str) -> str:
    """Return the name of a permissions boundary."""
    return names.IAM_POLICY.encode(*parts, "boundary")


def job_boundaries(fleet: Fleet, account: str) -> list[str]:
    """Return the ARNs of every boundary that the stacks of an account make.

    Those of jobs, of the promoter, and of External Secrets.

    Args:
        fleet: The fleet.
        account: The account.
    """
    found: list[tuple[str, str]] = []
    central = central_site(fleet)
    if central is not None and central.account == account:
        for kind in ("federated", "promoter"):
            found.append((central.region, boundary_policy(fleet.project, kind)))
    for cell in fleet.cells.values():
        if cell.provider is Provider.AWS and cell.account == account:
            for kind in ("job", "secrets"):
                found.append((cell.region, boundary_policy(cell.cluster, kind)))
    return [
        f"arn:{partition(region)}:iam::{account}:policy/{name}"
        for region, name in found
    ]


def role_arn(account: str, region: str, name: str) -> str:
    """Return the ARN of a role."""
    return f"arn:{partition(region)}:iam::{account}:role/{name}"


def effective(
    grants: Iterable[Grant], fleet: Fleet, *, local: bool = True
) -> frozenset[Grant]:
    """Return the grants on stores that the fleet has on AWS.

    Args:
        grants: The grants of a class.
        fleet: The fleet.
        local: Whether the class has local stores; outside the fleet's cells it has
            none.
    """
    reachable = {Scope.LOCAL} if central_site(fleet) is None else set(Scope)
    known = {
        (store.kind, scope) for scope in reachable for store in fleet.stores_in(scope)
    }
    return frozenset(
        grant
        for grant in grants
        if (grant.store, grant.scope) in known
        and (local or grant.scope is Scope.CENTRAL)
    )


def peers(plan: CellPlan | CentralPlan) -> tuple[Peer, ...]:
    """Return the identities of other accounts that a plan's stores must let in.

    Within one account an identity's own policy is enough; across accounts AWS wants
    the resource's consent too (IAM user guide, "Cross-account policy evaluation").
    """
    if isinstance(plan, CellPlan):
        return _promoter_peer(plan)
    central = plan.central
    found: list[Peer] = []
    for cell in plan.fleet.cells.values():
        if cell.provider is not Provider.AWS or cell.account == central.account:
            continue
        for runner_class in plan.fleet.classes_in(cell):
            wanted = effective(runner_class.granted(), plan.fleet)
            wanted = frozenset(g for g in wanted if g.scope is Scope.CENTRAL)
            if wanted:
                role = role_arn(cell.account, cell.region, job_role(cell, runner_class))
                inserts = insert_role(cell, runner_class)
                found.append(Peer(role, wanted, runner_class.trust, inserts))
    return tuple(found)


def _promoter_peer(plan: CellPlan) -> tuple[Peer, ...]:
    central = central_site(plan.fleet)
    if central is None or central.account == plan.cell.account:
        return ()
    grants = frozenset(
        Grant(Role.RELEASER, Verb.READ, store.kind, Scope.LOCAL)
        for store in plan.stores
        if store.kind in PROMOTED
    )
    name = promoter_role(plan.fleet.project)
    return (Peer(role_arn(central.account, central.region, name), grants),)
