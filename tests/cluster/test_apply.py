"""Everything that a stack records is taken by a real API server, and only once."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from cluster.conftest import Cell
from cluster.harness.client import Object, Refused
from cluster.harness.recorded import Recorded, charts, lost
from runfleet.rehearsal.record import Record
from runfleet.rehearsal.stacks import CENTRAL


def test_every_object_is_taken(cell: Cell) -> None:
    refused = {
        f"{found.recorded.name} ({found.recorded.kind})": str(found.refused)
        for found in cell.first
        if found.refused
    }
    assert not refused


def test_nothing_but_charts_is_left_out(cell: Cell) -> None:
    counted = {
        type: count
        for type, count in cell.record.count_by_type().items()
        if type.startswith("kubernetes:")
    }
    left = counted.pop("kubernetes:helm.sh/v3:Release")
    assert left == len(charts(cell.record)) > 0
    assert len(cell.first) == sum(counted.values()) > 0
    assert len({found.recorded.key for found in cell.first}) == len(cell.first)
    assert all(found.answer and found.answer.created for found in cell.first)


def test_the_api_server_warns_of_nothing(cell: Cell) -> None:
    warned = {
        found.recorded.name: found.answer.warnings
        for found in cell.first
        if found.answer and found.answer.warnings
    }
    assert not warned


def test_every_field_is_stored_as_written(cell: Cell) -> None:
    differences = {
        one.key: list(lost(one.object, _read(cell, one))) for one in cell.objects
    }
    assert not {key: found for key, found in differences.items() if found}


def test_the_second_time_changes_nothing(cell: Cell) -> None:
    changed = {}
    for found in cell.second:
        assert found.answer is not None, found.refused
        assert not found.answer.created
        before = cell.before[found.recorded.key]
        if found.answer.version != before["metadata"]["resourceVersion"]:
            changed[found.recorded.key] = (before, found.answer.object)
    assert {key[1] for key in changed} <= {
        # The controller manager owns the status of policies by server-side apply.
        # The next apply of another owner writes the list of owners in a new order.
        "ValidatingAdmissionPolicy"
    }
    for before, after in changed.values():
        assert _without_books(before) == _without_books(after)


def test_the_admission_policy_compiles(cell: Cell) -> None:
    version, kind = "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"
    policies = cell.api.list(version, kind)
    assert [policy["metadata"]["name"] for policy in policies] == ["runfleet-job-pods"]
    assert policies[0]["status"]["typeChecking"] == {}


def test_what_exists_once_needs_no_cluster(records: dict[str, Record]) -> None:
    found = records[CENTRAL].count_by_type()
    assert not [type for type in found if type.startswith("kubernetes:")]


MISTAKES = [
    ("v1", "ResourceQuota", ("spec", "hard", "pods"), "many", "quantities must match"),
    ("v1", "ServiceAccount", ("automountToken",), False, "not declared in schema"),
    (
        "networking.k8s.io/v1",
        "NetworkPolicy",
        ("spec", "engress"),
        [],
        "not declared in schema",
    ),
    (
        "actions.github.com/v1alpha1",
        "AutoscalingRunnerSet",
        ("spec", "maxRunner"),
        1,
        "not declared in schema",
    ),
    (
        "actions.github.com/v1alpha1",
        "AutoscalingRunnerSet",
        ("spec", "minRunners"),
        -1,
        "should be greater than or equal to 0",
    ),
    (
        "external-secrets.io/v1",
        "ExternalSecret",
        ("spec", "target", "creationPolicy"),
        "Own",
        "Unsupported value",
    ),
    (
        "karpenter.sh/v1",
        "NodePool",
        ("spec", "disruption", "consolidateAfter"),
        "soon",
        "should match",
    ),
]


@pytest.mark.parametrize(
    ("version", "kind", "path", "value", "reason"),
    MISTAKES,
    ids=[f"{found[1]}.{found[2][-1]}" for found in MISTAKES],
)
def test_a_mistake_is_refused(
    cell: Cell, version: str, kind: str, path: tuple[str, ...], value: Any, reason: str
) -> None:
    good = next(f.object for f in cell.objects if f.key[:2] == (version, kind))
    bad = copy.deepcopy(good)
    inner = bad
    for part in path[:-1]:
        inner = inner[part]
    inner[path[-1]] = value
    with pytest.raises(Refused, match=reason):
        cell.api.apply(bad)
    cell.api.apply(good)


def _read(cell: Cell, recorded: Recorded) -> Object:
    """Return an object as a list gives it, with what a list leaves out."""
    version, kind, *_ = recorded.key
    return {"apiVersion": version, "kind": kind} | cell.before[recorded.key]


def _without_books(found: Object) -> Object:
    metadata = found["metadata"]
    kept = {k: v for k, v in metadata.items() if k not in _BOOKS}
    own = {k: v for k, v in found.items() if k not in ("apiVersion", "kind")}
    return own | {"metadata": kept}


_BOOKS = ("managedFields", "resourceVersion")
