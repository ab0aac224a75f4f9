"""Autoscaler: the order in which GKE's cluster autoscaler tries node pools.

The autoscaler itself is part of GKE's control plane, with an identity that Google
keeps (GKE documentation, "About GKE cluster autoscaling"): nothing of it runs in the
cluster, and it is off for everything but our node pools. Left alone it starts the
cheapest machine that fits. A *ComputeClass* tells it the order instead: the class
named ``default`` holds for every pod that asks for no other (GKE documentation, "About
custom ComputeClasses", cluster-level default), and its priorities list the node pools
by weight. A pod's own node selectors keep it to the pools of its family, so one list
orders all families at once. A pool that has run out of capacity is left for the next
priority and tried again later.

Destroying it comes after the node pools, which wait for their machines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource

from runfleet.clouds.gcp.nodes import pool_name
from runfleet.clouds.gcp.settings import GcpSettings
from runfleet.placement.plan import CellPlan, NodePoolPlan

CONSOLIDATION_DELAY = 10
"""Minutes that an empty machine is kept by default."""


@dataclass(frozen=True)
class AutoscalerArgs:
    """What the autoscaler is told.

    Attributes:
        node_pools: Names of node pools by weight.
        delay: Minutes that an empty machine is kept.
        labels: The required labels.
        kubernetes: Provider of the cluster.
        auto_provisioning: Whether GKE may make node pools of its own for pods that
            none of ours serves.
        after: What must exist before it.
    """

    node_pools: Mapping[int, Sequence[str]]
    delay: int
    labels: Mapping[str, str]
    kubernetes: pulumi.ProviderResource
    auto_provisioning: bool = False
    after: Sequence[pulumi.Resource] = ()

    @classmethod
    def from_plan(
        cls,
        plan: CellPlan,
        kubernetes: pulumi.ProviderResource,
        after: Sequence[pulumi.Resource] = (),
    ) -> AutoscalerArgs:
        """Take the order of a cell's node pools from its plan.

        Raises:
            InputError: A setting of the cell is wrong.
        """
        return cls(
            node_pools=by_weight(plan.node_pools),
            delay=consolidation_delay(plan.node_pools),
            labels=plan.ci_labels,
            kubernetes=kubernetes,
            auto_provisioning=bool(GcpSettings.of(plan.cell).auto_provisioning),
            after=tuple(after),
        )


class Autoscaler(pulumi.ComponentResource):
    """The order of node pools, for GKE's cluster autoscaler.

    Attributes:
        ready: What must exist before a node pool.
    """

    ready: Sequence[pulumi.Resource]

    def __init__(
        self,
        name: str,
        args: AutoscalerArgs,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Make the order.

        Args:
            name: Name of the component; children are called ``<name>-<suffix>``.
            args: What the autoscaler is told.
            opts: Options.
        """
        super().__init__("runfleet:gcp:Autoscaler", name, None, opts)
        order = CustomResource(
            f"{name}-order",
            api_version="cloud.google.com/v1",
            kind="ComputeClass",
            metadata={"name": "default", "labels": dict(args.labels)},
            spec=compute_class_spec(args),
            opts=pulumi.ResourceOptions(
                parent=self, provider=args.kubernetes, depends_on=list(args.after)
            ),
        )
        self.ready = (*args.after, order)
        self.register_outputs({"order": order.id})


def compute_class_spec(args: AutoscalerArgs) -> dict[str, Any]:
    """Return the specification of the ComputeClass: node pools, highest weight first.

    A machine counts as empty when nothing but system pods runs on it, so the
    autoscaler never moves a job.
    """
    spec: dict[str, Any] = {
        "priorities": [
            {"nodepools": list(args.node_pools[weight])}
            for weight in sorted(args.node_pools, reverse=True)
        ],
        "nodePoolAutoCreation": {"enabled": args.auto_provisioning},
        "whenUnsatisfiable": "ScaleUpAnyway"
        if args.auto_provisioning
        else "DoNotScaleUp",
        "activeMigration": {"optimizeRulePriority": False},
        "autoscalingPolicy": {
            "consolidationDelayMinutes": args.delay,
            "consolidationThreshold": 0,
        },
    }
    if args.auto_provisioning:
        spec["nodePoolConfig"] = {"nodeLabels": dict(args.labels)}
    return spec


def by_weight(pools: Sequence[NodePoolPlan]) -> dict[int, list[str]]:
    """Return the names of node pools by weight, in the plan's order."""
    found: dict[int, list[str]] = {}
    for pool in pools:
        found.setdefault(pool.weight, []).append(pool_name(pool))
    return found


def consolidation_delay(pools: Sequence[NodePoolPlan]) -> int:
    """Return how long an empty machine is kept, in minutes, 1 to 1440.

    GKE knows one delay for all node pools in an order: the longest that a pool asks
    for.
    """
    asked = [
        -(-pool.pool.consolidate_after.seconds // 60)
        for pool in pools
        if pool.pool.consolidate_after is not None
    ]
    return min(1440, max(1, *asked)) if asked else CONSOLIDATION_DELAY
