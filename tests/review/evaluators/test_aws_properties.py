"""Laws of the evaluation that hold for every policy."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from review.evaluators.aws_cases import (
    ACCOUNT,
    BUCKET,
    OTHER,
    ROLE,
    ROOT,
    SESSION,
    bucket,
    managed,
    role,
)
from runfleet.review.evaluators.aws import AwsAccounts, Request, Session
from runfleet.review.evaluators.decision import Outcome

RANK = {Outcome.DENIED: 0, Outcome.CANNOT_TELL: 1, Outcome.ALLOWED: 2}
BOUNDARY = f"arn:aws:iam::{ACCOUNT}:policy/boundary"

actions = st.sampled_from(
    ["*", "s3:*", "s3:Get*", "s3:GetObject", "s3:PutObject", "s3:?etObject"]
)
resources = st.sampled_from(
    ["*", BUCKET, f"{BUCKET}/*", f"{BUCKET}/a/*", f"{BUCKET}/${{aws:PrincipalTag/t}}/*"]
)
operators = st.sampled_from(
    [
        "StringEquals",
        "StringNotEquals",
        "StringLikeIfExists",
        "ForAllValues:StringLike",
        "ForAnyValue:StringNotLike",
        "StringAlmost",
    ]
)
conditions = st.dictionaries(
    operators,
    st.dictionaries(
        st.sampled_from(["aws:PrincipalTag/t", "aws:SourceVpc", "aws:PrincipalArn"]),
        st.lists(st.sampled_from(["a", "*", ROLE]), min_size=1, max_size=2),
        min_size=1,
        max_size=2,
    ),
    max_size=2,
)
principals = st.sampled_from(
    ["*", {"AWS": ROLE}, {"AWS": [ROOT, OTHER]}, {"AWS": SESSION}, {"AWS": OTHER}]
)


@st.composite
def statements(draw, *, effects=("Allow", "Deny"), resource_policy=False):
    negated = draw(st.sampled_from(["", "Not"])) if draw(st.booleans()) else ""
    made = {
        "Effect": draw(st.sampled_from(effects)),
        draw(st.sampled_from(["Action", "Action", "NotAction"])): draw(actions),
        f"{negated}Resource": draw(resources),
        "Condition": draw(conditions),
    }
    if resource_policy:
        key = draw(st.sampled_from(["Principal", "Principal", "NotPrincipal"]))
        value = draw(principals)
        made[key] = {"AWS": ROLE} if key == "NotPrincipal" and value == "*" else value
    return made


several = st.lists(statements(), min_size=1, max_size=3)
of_bucket = st.lists(statements(resource_policy=True), max_size=3)
requests = st.builds(
    Request,
    st.sampled_from(
        [
            Session(ROLE),
            Session(ROLE, "job-1"),
            Session(ROLE, "job-1", {"t": "a"}),
        ]
    ),
    st.sampled_from(["s3:GetObject", "s3:PutObject", "s3:DeleteObject"]),
    st.sampled_from([f"{BUCKET}/a/k", f"{BUCKET}/b", BUCKET]),
    st.sampled_from([{}, {"aws:SourceVpc": "a"}]),
    complete=st.booleans(),
)


def rank(request, identity, resource, boundary=None):
    things = [*role(ROLE, *identity), *bucket("cache", *resource)]
    if boundary is not None:
        things = [
            managed(BOUNDARY, *boundary),
            *role(ROLE, *identity, permissionsBoundary=BOUNDARY),
            *bucket("cache", *resource),
        ]
    accounts = AwsAccounts.from_resources(things)
    assert accounts.problems == ()
    return RANK[accounts.decide(request).outcome]


@settings(max_examples=150, deadline=None)
@given(requests, several, of_bucket, st.data())
def test_adding_a_deny_never_widens(request, identity, resource, data):
    before = rank(request, identity, resource)
    more = data.draw(statements(effects=["Deny"]))
    assert rank(request, [*identity, more], resource) <= before
    more = data.draw(statements(effects=["Deny"], resource_policy=True))
    assert rank(request, identity, [*resource, more]) <= before


@settings(max_examples=150, deadline=None)
@given(requests, several, of_bucket, st.data())
def test_adding_an_allow_never_narrows(request, identity, resource, data):
    before = rank(request, identity, resource)
    more = data.draw(statements(effects=["Allow"]))
    assert rank(request, [*identity, more], resource) >= before
    more = data.draw(statements(effects=["Allow"], resource_policy=True))
    assert rank(request, identity, [*resource, more]) >= before


@settings(max_examples=100, deadline=None)
@given(requests, several, of_bucket, several)
def test_a_boundary_never_widens(request, identity, resource, boundary):
    free = rank(request, identity, resource)
    assert rank(request, identity, resource, boundary) <= free


@settings(max_examples=100, deadline=None)
@given(requests, several, of_bucket, st.data())
def test_the_order_of_statements_does_not_matter(request, identity, resource, data):
    before = rank(request, identity, resource)
    shuffled = data.draw(st.permutations(identity))
    others = data.draw(st.permutations(resource))
    assert rank(request, shuffled, others) == before


@settings(max_examples=100, deadline=None)
@given(requests, several, of_bucket)
def test_what_is_certain_stays_so_when_more_is_known(request, identity, resource):
    """Closing the context answers only what was open before."""
    opened = Request(request.session, request.action, request.resource, request.context)
    closed = Request(
        request.session,
        request.action,
        request.resource,
        request.context,
        complete=True,
    )
    before = rank(opened, identity, resource)
    assert before in (1, rank(closed, identity, resource))
