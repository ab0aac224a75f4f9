"""The settings that only Google Cloud cells have: ``cells.<name>.settings``.

The fleet file lets every cloud keep settings of its own there; each cloud checks its
own, so that a misspelt key is an error and not silence.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, ValidationError, model_validator

from runfleet.errors import InputError, Problem
from runfleet.spec.base import Spec
from runfleet.spec.cells import Cell
from runfleet.spec.units import Duration

LONGEST_FLEX_START = 7 * 86_400
"""Seconds that a flex-start machine may run (GKE documentation, "About GPU, TPU and
H4D consumption with flex-start": seven days)."""


class PoolSettings(Spec):
    """Settings of the node pools of one pool."""

    max_nodes: int | None = Field(
        default=None, ge=1, le=5000, description="Most machines of each node pool."
    )
    max_pods: int = Field(
        default=110, ge=8, le=256, description="Most pods on a machine."
    )
    disk_type: str | None = Field(
        default=None, description="Type of the boot disk; default: by machine family."
    )
    local_ssds: int | None = Field(
        default=None,
        ge=1,
        description="Local disks of machines with `nvme`, where they are not known.",
    )
    gpu_driver: Literal["DEFAULT", "LATEST", "INSTALLATION_DISABLED"] = Field(
        default="DEFAULT", description="Which NVIDIA driver GKE installs."
    )
    flex_start: bool = Field(
        default=False,
        description="Whether machines come from the Dynamic Workload Scheduler.",
    )
    queued: bool = Field(
        default=False,
        description="Whether they come all at once for a ProvisioningRequest.",
    )
    longest_run: Duration | None = Field(
        default=None, description="How long a flex-start machine runs at most."
    )
    tpu_topology: str | None = Field(
        default=None,
        pattern=r"^\d+x\d+(x\d+)?$",
        description="Topology of TPU slices of several machines, such as 4x4.",
    )

    @model_validator(mode="after")
    def _fits(self) -> PoolSettings:
        if self.queued and not self.flex_start:
            raise ValueError("`queued` with `flex_start` only")
        if self.longest_run is not None and not self.flex_start:
            raise ValueError("`longest_run` with `flex_start` only")
        if self.longest_run and self.longest_run.seconds > LONGEST_FLEX_START:
            raise ValueError("a `longest_run` of seven days at most")
        return self


class GcpSettings(Spec):
    """Settings of one Google Cloud cell."""

    node_subnet: str | None = Field(
        default=None,
        description="Private subnet for nodes, when the network is adopted.",
    )
    pods_range: str = Field(
        default="pods", description="Name of the subnet's range for pods."
    )
    services_range: str = Field(
        default="services", description="Name of the subnet's range for services."
    )
    control_subnet: str | None = Field(
        default=None,
        description="Subnet of the API server's address, when the network is adopted.",
    )
    release_channel: Literal["RAPID", "REGULAR", "STABLE", "EXTENDED"] = Field(
        default="REGULAR", description="Release channel of the cluster."
    )
    dns_endpoint: bool = Field(
        default=False,
        description="Whether deployments may reach the API by its DNS endpoint, where "
        "IAM decides before the cluster sees a request.",
    )
    maintenance: str = Field(
        default="FREQ=WEEKLY;BYDAY=SA,SU",
        description="When GKE may upgrade, as an RFC 5545 rule; 12 hours from 06:00Z.",
    )
    admin_groups_domain: str | None = Field(
        default=None,
        description="Domain of the group gke-security-groups@, which groups among "
        "`admins` need.",
    )
    billing_account: str | None = Field(
        default=None,
        pattern=r"^[0-9A-F]{6}(-[0-9A-F]{6}){2}$",
        description="Billing account, such as 01AB23-45CD67-89EF01, for budgets.",
    )
    organization_policies: bool = Field(
        default=True,
        description="Whether to set the project's organisation policies: TLS only, "
        "nothing public, no keys of service accounts.",
    )
    auto_provisioning: dict[str, int] = Field(
        default_factory=dict[str, int],
        description="Most of each resource (cpu, memory in GB, nvidia-l4, ...) that "
        "node auto-provisioning may add for pods no node pool serves; none: off.",
    )
    pools: dict[str, PoolSettings] = Field(
        default_factory=dict[str, PoolSettings],
        description="Settings by pool.",
    )

    @model_validator(mode="after")
    def _limited(self) -> GcpSettings:
        if self.auto_provisioning and not {"cpu", "memory"} <= set(
            self.auto_provisioning
        ):
            raise ValueError("`auto_provisioning` with limits for cpu and memory")
        return self

    def pool(self, name: str) -> PoolSettings:
        """Return the settings of a pool's node pools."""
        return self.pools.get(name, PoolSettings())

    @classmethod
    def of(cls, cell: Cell) -> GcpSettings:
        """Read the settings of a cell.

        Raises:
            InputError: A setting is unknown or has a wrong value.
        """
        try:
            return cls.model_validate(cell.settings)
        except ValidationError as error:
            raise InputError(
                [
                    problem(
                        [cell.name, "settings", *map(str, found["loc"])],
                        found["msg"],
                        repr(found["input"]),
                        ", ".join(sorted(cls.model_fields)),
                    )
                    for found in error.errors()
                ]
            ) from None


def problem(
    path: list[str], message: str, found: str = "", allowed: str = ""
) -> Problem:
    """Return a problem of a cell; the fleet file's line is not known here.

    Args:
        path: Where it is below ``cells``.
        message: What is wrong.
        found: What stands there.
        allowed: What may stand there.
    """
    where = ".".join(["cells", *path])
    return Problem("fleet file", 0, where, message, found, allowed)
