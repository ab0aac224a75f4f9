"""Stack central: federation, promoter, deploy identity, budget."""

from __future__ import annotations

import pytest

from clouds.gcp import fleets
from clouds.gcp.fleets import of_type, one
from runfleet.clouds.gcp.budget import BudgetArgs
from runfleet.clouds.gcp.deploy import GIVES, LENDS, ROLES
from runfleet.clouds.gcp.federation import exact, subjects, token_condition
from runfleet.errors import InputError
from runfleet.rehearsal.record import Record
from runfleet.spec.github import FederatedRepository

MEMBER = "gcp:serviceaccount/iAMMember:IAMMember"
SUBJECT = (
    "principal://iam.googleapis.com/projects/210987654321/locations/global/"
    "workloadIdentityPools/github--demo/subject/"
)


def test_the_pool_takes_known_repositories_only(central: Record) -> None:
    (provider,) = of_type(
        central, "gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider"
    )
    assert provider.inputs["attributeCondition"] == (
        '(assertion.repository_owner_id == "11" && assertion.repository_id == "22")'
        ' || assertion.repository == "demo-org/vision"'
    )
    assert provider.inputs["attributeMapping"] == {
        "google.subject": "assertion.sub",
        "attribute.repository_owner_id": "assertion.repository_owner_id",
        "attribute.repository_id": "assertion.repository_id",
    }
    assert provider.inputs["oidc"] == {
        "issuerUri": "https://token.actions.githubusercontent.com"
    }
    assert central.outputs["account"]["workload_identity_provider"] == (
        "projects/210987654321/locations/global/workloadIdentityPools/github--demo/"
        "providers/github"
    )


def bound_to(found: Record, account: str) -> list[str]:
    email = f"{account}@demo-central.iam.gserviceaccount.com"
    return [
        r.inputs["member"].removeprefix(SUBJECT)
        for r in of_type(found, MEMBER)
        if r.inputs["serviceAccountId"].endswith(f"/{email}")
    ]


def test_an_external_class_is_bound_to_exact_subjects(central: Record) -> None:
    assert bound_to(central, "fed--demo--donated") == [
        "repo:demo-org/demo:environment:ci%3Arocm",
        "repo:demo-org@11/demo@22:environment:ci%3Arocm",
        "repo:demo-org/vision:environment:ci%3Arocm",
    ]
    made = {
        r.name.removeprefix("central-federated-donated-")
        for r in central.resources
        if r.name.startswith("central-federated-donated-")
    }
    assert made == {
        "account",
        "subject-0",
        "subject-1",
        "subject-2",
        "central-cache-write",
        "central-artifacts-write",
        "central-registry-push-trusted",
        "central-telemetry-insert",
    }
    assert central.outputs["federated"] == {
        "donated": "fed--demo--donated@demo-central.iam.gserviceaccount.com"
    }


def test_the_promoter(central: Record) -> None:
    assert bound_to(central, "promoter--demo") == [
        "repo:demo-org/demo:environment:promoter",
        "repo:demo-org@11/demo@22:environment:promoter",
    ]
    member = "serviceAccount:promoter--demo@demo-central.iam.gserviceaccount.com"
    found = [r for r in central.resources if r.inputs.get("member") == member]
    assert {r.name.removeprefix("central-promoter-") for r in found} == {
        "cache-write",
        "artifacts-write",
        "shared-write",
        *(
            f"{kind}-push-{trust}"
            for kind in ("shared", "registry")
            for trust in ("untrusted-pr", "trusted", "release")
        ),
    }


def test_the_deploy_identity_gives_what_the_stacks_give(central: Record) -> None:
    member = "serviceAccount:deploy--demo@demo-central.iam.gserviceaccount.com"
    found = [
        r.inputs
        for r in of_type(central, "gcp:projects/iAMMember:IAMMember")
        if r.inputs["member"] == member
    ]
    assert {i["project"] for i in found} == {"demo-ci", "demo-central"}
    limited = {
        "roles/resourcemanager.projectIamAdmin": GIVES,
        "roles/iam.serviceAccountAdmin": LENDS,
    }
    roles = {i["role"] for i in found}
    assert roles == {*ROLES, *limited}
    assert not roles & {"roles/owner", "roles/editor", "roles/iam.securityAdmin"}
    for inputs in found:
        given = limited.get(inputs["role"])
        if given is None:
            assert "condition" not in inputs
            continue
        listed = ", ".join(f'"{role}"' for role in given)
        assert inputs["condition"]["expression"] == (
            'api.getAttribute("iam.googleapis.com/modifiedGrantsByRole", [])'
            f".hasOnly([{listed}])"
        )
    assert bound_to(central, "deploy--demo") == [
        "repo:demo-org/demo:environment:production",
        "repo:demo-org@11/demo@22:environment:production",
    ]
    assert central.outputs["account"]["deploy_role"] == member.partition(":")[2]


