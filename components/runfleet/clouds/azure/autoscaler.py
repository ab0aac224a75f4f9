"""Autoscaler: what starts and stops machines; on Azure it comes with the cluster.

In an auto-provisioned cell AKS runs Karpenter itself, with an identity of AKS's own,
and there is nothing to install. In a cluster-autoscaled cell AKS runs the cluster
autoscaler with expander ``priority``, which reads the order of the pools from a
ConfigMap: that is made here from the fleet's weights.

Either way node pools depend on :attr:`Autoscaler.ready`, and so on the cluster: on a
destroy their machines go while the controller that stops them still runs.

Source: AKS documentation, "Cluster autoscaler", section "Use the priority expander";
kubernetes/autoscaler, ``cluster-autoscaler/expander/priority/readme.md``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
from pulumi_kubernetes.core.v1 import ConfigMap
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from runfleet.clouds.azure.modes import Mode, mode_of
from runfleet.clouds.azure.names import AGENT_POOL
from runfleet.placement.plan import CellPlan

PRIORITIES = "cluster-autoscaler-priority-expander"
"""Name of the ConfigMap that the expander reads, in ``kube-system``."""


@dataclass(frozen=True)
class AutoscalerArgs:
    """What the autoscaler is made from.

    Attributes:
        mode: Who starts machines.
        weights: Weight of each node pool, by its name in the plan.
        labels: The required labels.
        kubernetes: Provider of the cluster.
        after: What must exist before anything is put on the cluster.
    """

    mode: Mode
    weights: Mapping[str, int]
    labels: Mapping[str, str]
    kubernetes: pulumi.ProviderResource
    after: Sequence[pulumi.Resource] = ()

    @classmethod
    def from_plan(
        cls,
        plan: CellPlan,
        kubernetes: pulumi.ProviderResource,
        after: Sequence[pulumi.Resource],
    ) -> AutoscalerArgs:
        """Take what the autoscaler needs from its plan and the cluster.

        Args:
            plan: The cell's plan.
            kubernetes: Provider of the cluster.
            after: What must exist before anything is put on the cluster.

        Raises:
            InputError: A setting of the cell is wrong, or its shapes fit no mode.
        """
        return cls(
            mode=mode_of(plan),
            weights={pool.name: pool.weight for pool in plan.node_pools},
            labels=plan.ci_labels,
            kubernetes=kubernetes,
            after=tuple(after),
        )


class Autoscaler(pulumi.ComponentResource):
    """What starts and stops machines.

    Attributes:
        mode: Who does.
        ready: What must exist before node pools.
    """

    mode: Mode
    ready: Sequence[pulumi.Resource]

    def __init__(
        self,
        name: str,
        args: AutoscalerArgs,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Say in which order pools are tried, where that is ours to say.

        Args:
            name: Name of the component; children are called ``<name>-<suffix>``.
            args: What it is made from.
            opts: Options.
        """
        super().__init__("runfleet:azure:Autoscaler", name, None, opts)
        self.mode = args.mode
        ready = list(args.after)
        if args.mode is Mode.CLUSTER_AUTOSCALED:
            ready.append(
                ConfigMap(
                    f"{name}-priorities",
                    metadata=ObjectMetaArgs(
                        name=PRIORITIES,
                        namespace="kube-system",
                        labels=dict(args.labels),
                    ),
                    data={"priorities": priorities(args.weights)},
                    opts=pulumi.ResourceOptions(
                        parent=self,
                        provider=args.kubernetes,
                        depends_on=list(args.after),
                    ),
                )
            )
        self.ready = tuple(ready)
        self.register_outputs({"mode": str(args.mode)})


def priorities(weights: Mapping[str, int]) -> str:
    """Return the order of pools as the expander reads it: patterns by weight.

    A node group is called ``aks-<pool>-<number>-vmss``.

    Args:
        weights: Weight of each node pool, by its name in the plan.
    """
    found: dict[int, list[str]] = {}
    for name, weight in weights.items():
        found.setdefault(weight, []).append(agent_pool_name(name))
    lines: list[str] = []
    for weight in sorted(found, reverse=True):
        lines.append(f"{weight}:")
        lines += [f"  - ^aks-{re.escape(pool)}-.*" for pool in sorted(found[weight])]
    return "\n".join(lines) + "\n" if lines else "{}\n"


def agent_pool_name(name: str) -> str:
    """Return what AKS calls a node pool of the plan."""
    return AGENT_POOL.encode(*name.split("--"))
