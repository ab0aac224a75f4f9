"""Read current machine prices from the clouds, and show what differs.

Where prices come from, and what that needs:

- AWS: list prices from the Price List API (boto3 ``pricing``), spot prices from EC2's
  spot price history, the cheapest zone. Needs credentials that may read prices.
- Azure: the Retail Prices API, https://prices.azure.com. No credentials.
- Google Cloud: its own price API wants a key, so the table that the Karpenter provider
  for Google Cloud keeps is read (cloudpilot-ai/karpenter-provider-gcp), at its newest
  commit and with that commit's date. No credentials.
- IBM Cloud publishes no price per machine profile: its catalogue answers with none
  (skypilot-org/skypilot ``fetch_ibm.py`` found the same). Its prices stay as they are.

A machine whose list price a source does not give stays what it was: unknown stays
unknown, and a known price keeps its date, so that it gets old and warns. A spot price
that is gone is unknown. Machines that the table does not hold are told of and not
added, because a price says nothing of a machine's shape.
The table is written in one step at the end, and only when something changed.
"""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any, cast

import httpx

from runfleet.catalogue.machines import SOURCES_NAME, Machine, Machines
from runfleet.errors import InputError, Problem
from runfleet.spec.cells import Provider

AZURE_API = "https://prices.azure.com/api/retail/prices"
GITHUB_API = "https://api.github.com"
GITHUB_RAW = "https://raw.githubusercontent.com"
GCP_REPOSITORY = "cloudpilot-ai/karpenter-provider-gcp"
GCP_TABLE = "pkg/providers/pricing/initial-prices.json"

_SOURCES = {
    Provider.AWS: (
        "aws-price-list",
        "AWS Price List API, Linux, shared tenancy; spot from EC2 spot price history, "
        "cheapest zone; shape as before",
    ),
    Provider.AZURE: (
        "azure-retail-prices",
        "Azure Retail Prices API, consumption, Linux; shape as before",
    ),
    Provider.GCP: (
        "gcp-karpenter-prices",
        f"{GCP_REPOSITORY} {GCP_TABLE}, newest commit; shape as before",
    ),
}


class _SourceError(Exception):
    """A source gave no prices; the message says why."""


@dataclass(frozen=True)
class Prices:
    """What a source says of one cloud in one region.

    Attributes:
        ondemand: List price in USD per hour by machine.
        spot: Spot price in USD per hour by machine.
        as_of: Day that the prices are of.
    """

    ondemand: Mapping[str, float]
    spot: Mapping[str, float]
    as_of: dt.date


@dataclass(frozen=True)
class PriceChange:
    """What happened to one machine's prices, or to a cloud's.

    Attributes:
        provider: The cloud.
        machine: The machine; empty when the cloud as a whole is meant.
        before: List and spot price before, ``None`` where unknown.
        after: List and spot price now.
        note: Why nothing was read, or what else is to know; may be empty.
    """

    provider: Provider
    machine: str
    before: tuple[float | None, float | None] = (None, None)
    after: tuple[float | None, float | None] = (None, None)
    note: str = ""

    def as_dict(self) -> dict[str, object]:
        """Return it as plain data."""
        return {
            "provider": str(self.provider),
            "machine": self.machine,
            "ondemand_before": self.before[0],
            "ondemand_after": self.after[0],
            "spot_before": self.before[1],
            "spot_after": self.after[1],
            "note": self.note,
        }

    def __str__(self) -> str:
        """Say what happened in one line."""
        where = f"{self.provider} {self.machine}".strip()
        if self.before == self.after:
            return f"{where}: {self.note}"
        parts = [
            f"{name} {_shown(old)} -> {_shown(new)}"
            for name, old, new in zip(
                ("list", "spot"), self.before, self.after, strict=True
            )
            if old != new
        ]
        return f"{where}: {', '.join(parts)}" + (f" ({self.note})" if self.note else "")


@dataclass
class PriceSources:
    """Where current prices come from; tests give their own.

    Attributes:
        http: Client for the public price tables.
        pricing: Client with boto3's Price List interface, made on first use.
        ec2: Client with boto3's EC2 interface for a region, made on first use.
    """

    http: httpx.Client = field(
        default_factory=lambda: httpx.Client(timeout=60, follow_redirects=True)
    )
    pricing: Callable[[], Any] = field(default=lambda: _boto3("pricing", "us-east-1"))
    ec2: Callable[[str], Any] = field(default=lambda region: _boto3("ec2", region))


