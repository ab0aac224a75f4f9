"""The JSON Schema of the fleet file, for editors to complete and check it."""

from __future__ import annotations

from typing import Any

from runfleet.spec.fleet import EMPTY_SECTIONS, Fleet


def fleet_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of the fleet file."""
    schema = Fleet.model_json_schema(by_alias=True)
    _tidy(schema)
    for name in EMPTY_SECTIONS:
        if name not in schema["required"]:
            schema["properties"][name] = _or_nothing(schema["properties"][name])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Runfleet fleet file",
        **{key: value for key, value in schema.items() if key != "title"},
    }


def _or_nothing(section: dict[str, Any]) -> dict[str, Any]:
    """Let a section stand with nothing under it."""
    hints = {key: section[key] for key in ("title", "description") if key in section}
    content = {key: value for key, value in section.items() if key not in hints}
    return {"anyOf": [content, {"type": "null"}], **hints}


def _tidy(node: Any) -> None:
    """Remove what is filled in by the fleet and refuse names of another syntax."""
    if isinstance(node, dict):
        if "patternProperties" in node:
            node["additionalProperties"] = False
        properties: Any = node.get("properties")  # type: ignore[reportUnknownVariableType]
        if isinstance(properties, dict):
            for name in [n for n, p in properties.items() if _hidden(p)]:  # type: ignore[reportUnknownVariableType]
                del properties[name]
        for value in node.values():  # type: ignore[reportUnknownVariableType]
            _tidy(value)
    elif isinstance(node, list):
        for value in node:  # type: ignore[reportUnknownVariableType]
            _tidy(value)


def _hidden(value: Any) -> bool:
    return isinstance(value, dict) and bool(value.get("hidden"))  # type: ignore[reportUnknownMemberType]
