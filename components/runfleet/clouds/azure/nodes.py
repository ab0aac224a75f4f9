"""NodePool: machines of one shape, as AKS's Karpenter or its cluster autoscaler has it.

Which of the two is the cell's business (:mod:`runfleet.clouds.azure.modes`); one node
pool of the plan is one shape in both. Nodes have private addresses, are encrypted at
the host on top of the encryption of their disks, have no SSH, and give an identity that
can do nothing (the kubelet's). Jobs reach the metadata service no more than any other
address: NetworkPolicy denies it, which Cilium enforces.

*Auto-provisioned*: a ``NodePool`` and an ``AKSNodeClass``. A node is given back only
when it is empty (``WhenEmpty``): a job cannot be moved.

*Cluster-autoscaled*: an agent pool from zero. NVIDIA drivers are installed by AKS, AMD
has none that AKS installs (setting ``driver: None``, then AMD's operator does). The
device plugins are the runner side's.

Kubelet settings keep what the incumbent found by experience (pytorch/ci-infra at
b1ce4a6, ``osdc/modules/nodepools/scripts/python/generate_nodepools.py``): static CPU
manager, best-effort topology, small container logs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi
from pulumi_azure_native import containerservice
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from runfleet.clouds.azure.autoscaler import agent_pool_name
from runfleet.clouds.azure.modes import NODE_LIMIT, Mode, mode_of
from runfleet.clouds.azure.names import KARPENTER_NAME
from runfleet.clouds.azure.settings import AzureSettings, zone_labels, zone_numbers
from runfleet.clouds.azure.tags import tags, with_labels
from runfleet.errors import RunfleetError
from runfleet.placement.plan import CellPlan, NodePoolPlan
from runfleet.spec.pools import Capacity, Pool, PoolMachine, Taint

CONSOLIDATE_AFTER = {"gpu": 600, "cpu": 300, "bare-metal": 900}
"""How long an empty node is kept by default, in seconds: machines that take longer to
start are kept longer."""

DISRUPTION = 20
"""Share of a pool's nodes that may be given back at once by default, in percent."""

EXPIRE_AFTER = "720h"
"""Age at which a node is replaced, so that all run a current image within a month."""

TERMINATION_GRACE = "24h"
"""How long a job may hold up a node that is to go; the longest job runs a day."""

SMALLEST_DISK_GIB = 30
"""The smallest OS disk of a node (AKS documentation, ``osDiskSizeGB``)."""

TOPOLOGY = "best-effort"
"""The kubelet's topology policy by default."""

DRIVERS = {"nvidia": "Install"}
"""GPU vendors whose driver AKS installs."""

_DELETE = pulumi.CustomTimeouts(delete="25h")


class NodePoolError(RunfleetError):
    """A node pool cannot be built as the fleet file describes it."""

    exit_code = 2


