"""Autoscaler: IBM's cluster-autoscaler add-on and its configuration.

The add-on starts and stops workers with the credentials that the service keeps for the
cluster; it has no identity of ours. It is the only add-on that the stack owns:
``manage_all_addons`` is off, because with it on, its default, the provider removes
every add-on that it was not told of.

Which pools are scaled, and between which sizes, stands in the ConfigMap
``iks-ca-configmap``, which the add-on makes itself. So the stack lays its own value
over one key of it, by server-side apply (``ConfigMapPatch``), once all pools exist
(:meth:`Autoscaler.configure`). On a destroy the patch goes first, and with it the
pools' entries: a pool must not be scaled any more when it or the add-on goes.

Sources: ibm-cloud-docs/containers ``cluster-scaling-enable.md`` and
``cluster-scaling-install-addon.md``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi_kubernetes.core.v1 import ConfigMapPatch
from pulumi_kubernetes.meta.v1 import ObjectMetaPatchArgs

from runfleet.clouds.ibm.resources.containers import Addon, ContainerAddons
from runfleet.clouds.ibm.settings import IbmSettings
from runfleet.placement.plan import CellPlan

ADDON = "cluster-autoscaler"
ADDON_PIN = "iks-addon-cluster-autoscaler"
"""Pin of the add-on's version."""

NAMESPACE = "kube-system"
CONFIG_MAP = "iks-ca-configmap"
POOLS_KEY = "workerPoolsConfig.json"

SETTINGS: Mapping[str, str] = {
    "expander": "least-waste",
    "scaleDownUnneededTime": "10m",
    "skipNodesWithLocalStorage": "false",
    "skipNodesWithSystemPods": "true",
}
"""Other keys of the ConfigMap. Job pods use local disks, so a node with them must not
be kept for that; a running job holds its node by annotation."""


@dataclass(frozen=True)
class AutoscalerArgs:
    """What the autoscaler is made from.

    Attributes:
        cluster_id: Id of the cluster.
        labels: The required labels.
        kubernetes: Provider of the cluster.
        version: Version of the add-on.
        resource_group: Id of the resource group; ``None`` for the default one.
        after: What must exist before anything is put on the cluster.
    """

    cluster_id: pulumi.Input[str]
    labels: Mapping[str, str]
    kubernetes: pulumi.ProviderResource
    version: str
    resource_group: str | None = None
    after: Sequence[pulumi.Resource] = ()

    @classmethod
    def from_plan(
        cls,
        plan: CellPlan,
        *,
        cluster_id: pulumi.Input[str],
        kubernetes: pulumi.ProviderResource,
        after: Sequence[pulumi.Resource],
    ) -> AutoscalerArgs:
        """Take what the autoscaler needs from its plan and the other rooms.

        Args:
            plan: The cell's plan.
            cluster_id: Id of the cluster.
            kubernetes: Provider of the cluster.
            after: What must exist before anything is put on the cluster.

        Raises:
            InputError: A setting of the cell is wrong.
        """
        return cls(
            cluster_id=cluster_id,
            labels=plan.ci_labels,
            kubernetes=kubernetes,
            version=plan.pins.value(ADDON_PIN),
            resource_group=IbmSettings.of(plan.cell).resource_group,
            after=tuple(after),
        )


class Autoscaler(pulumi.ComponentResource):
    """The cluster-autoscaler add-on.

    Attributes:
        ready: What must outlive the worker pools.
    """

    ready: Sequence[pulumi.Resource]

    def __init__(
        self,
        name: str,
        args: AutoscalerArgs,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Install the add-on.

        Args:
            name: Name of the component; children are called ``<name>-<suffix>``.
            args: What it is made from.
            opts: Options.
        """
        super().__init__("runfleet:ibm:Autoscaler", name, None, opts)
        self._name = name
        self._args = args
        addon = ContainerAddons(
            f"{name}-addon",
            cluster=args.cluster_id,
            addons=[Addon(ADDON, args.version)],
            manage_all_addons=False,
            resource_group_id=args.resource_group,
            opts=pulumi.ResourceOptions(parent=self, depends_on=list(args.after)),
        )
        self.ready = (addon,)
        self.register_outputs({"addon": ADDON})

    def configure(
        self,
        pools: Sequence[Mapping[str, Any]],
        after: Sequence[pulumi.Resource],
    ) -> ConfigMapPatch:
        """Tell the add-on which pools to scale, once they all exist.

        Args:
            pools: Entries of the configuration, one for each pool.
            after: The pools.
        """
        entries = sorted(pools, key=lambda entry: str(entry["name"]))
        return ConfigMapPatch(
            f"{self._name}-config",
            metadata=ObjectMetaPatchArgs(
                name=CONFIG_MAP,
                namespace=NAMESPACE,
                labels=dict(self._args.labels),
                annotations={"pulumi.com/patchForce": "true"},
            ),
            data={**SETTINGS, POOLS_KEY: json.dumps([dict(e) for e in entries])},
            opts=pulumi.ResourceOptions(
                parent=self,
                provider=self._args.kubernetes,
                depends_on=[*self.ready, *after],
            ),
        )
