"""Pools: families of machine shapes that can serve the same classes.

A pool of the fleet file expands, in each cell, to one node pool per machine shape.
Its weights give the order in which the autoscaler tries the shapes, highest first.
Jobs are kept on their pool by the taint ``node-fleet=<pool>`` and off shapes that
they do not ask for by the taint ``instance-type=<machine>``, both with effect
NoSchedule, which are the incumbent's keys (pytorch/ci-infra at b1ce4a6,
``modules/nodepools/scripts/python/generate_nodepools.py``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from pydantic import Field, StrictBool, StrictInt

from runfleet.spec.base import Named, Spec
from runfleet.spec.cells import Provider
from runfleet.spec.roles import Trust
from runfleet.spec.units import Duration, Percent, Size


class Capacity(StrEnum):
    """How a machine is bought."""

    ON_DEMAND = "on-demand"
    SPOT = "spot"
    RESERVED = "reserved"
    DONATED = "donated"


class PoolMachine(Spec):
    """One machine shape of a pool."""

    machine: str = Field(description="Instance type, such as c7i.12xlarge.")
    weight: StrictInt = Field(
        default=100, ge=1, le=100, description="Preference; the highest is tried first."
    )
    disk: Size = Field(description="Root disk of a node.")
    nvme: StrictBool = Field(
        default=False, description="Whether local NVMe disks carry container data."
    )
    bare_metal: StrictBool = Field(
        default=False, description="Bare metal: kept longer before it is given back."
    )
    release: StrictBool = Field(
        default=False, description="Only for classes with trust `release`."
    )
    capacity: Capacity = Field(
        default=Capacity.ON_DEMAND, description="on-demand, spot, reserved or donated."
    )
    reservations: list[str] = Field(
        default_factory=list[str],
        description="Names of reservations that it draws from (capacity reserved).",
    )
    topology_policy: (
        Literal["none", "best-effort", "restricted", "single-numa-node"] | None
    ) = Field(default=None, description="The kubelet's topology manager policy.")
    topology_scope: Literal["container", "pod"] | None = Field(
        default=None, description="The kubelet's topology manager scope."
    )
    image_selector: dict[str, str] = Field(
        default_factory=dict[str, str],
        description="Tags of a machine image to use instead of the pinned one.",
    )
    labels: dict[str, str] = Field(
        default_factory=dict[str, str], description="More node labels."
    )


class Pool(Named):
    """A family of machine shapes that can serve the same classes."""

    provider: Provider = Field(description="Whose machines these are.")
    arch: Literal["amd64", "arm64", "s390x", "ppc64le"] = Field(
        description="CPU architecture."
    )
    gpu: StrictBool = Field(
        default=False, description="Whether the machines have GPUs."
    )
    machines: list[PoolMachine] = Field(
        min_length=1, description="The shapes, each with a weight."
    )
    exclude_regions: list[str] = Field(
        default_factory=list[str], description="Regions where it does not exist."
    )
    consolidate_after: Duration | None = Field(
        default=None, description="How long an empty node is kept."
    )
    disruption: Percent | None = Field(
        default=None, description="Share of nodes that may be given back at once."
    )

    def node_labels(self, machine: PoolMachine) -> dict[str, str]:
        """Return the labels that nodes of a machine shape carry.

        ``node-fleet``, ``instance-type`` and ``workload-type`` are the incumbent's
        keys; ``ci_trust`` keeps release nodes apart from the others.
        """
        labels = {
            "workload-type": "github-runner",
            "node-fleet": self.name,
            "instance-type": machine.machine,
            "ci_trust": str(Trust.RELEASE) if machine.release else "shared",
        }
        if self.gpu:
            labels["nvidia.com/gpu"] = "true"
        return labels | machine.labels

    def taints(self, machine: PoolMachine) -> list[Taint]:
        """Return the taints that nodes of a machine shape carry."""
        taints = [
            Taint("node-fleet", self.name),
            Taint("instance-type", machine.machine),
        ]
        if self.gpu:
            taints.append(Taint("nvidia.com/gpu", "true"))
        if machine.release:
            taints.append(Taint("ci_trust", str(Trust.RELEASE)))
        return taints


def node_pool_name(pool: Pool, machine: PoolMachine) -> str:
    """Return the name of the node pool of one machine shape, unique in a cell.

    No pool's name holds ``--``, so the pool can be read back from it.
    """
    size = re.sub(r"[^a-z0-9]+", "-", machine.machine.lower()).strip("-")
    return f"{pool.name}--{size}{'-release' if machine.release else ''}"


@dataclass(frozen=True, order=True)
class Taint:
    """A node taint.

    Attributes:
        key: Taint key.
        value: Taint value.
        effect: Kubernetes effect; ``NoSchedule`` everywhere in this toolkit.
    """

    key: str
    value: str
    effect: str = "NoSchedule"

    def tolerated_by(self, toleration: Toleration) -> bool:
        """Say whether a toleration lets a pod onto a node with this taint."""
        return toleration.key == self.key and (
            toleration.operator == "Exists" or toleration.value == self.value
        )


@dataclass(frozen=True, order=True)
class Toleration:
    """A pod toleration for effect ``NoSchedule``.

    Attributes:
        key: Taint key that is tolerated.
        operator: ``Equal`` or ``Exists``.
        value: Taint value; empty with ``Exists``.
    """

    key: str
    operator: Literal["Equal", "Exists"] = "Equal"
    value: str = ""