@dataclass(frozen=True)
class NodePoolArgs:
    """What a node pool is made from.

    Attributes:
        mode: Who starts its machines.
        pool_name: Name of the node pool, unique in the cell.
        arch: CPU architecture, as Kubernetes says it.
        gpu_vendor: Who makes its GPUs; empty without.
        machine: The shape.
        vm_size: What Azure calls it.
        weight: Preference, 1 to 100, highest first.
        zones: Zones by number.
        zone_labels: Zones as nodes are labelled.
        node_labels: Node labels that pods select.
        taints: Node taints.
        labels: The required labels.
        node_image: Operating system.
        most_nodes: Most machines.
        vcpu: Virtual CPUs of one, where they are known.
        consolidate_after: How long an empty node is kept, in seconds.
        disruption: Share of nodes that may be given back at once, in percent.
        reservation: Resource id of the capacity reservation group; empty for none.
        cluster_name: Name of the cluster.
        cluster_group: Name of its resource group.
        subnet_id: Subnet for nodes.
        kubernetes: Provider of the cluster.
        after: The autoscaler: it must outlive the node claims.
    """

    mode: Mode
    pool_name: str
    arch: str
    gpu_vendor: str
    machine: PoolMachine
    vm_size: str
    weight: int
    zones: Sequence[str]
    zone_labels: Sequence[str]
    node_labels: Mapping[str, str]
    taints: Sequence[Taint]
    labels: Mapping[str, str]
    node_image: str
    most_nodes: int
    vcpu: float | None
    consolidate_after: int
    disruption: int
    cluster_name: pulumi.Input[str]
    cluster_group: pulumi.Input[str]
    subnet_id: pulumi.Output[str]
    kubernetes: pulumi.ProviderResource
    reservation: str = ""
    after: Sequence[pulumi.Resource] = field(default_factory=tuple[()])

    @classmethod
    def from_plan(
        cls,
        plan: CellPlan,
        pool: NodePoolPlan,
        *,
        cluster_name: pulumi.Input[str],
        cluster_group: pulumi.Input[str],
        subnet_id: pulumi.Output[str],
        kubernetes: pulumi.ProviderResource,
        after: Sequence[pulumi.Resource],
    ) -> NodePoolArgs:
        """Take what a node pool needs from its plan and the other rooms.

        Args:
            plan: The cell's plan.
            pool: The node pool's plan.
            cluster_name: Name of the cluster.
            cluster_group: Name of its resource group.
            subnet_id: Subnet for nodes.
            kubernetes: Provider of the cluster.
            after: What must outlive the machines.

        Raises:
            InputError: A setting of the cell is wrong, or its shapes fit no mode.
            NodePoolError: The pool asks for what Azure does not have.
        """
        settings = AzureSettings.of(plan.cell)
        reserved = [found.id for found in pool.reservations]
        if len(reserved) > 1:
            raise NodePoolError(
                f"node pool {pool.name} draws from {len(reserved)} reservations, AKS "
                "allows one capacity reservation group"
            )
        if pool.machine.image_selector:
            raise NodePoolError(
                f"node pool {pool.name} has an `image_selector`: AKS nodes run AKS's "
                "own images"
            )
        return cls(
            mode=mode_of(plan),
            pool_name=pool.name,
            arch=pool.pool.arch,
            gpu_vendor=gpu_vendor(plan, pool),
            machine=pool.machine,
            vm_size=pool.node_name,
            weight=pool.weight,
            zones=zone_numbers(plan.cell),
            zone_labels=zone_labels(plan.cell),
            node_labels=pool.labels,
            taints=pool.taints,
            labels=pool.ci_labels,
            node_image=settings.node_image,
            most_nodes=most_nodes(plan, pool, settings.pool_limits),
            vcpu=pool.shape.vcpu if pool.shape is not None else None,
            consolidate_after=consolidate_after(pool.pool, pool.machine),
            disruption=disruption(pool.pool),
            reservation=reserved[0] if reserved else "",
            cluster_name=cluster_name,
            cluster_group=cluster_group,
            subnet_id=subnet_id,
            kubernetes=kubernetes,
            after=tuple(after),
        )


