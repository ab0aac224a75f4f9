"""Where things are on Google Cloud and who identities are, known before they exist.

Names come from the fleet file alone, so that two stacks can name the same thing
without waiting for each other: a cell's stores let the promoter of stack ``central``
in by the address that the other stack gives it. Pure data: no Pulumi.

Principal identifiers are those of the IAM documentation, "Principal identifiers"
(read 2026-08): a pod's identity names the project by *number* and its workload
identity pool by project *id*.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from runfleet.clouds.gcp import names
from runfleet.clouds.gcp.grants import (
    BUCKET_KINDS,
    REPOSITORY_KINDS,
    Places,
    StorePlace,
)
from runfleet.clouds.gcp.settings import problem
from runfleet.errors import InputError, Problem
from runfleet.placement.plan import CENTRAL_STACK, CellPlan, CentralPlan
from runfleet.spec.cells import Cell, Provider
from runfleet.spec.classes import RunnerClass
from runfleet.spec.fleet import Fleet
from runfleet.spec.roles import Grant, Scope, StoreKind, Trust
from runfleet.spec.stores import Store

UPSTREAMS: Mapping[str, str] = {
    "ecr": "https://public.ecr.aws",
    "k8s": "https://registry.k8s.io",
    "quay": "https://quay.io",
}
"""Registries that remote repositories read without credentials, by short name."""

PROMOTED = (
    StoreKind.CACHE,
    StoreKind.ARTIFACTS,
    StoreKind.SHARED,
    StoreKind.REGISTRY,
)
"""What the promoter moves; releases and telemetry it does not touch."""

SERVICE_AGENTS: Mapping[str, str] = {
    "artifactregistry.googleapis.com": "gcp-sa-artifactregistry",
    "compute.googleapis.com": "compute-system",
    "container.googleapis.com": "container-engine-robot",
    "pubsub.googleapis.com": "gcp-sa-pubsub",
    "storage.googleapis.com": "gs-project-accounts",
}
"""Projects that Google keeps its service agents in, by service (IAM documentation,
"Service agents")."""


_TAIL = len("-untrusted-pr")
_IMAGES = replace(names.REPOSITORY, limit=names.REPOSITORY.limit - _TAIL)
_RECORDS = replace(names.TOPIC, limit=names.TOPIC.limit - _TAIL)


@dataclass(frozen=True)
class Project:
    """A Google Cloud project in a region.

    Attributes:
        id: Project id.
        number: Project number.
        region: Region.
    """

    id: str
    number: str
    region: str

    @property
    def workload_pool(self) -> str:
        """The workload identity pool of all its clusters."""
        return f"{self.id}.svc.id.goog"

    def pod(self, namespace: str, service_account: str) -> str:
        """Return the principal of the pods of one Kubernetes service account."""
        subject = f"ns/{namespace}/sa/{service_account}"
        return f"{self.pool_principal(self.workload_pool)}/subject/{subject}"

    def pool_principal(self, pool: str, kind: str = "principal") -> str:
        """Return what the identifiers of a workload identity pool begin with."""
        where = f"projects/{self.number}/locations/global/workloadIdentityPools"
        return f"{kind}://iam.googleapis.com/{where}/{pool}"

    def agent(self, service: str) -> str:
        """Return the member that a service of Google acts as in this project."""
        home = SERVICE_AGENTS[service]
        return f"serviceAccount:service-{self.number}@{home}.iam.gserviceaccount.com"

    def email(self, account: str) -> str:
        """Return the address of a service account of this project."""
        return f"{account}@{self.id}.iam.gserviceaccount.com"

    def cluster(self, name: str) -> str:
        """Return the resource name of a cluster."""
        return f"projects/{self.id}/locations/{self.region}/clusters/{name}"

    def issuer(self, cluster: str) -> str:
        """Return the OIDC issuer of a cluster's service account tokens."""
        return f"https://container.googleapis.com/v1/{self.cluster(cluster)}"


