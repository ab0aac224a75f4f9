"""Identities: one service account per class, for one Kubernetes service account."""

from __future__ import annotations

from dataclasses import replace

import pulumi
import pytest

from clouds.gcp import fleets
from clouds.gcp.fleets import of_type, one, parent_name
from runfleet.clouds.gcp.addresses import Project
from runfleet.clouds.gcp.identity import RunnerIdentity, RunnerIdentityArgs
from runfleet.rehearsal.errors import RehearsalError
from runfleet.rehearsal.record import Record

POOL = (
    "principal://iam.googleapis.com/projects/123456789012/locations/global/"
    "workloadIdentityPools/demo-ci.svc.id.goog/subject"
)
ACCOUNT = "gcp:serviceaccount/account:Account"


def test_every_class_with_grants_has_a_service_account_and_no_other(
    cell: Record,
) -> None:
    made = {
        r.inputs["accountId"]
        for r in of_type(cell, ACCOUNT)
        if parent_name(r).startswith("gcp-identity-")
    }
    assert made == {
        f"job--demo-uc1--{name}"
        for name in ("tests", "builds", "publishes", "releases", "arm", "gpus", "tpus")
    } | {n for n in made if n.startswith("job-demo-uc1-small-gpu")} | {
        "job--demo-uc1--small-gpus"
    }


def test_exactly_one_kubernetes_service_account_may_use_it(cell: Record) -> None:
    bound = {
        r.inputs["serviceAccountId"].rpartition("/")[2]: r.inputs
        for r in of_type(cell, "gcp:serviceaccount/iAMMember:IAMMember")
    }
    assert len(bound) == len(of_type(cell, "gcp:serviceaccount/iAMMember:IAMMember"))
    builds = bound["job--demo-uc1--builds@demo-ci.iam.gserviceaccount.com"]
    assert builds["role"] == "roles/iam.workloadIdentityUser"
    assert builds["member"] == f"{POOL}/ns/j-builds--gcp/sa/job"
    secrets = bound["secrets--demo-uc1@demo-ci.iam.gserviceaccount.com"]
    assert secrets["member"] == f"{POOL}/ns/external-secrets/sa/external-secrets"
    members = [inputs["member"] for inputs in bound.values()]
    assert len(set(members)) == len(members)


def test_the_pool_exists_before_it_is_named(cell: Record) -> None:
    bound = one(cell, "gcp-identity-builds-pods")
    assert "gcp-cluster-gke" in {u.rpartition("::")[2] for u in bound.dependencies}


def test_bindings_are_on_the_stores(cell: Record) -> None:
    member = "serviceAccount:job--demo-uc1--arm@demo-ci.iam.gserviceaccount.com"
    found = [r for r in cell.resources if r.inputs.get("member") == member]
    assert {r.name for r in found} == {
        "gcp-identity-arm-local-cache-read",
        "gcp-identity-arm-local-cache-list",
    }
    read = one(cell, "gcp-identity-arm-local-cache-read").inputs
    bucket = one(cell, "gcp-stores-cache").inputs["name"]
    role = one(cell, "gcp-stores-role-objectreader").outputs["name"]
    levels = ("untrusted-pr", "trusted", "release")
    assert read == {
        "bucket": bucket,
        "role": role,
        "member": member,
        "condition": {
            "title": "Read as untrusted-pr",
            "expression": " || ".join(
                f'resource.name.startsWith("projects/_/buckets/{bucket}/objects/{t}/")'
                for t in levels
            ),
        },
    }


def test_central_stores_are_bound_in_their_own_project(cell: Record) -> None:
    push = one(cell, "gcp-identity-builds-central-registry-push-trusted").inputs
    assert push["project"] == "demo-central"
    assert push["location"] == "us-east1"
    assert push["repository"] == "demo--central--registry-trusted"
    assert push["role"].startswith("projects/demo-central/roles/demo_central_imagepu")
    insert = one(cell, "gcp-identity-builds-central-telemetry-insert").inputs
    assert insert["topic"] == "demo--central--telemetry-trusted"
    assert insert["project"] == "demo-central"


def test_job_identities_have_nothing_in_a_project(cell: Record) -> None:
    for member in of_type(cell, "gcp:projects/iAMMember:IAMMember"):
        assert "job--" not in member.inputs["member"]


def test_there_are_no_keys(cell: Record, central: Record) -> None:
    for found in (cell, central):
        assert not [r for r in found.resources if "serviceaccount/key" in r.type]


def test_what_the_runner_side_gets() -> None:
    seen: list[RunnerIdentity] = []
    args = RunnerIdentityArgs(
        "builds",
        "job-x",
        Project("demo-ci", "1", "us-central1"),
        "ns",
        "job",
        [],
        {},
        {},
    )

    def program() -> None:
        made = RunnerIdentity("identity", args)
        seen.append(made)
        pulumi.export("annotations", dict(made.service_account_annotations))

    found = fleets.record(program)
    assert found.outputs["annotations"] == {
        "iam.gke.io/gcp-service-account": "job-x@demo-ci.iam.gserviceaccount.com"
    }
    assert seen[0].pod_labels == {}
    assert seen[0].endpoints == ("169.254.169.254:80",)


def test_a_class_without_grants_gets_no_identity() -> None:
    args = RunnerIdentityArgs(
        "builds",
        "job-x",
        Project("demo-ci", "1", "us-central1"),
        "ns",
        "job",
        [],
        {},
        {},
    )
    with pytest.raises(RehearsalError, match="no cloud identity"):
        fleets.record(
            lambda: RunnerIdentity("identity", replace(args, has_grants=False))
        )


def test_external_secrets_reads_the_apps_keys_only(cell: Record) -> None:
    read = of_type(cell, "gcp:secretmanager/secretIamMember:SecretIamMember")
    assert {(r.inputs["secretId"], r.inputs["role"]) for r in read} == {
        ("demo--github-app", "roles/secretmanager.secretAccessor"),
        ("demo--github-app-release", "roles/secretmanager.secretAccessor"),
    }
    assert {r.inputs["member"] for r in read} == {
        "serviceAccount:secrets--demo-uc1@demo-ci.iam.gserviceaccount.com"
    }
    assert cell.outputs["secrets_annotations"] == {
        "iam.gke.io/gcp-service-account": (
            "secrets--demo-uc1@demo-ci.iam.gserviceaccount.com"
        )
    }


def test_where_the_apps_key_is() -> None:
    from runfleet.clouds.gcp.floor import GcpFloor

    plan = fleets.plan_of()
    planned = {p.name: p for p in plan.classes}
    floor = GcpFloor()
    for name, key in (
        ("tests", "demo--github-app"),
        ("releases", "demo--github-app-release"),
    ):
        source = floor.app_secret(plan, planned[name])
        assert (source.store_kind, source.settings, source.key) == (
            "gcpsm",
            {"projectID": "demo-ci"},
            key,
        )


def test_a_cell_beside_central_stores_elsewhere() -> None:
    """Its classes keep an identity; what they may do there is that cloud's."""
    text = fleets.changed(
        (
            "  provider: gcp\n  account: demo-central",
            "  provider: aws\n  account: demo-central",
        )
    )
    found = fleets.cell_record(fleets.plan_of(known=fleets.fleet(text)), central={})
    assert one(found, "gcp-identity-builds-account")
    assert not [r for r in found.resources if "-central-" in r.name]
