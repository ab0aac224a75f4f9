"""``runfleet catalogue refresh``: prices from the clouds' own tables."""

from __future__ import annotations

import csv
import datetime as dt
import json
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest
from botocore.stub import Stubber

from runfleet.catalogue.machines import Machines
from runfleet.catalogue.refresh_prices import (
    AZURE_API,
    PriceChange,
    PriceSources,
    refresh_prices,
)
from runfleet.errors import InputError
from runfleet.spec.cells import Provider

DAY = dt.date(2026, 9, 20)
HEADER = (
    "provider,machine,arch,vcpu,memory_gib,accelerator_vendor,accelerator,"
    "accelerator_as_named,accelerator_count,accelerator_memory_gib,ondemand_usd_h,"
    "spot_usd_h,price_region,status,reason,node_name,as_of,source"
)
ROWS = (
    'aws,c7i.large,amd64,2,4,,,,,,0.08,0.03,us-east-1,available,"a, b",,2026-07-20,old',
    "aws,c7i.xlarge,amd64,4,8,,,,,,,,,available,,,2026-07-20,old",
    "aws,c7i.huge,amd64,4,8,,,,,,1.5,,us-east-1,available,,,2026-07-20,old",
    "aws,c7i.never,amd64,4,8,,,,,,,,,available,,,2026-07-20,old",
    "gcp,n2-standard-2,amd64,2,8,,,,,,0.1,0.05,us-central1,available,,,2026-08-03,old",
    "gcp,n2-standard-4,amd64,4,16,,,,,,0.2,,us-central1,available,,,2026-08-03,old",
    "azure,Standard_D2as_v6,amd64,2,8,,,,,,0.0908,,eastus,available,,,2026-06-18,old",
    "ibm,bx2-8x32,amd64,8,32,,,,,,0.384,,us-south,available,,,2026-08-21,old",
)  # fmt: skip


@pytest.fixture
def table(tmp_path: Path) -> Path:
    (tmp_path / "machine_sources.csv").write_text("source,text\nold,an older one\n")
    path = tmp_path / "machines.csv"
    path.write_text("\n".join([HEADER, *ROWS]) + "\n")
    return path


def client(service: str) -> tuple[Any, Stubber]:
    made = boto3.client(
        service,  # type: ignore[call-overload]
        region_name="us-east-1",
        aws_access_key_id="none",
        aws_secret_access_key="none",
    )
    return made, Stubber(made)


def product(name: str, price: str, unit: str = "Hrs") -> str:
    return json.dumps(
        {
            "product": {"attributes": {"instanceType": name}},
            "terms": {
                "OnDemand": {
                    "t": {
                        "priceDimensions": {
                            "d": {"unit": unit, "pricePerUnit": {"USD": price}}
                        }
                    }
                }
            },
        }
    )


def price_request(token: str | None = None) -> dict[str, Any]:
    filters = [
        ("regionCode", "us-east-1"),
        ("operatingSystem", "Linux"),
        ("tenancy", "Shared"),
        ("preInstalledSw", "NA"),
        ("capacitystatus", "Used"),
    ]
    request: dict[str, Any] = {
        "ServiceCode": "AmazonEC2",
        "FormatVersion": "aws_v1",
        "Filters": [
            {"Type": "TERM_MATCH", "Field": field, "Value": value}
            for field, value in filters
        ],
    }
    return request | ({"NextToken": token} if token else {})


