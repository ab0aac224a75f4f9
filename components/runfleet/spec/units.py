"""Human units: sizes, durations, ranges, percentages and money.

Fleet files are read by people, so values are written the way people write them
(``64GiB``, ``2h``, ``0..150``, ``80%``, ``12000 USD``) and parsed once, at the
edge. Each type is an ``int`` or a small frozen value with an exact canonical
spelling, so that reading and writing a file gives the same text back.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BeforeValidator, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import core_schema

_SIZE_UNITS = {
    "MiB": 1024**2,
    "GiB": 1024**3,
    "TiB": 1024**4,
    "Mi": 1024**2,
    "Gi": 1024**3,
    "Ti": 1024**4,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
}
_SIZE = re.compile(
    r"^([0-9]{1,12}(?:\.[0-9]{1,20})?) *(MiB|GiB|TiB|Mi|Gi|Ti|MB|GB|TB)$"
)
_DURATION_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_DURATION = re.compile(r"^(?:[0-9]{1,9}(?:s|m|h|d|w))+$")
_RANGE = re.compile(r"^([0-9]{1,9}) *\.\. *([0-9]{1,9})?$")
_MONEY = re.compile(r"^([0-9]{1,12}(?:\.[0-9]{1,2})?) *([A-Z]{3})$")
_DAY = re.compile(r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")
_PERCENT = re.compile(r"^([0-9]{1,6}(?:\.[0-9]{1,9})?) *%$")


class _IntUnit(int):
    """An ``int`` that is written with a unit. Subclasses parse and spell it."""

    _pattern = ""
    _example = ""

    @classmethod
    def parse(cls, value: object) -> _IntUnit:
        """Return the value for a text; raise ``ValueError`` with an example."""
        raise NotImplementedError

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Validate with :meth:`parse` and serialise with ``str``."""
        return core_schema.no_info_plain_validator_function(
            cls.parse, serialization=core_schema.to_string_ser_schema()
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Describe the text form for editors."""
        return {"type": "string", "pattern": cls._pattern, "examples": [cls._example]}


class Size(_IntUnit):
    """A size in bytes, written as ``64GiB`` (Kubernetes' ``64Gi`` is read too)."""

    _pattern = _SIZE.pattern
    _example = "64GiB"

    @classmethod
    def parse(cls, value: object) -> Size:
        """Return the size for ``64GiB``; a bare number is refused as ambiguous."""
        if isinstance(value, Size):
            return value
        match = _SIZE.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            raise ValueError("a size with a unit, such as 64GiB")
        return cls(round(Decimal(match[1]) * _SIZE_UNITS[match[2]]))

    @classmethod
    def gib_of(cls, gib: float) -> Size:
        """Return the size of that many GiB."""
        return cls(round(gib * 1024**3))

    @property
    def gib(self) -> float:
        """The size in GiB."""
        return int(self) / 1024**3

    @property
    def mib(self) -> int:
        """The size in whole MiB, rounded down."""
        return int(self) // 1024**2

    @property
    def kubernetes(self) -> str:
        """The Kubernetes quantity, such as ``64Gi``; bytes when it is not whole."""
        text = str(self)
        if text.endswith("iB") and "." not in text:
            return text.removesuffix("B")
        return str(int(self))

    def __str__(self) -> str:
        """Spell the size in the largest unit that keeps it whole, exactly."""
        if not int(self):
            return "0MiB"
        for unit in ("TiB", "GiB", "MiB", "TB", "GB", "MB"):
            if int(self) % _SIZE_UNITS[unit] == 0:
                return f"{int(self) // _SIZE_UNITS[unit]}{unit}"
        return f"{_plain(Decimal(int(self)) / 10**6)}MB"

    __repr__ = __str__


class Duration(_IntUnit):
    """A duration in seconds, written as ``2h``, ``90s`` or ``1h30m``."""

    _pattern = _DURATION.pattern
    _example = "2h"

    @classmethod
    def parse(cls, value: object) -> Duration:
        """Return the duration for ``2h``; a bare number is refused."""
        if isinstance(value, Duration):
            return value
        if not isinstance(value, str) or not _DURATION.fullmatch(value):
            raise ValueError("a duration with a unit, such as 90s, 15m, 2h or 30d")
        parts = re.findall(r"([0-9]+)([smhdw])", value)
        return cls(sum(int(number) * _DURATION_UNITS[unit] for number, unit in parts))

    @property
    def seconds(self) -> int:
        """The duration in seconds."""
        return int(self)

    def __str__(self) -> str:
        """Spell the duration in the largest unit that keeps it whole."""
        for unit in ("d", "h", "m"):
            if int(self) and int(self) % _DURATION_UNITS[unit] == 0:
                return f"{int(self) // _DURATION_UNITS[unit]}{unit}"
        return f"{int(self)}s"

    __repr__ = __str__


class _TextUnit:
    """A frozen value that is written as one text."""

    _pattern = ""
    _example = ""

    @classmethod
    def parse(cls, value: object) -> Any:
        """Return the value for a text; raise ``ValueError`` with an example."""
        raise NotImplementedError

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Validate with :meth:`parse` and serialise with ``str``."""
        return core_schema.no_info_plain_validator_function(
            cls.parse, serialization=core_schema.to_string_ser_schema()
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Describe the text form for editors."""
        return {"type": "string", "pattern": cls._pattern, "examples": [cls._example]}


@dataclass(frozen=True)
class Range(_TextUnit):
    """A range of counts, written as ``0..150``; ``0..`` has no upper bound.

    Attributes:
        low: The smallest count.
        high: The largest count, or ``None`` when unbounded.
    """

    low: int
    high: int | None

    _pattern = _RANGE.pattern
    _example = "0..150"

    @classmethod
    def parse(cls, value: object) -> Range:
        """Return the range for ``0..150``."""
        if isinstance(value, Range):
            return value
        match = _RANGE.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            raise ValueError("a range of counts, such as 0..150")
        low, high = int(match[1]), int(match[2]) if match[2] else None
        if high is not None and high < low:
            raise ValueError("a range whose end is not below its start, such as 0..150")
        return cls(low, high)

    def __str__(self) -> str:
        """Spell the range as ``low..high``."""
        return f"{self.low}..{'' if self.high is None else self.high}"


@dataclass(frozen=True)
class Money(_TextUnit):
    """An amount of money, written as ``12000 USD``.

    Attributes:
        amount: The amount in the currency's main unit.
        currency: ISO 4217 code.
    """

    amount: float
    currency: str = "USD"

    _pattern = _MONEY.pattern
    _example = "12000 USD"

    @classmethod
    def parse(cls, value: object) -> Money:
        """Return the amount for ``12000 USD``."""
        if isinstance(value, Money):
            return value
        match = _MONEY.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            raise ValueError("an amount with a currency, such as 12000 USD")
        return cls(float(match[1]), match[2])

    def __str__(self) -> str:
        """Spell the amount without needless decimals."""
        return f"{_plain(Decimal(f'{self.amount:.2f}'))} {self.currency}"


@dataclass(frozen=True)
class Percent(_TextUnit):
    """A percentage, written as ``80%``.

    Attributes:
        value: The number before the sign.
    """

    value: float

    _pattern = _PERCENT.pattern
    _example = "80%"

    @classmethod
    def parse(cls, value: object) -> Percent:
        """Return the percentage for ``80%``."""
        if isinstance(value, Percent):
            return value
        match = _PERCENT.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            raise ValueError("a percentage, such as 80%")
        return cls(float(match[1]))

    def __str__(self) -> str:
        """Spell the percentage without needless decimals."""
        return f"{_plain(Decimal(str(self.value)))}%"


def _day(value: object) -> object:
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return value
    if isinstance(value, str) and _DAY.fullmatch(value):
        try:
            return dt.date.fromisoformat(value)
        except ValueError as error:
            raise ValueError(f"a day such as 2026-09-30 ({error})") from None
    raise ValueError("a day such as 2026-09-30")


Day = Annotated[dt.date, BeforeValidator(_day)]
"""A day, written ``2026-09-30``. A bare number is no day (it would be seconds)."""


def _plain(number: Decimal) -> str:
    """Spell a decimal number without exponent and needless zeros."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
