"""Placement: which pools and machines serve which class in which cell.

From the bottom up: :mod:`~runfleet.placement.tables` (facts),
:mod:`~runfleet.placement.fit` (what a job really gets),
:mod:`~runfleet.placement.offers` (machines at a price),
:mod:`~runfleet.placement.ladder` (the best offers of a class),
:mod:`~runfleet.placement.explain` (why the others lost),
:mod:`~runfleet.placement.generate` (pools for classes away from their own),
:mod:`~runfleet.placement.moves` (one word moves a fleet).
:mod:`runfleet.placement.lock` holds the committed decision and
:mod:`runfleet.placement.plan` what one cell's stack builds from it. Pure functions;
no cloud and no Pulumi.
"""

from runfleet.placement.fallbacks import Attempt, attempts, fallbacks_of
from runfleet.placement.lock import Lock, LockError, Placed, Rung, make_lock, read_lock
from runfleet.placement.moves import MovableFleet, Placement, Target
from runfleet.placement.plan import (
    CellPlan,
    CentralPlan,
    NodePoolPlan,
    PlannedClass,
    plan_cell,
    plan_central,
)

__all__ = [
    "Attempt",
    "CellPlan",
    "CentralPlan",
    "Lock",
    "LockError",
    "MovableFleet",
    "NodePoolPlan",
    "Placed",
    "Placement",
    "PlannedClass",
    "Rung",
    "Target",
    "attempts",
    "fallbacks_of",
    "make_lock",
    "plan_cell",
    "plan_central",
    "read_lock",
]
