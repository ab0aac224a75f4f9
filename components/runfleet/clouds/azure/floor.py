"""The Azure floor: how each room is made from a plan.

This is the one module that knows all seven rooms of Azure at once. It hands each what
it needs from the others, so that the rooms themselves take plain inputs. One object
serves one stack, and remembers what rooms that do not see each other share: the
network, whose subnet holds everybody's private endpoints, and the promoter's identity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi
import pulumi_azure_native as azure
from pulumi_azure_native import managedidentity

from runfleet.clouds.azure.autoscaler import Autoscaler, AutoscalerArgs
from runfleet.clouds.azure.budget import Budget, BudgetArgs
from runfleet.clouds.azure.cluster import Cluster, ClusterArgs
from runfleet.clouds.azure.federation import FederatedIdentity, FederatedIdentityArgs
from runfleet.clouds.azure.identity import RunnerIdentity, RunnerIdentityArgs
from runfleet.clouds.azure.names import VAULT
from runfleet.clouds.azure.network import Network, NetworkArgs
from runfleet.clouds.azure.nodes import NodePool, NodePoolArgs
from runfleet.clouds.azure.places import place_of
from runfleet.clouds.azure.promoter import (
    CentralAccess,
    CentralAccessArgs,
    Promoter,
    PromoterArgs,
)
from runfleet.clouds.azure.secrets_reader import (
    SecretsReader,
    SecretsReaderArgs,
    secret_name,
)
from runfleet.clouds.azure.stores import Stores, StoresArgs
from runfleet.clouds.protocols import AppSecretSource, StackSettings, StoreHandle
from runfleet.placement.plan import CellPlan, CentralPlan, NodePoolPlan, PlannedClass
from runfleet.spec.classes import RunnerClass
from runfleet.spec.roles import StoreKind


class AzureFloor:
    """The rooms of Azure; one object serves one stack."""

    def __init__(self) -> None:
        """Start with nothing made."""
        self._networks: dict[str, Network] = {}
        self._promoters: dict[str, managedidentity.UserAssignedIdentity] = {}
        self._groups: dict[str, pulumi.Input[str]] = {}
        self._joined: set[str] = set()

    def provider(
        self,
        name: str,
        plan: CellPlan | CentralPlan,
        settings: StackSettings,
        region: str | None = None,
    ) -> pulumi.ProviderResource:
        """Make the explicit provider for the plan's subscription and region.

        With a deploy role (the client id of an identity) it signs in by OIDC.
        """
        place = place_of(plan)
        return azure.Provider(
            name,
            subscription_id=place.subscription,
            tenant_id=place.tenant,
            location=region or place.region,
            client_id=settings.deploy_role or None,
            use_oidc=True if settings.deploy_role else None,
            disable_pulumi_partner_id=True,
        )

    def network(
        self, name: str, plan: CellPlan, options: pulumi.ResourceOptions
    ) -> Network:
        """Make the virtual network of a cell, and its resource group."""
        made = Network(name, NetworkArgs.from_plan(plan), options)
        self._networks[plan.stack] = made
        self._groups[plan.stack] = made.resource_group
        return made

    def cluster(
        self,
        name: str,
        plan: CellPlan,
        network: Network,
        settings: StackSettings,
        options: pulumi.ResourceOptions,
    ) -> Cluster:
        """Make the AKS cluster of a cell and the Kubernetes provider for it."""
        args = ClusterArgs.from_plan(
            plan,
            resource_group=network.resource_group,
            node_subnet_id=_first(network.node_subnet_ids),
            api_subnet_id=network.api_subnet_id,
            endpoints=network.endpoints,
            deploy_client=settings.deploy_role,
            after=network.ready,
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
        """Say in which order pools are tried; AKS runs the rest itself."""
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
        args = NodePoolArgs.from_plan(
            plan,
            pool,
            cluster_name=cluster.cluster_name,
            cluster_group=cluster.cluster_group,
            subnet_id=_first(network.node_subnet_ids),
            kubernetes=cluster.kubernetes,
            after=autoscaler.ready,
        )
        return NodePool(name, args, options)

    def stores(
        self, name: str, plan: CellPlan | CentralPlan, options: pulumi.ResourceOptions
    ) -> Stores:
        """Make the stores of the plan, reached from the cell's network."""
        network = self._networks.get(plan.stack)
        args = StoresArgs.from_plan(
            plan,
            network.endpoints if network else None,
            network.resource_group if network else None,
        )
        made = Stores(name, args, options)
        self._groups[plan.stack] = made.group
        if made.promoter is not None:
            self._promoters[plan.stack] = made.promoter
        return made

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
        """Make the identity of a class, bound to its job pods by their tokens."""
        self._join_central(plan, local, central, options)
        args = RunnerIdentityArgs.from_plan(
            plan,
            planned,
            issuer=cluster.oidc_issuer,
            group=self._group(plan),
            local=local,
            central=central,
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
        """Make the GitHub OIDC identity of a class that runs outside Azure."""
        args = FederatedIdentityArgs.from_plan(
            plan, runner_class, self._group(plan), central
        )
        return FederatedIdentity(name, args, options).identity_id

    def promoter(
        self,
        name: str,
        plan: CentralPlan,
        central: Mapping[StoreKind, StoreHandle],
        options: pulumi.ResourceOptions,
    ) -> pulumi.Output[str]:
        """Let the promoter's identity move local results to the central stores.

        Raises:
            ValueError: The central stores were not made before.
        """
        if plan.stack not in self._promoters:
            raise ValueError("the promoter is made after the central stores")
        args = PromoterArgs.from_plan(
            plan, self._promoters[plan.stack], self._group(plan), central
        )
        return Promoter(name, args, options).identity_id

    def budget(
        self, name: str, plan: CellPlan | CentralPlan, options: pulumi.ResourceOptions
    ) -> Budget | None:
        """Make the funder's budget, in the one stack of its subscription."""
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
    ) -> Mapping[str, pulumi.Input[str]]:
        """Make the identity of External Secrets; return its account's annotations."""
        args = SecretsReaderArgs.from_plan(
            plan,
            issuer=cluster.oidc_issuer,
            group=self._group(plan),
            vault_id=cluster.vault.vault.id,
            namespace=namespace,
            service_account=service_account,
        )
        return SecretsReader(name, args, options).service_account_annotations

    def account(
        self,
        name: str,
        plan: CentralPlan,
        settings: StackSettings,
        options: pulumi.ResourceOptions,
    ) -> Mapping[str, pulumi.Output[str]]:
        """Make nothing: Azure splits bills by every tag without being asked."""
        del name, plan, settings, options
        return {}

    def app_secret(self, plan: CellPlan, planned: PlannedClass) -> AppSecretSource:
        """Say in which secret of the cell's vault the App's key of a class is."""
        app = plan.fleet.github.app_for(planned.runner_class.trust)
        key = app.secret if app is not None else "runfleet/github-app"
        place = place_of(plan)
        settings = {
            "vaultUrl": f"https://{place.global_name(VAULT, 'vault')}.vault.azure.net",
            "tenantId": place.tenant,
            "authType": "WorkloadIdentity",
        }
        return AppSecretSource("azurekv", settings, secret_name(key))

    def reservation_ids(self, pool: NodePoolPlan) -> Sequence[str]:
        """Return the ids of the capacity reservation groups of a node pool."""
        return [reservation.id for reservation in pool.reservations]

    def spot_interruption_notice(self) -> int:
        """Return the notice before a spot machine is taken back: 30 seconds.

        Source: Azure documentation, "Use Azure Spot Virtual Machines".
        """
        return 30

    def _group(self, plan: CellPlan | CentralPlan) -> pulumi.Input[str]:
        """Return the stack's resource group: as an output, where it is made here."""
        return self._groups.get(plan.stack, place_of(plan).resource_group)

    def _join_central(
        self,
        plan: CellPlan,
        local: Mapping[StoreKind, StoreHandle],
        central: Mapping[StoreKind, StoreHandle],
        options: pulumi.ResourceOptions,
    ) -> None:
        """Make, once per stack, what the cell does for what is central."""
        network = self._networks.get(plan.stack)
        if plan.stack in self._joined or network is None:
            return
        self._joined.add(plan.stack)
        args = CentralAccessArgs.from_plan(plan, network.endpoints, local, central)
        if args is not None:
            CentralAccess(f"{plan.stack}-central-access", args, options)


def _first(values: pulumi.Output[Sequence[str]]) -> pulumi.Output[str]:
    return values.apply(lambda found: found[0])
