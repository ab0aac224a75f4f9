"""Rehearse several stacks at once, each in a worker process.

A stack that reads another one's outputs needs that one's record, so stacks run in
order: ``central`` first (every cell may read it), then the cells side by side.
Other orders are given explicitly. A failure of one stack stops only those that
wait for it, so that one run reports every stack's error.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from runfleet.errors import InputError, Problem

CENTRAL = "central"
"""The stack that all others may read."""

Event = Mapping[str, Any]
"""One event of a worker; see :mod:`runfleet.rehearsal.worker`."""


@dataclass(frozen=True)
class StackOutcome:
    """How the rehearsal of one stack ended.

    Attributes:
        stack: Name of the stack.
        record: The record's file, or None when there is none.
        resources: Number of resources recorded.
        seconds: Time of the rehearsal itself, without process start.
        error: The error's message; empty when all went well.
        exit_code: 0, or the exit code of the error.
    """

    stack: str
    record: Path | None = None
    resources: int = 0
    seconds: float = 0.0
    error: str = ""
    exit_code: int = 0


def rehearse_stacks(
    root: Path | str,
    stacks: Sequence[str],
    out: Path | str,
    emulate: bool = True,
    jobs: int | None = None,
    on_event: Callable[[Event], None] | None = None,
    after: Mapping[str, Sequence[str]] | None = None,
    sources: Sequence[Path] = (),
) -> tuple[StackOutcome, ...]:
    """Rehearse stacks in worker processes.

    Args:
        root: Folder of ``Pulumi.yaml``.
        stacks: Names of the stacks; the result keeps this order.
        out: Folder that receives ``<stack>/record.json``.
        emulate: Also create AWS resources in moto.
        jobs: Workers at a time; the number of processors when None.
        on_event: Called with every event, one at a time.
        after: Stacks that each stack waits for. When None, all wait for
            ``central``. Names that are not in ``stacks`` are not waited for.
        sources: Further files whose digests the records keep.

    Returns:
        One outcome for each stack.

    Raises:
        InputError: ``after`` goes in a circle.
    """
    wanted = list(dict.fromkeys(stacks))
    waits = _waits(wanted, after)
    lock = threading.Lock()

    def send(event: Event) -> None:
        if on_event is not None:
            with lock:
                on_event(event)

    outcomes: dict[str, StackOutcome] = {}
    running: dict[Future[StackOutcome], str] = {}
    pending = list(wanted)
    workers = _Workers(Path(root), Path(out), emulate, tuple(sources), send)
    with ThreadPoolExecutor(max_workers=max(1, jobs or os.cpu_count() or 1)) as pool:
        try:
            while pending or running:
                for stack in [s for s in pending if waits[s] <= outcomes.keys()]:
                    pending.remove(stack)
                    failed = sorted(s for s in waits[stack] if outcomes[s].exit_code)
                    if failed:
                        outcomes[stack] = _not_run(stack, failed, send)
                    else:
                        running[pool.submit(workers.run, stack)] = stack
                if running:
                    done, _ = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        outcomes[running.pop(future)] = future.result()
        except BaseException:
            workers.stop()
            raise
    return tuple(outcomes[stack] for stack in wanted)


class _Workers:
    """Starts worker processes and reads their events."""

    def __init__(
        self,
        root: Path,
        out: Path,
        emulate: bool,
        sources: tuple[Path, ...],
        send: Callable[[Event], None],
    ) -> None:
        self._root = root
        self._out = out
        self._emulate = emulate
        self._sources = sources
        self._send = send
        self._processes: list[subprocess.Popen[str]] = []

    def run(self, stack: str) -> StackOutcome:
        """Run one worker to its end."""
        command = [sys.executable, "-m", "runfleet.rehearsal.worker", stack]
        command += ["--root", str(self._root), "--out", str(self._out)]
        command += [] if self._emulate else ["--no-emulate"]
        for source in self._sources:
            command += ["--source", str(source)]
        outcome: StackOutcome | None = None
        with subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            env=_environment(),
        ) as process:
            self._processes.append(process)
            noise: list[str] = []
            reader = threading.Thread(target=_drain, args=(process.stderr, noise))
            reader.start()
            for line in process.stdout or ():
                event = cast("Event", json.loads(line))
                outcome = _outcome(event) or outcome
                self._send(event)
            reader.join()
            status = process.wait()
        if outcome is not None:
            return outcome
        tail = "".join(noise[-20:]).strip()
        text = f"the worker ended with status {status} and no result"
        error = {
            "event": "error",
            "stack": stack,
            "message": f"{text}\n{tail}" if tail else text,
            "exit_code": 1,
        }
        self._send(error)
        return StackOutcome(stack, error=str(error["message"]), exit_code=1)

    def stop(self) -> None:
        """End all workers that still run."""
        for process in self._processes:
            if process.poll() is None:
                process.terminate()


def _drain(stream: Any, lines: list[str]) -> None:
    lines.extend(stream)


def _waits(
    stacks: Sequence[str], after: Mapping[str, Sequence[str]] | None
) -> dict[str, set[str]]:
    known = set(stacks)
    if after is None:
        first = known & {CENTRAL}
        return {stack: first - {stack} for stack in stacks}
    waits = {stack: set(after.get(stack, ())) & known for stack in stacks}
    ready: set[str] = set()
    while len(ready) < len(known):
        free = {stack for stack in known - ready if waits[stack] <= ready}
        if not free:
            circle = ", ".join(sorted(known - ready))
            message = f"these stacks wait for each other: {circle}"
            raise InputError([Problem("stacks", 0, "after", message)])
        ready |= free
    return waits


def _not_run(
    stack: str, failed: Sequence[str], send: Callable[[Event], None]
) -> StackOutcome:
    names = ", ".join(failed)
    message = f"not rehearsed: it reads the outputs of {names}, which failed"
    send({"event": "error", "stack": stack, "message": message, "exit_code": 1})
    return StackOutcome(stack, error=message, exit_code=1)


def _outcome(event: Event) -> StackOutcome | None:
    if event["event"] == "done":
        return StackOutcome(
            event["stack"],
            record=Path(event["record"]),
            resources=event["resources"],
            seconds=event["seconds"],
        )
    if event["event"] == "error":
        return StackOutcome(
            event["stack"], error=event["message"], exit_code=event["exit_code"]
        )
    return None


def _environment() -> dict[str, str]:
    """Return the environment of a worker: this package, and no credentials."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("AWS_", "AZURE_", "ARM_", "GOOGLE_", "PULUMI_"))
    }
    package = str(Path(__file__).resolve().parents[2])
    others = [path for path in kept.get("PYTHONPATH", "").split(os.pathsep) if path]
    kept["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([package, *others]))
    return kept
