"""How long the command line and the fleet file take, against bare Python."""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

from benchmarks.measure import measure, python, report

FLEET = "playbooks/pytorch/fleet.yaml"


def run() -> None:
    """Print what ``runfleet --help`` adds to Python's own start."""
    command = str(Path(sys.executable).with_name("runfleet"))
    help_, bare = measure([[command, "--help"], python("pass")], runs=9)
    report("runfleet --help", help_, "python -c pass", bare, "0.2 s more")
    print(f"  difference {help_.seconds - bare.seconds:.3f} s", flush=True)
    _fleet_file()


def _fleet_file() -> None:
    """Print the time to read and check the fleet file, after imports."""
    import datetime as dt

    from ruamel.yaml import YAML

    from runfleet.catalogue.read import read_fleet
    from runfleet.review.fleet import fleet_findings

    text = Path(FLEET).read_text(encoding="utf-8")
    ours: list[float] = []
    parse: list[float] = []
    for _ in range(7):
        start = time.perf_counter()
        fleet_findings(read_fleet(FLEET), dt.date.today())
        ours.append(time.perf_counter() - start)
        start = time.perf_counter()
        YAML(typ="safe", pure=True).load(text)
        parse.append(time.perf_counter() - start)
    a, b = statistics.median(ours), statistics.median(parse)
    print(
        f"read and check {FLEET}: {a:.3f} s; parsing its YAML alone: {b:.3f} s; "
        f"ratio {a / b:.2f} (target 0.3 s)",
        flush=True,
    )
