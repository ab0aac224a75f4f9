"""One rehearsal: run a stack program in this process and return its record.

The program runs as the Pulumi language host runs it: ``__main__.py`` of the
program's folder through :mod:`runpy`, with that folder as working directory and
first on ``sys.path``. Instead of the engine, it talks to
:class:`~runfleet.rehearsal.monitor.RecordingMonitor`.

Three things make two runs alike. The SDK sends each monitor call through the
event loop's executor: :class:`InlineExecutor` runs it at once on the loop's own
thread, so calls happen in the order the program causes them, and no thread
switch costs time. Ids and outputs are derived. And the record lists resources in
the order in which the program *declares* them, not in which they happen to be
ready: a transformation on the root stack notes each declaration.

The SDK keeps its settings in context variables. The run happens in a copy of the
context, so nothing of it remains: one process can rehearse many programs.
"""

from __future__ import annotations

import asyncio
import contextvars
import gc
import logging
import os
import runpy
import sys
import traceback
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pulumi
from pulumi.runtime import Settings, configure, register_stack_transformation
from pulumi.runtime.config import set_all_config
from pulumi.runtime.mocks import MockEngine
from pulumi.runtime.settings import SETTINGS
from pulumi.runtime.stack import run_in_stack

from runfleet.errors import MissingError, RunfleetError
from runfleet.rehearsal.callbacks import LocalCallbacks
from runfleet.rehearsal.emulators.base import Emulator
from runfleet.rehearsal.errors import RehearsalError
from runfleet.rehearsal.monitor import Pending, RecordingMonitor, Registered
from runfleet.rehearsal.record import (
    STACK_TYPE,
    Record,
    ResourceRecord,
    read_record,
)
from runfleet.rehearsal.values import SHORTEST_SCRUBBED, mask, scrub

Program = Callable[[], Any] | str | Path
"""A function that declares resources, or the folder of a stack program."""

Records = Mapping[str, Record] | str | Path
"""Records of other stacks by name, or the folder that holds ``<stack>/record.json``."""


