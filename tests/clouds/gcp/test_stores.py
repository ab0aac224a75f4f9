"""Stores: encrypted, never public, split by trust, protected and kept."""

from __future__ import annotations

from clouds.gcp import fleets
from clouds.gcp.fleets import of_type, one
from runfleet.clouds.gcp.grants import PERMISSIONS
from runfleet.rehearsal.record import Record

KEY = (
    "projects/demo-ci/locations/us-central1/keyRings/demo--gcp--stores/"
    "cryptoKeys/stores"
)
BUCKET = "gcp:storage/bucket:Bucket"
REPOSITORY = "gcp:artifactregistry/repository:Repository"


def test_a_bucket(cell: Record) -> None:
    bucket = one(cell, "gcp-stores-cache")
    assert bucket.inputs == {
        "name": bucket.inputs["name"],
        "project": "demo-ci",
        "location": "US-CENTRAL1",
        "storageClass": "STANDARD",
        "uniformBucketLevelAccess": True,
        "publicAccessPrevention": "enforced",
        "forceDestroy": False,
        "versioning": {"enabled": True},
        "softDeletePolicy": {"retentionDurationSeconds": 604800},
        "encryption": {"defaultKmsKeyName": KEY},
        "lifecycleRules": [
            {
                "action": {"type": "AbortIncompleteMultipartUpload"},
                "condition": {"age": 7},
            },
            {
                "action": {"type": "Delete"},
                "condition": {"age": 30, "withState": "LIVE"},
            },
            {
                "action": {"type": "Delete"},
                "condition": {"daysSinceNoncurrentTime": 30, "withState": "ARCHIVED"},
            },
        ],
        "labels": fleets.LABELS,
    }


def test_every_store_is_closed_and_kept(cell: Record, central: Record) -> None:
    for found in (cell, central):
        for bucket in of_type(found, BUCKET):
            assert bucket.inputs["uniformBucketLevelAccess"] is True
            assert bucket.inputs["publicAccessPrevention"] == "enforced"
            assert bucket.inputs["encryption"]["defaultKmsKeyName"].endswith("/stores")
            assert (bucket.protect, bucket.retain_on_delete) == (True, True)
        for repository in of_type(found, REPOSITORY):
            assert repository.inputs["kmsKeyName"].endswith("/cryptoKeys/stores")
            assert (repository.protect, repository.retain_on_delete) == (True, True)
        for resource in found.resources:
            members = [
                resource.inputs.get("member"),
                *resource.inputs.get("members", []),
            ]
            assert not {"allUsers", "allAuthenticatedUsers"} & set(members)
    for topic in of_type(central, "gcp:pubsub/topic:Topic"):
        if "budget" not in topic.name:
            assert topic.inputs["kmsKeyName"].endswith("/cryptoKeys/stores")


def test_which_stores_are_where(cell: Record, central: Record) -> None:
    assert {b.name for b in of_type(cell, BUCKET)} == {
        "gcp-stores-cache",
        "gcp-stores-artifacts",
        "gcp-stores-shared",
    }
    assert {b.name for b in of_type(central, BUCKET)} == {
        f"central-stores-{kind}"
        for kind in ("cache", "artifacts", "shared", "release", "telemetry")
    }


def test_a_release_cannot_be_replaced_or_deleted(central: Record) -> None:
    release = one(central, "central-stores-release").inputs
    assert release["retentionPolicy"] == {
        "retentionPeriod": str(365 * 86_400),
        "isLocked": False,
    }
    assert release["versioning"] == {"enabled": False}
    assert len(release["lifecycleRules"]) == 1
    assert "retentionPolicy" not in one(central, "central-stores-cache").inputs


def test_a_repository_for_each_trust_and_one_for_each_upstream(cell: Record) -> None:
    found = {r.inputs["repositoryId"]: r.inputs for r in of_type(cell, REPOSITORY)}
    assert set(found) == {
        *(
            f"demo--gcp--{kind}-{trust}"
            for kind in ("registry", "shared")
            for trust in ("untrusted-pr", "trusted", "release")
        ),
        *(f"demo--gcp--cache-{name}" for name in ("ecr", "k8s", "quay")),
    }
    trusted = found["demo--gcp--registry-trusted"]
    assert trusted["mode"] == "STANDARD_REPOSITORY"
    assert trusted["dockerConfig"] == {"immutableTags": True}
    assert trusted["cleanupPolicies"] == [
        {
            "id": "untagged",
            "action": "DELETE",
            "condition": {"tagState": "UNTAGGED", "olderThan": "1209600s"},
        }
    ]
    quay = found["demo--gcp--cache-quay"]
    assert quay["mode"] == "REMOTE_REPOSITORY"
    assert quay["remoteRepositoryConfig"] == {
        "description": "https://quay.io",
        "commonRepository": {"uri": "https://quay.io"},
    }