def aws_sources(**more: Any) -> PriceSources:
    pricing, prices = client("pricing")
    prices.add_response(
        "get_products",
        {
            "PriceList": [
                product("c7i.large", "0.0850000000"),
                product("c7i.new", "7"),
            ],
            "NextToken": "more",
        },
        price_request(),
    )
    prices.add_response(
        "get_products",
        {"PriceList": [product("c7i.xlarge", "0.17"), product("x9.large", "3"),
                       product("c7i.never", "0"),
                       product("c7i.never", "5", "Quantity")]},
        price_request("more"),
    )  # fmt: skip
    ec2, spot = client("ec2")
    spot.add_response(
        "describe_spot_price_history",
        {
            "SpotPriceHistory": [
                {"InstanceType": "c7i.large", "SpotPrice": "0.031000"},
                {"InstanceType": "c7i.large", "SpotPrice": "0.029000"},
            ],
            "NextToken": "",
        },
        {
            "InstanceTypes": ["c7i.large", "c7i.xlarge", "c7i.huge", "c7i.never"],
            "ProductDescriptions": ["Linux/UNIX"],
            "StartTime": dt.datetime(2026, 9, 20, tzinfo=dt.UTC),
        },
    )
    prices.activate()
    spot.activate()
    return PriceSources(pricing=lambda: pricing, ec2=lambda region: ec2, **more)


def web(answers: dict[str, Any]) -> httpx.Client:
    """Return a client that answers by the start of the address; 404 for others."""

    def answer(request: httpx.Request) -> httpx.Response:
        for start, body in answers.items():
            if str(request.url).startswith(start):
                return httpx.Response(200, json=body)
        return httpx.Response(404)

    return httpx.Client(transport=httpx.MockTransport(answer))


def rows(path: Path) -> dict[str, dict[str, str]]:
    with path.open(newline="") as stream:
        return {row["machine"]: row for row in csv.DictReader(stream)}


def test_aws(table: Path) -> None:
    changes = refresh_prices(table, aws_sources(), [Provider.AWS], today=DAY)
    assert [str(change) for change in changes] == [
        "aws c7i.large: list 0.08 -> 0.085, spot 0.03 -> 0.029",
        "aws c7i.xlarge: list unknown -> 0.17",
        "aws c7i.huge: the source has no list price in us-east-1; it stays as it is",
        "aws c7i.new: is not in the table; its shape is needed",
    ]
    after = rows(table)
    assert after["c7i.large"]["ondemand_usd_h"] == "0.085"
    assert after["c7i.large"]["spot_usd_h"] == "0.029"
    assert after["c7i.large"]["as_of"] == "2026-09-20"
    assert after["c7i.large"]["source"] == "aws-price-list"
    assert after["c7i.large"]["reason"] == "a, b"
    assert after["c7i.xlarge"]["price_region"] == "us-east-1"
    # Not given: the price keeps its date and gets old; unknown stays unknown.
    assert (after["c7i.huge"]["ondemand_usd_h"], after["c7i.huge"]["as_of"]) == (
        "1.5",
        "2026-07-20",
    )
    assert after["c7i.never"]["ondemand_usd_h"] == ""
    machines = Machines.load(table)
    assert set(machines.sources) == {"old", "aws-price-list"}
    unchanged = [line for line in table.read_text().splitlines() if "aws," not in line]
    assert unchanged == [HEADER, *(row for row in ROWS if not row.startswith("aws"))]


def test_without_writing(table: Path) -> None:
    before = table.read_bytes()
    changes = refresh_prices(
        table, aws_sources(), [Provider.AWS], write=False, today=DAY
    )
    assert len(changes) == 4
    assert table.read_bytes() == before
    assert sorted(e.name for e in table.parent.iterdir()) == [
        "machine_sources.csv",
        "machines.csv",
    ]


def azure(name: str, price: float, **more: str) -> dict[str, Any]:
    return {
        "armSkuName": name,
        "retailPrice": price,
        "productName": "Virtual Machines Dasv6 Series",
        "meterName": "D2as v6",
        "unitOfMeasure": "1 Hour",
    } | more


