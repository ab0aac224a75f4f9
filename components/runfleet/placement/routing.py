"""Routing out: the files by which the incumbent's jobs find their runners.

Two files, in the formats that PyTorch uses today:

- ``arc.yaml`` (pytorch/pytorch ``.github/arc.yaml`` at 003763c7): ``runner_mapping``
  turns the labels that workflows ask for into scale sets, and ``lf_allowlist`` says
  which of those may run on the Linux Foundation's cells. A class that runs outside
  this code maps to itself.
- the runner determinator's settings (first comment of pytorch/test-infra#5132):
  ``experiments``, each with ``rollout_perc``, ``all_branches``, ``default`` and
  ``workflows``, then a line ``---`` and the people who opt in or out. An experiment
  is the prefix of a cell's labels; its share of jobs is that of its cells' weights.

What is written is read back by the same rules that a reader of these files has, so a
file that would not be understood is never written.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import Field, ValidationError
from ruamel.yaml import YAML

from runfleet.errors import InputError, Problem
from runfleet.placement.lock import Lock
from runfleet.spec.base import Spec
from runfleet.spec.classes import PlacementMode
from runfleet.spec.fleet import Fleet
from runfleet.spec.load import model_problems
from runfleet.spec.source import parse_source

ARC_NAME = "arc.yaml"
DETERMINATOR_NAME = "runner-determinator.yaml"

FOUNDATION_PREFIX = "lf-"
"""Prefix of the labels of the Linux Foundation's cells."""

_ARC = "arc"
"""The experiment that sends jobs to scale sets at all; jobs ask for it by name."""


class Allowlist(Spec):
    """Which scale sets may run on the Linux Foundation's cells."""

    mode: str = Field(pattern="^(all|restricted)$", description="all or restricted.")
    runners: list[str] = Field(
        default_factory=list[str], description="The scale sets, without prefix."
    )


class ArcMap(Spec):
    """The content of ``arc.yaml``."""

    runner_mapping: dict[str, str] = Field(description="Scale set by label.")
    lf_allowlist: Allowlist | None = Field(
        default=None, description="What the foundation's cells may run."
    )


class Experiment(Spec):
    """One experiment of the runner determinator."""

    rollout_perc: float = Field(ge=0, le=100, description="Share of jobs, in percent.")
    all_branches: bool = Field(
        default=False, description="Whether main, nightly and release take part."
    )
    default: bool = Field(
        default=True, description="Whether it holds without being asked for by name."
    )
    workflows: str = Field(
        default="ALL", description="Workflows, by comma; ALL; -Name leaves one out."
    )


class _Settings(Spec):
    experiments: dict[str, Experiment]


@dataclass(frozen=True)
class OptIn:
    """What one person opts in to or out of.

    Attributes:
        user: GitHub user, without ``@``.
        experiments: Experiments, each as ``name``, ``name:percent`` or ``-name``.
        opted_out: Whether the person takes part in nothing (``#@user``).
    """

    user: str
    experiments: tuple[str, ...] = ()
    opted_out: bool = False

    def __str__(self) -> str:
        """Spell it as the determinator reads it."""
        if self.opted_out:
            return f"#@{self.user}"
        return ",".join([f"@{self.user}", *self.experiments])


@dataclass(frozen=True)
class Determinator:
    """The runner determinator's settings.

    Attributes:
        experiments: Experiments by name.
        people: Who opted in or out.
    """

    experiments: Mapping[str, Experiment]
    people: Sequence[OptIn] = ()


def arc_map(fleet: Fleet, lock: Lock) -> ArcMap:
    """Return which scale set serves each label.

    Args:
        fleet: The fleet.
        lock: Its lock: a class that no cell serves has no scale set.
    """
    placed = {entry.runner_class for entry in lock.placed}
    mapping: dict[str, str] = {}
    for runner_class in fleet.runner_classes.values():
        name = runner_class.name
        external = runner_class.placement is PlacementMode.EXTERNAL
        if external:
            mapping[name] = name
        if external or name in placed:
            mapping |= dict.fromkeys(runner_class.aliases, name)
    foundation = {
        cell.name
        for cell in fleet.cells.values()
        if cell.label_prefix == FOUNDATION_PREFIX
    }
    served = sorted(
        {entry.runner_class for entry in lock.placed if entry.cell in foundation}
    )
    allowlist = None
    if foundation:
        mode = "all" if placed <= set(served) else "restricted"
        allowlist = Allowlist(mode=mode, runners=served)
    return ArcMap(runner_mapping=mapping, lf_allowlist=allowlist)


def arc_yaml(fleet: Fleet, lock: Lock) -> str:
    """Return ``arc.yaml`` of a fleet.

    Raises:
        InputError: What would be written does not read back as the same.
    """
    made = arc_map(fleet, lock)
    text = _yaml(
        "# Label -> scale set. Written by `runfleet routing`; do not edit by hand.\n",
        made.model_dump(mode="json", exclude_none=True),
    )
    if parse_arc(ARC_NAME, text) != made:
        raise InputError([Problem(ARC_NAME, 0, "", "does not read back as it was")])
    return text


