"""No value in a resource makes a rule fail: it is judged, or said to be unknown."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from policy_examples import aws, azure, gcp, iam, ibm, kubernetes
from policy_examples.support import TODAY, Built, build

from runfleet_policies.engine import Settings, evaluate
from runfleet_policies.registry import stack_rules
from runfleet_policies.values import UNKNOWN

ODD: tuple[Any, ...] = (
    None,
    True,
    -3,
    1.5,
    "",
    "x",
    "{}",
    "[1]",
    '{"Statement": [3]}',
    [],
    [None],
    ["x", 3, {}],
    {},
    {"x": [1]},
    UNKNOWN,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every part of a value."""
    if path:
        yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from places(item, (*path, index))


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """Return a value with one part replaced."""
    if not path:
        return new
    if isinstance(value, dict):
        return {**value, path[0]: changed(value[path[0]], path[1:], new)}
    return [
        changed(item, path[1:], new) if index == path[0] else item
        for index, item in enumerate(value)
    ]


@pytest.fixture(scope="module")
def stacks() -> list[list[Built]]:
    examples = (
        *aws.EXAMPLES,
        *iam.EXAMPLES,
        *kubernetes.EXAMPLES,
        *gcp.EXAMPLES,
        *azure.EXAMPLES,
        *ibm.EXAMPLES,
    )
    return [build(example.build) for example in examples]  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(8))
def test_odd_values_never_raise(stacks: list[list[Built]], seed: int) -> None:
    chance = random.Random(seed)
    settings = Settings("aws", TODAY)
    for _ in range(250):
        built = list(chance.choice(stacks))
        at = chance.randrange(len(built))
        found = places(dict(built[at].inputs))
        options = list(found)
        if not options:
            continue
        path, new = chance.choice(options), chance.choice(ODD)
        inputs = changed(dict(built[at].inputs), path, new)
        built[at] = replace(built[at], inputs=inputs)
        try:
            evaluate(built, stack_rules(), settings)
        except Exception as error:
            pytest.fail(f"{built[at].type} {path} = {new!r}: {error!r}")
