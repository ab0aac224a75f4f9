"""What is left of a fleet file when its malformed parts are taken away.

Every problem is to be reported at once, but checks that compare parts with each
other need a whole fleet. So malformed parts are taken out, the smallest that leave
a valid fleet, and the checks run on the rest.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from runfleet.spec.fleet import Fleet
from runfleet.spec.source import Path, Source, dotted, is_list, is_mapping

_STAND_INS: dict[str, Any] = {
    "version": 1,
    "project": "unknown",
    "owner": {"team": "unknown"},
    "github": {"organization": "unknown"},
    "cells": {},
    "runner_classes": {},
}
"""What stands for a required section that is missing or cannot be mended."""

_ROUNDS = 8


@dataclass(frozen=True)
class Rest:
    """A valid fleet without the malformed parts of a file.

    Attributes:
        fleet: The fleet.
        removed: Dotted paths of the parts that were taken away.
    """

    fleet: Fleet
    removed: frozenset[str]

    def hides(self, path: str) -> bool:
        """Say whether a path is, or is inside, a part that was taken away."""
        return any(
            path == gone or path.startswith((f"{gone}.", f"{gone}["))
            for gone in self.removed
        )


def salvage(error: ValidationError, source: Source) -> Rest | None:
    """Take the malformed parts out of a file's data.

    Args:
        error: What pydantic found in the whole file.
        source: The file.

    Returns:
        What is left, or ``None`` when nothing useful is.
    """
    if not is_mapping(source.data):
        return None
    data = copy.deepcopy(source.data)
    removed: set[Path] = set()
    for _ in range(_ROUNDS):
        for detail in error.errors(include_url=False, include_input=False):
            part = _part(detail["loc"], detail["type"], data)
            _remove(data, part)
            if detail["type"] != "extra_forbidden":
                removed.add(part)
        try:
            fleet = Fleet.model_validate(data)
        except ValidationError as further:
            error = further
            continue
        return Rest(fleet, frozenset(dotted(path) for path in removed))
    return None


def _part(loc: tuple[int | str, ...], kind: str, data: dict[str, Any]) -> Path:
    """Return the smallest part that can be taken away to mend an error.

    An unknown key goes alone. Otherwise a list goes as a whole, so that the places
    of the others in it stay true, and a pool does too, because half a pool would
    put the blame on the classes that use it.
    """
    path: list[str | int] = []
    at: Any = data
    for part in loc:
        if is_mapping(at) and part in at:
            at = at[str(part)]
        elif kind == "extra_forbidden" and is_list(at) and isinstance(part, int):
            at = at[part]
        else:
            break
        path.append(part)
    if kind != "extra_forbidden" and path[:1] == ["pools"]:
        path = path[:2]
    return tuple(path or loc[:1] or ("",))


def _remove(data: dict[str, Any], part: Path) -> None:
    if len(part) == 1 and part[0] in _STAND_INS:
        data[str(part[0])] = copy.deepcopy(_STAND_INS[str(part[0])])
        return
    at: Any = data
    for step in part[:-1]:
        try:
            at = at[step]
        except (KeyError, IndexError, TypeError):
            return
    if is_mapping(at):
        at.pop(str(part[-1]), None)
