"""Grants as bindings: what each says, on what, under which condition."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clouds.gcp import fleets
from runfleet.clouds.gcp import addresses
from runfleet.clouds.gcp.grants import (
    LISTER,
    PERMISSIONS,
    READER,
    Binding,
    bindings,
    readable,
    roles_of,
)
from runfleet.spec.roles import (
    Grant,
    Role,
    Scope,
    StoreKind,
    Trust,
    Verb,
    matrix,
    parse_grant,
)


def made(role: Role, trust: Trust) -> dict[str, Binding]:
    known = fleets.fleet()
    places = addresses.places(known, known.cells["gcp"])
    return {b.suffix: b for b in bindings(matrix(role), trust, places)}


def test_what_a_tester_gets() -> None:
    found = made(Role.TESTER, Trust.TRUSTED)
    assert list(found) == [
        "local-cache-read",
        "local-cache-list",
        "local-cache-write",
        "local-artifacts-read",
        "local-artifacts-list",
        "local-artifacts-write",
        "local-registry-pull-trusted",
        "local-registry-pull-release",
        "local-registry-pull-cache-ecr",
        "local-registry-pull-cache-k8s",
        "local-registry-pull-cache-quay",
        "local-registry-push-trusted",
        "central-telemetry-insert",
    ]
    bucket = found["local-cache-read"].resource
    assert bucket.startswith("demo-gcp-cache-demo-ci-us-central1-")
    prefix = f'resource.name.startsWith("projects/_/buckets/{bucket}/objects'
    read, write = found["local-cache-read"], found["local-cache-write"]
    assert read.condition is not None
    assert read.condition.expression == (f'{prefix}/trusted/") || {prefix}/release/")')
    assert write.condition is not None
    assert write.condition.expression == f'{prefix}/trusted/")'
    assert found["local-cache-list"].condition is None
    assert found["local-registry-push-trusted"].resource == (
        "demo--gcp--registry-trusted"
    )
    assert found["central-telemetry-insert"].resource == (
        "demo--central--telemetry-trusted"
    )
    assert found["central-telemetry-insert"].scope is Scope.CENTRAL


def test_what_a_releaser_adds() -> None:
    below, above = (
        set(made(role, Trust.RELEASE)) for role in (Role.BUILDER, Role.RELEASER)
    )
    assert above - below == {
        "local-shared-write",
        "local-shared-push-release",
        "central-shared-write",
        "central-shared-push-release",
        "central-release-write",
    }


def test_all_classes_of_a_trust_share_a_condition() -> None:
    """An allow policy holds at most 100 conditional bindings of role and condition."""
    known = fleets.fleet()
    found: dict[str, set[tuple[str, str]]] = {}
    for runner_class in known.runner_classes.values():
        places = addresses.places(known, known.cells["gcp"])
        for b in bindings(runner_class.granted(), runner_class.trust, places):
            if b.kind == "bucket" and b.condition is not None:
                found.setdefault(b.resource, set()).add(
                    (b.role, b.condition.expression)
                )
    assert found
    assert max(map(len, found.values())) <= 2 * len(Trust)


def test_permissions_are_exact() -> None:
    for permissions in PERMISSIONS.values():
        assert not any("*" in permission for permission in permissions)
    every = {p for permissions in PERMISSIONS.values() for p in permissions}
    assert not {p for p in every if "delete" in p or "IamPolicy" in p or "update" in p}


def test_roles_by_kind() -> None:
    assert roles_of([StoreKind.CACHE]) == [
        "objectreader",
        "objectlister",
        "objectwriter",
    ]
    assert roles_of([StoreKind.REGISTRY]) == ["imagepuller", "imagepusher"]
    assert roles_of([StoreKind.TELEMETRY]) == ["recordinserter"]
    assert len(roles_of(StoreKind)) == len(PERMISSIONS)


@pytest.mark.parametrize(
    ("trust", "levels"),
    [
        (Trust.UNTRUSTED_PR, tuple(Trust)),
        (Trust.TRUSTED, (Trust.TRUSTED, Trust.RELEASE)),
        (Trust.RELEASE, (Trust.RELEASE,)),
    ],
)
def test_who_reads_what(trust: Trust, levels: tuple[Trust, ...]) -> None:
    assert readable(trust) == levels


every_grant = sorted(matrix(Role.RELEASER))


@given(
    st.lists(st.sampled_from(every_grant)), st.sampled_from(list(Trust)), st.randoms()
)
def test_a_grant_gives_its_own_and_nothing_more(
    grants: list[Grant], trust: Trust, random: object
) -> None:
    known = fleets.fleet()
    places = addresses.places(known, known.cells["gcp"])
    together = bindings(grants, trust, places)
    alone = {b for grant in grants for b in bindings([grant], trust, places)}
    assert set(together) == alone
    assert len({b.suffix for b in together}) == len(together)
    wanted = {(g.verb, g.store, g.scope) for g in grants}
    for b in together:
        verb = (
            Verb.READ
            if b.role in (READER, LISTER, "imagepuller")
            else Verb.INSERT
            if b.role == "recordinserter"
            else Verb.WRITE
        )
        assert (verb, b.store, b.scope) in wanted
        if verb is Verb.WRITE and b.kind == "repository":
            assert b.resource.endswith(f"-{trust}")


def test_stores_that_the_fleet_has_not_give_nothing() -> None:
    text = fleets.changed(
        ("  telemetry: {}\n", ""),
        ("provider: gcp\n  account: demo-c", "provider: aws\n  account: demo-c"),
    )
    known = fleets.fleet(text)
    grant = parse_grant("write cache central", Role.BUILDER)
    assert grant is not None
    assert addresses.effective([grant], known) == frozenset()
    assert bindings(
        matrix(Role.BUILDER), Trust.TRUSTED, addresses.places(known, known.cells["gcp"])
    )
    assert not [
        b
        for b in bindings(
            matrix(Role.RELEASER),
            Trust.TRUSTED,
            addresses.places(known, known.cells["gcp"]),
        )
        if b.scope is Scope.CENTRAL
    ]
