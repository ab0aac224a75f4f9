"""Patterns of AWS policies: wildcards, policy variables and request context.

A pattern is text with ``*`` (any run of characters), ``?`` (one character) and, in
policies of version 2012-10-17, variables such as ``${aws:PrincipalTag/team}`` or
``${aws:PrincipalTag/team, 'none'}`` and the escapes ``${*}``, ``${?}``, ``${$}``. It
is split once into pieces and compiled once per set of variable values.

Sources: AWS IAM User Guide, "IAM JSON policy elements: Resource", "... Action",
"... Variables and tags". The guide says that a wildcard belongs to one segment of
an ARN (the text between two colons), except for a ``*`` that ends its segment, which
may run over colons. What only matches when wildcards run over colons otherwise is
answered with "unsure".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from runfleet.review.evaluators.decision import Truth, either, truth

UNRESOLVED: Final = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""Pulumi's mark for a value that is not known yet (pulumi SDK, ``rpc.UNKNOWN``)."""

MASKED: Final = "[secret]"
"""What a record writes in the place of a secret, also inside longer text."""


def is_unresolved(text: str) -> bool:
    """Whether a text is not known yet, or holds a part that is hidden."""
    return UNRESOLVED in text or MASKED in text


class Missing(Enum):
    """Why a request has no value for a context key."""

    ABSENT = "absent"
    UNKNOWN = "unknown"


class Context:
    """The condition keys of one request; key names are not case-sensitive.

    A key is present with its values, known to be absent, or unknown. What is not
    mentioned is unknown, unless the context is ``complete``: then it is absent.
    """

    __slots__ = ("_absent", "_absent_prefixes", "_complete", "_values")

    def __init__(
        self,
        values: Mapping[str, str | Sequence[str]],
        absent: Iterable[str] = (),
        *,
        unknown: Iterable[str] = (),
        complete: bool = False,
    ) -> None:
        """Make the context.

        Args:
            values: Values by key; a text is one value, a sequence several.
            absent: Keys that the request does not have; a trailing ``*`` stands for
                every key with that beginning which has no value here.
            unknown: Keys that are unknown even where the rest is complete.
            complete: Whether every key not mentioned is known to be absent.
        """
        self._values: dict[str, tuple[str, ...] | Missing] = {
            key.lower(): (value,) if isinstance(value, str) else tuple(value)
            for key, value in values.items()
        }
        for key in unknown:
            self._values.setdefault(key.lower(), Missing.UNKNOWN)
        names = [key.lower() for key in absent]
        self._absent = frozenset(names)
        self._absent_prefixes = tuple(n[:-1] for n in names if n.endswith("*"))
        self._complete = complete

    def get(self, key: str) -> tuple[str, ...] | Missing:
        """Return the values of a lower-case key, or why there are none."""
        found = self._values.get(key)
        if found is not None:
            return found or Missing.ABSENT
        if (
            self._complete
            or key in self._absent
            or (self._absent_prefixes and key.startswith(self._absent_prefixes))
        ):
            return Missing.ABSENT
        return Missing.UNKNOWN


@dataclass(frozen=True, slots=True)
class Variable:
    """A policy variable inside a pattern.

    Attributes:
        key: The context key in lower case.
        default: The value when the request lacks the key, or ``None``.
    """

    key: str
    default: str | None


MANY: Final = re.compile(r"\*")
ONE: Final = re.compile(r"\?")
Piece = str | Variable | re.Pattern[str]


def split_pattern(text: str, *, variables: bool) -> tuple[Piece, ...]:
    """Split a pattern into literal text, wildcards and variables.

    Args:
        text: The pattern as it stands in the policy.
        variables: Whether ``${...}`` is a variable (version 2012-10-17) or text.

    Returns:
        Literals, :data:`MANY`, :data:`ONE` and :class:`Variable` in order.

    Raises:
        ValueError: A ``${`` has no end or names nothing.
    """
    pieces: list[Piece] = []
    literal = ""

    def close() -> None:
        nonlocal literal
        if literal:
            pieces.append(literal)
            literal = ""

    at = 0
    while at < len(text):
        char = text[at]
        if variables and text.startswith("${", at):
            end = text.find("}", at)
            if end < 0:
                raise ValueError("a policy variable has no closing brace")
            name = text[at + 2 : end].strip()
            at = end + 1
            if name in ("*", "?", "$"):
                literal += name
                continue
            close()
            pieces.append(_variable(name))
            continue
        if char in "*?":
            close()
            pieces.append(MANY if char == "*" else ONE)
        else:
            literal += char
        at += 1
    close()
    return tuple(pieces)


def _variable(name: str) -> Variable:
    key, comma, rest = name.partition(",")
    key = key.strip()
    if not key:
        raise ValueError("a policy variable has no name")
    if not comma:
        return Variable(key.lower(), None)
    default = rest.strip()
    if len(default) < 2 or default[0] != "'" or default[-1] != "'":
        raise ValueError(
            f"the default of policy variable {key} must be in single quotes"
        )
    return Variable(key.lower(), default[1:-1])