def refresh_prices(
    path: str | FilePath,
    sources: PriceSources | None = None,
    providers: Iterable[Provider] = tuple(Provider),
    write: bool = True,
    today: dt.date | None = None,
) -> list[PriceChange]:
    """Read current prices of the machines of a table.

    Args:
        path: The table, with ``machine_sources.csv`` beside it.
        sources: Where prices come from; default: the real ones.
        providers: The clouds to ask; own hardware has no prices.
        write: Whether to write what changed.
        today: Day that prices which are current are of; default: today.

    Returns:
        What changed, what a source did not give, and what it has that the table has
        not, by cloud and machine.

    Raises:
        InputError: The table is malformed or cannot be written.
    """
    table_path = FilePath(path)
    machines = Machines.load(table_path)
    used = sources or PriceSources()
    day = today or dt.date.today()
    changes: list[PriceChange] = []
    updates: dict[tuple[str, str], dict[str, str]] = {}
    for provider in providers:
        mine = list(machines.of(provider))
        if provider is Provider.OWN or not mine:
            continue
        for region in sorted({m.price_region for m in mine} - {""}) or [""]:
            try:
                prices = _read(provider, region, mine, used, day)
            except _SourceError as error:
                changes.append(PriceChange(provider, "", note=str(error)))
                continue
            # A machine without a price yet is looked up in the cloud's main region.
            main = _main_region(mine)
            here = [m for m in mine if (m.price_region or main) == region]
            for machine in here:
                change, cells = _compare(machine, region, prices)
                if change is not None:
                    changes.append(change)
                if cells:
                    updates[(str(provider), machine.name)] = cells
            if region == main:
                changes += _unknown(provider, mine, prices)
    if updates and write:
        _write(table_path, updates)
    return changes


def _read(
    provider: Provider,
    region: str,
    machines: list[Machine],
    sources: PriceSources,
    day: dt.date,
) -> Prices:
    if provider is Provider.AWS:
        return _aws(region, machines, sources, day)
    if provider is Provider.AZURE:
        return _azure(region, sources, day)
    if provider is Provider.GCP:
        return _gcp(region, sources)
    raise _SourceError(
        "publishes no price per machine without credentials; prices stay as they are"
    )


def _main_region(machines: list[Machine]) -> str:
    """Return the region that most of a cloud's prices are of."""
    regions = [machine.price_region for machine in machines if machine.price_region]
    return max(sorted(set(regions)), key=regions.count) if regions else ""


def _compare(
    machine: Machine, region: str, prices: Prices
) -> tuple[PriceChange | None, dict[str, str]]:
    """Return what changed of a machine, and the cells of its row to write."""
    before = (machine.ondemand_usd_h, machine.spot_usd_h)
    listed = prices.ondemand.get(machine.name)
    if listed is None:
        if before == (None, None):
            return None, {}
        note = f"the source has no list price in {region}; it stays as it is"
        return PriceChange(machine.provider, machine.name, before, before, note), {}
    after = (listed, prices.spot.get(machine.name))
    cells = {
        "ondemand_usd_h": _number(after[0]),
        "spot_usd_h": _number(after[1]),
        "price_region": region,
        "as_of": prices.as_of.isoformat(),
        "source": _SOURCES[machine.provider][0],
    }
    if after == before:
        # Only a newer date is news of the same price.
        return None, cells if prices.as_of > machine.as_of else {}
    return PriceChange(machine.provider, machine.name, before, after), cells


def _unknown(
    provider: Provider, machines: list[Machine], prices: Prices
) -> list[PriceChange]:
    """Return machines of the table's families that the table does not hold."""
    known = {machine.name for machine in machines}
    families = {machine.family for machine in machines}
    if provider is not Provider.AWS:
        return []  # Only AWS names carry their family in front of the size.
    return [
        PriceChange(provider, name, note="is not in the table; its shape is needed")
        for name in sorted(prices.ondemand)
        if name not in known and name.split(".")[0] in families
    ]


def _aws(
    region: str, machines: list[Machine], sources: PriceSources, day: dt.date
) -> Prices:
    filters = {
        "regionCode": region,
        "operatingSystem": "Linux",
        "tenancy": "Shared",
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
    }
    request: dict[str, Any] = {
        "ServiceCode": "AmazonEC2",
        "FormatVersion": "aws_v1",
        "Filters": [
            {"Type": "TERM_MATCH", "Field": name, "Value": value}
            for name, value in filters.items()
        ],
    }
    ondemand: dict[str, float] = {}
    try:
        client = sources.pricing()
        while True:
            answer = client.get_products(**request)
            for text in answer["PriceList"]:
                found = _aws_price(json.loads(text))
                if found is not None:
                    ondemand[found[0]] = found[1]
            if not answer.get("NextToken"):
                break
            request["NextToken"] = answer["NextToken"]
        spot = _aws_spot(sources.ec2(region), machines, day)
    except _SourceError:
        raise
    except Exception as error:
        # botocore raises classes that it makes at run time; all mean "no answer".
        raise _SourceError(f"AWS gave no answer ({error})") from None
    return Prices(ondemand, spot, day)


