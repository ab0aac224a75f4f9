"""Rehearse one stack in a process of its own.

``python -m runfleet.rehearsal.worker STACK --root DIR --out DIR`` rehearses one
stack of a project and writes ``OUT/STACK/record.json``. A process of its own gives
the program a fresh Pulumi runtime, and lets several stacks run at once.

Standard output carries one JSON object per line for the parent process:

- ``{"event": "progress", "stack", "resources", "type"}`` every few resources;
- ``{"event": "log", "stack", "severity", "message"}`` for what the program logs;
- ``{"event": "done", "stack", "resources", "record", "seconds"}`` at the end;
- ``{"event": "error", "stack", "message", "exit_code"}`` instead, on failure.

What the program prints goes to standard error, so that it cannot be taken for an
event. The exit status is 0, or the error's exit code.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import os
import sys
import time
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TextIO

from runfleet.errors import RunfleetError
from runfleet.rehearsal.record import Record, ResourceRecord, write_record
from runfleet.rehearsal.settings import Project, read_project, read_stack_settings

PROGRESS_STEP = 20
"""A progress event is sent every so many resources."""


class Events:
    """Writes events of one stack to a stream."""

    def __init__(self, stack: str, stream: TextIO) -> None:
        """Keep the stack's name for every event."""
        self._stack = stack
        self._stream = stream
        self._count = 0

    def send(self, event: str, **members: object) -> None:
        """Write one event and flush it."""
        line = {"event": event, "stack": self._stack, **members}
        self._stream.write(json.dumps(line, sort_keys=True) + "\n")
        self._stream.flush()

    def resource(self, record: ResourceRecord) -> None:
        """Count a resource and now and then say how many there are."""
        self._count += 1
        if self._count % PROGRESS_STEP == 0:
            self.send("progress", resources=self._count, type=record.type)


class _LogEvents(logging.Handler):
    """Sends what the program logs through Pulumi as events."""

    def __init__(self, events: Events) -> None:
        super().__init__(logging.INFO)
        self._events = events

    def emit(self, record: logging.LogRecord) -> None:
        severity = record.levelname.lower()
        self._events.send("log", severity=severity, message=record.getMessage())


def rehearse_stack(
    root: Path,
    stack: str,
    out: Path,
    events: Events,
    emulate: bool = True,
    sources: Iterable[Path] = (),
) -> Record:
    """Rehearse one stack of a project and write its record.

    Args:
        root: Folder of ``Pulumi.yaml``.
        stack: Name of the stack.
        out: Folder of all records; other stacks' records are read from it.
        events: Where progress goes.
        emulate: Also create AWS resources in moto.
        sources: Files whose digests the record keeps, besides the settings files
            and the program's entry.

    Returns:
        The record that was written to ``out/<stack>/record.json``.
    """
    project = read_project(root)
    settings = read_stack_settings(project, stack)
    # Pulumi is imported only now: bad settings are reported without its half
    # second.
    from runfleet.rehearsal.runner import rehearse

    record = rehearse(
        project.program,
        project=project.name,
        stack=stack,
        config=settings.config,
        secret_keys=settings.secret_keys,
        records=out,
        emulate=emulate,
        on_resource=events.resource,
        sources=digests(project, stack, sources),
        root=root,
    )
    write_record(record, out / stack / "record.json")
    return record


def digests(project: Project, stack: str, extra: Iterable[Path]) -> dict[str, str]:
    """Return the SHA-256 of the files a stack is made from, by relative path."""
    root = project.root.resolve()
    files = [
        root / "Pulumi.yaml",
        project.stack_file(stack),
        project.program / "__main__.py",
        *extra,
    ]
    found: dict[str, str] = {}
    for file in files:
        path = file.resolve()
        if not path.is_file():
            continue
        name = path.relative_to(root) if path.is_relative_to(root) else path.name
        found[str(name)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the worker and return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m runfleet.rehearsal.worker",
        description="Rehearse one stack; events go to standard output as JSON lines.",
    )
    parser.add_argument("stack", help="name of the stack")
    parser.add_argument("--root", type=Path, default=Path(), help="project folder")
    parser.add_argument("--out", type=Path, required=True, help="folder of records")
    parser.add_argument("--no-emulate", action="store_true", help="leave moto out")
    parser.add_argument(
        "--source",
        type=Path,
        action="append",
        default=[],
        help="file whose digest the record keeps (repeatable)",
    )
    found = parser.parse_args(arguments)
    stack: str = found.stack
    with _events_stream() as stream:
        events = Events(stack, stream)
        _quiet(events)
        started = time.monotonic()
        out: Path = found.out.resolve()
        try:
            record = rehearse_stack(
                found.root,
                stack,
                out,
                events,
                emulate=not found.no_emulate,
                sources=found.source,
            )
        except RunfleetError as error:
            events.send("error", message=str(error), exit_code=error.exit_code)
            return error.exit_code
        events.send(
            "done",
            resources=len(record.resources),
            record=str(out / stack / "record.json"),
            seconds=round(time.monotonic() - started, 3),
        )
    return 0


def _events_stream() -> TextIO:
    """Take standard output for events and send the program's prints elsewhere."""
    sys.stdout.flush()
    stream = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return stream


def _quiet(events: Events) -> None:
    """Turn log messages into events and drop the SDK's consequences of failures."""
    logger = logging.getLogger("runfleet.rehearsal")
    logger.addHandler(_LogEvents(events))
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    warnings.filterwarnings("ignore", message="coroutine .* was never awaited")


if __name__ == "__main__":
    sys.exit(main())
