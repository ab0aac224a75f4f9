"""The ladder of a class: the offers that can serve it, best first.

Donated offers come first, then reserved ones, then the others by price per job-hour:
the price of the machine divided by the jobs that fit on it at once. Ties are broken
by a price known for the region over a borrowed one, then by cell, machine and kind, so
that the order of the offers never matters.

How it stays fast for thousands of classes over tens of thousands of offers:
:class:`OfferIndex` puts the offers into buckets by architecture and accelerator model,
because a class can only use one bucket. Inside a bucket, offers of one machine that
leave jobs the same room (the same machine in sixty regions) are one stack, sorted by
price once. How many jobs fit is asked once per stack and class, and because it is the
same for the whole stack, the stack's order by price is its order by price per job too.
The stacks stand in the order of their virtual CPUs, so that a bisection leaves out
those that are too small. A ladder is then merged from the tops of the stacks with a
heap, as many rungs as are asked for. The work per class grows with the number of
different machines in its bucket and not with the number of offers. The result is exact:
a property test compares it with the plain search over all offers. It is plain Python;
no array library is needed.
"""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from runfleet.placement.fit import Need, jobs_on
from runfleet.placement.offers import Offer, PriceKind

DEPTH = 8
"""Rungs that a ladder has unless more are asked for."""

_FREE = {PriceKind.DONATED: 0, PriceKind.RESERVED: 1}
_PRICED = 2

RankKey = tuple[int, float, bool, str, str, str, str]


@dataclass(frozen=True, slots=True)
class Ranked:
    """An offer that can serve a class.

    Attributes:
        offer: The offer.
        jobs: Jobs of the class that fit on the machine at once.
        usd_job_h: Price per job-hour in USD; notional for donated and reserved
            offers; ``None`` when the machine has no price.
    """

    offer: Offer
    jobs: int
    usd_job_h: float | None

    @property
    def key(self) -> RankKey:
        """What the ladder is sorted by; the same whatever order offers came in."""
        offer = self.offer
        price = self.usd_job_h if self.usd_job_h is not None else float("inf")
        return (
            _FREE.get(offer.kind, _PRICED),
            price,
            offer.assumed,
            offer.cell,
            offer.machine.name,
            str(offer.kind),
            offer.reservation,
        )


class OfferIndex:
    """Offers, indexed so that the ladder of a class is found without trying all.

    Attributes:
        offers: All of them.
    """

    offers: Sequence[Offer]

    def __init__(self, offers: Iterable[Offer]) -> None:
        """Index offers; those that cannot be had at all are left out."""
        self.offers = list(offers)
        self._buckets: dict[tuple[str, str], _Bucket] = {}
        grouped: dict[tuple[str, str], list[Offer]] = {}
        for offer in self.offers:
            if not offer.refused:
                key = (offer.machine.arch, offer.machine.accelerator)
                grouped.setdefault(key, []).append(offer)
        for key, found in grouped.items():
            self._buckets[key] = _Bucket(found)

    def ladder(self, need: Need, depth: int = DEPTH) -> list[Ranked]:
        """Return the best offers for a class, best first.

        Args:
            need: What one job of the class needs.
            depth: Most rungs to return.
        """
        if need.os != "linux" or depth < 1:
            return []
        bucket = self._buckets.get((need.arch, need.accelerator))
        return bucket.ladder(need, depth) if bucket is not None else []

    def unpriced(self, need: Need) -> list[Ranked]:
        """Return the offers that would fit a class if their price were known."""
        bucket = self._buckets.get((need.arch, need.accelerator))
        if bucket is None or need.os != "linux":
            return []
        fitting = (rank(need, offer) for offer in bucket.unpriced)
        return sorted((r for r in fitting if r is not None), key=lambda r: r.key)


def rank(need: Need, offer: Offer) -> Ranked | None:
    """Return an offer with its price per job-hour, or ``None`` when it cannot serve.

    Price is not asked for: an offer without one is returned too.
    """
    if offer.refused or not suits(need, offer):
        return None
    machine = offer.machine
    if (
        machine.arch != need.arch
        or machine.accelerator != need.accelerator
        or need.os != "linux"
    ):
        return None
    jobs = jobs_on(need, offer.room, offer.extra)
    if jobs == 0:
        return None
    price = offer.usd_h / jobs if offer.usd_h is not None else None
    return Ranked(offer, jobs, price)


