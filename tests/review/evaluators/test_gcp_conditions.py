"""Conditions: CEL as IAM uses it, with unknown values that stay unknown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runfleet.review.evaluators.decision import Truth, both, either, negate
from runfleet.review.evaluators.gcp_conditions import holds, literals, readable

OBJECT = {
    "resource.name": "projects/_/buckets/b/objects/trusted/x",
    "resource.type": "storage.googleapis.com/Object",
    "resource.service": "storage.googleapis.com",
}
START = 'resource.name.startsWith("projects/_/buckets/b/objects/{}/")'


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (START.format("trusted"), Truth.YES),
        (START.format("release"), Truth.NO),
        (f"{START.format('release')} || {START.format('trusted')}", Truth.YES),
        (f"{START.format('release')} && {START.format('trusted')}", Truth.NO),
        (f"!{START.format('release')}", Truth.YES),
        (f"!({START.format('release')} || {START.format('trusted')})", Truth.NO),
        ('resource.type == "storage.googleapis.com/Object"', Truth.YES),
        ("resource.type != 'storage.googleapis.com/Object'", Truth.NO),
        ('resource.name.endsWith("/x")', Truth.YES),
        ('resource.name.contains("untrusted")', Truth.NO),
        ('"x" in ["y", "x"]', Truth.YES),
        ('resource.service in ["compute.googleapis.com"]', Truth.NO),
        ('resource["name"] == "x"', Truth.NO),
        ("true", Truth.YES),
        ("false || true", Truth.YES),
        ("1 < 2 && 2.5 >= 2", Truth.YES),
        ('"a".lowerAscii() == "a"', Truth.YES),
    ],
)
def test_what_is_known(expression: str, expected: Truth) -> None:
    assert holds(expression, OBJECT) is expected


@pytest.mark.parametrize(
    "expression",
    [
        'request.time < timestamp("2030-01-01T00:00:00Z")',
        'resource.matchTag("1/env", "prod")',
        'api.getAttribute("storage.googleapis.com/objectListPrefix", "") == ""',
        "destination.port == 22",
        'resource.name.extract("/objects/{rest}") == "x"',
        '"x" in request.auth.claims',
        "resource.name ==",
        'resource.name = "x"',
        '"unfinished',
        "(true",
        "true true",
        "",
        '"a" < 1',
    ],
)
def test_what_is_not_known(expression: str) -> None:
    assert holds(expression, OBJECT) is Truth.UNSURE


def test_a_side_that_decides_outweighs_one_that_is_unknown() -> None:
    unknown = 'request.path == "x"'
    assert holds(f"{unknown} || true", {}) is Truth.YES
    assert holds(f"{unknown} && false", {}) is Truth.NO
    assert holds(f"{unknown} && true", {}) is Truth.UNSURE
    assert holds(f"!({unknown})", {}) is Truth.UNSURE


def test_a_service_without_attributes_tells_nothing() -> None:
    assert holds('resource.name == "x"', {}) is Truth.UNSURE
    assert holds('resource.name != "x"', {}) is Truth.UNSURE


def test_and_binds_closer_than_or() -> None:
    assert holds("true || false && false", {}) is Truth.YES
    assert holds("(true || false) && false", {}) is Truth.NO


def test_literals_and_escapes() -> None:
    assert literals('a.startsWith("x/\\"y") || b == \'z\'') == ['x/"y', "z"]
    assert readable('a == "b"')
    assert not readable("a ==")


truths = {Truth.YES: "true", Truth.NO: "false", Truth.UNSURE: "request.unknown"}
expressions = st.recursive(
    st.sampled_from(list(truths)).map(lambda t: (truths[t], t)),
    lambda inner: st.one_of(
        inner.map(lambda e: (f"!({e[0]})", negate(e[1]))),
        st.tuples(inner, inner).map(
            lambda p: (f"({p[0][0]}) && ({p[1][0]})", both([p[0][1], p[1][1]]))
        ),
        st.tuples(inner, inner).map(
            lambda p: (f"({p[0][0]}) || ({p[1][0]})", either([p[0][1], p[1][1]]))
        ),
    ),
    max_leaves=12,
)


@given(expressions)
def test_three_values(case: tuple[str, Truth]) -> None:
    expression, expected = case
    assert holds(expression, {}) is expected
