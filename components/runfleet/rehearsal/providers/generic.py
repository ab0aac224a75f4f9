"""Derived ids and outputs for packages that have no table of their own.

Providers of random values are answered here too: their whole result is one
derived value, marked as a secret by the SDK where it is one.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from runfleet.rehearsal.providers.subject import Derived, Subject

_ALPHABET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


def derive(subject: Subject) -> Derived:
    """Derive an id from name and URN, and the values of random resources."""
    if subject.read_id:
        return Derived(subject.read_id, {})
    package, _, rest = subject.type.partition(":")
    if package == "pulumi" and rest.startswith("providers:"):
        return Derived(subject.uuid(), {})
    if package == "random":
        return _random(subject, rest.rpartition(":")[2])
    return Derived(f"{subject.name}-{subject.digest(8)}", {})


def invoke(token: str, args: Mapping[str, Any], provider: Mapping[str, Any]) -> Any:
    """Answer no function: only the real provider knows."""
    del token, args, provider


def _random(subject: Subject, kind: str) -> Derived:
    if kind == "RandomId":
        length = _number(subject, "byteLength", 8)
        raw = bytes.fromhex(subject.digest(min(length, 32) * 2, "random"))
        url = base64.urlsafe_b64encode(raw).decode().rstrip("=")
        values = {
            "hex": raw.hex(),
            "dec": str(int.from_bytes(raw, "big")),
            "b64Std": base64.b64encode(raw).decode(),
            "b64Url": url,
        }
        return Derived(url, values)
    if kind == "RandomUuid":
        return Derived(subject.uuid("random"), {"result": subject.uuid("random")})
    if kind == "RandomInteger":
        low, high = _number(subject, "min", 0), _number(subject, "max", 0)
        value = low + int(subject.digest(16, "random"), 16) % max(1, high - low + 1)
        return Derived(str(value), {"result": value})
    if kind in ("RandomString", "RandomPassword"):
        length = _number(subject, "length", 16)
        value = subject.letters(length, _ALPHABET, "random")
        name = value if kind == "RandomString" else "none"
        return Derived(name, {"result": value})
    return Derived(f"{subject.name}-{subject.digest(8)}", {})


def _number(subject: Subject, key: str, default: int) -> int:
    value = subject.inputs.get(key, default)
    return int(value) if isinstance(value, (int, float)) else default
