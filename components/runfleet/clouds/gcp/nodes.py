"""NodePool: machines of one shape that GKE's cluster autoscaler starts and stops.

A node pool starts at zero and grows in any of its zones. What it is made from comes
from its plan: labels, taints, how its machines are bought. On top of what all machines
have in common (:mod:`runfleet.clouds.gcp.node_config`):

* GPUs are named, so that GKE installs their driver and runs their device plugin. GKE
  taints such nodes ``nvidia.com/gpu=present`` itself and gives every pod that asks for
  GPUs the toleration (GKE documentation, "About GPUs in GKE"). A node cannot have two
  taints of one key and effect, so GKE's value stands here instead of ours.
* TPU machines get GKE's taint ``google.com/tpu=present`` the same way, and no word of
  NVIDIA; a slice of several machines is made whole or not at all, in one zone.
* A reservation is named. All others draw from none, so that nobody's reserved
  capacity is used up by pools that were not meant to.
* Spot machines can be taken back; flex-start machines come when the Dynamic Workload
  Scheduler has them, run for a limited time, and are not repaired (GKE documentation,
  "Run a small batch workload with GPUs and flex-start").
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pulumi
import pulumi_gcp as gcp

from runfleet.clouds.gcp.addresses import Project, cell_project
from runfleet.clouds.gcp.machines import (
    Gpus,
    gpus,
    local_ssds,
    slice_machines,
    tpu_chips,
)
from runfleet.clouds.gcp.names import NODE_POOL
from runfleet.clouds.gcp.node_config import Machines, node_config
from runfleet.clouds.gcp.settings import (
    LONGEST_FLEX_START,
    GcpSettings,
    PoolSettings,
    problem,
)
from runfleet.errors import InputError, Problem
from runfleet.placement.plan import CellPlan, NodePoolPlan
from runfleet.spec.pools import Capacity, PoolMachine, Taint

MOST_NODES = 1000
"""Most machines of a node pool that nothing else limits: GKE's own limit for a node
pool in a zone (GKE documentation, "Quotas and limits")."""

GPU = "nvidia.com/gpu"
"""Key of the label and the taint that pools with accelerators have in a plan."""

GPU_TAINT = Taint(GPU, "present")
"""The taint that GKE puts on nodes with GPUs."""

TPU_TAINT = Taint("google.com/tpu", "present")
"""The taint that GKE puts on nodes with TPUs (GKE documentation, "Plan TPUs in
GKE")."""

TOPOLOGY = ("best-effort", "container")
"""The kubelet's topology policy and scope by default."""

RESERVATION = "compute.googleapis.com/reservation-name"
"""The key that a reservation is named by (GKE documentation, "Consuming reserved
zonal resources")."""


@dataclass(frozen=True)
class NodePoolArgs:
    """What a node pool is made from.

    Attributes:
        pool_name: Name of the node pool, at most 40 characters.
        project: The project.
        cluster_name: Name of the cluster.
        machines: What its machines need from the other rooms.
        machine: The shape.
        machine_type: Machine type, as node pools call it.
        zones: Zones that it may start machines in.
        most: Most machines of all its zones together.
        node_labels: Node labels that pods select.
        taints: Node taints.
        reservation: The reservation that it draws from: its name, or
            ``projects/<project>/reservations/<name>`` for a shared one.
        gpus: GPUs of a machine.
        settings: Settings of its pool.
        after: The autoscaler.
    """

    pool_name: str
    project: Project
    cluster_name: pulumi.Input[str]
    machines: Machines
    machine: PoolMachine
    machine_type: str
    zones: Sequence[str]
    most: int
    node_labels: Mapping[str, str]
    taints: Sequence[Taint]
    reservation: str = ""
    gpus: Gpus | None = None
    settings: PoolSettings = field(default_factory=PoolSettings)
    after: Sequence[pulumi.Resource] = ()

    @classmethod
    def from_plan(
        cls,
        plan: CellPlan,
        pool: NodePoolPlan,
        *,
        cluster_name: pulumi.Input[str],
        machines: Machines,
        after: Sequence[pulumi.Resource] = (),
    ) -> NodePoolArgs:
        """Take what a node pool needs from its plan and the other rooms.

        Args:
            plan: The cell's plan.
            pool: The node pool's plan.
            cluster_name: Name of the cluster.
            machines: What its machines need.
            after: What must outlive it.

        Raises:
            InputError: GKE cannot make the node pool as the fleet file describes it.
        """
        settings = GcpSettings.of(plan.cell).pool(pool.pool.name)
        found = _gpus(pool)
        wrong = _problems(plan, pool, settings, found)
        if wrong:
            raise InputError(wrong)
        return cls(
            pool_name=pool_name(pool),
            project=cell_project(plan.cell),
            cluster_name=cluster_name,
            machines=Machines(
                machines.cluster,
                machines.service_account,
                machines.disk_key,
                pool.ci_labels,
            ),
            machine=pool.machine,
            machine_type=pool.node_name,
            zones=_zones(plan, pool, settings),
            most=most_nodes(pool, settings),
            node_labels=node_labels(pool),
            taints=taints(pool),
            reservation=pool.reservations[0].id if pool.reservations else "",
            gpus=found,
            settings=settings,
            after=tuple(after),
        )


class NodePool(pulumi.ComponentResource):
    """Machines of one shape that GKE starts and stops.

    Attributes:
        pool_name: Name of the node pool.
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
        super().__init__("runfleet:gcp:NodePool", name, None, opts)
        settings = args.settings
        pool = gcp.container.NodePool(
            f"{name}-pool",
            name=args.pool_name,
            project=args.project.id,
            location=args.project.region,
            cluster=args.cluster_name,
            node_locations=list(args.zones),
            initial_node_count=0,
            max_pods_per_node=settings.max_pods,
            autoscaling={
                "total_min_node_count": 0,
                "total_max_node_count": args.most,
                "location_policy": "ANY",
            },
            management={
                "auto_repair": not settings.flex_start,
                "auto_upgrade": True,
            },
            queued_provisioning={"enabled": True} if settings.queued else None,
            placement_policy={
                "type": "COMPACT",
                "tpu_topology": settings.tpu_topology,
            }
            if settings.tpu_topology
            else None,
            network_config={"enable_private_nodes": True},
            node_config=cast("Any", machine_config(args)),
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=list(args.after),
                ignore_changes=["initialNodeCount", "version"],
                custom_timeouts=pulumi.CustomTimeouts(delete="25h"),
            ),
        )
        self.pool_name = pool.name
        self.register_outputs({"pool_name": self.pool_name})


def machine_config(args: NodePoolArgs) -> dict[str, Any]:
    """Return the configuration of a node pool's machines."""
    machine, settings = args.machine, args.settings
    more: dict[str, Any] = {
        "kubelet_config": {
            "insecure_kubelet_readonly_port_enabled": "FALSE",
            "cpu_manager_policy": "static",
            "topology_manager": {
                "policy": machine.topology_policy or TOPOLOGY[0],
                "scope": machine.topology_scope or TOPOLOGY[1],
            },
            "container_log_max_size": "50Mi",
            "container_log_max_files": 5,
        },
        "spot": machine.capacity is Capacity.SPOT,
    }
    if settings.disk_type:
        more["disk_type"] = settings.disk_type
    if args.gpus is not None:
        more["guest_accelerators"] = [
            {
                "type": args.gpus.type,
                "count": args.gpus.count,
                "gpu_driver_installation_config": {
                    "gpu_driver_version": settings.gpu_driver
                },
            }
        ]
    if machine.nvme:
        more["ephemeral_storage_local_ssd_config"] = {
            "local_ssd_count": settings.local_ssds or local_ssds(args.machine_type)
        }
    if args.reservation:
        more["reservation_affinity"] = {
            "consume_reservation_type": "SPECIFIC_RESERVATION",
            "key": RESERVATION,
            "values": [args.reservation],
        }
    if settings.flex_start:
        longest = settings.longest_run
        seconds = longest.seconds if longest else LONGEST_FLEX_START
        more["flex_start"] = True
        more["max_run_duration"] = f"{seconds}s"
    return node_config(
        args.machines,
        args.machine_type,
        math.ceil(machine.disk.gib),
        args.node_labels,
        args.taints,
        **more,
    )


def pool_name(pool: NodePoolPlan) -> str:
    """Return GKE's name of a node pool."""
    return NODE_POOL.encode(*pool.name.split("--"))


def taints(pool: NodePoolPlan) -> list[Taint]:
    """Return the taints of a node pool, with GKE's own for accelerators."""
    own = TPU_TAINT if tpu_chips(pool.node_name) else GPU_TAINT
    return [own if taint.key == GPU else taint for taint in pool.taints]


def node_labels(pool: NodePoolPlan) -> dict[str, str]:
    """Return the labels of a node pool's nodes; a TPU is nothing of NVIDIA's."""
    found = {**pool.ci_labels, **pool.labels}
    if tpu_chips(pool.node_name):
        found.pop(GPU, None)
    return found


def most_nodes(pool: NodePoolPlan, settings: PoolSettings) -> int:
    """Return the most machines of a node pool, by the tightest limit.

    A TPU slice of several machines is one unit: its number of machines is the limit.
    """
    if settings.tpu_topology:
        return slice_machines(pool.node_name, settings.tpu_topology)
    limits = [pool.limit, settings.max_nodes]
    if pool.reservations:
        limits.append(sum(found.count for found in pool.reservations))
    return min([limit for limit in limits if limit is not None] or [MOST_NODES])


def _gpus(pool: NodePoolPlan) -> Gpus | None:
    return gpus(pool.node_name)


def _zones(
    plan: CellPlan, pool: NodePoolPlan, settings: PoolSettings
) -> tuple[str, ...]:
    reserved = {found.zone for found in pool.reservations if found.zone}
    zones = tuple(sorted(reserved)) or tuple(plan.cell.zones)
    # A slice of several machines is in one zone.
    return zones[:1] if settings.tpu_topology else zones


def _problems(
    plan: CellPlan, pool: NodePoolPlan, settings: PoolSettings, found: Gpus | None
) -> list[Problem]:
    """Return why GKE cannot make a node pool."""
    machine, cell = pool.machine, plan.cell.name
    here = ["settings", "pools", pool.pool.name]
    wrong: list[Problem] = []

    def in_pool(field_name: str, message: str, value: str = "") -> None:
        where = f"pools.{pool.pool.name}.machines.{machine.machine}.{field_name}"
        wrong.append(Problem("fleet file", 0, where, message, value))

    if pool.pool.gpu and found is None and not tpu_chips(pool.node_name):
        in_pool(
            "machine", "this machine type has no known accelerators", machine.machine
        )
    if machine.image_selector:
        in_pool("image_selector", "GKE takes no machine images of ours")
    if machine.capacity is Capacity.RESERVED and len(pool.reservations) != 1:
        names = ", ".join(r.id for r in pool.reservations)
        in_pool("reservations", "a GKE node pool draws from one reservation", names)
    if machine.nvme and not (settings.local_ssds or local_ssds(pool.node_name)):
        message = "say how many local disks this machine type has"
        wrong.append(problem([cell, *here, "local_ssds"], message, machine.machine))
    if settings.flex_start and machine.capacity is not Capacity.ON_DEMAND:
        message = "flex-start machines are bought on demand"
        found_here = str(machine.capacity)
        wrong.append(problem([cell, *here, "flex_start"], message, found_here))
    if settings.tpu_topology:
        try:
            slice_machines(pool.node_name, settings.tpu_topology)
        except ValueError as error:
            wrong.append(problem([cell, *here, "tpu_topology"], str(error)))
    return wrong
