"""Budget: what a funder is ready to pay in a month, with alerts.

A budget counts what the project's bill puts under the funder's label ``ci_funder``
(Cloud Billing documentation, "Create, edit, or delete budgets"). It belongs to a
billing account, which the cell setting ``billing_account`` names; making it takes the
role Billing Account Costs Manager there. Where several stacks of a project have one
funder, the first makes the budget.

Alerts go by e-mail, or, for a contact such as a chat channel, to a topic that the
channel's integration subscribes to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_gcp as gcp

from runfleet.clouds.gcp import addresses
from runfleet.clouds.gcp.addresses import Project
from runfleet.clouds.gcp.labels import labels
from runfleet.clouds.gcp.names import TOPIC
from runfleet.clouds.gcp.settings import GcpSettings, problem
from runfleet.errors import InputError
from runfleet.placement.plan import CENTRAL_STACK, CellPlan, CentralPlan
from runfleet.spec.cells import Provider
from runfleet.spec.fleet import Fleet

PUBLISHER = "serviceAccount:billing-budget-alert@system.gserviceaccount.com"
"""Who puts alerts on a topic (Cloud Billing documentation, "Set up programmatic
notifications")."""


@dataclass(frozen=True)
class BudgetArgs:
    """What :class:`Budget` makes.

    Attributes:
        display_name: Name for people, at most 60 characters.
        billing_account: Billing account.
        project: The project whose costs count.
        funder: Whose costs count.
        monthly: Amount per month.
        currency: Its currency.
        alerts: Shares of it that an alert is sent at, in percent.
        email: Address of the alerts; empty for a topic.
        topic: Id of the topic.
        labels: The required labels.
    """

    display_name: str
    billing_account: str
    project: Project
    funder: str
    monthly: float
    currency: str
    alerts: Sequence[float]
    email: str = ""
    topic: str = ""
    labels: Mapping[str, str] | None = None

    @classmethod
    def from_plan(cls, plan: CellPlan | CentralPlan) -> BudgetArgs | None:
        """Take the budget of a plan's funder.

        Returns:
            The budget, or ``None`` when the fleet has none for the funder or another
            stack in the same project makes it.

        Raises:
            InputError: No cell names its billing account.
        """
        place = plan.cell if isinstance(plan, CellPlan) else plan.central
        budget, fleet = plan.budget, plan.fleet
        owner = _owner(fleet, place.funder, place.account)
        if budget is None or owner != plan.stack:
            return None
        account = billing_account(fleet, place.account)
        if not account:
            cell = plan.cell.name if isinstance(plan, CellPlan) else "<cell>"
            message = f"the budget of {place.funder} needs the billing account"
            raise InputError([problem([cell, "settings", "billing_account"], message)])
        to = budget.contact.to
        return cls(
            display_name=f"{fleet.project} {place.funder}"[:60],
            billing_account=account,
            project=addresses.plan_site(plan).project,
            funder=place.funder,
            monthly=budget.monthly.amount,
            currency=budget.monthly.currency,
            alerts=[alert.value for alert in budget.alerts],
            email="" if to.startswith(("#", "https://")) else to,
            topic=TOPIC.encode(fleet.project, "budget", place.funder),
            labels=plan.ci_labels,
        )


class Budget(pulumi.ComponentResource):
    """The monthly budget of a funder in one project, with alerts.

    Attributes:
        budget_id: Resource name of the budget.
        topic_id: Resource name of the topic; ``None`` when alerts go by e-mail.
    """

    budget_id: pulumi.Output[str]
    topic_id: pulumi.Output[str] | None

    def __init__(
        self,
        name: str,
        args: BudgetArgs,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Make the budget and where its alerts go."""
        super().__init__("runfleet:gcp:Budget", name, None, opts)
        own = pulumi.ResourceOptions(parent=self)
        made = labels(args.labels or {})
        self.topic_id = None
        after: list[pulumi.Resource] = []
        channels: list[pulumi.Input[str]] = []
        if args.email:
            channels.append(
                gcp.monitoring.NotificationChannel(
                    f"{name}-email",
                    project=args.project.id,
                    display_name=f"Budget of {args.funder}",
                    type="email",
                    labels={"email_address": args.email},
                    user_labels=made,
                    opts=own,
                ).id
            )
        else:
            topic = gcp.pubsub.Topic(
                f"{name}-topic",
                name=args.topic,
                project=args.project.id,
                labels=made,
                opts=own,
            )
            after.append(
                gcp.pubsub.TopicIAMMember(
                    f"{name}-topic-publisher",
                    project=args.project.id,
                    topic=topic.name,
                    role="roles/pubsub.publisher",
                    member=PUBLISHER,
                    opts=own,
                )
            )
            self.topic_id = topic.id
        whole = int(args.monthly)
        levels = [(alert / 100, "CURRENT_SPEND") for alert in args.alerts]
        levels.append((1.0, "FORECASTED_SPEND"))
        budget = gcp.billing.Budget(
            f"{name}-budget",
            display_name=args.display_name,
            billing_account=args.billing_account,
            budget_filter={
                "projects": [f"projects/{args.project.number}"],
                "labels": {"ci_funder": args.funder},
                "calendar_period": "MONTH",
                "credit_types_treatment": "EXCLUDE_ALL_CREDITS",
            },
            amount={
                "specified_amount": {
                    "currency_code": args.currency,
                    "units": str(whole),
                    "nanos": round((args.monthly - whole) * 1e9),
                }
            },
            threshold_rules=[
                {"threshold_percent": share, "spend_basis": basis}
                for share, basis in levels
            ],
            all_updates_rule={
                "monitoring_notification_channels": channels or None,
                "pubsub_topic": self.topic_id,
                "schema_version": "1.0",
                "disable_default_iam_recipients": True,
            },
            opts=pulumi.ResourceOptions(parent=self, depends_on=after),
        )
        self.budget_id = budget.name
        self.register_outputs({"budget_id": budget.name, "topic_id": self.topic_id})


def billing_account(fleet: Fleet, project: str) -> str:
    """Return the billing account of a project; empty when no cell names one.

    A cell of the project says it, or else one of another project: the section
    ``central`` has no settings of its own.
    """
    cells = [c for c in fleet.cells.values() if c.provider is Provider.GCP]
    cells.sort(key=lambda cell: cell.account != project)
    named = (GcpSettings.of(cell).billing_account for cell in cells)
    return next((account for account in named if account), "")


def _owner(fleet: Fleet, funder: str, project: str) -> str:
    """Return the stack that makes the budget of a funder in a project."""
    central = fleet.central
    if central is not None and (central.provider, central.funder, central.account) == (
        Provider.GCP,
        funder,
        project,
    ):
        return CENTRAL_STACK
    return next(
        cell.name
        for cell in fleet.cells.values()
        if (cell.provider, cell.funder, cell.account) == (Provider.GCP, funder, project)
    )
