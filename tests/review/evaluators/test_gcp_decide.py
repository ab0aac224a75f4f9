"""Decisions: who has a permission on what, and whom one can become. With traps."""

from __future__ import annotations

import json

import pytest

from review.evaluators.gcp_cases import (
    BASE,
    BUCKET,
    EMAIL,
    OBJECTS,
    POD,
    POOL,
    PRINCIPAL,
    PROJECT,
    READER,
    WRITER,
    access,
    account,
    acts,
    bound,
    made,
    member,
)
from runfleet.review.evaluators.decision import Truth
from runfleet.review.evaluators.gcp_decide import (
    Access,
    Principal,
    named_target,
    object_target,
    pod,
)
from runfleet.review.evaluators.gcp_inventory import read_inventory

JOB = Principal(email=EMAIL)
ME = pod(POOL, "ci", "job")
OTHER = pod(POOL, "ci", "other")
KEY = object_target(BUCKET, "trusted/x", PROJECT)
GET = "storage.objects.get"


def test_a_binding_on_the_bucket() -> None:
    found = access(member("b", **bound()))
    assert found.may(JOB, GET, KEY) is Truth.YES
    assert found.may(JOB, "storage.objects.create", KEY) is Truth.NO
    assert found.may(Principal(email="x@y"), GET, KEY) is Truth.NO
    assert found.may(JOB, GET, object_target("elsewhere", "x", PROJECT)) is Truth.NO


def test_a_condition_holds_for_a_prefix() -> None:
    found = access(
        member(
            "b", **bound(expression=f'resource.name.startsWith("{OBJECTS}/trusted/")')
        )
    )
    assert found.may(JOB, GET, KEY) is Truth.YES
    beside = object_target(BUCKET, "trusted-not/x", PROJECT)
    assert found.may(JOB, GET, beside) is Truth.NO


def test_a_prefix_without_a_slash_reaches_further() -> None:
    found = access(
        member(
            "b", **bound(expression=f'resource.name.startsWith("{OBJECTS}/trusted")')
        )
    )
    beside = object_target(BUCKET, "trusted-not/x", PROJECT)
    assert found.may(JOB, GET, beside) is Truth.YES


def test_the_project_s_policy_holds_for_all_in_it() -> None:
    found = access(
        member(
            "b",
            "projects",
            project=PROJECT,
            role="roles/storage.objectViewer",
            member=f"serviceAccount:{EMAIL}",
        )
    )
    assert found.may(JOB, GET, KEY) is Truth.YES
    elsewhere = object_target("other", "x", "other-project")
    assert found.may(JOB, GET, elsewhere) is Truth.NO


@pytest.mark.parametrize(
    ("who", "expected"),
    [
        ("allUsers", Truth.YES),
        ("allAuthenticatedUsers", Truth.YES),
        (f"serviceAccount:{EMAIL.upper()}", Truth.YES),
        (f"deleted:serviceAccount:{EMAIL}?uid=1", Truth.NO),
        ("user:ann@example.org", Truth.NO),
        ("domain:example.org", Truth.NO),
        ("group:all@example.org", Truth.UNSURE),
        (f"projectEditor:{PROJECT}", Truth.NO),
        ("principalSet://cloudresourcemanager.googleapis.com/projects/1", Truth.UNSURE),
    ],
)
def test_members_and_a_service_account(who: str, expected: Truth) -> None:
    assert access(member("b", **bound(member=who))).may(JOB, GET, KEY) is expected


def test_convenience_members_are_who_has_the_basic_role() -> None:
    editor = member(
        "e",
        "projects",
        project=PROJECT,
        role="roles/editor",
        member=f"serviceAccount:{EMAIL}",
    )
    found = access(editor, member("b", **bound(member=f"projectEditor:{PROJECT}")))
    assert found.matches(f"projectEditor:{PROJECT}", JOB) is Truth.YES


@pytest.mark.parametrize(
    ("who", "expected"),
    [
        (POD, Truth.YES),
        (f"serviceAccount:{POOL}[ci/job]", Truth.YES),
        (f"serviceAccount:{POOL}[ci/other]", Truth.NO),
        (POD.replace("/111/", "/999/"), Truth.NO),
        (POD.replace("/111/", f"/{PROJECT}/"), Truth.NO),
        (POD.replace(POOL, "other.svc.id.goog"), Truth.NO),
        (POD + "-more", Truth.NO),
        ("allAuthenticatedUsers", Truth.NO),
        (PRINCIPAL.replace("principal:", "principalSet:") + "/namespace/ci", Truth.YES),
        (PRINCIPAL.replace("principal:", "principalSet:") + "/namespace/x", Truth.NO),
        (PRINCIPAL.replace("principal:", "principalSet:") + "/*", Truth.YES),
        (
            PRINCIPAL.replace("principal:", "principalSet:")
            + "/kubernetes.cluster/https://container.googleapis.com/v1/x",
            Truth.UNSURE,
        ),
    ],
)
def test_members_and_a_pod(who: str, expected: Truth) -> None:
    """The project is named by number and the pool by id; anything else is nobody."""
    assert access().matches(who, ME) is expected