def test_it_may_act_as_the_machines_only(
    cell: Record, second: Record, central: Record
) -> None:
    """Making a node pool asks for the right to act as its service account."""
    found = [
        r
        for record in (cell, second, central)
        for r in record.resources
        if r.inputs.get("role") == "roles/iam.serviceAccountUser"
    ]
    (acts,) = found
    assert acts.inputs["member"] == "serviceAccount:up@demo-ci.iam.gserviceaccount.com"
    assert acts.inputs["serviceAccountId"].rpartition("/")[2].startswith("node--")


def test_a_budget(central: Record) -> None:
    budget = one(central, "central-budget-budget").inputs
    channel = one(central, "central-budget-email")
    assert channel.inputs["labels"] == {"email_address": "ci@example.org"}
    assert budget["billingAccount"] == "01AB23-45CD67-89EF01"
    assert budget["budgetFilter"] == {
        "projects": ["projects/210987654321"],
        "labels": {"ci_funder": "foundation"},
        "calendarPeriod": "MONTH",
        "creditTypesTreatment": "EXCLUDE_ALL_CREDITS",
    }
    assert budget["amount"]["specifiedAmount"] == {
        "currencyCode": "USD",
        "units": "12000",
        "nanos": 500_000_000,
    }
    assert budget["thresholdRules"] == [
        {"thresholdPercent": 0.5, "spendBasis": "CURRENT_SPEND"},
        {"thresholdPercent": 0.9, "spendBasis": "CURRENT_SPEND"},
        {"thresholdPercent": 1.0, "spendBasis": "FORECASTED_SPEND"},
    ]
    assert budget["allUpdatesRule"]["monitoringNotificationChannels"] == [channel.id]


def test_one_stack_of_a_project_makes_the_budget(cell: Record, second: Record) -> None:
    assert one(cell, "gcp-budget-budget").inputs["budgetFilter"]["projects"] == [
        "projects/123456789012"
    ]
    assert not [r for r in second.resources if "billing" in r.type]


def test_a_channel_gets_alerts_through_a_topic() -> None:
    text = fleets.changed(("contact: {to: ci@example.org}", 'contact: {to: "#ci"}'))
    found = fleets.cell_record(fleets.plan_of(known=fleets.fleet(text)))
    topic = one(found, "gcp-budget-topic")
    publisher = one(found, "gcp-budget-topic-publisher").inputs
    assert publisher["role"] == "roles/pubsub.publisher"
    rule = one(found, "gcp-budget-budget").inputs["allUpdatesRule"]
    assert rule["pubsubTopic"] == topic.id
    assert "monitoringNotificationChannels" not in rule


def test_a_budget_needs_the_billing_account() -> None:
    text = fleets.changed(("      billing_account: 01AB23-45CD67-89EF01\n", ""))
    with pytest.raises(InputError, match=r"cells\.gcp\.settings\.billing_account"):
        BudgetArgs.from_plan(fleets.plan_of(known=fleets.fleet(text)))


def test_subjects_in_every_form() -> None:
    known = [FederatedRepository(repository="o/r", owner_id=1, repository_id=2)]
    assert subjects(known, "a:b") == (
        "repo:o/r:environment:a%3Ab",
        "repo:o@1/r@2:environment:a%3Ab",
    )


@pytest.mark.parametrize(
    "subject", ["repo:o/r:pull_request", "repo:o/*:environment:x", "r" * 128]
)
def test_wide_subjects_are_refused(subject: str) -> None:
    with pytest.raises(ValueError, match="exact name"):
        exact([subject])


def test_no_repository_no_federation() -> None:
    with pytest.raises(InputError, match=r"github\.federation"):
        token_condition([])
    with pytest.raises(InputError, match=r"github\.federation"):
        exact([])