def suits(need: Need, offer: Offer) -> bool:
    """Say whether an offer has what a class needs beside size and model.

    Instruction sets, memory of each accelerator, the pinned machine, and the rules: a
    spot machine serves only classes that may use one, and release code never does.
    """
    machine = offer.machine
    if need.machine and machine.name != need.machine:
        return False
    if offer.kind is PriceKind.SPOT and (need.release or not need.spot):
        return False
    if not need.features <= offer.features:
        return False
    least = need.accelerator_memory_gib
    return not least or (machine.accelerator_memory_gib or 0.0) >= least


def plain_ladder(
    need: Need, offers: Iterable[Offer], depth: int = DEPTH
) -> list[Ranked]:
    """Return the same as :meth:`OfferIndex.ladder` by trying every offer.

    It is what the index is measured against and checked with.
    """
    fitting = (rank(need, offer) for offer in offers)
    usable = (r for r in fitting if r is not None and _wins(r))
    return heapq.nsmallest(depth, usable, key=lambda ranked: ranked.key)


def _wins(ranked: Ranked) -> bool:
    """Say whether an offer may win: it is priced, or nobody pays for it."""
    return ranked.usd_job_h is not None or ranked.offer.kind in _FREE


@dataclass(frozen=True, slots=True)
class _Stack:
    """Offers of one machine with the same room for jobs, cheapest first."""

    head: Offer
    offers: list[Offer]
    spot: bool


class _Bucket:
    """Offers of one architecture and accelerator model."""

    def __init__(self, offers: list[Offer]) -> None:
        self.free = [offer for offer in offers if offer.kind in _FREE]
        self.unpriced = [
            offer for offer in offers if offer.usd_h is None and offer.kind not in _FREE
        ]
        stacks: dict[tuple[int, int, int, bool], list[Offer]] = {}
        for offer in offers:
            if offer.usd_h is None or offer.kind in _FREE:
                continue
            # By identity, because hashing a machine costs more than all the rest; the
            # same machine is the same object wherever it is offered.
            key = (
                id(offer.machine),
                id(offer.room),
                id(offer.extra),
                offer.kind is PriceKind.SPOT,
            )
            stacks.setdefault(key, []).append(offer)
        self._stacks: list[_Stack] = []
        for found in stacks.values():
            found.sort(key=lambda offer: Ranked(offer, 1, offer.usd_h).key)
            spot = found[0].kind is PriceKind.SPOT
            self._stacks.append(_Stack(found[0], found, spot))
        self._stacks.sort(key=lambda stack: stack.head.room.vcpu)
        self._vcpus = [stack.head.room.vcpu for stack in self._stacks]

    def ladder(self, need: Need, depth: int) -> list[Ranked]:
        """Return the best rungs of a class from this bucket."""
        kept = [
            ranked for offer in self.free if (ranked := rank(need, offer)) is not None
        ]
        best = sorted(kept, key=lambda ranked: ranked.key)[:depth]
        if len(best) < depth:
            best += self._cheapest(need, depth - len(best))
        return best

    def _cheapest(self, need: Need, room: int) -> list[Ranked]:
        """Merge the tops of the stacks that can serve a class."""
        spot_ok = need.spot and not need.release
        features, least = need.features, need.accelerator_memory_gib
        # A thousandth less, so that rounding in fit.jobs_on never leaves one out.
        first = bisect.bisect_left(self._vcpus, need.vcpu * 0.999)
        heap: list[tuple[RankKey, int, int, Ranked]] = []
        for place in range(first, len(self._stacks)):
            stack = self._stacks[place]
            if stack.spot and not spot_ok:
                continue
            head = stack.head
            if features and not features <= head.features:
                continue
            machine = head.machine
            if least and (machine.accelerator_memory_gib or 0.0) < least:
                continue
            if need.machine and machine.name != need.machine:
                continue
            jobs = jobs_on(need, head.room, head.extra)
            if jobs:
                top = _priced(head, jobs)
                heap.append((top.key, place, 0, top))
        heapq.heapify(heap)
        found: list[Ranked] = []
        while heap and len(found) < room:
            _, place, index, top = heap[0]
            found.append(top)
            offers = self._stacks[place].offers
            if index + 1 < len(offers):
                following = _priced(offers[index + 1], top.jobs)
                heapq.heapreplace(heap, (following.key, place, index + 1, following))
            else:
                heapq.heappop(heap)
        return found


def _priced(offer: Offer, jobs: int) -> Ranked:
    return Ranked(offer, jobs, (offer.usd_h or 0.0) / jobs)
