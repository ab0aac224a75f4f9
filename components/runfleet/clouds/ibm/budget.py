"""Budget: what a funder is ready to pay in a month, and what IBM Cloud can do with it.

IBM Cloud has no budget that a program can make: spending notifications are set for a
whole account in the console, and the Terraform provider knows no budget by tag
(ibm-cloud-docs/billing-usage, "Setting spending notifications"). So :class:`Budget`
makes no resource of the cloud. It keeps what has to be set there in the stack's state,
where a review sees it, and says that it is set by hand. Costs by funder are read from
the usage reports, which carry the tags.

A notification counts its account's whole cost: a funder who shares an account with
others needs an account, or an account group of an enterprise, of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pulumi

from runfleet.placement.plan import CENTRAL_STACK, CellPlan, CentralPlan
from runfleet.spec.cells import Provider
from runfleet.spec.fleet import Fleet

NOTIFICATIONS = "https://cloud.ibm.com/billing/spending-notifications"
"""Where spending notifications are set."""


@dataclass(frozen=True)
class BudgetArgs:
    """What :class:`Budget` keeps.

    Attributes:
        account: Account whose costs are counted.
        funder: Who pays.
        monthly: Amount per month.
        currency: Currency of the amount.
        alerts: Percentages of the amount at which a notification is wanted.
        contact: Who is to get them.
        labels: The required labels.
    """

    account: str
    funder: str
    monthly: float
    currency: str
    alerts: Sequence[float]
    contact: str
    labels: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def from_plan(cls, plan: CellPlan | CentralPlan) -> BudgetArgs | None:
        """Take the budget of a plan's funder.

        Returns:
            The budget, or ``None`` when the fleet has none for the funder or another
            stack of the same account keeps it.
        """
        place = plan.cell if isinstance(plan, CellPlan) else plan.central
        budget = plan.budget
        if budget is None or _keeper(plan.fleet, place.funder, place.account) != (
            plan.stack
        ):
            return None
        return cls(
            account=place.account,
            funder=place.funder,
            monthly=budget.monthly.amount,
            currency=budget.monthly.currency,
            alerts=[alert.value for alert in budget.alerts],
            contact=budget.contact.to,
            labels=plan.ci_labels,
        )


class Budget(pulumi.ComponentResource):
    """The monthly budget of a funder, which a person sets in the console.

    Attributes:
        budget_id: Where it is set: no resource stands behind it.
        set_by_hand: Always true.
    """

    budget_id: pulumi.Output[str]
    set_by_hand: bool

    def __init__(
        self,
        name: str,
        args: BudgetArgs,
        options: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Keep the budget."""
        super().__init__("runfleet:ibm:Budget", name, None, options)
        self.budget_id = pulumi.Output.from_input(NOTIFICATIONS)
        self.set_by_hand = True
        self.register_outputs(
            {
                "budget_id": NOTIFICATIONS,
                "set_by_hand": True,
                "account": args.account,
                "funder": args.funder,
                "monthly": f"{args.monthly:.2f} {args.currency}",
                "notify_at": [
                    f"{args.monthly * alert / 100:.2f} {args.currency}"
                    for alert in args.alerts
                ],
                "contact": args.contact,
                "labels": dict(args.labels),
            }
        )


def _keeper(fleet: Fleet, funder: str, account: str) -> str:
    """Return the stack that keeps a funder's budget in an account."""
    central = fleet.central
    if (
        central is not None
        and central.provider is Provider.IBM
        and (central.funder, central.account) == (funder, account)
    ):
        return CENTRAL_STACK
    return next(
        cell.name
        for cell in fleet.cells.values()
        if (cell.provider, cell.funder, cell.account) == (Provider.IBM, funder, account)
    )
