"""Permissions of predefined roles and of services, as far as stores are concerned.

Source: IAM documentation, "IAM basic and predefined roles reference" and "IAM
permissions reference" (https://cloud.google.com/iam/docs, read 2026-08). A role that
is not listed has unknown permissions; the evaluator then answers "cannot tell".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_PULL: Final = (
    "artifactregistry.dockerimages.get",
    "artifactregistry.dockerimages.list",
    "artifactregistry.files.download",
    "artifactregistry.files.get",
    "artifactregistry.files.list",
    "artifactregistry.packages.get",
    "artifactregistry.packages.list",
    "artifactregistry.repositories.downloadArtifacts",
    "artifactregistry.repositories.get",
    "artifactregistry.repositories.list",
    "artifactregistry.tags.get",
    "artifactregistry.tags.list",
    "artifactregistry.versions.get",
    "artifactregistry.versions.list",
)
_PUSH: Final = (
    "artifactregistry.files.upload",
    "artifactregistry.repositories.uploadArtifacts",
    "artifactregistry.tags.create",
)
_IMAGES_BEYOND: Final = (
    "artifactregistry.packages.delete",
    "artifactregistry.packages.update",
    "artifactregistry.repositories.delete",
    "artifactregistry.repositories.deleteArtifacts",
    "artifactregistry.repositories.setIamPolicy",
    "artifactregistry.repositories.update",
    "artifactregistry.tags.delete",
    "artifactregistry.tags.update",
    "artifactregistry.versions.delete",
)
_MULTIPART: Final = (
    "storage.multipartUploads.abort",
    "storage.multipartUploads.create",
    "storage.multipartUploads.list",
    "storage.multipartUploads.listParts",
)
_OBJECTS_BEYOND: Final = (
    "storage.buckets.delete",
    "storage.buckets.get",
    "storage.buckets.getIamPolicy",
    "storage.buckets.setIamPolicy",
    "storage.buckets.update",
    "storage.objects.delete",
    "storage.objects.getIamPolicy",
    "storage.objects.overrideUnlockedRetention",
    "storage.objects.setIamPolicy",
    "storage.objects.setRetention",
    "storage.objects.update",
)
_TOPICS_BEYOND: Final = (
    "pubsub.topics.attachSubscription",
    "pubsub.topics.delete",
    "pubsub.topics.detachSubscription",
    "pubsub.topics.get",
    "pubsub.topics.getIamPolicy",
    "pubsub.topics.setIamPolicy",
    "pubsub.topics.update",
)

READS: Final = "read"
WRITES: Final = "write"
INSERTS: Final = "insert"

DECISIVE: Final[Mapping[str, Mapping[str, str]]] = {
    "object": {READS: "storage.objects.get", WRITES: "storage.objects.create"},
    "repository": {
        READS: "artifactregistry.repositories.downloadArtifacts",
        WRITES: "artifactregistry.repositories.uploadArtifacts",
    },
    "topic": {INSERTS: "pubsub.topics.publish"},
}
"""The permission that decides each verb, by what a part of a store is."""

BELONGS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "object": {
        READS: ("storage.objects.get", "storage.objects.list"),
        WRITES: ("storage.objects.create", *_MULTIPART),
    },
    "repository": {READS: _PULL, WRITES: _PUSH},
    "topic": {INSERTS: ("pubsub.topics.publish",)},
}
"""Permissions that belong to a verb: with the verb they are nothing beyond it."""

ALL: Final[Mapping[str, tuple[str, ...]]] = {
    "object": (
        "storage.objects.create",
        "storage.objects.get",
        "storage.objects.list",
        *_MULTIPART,
        *_OBJECTS_BEYOND,
    ),
    "repository": (*_PULL, *_PUSH, *_IMAGES_BEYOND),
    "topic": ("pubsub.topics.publish", *_TOPICS_BEYOND),
}
"""Every permission that is asked about a part of a store."""

ON_BUCKET: Final = frozenset(
    {
        "storage.objects.list",
        "storage.multipartUploads.list",
        *(p for p in _OBJECTS_BEYOND if p.startswith("storage.buckets.")),
    }
)
"""Permissions that are checked on the bucket and not on an object (Cloud Storage
documentation, "IAM permissions for JSON methods")."""

ACTS_AS: Final = (
    "iam.serviceAccounts.getAccessToken",
    "iam.serviceAccounts.getOpenIdToken",
    "iam.serviceAccounts.implicitDelegation",
    "iam.serviceAccounts.signBlob",
    "iam.serviceAccounts.signJwt",
    "iam.serviceAccountKeys.create",
)
"""Permissions on a service account that make its holder able to be it."""

_IMPERSONATE: Final = ACTS_AS[:5]
_OBJECT_VIEWER: Final = (
    "storage.managedFolders.get",
    "storage.managedFolders.list",
    "storage.objects.get",
    "storage.objects.list",
)
_OBJECT_CREATOR: Final = (
    "storage.folders.create",
    "storage.managedFolders.create",
    "storage.multipartUploads.abort",
    "storage.multipartUploads.create",
    "storage.multipartUploads.listParts",
    "storage.objects.create",
)
_OBJECT_USER: Final = (
    *_OBJECT_VIEWER,
    *_OBJECT_CREATOR,
    "storage.multipartUploads.list",
    "storage.objects.delete",
    "storage.objects.update",
)
_EVERYTHING: Final = tuple(
    dict.fromkeys([p for permissions in ALL.values() for p in permissions])
)

PREDEFINED: Final[Mapping[str, frozenset[str]]] = {
    role: frozenset(permissions)
    for role, permissions in {
        "roles/artifactregistry.reader": _PULL,
        "roles/artifactregistry.writer": (
            *_PULL,
            *_PUSH,
            "artifactregistry.packages.update",
            "artifactregistry.tags.update",
        ),
        "roles/artifactregistry.repoAdmin": (
            *_PULL,
            *_PUSH,
            "artifactregistry.packages.delete",
            "artifactregistry.packages.update",
            "artifactregistry.repositories.deleteArtifacts",
            "artifactregistry.tags.delete",
            "artifactregistry.tags.update",
            "artifactregistry.versions.delete",
        ),
        "roles/artifactregistry.admin": (*_PULL, *_PUSH, *_IMAGES_BEYOND),
        "roles/cloudkms.cryptoKeyEncrypterDecrypter": (
            "cloudkms.cryptoKeyVersions.useToDecrypt",
            "cloudkms.cryptoKeyVersions.useToEncrypt",
        ),
        "roles/container.clusterViewer": (
            "container.clusters.get",
            "container.clusters.list",
        ),
        "roles/container.defaultNodeServiceAccount": (
            "autoscaling.sites.writeMetrics",
            "logging.logEntries.create",
            "monitoring.metricDescriptors.create",
            "monitoring.metricDescriptors.list",
            "monitoring.timeSeries.create",
        ),
        "roles/editor": tuple(p for p in _EVERYTHING if not p.endswith("setIamPolicy")),
        "roles/iam.serviceAccountKeyAdmin": ("iam.serviceAccountKeys.create",),
        "roles/iam.serviceAccountOpenIdTokenCreator": (
            "iam.serviceAccounts.getOpenIdToken",
        ),
        "roles/iam.serviceAccountTokenCreator": _IMPERSONATE,
        "roles/iam.serviceAccountUser": (
            "iam.serviceAccounts.actAs",
            "iam.serviceAccounts.get",
            "iam.serviceAccounts.list",
        ),
        "roles/iam.workloadIdentityUser": (
            "iam.serviceAccounts.get",
            "iam.serviceAccounts.getAccessToken",
            "iam.serviceAccounts.getOpenIdToken",
            "iam.serviceAccounts.list",
        ),
        "roles/owner": (*_EVERYTHING, *ACTS_AS),
        "roles/pubsub.editor": ("pubsub.topics.publish", *_TOPICS_BEYOND[:4]),
        "roles/pubsub.publisher": ("pubsub.topics.publish",),
        "roles/pubsub.subscriber": ("pubsub.topics.attachSubscription",),
        "roles/secretmanager.secretAccessor": ("secretmanager.versions.access",),
        "roles/storage.admin": ALL["object"],
        "roles/storage.legacyBucketReader": (
            "storage.buckets.get",
            "storage.multipartUploads.list",
            "storage.objects.list",
        ),
        "roles/storage.legacyObjectReader": ("storage.objects.get",),
        "roles/storage.objectAdmin": (
            *_OBJECT_USER,
            "storage.objects.getIamPolicy",
            "storage.objects.overrideUnlockedRetention",
            "storage.objects.setIamPolicy",
            "storage.objects.setRetention",
        ),
        "roles/storage.objectCreator": _OBJECT_CREATOR,
        "roles/storage.objectUser": _OBJECT_USER,
        "roles/storage.objectViewer": _OBJECT_VIEWER,
    }.items()
}
"""Permissions by predefined role, those of :data:`ALL` and :data:`ACTS_AS` in full.
``roles/viewer`` is left out on purpose: on storage it works through convenience
members of buckets, so what it gives cannot be told from the role alone."""
