"""Placement: which pools and machines serve which class in which cell.

:mod:`runfleet.placement.lock` holds the committed decision and
:mod:`runfleet.placement.plan` what one cell's stack builds from it. Pure functions;
no cloud and no Pulumi.
"""

from runfleet.placement.lock import Lock, LockError, Placed, Rung, make_lock, read_lock
from runfleet.placement.plan import (
    CellPlan,
    CentralPlan,
    NodePoolPlan,
    PlannedClass,
    plan_cell,
    plan_central,
)

__all__ = [
    "CellPlan",
    "CentralPlan",
    "Lock",
    "LockError",
    "NodePoolPlan",
    "Placed",
    "PlannedClass",
    "Rung",
    "make_lock",
    "plan_cell",
    "plan_central",
    "read_lock",
]
