"""Same fleet in, same promises out; and no promise that cannot be broken."""

from __future__ import annotations

import pytest

from contract.floors import FloorCase
from contract.promises import NO_LABELS_ON_ANY_FLOOR, PROMISES, Promise
from contract.records import Rehearsed

by_name = pytest.mark.parametrize("promise", PROMISES, ids=lambda p: p.name)


@by_name
def test_kept(promise: Promise, case: FloorCase, made: Rehearsed) -> None:
    assert list(promise.check(case, made)) == []


@by_name
def test_noticed_when_broken(
    promise: Promise, case: FloorCase, made: Rehearsed
) -> None:
    before = set(promise.check(case, made))
    breaks = promise.breaks or case.breaks[promise.name]
    after = set(promise.check(case, made.changed(breaks)))
    assert after - before, "the broken record is as good as the whole one"


def test_each_floor_breaks_its_own_promises_and_no_others(case: FloorCase) -> None:
    own = {promise.name for promise in PROMISES if promise.breaks is None}
    assert set(case.breaks) == own


def test_exemptions_from_labels_have_a_reason_and_hold(case: FloorCase) -> None:
    facts = case.facts
    for kind, reason in {**NO_LABELS_ON_ANY_FLOOR, **facts.unlabelled}.items():
        assert reason.strip(), kind
    takes = {kind: facts.takes_labels(kind) for kind in facts.unlabelled}
    assert [kind for kind, found in takes.items() if found] == []


def test_what_has_labels_in_the_schema_is_not_exempt(
    case: FloorCase, made: Rehearsed
) -> None:
    types = {
        r.type for record in made.records.values() for r in record.resources if r.custom
    }
    labelled = {kind for kind in types if case.facts.takes_labels(kind)}
    assert labelled, "the schema gives labels to nothing in the records"
    assert labelled.isdisjoint(case.facts.unlabelled)
    without = {kind for kind in types if case.facts.takes_labels(kind) is False}
    assert without <= set(case.facts.unlabelled)


def test_every_class_is_deployed(made: Rehearsed) -> None:
    assert made.record.outputs["labels"] == ["untrusted", "trusted", "plain", "rel",
                                             "gpu"]  # fmt: skip
    assert set(made.record.outputs["roles"]) == {"untrusted", "trusted", "rel", "gpu"}
