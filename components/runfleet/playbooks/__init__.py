"""Playbooks: fork-able, versioned packages of fleet file, settings, policies, docs.

The playbooks' data travels inside the wheel, so that a fork needs only the installed
package; in a checkout it is read from ``playbooks/``. :func:`playbook_path` finds it.
"""

from __future__ import annotations

from pathlib import Path

from runfleet.errors import InputError, Problem
from runfleet.spec.source import nearest

_PACKAGED = Path(__file__).parent / "data"
_CHECKOUT = Path(__file__).parents[3] / "playbooks"


def playbook_names() -> list[str]:
    """Return the names of all playbooks of this installation."""
    return sorted(path.parent.name for path in _root().glob("*/playbook.yaml"))


def playbook_path(name: str) -> Path:
    """Return the folder of a playbook.

    Raises:
        InputError: There is none of this name.
    """
    names = playbook_names()
    if name not in names:
        raise InputError(
            [
                Problem(
                    "playbooks",
                    0,
                    name,
                    "there is no playbook of this name",
                    allowed=", ".join(names),
                    nearest=nearest(name, names),
                )
            ]
        )
    return _root() / name


def _root() -> Path:
    return _PACKAGED if _PACKAGED.is_dir() else _CHECKOUT
