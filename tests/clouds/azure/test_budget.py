"""The budget: exact inputs, made once, refused when Azure would refuse it."""

from __future__ import annotations

import pytest

from clouds.azure import fleets
from clouds.azure.fleets import SUBSCRIPTION, Recording
from runfleet.clouds.azure.budget import BudgetArgs
from runfleet.errors import InputError


def test_the_budget(cell: Recording) -> None:
    found = cell["azure-budget-budget"]
    alert = {
        "enabled": True,
        "operator": "GreaterThan",
        "contactEmails": ["ci@example.org"],
    }
    assert found.inputs == {
        "budgetName": "demo--budget--foundation",
        "scope": f"/subscriptions/{SUBSCRIPTION}",
        "category": "Cost",
        "amount": 12000.5,
        "timeGrain": "Monthly",
        "timePeriod": {"startDate": "2026-11-01T00:00:00Z"},
        "filter": {
            "tags": {"name": "ci_funder", "operator": "In", "values": ["foundation"]}
        },
        "notifications": {
            "Actual_50": alert | {"threshold": 50, "thresholdType": "Actual"},
            "Actual_90": alert | {"threshold": 90, "thresholdType": "Actual"},
            "Forecasted_100": alert | {"threshold": 100, "thresholdType": "Forecasted"},
        },
    }
    assert found.ignore_changes == ("timePeriod",)


def test_one_stack_of_a_subscription_makes_it(
    gpu: Recording, central: Recording
) -> None:
    assert gpu.of("consumption:Budget") == []
    # Central has a subscription of its own, and takes the day from a cell.
    (found,) = central.of("consumption:Budget")
    assert found.inputs["scope"] == f"/subscriptions/{fleets.CENTRAL_SUBSCRIPTION}"
    assert found.inputs["timePeriod"] == {"startDate": "2026-11-01T00:00:00Z"}


def test_a_contact_without_mail_reaches_the_owners() -> None:
    plan = fleets.cell_plan(fleets.fleet(contact="#ci-alerts"))
    args = BudgetArgs.from_plan(plan)
    assert args is not None
    assert args.emails == []


def test_a_budget_without_a_first_day_is_refused() -> None:
    text = fleets.FLEET.replace("budget_start: 2026-11-01, ", "")
    text = text.replace("[50%%, 90%%]", "[10%%, 20%%, 50%%, 80%%, 90%%]")
    plan = fleets.cell_plan(fleets.fleet(text=text))
    with pytest.raises(InputError) as caught:
        BudgetArgs.from_plan(plan)
    assert [p.path for p in caught.value.problems] == [
        "budgets.foundation.alerts",
        "cells.azure.settings.budget_start",
    ]
