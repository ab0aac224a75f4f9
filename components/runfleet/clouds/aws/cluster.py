"""Cluster: a private EKS cluster, its add-ons and a small group of nodes for them.

The API has a private endpoint; only mode ``allow-list`` opens a public one, to the
listed ranges. Who may use it is a list of access entries: the cell's ``admins`` and
the deployment's role, nobody by having made the cluster. Secrets are encrypted with a
key of their own, all five control-plane logs are kept, and the network plugin
enforces NetworkPolicy (EKS user guide, "Limit Pod traffic with Kubernetes network
policies").

Order matters on a first start: the network plugin, kube-proxy and the Pod Identity
agent are there before the first node, because a node without network never becomes
ready; CoreDNS and the disk driver come after the nodes that they run on.

Deployments authenticate with ``aws eks get-token``: a token that lasts minutes and
never enters the state.

An existing cluster is used with ``adopt_cluster``: its owner keeps its endpoint, keys,
logs, entries, add-ons and base nodes; only the rules that let our nodes talk with it
are made.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s

from runfleet.clouds.aws import roles
from runfleet.clouds.aws.base_nodes import BaseNodesArgs, base_nodes
from runfleet.clouds.aws.keys import (
    auto_scaling_may_use,
    encryption_key,
    logs_may_use,
    role_may_use,
    volumes_on,
)
from runfleet.clouds.aws.kubeconfig import KubeconfigArgs, kubeconfig
from runfleet.clouds.aws.names import (
    EKS_CLUSTER,
    SECURITY_GROUP,
    Place,
)
from runfleet.clouds.aws.settings import AwsSettings
from runfleet.clouds.aws.tags import tags
from runfleet.errors import RunfleetError
from runfleet.placement.plan import CellPlan
from runfleet.spec.cells import BaseNodes

LOG_TYPES = ("api", "audit", "authenticator", "controllerManager", "scheduler")
"""All control-plane logs of EKS."""

ADMIN_POLICY = "AmazonEKSClusterAdminPolicy"
"""EKS access policy of those who administer a cluster."""

EARLY_ADDONS = ("vpc-cni", "kube-proxy", "eks-pod-identity-agent")
"""Add-ons that a node needs to become ready."""

LATE_ADDONS = ("coredns", "aws-ebs-csi-driver")
"""Add-ons that need a node."""

VERSION_PIN = "eks-version"
"""Pin of the Kubernetes version."""

NODE_RELEASE_PIN = "eks-node-release"
"""Pin of the node image release of the base nodes, such as 1.35.2-20260318."""

CONTROL_PLANE_PORTS: tuple[tuple[int, str], ...] = (
    (443, "webhooks behind a service port"),
    (4443, "metrics API"),
    (8443, "webhooks"),
    (9443, "webhooks"),
    (10250, "kubelet, and webhooks that share its port number"),
)
"""Ports of nodes that the control plane connects to (EKS user guide, "View Amazon
EKS security group requirements for clusters")."""


def addon_pin(addon: str) -> str:
    """Return the name of an add-on's pin: ``eks-addon-`` and the name without owner."""
    return f"eks-addon-{addon.removeprefix('eks-').removeprefix('aws-')}"


class ClusterError(RunfleetError):
    """A cell's cluster cannot be built as the fleet file describes it."""

    exit_code = 2


@dataclass(frozen=True)
class ClusterArgs:
    """What a cluster is made from.

    Attributes:
        cluster: Name of the cluster.
        account: Account id.
        region: Region.
        labels: The required labels.
        network_id: Id of the VPC.
        subnet_ids: Private subnets for base nodes.
        control_subnet_ids: Private subnets for the API server's interfaces.
        node_security_group_id: Security group of every node.
        version: Kubernetes version.
        addons: Add-on versions by name.
        node_release: Node image release of the base nodes.
        base_nodes: The nodes that carry system pods; an adopted cluster has its own.
        api_mode: ``private``, ``tunnel`` or ``allow-list``.
        api_allow: Ranges that may connect (allow-list).
        api_proxy: Proxy that deployments connect through (tunnel).
        services_cidr: Range of service addresses; ``None`` for EKS's own choice.
        admins: Role names or ARNs that administer the cluster.
        deploy_role: ARN of the role that the deployment assumes; empty for none.
        log_retention_days: How long control-plane logs are kept.
        adopt: Name of an existing cluster to use.
    """

    cluster: str
    account: str
    region: str
    labels: Mapping[str, str]
    network_id: pulumi.Input[str]
    subnet_ids: pulumi.Input[Sequence[pulumi.Input[str]]]
    control_subnet_ids: pulumi.Input[Sequence[pulumi.Input[str]]]
    node_security_group_id: pulumi.Input[str]
    version: str
    addons: Mapping[str, str]
    node_release: str
    base_nodes: BaseNodes | None
    api_mode: str = "private"
    api_allow: Sequence[str] = ()
    api_proxy: str | None = None
    services_cidr: str | None = None
    admins: Sequence[str] = ()
    deploy_role: str = ""
    log_retention_days: int = 365
    adopt: str | None = None

    @classmethod
    def from_plan(
        cls,
        plan: CellPlan,
        network_id: pulumi.Input[str],
        subnet_ids: pulumi.Input[Sequence[pulumi.Input[str]]],
        control_subnet_ids: pulumi.Input[Sequence[pulumi.Input[str]]],
        node_security_group_id: pulumi.Input[str],
        deploy_role: str = "",
    ) -> ClusterArgs:
        """Take what a cell's cluster needs from its plan.

        Args:
            plan: The cell's plan.
            network_id: Id of the VPC.
            subnet_ids: Private subnets for base nodes.
            control_subnet_ids: Private subnets for the API server's interfaces.
            node_security_group_id: Security group of every node.
            deploy_role: ARN of the role that the deployment assumes.

        Raises:
            InputError: A setting of the cell is wrong.
        """
        cell = plan.cell
        settings = AwsSettings.of(cell)
        return cls(
            cluster=cell.adopt_cluster or cell.cluster,
            account=cell.account,
            region=cell.region,
            labels=plan.ci_labels,
            network_id=network_id,
            subnet_ids=subnet_ids,
            control_subnet_ids=control_subnet_ids,
            node_security_group_id=node_security_group_id,
            version=plan.pins.value(VERSION_PIN),
            addons={
                name: plan.pins.value(addon_pin(name))
                for name in (*EARLY_ADDONS, *LATE_ADDONS)
            },
            node_release=plan.pins.value(NODE_RELEASE_PIN),
            base_nodes=cell.base_nodes,
            api_mode=cell.api_access.mode,
            api_allow=tuple(cell.api_access.allow),
            api_proxy=cell.api_access.proxy,
            services_cidr=cell.network.services if cell.network else None,
            admins=tuple(cell.admins),
            deploy_role=deploy_role,
            log_retention_days=settings.log_retention_days,
            adopt=cell.adopt_cluster,
        )


class Cluster(pulumi.ComponentResource):
    """An EKS cluster and the Kubernetes provider for it.

    Attributes:
        cluster_name: Name of the cluster.
        cluster_arn: ARN of the cluster.
        endpoint: Address of its API.
        certificate_authority: Base64 certificate of its API.
        kubeconfig: Kubeconfig (JSON) that fetches short-lived credentials.
        kubernetes: Provider for objects in the cluster.
        control_plane_security_group_id: Security group of the control plane.
        volumes_key_arn: Key that encrypts the disks of all nodes.
        ready: What must exist before anything is put on the cluster.
    """

    cluster_name: pulumi.Output[str]
    cluster_arn: pulumi.Output[str]
    endpoint: pulumi.Output[str]
    certificate_authority: pulumi.Output[str]
    kubeconfig: pulumi.Output[str]
    kubernetes: k8s.Provider
    control_plane_security_group_id: pulumi.Output[str]
    volumes_key_arn: pulumi.Output[str]
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
        super().__init__("runfleet:aws:Cluster", name, None, opts)
        if args.api_mode == "allow-list" and (
            not args.api_allow or any(cidr.endswith("/0") for cidr in args.api_allow)
        ):
            raise ClusterError(
                f"cluster {args.cluster}: `api_access.allow` must list ranges that "
                "are narrower than the whole internet"
            )
        self._name = name
        self._args = args
        self._place = Place(args.cluster, args.account, args.region, args.labels)
        volumes_key = self._volumes_key()
        self.volumes_key_arn = volumes_key.arn
        if args.adopt is None:
            group = self._control_plane_security_group()
            cluster = self._cluster(group)
            group_id = group.id
        else:
            cluster = aws.eks.Cluster.get(f"{name}-eks", args.adopt, opts=self._opts())
            group_id = cluster.vpc_config.apply(
                lambda config: config.cluster_security_group_id or ""
            )
        rules = self._rules(group_id)
        self.control_plane_security_group_id = group_id
        self.cluster_name = cluster.name
        self.cluster_arn = cluster.arn
        self.endpoint = cluster.endpoint
        self.certificate_authority = cluster.certificate_authority.apply(
            lambda found: found.data or ""
        )
        self.kubeconfig = kubeconfig(
            KubeconfigArgs(
                cluster=args.cluster,
                region=args.region,
                endpoint=self.endpoint,
                certificate_authority=self.certificate_authority,
                deploy_role=args.deploy_role,
                proxy=args.api_proxy if args.api_mode == "tunnel" else None,
            )
        )
        ready: list[pulumi.Resource] = [cluster, *rules]
        if args.adopt is None:
            if args.base_nodes is None:
                raise ClusterError(f"cluster {args.cluster} needs `base_nodes`")
            ready += self._entries(cluster)
            early = [self._addon(cluster, addon, []) for addon in EARLY_ADDONS]
            nodes = base_nodes(
                f"{name}-base",
                BaseNodesArgs(
                    place=self._place,
                    cluster_name=cluster.name,
                    subnet_ids=args.subnet_ids,
                    security_group_id=args.node_security_group_id,
                    volumes_key_arn=volumes_key.arn,
                    version=args.version,
                    release=args.node_release,
                    nodes=args.base_nodes,
                ),
                self,
                [*early, *rules],
            )
            late = [self._addon(cluster, addon, [nodes]) for addon in LATE_ADDONS]
            ready += [*early, nodes, *late]
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
                "cluster_arn": self.cluster_arn,
                "endpoint": self.endpoint,
                "certificate_authority": self.certificate_authority,
                "kubeconfig": self.kubeconfig,
                "control_plane_security_group_id": group_id,
                "volumes_key_arn": self.volumes_key_arn,
            }
        )

    def _opts(self, **more: Any) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self, **more)

    def _tags(self, suffix: str) -> dict[str, str]:
        return tags(self._args.labels, Name=f"{self._name}-{suffix}")

    def _volumes_key(self) -> aws.kms.Key:
        return encryption_key(
            f"{self._name}-volumes-key",
            "volumes",
            self._place,
            auto_scaling_may_use(self._place),
            self,
        )

    def _control_plane_security_group(self) -> aws.ec2.SecurityGroup:
        return aws.ec2.SecurityGroup(
            f"{self._name}-control-plane",
            name=SECURITY_GROUP.encode(self._args.cluster, "control-plane"),
            description="Control plane: reached by nodes, reaches nodes",
            vpc_id=self._args.network_id,
            tags=self._tags("control-plane"),
            opts=self._opts(),
        )

    def _rules(self, group_id: pulumi.Output[str]) -> list[pulumi.Resource]:
        """Let nodes and control plane talk to each other, on named ports only."""
        name, nodes = self._name, self._args.node_security_group_id
        rules: list[pulumi.Resource] = [
            aws.vpc.SecurityGroupIngressRule(
                f"{name}-api-from-nodes",
                security_group_id=group_id,
                description="API from nodes",
                ip_protocol="tcp",
                from_port=443,
                to_port=443,
                referenced_security_group_id=nodes,
                tags=self._tags("api-from-nodes"),
                opts=self._opts(),
            )
        ]
        for port, reason in CONTROL_PLANE_PORTS:
            shared: dict[str, Any] = {
                "ip_protocol": "tcp",
                "from_port": port,
                "to_port": port,
                "description": f"Control plane to nodes: {reason}",
            }
            rules += [
                aws.vpc.SecurityGroupEgressRule(
                    f"{name}-api-to-nodes-{port}",
                    security_group_id=group_id,
                    referenced_security_group_id=nodes,
                    tags=self._tags(f"api-to-nodes-{port}"),
                    opts=self._opts(),
                    **shared,
                ),
                aws.vpc.SecurityGroupIngressRule(
                    f"{name}-nodes-from-api-{port}",
                    security_group_id=nodes,
                    referenced_security_group_id=group_id,
                    tags=self._tags(f"nodes-from-api-{port}"),
                    opts=self._opts(),
                    **shared,
                ),
            ]
        return rules

    def _cluster(self, group: aws.ec2.SecurityGroup) -> aws.eks.Cluster:
        name, args = self._name, self._args
        role, attached = roles.service_role(
            f"{name}-role",
            "control-plane",
            self._place,
            roles.trusts_service("eks.amazonaws.com"),
            self,
            managed=("AmazonEKSClusterPolicy",),
        )
        secrets = encryption_key(
            f"{name}-secrets-key",
            "secrets",
            self._place,
            role_may_use("ControlPlane", role.arn),
            self,
        )
        log_name = f"/aws/eks/{args.cluster}/cluster"
        logs_key = encryption_key(
            f"{name}-logs-key",
            "control-plane-logs",
            self._place,
            [logs_may_use(self._place, log_name)],
            self,
        )
        logs = aws.cloudwatch.LogGroup(
            f"{name}-logs",
            name=log_name,
            retention_in_days=args.log_retention_days,
            kms_key_id=logs_key.arn,
            deletion_protection_enabled=True,
            tags=self._tags("logs"),
            opts=self._opts(protect=True, retain_on_delete=True),
        )
        public = args.api_mode == "allow-list"
        return aws.eks.Cluster(
            f"{name}-eks",
            name=EKS_CLUSTER.encode(args.cluster),
            version=args.version,
            role_arn=role.arn,
            vpc_config=aws.eks.ClusterVpcConfigArgs(
                subnet_ids=args.control_subnet_ids,
                security_group_ids=[group.id],
                endpoint_private_access=True,
                endpoint_public_access=public,
                public_access_cidrs=list(args.api_allow) if public else None,
            ),
            kubernetes_network_config=aws.eks.ClusterKubernetesNetworkConfigArgs(
                ip_family="ipv4", service_ipv4_cidr=args.services_cidr
            ),
            access_config=aws.eks.ClusterAccessConfigArgs(
                authentication_mode="API",
                bootstrap_cluster_creator_admin_permissions=False,
            ),
            encryption_config=aws.eks.ClusterEncryptionConfigArgs(
                provider=aws.eks.ClusterEncryptionConfigProviderArgs(
                    key_arn=secrets.arn
                ),
                resources=["secrets"],
            ),
            enabled_cluster_log_types=list(LOG_TYPES),
            upgrade_policy=aws.eks.ClusterUpgradePolicyArgs(support_type="STANDARD"),
            bootstrap_self_managed_addons=False,
            deletion_protection=True,
            tags=self._tags("eks"),
            opts=self._opts(
                protect=True, retain_on_delete=True, depends_on=[logs, *attached]
            ),
        )

    def _entries(self, cluster: aws.eks.Cluster) -> list[pulumi.Resource]:
        """Give the cell's admins and the deployment access to the API."""
        wanted = {
            f"admin-{admin.rpartition('/')[2]}": admin for admin in self._args.admins
        }
        arns = {self._place.role_arn(admin) for admin in self._args.admins}
        if self._args.deploy_role and self._args.deploy_role not in arns:
            wanted["deployment"] = self._args.deploy_role
        made: list[pulumi.Resource] = []
        for suffix, principal in wanted.items():
            entry = aws.eks.AccessEntry(
                f"{self._name}-{suffix}",
                cluster_name=cluster.name,
                principal_arn=self._place.role_arn(principal),
                type="STANDARD",
                tags=self._tags(suffix),
                opts=self._opts(),
            )
            policy = aws.eks.AccessPolicyAssociation(
                f"{self._name}-{suffix}-policy",
                cluster_name=cluster.name,
                principal_arn=entry.principal_arn,
                policy_arn=f"arn:{self._place.partition}:eks::aws:"
                f"cluster-access-policy/{ADMIN_POLICY}",
                access_scope=aws.eks.AccessPolicyAssociationAccessScopeArgs(
                    type="cluster"
                ),
                opts=self._opts(depends_on=[entry]),
            )
            made += [entry, policy]
        return made

    def _addon(
        self,
        cluster: aws.eks.Cluster,
        addon: str,
        after: Sequence[pulumi.Resource],
    ) -> aws.eks.Addon:
        options: dict[str, Any] = {}
        attached: list[pulumi.Resource] = []
        if addon == "vpc-cni":
            options["configuration_values"] = json.dumps(
                {"enableNetworkPolicy": "true"}
            )
            role, attached = self._addon_role(
                addon, "aws-node", ("AmazonEKS_CNI_Policy",)
            )
            options["pod_identity_associations"] = [
                aws.eks.AddonPodIdentityAssociationArgs(
                    service_account="aws-node", role_arn=role.arn
                )
            ]
        elif addon == "aws-ebs-csi-driver":
            role, attached = self._addon_role(
                addon,
                "ebs-csi-controller-sa",
                ("AmazonEBSCSIDriverPolicyV2",),
                {"volumes": volumes_on(self.volumes_key_arn, self._args.region)},
            )
            options["pod_identity_associations"] = [
                aws.eks.AddonPodIdentityAssociationArgs(
                    service_account="ebs-csi-controller-sa", role_arn=role.arn
                )
            ]
        return aws.eks.Addon(
            f"{self._name}-addon-{addon}",
            cluster_name=cluster.name,
            addon_name=addon,
            addon_version=self._args.addons[addon],
            resolve_conflicts_on_create="OVERWRITE",
            resolve_conflicts_on_update="OVERWRITE",
            tags=self._tags(f"addon-{addon}"),
            opts=self._opts(depends_on=[*after, *attached]),
            **options,
        )

    def _addon_role(
        self,
        addon: str,
        service_account: str,
        managed: Sequence[str],
        policies: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    ) -> tuple[aws.iam.Role, list[pulumi.Resource]]:
        return roles.service_role(
            f"{self._name}-addon-{addon}-role",
            addon,
            self._place,
            roles.trusts_pod(self._place, "kube-system", service_account),
            self,
            managed=managed,
            policies=policies,
        )