def test_azure_pages_and_leaves_out_windows(table: Path) -> None:
    second = "https://prices.azure.com/second"
    first = {
        "Items": [
            azure("Standard_D2as_v6", 0.5, productName="Dasv6 Series Windows"),
            azure("Standard_D2as_v6", 0.091),
            azure("Standard_D2as_v6", 0.001, meterName="D2as v6 Low Priority"),
        ],
        "NextPageLink": second,
    }
    last = {
        "Items": [azure("Standard_D2as_v6", 0.02, meterName="D2as v6 Spot")],
        "NextPageLink": None,
    }
    sources = PriceSources(http=web({second: last, AZURE_API: first}))
    changes = refresh_prices(table, sources, [Provider.AZURE], today=DAY)
    assert changes == [
        PriceChange(Provider.AZURE, "Standard_D2as_v6", (0.0908, None), (0.091, 0.02))
    ]
    assert rows(table)["Standard_D2as_v6"]["source"] == "azure-retail-prices"


def test_google_cloud_has_the_date_of_the_commit(table: Path) -> None:
    commit = {
        "sha": "abc",
        "commit": {"committer": {"date": "2026-09-18T07:00:00Z"}},
    }
    prices = {
        "prices": {
            "us-central1": {
                "on_demand": {"n2-standard-2": 0.1, "n2-standard-4": 0.21},
                "spot": {"n2-standard-2": 0.05},
            }
        }
    }
    sources = PriceSources(
        http=web(
            {
                "https://api.github.com/repos/cloudpilot-ai/": [commit],
                "https://raw.githubusercontent.com/cloudpilot-ai/"
                "karpenter-provider-gcp/abc/": prices,
            }
        )
    )
    changes = refresh_prices(table, sources, [Provider.GCP], today=DAY)
    assert [str(change) for change in changes] == [
        "gcp n2-standard-4: list 0.2 -> 0.21"
    ]
    # The same price is newer now.
    assert rows(table)["n2-standard-2"]["as_of"] == "2026-09-18"


def test_what_gives_no_answer_is_told_and_nothing_is_written(table: Path) -> None:
    before = table.read_bytes()

    def no_credentials() -> Any:
        raise RuntimeError("Unable to locate credentials")

    sources = PriceSources(http=web({}), pricing=no_credentials)
    changes = refresh_prices(table, sources, today=DAY)
    notes = {str(change.provider): change.note for change in changes}
    assert notes["aws"] == "AWS gave no answer (Unable to locate credentials)"
    assert notes["gcp"].startswith("https://api.github.com/repos/cloudpilot-ai")
    assert notes["azure"].startswith(AZURE_API)
    assert notes["ibm"] == (
        "publishes no price per machine without credentials; prices stay as they are"
    )
    assert table.read_bytes() == before


def test_a_malformed_row_is_named_before_anything_is_asked(table: Path) -> None:
    table.write_text(table.read_text().replace(",0.0908,", ",cheap,"))
    with pytest.raises(InputError) as caught:
        refresh_prices(table, PriceSources(http=web({})), today=DAY)
    (problem,) = caught.value.problems
    assert (problem.line, problem.path, problem.found) == (8, "ondemand_usd_h", "cheap")
    assert caught.value.exit_code == 2


def test_a_failed_write_leaves_the_table(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = table.read_bytes()

    def fail(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(InputError, match="cannot be written: No space left"):
        refresh_prices(table, aws_sources(), [Provider.AWS], today=DAY)
    assert table.read_bytes() == before
    assert not list(table.parent.glob(".*"))


def test_the_package_table_is_written_as_it_is_spelled(tmp_path: Path) -> None:
    """Reading and writing the real table changes only the rows that changed."""
    from importlib import resources

    data = resources.files("runfleet.catalogue").joinpath("data")
    for name in ("machines.csv", "machine_sources.csv"):
        (tmp_path / name).write_bytes(data.joinpath(name).read_bytes())
    path = tmp_path / "machines.csv"
    before = path.read_text().splitlines()
    page = {"Items": [azure("Standard_D2as_v6", 0.0911)], "NextPageLink": None}
    sources = PriceSources(http=web({AZURE_API: page}))
    refresh_prices(path, sources, [Provider.AZURE], today=DAY)
    after = path.read_text().splitlines()
    changed = [(a, b) for a, b in zip(before, after, strict=True) if a != b]
    assert len(changed) == 1
    assert changed[0][1].startswith("azure,Standard_D2as_v6,")
