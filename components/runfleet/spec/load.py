"""Read a fleet file and report every problem in it at once.

The file is parsed with places (:mod:`runfleet.spec.source`), checked against the
models, and then against itself: references between its parts, overlapping network
ranges, labels that would collide, names over a limit. Checks that need tables of
machines are given by the caller, so that this layer stays pure data.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from runfleet.errors import InputError, Problem
from runfleet.spec.consistency import consistency_problems
from runfleet.spec.fleet import NAMED_SECTIONS, Fleet
from runfleet.spec.salvage import salvage
from runfleet.spec.source import (
    Path,
    Source,
    is_list,
    is_mapping,
    nearest,
    read_source,
)

Check = Callable[[Fleet, Source], Iterable[Problem]]
"""A further check of a fleet, such as one that knows machines."""


@dataclass(frozen=True)
class FleetFile:
    """A fleet, and the file it was read from.

    Attributes:
        fleet: The fleet.
        source: The file's data and the line of each of its parts.
    """

    fleet: Fleet
    source: Source


def load_fleet(path: str | FilePath, checks: Iterable[Check] = ()) -> FleetFile:
    """Read a fleet file.

    Args:
        path: The file.
        checks: Further checks, run with the built-in ones, so that all problems
            are reported together.

    Raises:
        InputError: The file has problems; all of them are in it.
    """
    return build_fleet(read_source(path), checks)


def build_fleet(source: Source, checks: Iterable[Check] = ()) -> FleetFile:
    """Make a fleet from a parsed file; see :func:`load_fleet`."""
    problems = [*source.problems, *_name_keys(source)]
    try:
        fleet = Fleet.model_validate(source.data)
    except ValidationError as error:
        reported = {(p.line, p.path) for p in problems}
        problems += [
            problem
            for problem in model_problems(error, Fleet, source)
            if (problem.line, problem.path) not in reported
        ]
        problems += _problems_of_the_rest(error, source, [*checks])
        raise InputError(problems) from None
    problems += _all_checks(fleet, source, checks)
    if problems:
        raise InputError(problems)
    return FleetFile(fleet, source)


def model_problems(
    error: ValidationError, model: type[BaseModel], source: Source
) -> list[Problem]:
    """Turn pydantic's errors into problems with lines, choices and spellings.

    Args:
        error: What pydantic found.
        model: The model that was validated, to list what it allows.
        source: The file that the data came from.
    """
    problems: dict[tuple[int, str, str], Problem] = {}
    for detail in error.errors(include_url=False):
        problem = _problem(detail, model, source)
        key = (problem.line, problem.path, problem.message)
        problems.setdefault(key, problem)
    return list(problems.values())


def _real_path(loc: tuple[int | str, ...], source: Source) -> Path:
    """Drop pydantic's own markers (``[key]``, union branches) from a location."""
    path: list[str | int] = []
    at: Any = source.data
    for index, part in enumerate(loc):
        last = index == len(loc) - 1
        if is_mapping(at):
            if part in at:
                path.append(part)
                at = at[part]
            elif last and part != "[key]":
                path.append(part)
        elif is_list(at) and isinstance(part, int) and part < len(at):
            path.append(part)
            at = at[part]
    return tuple(path)


def _all_checks(
    fleet: Fleet, source: Source, checks: Iterable[Check]
) -> Iterable[Problem]:
    yield from consistency_problems(fleet, source)
    for check in checks:
        yield from check(fleet, source)


def _problems_of_the_rest(
    error: ValidationError, source: Source, checks: list[Check]
) -> Iterable[Problem]:
    """Check what is left of a fleet when its malformed parts are taken away.

    So a typing error in one place does not hide an overlap in another. What follows
    only from a part that was taken away is not reported.
    """
    rest = salvage(error, source)
    if rest is None:
        return
    for problem in _all_checks(rest.fleet, source, checks):
        if not rest.hides(problem.path):
            yield problem


