"""What GKE must be told about a machine type that its name alone does not say.

Node pools name the accelerators that come with a machine, so that GKE installs their
driver; the types of boot disks depend on the machine series; local disks are counted.
Tables of facts, each with its source.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

GPUS: Mapping[str, str] = {
    "a2-highgpu": "nvidia-tesla-a100",
    "a2-megagpu": "nvidia-tesla-a100",
    "a2-ultragpu": "nvidia-a100-80gb",
    "a3-highgpu": "nvidia-h100-80gb",
    "a3-edgegpu": "nvidia-h100-80gb",
    "a3-megagpu": "nvidia-h100-mega-80gb",
    "a3-ultragpu": "nvidia-h200-141gb",
    "a4-highgpu": "nvidia-b200",
    "a4x-highgpu": "nvidia-gb200",
    "g2-standard": "nvidia-l4",
    "g4-standard": "nvidia-rtx-pro-6000",
}
"""GPU type by machine family (Compute Engine documentation, "GPU machine types")."""

_SIZES: Mapping[str, Mapping[int, int]] = {
    "g2-standard": {4: 1, 8: 1, 12: 1, 16: 1, 24: 2, 32: 1, 48: 4, 96: 8},
    "g4-standard": {48: 1, 96: 2, 192: 4, 384: 8},
}
"""GPUs by number of vCPUs, for families whose names do not count GPUs."""

_LOCAL_SSDS: Mapping[str, int] = {
    "a2-ultragpu-1g": 1,
    "a2-ultragpu-2g": 2,
    "a2-ultragpu-4g": 4,
    "a2-ultragpu-8g": 8,
    "a3-highgpu-1g": 2,
    "a3-highgpu-2g": 4,
    "a3-highgpu-4g": 8,
    "a3-highgpu-8g": 16,
    "a3-megagpu-8g": 16,
    "a3-ultragpu-8g": 32,
    "a4-highgpu-8g": 32,
}
"""Local disks that come with a machine (Compute Engine documentation, "About Local
SSD disks", "Machine types that automatically attach Local SSD disks")."""

_HYPERDISK = re.compile(
    r"(a3-ultragpu|a4|a4x|c4|c4a|c4d|g4|h4d|m4|n4|n4a|n4d|ct6e|tpu7x)-"
)
"""Series that boot from Hyperdisk only (Compute Engine documentation, "Machine
series comparison"; for TPUs, GKE documentation, "Plan TPUs in GKE")."""

_TPU = re.compile(r"(ct[0-9a-z]+|tpu[0-9a-z]+)-\w+-(\d+)t")
"""TPU machine types end in their number of chips (GKE documentation, "Plan TPUs in
GKE")."""


@dataclass(frozen=True)
class Gpus:
    """The GPUs of a machine.

    Attributes:
        type: What Compute Engine calls them.
        count: How many.
    """

    type: str
    count: int


def gpus(machine: str) -> Gpus | None:
    """Return the GPUs that come with a machine type; ``None`` without."""
    family, _, size = machine.rpartition("-")
    kind = GPUS.get(family)
    if kind is None:
        return None
    if family in _SIZES:
        count = _SIZES[family].get(int(size)) if size.isdigit() else None
        return Gpus(kind, count) if count else None
    found = re.fullmatch(r"(\d+)g", size)
    return Gpus(kind, int(found[1])) if found else None


def tpu_chips(machine: str) -> int:
    """Return the TPU chips of a machine type; 0 without."""
    found = _TPU.fullmatch(machine)
    return int(found[2]) if found else 0


def slice_machines(machine: str, topology: str) -> int:
    """Return how many machines a TPU slice has.

    Args:
        machine: A TPU machine type.
        topology: The slice's chips, such as ``4x4``.

    Raises:
        ValueError: The slice is not made of whole machines.
    """
    chips = 1
    for side in topology.split("x"):
        chips *= int(side)
    each = tpu_chips(machine)
    if not each or chips % each:
        raise ValueError(
            f"a slice of {topology} is {chips} chips, which {machine} with {each} "
            "does not make up"
        )
    return chips // each


def disk_type(machine: str) -> str:
    """Return the type of boot disk for a machine type."""
    return "hyperdisk-balanced" if _HYPERDISK.match(machine) else "pd-balanced"


def local_ssds(machine: str) -> int | None:
    """Return the local disks of a machine type; ``None`` when not known."""
    return _LOCAL_SSDS.get(machine)
