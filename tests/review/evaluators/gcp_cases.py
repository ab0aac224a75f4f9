"""Resources of a record, written by hand, for the Google Cloud evaluator's tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from runfleet.review.evaluators.gcp_decide import Access
from runfleet.review.evaluators.gcp_fleet import GcpReader
from runfleet.review.evaluators.gcp_inventory import read_inventory

PROJECT = "demo"
NUMBER = "111"
POOL = f"{PROJECT}.svc.id.goog"
EMAIL = f"job@{PROJECT}.iam.gserviceaccount.com"
BUCKET = "cache-bucket"
OBJECTS = f"projects/_/buckets/{BUCKET}/objects"
PRINCIPAL = (
    f"principal://iam.googleapis.com/projects/{NUMBER}/locations/global/"
    f"workloadIdentityPools/{POOL}"
)
POD = f"{PRINCIPAL}/subject/ns/ci/sa/job"
READER = f"projects/{PROJECT}/roles/reader"
WRITER = f"projects/{PROJECT}/roles/writer"


@dataclass(frozen=True)
class Made:
    """A resource of a record."""

    urn: str
    type: str
    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any] = field(default_factory=dict[str, Any])


def made(token: str, name: str, /, **inputs: Any) -> Made:
    """Return a resource of a type, its name and its inputs."""
    return Made(f"urn:pulumi:s::p::{token}::{name}", token, inputs)


def member(name: str, kind: str = "storage/bucket", /, **inputs: Any) -> Made:
    """Return a binding of one member."""
    forms = {
        "storage/bucket": "storage/bucketIAMMember:BucketIAMMember",
        "artifactregistry/repository": (
            "artifactregistry/repositoryIamMember:RepositoryIamMember"
        ),
        "pubsub/topic": "pubsub/topicIAMMember:TopicIAMMember",
        "serviceaccount": "serviceaccount/iAMMember:IAMMember",
        "projects": "projects/iAMMember:IAMMember",
    }
    if "expression" in inputs:
        inputs["condition"] = {"title": "t", "expression": inputs.pop("expression")}
    return made(f"gcp:{forms[kind]}", name, **inputs)


def account(email: str = EMAIL) -> Made:
    """Return a service account."""
    return made(
        "gcp:serviceaccount/account:Account",
        email,
        accountId=email.partition("@")[0],
        project=email.partition("@")[2].partition(".")[0],
    )


def acts(who: str = POD, email: str = EMAIL, **inputs: Any) -> Made:
    """Return the binding that lets somebody act as a service account."""
    project = email.partition("@")[2].partition(".")[0]
    values: dict[str, Any] = {
        "serviceAccountId": f"projects/{project}/serviceAccounts/{email}",
        "role": "roles/iam.workloadIdentityUser",
        "member": who,
        **inputs,
    }
    return member(f"acts-{email}-{who}", "serviceaccount", **values)


JOB_MEMBER = f"serviceAccount:{EMAIL}"


def starts(prefix: str) -> str:
    """Return the condition that holds for objects whose names begin so."""
    return f'resource.name.startsWith("{OBJECTS}/{prefix}")'


def bound(**inputs: Any) -> dict[str, Any]:
    """Return the inputs of a binding that lets the job read the bucket."""
    return {"bucket": BUCKET, "role": READER, "member": JOB_MEMBER} | inputs


BASE = (
    made(
        "gcp:container/cluster:Cluster",
        "gke",
        name="gke",
        workloadIdentityConfig={"workloadPool": POOL},
    ),
    made(
        "gcp:container/nodePool:NodePool",
        "pool",
        cluster="gke",
        nodeConfig={
            "serviceAccount": f"node@{PROJECT}.iam.gserviceaccount.com",
            "workloadMetadataConfig": {"mode": "GKE_METADATA"},
        },
    ),
    made("gcp:storage/bucket:Bucket", "bucket", name=BUCKET, project=PROJECT),
    made(
        "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember",
        "agent",
        cryptoKeyId=f"projects/{PROJECT}/locations/l/keyRings/r/cryptoKeys/k",
        role="roles/cloudkms.cryptoKeyEncrypterDecrypter",
        member=(
            f"serviceAccount:service-{NUMBER}@container-engine-robot"
            ".iam.gserviceaccount.com"
        ),
    ),
    made(
        "gcp:projects/iAMCustomRole:IAMCustomRole",
        "reader",
        roleId="reader",
        project=PROJECT,
        permissions=["storage.objects.get"],
    ),
    made(
        "gcp:projects/iAMCustomRole:IAMCustomRole",
        "writer",
        roleId="writer",
        project=PROJECT,
        permissions=["storage.objects.create"],
    ),
    account(),
)
"""A cluster, a bucket, two custom roles, a service account; nobody may do anything."""


def reader(*more: Made, base: tuple[Made, ...] = BASE) -> GcpReader:
    """Return the evaluator over the base and more resources."""
    return GcpReader([((*base, *more), PROJECT)])


def access(*more: Made) -> Access:
    """Return the decisions over the base and more resources."""
    return Access(read_inventory([((*BASE, *more), PROJECT)]))
