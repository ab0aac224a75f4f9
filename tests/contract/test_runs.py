"""Rehearsals of a floor repeat byte by byte, and unresolved pins stop a real run."""

from __future__ import annotations

from pathlib import Path

import pytest

from contract.floors import FloorCase
from contract.records import CENTRAL, Rehearsed, rehearse_project, write_project
from runfleet.catalogue.pins import load_pins
from runfleet.program import UnresolvedPinsError
from runfleet.rehearsal.runner import rehearse

PIN = """\
version: 1
pins:
  arc-runner-image:
    value: {value}
    kind: image
    used_by: [all]
    source: a test
"""


def stacks(case: FloorCase) -> tuple[str, str]:
    return CENTRAL, case.cell


def test_the_same_bytes_again(case: FloorCase, made: Rehearsed, tmp_path: Path) -> None:
    rehearse_project(made.root, case.cell, tmp_path)
    for stack in stacks(case):
        first = (made.root / "out" / stack / "record.json").read_bytes()
        assert (tmp_path / stack / "record.json").read_bytes() == first


@pytest.mark.slow
def test_the_same_bytes_with_emulators(
    case: FloorCase, made: Rehearsed, tmp_path: Path
) -> None:
    rehearse_project(made.root, case.cell, tmp_path, emulate=True)
    for stack in stacks(case):
        first = (made.root / "out" / stack / "record.json").read_bytes()
        assert (tmp_path / stack / "record.json").read_bytes() == first


def test_unresolved_pins_are_reported_by_a_preview(
    case: FloorCase, made: Rehearsed
) -> None:
    assert list(made.record.unresolved_pins) == load_pins().unresolved(case.provider)


@pytest.mark.parametrize("value", ["unresolved", "sha256:" + "a" * 64])
def test_unresolved_pins_are_refused_by_a_real_run(
    case: FloorCase, tmp_path: Path, value: str
) -> None:
    root = tmp_path / "project"
    write_project(root, case.fleet, case.cell)
    (root / "pins.lock").write_text(PIN.format(value=value))
    pins = load_pins(root / "pins.lock").unresolved(case.provider)
    assert ("arc-runner-image" in pins) is (value == "unresolved")
    assert pins, "all pins are resolved: there is nothing to refuse"
    with pytest.raises(UnresolvedPinsError) as caught:
        rehearse(
            root / "stacks",
            project="runfleet",
            stack=case.cell,
            config={"runfleet:fleet": "fleet.yaml"},
            root=root,
            emulate=False,
            preview=False,
        )
    message = str(caught.value)
    assert f"{len(pins)} pins of stack {case.cell} are unresolved" in message
    assert "resolve them with: runfleet pins refresh" in message
    assert [line.split(":")[0].strip() for line in message.splitlines()[1:-1]] == pins
    assert caught.value.exit_code == 3