def cell_project(cell: Cell) -> Project:
    """Return the project of a cell.

    Raises:
        InputError: The cell lacks the project's id, number or region.
    """
    wrong = [
        problem([cell.name, field], message, repr(getattr(cell, field)))
        for field, message in (
            ("account", "a cell on Google Cloud needs the project id"),
            (
                "account_number",
                "a cell on Google Cloud needs the project number: pods' identities "
                "name the project by it (gcloud projects describe <id>)",
            ),
            ("region", "a cell on Google Cloud needs a region"),
        )
        if not getattr(cell, field)
    ]
    if wrong:
        raise InputError(wrong)
    return Project(cell.account, cell.account_number or "", cell.region)


def central_project(fleet: Fleet) -> Project | None:
    """Return the project of the central stores; ``None`` when they are elsewhere.

    Raises:
        InputError: ``central`` lacks the project number.
    """
    central = fleet.central
    if central is None or central.provider is not Provider.GCP:
        return None
    if not central.account_number:
        message = "central stores on Google Cloud need the project number"
        raise InputError([Problem("fleet file", 0, "central.account_number", message)])
    return Project(central.account, central.account_number, central.region)


@dataclass(frozen=True)
class Site:
    """Where the stores of one scope are.

    Attributes:
        fleet: The fleet's project name.
        name: Name of the cell, or ``central``.
        scope: Local or central.
        project: The Google Cloud project.
    """

    fleet: str
    name: str
    scope: Scope
    project: Project

    @property
    def registry(self) -> str:
        """Address that the repositories of the project's region are reached at."""
        return f"{self.project.region}-docker.pkg.dev/{self.project.id}"

    def bucket(self, store: Store) -> str:
        """Return the name of a store's bucket, which may exist already."""
        return store.adopt or names.BUCKET.encode(
            self.fleet, self.name, str(store.kind), self.project.id, self.project.region
        )

    def repository(self, store: Store, trust: Trust) -> str:
        """Return the id of the repository of a trust level, which may exist already."""
        if store.adopt and store.kind is StoreKind.REGISTRY:
            return f"{store.adopt}-{trust}"
        return f"{_IMAGES.encode(self.fleet, self.name, str(store.kind))}-{trust}"

    def cache(self, upstream: str) -> str:
        """Return the id of the remote repository of an upstream registry."""
        return names.REPOSITORY.encode(self.fleet, self.name, f"cache-{upstream}")

    def repository_name(self, repository: str) -> str:
        """Return the resource name of a repository."""
        where = f"projects/{self.project.id}/locations/{self.project.region}"
        return f"{where}/repositories/{repository}"

    def topic(self, store: Store, trust: Trust) -> str:
        """Return the id of the topic of a trust level."""
        return f"{_RECORDS.encode(self.fleet, self.name, str(store.kind))}-{trust}"

    def role(self, what: str) -> str:
        """Return the id of a custom role for these stores."""
        return names.CUSTOM_ROLE.encode(self.fleet, self.name, what)

    def role_name(self, what: str) -> str:
        """Return the resource name of a custom role for these stores."""
        return f"projects/{self.project.id}/roles/{self.role(what)}"


def cell_site(fleet: Fleet, cell: Cell) -> Site:
    """Return where a cell's stores are."""
    return Site(fleet.project, cell.name, Scope.LOCAL, cell_project(cell))


def central_site(fleet: Fleet) -> Site | None:
    """Return where the central stores are; ``None`` when they are elsewhere."""
    project = central_project(fleet)
    if project is None:
        return None
    return Site(fleet.project, CENTRAL_STACK, Scope.CENTRAL, project)


def plan_site(plan: CellPlan | CentralPlan) -> Site:
    """Return where the stores of a plan are.

    Raises:
        InputError: The plan is not one of Google Cloud, or lacks a number.
    """
    if isinstance(plan, CellPlan):
        return cell_site(plan.fleet, plan.cell)
    site = central_site(plan.fleet)
    if site is None:
        message = "the central stores are not on Google Cloud"
        raise InputError([Problem("fleet file", 0, "central.provider", message)])
    return site


