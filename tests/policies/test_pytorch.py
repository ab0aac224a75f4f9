"""The fleet of PyTorch: exactly its labels that lie are found."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

from runfleet.spec import load_fleet
from runfleet_policies.engine import evaluate_fleet

FLEET = Path(__file__).parents[2] / "playbooks" / "pytorch" / "fleet.yaml"

LIARS = {
    "l-arm64g3-16-62",
    "l-arm64g3-61-463",
    "l-arm64g4-16-62",
    "l-barm64g4-94-344",
    "l-bx86iavx512-94-344-t4-8",
    "l-x86aavx2-189-704-a10g-8",
    "l-x86aavx2-45-167-a10g-4",
    "l-x86aavx2-45-172-l4-4",
    "l-x86aavx512-125-463",
    "l-x86iamx-16-128",
    "l-x86iamx-46-84",
}


def test_exactly_the_seventeen_labels_that_lie_are_found() -> None:
    file = load_fleet(FLEET)
    found = evaluate_fleet(file.fleet, file.source, dt.date(2026, 6, 1))
    lies = {f.where.removeprefix("runner_classes.") for f in found
            if f.rule == "R-LABEL-02"}  # fmt: skip
    assert len(lies) == 17
    assert lies >= LIARS
    assert all(f.line and f.file == str(FLEET) for f in found)
