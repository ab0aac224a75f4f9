"""Cluster: a private AKS cluster, its identities, keys, logs and system nodes.

The API has private addresses in a subnet of its own (API Server VNet Integration);
only mode ``allow-list`` gives it a public one as well, for the listed ranges. Local
accounts are off: who may do what is Entra's role assignments, for the groups in the
cell's ``admins`` and the identities in setting ``deployers``. Secrets are encrypted in
etcd with a key of the cell's vault, disks with another, and both with encryption at
host. Azure CNI runs with an overlay and Cilium, which enforces NetworkPolicy.

The cluster issues the tokens that jobs exchange for cloud credentials (OIDC issuer and
workload identity). Its own two identities are ours, so that they are labelled and can
do one thing each: the control plane joins the cell's subnets, nodes can do nothing.

System pods have a small fixed pool of their own, tainted as AKS knows it.

An existing cluster is used with ``adopt_cluster`` (its name in the cell's resource
group, or its resource id): its owner keeps network, keys, logs and system nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_kubernetes as k8s
from pulumi_azure_native import containerservice, managedidentity

from runfleet.clouds.azure import names, roles
from runfleet.clouds.azure.endpoints import EndpointSubnet
from runfleet.clouds.azure.keys import (
    Vault,
    disk_encryption,
    encryption_key,
    key_id,
    key_vault,
)
from runfleet.clouds.azure.kubeconfig import (
    KubeconfigArgs,
    certificate_of,
    kubeconfig,
)
from runfleet.clouds.azure.modes import Mode, mode_of
from runfleet.clouds.azure.places import Place, place_of
from runfleet.clouds.azure.ranges import POD_RANGE, SERVICE_RANGE, dns_address
from runfleet.clouds.azure.settings import AzureSettings, zone_numbers
from runfleet.clouds.azure.system import audit_logs, system_pool
from runfleet.clouds.azure.tags import with_labels
from runfleet.errors import RunfleetError
from runfleet.placement.plan import CellPlan
from runfleet.spec.cells import BaseNodes

VERSION_PIN = "aks-version"
"""Pin of the Kubernetes version: major and minor, AKS takes the newest patch."""

AUTOSCALER_PROFILE = {
    "expander": "priority",
    "balance_similar_node_groups": "false",
    "ignore_daemonsets_utilization": True,
    "max_empty_bulk_delete": "50",
    "max_node_provision_time": "20m",
    "new_pod_scale_up_delay": "45s",
    "scale_down_delay_after_add": "5m",
    "scale_down_unneeded_time": "10m",
    "scale_down_utilization_threshold": "0.01",
    "skip_nodes_with_local_storage": "false",
    "skip_nodes_with_system_pods": "false",
}
"""The cluster autoscaler: by weight, and a node goes when no job is left on it.

A threshold of 0 would keep every node for good: use must be *below* it."""


class ClusterError(RunfleetError):
    """A cell's cluster cannot be built as the fleet file describes it."""

    exit_code = 2


