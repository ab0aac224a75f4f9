"""What ``runfleet place`` and ``runfleet routing`` print, as plain data.

Everything here returns dicts and lists of texts and numbers, ready for JSON, and in
the order in which a table shows them.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path as FilePath
from typing import Any

from runfleet.errors import InputError, Problem
from runfleet.placement.costs import monthly_costs
from runfleet.placement.explain import Lost
from runfleet.placement.ladder import Ranked
from runfleet.placement.lock import LOCK_NAME, write_lock
from runfleet.placement.moves import MovableFleet, Placement
from runfleet.spec.source import nearest


def place_report(
    movable: MovableFleet, explained: bool = False, only: str | None = None
) -> dict[str, Any]:
    """Return where each class of a fleet goes, and why.

    Args:
        movable: The fleet, moved or not.
        explained: Whether to add why every other offer lost.
        only: Name of the one class to tell of; default: all.

    Returns:
        ``to``; ``classes``, each with ``class``, ``served`` (cell, pool, machines,
        jobs on the first, price per job-hour), ``ladder``, ``unpriced`` (machines
        that would fit if their price were known), ``zeros`` and, when asked for,
        ``lost`` and ``lost_counts``; ``external``; ``costs``; ``warnings``.

    Raises:
        InputError: A pin cannot be kept, a class has no offer, or there is no class of
            the name asked for.
    """
    placement = movable.place()
    names = list(placement.needs)
    if only is not None and only not in names:
        file = movable.file.source
        raise InputError(
            [
                Problem(
                    file.file,
                    file.line(("runner_classes", only)),
                    "runner_classes",
                    "there is no class of this name to place",
                    found=only,
                    allowed=", ".join(names),
                    nearest=nearest(only, names),
                )
            ]
        )
    classes = [
        _class(placement, name, explained) for name in names if only in (None, name)
    ]
    return {
        "to": str(movable.moved_to) if movable.moved_to is not None else None,
        "classes": classes,
        "external": [
            u.runner_class for u in placement.lock.unplaced if u.why == "external"
        ],
        "costs": [c.as_dict() for c in monthly_costs(placement, movable.machines)],
        "warnings": list(placement.warnings),
    }


def write_placement(movable: MovableFleet, path: str | FilePath) -> FilePath:
    """Write the lock of a fleet beside its file, in one step; return its path.

    Args:
        movable: The fleet, moved or not.
        path: The fleet file.

    Raises:
        InputError: It cannot be placed or written; nothing is written then.
    """
    lock = movable.lock()
    target = FilePath(path).with_name(LOCK_NAME)
    write_lock(lock, target)
    return target


def _class(placement: Placement, name: str, explained: bool) -> dict[str, Any]:
    served = [
        {
            "cell": entry.placed.cell,
            "pool": entry.placed.pool,
            "home": entry.home,
            "machines": [rung.machine for rung in entry.placed.rungs],
            "first": _rung(entry.rungs[0]) if entry.rungs else None,
        }
        for entry in placement.served.get(name, ())
    ]
    report: dict[str, Any] = {
        "class": name,
        "served": served,
        "ladder": [_rung(ranked) for ranked in placement.ladders.get(name, ())],
        "unpriced": [
            {"cell": offer.cell, "machine": offer.machine.name}
            for offer in placement.unpriced(name)
        ],
        "zeros": [
            {"cell": unplaced.cell, "why": unplaced.why}
            for unplaced in placement.lock.unplaced
            if unplaced.runner_class == name
        ],
    }
    if explained:
        lost = placement.explain(name)
        counts = Counter(explanation.lost for explanation in lost)
        report["lost_counts"] = {
            str(reason): counts[reason] for reason in Lost if counts[reason]
        }
        report["lost"] = [explanation.as_dict() for explanation in lost]
    return report


def _rung(ranked: Ranked) -> dict[str, Any]:
    offer = ranked.offer
    price = ranked.usd_job_h
    return {
        "cell": offer.cell,
        "region": offer.region,
        "machine": offer.machine.name,
        "kind": str(offer.kind),
        "jobs": ranked.jobs,
        "usd_h": offer.usd_h,
        "usd_job_h": round(price, 6) if price is not None else None,
        "as_of": offer.as_of.isoformat(),
        "price_region": offer.price_region,
        "assumed": offer.assumed,
        "limit": offer.limit,
    }
