"""IBM Cloud's policies: attributes, conditions and roles, with their traps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from runfleet.review.evaluators.decision import Truth
from runfleet.review.evaluators.ibm_policy import (
    PATTERN,
    Attribute,
    Policy,
    Request,
    Roles,
    actions_of,
    allows,
    condition_of,
    condition_problems,
    matches,
)

GET = "cloud-object-storage.object.get"
PUT = "cloud-object-storage.object.put"
DELETE = "cloud-object-storage.object.delete"
LIST = "cloud-object-storage.bucket.get"

BUCKET = {
    "serviceName": "cloud-object-storage",
    "serviceInstance": "guid",
    "resourceType": "bucket",
    "resource": "cache",
}
NO_ROLES = Roles({})


def policy(
    *roles: str,
    conditions: list[Any] | None = None,
    operator: str | None = None,
    **attributes: str,
) -> Policy:
    return Policy(
        urn="urn",
        subject="iam-Profile-1",
        roles=roles,
        attributes=tuple(
            Attribute(name, "stringEquals", value)
            for name, value in (attributes or BUCKET).items()
        ),
        condition=condition_of(conditions, operator),
    )


def get(path: str = "trusted/a", **more: str | None) -> Request:
    return Request(GET, {**BUCKET, "path": path, **more})


def on_path(*values: str, operator: str = "stringMatch") -> dict[str, Any]:
    key = "{{resource.attributes.path}}"
    return {"key": key, "operator": operator, "values": list(values)}


def test_nothing_is_allowed_that_no_role_holds() -> None:
    reader = policy("Content Reader")
    assert allows(reader, get(), NO_ROLES) is Truth.YES
    assert allows(reader, Request(PUT, get().attributes), NO_ROLES) is Truth.NO
    writer = policy("Object Writer")
    assert allows(writer, get(), NO_ROLES) is Truth.NO
    assert allows(writer, Request(DELETE, get().attributes), NO_ROLES) is Truth.NO
    assert allows(writer, Request(PUT, get().attributes), NO_ROLES) is Truth.YES


def test_the_services_writer_reads_and_deletes_too() -> None:
    writer = policy("Writer")
    for action in (GET, PUT, DELETE, "cloud-object-storage.bucket.delete_bucket"):
        assert allows(writer, Request(action, BUCKET), NO_ROLES) is Truth.YES
    images = policy("Writer", serviceName="container-registry")
    for action in ("pull", "push", "delete"):
        request = Request(
            f"container-registry.image.{action}", {"serviceName": "container-registry"}
        )
        assert allows(images, request, NO_ROLES) is Truth.YES


def test_every_attribute_must_match() -> None:
    assert allows(policy("Reader"), get(), NO_ROLES) is Truth.YES
    assert allows(policy("Reader"), get(resource="other"), NO_ROLES) is Truth.NO
    assert allows(policy("Reader"), get(serviceInstance="x"), NO_ROLES) is Truth.NO


def test_an_attribute_that_is_not_named_may_have_any_value() -> None:
    wide = policy("Reader", serviceName="cloud-object-storage")
    assert allows(wide, get(resource="anything"), NO_ROLES) is Truth.YES
    nothing = replace(policy("Reader"), attributes=())
    assert allows(nothing, get(), NO_ROLES) is Truth.YES


def test_a_star_in_string_equals_is_a_star() -> None:
    starred = policy("Reader", **{**BUCKET, "resource": "ca*"})
    assert allows(starred, get(), NO_ROLES) is Truth.NO
    matched = replace(
        starred, attributes=(Attribute("resource", "stringMatch", "ca*"),)
    )
    assert allows(matched, get(), NO_ROLES) is Truth.YES


def test_an_action_without_a_bucket_is_not_allowed_by_a_policy_on_a_bucket() -> None:
    request = Request(
        "cloud-object-storage.account.get_account_buckets",
        {"serviceName": "cloud-object-storage", "serviceInstance": "guid"},
    )
    assert allows(policy("Reader"), request, NO_ROLES) is Truth.NO


def test_what_is_not_known_is_not_taken_as_harmless() -> None:
    grouped = policy("Reader", **BUCKET, resourceGroupId="group")
    assert allows(grouped, get(resourceGroupId=None), NO_ROLES) is Truth.UNSURE
    unknown = replace(policy("Reader"), roles=(None,))
    assert allows(unknown, get(), NO_ROLES) is Truth.UNSURE
    assert allows(policy("Librarian"), get(), NO_ROLES) is Truth.UNSURE
    tagged = replace(policy("Reader"), tagged=True)
    assert allows(tagged, get(), NO_ROLES) is Truth.UNSURE
    # Unless it cannot matter.
    assert allows(tagged, get(resource="other"), NO_ROLES) is Truth.NO


def test_a_custom_role_is_its_actions() -> None:
    roles = Roles({"Pusher": frozenset({"container-registry.image.push"})})
    pusher = policy("Pusher", serviceName="container-registry")
    attributes = {"serviceName": "container-registry"}
    for action, expected in (("push", Truth.YES), ("pull", Truth.NO)):
        request = Request(f"container-registry.image.{action}", attributes)
        assert allows(pusher, request, roles) is expected


def test_account_management_is_about_no_store() -> None:
    managing = replace(policy("Administrator"), everywhere=True)
    assert allows(managing, get(), NO_ROLES) is Truth.NO


def test_a_path_condition_is_about_the_path() -> None:
    found = policy("Content Reader", conditions=[on_path("trusted/*")])
    assert allows(found, get("trusted/a/b"), NO_ROLES) is Truth.YES
    assert allows(found, get("untrusted-pr/a"), NO_ROLES) is Truth.NO
    assert allows(found, get("trusted"), NO_ROLES) is Truth.NO
    assert allows(found, get("Trusted/a"), NO_ROLES) is Truth.NO


def test_an_action_without_a_path_does_not_meet_a_path_condition() -> None:
    found = policy("Content Reader", conditions=[on_path("*")])
    listing = Request(LIST, {**BUCKET, "prefix": "trusted/"})
    assert allows(found, listing, NO_ROLES) is Truth.NO
    head = Request("cloud-object-storage.bucket.head", BUCKET)
    assert allows(found, head, NO_ROLES) is Truth.NO


def test_listing_needs_its_prefix_and_a_delimiter_only_when_asked() -> None:
    prefix = {
        "key": "{{resource.attributes.prefix}}",
        "operator": "stringMatchAnyOf",
        "values": ["trusted/*", "release/*"],
    }
    delimiter = {
        "key": "{{resource.attributes.delimiter}}",
        "operator": "stringEquals",
        "values": ["/"],
    }
    free = policy("Content Reader", conditions=[on_path("a"), prefix], operator="or")
    tied = policy(
        "Content Reader",
        conditions=[{"operator": "and", "conditions": [prefix, delimiter]}],
    )
    plain = Request(LIST, {**BUCKET, "prefix": "trusted/"})
    folded = Request(LIST, {**BUCKET, "prefix": "trusted/", "delimiter": "/"})
    whole = Request(LIST, {**BUCKET, "prefix": "", "delimiter": "/"})
    assert [allows(free, r, NO_ROLES) for r in (plain, folded, whole)] == [
        Truth.YES,
        Truth.YES,
        Truth.NO,
    ]
    assert [allows(tied, r, NO_ROLES) for r in (plain, folded, whole)] == [
        Truth.NO,
        Truth.YES,
        Truth.NO,
    ]


def test_string_exists_asks_whether_the_request_has_it() -> None:
    absent = [
        {
            "key": f"{{{{resource.attributes.{name}}}}}",
            "operator": "stringExists",
            "values": ["false"],
        }
        for name in ("path", "prefix", "delimiter")
    ]
    found = policy("Content Reader", conditions=absent, operator="and")
    head = Request("cloud-object-storage.bucket.head", BUCKET)
    assert allows(found, head, NO_ROLES) is Truth.YES
    assert allows(found, get(), NO_ROLES) is Truth.NO


def test_a_condition_on_time_cannot_be_told() -> None:
    at = {
        "key": "{{environment.attributes.current_time}}",
        "operator": "timeLessThanOrEquals",
        "values": ["17:00:00-05:00"],
    }
    found = policy("Content Reader", conditions=[at, on_path("a/*")], operator="and")
    assert allows(found, get("a/x"), NO_ROLES) is Truth.UNSURE
    assert allows(found, get("b/x"), NO_ROLES) is Truth.NO


@pytest.mark.parametrize(
    ("conditions", "operator", "pattern", "expected"),
    [
        ([on_path("a/*")], None, PATTERN, []),
        (
            [on_path("a/*")],
            None,
            None,
            [f"conditions need the pattern {PATTERN}, found None"],
        ),
        (
            [on_path("a/*"), on_path("b/*")],
            None,
            PATTERN,
            ["several conditions are joined by ''"],
        ),
        ([on_path("a", "b")], None, PATTERN, ["stringMatch takes one value"]),
        (
            [on_path(*"abcdefghijk", operator="stringMatchAnyOf")],
            None,
            PATTERN,
            ["stringMatchAnyOf takes 10 values"],
        ),
    ],
)
def test_conditions_that_iam_refuses(
    conditions: list[Any],
    operator: str | None,
    pattern: str | None,
    expected: list[str],
) -> None:
    condition = condition_of(conditions, operator)
    assert condition_problems(condition, pattern) == expected


def test_a_refused_policy_cannot_be_told() -> None:
    broken = replace(policy("Reader"), problems=("x",))
    assert allows(broken, get(), NO_ROLES) is Truth.UNSURE


@pytest.mark.parametrize(
    ("pattern", "value", "expected"),
    [
        ("a*c", "abbc", True),
        ("a*c", "a/b/c", True),
        ("a?c", "ac", False),
        ("a{{*}}c", "a*c", True),
        ("a{{*}}c", "abc", False),
        ("a.c", "abc", False),
        ("*", "", True),
        ("a*", "a\nb", True),
    ],
)
def test_wildcards(pattern: str, value: str, expected: bool) -> None:
    assert matches(pattern, value) is expected


def test_the_table_of_actions() -> None:
    storage = actions_of("cloud-object-storage")
    registry = actions_of("container-registry")
    assert (len(storage), len(registry)) == (114, 24)
    writer = {action for action, roles in storage.items() if "Object Writer" in roles}
    assert GET not in writer
    assert DELETE not in writer
    assert PUT in writer
    reader = {action for action, roles in storage.items() if "Content Reader" in roles}
    assert LIST in reader
    assert not any(".put" in a or ".post" in a or ".delete" in a for a in reader)
    assert actions_of("kms") == {}
