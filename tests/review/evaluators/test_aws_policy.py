"""Reading documents strictly, and matching actions and resources."""

from __future__ import annotations

import pytest

from review.evaluators.aws_cases import ROOT, allow, document, trust
from runfleet.review.evaluators.aws_match import Context
from runfleet.review.evaluators.aws_policy import (
    PolicyError,
    PolicyKind,
    parse_policy,
)
from runfleet.review.evaluators.decision import Truth

YES, NO, UNSURE = Truth.YES, Truth.NO, Truth.UNSURE
IDENTITY = PolicyKind.IDENTITY


def only(statement, kind=IDENTITY, **more):
    return parse_policy(document(statement, **more), kind).statements[0]


def problems(text, kind=IDENTITY):
    with pytest.raises(PolicyError) as caught:
        parse_policy(text, kind, owner="urn:x")
    return [(problem.place, problem.message) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("pattern", "action", "expected"),
    [
        ("s3:GetObject", "s3:getobject", YES),
        ("S3:get*", "s3:getobject", YES),
        ("s3:Get?bject", "s3:getobject", YES),
        ("s3:Get?bject", "s3:getoobject", NO),
        ("*", "kms:decrypt", YES),
        ("s3:*", "s3express:createsession", NO),
    ],
)
def test_actions(pattern, action, expected):
    assert only(allow(pattern)).covers_action(action) is expected


def test_not_action():
    statement = only(
        {"Effect": "Allow", "NotAction": ["iam:*", "s3:Put*"], "Resource": "*"}
    )
    assert statement.covers_action("s3:getobject") is YES
    assert statement.covers_action("s3:putobject") is NO
    assert statement.covers_action("iam:passrole") is NO


@pytest.mark.parametrize(
    ("pattern", "arn", "expected"),
    [
        ("*", "arn:aws:s3:::a/b", YES),
        ("arn:aws:s3:::a", "arn:aws:s3:::a/b", NO),
        ("arn:aws:s3:::a/*", "arn:aws:s3:::a", NO),
        ("arn:aws:s3:::a/*", "arn:aws:s3:::a/b/c:d", YES),
        ("arn:aws:s3:::A/*", "arn:aws:s3:::a/b", NO),
        ("arn:aws:s3:::a*", "arn:aws:s3:::ab/c", YES),
        ("arn:aws:ecr:*:1:repository/x", "arn:aws:ecr:eu:1:repository/x", YES),
        ("arn:aws:ecr:*:1:repository/x", "arn:aws:ecr:eu:2:repository/x", NO),
        ("arn:aws:s3:::a/x*y", "arn:aws:s3:::a/x/1/y", YES),
        ("arn:aws:s3:::a/x*y", "arn:aws:s3:::a/x:y", UNSURE),
        ("arn:aws:s3:::a/x?y", "arn:aws:s3:::a/x-y", YES),
        ("arn:aws:s3:::a/x?y", "arn:aws:s3:::a/x--y", NO),
        ("arn:aws:s3:::a/[secret]", "arn:aws:s3:::a/x", UNSURE),
        ("arn:aws:s3:::a/*", "*", NO),
    ],
)
def test_resources(pattern, arn, expected):
    context = Context({}, complete=True)
    assert only(allow("s3:*", pattern)).matches(arn, context) is expected


def test_not_resource():
    statement = only(
        {
            "Effect": "Allow",
            "Action": "s3:*",
            "NotResource": ["arn:aws:s3:::a", "arn:aws:s3:::a/*"],
        }
    )
    context = Context({}, complete=True)
    assert statement.matches("arn:aws:s3:::a/k", context) is NO
    assert statement.matches("arn:aws:s3:::b/k", context) is YES
    assert statement.matches("*", context) is YES


