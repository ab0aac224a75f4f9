"""Old labels and measured load: aliases, and maxima that the source leaves open.

``.github/arc.yaml`` of pytorch/pytorch maps the labels that workflows still ask for
to runner classes; a target that is no class is reported, not failed on, because the
two repositories move at different times. The load table holds, for each old label,
the jobs of 30 days and the most that ran at once.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping
from pathlib import Path as FilePath

from runfleet.errors import InputError, Problem
from runfleet.importers.osdc_classes import Classes
from runfleet.importers.report import Entry, Kind, Log
from runfleet.spec.source import Source, nearest

HEADROOM = 1.25
"""A derived maximum is the measured peak times this, rounded up."""

_COLUMNS = ("group", "runner_label", "jobs_30d", "peak_concurrent")
_ROUTING = "routing between funders is not part of a fleet file"


def read_aliases(source: Source, classes: Classes, log: Log) -> dict[str, str]:
    """Read ``arc.yaml`` and give each class its older labels.

    Args:
        source: The file.
        classes: The imported classes; their ``aliases`` are set.
        log: Takes the report and the problems.

    Returns:
        The class of each old label that has one.
    """
    top = Entry(log, source, (), source.data)
    mapping = Entry(log, source, ("runner_mapping",), top.raw("runner_mapping"))
    top.leave({"lf_allowlist": _ROUTING}, ("runner_mapping",))
    aliases: dict[str, str] = {}
    data = top.raw("runner_mapping")
    for label in data if isinstance(data, dict) else ():  # type: ignore[reportUnknownVariableType]
        label = str(label)  # type: ignore[reportUnknownArgumentType]
        target = mapping.text(label)
        if target is None:
            continue
        if target in classes.classes:
            if label != target:
                aliases[label] = target
                classes.classes[target].setdefault("aliases", []).append(label)
        elif target == label:
            why = "maps to itself: it runs outside the source, write it by hand as "
            mapping.note(Kind.NOT_CARRIED, label, why + "placement: external")
        else:
            why = "is not among the imported classes, so the label is not used"
            close = nearest(target, classes.classes)
            hint = f"; the closest is {close}" if close else ""
            mapping.note(Kind.DANGLING, label, f"{why}{hint}")
    return aliases


def read_load(path: FilePath) -> dict[str, int]:
    """Read the most jobs that ran at once, by label.

    Raises:
        InputError: The table is missing or malformed; all bad rows are in it.
    """
    name = str(path)
    try:
        rows = list(csv.reader(io.StringIO(path.read_text("utf-8"), newline="")))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError([Problem(name, 0, "", f"cannot be read: {reason}")]) from None
    if not rows or tuple(rows[0]) != _COLUMNS:
        raise InputError(
            [
                Problem(
                    name,
                    1,
                    "",
                    "does not start with the columns of a load table",
                    found=",".join(rows[0]) if rows else "nothing",
                    allowed=",".join(_COLUMNS),
                )
            ]
        )
    problems: list[Problem] = []
    peaks: dict[str, int] = {}
    for line, row in enumerate(rows[1:], 2):
        if len(row) != len(_COLUMNS) or not row[3].isdigit():
            message = "is not a row of group, label, jobs and peak"
            problems.append(Problem(name, line, "", message, found=",".join(row)))
            continue
        peaks[row[1]] = int(row[3])
    if problems:
        raise InputError(problems)
    return peaks


def derive_maxima(
    classes: Classes, aliases: Mapping[str, str], peaks: Mapping[str, int], log: Log
) -> None:
    """Fill the maxima that the source leaves open, and say how.

    A class gets the measured peak of its labels with headroom. A class without
    measured load gets as many runners as the accelerators of a measured class of the
    same model allow, because these classes share the same machines.

    Args:
        classes: The imported classes; their ``scale`` is completed.
        aliases: The class of each old label.
        peaks: Most jobs at once, by label.
        log: Takes the report.
    """
    measured: dict[str, tuple[str, int]] = {}
    for name in _open(classes):
        labels = [label for label, target in aliases.items() if target == name]
        labels = [label for label in (*labels, name) if label in peaks]
        if not labels:
            continue
        peak = sum(peaks[label] for label in labels)
        most = math.ceil(peak * HEADROOM)
        how = (
            f"measured peak of {peak} jobs at once ({', '.join(labels)}) "
            f"times {HEADROOM}, rounded up"
        )
        _derive(classes, name, most, how, log)
        accelerator = classes.classes[name]["hardware"].get("accelerator")
        if accelerator is not None:
            gpus = most * accelerator["count"]
            if gpus > measured.get(accelerator["model"], ("", 0))[1]:
                measured[accelerator["model"]] = (name, gpus)
    for name in _open(classes):
        accelerator = classes.classes[name]["hardware"].get("accelerator")
        if accelerator is not None and accelerator["model"] in measured:
            sibling, gpus = measured[accelerator["model"]]
            most = max(1, gpus // accelerator["count"])
            how = (
                f"the {gpus} GPUs of {sibling}, divided by "
                f"{accelerator['count']} GPUs per runner"
            )
            _derive(classes, name, most, how, log)
    for name in _open(classes):
        source, path = classes.places[name]
        why = "the source gives no maximum and none could be derived: set scale.max"
        log.note(Kind.CHOSEN, source, path, why, name)


def _open(classes: Classes) -> list[str]:
    return [
        name for name, made in classes.classes.items() if "max" not in made["scale"]
    ]


def _derive(classes: Classes, name: str, most: int, how: str, log: Log) -> None:
    scale = classes.classes[name]["scale"]
    classes.classes[name]["scale"] = {"max": most, "derived": how, **scale}
    source, path = classes.places[name]
    log.note(Kind.DERIVED, source, path, f"scale.max of {name} is {how}", most)
