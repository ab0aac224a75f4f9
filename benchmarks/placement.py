"""Placement: the PyTorch fleet on four clouds, and thousands of classes over offers.

The named other is the plain nested loop over the same objects (every class tries every
offer), which is what a first version would do. It is timed on a part of the classes,
because it would take minutes on all.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from runfleet.catalogue.machines import Machine, Machines
from runfleet.placement.fit import Need, allocatable, features_of
from runfleet.placement.ladder import OfferIndex, plain_ladder
from runfleet.placement.moves import MovableFleet, Target
from runfleet.placement.offers import Offer, PriceKind
from runfleet.placement.tables import tables
from runfleet.spec.load import build_fleet
from runfleet.spec.source import parse_source

FLEET = Path("playbooks/pytorch/fleet.yaml")

_CELL = """
  {provider}-bench:
    provider: {provider}
    account: "1"
    account_number: "1"
    region: {region}
    zones: [{region}-1, {region}-2]
    cluster: bench-{provider}
    network: {{cidr: 10.{octet}.0.0/16}}
    base_nodes: {{machine: {machine}}}
    funder: bench
    runner_group: lf-prod-aws-ue1
    release_runner_group: lf-prod-aws-ue1-release-runners
"""
_CELLS = (
    ("gcp", "us-central1", "n2-standard-8"),
    ("azure", "eastus", "Standard_D8ds_v6"),
    ("ibm", "us-south", "bx2-8x32"),
)


def run() -> None:
    """Print the time to place the PyTorch fleet, and a fleet of thousands."""
    machines = Machines.load()
    _pytorch(machines)
    _thousands(machines, classes=5000, count=60_000)


def _pytorch(machines: Machines) -> None:
    text = FLEET.read_text(encoding="utf-8")
    here = {line for line in text.splitlines() if line.startswith("    provider: ")}
    more = "".join(
        _CELL.format(provider=p, region=r, machine=m, octet=200 + n)
        for n, (p, r, m) in enumerate(_CELLS)
        if f"    provider: {p}" not in here
    )
    text = text.replace("\ncells:\n", f"\ncells:{more}", 1)
    movable = MovableFleet(build_fleet(parse_source("fleet.yaml", text)), machines)
    for word in (Target.CHEAPEST, Target.ANYWHERE):
        moved = movable.to(word)
        seconds = _median(moved.place)
        placed = len(moved.lock().placed)
        print(
            f"place the PyTorch fleet, {len(machines)} machines, "
            f"{len(movable.fleet.cells)} cells, --to {word}: {seconds * 1000:.1f} ms "
            f"warm, {placed} placed (target 50 ms)",
            flush=True,
        )


def _thousands(machines: Machines, classes: int, count: int) -> None:
    offers = many_offers(machines, count)
    needs = many_needs(machines, classes)
    start = time.perf_counter()
    index = OfferIndex(offers)
    ladders = [index.ladder(need) for need in needs]
    ours = time.perf_counter() - start
    part = needs[:: max(1, classes // 20)]
    start = time.perf_counter()
    plain = [plain_ladder(need, offers) for need in part]
    theirs = (time.perf_counter() - start) * classes / len(part)
    same = [[r.key for r in ladder] for ladder in plain] == [
        [r.key for r in index.ladder(need)] for need in part
    ]
    print(
        f"{classes} classes over {len(offers)} offers: {ours:.2f} s, "
        f"{sum(map(bool, ladders))} with a ladder; nested loops over the same objects: "
        f"{theirs:.0f} s (from {len(part)} classes); ratio {ours / theirs:.4f}; "
        f"the same ladders: {same} (target 2 s)",
        flush=True,
    )


def many_offers(machines: Machines, count: int) -> list[Offer]:
    """Return made-up offers: every machine in made-up regions at scattered prices."""
    random_ = random.Random(20260821)
    shapes = [m for m in machines if m.ondemand_usd_h is not None]
    offers: list[Offer] = []
    while len(offers) < count:
        region = f"region-{len(offers) // len(shapes)}"
        offers += [_offer(m, region, random_) for m in shapes]
    return offers[:count]


def many_needs(machines: Machines, count: int) -> list[Need]:
    """Return made-up needs, all different, half of them with accelerators."""
    random_ = random.Random(42)
    models = sorted({(m.arch, m.accelerator) for m in machines if m.accelerator})
    needs: list[Need] = []
    for number in range(count):
        vcpu = random_.choice([2, 4, 8, 14, 16, 22, 30, 46, 62, 92]) + number / 10**5
        arch, model = random_.choice(models)
        gpu = number % 2 == 0
        needs.append(
            Need(
                arch=arch if gpu else random_.choice(["amd64", "amd64", "arm64"]),
                vcpu=vcpu,
                memory_gib=vcpu * random_.choice([1.8, 3.6, 7.5]),
                disk_gib=100,
                features=frozenset(random_.choice([(), (), ("avx2",), ("avx512",)])),
                accelerator=model if gpu else "",
                accelerators=random_.choice([1, 1, 2, 4, 8]) if gpu else 0,
                whole_node=number % 10 == 0,
                spot=number % 3 == 0,
            )
        )
    return needs


def _offer(machine: Machine, region: str, random_: random.Random) -> Offer:
    kind = random_.choice([PriceKind.LIST, PriceKind.LIST, PriceKind.SPOT])
    price = (machine.ondemand_usd_h or 1.0) * random_.uniform(0.7, 1.6)
    return Offer(
        machine=machine,
        cell=f"{machine.provider}-{region}",
        region=region,
        kind=kind,
        usd_h=round(price * (0.4 if kind is PriceKind.SPOT else 1), 6),
        price_region=region,
        as_of=machine.as_of,
        room=allocatable(machine),
        extra=tables().job[machine.provider],
        features=features_of(machine),
    )


def _median(work: Callable[[], object], runs: int = 15) -> float:
    work()
    times: list[float] = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


if __name__ == "__main__":
    run()
