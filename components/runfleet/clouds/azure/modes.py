"""Who starts machines in a cell: AKS's own Karpenter, or the cluster autoscaler.

AKS allows one or the other: on a cluster with node auto-provisioning no pool may be
autoscaled, fixed pools only (AKS documentation, "Node auto-provisioning", section
"Limitations"). Auto-provisioning is the better one: it takes weights for each shape and
makes a node without a scale set. It does not fit every shape, so a cell's mode follows
from the shapes that its classes need:

* GPU machines need the driver and its release managed for each pool, and machines with
  AMD GPUs need it left out (``gpuProfile.driver``);
* reserved capacity is drawn by a pool's capacity reservation group, which an
  ``AKSNodeClass`` has no field for;
* disks above 2 TiB are more than an ``AKSNodeClass`` takes.

On the other side AKS puts a taint of its own on autoscaled spot pools
(``kubernetes.azure.com/scalesetpriority``), which no job tolerates; so spot needs
auto-provisioning.

Source of the fields: Azure/karpenter-provider-azure, ``pkg/apis/crds/
karpenter.azure.com_aksnodeclasses.yaml`` (read 2026-11).
"""

from __future__ import annotations

from enum import StrEnum

from runfleet.clouds.azure.settings import AzureSettings
from runfleet.errors import InputError, Problem
from runfleet.placement.plan import CellPlan, NodePoolPlan
from runfleet.spec.pools import Capacity

NODE_CLASS_DISK_GIB = 2048
"""The largest OS disk of an ``AKSNodeClass``, in GiB."""

POOL_LIMIT = 99
"""Node pools of a cluster beside the one for system pods (AKS documentation, "Quotas":
100)."""

NODE_LIMIT = 1000
"""Nodes of one node pool (the same page)."""


class Mode(StrEnum):
    """Who starts machines."""

    AUTO_PROVISIONED = "auto-provisioned"
    CLUSTER_AUTOSCALED = "cluster-autoscaled"


def mode_of(plan: CellPlan) -> Mode:
    """Return who starts the machines of a cell.

    Raises:
        InputError: A setting is wrong, the cell's shapes fit neither way, or not the
            one that the cell's settings ask for, or there are too many of them.
    """
    wanted = AzureSettings.of(plan.cell).autoscaling
    pools, provisions = needs_pools(plan), needs_provisioning(plan)
    problems: list[str] = []
    if wanted == Mode.AUTO_PROVISIONED or (wanted == "auto" and not pools):
        mode, problems = Mode.AUTO_PROVISIONED, pools
    else:
        mode, problems = Mode.CLUSTER_AUTOSCALED, list(provisions)
        if len(plan.node_pools) > POOL_LIMIT:
            problems.append(
                f"{len(plan.node_pools)} node pools, AKS allows {POOL_LIMIT} of them"
            )
    if problems:
        why = f"; it must be because {pools[0]}" if wanted == "auto" and pools else ""
        path = f"cells.{plan.cell.name}.settings.autoscaling"
        raise InputError(
            [
                Problem("fleet file", 0, path, f"cannot be {mode}: {problem}{why}")
                for problem in problems
            ]
        )
    return mode


def needs_pools(plan: CellPlan) -> list[str]:
    """Return why a cell cannot be auto-provisioned, one reason for each shape."""
    return [f"{p.name} {reason}" for p in plan.node_pools if (reason := _fixed(p))]


def needs_provisioning(plan: CellPlan) -> list[str]:
    """Return why a cell cannot be autoscaled by pools, one reason for each shape."""
    return [
        f"{pool.name} is bought as spot"
        for pool in plan.node_pools
        if pool.machine.capacity is Capacity.SPOT
    ]


def _fixed(pool: NodePoolPlan) -> str:
    if pool.pool.gpu:
        return "has GPUs"
    if pool.reservations:
        return "draws from a reservation"
    if pool.machine.disk.gib > NODE_CLASS_DISK_GIB:
        return f"has a disk above {NODE_CLASS_DISK_GIB} GiB"
    return ""
