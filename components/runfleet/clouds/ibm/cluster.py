"""Cluster: a private IBM Cloud Kubernetes Service cluster with its base workers.

The API has a virtual private endpoint in the VPC and no public one: a public endpoint
of this service cannot be narrowed to ranges, so mode ``allow-list`` is refused. Its
secrets, and the disks of every worker, are encrypted with root keys of Key Protect.
Traffic of workers to the internet is blocked by the service ("secure by default",
Kubernetes 1.30 and later) and opened again by our security group, for HTTPS to the
cell's ranges only. The network plugin is Calico, which enforces NetworkPolicy.

The default worker pool carries system pods. It prefers not to take others, by the
taint ``CriticalAddonsOnly`` with effect ``PreferNoSchedule``: IBM's own add-ons must
find room on it and do not all tolerate a strict one.

Arguments of the default pool are applied once by the provider. A change of them asks
for a replacement of the cluster, which the protection refuses: resize the default pool
with ``ibmcloud ks worker-pool`` and take the change into the fleet file.

How deployments reach the API is in :mod:`runfleet.clouds.ibm.kubeconfig`. Who may
administer the cluster is decided by IAM roles on it, not here.

Audit logs of the API server are sent by a webhook that no resource of the provider
sets; ``docs/deploying-to-ibm.md`` has the command.

An existing cluster is used with ``adopt_cluster`` (its id): its owner keeps its
endpoints, keys and base workers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_kubernetes as k8s

from runfleet.clouds.ibm.flavors import secondary_storage, worker_flavor
from runfleet.clouds.ibm.keys import Vault
from runfleet.clouds.ibm.kubeconfig import KubeconfigArgs, kubeconfig
from runfleet.clouds.ibm.names import CLUSTER
from runfleet.clouds.ibm.resources.containers import (
    ContainerVpcCluster,
    KmsConfig,
    WorkerTaint,
    WorkerZone,
)
from runfleet.clouds.ibm.settings import IbmSettings
from runfleet.clouds.ibm.tags import tags
from runfleet.errors import RunfleetError
from runfleet.placement.plan import CellPlan
from runfleet.spec.cells import BaseNodes

VERSION_PIN = "iks-version"
"""Pin of the Kubernetes version, as IBM Cloud spells it."""

BASE_TAINT = WorkerTaint("CriticalAddonsOnly", "true", "PreferNoSchedule")
"""Keeps job pods off the base workers."""

OWN_GROUP = "cluster"
"""The provider's word for the security group that the service keeps for a cluster."""


class ClusterError(RunfleetError):
    """A cell's cluster cannot be built as the fleet file describes it."""

    exit_code = 2


@dataclass(frozen=True)
class ClusterArgs:
    """What a cluster is made from.

    Attributes:
        cluster: Name of the cluster.
        labels: The required labels.
        network_id: Id of the VPC.
        subnets: Subnets for workers, by zone.
        node_security_group_id: Security group of every worker, beside IBM's own.
        vault: Key Protect instance of the platform.
        version: Kubernetes version.
        base_nodes: The workers that carry system pods; an adopted cluster has its own.
        api_mode: ``private`` or ``tunnel``.
        api_proxy: Proxy that deployments connect through (tunnel).
        pods_cidr: Range of pods; ``None`` for the service's own choice.
        services_cidr: Range of service addresses; ``None`` for the same.
        deploy_profile: Trusted profile that the deployment takes on; empty for none.
        certificate_authority: Base64 certificate of the API.
        oidc_issuer: Issuer of service account tokens; empty where it is not public.
        resource_group: Id of the resource group; ``None`` for the default one.
        adopt: Id of an existing cluster to use.
    """

    cluster: str
    labels: Mapping[str, str]
    network_id: pulumi.Input[str]
    subnets: Mapping[str, pulumi.Input[str]]
    node_security_group_id: pulumi.Input[str]
    vault: Vault
    version: str
    base_nodes: BaseNodes | None
    api_mode: str = "private"
    api_proxy: str | None = None
    pods_cidr: str | None = None
    services_cidr: str | None = None
    deploy_profile: str = ""
    certificate_authority: str = ""
    oidc_issuer: str = ""
    resource_group: str | None = None
    adopt: str | None = None

    @classmethod
    def from_plan(
        cls,
        plan: CellPlan,
        *,
        network_id: pulumi.Input[str],
        subnets: Mapping[str, pulumi.Input[str]],
        node_security_group_id: pulumi.Input[str],
        vault: Vault,
        deploy_profile: str = "",
    ) -> ClusterArgs:
        """Take what a cell's cluster needs from its plan.

        Args:
            plan: The cell's plan.
            network_id: Id of the VPC.
            subnets: Subnets for workers, by zone.
            node_security_group_id: Security group of every worker.
            vault: Key Protect instance of the platform.
            deploy_profile: Trusted profile that the deployment takes on.

        Raises:
            InputError: A setting of the cell is wrong.
        """
        cell = plan.cell
        settings = IbmSettings.of(cell)
        return cls(
            cluster=cell.cluster,
            labels=plan.ci_labels,
            network_id=network_id,
            subnets=subnets,
            node_security_group_id=node_security_group_id,
            vault=vault,
            version=plan.pins.value(VERSION_PIN),
            base_nodes=cell.base_nodes,
            api_mode=cell.api_access.mode,
            api_proxy=cell.api_access.proxy,
            pods_cidr=cell.network.pods if cell.network else None,
            services_cidr=cell.network.services if cell.network else None,
            deploy_profile=deploy_profile,
            certificate_authority=settings.certificate_authority,
            oidc_issuer=settings.oidc_issuer or "",
            resource_group=settings.resource_group,
            adopt=cell.adopt_cluster,
        )


