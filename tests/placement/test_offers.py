"""Offers: every kind of price, where it is borrowed, and what refuses a machine."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from placement.four_clouds import FLEET, TODAY, movable
from runfleet.catalogue.machines import Machines
from runfleet.errors import InputError, Problem
from runfleet.placement.fit import per_job
from runfleet.placement.offers import Offer, PriceKind, offers
from runfleet.placement.problems import placement_problems
from runfleet.placement.quotas import Quotas, load_quotas
from runfleet.spec.fleet import Fleet
from runfleet.spec.load import build_fleet
from runfleet.spec.source import parse_source
from spec.fleets import changed, line_of

MACHINES = Machines.load()
RESERVED = changed(
    (
        "runner_classes:\n",
        "reservations:\n"
        "  block: {id: cr-1, cell: aws, machine: g6.48xlarge, count: 2,\n"
        "    start: 2026-08-01, end: 2026-09-30, zone: us-east-1a}\n"
        "runner_classes:\n",
    ),
    document=FLEET,
)


def in_cell(
    cell: str, text: str = FLEET, quotas: Quotas | None = None, day: dt.date = TODAY
) -> list[Offer]:
    fleet = fleet_of(text)
    return offers(MACHINES, fleet, fleet.cells[cell], quotas, day)


def fleet_of(text: str) -> Fleet:
    return build_fleet(parse_source("fleet.yaml", text)).fleet


def of(found: list[Offer], name: str) -> list[Offer]:
    return [offer for offer in found if offer.machine.name == name]


def test_every_machine_of_the_cloud_is_offered_at_its_list_price() -> None:
    found = in_cell("aws")
    listed = [offer.machine.name for offer in found if offer.kind is PriceKind.LIST]
    assert listed == [machine.name for machine in MACHINES.of("aws")]
    (c7i,) = of(found, "c7i.2xlarge")
    assert (c7i.usd_h, c7i.price_region, c7i.as_of) == (
        0.357,
        "us-east-1",
        dt.date(2026, 7, 20),
    )
    assert not c7i.assumed
    assert c7i.extra == per_job(fleet_of(FLEET).cells["aws"])


def test_a_price_of_another_region_is_assumed() -> None:
    (c7i,) = of(in_cell("aws-ue2"), "c7i.2xlarge")
    assert (c7i.usd_h, c7i.region, c7i.price_region) == (
        0.357,
        "us-east-2",
        "us-east-1",
    )
    assert c7i.assumed


def test_spot_is_an_offer_of_its_own_where_a_source_has_it() -> None:
    found = of(in_cell("gcp"), "n2-standard-8")
    assert [(offer.kind, offer.usd_h) for offer in found] == [
        (PriceKind.LIST, 0.388472),
        (PriceKind.SPOT, 0.18424),
    ]


def test_an_unknown_price_stays_unknown() -> None:
    (one,) = of(in_cell("ibm"), "bx2-16x64")
    assert (one.usd_h, one.price_region, one.assumed) == (None, "", False)


@pytest.mark.parametrize(
    ("day", "kinds"),
    [
        (dt.date(2026, 7, 31), ["list"]),
        (dt.date(2026, 8, 1), ["list", "reserved"]),
        (dt.date(2026, 9, 30), ["list", "reserved"]),
        (dt.date(2026, 10, 1), ["list"]),
    ],
)
def test_a_reservation_is_an_offer_while_it_runs(
    day: dt.date, kinds: list[str]
) -> None:
    found = of(in_cell("aws", RESERVED, day=day), "g6.48xlarge")
    assert [str(offer.kind) for offer in found] == kinds
    if len(found) == 2:
        assert (found[1].limit, found[1].reservation) == (2, "block")


def test_a_reservation_is_no_offer_in_another_cell() -> None:
    found = of(in_cell("aws-ue2", RESERVED), "g6.48xlarge")
    assert [offer.kind for offer in found] == [PriceKind.LIST]


def refused(found: list[Offer], name: str) -> set[tuple[str, str]]:
    return {(offer.refused_by, offer.refused) for offer in of(found, name)}


def test_regions_refuse() -> None:
    why = "pool g6 says that us-east-2 does not have it"
    assert refused(in_cell("aws-ue2"), "g6.8xlarge") == {("region", why)}
    assert refused(in_cell("aws"), "g6.8xlarge") == {("", "")}
    assert refused(in_cell("ibm"), "gx3d-160x1792x8h200") == {
        ("region", "not sold in us-south")
    }
    assert refused(in_cell("azure"), "Standard_ND96isr_H200_v5") == {
        ("region", "not sold in eastus")
    }


def test_what_no_node_pool_can_have_is_refused() -> None:
    found = in_cell("ibm")
    (linuxone,) = refused(found, "bz2-8x32")
    assert linuxone[0] == "availability"
    assert linuxone[1].startswith("is retired: no new instances since 2026-02-28")
    assert refused(found, "gx3d-24x120x1a100p") == {
        ("availability", "no worker flavour of it is known")
    }


def test_quotas_limit_and_refuse() -> None:
    quotas = Quotas(
        {
            "aws": {
                "accelerator/a100": 8,
                "machine/c7i.2xlarge": 0,
                "vcpu": 100,
            }
        }
    )
    found = in_cell("aws", quotas=quotas)
    assert [offer.limit for offer in of(found, "p4d.24xlarge")] == [1]
    assert [offer.limit for offer in of(found, "c7i.4xlarge")] == [6]
    assert refused(found, "c7i.2xlarge") == {
        ("quota", "quota machine/c7i.2xlarge of cell aws is enough for 0 of it")
    }
    assert {o.limit for o in in_cell("gcp", quotas=quotas)} == {None}


def test_own_machines_are_donated(tmp_path: Path) -> None:
    (tmp_path / "machine_sources.csv").write_text("source,text\nlab,the lab\n")
    header = (
        "provider,machine,arch,vcpu,memory_gib,accelerator_vendor,accelerator,"
        "accelerator_as_named,accelerator_count,accelerator_memory_gib,ondemand_usd_h,"
        "spot_usd_h,price_region,status,reason,node_name,as_of,source\n"
    )
    row = "own,linuxone,s390x,16,64,,,,,,,,,available,,,2026-08-01,lab\n"
    (tmp_path / "machines.csv").write_text(header + row)
    machines = Machines.load(tmp_path / "machines.csv")
    fleet = fleet_of(FLEET)
    (found,) = offers(machines, fleet, fleet.cells["own-lab"], today=TODAY)
    assert (found.kind, found.usd_h, found.region) == (PriceKind.DONATED, None, "")


def test_quotas_are_read_beside_the_fleet_file(tmp_path: Path) -> None:
    fleet = fleet_of(FLEET)
    path = tmp_path / "fleet.yaml"
    assert load_quotas(path, fleet, MACHINES) == Quotas()
    file = tmp_path / "quotas.yaml"
    file.write_text("aws:\n  accelerator/l4: 4\n  vcpu: 900\n")
    assert load_quotas(path, fleet, MACHINES) == Quotas(
        {"aws": {"accelerator/l4": 4, "vcpu": 900}}
    )
    file.write_text("asw:\n  vcpu: 1\naws:\n  acelerator/l4: 4\n  vcpu: -1\ngcp: 7\n")
    with pytest.raises(InputError) as caught:
        load_quotas(path, fleet, MACHINES)
    assert caught.value.exit_code == 2
    assert [(p.line, p.path, p.message, p.nearest) for p in caught.value.problems] == [
        (1, "asw", "there is no cell of this name", "aws"),
        (
            4,
            "aws.acelerator/l4",
            "is nothing that aws has a quota of",
            "accelerator/l4",
        ),
        (5, "aws.vcpu", "is not valid", ""),
        (6, "gcp", "is not valid", ""),
    ]


def problems(text: str) -> list[Problem]:
    source = parse_source("fleet.yaml", text)
    return list(placement_problems(build_fleet(source).fleet, source))


def test_an_unknown_region_is_named_with_its_line_and_the_nearest() -> None:
    text = changed(
        ("region: us-central1\n    zones: [us-central1-a, us-central1-b]",
         "region: us-centrl1\n    zones: [us-centrl1-a, us-centrl1-b]"),
        document=FLEET,
    )  # fmt: skip
    (problem,) = problems(text)
    assert problem.line == line_of("region: us-centrl1", text)
    assert problem.path == "cells.gcp.region"
    assert problem.message == "gcp has no region of this name"
    assert (problem.found, problem.nearest) == ("us-centrl1", "us-central1")
    assert "europe-west4" in problem.allowed


def test_a_reservation_in_the_wrong_region() -> None:
    assert problems(RESERVED) == []
    text = RESERVED.replace("zone: us-east-1a", "zone: us-east-2a")
    (problem,) = problems(text)
    assert problem == Problem(
        "fleet.yaml",
        line_of("zone: us-east-2a", text),
        "reservations.block.zone",
        "is not in region us-east-1, where cell aws is",
        "us-east-2a",
        "us-east-1a, us-east-1b",
        "us-east-1a",
    )


def test_a_pool_cannot_draw_from_a_reservation_where_it_does_not_exist() -> None:
    text = RESERVED.replace("cell: aws,", "cell: aws-ue2,").replace(
        "zone: us-east-1a", "zone: us-east-2a"
    )
    text = text.replace(
        "{machine: g6.48xlarge, weight: 80, disk: 1300GiB}",
        "{machine: g6.48xlarge, weight: 80, disk: 1300GiB, capacity: reserved,"
        " reservations: [block]}",
    )
    (problem,) = problems(text)
    assert problem.path == "pools.g6.machines[1].reservations[0]"
    assert problem.message == (
        "the reservation is in cell aws-ue2, where pool g6 does not exist"
    )
    assert problem.allowed == "reservations in aws"


def test_movable_fleets_of_the_tests_have_no_problems() -> None:
    assert problems(FLEET) == []
    assert movable().fleet.cells["gcp"].region == "us-central1"
