"""Grants as IAM statements: exact, minimal, apart by trust, and short enough."""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policy_sentry.querying.actions import get_action_data

from runfleet.clouds.aws.grants import (
    LOGIN,
    ROLE_POLICY_LIMIT,
    StoreArns,
    StorePlace,
    TooLongError,
    actions_of,
    document,
    example,
    probes,
    readable,
    statements,
)
from runfleet.spec.roles import (
    STORE_SCOPES,
    Grant,
    Role,
    Scope,
    StoreKind,
    Trust,
    Verb,
    matrix,
)

LOCAL_KEY = "arn:aws:kms:us-east-1:111122223333:key/local"
CENTRAL_KEY = "arn:aws:kms:us-east-2:444455556666:key/central"
CACHE_PREFIX = "arn:aws:ecr:us-east-1:111122223333:repository/aws/quay"


def place(kind: StoreKind, scope: Scope) -> StorePlace:
    """Return where a store is, every part of it filled in."""
    where = (
        "us-east-1:111122223333" if scope is Scope.LOCAL else "us-east-2:444455556666"
    )
    name = f"pytorch-{scope}-{kind}"
    return StorePlace(
        bucket="" if kind in ("registry", "telemetry") else f"arn:aws:s3:::{name}",
        repository=f"arn:aws:ecr:{where}:repository/{name}"
        if kind in ("registry", "shared")
        else "",
        pull_through=(CACHE_PREFIX,) if (kind, scope) == ("registry", "local") else (),
        stream=f"arn:aws:firehose:{where}:deliverystream/{name}"
        if kind == "telemetry"
        else "",
        key=LOCAL_KEY if scope is Scope.LOCAL else CENTRAL_KEY,
    )


ARNS = StoreArns(
    *(
        {k: place(k, scope) for k, scopes in STORE_SCOPES.items() if scope in scopes}
        for scope in (Scope.LOCAL, Scope.CENTRAL)
    )
)

roles = st.sampled_from(list(Role))
trusts = st.sampled_from(list(Trust))
grant_sets = st.frozensets(st.sampled_from(sorted(matrix(Role.RELEASER))), min_size=1)


def allowed(found: Iterable[dict[str, Any]], action: str, resource: str) -> bool:
    """Say whether statements allow an action, conditions left aside."""
    return any(
        action in statement["Action"]
        and any(fnmatch.fnmatchcase(resource, r) for r in statement["Resource"])
        for statement in found
    )


def test_the_policy_of_a_tester_is_exactly_this() -> None:
    s3, ecr = "arn:aws:s3:::pytorch-local", "arn:aws:ecr:us-east-1:111122223333"
    levels = ("untrusted-pr", "trusted", "release")
    push = [
        "ecr:BatchCheckLayerAvailability",
        "ecr:BatchGetImage",
        "ecr:CompleteLayerUpload",
        "ecr:InitiateLayerUpload",
        "ecr:PutImage",
        "ecr:UploadLayerPart",
    ]
    pull = [
        "ecr:BatchCheckLayerAvailability",
        "ecr:BatchGetImage",
        "ecr:GetDownloadUrlForLayer",
    ]
    write = ["s3:AbortMultipartUpload", "s3:ListMultipartUploadParts", "s3:PutObject"]
    through_s3 = {"StringEquals": {"kms:ViaService": "s3.us-east-1.amazonaws.com"}}
    expected: list[tuple[Any, ...]] = []
    for kind in ("cache", "artifacts"):
        store, title = f"{s3}-{kind}", kind.title()
        expected += [
            (f"Read{title}Local", ["s3:GetObject"], [f"{store}/{t}/*" for t in levels]),
            (
                f"Read{title}LocalList",
                ["s3:GetBucketLocation", "s3:ListBucket"],
                [store],
            ),
            (f"Write{title}Local", write, [f"{store}/untrusted-pr/*"]),
        ]
    images = f"{ecr}:repository/pytorch-local-registry"
    expected += [
        ("ReadRegistryLocalImages", pull, [f"{images}/{t}" for t in levels]),
        (
            "ReadThroughCache",
            [
                "ecr:BatchCheckLayerAvailability",
                "ecr:BatchGetImage",
                "ecr:BatchImportUpstreamImage",
                "ecr:CreateRepository",
                "ecr:GetDownloadUrlForLayer",
                "ecr:TagResource",
            ],
            [f"{CACHE_PREFIX}/*"],
        ),
        ("WriteRegistryLocalImages", push, [f"{images}/untrusted-pr"]),
        (
            "InsertTelemetryCentral",
            ["firehose:PutRecord", "firehose:PutRecordBatch"],
            [
                "arn:aws:firehose:us-east-2:444455556666:deliverystream/"
                "pytorch-central-telemetry-untrusted-pr"
            ],
        ),
        ("RegistryLogin", ["ecr:GetAuthorizationToken"], ["*"]),
        ("KeyLocal", ["kms:Decrypt", "kms:GenerateDataKey"], [LOCAL_KEY], through_s3),
    ]
    found = statements(matrix(Role.TESTER), Trust.UNTRUSTED_PR, ARNS)
    assert [
        (
            s["Sid"],
            s["Action"],
            s["Resource"],
            *([s["Condition"]] if "Condition" in s else []),
        )
        for s in found
    ] == expected
    assert {s["Effect"] for s in found} == {"Allow"}


