"""The fleet: all runners of one project, one fleet file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import Field, model_validator

from runfleet.spec import labels
from runfleet.spec.base import (
    CellName,
    LabelKey,
    LabelValue,
    PoolName,
    RunnerLabel,
    Version,
)
from runfleet.spec.base import Spec as _Spec
from runfleet.spec.cells import Cell, Provider
from runfleet.spec.classes import PlacementMode, RunnerClass
from runfleet.spec.github import GitHub
from runfleet.spec.people import Owner
from runfleet.spec.pools import Pool
from runfleet.spec.roles import Scope, StoreKind
from runfleet.spec.source import is_mapping
from runfleet.spec.stores import Budget, Central, Reservation, Store, Tenant

NAMED_SECTIONS = (
    "cells",
    "pools",
    "runner_classes",
    "stores",
    "reservations",
    "tenants",
    "budgets",
)
"""Sections whose entries know the key that they stand under."""

EMPTY_SECTIONS = (*NAMED_SECTIONS, "labels")
"""Sections that may stand in the file with nothing under them."""


class Fleet(_Spec):
    """All runners of one project: the content of a fleet file."""

    version: Version = Field(default=1, description="Version of this format.")
    project: LabelValue = Field(description="Project name; becomes label ci_project.")
    env: LabelValue = Field(default="prod", description="Becomes the label ci_env.")
    owner: Owner = Field(description="The team that owns the fleet.")
    github: GitHub = Field(description="Organisation, Apps and runner groups.")
    central: Central | None = Field(
        default=None, description="Where central stores and the promoter are."
    )
    cells: dict[CellName, Cell] = Field(
        description="Cells by name; the name is the stack's name."
    )
    stores: dict[StoreKind, Store] = Field(
        default_factory=dict[StoreKind, Store], description="Stores by kind."
    )
    pools: dict[PoolName, Pool] = Field(
        default_factory=dict[str, Pool], description="Machine families by name."
    )
    runner_classes: dict[RunnerLabel, RunnerClass] = Field(
        description="Runner classes by name; the name is the label without prefix."
    )
    reservations: dict[str, Reservation] = Field(
        default_factory=dict[str, Reservation], description="Reserved capacity."
    )
    tenants: dict[str, Tenant] = Field(
        default_factory=dict[str, Tenant], description="Other projects that share."
    )
    budgets: dict[LabelValue, Budget] = Field(
        default_factory=dict[str, Budget], description="Budgets by funder."
    )
    labels: dict[LabelKey, LabelValue] = Field(
        default_factory=dict[str, str], description="More labels for every resource."
    )

    @model_validator(mode="before")
    @classmethod
    def _names(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        filled: dict[str, Any] = dict(data)  # type: ignore[reportUnknownArgumentType]
        for section in EMPTY_SECTIONS:
            if filled.get(section) is None:
                filled.pop(section, None)
            elif section in NAMED_SECTIONS:
                filled[section] = _with_names(filled[section])
        github = filled.get("github")
        if is_mapping(github):
            groups = _with_names(github.get("runner_groups"))
            if groups is not None:
                filled["github"] = {**github, "runner_groups": groups}
        return filled

    def classes_in(self, cell: Cell) -> Iterator[RunnerClass]:
        """Yield the classes that a cell's own runners serve, in file order.

        A class is served where its pool exists: on the pool's provider, outside
        the pool's excluded regions, and in the listed cells when it lists some.
        """
        for runner_class in self.runner_classes.values():
            if runner_class.placement is PlacementMode.EXTERNAL:
                continue
            if runner_class.cells is not None and cell.name not in runner_class.cells:
                continue
            pool = self.pools.get(runner_class.pool or "")
            if pool is None or pool.provider != cell.provider:
                continue
            if cell.region not in pool.exclude_regions:
                yield runner_class

    def pools_in(self, cell: Cell) -> Iterator[Pool]:
        """Yield the pools that a cell has, in file order."""
        for pool in self.pools.values():
            if pool.provider == cell.provider and (
                cell.region not in pool.exclude_regions
            ):
                yield pool

    def external(self) -> Iterator[RunnerClass]:
        """Yield the classes that run outside this code."""
        for runner_class in self.runner_classes.values():
            if runner_class.placement is PlacementMode.EXTERNAL:
                yield runner_class

    def stores_in(self, scope: Scope) -> Iterator[Store]:
        """Yield the stores that exist in a scope, in file order."""
        return (store for store in self.stores.values() if store.in_scope(scope))

    def labels_for(
        self,
        stack: str,
        cell: Cell | None = None,
        runner_class: RunnerClass | None = None,
        cost_model: str = "on-demand",
    ) -> dict[str, str]:
        """Return the thirteen required labels for a resource, plus the fleet's own.

        Args:
            stack: Name of the stack that deploys it.
            cell: Cell that it belongs to; central things have none.
            runner_class: Class that it serves alone; ``None`` when it is shared.
            cost_model: How it is paid: on-demand, spot, reserved, credits, donated.
        """
        place = cell or self.central
        funder = place.funder if place is not None else labels.SHARED
        provider = str(place.provider) if place is not None else str(Provider.OWN)
        required = {
            "ci_project": self.project,
            "ci_env": self.env,
            "ci_vendor": labels.SHARED,
            "ci_funder": funder,
            "ci_provider": provider,
            "ci_role": labels.SHARED,
            "ci_runner_class": labels.SHARED,
            "ci_runner_label": labels.SHARED,
            "ci_trust": labels.SHARED,
            "ci_owner": self.owner.team,
            "ci_stack": labels.encode_value(stack),
            "ci_managed_by": labels.MANAGED_BY,
            "ci_cost_model": cost_model,
        }
        if runner_class is not None:
            label = cell.runner_label(runner_class.name) if cell else runner_class.name
            required |= {
                "ci_vendor": runner_class.vendor,
                "ci_funder": runner_class.funder or funder,
                "ci_role": str(runner_class.role),
                "ci_runner_class": labels.encode_value(runner_class.name),
                "ci_runner_label": labels.encode_value(label),
                "ci_trust": str(runner_class.trust),
            }
        return {**self.labels, **required}


def _with_names(section: Any) -> Any:
    if not isinstance(section, Mapping):
        return section
    return {
        key: {**entry, "name": key} if isinstance(entry, Mapping) else entry
        for key, entry in section.items()  # type: ignore[reportUnknownVariableType]
    }
