"""The IBM Cloud floor: how each room is made from a plan.

This is the one module that knows all seven rooms of IBM Cloud at once. It hands each
what it needs from the others, so that the rooms themselves take plain inputs.

The floor has no spot capacity: it does not implement
:class:`~runfleet.clouds.protocols.WithSpot`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi

from runfleet.clouds.ibm.autoscaler import Autoscaler, AutoscalerArgs
from runfleet.clouds.ibm.budget import Budget, BudgetArgs
from runfleet.clouds.ibm.cluster import Cluster, ClusterArgs
from runfleet.clouds.ibm.federation import FederationError
from runfleet.clouds.ibm.identity import RunnerIdentity, RunnerIdentityArgs
from runfleet.clouds.ibm.network import Network, NetworkArgs
from runfleet.clouds.ibm.nodes import NodePool, NodePoolArgs
from runfleet.clouds.ibm.promoter import CLUSTER_SETTING, Promoter, PromoterArgs
from runfleet.clouds.ibm.provider import IbmProvider, ProviderArgs
from runfleet.clouds.ibm.secrets_reader import (
    SecretsReader,
    SecretsReaderArgs,
    app_secret,
)
from runfleet.clouds.ibm.settings import IbmSettings
from runfleet.clouds.ibm.stores import Stores, StoresArgs
from runfleet.clouds.protocols import (
    AppSecretSource,
    SecretsIdentity,
    StackSettings,
    StoreHandle,
)
from runfleet.placement.plan import (
    CellPlan,
    CentralPlan,
    NodePoolPlan,
    PlannedClass,
)
from runfleet.spec.classes import RunnerClass
from runfleet.spec.roles import StoreKind

API_KEY_SETTING = "ibmcloudApiKey"
"""Setting with the deployment's API key, as a secret; the environment by default."""


class IbmFloor:
    """The rooms of IBM Cloud; one object serves one stack."""

    def __init__(self) -> None:
        """Start with nothing made."""
        self._pools: dict[str, list[NodePool]] = {}
        self._promoter_cluster = ""

    def provider(
        self,
        name: str,
        plan: CellPlan | CentralPlan,
        settings: StackSettings,
        region: str | None = None,
    ) -> pulumi.ProviderResource:
        """Make the explicit provider for the plan's account and region."""
        place = plan.cell if isinstance(plan, CellPlan) else plan.central
        own = IbmSettings.of(plan.cell) if isinstance(plan, CellPlan) else IbmSettings()
        self._promoter_cluster = settings.values.get(CLUSTER_SETTING, "")
        return IbmProvider(
            name,
            ProviderArgs(
                account=place.account,
                region=region or place.region,
                resource_group=own.resource_group,
                visibility=own.visibility,
                profile=settings.deploy_role,
                api_key=settings.values.get(API_KEY_SETTING),
            ),
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
        """Make the cluster of a cell and the Kubernetes provider for it."""
        args = ClusterArgs.from_plan(
            plan,
            network_id=network.network_id,
            subnets=network.subnets_by_zone,
            node_security_group_id=network.node_security_group_id,
            vault=network.vault,
            deploy_profile=settings.deploy_role,
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
        """Install the cluster-autoscaler add-on."""
        args = AutoscalerArgs.from_plan(
            plan,
            cluster_id=cluster.cluster_id,
            kubernetes=cluster.kubernetes,
            after=cluster.ready,
        )
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
        """Make the worker pool of one machine shape.

        With the last pool of the plan the autoscaler is told of all of them.
        """
        args = NodePoolArgs.from_plan(
            plan,
            pool,
            subnets=network.subnets_by_zone,
            cluster_id=cluster.cluster_id,
            network_id=network.network_id,
            node_security_group_id=network.node_security_group_id,
            vault_guid=network.vault.guid,
            node_key_id=cluster.node_key_id,
            after=(*cluster.ready, *autoscaler.ready),
        )
        made = NodePool(name, args, options)
        pools = self._pools.setdefault(plan.stack, [])
        pools.append(made)
        if len(pools) == len(plan.node_pools):
            scaled = [found.scaled for found in pools if found.scaled is not None]
            autoscaler.configure(scaled, [found.pool for found in pools])
        return made

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
        """Make the trusted profile of a class, linked to its job pods."""
        args = RunnerIdentityArgs.from_plan(
            plan, planned, cluster.cluster_crn, local, central
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
        """Refuse: IBM Cloud takes no token of GitHub.

        Raises:
            FederationError: Always; it says what can be done.
        """
        raise FederationError(runner_class.name)

    def promoter(
        self,
        name: str,
        plan: CentralPlan,
        central: Mapping[StoreKind, StoreHandle],
        options: pulumi.ResourceOptions,
    ) -> pulumi.Output[str]:
        """Make the profile that moves local results to the central stores."""
        args = PromoterArgs.from_plan(plan, central, self._promoter_cluster)
        return Promoter(name, args, options).identity_id

    def budget(
        self, name: str, plan: CellPlan | CentralPlan, options: pulumi.ResourceOptions
    ) -> Budget | None:
        """Keep the funder's budget, which a person sets in the console."""
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
        """Make the profile of External Secrets, linked to its service account."""
        args = SecretsReaderArgs.from_plan(
            plan, cluster.cluster_crn, namespace, service_account
        )
        reader = SecretsReader(name, args, options)
        return SecretsIdentity(reader.service_account_annotations, (reader.link,))

    def account(
        self,
        name: str,
        plan: CentralPlan,
        settings: StackSettings,
        options: pulumi.ResourceOptions,
    ) -> Mapping[str, pulumi.Output[str]]:
        """Make nothing: tags split a bill as soon as they are there.

        A deployment's own identity cannot be made by itself here either: GitHub's
        token does not let it in (:mod:`runfleet.clouds.ibm.federation`).
        """
        return {}

    def app_secret(self, plan: CellPlan, planned: PlannedClass) -> AppSecretSource:
        """Say in which secret of Secrets Manager the App's key of a class is."""
        return app_secret(plan, planned)

    def reservation_ids(self, pool: NodePoolPlan) -> Sequence[str]:
        """Return the ids of the pools of dedicated hosts of a node pool."""
        return [reservation.id for reservation in pool.reservations]
