"""The condition operators of AWS policies.

Sources: AWS IAM User Guide, "IAM JSON policy elements: Condition operators", "...
Conditions with multiple context keys or values" and "Multivalued context keys". The
rules that are easily got wrong, each with a test:

* A key that the request lacks fails a positive operator, passes a negated one
  (``StringNotEquals``) and passes anything with ``IfExists``.
* ``ForAllValues:`` passes when the request lacks the key or has only empty values.
* ``ForAnyValue:`` fails when the request lacks the key, negated or not.
* Several values are alternatives for a positive operator; a negated operator passes
  only when none of them matches.
* An operator that is not in the guide makes its condition "unsure".
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Final

from runfleet.review.evaluators.aws_match import (
    ArnPattern,
    Context,
    Missing,
    Pattern,
    is_unresolved,
    split_pattern,
)
from runfleet.review.evaluators.decision import Truth, both, either, negate, truth

Matcher = Callable[[str, Context], Truth]
"""Whether one value of a request matches one value of a policy."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One key of one operator of a ``Condition`` block.

    Attributes:
        operator: The operator as written, such as ``ForAnyValue:StringLike``.
        key: The context key as written.
        values: The policy's values as written.
    """

    operator: str
    key: str
    values: tuple[str, ...]
    _key: str
    _quantifier: str
    _negated: bool
    _if_exists: bool
    _matchers: tuple[Matcher, ...] | None

    def holds(self, context: Context) -> Truth:
        """Return whether the condition is met in a request."""
        found = context.get(self._key)
        if self._quantifier == "Null":
            if found is Missing.UNKNOWN:
                return Truth.UNSURE
            return either(
                truth((found is Missing.ABSENT) == (value.lower() == "true"))
                for value in self.values
            )
        if self._matchers is None or found is Missing.UNKNOWN:
            return Truth.UNSURE
        if found is Missing.ABSENT:
            if self._if_exists or self._quantifier == "ForAllValues":
                return Truth.YES
            return truth(self._negated and self._quantifier != "ForAnyValue")
        answers = [self._one(value, context) for value in found]
        if self._quantifier == "ForAllValues":
            return both(answers) if any(found) else Truth.YES
        if self._quantifier == "ForAnyValue":
            return either(answers)
        # The guide asks for a set operator here and does not say what happens
        # without one: only an answer that all values share is certain.
        return answers[0] if len(set(answers)) == 1 else Truth.UNSURE

    def __str__(self) -> str:
        """Render the condition on one line."""
        return f"{self.operator} {self.key} {list(self.values)}"

    def _one(self, value: str, context: Context) -> Truth:
        assert self._matchers is not None
        match = either(matcher(value, context) for matcher in self._matchers)
        return negate(match) if self._negated else match


def make_condition(
    operator: str, key: str, values: tuple[str, ...], *, variables: bool
) -> Condition:
    """Compile one condition.

    Args:
        operator: The operator as written in the policy.
        key: The context key.
        values: The policy's values, as text.
        variables: Whether values may hold policy variables (version 2012-10-17).

    Raises:
        ValueError: A value is none that the operator can compare with.
    """
    quantifier, colon, rest = operator.partition(":")
    if not colon or quantifier not in ("ForAllValues", "ForAnyValue"):
        quantifier, rest = "", operator
    if rest == "Null" and not quantifier:
        for value in values:
            if value.lower() not in ("true", "false"):
                raise ValueError(f"Null takes true or false, not {value!r}")
        return Condition(operator, key, values, key.lower(), "Null", False, False, ())
    if_exists = rest.endswith("IfExists")
    base = rest.removesuffix("IfExists")
    known = _OPERATORS.get(base)
    matchers: tuple[Matcher, ...] | None = None
    negated = False
    if known is not None:
        negated, make = known
        lacking = Truth.UNSURE if negated else Truth.NO
        matchers = tuple(
            _unsure if is_unresolved(value) else make(value, variables, lacking)
            for value in values
        )
    return Condition(
        operator, key, values, key.lower(), quantifier, negated, if_exists, matchers
    )


def known_operator(operator: str) -> bool:
    """Whether an operator, with its prefix and suffix, is one of the guide's."""
    if operator == "Null":
        return True
    name = operator.removeprefix("ForAllValues:").removeprefix("ForAnyValue:")
    return name.removesuffix("IfExists") in _OPERATORS


def _unsure(value: str, context: Context) -> Truth:
    return Truth.UNSURE


