"""Rehearsals of the small fleet, made once."""

from __future__ import annotations

import pytest

from clouds.ibm.fleets import (
    cell_program,
    central_of,
    central_program,
    imported,
    plan_of,
    run,
)
from runfleet.placement.plan import CellPlan, CentralPlan
from runfleet.rehearsal.record import Record


@pytest.fixture(scope="session")
def plan() -> CellPlan:
    return plan_of()


@pytest.fixture(scope="session")
def central_plan() -> CentralPlan:
    return central_of()


@pytest.fixture(scope="session")
def central(central_plan: CentralPlan) -> Record:
    return run(central_program(central_plan), "central")


@pytest.fixture(scope="session")
def cell(plan: CellPlan, central: Record) -> Record:
    return run(cell_program(plan, central=imported(central)))