@dataclass(frozen=True)
class ClusterArgs:
    """What a cluster is made from.

    Attributes:
        place: Where the cell is.
        cluster: Name of the cluster, or resource id of the one to adopt.
        mode: Who starts machines.
        resource_group: Name of the resource group.
        node_subnet_id: Subnet for nodes.
        api_subnet_id: Subnet for the API server.
        endpoints: Where private endpoints are made.
        zones: Zones by number.
        version: Kubernetes version.
        base_nodes: The nodes that carry system pods; an adopted cluster has its own.
        api_mode: ``private``, ``tunnel`` or ``allow-list``.
        api_allow: Ranges that may connect (allow-list).
        api_proxy: Proxy that deployments connect through (tunnel).
        pods: Range of pods.
        services: Range of service addresses.
        admins: Object ids of the groups that administer the cluster.
        deployers: Object ids of the identities that deploy to it.
        login: How deployments sign in.
        deploy_client: Client id that they sign in as; empty for the ambient one.
        log_retention_days: How long control-plane logs are kept.
        node_image: Operating system of the nodes.
        adopt: Whether the cluster exists.
        after: What must exist first.
    """

    place: Place
    cluster: str
    mode: Mode
    resource_group: pulumi.Input[str]
    node_subnet_id: pulumi.Input[str]
    api_subnet_id: pulumi.Input[str]
    endpoints: EndpointSubnet
    zones: Sequence[str]
    version: str
    base_nodes: BaseNodes | None
    api_mode: str = "private"
    api_allow: Sequence[str] = ()
    api_proxy: str | None = None
    pods: str = POD_RANGE
    services: str = SERVICE_RANGE
    admins: Sequence[str] = ()
    deployers: Sequence[str] = ()
    login: str = "azurecli"
    deploy_client: str = ""
    log_retention_days: int = 365
    node_image: str = "Ubuntu"
    adopt: bool = False
    after: Sequence[pulumi.Resource] = ()

    @classmethod
    def from_plan(
        cls,
        plan: CellPlan,
        *,
        resource_group: pulumi.Input[str],
        node_subnet_id: pulumi.Input[str],
        api_subnet_id: pulumi.Input[str],
        endpoints: EndpointSubnet,
        deploy_client: str = "",
        after: Sequence[pulumi.Resource] = (),
    ) -> ClusterArgs:
        """Take what a cell's cluster needs from its plan and its network.

        Args:
            plan: The cell's plan.
            resource_group: Name of the resource group.
            node_subnet_id: Subnet for nodes.
            api_subnet_id: Subnet for the API server.
            endpoints: Where private endpoints are made.
            deploy_client: Client id that deployments sign in as.
            after: What must exist first.

        Raises:
            InputError: A setting of the cell is wrong.
        """
        cell = plan.cell
        settings = AzureSettings.of(cell)
        network = cell.network
        return cls(
            place=place_of(plan),
            cluster=cell.adopt_cluster or cell.cluster,
            mode=mode_of(plan),
            resource_group=resource_group,
            node_subnet_id=node_subnet_id,
            api_subnet_id=api_subnet_id,
            endpoints=endpoints,
            zones=zone_numbers(cell),
            version=plan.pins.value(VERSION_PIN),
            base_nodes=cell.base_nodes,
            api_mode=cell.api_access.mode,
            api_allow=tuple(cell.api_access.allow),
            api_proxy=cell.api_access.proxy,
            pods=(network.pods if network else None) or POD_RANGE,
            services=(network.services if network else None) or SERVICE_RANGE,
            admins=tuple(cell.admins),
            deployers=tuple(settings.deployers),
            login=settings.kubelogin,
            deploy_client=deploy_client,
            log_retention_days=settings.log_retention_days,
            node_image=settings.node_image,
            adopt=cell.adopt_cluster is not None,
            after=tuple(after),
        )


