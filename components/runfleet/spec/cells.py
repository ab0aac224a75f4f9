"""Cells: one cluster in one account and region of one provider."""

from __future__ import annotations

import ipaddress
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StrictFloat, StrictInt

from runfleet.spec.base import LabelValue, Named, PoolName, Spec, Syntax
from runfleet.spec.units import Size


class Provider(StrEnum):
    """Whose cloud a cell is on; ``own`` is hardware without a cloud."""

    AWS = "aws"
    GCP = "gcp"
    AZURE = "azure"
    IBM = "ibm"
    OWN = "own"


def _network(value: str) -> str:
    try:
        ipaddress.ip_network(value)
    except ValueError as error:
        raise ValueError(f"an IP range such as 10.12.0.0/16 ({error})") from None
    return value


Cidr = Annotated[
    str, AfterValidator(_network), Field(json_schema_extra={"format": "cidr"})
]


ClusterName = Annotated[
    str, Syntax(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", "a cluster name", 40)
]


class NetworkSettings(Spec):
    """The private network of a cell."""

    cidr: Cidr = Field(description="Range of the network; must not overlap others.")
    pods: Cidr | None = Field(
        default=None,
        description="Second range for pods, where the cloud wants one "
        "(Google Cloud, Azure, IBM Cloud).",
    )
    services: Cidr | None = Field(
        default=None, description="Range of Kubernetes service addresses."
    )
    nat: Literal["per-zone", "single"] = Field(
        default="per-zone",
        description="One NAT gateway per zone, or one for all (cheaper, less safe).",
    )
    egress: list[Cidr] = Field(
        default_factory=lambda: ["0.0.0.0/0"],
        description="Where nodes may open HTTPS connections to.",
    )
    adopt: str | None = Field(
        default=None, description="Id of an existing network to use instead of making."
    )


class ApiAccess(Spec):
    """How the cluster's API is reached by a deployment.

    ``private``: from inside the network; ``tunnel``: through an HTTPS proxy;
    ``allow-list``: a public endpoint open to the listed ranges only.
    """

    mode: Literal["private", "tunnel", "allow-list"] = Field(
        default="private", description="private, tunnel or allow-list."
    )
    proxy: str | None = Field(
        default=None, description="Proxy address, such as https://proxy:3128 (tunnel)."
    )
    allow: list[Cidr] = Field(
        default_factory=list[str], description="Ranges that may connect (allow-list)."
    )


class BaseNodes(Spec):
    """The small fixed group of nodes that carries system pods."""

    machine: str = Field(description="Machine, such as m7i.4xlarge.")
    count: StrictInt = Field(default=3, ge=1, le=50, description="Nodes, fixed.")
    disk: Size = Field(default=Size.gib_of(100), description="Root disk of each.")


class RunnerPods(Spec):
    """The small pods that talk to GitHub, one beside each job."""

    pool: PoolName | None = Field(
        default=None, description="Pool that carries them; default: the job's pool."
    )
    cpu: StrictFloat = Field(
        default=0.75, gt=0, le=64, description="Cores that each requests."
    )
    memory: Size = Field(
        default=Size.gib_of(1), description="Memory that each requests."
    )


class Cell(Named):
    """One cluster in one account and region of one provider."""

    provider: Provider = Field(description="aws, gcp, azure, ibm or own.")
    account: str = Field(
        default="",
        description="Account (AWS), project (Google Cloud), subscription (Azure) or "
        "account (IBM Cloud) id.",
    )
    account_number: str | None = Field(
        default=None,
        description="Google Cloud project number or Azure tenant id.",
    )
    region: str = Field(default="", description="Region, such as us-east-1.")
    zones: list[str] = Field(
        default_factory=list[str], description="Two or three zones of the region."
    )
    cluster: ClusterName = Field(description="Name of the cluster.")
    network: NetworkSettings | None = Field(
        default=None, description="The private network; not for own hardware."
    )
    api_access: ApiAccess = Field(
        default_factory=ApiAccess, description="How deployments reach the API."
    )
    admins: list[str] = Field(
        default_factory=list[str],
        description="Roles or groups that administer the cluster.",
    )
    base_nodes: BaseNodes | None = Field(
        default=None, description="Nodes for system pods."
    )
    runner_pods: RunnerPods = Field(
        default_factory=RunnerPods, description="Where runner pods run and their size."
    )
    funder: LabelValue = Field(description="Who pays for it.")
    label_prefix: str = Field(
        default="",
        pattern=r"^([a-z0-9][a-z0-9-]*-)?$",
        description="Prefix of every label that it serves, such as lf-.",
    )
    runner_group: str = Field(description="Runner group that its runners register in.")
    release_runner_group: str | None = Field(
        default=None, description="Runner group of its release classes."
    )
    kubeconfig: str | None = Field(
        default=None,
        description="Reference of the kubeconfig secret of a cluster that exists "
        "already (own hardware).",
    )
    weight: StrictInt = Field(
        default=100, ge=0, le=100, description="Share of jobs relative to other cells."
    )
    adopt_cluster: str | None = Field(
        default=None, description="Name of an existing cluster to use."
    )
    settings: dict[str, Any] = Field(
        default_factory=dict[str, Any],
        description="Settings that only this provider has; each cloud checks its own.",
    )

    def runner_label(self, runner_class: str) -> str:
        """Return the label that jobs use for a class in this cell."""
        return f"{self.label_prefix}{runner_class}"