class NodePool(pulumi.ComponentResource):
    """Machines of one shape.

    Attributes:
        pool_name: Name of the NodePool or agent pool.
    """

    pool_name: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        args: NodePoolArgs,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Make the node pool.

        Args:
            name: Name of the component; children are called ``<name>-<suffix>``.
            args: What it is made from.
            opts: Options; the explicit provider comes with them.
        """
        options = with_labels(opts, args.labels)
        super().__init__("runfleet:azure:NodePool", name, None, options)
        if args.mode is Mode.AUTO_PROVISIONED:
            self.pool_name = self._provisioned(name, args)
        else:
            self.pool_name = self._agent_pool(name, args)
        self.register_outputs({"pool_name": self.pool_name})

    def _provisioned(self, name: str, args: NodePoolArgs) -> pulumi.Output[str]:
        """Make the NodePool and the AKSNodeClass; the NodePool is deleted first."""
        object_name = KARPENTER_NAME.encode(*args.pool_name.split("--"))
        node_class = CustomResource(
            f"{name}-class",
            api_version="karpenter.azure.com/v1beta1",
            kind="AKSNodeClass",
            metadata=ObjectMetaArgs(name=object_name, labels=dict(args.labels)),
            spec=node_class_spec(args),
            opts=pulumi.ResourceOptions(
                parent=self,
                provider=args.kubernetes,
                depends_on=list(args.after),
                custom_timeouts=_DELETE,
            ),
        )
        pool = CustomResource(
            f"{name}-pool",
            api_version="karpenter.sh/v1",
            kind="NodePool",
            metadata=ObjectMetaArgs(
                name=object_name,
                labels=dict(args.labels),
                annotations={"pulumi.com/deletionPropagationPolicy": "foreground"},
            ),
            spec=node_pool_spec(args, object_name),
            opts=pulumi.ResourceOptions(
                parent=self,
                provider=args.kubernetes,
                depends_on=[node_class],
                custom_timeouts=_DELETE,
            ),
        )
        return pulumi.Output.all(pool.id, object_name).apply(lambda ids: str(ids[1]))

    def _agent_pool(self, name: str, args: NodePoolArgs) -> pulumi.Output[str]:
        """Make the agent pool, from zero; the autoscaler owns its size."""
        machine = args.machine
        pool = containerservice.AgentPool(
            f"{name}-pool",
            agent_pool_name=agent_pool_name(args.pool_name),
            resource_name_=args.cluster_name,
            resource_group_name=args.cluster_group,
            mode="User",
            type="VirtualMachineScaleSets",
            os_type="Linux",
            os_sku=args.node_image,
            vm_size=args.vm_size,
            availability_zones=list(args.zones),
            enable_auto_scaling=True,
            count=0,
            min_count=0,
            max_count=args.most_nodes,
            scale_down_mode="Delete",
            scale_set_priority="Regular",
            vnet_subnet_id=args.subnet_id,
            os_disk_size_gb=disk_gib(machine),
            os_disk_type="Ephemeral" if machine.nvme else "Managed",
            kubelet_disk_type="OS",
            enable_encryption_at_host=True,
            enable_node_public_ip=False,
            node_labels={**args.labels, **args.node_labels},
            node_taints=[f"{t.key}={t.value}:{t.effect}" for t in args.taints],
            capacity_reservation_group_id=args.reservation or None,
            gpu_profile=containerservice.GPUProfileArgs(
                driver=DRIVERS.get(args.gpu_vendor, "None")
            )
            if args.gpu_vendor
            else None,
            kubelet_config=containerservice.KubeletConfigArgs(
                cpu_manager_policy="static",
                topology_manager_policy=machine.topology_policy or TOPOLOGY,
                container_log_max_size_mb=50,
                container_log_max_files=5,
            ),
            security_profile=containerservice.AgentPoolSecurityProfileArgs(
                # NVIDIA's driver is not signed for Secure Boot on AKS's images.
                enable_secure_boot=not args.gpu_vendor and args.arch == "amd64",
                enable_vtpm=not args.gpu_vendor and args.arch == "amd64",
                ssh_access="Disabled",
            ),
            upgrade_settings=containerservice.AgentPoolUpgradeSettingsArgs(
                max_surge="0" if args.gpu_vendor or args.reservation else "10%",
                max_unavailable="1" if args.gpu_vendor or args.reservation else None,
                drain_timeout_in_minutes=1440,
            ),
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=list(args.after),
                ignore_changes=["count"],
                custom_timeouts=_DELETE,
            ),
        )
        return pool.name.apply(str)


def node_pool_spec(args: NodePoolArgs, node_class: str) -> dict[str, Any]:
    """Return the specification of the NodePool.

    Args:
        args: What the node pool is made from.
        node_class: Name of its AKSNodeClass.
    """
    spot = args.machine.capacity is Capacity.SPOT
    requirements = {
        "kubernetes.io/arch": [args.arch],
        "kubernetes.io/os": ["linux"],
        "karpenter.sh/capacity-type": ["spot" if spot else "on-demand"],
        "node.kubernetes.io/instance-type": [args.vm_size],
        "topology.kubernetes.io/zone": list(args.zone_labels),
    }
    spec: dict[str, Any] = {
        "weight": args.weight,
        "disruption": {
            "consolidationPolicy": "WhenEmpty",
            "consolidateAfter": duration(args.consolidate_after),
            "budgets": [{"nodes": f"{args.disruption}%"}],
        },
        "template": {
            "metadata": {"labels": {**args.labels, **args.node_labels}},
            "spec": {
                "nodeClassRef": {
                    "group": "karpenter.azure.com",
                    "kind": "AKSNodeClass",
                    "name": node_class,
                },
                "requirements": [
                    {"key": key, "operator": "In", "values": values}
                    for key, values in requirements.items()
                ],
                "taints": [
                    {"key": taint.key, "value": taint.value, "effect": taint.effect}
                    for taint in args.taints
                ],
                "expireAfter": EXPIRE_AFTER,
                "terminationGracePeriod": TERMINATION_GRACE,
            },
        },
    }
    spec["limits"] = {"nodes": str(args.most_nodes)}
    if args.vcpu is not None:
        spec["limits"]["cpu"] = f"{args.vcpu * args.most_nodes:g}"
    return spec


def node_class_spec(args: NodePoolArgs) -> dict[str, Any]:
    """Return the specification of the AKSNodeClass.

    Trusted Launch has images for amd64 only (Azure/karpenter-provider-azure at
    352646f5, ``pkg/providers/imagefamily``).
    """
    security: dict[str, Any] = {"encryptionAtHost": True}
    if args.arch == "amd64":
        security["trustedLaunch"] = {"secureBoot": True, "vtpm": True}
    return {
        "imageFamily": args.node_image,
        "osDiskSizeGB": disk_gib(args.machine),
        "vnetSubnetID": args.subnet_id,
        "security": security,
        "kubelet": {
            "cpuManagerPolicy": "static",
            "topologyManagerPolicy": args.machine.topology_policy or TOPOLOGY,
            "containerLogMaxSize": "50Mi",
            "containerLogMaxFiles": 5,
        },
        "tags": tags(args.labels),
    }


def gpu_vendor(plan: CellPlan, pool: NodePoolPlan) -> str:
    """Return who makes the GPUs of a pool's machines; empty without GPUs.

    The placement says it; without one the classes that the pool serves do.
    """
    if not pool.pool.gpu:
        return ""
    if pool.shape is not None and pool.shape.accelerator_vendor:
        return pool.shape.accelerator_vendor
    vendors = [
        planned.runner_class.hardware.accelerator.vendor
        for planned in plan.classes
        if planned.pool.name == pool.pool.name
        and planned.runner_class.hardware.accelerator is not None
    ]
    return vendors[0] if vendors else "nvidia"


def most_nodes(plan: CellPlan, pool: NodePoolPlan, limits: Mapping[str, int]) -> int:
    """Return the most machines of a node pool.

    It is the least of what placement, the cell's settings and AKS allow, and of what
    all classes of the pool could use if each job had a machine to itself.
    """
    wanted = 0
    for planned in plan.classes:
        wanted_here = planned.runner_class.release == pool.release
        if planned.pool.name == pool.pool.name and wanted_here:
            scale = planned.runner_class.scale
            wanted += NODE_LIMIT if scale.max is None else scale.max
    known = [pool.limit, limits.get(pool.pool.name), NODE_LIMIT, max(1, wanted)]
    return max(1, min(limit for limit in known if limit is not None))


def disk_gib(machine: PoolMachine) -> int:
    """Return the size of the OS disk in GiB, not below what Azure allows."""
    return max(SMALLEST_DISK_GIB, math.ceil(machine.disk.gib))


def consolidate_after(pool: Pool, machine: PoolMachine) -> int:
    """Return how long an empty node is kept, in seconds."""
    if pool.consolidate_after is not None:
        return pool.consolidate_after.seconds
    if machine.bare_metal:
        return CONSOLIDATE_AFTER["bare-metal"]
    return CONSOLIDATE_AFTER["gpu" if pool.gpu else "cpu"]


def disruption(pool: Pool) -> int:
    """Return the share of nodes that may be given back at once, in whole percent.

    A share above zero never becomes zero, which would keep empty nodes for good.
    """
    if pool.disruption is None:
        return DISRUPTION
    share = pool.disruption.value
    return 0 if share <= 0 else max(1, min(100, math.floor(share)))


def duration(seconds: int) -> str:
    """Return a duration as Karpenter writes it: hours, minutes and seconds only."""
    for unit, length in (("h", 3600), ("m", 60)):
        if seconds and seconds % length == 0:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"
