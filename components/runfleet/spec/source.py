"""YAML with places: the data of a file, and the line of each of its parts.

Errors have to name the line a person must change, and a key that stands twice must
be seen, so the file is composed to a node graph first and turned into plain data
from there. Anchors, aliases and merge keys (``<<``) work as usual, within limits
that no fleet file comes near: a file made to be endless (nesting, aliases that
expand into aliases, numbers of a thousand digits) ends in a clear error.
"""

from __future__ import annotations

import datetime as dt
import difflib
import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any, TypeGuard

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError, YAMLWarning
from ruamel.yaml.events import CollectionEndEvent, CollectionStartEvent
from ruamel.yaml.reader import ReaderError

from runfleet.errors import InputError, Problem

Path = tuple[str | int, ...]
"""A place inside a document: keys and indices from the top."""

MAX_DEPTH = 50
"""Most levels of mappings and lists inside each other."""

MAX_EXPANDED = 100_000
"""Most parts that aliases may add to a document by being used again."""

_TAG = "tag:yaml.org,2002:"
_MERGE = f"{_TAG}merge"
_TEXT = f"{_TAG}str"
_COLLECTIONS = {f"{_TAG}map", f"{_TAG}seq"}
_SCALARS = (str, bool, int, float, dt.date, type(None))
_LARGEST = 2**63 - 1
_LONGEST_VALUE = 400


@dataclass
class Source:
    """A YAML file as plain data, with the line of every part.

    Attributes:
        file: The file as the user named it.
        data: Its content as dicts, lists and scalars.
        lines: 1-based line of each path; a mapping's entry has its key's line.
        problems: Keys that stand twice, and values that are not plain data.
        written: How each number, date or truth value is spelled in the file.
    """

    file: str
    data: Any = None
    lines: dict[Path, int] = field(default_factory=dict[Path, int])
    problems: list[Problem] = field(default_factory=list[Problem])
    written: dict[Path, str] = field(default_factory=dict[Path, str])

    def line(self, path: Path) -> int:
        """Return the line of a path, or of the nearest part above it."""
        for end in range(len(path), -1, -1):
            if path[:end] in self.lines:
                return self.lines[path[:end]]
        return 0

    def problem(self, path: Path, message: str, **hints: str) -> Problem:
        """Return a problem at a path of this file."""
        shown = {key: printable(hint) for key, hint in hints.items()}
        said = printable(message)
        return Problem(self.file, self.line(path), dotted(path), said, **shown)

    def part(self, path: Path) -> Any:
        """Return what stands at a path, or ``None`` when nothing does."""
        at: Any = self.data
        for step in path:
            try:
                at = at[step]
            except (KeyError, IndexError, TypeError):
                return None
        return at


