"""What a job really gets of a machine, and how many jobs fit on one.

A machine's advertised size is not what jobs can have. In this order are taken away:

1. The machine's own overhead: a node sees less memory than is advertised. Karpenter
   subtracts 7.5 % (``VM_MEMORY_OVERHEAD_PERCENT``, aws/karpenter-provider-aws v1.14.1
   and Azure/karpenter-provider-azure); the same share is taken on the other clouds,
   where no source says another one.
2. What the kubelet keeps for itself (:func:`reserved`), a formula per cloud:

   - EKS (awslabs/amazon-eks-ami, nodeadm's kubelet configuration): memory 255 MiB and
     11 MiB for each pod that the machine can have; CPU 6 % of the first core, 1 % of
     the second, 0.5 % of the next two, 0.25 % of the rest.
   - GKE (cloud.google.com/kubernetes-engine/docs/concepts/plan-node-sizes): memory
     25 % of the first 4 GiB, 20 % of the next 4, 10 % of the next 8, 6 % of the next
     112, 2 % of the rest; CPU as on EKS.
   - AKS from 1.29 (learn.microsoft.com/azure/aks/node-resource-reservations): memory
     20 MB for each pod and 50 MB, at most 25 %; CPU 60 millicores for one core, 100
     for two, 140 for four, then 10 for each core.
   - IKS (cloud.ibm.com/docs/containers, "Checking worker node resource reserves"):
     memory as on GKE; CPU 6 % of the first core, 1 % of the next two, 0.5 % of the
     next two, 0.25 % of the rest.
   - Own hardware: as GKE, the strictest for memory.

3. The hard eviction threshold of 100 MiB, on every cloud (the same pages).
4. The daemon sets (:mod:`runfleet.placement.tables`).

Of the rest, each job takes what its class asks for and what the runner's container
hooks add to its pod, and its runner pod too where the cell has no pool for those.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from runfleet.catalogue.machines import Machine
from runfleet.placement.tables import Overhead, family_of, tables
from runfleet.spec.cells import Cell, Provider
from runfleet.spec.classes import RunnerClass

MEMORY_SEEN = 0.925
"""Share of the advertised memory that a node sees."""

EVICTION_GIB = 100 / 1024
"""Memory that must stay free on a node, in GiB."""

DISK_LIMIT_GIB = {
    Provider.AWS: 16384,
    Provider.GCP: 65536,
    Provider.AZURE: 4095,
    Provider.IBM: 3725,
    Provider.OWN: 16384,
}
"""Largest root disk of a node in GiB: gp3 volumes (EBS user guide), persistent disks
(Compute Engine documentation), OS disks (Azure "managed disks overview"), the storage
option ``4000gb.10iops-tier`` (ibm-cloud-docs/containers ``vpc-flavors.md``). For own
hardware the same as AWS: nothing is known of it."""

DISK_OF_SYSTEM_GIB = 50
"""Part of a node's disk that images of system pods take, in GiB."""

PODS = {
    Provider.AWS: 737,
    Provider.GCP: 110,
    Provider.AZURE: 250,
    Provider.IBM: 110,
    Provider.OWN: 110,
}
"""Most pods of a node where the machine says nothing: the most of any AWS machine,
the defaults of GKE, AKS with overlay network, IKS and Kubernetes."""

_EPSILON = 1e-6


@dataclass(frozen=True)
class Allocatable:
    """What jobs can have of one machine.

    Attributes:
        vcpu: Virtual CPUs.
        memory_gib: Memory in GiB.
        accelerators: Accelerators; below 1 for a share of one.
        disk_gib: Disk in GiB that its root disk can have for jobs.
        pods: Most pods.
    """

    vcpu: float
    memory_gib: float
    accelerators: float
    disk_gib: float
    pods: int


@dataclass(frozen=True)
class Need:
    """What one job of a class needs, whatever machine gives it.

    Attributes:
        arch: CPU architecture.
        os: Operating system.
        vcpu: Virtual CPUs.
        memory_gib: Memory in GiB.
        disk_gib: Disk in GiB.
        features: Instruction sets that the CPU must have.
        accelerator: Accelerator model; empty without one.
        accelerators: Accelerators; below 1 for a share of one.
        accelerator_memory_gib: Least memory of each accelerator in GiB; 0 for any.
        whole_node: Whether it has a node to itself.
        release: Whether it runs release code.
        spot: Whether it may run on machines that can be taken away.
        machine: The only machine that may serve it; empty for any.
    """

    arch: str
    vcpu: float
    memory_gib: float
    os: str = "linux"
    disk_gib: float = 0.0
    features: frozenset[str] = frozenset()
    accelerator: str = ""
    accelerators: float = 0.0
    accelerator_memory_gib: float = 0.0
    whole_node: bool = False
    release: bool = False
    spot: bool = False
    machine: str = ""


def need_of(runner_class: RunnerClass, spot: bool = False) -> Need:
    """Return what one job of a class needs.

    Args:
        runner_class: The class.
        spot: Whether it may use spot machines; a release class never does.
    """
    hardware = runner_class.hardware
    accelerator = hardware.accelerator
    memory = accelerator.memory if accelerator is not None else None
    return Need(
        arch=hardware.arch,
        os=hardware.os,
        vcpu=hardware.vcpu,
        memory_gib=hardware.memory.gib,
        disk_gib=hardware.disk.gib,
        features=frozenset(hardware.features),
        accelerator=accelerator.model if accelerator is not None else "",
        accelerators=accelerator.count if accelerator is not None else 0.0,
        accelerator_memory_gib=memory.gib if memory is not None else 0.0,
        whole_node=hardware.whole_node,
        release=runner_class.release,
        spot=spot and not runner_class.release,
        machine=hardware.machine or "",
    )