@given(grants=grant_sets, trust=trusts)
def test_no_action_is_a_pattern_and_none_is_outside_the_grants(
    grants: frozenset[Grant], trust: Trust
) -> None:
    granted = {a for g in grants for a in actions_of(g.verb, g.store)}
    for statement in statements(grants, trust, ARNS):
        assert set(statement["Action"]) <= granted
        assert not any("*" in action or "?" in action for action in statement["Action"])


@given(grants=grant_sets, trust=trusts)
def test_a_star_resource_only_where_iam_has_no_resource_type(
    grants: frozenset[Grant], trust: Trust
) -> None:
    for statement in statements(grants, trust, ARNS):
        for action in statement["Action"]:
            formats = _resource_formats(action)
            if statement["Resource"] == ["*"]:
                assert formats == {"*"}
            else:
                assert "*" not in statement["Resource"]
                assert formats - {"*"}, f"{action} takes no resource"
                for resource in statement["Resource"]:
                    assert any(_fits(resource, f) for f in formats), (action, resource)


def test_every_action_that_could_be_granted_exists_in_iam() -> None:
    for verb in Verb:
        for kind in StoreKind:
            for action in actions_of(verb, kind):
                assert _resource_formats(action), action
    assert _resource_formats(LOGIN[0]) == {"*"}


@given(trust=trusts, lower=roles, higher=roles)
def test_roles_are_cumulative(trust: Trust, lower: Role, higher: Role) -> None:
    if lower.rank > higher.rank:
        lower, higher = higher, lower
    more = statements(matrix(higher), trust, ARNS)
    for statement in statements(matrix(lower), trust, ARNS):
        for action in statement["Action"]:
            for resource in statement["Resource"]:
                assert allowed(more, action, resource)


@given(grants=grant_sets, trust=trusts)
def test_a_grant_works_inside_its_places_and_not_outside(
    grants: frozenset[Grant], trust: Trust
) -> None:
    for grant in grants:
        found = statements([grant], trust, ARNS)
        asked = probes(grant, trust, ARNS)
        assert asked
        for probe in asked:
            assert probe.inside
            for pattern in probe.inside:
                assert allowed(found, probe.action, example(pattern))
            for pattern in probe.outside:
                assert not allowed(found, probe.action, example(pattern))


@given(grants=grant_sets, trust=trusts)
def test_a_class_cannot_reach_stores_without_a_grant(
    grants: frozenset[Grant], trust: Trust
) -> None:
    found = statements(grants, trust, ARNS)
    for grant in matrix(Role.RELEASER) - grants:
        for probe in probes(grant, trust, ARNS):
            for pattern in (*probe.inside, *probe.outside):
                assert not allowed(found, probe.action, example(pattern))


