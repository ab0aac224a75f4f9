"""Reading property values that may be unknown, secret, missing or text.

Before a deployment some values are not known yet, and a record hides secrets. A
rule must never take such a value for a good one, so every reader here raises
:class:`CannotTell` when the value that a rule asks for is not known. The engine
turns that into a finding that says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeGuard, cast

UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""What Pulumi sends for a text that is not known yet."""

UNKNOWNS = frozenset(
    {
        UNKNOWN,
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
        "030794c1-ac77-496b-92df-f27374a8bd58",
        "e48ece36-62e2-4504-bad9-02848725956a",
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",
    }
)
"""The marks of an unknown text, truth value, number, list, asset, archive and object
(github.com/pulumi/pulumi, ``sdk/go/common/resource/plugin/rpc.go``)."""

_SIGNATURE_KEY = "4dabf18193072939515e22adb298388d"
_SECRET_SIGNATURE = "1b47061264138c4ac30d75fd1eb44270"
_HIDDEN = "[secret]"


class CannotTell(Exception):
    """A value that a rule needs is not known.

    Attributes:
        path: Where the value would stand.
        reason: Why it is not known.
    """

    def __init__(self, path: str, reason: str = "is not known before the deployment"):
        super().__init__(f"{path} {reason}")
        self.path = path
        self.reason = reason


def get(value: Any, *path: str | int, default: Any = None) -> Any:
    """Return the value at a path, or the default where nothing stands.

    Args:
        value: Mappings and lists, as Pulumi's wire format has them.
        path: Keys and indices from the top.
        default: What a missing value stands for.

    Raises:
        CannotTell: The value, or something above it, is unknown or a hidden secret.
    """
    at = value
    for index, part in enumerate(path):
        at = known(at, path[:index])
        if _is_mapping(at):
            at = at.get(part)
        elif isinstance(part, int) and _is_list(at) and -1 < part < len(at):
            at = at[part]
        else:
            at = None
        if at is None:
            return default
    return known(at, path)


def known(value: Any, path: Sequence[str | int] = ()) -> Any:
    """Return a value that is known; see :func:`get` for what is not."""
    if isinstance(value, str):
        if value in UNKNOWNS:
            raise CannotTell(spell(path))
    elif _is_mapping(value) and value.get(_SIGNATURE_KEY) == _SECRET_SIGNATURE:
        inner = value.get("value")
        if inner == _HIDDEN:
            raise CannotTell(spell(path), "is a secret and cannot be judged")
        return known(inner, path)
    return value


def mapping(value: Any, *path: str | int) -> Mapping[str, Any]:
    """Return the mapping at a path; an empty one where none stands."""
    found = get(value, *path)
    return cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else {}


def items(value: Any, *path: str | int) -> list[Any]:
    """Return the list at a path; a single value counts as a list of one."""
    found = get(value, *path)
    if found is None:
        return []
    if _is_list(found):
        return list(found)
    return [found]


def texts(value: Any, *path: str | int) -> list[str]:
    """Return the texts at a path; a single text counts as a list of one."""
    return [
        str(known(item, (*path, index)))
        for index, item in enumerate(items(value, *path))
    ]


def text(value: Any, *path: str | int, default: str = "") -> str:
    """Return the text at a path; numbers and truth values are spelled."""
    found = get(value, *path)
    if found is None:
        return default
    if isinstance(found, bool):
        return "true" if found else "false"
    return str(found)


def truth(value: Any, *path: str | int, default: bool | None = None) -> bool | None:
    """Return the truth value at a path; the texts ``true`` and ``false`` count."""
    found = get(value, *path)
    if isinstance(found, str):
        lowered = found.strip().lower()
        return lowered == "true" if lowered in ("true", "false") else default
    return found if isinstance(found, bool) else default


def number(value: Any, *path: str | int) -> float | None:
    """Return the number at a path, ``None`` where none stands."""
    found = get(value, *path)
    if isinstance(found, bool) or found is None:
        return None
    try:
        return float(found)
    except (TypeError, ValueError):
        return None


def document(value: Any, *path: str | int) -> Mapping[str, Any]:
    """Return the JSON document at a path, written as text or as a mapping.

    Raises:
        CannotTell: It is not known, or it is no JSON object.
    """
    found = get(value, *path)
    if isinstance(found, str):
        if any(mark in found for mark in UNKNOWNS):
            raise CannotTell(spell(path), "holds values that are not known")
        try:
            found = json.loads(found)
        except json.JSONDecodeError as error:
            reason = f"is not a JSON document ({error.msg})"
            raise CannotTell(spell(path), reason) from None
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise CannotTell(spell(path), "is not a JSON object")
    return cast("Mapping[str, Any]", found)


def stands(value: Any, *path: str | int) -> bool:
    """Say whether anything stands at a path; a value not known yet counts.

    For references to what the same deployment makes, such as the id of a key: it
    is not known before, and its being there is what a rule asks for.
    """
    try:
        return get(value, *path) not in (None, "", [], {})
    except CannotTell:
        return True


def strings(value: Any) -> Iterator[str]:
    """Yield every text inside a value, keys left out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in cast("Mapping[str, Any]", value).values():
            yield from strings(item)
    elif _is_list(value):
        for item in value:
            yield from strings(item)


def spell(path: Sequence[str | int]) -> str:
    """Spell a path as ``metadataOptions.httpTokens``."""
    spelled = ""
    for part in path:
        if isinstance(part, int):
            spelled += f"[{part}]"
        else:
            spelled += f".{part}" if spelled else part
    return spelled or "a value"


def _is_mapping(value: Any) -> TypeGuard[Mapping[Any, Any]]:
    # The exact type first: asking an abstract class takes five times as long, and
    # this is asked for every part of every property.
    return type(value) is dict or isinstance(value, Mapping)


def _is_list(value: Any) -> TypeGuard[Sequence[Any]]:
    if type(value) is list:
        return True
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))
