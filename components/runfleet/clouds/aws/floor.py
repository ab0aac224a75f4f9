"""The AWS floor: how each room is made from a plan.

This is the one module that knows all seven rooms of AWS at once. It hands each what
it needs from the others, so that the rooms themselves take plain inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

import pulumi
import pulumi_aws as aws

from runfleet.clouds.aws import addresses
from runfleet.clouds.aws.autoscaler import Autoscaler, AutoscalerArgs
from runfleet.clouds.aws.belongings import Belongings
from runfleet.clouds.aws.budget import (
    Budget,
    BudgetArgs,
    CostAllocationTags,
    CostAllocationTagsArgs,
)
from runfleet.clouds.aws.cluster import Cluster, ClusterArgs
from runfleet.clouds.aws.deploy import DeployRole, DeployRoleArgs, deploy_subjects
from runfleet.clouds.aws.federation import (
    FederatedIdentity,
    FederatedIdentityArgs,
    GitHubOidc,
    GitHubOidcArgs,
)
from runfleet.clouds.aws.identity import (
    BoundaryArgs,
    PermissionsBoundary,
    RunnerIdentity,
    RunnerIdentityArgs,
)
from runfleet.clouds.aws.network import Network, NetworkArgs
from runfleet.clouds.aws.nodes import NodePool, NodePoolArgs
from runfleet.clouds.aws.promoter import Promoter, PromoterArgs
from runfleet.clouds.aws.secrets_reader import SecretsReader, SecretsReaderArgs
from runfleet.clouds.aws.stores import Stores, StoresArgs
from runfleet.clouds.aws.tags import tags
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
from runfleet.spec.github import FederatedRepository
from runfleet.spec.roles import StoreKind


class AwsFloor:
    """The rooms of AWS; one object serves one stack."""

    def __init__(self) -> None:
        """Start with nothing made."""
        self._boundaries: dict[str, PermissionsBoundary] = {}
        self._github: dict[str, GitHubOidc] = {}

    def provider(
        self,
        name: str,
        plan: CellPlan | CentralPlan,
        settings: StackSettings,
        region: str | None = None,
    ) -> pulumi.ProviderResource:
        """Make the explicit provider for the plan's account and region."""
        place = plan.cell if isinstance(plan, CellPlan) else plan.central
        return aws.Provider(
            name,
            region=region or place.region,
            allowed_account_ids=[place.account],
            assume_roles=[{"role_arn": settings.deploy_role}]
            if settings.deploy_role
            else None,
            default_tags={"tags": tags(plan.ci_labels)},
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
        """Make the EKS cluster of a cell and the Kubernetes provider for it."""
        args = ClusterArgs.from_plan(
            plan,
            network.network_id,
            _inputs(network.node_subnet_ids),
            _inputs(network.control_subnet_ids),
            network.node_security_group_id,
            settings.deploy_role,
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
        """Install Karpenter."""
        args = AutoscalerArgs.from_plan(
            plan,
            endpoint=cluster.endpoint,
            subnet_ids=network.node_subnet_ids,
            node_security_group_id=network.node_security_group_id,
            volumes_key_arn=cluster.volumes_key_arn,
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
        """Make the Karpenter node pool of one machine shape."""
        args = NodePoolArgs.from_plan(
            plan,
            pool,
            instance_profile=autoscaler.instance_profile_name,
            subnet_ids=network.node_subnet_ids,
            security_group_id=network.node_security_group_id,
            volumes_key_arn=cluster.volumes_key_arn,
            kubernetes=cluster.kubernetes,
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
        """Make the role of a class, bound to its job pods by EKS Pod Identity."""
        boundary = self._boundary(
            plan.stack, lambda: BoundaryArgs.from_plan(plan, local, central), options
        )
        args = RunnerIdentityArgs.from_plan(
            plan, planned, cluster.cluster_name, boundary.arn, local, central
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
        """Make the GitHub OIDC role of a class that runs outside AWS."""
        boundary = self._boundary(
            plan.stack, lambda: BoundaryArgs.for_central(plan, central), options
        )
        args = FederatedIdentityArgs.from_plan(
            plan, runner_class, self._oidc(plan, options).arn, boundary.arn, central
        )
        return FederatedIdentity(name, args, options).identity_id

    def promoter(
        self,
        name: str,
        plan: CentralPlan,
        central: Mapping[StoreKind, StoreHandle],
        options: pulumi.ResourceOptions,
    ) -> pulumi.Output[str]:
        """Make the role that moves local results to the central stores."""
        args = PromoterArgs.from_plan(plan, self._oidc(plan, options).arn, central)
        return Promoter(name, args, options).identity_id

    def budget(
        self, name: str, plan: CellPlan | CentralPlan, options: pulumi.ResourceOptions
    ) -> Budget | None:
        """Make the funder's budget, in the one stack of its account that makes it."""
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
        """Make the role of External Secrets, bound to it by EKS Pod Identity.

        Its pods get credentials only when the association was there before them.
        """
        args = SecretsReaderArgs.from_plan(
            plan, cluster.cluster_name, namespace, service_account
        )
        reader = SecretsReader(name, args, options)
        return SecretsIdentity(
            reader.service_account_annotations, (reader.association,)
        )

    def account(
        self,
        name: str,
        plan: CentralPlan,
        settings: StackSettings,
        options: pulumi.ResourceOptions,
    ) -> Mapping[str, pulumi.Output[str]]:
        """Activate the cost-allocation tags, and make the deploy role.

        Only the payer account can activate tags (setting ``payerAccount``); until
        they are active every budget by funder reads zero.
        """
        if settings.values.get("payerAccount") == "true":
            CostAllocationTags(f"{name}-cost-tags", CostAllocationTagsArgs(), options)
        repository = settings.values.get("deployRepository")
        if repository is None:
            return {}
        fleet, place = plan.fleet, plan.central
        known = next(
            (r for r in fleet.github.federation if r.repository == repository),
            FederatedRepository(repository=repository),
        )
        role = DeployRole(
            f"{name}-deploy",
            DeployRoleArgs(
                fleet=Belongings.of(fleet, place.account),
                subjects=deploy_subjects(
                    known, settings.values.get("deployEnvironment", "production")
                ),
                provider_arn=self._oidc(plan, options).arn,
                issuer=fleet.github.oidc_issuer,
                boundaries=addresses.job_boundaries(fleet, place.account),
                state_bucket=settings.values.get("stateBucket", ""),
                secrets_key=settings.values.get("secretsKey", ""),
                tags=tags(plan.ci_labels),
            ),
            options,
        )
        return {"deploy_role": role.role_arn}

    def app_secret(self, plan: CellPlan, planned: PlannedClass) -> AppSecretSource:
        """Say in which secret of Secrets Manager the App's key of a class is."""
        key = addresses.app_secret(plan.fleet, planned.runner_class.trust)
        settings = {
            "service": "SecretsManager",
            "region": plan.cell.region,
        }
        return AppSecretSource("aws", settings, key)

    def reservation_ids(self, pool: NodePoolPlan) -> Sequence[str]:
        """Return the ids of the capacity reservations of a node pool."""
        return [reservation.id for reservation in pool.reservations]

    def spot_interruption_notice(self) -> int:
        """Return the notice before a spot machine is taken back: 120 seconds.

        Source: EC2 user guide, "Spot Instance interruption notices".
        """
        return 120

    def _boundary(
        self,
        stack: str,
        make: Callable[[], BoundaryArgs],
        options: pulumi.ResourceOptions,
    ) -> PermissionsBoundary:
        if stack not in self._boundaries:
            self._boundaries[stack] = PermissionsBoundary(
                f"{stack}-boundary", make(), options
            )
        return self._boundaries[stack]

    def _oidc(self, plan: CentralPlan, options: pulumi.ResourceOptions) -> GitHubOidc:
        if plan.stack not in self._github:
            self._github[plan.stack] = GitHubOidc(
                f"{plan.stack}-github-oidc",
                GitHubOidcArgs(plan.fleet.github.oidc_issuer, tags(plan.ci_labels)),
                options,
            )
        return self._github[plan.stack]


def _inputs(
    values: pulumi.Output[Sequence[str]],
) -> pulumi.Input[Sequence[pulumi.Input[str]]]:
    return cast("pulumi.Input[Sequence[pulumi.Input[str]]]", values)
