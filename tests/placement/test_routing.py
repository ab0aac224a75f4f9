"""Routing out: ``arc.yaml`` and the runner determinator's settings."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.four_clouds import FLEET, PYTORCH, TODAY, movable
from runfleet.catalogue.read import read_fleet
from runfleet.errors import InputError
from runfleet.placement.lock import make_lock
from runfleet.placement.routing import (
    Allowlist,
    Determinator,
    Experiment,
    OptIn,
    arc_map,
    arc_yaml,
    dangling,
    determinator,
    determinator_text,
    parse_arc,
    parse_determinator,
)
from runfleet.spec.fleet import Fleet

DEMO = movable().fleet
DATA = Path(__file__).parents[1] / "data" / "osdc"


@pytest.fixture(scope="module")
def pytorch() -> Fleet:
    return read_fleet(PYTORCH / "fleet.yaml").fleet


def test_labels_of_a_fleet() -> None:
    moved = movable().to("gcp")
    made = arc_map(moved.fleet, moved.lock(TODAY))
    assert made.runner_mapping == {
        "linux.2xlarge": "cpu",
        "linux.rocm.gpu.gfx942.1": "linux.rocm.gpu.gfx942.1",
    }
    assert made.lf_allowlist == Allowlist(mode="restricted", runners=[])
    home = movable()
    made = arc_map(home.fleet, make_lock(home.fleet))
    assert made.lf_allowlist == Allowlist(
        mode="restricted", runners=["cpu", "l4", "rel"]
    )


def test_a_class_without_a_scale_set_is_not_routed() -> None:
    lock = make_lock(movable().fleet).model_copy(update={"placed": []})
    assert "linux.2xlarge" not in arc_map(movable().fleet, lock).runner_mapping


def test_the_map_of_pytorch_agrees_with_the_one_in_use(pytorch: Fleet) -> None:
    text = arc_yaml(pytorch, make_lock(pytorch))
    made = parse_arc("arc.yaml", text)
    used = parse_arc("arc.yaml", (DATA / "arc.yaml").read_text(encoding="utf-8"))
    lost = dangling(used, pytorch)
    other = {
        label: (target, made.runner_mapping.get(label))
        for label, target in used.runner_mapping.items()
        if (label, target) not in lost and made.runner_mapping.get(label) != target
    }
    assert other == {}
    assert ("linux.g5.4xlarge.nvidia.gpu", "l-x86aavx2-11-41-a10g") in lost
    assert dangling(made, pytorch) == []
    assert made.lf_allowlist is not None
    assert made.lf_allowlist.mode == "all"
    assert len(made.lf_allowlist.runners) == 44


def test_weights_become_shares() -> None:
    text = FLEET.replace("label_prefix: lf-", "label_prefix: lf-\n    weight: 10")
    text = text.replace("cluster: demo-uc1", "cluster: demo-uc1\n    weight: 60")
    settings = determinator(movable(text).fleet)
    # lf has 20 of 20 + 60 + three times 100.
    assert settings == Determinator(
        {
            "lf": Experiment(rollout_perc=5.26, all_branches=True),
            "arc": Experiment(rollout_perc=100, all_branches=True, default=False),
        }
    )


def test_the_text_is_what_the_determinator_reads() -> None:
    people = (
        OptIn("zxiiro", ("lf",)),
        OptIn("malfet", ("-lf",)),
        OptIn("half", ("lf:50", "arc")),
        OptIn("nobody", opted_out=True),
    )
    settings = determinator(movable().fleet, {"lf": 15}, people)
    text = determinator_text(settings)
    assert text == (
        "experiments:\n"
        "  lf:\n"
        "    rollout_perc: 15\n"
        "    all_branches: true\n"
        "    default: true\n"
        "    workflows: ALL\n"
        "  arc:\n"
        "    rollout_perc: 100\n"
        "    all_branches: true\n"
        "    default: false\n"
        "    workflows: ALL\n"
        "---\n"
        "@zxiiro,lf\n"
        "@malfet,-lf\n"
        "@half,lf:50,arc\n"
        "#@nobody\n"
    )
    assert parse_determinator("d.yaml", text) == settings


def test_the_settings_in_use_can_be_read() -> None:
    """The first comment of pytorch/test-infra#5132, as it was read once."""
    found = parse_determinator(
        "d.yaml",
        "experiments:\n"
        "    lf: {rollout_perc: 15, all_branches: true, workflows: ALL}\n"
        "    ephemeral: {rollout_perc: 0, all_branches: false}\n"
        "    amd-sandbox: {rollout_perc: 100, all_branches: true, default: false,"
        " workflows: trunk-rocm-sandbox}\n"
        "---\n"
        "@zxiiro,lf\n"
        "@malfet,-lf\n",
    )
    assert found.experiments["lf"].rollout_perc == 15
    assert not found.experiments["amd-sandbox"].default
    assert [str(person) for person in found.people] == ["@zxiiro,lf", "@malfet,-lf"]


@given(st.dictionaries(st.just("lf"), st.floats(0, 100)))
def test_every_share_reads_back(shares: dict[str, float]) -> None:
    settings = determinator(DEMO, shares)
    text = determinator_text(settings)
    assert parse_determinator("d.yaml", text) == settings


@pytest.mark.parametrize(
    ("shares", "found", "allowed"),
    [({"fl": 5}, "fl", "lf"), ({"lf": 101}, "101", "0 to 100")],
)
def test_shares_that_cannot_be(
    shares: dict[str, float], found: str, allowed: str
) -> None:
    with pytest.raises(InputError) as caught:
        determinator(movable().fleet, shares)
    (problem,) = caught.value.problems
    assert (problem.found, problem.allowed) == (found, allowed)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("experiments: {lf: {rollout_perc: 120}}\n",
         [(1, "experiments.lf.rollout_perc", "is not valid")]),
        ("experiments:\n  lf: {rollout: 5}\n",
         [(2, "experiments.lf.rollout", "is not a known key"),
          (2, "experiments.lf.rollout_perc", "is missing")]),
        ("experiments: {lf: {rollout_perc: 1}}\n---\n@a,lff\n\n@b,lf:x\n",
         [(3, "a", "there is no experiment of this name"),
          (5, "b", "is no percentage")]),
    ],
)  # fmt: skip
def test_settings_that_would_not_be_understood(
    text: str, expected: list[tuple[int, str, str]]
) -> None:
    with pytest.raises(InputError) as caught:
        parse_determinator("d.yaml", text)
    assert [(p.line, p.path, p.message) for p in caught.value.problems] == expected


def test_a_map_that_would_not_be_understood() -> None:
    with pytest.raises(InputError) as caught:
        parse_arc("arc.yaml", "runner_mapping: {a: 1}\nlf_allowlist: {mode: some}\n")
    assert [(p.line, p.path) for p in caught.value.problems] == [
        (1, "runner_mapping.a"),
        (2, "lf_allowlist.mode"),
    ]
