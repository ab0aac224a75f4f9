"""The ladder: exact against the plain search, monotone, independent of order."""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from placement.four_clouds import machine, offer
from runfleet.catalogue.machines import Machine
from runfleet.placement.fit import Need
from runfleet.placement.ladder import OfferIndex, plain_ladder, rank
from runfleet.placement.offers import Offer, PriceKind

NEED = Need(arch="amd64", vcpu=4, memory_gib=8)
BIG = machine("big", vcpu=64, memory_gib=256)


def some_offers() -> list[Offer]:
    """Return offers of all kinds, so that lists of them are cheap to draw."""
    pick = random.Random(7)
    machines: list[Machine] = []
    for number in range(60):
        model = pick.choice(["", "", "l4"])
        made = machine(
            f"{pick.choice(['c7i', 'c7a', 'g6', 'm7g'])}.{number % 7}",
            arch=pick.choice(["amd64", "amd64", "arm64"]),
            vcpu=pick.choice([2, 4, 8, 16, 48, 96]),
            memory_gib=pick.choice([4, 16, 64, 256]),
            accelerator=model,
            accelerator_count=pick.choice([1, 2, 8, 0.5]) if model else 0,
            accelerator_memory_gib=pick.choice([None, 24.0, 48.0]) if model else None,
        )
        machines.append(made)
    return [
        offer(
            pick.choice(machines),
            pick.choice([*PriceKind, PriceKind.LIST, PriceKind.LIST]),
            pick.choice([None, *(pick.randint(1, 400) / 100 for _ in range(5))]),
            cell=pick.choice(["aws", "aws-ue2", "gcp"]),
            price_region=pick.choice(["us-east-1", "us-east-2"]),
            refused=pick.choice(["", "", "", "no"]),
            refused_by="region",
            reservation=f"r{number}",
        )
        for number in range(400)
    ]


offers = st.sampled_from(some_offers())
needs = st.builds(
    Need,
    arch=st.sampled_from(["amd64", "arm64"]),
    os=st.sampled_from(["linux", "linux", "windows"]),
    vcpu=st.floats(0.5, 50),
    memory_gib=st.floats(0.5, 100),
    disk_gib=st.sampled_from([0.0, 100.0, 9000.0]),
    features=st.frozensets(st.sampled_from(["avx2", "avx512", "amx"]), max_size=1),
    accelerator=st.sampled_from(["", "l4"]),
    accelerator_memory_gib=st.sampled_from([0.0, 40.0]),
    whole_node=st.booleans(),
    release=st.booleans(),
    spot=st.booleans(),
    machine=st.sampled_from(["", "", "g6.3"]),
).map(lambda n: replace(n, accelerators=1.0 if n.accelerator else 0.0))


@settings(max_examples=300)
@given(needs, st.lists(offers, max_size=30), st.integers(1, 12))
def test_the_index_finds_what_the_plain_search_finds(
    need: Need, found: list[Offer], depth: int
) -> None:
    ladder = OfferIndex(found).ladder(need, depth)
    assert [r.key for r in ladder] == [r.key for r in plain_ladder(need, found, depth)]


@given(needs, st.lists(offers, max_size=15), offers)
def test_one_more_offer_never_makes_the_best_worse(
    need: Need, found: list[Offer], more: Offer
) -> None:
    before = OfferIndex(found).ladder(need, 1)
    after = OfferIndex([*found, more]).ladder(need, 1)
    if before:
        assert after[0].key <= before[0].key


@given(needs, st.lists(offers, max_size=20), st.integers())
def test_the_order_of_offers_does_not_matter(
    need: Need, found: list[Offer], seed: int
) -> None:
    shuffled = list(found)
    random.Random(seed).shuffle(shuffled)
    one, other = OfferIndex(found).ladder(need), OfferIndex(shuffled).ladder(need)
    assert [r.key for r in one] == [r.key for r in other]