def test_telemetry_can_only_be_added_to(central: Record) -> None:
    topics = {
        r.name: r.inputs
        for r in of_type(central, "gcp:pubsub/subscription:Subscription")
    }
    assert set(topics) == {
        f"central-stores-telemetry-to-bucket-{trust}"
        for trust in ("untrusted-pr", "trusted", "release")
    }
    trusted = topics["central-stores-telemetry-to-bucket-trusted"]
    bucket = one(central, "central-stores-telemetry").inputs["name"]
    assert (
        trusted["topic"]
        == "projects/demo-central/topics/demo--central--telemetry-trusted"
    )
    assert trusted["cloudStorageConfig"] == {
        "bucket": bucket,
        "filenamePrefix": "trusted/",
        "filenameSuffix": ".jsonl",
        "maxDuration": "300s",
        "maxBytes": 64 * 1024**2,
    }
    agent = "serviceAccount:service-210987654321@gcp-sa-pubsub.iam.gserviceaccount.com"
    on_bucket = {
        (r.inputs["member"], r.inputs["role"])
        for r in of_type(central, "gcp:storage/bucketIAMMember:BucketIAMMember")
        if r.inputs["bucket"] == bucket
    }
    assert on_bucket == {
        (agent, "roles/storage.objectCreator"),
        (agent, "roles/storage.legacyBucketReader"),
    }


def test_custom_roles_hold_what_grants_say(cell: Record, central: Record) -> None:
    for found, names in (
        (cell, set(PERMISSIONS) - {"recordinserter"}),
        (central, set(PERMISSIONS)),
    ):
        roles = of_type(found, "gcp:projects/iAMCustomRole:IAMCustomRole")
        assert {r.name.rpartition("-")[2] for r in roles} == names
        for role in roles:
            wanted = PERMISSIONS[role.name.rpartition("-")[2]]
            assert role.inputs["permissions"] == list(wanted)
            assert role.retain_on_delete


def test_the_key_can_be_used_before_a_store_is_made(cell: Record) -> None:
    after = {u.rpartition("::")[2] for u in one(cell, "gcp-stores-cache").dependencies}
    assert "gcp-stores-key-storage" in after
    use = one(cell, "gcp-stores-key-artifactregistry")
    agents = {u.rpartition("::")[2] for u in use.dependencies}
    assert "gcp-stores-agent-artifactregistry" in agents


def test_the_promoter_reads_local_stores_and_writes_none(cell: Record) -> None:
    member = "serviceAccount:promoter--demo@demo-central.iam.gserviceaccount.com"
    roles = {
        r.inputs["role"].rpartition("/")[2].rsplit("_", 1)[0]
        for r in cell.resources
        if r.inputs.get("member") == member
    }
    assert roles == {
        "demo_gcp_objectreader",
        "demo_gcp_objectlister",
        "demo_gcp_imagepuller",
    }


def test_handles(cell: Record, central: Record) -> None:
    stores = cell.outputs["stores"]
    cache = one(cell, "gcp-stores-cache").inputs["name"]
    assert stores["cache"]["bucket"] == cache
    assert stores["cache"]["bucket_id"] == (
        f"//storage.googleapis.com/projects/_/buckets/{cache}"
    )
    registry = stores["registry"]
    assert "bucket" not in registry
    assert registry["repository"] == "us-central1-docker.pkg.dev/demo-ci"
    assert registry["repository_id"] == (
        "projects/demo-ci/locations/us-central1/repositories/demo--gcp--registry"
    )
    assert registry["extra"]["repository/trusted"] == (
        "us-central1-docker.pkg.dev/demo-ci/demo--gcp--registry-trusted"
    )
    assert registry["extra"]["cache/k8s"] == (
        "us-central1-docker.pkg.dev/demo-ci/demo--gcp--cache-k8s"
    )
    telemetry = central.outputs["stores"]["telemetry"]
    assert (
        telemetry["stream_id"]
        == "projects/demo-central/topics/demo--central--telemetry"
    )


def test_stores_that_exist_are_used_as_they_are() -> None:
    text = fleets.changed(
        ("cache: {keep: 30d}", "cache: {adopt: theirs, scopes: [local]}"),
        ("registry: {}", "registry: {adopt: their-images, scopes: [local]}"),
    )
    found = fleets.cell_record(fleets.plan_of(known=fleets.fleet(text)))
    assert "gcp-stores-cache" not in {r.name for r in found.resources}
    read = one(found, "gcp-identity-builds-local-cache-read").inputs
    assert read["bucket"] == "theirs"
    assert (
        "projects/_/buckets/theirs/objects/trusted/" in read["condition"]["expression"]
    )
    push = one(found, "gcp-identity-builds-local-registry-push-trusted").inputs
    assert push["repository"] == "their-images-trusted"
