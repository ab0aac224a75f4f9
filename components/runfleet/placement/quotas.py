"""Quotas: how much of a machine or an accelerator an account may have.

Clouds grant them per account and region, so no public table has them: they are read
from ``quotas.yaml`` beside the fleet file, by cell::

    aws:
      accelerator/a100: 16    # accelerators of this model
      machine/p5.48xlarge: 2  # machines
      vcpu: 5000              # virtual CPUs of all machines together

What is not written there is unknown and limits nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import cast

from runfleet.catalogue.machines import Machine, Machines
from runfleet.errors import InputError, Problem
from runfleet.spec.fleet import Fleet
from runfleet.spec.source import Source, is_mapping, nearest, read_source

QUOTAS_NAME = "quotas.yaml"
_ACCELERATOR = "accelerator/"
_MACHINE = "machine/"


@dataclass(frozen=True)
class Quotas:
    """Quotas by cell and what they are of.

    Attributes:
        amounts: Amount by cell, then by ``vcpu``, ``accelerator/<model>`` or
            ``machine/<name>``.
    """

    amounts: Mapping[str, Mapping[str, int]] = field(
        default_factory=dict[str, Mapping[str, int]]
    )

    def limit(self, cell: str, machine: Machine) -> int | None:
        """Return how many of a machine a cell may have; ``None`` when unlimited."""
        limits = [most for _, most in self._limits(cell, machine)]
        return min(limits) if limits else None

    def why(self, cell: str, machine: Machine) -> str:
        """Say which quota limits a machine most."""
        most, key = min((most, key) for key, most in self._limits(cell, machine))
        return f"quota {key} of cell {cell} is enough for {most} of it"

    def _limits(self, cell: str, machine: Machine) -> list[tuple[str, int]]:
        found: list[tuple[str, int]] = []
        amounts = self.amounts.get(cell, {})
        for key, each in (
            ("vcpu", machine.vcpu),
            (f"{_ACCELERATOR}{machine.accelerator}", machine.accelerator_count),
            (f"{_MACHINE}{machine.name}", 1.0),
        ):
            if key in amounts and each > 0:
                found.append((key, math.floor(amounts[key] / each)))
        return found


def load_quotas(fleet_path: str | FilePath, fleet: Fleet, machines: Machines) -> Quotas:
    """Read ``quotas.yaml`` beside a fleet file, if there is one.

    Raises:
        InputError: It names a cell, machine or accelerator that there is not, or an
            amount is no whole number from 0.
    """
    path = FilePath(fleet_path).with_name(QUOTAS_NAME)
    if not path.exists():
        return Quotas()
    source = read_source(path)
    problems = [*source.problems, *_problems(source, fleet, machines)]
    if problems:
        raise InputError(problems)
    entries = cast("dict[str, dict[str, int]]", source.data or {})
    return Quotas({cell: dict(entry) for cell, entry in entries.items()})


def _problems(source: Source, fleet: Fleet, machines: Machines) -> list[Problem]:
    if source.data is None:
        return []
    if not is_mapping(source.data):
        return [source.problem((), "is not valid", allowed="a mapping by cell")]
    found: list[Problem] = []
    for cell_name, entry in source.data.items():
        cell = fleet.cells.get(str(cell_name))
        if cell is None:
            found.append(
                source.problem(
                    (cell_name,),
                    "there is no cell of this name",
                    found=str(cell_name),
                    allowed=", ".join(fleet.cells),
                    nearest=nearest(str(cell_name), list(fleet.cells)),
                )
            )
            continue
        if not is_mapping(entry):
            found.append(
                source.problem((cell_name,), "is not valid", allowed="a mapping")
            )
            continue
        of_cell = list(machines.of(cell.provider))
        models = {m.accelerator for m in of_cell if m.accelerator}
        known = (
            "vcpu",
            *(f"{_ACCELERATOR}{model}" for model in sorted(models)),
            *(f"{_MACHINE}{m.name}" for m in of_cell),
        )
        for key, amount in entry.items():
            path = (cell_name, key)
            if key not in known:
                found.append(
                    source.problem(
                        path,
                        f"is nothing that {cell.provider} has a quota of",
                        found=str(key),
                        allowed="vcpu, accelerator/<model>, machine/<name>",
                        nearest=nearest(str(key), list(known)),
                    )
                )
            if type(amount) is not int or amount < 0:
                found.append(
                    source.problem(
                        path,
                        "is not valid",
                        found=str(amount),
                        allowed="a whole number from 0",
                    )
                )
    return found
