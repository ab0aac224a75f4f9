"""Budget: one per funder and account, by tag, with alerts that reach somebody."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pulumi
import pytest

from clouds.aws.recording import (
    ACCOUNT,
    CENTRAL_ACCOUNT,
    Recording,
    cell_plan,
    central_plan,
    fleet,
    record,
)
from runfleet.clouds.aws.budget import (
    Budget,
    BudgetArgs,
    CostAllocationTags,
    CostAllocationTagsArgs,
)
from runfleet.spec.fleet import Fleet
from runfleet.spec.labels import KEYS
from runfleet.spec.units import Money, Percent


def make(args: BudgetArgs | None) -> Recording:
    assert args is not None

    def program(options: pulumi.ResourceOptions) -> None:
        Budget("aws-budget", args, options)

    return record(program)


def with_budget(**changes: Any) -> Fleet:
    known = fleet(central=CENTRAL_ACCOUNT)
    budget = known.budgets["lf"].model_copy(update=changes)
    return known.model_copy(update={"budgets": {"lf": budget}})


def notification(
    kind: str, threshold: float, **subscribers: list[str]
) -> Mapping[str, Any]:
    return {
        "comparisonOperator": "GREATER_THAN",
        "notificationType": kind,
        "threshold": threshold,
        "thresholdType": "PERCENTAGE",
        **subscribers,
    }


def test_a_budget_is_exactly_this() -> None:
    found = make(BudgetArgs.from_plan(cell_plan(fleet(central=CENTRAL_ACCOUNT))))
    assert found.names == ["aws-budget", "aws-budget-budget"]
    budget = dict(found.one("aws-budget-budget").inputs)
    assert budget.pop("tags")["ci_funder"] == "lf"
    mail = {"subscriberEmailAddresses": ["ci@example.org"]}
    assert budget == {
        "name": "pytorch--budget--lf",
        "accountId": ACCOUNT,
        "budgetType": "COST",
        "limitAmount": "12000.50",
        "limitUnit": "USD",
        "timeUnit": "MONTHLY",
        "costFilters": [{"name": "TagKeyValue", "values": ["user:ci_funder$lf"]}],
        "notifications": [
            notification("ACTUAL", 50, **mail),
            notification("ACTUAL", 90, **mail),
            notification("FORECASTED", 100, **mail),
        ],
    }


@pytest.mark.parametrize("contact", ["#ci-alerts", "https://example.org/issues"])
def test_a_contact_without_an_address_gets_an_encrypted_topic(contact: str) -> None:
    known = fleet(central=CENTRAL_ACCOUNT, contact=contact)
    found = make(BudgetArgs.from_plan(cell_plan(known)))
    topic_arn = f"arn:aws:sns:us-east-1:{ACCOUNT}:pytorch--budget--lf"
    budget = found.one("aws-budget-budget").inputs
    assert budget["notifications"][0] == notification(
        "ACTUAL", 50, subscriberSnsTopicArns=[topic_arn]
    )
    topic = found.one("aws-budget-topic").inputs
    assert topic["kmsMasterKeyId"].endswith(":key/aws-budget-key")
    (policy,) = json.loads(found.one("aws-budget-topic-policy").inputs["policy"])[
        "Statement"
    ]
    condition = {
        "StringEquals": {"aws:SourceAccount": ACCOUNT},
        "ArnLike": {"aws:SourceArn": f"arn:aws:budgets::{ACCOUNT}:*"},
    }
    assert policy == {
        "Sid": "Budgets",
        "Effect": "Allow",
        "Principal": {"Service": "budgets.amazonaws.com"},
        "Action": ["sns:Publish"],
        "Resource": [topic_arn],
        "Condition": condition,
    }
    key = found.one("aws-budget-key")
    assert key.protect
    assert key.inputs["enableKeyRotation"] is True
    used = json.loads(key.inputs["policy"])["Statement"][1]
    assert used["Action"] == ["kms:Decrypt", "kms:GenerateDataKey"]
    assert used["Condition"] == condition


def test_one_budget_per_funder_and_account() -> None:
    same = fleet()
    assert BudgetArgs.from_plan(central_plan(same)) is not None
    assert BudgetArgs.from_plan(cell_plan(same)) is None
    apart = fleet(central=CENTRAL_ACCOUNT)
    accounts = []
    for plan in (central_plan(apart), cell_plan(apart)):
        made = BudgetArgs.from_plan(plan)
        assert made is not None
        accounts.append(made.account)
    assert accounts == [CENTRAL_ACCOUNT, ACCOUNT]


def test_a_second_cell_of_the_funder_leaves_it_to_the_first() -> None:
    known = fleet(central=CENTRAL_ACCOUNT)
    first = known.cells["aws"]
    second = first.model_copy(update={"name": "aws-ue2", "region": "us-east-2"})
    both = known.model_copy(update={"cells": {"aws": first, "aws-ue2": second}})
    assert BudgetArgs.from_plan(cell_plan(both)) is not None
    other = replace(cell_plan(both), cell=second, stack="aws-ue2")
    assert BudgetArgs.from_plan(other) is None


def test_a_fleet_without_a_budget_has_none() -> None:
    known = fleet(central=CENTRAL_ACCOUNT).model_copy(update={"budgets": {}})
    assert BudgetArgs.from_plan(cell_plan(known)) is None


def test_what_aws_budgets_cannot_do_is_an_error() -> None:
    with pytest.raises(ValueError, match="is in EUR; AWS Budgets counts in USD"):
        BudgetArgs.from_plan(cell_plan(with_budget(monthly=Money(5, "EUR"))))
    alerts = [Percent(n) for n in (10, 20, 30, 40, 50)]
    with pytest.raises(ValueError, match="has 5 alerts; AWS Budgets takes 4"):
        BudgetArgs.from_plan(cell_plan(with_budget(alerts=alerts)))


def test_the_tags_that_bills_are_split_by() -> None:
    def program(options: pulumi.ResourceOptions) -> None:
        CostAllocationTags("central-cost-tags", CostAllocationTagsArgs(), options)

    found = record(program).of("aws:costexplorer/costAllocationTag:CostAllocationTag")
    assert [(r.name, r.inputs) for r in found] == [
        (f"central-cost-tags-{key}", {"tagKey": key, "status": "Active"})
        for key in ("ci_funder", "ci_runner_class", "ci_vendor")
    ]
    assert {r.inputs["tagKey"] for r in found} <= set(KEYS)
