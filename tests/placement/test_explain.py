"""Why each offer lost: one reason each, always the same one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from placement.four_clouds import TODAY, machine, movable, offer
from runfleet.catalogue.machines import Machine
from runfleet.placement.explain import Lost, explain, explain_one, zero_reason
from runfleet.placement.fit import Need
from runfleet.placement.ladder import OfferIndex, rank
from runfleet.placement.offers import Offer, PriceKind

NEED = Need(arch="amd64", vcpu=4, memory_gib=8, disk_gib=100)
GPU = replace(NEED, accelerator="l4", accelerators=2.0)
L4: Machine = machine(
    "g6.1", accelerator="l4", accelerator_count=2, accelerator_memory_gib=24.0
)


@pytest.mark.parametrize(
    ("need", "lost_offer", "lost", "why"),
    [
        (NEED, offer(machine(arch="arm64")), Lost.ARCHITECTURE, "is arm64, not amd64"),
        (replace(NEED, os="windows"), offer(), Lost.ARCHITECTURE,
         "no node pool runs windows"),
        (replace(NEED, features=frozenset({"amx", "avx2"})),
         offer(machine("g5.8xlarge")), Lost.ARCHITECTURE,
         "no source says that it has amx"),
        (NEED, offer(L4), Lost.ACCELERATOR, "has l4, not none"),
        (GPU, offer(), Lost.ACCELERATOR, "has no accelerator, not l4"),
        (replace(GPU, accelerators=4.0), offer(L4), Lost.ACCELERATOR, "has 2 of 4"),
        (replace(GPU, accelerator_memory_gib=48.0), offer(L4), Lost.ACCELERATOR,
         "has 24 GiB per accelerator, not 48 GiB"),
        (replace(NEED, vcpu=16), offer(), Lost.VCPU, "15.43 of 16.32 vCPU for jobs"),
        (replace(NEED, memory_gib=64), offer(), Lost.MEMORY,
         "49.4 of 64.5 GiB for jobs"),
        (replace(NEED, disk_gib=17000), offer(), Lost.DISK,
         "16334 of 17000 GiB of disk"),
        (NEED, offer(refused="not sold in mars", refused_by="region"), Lost.REGION,
         "not sold in mars"),
        (NEED, offer(refused="quota vcpu is used up", refused_by="quota"), Lost.QUOTA,
         "quota vcpu is used up"),
        (NEED, offer(refused="is retired: old", refused_by="availability"),
         Lost.AVAILABILITY, "is retired: old"),
        (replace(NEED, machine="other"), offer(), Lost.POLICY,
         "the class is pinned to other"),
        (replace(NEED, release=True), offer(kind=PriceKind.SPOT), Lost.POLICY,
         "release code never runs on spot machines"),
        (NEED, offer(kind=PriceKind.SPOT), Lost.POLICY,
         "the class does not say that it bears spot machines"),
        (NEED, offer(usd_h=None), Lost.PRICE_UNKNOWN,
         "no source has a price for us-east-1"),
        (NEED, offer(usd_h=3.0), Lost.PRICE,
         "1.0000 USD per job-hour, 2.00 times the first rung"),
    ],
)  # fmt: skip
def test_each_reason(need: Need, lost_offer: Offer, lost: Lost, why: str) -> None:
    best = rank(NEED, offer(usd_h=1.5))
    found = explain_one(need, lost_offer, best)
    assert (found.lost, found.why) == (lost, why)
    assert found.as_dict() == {
        "cell": "aws",
        "machine": lost_offer.machine.name,
        "kind": str(lost_offer.kind),
        "lost": str(lost),
        "why": why,
    }


def test_a_rule_of_the_caller() -> None:
    found = explain_one(NEED, offer(), None, lambda _: "the class is pinned to gcp")
    assert (found.lost, found.why) == (Lost.POLICY, "the class is pinned to gcp")


def test_winners_are_left_out_and_all_others_explained_in_order() -> None:
    found = [offer(usd_h=2.0), offer(usd_h=1.0), offer(usd_h=None), offer(L4)]
    ladder = OfferIndex(found).ladder(NEED, 1)
    lost = list(explain(NEED, found, [ladder[0].offer], ladder[0]))
    assert [e.offer for e in lost] == [found[0], found[2], found[3]]
    assert [e.lost for e in lost] == [
        Lost.PRICE,
        Lost.PRICE_UNKNOWN,
        Lost.ACCELERATOR,
    ]


def test_what_is_paid_for_already_wins_over_any_price() -> None:
    kept = rank(NEED, offer(kind=PriceKind.RESERVED, usd_h=90.0))
    found = explain_one(NEED, offer(usd_h=0.3), kept)
    assert found.why == "0.1000 USD per job-hour; the first rung is reserved"


@pytest.mark.parametrize(
    ("need", "found", "why"),
    [
        (NEED, [], "availability: there is no offer at all"),
        (replace(NEED, arch="s390x"), [offer()],
         "architecture: no machine is s390x (linux)"),
        (GPU, [offer(), offer(machine(arch="arm64"))],
         "accelerator: no machine has l4"),
        (replace(NEED, memory_gib=60),
         [offer(machine("small", memory_gib=16)), offer()],
         "memory: made.1x: 49.4 of 60.5 GiB for jobs"),
        (NEED, [offer(usd_h=None), offer(machine(arch="arm64"))],
         "price unknown: made.1x: no source has a price for us-east-1"),
    ],
)  # fmt: skip
def test_a_zero_says_what_the_nearest_offer_lacks(
    need: Need, found: list[Offer], why: str
) -> None:
    assert zero_reason(need, found) == why


def test_every_offer_of_a_placed_fleet_is_a_rung_or_explained() -> None:
    placement = movable().to("anywhere").place(TODAY)
    total = sum(len(found) for found in placement.offers.values())
    for name in placement.needs:
        winners = {
            id(ranked.offer)
            for served in placement.served[name]
            for ranked in served.rungs
        }
        lost = placement.explain(name)
        assert len(lost) + len(winners) == total
        assert not winners & {id(explanation.offer) for explanation in lost}
