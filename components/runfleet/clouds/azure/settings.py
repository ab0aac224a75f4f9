"""The settings that only Azure cells have: ``cells.<name>.settings`` of the fleet file.

Each cloud checks its own, so that a misspelt key is an error and not silence. What a
cell on Azure must say beside them (the tenant, zones by number) is checked here too,
and everything that is wrong is said at once.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationError

from runfleet.errors import InputError, Problem
from runfleet.spec.base import Spec
from runfleet.spec.cells import Cell
from runfleet.spec.units import Day

_GUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_RESOURCE = r"/subscriptions/[^/]+/resourceGroups/[^/]+/providers/.+"


def _first_of_month(day: dt.date) -> dt.date:
    if day.day != 1:
        raise ValueError("the first day of a month")
    return day


MonthStart = Annotated[Day, AfterValidator(_first_of_month)]
"""The first day of a month."""


class AzureSettings(Spec):
    """Settings of one Azure cell."""

    node_subnet: str | None = Field(
        default=None,
        pattern=_RESOURCE,
        description="Resource id of the subnet for nodes, when the network is adopted.",
    )
    api_subnet: str | None = Field(
        default=None,
        pattern=_RESOURCE,
        description="Resource id of the subnet for the API server, delegated to AKS, "
        "when the network is adopted.",
    )
    endpoint_subnet: str | None = Field(
        default=None,
        pattern=_RESOURCE,
        description="Resource id of the subnet for private endpoints, when the network "
        "is adopted.",
    )
    network_watcher: str | None = Field(
        default=None,
        description="Name of the region's network watcher in resource group "
        "NetworkWatcherRG; default: NetworkWatcher_<region>.",
    )
    log_retention_days: int = Field(
        default=365, ge=30, le=730, description="How long flow and audit logs are kept."
    )
    autoscaling: Literal["auto", "auto-provisioned", "cluster-autoscaled"] = Field(
        default="auto",
        description="Who starts machines; auto: by the shapes that its classes need.",
    )
    deployers: list[str] = Field(
        default_factory=list[str],
        description="Entra object ids of the identities that deploy to the cluster.",
    )
    kubelogin: Literal["azurecli", "workloadidentity", "spn", "msi"] = Field(
        default="azurecli", description="How deployments sign in to the cluster."
    )
    node_image: Literal["Ubuntu", "AzureLinux"] = Field(
        default="Ubuntu", description="Operating system of the nodes."
    )
    redundancy: Literal["LRS", "ZRS"] = Field(
        default="ZRS", description="How many copies storage accounts keep, and where."
    )
    pool_limits: dict[str, int] = Field(
        default_factory=dict[str, int],
        description="Most machines by pool, such as {gpu: 20}, for each of its shapes.",
    )
    budget_start: MonthStart | None = Field(
        default=None,
        description="First day of the month in which the budget is made; Azure takes "
        "no earlier and the program reads no clock.",
    )

    @classmethod
    def of(cls, cell: Cell) -> AzureSettings:
        """Read the settings of a cell, and check what Azure wants of the cell.

        Raises:
            InputError: A setting is unknown or has a wrong value, or the cell's
                subscription, tenant or zones are not Azure's.
        """
        problems = _cell_problems(cell)
        try:
            found = cls.model_validate(cell.settings)
        except ValidationError as error:
            problems += [
                _problem(
                    cell,
                    ".".join(["settings", *map(str, each["loc"])]),
                    each["msg"],
                    repr(each["input"]),
                    ", ".join(sorted(cls.model_fields)),
                )
                for each in error.errors()
            ]
            raise InputError(problems) from None
        if cell.network is not None and cell.network.adopt is not None:
            problems += [
                _problem(cell, f"settings.{name}", "is needed for an adopted network")
                for name in ("node_subnet", "api_subnet", "endpoint_subnet")
                if getattr(found, name) is None
            ]
        if problems:
            raise InputError(problems)
        return found


def zone_numbers(cell: Cell) -> tuple[str, ...]:
    """Return the zones of a cell as ARM says them: ``1``, ``2``, ``3``.

    They may be written so, or as Kubernetes labels them (``eastus-1``).
    """
    return tuple(zone.rpartition("-")[2] for zone in cell.zones)


def zone_labels(cell: Cell) -> tuple[str, ...]:
    """Return the zones of a cell as nodes are labelled: ``eastus-1``."""
    return tuple(f"{cell.region}-{zone}" for zone in zone_numbers(cell))


def _cell_problems(cell: Cell) -> list[Problem]:
    found: list[Problem] = []
    if not re.fullmatch(_GUID, cell.account):
        found.append(
            _problem(cell, "account", "is no subscription id (a GUID)", cell.account)
        )
    if not re.fullmatch(_GUID, cell.account_number or ""):
        found.append(
            _problem(
                cell,
                "account_number",
                "must be the id of the Entra tenant (a GUID)",
                cell.account_number or "",
            )
        )
    found += [
        _problem(cell, "zones", "is no zone of this region", zone, "1, 2, 3")
        for zone in cell.zones
        if not re.fullmatch(rf"({re.escape(cell.region)}-)?[1-3]", zone)
    ]
    return found


def _problem(
    cell: Cell, path: str, message: str, found: str = "", allowed: str = ""
) -> Problem:
    return Problem(
        file="fleet file",
        line=0,
        path=f"cells.{cell.name}.{path}",
        message=message,
        found=found,
        allowed=allowed,
    )