def determinator(
    fleet: Fleet,
    shares: Mapping[str, float] | None = None,
    people: Sequence[OptIn] = (),
) -> Determinator:
    """Return the runner determinator's settings for a fleet.

    The weights of the cells with one label prefix, against those of all cells, are the
    share of that prefix's experiment. Cells without a prefix need no experiment.

    Args:
        fleet: The fleet.
        shares: Share of all jobs in percent, by experiment, where the fleet is only a
            part of what serves the project; it takes the place of the weights.
        people: Who opts in or out.

    Raises:
        InputError: A share is of an experiment that the fleet has not, or not from 0
            to 100.
    """
    weights: dict[str, int] = {}
    for cell in fleet.cells.values():
        name = cell.label_prefix.rstrip("-")
        weights[name] = weights.get(name, 0) + cell.weight
    total = sum(weights.values())
    given = dict(shares or {})
    problems = [
        Problem(
            DETERMINATOR_NAME,
            0,
            f"experiments.{name}",
            "no cell's labels have this prefix"
            if name not in weights
            else "is no share of jobs",
            found=name if name not in weights else f"{share:g}",
            allowed=", ".join(sorted(filter(None, weights)))
            if name not in weights
            else "0 to 100",
        )
        for name, share in given.items()
        if name not in weights or not 0 <= share <= 100
    ]
    if problems:
        raise InputError(problems)
    experiments = {
        name: Experiment(
            rollout_perc=_whole(
                given.get(name, 100 * weight / total if total else 0.0)
            ),
            all_branches=True,
        )
        for name, weight in weights.items()
        if name
    }
    experiments[_ARC] = Experiment(rollout_perc=100, all_branches=True, default=False)
    return Determinator(experiments, tuple(people))


def determinator_text(settings: Determinator) -> str:
    """Return the runner determinator's settings as it reads them.

    Raises:
        InputError: What would be written does not read back as the same.
    """
    block = _yaml(
        "",
        {
            "experiments": {
                name: {
                    key: _whole(value) if key == "rollout_perc" else value
                    for key, value in experiment.model_dump(mode="json").items()
                }
                for name, experiment in settings.experiments.items()
            }
        },
    )
    people = "".join(f"{person}\n" for person in settings.people)
    text = f"{block}---\n{people}"
    if parse_determinator(DETERMINATOR_NAME, text) != Determinator(
        dict(settings.experiments), tuple(settings.people)
    ):
        raise InputError(
            [Problem(DETERMINATOR_NAME, 0, "", "does not read back as it was")]
        )
    return text


def parse_arc(name: str, text: str) -> ArcMap:
    """Read an ``arc.yaml``.

    Args:
        name: File name, for messages.
        text: Its content.

    Raises:
        InputError: It is malformed.
    """
    source = parse_source(name, text)
    try:
        found = ArcMap.model_validate(source.data)
    except ValidationError as error:
        raise InputError(
            [*source.problems, *model_problems(error, ArcMap, source)]
        ) from None
    if source.problems:
        raise InputError(list(source.problems))
    return found


def dangling(found: ArcMap, fleet: Fleet) -> list[tuple[str, str]]:
    """Return labels of an ``arc.yaml`` whose scale set no class of a fleet is."""
    return [
        (label, target)
        for label, target in found.runner_mapping.items()
        if target not in fleet.runner_classes
    ]


def parse_determinator(name: str, text: str) -> Determinator:
    """Read the runner determinator's settings.

    Args:
        name: File name, for messages.
        text: The settings, and after a line ``---`` one person per line.

    Raises:
        InputError: They are malformed, or a person names an unknown experiment.
    """
    lines = text.splitlines(keepends=True)
    cut = next((i for i, line in enumerate(lines) if line.strip() == "---"), len(lines))
    source = parse_source(name, "".join(lines[:cut]))
    try:
        settings = _Settings.model_validate(source.data)
    except ValidationError as error:
        raise InputError(
            [*source.problems, *model_problems(error, _Settings, source)]
        ) from None
    problems = list(source.problems)
    people: list[OptIn] = []
    for number, line in enumerate(lines[cut + 1 :], cut + 2):
        person = line.strip()
        if not person:
            continue
        people.append(_person(person))
        problems += _person_problems(name, number, people[-1], settings.experiments)
    if problems:
        raise InputError(problems)
    return Determinator(settings.experiments, tuple(people))


def _person(text: str) -> OptIn:
    if text.startswith("#"):
        return OptIn(text.removeprefix("#").strip().removeprefix("@"), (), True)
    user, *experiments = (part.strip() for part in text.split(","))
    return OptIn(user.removeprefix("@"), tuple(experiments))


def _person_problems(
    name: str, line: int, person: OptIn, known: Mapping[str, Experiment]
) -> list[Problem]:
    problems: list[Problem] = []
    for asked in person.experiments:
        experiment, _, percent = asked.removeprefix("-").partition(":")
        if experiment not in known:
            problems.append(
                Problem(
                    name,
                    line,
                    person.user,
                    "there is no experiment of this name",
                    found=experiment,
                    allowed=", ".join(known),
                )
            )
        elif percent and not (percent.isdigit() and int(percent) <= 100):
            problems.append(
                Problem(
                    name,
                    line,
                    person.user,
                    "is no percentage",
                    found=percent,
                    allowed="0 to 100",
                )
            )
    return problems


def _whole(value: float) -> float:
    """Return a percentage without needless decimals, as an ``int`` where it is one."""
    rounded = round(value, 2)
    return int(rounded) if float(rounded).is_integer() else rounded


def _yaml(head: str, data: dict[str, Any]) -> str:
    yaml = YAML()
    yaml.width = 120
    stream = io.StringIO(head)
    stream.seek(0, io.SEEK_END)
    yaml.dump(data, stream)  # type: ignore[reportUnknownMemberType]
    return stream.getvalue()
