"""What an import did not carry over, chose or derived: never dropped silently.

An importer reads a foreign file key by key through :class:`Entry`. A key that it
does not ask for is reported when the entry is left, a value of the wrong type is a
problem, and all of them are collected in one :class:`Log`, so that a person sees
everything at once, with file and line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, cast

from runfleet.errors import Problem
from runfleet.spec.source import Path, Source, dotted, nearest


class Kind(StrEnum):
    """What happened to a part of the source.

    ``unknown``: a key that the importer does not know; ``not-carried``: a known key
    that a fleet file has no place for; ``derived``: a value that was computed;
    ``chosen``: a value that the source does not hold; ``dangling``: a reference to
    something that the source does not define.
    """

    UNKNOWN = "unknown"
    NOT_CARRIED = "not-carried"
    DERIVED = "derived"
    CHOSEN = "chosen"
    DANGLING = "dangling"


@dataclass(frozen=True)
class ReportEntry:
    """One thing that an import did not carry over as it stands in the source.

    Attributes:
        kind: What happened.
        file: File of the source, as the user named it.
        line: 1-based line, or 0 when no line can be named.
        path: Dotted path inside the file.
        value: The value that stands there, as text.
        why: What was done and why, in one sentence.
    """

    kind: Kind
    file: str
    line: int
    path: str
    value: str
    why: str

    def __str__(self) -> str:
        """Render the entry as ``file:line: path: kind: why``."""
        where = f"{self.file}:{self.line}" if self.line else self.file
        value = f" ({self.value})" if self.value else ""
        return f"{where}: {self.path or '(document)'}{value}: {self.kind}: {self.why}"

    def as_dict(self) -> dict[str, object]:
        """Return the entry as plain data for ``--json``."""
        return {
            "kind": str(self.kind),
            "file": self.file,
            "line": self.line,
            "path": self.path,
            "value": self.value,
            "why": self.why,
        }


@dataclass
class Log:
    """Collects the report and the problems of one import.

    Attributes:
        entries: What was not carried over as it stands.
        problems: What cannot be imported.
    """

    entries: list[ReportEntry] = field(default_factory=list[ReportEntry])
    problems: list[Problem] = field(default_factory=list[Problem])

    def note(
        self, kind: Kind, source: Source, path: Path, why: str, value: object = None
    ) -> None:
        """Add an entry for a path of a source."""
        self.entries.append(
            ReportEntry(
                kind, source.file, source.line(path), dotted(path), shown(value), why
            )
        )


class Entry:
    """A mapping of a source file, read key by key.

    Attributes:
        source: The file.
        path: Where the mapping stands in it.
    """

    def __init__(self, log: Log, source: Source, path: Path, data: object) -> None:
        """Wrap the value at a path; one that is not a mapping is a problem."""
        self._log, self.source, self.path = log, source, path
        self._read: set[str] = set()
        self._data: dict[str, Any] = {}
        if isinstance(data, dict):
            self._data = cast("dict[str, Any]", data)
        else:
            log.problems.append(
                source.problem(path, "is not a mapping", found=shown(data))
            )

    def __contains__(self, key: str) -> bool:
        """Say whether a key stands there with a value."""
        return self._data.get(key) is not None

    def raw(self, key: str) -> Any:
        """Return the value of a key as it is, ``None`` when it is absent."""
        self._read.add(key)
        return self._data.get(key)

    def text(self, key: str, required: bool = False) -> str | None:
        """Return a text; a number is not one."""
        return cast("str | None", self._typed(key, str, "text", required))

    def number(self, key: str, required: bool = False) -> int | None:
        """Return a whole number that is not negative."""
        value = self._typed(key, int, "a whole number", required)
        if value is not None and value < 0:
            self.wrong(key, "is below zero", value)
            return None
        return cast("int | None", value)

    def flag(self, key: str) -> bool:
        """Return a truth value, false when it is absent."""
        return bool(self._typed(key, bool, "true or false", False))

    def texts(self, key: str) -> list[str]:
        """Return a list of texts, empty when it is absent."""
        value = self._typed(key, list, "a list", False)
        items = cast("list[Any]", value or [])
        for index, item in enumerate(items):
            if not isinstance(item, str):
                path = (*self.path, key, index)
                problem = self.source.problem(path, "is not text", found=shown(item))
                self._log.problems.append(problem)
        return [item for item in items if isinstance(item, str)]

    def pairs(self, key: str) -> dict[str, str]:
        """Return a mapping of text to text, empty when it is absent."""
        value = self._typed(key, dict, "a mapping", False)
        return {str(k): str(v) for k, v in cast("dict[Any, Any]", value or {}).items()}

    def items(self, key: str) -> Iterable[tuple[Path, object]]:
        """Yield the items of a list with their paths."""
        value = self._typed(key, list, "a list", False)
        for index, item in enumerate(cast("list[object]", value or [])):
            yield (*self.path, key, index), item

    def wrong(self, key: str, message: str, found: object, **hints: str) -> None:
        """Report a value that cannot be imported."""
        path = (*self.path, key)
        self._log.problems.append(
            self.source.problem(path, message, found=shown(found), **hints)
        )

    def note(self, kind: Kind, key: str, why: str) -> None:
        """Report what was done with the value of a key."""
        value = self._data.get(key)
        self._log.note(kind, self.source, (*self.path, key), why, value)

    def leave(self, not_carried: Mapping[str, str], known: Iterable[str] = ()) -> None:
        """Report every key that was not read.

        Args:
            not_carried: Keys that are known and have no place in a fleet file, and
                why.
            known: All keys that are known, for the nearest spelling.
        """
        names = {*self._read, *not_carried, *known}
        for key in self._data:
            if key in self._read:
                continue
            if key in not_carried:
                self.note(Kind.NOT_CARRIED, key, not_carried[key])
            else:
                self.note(Kind.UNKNOWN, key, unknown(key, names))

    def _typed(self, key: str, kind: type, what: str, required: bool) -> Any:
        value = self.raw(key)
        if value is None:
            if required:
                problem = self.source.problem((*self.path, key), "is missing")
                self._log.problems.append(problem)
            return None
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            self.wrong(key, f"is not {what}", value)
            return None
        return value


def unknown(key: str, names: Iterable[str]) -> str:
    """Return why an unknown key is not carried over, with the nearest known one."""
    close = nearest(key, sorted(names))
    hint = f"; did you mean {close}?" if close else ""
    return f"the importer does not know this key{hint}"


def shown(value: object) -> str:
    """Return a value of a source as short text."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        items = cast("list[object]", value)
        return ", ".join(shown(item) for item in items)
    return str(value)