def read_source(path: str | FilePath) -> Source:
    """Read a YAML file with the place of every part.

    Args:
        path: The file to read.

    Raises:
        InputError: The file is not there, is not UTF-8 or is not YAML.
    """
    name = str(path)
    try:
        content = FilePath(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError([Problem(name, 0, "", "there is no such file")]) from None
    except IsADirectoryError:
        raise InputError([Problem(name, 0, "", "is a folder, not a file")]) from None
    except UnicodeDecodeError as error:
        message = f"is not UTF-8 text (byte {error.start + 1} is {error.reason})"
        raise InputError([Problem(name, 0, "", message)]) from None
    except (OSError, ValueError) as error:
        raise InputError([Problem(name, 0, "", f"cannot be read: {error}")]) from None
    return parse_source(name, content)


def parse_source(name: str, content: str) -> Source:
    """Parse YAML text with the place of every part.

    Args:
        name: File name for messages.
        content: The text.

    Raises:
        InputError: The text is not one YAML document.
    """
    content = content.removeprefix("\ufeff")
    yaml = _parser()
    try:
        root = _compose(yaml, content)
    except MarkedYAMLError as error:
        marked: Any = error
        mark = marked.problem_mark or marked.context_mark
        line = int(mark.line) + 1 if mark is not None else 1
        message = f"is not valid YAML: {_first_line(error)}"
        raise InputError([Problem(name, line, "", message)]) from None
    except ReaderError as error:
        reader: Any = error
        line = content.count("\n", 0, reader.position) + 1
        message = f"holds the character U+{_code(reader.character):04X}, not legal YAML"
        raise InputError([Problem(name, line, "", message)]) from None
    except RecursionError:
        raise InputError([_too_deep(name, _deep_line(content), "")]) from None
    except (YAMLError, ValueError, TypeError, AttributeError) as error:
        message = f"is not valid YAML: {_first_line(error)}"
        raise InputError([Problem(name, 1, "", message)]) from None
    source = Source(name)
    if root is not None:
        source.lines[()] = root.start_mark.line + 1
        source.data = _Builder(yaml, source).build(root, ())
    else:
        source.lines[()] = 1
    return source


def dotted(path: Path) -> str:
    """Spell a path as ``runner_classes.l-x86iamx-8-16.scale``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{printable(part)}" if text else printable(part)
    return text


def printable(text: str) -> str:
    """Return a text with line breaks, control characters and the like escaped."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode() for c in text
    )


def is_mapping(value: object) -> TypeGuard[dict[str, Any]]:
    """Say whether a part of a source's data is a mapping."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Say whether a part of a source's data is a list."""
    return isinstance(value, list)


def nearest(found: str, choices: Iterable[str]) -> str:
    """Return the choice closest to a misspelt word, or an empty text."""
    matches = difflib.get_close_matches(found, list(choices), n=1, cutoff=0.6)
    return matches[0] if matches else ""


def _parser() -> YAML:
    return YAML(typ="safe", pure=True)


