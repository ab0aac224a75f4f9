"""Conditions of Azure role assignments (ABAC), read and decided.

Written from Azure's documentation, "Azure role assignment condition format and syntax"
(read 2026-11), and not from what this toolkit writes. A condition is a formula of
``ActionMatches``, ``SubOperationMatches``, ``Exists`` and comparisons of attributes. It
narrows an assignment: where it is true, the assignment gives what its role holds, also
for actions that the condition does not speak of.

Answers are three-valued (:mod:`.decision`): an attribute that the question leaves open,
or an operator that is not known here, makes a comparison unsure, never false.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from runfleet.review.evaluators.decision import Truth, both, either, negate, truth

VERSION = "2.0"
"""The version of the language that this module reads."""


class ConditionError(ValueError):
    """A condition is not of the language."""


@dataclass(frozen=True)
class Question:
    """What a condition is asked about.

    Attributes:
        action: The action, such as ``.../blobs/read``.
        sub_operation: Its sub-operation; empty for the others.
        attributes: Values by attribute, as ``@Resource[...:path]``; ``None`` for one
            that the request does not have. One that is missing here is not known.
    """

    action: str
    sub_operation: str = ""
    attributes: Mapping[str, str | None] = field(
        default_factory=dict[str, "str | None"]
    )


@dataclass(frozen=True)
class _Node:
    """One node of a formula."""

    kind: str
    parts: tuple[_Node, ...] = ()
    text: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()
    plain: bool = True


@dataclass(frozen=True)
class Condition:
    """A condition that was read.

    Attributes:
        text: The condition as it was written.
    """

    text: str
    _root: _Node

    def decide(self, question: Question) -> Truth:
        """Say whether the condition is true for a question."""
        return _decide(self._root, question)

    def literals(self) -> frozenset[str]:
        """Return the values that attributes are compared with."""
        return frozenset(_literals(self._root))


def read_condition(text: str) -> Condition:
    """Read a condition.

    Raises:
        ConditionError: It is not of the language.
    """
    tokens = list(_tokens(text))
    node, rest = _or(tokens)
    if rest:
        raise ConditionError(f"{rest[0]!r} is not expected in a condition")
    return Condition(text, node)


_TOKEN = re.compile(
    r"""\s*(?:
        (?P<string>'(?:[^'\\]|\\.)*')
      | (?P<attribute>@\w+\[[^\]]*\])
      | (?P<symbol>&&|\|\||[(){},!])
      | (?P<word>[A-Za-z][\w:]*|-?\d+(?:\.\d+)?)
    )""",
    re.VERBOSE,
)


def _tokens(text: str) -> Iterator[str]:
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            raise ConditionError(f"cannot read {text[at : at + 30]!r} in a condition")
        yield match.group(match.lastgroup or 0)
        at = match.end()


_Rest = list[str]


def _or(tokens: _Rest) -> tuple[_Node, _Rest]:
    return _chain(tokens, ("or", "||"), "or")


def _and(tokens: _Rest) -> tuple[_Node, _Rest]:
    return _chain(tokens, ("and", "&&"), "and")


def _chain(tokens: _Rest, words: Sequence[str], kind: str) -> tuple[_Node, _Rest]:
    part, rest = _and(tokens) if kind == "or" else _not(tokens)
    parts = [part]
    while rest and rest[0].lower() in words:
        part, rest = _and(rest[1:]) if kind == "or" else _not(rest[1:])
        parts.append(part)
    return (parts[0] if len(parts) == 1 else _Node(kind, tuple(parts))), rest


def _not(tokens: _Rest) -> tuple[_Node, _Rest]:
    if not tokens:
        raise ConditionError("a condition ends too early")
    head, rest = tokens[0], tokens[1:]
    if head == "!" or head.lower() == "not":
        node, rest = _not(rest)
        return _Node("not", (node,)), rest
    if head == "(":
        node, rest = _or(rest)
        return node, _expect(rest, ")")
    return _test(head, rest)


def _test(head: str, rest: _Rest) -> tuple[_Node, _Rest]:
    word = head.lower()
    if word in ("actionmatches", "suboperationmatches"):
        values, rest = _values(rest)
        return _Node(word, values=values), rest
    if word in ("exists", "notexists"):
        if not rest or not rest[0].startswith("@"):
            raise ConditionError(f"{head} wants an attribute")
        node = _Node("exists", text=rest[0])
        return (node if word == "exists" else _Node("not", (node,))), rest[1:]
    if not head.startswith("@") or not rest:
        raise ConditionError(f"{head!r} is not expected in a condition")
    operator, rest = rest[0], rest[1:]
    if rest and rest[0].startswith("@"):
        return _Node("compare", text=head, operator=operator, plain=False), rest[1:]
    values, rest = _values(rest)
    return _Node("compare", text=head, operator=operator, values=values), rest


def _values(tokens: _Rest) -> tuple[tuple[str, ...], _Rest]:
    """Read one value, or several in braces."""
    if tokens and tokens[0] != "{":
        return (_value(tokens[0]),), tokens[1:]
    found: list[str] = []
    rest = tokens[1:]
    while rest and rest[0] != "}":
        if rest[0] != ",":
            found.append(_value(rest[0]))
        rest = rest[1:]
    return tuple(found), _expect(rest, "}")


def _value(token: str) -> str:
    if token.startswith("'"):
        return re.sub(r"\\(.)", r"\1", token[1:-1])
    if not re.fullmatch(r"[\w.-]+", token):
        raise ConditionError(f"{token!r} is no value")
    return token


def _expect(tokens: _Rest, symbol: str) -> _Rest:
    if not tokens or tokens[0] != symbol:
        raise ConditionError(f"a condition lacks {symbol!r}")
    return tokens[1:]


def _decide(node: _Node, question: Question) -> Truth:
    if node.kind == "or":
        return either(_decide(part, question) for part in node.parts)
    if node.kind == "and":
        return both(_decide(part, question) for part in node.parts)
    if node.kind == "not":
        return negate(_decide(node.parts[0], question))
    if node.kind == "actionmatches":
        return truth(any(matches(value, question.action) for value in node.values))
    if node.kind == "suboperationmatches":
        asked = question.sub_operation.lower()
        return truth(any(value.lower() == asked for value in node.values))
    known = {name.lower(): value for name, value in question.attributes.items()}
    name = node.text.lower()
    if name not in known:
        return Truth.UNSURE
    value = known[name]
    if node.kind == "exists":
        return truth(value is not None)
    return _compare(node, value)


_OPERATOR = re.compile(
    r"(?:(?P<for>ForAnyOfAnyValues):)?"
    r"String(?P<not>Not)?(?P<test>Equals|StartsWith|Like)(?P<case>IgnoreCase)?"
)


def _compare(node: _Node, value: str | None) -> Truth:
    """Compare an attribute; one that is absent equals nothing."""
    match = _OPERATOR.fullmatch(node.operator)
    if match is None or not node.plain:
        return Truth.UNSURE
    values = list(node.values)
    if len(values) > 1 and not match["for"]:
        return Truth.UNSURE
    if value is None:
        found = False
    else:
        if match["case"]:
            value, values = value.lower(), [each.lower() for each in values]
        found = any(_test_string(match["test"], value, each) for each in values)
    return truth(found != bool(match["not"]))


def _test_string(test: str, value: str, wanted: str) -> bool:
    if test == "Equals":
        return value == wanted
    if test == "StartsWith":
        return value.startswith(wanted)
    pattern = re.escape(wanted).replace(r"\*", ".*").replace(r"\?", ".")
    return re.fullmatch(pattern, value, re.DOTALL) is not None


def matches(pattern: str, action: str) -> bool:
    """Say whether an action pattern covers an action; ``*`` is any text, without case.

    Azure documentation, "Understand Azure role definitions", section "Actions format".
    """
    regex = re.escape(pattern.lower()).replace(r"\*", ".*")
    return re.fullmatch(regex, action.lower()) is not None


def _literals(node: _Node) -> Iterator[str]:
    if node.kind == "compare":
        yield from node.values
    for part in node.parts:
        yield from _literals(part)
