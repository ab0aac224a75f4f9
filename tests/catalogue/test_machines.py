"""The table of machines: what it holds, and what it refuses."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from pathlib import Path

import pytest

from runfleet.catalogue.machines import Machines, Status
from runfleet.errors import InputError
from runfleet.spec.cells import Provider

HEADER = (
    "provider,machine,arch,vcpu,memory_gib,accelerator_vendor,accelerator,"
    "accelerator_as_named,accelerator_count,accelerator_memory_gib,ondemand_usd_h,"
    "spot_usd_h,price_region,status,reason,node_name,as_of,source"
)
GOOD = "aws,m9.large,amd64,2,8,,,,,,0.1,,us-east-1,available,,,2026-08-21,here"


@pytest.fixture(scope="module")
def machines() -> Machines:
    return Machines.load()


def table(tmp_path: Path, *rows: str, header: str = HEADER) -> Path:
    path = tmp_path / "machines.csv"
    path.write_text("\n".join((header, *rows)) + "\n")
    (tmp_path / "machine_sources.csv").write_text("source,text\nhere,a page\n")
    return path


def problems(path: Path) -> list[tuple[int, str, str]]:
    with pytest.raises(InputError) as caught:
        Machines.load(path)
    return [(p.line, p.path, p.message) for p in caught.value.problems]


def test_holds_the_catalogue_and_what_the_node_pools_name(machines: Machines) -> None:
    counted = Counter(str(machine.provider) for machine in machines)
    assert counted == {"aws": 146, "gcp": 76, "azure": 49, "ibm": 59}
    assert len(machines) == 330


def test_a_gpu_machine(machines: Machines) -> None:
    machine = machines.get("aws", "p4d.24xlarge")
    assert machine is not None
    assert (machine.arch, machine.vcpu, machine.memory_gib) == ("amd64", 96, 1152)
    assert (machine.accelerator_vendor, machine.accelerator) == ("nvidia", "a100")
    assert (machine.accelerator_count, machine.accelerator_memory_gib) == (8, 40)
    assert (machine.price_region, machine.status) == ("us-east-1", Status.AVAILABLE)
    assert machine.as_of == dt.date(2026, 7, 20)
    assert machine.family == "p4d"


def test_a_machine_without_a_price_in_any_source(machines: Machines) -> None:
    machine = machines.get(Provider.AWS, "p5e.48xlarge")
    assert machine is not None
    assert (machine.vcpu, machine.memory_gib) == (192, 2048)
    assert machine.ondemand_usd_h is None
    assert machine.spot_usd_h is None
    assert machine.price_region == ""
    assert machine.source == "karpenter-aws"


def test_every_machine_of_the_imported_pools_has_a_price(machines: Machines) -> None:
    machine = machines.get(Provider.AWS, "c7a.12xlarge")
    assert machine is not None
    assert (machine.vcpu, machine.memory_gib) == (48, 96)
    assert machine.ondemand_usd_h == 2.46336
    assert machine.price_region == "us-east-1"
    assert machine.source == "aws-describe+price"


def test_one_name_for_one_accelerator(machines: Machines) -> None:
    names = {
        (m.accelerator_as_named, m.accelerator_vendor, m.accelerator)
        for m in machines
        if m.accelerator
    }
    assert {
        ("H100", "nvidia", "h100"),
        ("H100-MEGA", "nvidia", "h100"),
        ("H100-NVL", "nvidia", "h100"),
        ("A100-PCIe", "nvidia", "a100"),
        ("RTX-PRO-6000", "nvidia", "rtx-pro-6000"),
        ("RTX-PRO-SERVER-6000", "nvidia", "rtx-pro-6000"),
        ("Gaudi HL-205", "habana", "gaudi"),
        ("Gaudi3", "habana", "gaudi3"),
        ("TPU-v6e", "google", "tpu-v6e"),
    } <= names
    assert all(name == name.lower() for _, _, name in names)


def test_what_cannot_be_had_says_why(machines: Machines) -> None:
    refused = [m for m in machines if m.status is not Status.AVAILABLE]
    counted = Counter((str(m.provider), str(m.status)) for m in refused)
    assert counted == {
        ("ibm", "retired"): 13,
        ("aws", "retired"): 1,
        ("aws", "unavailable"): 5,
        ("ibm", "unavailable"): 2,
    }
    assert all(m.reason for m in refused)
    assert {m.name for m in refused if m.provider is Provider.AWS} == {
        "dl1.24xlarge",
        "mac2.metal",
        "mac2-m2.metal",
        "mac2-m2pro.metal",
        "mac2-m1ultra.metal",
        "mac-m4.metal",
    }
    assert {m.arch for m in refused if m.status is Status.RETIRED} == {
        "s390x",
        "amd64",
    }


def test_ibm_profiles_have_the_spelling_of_worker_pools(machines: Machines) -> None:
    named = {m.name: m.node_name for m in machines.of(Provider.IBM)}
    assert named["bx2-8x32"] == "bx2.8x32"
    assert named["gx3-16x80x1l4"] == "gx3.16x80.l4"
    assert named["gx3d-160x1792x8h100"] == "gx3d.160x1792.8h100"
    assert named["gx3d-160x1792x8gaudi3"] == ""


def test_every_row_names_a_known_source_and_no_price_is_zero(
    machines: Machines,
) -> None:
    for machine in machines:
        assert machine.source in machines.sources, machine.name
        for price in (machine.ondemand_usd_h, machine.spot_usd_h):
            assert price is None or price > 0, machine.name
            assert price is None or machine.price_region, machine.name


def test_lookup_is_by_provider_and_name(machines: Machines) -> None:
    assert machines.get("gcp", "p4d.24xlarge") is None
    assert machines.providers_of("p4d.24xlarge") == [Provider.AWS]
    assert machines.providers_of("nothing") == []


def test_reads_another_table(tmp_path: Path) -> None:
    machines = Machines.load(table(tmp_path, GOOD))
    assert [m.name for m in machines] == ["m9.large"]
    assert machines.sources == {"here": "a page"}


def test_reports_every_malformed_cell_with_its_line(tmp_path: Path) -> None:
    path = table(
        tmp_path,
        GOOD,
        "oracle,m,amd64,2,8,,,,,,,,,available,,,2026-08-21,here",
        "aws,m2,x86,two,,,,,,,0,,us-east-1,available,,,yesterday,nowhere",
        "aws,m3,amd64,2,8,nvidia,t4,T4,,16,1.5,,,retired,,,2026-08-21,here",
        "aws,m4,amd64",
        GOOD,
    )
    assert problems(path) == [
        (3, "provider", "is not one of the allowed values"),
        (4, "arch", "is not one of the allowed values"),
        (4, "as_of", "is not a date"),
        (4, "memory_gib", "is missing"),
        (4, "ondemand_usd_h", "is not a number above 0"),
        (4, "source", "is not one of the allowed values"),
        (4, "vcpu", "is not a number above 0"),
        (5, "accelerator_count", "an accelerator and its count go together"),
        (5, "price_region", "a price has a region"),
        (5, "reason", "a machine that is retired has a reason"),
        (6, "", "has not 18 cells"),
        (7, "machine", "stands twice"),
    ]


@pytest.mark.parametrize("number", ["nan", "inf", "-1", "0", "1e999"])
def test_refuses_numbers_that_are_none(tmp_path: Path, number: str) -> None:
    row = GOOD.replace(",2,8,", f",{number},8,")
    found = problems(table(tmp_path, row))
    assert found == [(2, "vcpu", "is not a number above 0")]


def test_refuses_other_columns(tmp_path: Path) -> None:
    found = problems(table(tmp_path, GOOD, header="provider,machine"))
    assert found == [(1, "", "does not start with the columns of a machine table")]


def test_refuses_broken_csv(tmp_path: Path) -> None:
    (line, _, message) = problems(table(tmp_path, 'aws,"m9'))[0]
    assert line == 2
    assert message.startswith("is not valid CSV")


def test_refuses_a_missing_file(tmp_path: Path) -> None:
    (_, _, message) = problems(tmp_path / "machines.csv")[0]
    assert message == "cannot be read: No such file or directory"
