"""Measure whole processes: wall seconds and peak memory, median of several runs.

Two commands that are compared run in turns (A B A B), so that a machine that gets
slower for a while slows both.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """The median of several runs.

    Attributes:
        seconds: Wall seconds.
        peak_mib: Peak resident memory in MiB.
    """

    seconds: float
    peak_mib: float


def measure(commands: Sequence[Sequence[str]], runs: int = 3) -> list[Timing]:
    """Run commands in turns and return the median of each.

    Args:
        commands: Argument lists; each runs once before it counts.
        runs: Counted runs of each.

    Raises:
        RuntimeError: A command failed; its output is in the message.
    """
    samples: list[list[Timing]] = [[] for _ in commands]
    for turn in range(runs + 1):
        for index, command in enumerate(commands):
            timing = _once(command)
            if turn:
                samples[index].append(timing)
    return [
        Timing(
            statistics.median(t.seconds for t in found),
            statistics.median(t.peak_mib for t in found),
        )
        for found in samples
    ]


def python(code: str, *arguments: str) -> list[str]:
    """Return the command that runs Python code in this environment."""
    return [sys.executable, "-c", code, *arguments]


def report(name: str, ours: Timing, other: str, theirs: Timing, target: str) -> None:
    """Print one comparison as a line."""
    ratio = ours.seconds / theirs.seconds if theirs.seconds else float("inf")
    print(
        f"{name}: {ours.seconds:.3f} s, {ours.peak_mib:.0f} MiB; "
        f"{other}: {theirs.seconds:.3f} s; ratio {ratio:.2f} (target {target})",
        flush=True,
    )


def _once(command: Sequence[str]) -> Timing:
    with tempfile.TemporaryFile() as output:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=output, stderr=output)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            output.seek(0)
            text = output.read().decode(errors="replace")
            raise RuntimeError(f"{' '.join(command)[:200]} failed:\n{text}")
    return Timing(seconds, usage.ru_maxrss / 1024)
