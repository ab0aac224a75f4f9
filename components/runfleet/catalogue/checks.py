"""Checks of a fleet against the table of machines.

The fleet file's own checks know no machines, so that they stay pure data. These know
the table: that a machine exists on the provider and has the pool's architecture,
that a pool can hold the classes that name it, that a reservation can be used.
A cell of one's own hardware has no catalogue, so its machines are free names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from runfleet.catalogue.machines import Machine, Machines, Status
from runfleet.errors import Problem
from runfleet.spec.cells import Provider
from runfleet.spec.classes import PlacementMode, RunnerClass
from runfleet.spec.fleet import Fleet
from runfleet.spec.pools import Pool
from runfleet.spec.source import Path, Source, nearest
from runfleet.spec.units import Size


def machine_problems(
    fleet: Fleet, source: Source, machines: Machines
) -> Iterator[Problem]:
    """Yield what cannot be built because of the machines that a fleet names.

    Args:
        fleet: A fleet whose parts are each well formed.
        source: The file that it was read from, for lines.
        machines: The table of machines.
    """
    for cell in fleet.cells.values():
        if cell.base_nodes is not None:
            at: Path = ("cells", cell.name, "base_nodes", "machine")
            name = cell.base_nodes.machine
            yield from _known(source, at, cell.provider, name, machines)
    for pool in fleet.pools.values():
        yield from _pool(pool, source, machines)
    for runner_class in fleet.runner_classes.values():
        yield from _class(fleet, runner_class, source, machines)
    yield from _reservations(fleet, source, machines)


def shortfall(runner_class: RunnerClass, machine: Machine) -> str:
    """Say what a machine lacks for one job of a class; empty when it holds it.

    Args:
        runner_class: The class.
        machine: The machine, at its advertised size: what the system itself takes
            of a node is not counted here.
    """
    need = runner_class.hardware
    lacks: list[str] = []
    if machine.arch != need.arch:
        lacks.append(f"it is {machine.arch}, the class needs {need.arch}")
    if machine.vcpu < need.vcpu:
        lacks.append(f"{machine.vcpu:g} vCPU for {need.vcpu:g}")
    if machine.memory_gib < need.memory.gib:
        lacks.append(f"{machine.memory_gib:g}GiB for {need.memory}")
    wanted = need.accelerator
    if wanted is not None:
        if machine.accelerator_count < wanted.count:
            have = f"{machine.accelerator_count:g} {machine.accelerator}".strip()
            lacks.append(f"{have} accelerators for {wanted.count:g} {wanted.model}")
        elif machine.accelerator != wanted.model:
            lacks.append(f"{machine.accelerator} for {wanted.model}")
        elif (
            wanted.memory is not None
            and machine.accelerator_memory_gib is not None
            and machine.accelerator_memory_gib < wanted.memory.gib
        ):
            have_memory = Size.gib_of(machine.accelerator_memory_gib)
            lacks.append(f"{have_memory} per accelerator for {wanted.memory}")
    return "; ".join(lacks)


def _pool(pool: Pool, source: Source, machines: Machines) -> Iterator[Problem]:
    for index, shape in enumerate(pool.machines):
        at: Path = ("pools", pool.name, "machines", index, "machine")
        yield from _known(source, at, pool.provider, shape.machine, machines)
        machine = machines.get(pool.provider, shape.machine)
        if machine is None:
            continue
        if machine.arch != pool.arch:
            yield source.problem(
                at,
                f"is {machine.arch}, pool {pool.name} is {pool.arch}",
                found=shape.machine,
                allowed=f"machines that are {pool.arch}",
            )
        if pool.gpu and not machine.accelerator_count:
            yield source.problem(
                at,
                f"has no accelerator, pool {pool.name} has `gpu: true`",
                found=shape.machine,
            )


def _class(
    fleet: Fleet, runner_class: RunnerClass, source: Source, machines: Machines
) -> Iterator[Problem]:
    if runner_class.placement is PlacementMode.EXTERNAL:
        return
    pool = fleet.pools.get(runner_class.pool or "")
    pinned = runner_class.hardware.machine
    if pinned is not None:
        yield from _pinned(fleet, runner_class, pinned, pool, source, machines)
        return
    if pool is None or pool.provider is Provider.OWN:
        return
    shapes = runner_class.machines(pool)
    known = [machines.get(pool.provider, shape.machine) for shape in shapes]
    found = [machine for machine in known if machine is not None]
    if len(found) < len(shapes) or not found or pool.arch != runner_class.hardware.arch:
        return  # reported where the machine or the pool is named
    lacks = {machine.name: shortfall(runner_class, machine) for machine in found}
    if all(lacks.values()):
        largest = max(found, key=lambda m: (m.accelerator_count, m.vcpu, m.memory_gib))
        yield source.problem(
            ("runner_classes", runner_class.name, "hardware"),
            f"no machine of pool {pool.name} can hold the class; "
            f"{largest.name} has {lacks[largest.name]}",
        )


def _pinned(
    fleet: Fleet,
    runner_class: RunnerClass,
    name: str,
    pool: Pool | None,
    source: Source,
    machines: Machines,
) -> Iterator[Problem]:
    at: Path = ("runner_classes", runner_class.name, "hardware", "machine")
    providers = (
        [pool.provider]
        if pool is not None
        else sorted({cell.provider for cell in fleet.cells.values()})
    )
    if Provider.OWN in providers:
        return
    found = [m for p in providers if (m := machines.get(p, name)) is not None]
    if not found:
        yield from _known(source, at, providers[0], name, machines)
        return
    if pool is not None and name not in {shape.machine for shape in pool.machines}:
        yield source.problem(
            at,
            f"is not a machine of pool {pool.name}",
            found=name,
            allowed=", ".join(shape.machine for shape in pool.machines),
        )
        return
    for machine in found:
        lacks = shortfall(runner_class, machine)
        if lacks:
            yield source.problem(
                at, f"cannot hold the class: it has {lacks}", found=name
            )


def _reservations(
    fleet: Fleet, source: Source, machines: Machines
) -> Iterator[Problem]:
    for name, reservation in fleet.reservations.items():
        cell = fleet.cells.get(reservation.cell)
        if cell is None or cell.provider is Provider.OWN:
            continue
        at: Path = ("reservations", name, "machine")
        problems = list(
            _known(source, at, cell.provider, reservation.machine, machines)
        )
        yield from problems
        usable = {
            shape.machine for pool in fleet.pools_in(cell) for shape in pool.machines
        }
        if not problems and reservation.machine not in usable:
            yield source.problem(
                at,
                f"no pool of cell {cell.name} has this machine",
                found=reservation.machine,
                allowed=", ".join(sorted(usable)),
            )


def _known(
    source: Source, at: Path, provider: Provider, name: str, machines: Machines
) -> Iterable[Problem]:
    if provider is Provider.OWN:
        return
    machine = machines.get(provider, name)
    if machine is None:
        others = machines.providers_of(name)
        message = f"{provider} has no machine of this name in the catalogue"
        if others:
            message += f"; it is a machine of {', '.join(others)}"
        names = [other.name for other in machines.of(provider)]
        yield source.problem(at, message, found=name, nearest=nearest(name, names))
    elif machine.status is not Status.AVAILABLE:
        yield source.problem(at, f"is {machine.status}: {machine.reason}", found=name)
