"""Marks that Pulumi puts into property values, and how a record hides secrets.

A property value is plain JSON data, with two exceptions: a secret is an object
that carries a signature, and a value that is not known yet is one fixed string.
Both constants are those of Pulumi's wire format
(github.com/pulumi/pulumi, ``sdk/go/common/resource/properties.go``).

A record never holds a secret in clear: :func:`mask` keeps the mark and replaces
the value. This module imports nothing, so that records are readable anywhere.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, TypeGuard, cast

SIGNATURE_KEY = "4dabf18193072939515e22adb298388d"
"""Key that marks an object as more than plain data."""

SECRET_SIGNATURE = "1b47061264138c4ac30d75fd1eb44270"
"""Value of :data:`SIGNATURE_KEY` in a secret."""

RESOURCE_SIGNATURE = "5cf8f73096256a8f31e491e813e4eb8e"
"""Value of :data:`SIGNATURE_KEY` in a reference to a resource."""

UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""The value of an output that is not known before the real deployment."""

SECRET_TEXT = "[secret]"
"""What stands in a record in the place of a secret's value."""

SHORTEST_SCRUBBED = 8
"""Shortest secret configuration value, in characters, that :func:`scrub` looks for.

Shorter ones ("true", "8443") stand in too many places that are no secret.
"""


def secret(value: Any) -> dict[str, Any]:
    """Return ``value`` marked as a secret."""
    return {SIGNATURE_KEY: SECRET_SIGNATURE, "value": value}


def is_secret(value: Any) -> TypeGuard[dict[str, Any]]:
    """Tell whether ``value`` is a marked secret."""
    if not isinstance(value, dict):
        return False
    marked = cast("dict[str, Any]", value)
    return marked.get(SIGNATURE_KEY) == SECRET_SIGNATURE


def has_secrets(value: Any) -> bool:
    """Tell whether a secret stands anywhere in ``value``."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        if members.get(SIGNATURE_KEY) == SECRET_SIGNATURE:
            return True
        return any(
            has_secrets(item)
            for item in members.values()
            if isinstance(item, (dict, list))
        )
    if isinstance(value, list):
        return any(
            has_secrets(item)
            for item in cast("list[Any]", value)
            if isinstance(item, (dict, list))
        )
    return False


def restore(value: Any, original: Any) -> Any:
    """Return ``value`` with the secrets of ``original`` put back in their places.

    ``value`` was derived from ``original`` after :func:`hide`.
    """
    if is_secret(original):
        return original
    if isinstance(value, dict) and isinstance(original, dict):
        given = cast("dict[str, Any]", original)
        items = cast("dict[str, Any]", value)
        return {key: restore(item, given.get(key)) for key, item in items.items()}
    if isinstance(value, list) and isinstance(original, list):
        items = cast("list[Any]", value)
        given = cast("list[Any]", original)
        if len(items) == len(given):
            return [restore(*pair) for pair in zip(items, given, strict=True)]
    return cast("Any", value)


def reveal(value: Any) -> Any:
    """Return ``value`` with every secret, at any depth, replaced by its content."""
    if is_secret(value):
        return reveal(value.get("value"))
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value)
        return {key: reveal(item) for key, item in items.items()}
    if isinstance(value, list):
        return [reveal(item) for item in cast("list[Any]", value)]
    return value


def mask(value: Any) -> Any:
    """Return ``value`` with the content of every secret replaced by ``[secret]``."""
    if is_secret(value):
        return secret(SECRET_TEXT)
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value)
        return {key: mask(item) for key, item in items.items()}
    if isinstance(value, list):
        return [mask(item) for item in cast("list[Any]", value)]
    return value


def hide(value: Any) -> Any:
    """Return ``value`` with every secret replaced by the plain text ``[secret]``.

    Derived outputs are made from such values, so that no part of a secret can
    reach a name or an ARN.
    """
    if is_secret(value):
        return SECRET_TEXT
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value)
        return {key: hide(item) for key, item in items.items()}
    if isinstance(value, list):
        return [hide(item) for item in cast("list[Any]", value)]
    return value


def scrub(value: Any, texts: Collection[str]) -> Any:
    """Return ``value`` with each of ``texts`` replaced wherever it stands in a string.

    This is the last line of defence for secret configuration that a program read
    as plain text: Pulumi itself would store such a value in clear.
    """
    if isinstance(value, str):
        for text in texts:
            if text in value:
                value = value.replace(text, SECRET_TEXT)
        return value
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value)
        return {scrub(key, texts): scrub(item, texts) for key, item in items.items()}
    if isinstance(value, (list, tuple)):
        return [scrub(item, texts) for item in cast("list[Any]", value)]
    return value


def secret_texts(value: Any, inside: bool = False) -> Iterator[str]:
    """Yield every string that stands inside a secret of ``value``."""
    if isinstance(value, str):
        if inside:
            yield value
    elif is_secret(value):
        yield from secret_texts(value.get("value"), True)
    elif isinstance(value, dict):
        for item in cast("dict[str, Any]", value).values():
            yield from secret_texts(item, inside)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from secret_texts(item, inside)


def unknown_paths(value: Any, path: str = "") -> Iterator[str]:
    """Yield the path, such as ``a.b[0]``, of every unknown value in ``value``."""
    if isinstance(value, str):
        if UNKNOWN in value:
            yield path
    elif isinstance(value, dict):
        for key, item in cast("dict[str, Any]", value).items():
            yield from unknown_paths(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for index, item in enumerate(cast("list[Any]", value)):
            yield from unknown_paths(item, f"{path}[{index}]")