class Cluster(pulumi.ComponentResource):
    """An AKS cluster and the Kubernetes provider for it.

    Attributes:
        cluster_name: Name of the cluster.
        cluster_id: Resource id of the cluster.
        cluster_group: Name of the cluster's resource group.
        endpoint: Address of its API.
        oidc_issuer: Issuer of the tokens of its service accounts.
        certificate_authority: Base64 certificate of its API.
        kubeconfig: Kubeconfig (JSON) that fetches short-lived credentials.
        kubernetes: Provider for objects in the cluster.
        vault: The cell's vault, for keys and the GitHub Apps' secrets.
        ready: What must exist before anything is put on the cluster.
    """

    cluster_name: pulumi.Output[str]
    cluster_id: pulumi.Output[str]
    cluster_group: pulumi.Output[str]
    endpoint: pulumi.Output[str]
    oidc_issuer: pulumi.Output[str]
    certificate_authority: pulumi.Output[str]
    kubeconfig: pulumi.Output[str]
    kubernetes: k8s.Provider
    vault: Vault
    ready: Sequence[pulumi.Resource]

    def __init__(
        self,
        name: str,
        args: ClusterArgs,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Make the cluster, or use the one to adopt.

        Args:
            name: Name of the component; children are called ``<name>-<suffix>``.
            args: What it is made from.
            opts: Options; the explicit provider comes with them.

        Raises:
            ClusterError: The API would be open to the whole internet, or a cluster
                that is to be made has no base nodes.
        """
        options = with_labels(opts, args.place.labels)
        super().__init__("runfleet:azure:Cluster", name, None, options)
        if args.api_mode == "allow-list" and (
            not args.api_allow or any(cidr.endswith("/0") for cidr in args.api_allow)
        ):
            raise ClusterError(
                f"cluster {args.cluster}: `api_access.allow` must list ranges that "
                "are narrower than the whole internet"
            )
        self._name = name
        self._args = args
        self.vault = key_vault(
            f"{name}-vault", args.place, args.resource_group, args.endpoints, self
        )
        ready: list[pulumi.Resource]
        if args.adopt:
            cluster, group = self._adopted()
            ready = [cluster]
        else:
            cluster, ready = self._cluster()
            group = pulumi.Output.from_input(args.resource_group)
        ready += self._deployers(cluster)
        self.cluster_name = cluster.name
        self.cluster_id = cluster.id
        self.cluster_group = group
        public = args.api_mode == "allow-list"
        fqdn = cluster.fqdn if public else cluster.private_fqdn
        self.endpoint = pulumi.Output.concat("https://", fqdn, ":443")
        self.oidc_issuer = cluster.oidc_issuer_profile.apply(
            lambda profile: (profile.issuer_url if profile else "") or ""
        )
        self.certificate_authority = (
            containerservice.list_managed_cluster_user_credentials_output(
                resource_group_name=group,
                resource_name=cluster.name,
                opts=pulumi.InvokeOutputOptions(parent=self, depends_on=[cluster]),
            ).apply(lambda found: certificate_of(found.kubeconfigs[0].value))
        )
        self.kubeconfig = kubeconfig(
            KubeconfigArgs(
                cluster=args.cluster.rpartition("/")[2],
                tenant=args.place.tenant,
                endpoint=self.endpoint,
                certificate_authority=self.certificate_authority,
                login=args.login,
                client=args.deploy_client,
                proxy=args.api_proxy if args.api_mode == "tunnel" else None,
            )
        )
        self.kubernetes = k8s.Provider(
            f"{name}-kubernetes",
            kubeconfig=self.kubeconfig,
            enable_server_side_apply=True,
            opts=self._opts(),
        )
        self.ready = tuple(ready)
        self.register_outputs(
            {
                "cluster_name": self.cluster_name,
                "cluster_id": self.cluster_id,
                "endpoint": self.endpoint,
                "oidc_issuer": self.oidc_issuer,
                "kubeconfig": self.kubeconfig,
                "vault_id": self.vault.vault.id,
            }
        )

    def _opts(self, **more: Any) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self, **more)

    def _adopted(
        self,
    ) -> tuple[containerservice.ManagedCluster, pulumi.Output[str]]:
        args = self._args
        full = args.cluster
        if not full.startswith("/"):
            full = (
                f"{args.place.group_id}/providers/Microsoft.ContainerService"
                f"/managedClusters/{full}"
            )
        cluster = containerservice.ManagedCluster.get(
            f"{self._name}-aks", full, opts=self._opts()
        )
        return cluster, pulumi.Output.from_input(full.split("/")[4])

    def _cluster(
        self,
    ) -> tuple[containerservice.ManagedCluster, list[pulumi.Resource]]:
        name, args, place = self._name, self._args, self._args.place
        if args.base_nodes is None:
            raise ClusterError(f"cluster {args.cluster} needs `base_nodes`")
        control, kubelet = self._identity("control-plane"), self._identity("kubelet")
        key = encryption_key(
            f"{name}-secrets-key", "secrets", self.vault, args.resource_group, self
        )
        disks = disk_encryption(
            f"{name}-disks", place, self.vault, args.resource_group, self
        )
        allowed = [
            self._assigned(control, f"uses-{purpose}", subnet, role)
            for purpose, subnet, role in (
                ("nodes", args.node_subnet_id, roles.NETWORK_CONTRIBUTOR),
                ("api", args.api_subnet_id, roles.NETWORK_CONTRIBUTOR),
                ("kubelet", kubelet.id, roles.IDENTITY_OPERATOR),
                ("disks", disks.id, roles.READER),
                ("secrets-key", key_id(self.vault, key), roles.KEY_USER),
                ("vault", self.vault.vault.id, roles.KEY_VAULT_CONTRIBUTOR),
            )
        ]
        private = args.api_mode != "allow-list"
        cluster = containerservice.ManagedCluster(
            f"{name}-aks",
            resource_name_=names.CLUSTER.encode(args.cluster),
            resource_group_name=args.resource_group,
            location=place.region,
            dns_prefix=names.CLUSTER.encode(args.cluster)[:54].rstrip("-"),
            kubernetes_version=args.version,
            sku=containerservice.ManagedClusterSKUArgs(name="Base", tier="Standard"),
            node_resource_group=names.RESOURCE_GROUP.encode(place.name, "nodes"),
            node_resource_group_profile=(
                containerservice.ManagedClusterNodeResourceGroupProfileArgs(
                    restriction_level="ReadOnly"
                )
            ),
            identity=containerservice.ManagedClusterIdentityArgs(
                type=containerservice.ResourceIdentityType.USER_ASSIGNED,
                user_assigned_identities=[control.id],
            ),
            identity_profile={
                "kubeletidentity": containerservice.UserAssignedIdentityArgs(
                    resource_id=kubelet.id,
                    client_id=kubelet.client_id,
                    object_id=kubelet.principal_id,
                )
            },
            api_server_access_profile=(
                containerservice.ManagedClusterAPIServerAccessProfileArgs(
                    enable_private_cluster=private,
                    enable_private_cluster_public_fqdn=False if private else None,
                    private_dns_zone="system" if private else None,
                    authorized_ip_ranges=None if private else list(args.api_allow),
                    disable_run_command=True,
                    enable_vnet_integration=True,
                    subnet_id=args.api_subnet_id,
                )
            ),
            aad_profile=containerservice.ManagedClusterAADProfileArgs(
                managed=True,
                enable_azure_rbac=True,
                admin_group_object_ids=list(args.admins),
                tenant_id=place.tenant,
            ),
            disable_local_accounts=True,
            enable_rbac=True,
            oidc_issuer_profile=containerservice.ManagedClusterOIDCIssuerProfileArgs(
                enabled=True
            ),
            security_profile=self._security(key.key_uri_with_version),
            disk_encryption_set_id=disks.id,
            network_profile=containerservice.ContainerServiceNetworkProfileArgs(
                network_plugin="azure",
                network_plugin_mode="overlay",
                network_dataplane="cilium",
                network_policy="cilium",
                outbound_type="userAssignedNATGateway",
                load_balancer_sku="standard",
                pod_cidr=args.pods,
                service_cidr=args.services,
                dns_service_ip=dns_address(args.services),
            ),
            agent_pool_profiles=[
                system_pool(
                    args.base_nodes,
                    place,
                    args.zones,
                    args.node_subnet_id,
                    args.node_image,
                )
            ],
            auto_upgrade_profile=(
                containerservice.ManagedClusterAutoUpgradeProfileArgs(
                    upgrade_channel="patch", node_os_upgrade_channel="NodeImage"
                )
            ),
            **self._scaling(),
            opts=self._opts(
                protect=True,
                retain_on_delete=True,
                depends_on=[*allowed, self.vault.reachable, *args.after],
            ),
        )
        logs = audit_logs(
            name, place, args.resource_group, cluster.id, args.log_retention_days, self
        )
        return cluster, [cluster, logs]

    def _scaling(self) -> dict[str, Any]:
        if self._args.mode is Mode.AUTO_PROVISIONED:
            return {
                "node_provisioning_profile": (
                    containerservice.ManagedClusterNodeProvisioningProfileArgs(
                        mode="Auto", default_node_pools="None"
                    )
                )
            }
        return {
            "node_provisioning_profile": (
                containerservice.ManagedClusterNodeProvisioningProfileArgs(
                    mode="Manual"
                )
            ),
            "auto_scaler_profile": (
                containerservice.ManagedClusterPropertiesAutoScalerProfileArgs(
                    **AUTOSCALER_PROFILE  # type: ignore[reportArgumentType]
                )
            ),
        }

    def _security(
        self, key: pulumi.Output[str]
    ) -> containerservice.ManagedClusterSecurityProfileArgs:
        return containerservice.ManagedClusterSecurityProfileArgs(
            workload_identity=(
                containerservice.ManagedClusterSecurityProfileWorkloadIdentityArgs(
                    enabled=True
                )
            ),
            azure_key_vault_kms=containerservice.AzureKeyVaultKmsArgs(
                enabled=True,
                key_id=key,
                key_vault_network_access="Private",
                key_vault_resource_id=self.vault.vault.id,
            ),
            image_cleaner=(
                containerservice.ManagedClusterSecurityProfileImageCleanerArgs(
                    enabled=True, interval_hours=48
                )
            ),
        )

    def _identity(self, purpose: str) -> managedidentity.UserAssignedIdentity:
        place = self._args.place
        return managedidentity.UserAssignedIdentity(
            f"{self._name}-{purpose}",
            resource_name_=names.IDENTITY.encode(place.name, purpose),
            resource_group_name=self._args.resource_group,
            location=place.region,
            opts=self._opts(),
        )

    def _assigned(
        self,
        identity: managedidentity.UserAssignedIdentity,
        purpose: str,
        scope: pulumi.Input[str],
        role: str,
    ) -> pulumi.Resource:
        return roles.assign(
            f"{self._name}-control-plane-{purpose}",
            self._args.place,
            principal=identity.principal_id,
            scope=scope,
            role=role,
            options=self._opts(),
        )

    def _deployers(
        self, cluster: containerservice.ManagedCluster
    ) -> list[pulumi.Resource]:
        return [
            roles.assign(
                f"{self._name}-deployer-{deployer}",
                self._args.place,
                principal=deployer,
                scope=cluster.id,
                role=roles.CLUSTER_ADMIN,
                options=self._opts(),
            )
            for deployer in self._args.deployers
        ]
