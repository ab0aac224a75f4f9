"""The condition language of Azure role assignments, from its documentation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runfleet.review.evaluators.azure_conditions import (
    ConditionError,
    Question,
    matches,
    read_condition,
)
from runfleet.review.evaluators.decision import Truth

BLOBS = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs"
PATH, PREFIX = f"@Resource[{BLOBS}:path]", f"@Request[{BLOBS}:prefix]"
NAME = "@Resource[Microsoft.Storage/storageAccounts/blobServices/containers:name]"

DOCUMENTED = f"""
(
 (
  !(ActionMatches{{'{BLOBS}/read'}} AND NOT SubOperationMatches{{'Blob.List'}})
 )
 OR
 (
  {NAME} StringEquals 'blobs-example-container'
  AND
  {PATH} StringStartsWith 'readonly/'
 )
)
AND
(
 (
  !(ActionMatches{{'{BLOBS}/read'}} AND SubOperationMatches{{'Blob.List'}})
 )
 OR
 (
  {NAME} StringEquals 'blobs-example-container'
  AND
  {PREFIX} StringStartsWith 'readonly/'
 )
)
"""
"""The form that Azure's examples give for reading and listing under a path."""


def ask(
    text: str,
    action: str = f"{BLOBS}/read",
    sub_operation: str = "",
    **attributes: str | None,
) -> Truth:
    known = {
        {"path": PATH, "prefix": PREFIX, "name": NAME}[key]: value
        for key, value in attributes.items()
    }
    return read_condition(text).decide(Question(action, sub_operation, known))


@pytest.mark.parametrize(
    ("action", "sub_operation", "path", "prefix", "expected"),
    [
        ("read", "", "readonly/a", None, Truth.YES),
        ("read", "", "other/a", None, Truth.NO),
        ("read", "", "readonly", None, Truth.NO),
        ("read", "Blob.List", None, "readonly/", Truth.YES),
        ("read", "Blob.List", None, None, Truth.NO),
        ("read", "blob.list", None, "readonly/x", Truth.YES),
        # What the condition does not speak of it does not narrow.
        ("delete", "", "other/a", None, Truth.YES),
    ],
)
def test_the_documented_example(
    action: str,
    sub_operation: str,
    path: str | None,
    prefix: str | None,
    expected: Truth,
) -> None:
    found = ask(
        DOCUMENTED,
        f"{BLOBS}/{action}",
        sub_operation,
        path=path,
        prefix=prefix,
        name="blobs-example-container",
    )
    assert found is expected


@pytest.mark.parametrize(
    ("test", "value", "expected"),
    [
        ("StringEquals 'a'", "a", Truth.YES),
        ("StringEquals 'a'", "A", Truth.NO),
        ("StringEqualsIgnoreCase 'a'", "A", Truth.YES),
        ("StringNotEquals 'a'", "b", Truth.YES),
        ("StringNotEquals 'a'", None, Truth.YES),
        ("StringEquals 'a'", None, Truth.NO),
        ("StringLike 'a*c'", "abc", Truth.YES),
        ("StringLike 'a?c'", "abbc", Truth.NO),
        ("StringNotLike 'a*'", "abc", Truth.NO),
        ("StringStartsWith 'tru'", "trusted", Truth.YES),
        ("StringNotStartsWith 'tru'", "trusted", Truth.NO),
        ("StringStartsWithIgnoreCase 'TRU'", "trusted", Truth.YES),
        ("ForAnyOfAnyValues:StringEquals {'a', 'b'}", "b", Truth.YES),
        ("ForAnyOfAnyValues:StringEquals {'a', 'b'}", "c", Truth.NO),
        (r"StringEquals 'it\'s'", "it's", Truth.YES),
        # Not known here, or more than one value without saying how: never harmless.
        ("ForAllOfAnyValues:StringEquals {'a', 'b'}", "a", Truth.UNSURE),
        ("StringEquals {'a', 'b'}", "a", Truth.UNSURE),
        ("NumericLessThan 3", "2", Truth.UNSURE),
        (f"StringEquals {PREFIX}", "a", Truth.UNSURE),
    ],
)
def test_comparisons(test: str, value: str | None, expected: Truth) -> None:
    assert ask(f"{PATH} {test}", path=value) is expected


def test_attributes_that_are_not_known_stay_open() -> None:
    assert ask(f"{PATH} StringEquals 'a'") is Truth.UNSURE
    assert ask(f"!({PATH} StringEquals 'a')") is Truth.UNSURE
    either = f"{PATH} StringEquals 'a' OR ActionMatches{{'{BLOBS}/*'}}"
    assert ask(either) is Truth.YES


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Not binds before And, And before Or.
        ("ActionMatches{'x'} AND ActionMatches{'x'} OR ActionMatches{'*'}", Truth.YES),
        ("ActionMatches{'*'} OR ActionMatches{'x'} AND ActionMatches{'x'}", Truth.YES),
        ("!ActionMatches{'x'} AND ActionMatches{'*'}", Truth.YES),
        ("NOT (ActionMatches{'*'} && ActionMatches{'*'})", Truth.NO),
        ("(ActionMatches{'x'} || ActionMatches{'*'})", Truth.YES),
    ],
)
def test_precedence(text: str, expected: Truth) -> None:
    assert ask(text) is expected


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        (f"Exists {PATH}", "a", Truth.YES),
        (f"Exists {PATH}", None, Truth.NO),
        (f"NotExists {PATH}", None, Truth.YES),
    ],
)
def test_existence(text: str, value: str | None, expected: Truth) -> None:
    assert ask(text, path=value) is expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "(",
        "ActionMatches{'a'",
        "ActionMatches{'a'} ActionMatches{'a'}",
        f"{PATH} StringEquals",
        f"{PATH}",
        "Exists 'a'",
        "'a' StringEquals 'a'",
        "$",
        f"{PATH} StringEquals (",
    ],
)
def test_what_is_no_condition(text: str) -> None:
    with pytest.raises(ConditionError):
        read_condition(text)


@given(st.text(alphabet="()!{}',@[] ANDORaction:*\\", max_size=40))
def test_reading_ends_in_a_condition_or_one_error(text: str) -> None:
    try:
        read_condition(text)
    except ConditionError:
        return


@pytest.mark.parametrize(
    ("pattern", "action", "expected"),
    [
        ("*", "A/b/read", True),
        ("a/*/READ", "A/b/c/read", True),
        ("a/b", "a/b/c", False),
        ("a.b/*", "aXb/c", False),
    ],
)
def test_action_patterns(pattern: str, action: str, expected: bool) -> None:
    assert matches(pattern, action) is expected
