"""Roles and grants against RFC-0049's table, written out once more by hand."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runfleet.spec.classes import RunnerClass
from runfleet.spec.roles import (
    ROLE_TRIGGERS,
    STORE_SCOPES,
    Grant,
    Role,
    StoreKind,
    Trigger,
    matrix,
    parse_grant,
)
from spec.fleets import SMALL, changed, fleet_of

# pytorch/rfcs PR 89 (draft of 2026-03-09), section "roles", every role in full.
TESTER = {
    "read cache local",
    "write cache local",
    "read artifacts local",
    "write artifacts local",
    "read registry local",
    "write registry local",
    "insert telemetry central",
}
BUILDER = TESTER | {
    "write cache central",
    "write artifacts central",
    "write registry central",
}
PUBLISHER = BUILDER | {"write shared local", "write shared central"}
RELEASER = PUBLISHER | {"write release central"}
TABLE = {
    "tester": TESTER,
    "builder": BUILDER,
    "publisher": PUBLISHER,
    "releaser": RELEASER,
}


@pytest.mark.parametrize("role", list(Role))
def test_matrix_is_the_table_of_the_rfc(role: Role) -> None:
    assert {grant.text for grant in matrix(role)} == TABLE[role.value]


def test_roles_are_cumulative_and_strictly_so() -> None:
    ordered = sorted(Role, key=lambda role: role.rank)
    assert [role.value for role in ordered] == list(TABLE)
    for lower, higher in pairwise(ordered):
        assert matrix(lower) < matrix(higher)


def test_every_grant_is_on_a_store_that_exists_in_its_scope() -> None:
    for grant in matrix(Role.RELEASER):
        assert grant.scope in STORE_SCOPES[grant.store]
    assert {grant.store for grant in matrix(Role.RELEASER)} == set(StoreKind)


def test_nobody_reads_a_central_store_and_telemetry_is_insert_only() -> None:
    for grant in matrix(Role.RELEASER):
        assert not (grant.verb == "read" and grant.scope == "central")
        assert (grant.verb == "insert") == (grant.store == "telemetry")


def test_triggers_of_the_rfc() -> None:
    assert {
        Role.TESTER: {
            Trigger.ON_DEMAND,
            Trigger.PERIODIC,
            Trigger.SOME_PRS,
            Trigger.ALL_PRS,
        },
        Role.BUILDER: {Trigger.ON_DEMAND, Trigger.PERIODIC},
        Role.PUBLISHER: {Trigger.ON_DEMAND, Trigger.PERIODIC},
        Role.RELEASER: {Trigger.ON_DEMAND},
    } == ROLE_TRIGGERS


@given(st.sampled_from(list(Role)), st.sampled_from(sorted(RELEASER)))
def test_parse_grant_narrows_and_never_widens(role: Role, text: str) -> None:
    grant = parse_grant(text, role)
    if text in TABLE[role.value]:
        assert grant is not None
        assert grant.text == text
        assert grant.role.rank <= role.rank
    else:
        assert grant is None


@pytest.mark.parametrize("text", ["", "read", "read cache everywhere", "* * *"])
def test_parse_grant_refuses_other_texts(text: str) -> None:
    assert parse_grant(text, Role.RELEASER) is None


def _class(grants: str) -> RunnerClass:
    text = changed(("    scale: 0..5\n", f"    scale: 0..5\n{grants}"), document=SMALL)
    return fleet_of(text).runner_classes["l-x86iavx2-2-4"]


def test_grants_of_a_class() -> None:
    assert _class("").granted() == matrix(Role.TESTER)
    assert _class("    grants: none\n").granted() == frozenset[Grant]()
    assert _class("    grants: []\n").granted() == frozenset[Grant]()
    some = _class("    grants: [read cache local, insert telemetry central]\n")
    assert {grant.text for grant in some.granted()} == {
        "read cache local",
        "insert telemetry central",
    }
