"""The fleet file: pydantic models, human units, roles and labels. Pure data.

Nothing here knows a cloud or Pulumi. :func:`load_fleet` reads a file and reports
every problem in it at once; the models' own docstrings are the reference.
"""

from runfleet.spec.cells import Cell, Provider
from runfleet.spec.classes import PlacementMode, RunnerClass
from runfleet.spec.findings import Finding, Severity, Waiver, Waivers
from runfleet.spec.fleet import Fleet
from runfleet.spec.load import FleetFile, build_fleet, load_fleet
from runfleet.spec.pools import Capacity, Pool, PoolMachine, Taint, Toleration
from runfleet.spec.roles import (
    Grant,
    Role,
    Scope,
    StoreKind,
    Trigger,
    Trust,
    Verb,
    matrix,
)
from runfleet.spec.stores import Budget, Central, Reservation, Store, Tenant
from runfleet.spec.units import Duration, Money, Percent, Range, Size

__all__ = [
    "Budget",
    "Capacity",
    "Cell",
    "Central",
    "Duration",
    "Finding",
    "Fleet",
    "FleetFile",
    "Grant",
    "Money",
    "Percent",
    "PlacementMode",
    "Pool",
    "PoolMachine",
    "Provider",
    "Range",
    "Reservation",
    "Role",
    "RunnerClass",
    "Scope",
    "Severity",
    "Size",
    "Store",
    "StoreKind",
    "Taint",
    "Tenant",
    "Toleration",
    "Trigger",
    "Trust",
    "Verb",
    "Waiver",
    "Waivers",
    "build_fleet",
    "load_fleet",
    "matrix",
]
