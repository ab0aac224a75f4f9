"""Runfleet: a portable CI runner fleet, as data and as Pulumi components.

Importing this package is cheap on purpose: no Pulumi and no cloud SDK is
imported until a stack program asks for one. The layers, from the bottom up, are
``spec``, ``catalogue``, ``placement``, ``clouds``, ``runners``, ``program``,
``rehearsal``, ``review``, ``playbooks``, ``importers`` and ``cli``; each imports
only the ones before it (import-linter holds this, see ``pyproject.toml``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runfleet.placement.moves import MovableFleet as Fleet

__all__ = ["Fleet", "__version__"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Return ``Fleet``, imported when it is first asked for.

    ``runfleet.Fleet.load(path).to("gcp")`` moves a fleet; see
    :mod:`runfleet.placement.moves`.
    """
    if name == "Fleet":
        from runfleet.placement.moves import MovableFleet

        return MovableFleet
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
