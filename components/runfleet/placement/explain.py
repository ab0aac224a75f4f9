"""Why each offer lost: the first thing that kept it from serving a class.

The checks stand in a fixed order, from what no money changes (architecture) to what
only money decides (price), so an offer has one reason and the same one every time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from runfleet.placement.fit import Need, accelerator_jobs, jobs_on
from runfleet.placement.ladder import Ranked, rank
from runfleet.placement.offers import Offer, PriceKind


class Lost(StrEnum):
    """What an offer lost by, in the order in which it is asked."""

    AVAILABILITY = "availability"
    ARCHITECTURE = "architecture"
    ACCELERATOR = "accelerator"
    VCPU = "vcpu"
    MEMORY = "memory"
    DISK = "disk"
    REGION = "region"
    QUOTA = "quota"
    POLICY = "policy"
    PRICE_UNKNOWN = "price unknown"
    PRICE = "price"


@dataclass(frozen=True)
class Explanation:
    """Why one offer does not serve a class.

    Attributes:
        offer: The offer.
        lost: What it lost by.
        why: The numbers, in words.
    """

    offer: Offer
    lost: Lost
    why: str

    def as_dict(self) -> dict[str, object]:
        """Return it as plain data."""
        return {
            "cell": self.offer.cell,
            "machine": self.offer.machine.name,
            "kind": str(self.offer.kind),
            "lost": str(self.lost),
            "why": self.why,
        }


def explain(
    need: Need,
    offers: Iterable[Offer],
    winners: Iterable[Offer],
    best: Ranked | None,
    allowed: Callable[[Offer], str] | None = None,
) -> Iterator[Explanation]:
    """Yield the reason of each offer that lost, in the offers' order.

    Args:
        need: What one job of the class needs.
        offers: Every offer that was there.
        winners: The offers that serve the class; they are left out.
        best: The first rung, that prices are compared with.
        allowed: Says why a rule keeps an offer out; an empty text when none does.
    """
    chosen = {id(offer) for offer in winners}
    for offer in offers:
        if id(offer) not in chosen:
            yield explain_one(need, offer, best, allowed)


def explain_one(
    need: Need,
    offer: Offer,
    best: Ranked | None,
    allowed: Callable[[Offer], str] | None = None,
) -> Explanation:
    """Return the reason of one offer that lost; see :func:`explain`."""
    found = _obstacle(need, offer, allowed)
    if found is None:
        why = _dearer(rank(need, offer), best)
        return Explanation(offer, Lost.PRICE, why)
    return Explanation(offer, found.lost, found.why)


def zero_reason(
    need: Need,
    offers: Iterable[Offer],
    allowed: Callable[[Offer], str] | None = None,
) -> str:
    """Say why no offer serves a class, by the example of the one that came nearest.

    An offer is nearer the later it failed, so that "memory" is said of a class for
    which machines with its accelerator exist, and "accelerator" only where none does.
    """
    nearest: _Obstacle | None = None
    example: Offer | None = None
    for offer in offers:
        found = _obstacle(need, offer, allowed)
        if found is None:
            continue
        if nearest is None or (found.stage, found.closeness) > (
            nearest.stage,
            nearest.closeness,
        ):
            nearest, example = found, offer
    if nearest is None or example is None:
        return "availability: there is no offer at all"
    if nearest.stage is _Stage.ARCHITECTURE:
        return f"{nearest.lost}: no machine is {need.arch} ({need.os})"
    if nearest.stage is _Stage.MODEL:
        return f"{nearest.lost}: no machine has {need.accelerator or 'none'}"
    return f"{nearest.lost}: {example.machine.name}: {nearest.why}"


class _Stage(IntEnum):
    """How far an offer came: the checks, in their order."""

    AVAILABILITY = 0
    ARCHITECTURE = 1
    MODEL = 2
    FEATURES = 3
    ACCELERATOR = 4
    SIZE = 5
    REGION = 6
    RULES = 7
    PRICE = 8


@dataclass(frozen=True, slots=True)
class _Obstacle:
    """What keeps an offer from serving a class, beside its price.

    Attributes:
        stage: How far it came.
        lost: The reason by name.
        why: The numbers.
        closeness: How near it is among those that came as far, 0 to 1.
    """

    stage: _Stage
    lost: Lost
    why: str
    closeness: float = 0.0


def _obstacle(
    need: Need, offer: Offer, allowed: Callable[[Offer], str] | None
) -> _Obstacle | None:
    machine = offer.machine
    if offer.refused_by == "availability":
        return _Obstacle(_Stage.AVAILABILITY, Lost.AVAILABILITY, offer.refused)
    if need.os != "linux":
        why = f"no node pool runs {need.os}"
        return _Obstacle(_Stage.ARCHITECTURE, Lost.ARCHITECTURE, why)
    if machine.arch != need.arch:
        why = f"is {machine.arch}, not {need.arch}"
        return _Obstacle(_Stage.ARCHITECTURE, Lost.ARCHITECTURE, why)
    if machine.accelerator != need.accelerator:
        why = (
            f"has {machine.accelerator or 'no accelerator'}, "
            f"not {need.accelerator or 'none'}"
        )
        return _Obstacle(_Stage.MODEL, Lost.ACCELERATOR, why)
    if not need.features <= offer.features:
        missing = ", ".join(sorted(need.features - offer.features))
        why = f"no source says that it has {missing}"
        return _Obstacle(_Stage.FEATURES, Lost.ARCHITECTURE, why)
    found = _accelerator(need, offer) or _size(need, offer)
    if found is not None:
        return found
    if offer.refused:
        return _Obstacle(_Stage.REGION, Lost(offer.refused_by), offer.refused)
    found = _rules(need, offer, allowed)
    if found is not None:
        return found
    if offer.usd_h is None and offer.kind is PriceKind.LIST:
        why = f"no source has a price for {offer.region or offer.cell}"
        return _Obstacle(_Stage.PRICE, Lost.PRICE_UNKNOWN, why)
    return None


def _accelerator(need: Need, offer: Offer) -> _Obstacle | None:
    machine = offer.machine
    if need.accelerators and not accelerator_jobs(
        need.accelerators, machine.accelerator_count
    ):
        why = f"has {machine.accelerator_count:g} of {need.accelerators:g}"
        near = machine.accelerator_count / (need.accelerators + 1)
        return _Obstacle(_Stage.ACCELERATOR, Lost.ACCELERATOR, why, near)
    least, has = need.accelerator_memory_gib, machine.accelerator_memory_gib
    if least and (has or 0.0) < least:
        known = f"{has:g} GiB" if has else "unknown memory"
        why = f"has {known} per accelerator, not {least:g} GiB"
        near = 1 + (has or 0.0) / least
        return _Obstacle(_Stage.ACCELERATOR, Lost.ACCELERATOR, why, near)
    return None


def _size(need: Need, offer: Offer) -> _Obstacle | None:
    if jobs_on(need, offer.room, offer.extra):
        return None
    room, extra = offer.room, offer.extra
    vcpu, memory = need.vcpu + extra.vcpu, need.memory_gib + extra.memory_gib
    near = min(1.0, room.vcpu / vcpu) + min(1.0, room.memory_gib / memory)
    if room.vcpu + 1e-6 < vcpu:
        why = f"{room.vcpu:.2f} of {vcpu:.2f} vCPU for jobs"
        return _Obstacle(_Stage.SIZE, Lost.VCPU, why, near)
    if room.memory_gib + 1e-6 < memory:
        why = f"{room.memory_gib:.1f} of {memory:.1f} GiB for jobs"
        return _Obstacle(_Stage.SIZE, Lost.MEMORY, why, near)
    why = f"{room.disk_gib:g} of {need.disk_gib:g} GiB of disk"
    return _Obstacle(_Stage.SIZE, Lost.DISK, why, near)


def _rules(
    need: Need, offer: Offer, allowed: Callable[[Offer], str] | None
) -> _Obstacle | None:
    why = ""
    if need.machine and offer.machine.name != need.machine:
        why = f"the class is pinned to {need.machine}"
    elif offer.kind is PriceKind.SPOT and need.release:
        why = "release code never runs on spot machines"
    elif offer.kind is PriceKind.SPOT and not need.spot:
        why = "the class does not say that it bears spot machines"
    elif allowed is not None:
        why = allowed(offer)
    return _Obstacle(_Stage.RULES, Lost.POLICY, why) if why else None


def _dearer(ranked: Ranked | None, best: Ranked | None) -> str:
    if ranked is None or best is None:
        return "was not chosen"
    price, other = ranked.usd_job_h, best.usd_job_h
    if best.offer.kind in (PriceKind.DONATED, PriceKind.RESERVED):
        return f"{price or 0:.4f} USD per job-hour; the first rung is {best.offer.kind}"
    if price is None or not other:
        return "was not chosen"
    return f"{price:.4f} USD per job-hour, {price / other:.2f} times the first rung"
