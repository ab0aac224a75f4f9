"""From machines of the catalogue to worker flavours: two spellings of one thing.

The catalogue holds profiles of virtual servers, ``<family>-<vcpu>x<memory>`` with
``x<n><gpu>`` for GPUs; IBM Cloud Kubernetes Service calls the same machine
``<family>.<vcpu>x<memory>`` with ``.<n><gpu>``, the number left out when it is one. A
wrong spelling is refused only when the worker pool is made, so the translation knows
what exists.

Sources: ibm-cloud-docs/containers (release notes and ``vpc-flavors.md``) and
ibm-cloud-docs/vpc ``vsi_is_profiles.md``, ``hpcs_deprec_ann.md`` and
``s390x-vsi-profiles.md``, read 2026-08.
"""

from __future__ import annotations

import math
import re

from runfleet.errors import InputError, Problem
from runfleet.spec.pools import Pool, PoolMachine

S390X_CLOSED = (
    "LinuxONE virtual servers for VPC take no new instances since 2026-02-28 and all "
    "end on 2027-02-20; make it a class on own hardware"
)
"""Why nothing on s390x can be made (ibm-cloud-docs/vpc ``hpcs_deprec_ann.md``)."""

GPUS = ("v100", "l4", "l40s", "h100", "h200")
"""GPUs that worker flavours exist for."""

PRIMARY_GIB = 100
"""Disk that every worker has."""

SECONDARY: tuple[tuple[int, str], ...] = (
    (300, "300gb.5iops-tier"),
    (600, "600gb.5iops-tier"),
    (900, "900gb.5iops-tier"),
    (1200, "1200gb.5iops-tier"),
    (1600, "1600gb.5iops-tier"),
    (2400, "2400gb.10iops-tier"),
    (3000, "3000gb.10iops-tier"),
    (4000, "4000gb.10iops-tier"),
)
"""Second disks for container data, in GB (``vpc-flavors.md``)."""

_GIB_IN_GB = 1.073741824

_CPU = re.compile(r"([bcm]x[23]d?)-(\d+x\d+)")
_GPU = re.compile(r"(g[a-z]\d[a-z]?)-(\d+x\d+)x(\d+)([a-z][a-z0-9]*)")
_FLAVOR = re.compile(r"[a-z]{2}\d[a-z]?\.\d+x\d+(?:\.\d*[a-z][a-z0-9]*)?")
_S390X = re.compile(r"[bcm]z2-\d+x\d+")


class FlavorError(InputError):
    """A machine that no worker pool can have (exit 2)."""

    def __init__(self, path: str, reason: str, machine: str) -> None:
        """Say which machine is refused, and why."""
        super().__init__(
            [Problem("fleet file", 0, path, reason, machine, nearest=_nearest(machine))]
        )


def worker_flavor(machine: str, path: str = "machine") -> str:
    """Return the worker flavour of a machine.

    Args:
        machine: A profile of a virtual server, or a flavour already.
        path: Where it stands in the fleet file, for the message.

    Raises:
        FlavorError: Worker pools have no such machine.
    """
    if _FLAVOR.fullmatch(machine):
        return machine
    if _S390X.fullmatch(machine):
        raise FlavorError(path, S390X_CLOSED, machine)
    if found := _CPU.fullmatch(machine):
        return f"{found[1]}.{found[2]}"
    if found := _GPU.fullmatch(machine):
        family, size, count, gpu = found.groups()
        if gpu in GPUS:
            return f"{family}.{size}.{'' if count == '1' else count}{gpu}"
        reason = f"no worker flavour with {gpu} is known; GPUs of workers: "
        raise FlavorError(path, reason + ", ".join(GPUS), machine)
    reason = "is no profile of a virtual server that workers can have"
    if "metal" in machine:
        reason = "bare metal workers cannot be autoscaled and are not offered for VPC"
    raise FlavorError(path, reason, machine)


def pool_flavor(pool: Pool, machine: PoolMachine, node_name: str) -> str:
    """Return the worker flavour of a shape of a pool.

    Args:
        pool: The pool.
        machine: The shape.
        node_name: What node pools call it, where placement says so.

    Raises:
        FlavorError: Worker pools have no such machine, or none of the pool's
            architecture.
    """
    path = f"pools.{pool.name}"
    if pool.arch == "s390x":
        raise FlavorError(path, S390X_CLOSED, machine.machine)
    if pool.arch != "amd64":
        reason = f"workers are amd64 only, the pool is {pool.arch}"
        raise FlavorError(path, reason, machine.machine)
    return worker_flavor(node_name, path)


def secondary_storage(gib: float, path: str = "disk") -> str | None:
    """Return the second disk that gives a worker enough room, or ``None``.

    Container data lies on the second disk when there is one, so that one alone must
    be large enough.

    Args:
        gib: What a node needs, in GiB.
        path: Where it stands in the fleet file, for the message.

    Raises:
        FlavorError: No second disk is large enough.
    """
    if gib <= PRIMARY_GIB:
        return None
    for size, name in SECONDARY:
        if size >= gib * _GIB_IN_GB:
            return name
    most = math.floor(SECONDARY[-1][0] / _GIB_IN_GB)
    raise FlavorError(path, f"workers have at most {most} GiB of disk", f"{gib:g}GiB")


def _nearest(machine: str) -> str:
    """Return what a misspelt GPU profile should be, when that is clear."""
    found = re.fullmatch(r"(g[a-z]\d[a-z]?)-(\d+x\d+)x([a-z][a-z0-9]*)", machine)
    return f"{found[1]}-{found[2]}x1{found[3]}" if found and found[3] in GPUS else ""
