"""Budget: what a funder is ready to pay in a month, with alerts.

AWS Budgets counts costs by tag, and only by tags that were activated as cost
allocation tags. Until ``ci_funder`` is active every budget here reads zero and no
alert is ever sent, so :class:`CostAllocationTags` activates it, once, in the stack
``central``. Only the account that pays the bill (the management account of an
organisation) may do that, and only after the tag was seen in its billing data, which
takes up to a day after the first tagged resource; where ``central`` is another
account, leave it out and activate the tags by hand (Billing user guide, "Activating
user-defined cost allocation tags").

A budget belongs to an account and not to a region, so of several stacks with the same
funder in one account only the first makes it. It counts that account's costs only: a
funder who pays for several accounts has a budget of the whole amount in each of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pulumi
import pulumi_aws as aws

from runfleet.clouds.aws import names
from runfleet.clouds.aws.grants import Statement, document
from runfleet.clouds.aws.store_policies import KEY_ADMINISTRATION, KEY_POLICY_LIMIT
from runfleet.clouds.aws.tags import tags
from runfleet.placement.plan import CENTRAL_STACK, CellPlan, CentralPlan
from runfleet.spec.cells import Provider
from runfleet.spec.fleet import Fleet

COST_TAGS = ("ci_funder", "ci_vendor", "ci_runner_class")
"""The labels that a bill is split by."""

MOST_ALERTS = 4
"""Alerts on the actual cost: AWS takes five notifications for a budget, and one of
them is the forecast (AWS Budgets API reference, Notification)."""

TOPIC_POLICY_LIMIT = 30_720
"""Bytes of a topic policy (SNS quotas)."""


@dataclass(frozen=True)
class BudgetArgs:
    """What :class:`Budget` makes.

    Attributes:
        budget_name: Name of the budget.
        account: Account whose costs are counted.
        partition: ARN partition of the account.
        funder: Who pays: the value of the tag ``ci_funder``.
        monthly: Amount per month, in US dollars.
        alerts: Percentages of the amount at which an alert is sent.
        emails: Addresses that get the alerts; without one they go to a topic.
        topic_name: Name of that topic.
        key_alias: Alias of the key that encrypts it.
        tags: Tags of everything.
    """

    budget_name: str
    account: str
    partition: str
    funder: str
    monthly: float
    alerts: Sequence[float]
    emails: Sequence[str] = ()
    topic_name: str = ""
    key_alias: str = ""
    tags: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def from_plan(cls, plan: CellPlan | CentralPlan) -> BudgetArgs | None:
        """Take the budget of a plan's funder.

        Returns:
            The budget, or ``None`` when the fleet has none for the funder or another
            stack in the same account makes it.

        Raises:
            ValueError: The amount is not in US dollars, the only currency of AWS
                Budgets, or there are more alerts than AWS takes.
        """
        place = plan.cell if isinstance(plan, CellPlan) else plan.central
        budget = plan.budget
        owner = _owner(plan.fleet, place.funder, place.account)
        if budget is None or owner != plan.stack:
            return None
        if budget.monthly.currency != "USD":
            raise ValueError(
                f"the budget of {place.funder} is in {budget.monthly.currency}; AWS "
                "Budgets counts in USD"
            )
        if len(budget.alerts) > MOST_ALERTS:
            raise ValueError(
                f"the budget of {place.funder} has {len(budget.alerts)} alerts; AWS "
                f"Budgets takes {MOST_ALERTS} beside the forecast"
            )
        to = budget.contact.to
        parts = (plan.fleet.project, "budget", place.funder)
        return cls(
            budget_name=names.BUDGET.encode(*parts),
            account=place.account,
            partition=names.partition(place.region),
            funder=place.funder,
            monthly=budget.monthly.amount,
            alerts=[alert.value for alert in budget.alerts],
            emails=[] if to.startswith(("#", "https://")) else [to],
            topic_name=names.SNS_TOPIC.encode(*parts),
            key_alias=names.KMS_ALIAS.encode(*parts),
            tags=tags(plan.ci_labels),
        )


class Budget(pulumi.ComponentResource):
    """The monthly budget of a funder in one account, with alerts.

    A contact without an e-mail address, such as a chat channel, gets the alerts
    through an encrypted topic, to which the channel's integration subscribes.

    Attributes:
        budget_id: ARN of the budget.
        topic_arn: ARN of the topic; ``None`` when alerts go by e-mail.
    """

    budget_id: pulumi.Output[str]
    topic_arn: pulumi.Output[str] | None

    def __init__(
        self,
        name: str,
        args: BudgetArgs,
        options: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("runfleet:aws:Budget", name, None, options)
        self.topic_arn = None if args.emails else self._topic(name, args)
        topics = [] if self.topic_arn is None else [self.topic_arn]
        levels = [("ACTUAL", alert) for alert in args.alerts] + [("FORECASTED", 100.0)]
        budget = aws.budgets.Budget(
            f"{name}-budget",
            name=args.budget_name,
            account_id=args.account,
            budget_type="COST",
            limit_amount=f"{args.monthly:.2f}",
            limit_unit="USD",
            time_unit="MONTHLY",
            cost_filters=[
                aws.budgets.BudgetCostFilterArgs(
                    name="TagKeyValue", values=[f"user:ci_funder${args.funder}"]
                )
            ],
            notifications=[
                aws.budgets.BudgetNotificationArgs(
                    comparison_operator="GREATER_THAN",
                    notification_type=kind,
                    threshold=threshold,
                    threshold_type="PERCENTAGE",
                    subscriber_email_addresses=list(args.emails) or None,
                    subscriber_sns_topic_arns=topics or None,
                )
                for kind, threshold in levels
            ],
            tags=args.tags,
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.budget_id = budget.arn
        self.register_outputs({"budget_id": budget.arn, "topic_arn": self.topic_arn})

    def _topic(self, name: str, args: BudgetArgs) -> pulumi.Output[str]:
        """Make the topic for alerts, with a key that AWS Budgets may use.

        AWS Budgets user guide, "Creating an Amazon SNS topic for budget
        notifications".
        """
        key = aws.kms.Key(
            f"{name}-key",
            description=f"Budget alerts of {args.funder}",
            enable_key_rotation=True,
            rotation_period_in_days=365,
            deletion_window_in_days=30,
            policy=alert_key_policy(args.partition, args.account),
            tags=args.tags,
            opts=pulumi.ResourceOptions(
                parent=self, protect=True, retain_on_delete=True
            ),
        )
        aws.kms.Alias(
            f"{name}-key-alias",
            name=args.key_alias,
            target_key_id=key.key_id,
            opts=pulumi.ResourceOptions(parent=self),
        )
        topic = aws.sns.Topic(
            f"{name}-topic",
            name=args.topic_name,
            kms_master_key_id=key.arn,
            tags=args.tags,
            opts=pulumi.ResourceOptions(parent=self),
        )
        aws.sns.TopicPolicy(
            f"{name}-topic-policy",
            arn=topic.arn,
            policy=topic.arn.apply(lambda arn: alert_topic_policy(arn, args.account)),
            opts=pulumi.ResourceOptions(parent=self),
        )
        return topic.arn


@dataclass(frozen=True)
class CostAllocationTagsArgs:
    """What :class:`CostAllocationTags` makes.

    Attributes:
        keys: The tags to activate.
    """

    keys: Sequence[str] = COST_TAGS


class CostAllocationTags(pulumi.ComponentResource):
    """The tags that bills and budgets are split by, activated in the payer account.

    Attributes:
        keys: The active tags.
    """

    keys: Sequence[pulumi.Output[str]]

    def __init__(
        self,
        name: str,
        args: CostAllocationTagsArgs,
        options: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("runfleet:aws:CostAllocationTags", name, None, options)
        made = [
            aws.costexplorer.CostAllocationTag(
                f"{name}-{key}",
                tag_key=key,
                status="Active",
                opts=pulumi.ResourceOptions(parent=self),
            )
            for key in args.keys
        ]
        self.keys = [tag.tag_key for tag in made]
        self.register_outputs({"keys": self.keys})


def alert_key_policy(partition: str, account: str) -> str:
    """Return the policy of the key that encrypts alerts."""
    found: list[Statement] = [
        {
            "Sid": "OwnAccount",
            "Effect": "Allow",
            "Principal": {"AWS": f"arn:{partition}:iam::{account}:root"},
            "Action": list(KEY_ADMINISTRATION),
            "Resource": "*",
        },
        {
            "Sid": "Budgets",
            "Effect": "Allow",
            "Principal": {"Service": "budgets.amazonaws.com"},
            "Action": ["kms:Decrypt", "kms:GenerateDataKey"],
            "Resource": "*",
            "Condition": _from_budgets(account),
        },
    ]
    return document(found, KEY_POLICY_LIMIT, "the key of budget alerts")


def alert_topic_policy(topic: str, account: str) -> str:
    """Return the policy of the topic for alerts: AWS Budgets may publish to it."""
    published: Statement = {
        "Sid": "Budgets",
        "Effect": "Allow",
        "Principal": {"Service": "budgets.amazonaws.com"},
        "Action": ["sns:Publish"],
        "Resource": [topic],
        "Condition": _from_budgets(account),
    }
    return document([published], TOPIC_POLICY_LIMIT, topic)


def _from_budgets(account: str) -> Mapping[str, Mapping[str, str]]:
    return {
        "StringEquals": {"aws:SourceAccount": account},
        "ArnLike": {"aws:SourceArn": f"arn:aws:budgets::{account}:*"},
    }


def _owner(fleet: Fleet, funder: str, account: str) -> str:
    """Return the stack that makes a funder's budget in an account."""
    central = fleet.central
    if (
        central is not None
        and central.provider is Provider.AWS
        and (central.funder, central.account) == (funder, account)
    ):
        return CENTRAL_STACK
    return next(
        cell.name
        for cell in fleet.cells.values()
        if (cell.provider, cell.funder, cell.account) == (Provider.AWS, funder, account)
    )