class Cluster(pulumi.ComponentResource):
    """A private cluster and the Kubernetes provider for it.

    Attributes:
        cluster_name: Name of the cluster.
        cluster_id: Id of the cluster.
        cluster_crn: CRN of the cluster, which identities are linked to.
        endpoint: Address of its API.
        kubeconfig: Kubeconfig (JSON) that fetches short-lived credentials.
        kubernetes: Provider for objects in the cluster.
        oidc_issuer: Issuer of its service account tokens; empty where it is not public.
        node_key_id: Root key of the workers' disks.
        ready: What must exist before anything is put on the cluster.
    """

    cluster_name: pulumi.Output[str]
    cluster_id: pulumi.Output[str]
    cluster_crn: pulumi.Output[str]
    endpoint: pulumi.Output[str]
    kubeconfig: pulumi.Output[str]
    kubernetes: k8s.Provider
    oidc_issuer: pulumi.Output[str]
    node_key_id: pulumi.Output[str]
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
            ClusterError: The cluster cannot be built as the fleet file describes it.
            FlavorError: Base workers cannot have their machine or disk.
        """
        _check(args)
        super().__init__("runfleet:ibm:Cluster", name, None, opts)
        self._name = name
        self._args = args
        disks = args.vault.key("workers", f"Disks of the workers of {args.cluster}")
        self.node_key_id = disks.key_id
        authorized = [
            args.vault.usable_by("clusters", "containers-kubernetes"),
            args.vault.usable_by("disks", "server-protect"),
        ]
        if args.adopt is None:
            cluster = self._cluster(authorized)
        else:
            cluster = ContainerVpcCluster.existing(
                f"{name}-iks", args.adopt, self._opts()
            )
        if not args.certificate_authority:
            pulumi.log.warn(
                "the certificate of the API is not known: set "
                f"settings.certificate_authority of the cell of {args.cluster} once "
                "the cluster is made (docs/deploying-to-ibm.md)",
                self,
            )
        self.cluster_name = pulumi.Output.from_input(args.cluster)
        self.cluster_id = cluster.id
        self.cluster_crn = cluster.crn
        self.endpoint = cluster.vpe_service_endpoint_url
        self.oidc_issuer = pulumi.Output.from_input(args.oidc_issuer)
        self.kubeconfig = kubeconfig(
            KubeconfigArgs(
                cluster=args.cluster,
                endpoint=self.endpoint,
                certificate_authority=args.certificate_authority,
                profile=args.deploy_profile,
                proxy=args.api_proxy if args.api_mode == "tunnel" else None,
            )
        )
        self.kubernetes = k8s.Provider(
            f"{name}-kubernetes",
            kubeconfig=self.kubeconfig,
            enable_server_side_apply=True,
            opts=self._opts(),
        )
        self.ready = (cluster, *authorized)
        self.register_outputs(
            {
                "cluster_name": self.cluster_name,
                "cluster_id": self.cluster_id,
                "cluster_crn": self.cluster_crn,
                "endpoint": self.endpoint,
                "kubeconfig": self.kubeconfig,
                "oidc_issuer": self.oidc_issuer,
            }
        )

    def _opts(self, **more: Any) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self, **more)

    def _cluster(self, authorized: Sequence[pulumi.Resource]) -> ContainerVpcCluster:
        args = self._args
        nodes = args.base_nodes
        if nodes is None:
            raise ClusterError(f"cluster {args.cluster} needs `base_nodes`")
        secrets = args.vault.key("secrets", f"Secrets of cluster {args.cluster}")
        zones = [WorkerZone(zone, subnet) for zone, subnet in args.subnets.items()]
        return ContainerVpcCluster(
            f"{self._name}-iks",
            name=args.cluster,
            vpc_id=args.network_id,
            flavor=worker_flavor(nodes.machine, "base_nodes.machine"),
            zones=zones,
            worker_count=math.ceil(nodes.count / len(zones)),
            kube_version=args.version,
            pod_subnet=args.pods_cidr,
            service_subnet=args.services_cidr,
            resource_group_id=args.resource_group,
            kms_config=KmsConfig(args.vault.guid, secrets.key_id, True),
            kms_instance_id=args.vault.guid,
            crk=self.node_key_id,
            security_groups=[OWN_GROUP, args.node_security_group_id],
            secondary_storage=secondary_storage(nodes.disk.gib, "base_nodes.disk"),
            taints=[BASE_TAINT],
            worker_labels={**args.labels, "runfleet/part": "base"},
            disable_public_service_endpoint=True,
            disable_outbound_traffic_protection=False,
            image_security_enforcement=True,
            force_delete_storage=False,
            update_all_workers=False,
            wait_till="OneWorkerNodeReady",
            tags=tags(args.labels),
            opts=self._opts(
                protect=True,
                retain_on_delete=True,
                depends_on=list(authorized),
                custom_timeouts=pulumi.CustomTimeouts(create="2h", update="2h"),
            ),
        )


def _check(args: ClusterArgs) -> None:
    if args.api_mode == "allow-list":
        raise ClusterError(
            f"cluster {args.cluster}: `api_access.mode: allow-list` cannot be built: a "
            "public endpoint of IBM Cloud Kubernetes Service is open to every address; "
            "use private or tunnel"
        )
    if args.adopt is None and not CLUSTER.accepts(args.cluster):
        raise ClusterError(
            f"cluster {args.cluster!r}: IBM Cloud wants a letter first and at most "
            f"{CLUSTER.limit} characters"
        )
