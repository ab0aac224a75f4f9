"""Mutated fleet files: always a fleet or an InputError with lines, never more."""

from __future__ import annotations

import copy
import json
from typing import Any

import jsonschema
from hypothesis import given, settings
from hypothesis import strategies as st

from runfleet.errors import InputError
from runfleet.spec.fleet import Fleet
from runfleet.spec.load import build_fleet
from runfleet.spec.schema import fleet_schema
from runfleet.spec.source import Source, parse_source
from spec.fleets import FULL, SMALL

VALIDATOR = jsonschema.Draft202012Validator(fleet_schema())
SOURCE = parse_source("fleet.yaml", FULL)
DATA: Any = SOURCE.data

LEAVES: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2**62,
    0.5,
    1e300,
    "",
    " ",
    "no",
    "yes",
    "a",
    "A-",
    "64GiB",
    "0..5",
    "5..",
    "2h",
    "50%",
    "1 USD",
    "10.0.0.0/8",
    "::/0",
    "0.0.0.0/0",
    "2026-01-31",
    "tester",
    "aws",
    "central",
    "default",
    "read cache local",
    "\u0666",
    "x" * 70,
    "a.b",
    "a--b",
    "a_b",
    "#x",
    "[key]",
    "name",
    [],
    {},
    [None],
    {"a": 1},
    [[]],
    {"name": "x"},
    ["aws"],
    [1],
    {"": ""},
]

leaves = st.sampled_from(LEAVES) | st.text(max_size=8) | st.integers() | st.floats()


def places(data: Any) -> list[tuple[Any, Any]]:
    """Return every (container, key) of a document."""
    found: list[tuple[Any, Any]] = []
    items = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in list(items):
        found.append((data, key))
        if isinstance(value, (dict, list)):
            found += places(value)
    return found


@st.composite
def mutated(draw: st.DrawFn) -> Any:
    """Return the full document with one to four things changed anywhere."""
    data = copy.deepcopy(DATA)
    for _ in range(draw(st.integers(1, 4))):
        container, key = draw(st.sampled_from(places(data)))
        kind = draw(st.sampled_from(["set", "delete", "add", "rename", "swap"]))
        if kind == "set":
            container[key] = copy.deepcopy(draw(leaves))
        elif kind == "delete":
            del container[key]
        elif kind == "swap":
            other, place = draw(st.sampled_from(places(DATA)))
            container[key] = copy.deepcopy(other[place])
        elif isinstance(container, list):
            container.insert(0, copy.deepcopy(draw(leaves)))
        elif kind == "rename":
            container[draw(st.sampled_from(["x", "name", "labels", "[key]"]))] = (
                container.pop(key)
            )
        else:
            container[draw(st.text(max_size=4))] = copy.deepcopy(draw(leaves))
        if not data:
            break
    return data


def build(source: Source) -> Fleet | None:
    """Return the fleet, or ``None`` after checking the error that it gives."""
    try:
        return build_fleet(source).fleet
    except InputError as error:
        wrong = error
    assert wrong.exit_code == 2
    assert wrong.problems
    for problem in wrong.problems:
        assert problem.line > 0, problem
        assert problem.message
        assert str(problem).isprintable(), problem
        str(problem).encode()
    lines = [problem.line for problem in wrong.problems]
    assert lines == sorted(lines)
    return None


def parse(text: str) -> Source | None:
    """Return a parsed text, or ``None`` after checking the error that it gives."""
    try:
        return parse_source("fleet.yaml", text)
    except InputError as error:
        wrong = error
    assert [problem.line > 0 for problem in wrong.problems] == [True]
    return None


def jsonable(data: Any) -> Any:
    """Return data the way an editor sees it: dates as text."""
    if isinstance(data, dict):
        return {key: jsonable(value) for key, value in data.items()}
    if isinstance(data, list):
        return [jsonable(value) for value in data]
    return data if isinstance(data, (str, int, float, type(None))) else str(data)


def as_yaml(data: Any) -> str:
    """Return a document as text; JSON is YAML."""
    return json.dumps(jsonable(data), indent=1, ensure_ascii=False)


@settings(max_examples=150, deadline=None)
@given(mutated())
def test_a_mutated_document_is_a_fleet_or_an_input_error(data: Any) -> None:
    fleet = build(Source("fleet.yaml", data, dict(SOURCE.lines)))
    if fleet is not None:
        errors = [error.message for error in VALIDATOR.iter_errors(jsonable(data))]
        assert errors == []


@settings(max_examples=20, deadline=None)
@given(mutated())
def test_a_mutated_file_is_a_fleet_or_an_input_error(data: Any) -> None:
    source = parse(as_yaml(data))
    if source is not None:
        build(source)


@settings(max_examples=100, deadline=None)
@given(
    start=st.integers(0, len(SMALL)),
    length=st.integers(0, 12),
    insert=st.text(alphabet="{}[]:,-&*!|>'\"%@#?\n\t a0.<~\\", max_size=6),
)
def test_mutated_text_is_a_fleet_or_an_input_error(
    start: int, length: int, insert: str
) -> None:
    text = SMALL[:start] + insert + SMALL[start + length :]
    source = parse(text)
    if source is not None:
        build(source)


@settings(max_examples=40, deadline=None)
@given(
    st.recursive(
        leaves,
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.text(max_size=5), inner, max_size=3)
        ),
    )
)
def test_any_data_in_any_section(data: Any) -> None:
    for section in ("cells", "runner_classes", "github", "stores", "pools", "labels"):
        build(Source("fleet.yaml", {**DATA, section: data}, dict(SOURCE.lines)))
