from __future__ import annotations

import pytest

from runfleet.placement import CellPlan
from runners.cells import Cluster, fleet_of, plan_of, record_runners


@pytest.fixture(scope="session")
def plan() -> CellPlan:
    return plan_of(fleet_of())


@pytest.fixture(scope="session")
def cluster(plan: CellPlan) -> Cluster:
    return record_runners(plan)
