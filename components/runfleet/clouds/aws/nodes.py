"""NodePool: machines of one shape, as Karpenter's NodePool and EC2NodeClass.

Each node pool of the plan is one instance type, because the order in which sizes are
tried is the fleet's own (weights) and the taint ``instance-type`` names one. Nodes are
private, their disks are encrypted with the cluster's key, and pods cannot reach the
metadata service: it takes tokens only, and the answer's hop limit of 1 ends at the
node.

A node is given back only when it is empty (``WhenEmpty``): a job cannot be moved.

The values that the incumbent found by experience are kept (pytorch/ci-infra at
b1ce4a6, ``osdc/modules/nodepools/scripts/python/generate_nodepools.py``): disks of
16,000 IOPS and 1,000 MB/s, the static CPU manager, the topology manager's
``best-effort`` per container unless the pool says otherwise, small container logs.

The instance profile is ours and not made by Karpenter from a role: so Karpenter needs
no permission to change IAM, and no route to IAM, which has no private endpoint
(Karpenter v1.14 documentation, "NodeClasses", ``spec.instanceProfile``).

For a GPU machine the alias ``al2023`` selects the image with NVIDIA's driver by itself
(the same page, ``spec.amiSelectorTerms``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs
from ruamel.yaml import YAML
from ruamel.yaml.compat import StringIO

from runfleet.clouds.aws.names import KARPENTER_NAME
from runfleet.clouds.aws.settings import AwsSettings, StartupTaint
from runfleet.clouds.aws.tags import KARPENTER_TAGS, LIMIT, tags
from runfleet.placement.plan import CellPlan, NodePoolPlan
from runfleet.spec.pools import Capacity, Pool, PoolMachine, Taint

IMAGE_PIN = "eks-image-al2023"
"""Pin of the machine image: Karpenter's alias, such as al2023@v20260318."""

CONSOLIDATE_AFTER = {"gpu": 600, "cpu": 300, "bare-metal": 900}
"""How long an empty node is kept by default, in seconds: machines that take longer to
start are kept longer."""

DISRUPTION = 20
"""Share of a pool's nodes that may be given back at once by default, in percent."""

EXPIRE_AFTER = "720h"
"""Age at which a node is replaced, so that all run a current image within a month."""

TERMINATION_GRACE = "24h"
"""How long a job may hold up a node that is to go; the longest job runs a day."""

FAST_DISK = (16000, 1000)
"""IOPS and MB/s of a disk that can have them."""

FAST_DISK_FROM = 32
"""GiB from which gp3 gives 16,000 IOPS: 500 for each GiB (EBS user guide, "gp3")."""

TOPOLOGY = ("best-effort", "container")
"""The kubelet's topology policy and scope by default."""

_DELETE = pulumi.CustomTimeouts(delete="25h")


