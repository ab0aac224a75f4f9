"""Condition operators, one line per rule of the IAM User Guide."""

from __future__ import annotations

import pytest

from runfleet.review.evaluators.aws_conditions import known_operator, make_condition
from runfleet.review.evaluators.aws_match import Context
from runfleet.review.evaluators.decision import Truth

YES, NO, UNSURE = Truth.YES, Truth.NO, Truth.UNSURE
TAG = "aws:PrincipalTag/team"


def holds(operator: str, values: list[str], *, complete: bool = True, **context):
    keys = {"k": context["k"]} if "k" in context else {}
    if "tag" in context:
        keys[TAG] = context["tag"]
    condition = make_condition(operator, "k", tuple(values), variables=True)
    return condition.holds(Context(keys, complete=complete))


@pytest.mark.parametrize(
    ("operator", "values", "value", "expected"),
    [
        ("StringEquals", ["a", "b"], "b", YES),
        ("StringEquals", ["a", "b"], "B", NO),
        ("StringEquals", ["a*"], "ab", NO),
        ("StringEquals", ["a*"], "a*", YES),
        ("StringNotEquals", ["a", "b"], "c", YES),
        ("StringNotEquals", ["a", "b"], "b", NO),
        ("StringEqualsIgnoreCase", ["Main"], "mAIN", YES),
        ("StringNotEqualsIgnoreCase", ["Main"], "mAIN", NO),
        ("StringLike", ["repo:o/r:*"], "repo:o/r:pull_request", YES),
        ("StringLike", ["repo:o/r?:*"], "repo:o/r:pull_request", NO),
        ("StringLike", ["A*"], "ab", NO),
        ("StringNotLike", ["repo:*"], "repo:x", NO),
        ("NumericEquals", ["3600"], "3600.0", YES),
        ("NumericNotEquals", ["3600"], "60", YES),
        ("NumericLessThan", ["10"], "10", NO),
        ("NumericLessThanEquals", ["10"], "10", YES),
        ("NumericGreaterThan", ["9"], "10", YES),
        ("NumericGreaterThanEquals", ["11"], "10", NO),
        ("NumericLessThan", ["10"], "ten", NO),
        ("DateEquals", ["2026-01-02T00:00:00Z"], "1767312000", YES),
        ("DateLessThan", ["2026-01-02T00:00:00Z"], "2026-01-01", YES),
        ("DateGreaterThan", ["2026-01-02"], "2026-01-01T23:59:59+00:00", NO),
        ("DateGreaterThanEquals", ["2026"], "2026-01-01T00:00:00Z", YES),
        ("Bool", ["true"], "TRUE", YES),
        ("Bool", ["false"], "true", NO),
        ("BinaryEquals", ["aGVsbG8="], "aGVsbG8=", YES),
        ("BinaryEquals", ["aGVsbG8="], "aGVsbG8h", NO),
        ("IpAddress", ["10.0.0.0/8", "2001:db8::/32"], "10.2.3.4", YES),
        ("IpAddress", ["10.0.0.0/8"], "2001:db8::1", NO),
        ("IpAddress", ["2001:db8::/32"], "2001:DB8::1", YES),
        ("NotIpAddress", ["10.0.0.0/8"], "192.0.2.1", YES),
        ("ArnEquals", ["arn:aws:eks:*:1:cluster/*"], "arn:aws:eks:eu:1:cluster/x", YES),
        ("ArnLike", ["arn:aws:eks:*:1:cluster/?"], "arn:aws:eks:eu:1:cluster/xy", NO),
        ("ArnLike", ["arn:aws:*:1:cluster:x:y"], "arn:aws:eks:eu:1:cluster/x", NO),
        ("ArnNotLike", ["arn:aws:s3:::a*"], "arn:aws:s3:::b", YES),
        ("Null", ["false"], "x", YES),
        ("Null", ["true"], "x", NO),
    ],
)
def test_single_value(operator, values, value, expected):
    assert holds(operator, values, k=value) is expected
    assert holds(operator, values, complete=False) is UNSURE


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        ("StringEquals", NO),
        ("StringNotEquals", YES),
        ("StringEqualsIfExists", YES),
        ("StringNotEqualsIfExists", YES),
        ("ForAllValues:StringEquals", YES),
        ("ForAllValues:StringNotEquals", YES),
        ("ForAnyValue:StringEquals", NO),
        ("ForAnyValue:StringNotEquals", NO),
        ("ForAnyValue:StringEqualsIfExists", YES),
        ("IpAddress", NO),
    ],
)
def test_the_request_lacks_the_key(operator, expected):
    values = ["10.0.0.0/8"] if operator == "IpAddress" else ["a"]
    assert holds(operator, values) is expected