def _text(*, wild: bool = False, ignore_case: bool = False) -> _Maker:
    def make(wanted: str, variables: bool, lacking: Truth) -> Matcher:
        pattern = Pattern(
            wanted,
            split_pattern(wanted, variables=variables),
            wild=wild,
            ignore_case=ignore_case,
            lacking=lacking,
        )
        return pattern.matches

    return make


def _arn(wanted: str, variables: bool, lacking: Truth) -> Matcher:
    return ArnPattern(wanted, variables=variables, lacking=lacking).matches


def _number(compare: Callable[[Decimal, Decimal], bool]) -> _Maker:
    def make(wanted: str, variables: bool, lacking: Truth) -> Matcher:
        limit = _decimal(wanted)
        if limit is None:
            raise ValueError(f"{wanted!r} is not a number")

        def match(value: str, context: Context) -> Truth:
            number = _decimal(value)
            return truth(number is not None and compare(number, limit))

        return match

    return make


def _decimal(text: str) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _date(compare: Callable[[Decimal, Decimal], bool]) -> _Maker:
    def make(wanted: str, variables: bool, lacking: Truth) -> Matcher:
        limit = _moment(wanted)
        if limit is None:
            raise ValueError(f"{wanted!r} is neither an ISO 8601 date nor a time")

        def match(value: str, context: Context) -> Truth:
            moment = _moment(value)
            return truth(moment is not None and compare(moment, limit))

        return match

    return make


def _moment(text: str) -> Decimal | None:
    """Return seconds since 1970 of an ISO 8601 date or of a number of seconds."""
    number = _decimal(text)
    if number is not None and not _looks_like_year(text):
        return number
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        if not _looks_like_year(text):
            return None
        moment = datetime(int(text), 1, 1)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return Decimal(str(moment.timestamp()))


def _looks_like_year(text: str) -> bool:
    return len(text) == 4 and text.isdigit() and text != "0000"


def _bool(wanted: str, variables: bool, lacking: Truth) -> Matcher:
    if "${" not in wanted and wanted.lower() not in ("true", "false"):
        raise ValueError(f"Bool takes true or false, not {wanted!r}")
    return _text(ignore_case=True)(wanted, variables, lacking)


def _binary(wanted: str, variables: bool, lacking: Truth) -> Matcher:
    data = _base64(wanted)
    if data is None:
        raise ValueError(f"{wanted!r} is not base-64")
    return lambda value, context: truth(_base64(value) == data)


def _base64(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


def _address(wanted: str, variables: bool, lacking: Truth) -> Matcher:
    try:
        network = ipaddress.ip_network(wanted, strict=False)
    except ValueError:
        raise ValueError(f"{wanted!r} is no address range") from None

    def match(value: str, context: Context) -> Truth:
        try:
            address = ipaddress.ip_address(value)
        except ValueError:
            return Truth.NO
        return truth(address in network)

    return match


_Maker = Callable[[str, bool, Truth], Matcher]
_COMPARISONS: dict[str, tuple[bool, Callable[[Decimal, Decimal], bool]]] = {
    "Equals": (False, lambda value, limit: value == limit),
    "NotEquals": (True, lambda value, limit: value == limit),
    "LessThan": (False, lambda value, limit: value < limit),
    "LessThanEquals": (False, lambda value, limit: value <= limit),
    "GreaterThan": (False, lambda value, limit: value > limit),
    "GreaterThanEquals": (False, lambda value, limit: value >= limit),
}
_OPERATORS: Final[dict[str, tuple[bool, _Maker]]] = {
    "StringEquals": (False, _text()),
    "StringNotEquals": (True, _text()),
    "StringEqualsIgnoreCase": (False, _text(ignore_case=True)),
    "StringNotEqualsIgnoreCase": (True, _text(ignore_case=True)),
    "StringLike": (False, _text(wild=True)),
    "StringNotLike": (True, _text(wild=True)),
    "Bool": (False, _bool),
    "BinaryEquals": (False, _binary),
    "IpAddress": (False, _address),
    "NotIpAddress": (True, _address),
    "ArnEquals": (False, _arn),
    "ArnLike": (False, _arn),
    "ArnNotEquals": (True, _arn),
    "ArnNotLike": (True, _arn),
    **{
        f"Numeric{name}": (negated, _number(compare))
        for name, (negated, compare) in _COMPARISONS.items()
    },
    **{
        f"Date{name}": (negated, _date(compare))
        for name, (negated, compare) in _COMPARISONS.items()
    },
}
