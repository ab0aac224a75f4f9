"""The ladder of a class: the offers that can serve it, best first.

Donated offers come first, then reserved ones, then the others by price per job-hour:
the price of the machine divided by the jobs that fit on it at once. Ties are broken
by a price known for the region over a borrowed one, then by cell, machine and kind, so
that the order of the offers never matters.

How it stays fast for thousands of classes over tens of thousands of offers:
:class:`OfferIndex` puts the offers into buckets by architecture and accelerator model,
because a class can only use one bucket. Inside a bucket the priced offers stand in
three orders: by price per virtual CPU, per GiB and per machine (per accelerator where
there are accelerators) of what jobs can have. No job can cost less on a machine than
its own share of it, so the share is a lower bound of the price per job-hour. A class
walks the order of the resource that it needs most of, and stops at the first offer
whose bound is above the worst rung that it has kept: all later ones are worse. The
result is exact (a property test compares it with the plain search), no offer that
could be a rung is skipped. Fitting is remembered per machine and cell overhead for the
class at hand, so a machine that is offered in sixty cells is divided once. It is plain
Python; no array library is needed.
"""

from __future__ import annotations

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


class _Bucket:
    """Offers of one architecture and accelerator model, in the orders of a walk."""

    def __init__(self, offers: list[Offer]) -> None:
        self.free = [offer for offer in offers if offer.kind in _FREE]
        self.unpriced = [
            offer for offer in offers if offer.usd_h is None and offer.kind not in _FREE
        ]
        priced = [
            (offer.usd_h, offer)
            for offer in offers
            if offer.usd_h is not None and offer.kind not in _FREE
        ]
        self._by_vcpu = _order((p / max(o.room.vcpu, 1e-9), o) for p, o in priced)
        self._by_memory = _order(
            (p / max(o.room.memory_gib, 1e-9), o) for p, o in priced
        )
        self._by_machine = _order((p, o) for p, o in priced)
        self._by_accelerator = _order(
            (p / max(o.room.accelerators, 1.0), o) for p, o in priced
        )
        count = len(priced) or 1
        vcpu = sum(o.room.vcpu for _, o in priced)
        memory = sum(o.room.memory_gib for _, o in priced)
        self._ratio = memory / vcpu if vcpu else count

    def ladder(self, need: Need, depth: int) -> list[Ranked]:
        """Return the best rungs of a class from this bucket."""
        kept = [
            ranked
            for offer in self.free
            if (ranked := rank(need, offer)) is not None
        ]
        order, share = self._walk(need)
        best = sorted(kept, key=lambda ranked: ranked.key)[:depth]
        room = depth - len(best)
        if room:
            best += _cheapest(need, order, share, room)
        return best

    def _walk(self, need: Need) -> tuple[list[tuple[float, Offer]], float]:
        """Return the order to walk and how much of its resource one job takes.

        What a job takes beside its class's own need is left out of the share: it only
        makes the bound lower, never wrong.
        """
        if need.whole_node:
            return self._by_machine, 1.0
        if need.accelerators:
            return self._by_accelerator, max(1.0, need.accelerators)
        if need.memory_gib > need.vcpu * self._ratio:
            return self._by_memory, need.memory_gib
        return self._by_vcpu, need.vcpu


def _order(pairs: Iterable[tuple[float, Offer]]) -> list[tuple[float, Offer]]:
    return sorted(pairs, key=lambda pair: pair[0])


def _cheapest(
    need: Need, order: Iterable[tuple[float, Offer]], share: float, room: int
) -> list[Ranked]:
    """Walk an order of offers and keep the cheapest, until none can be cheaper."""
    kept: list[tuple[float, Ranked]] = []
    worst = float("inf")
    fits: dict[tuple[int, int], int] = {}
    features, least = need.features, need.accelerator_memory_gib
    spot_ok = need.spot and not need.release
    for unit, offer in order:
        # Slack, so that rounding (fit.jobs_on rounds up a millionth) drops no tie.
        if unit * share > worst * (1 + 1e-5):
            break
        machine = offer.machine
        if need.machine and machine.name != need.machine:
            continue
        if offer.kind is PriceKind.SPOT and not spot_ok:
            continue
        if features and not features <= offer.features:
            continue
        if least and (machine.accelerator_memory_gib or 0.0) < least:
            continue
        key = (id(offer.room), id(offer.extra))
        jobs = fits.get(key)
        if jobs is None:
            jobs = fits[key] = jobs_on(need, offer.room, offer.extra)
        if not jobs or offer.usd_h is None:
            continue
        price = offer.usd_h / jobs
        if price > worst:
            continue
        kept.append((price, Ranked(offer, jobs, price)))
        if len(kept) >= 2 * room:
            kept.sort(key=lambda pair: pair[1].key)
            del kept[room:]
            worst = kept[-1][0]
    kept.sort(key=lambda pair: pair[1].key)
    return [ranked for _, ranked in kept[:room]]