class InlineExecutor(ThreadPoolExecutor):
    """Runs each call at once, on the calling thread.

    asyncio accepts only a thread pool as default executor; this one starts no
    thread. A call that answers with :class:`Pending` is awaited on the loop.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Make an executor for one event loop."""
        super().__init__(max_workers=1)
        self._loop = loop

    def submit(
        self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Future[Any]:
        """Run ``fn`` and return a future that is done, or will be on the loop."""
        future: Future[Any] = Future()
        try:
            result = fn(*args, **kwargs)
            pending = result if isinstance(result, Pending) else _pending_in(result)
        except BaseException as error:
            future.set_exception(error)
            return future
        if pending is None:
            future.set_result(result)
            return future
        task = self._loop.create_task(pending.answer)
        task.add_done_callback(lambda done: _settle(future, done, result))
        return future


def rehearse(
    program: Program,
    *,
    project: str,
    stack: str,
    config: Mapping[str, str] | None = None,
    secret_keys: frozenset[str] | set[str] = frozenset(),
    records: Records | None = None,
    emulate: bool = True,
    on_resource: Registered | None = None,
    sources: Mapping[str, str] | None = None,
    root: Path | str | None = None,
    organization: str = "organization",
    preview: bool = True,
) -> Record:
    """Run a stack program without a cloud account and return its record.

    Args:
        program: A function, or the folder that holds ``__main__.py``.
        project: Name of the Pulumi project.
        stack: Name of the stack.
        config: Settings by ``namespace:key``; objects as JSON text.
        secret_keys: Keys of ``config`` whose values are secrets.
        records: Records of the stacks that this one reads.
        emulate: Also create AWS resources in moto, which refuses bad ones.
        on_resource: Called after each registration, for progress.
        sources: Files the program was made from, with SHA-256 digests, kept in
            the record as they are.
        root: Folder of ``Pulumi.yaml``; the program's folder when None.
        organization: Name that ``pulumi.get_organization()`` returns.
        preview: What ``pulumi.runtime.is_dry_run()`` tells the program. In a
            preview an output that was not derived is unknown; else it is None.

    Returns:
        The record; identical from run to run, with or without ``emulate``.

    Raises:
        RehearsalError: The program raised, or a resource was refused.
        RunfleetError: What the program itself raised, when it is one of ours.
    """
    emulators = _emulators() if emulate else {}
    monitor = RecordingMonitor(
        project,
        stack,
        _references(records, stack),
        emulators=emulators,
        on_resource=on_resource,
    )
    settings = Settings(
        project=project,
        stack=stack,
        monitor=monitor,
        engine=MockEngine(logging.getLogger("runfleet.rehearsal")),
        dry_run=preview,
        organization=organization,
        root_directory=str(_root(root, program)),
    )
    values = dict(config or {})
    run = _Run(program, monitor, settings, values, sorted(secret_keys))
    try:
        with _rare_collections():
            order = contextvars.copy_context().run(run.execute)
    finally:
        for emulator in emulators.values():
            emulator.close()
    texts = {
        values[key]
        for key in secret_keys
        if len(values.get(key, "")) >= SHORTEST_SCRUBBED
    }
    return _record(monitor, project, stack, dict(sources or {}), order, texts)


class _Run:
    """The run of one program on an event loop of its own."""

    def __init__(
        self,
        program: Program,
        monitor: RecordingMonitor,
        settings: Settings,
        config: dict[str, str],
        secret_keys: list[str],
    ) -> None:
        self._program = program
        self._monitor = monitor
        self._settings = settings
        self._config = config
        self._secret_keys = secret_keys
        self._declared: list[pulumi.Resource] = []

    def execute(self) -> list[str]:
        """Run to the end and return the URNs in the order of declaration."""
        loop = asyncio.new_event_loop()
        loop.set_default_executor(InlineExecutor(loop))
        # A failed program leaves futures that nobody reads; they are its
        # consequences and not worth a message each.
        loop.set_exception_handler(lambda _loop, _context: None)
        try:
            return loop.run_until_complete(self._main())
        finally:
            _cancel_all(loop)
            loop.close()

    async def _main(self) -> list[str]:
        from pulumi.runtime.settings import ROOT

        ROOT.set(None)
        configure(self._settings)
        set_all_config(self._config, self._secret_keys)
        callbacks = LocalCallbacks(self._monitor)
        setattr(SETTINGS, "callbacks", callbacks)  # noqa: B010 - has no setter type
        self._monitor.callbacks = callbacks
        try:
            await run_in_stack(self._start)
        except (KeyboardInterrupt, asyncio.CancelledError):
            raise
        except BaseException as error:
            raise self._explain(error) from error
        if self._monitor.failure is not None:
            raise self._monitor.failure
        order: list[str] = []
        for resource in self._declared:
            urn = await resource.urn.future()
            if urn is not None:
                order.append(urn)
        return order

    def _start(self) -> Any:
        def note(args: pulumi.ResourceTransformationArgs) -> None:
            self._declared.append(args.resource)

        register_stack_transformation(note)
        if not _is_path(self._program):
            return cast("Callable[[], Any]", self._program)()
        folder = Path(cast("str | Path", self._program)).resolve()
        main = folder / "__main__.py"
        if not main.is_file():
            raise MissingError(
                f"{main} is not there: this folder holds no stack program",
                "set 'main' in Pulumi.yaml to the folder of the program",
            )
        with _as_language_host(folder):
            runpy.run_path(str(folder), run_name="__main__")
        return None

    def _explain(self, error: BaseException) -> RunfleetError:
        """Return the error to show: the first refusal, or what the program raised."""
        if self._monitor.failure is not None:
            return self._monitor.failure
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, RunfleetError):
                return cause
            cause = cause.__cause__
        if isinstance(error, SystemExit):
            return RehearsalError("", f"the program ended with exit({error.code!r})")
        text = str(error).strip() or "no message"
        reason = f"{type(error).__name__}: {text}{_where(error)}"
        return RehearsalError(_subject(error), reason)


def _record(
    monitor: RecordingMonitor,
    project: str,
    stack: str,
    sources: dict[str, str],
    order: list[str],
    texts: set[str],
) -> Record:
    found = monitor.records()
    stacks = [urn for urn, record in found.items() if record.type == STACK_TYPE]
    urns = dict.fromkeys([*stacks, *order])
    resources = [found.pop(urn) for urn in urns if urn in found]
    resources += found.values()
    outputs = cast("dict[str, Any]", mask(monitor.stack_outputs))
    record = Record(
        project=project,
        stack=stack,
        sources=sources,
        resources=tuple(resources),
        outputs=outputs,
        references=tuple(sorted(monitor.references)),
        invokes=tuple(sorted(monitor.invokes, key=str)),
        pins=_list(outputs.get("pins")),
        unresolved_pins=_list(outputs.get("unresolved_pins")),
    )
    return _scrubbed(record, texts) if texts else record


def _scrubbed(record: Record, texts: set[str]) -> Record:
    ordered = sorted(texts, key=lambda text: (-len(text), text))
    return replace(
        record,
        resources=tuple(_scrubbed_resource(r, ordered) for r in record.resources),
        outputs=scrub(record.outputs, ordered),
        invokes=tuple(scrub(record.invokes, ordered)),
        pins=tuple(scrub(record.pins, ordered)),
        unresolved_pins=tuple(scrub(record.unresolved_pins, ordered)),
    )