def test_variables_in_resources():
    statement = only(
        allow("s3:*", "arn:aws:s3:::a/${aws:PrincipalTag/kubernetes-namespace}/*")
    )
    tag = "aws:PrincipalTag/kubernetes-namespace"
    arn = "arn:aws:s3:::a/ci/x"
    assert statement.matches(arn, Context({tag: "ci"})) is YES
    assert statement.matches(arn, Context({tag: "cd"})) is NO
    assert statement.matches(arn, Context({}, [tag])) is NO
    assert statement.matches(arn, Context({})) is UNSURE
    excluded = only(
        {
            "Effect": "Allow",
            "Action": "s3:*",
            "NotResource": "arn:aws:s3:::a/${aws:PrincipalTag/team}/*",
        }
    )
    assert excluded.matches(arn, Context({}, complete=True)) is UNSURE


def test_old_version_takes_variables_as_text():
    old = only(allow("s3:*", "arn:aws:s3:::a/${aws:x}"), version="2008-10-17")
    assert old.matches("arn:aws:s3:::a/${aws:x}", Context({})) is YES


def test_one_or_many_everywhere():
    policy = parse_policy(
        {"Version": "2012-10-17", "Statement": allow(["s3:GetObject"], ["*"])},
        IDENTITY,
    )
    assert [s.label for s in policy.statements] == ["Statement"]


def test_unknown_documents_are_opaque():
    text = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
    assert parse_policy(text, IDENTITY).opaque
    assert parse_policy("[secret]", IDENTITY).opaque


def test_every_problem_at_once_with_its_place():
    text = document(
        {"Effect": "allow", "Action": "GetObject", "Resource": "bucket"},
        {"Sid": "a b", "Effect": "Allow", "Action": [], "NotAction": "s3:*"},
        {
            "Effect": "Deny",
            "Action": "s3:*",
            "Resource": "arn:aws:s3:::${aws:x",
            "Principal": "*",
            "Condition": {"NumericLessThan": {"s3:max-keys": "many"}, "Bool": "x"},
            "Efect": 1,
        },
        version="2012-10-18",
    )
    assert problems(text) == [
        ("Version", "must be 2012-10-17 or 2008-10-17"),
        ("Statement[0].Effect", "must be Allow or Deny"),
        ("Statement[0].Action", "'GetObject' is not service:Action"),
        ("Statement[0].Resource", "'bucket' is neither an ARN nor *"),
        ("Statement[1].Sid", "'a b' is not letters and digits"),
        ("Statement[1]", "holds both Action and NotAction"),
        ("Statement[1].Resource", "missing"),
        ("Statement[2].Efect", "unknown element"),
        ("Statement[2].Principal", "has no place in this kind: identity policy"),
        (
            "Statement[2].Condition.NumericLessThan.s3:max-keys",
            "'many' is not a number",
        ),
        ("Statement[2].Condition.Bool", "must be an object of keys and values"),
    ]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("{", ""),
        ("[]", ""),
        ('{"Version": "2012-10-17"}', "Statement"),
        ('{"Statement": []}', "Statement"),
        ('{"Statement": [1]}', "Statement[0]"),
        ('{"Statement": [], "Statement": []}', ""),
        ('{"Statement": [], "Comment": ""}', "Comment"),
    ],
)
def test_malformed(text, place):
    assert problems(text)[0][0] == place


def test_kinds_have_their_elements():
    both = {**trust({"AWS": ROOT}, "sts:AssumeRole"), "Resource": "*"}
    assert problems(document(both), PolicyKind.TRUST) == [
        ("Statement[0].Resource", "has no place in this kind: trust policy")
    ]
    assert problems(document(allow("s3:*")), PolicyKind.RESOURCE) == [
        ("Statement[0].Principal", "missing")
    ]
    wrong = trust({"AWS": f"{ROOT[:-4]}role/*", "User": "x"}, "sts:AssumeRole")
    assert [place for place, _ in problems(document(wrong), PolicyKind.TRUST)] == [
        "Statement[0].Principal.AWS",
        "Statement[0].Principal.User",
    ]


def test_duplicate_sid():
    twice = allow("s3:GetObject", Sid="A")
    assert problems(document(twice, twice)) == [
        ("Statement[1].Sid", "'A' is used twice")
    ]
