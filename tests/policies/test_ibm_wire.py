"""The examples for IBM Cloud use the names that the provider's schema has.

Pulumi's bridge takes a misspelt property without a word, so a rule that looked for
one would pass every resource. The schema is that of the Terraform provider
``IBM-Cloud/ibm`` 2.5.0 as Pulumi's bridge shows it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from policy_examples import ibm
from policy_examples.support import build

SCHEMA: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "data" / "ibm-schema.json").read_text()
)["resources"]

DOCUMENTED = {
    "ibm:index/iamApiKey:IamApiKey": {"name"},
    "ibm:index/iamServiceApiKey:IamServiceApiKey": {"name", "iamServiceId"},
    "ibm:index/iamServicePolicy:IamServicePolicy": {"iamId", "roles", "resources"},
    "ibm:index/iamAccountSettings:IamAccountSettings": {"mfa"},
    "ibm:index/isFloatingIp:IsFloatingIp": {"name", "target", "zone"},
    "ibm:index/isVolume:IsVolume": {"name", "profile", "zone", "encryptionKey"},
}
"""Types outside of the schema: arguments from the provider's documentation
(github.com/IBM-Cloud/terraform-provider-ibm, ``website/docs/r``), in wire form."""


def wrong(value: Any, kind: Any, path: str) -> Iterator[str]:
    """Yield the places where a value is not of a type of the schema."""
    if isinstance(kind, list):
        if not isinstance(value, list):
            yield f"{path} is no list"
            return
        for index, item in enumerate(value):
            yield from wrong(item, kind[0], f"{path}[{index}]")
    elif isinstance(kind, dict) and "object" in kind:
        if not isinstance(value, dict):
            yield f"{path} is no object"
            return
        yield from (f"{path}.{name} is missing" for name in kind["required"]
                    if name not in value)  # fmt: skip
        for name, item in value.items():
            if name not in kind["object"]:
                yield f"{path}.{name} is unknown"
            else:
                yield from wrong(item, kind["object"][name], f"{path}.{name}")
    elif isinstance(kind, dict):
        if not isinstance(value, dict):
            yield f"{path} is no map"
    else:
        python = {"string": str, "boolean": bool, "number": (int, float)}[kind]
        if not isinstance(value, python):
            yield f"{path} is no {kind}"


@pytest.mark.parametrize("example", ibm.EXAMPLES, ids=lambda e: f"{e.rule}: {e.name}")
def test_every_property_is_one_of_the_provider(example: Any) -> None:
    for found in build(example.build):
        if found.type in DOCUMENTED:
            assert set(found.inputs) <= DOCUMENTED[found.type]
            continue
        schema = SCHEMA[found.type]
        assert set(schema["required"]) <= set(found.inputs), found.type
        problems = [
            problem
            for name, value in found.inputs.items()
            for problem in (
                wrong(value, schema["inputs"][name]["type"], name)
                if name in schema["inputs"]
                else [f"{name} is unknown"]
            )
        ]
        assert problems == [], found.type


def test_the_check_sees_a_misspelt_property_below_the_top() -> None:
    kind = SCHEMA["ibm:index/isInstanceTemplate:IsInstanceTemplate"]["inputs"]
    found = wrong({"hopLimit": 1}, kind["metadataService"]["type"], "metadataService")
    assert list(found) == ["metadataService.hopLimit is unknown"]
