"""How cost grows: the PyTorch fleet times 1, 10 and 100 in classes."""

from __future__ import annotations

import datetime as dt
import time
from pathlib import Path
from typing import Any

from runfleet.spec import build_fleet
from runfleet.spec.source import Source, read_source

FLEET = Path("playbooks/pytorch/fleet.yaml")


def run() -> None:
    """Print seconds per stage for each size, and the factor over ten times less."""
    from runfleet.catalogue.pins import load_pins
    from runfleet.placement.lock import make_lock
    from runfleet.placement.plan import plan_cell
    from runfleet_policies.engine import evaluate_fleet

    source = read_source(FLEET)
    before: dict[str, float] = {}
    for times in (1, 10, 100):
        data = multiplied(source, times)
        stages: dict[str, float] = {}
        start = time.perf_counter()
        file = build_fleet(data)
        stages["read"] = time.perf_counter() - start
        start = time.perf_counter()
        evaluate_fleet(file.fleet, file.source, dt.date.today())
        stages["check"] = time.perf_counter() - start
        start = time.perf_counter()
        lock = make_lock(file.fleet)
        for cell in file.fleet.cells.values():
            plan_cell(file.fleet, lock, cell, load_pins())
        stages["place and plan"] = time.perf_counter() - start
        for stage, seconds in stages.items():
            factor = f", {seconds / before[stage]:.1f} times" if stage in before else ""
            count = len(file.fleet.runner_classes)
            print(f"{stage}, {count} classes: {seconds:.3f} s{factor}", flush=True)
        before = stages


def multiplied(source: Source, times: int) -> Source:
    """Return a fleet document whose classes stand ``times`` times in it."""
    data: dict[str, Any] = dict(source.data)
    classes: dict[str, Any] = data["runner_classes"]
    data["runner_classes"] = {
        name if copy == 0 else f"{name[:40].rstrip('.-_')}-{copy}": {
            **entry,
            **({"aliases": []} if copy else {}),
        }
        for copy in range(times)
        for name, entry in classes.items()
    }
    return Source(source.file, data, dict(source.lines))