@dataclass(frozen=True)
class NodePoolArgs:
    """What a node pool is made from.

    Attributes:
        pool_name: Name of the node pool, unique in the cell.
        cluster: Name of the cluster; part of the machines' ``Name``.
        arch: CPU architecture, as Kubernetes says it.
        gpu: Whether the machines have GPUs.
        machine: The shape.
        weight: Preference, 1 to 100, highest first.
        zones: Zones that it may start machines in.
        node_labels: Node labels that pods select.
        taints: Node taints.
        startup_taints: Taints that something on the node removes.
        reservation_ids: Reserved capacity that it draws from.
        labels: The required labels.
        image: Alias of the machine image.
        consolidate_after: How long an empty node is kept, in seconds.
        disruption: Share of nodes that may be given back at once, in percent.
        limits: Most resources of all its nodes, by resource; empty for no limit.
        instance_profile: Instance profile of its machines.
        subnet_ids: Private subnets.
        security_group_id: Security group of every node.
        volumes_key_arn: Key that encrypts the disks.
        kubernetes: Provider of the cluster.
        after: The autoscaler: it must outlive the node claims.
    """

    pool_name: str
    cluster: str
    arch: str
    gpu: bool
    machine: PoolMachine
    weight: int
    zones: Sequence[str]
    node_labels: Mapping[str, str]
    taints: Sequence[Taint]
    labels: Mapping[str, str]
    image: str
    consolidate_after: int
    disruption: int
    instance_profile: pulumi.Input[str]
    subnet_ids: pulumi.Output[Sequence[str]]
    security_group_id: pulumi.Input[str]
    volumes_key_arn: pulumi.Input[str]
    kubernetes: pulumi.ProviderResource
    startup_taints: Sequence[StartupTaint] = ()
    reservation_ids: Sequence[str] = ()
    limits: Mapping[str, str] = field(default_factory=dict[str, str])
    after: Sequence[pulumi.Resource] = ()

    @classmethod
    def from_plan(
        cls,
        plan: CellPlan,
        pool: NodePoolPlan,
        *,
        instance_profile: pulumi.Input[str],
        subnet_ids: pulumi.Output[Sequence[str]],
        security_group_id: pulumi.Input[str],
        volumes_key_arn: pulumi.Input[str],
        kubernetes: pulumi.ProviderResource,
        after: Sequence[pulumi.Resource],
    ) -> NodePoolArgs:
        """Take what a node pool needs from its plan and the other rooms.

        Args:
            plan: The cell's plan.
            pool: The node pool's plan.
            instance_profile: Instance profile of its machines.
            subnet_ids: Private subnets.
            security_group_id: Security group of every node.
            volumes_key_arn: Key that encrypts the disks.
            kubernetes: Provider of the cluster.
            after: What must outlive the node claims.

        Raises:
            InputError: A setting of the cell is wrong.
        """
        settings = AwsSettings.of(plan.cell)
        return cls(
            pool_name=pool.name,
            cluster=plan.cell.cluster,
            arch=pool.pool.arch,
            gpu=pool.pool.gpu,
            machine=pool.machine,
            weight=pool.weight,
            zones=reserved_zones(pool) or tuple(plan.cell.zones),
            node_labels=pool.labels,
            taints=pool.taints,
            startup_taints=tuple(settings.startup_taints),
            reservation_ids=tuple(found.id for found in pool.reservations),
            labels=pool.ci_labels,
            image=plan.pins.value(IMAGE_PIN),
            consolidate_after=consolidate_after(pool.pool, pool.machine),
            disruption=disruption(pool.pool),
            limits=settings.pool_limits.get(pool.pool.name, {}),
            instance_profile=instance_profile,
            subnet_ids=subnet_ids,
            security_group_id=security_group_id,
            volumes_key_arn=volumes_key_arn,
            kubernetes=kubernetes,
            after=tuple(after),
        )


