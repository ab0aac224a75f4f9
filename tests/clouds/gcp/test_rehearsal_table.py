"""Ids and outputs that a rehearsal derives: the forms that Google gives."""

from __future__ import annotations

import re

import pytest

from clouds.gcp import fleets
from clouds.gcp.fleets import one
from runfleet.rehearsal.outputs import Outputs
from runfleet.rehearsal.providers import gcp
from runfleet.rehearsal.providers.subject import Subject
from runfleet.rehearsal.record import Record


@pytest.mark.parametrize(
    ("name", "id_"),
    [
        (
            "gcp-network-router",
            "projects/demo-ci/regions/us-central1/routers/demo-uc1--router",
        ),
        ("gcp-network-nat", "demo-ci/us-central1/demo-uc1--router/demo-uc1--nat"),
        ("gcp-network-dns-gcr", "projects/demo-ci/managedZones/demo-uc1--gcr"),
        (
            "gcp-network-dns-gcr-a",
            "projects/demo-ci/managedZones/demo-uc1--gcr/rrsets/gcr.io./A",
        ),
        ("gcp-cluster-gke", "projects/demo-ci/locations/us-central1/clusters/demo-uc1"),
        (
            "gcp-cluster-base",
            "projects/demo-ci/locations/us-central1/clusters/demo-uc1/nodePools/base",
        ),
        (
            "gcp-cluster-nodes",
            "projects/demo-ci/serviceAccounts/"
            "node--demo-uc1@demo-ci.iam.gserviceaccount.com",
        ),
        (
            "gcp-stores-agent-artifactregistry",
            "projects/demo-ci/services/artifactregistry.googleapis.com",
        ),
        (
            "gcp-stores-registry-images-trusted",
            "projects/demo-ci/locations/us-central1/repositories/"
            "demo--gcp--registry-trusted",
        ),
        (
            "gcp-secrets-secret-0",
            "projects/demo-ci/secrets/demo--github-app/roles/"
            "secretmanager.secretAccessor/serviceAccount:"
            "secrets--demo-uc1@demo-ci.iam.gserviceaccount.com",
        ),
    ],
)
def test_ids(cell: Record, name: str, id_: str) -> None:
    assert one(cell, name).id == id_


def test_a_conditional_binding_has_its_title_in_the_id(cell: Record) -> None:
    read = one(cell, "gcp-identity-arm-local-cache-read")
    assert read.id.startswith("b/demo-gcp-cache-")
    assert read.id.endswith("/Read as untrusted-pr")


def test_outputs(cell: Record) -> None:
    account = one(cell, "gcp-cluster-nodes").outputs
    assert account["email"] == "node--demo-uc1@demo-ci.iam.gserviceaccount.com"
    assert account["member"] == f"serviceAccount:{account['email']}"
    assert re.fullmatch(r"\d{21}", account["uniqueId"])
    cluster = one(cell, "gcp-cluster-gke").outputs
    assert re.fullmatch(r"192\.0\.2\.\d+", cluster["endpoint"])
    dns = cluster["controlPlaneEndpointsConfig"]["dnsEndpointConfig"]
    assert dns["endpoint"].endswith(".us-central1.gke.goog")
    assert dns["allowExternalTraffic"] is False


def test_two_rehearsals_are_alike() -> None:
    first, again = (fleets.central_record(fleets.central_of()) for _ in range(2))
    assert [(r.urn, r.id, r.outputs) for r in first.resources] == [
        (r.urn, r.id, r.outputs) for r in again.resources
    ]


def test_the_table_is_used_for_the_package() -> None:
    subject = Subject("urn:x", "gcp:pubsub/topic:Topic", "t", {"name": "n"}, {})
    made = Outputs().derive(subject)
    assert made.id == f"projects/{gcp.DEFAULT_PROJECT}/topics/n"


def test_functions() -> None:
    token = "gcp:organizations/getClientConfig:getClientConfig"
    answer = gcp.invoke(token, {}, {"project": "p", "region": "us-east1"})
    assert (answer["project"], answer["region"]) == ("p", "us-east1")
    assert gcp.invoke("gcp:organizations/getProject:getProject", {}, {}) is None


def test_something_without_a_rule_has_an_id() -> None:
    subject = Subject("urn:x", "gcp:redis/instance:Instance", "r", {}, {"project": "p"})
    assert gcp.derive(subject).id.startswith("projects/p/instances/r-")
