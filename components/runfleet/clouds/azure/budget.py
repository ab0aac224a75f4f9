"""Budget: what a funder is ready to pay in a month, with alerts.

Azure counts a budget over a scope, here the subscription, filtered by the tag
``ci_funder``. It belongs to the subscription and not to a region, so of several stacks
with the same funder in one subscription only the first makes it.

Two things of Azure's: a budget needs a first day, which must be the first of the month
in which it is made (the setting ``budget_start``, because a program that reads the
clock is not the same twice; later changes are ignored), and it counts in the currency
that the subscription is billed in, which nothing here can ask. A contact that is no
e-mail address gets alerts through the owners of the subscription.

Source: Azure documentation, "Tutorial: Create and manage budgets"; Consumption REST
API, Budgets (at most five notifications), read 2026-11.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
from pulumi_azure_native import consumption

from runfleet.clouds.azure import names
from runfleet.clouds.azure.places import Place, place_of
from runfleet.clouds.azure.settings import AzureSettings
from runfleet.clouds.azure.tags import with_labels
from runfleet.errors import InputError, Problem
from runfleet.placement.plan import CENTRAL_STACK, CellPlan, CentralPlan
from runfleet.spec.cells import Provider
from runfleet.spec.fleet import Fleet

MOST_ALERTS = 4
"""Alerts on the actual cost: Azure takes five, and one of them is the forecast."""


@dataclass(frozen=True)
class BudgetArgs:
    """What :class:`Budget` makes.

    Attributes:
        place: Where the stack is.
        budget_name: Name of the budget.
        funder: Who pays: the value of the tag ``ci_funder``.
        monthly: Amount per month, in the subscription's currency.
        alerts: Percentages of the amount at which an alert is sent.
        emails: Addresses that get the alerts; without one the owners get them.
        start: First day, as ``YYYY-MM-01``.
    """

    place: Place
    budget_name: str
    funder: str
    monthly: float
    alerts: Sequence[float]
    emails: Sequence[str]
    start: str

    @classmethod
    def from_plan(cls, plan: CellPlan | CentralPlan) -> BudgetArgs | None:
        """Take the budget of a plan's funder.

        Returns:
            The budget, or ``None`` when the fleet has none for the funder or another
            stack in the same subscription makes it.

        Raises:
            InputError: No cell says when the budget starts, or there are more alerts
                than Azure takes.
        """
        here = plan.cell if isinstance(plan, CellPlan) else plan.central
        budget = plan.budget
        owner = _owner(plan.fleet, here.funder, here.account)
        if budget is None or owner != plan.stack:
            return None
        problems: list[Problem] = []
        start = _start(plan)
        if start is None:
            path = f"cells.{_first(plan)}.settings.budget_start"
            message = f"is needed: funder {here.funder} has a budget on Azure"
            problems.append(Problem("fleet file", 0, path, message, "", "YYYY-MM-01"))
        if len(budget.alerts) > MOST_ALERTS:
            message = f"Azure takes {MOST_ALERTS} alerts beside the forecast"
            found = str(len(budget.alerts))
            path = f"budgets.{here.funder}.alerts"
            problems.append(Problem("fleet file", 0, path, message, found))
        if problems or start is None:
            raise InputError(problems)
        to = budget.contact.to
        return cls(
            place=place_of(plan),
            budget_name=names.BUDGET.encode(plan.fleet.project, "budget", here.funder),
            funder=here.funder,
            monthly=budget.monthly.amount,
            alerts=[alert.value for alert in budget.alerts],
            emails=[] if to.startswith(("#", "https://")) else [to],
            start=start.isoformat(),
        )


class Budget(pulumi.ComponentResource):
    """The monthly budget of a funder in one subscription, with alerts.

    Attributes:
        budget_id: Resource id of the budget.
    """

    budget_id: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        args: BudgetArgs,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Make the budget.

        Args:
            name: Name of the component; children are called ``<name>-<suffix>``.
            args: What it is made from.
            opts: Options; the explicit provider comes with them.
        """
        options = with_labels(opts, args.place.labels)
        super().__init__("runfleet:azure:Budget", name, None, options)
        budget = consumption.Budget(
            f"{name}-budget",
            budget_name=args.budget_name,
            scope=args.place.subscription_id,
            category="Cost",
            amount=args.monthly,
            time_grain="Monthly",
            time_period=consumption.BudgetTimePeriodArgs(
                start_date=f"{args.start}T00:00:00Z"
            ),
            filter=consumption.BudgetFilterArgs(
                tags=consumption.BudgetComparisonExpressionArgs(
                    name="ci_funder", operator="In", values=[args.funder]
                )
            ),
            notifications=notifications(args),
            opts=pulumi.ResourceOptions(parent=self, ignore_changes=["timePeriod"]),
        )
        self.budget_id = budget.id
        self.register_outputs({"budget_id": self.budget_id})


def notifications(args: BudgetArgs) -> Mapping[str, consumption.NotificationArgs]:
    """Return the alerts of a budget by name: the actual cost's, and the forecast's."""
    levels = [("Actual", alert) for alert in args.alerts] + [("Forecasted", 100.0)]
    return {
        f"{kind}_{level:g}".replace(".", "_"): consumption.NotificationArgs(
            enabled=True,
            operator="GreaterThan",
            threshold=level,
            threshold_type=kind,
            contact_emails=list(args.emails),
            contact_roles=None if args.emails else ["Owner"],
        )
        for kind, level in levels
    }


def _start(plan: CellPlan | CentralPlan) -> dt.date | None:
    """Return the budget's first day: the cell's own, else the first that says one."""
    cells = [c for c in plan.fleet.cells.values() if c.provider is Provider.AZURE]
    if isinstance(plan, CellPlan):
        cells = [plan.cell]
    starts = [AzureSettings.of(cell).budget_start for cell in cells]
    return next((start for start in starts if start is not None), None)


def _first(plan: CellPlan | CentralPlan) -> str:
    if isinstance(plan, CellPlan):
        return plan.cell.name
    cells = [c for c in plan.fleet.cells.values() if c.provider is Provider.AZURE]
    return cells[0].name if cells else "<an azure cell>"


def _owner(fleet: Fleet, funder: str, account: str) -> str:
    """Return the stack that makes a funder's budget in a subscription."""
    central = fleet.central
    if (
        central is not None
        and central.provider is Provider.AZURE
        and (central.funder, central.account) == (funder, account)
    ):
        return CENTRAL_STACK
    return next(
        cell.name
        for cell in fleet.cells.values()
        if (cell.provider, cell.funder, cell.account)
        == (Provider.AZURE, funder, account)
    )