def node_account(cell: Cell) -> str:
    """Return the id of the service account of a cell's nodes."""
    return names.SERVICE_ACCOUNT.encode("node", cell.cluster)


def job_account(cell: Cell, runner_class: RunnerClass) -> str:
    """Return the id of the service account of a class's jobs in a cell."""
    return names.SERVICE_ACCOUNT.encode("job", cell.cluster, runner_class.name)


def federated_account(project: str, runner_class: RunnerClass) -> str:
    """Return the id of the service account of a class outside the clusters."""
    return names.SERVICE_ACCOUNT.encode("fed", project, runner_class.name)


def promoter_account(project: str) -> str:
    """Return the id of the promoter's service account."""
    return names.SERVICE_ACCOUNT.encode("promoter", project)


def secrets_account(cell: Cell) -> str:
    """Return the id of the service account of External Secrets in a cell."""
    return names.SERVICE_ACCOUNT.encode("secrets", cell.cluster)


def deploy_account(project: str) -> str:
    """Return the id of the service account of deployments."""
    return names.SERVICE_ACCOUNT.encode("deploy", project)


def app_secret(fleet: Fleet, trust: Trust) -> str:
    """Return the id of the secret with the GitHub App's key of a trust level.

    Slashes of the name in the fleet file become ``--``: Secret Manager has none.
    """
    app = fleet.github.app_for(trust)
    return secret_id(app.secret if app is not None else "runfleet/github-app")


def app_secrets(fleet: Fleet) -> list[str]:
    """Return the ids of all secrets with keys of GitHub Apps, once each."""
    known = {secret_id(app.secret) for app in fleet.github.apps.values()}
    return sorted(known or {secret_id("runfleet/github-app")})


def secret_id(name: str) -> str:
    """Return the id of the secret that the fleet file names."""
    return names.SECRET.encode(*name.split("/"))


def effective(
    grants: Iterable[Grant], fleet: Fleet, *, local: bool = True
) -> frozenset[Grant]:
    """Return the grants on stores that the fleet has on Google Cloud.

    Args:
        grants: The grants of a class.
        fleet: The fleet.
        local: Whether the class has local stores; outside the fleet's cells it has
            none.
    """
    on_gcp = fleet.central is not None and fleet.central.provider is Provider.GCP
    reachable = set(Scope) if on_gcp else {Scope.LOCAL}
    known = {
        (store.kind, scope) for scope in reachable for store in fleet.stores_in(scope)
    }
    return frozenset(
        grant
        for grant in grants
        if (grant.store, grant.scope) in known
        and (local or grant.scope is Scope.CENTRAL)
    )


def promoter_email(fleet: Fleet) -> str:
    """Return the promoter's address; empty when the central stores are elsewhere."""
    project = central_project(fleet)
    return project.email(promoter_account(fleet.project)) if project else ""


def place_of(site: Site, store: Store) -> StorePlace:
    """Return where a store is."""
    images = store.kind in REPOSITORY_KINDS
    caches = store.kind is StoreKind.REGISTRY and site.scope is Scope.LOCAL
    return StorePlace(
        bucket=site.bucket(store) if store.kind in BUCKET_KINDS else "",
        repositories={t: site.repository(store, t) for t in Trust} if images else {},
        caches={name: site.cache(name) for name in UPSTREAMS} if caches else {},
        topics={t: site.topic(store, t) for t in Trust}
        if store.kind is StoreKind.TELEMETRY
        else {},
    )


def places(fleet: Fleet, cell: Cell | None) -> Places:
    """Return where the stores are that a class may have grants on.

    Args:
        fleet: The fleet.
        cell: The class's cell; ``None`` for a class outside the fleet's clusters.
    """
    found: dict[tuple[StoreKind, Scope], StorePlace] = {}
    central = central_site(fleet)
    sites = [cell_site(fleet, cell)] if cell is not None else []
    for site in [*sites, *([central] if central else [])]:
        for store in fleet.stores_in(site.scope):
            found[store.kind, site.scope] = place_of(site, store)
    return found
