"""The JSON Schema: valid, in step with the models, and strict about keys."""

from __future__ import annotations

import copy
import json
from typing import Any

import jsonschema
import pytest

from runfleet.spec.schema import fleet_schema
from runfleet.spec.source import parse_source
from spec.fleets import FULL, SMALL, fleet_of, problems_of

SCHEMA = fleet_schema()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def document(text: str) -> Any:
    """Return a document the way an editor sees it: dates as text."""
    return json.loads(json.dumps(parse_source("fleet.yaml", text).data, default=str))


def test_is_a_valid_schema_of_its_draft() -> None:
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert json.loads(json.dumps(SCHEMA)) == SCHEMA


@pytest.mark.parametrize("text", [FULL, SMALL], ids=["full", "small"])
def test_accepts_what_the_models_accept(text: str) -> None:
    fleet_of(text)
    assert [error.message for error in VALIDATOR.iter_errors(document(text))] == []


def test_accepts_empty_optional_sections_only() -> None:
    text = f"{SMALL}stores:\nlabels:\ntenants:\nbudgets:\nreservations:\n"
    fleet_of(text)
    assert VALIDATOR.is_valid(document(text))
    for section in ("owner", "github", "cells", "runner_classes", "project"):
        broken = {**document(SMALL), section: None}
        assert not VALIDATOR.is_valid(broken)


def mappings(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every mapping of a document whose keys are fixed."""
    found: list[tuple[Any, ...]] = []
    free = {"settings", "environment", "image_selector", "quota", "tenants"}
    if isinstance(node, dict):
        if path and path[-1] in free | {"reservations", "apps", "runner_groups"}:
            pass
        elif not (len(path) > 1 and path[0] == "pools" and path[-1] == "labels"):
            found.append(path)
        for key, value in node.items():
            found += mappings(value, (*path, key))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            found += mappings(value, (*path, index))
    return found


@pytest.mark.parametrize("path", mappings(document(FULL)), ids=str)
def test_refuses_an_unknown_key_in_every_mapping(path: tuple[Any, ...]) -> None:
    data = copy.deepcopy(document(FULL))
    at = data
    for step in path:
        at = at[step]
    at["No Such Key"] = "x"
    assert not VALIDATOR.is_valid(data)
    text = json.dumps(data, indent=1)
    assert any("No Such Key" in problem.path for problem in problems_of(text))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("runner_classes", "l-x86iavx2-4-16", "role"), "admin"),
        (("runner_classes", "l-x86iavx2-4-16", "scale"), 5),
        (("runner_classes", "l-x86iavx2-4-16", "scale"), "5"),
        (("runner_classes", "l-x86iavx2-4-16", "grants"), ["read everything"]),
        (("runner_classes", "l-x86iavx2-4-16", "hardware", "memory"), "16"),
        (("runner_classes", "l-x86iavx2-4-16", "hardware", "vcpu"), "4"),
        (("runner_classes", "l-x86iavx2-4-16", "name"), "l-x86iavx2-4-16"),
        (("cells", "aws", "weight"), 101),
        (("cells", "aws", "account"), 111122223333),
        (("budgets", "foundation", "monthly"), "12000"),
        (("pools", "c7i", "machines"), []),
        (("version",), 2),
        (("labels",), {"Key": "x"}),
    ],
)
def test_refuses_wrong_values_as_the_models_do(
    path: tuple[str, ...], value: object
) -> None:
    data = document(FULL)
    at = data
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    assert not VALIDATOR.is_valid(data)
    assert problems_of(json.dumps(data))


def test_every_property_is_described() -> None:
    for name, model in {"Fleet": SCHEMA, **SCHEMA["$defs"]}.items():
        parts = model.get("anyOf", [model])
        for key, value in (
            item for part in parts for item in part.get("properties", {}).items()
        ):
            assert key != "name", name
            assert value.get("description") or "$ref" in value, f"{name}.{key}"