@dataclass(slots=True)
class Pattern:
    """One compiled pattern.

    Attributes:
        text: The pattern as written.
        pieces: What :func:`split_pattern` returned.
        wild: Whether ``*`` and ``?`` are wildcards; else they are plain text.
        segments: Whether wildcards respect the colons of an ARN.
        ignore_case: Whether letters match in either case.
        lacking: The answer when the request has no value for a variable. It is
            ``NO`` where the pattern includes and ``UNSURE`` where it excludes:
            the guide says that such a variable "might make the entire statement
            invalid", and both readings agree only on the first.
    """

    text: str
    pieces: tuple[Piece, ...]
    wild: bool = True
    segments: bool = False
    ignore_case: bool = False
    lacking: Truth = Truth.NO
    _compiled: dict[tuple[str, ...], tuple[re.Pattern[str], re.Pattern[str] | None]] = (
        field(
            default_factory=dict[
                tuple[str, ...], tuple[re.Pattern[str], re.Pattern[str] | None]
            ]
        )
    )
    _variables: tuple[Variable, ...] = ()
    _opaque: bool = False
    _plain: str | None = None

    def __post_init__(self) -> None:
        """Note what the pattern is made of, so that matching need not look."""
        self._variables = tuple(p for p in self.pieces if isinstance(p, Variable))
        self._opaque = is_unresolved(self.text)
        wild = self.wild and any(p is MANY or p is ONE for p in self.pieces)
        if not wild and not self._variables and not self.ignore_case:
            self._plain = "".join(_literal(piece) for piece in self.pieces)

    @property
    def any(self) -> bool:
        """Whether the pattern is a lone ``*``."""
        return self.wild and self.pieces == (MANY,)

    def matches(self, value: str, context: Context) -> Truth:
        """Return whether the pattern matches a value in a request.

        A variable whose value is unknown, or that has several values, makes the
        answer unsure; :attr:`lacking` is the answer when it has none.
        """
        if self._opaque:
            return Truth.UNSURE
        if self._plain is not None:
            return truth(self._plain == value)
        values: list[str] = []
        for variable in self._variables:
            found = context.get(variable.key)
            if found is Missing.UNKNOWN:
                return Truth.UNSURE
            if found is Missing.ABSENT:
                if variable.default is None:
                    return self.lacking
                values.append(variable.default)
            elif len(found) != 1:
                return Truth.UNSURE
            else:
                values.append(found[0])
        key = tuple(values)
        compiled = self._compiled.get(key)
        if compiled is None:
            compiled = self._compiled[key] = self._compile(key)
        strict, loose = compiled
        if strict.fullmatch(value):
            return Truth.YES
        if loose is not None and loose.fullmatch(value):
            return Truth.UNSURE
        return Truth.NO

    def sample(self, context: Context, filler: str = "probe") -> str | None:
        """Return one text that the pattern matches; ``None`` when not known."""
        parts: list[str] = []
        for piece in self.pieces:
            if isinstance(piece, Variable):
                found = context.get(piece.key)
                if isinstance(found, Missing):
                    return None
                parts.append(found[0])
            elif piece is MANY:
                parts.append(filler)
            elif piece is ONE:
                parts.append("p")
            else:
                parts.append(_literal(piece))
        return "".join(parts)

    def _compile(
        self, values: tuple[str, ...]
    ) -> tuple[re.Pattern[str], re.Pattern[str] | None]:
        flags = re.DOTALL | (re.IGNORECASE if self.ignore_case else 0)
        strict, loose = "", ""
        substitutes = iter(values)
        for index, piece in enumerate(self.pieces):
            if isinstance(piece, Variable):
                text = re.escape(next(substitutes))
                strict, loose = strict + text, loose + text
            elif isinstance(piece, str):
                strict, loose = strict + re.escape(piece), loose + re.escape(piece)
            elif not self.wild:
                text = re.escape(_literal(piece))
                strict, loose = strict + text, loose + text
            else:
                any_text = ".*" if piece is MANY else "."
                rest = self.pieces[index + 1 :]
                after = rest[0] if rest else ":"
                free = not self.segments or (
                    piece is MANY and isinstance(after, str) and after.startswith(":")
                )
                strict += any_text if free else any_text.replace(".", "[^:]")
                loose += any_text
        compiled = re.compile(strict, flags)
        return compiled, None if strict == loose else re.compile(loose, flags)


def _literal(piece: Piece) -> str:
    if piece is MANY:
        return "*"
    return "?" if piece is ONE else str(piece)


class ArnPattern:
    """A pattern of the ``Arn...`` condition operators and of its six parts.

    The guide: "Each of the six colon-delimited components of the ARN is checked
    separately and each can include multi-character match wildcards (*) or
    single-character match wildcards (?)."
    """

    __slots__ = ("_opaque", "_parts", "text")

    def __init__(
        self, text: str, *, variables: bool, lacking: Truth = Truth.NO
    ) -> None:
        """Split the pattern into the six parts of an ARN.

        Raises:
            ValueError: The text is not an ARN, or a variable in it is malformed.
        """
        parts = _arn_parts(text)
        if len(parts) != 6 and text != "*":
            raise ValueError(f"{text!r} is not an ARN")
        self.text = text
        self._opaque = is_unresolved(text)
        self._parts = tuple(
            Pattern(part, split_pattern(part, variables=variables), lacking=lacking)
            for part in parts
        )

    def matches(self, value: str, context: Context) -> Truth:
        """Return whether every part of the pattern matches that of the value."""
        if self._opaque:
            return Truth.UNSURE
        if self.text == "*":
            return Truth.YES
        parts = value.split(":", 5)
        if len(parts) != 6:
            return Truth.NO
        return min(
            pattern.matches(part, context)
            for pattern, part in zip(self._parts, parts, strict=True)
        )


def _arn_parts(text: str) -> list[str]:
    """Split at the first five colons that are not inside a variable."""
    parts: list[str] = [""]
    depth = 0
    for index, char in enumerate(text):
        if text.startswith("${", index):
            depth += 1
        elif char == "}" and depth:
            depth -= 1
        if char == ":" and not depth and len(parts) < 6:
            parts.append("")
        else:
            parts[-1] += char
    return parts


def any_matches(patterns: Iterable[Pattern], value: str, context: Context) -> Truth:
    """Return whether at least one of the patterns matches the value."""
    return either(pattern.matches(value, context) for pattern in patterns)
