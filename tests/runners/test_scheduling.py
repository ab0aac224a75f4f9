from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runfleet.placement import CellPlan
from runfleet.runners.scheduling import (
    SchedulingError,
    job_placement,
    matching_node_pools,
    matching_runner_pools,
    runner_placement,
    scheduling_problems,
)
from runfleet.spec import Fleet
from runfleet.spec.pools import Taint, Toleration
from runners.cells import FLEET, class_of, fleet_of, plan_of, record_runners


def test_each_class_matches_the_node_pools_of_its_pool(plan: CellPlan) -> None:
    matches = {
        planned.name: [
            pool.name for pool in matching_node_pools(planned, plan.node_pools)
        ]
        for planned in plan.classes
    }
    assert matches == {
        "x86-8-16": ["c7i--c7i-12xlarge", "c7i--c7i-24xlarge"],
        "x86-plain": ["c7i--c7i-12xlarge", "c7i--c7i-24xlarge"],
        "l4": ["g6--g6-12xlarge"],
        "l4-4": ["g6--g6-12xlarge"],
        "rel-x86": ["c7i--c7i-12xlarge-release"],
    }
    assert scheduling_problems(plan) == []


def test_runner_pods_match_the_runner_pool_only(plan: CellPlan) -> None:
    matches = {
        planned.name: [
            pool.name
            for pool in matching_runner_pools(planned, plan.cell, plan.node_pools)
        ]
        for planned in plan.classes
    }
    shared = ["runners--m8g-8xlarge"]
    assert matches == {
        "x86-8-16": shared,
        "x86-plain": shared,
        "l4": shared,
        "l4-4": shared,
        "rel-x86": ["c7i--c7i-12xlarge-release"],
    }


def test_a_cell_without_runner_pool_puts_runners_on_the_pool_of_their_jobs(
    plan: CellPlan,
) -> None:
    alone = plan.cell.model_copy(
        update={"runner_pods": plan.cell.runner_pods.model_copy(update={"pool": None})}
    )
    gpu = class_of(plan, "l4")
    assert runner_placement(gpu, alone) == job_placement(gpu)


def test_a_taint_that_nobody_tolerates_keeps_pods_away(plan: CellPlan) -> None:
    planned = class_of(plan, "x86-8-16")
    (own, *_) = matching_node_pools(planned, plan.node_pools)
    tainted = dataclasses.replace(own, taints=(*own.taints, Taint("quarantine", "x")))
    assert matching_node_pools(planned, [own]) == [own]
    assert matching_node_pools(planned, [tainted]) == []


def test_an_equal_toleration_needs_the_value() -> None:
    taint = Taint("node-fleet", "a")
    assert taint.tolerated_by(Toleration("node-fleet", "Equal", "a"))
    assert not taint.tolerated_by(Toleration("node-fleet", "Equal", "b"))


def test_a_label_that_hides_a_pool_stops_the_program_before_it_makes_anything() -> None:
    text_before = "machines: [{machine: g6.12xlarge, disk: 600GiB}]"
    text_after = (
        "machines: [{machine: g6.12xlarge, disk: 600GiB, labels: {node-fleet: other}}]"
    )
    assert text_before in FLEET
    broken = plan_of(fleet_of(FLEET.replace(text_before, text_after)))
    with pytest.raises(SchedulingError) as caught:
        record_runners(broken)
    assert caught.value.problems == [
        "job pods of l4 match no pool; they must match g6 only",
        "job pods of l4-4 match no pool; they must match g6 only",
    ]
    assert caught.value.exit_code == 2


@st.composite
def fleets(draw: st.DrawFn) -> dict[str, Any]:
    """Fleets of a few pools with shapes of both kinds and classes on each."""
    names = draw(
        st.lists(
            st.from_regex(r"[a-z][a-z0-9]{0,6}(-[a-z0-9]{1,4})?", fullmatch=True),
            min_size=1,
            max_size=4,
            unique=True,
        )
    )
    pools: dict[str, Any] = {}
    classes: dict[str, Any] = {}
    for index, name in enumerate(names):
        gpu = draw(st.booleans())
        release = draw(st.sampled_from([(False,), (True,), (False, True)]))
        pools[name] = {
            "provider": "aws",
            "arch": "amd64",
            "gpu": gpu,
            "machines": [
                {"machine": f"m{size}.large", "disk": "100GiB", "release": kind}
                for kind in release
                for size in range(draw(st.integers(1, 3)))
            ],
        }
        for kind in release:
            accelerator = (
                {"accelerator": {"model": "l4"}} if gpu and draw(st.booleans()) else {}
            )
            if gpu and not accelerator:
                continue
            classes[f"c{index}-{'rel' if kind else 'ci'}"] = {
                "role": "releaser" if kind else "tester",
                "trust": "release" if kind else "untrusted-pr",
                "vendor": "any",
                "pool": name,
                "scale": "0..3",
                "hardware": {
                    "arch": "amd64",
                    "vcpu": 4,
                    "memory": "8GiB",
                    **accelerator,
                },
            }
    runner_pool = draw(st.sampled_from([None, "the-runners"]))
    pools["the-runners"] = {
        "provider": "aws",
        "arch": "arm64",
        "machines": [{"machine": "m8g.large", "disk": "100GiB"}],
    }
    return {
        "project": "p",
        "owner": {"team": "t"},
        "github": {"organization": "o", "runner_groups": {"g": {}}},
        "pools": pools,
        "runner_classes": classes,
        "cells": {
            "aws": {
                "provider": "aws", "cluster": "c", "funder": "f", "runner_group": "g",
                "runner_pods": {"pool": runner_pool},
            }
        },
    }  # fmt: skip


@given(fleets())
def test_in_any_fleet_classes_match_their_pool_and_release_stays_apart(
    document: dict[str, Any],
) -> None:
    plan = plan_of(Fleet.model_validate(document))
    assert scheduling_problems(plan) == []
    runner_pool = plan.cell.runner_pods.pool
    for planned in plan.classes:
        release = planned.runner_class.release
        jobs = matching_node_pools(planned, plan.node_pools)
        runners = matching_runner_pools(planned, plan.cell, plan.node_pools)
        assert {pool.pool.name for pool in jobs} == {planned.pool.name}
        assert {pool.release for pool in [*jobs, *runners]} == {release}
        expected = planned.pool.name if release or not runner_pool else runner_pool
        assert {pool.pool.name for pool in runners} == {expected}
        others = [pool for pool in plan.node_pools if pool not in jobs]
        assert all(
            pool.pool != planned.pool or pool.release != release for pool in others
        )
