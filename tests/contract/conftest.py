"""The cases, each rehearsed once."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest

from contract.floors import FloorCase, cases
from contract.records import Rehearsed, read_project, rehearse_project, write_project


@pytest.fixture(scope="session")
def rehearsals(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str], Rehearsed]:
    """Rehearse a case when it is first asked for."""
    known = {case.name: case for case in cases()}

    @functools.cache
    def rehearsed(name: str) -> Rehearsed:
        case = known[name]
        root = tmp_path_factory.mktemp(name)
        fleet = write_project(root, case.fleet, case.cell)
        rehearse_project(root, case.cell, root / "out")
        return read_project(root, fleet, case.cell, root / "out")

    return rehearsed


@pytest.fixture(params=cases(), ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> FloorCase:
    return request.param


@pytest.fixture
def made(case: FloorCase, rehearsals: Callable[[str], Rehearsed]) -> Rehearsed:
    return rehearsals(case.name)
