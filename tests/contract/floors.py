"""The floors: one entry each, and one explicit list of those that are not here yet.

To plug a floor in:

1. write ``tests/contract/<provider>.py`` with a :class:`~contract.facts.Facts` and a
   list ``CASES`` of :class:`FloorCase`;
2. move its name from :data:`NOT_PLUGGED_IN` to :data:`PLUGGED_IN`.

Nothing else changes: every promise and every mutation of the suite then runs on it. A
provider of the fleet file that stands in neither place fails the suite.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec

from contract.facts import Facts
from runfleet.rehearsal.record import Record

Break = Callable[[Record], Record]
"""Returns a record in which one promise is broken, as a mistake would break it."""

PLUGGED_IN = ("aws",)
"""Providers with a module here."""

NOT_PLUGGED_IN: Mapping[str, str] = {
    "gcp": "the facts of gcp for this suite are not written yet",
    "azure": "the facts of azure for this suite are not written yet",
    "ibm": "the facts of ibm for this suite are not written yet",
    "own": "the package runfleet.clouds.own is not complete yet",
}
"""Providers without one, with the reason. The suite reports each as skipped."""


@dataclass(frozen=True)
class FloorCase:
    """One fleet on one floor.

    Attributes:
        name: Name in test ids, such as ``aws-central-elsewhere``.
        provider: The provider of the cell.
        cell: Name of the cell, and of its stack.
        fleet: Text of the fleet file (:func:`contract.fleets.contract_fleet`).
        facts: How the floor's records are read.
        breaks: For each promise that is the floor's own, how to break it in a record;
            the promise must then be reported as broken.
    """

    name: str
    provider: str
    cell: str
    fleet: str
    facts: Facts
    breaks: Mapping[str, Break]


def cases() -> list[FloorCase]:
    """Return the cases of all floors that are plugged in."""
    return [
        case
        for provider in PLUGGED_IN
        for case in importlib.import_module(f"contract.{provider}").CASES
    ]


def package_is_there(provider: str) -> bool:
    """Say whether the floor of a provider is written: its module ``floor``."""
    try:
        return find_spec(f"runfleet.clouds.{provider}.floor") is not None
    except ModuleNotFoundError:
        return False
