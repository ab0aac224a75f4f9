"""Human units: what is read, what is refused, and that spelling is exact."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from runfleet.spec.units import Day, Duration, Money, Percent, Range, Size

counts = st.integers(0, 999_999_999)


@pytest.mark.parametrize(
    ("text", "number", "spelled", "kubernetes"),
    [
        ("64GiB", 64 * 2**30, "64GiB", "64Gi"),
        ("64Gi", 64 * 2**30, "64GiB", "64Gi"),
        ("1.5GiB", 1536 * 2**20, "1536MiB", "1536Mi"),
        ("1024 GiB", 2**40, "1TiB", "1Ti"),
        ("64GB", 64_000_000_000, "64GB", "64000000000"),
        ("0.1MB", 100_000, "0.1MB", "100000"),
        ("0MiB", 0, "0MiB", "0Mi"),
    ],
)
def test_size(text: str, number: int, spelled: str, kubernetes: str) -> None:
    size = Size.parse(text)
    assert int(size) == number
    assert str(size) == spelled
    assert size.kubernetes == kubernetes


@pytest.mark.parametrize(
    ("text", "seconds", "spelled"),
    [
        ("90s", 90, "90s"),
        ("120s", 120, "2m"),
        ("1h30m", 5400, "90m"),
        ("2h", 7200, "2h"),
        ("14d", 14 * 86400, "14d"),
        ("1w", 7 * 86400, "7d"),
        ("0s", 0, "0s"),
    ],
)
def test_duration(text: str, seconds: int, spelled: str) -> None:
    duration = Duration.parse(text)
    assert duration.seconds == seconds
    assert str(duration) == spelled


def test_range_money_percent() -> None:
    assert Range.parse("0..150") == Range(0, 150)
    assert Range.parse("3..") == Range(3, None)
    assert Money.parse("12000 USD") == Money(12000, "USD")
    assert str(Money.parse("0.50EUR")) == "0.5 EUR"
    assert Percent.parse("99.95%") == Percent(99.95)


@pytest.mark.parametrize(
    ("unit", "text", "reason"),
    [
        (Size, "64", "a size with a unit, such as 64GiB"),
        (Size, 64, "a size with a unit, such as 64GiB"),
        (Size, "64gib", "a size with a unit, such as 64GiB"),
        (Size, "-1GiB", "a size with a unit, such as 64GiB"),
        (Size, "64GiB\n", "a size with a unit, such as 64GiB"),
        (Size, "٦GiB", "a size with a unit, such as 64GiB"),
        (Size, "9" * 400 + "GiB", "a size with a unit, such as 64GiB"),
        (Size, "1e3GiB", "a size with a unit, such as 64GiB"),
        (Duration, "2", "a duration with a unit, such as 90s, 15m, 2h or 30d"),
        (Duration, "", "a duration with a unit, such as 90s, 15m, 2h or 30d"),
        (Duration, "9" * 5000 + "s", "a duration with a unit"),
        (Range, "5", "a range of counts, such as 0..150"),
        (Range, "-1..5", "a range of counts, such as 0..150"),
        (Range, "5..1", "a range whose end is not below its start"),
        (Range, None, "a range of counts, such as 0..150"),
        (Money, "12000", "an amount with a currency, such as 12000 USD"),
        (Money, "1.005 USD", "an amount with a currency, such as 12000 USD"),
        (Money, "12000 usd", "an amount with a currency, such as 12000 USD"),
        (Percent, "80", "a percentage, such as 80%"),
        (Percent, True, "a percentage, such as 80%"),
    ],
)
def test_refused(unit: type[Size], text: object, reason: str) -> None:
    with pytest.raises(ValueError, match="such as") as caught:
        unit.parse(text)
    assert str(caught.value).startswith(reason)


@given(counts)
def test_size_round_trip(number: int) -> None:
    for size in (Size(number), Size(number * 2**20), Size(number * 2**30)):
        assert Size.parse(str(size)) == size
        if not size.kubernetes.isdigit():
            assert Size.parse(size.kubernetes) == size
        else:
            assert int(size.kubernetes) == size


@given(counts)
def test_duration_round_trip(number: int) -> None:
    assert Duration.parse(str(Duration(number))) == Duration(number)


@given(counts, st.none() | counts)
def test_range_round_trip(low: int, more: int | None) -> None:
    high = None if more is None else min(low + more, 999_999_999)
    value = Range(low, high)
    assert Range.parse(str(value)) == value


@given(st.integers(0, 10**12 - 1))
def test_money_round_trip(cents: int) -> None:
    value = Money(cents / 100, "EUR")
    assert Money.parse(str(value)) == value


@given(st.decimals(0, 1000, places=4))
def test_percent_round_trip(number: object) -> None:
    value = Percent.parse(f"{number}%")
    assert Percent.parse(str(value)) == value


def test_day() -> None:
    day: TypeAdapter[dt.date] = TypeAdapter(Day)
    assert day.validate_python("2026-09-30") == dt.date(2026, 9, 30)
    assert day.validate_python(dt.date(2026, 9, 30)) == dt.date(2026, 9, 30)
    wrong: list[object] = [
        20260930,
        1.5,
        "2026-9-30",
        "2026-02-30",
        dt.datetime(2026, 9, 30, 1),
        None,
    ]
    for value in wrong:
        with pytest.raises(ValidationError, match="a day such as 2026-09-30"):
            day.validate_python(value)
