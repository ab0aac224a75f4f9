"""NodePool: a worker pool of one flavour, private, with encrypted disks.

Workers get private addresses only, and their metadata service is out of pods' reach by
NetworkPolicy. Their disks are encrypted with a root key. A worker pool takes no tags,
so the required labels are Kubernetes labels of every worker that is started later.

**How small.** The autoscaler add-on cannot start the first worker of an empty pool: a
pool keeps one in each of its zones ("Can I scale down a worker pool to zero nodes?",
ibm-cloud-docs/containers ``cluster-scaling-classic-vpc.md``). So a pool is in one zone
unless the setting ``pool_zones`` says more; which one follows from its name, so that
pools spread.

**What cannot be had.** Worker pools have no spot capacity. A reservation is a pool of
dedicated hosts (``host_pool_id``), and the autoscaler leaves such worker pools alone:
it has as many workers as were reserved. Both are refused or built as said here, never
silently turned into something else.

The disks' key and the security groups of a pool are applied once by the provider; a
change of them replaces the pool.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi

from runfleet.clouds.ibm.cluster import OWN_GROUP
from runfleet.clouds.ibm.flavors import FlavorError, pool_flavor, secondary_storage
from runfleet.clouds.ibm.names import WORKER_POOL
from runfleet.clouds.ibm.resources.containers import (
    ContainerVpcWorkerPool,
    WorkerTaint,
    WorkerZone,
)
from runfleet.clouds.ibm.settings import IbmSettings
from runfleet.placement.plan import CellPlan, NodePoolPlan
from runfleet.spec.pools import Capacity

MOST_WORKERS = 500
"""Workers of a cluster by default (cloud.ibm.com/docs/containers, "Limitations")."""


@dataclass(frozen=True)
class NodePoolArgs:
    """What a node pool is made from.

    Attributes:
        pool_name: Name of the node pool, unique in the cell.
        flavor: Worker flavour.
        zones: Subnets by zone.
        node_labels: Node labels that pods select, and the required labels.
        taints: Node taints.
        secondary_storage: Second disk, if the first is too small.
        minimum: Workers in each zone that are always there.
        maximum: Most workers in each zone.
        host_pool: Id of the dedicated hosts that it is on; ``None`` for shared ones.
        cluster_id: Id of the cluster.
        network_id: Id of the VPC.
        node_security_group_id: Security group of every worker, beside IBM's own.
        vault_guid: Key Protect instance of the platform.
        node_key_id: Root key of the workers' disks.
        resource_group: Id of the resource group; ``None`` for the default one.
        after: What must exist before a worker starts.
    """

    pool_name: str
    flavor: str
    zones: Mapping[str, pulumi.Input[str]]
    node_labels: Mapping[str, str]
    taints: Sequence[WorkerTaint]
    secondary_storage: str | None
    minimum: int
    maximum: int
    host_pool: str | None
    cluster_id: pulumi.Input[str]
    network_id: pulumi.Input[str]
    node_security_group_id: pulumi.Input[str]
    vault_guid: pulumi.Input[str]
    node_key_id: pulumi.Input[str]
    resource_group: str | None = None
    after: Sequence[pulumi.Resource] = ()

    @classmethod
    def from_plan(
        cls,
        plan: CellPlan,
        pool: NodePoolPlan,
        *,
        subnets: Mapping[str, pulumi.Input[str]],
        cluster_id: pulumi.Input[str],
        network_id: pulumi.Input[str],
        node_security_group_id: pulumi.Input[str],
        vault_guid: pulumi.Input[str],
        node_key_id: pulumi.Input[str],
        after: Sequence[pulumi.Resource] = (),
    ) -> NodePoolArgs:
        """Take what a node pool needs from its plan and the other rooms.

        Args:
            plan: The cell's plan.
            pool: The node pool's plan.
            subnets: Subnets for workers, by zone.
            cluster_id: Id of the cluster.
            network_id: Id of the VPC.
            node_security_group_id: Security group of every worker.
            vault_guid: Key Protect instance of the platform.
            node_key_id: Root key of the workers' disks.
            after: What must exist before a worker starts.

        Raises:
            FlavorError: Worker pools have no such machine, disk or capacity.
            InputError: A setting of the cell is wrong.
        """
        path = f"pools.{pool.pool.name}"
        settings = IbmSettings.of(plan.cell)
        host_pool = reserved_hosts(pool)
        zones = pool_zones(plan, pool, settings)
        reserved = sum(found.count for found in pool.reservations)
        maximum = most_workers(plan, pool, settings, len(zones))
        return cls(
            pool_name=WORKER_POOL.encode(*pool.name.split("--")),
            flavor=pool_flavor(pool.pool, pool.machine, pool.node_name),
            zones={zone: subnets[zone] for zone in zones},
            node_labels={**pool.ci_labels, **pool.labels},
            taints=[WorkerTaint(t.key, t.value, t.effect) for t in pool.taints],
            secondary_storage=secondary_storage(
                pool.machine.disk.gib, f"{path}.machines.disk"
            ),
            minimum=max(1, reserved // len(zones)) if host_pool else 1,
            maximum=maximum,
            host_pool=host_pool,
            cluster_id=cluster_id,
            network_id=network_id,
            node_security_group_id=node_security_group_id,
            vault_guid=vault_guid,
            node_key_id=node_key_id,
            resource_group=settings.resource_group,
            after=tuple(after),
        )


class NodePool(pulumi.ComponentResource):
    """Workers of one flavour.

    Attributes:
        pool_name: Name of the worker pool.
        scaled: Entry of the autoscaler's configuration; ``None`` for dedicated hosts,
            which it cannot scale.
        pool: The worker pool.
    """

    pool_name: pulumi.Output[str]
    scaled: Mapping[str, Any] | None
    pool: ContainerVpcWorkerPool

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
            opts: Options.
        """
        super().__init__("runfleet:ibm:NodePool", name, None, opts)
        self.pool = ContainerVpcWorkerPool(
            f"{name}-workers",
            cluster=args.cluster_id,
            vpc_id=args.network_id,
            worker_pool_name=args.pool_name,
            flavor=args.flavor,
            zones=[WorkerZone(zone, subnet) for zone, subnet in args.zones.items()],
            worker_count=args.minimum,
            labels=args.node_labels,
            taints=args.taints,
            secondary_storage=args.secondary_storage,
            kms_instance_id=args.vault_guid,
            crk=args.node_key_id,
            security_groups=[OWN_GROUP, args.node_security_group_id],
            host_pool_id=args.host_pool,
            resource_group_id=args.resource_group,
            orphan_on_delete=False,
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=list(args.after),
                # The autoscaler changes it; the provider hides the difference only
                # once it knows that the pool is scaled.
                ignore_changes=["workerCount"],
                custom_timeouts=pulumi.CustomTimeouts(create="2h", delete="25h"),
            ),
        )
        self.scaled = (
            None
            if args.host_pool
            else {
                "name": args.pool_name,
                "minSize": args.minimum,
                "maxSize": max(args.minimum, args.maximum),
                "enabled": True,
            }
        )
        self.pool_name = self.pool.worker_pool_name
        self.register_outputs({"pool_name": self.pool_name})


