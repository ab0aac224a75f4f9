"""Facts that placement needs beside the table of machines, with their sources.

``data/cpus.csv``: which instruction sets a family of machines has.
``data/overhead.csv``: what system pods take of each node and each job.
``data/pods.csv``: most pods of an AWS machine, from its network interfaces, in
getmoto/moto 5.2.5 ``moto/ec2/resources/instance_types.json.gz`` (an extract of the
AWS API DescribeInstanceTypes): interfaces times (addresses less one), plus two.
``data/regions.csv``: the regions of each cloud.
``data/offered.csv``: regions where a machine is sold. For Google Cloud and Azure these
are the regions for which the price tables named in ``regions.csv`` have a price of
it; for IBM Cloud ibm-cloud-docs/vpc (commit 3fdff6f64) ``vsi_is_profiles.md`` and
``bare_metal_server_profile.md``. A machine that is not in the table is assumed to be
sold in every region of its cloud.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from runfleet.catalogue.machines import Machine
from runfleet.spec.cells import Provider

_AZURE = re.compile(r"standard_([a-z]+)\d+([a-z]*)_?(.*)")


@dataclass(frozen=True)
class Overhead:
    """What pods that are no job take.

    Attributes:
        vcpu: Virtual CPUs.
        memory_gib: Memory in GiB.
    """

    vcpu: float = 0.0
    memory_gib: float = 0.0

    def __add__(self, other: Overhead) -> Overhead:
        """Add two overheads."""
        return Overhead(self.vcpu + other.vcpu, self.memory_gib + other.memory_gib)


@dataclass(frozen=True)
class Tables:
    """The tables, indexed for look-ups.

    Attributes:
        features: Instruction sets by provider and family.
        makers: Who makes the CPU, by provider and family.
        node: Overhead of each node, by provider.
        accelerator_node: More overhead of each node with accelerators, by provider.
        job: Overhead of each job, by provider.
        assumed: Providers whose overhead is partly an allowance, not a measurement.
        pods: Most pods by provider and machine.
        regions: Regions by provider.
        offered: Regions where a machine is sold, by provider and machine.
    """

    features: Mapping[tuple[Provider, str], frozenset[str]]
    makers: Mapping[tuple[Provider, str], str]
    node: Mapping[Provider, Overhead]
    accelerator_node: Mapping[Provider, Overhead]
    job: Mapping[Provider, Overhead]
    assumed: frozenset[Provider]
    pods: Mapping[tuple[Provider, str], int]
    regions: Mapping[Provider, tuple[str, ...]]
    offered: Mapping[tuple[Provider, str], frozenset[str]]


@cache
def tables() -> Tables:
    """Return the package's tables; they are read once."""
    cpus = _rows("cpus.csv")
    overhead = _rows("overhead.csv")
    regions: dict[Provider, tuple[str, ...]] = {}
    for row in _rows("regions.csv"):
        provider = Provider(row["provider"])
        regions[provider] = (*regions.get(provider, ()), row["region"])
    return Tables(
        features={_key(row, "family"): _words(row["features"]) for row in cpus},
        makers={_key(row, "family"): row["maker"] for row in cpus},
        node=_overhead(overhead, "node"),
        accelerator_node=_overhead(overhead, "accelerator-node"),
        job=_overhead(overhead, "job"),
        assumed=frozenset(
            Provider(row["provider"]) for row in overhead if row["assumed"] == "yes"
        ),
        pods={_key(row, "machine"): int(row["max_pods"]) for row in _rows("pods.csv")},
        regions=regions,
        offered={
            _key(row, "machine"): _words(row["regions"]) for row in _rows("offered.csv")
        },
    )


def family_of(machine: Machine) -> str:
    """Return the family of a machine: its name without the size.

    ``c7i`` for ``c7i.2xlarge``, ``c3-standard`` for ``c3-standard-44``,
    ``ncads-a100-v4`` for ``Standard_NC24ads_A100_v4``, ``bx2`` for ``bx2-8x32``. The
    result is a valid part of a pool's name.
    """
    name = machine.name.lower()
    if machine.provider is Provider.AWS:
        return name.split(".")[0]
    if machine.provider is Provider.AZURE:
        match = _AZURE.fullmatch(name)
        if match is not None:
            parts = (match[1] + match[2], match[3].replace("_", "-"))
            return "-".join(part for part in parts if part)
    if machine.provider is Provider.IBM:
        return re.split(r"-\d", name)[0]
    if machine.provider is Provider.GCP:
        return name.rsplit("-", 1)[0]
    return re.sub(r"[^a-z0-9]+", "-", name).strip("-")


def _overhead(rows: list[dict[str, str]], per: str) -> dict[Provider, Overhead]:
    return {
        provider: sum(
            (
                Overhead(int(row["cpu_m"]) / 1000, int(row["memory_mib"]) / 1024)
                for row in rows
                if row["per"] == per and row["provider"] in ("all", str(provider))
            ),
            Overhead(),
        )
        for provider in Provider
    }


def _rows(name: str) -> list[dict[str, str]]:
    data = resources.files("runfleet.placement").joinpath("data", name)
    return list(csv.DictReader(io.StringIO(data.read_text(encoding="utf-8"))))


def _key(row: Mapping[str, str], column: str) -> tuple[Provider, str]:
    return Provider(row["provider"]), row[column]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())