def test_null_asks_whether_the_key_is_there():
    assert holds("Null", ["true"]) is YES
    assert holds("Null", ["false"]) is NO
    assert holds("Null", ["true"], k=[]) is YES


@pytest.mark.parametrize(
    ("operator", "value", "expected"),
    [
        ("ForAllValues:StringEquals", ["a", "b"], YES),
        ("ForAllValues:StringEquals", ["a", "c"], NO),
        ("ForAllValues:StringEquals", [""], YES),
        ("ForAllValues:StringNotEquals", ["c", "d"], YES),
        ("ForAllValues:StringNotEquals", ["a", "d"], NO),
        ("ForAnyValue:StringEquals", ["c", "b"], YES),
        ("ForAnyValue:StringEquals", ["c", "d"], NO),
        ("ForAnyValue:StringNotEquals", ["a", "d"], YES),
        ("ForAnyValue:StringNotEquals", ["a", "b"], NO),
        ("StringEquals", ["a", "b"], YES),
        ("StringEquals", ["a", "c"], UNSURE),
    ],
)
def test_several_values(operator, value, expected):
    assert holds(operator, ["a", "b"], k=value) is expected


def test_policy_variables():
    assert holds("StringEquals", ["${aws:PrincipalTag/team}"], k="x", tag="x") is YES
    assert holds("StringEquals", ["${aws:principaltag/TEAM}"], k="x", tag="y") is NO
    assert holds("StringEquals", ["${aws:PrincipalTag/team}"], k="x") is NO
    assert holds("StringNotEquals", ["${aws:PrincipalTag/team}"], k="x") is UNSURE
    assert holds("StringEquals", ["${aws:PrincipalTag/team, 'x'}"], k="x") is YES
    assert (
        holds("StringLike", ["${*}${aws:PrincipalTag/team}*"], k="*xy", tag="x") is YES
    )
    assert holds("StringLike", ["${*}"], k="anything") is NO
    assert holds("StringLike", ["${aws:PrincipalTag/team}"], k="ab", tag="a*") is NO


def test_old_documents_have_no_variables():
    condition = make_condition("StringEquals", "k", ("${aws:x}",), variables=False)
    assert condition.holds(Context({"k": "${aws:x}"}, complete=True)) is YES


@pytest.mark.parametrize(
    "operator", ["StringStartsWith", "stringequals", "NullIfExists"]
)
def test_unknown_operators_are_unsure(operator):
    assert not known_operator(operator)
    assert holds(operator, ["a"], k="a") is UNSURE


def test_values_that_cannot_be_compared_are_refused():
    for operator in ("NumericEquals", "DateEquals", "Bool", "IpAddress", "ArnLike"):
        with pytest.raises(ValueError, match="'x'"):
            make_condition(operator, "k", ("x",), variables=True)


def test_hidden_values_are_unsure():
    assert holds("StringEquals", ["prefix-[secret]"], k="prefix-a") is UNSURE
    assert (
        holds("StringNotEquals", ["04da6b54-80e4-46f7-96ec-b56ff0331ba9"], k="a")
        is UNSURE
    )
