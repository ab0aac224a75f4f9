"""Rehearses every stack once and puts each cell's objects on an API server.

One control plane serves one cell, because two cells share names of objects that
belong to no namespace. A cell's objects are applied once, then again; the tests only
look. Where no control plane can be had the tests are skipped with one line that says
so, and fail when `CI` is `true`: a check that was never made must not look green.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

from cluster.harness.applied import (
    Key,
    Outcome,
    apply_waves,
    install,
    settle,
    stored,
)
from cluster.harness.binaries import Binaries, Unavailable, find_binaries, stop
from cluster.harness.classes import RunnerClass, classes_of
from cluster.harness.client import Api, Object
from cluster.harness.control_plane import control_plane
from cluster.harness.recorded import Recorded, definitions, waves
from runfleet.rehearsal.record import Record, read_record
from runfleet.rehearsal.stacks import CENTRAL, rehearse_stacks

ROOT = Path(__file__).parents[2]
STACKS = sorted(
    path.name.removeprefix("Pulumi.").removesuffix(".yaml")
    for path in (ROOT / "stacks").glob("Pulumi.*.yaml")
)
SUMMARY = pytest.StashKey[list[str]]()
CELLS = [stack for stack in STACKS if stack != CENTRAL]


@dataclass(frozen=True, repr=False)
class Cell:
    """A cell whose objects are on an API server.

    Attributes:
        stack: Name of its stack.
        record: The record of the stack.
        api: The API server, with all rights.
        waves: Its objects in the order of their dependencies.
        first: What became of them the first time.
        before: What the API server held before the second time.
        second: What became of them the second time.
    """

    stack: str
    record: Record
    api: Api
    waves: list[list[Recorded]]
    first: list[Outcome]
    before: Mapping[Key, Object]
    second: list[Outcome]

    @property
    def objects(self) -> list[Recorded]:
        """All its objects."""
        return [found for wave in self.waves for found in wave]

    @cached_property
    def classes(self) -> list[RunnerClass]:
        """Its runner classes."""
        return classes_of(self.objects)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "binaries" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.cluster)
            item.add_marker(pytest.mark.allow_hosts(["127.0.0.1"]))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    for line in config.stash.get(SUMMARY, []):
        terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def binaries() -> Binaries:
    try:
        return find_binaries(lambda text: print(text, file=sys.__stderr__, flush=True))
    except Unavailable as missing:
        stop(f"no API server: {missing}")


@pytest.fixture(scope="session")
def records(
    binaries: Binaries, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Record]:
    out = tmp_path_factory.mktemp("records")
    outcomes = rehearse_stacks(ROOT, STACKS, out, emulate=False)
    errors = {found.stack: found.error for found in outcomes if found.exit_code}
    assert not errors
    return {found.stack: read_record(found.record or "") for found in outcomes}


@pytest.fixture(scope="session", params=CELLS)
def cell(
    request: pytest.FixtureRequest, binaries: Binaries, records: dict[str, Record]
) -> Iterator[Cell]:
    record = records[request.param]
    session = request.session
    with control_plane(binaries, lambda: bool(session.testsfailed)) as api:
        install(api, definitions())
        found = waves(record)
        flat = [one for wave in found for one in wave]
        first = apply_waves(api, found)
        settle(api)
        before = stored(api, flat)
        second = apply_waves(api, found)
        yield Cell(request.param, record, api, found, first, before, second)
        counts = api.counts
        request.config.stash.setdefault(SUMMARY, []).append(
            f"{request.param}: {len(flat)} objects applied twice, "
            f"{counts['reviews']} reviews asked, {counts['pods taken']} pods taken, "
            f"{counts['pods refused']} pods refused"
        )