def _compose(yaml: YAML, content: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", YAMLWarning)
        return yaml.compose(content)  # type: ignore[reportUnknownMemberType]


def _deep_line(content: str) -> int:
    """Return the line on which a text passes the limit of nesting."""
    depth = 0
    try:
        for event in _parser().parse(content):  # type: ignore[reportUnknownMemberType]
            if isinstance(event, CollectionStartEvent):
                depth += 1
                if depth > MAX_DEPTH:
                    return event.start_mark.line + 1  # type: ignore[reportUnknownMemberType]
            elif isinstance(event, CollectionEndEvent):
                depth -= 1
    except (YAMLError, RecursionError):
        pass
    return 1


def _too_deep(file: str, line: int, path: str) -> Problem:
    return Problem(file, line, path, f"is nested more than {MAX_DEPTH} levels deep")


def _code(character: object) -> int:
    return ord(character) if isinstance(character, str) else int(str(character))


def _first_line(error: Exception) -> str:
    marked: Any = error
    if isinstance(error, MarkedYAMLError) and (marked.problem or marked.context):
        return printable(str(marked.problem or marked.context))
    return printable(str(error).partition("\n")[0])


class _Builder:
    """Turns nodes into plain data and notes lines and problems on the way."""

    def __init__(self, yaml: YAML, source: Source) -> None:
        self.yaml = yaml
        self.source = source
        self.built: set[int] = set()
        self.expanded = 0

    def build(self, node: Any, path: Path) -> Any:
        """Return the data of a node that stands at a path."""
        return self._build(node, path, (), 0)

    def _build(self, node: Any, path: Path, above: tuple[int, ...], depth: int) -> Any:
        if node.id == "scalar":
            self._count(node, path)
            return self._scalar(node, path)
        if id(node) in above:
            self._report(path, node, "refers to itself")
            return None
        self._count(node, path)
        if depth >= MAX_DEPTH:
            line = self.source.line(path)
            where = f"{dotted(path[:3])}..."
            raise InputError([_too_deep(self.source.file, line, where)])
        if node.tag not in _COLLECTIONS:
            self._report(path, node, f"has the tag {node.tag}, which is not known here")
            return None
        inside = (*above, id(node))
        if node.id == "mapping":
            return self._mapping(node, path, inside, depth + 1)
        items: list[Any] = []
        for index, item in enumerate(node.value):
            place = (*path, index)
            self.source.lines[place] = item.start_mark.line + 1
            items.append(self._build(item, place, inside, depth + 1))
        return items

    def _mapping(
        self, node: Any, path: Path, above: tuple[int, ...], depth: int
    ) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                many = value_node.id == "sequence"
                for part in value_node.value if many else [value_node]:
                    inherited = self._inherited(part, key_node, path, above, depth)
                    merged = {**inherited, **merged}
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                continue
            if key_node.id != "scalar":
                self._report(path, key_node, "has a key that is not text")
                continue
            key = str(key_node.value)
            line = key_node.start_mark.line + 1
            if not key or not _legal(key):
                self._report(path, key_node, "has a key that is no legal text")
                continue
            place = (*path, key)
            if key in result:
                first = self.source.lines[place]
                message = f"stands twice (first on line {first})"
                found = printable(key)
                self._add(
                    Problem(self.source.file, line, dotted(place), message, found)
                )
                continue
            self.source.lines[place] = line
            result[key] = self._build(value_node, place, above, depth)
        return {**merged, **result}

    def _inherited(
        self, part: Any, key: Any, path: Path, above: tuple[int, ...], depth: int
    ) -> dict[str, Any]:
        """Return what one ``<<`` brings into the mapping at a path."""
        if part.id != "mapping":
            self._report(path, key, "merges (<<) something that is not a mapping")
            return {}
        inherited = self._build(part, path, above, depth)
        return inherited if is_mapping(inherited) else {}

    def _scalar(self, node: Any, path: Path) -> Any:
        if node.tag == _TEXT:
            value: Any = str(node.value)
        elif len(node.value) > _LONGEST_VALUE:
            self._report(path, node, "is too long for a number or a date")
            return None
        else:
            try:
                value = self.yaml.constructor.construct_object(node)  # type: ignore[reportUnknownMemberType]
            except (YAMLError, ValueError, LookupError, TypeError, AttributeError) as e:
                self._report(path, node, f"is not a plain value: {_first_line(e)}")
                return None
        wrong = _not_plain(value)
        if wrong:
            self._report(path, node, wrong)
            return None
        if value is not None and not isinstance(value, str):
            self.source.written[path] = str(node.value)
        return value

    def _count(self, node: Any, path: Path) -> None:
        """Stop a document that grows without end by using aliases again."""
        if id(node) not in self.built:
            self.built.add(id(node))
            return
        self.expanded += 1
        if self.expanded > MAX_EXPANDED:
            line = self.source.line(path[:1])
            message = f"aliases expand to more than {MAX_EXPANDED:,} parts"
            raise InputError(
                [Problem(self.source.file, line, dotted(path[:1]), message)]
            )

    def _report(self, path: Path, node: Any, message: str) -> None:
        line = node.start_mark.line + 1
        self._add(Problem(self.source.file, line, dotted(path), message))

    def _add(self, problem: Problem) -> None:
        if problem not in self.source.problems:
            self.source.problems.append(problem)


def _not_plain(value: object) -> str:
    """Say why a scalar is not plain data; empty when it is."""
    if isinstance(value, str):
        return "" if _legal(value) else "holds characters that are not legal text"
    if not isinstance(value, _SCALARS):
        return "is not text, a number, a date, true or false"
    if isinstance(value, float) and not math.isfinite(value):
        return "is not a finite number"
    if isinstance(value, int) and abs(value) > _LARGEST:
        return "is a number beyond 64 bits"
    return ""


def _legal(text: str) -> bool:
    """Say whether a text can be written as UTF-8 (half a surrogate pair cannot)."""
    return text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text)