@given(writer=trusts, reader=trusts, kind=st.sampled_from(list(StoreKind)))
def test_lower_trust_never_writes_what_higher_trust_reads(
    writer: Trust, reader: Trust, kind: StoreKind
) -> None:
    levels = list(Trust)
    if levels.index(writer) >= levels.index(reader):
        return
    writes = statements(matrix(Role.RELEASER), writer, ARNS)
    reads = statements(matrix(Role.RELEASER), reader, ARNS)
    written = {
        resource
        for statement in writes
        for resource in statement["Resource"]
        if {"s3:PutObject", "ecr:PutImage"} & set(statement["Action"])
    }
    read = {
        resource
        for statement in reads
        for resource in statement["Resource"]
        if {"s3:GetObject", "ecr:GetDownloadUrlForLayer"} & set(statement["Action"])
    }
    assert written
    assert not any(
        allowed([{"Action": ["x"], "Resource": list(read)}], "x", example(resource))
        for resource in written
    )


def test_what_each_trust_level_reads() -> None:
    assert readable(Trust.UNTRUSTED_PR) == tuple(Trust)
    assert readable(Trust.TRUSTED) == (Trust.TRUSTED, Trust.RELEASE)
    assert readable(Trust.RELEASE) == (Trust.RELEASE,)


def test_keys_are_used_through_s3_in_the_key_s_own_region_only() -> None:
    found = statements(matrix(Role.RELEASER), Trust.RELEASE, ARNS)
    keys = [s for s in found if any(a.startswith("kms:") for a in s["Action"])]
    assert [(s["Resource"], s["Condition"]) for s in keys] == [
        (
            [LOCAL_KEY],
            {"StringEquals": {"kms:ViaService": "s3.us-east-1.amazonaws.com"}},
        ),
        (
            [CENTRAL_KEY],
            {"StringEquals": {"kms:ViaService": "s3.us-east-2.amazonaws.com"}},
        ),
    ]


def test_reading_alone_gets_no_data_keys() -> None:
    grant = Grant(Role.TESTER, Verb.READ, StoreKind.CACHE, Scope.LOCAL)
    (key,) = [
        s
        for s in statements([grant], Trust.TRUSTED, ARNS)
        if s["Resource"] == [LOCAL_KEY]
    ]
    assert key["Action"] == ["kms:Decrypt"]


def test_inserting_from_another_account_goes_through_one_role() -> None:
    role = "arn:aws:iam::444455556666:role/lf-ue1--telemetry--tests"
    grant = Grant(Role.TESTER, Verb.INSERT, StoreKind.TELEMETRY, Scope.CENTRAL)
    arns = StoreArns(
        central={StoreKind.TELEMETRY: StorePlace(stream="s", insert_role=role)}
    )
    assert statements([grant], Trust.TRUSTED, arns) == [
        {
            "Sid": "InsertTelemetryCentral",
            "Effect": "Allow",
            "Action": ["sts:AssumeRole", "sts:TagSession"],
            "Resource": [role],
        }
    ]


def test_a_store_that_the_fleet_lacks_gives_nothing() -> None:
    assert statements(matrix(Role.RELEASER), Trust.RELEASE, StoreArns()) == []
    grant = next(iter(matrix(Role.TESTER)))
    assert probes(grant, Trust.TRUSTED, StoreArns()) == ()


@pytest.mark.parametrize("trust", list(Trust))
def test_the_longest_policy_fits(trust: Trust) -> None:
    found = statements(matrix(Role.RELEASER), trust, ARNS)
    assert len(document(found, ROLE_POLICY_LIMIT, "x")) < ROLE_POLICY_LIMIT * 0.8
    sids = [s["Sid"] for s in found]
    assert len(set(sids)) == len(sids)


def test_a_document_over_the_limit_is_refused_with_its_size() -> None:
    found = statements(matrix(Role.TESTER), Trust.TRUSTED, ARNS)
    size = len(document(found, ROLE_POLICY_LIMIT, "x"))
    with pytest.raises(
        TooLongError, match=f"class x has {size} characters.* {size - 1}"
    ):
        document(found, size - 1, "class x")
    assert json.loads(document(found, size, "class x"))["Statement"] == found


def _resource_formats(action: str) -> set[str]:
    service, _, name = action.partition(":")
    data = get_action_data(service, name)
    assert isinstance(data, dict), action
    return {row["resource_arn_format"] for row in data[service]}


def _fits(resource: str, form: str) -> bool:
    """Say whether an ARN is of a form such as arn:${Partition}:s3:::${BucketName}."""
    pattern = re.sub(r"\\\$\\\{[^}]*\\\}", "[^:]*", re.escape(form))
    return re.fullmatch(pattern, resource) is not None