class NodePool(pulumi.ComponentResource):
    """Machines of one shape that Karpenter starts and stops.

    Attributes:
        pool_name: Name of the NodePool and of its EC2NodeClass.
    """

    pool_name: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        args: NodePoolArgs,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Make the node pool.

        Destroying it deletes the NodePool first, in the foreground, and then the
        EC2NodeClass, whose finalizer waits until its last machine is gone; only
        then can the autoscaler go.

        Args:
            name: Name of the component; children are called ``<name>-<suffix>``.
            args: What it is made from.
            opts: Options.
        """
        super().__init__("runfleet:aws:NodePool", name, None, opts)
        object_name = KARPENTER_NAME.encode(*args.pool_name.split("--"))
        node_class = CustomResource(
            f"{name}-class",
            api_version="karpenter.k8s.aws/v1",
            kind="EC2NodeClass",
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
        self.pool_name = pulumi.Output.all(pool.id, object_name).apply(
            lambda found: str(found[1])
        )
        self.register_outputs({"pool_name": self.pool_name})


def node_pool_spec(args: NodePoolArgs, node_class: str) -> dict[str, Any]:
    """Return the specification of the NodePool.

    Args:
        args: What the node pool is made from.
        node_class: Name of its EC2NodeClass.
    """
    requirements = {
        "kubernetes.io/arch": [args.arch],
        "kubernetes.io/os": ["linux"],
        "karpenter.sh/capacity-type": [capacity_type(args)],
        "node.kubernetes.io/instance-type": [args.machine.machine],
        "topology.kubernetes.io/zone": list(args.zones),
    }
    template: dict[str, Any] = {
        "nodeClassRef": {
            "group": "karpenter.k8s.aws",
            "kind": "EC2NodeClass",
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
    }
    if args.startup_taints:
        template["startupTaints"] = [
            {"key": taint.key, "value": taint.value, "effect": taint.effect}
            for taint in args.startup_taints
        ]
    spec: dict[str, Any] = {
        "weight": args.weight,
        "disruption": {
            "consolidationPolicy": "WhenEmpty",
            "consolidateAfter": duration(args.consolidate_after),
            "budgets": [{"nodes": f"{args.disruption}%"}],
        },
        "template": {
            "metadata": {"labels": {**args.labels, **args.node_labels}},
            "spec": template,
        },
    }
    if args.limits:
        spec["limits"] = dict(args.limits)
    return spec


def node_class_spec(args: NodePoolArgs) -> dict[str, Any]:
    """Return the specification of the EC2NodeClass."""
    machine = args.machine
    image = (
        {"tags": dict(machine.image_selector)}
        if machine.image_selector
        else {"alias": args.image}
    )
    size = math.ceil(machine.disk.gib)
    disk: dict[str, Any] = {
        "volumeType": "gp3",
        "volumeSize": f"{size}Gi",
        "encrypted": True,
        "kmsKeyID": args.volumes_key_arn,
        "deleteOnTermination": True,
    }
    if size >= FAST_DISK_FROM:
        disk["iops"], disk["throughput"] = FAST_DISK
    spec: dict[str, Any] = {
        "amiFamily": "AL2023",
        "amiSelectorTerms": [image],
        "instanceProfile": args.instance_profile,
        "subnetSelectorTerms": args.subnet_ids.apply(
            lambda found: [{"id": subnet} for subnet in found]
        ),
        "securityGroupSelectorTerms": [{"id": args.security_group_id}],
        "associatePublicIPAddress": False,
        "metadataOptions": {
            "httpEndpoint": "enabled",
            "httpProtocolIPv6": "disabled",
            "httpPutResponseHopLimit": 1,
            "httpTokens": "required",
        },
        "blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": disk}],
        "userData": node_config(machine),
        "tags": node_tags(args),
    }
    if machine.nvme:
        spec["instanceStorePolicy"] = "RAID0"
    if args.reservation_ids:
        spec["capacityReservationSelectorTerms"] = [
            {"id": reservation} for reservation in args.reservation_ids
        ]
    return spec


def node_tags(args: NodePoolArgs) -> dict[str, str]:
    """Return the tags of the machines and disks that Karpenter starts.

    Raises:
        ValueError: With Karpenter's own there would be more tags than AWS allows.
    """
    made = tags(args.labels, Name=f"{args.cluster}-{args.pool_name}")
    if len(made) + KARPENTER_TAGS - 1 > LIMIT:
        raise ValueError(f"{len(made)} tags leave no room for Karpenter's own")
    return made


def node_config(machine: PoolMachine) -> str:
    """Return the kubelet's settings as a nodeadm document, for the user data.

    Karpenter merges it with its own (Karpenter v1.14 documentation, "NodeClasses",
    ``spec.userData``).
    """
    policy = machine.topology_policy or TOPOLOGY[0]
    kubelet: dict[str, Any] = {
        "cpuManagerPolicy": "static",
        "topologyManagerPolicy": policy,
        "topologyManagerScope": machine.topology_scope or TOPOLOGY[1],
        "containerLogMaxSize": "50Mi",
        "containerLogMaxFiles": 5,
    }
    if policy in ("best-effort", "restricted"):
        kubelet["topologyManagerPolicyOptions"] = {"prefer-closest-numa-nodes": "true"}
    document = {
        "apiVersion": "node.eks.aws/v1alpha1",
        "kind": "NodeConfig",
        "spec": {"kubelet": {"config": kubelet}},
    }
    text = StringIO()
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.dump(document, text)  # pyright: ignore[reportUnknownMemberType]
    return text.getvalue()


def capacity_type(args: NodePoolArgs) -> str:
    """Return Karpenter's word for how the machines are bought.

    Donated machines are reservations that somebody else pays; without one they are
    started on demand in the donor's account.
    """
    capacity = args.machine.capacity
    if capacity is Capacity.DONATED:
        return "reserved" if args.reservation_ids else "on-demand"
    return {
        Capacity.ON_DEMAND: "on-demand",
        Capacity.SPOT: "spot",
        Capacity.RESERVED: "reserved",
    }[capacity]


def reserved_zones(pool: NodePoolPlan) -> tuple[str, ...]:
    """Return the zones of a pool's reservations; empty when not all name one."""
    zones = {found.zone for found in pool.reservations}
    return tuple(sorted(zone for zone in zones if zone)) if None not in zones else ()


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
