"""Records of a whole cell and of the stack ``central``, made once."""

from __future__ import annotations

import pytest

from clouds.azure import fleets
from clouds.azure.fleets import Recording


@pytest.fixture(scope="session")
def cell() -> Recording:
    """The first cell: auto-provisioned, private, central stores on Azure too."""
    return fleets.cell_record()


@pytest.fixture(scope="session")
def gpu() -> Recording:
    """The second cell: cluster-autoscaled, and every setting differs."""
    return fleets.cell_record(cell="azure-gpu")


@pytest.fixture(scope="session")
def central() -> Recording:
    """The stack ``central`` on Azure."""
    return fleets.central_record()


@pytest.fixture(scope="session")
def with_aws() -> Recording:
    """The first cell with central stores on AWS."""
    return fleets.cell_record(fleets.fleet("aws"))