def _aws_price(product: Mapping[str, Any]) -> tuple[str, float] | None:
    """Return the machine and its price per hour of one entry of the price list."""
    name = product["product"]["attributes"].get("instanceType")
    for term in product.get("terms", {}).get("OnDemand", {}).values():
        for dimension in term["priceDimensions"].values():
            price = float(dimension["pricePerUnit"].get("USD", 0))
            if name and dimension["unit"] == "Hrs" and price > 0:
                return str(name), price
    return None


def _aws_spot(client: Any, machines: list[Machine], day: dt.date) -> dict[str, float]:
    """Return the cheapest zone's spot price of each machine that has one."""
    found: dict[str, float] = {}
    request: dict[str, Any] = {
        "InstanceTypes": [machine.name for machine in machines],
        "ProductDescriptions": ["Linux/UNIX"],
        "StartTime": dt.datetime.combine(day, dt.time(), tzinfo=dt.UTC),
    }
    while True:
        answer = client.describe_spot_price_history(**request)
        for entry in answer["SpotPriceHistory"]:
            name, price = str(entry["InstanceType"]), float(entry["SpotPrice"])
            found[name] = min(price, found.get(name, price))
        if not answer.get("NextToken"):
            return found
        request["NextToken"] = answer["NextToken"]


def _azure(region: str, sources: PriceSources, day: dt.date) -> Prices:
    query = (
        "serviceName eq 'Virtual Machines' and priceType eq 'Consumption' "
        f"and armRegionName eq '{region}'"
    )
    url: str | None = str(httpx.URL(AZURE_API, params={"$filter": query}))
    ondemand: dict[str, float] = {}
    spot: dict[str, float] = {}
    while url:
        answer = _get(sources, url)
        for item in cast("list[dict[str, Any]]", answer["Items"]):
            meter = str(item["meterName"])
            if "Windows" in str(item["productName"]) or "Low Priority" in meter:
                continue
            if item["unitOfMeasure"] != "1 Hour" or not item["retailPrice"]:
                continue
            prices = spot if "Spot" in meter else ondemand
            name, price = str(item["armSkuName"]), float(item["retailPrice"])
            prices[name] = min(price, prices.get(name, price))
        url = cast("str | None", answer.get("NextPageLink"))
    return Prices(ondemand, spot, day)


def _gcp(region: str, sources: PriceSources) -> Prices:
    history = _get(
        sources,
        f"{GITHUB_API}/repos/{GCP_REPOSITORY}/commits?path={GCP_TABLE}&per_page=1",
    )
    try:
        commit = history[0]
        day = dt.date.fromisoformat(commit["commit"]["committer"]["date"][:10])
        table = _get(
            sources, f"{GITHUB_RAW}/{GCP_REPOSITORY}/{commit['sha']}/{GCP_TABLE}"
        )
        prices = table["prices"][region]
        return Prices(prices.get("on_demand", {}), prices.get("spot", {}), day)
    except (KeyError, IndexError, ValueError) as error:
        raise _SourceError(f"its price table has no {error}") from None


def _get(sources: PriceSources, url: str) -> Any:
    try:
        answer = sources.http.get(url)
        answer.raise_for_status()
        return answer.json()
    except (httpx.HTTPError, ValueError) as error:
        raise _SourceError(f"{url} gave no answer ({error})") from None


def _boto3(service: str, region: str) -> Any:
    try:
        import boto3  # type: ignore[reportMissingTypeStubs]
    except ModuleNotFoundError:
        raise _SourceError("boto3 is missing: pip install 'runfleet[aws]'") from None
    return boto3.client(service, region_name=region)  # type: ignore[reportUnknownMemberType]


def _write(path: FilePath, updates: Mapping[tuple[str, str], dict[str, str]]) -> None:
    """Write changed rows; every other cell stays as it is spelled.

    The sources are written first: a table never names a source that is not there.
    """
    notes_path = path.with_name(SOURCES_NAME)
    notes = list(csv.reader(io.StringIO(_text(notes_path), newline="")))
    known = {row[0] for row in notes if row}
    named = {cells["source"] for cells in updates.values()}
    notes += [[key, text] for key, text in _SOURCES.values() if key in named - known]
    header, *rows = csv.reader(io.StringIO(_text(path), newline=""))
    columns = {name: place for place, name in enumerate(header)}
    for row in rows:
        if not row:
            continue
        key = (row[columns["provider"]], row[columns["machine"]])
        for name, value in updates.get(key, {}).items():
            row[columns[name]] = value
    _replace(notes_path, notes)
    _replace(path, [header, *rows])


def _text(path: FilePath) -> str:
    return path.read_text(encoding="utf-8")


def _replace(path: FilePath, rows: Iterable[list[str]]) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        temporary.write_text(text.getvalue(), encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        message = f"cannot be written: {error.strerror}"
        raise InputError([Problem(str(path), 0, "", message)]) from None


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6f}".rstrip("0").rstrip(".")


def _shown(value: float | None) -> str:
    return "unknown" if value is None else f"{value:g}"
