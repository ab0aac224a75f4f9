"""The records of the whole fleet, made once."""

from __future__ import annotations

import pytest

from clouds.gcp import fleets
from runfleet.clouds.protocols import StackSettings
from runfleet.rehearsal.record import Record


@pytest.fixture(scope="session")
def cell() -> Record:
    """The first cell: private, with a node pool of every kind."""
    return fleets.cell_record(fleets.plan_of())


@pytest.fixture(scope="session")
def second() -> Record:
    """The second cell, which differs in every setting."""
    return fleets.cell_record(
        fleets.plan_of("gcp-two"),
        StackSettings(deploy_role="up@demo-ci.iam.gserviceaccount.com"),
    )


@pytest.fixture(scope="session")
def central() -> Record:
    """The stack ``central``, with the deployment's own identity."""
    settings = StackSettings(values={"deployRepository": "demo-org/demo"})
    return fleets.central_record(fleets.central_of(), settings)