def _scrubbed_resource(resource: ResourceRecord, texts: list[str]) -> ResourceRecord:
    return replace(
        resource,
        id=scrub(resource.id, texts),
        inputs=scrub(resource.inputs, texts),
        outputs=scrub(resource.outputs, texts),
        replacement_trigger=scrub(resource.replacement_trigger, texts),
    )


def _list(value: Any) -> tuple[Any, ...]:
    return tuple(cast("list[Any]", value)) if isinstance(value, list) else ()


def _is_path(program: Program) -> bool:
    return isinstance(program, (str, Path))


def _root(root: Path | str | None, program: Program) -> Path:
    if root is None:
        root = cast("str | Path", program) if _is_path(program) else Path()
    return Path(root).resolve()


def _emulators() -> dict[str, Emulator]:
    from runfleet.rehearsal.emulators.aws import AwsEmulator

    return {"aws": AwsEmulator()}


def _references(
    records: Records | None, stack: str
) -> Callable[[str], Mapping[str, Any]]:
    def read(name: str) -> Mapping[str, Any]:
        if isinstance(records, Mapping):
            if name in records:
                return records[name].outputs
        elif records is not None:
            path = Path(records) / name / "record.json"
            if path.is_file():
                return read_record(path).outputs
        raise MissingError(
            f"stack {stack} reads the outputs of stack {name}, which has no record yet",
            f"runfleet rehearse {name}",
        )

    return read


@contextmanager
def _rare_collections() -> Generator[None]:
    """Let the garbage collector run rarely.

    The SDK makes a great many small objects that all live to the end; looking
    through them again and again takes half of a rehearsal's time.
    """
    before = gc.get_threshold()
    gc.set_threshold(100_000, 50, 50)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def _as_language_host(folder: Path) -> Generator[None]:
    """Give the program the working directory and paths that it has in a deployment."""
    arguments, path, directory = sys.argv, list(sys.path), Path.cwd()
    sys.argv = [str(folder)]
    sys.path.insert(0, str(folder))
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(directory)
        sys.argv = arguments
        sys.path[:] = path


def _pending_in(result: Any) -> Pending | None:
    """Return the pending answer in what the SDK's invoke makes of it."""
    if isinstance(result, tuple):
        for item in cast("tuple[Any, ...]", result):
            if isinstance(item, Pending):
                return item
    return None


def _settle(future: Future[Any], task: asyncio.Task[Any], shape: Any) -> None:
    if task.cancelled():
        future.cancel()
        return
    error = task.exception()
    if error is not None:
        future.set_exception(error)
        return
    answer = task.result()
    if isinstance(shape, tuple):
        members = cast("tuple[Any, ...]", shape)
        answer = tuple(answer if isinstance(m, Pending) else m for m in members)
    future.set_result(answer)


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))


_SDK = str(Path(pulumi.__file__).parent)
_LIBRARY = str(Path(os.__file__).parent)


def _frames(error: BaseException) -> list[tuple[Any, int]]:
    """Return (frame, line) of an error and its causes, the innermost first."""
    found: list[tuple[Any, int]] = []
    current: BaseException | None = error
    while current is not None:
        steps = list(traceback.walk_tb(current.__traceback__))
        found[:0] = reversed(steps)
        current = current.__cause__ or current.__context__
    return found


def _subject(error: BaseException) -> str:
    """Return type and name of the innermost resource that was being made."""
    for frame, _ in _frames(error):
        values = frame.f_locals
        first = frame.f_code.co_varnames[:1]
        owner = values.get(first[0]) if first else None
        for found in (owner, values.get("res")):
            if not isinstance(found, pulumi.Resource):
                continue
            if not hasattr(found, "_name"):
                name = values.get("resource_name")
                if isinstance(name, str):
                    return f"{type(found).__name__} {name!r}"
            elif found.pulumi_resource_type != STACK_TYPE:
                return f"{found.pulumi_resource_type} {found.pulumi_resource_name!r}"
    return ""


def _where(error: BaseException) -> str:
    """Return `` (file:line)`` of the innermost frame of the program's own code."""
    for frame, line in _frames(error):
        name: str = frame.f_code.co_filename
        if name.startswith((_SDK, _LIBRARY, "<")) or "site-packages" in name:
            continue
        if Path(name).parent == Path(__file__).parent:
            continue
        return f" ({_short(name)}:{line})"
    return ""


def _short(name: str) -> str:
    path = Path(name)
    if path.is_relative_to(Path.cwd()):
        return str(path.relative_to(Path.cwd()))
    return str(Path(*path.parts[-2:]))
