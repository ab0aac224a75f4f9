"""Several classes on one machine shape: how many machines a mix of jobs needs.

First-fit decreasing in all dimensions at once: the largest jobs first, each into the
first machine that still has room for it. It needs at most a few machines more than the
best packing and gives the same answer for the same mix in any order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from runfleet.placement.fit import Allocatable, Need, accelerator_jobs, jobs_on
from runfleet.placement.tables import Overhead


@dataclass(frozen=True)
class Packed:
    """Machines that a mix of jobs needs.

    Attributes:
        machines: Machines of the shape.
        contents: Jobs by class on each, as (jobs by class, machines filled so).
        unfit: Classes of which not even one job fits on a machine.
    """

    machines: int
    contents: tuple[tuple[tuple[tuple[str, int], ...], int], ...]
    unfit: tuple[str, ...]


def pack(
    jobs: Mapping[str, tuple[Need, int]], room: Allocatable, extra: Overhead
) -> Packed:
    """Return how many machines of one shape a mix of jobs needs.

    Args:
        jobs: What one job needs and how many there are, by class.
        room: What jobs can have of a machine.
        extra: What each job takes beside its class's need.
    """
    unfit = tuple(
        sorted(n for n, (need, _) in jobs.items() if not jobs_on(need, room, extra))
    )
    queue = sorted(
        ((name, need, count) for name, (need, count) in jobs.items() if count > 0),
        key=lambda entry: (_weight(entry[1], room), entry[0]),
        reverse=True,
    )
    left = {name: count for name, _, count in queue if name not in unfit}
    filled: list[tuple[tuple[tuple[str, int], ...], int]] = []
    while any(left.values()):
        content = _fill(queue, left, room, extra)
        # The same content repeats until a class runs out: count it at once.
        times = min(left[name] // count for name, count in content)
        for name, count in content:
            left[name] -= count * times
        filled.append((content, times))
    return Packed(sum(times for _, times in filled), tuple(filled), unfit)


def _fill(
    queue: list[tuple[str, Need, int]],
    left: Mapping[str, int],
    room: Allocatable,
    extra: Overhead,
) -> tuple[tuple[str, int], ...]:
    """Return what one machine takes of the jobs that are left, at least one job."""
    free = room
    content: list[tuple[str, int]] = []
    for name, need, _ in queue:
        if not left.get(name) or (need.whole_node and content):
            continue
        count = min(left[name], jobs_on(need, free, extra))
        if not count:
            continue
        content.append((name, count))
        if need.whole_node:
            break
        free = Allocatable(
            vcpu=free.vcpu - count * (need.vcpu + extra.vcpu),
            memory_gib=free.memory_gib - count * (need.memory_gib + extra.memory_gib),
            accelerators=_devices_left(free.accelerators, need.accelerators, count),
            disk_gib=free.disk_gib - count * need.disk_gib,
            pods=free.pods - count,
        )
    return tuple(content)


def _devices_left(has: float, wanted: float, jobs: int) -> float:
    if not wanted or not accelerator_jobs(wanted, has):
        return has
    return has - jobs * max(1.0, wanted) if has >= 1 else 0.0


def _weight(need: Need, room: Allocatable) -> float:
    """Return the largest share of a machine that one job takes of any resource."""
    shares = [
        need.vcpu / room.vcpu if room.vcpu else 0.0,
        need.memory_gib / room.memory_gib if room.memory_gib else 0.0,
        need.disk_gib / room.disk_gib if room.disk_gib else 0.0,
    ]
    if need.accelerators and room.accelerators:
        shares.append(need.accelerators / room.accelerators)
    return 1.0 if need.whole_node else max(shares)