def _problem(detail: ErrorDetails, model: type[BaseModel], source: Source) -> Problem:
    path = _real_path(detail["loc"], source)
    kind = detail["type"]
    value = detail.get("input")
    found = _show(value, path, source)
    context = detail.get("ctx", {})
    if kind == "extra_forbidden":
        keys = sorted(_keys_at(model, path[:-1]))
        return source.problem(
            path,
            "is not a known key",
            found=_short(str(path[-1])),
            allowed=", ".join(keys),
            nearest=nearest(str(path[-1]), keys),
        )
    if kind == "missing":
        return source.problem(path, "is missing")
    if kind in ("enum", "literal_error"):
        allowed = str(context.get("expected", "")).replace(" or ", ", ")
        choices = [choice.strip(" '") for choice in allowed.split(",")]
        return source.problem(
            path,
            "is not one of the allowed values",
            found=found,
            allowed=", ".join(choices),
            nearest=nearest(str(value), choices) if isinstance(value, str) else "",
        )
    if kind == "value_error":
        allowed = str(context.get("error", detail["msg"]))
    elif kind == "string_type" and not isinstance(value, (dict, list, type(None))):
        written = source.written.get(path, value)
        allowed = f'text; put it in quotes: "{_short(str(written))}"'
    elif kind in _EXPECTED:
        allowed = _EXPECTED[kind].format_map(context)
    else:
        allowed = detail["msg"][0].lower() + detail["msg"][1:]
    return source.problem(path, "is not valid", found=found, allowed=allowed)


_EXPECTED = {
    "string_type": "text",
    "string_pattern_mismatch": "text matching {pattern}",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "list_type": "a list",
    "too_short": "at least {min_length} of them",
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "finite_number": "a finite number",
}
"""What may stand there, in words, for pydantic's kinds of error."""


def _keys_at(model: type[BaseModel], path: Path) -> set[str]:
    """Return the keys that may stand at a path of a model."""
    kinds: list[Any] = [model]
    for part in path:
        kinds = [inner for kind in kinds for inner in _inside(kind, part)]
    return {
        name
        for kind in kinds
        for candidate in _models_in(kind)
        for name, info in candidate.model_fields.items()
        if not info.exclude
    }


def _inside(kind: Any, part: str | int) -> Iterable[Any]:
    """Yield the types that may stand under one key or index of a type."""
    if isinstance(kind, type) and not isinstance(kind, types.GenericAlias):
        if issubclass(kind, BaseModel) and part in kind.model_fields:
            yield kind.model_fields[str(part)].annotation
        return
    arguments = typing.get_args(kind)
    origin = typing.get_origin(kind)
    if origin in (dict, list):
        yield arguments[-1]
    elif origin is not typing.Literal:
        for argument in arguments:
            yield from _inside(argument, part)


def _models_in(annotation: Any) -> Iterable[type[BaseModel]]:
    if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        if issubclass(annotation, BaseModel):
            yield annotation
        return
    for argument in typing.get_args(annotation):
        yield from _models_in(argument)


def _show(value: Any, path: Path, source: Source) -> str:
    """Spell a value the way the file does, as far as one line can."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "nothing"
    if isinstance(value, str):
        return _short(value) or "an empty text"
    return _short(source.written.get(path, str(value)))


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 80 else f"{line[:77]}..."


def _name_keys(source: Source) -> Iterable[Problem]:
    """Report entries that repeat their own key as ``name``."""
    sections: list[Path] = [(section,) for section in NAMED_SECTIONS]
    for section in (*sections, ("github", "runner_groups")):
        entries = source.part(section)
        if not is_mapping(entries):
            continue
        for key, entry in entries.items():
            if is_mapping(entry) and "name" in entry:
                place = (*section, key, "name")
                yield source.problem(
                    place,
                    "is not a known key: the name is the key that it stands under",
                    found="name",
                )
