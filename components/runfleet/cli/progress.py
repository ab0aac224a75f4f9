"""Progress of long work: a line per stack on a terminal, silence in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any


class Progress:
    """Shows how far each stack is, on standard error, when that is a terminal."""

    def __init__(self, stacks: Sequence[str]) -> None:
        """Prepare a line for each stack."""
        self._stacks = stacks
        self._bars: Any = None
        self._tasks: dict[str, Any] = {}

    def __enter__(self) -> Progress:
        """Start showing, when somebody looks."""
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import Progress as Bars
            from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

            self._bars = Bars(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                TextColumn("{task.completed:.0f} resources"),
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._bars.start()
            for stack in self._stacks:
                self._tasks[stack] = self._bars.add_task(stack, total=None)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Clear the lines."""
        if self._bars is not None:
            self._bars.stop()

    def event(self, event: Mapping[str, Any]) -> None:
        """Take an event of a rehearsal that names its stack and counts resources."""
        task = self._tasks.get(str(event.get("stack", "")))
        if self._bars is not None and task is not None and "resources" in event:
            self._bars.update(task, completed=event["resources"])