@given(needs, st.lists(offers, max_size=20))
def test_every_rung_can_serve_and_bears_the_rules(
    need: Need, found: list[Offer]
) -> None:
    for ranked in OfferIndex(found).ladder(need):
        bought = ranked.offer
        assert ranked.jobs >= 1
        assert bought.machine.arch == need.arch
        assert bought.machine.accelerator == need.accelerator
        assert not bought.refused
        assert ranked.jobs * need.vcpu <= bought.room.vcpu + 1e-3
        assert ranked.jobs * need.memory_gib <= bought.room.memory_gib + 1e-3
        if bought.kind is PriceKind.SPOT:
            assert need.spot
            assert not need.release
        if bought.kind in (PriceKind.LIST, PriceKind.SPOT):
            assert bought.usd_h is not None


def test_donated_then_reserved_then_price() -> None:
    found = [
        offer(machine("list"), usd_h=0.1),
        offer(machine("dear-gift"), PriceKind.DONATED, 9.0),
        offer(machine("gift"), PriceKind.DONATED, None),
        offer(machine("kept"), PriceKind.RESERVED, 5.0),
        offer(machine("cheap"), usd_h=0.05),
    ]
    ladder = OfferIndex(found).ladder(NEED)
    names = [ranked.offer.machine.name for ranked in ladder]
    assert names == ["dear-gift", "gift", "kept", "cheap", "list"]


def test_price_is_per_job_and_not_per_machine() -> None:
    small, big = offer(usd_h=1.0), offer(BIG, usd_h=3.5)
    first, second = OfferIndex([small, big]).ladder(NEED)
    # 15.43 vCPU for jobs of 4.32 are three; 63.31 are fourteen.
    assert (first.offer, first.jobs, first.usd_job_h) == (big, 14, 0.25)
    assert (second.offer, second.jobs) == (small, 3)


def test_ties_go_to_the_known_price_then_by_name() -> None:
    borrowed = offer(machine("a"), price_region="us-east-2")
    known, later = offer(machine("b")), offer(machine("c"))
    ladder = OfferIndex([later, borrowed, known]).ladder(NEED)
    assert [r.offer.machine.name for r in ladder] == ["b", "c", "a"]


def test_an_offer_without_a_price_never_wins_and_is_shown() -> None:
    index = OfferIndex([offer(machine("free?"), usd_h=None), offer(usd_h=99.0)])
    assert [r.offer.usd_h for r in index.ladder(NEED)] == [99.0]
    assert [r.offer.machine.name for r in index.unpriced(NEED)] == ["free?"]


def test_spot_serves_only_who_bears_it_and_never_release() -> None:
    spot = offer(kind=PriceKind.SPOT, usd_h=0.1)
    bears = replace(NEED, spot=True)
    assert rank(NEED, spot) is None
    assert rank(bears, spot) is not None
    assert rank(replace(bears, release=True), spot) is None
    assert OfferIndex([spot]).ladder(replace(bears, release=True)) == []


def test_a_pin_leaves_one_machine() -> None:
    found = [offer(machine("cheap"), usd_h=0.1), offer(machine("dear"), usd_h=9.0)]
    ladder = OfferIndex(found).ladder(replace(NEED, machine="dear"))
    assert [r.offer.machine.name for r in ladder] == ["dear"]


def test_depth() -> None:
    found = [offer(machine(f"m{n}"), usd_h=float(n + 1)) for n in range(20)]
    index = OfferIndex(found)
    assert len(index.ladder(NEED)) == 8
    assert len(index.ladder(NEED, 3)) == 3
    assert index.ladder(NEED, 0) == []


def test_stale_after_ninety_days() -> None:
    bought = offer(as_of=dt.date(2026, 6, 1))
    assert not bought.stale(dt.date(2026, 8, 30))
    assert bought.stale(dt.date(2026, 8, 31))
    assert not offer(usd_h=None, as_of=dt.date(2020, 1, 1)).stale(dt.date(2026, 8, 31))
