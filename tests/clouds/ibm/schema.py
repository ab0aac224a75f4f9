"""The provider's own schema, and what is wrong with inputs by it.

``tests/data/ibm-schema.json`` covers 32 resources. The one class beyond it, the custom
role, is described here from the provider's documentation (IBM-Cloud/
terraform-provider-ibm, ``website/docs/r/iam_custom_role.html.markdown``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[2] / "data" / "ibm-schema.json"

CUSTOM_ROLE = {
    "required": ["actions", "displayName", "service"],
    "inputs": {
        "name": {"type": "string"},
        "displayName": {"type": "string"},
        "service": {"type": "string"},
        "description": {"type": "string"},
        "actions": {"type": ["string"]},
    },
    "outputs": {"crn": "string", "displayName": "string", "actions": ["string"]},
}

STILL_USED = {("ibm:index/cosBucket:CosBucket", "expireRules")}
"""Deprecated, but the resource that replaces it is not in the schema here."""

PLAIN = {"string": str, "number": (int, float), "boolean": bool}


@cache
def schema() -> Mapping[str, Any]:
    found = json.loads(DATA.read_text())["resources"]
    return {**found, "ibm:index/iamCustomRole:IamCustomRole": CUSTOM_ROLE}


def inputs_of(token: str) -> dict[str, Any]:
    """Return the types of the inputs that may be set, by wire name."""
    entry = schema()[token]
    return {
        name: spec["type"]
        for name, spec in entry["inputs"].items()
        if (not spec.get("deprecated") or (token, name) in STILL_USED)
        and not _implicit_id(token, name, spec)
    }


def problems(token: str, inputs: Mapping[str, Any]) -> list[str]:
    """Return what the provider would drop or refuse among inputs."""
    known = inputs_of(token)
    found = [
        f"{name} is missing"
        for name in schema()[token]["required"]
        if name not in inputs
    ]
    for name, value in inputs.items():
        if name not in known:
            found.append(f"{name} is unknown")
        else:
            found += _wrong(name, value, known[name])
    return found


def _wrong(path: str, value: Any, kind: Any) -> Iterator[str]:
    if isinstance(kind, str):
        right = isinstance(value, PLAIN[kind])
        if not right or (kind == "number" and isinstance(value, bool)):
            yield f"{path} is no {kind}: {value!r}"
    elif isinstance(kind, list):
        if not isinstance(value, list):
            yield f"{path} is no list: {value!r}"
            return
        for index, item in enumerate(value):
            yield from _wrong(f"{path}[{index}]", item, kind[0])
    elif not isinstance(value, dict):
        yield f"{path} is no object: {value!r}"
    elif "map" in kind:
        for key, item in value.items():
            yield from _wrong(f"{path}.{key}", item, kind["map"])
    else:
        yield from (
            f"{path}.{name} is missing"
            for name in kind["required"]
            if name not in value
        )
        for key, item in value.items():
            if key not in kind["object"]:
                yield f"{path}.{key} is unknown"
            else:
                yield from _wrong(f"{path}.{key}", item, kind["object"][key])


def _implicit_id(token: str, name: str, spec: Mapping[str, Any]) -> bool:
    """Say whether an input is the provider's own id, which must never be set."""
    kind = token.partition("/")[2].partition(":")[0]
    return name == f"{kind}Id" and "note" in spec
