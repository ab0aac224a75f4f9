"""Cluster: a private GKE cluster and a small group of nodes for its system pods.

The API has a private address in a subnet of its own; mode ``allow-list`` opens its
public address to the listed ranges only, and the setting ``dns_endpoint`` opens the
DNS endpoint, which answers only to identities with the permission
``container.clusters.connect`` (GKE documentation, "About network isolation in GKE").
Secrets are encrypted with a key of their own, all control-plane logs are kept, and
Dataplane V2 enforces NetworkPolicy (GKE documentation, "GKE Dataplane V2"). Pods get
identities of their own by Workload Identity Federation for GKE.

The version follows a release channel: GKE chooses and upgrades it inside the
maintenance window, so it is no pin.

Who may use it is a list: the cell's ``admins`` get the cluster by name, in its own
roles, and may see the cluster in the project; the deployment's identity has its rights
from the project (:mod:`runfleet.clouds.gcp.deploy`). Nobody is an administrator by
having made it, and the rights that Kubernetes gives to all who are logged in with
Google, or to nobody in particular, are refused.

Base nodes are tainted softly: GKE's own system pods must be able to run on them, and
not all of those tolerate a taint of ours; job pods are held to their pools by their
node selectors.

An existing cluster is used with ``adopt_cluster``: its owner keeps its network, keys,
logs and base nodes; the node pools are made in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pulumi
import pulumi_gcp as gcp
import pulumi_kubernetes as k8s

from runfleet.clouds.gcp.addresses import Project, cell_project, node_account
from runfleet.clouds.gcp.admins import admin_problems, make_admins
from runfleet.clouds.gcp.keys import crypto_key, key_ring
from runfleet.clouds.gcp.kubeconfig import KubeconfigArgs, kubeconfig
from runfleet.clouds.gcp.labels import labels
from runfleet.clouds.gcp.names import GKE_CLUSTER
from runfleet.clouds.gcp.node_config import SCOPE, Machines, node_config
from runfleet.clouds.gcp.settings import GcpSettings, problem
from runfleet.errors import InputError
from runfleet.placement.plan import CellPlan
from runfleet.spec.cells import BaseNodes
from runfleet.spec.pools import Taint

NODE_ROLES = (
    "roles/container.defaultNodeServiceAccount",
    "roles/artifactregistry.reader",
)
"""What machines may do in the project: send logs and metrics, and pull images (GKE
documentation, "About service accounts in GKE")."""

LOGS = ("APISERVER", "CONTROLLER_MANAGER", "SCHEDULER", "SYSTEM_COMPONENTS")
"""The logs that a cluster keeps; job logs are kept by GitHub."""


@dataclass(frozen=True)
class ClusterArgs:
    """What a cluster is made from.

    Attributes:
        cluster: Name of the cluster.
        project: The project.
        zones: Zones of its nodes.
        labels: The required labels.
        network_id: Resource name of the network.
        subnet_id: Resource name of the subnet for machines.
        control_subnet_id: Resource name of the subnet for the API server's address.
        node_account: Id of the machines' service account.
        pods_range: Name of the range for pods.
        services_range: Name of the range for services.
        base_nodes: The nodes that carry system pods; an adopted cluster has its own.
        api_mode: ``private``, ``tunnel`` or ``allow-list``.
        api_allow: Ranges that may connect (allow-list).
        api_proxy: Proxy that deployments connect through (tunnel).
        admins: Members who administer the cluster.
        deploy_role: Service account that the deployment acts as; empty for none.
        settings: The cell's settings.
        after: What must exist before a machine can start.
        adopt: Name of an existing cluster to use.
    """

    cluster: str
    project: Project
    zones: Sequence[str]
    labels: Mapping[str, str]
    network_id: pulumi.Input[str]
    subnet_id: pulumi.Input[str]
    control_subnet_id: pulumi.Input[str]
    node_account: str
    base_nodes: BaseNodes | None
    pods_range: str = "pods"
    services_range: str = "services"
    api_mode: str = "private"
    api_allow: Sequence[str] = ()
    api_proxy: str | None = None
    admins: Sequence[str] = ()
    deploy_role: str = ""
    settings: GcpSettings = field(default_factory=GcpSettings)
    after: Sequence[pulumi.Resource] = ()
    adopt: str | None = None

    @classmethod
    def from_plan(
        cls,
        plan: CellPlan,
        *,
        network_id: pulumi.Input[str],
        subnet_id: pulumi.Input[str],
        control_subnet_id: pulumi.Input[str],
        pods_range: str,
        services_range: str,
        after: Sequence[pulumi.Resource] = (),
        deploy_role: str = "",
    ) -> ClusterArgs:
        """Take what a cell's cluster needs from its plan and the network.

        Raises:
            InputError: The cell has no base nodes, its API would be open to the
                whole internet, or an administrator or a setting is wrong.
        """
        cell = plan.cell
        settings = GcpSettings.of(cell)
        args = cls(
            cluster=cell.adopt_cluster or cell.cluster,
            project=cell_project(cell),
            zones=tuple(cell.zones),
            labels=plan.ci_labels,
            network_id=network_id,
            subnet_id=subnet_id,
            control_subnet_id=control_subnet_id,
            node_account=node_account(cell),
            base_nodes=cell.base_nodes,
            pods_range=pods_range,
            services_range=services_range,
            api_mode=cell.api_access.mode,
            api_allow=tuple(cell.api_access.allow),
            api_proxy=cell.api_access.proxy,
            admins=tuple(cell.admins),
            deploy_role=deploy_role,
            settings=settings,
            after=tuple(after),
            adopt=cell.adopt_cluster,
        )
        _check(cell.name, args)
        return args


class Cluster(pulumi.ComponentResource):
    """A GKE cluster and the Kubernetes provider for it.

    Attributes:
        cluster_name: Name of the cluster.
        cluster_id: Resource name of the cluster.
        endpoint: Address of its API.
        kubeconfig: Kubeconfig (JSON) that fetches short-lived credentials.
        kubernetes: Provider for objects in the cluster.
        oidc_issuer: Issuer of its service account tokens, which other clouds trust.
        machines: What the machines of every node pool need.
        ready: What must exist before anything is put on the cluster.
    """

    cluster_name: pulumi.Output[str]
    cluster_id: pulumi.Output[str]
    endpoint: pulumi.Output[str]
    kubeconfig: pulumi.Output[str]
    kubernetes: k8s.Provider
    oidc_issuer: pulumi.Output[str]
    machines: Machines
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
        """
        super().__init__("runfleet:gcp:Cluster", name, None, opts)
        self._name = name
        self._args = args
        account, account_ready = self._node_account()
        disks, disks_ready, secrets = self._keys()
        self.machines = Machines(args.cluster, account.email, disks.id, args.labels)
        ready: list[pulumi.Resource] = [*args.after, *account_ready, *disks_ready]
        if args.adopt is None:
            cluster = self._cluster(secrets, [*ready, *self._secrets_ready])
        else:
            cluster = gcp.container.Cluster.get(
                f"{name}-gke",
                args.project.cluster(args.adopt),
                opts=pulumi.ResourceOptions(parent=self),
            )
        self.cluster_name = cluster.name
        self.cluster_id = cluster.id
        self.oidc_issuer = cluster.name.apply(args.project.issuer)
        self._address(cluster)
        self.kubernetes = k8s.Provider(
            f"{name}-kubernetes",
            kubeconfig=self.kubeconfig,
            enable_server_side_apply=True,
            opts=pulumi.ResourceOptions(parent=self),
        )
        ready.append(cluster)
        if args.adopt is None and args.base_nodes is not None:
            ready.append(self._base_nodes(cluster, args.base_nodes, ready))
            make_admins(
                f"{name}-admin",
                args.project.cluster(args.cluster),
                args.admins,
                args.labels,
                self.kubernetes,
                self,
                ready,
            )
        self.ready = tuple(ready)
        self.register_outputs(
            {
                "cluster_name": self.cluster_name,
                "cluster_id": self.cluster_id,
                "endpoint": self.endpoint,
                "kubeconfig": self.kubeconfig,
                "oidc_issuer": self.oidc_issuer,
                "project_number": args.project.number,
            }
        )

    def _node_account(self) -> tuple[gcp.serviceaccount.Account, list[pulumi.Resource]]:
        """Make the service account of the machines, with the least they need."""
        own = pulumi.ResourceOptions(parent=self)
        project = self._args.project
        account = gcp.serviceaccount.Account(
            f"{self._name}-nodes",
            account_id=self._args.node_account,
            project=project.id,
            display_name=f"Machines of {self._args.cluster}",
            opts=own,
        )
        roles: list[pulumi.Resource] = [
            gcp.projects.IAMMember(
                f"{self._name}-nodes-{role.rpartition('.')[2].lower()}"
                if "reader" not in role
                else f"{self._name}-nodes-images",
                project=project.id,
                role=role,
                member=account.email.apply(lambda email: f"serviceAccount:{email}"),
                opts=own,
            )
            for role in NODE_ROLES
        ]
        if self._args.deploy_role:
            # Making machines asks for the right to act as their service account.
            roles.append(
                gcp.serviceaccount.IAMMember(
                    f"{self._name}-nodes-deploy",
                    service_account_id=account.name,
                    role="roles/iam.serviceAccountUser",
                    member=f"serviceAccount:{self._args.deploy_role}",
                    opts=own,
                )
            )
        return account, [account, *roles]

    def _keys(
        self,
    ) -> tuple[gcp.kms.CryptoKey, list[pulumi.Resource], gcp.kms.CryptoKey | None]:
        """Make the keys of disks and, for a cluster that is made, of secrets."""
        name, args = self._name, self._args
        ring = key_ring(
            f"{name}-key-ring", args.project, (args.cluster, "cluster"), self
        )
        disks, ready = crypto_key(
            f"{name}-disks-key",
            ring,
            "disks",
            args.project,
            ("compute.googleapis.com", "container.googleapis.com"),
            labels(args.labels),
            self,
        )
        self._secrets_ready: list[pulumi.Resource] = []
        if args.adopt is not None:
            return disks, ready, None
        secrets, self._secrets_ready = crypto_key(
            f"{name}-secrets-key",
            ring,
            "secrets",
            args.project,
            ("container.googleapis.com",),
            labels(args.labels),
            self,
        )
        return disks, ready, secrets

    def _cluster(
        self, secrets: gcp.kms.CryptoKey | None, after: Sequence[pulumi.Resource]
    ) -> gcp.container.Cluster:
        name, args, settings = self._name, self._args, self._args.settings
        listed = args.api_mode == "allow-list"
        return gcp.container.Cluster(
            f"{name}-gke",
            name=GKE_CLUSTER.encode(args.cluster),
            project=args.project.id,
            location=args.project.region,
            node_locations=list(args.zones),
            description=f"Runners of {args.cluster}",
            network=args.network_id,
            subnetwork=args.subnet_id,
            networking_mode="VPC_NATIVE",
            ip_allocation_policy={
                "cluster_secondary_range_name": args.pods_range,
                "services_secondary_range_name": args.services_range,
                "stack_type": "IPV4",
            },
            private_cluster_config={
                "enable_private_nodes": True,
                "enable_private_endpoint": not listed,
                "private_endpoint_subnetwork": args.control_subnet_id,
                "master_global_access_config": {"enabled": False},
            },
            control_plane_endpoints_config={
                "dns_endpoint_config": {
                    "allow_external_traffic": settings.dns_endpoint,
                    "enable_k8s_tokens_via_dns": False,
                    "enable_k8s_certs_via_dns": False,
                },
                "ip_endpoints_config": {"enabled": True},
            },
            master_authorized_networks_config={
                "cidr_blocks": [
                    {"cidr_block": cidr, "display_name": f"allowed-{number}"}
                    for number, cidr in enumerate(args.api_allow if listed else ())
                ],
                "gcp_public_cidrs_access_enabled": False,
                "private_endpoint_enforcement_enabled": True,
            },
            master_auth={
                "client_certificate_config": {"issue_client_certificate": False}
            },
            anonymous_authentication_config={"mode": "LIMITED"},
            rbac_binding_config={
                "enable_insecure_binding_system_authenticated": False,
                "enable_insecure_binding_system_unauthenticated": False,
            },
            authenticator_groups_config={
                "security_group": f"gke-security-groups@{settings.admin_groups_domain}"
            }
            if settings.admin_groups_domain
            else None,
            enable_legacy_abac=False,
            enable_shielded_nodes=True,
            enable_intranode_visibility=True,
            datapath_provider="ADVANCED_DATAPATH",
            workload_identity_config={"workload_pool": args.project.workload_pool},
            database_encryption={
                "state": "ENCRYPTED",
                "key_name": secrets.id if secrets is not None else "",
            },
            binary_authorization={
                "evaluation_mode": "PROJECT_SINGLETON_POLICY_ENFORCE"
            },
            security_posture_config={
                "mode": "BASIC",
                "vulnerability_mode": "VULNERABILITY_DISABLED",
            },
            release_channel={"channel": settings.release_channel},
            maintenance_policy={
                "recurring_window": {
                    "start_time": "2026-01-03T06:00:00Z",
                    "end_time": "2026-01-03T18:00:00Z",
                    "recurrence": settings.maintenance,
                }
            },
            logging_config={"enable_components": list(LOGS)},
            monitoring_config={
                "enable_components": ["SYSTEM_COMPONENTS"],
                "managed_prometheus": {"enabled": False},
            },
            addons_config={
                "gce_persistent_disk_csi_driver_config": {"enabled": True},
                "http_load_balancing": {"disabled": True},
                "dns_cache_config": {"enabled": False},
            },
            cost_management_config={"enabled": True},
            cluster_autoscaling=cast("Any", self._autoscaling()),
            node_pool_defaults={
                "node_config_defaults": {
                    "insecure_kubelet_readonly_port_enabled": "FALSE"
                }
            },
            node_pool_auto_config={
                "network_tags": {"tags": [args.cluster]},
                "node_kubelet_config": {
                    "insecure_kubelet_readonly_port_enabled": "FALSE"
                },
            },
            # GKE starts with a pool of its own, which is removed at once; its
            # machines are made as all others are.
            remove_default_node_pool=True,
            initial_node_count=1,
            node_config=cast(
                "Any", node_config(self.machines, "e2-medium", 50, {}, ())
            ),
            resource_labels=labels(args.labels),
            deletion_protection=True,
            opts=pulumi.ResourceOptions(
                parent=self,
                protect=True,
                retain_on_delete=True,
                depends_on=list(after),
                ignore_changes=[
                    "clusterAutoscaling.autoProvisioningDefaults",
                    "initialNodeCount",
                    "nodeConfig",
                    "nodeVersion",
                ],
            ),
        )

    def _autoscaling(self) -> dict[str, Any]:
        """Return how the cluster scales: by its node pools, in their order.

        Node auto-provisioning is off unless the cell sets limits for it. What GKE
        makes by itself, now or after somebody lets it, is made as all machines are:
        its defaults stand in any case. The provider reads them back only while
        auto-provisioning is on, so changes of them are passed over.
        """
        limits = self._args.settings.auto_provisioning
        found: dict[str, Any] = {
            "enabled": bool(limits),
            "autoscaling_profile": "OPTIMIZE_UTILIZATION",
            "default_compute_class_enabled": True,
            "auto_provisioning_defaults": {
                "service_account": self.machines.service_account,
                "oauth_scopes": [SCOPE],
                "boot_disk_kms_key": self.machines.disk_key,
                "image_type": "COS_CONTAINERD",
                "shielded_instance_config": {
                    "enable_secure_boot": True,
                    "enable_integrity_monitoring": True,
                },
                "management": {"auto_repair": True, "auto_upgrade": True},
            },
        }
        if limits:
            found["resource_limits"] = [
                {"resource_type": resource, "minimum": 0, "maximum": most}
                for resource, most in sorted(limits.items())
            ]
            found["auto_provisioning_locations"] = list(self._args.zones)
        return found

    def _address(self, cluster: gcp.container.Cluster) -> None:
        """Say how the API is reached, and with which credentials."""
        args = self._args
        proxy = args.api_proxy if args.api_mode == "tunnel" else None
        if args.settings.dns_endpoint:
            self.endpoint = cluster.control_plane_endpoints_config.apply(
                lambda found: f"https://{_dns_name(found)}"
            )
            authority: pulumi.Input[str] = ""
        else:
            self.endpoint = cluster.endpoint.apply(lambda found: f"https://{found}")
            authority = cluster.master_auth.apply(
                lambda found: found.cluster_ca_certificate or ""
            )
        self.kubeconfig = kubeconfig(
            KubeconfigArgs(
                cluster=args.cluster,
                server=self.endpoint,
                certificate_authority=authority,
                deploy_role=args.deploy_role,
                proxy=proxy,
            )
        )

    def _base_nodes(
        self,
        cluster: gcp.container.Cluster,
        nodes: BaseNodes,
        after: Sequence[pulumi.Resource],
    ) -> gcp.container.NodePool:
        args = self._args
        return gcp.container.NodePool(
            f"{self._name}-base",
            name="base",
            project=args.project.id,
            location=args.project.region,
            cluster=cluster.name,
            node_locations=list(args.zones),
            initial_node_count=1,
            autoscaling={
                "total_min_node_count": nodes.count,
                "total_max_node_count": nodes.count,
                "location_policy": "BALANCED",
            },
            management={"auto_repair": True, "auto_upgrade": True},
            upgrade_settings={"strategy": "SURGE", "max_surge": 1},
            network_config={"enable_private_nodes": True},
            node_config=cast(
                "Any",
                node_config(
                    self.machines,
                    nodes.machine,
                    -(-int(nodes.disk) // 1024**3),
                    {"role": "base-infrastructure"},
                    [Taint("CriticalAddonsOnly", "true", "PreferNoSchedule")],
                ),
            ),
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=list(after),
                ignore_changes=["initialNodeCount", "version"],
            ),
        )


def _dns_name(found: Any) -> str:
    config = found.dns_endpoint_config if found is not None else None
    return str(config.endpoint or "") if config is not None else ""


def _check(cell: str, args: ClusterArgs) -> None:
    wrong = admin_problems(cell, args.admins, args.settings.admin_groups_domain)
    if args.adopt is None and args.base_nodes is None:
        wrong.append(problem([cell, "base_nodes"], "a cluster needs base nodes"))
    if args.api_mode == "allow-list" and (
        not args.api_allow or any(cidr.endswith("/0") for cidr in args.api_allow)
    ):
        message = "the ranges must be narrower than the whole internet"
        found = ", ".join(args.api_allow)
        wrong.append(problem([cell, "api_access", "allow"], message, found))
    if wrong:
        raise InputError(wrong)