def reserved(provider: Provider, vcpu: float, memory_gib: float, pods: int) -> Overhead:
    """Return what the kubelet of a cloud keeps of a node, eviction not included."""
    return _RESERVED[provider](vcpu, memory_gib, pods)


@lru_cache(maxsize=8192)
def allocatable(machine: Machine) -> Allocatable:
    """Return what jobs can have of a machine."""
    facts = tables()
    provider = machine.provider
    pods = facts.pods.get((provider, machine.name), PODS[provider])
    memory = machine.memory_gib * MEMORY_SEEN
    taken = reserved(provider, machine.vcpu, memory, pods) + facts.node[provider]
    if machine.accelerator_count:
        taken += facts.accelerator_node[provider]
    return Allocatable(
        vcpu=max(0.0, machine.vcpu - taken.vcpu),
        memory_gib=max(0.0, memory - taken.memory_gib - EVICTION_GIB),
        accelerators=machine.accelerator_count,
        disk_gib=DISK_LIMIT_GIB[provider] - DISK_OF_SYSTEM_GIB,
        pods=pods,
    )


@lru_cache(maxsize=8192)
def features_of(machine: Machine) -> frozenset[str]:
    """Return the instruction sets that a source says a machine has."""
    key = (machine.provider, family_of(machine))
    return tables().features.get(key, frozenset())


def per_job(cell: Cell) -> Overhead:
    """Return what each job takes in a cell beside what its class asks for."""
    pods = cell.runner_pods
    if pods.pool is not None:
        return tables().job[cell.provider]
    return _with_runner_pod(cell.provider, pods.cpu, pods.memory.gib)


def jobs_on(need: Need, room: Allocatable, extra: Overhead) -> int:
    """Return how many jobs fit on a machine at once, by size alone; 0 for none.

    Architecture, model and features are not looked at here.

    Args:
        need: What one job needs.
        room: What jobs can have of the machine.
        extra: What each job takes beside that.
    """
    vcpu = need.vcpu + extra.vcpu
    memory = need.memory_gib + extra.memory_gib
    fits = min(room.vcpu / vcpu, room.memory_gib / memory)
    if need.disk_gib:
        fits = min(fits, room.disk_gib / need.disk_gib)
    if need.accelerators:
        fits = min(fits, accelerator_jobs(need.accelerators, room.accelerators))
    if fits + _EPSILON < 1:
        return 0
    if need.whole_node:
        return 1
    return min(math.floor(fits + _EPSILON), room.pods)


def accelerator_jobs(wanted: float, has: float) -> int:
    """Return how many jobs the accelerators of a machine serve.

    A device plugin hands out whole devices, so a job that wants a share gets a whole
    one on a machine with whole devices. A machine with a share of a device shows it
    as one device, which serves one job that wants no more than that share.
    """
    if has < 1:
        return int(0 < wanted <= has + _EPSILON and wanted < 1)
    return math.floor(has) // max(1, math.ceil(wanted))


@lru_cache(maxsize=256)
def _with_runner_pod(provider: Provider, cpu: float, memory_gib: float) -> Overhead:
    """Return a job's overhead with its runner pod; the same object for the same."""
    return tables().job[provider] + Overhead(cpu, memory_gib)


def _tiers(amount: float, shares: tuple[tuple[float, float], ...]) -> float:
    """Sum up the shares that are kept of tiers: pairs of a tier's size and share."""
    taken, left = 0.0, amount
    for size, share in shares:
        part = min(left, size)
        taken += part * share
        left -= part
    return taken


_CORES = ((1, 0.06), (1, 0.01), (2, 0.005), (math.inf, 0.0025))
_CORES_IKS = ((1, 0.06), (2, 0.01), (2, 0.005), (math.inf, 0.0025))
_MEMORY = ((4, 0.25), (4, 0.20), (8, 0.10), (112, 0.06), (math.inf, 0.02))


def _eks(vcpu: float, memory_gib: float, pods: int) -> Overhead:
    return Overhead(_tiers(vcpu, _CORES), (255 + 11 * pods) / 1024)


def _gke(vcpu: float, memory_gib: float, pods: int) -> Overhead:
    return Overhead(_tiers(vcpu, _CORES), _tiers(memory_gib, _MEMORY))


def _aks(vcpu: float, memory_gib: float, pods: int) -> Overhead:
    by_pods = (20 * pods + 50) * 10**6 / 1024**3
    cores = 0.06 * vcpu if vcpu < 1 else 0.06 + 0.04 * (min(vcpu, 2) - 1)
    cores += 0.02 * max(0.0, min(vcpu, 4) - 2) + 0.01 * max(0.0, vcpu - 4)
    return Overhead(cores, min(by_pods, 0.25 * memory_gib))


def _iks(vcpu: float, memory_gib: float, pods: int) -> Overhead:
    return Overhead(_tiers(vcpu, _CORES_IKS), _tiers(memory_gib, _MEMORY))


_RESERVED: dict[Provider, Callable[[float, float, int], Overhead]] = {
    Provider.AWS: _eks,
    Provider.GCP: _gke,
    Provider.AZURE: _aks,
    Provider.IBM: _iks,
    Provider.OWN: _gke,
}
