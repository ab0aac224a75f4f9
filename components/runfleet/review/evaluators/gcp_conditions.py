"""Conditions of Google Cloud bindings: the part of CEL that IAM Conditions use.

A condition is an expression of the Common Expression Language over attributes of the
request (IAM documentation, "Attribute reference for IAM Conditions"; the language:
google/cel-spec, ``doc/langdef.md``). It is read here in full where it is made of the
usual parts, and the answer is one of three (:mod:`.decision`): what a record does not
say (the time of a request, an attribute that a service does not recognise) is unknown,
and so is every function that is not known here. An expression that cannot be read at
all is unknown too, never harmless.

CEL's ``&&`` and ``||`` ignore an error on one side when the other side decides, which
is what three values do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from runfleet.review.evaluators.decision import Truth, both, either, negate, truth


class ConditionError(ValueError):
    """An expression that cannot be read."""


@dataclass(frozen=True)
class Unknown:
    """A value that nobody knows before the request."""


UNKNOWN: Final = Unknown()

Attributes = Mapping[str, Any]
"""Known attributes by dotted name, such as ``resource.name``; others are unknown."""


def holds(expression: str, attributes: Attributes) -> Truth:
    """Say whether a condition holds.

    Args:
        expression: The expression.
        attributes: Known attributes.
    """
    try:
        value = _Reader(expression, attributes).read()
    except ConditionError:
        return Truth.UNSURE
    return truth(value) if isinstance(value, bool) else Truth.UNSURE


def readable(expression: str) -> bool:
    """Say whether an expression can be read."""
    try:
        _Reader(expression, {}).read()
    except ConditionError:
        return False
    return True


def literals(expression: str) -> list[str]:
    """Return the texts that an expression compares with."""
    return [_text(found) for found in re.findall(_STRING, expression)]


_STRING = r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\''
_TOKEN = re.compile(
    rf"\s*(?:(?P<string>{_STRING})|(?P<number>\d+(?:\.\d+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<mark>&&|\|\||==|!=|<=|>=|[<>!.,()\[\]]))"
)


class _Reader:
    """Reads and evaluates an expression in one pass, both sides of every operator."""

    def __init__(self, expression: str, attributes: Attributes) -> None:
        self._tokens = _tokens(expression)
        self._at = 0
        self._attributes = attributes

    def read(self) -> Any:
        value = self._or()
        if self._peek() is not None:
            raise ConditionError(f"{self._peek()!r} is out of place")
        return value

    def _or(self) -> Any:
        values = [self._and()]
        while self._take("||"):
            values.append(self._and())
        return values[0] if len(values) == 1 else _value(either(map(_truth, values)))

    def _and(self) -> Any:
        values = [self._relation()]
        while self._take("&&"):
            values.append(self._relation())
        return values[0] if len(values) == 1 else _value(both(map(_truth, values)))

    def _relation(self) -> Any:
        left = self._unary()
        for mark in ("==", "!=", "<=", ">=", "<", ">", "in"):
            if self._take(mark):
                return _compare(mark, left, self._unary())
        return left

    def _unary(self) -> Any:
        if self._take("!"):
            return _value(negate(_truth(self._unary())))
        return self._member()

    def _member(self) -> Any:
        value = self._primary()
        while True:
            if self._take("."):
                name = self._name()
                if self._take("("):
                    value = _call(name, value, self._arguments(")"))
                else:
                    value = self._select(value, name)
            elif self._take("["):
                (key,) = self._arguments("]") or [UNKNOWN]
                value = self._select(value, key)
            else:
                return value

    def _primary(self) -> Any:
        kind, text = self._next()
        if kind == "string":
            return _text(text)
        if kind == "number":
            return float(text)
        if text == "(":
            value = self._or()
            self._expect(")")
            return value
        if text == "[":
            return self._arguments("]")
        if kind == "name":
            if text in ("true", "false"):
                return text == "true"
            if self._take("("):
                return _call(text, None, self._arguments(")"))
            return self._select(_Path(""), text)
        raise ConditionError(f"{text!r} is out of place")

    def _select(self, value: Any, name: Any) -> Any:
        if isinstance(value, _Path) and isinstance(name, str):
            path = f"{value.name}.{name}".lstrip(".")
            if path in self._attributes:
                return self._attributes[path]
            return _Path(path)
        return UNKNOWN

    def _arguments(self, end: str) -> list[Any]:
        found: list[Any] = []
        while not self._take(end):
            found.append(self._or())
            if not self._take(","):
                self._expect(end)
                break
        return found

    def _peek(self) -> tuple[str, str] | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _next(self) -> tuple[str, str]:
        token = self._peek()
        if token is None:
            raise ConditionError("the expression ends too early")
        self._at += 1
        return token

    def _take(self, text: str) -> bool:
        token = self._peek()
        if token is None or token[1] != text or token[0] == "string":
            return False
        self._at += 1
        return True

    def _expect(self, text: str) -> None:
        if not self._take(text):
            raise ConditionError(f"{text!r} is missing")

    def _name(self) -> str:
        kind, text = self._next()
        if kind != "name":
            raise ConditionError(f"{text!r} is no name")
        return text


@dataclass(frozen=True)
class _Path:
    """An attribute whose value is not known (yet)."""

    name: str


def _tokens(expression: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    at = 0
    text = expression.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ConditionError(f"cannot read {text[at : at + 20]!r}")
        found.append((str(match.lastgroup), match[str(match.lastgroup)]))
        at = match.end()
    return found


def _text(literal: str) -> str:
    return re.sub(r"\\(.)", r"\1", literal[1:-1])


def _truth(value: Any) -> Truth:
    return truth(value) if isinstance(value, bool) else Truth.UNSURE


def _value(found: Truth) -> Any:
    return UNKNOWN if found is Truth.UNSURE else found is Truth.YES


def _known(value: Any) -> bool:
    if isinstance(value, list):
        return all(_known(item) for item in cast("list[Any]", value))
    return not isinstance(value, (Unknown, _Path))


def _compare(mark: str, left: Any, right: Any) -> Any:
    if mark == "in":
        if not isinstance(right, list) or not _known(left):
            return UNKNOWN
        items = cast("list[Any]", right)
        if left in items:
            return True
        return False if all(_known(item) for item in items) else UNKNOWN
    if not (_known(left) and _known(right)):
        return UNKNOWN
    if mark in ("==", "!="):
        return (left == right) is (mark == "==")
    if type(left) is not type(right):
        return UNKNOWN
    return {
        "<": left < right,
        ">": left > right,
        "<=": left <= right,
        ">=": left >= right,
    }[mark]


def _call(name: str, target: Any, given: list[Any]) -> Any:
    """Call a function of CEL; one that is not known here has no known result."""
    if not isinstance(target, str) or not all(isinstance(g, str) for g in given):
        return UNKNOWN
    texts = cast("list[str]", given)
    if len(texts) == 1:
        if name == "startsWith":
            return target.startswith(texts[0])
        if name == "endsWith":
            return target.endswith(texts[0])
        if name == "contains":
            return texts[0] in target
    if not texts and name == "lowerAscii":
        return target.lower()
    return UNKNOWN
