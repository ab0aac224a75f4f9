"""What one stack builds: classes, node pools, stores and names of one cell."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runfleet.catalogue.pins import Pins
from runfleet.placement import make_lock, plan_cell, plan_central
from runfleet.placement.plan import CellPlan, namespace
from runfleet.spec.labels import KEYS, check
from runfleet.spec.pools import Taint
from runfleet.spec.roles import Role, Scope, matrix
from spec.fleets import FULL, SMALL, changed, fleet_of

PINS = Pins({})
labels = st.text("abc019-", min_size=1, max_size=45).map(
    lambda text: re.sub("-+", "-", text).strip("-") or "a"
)
cells = st.from_regex(r"(aws|gcp|azure|ibm|own)(-[a-z0-9]{1,6}){0,2}", fullmatch=True)


def plan_of(text: str, cell: str) -> CellPlan:
    fleet = fleet_of(text)
    return plan_cell(fleet, make_lock(fleet), fleet.cells[cell], PINS)


def test_classes_of_a_cell() -> None:
    plan = plan_of(FULL, "aws")
    assert plan.stack == "aws"
    assert [
        (c.name, c.label, c.runner_namespace, c.job_namespace, c.runner_group)
        for c in plan.classes
    ] == [
        ("l-x86iavx512-16-128", "lf-l-x86iavx512-16-128",
         "r-lf-l-x86iavx512-16-128--aws", "j-lf-l-x86iavx512-16-128--aws", "ci"),
        ("l-x86iavx512-8-32", "lf-l-x86iavx512-8-32",
         "r-lf-l-x86iavx512-8-32--aws", "j-lf-l-x86iavx512-8-32--aws", "ci"),
        ("rel-l-x86iavx512-8-64", "lf-rel-l-x86iavx512-8-64",
         "r-lf-rel-l-x86iavx512-8-64--aws", "j-lf-rel-l-x86iavx512-8-64--aws",
         "release"),
        ("l-x86iamx-22-225-h100", "lf-l-x86iamx-22-225-h100",
         "r-lf-l-x86iamx-22-225-h100--aws", "j-lf-l-x86iamx-22-225-h100--aws", "ci"),
    ]  # fmt: skip
    assert {c.service_account for c in plan.classes} == {"job"}


def test_grants_of_a_class() -> None:
    tester, builder, releaser, _ = plan_of(FULL, "aws").classes
    assert tester.grants == matrix(Role.TESTER)
    assert {g.text for g in builder.grants} == {
        "read cache local",
        "write cache central",
    }
    assert {g.text for g in builder.granted(Scope.CENTRAL)} == {"write cache central"}
    assert releaser.grants == matrix(Role.RELEASER)
    assert plan_of(FULL, "gcp").classes[0].grants == frozenset()


def test_node_pools_of_a_cell() -> None:
    plan = plan_of(FULL, "aws")
    assert [(p.name, p.weight, p.release) for p in plan.node_pools] == [
        ("c7i--c7i-24xlarge", 100, False),
        ("c7i--c7i-12xlarge", 50, False),
        ("c7i--c7i-12xlarge-release", 100, True),
        ("m8g--m8g-8xlarge", 100, False),
        ("p5--p5-48xlarge", 100, False),
    ]
    assert [p.ci_labels["ci_cost_model"] for p in plan.node_pools] == [
        "on-demand",
        "spot",
        "on-demand",
        "on-demand",
        "reserved",
    ]
    assert [[r.id for r in p.reservations] for p in plan.node_pools] == [
        [],
        [],
        [],
        [],
        ["cr-0123456789abcdef0"],
    ]
    gpu = plan.node_pools[4]
    assert gpu.labels == {
        "workload-type": "github-runner",
        "node-fleet": "p5",
        "instance-type": "p5.48xlarge",
        "ci_trust": "shared",
        "nvidia.com/gpu": "true",
        "demo/tier": "gpu",
    }
    assert gpu.taints == (
        Taint("node-fleet", "p5"),
        Taint("instance-type", "p5.48xlarge"),
        Taint("nvidia.com/gpu", "true"),
    )


def test_release_pools_exist_only_where_release_classes_are() -> None:
    with_release = plan_of(FULL, "aws")
    assert [p.name for p in with_release.node_pools if p.release] == [
        "c7i--c7i-12xlarge-release"
    ]
    assert with_release.node_pools[2].ci_labels["ci_trust"] == "release"
    assert Taint("ci_trust", "release") in with_release.node_pools[2].taints
    text = changed(
        ("    role: releaser\n    trust: release\n", "    role: builder\n"
         "    trust: trusted\n"),
    )  # fmt: skip
    assert [p.name for p in plan_of(text, "aws").node_pools if p.release] == []


def test_pools_that_serve_nothing_are_not_built() -> None:
    text = changed(("    runner_pods: {pool: m8g, cpu: 0.75, memory: 1GiB}\n", ""))
    families = {p.pool.name for p in plan_of(text, "aws").node_pools}
    assert families == {"c7i", "p5"}
    assert plan_of(FULL, "own-lab").node_pools == ()


def test_a_reservation_is_drawn_from_in_its_own_cell_only() -> None:
    second = FULL[FULL.index("  aws:\n") : FULL.index("  gcp:\n")]
    for old, new in (
        ("  aws:", "  aws-two:"),
        ("demo-ue1", "demo-two"),
        ("10.12.", "10.13."),
        ("172.20.", "172.21."),
    ):
        second = second.replace(old, new)
    text = FULL.replace("  gcp:\n", second + "  gcp:\n", 1)
    here = plan_of(text, "aws").node_pools[4]
    there = plan_of(text, "aws-two").node_pools[4]
    assert here.name == there.name
    assert [len(p.reservations) for p in (here, there)] == [1, 0]


def test_stores_budget_and_labels_of_a_cell() -> None:
    plan = plan_of(FULL, "aws")
    assert [s.name for s in plan.stores] == ["cache", "artifacts", "shared", "registry"]
    assert [s.name for s in plan.central_stores] == [
        "cache",
        "artifacts",
        "shared",
        "release",
        "registry",
        "telemetry",
    ]
    assert plan.budget is not None
    assert plan.budget.name == "foundation"
    assert plan_of(FULL, "gcp").budget is None
    things = [plan, *plan.classes, *plan.node_pools]
    for thing in things:
        assert check(thing.ci_labels) == []
        assert set(KEYS) | {"cost-center"} == set(thing.ci_labels)
        assert thing.ci_labels["ci_stack"] == "aws"


def test_a_lock_that_places_nothing_builds_nothing_but_runner_pods() -> None:
    fleet = fleet_of(FULL)
    lock = make_lock(fleet).model_copy(update={"placed": []})
    plan = plan_cell(fleet, lock, fleet.cells["aws"], PINS)
    assert plan.classes == ()
    assert [p.name for p in plan.node_pools] == ["m8g--m8g-8xlarge"]


def test_central() -> None:
    plan = plan_central(fleet_of(FULL), PINS)
    assert plan.stack == "central"
    assert [s.name for s in plan.stores] == [
        "cache",
        "artifacts",
        "shared",
        "release",
        "registry",
        "telemetry",
    ]
    assert [c.name for c in plan.external] == ["linux.rocm.gpu.gfx942.1"]
    assert plan.budget is not None
    assert plan.ci_labels["ci_stack"] == "central"
    assert plan.ci_labels["ci_funder"] == "foundation"
    with pytest.raises(ValueError, match="the fleet has no `central` section"):
        plan_central(fleet_of(SMALL), PINS)


def test_namespace_examples() -> None:
    assert namespace("j", "lf-l-x86iavx512-16-128", "aws") == (
        "j-lf-l-x86iavx512-16-128--aws"
    )
    long = namespace("r", "l" * 45, "aws-" + "e" * 16)
    assert len(long) == 63
    assert re.fullmatch(r"r-l{45}--aw--[0-9a-f]{10}", long)


@given(
    st.tuples(st.sampled_from("rj"), labels, cells),
    st.tuples(st.sampled_from("rj"), labels, cells),
)
def test_namespace_is_injective(
    one: tuple[str, str, str], other: tuple[str, str, str]
) -> None:
    assert (namespace(*one) == namespace(*other)) == (one == other)


@given(
    st.sampled_from("rj"),
    st.from_regex(r"[a-z0-9](-?[a-z0-9]){0,22}", fullmatch=True),
    cells,
)
def test_namespace_can_be_read_back_while_it_is_short(
    kind: str, label: str, cell: str
) -> None:
    name = namespace(kind, label, cell)
    if len(f"{kind}-{label}--{cell}") <= 63:
        rest, _, found = name.rpartition("--")
        assert (rest, found) == (f"{kind}-{label}", cell)


@given(
    st.sampled_from("rj"),
    st.text("abc019-", min_size=40, max_size=45).map(
        lambda text: re.sub("-+", "-", text).strip("-") or "a"
    ),
    cells,
)
def test_namespace_is_a_legal_name_of_at_most_63(
    kind: str, label: str, cell: str
) -> None:
    name = namespace(kind, label, cell)
    assert len(name) <= 63
    assert re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", name)