def pool_zones(
    plan: CellPlan, pool: NodePoolPlan, settings: IbmSettings
) -> tuple[str, ...]:
    """Return the zones of a pool: as set, as reserved, or one by its name."""
    if wanted := settings.pool_zones.get(pool.pool.name):
        return tuple(zone for zone in plan.cell.zones if zone in wanted)
    reserved = {found.zone for found in pool.reservations if found.zone}
    if reserved:
        return tuple(zone for zone in plan.cell.zones if zone in reserved)
    digest = hashlib.sha256(pool.name.encode()).digest()
    return (plan.cell.zones[digest[0] % len(plan.cell.zones)],)


def most_workers(
    plan: CellPlan, pool: NodePoolPlan, settings: IbmSettings, zones: int
) -> int:
    """Return the most workers of a pool in each zone.

    As the fleet file sets it; else as many as the jobs of its classes could fill with
    one each, shared out over the zones, within the quota.
    """
    if wanted := settings.max_nodes.get(pool.pool.name):
        return wanted
    scales = [
        planned.runner_class.scale.max
        for planned in plan.classes
        if planned.pool.name == pool.pool.name
    ]
    jobs = [scale for scale in scales if scale is not None]
    total = sum(jobs) if jobs and len(jobs) == len(scales) else MOST_WORKERS
    if pool.limit is not None:
        return max(1, min(total, pool.limit) // zones)
    return max(1, min(-(-total // zones), MOST_WORKERS))


def reserved_hosts(pool: NodePoolPlan) -> str | None:
    """Return the dedicated hosts of a pool, or ``None``.

    Raises:
        FlavorError: The capacity is one that worker pools cannot have.
    """
    path = f"pools.{pool.pool.name}"
    capacity = pool.machine.capacity
    if capacity is Capacity.SPOT:
        reason = "worker pools have no spot capacity"
        raise FlavorError(path, reason, f"{pool.machine.machine} ({capacity})")
    if capacity is Capacity.RESERVED and len(pool.reservations) != 1:
        reason = (
            "a worker pool is on the dedicated hosts of one reservation, this one "
            f"names {len(pool.reservations)}"
        )
        raise FlavorError(path, reason, f"{pool.machine.machine} ({capacity})")
    return pool.reservations[0].id if pool.reservations else None
