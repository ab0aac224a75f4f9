"""Names fit Azure's rules and no two lists of parts share one."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clouds.azure import fleets
from runfleet.clouds.azure import names
from runfleet.clouds.azure.autoscaler import agent_pool_name
from runfleet.clouds.azure.places import place_of
from runfleet.spec.roles import StoreKind, Trust

PARTS = st.lists(
    st.text(alphabet="abcXYZ019-_./", min_size=0, max_size=30), min_size=1, max_size=4
).map(tuple)


@pytest.mark.parametrize("rule", names.RULES, ids=lambda rule: rule.kind)
@given(parts=PARTS)
def test_every_name_fits_its_rule(rule: names.NameRule, parts: tuple[str, ...]) -> None:
    assert rule.accepts(rule.encode(*parts))


@pytest.mark.parametrize("rule", names.RULES, ids=lambda rule: rule.kind)
@given(one=PARTS, two=PARTS)
def test_different_parts_give_different_names(
    rule: names.NameRule, one: tuple[str, ...], two: tuple[str, ...]
) -> None:
    if one != two:
        assert rule.encode(*one).lower() != rule.encode(*two).lower()


@pytest.mark.parametrize(
    ("rule", "one", "two"),
    [
        pytest.param(
            names.NETWORK_PART, ("a", "b--c"), ("a", "b", "c"), id="separator"
        ),
        pytest.param(names.IDENTITY, ("a-", "b"), ("a", "-b"), id="dashes"),
        pytest.param(names.STORAGE_ACCOUNT, ("ab", "c"), ("a", "bc"), id="no-dash"),
        pytest.param(names.AGENT_POOL, ("das", "x"), ("das-x",), id="pool"),
    ],
)
def test_near_misses_stay_apart(
    rule: names.NameRule, one: tuple[str, ...], two: tuple[str, ...]
) -> None:
    assert rule.encode(*one) != rule.encode(*two)


def test_a_joined_name_cannot_imitate_a_digest() -> None:
    digested = names.IDENTITY.encode("UPPER")
    assert digested.startswith("upper-")
    assert names.IDENTITY.encode(digested) != digested


def test_readable_names_are_kept() -> None:
    assert names.IDENTITY.encode("demo", "job", "tests") == "demo--job--tests"
    assert names.RESOURCE_GROUP.encode("demo-eus") == "demo-eus"


def test_names_shared_with_the_world_depend_on_the_subscription() -> None:
    one = place_of(fleets.cell_plan())
    other = place_of(fleets.cell_plan(cell="azure-gpu"))
    accounts = {p.account(kind) for p in (one, other) for kind in StoreKind}
    registries = {p.registry(StoreKind.SHARED, t) for p in (one, other) for t in Trust}
    assert (len(accounts), len(registries)) == (12, 6)
    assert all(len(name) == 24 or len(name) < 24 for name in accounts)


def test_no_parts_and_no_room_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one part"):
        names.VAULT.encode()
    tight = names.NameRule("a thing", 3, r"[a-z]+")
    with pytest.raises(ValueError, match="no name of a thing"):
        tight.encode("abcdef")


def test_agent_pools_of_a_big_fleet_do_not_meet() -> None:
    made = {
        agent_pool_name(f"pool{number}--standard-d{size}as-v6{tail}")
        for number in range(200)
        for size in (2, 16, 32)
        for tail in ("", "-release")
    }
    assert len(made) == 1200
    assert all(len(name) <= 12 and name.isalnum() for name in made)


def test_guids_are_stable_and_differ() -> None:
    assert names.guid("a", "b") == names.guid("a", "b") != names.guid("ab")
    assert uuid.UUID(names.guid("a")).version == 5