def test_a_number_that_nothing_confirms() -> None:
    bare = tuple(r for r in BASE if "kms" not in r.type)
    found = Access(read_inventory([(bare, PROJECT)]))
    assert found.matches(POD, ME) is Truth.UNSURE


def test_a_pod_becomes_its_service_account() -> None:
    found = access(acts(), member("b", **bound()))
    assert found.reach(ME) == {ME: Truth.YES, JOB: Truth.YES}
    assert found.reach(OTHER) == {OTHER: Truth.YES}
    assert found.any_may(found.reach(ME), GET, KEY) is Truth.YES


def test_one_service_account_leads_to_the_next() -> None:
    """A chain of impersonation counts, wherever the role is given."""
    boss = f"boss@{PROJECT}.iam.gserviceaccount.com"
    chain = access(
        account(boss),
        acts(),
        acts(
            f"serviceAccount:{EMAIL}", boss, role="roles/iam.serviceAccountTokenCreator"
        ),
    )
    assert Principal(email=boss) in chain.reach(ME)
    whole = access(
        account(boss),
        acts(),
        member(
            "p",
            "projects",
            project=PROJECT,
            role="roles/iam.serviceAccountTokenCreator",
            member=f"serviceAccount:{EMAIL}",
        ),
    )
    assert Principal(email=boss) in whole.reach(ME)


@pytest.mark.parametrize(
    ("role", "becomes"),
    [
        ("roles/iam.workloadIdentityUser", Truth.YES),
        ("roles/iam.serviceAccountKeyAdmin", Truth.YES),
        ("roles/iam.serviceAccountOpenIdTokenCreator", Truth.YES),
        ("roles/iam.serviceAccountUser", Truth.NO),
        ("roles/something.new", Truth.UNSURE),
    ],
)
def test_which_roles_let_one_be_a_service_account(role: str, becomes: Truth) -> None:
    assert access(acts(role=role)).acts_as(ME, EMAIL) is becomes


def test_an_unknown_role_may_do_anything() -> None:
    found = access(member("b", **bound(role="roles/storage.somethingNew")))
    assert found.may(JOB, GET, KEY) is Truth.UNSURE


def test_a_custom_role_of_another_project_gives_nothing() -> None:
    role = "projects/other/roles/reader"
    inventory = read_inventory([((*BASE, member("b", **bound(role=role))), PROJECT)])
    assert Access(inventory).may(JOB, GET, KEY) is Truth.NO
    (problem,) = inventory.problems
    assert "of another project" in problem


def test_conditions_on_services_without_attributes_are_unknown() -> None:
    """Artifact Registry and Pub/Sub tell conditions nothing about their resources."""
    name = f"projects/{PROJECT}/locations/l/repositories/r"
    found = access(
        member(
            "b",
            "artifactregistry/repository",
            project=PROJECT,
            location="l",
            repository="r",
            role="roles/artifactregistry.reader",
            member=f"serviceAccount:{EMAIL}",
            expression=f'resource.name == "{name}"',
        )
    )
    target = named_target(name, "artifactregistry.googleapis.com/Repository")
    pull = "artifactregistry.repositories.downloadArtifacts"
    assert found.may(JOB, pull, target) is Truth.UNSURE


def test_a_deny_policy_makes_what_is_allowed_unsure() -> None:
    deny = made("gcp:iam/denyPolicy:DenyPolicy", "deny", parent="x", rules=[])
    found = access(member("b", **bound()), deny)
    assert found.may(JOB, GET, KEY) is Truth.UNSURE
    assert found.may(JOB, "storage.objects.delete", KEY) is Truth.NO


def test_a_role_s_whole_member_list_and_one_member_fight() -> None:
    """``IAMBinding`` sets all members, so an ``IAMMember`` beside it may be undone."""
    whole = made(
        "gcp:storage/bucketIAMBinding:BucketIAMBinding",
        "whole",
        bucket=BUCKET,
        role=READER,
        members=["serviceAccount:other@x"],
    )
    found = access(member("b", **bound()), whole)
    assert found.may(JOB, GET, KEY) is Truth.UNSURE
    other_role = access(member("b", **bound(role=WRITER)), whole)
    assert other_role.may(JOB, "storage.objects.create", KEY) is Truth.YES


def test_a_whole_policy() -> None:
    document = {
        "bindings": [
            {
                "role": READER,
                "members": [f"serviceAccount:{EMAIL}"],
                "condition": {
                    "expression": f'resource.name.startsWith("{OBJECTS}/trusted/")'
                },
            }
        ]
    }
    policy = made(
        "gcp:storage/bucketIAMPolicy:BucketIAMPolicy",
        "policy",
        bucket=f"b/{BUCKET}",
        policyData=json.dumps(document),
    )
    found = access(policy)
    assert found.may(JOB, GET, KEY) is Truth.YES
    assert found.may(JOB, GET, object_target(BUCKET, "release/x", PROJECT)) is Truth.NO
    broken = made(
        "gcp:storage/bucketIAMPolicy:BucketIAMPolicy", "p", bucket="b", policyData="{"
    )
    assert len(read_inventory([((broken,), PROJECT)]).problems) == 1
