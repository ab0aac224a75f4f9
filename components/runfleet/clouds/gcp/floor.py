"""The Google Cloud floor: how each room is made from a plan.

This is the one module that knows all seven rooms of Google Cloud at once. It hands
each what it needs from the others, so that the rooms themselves take plain inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi
import pulumi_gcp as gcp

from runfleet.clouds.gcp import addresses
from runfleet.clouds.gcp.autoscaler import Autoscaler, AutoscalerArgs
from runfleet.clouds.gcp.budget import Budget, BudgetArgs
from runfleet.clouds.gcp.cluster import Cluster, ClusterArgs
from runfleet.clouds.gcp.deploy import DeployAccount, DeployAccountArgs
from runfleet.clouds.gcp.federation import (
    FederatedIdentity,
    FederatedIdentityArgs,
    GitHubPool,
    GitHubPoolArgs,
    repository_of,
)
from runfleet.clouds.gcp.guards import guarded_by, make_guards
from runfleet.clouds.gcp.identity import RunnerIdentity, RunnerIdentityArgs
from runfleet.clouds.gcp.labels import labels
from runfleet.clouds.gcp.network import Network, NetworkArgs
from runfleet.clouds.gcp.nodes import NodePool, NodePoolArgs
from runfleet.clouds.gcp.promoter import Promoter, PromoterArgs
from runfleet.clouds.gcp.secrets_reader import SecretsReader, SecretsReaderArgs
from runfleet.clouds.gcp.stores import Stores, StoresArgs
from runfleet.clouds.protocols import (
    AppSecretSource,
    SecretsIdentity,
    StackSettings,
    StoreHandle,
)
from runfleet.placement.plan import (
    CENTRAL_STACK,
    CellPlan,
    CentralPlan,
    NodePoolPlan,
    PlannedClass,
)
from runfleet.spec.classes import RunnerClass
from runfleet.spec.github import FederatedRepository
from runfleet.spec.roles import StoreKind


class GcpFloor:
    """The rooms of Google Cloud; one object serves one stack."""

    def __init__(self) -> None:
        """Start with nothing made."""
        self._github: dict[str, GitHubPool] = {}
        self._deployed_from: FederatedRepository | None = None

    def provider(
        self,
        name: str,
        plan: CellPlan | CentralPlan,
        settings: StackSettings,
        region: str | None = None,
    ) -> pulumi.ProviderResource:
        """Make the explicit provider for the plan's project and region.

        Labels are on every resource by itself; here they are the default too, and
        Pulumi's own label is left out.

        Raises:
            InputError: The project's id, number or region is missing.
        """
        project = addresses.plan_site(plan).project
        repository = settings.values.get("deployRepository")
        if repository:
            self._deployed_from = repository_of(plan.fleet, repository)
        return gcp.Provider(
            name,
            project=project.id,
            region=region or project.region,
            impersonate_service_account=settings.deploy_role or None,
            default_labels=labels(plan.ci_labels),
            add_pulumi_attribution_label=False,
            user_project_override=True,
            billing_project=project.id,
        )

    def network(
        self, name: str, plan: CellPlan, options: pulumi.ResourceOptions
    ) -> Network:
        """Make the VPC of a cell."""
        return Network(name, NetworkArgs.from_plan(plan), options)

    def cluster(
        self,
        name: str,
        plan: CellPlan,
        network: Network,
        settings: StackSettings,
        options: pulumi.ResourceOptions,
    ) -> Cluster:
        """Make the GKE cluster of a cell and the Kubernetes provider for it."""
        args = ClusterArgs.from_plan(
            plan,
            network_id=network.network_id,
            subnet_id=network.node_subnet_ids.apply(lambda found: found[0]),
            control_subnet_id=network.control_subnet_id,
            pods_range=network.pods_range,
            services_range=network.services_range,
            after=network.ready,
            deploy_role=settings.deploy_role,
        )
        return Cluster(name, args, options)

    def autoscaler(
        self,
        name: str,
        plan: CellPlan,
        network: Network,
        cluster: Cluster,
        options: pulumi.ResourceOptions,
    ) -> Autoscaler:
        """Tell GKE's autoscaler the order of the node pools."""
        del network
        args = AutoscalerArgs.from_plan(plan, cluster.kubernetes, cluster.ready)
        return Autoscaler(name, args, options)

    def node_pool(
        self,
        name: str,
        plan: CellPlan,
        pool: NodePoolPlan,
        network: Network,
        cluster: Cluster,
        autoscaler: Autoscaler,
        options: pulumi.ResourceOptions,
    ) -> NodePool:
        """Make the node pool of one machine shape."""
        del network
        args = NodePoolArgs.from_plan(
            plan,
            pool,
            cluster_name=cluster.cluster_name,
            machines=cluster.machines,
            after=autoscaler.ready,
        )
        return NodePool(name, args, options)

    def stores(
        self, name: str, plan: CellPlan | CentralPlan, options: pulumi.ResourceOptions
    ) -> Stores:
        """Make the stores of the plan."""
        return Stores(name, StoresArgs.from_plan(plan), options)

    def runner_identity(
        self,
        name: str,
        plan: CellPlan,
        planned: PlannedClass,
        cluster: Cluster,
        local: Mapping[StoreKind, StoreHandle],
        central: Mapping[StoreKind, StoreHandle],
        options: pulumi.ResourceOptions,
    ) -> RunnerIdentity:
        """Make the service account of a class, bound to its job pods."""
        args = RunnerIdentityArgs.from_plan(
            plan, planned, local, central, cluster.ready
        )
        return RunnerIdentity(name, args, options)

    def federated_identity(
        self,
        name: str,
        plan: CentralPlan,
        runner_class: RunnerClass,
        central: Mapping[StoreKind, StoreHandle],
        options: pulumi.ResourceOptions,
    ) -> pulumi.Output[str]:
        """Make the service account of a class that runs outside Google Cloud."""
        args = FederatedIdentityArgs.from_plan(
            plan, runner_class, self._pool(plan, options).principal, central
        )
        return FederatedIdentity(name, args, options).identity_id

    def promoter(
        self,
        name: str,
        plan: CentralPlan,
        central: Mapping[StoreKind, StoreHandle],
        options: pulumi.ResourceOptions,
    ) -> pulumi.Output[str]:
        """Make the service account that moves local results to the central stores."""
        args = PromoterArgs.from_plan(
            plan, self._pool(plan, options).principal, central
        )
        return Promoter(name, args, options).identity_id

    def budget(
        self, name: str, plan: CellPlan | CentralPlan, options: pulumi.ResourceOptions
    ) -> Budget | None:
        """Make the funder's budget, in the one stack of its project that makes it."""
        args = BudgetArgs.from_plan(plan)
        return None if args is None else Budget(name, args, options)

    def secrets_reader(
        self,
        name: str,
        plan: CellPlan,
        cluster: Cluster,
        namespace: str,
        service_account: str,
        options: pulumi.ResourceOptions,
    ) -> SecretsIdentity:
        """Make the service account of External Secrets."""
        args = SecretsReaderArgs.from_plan(
            plan, namespace, service_account, cluster.ready
        )
        reader = SecretsReader(name, args, options)
        return SecretsIdentity(reader.service_account_annotations, reader.ready)

    def account(
        self,
        name: str,
        plan: CentralPlan,
        settings: StackSettings,
        options: pulumi.ResourceOptions,
    ) -> Mapping[str, pulumi.Output[str]]:
        """Set the project's organisation policies, and make the deploy identity.

        Labels split a Google bill without further ado. The pool that tokens of
        GitHub are exchanged at is among the ids: workflows name it.
        """
        project = addresses.plan_site(plan).project
        if guarded_by(plan.fleet, project.id) == CENTRAL_STACK:
            component = pulumi.ComponentResource(
                "runfleet:gcp:Guards", f"{name}-guards", None, options
            )
            make_guards(f"{name}-guards", project, component)
        pool = self._pool(plan, options)
        found = {"workload_identity_provider": pool.provider_name}
        if self._deployed_from is not None:
            args = DeployAccountArgs.from_plan(
                plan,
                self._deployed_from,
                settings.values.get("deployEnvironment", "production"),
                pool.principal,
            )
            account = DeployAccount(f"{name}-deploy", args, options)
            found["deploy_role"] = account.identity_id
        return found

    def app_secret(self, plan: CellPlan, planned: PlannedClass) -> AppSecretSource:
        """Say in which secret of Secret Manager the App's key of a class is."""
        key = addresses.app_secret(plan.fleet, planned.runner_class.trust)
        return AppSecretSource("gcpsm", {"projectID": plan.cell.account}, key)

    def reservation_ids(self, pool: NodePoolPlan) -> Sequence[str]:
        """Return the names of the reservations of a node pool."""
        return [reservation.id for reservation in pool.reservations]

    def spot_interruption_notice(self) -> int:
        """Return the notice before a spot machine is taken back: 30 seconds.

        Source: Compute Engine documentation, "Spot VMs", preemption process.
        """
        return 30

    def _pool(self, plan: CentralPlan, options: pulumi.ResourceOptions) -> GitHubPool:
        if plan.stack not in self._github:
            more = [self._deployed_from] if self._deployed_from is not None else []
            self._github[plan.stack] = GitHubPool(
                f"{plan.stack}-github", GitHubPoolArgs.from_plan(plan, more), options
            )
        return self._github[plan.stack]
