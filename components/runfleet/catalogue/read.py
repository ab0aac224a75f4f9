"""Read a fleet file with the checks that need the table of machines.

``runfleet.spec`` reads a fleet file without knowing machines. Commands want every
problem of a file in one report, so they read it here.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path as FilePath

from runfleet.catalogue.checks import machine_problems
from runfleet.catalogue.machines import Machines
from runfleet.errors import Problem
from runfleet.spec.fleet import Fleet
from runfleet.spec.load import Check, FleetFile, build_fleet, load_fleet
from runfleet.spec.source import Source


def read_fleet(path: str | FilePath, machines: Machines | None = None) -> FleetFile:
    """Read a fleet file and check it, the machines that it names included.

    Args:
        path: The file.
        machines: The table of machines; default: the package's own.

    Raises:
        InputError: The file has problems; all of them are in it.
    """
    return load_fleet(path, [_check(machines)])


def read_fleet_source(source: Source, machines: Machines | None = None) -> FleetFile:
    """Check a fleet file that is parsed already; see :func:`read_fleet`."""
    return build_fleet(source, [_check(machines)])


def _check(machines: Machines | None) -> Check:
    def check(fleet: Fleet, source: Source) -> Iterable[Problem]:
        table = Machines.load() if machines is None else machines
        return machine_problems(fleet, source, table)

    return check
