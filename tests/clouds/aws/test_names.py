"""Names and tags: legal for AWS, deterministic, injective."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runfleet.clouds.aws import names
from runfleet.clouds.aws.names import RULES, NameRule
from runfleet.clouds.aws.tags import LIMIT, labels_of, tags
from runfleet.spec.labels import KEY_SYNTAX, KEYS, VALUE_SYNTAX

WORDS = st.from_regex(r"[a-z0-9]([._-]?[a-z0-9]){0,50}", fullmatch=True)
ANYTHING = st.text(max_size=90)
PARTS = st.lists(WORDS | ANYTHING, min_size=1, max_size=4).map(tuple)
TIGHT = st.lists(st.text(alphabet="a-/0", max_size=4), min_size=1, max_size=4).map(
    tuple
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.kind)
@settings(max_examples=40)
@given(first=PARTS, second=PARTS)
def test_different_parts_have_different_legal_names(
    rule: NameRule, first: tuple[str, ...], second: tuple[str, ...]
) -> None:
    a, b = rule.encode(*first), rule.encode(*second)
    assert rule.accepts(a)
    assert rule.accepts(b)
    assert (a == b) == (first == second)
    assert a == rule.encode(*first)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.kind)
@settings(max_examples=40)
@given(first=TIGHT, second=TIGHT)
def test_the_separator_cannot_be_smuggled_into_a_part(
    rule: NameRule, first: tuple[str, ...], second: tuple[str, ...]
) -> None:
    same = rule.encode(*first).lower() == rule.encode(*second).lower()
    assert same == (first == second)


@pytest.mark.parametrize(
    ("rule", "parts", "name"),
    [
        (names.IAM_ROLE, ("lf-prod-aws-ue1", "nodes"), "lf-prod-aws-ue1--nodes"),
        (names.IAM_ROLE, ("a--b", "c"), "a-b-c-fbff11030b"),
        (names.IAM_ROLE, ("a", "b--c"), "a-b-c-653b94801b"),
        (names.SQS_QUEUE, ("lf-prod-aws-ue1", "karpenter"), None),
        (names.KMS_ALIAS, ("lf-prod-aws-ue1", "eks"), "alias/lf-prod-aws-ue1/eks"),
        (names.LOG_GROUP, ("runfleet", "lf", "flow"), "/runfleet/lf/flow"),
        (names.ECR_REPOSITORY, ("pytorch", "shared"), "pytorch/shared"),
        (names.IAM_ROLE, ("Mixed", "Case"), "mixed-case-8dbffaf8b8"),
    ],
)
def test_exact_names(rule: NameRule, parts: tuple[str, ...], name: str | None) -> None:
    assert rule.encode(*parts) == (name or "--".join(parts))


OSDC = Path(__file__).parents[2] / "data" / "osdc"
REAL = sorted({path.stem for path in OSDC.rglob("*.yaml")})


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.kind)
def test_real_names_stay_apart(rule: NameRule) -> None:
    assert len(REAL) > 50
    clusters = ("lf-prod-aws-ue1", "lf-prod-aws-ue2")
    parts = list(itertools.product(clusters, ("job", "runner"), REAL))
    assert len({rule.encode(*found) for found in parts}) == len(parts)


def test_a_bucket_differs_by_account_and_region() -> None:
    accounts = ("111111111111", "222222222222")
    regions = ("us-east-1", "us-east-2")
    made = {
        names.S3_BUCKET.encode("pytorch", "aws", "artifacts", account, region)
        for account, region in itertools.product(accounts, regions)
    }
    assert len(made) == 4
    assert all(name.startswith("pytorch-aws-artifacts-") for name in made)
    assert all("." not in name and len(name) <= 63 for name in made)


def test_a_long_name_is_cut_and_says_so_with_a_digest() -> None:
    long = names.IAM_ROLE.encode("lf-prod-aws-ue1", "x" * 80)
    other = names.IAM_ROLE.encode("lf-prod-aws-ue1", "x" * 81)
    assert len(long) == len(other) == 64
    assert long[:53] == other[:53] == "lf-prod-aws-ue1-" + "x" * 37
    assert long != other


def test_a_name_that_looks_digested_gets_a_digest() -> None:
    digested = names.IAM_ROLE.encode("A")
    assert names.IAM_ROLE.encode(digested) != digested


def test_no_parts_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="at least one part"):
        names.IAM_ROLE.encode()


LABELS = {key: f"v{number}" for number, key in enumerate(KEYS)}
EXTRA = st.dictionaries(
    st.from_regex(r"[A-Z][A-Za-z0-9./_-]{0,20}", fullmatch=True),
    st.from_regex(r"[A-Za-z0-9 +\-=._:/@]{0,60}", fullmatch=True),
    max_size=5,
)
LABEL_SETS = st.dictionaries(
    st.from_regex(KEY_SYNTAX, fullmatch=True),
    st.from_regex(VALUE_SYNTAX, fullmatch=True),
    max_size=20,
)


@settings(max_examples=50)
@given(labels=LABEL_SETS, more=EXTRA)
def test_labels_are_read_back_from_tags(
    labels: dict[str, str], more: dict[str, str]
) -> None:
    made = tags(labels, more)
    assert labels_of(made) == labels
    assert {key: made[key] for key in more} == more
    assert len(made) == len(labels) + len(more)


def test_exact_tags() -> None:
    made = tags(LABELS, {"karpenter.sh/discovery": "lf"}, Name="aws-network")
    assert made == {**LABELS, "karpenter.sh/discovery": "lf", "Name": "aws-network"}
    assert list(made) == sorted(made)


@pytest.mark.parametrize(
    ("labels", "more", "message"),
    [
        ({"ci_env": "a;b"}, {}, "ci_env='a;b' is no AWS tag"),
        ({"Bad Key": "x"}, {}, "'Bad Key' is no label key"),
        ({}, {"ci_env": "x"}, "'ci_env' is a label key"),
        ({}, {"aws:x": "y"}, "aws:x='y' is no AWS tag"),
        ({}, {"Name": "x" * 257}, "is no AWS tag"),
        ({}, {f"K{n}": "" for n in range(LIMIT + 1)}, "51 tags, AWS allows 50"),
    ],
)
def test_what_aws_would_refuse_is_refused(
    labels: dict[str, str], more: dict[str, str], message: str
) -> None:
    with pytest.raises(ValueError) as caught:
        tags(labels, more)
    assert message in str(caught.value)
