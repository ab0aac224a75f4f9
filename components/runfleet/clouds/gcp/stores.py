"""Stores: what grants are given on, as buckets, image repositories and topics.

One :class:`Stores` holds the stores of one scope, a cell's or the central ones, under
one key of their own. Nothing in it is ever public, access is by allow policies alone
(uniform bucket-level access, public access prevention), everything is encrypted with
that key, protected against deletion and kept when the stack goes. That connections
are made over TLS only is an organisation policy of the project
(:mod:`runfleet.clouds.gcp.guards`): Google has no such setting on a bucket.

Every store is split by trust (see :mod:`runfleet.clouds.gcp.grants`): a bucket by
prefix, a registry into one repository for each trust level, telemetry into one topic
for each, whose records Pub/Sub writes to the bucket under that prefix. Telemetry can
only be added to: jobs may publish and have no access to the bucket behind it.

The custom roles that grants are given in belong to the stores: a role of a project is
good for resources of that project only (IAM documentation, "Create and manage custom
roles"), so the central stores have roles of their own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import pulumi
import pulumi_gcp as gcp

from runfleet.clouds.gcp import addresses
from runfleet.clouds.gcp.addresses import PROMOTED, UPSTREAMS, Site
from runfleet.clouds.gcp.grants import (
    BUCKET_KINDS,
    LISTER,
    PERMISSIONS,
    PULLER,
    READER,
    REPOSITORY_KINDS,
    roles_of,
)
from runfleet.clouds.gcp.keys import crypto_key, key_ring
from runfleet.clouds.gcp.labels import labels
from runfleet.clouds.protocols import StoreHandle
from runfleet.placement.plan import CellPlan, CentralPlan
from runfleet.spec.roles import Scope, StoreKind, Trust
from runfleet.spec.stores import Store

RELEASE_LOCK_DAYS = 365
"""Days that a release is locked when the fleet file keeps releases forever."""

SUPERSEDED_DAYS = 30
"""Days that a deleted object can still be restored."""

UNTAGGED_DAYS = 14
"""Days that an image without a tag is kept."""

CACHED_DAYS = 30
"""Days that a remote repository keeps an image that it fetched."""

_DAY = 86_400


@dataclass(frozen=True)
class StoresArgs:
    """What :class:`Stores` makes.

    Attributes:
        site: Which stores these are, and where.
        stores: The stores of this scope.
        labels: The required labels.
        promoter: Address of the promoter, which reads what it moves; empty when it
            is of another cloud, or these are the central stores.
    """

    site: Site
    stores: tuple[Store, ...]
    labels: Mapping[str, str]
    promoter: str = ""

    @classmethod
    def from_plan(cls, plan: CellPlan | CentralPlan) -> StoresArgs:
        """Take the stores of a plan: local ones of a cell, or the central ones.

        Raises:
            InputError: The plan's project is not known.
        """
        local = isinstance(plan, CellPlan)
        return cls(
            site=addresses.plan_site(plan),
            stores=plan.stores,
            labels=plan.ci_labels,
            promoter=addresses.promoter_email(plan.fleet) if local else "",
        )


class Stores(pulumi.ComponentResource):
    """The stores of one scope: encrypted, never public, protected.

    Attributes:
        handles: The stores by kind. ``repository`` is the address that repositories
            are reached below, ``repository_id`` and ``stream_id`` are what the
            resource names of a store's repositories and topics (plus ``-<trust>``)
            begin with. ``extra`` holds what is made for each trust level:
            ``repository/<trust>`` (address), ``repository_id/<trust>`` and
            ``topic/<trust>`` (ids), the remote repositories as
            ``cache/<upstream>`` and ``cache_id/<upstream>``, and the custom roles as
            ``role/<what>``.
        key_id: Resource name of the key that encrypts them.
    """

    handles: Mapping[StoreKind, StoreHandle]
    key_id: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        args: StoresArgs,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Make the stores.

        Args:
            name: Name of the component; children are called ``<name>-<suffix>``.
            args: What it makes.
            opts: Options; the explicit provider comes with them.
        """
        super().__init__("runfleet:gcp:Stores", name, None, opts)
        self._name = name
        self._args = args
        self._site = args.site
        self._kept = pulumi.ResourceOptions(
            parent=self, protect=True, retain_on_delete=True
        )
        self._key, self._key_ready = self._make_key()
        self._roles = self._make_roles()
        self.key_id = self._key.id
        self.handles = {store.kind: self._store(store) for store in args.stores}
        self.register_outputs(
            {
                "key_id": self.key_id,
                "handles": {str(k): h.exported() for k, h in self.handles.items()},
            }
        )

    def _ready(self, *more: pulumi.Resource) -> pulumi.ResourceOptions:
        """Return the options of what the key must be usable for first."""
        after = pulumi.ResourceOptions(depends_on=[*self._key_ready, *more])
        return pulumi.ResourceOptions.merge(self._kept, after)

    def _make_key(self) -> tuple[gcp.kms.CryptoKey, list[pulumi.Resource]]:
        site, kinds = self._site, {store.kind for store in self._args.stores}
        services = ["storage.googleapis.com"]
        if kinds & REPOSITORY_KINDS:
            services.append("artifactregistry.googleapis.com")
        if StoreKind.TELEMETRY in kinds:
            services.append("pubsub.googleapis.com")
        # Storage's agent exists as soon as somebody asks for its address; the others
        # are made like this.
        agents: list[pulumi.Resource] = [
            gcp.projects.ServiceIdentity(
                f"{self._name}-agent-{service.partition('.')[0]}",
                project=site.project.id,
                service=service,
                opts=pulumi.ResourceOptions(parent=self),
            )
            for service in services[1:]
        ]
        ring = key_ring(
            f"{self._name}-key-ring",
            site.project,
            (site.fleet, site.name, "stores"),
            self,
        )
        key, ready = crypto_key(
            f"{self._name}-key",
            ring,
            "stores",
            site.project,
            services,
            labels(self._args.labels),
            self,
            agents,
        )
        return key, ready

    def _make_roles(self) -> dict[str, pulumi.Output[str]]:
        """Make the roles that grants on these stores are given in."""
        return {
            what: gcp.projects.IAMCustomRole(
                f"{self._name}-role-{what}",
                role_id=self._site.role(what),
                project=self._site.project.id,
                title=f"{self._site.fleet} {self._site.name} {what}",
                description="Made by Runfleet from the grants of the fleet file",
                permissions=list(PERMISSIONS[what]),
                stage="GA",
                opts=pulumi.ResourceOptions(parent=self, retain_on_delete=True),
            ).name
            for what in roles_of(store.kind for store in self._args.stores)
        }

    def _store(self, store: Store) -> StoreHandle:
        site, kind = self._site, store.kind
        bucket: pulumi.Output[str] | None = None
        base = ""
        stream: pulumi.Output[str] | None = None
        stream_id: pulumi.Output[str] | None = None
        extra: dict[str, pulumi.Output[str]] = {
            f"role/{what}": self._roles[what] for what in roles_of([kind])
        }
        if kind is not StoreKind.REGISTRY:
            bucket = self._bucket(store)
        if kind in REPOSITORY_KINDS:
            for trust in Trust:
                extra |= self._repository(store, trust)
            base = site.repository_name(site.repository(store, Trust.RELEASE))
            base = base.removesuffix(f"-{Trust.RELEASE}")
        if kind is StoreKind.REGISTRY and site.scope is Scope.LOCAL:
            for upstream in UPSTREAMS:
                extra |= self._cache(store, upstream)
        if kind is StoreKind.TELEMETRY and bucket is not None:
            topics = self._topics(store, bucket)
            extra |= {f"topic/{trust}": topic.name for trust, topic in topics.items()}
            tail = f"-{Trust.RELEASE}"
            stream = topics[Trust.RELEASE].name.apply(lambda v: v.removesuffix(tail))
            stream_id = topics[Trust.RELEASE].id.apply(lambda v: v.removesuffix(tail))
        return StoreHandle(
            kind=kind,
            scope=site.scope,
            bucket=bucket,
            bucket_id=bucket.apply(bucket_id) if bucket is not None else None,
            repository=pulumi.Output.from_input(site.registry) if base else None,
            repository_id=pulumi.Output.from_input(base) if base else None,
            stream=stream,
            stream_id=stream_id,
            key_id=self._key.id,
            extra=extra,
        )

    def _bucket(self, store: Store) -> pulumi.Output[str]:
        """Make a bucket with all its settings, or take an existing one as it is."""
        name, site = f"{self._name}-{store.kind}", self._site
        if store.adopt:
            bucket_name = pulumi.Output.from_input(store.adopt)
        else:
            release = store.kind is StoreKind.RELEASE
            days = days_kept(store)
            bucket_name = gcp.storage.Bucket(
                name,
                name=site.bucket(store),
                project=site.project.id,
                location=site.project.region.upper(),
                storage_class="STANDARD",
                uniform_bucket_level_access=True,
                public_access_prevention="enforced",
                force_destroy=False,
                # A locked object cannot be replaced or deleted, so there are no
                # versions of it.
                versioning={"enabled": not release},
                retention_policy={
                    "retention_period": str((days or RELEASE_LOCK_DAYS) * _DAY),
                    "is_locked": False,
                }
                if release
                else None,
                soft_delete_policy={"retention_duration_seconds": 7 * _DAY},
                encryption={"default_kms_key_name": self._key.id},
                lifecycle_rules=cast("Any", lifecycle(store)),
                labels=labels(self._args.labels),
                opts=self._ready(),
            ).name
        if self._args.promoter and store.kind in PROMOTED:
            for what in (READER, LISTER):
                gcp.storage.BucketIAMMember(
                    f"{name}-promoter-{what}",
                    bucket=bucket_name,
                    role=self._roles[what],
                    member=f"serviceAccount:{self._args.promoter}",
                    opts=pulumi.ResourceOptions(parent=self),
                )
        return bucket_name

    def _repository(self, store: Store, trust: Trust) -> dict[str, pulumi.Output[str]]:
        """Make the repository of one trust level."""
        site, name = self._site, f"{self._name}-{store.kind}-images-{trust}"
        if store.adopt and store.kind is StoreKind.REGISTRY:
            made = pulumi.Output.from_input(site.repository(store, trust))
        else:
            made = gcp.artifactregistry.Repository(
                name,
                repository_id=site.repository(store, trust),
                project=site.project.id,
                location=site.project.region,
                format="DOCKER",
                mode="STANDARD_REPOSITORY",
                description=f"Images written as {trust}",
                kms_key_name=self._key.id,
                docker_config={"immutable_tags": True},
                cleanup_policies=cast("Any", cleanup(days_kept(store))),
                cleanup_policy_dry_run=False,
                vulnerability_scanning_config={"enablement_config": "INHERITED"},
                labels=labels(self._args.labels),
                opts=self._ready(),
            ).repository_id
        if self._args.promoter and store.kind in PROMOTED:
            gcp.artifactregistry.RepositoryIamMember(
                f"{name}-promoter",
                project=site.project.id,
                location=site.project.region,
                repository=made,
                role=self._roles[PULLER],
                member=f"serviceAccount:{self._args.promoter}",
                opts=pulumi.ResourceOptions(parent=self),
            )
        return {
            f"repository_id/{trust}": made,
            f"repository/{trust}": made.apply(lambda id_: f"{site.registry}/{id_}"),
        }

    def _cache(self, store: Store, upstream: str) -> dict[str, pulumi.Output[str]]:
        """Make the remote repository of an upstream registry."""
        site = self._site
        made = gcp.artifactregistry.Repository(
            f"{self._name}-{store.kind}-cache-{upstream}",
            repository_id=site.cache(upstream),
            project=site.project.id,
            location=site.project.region,
            format="DOCKER",
            mode="REMOTE_REPOSITORY",
            description=f"Copies of {UPSTREAMS[upstream]}",
            kms_key_name=self._key.id,
            remote_repository_config={
                "description": UPSTREAMS[upstream],
                "common_repository": {"uri": UPSTREAMS[upstream]},
            },
            cleanup_policies=cast("Any", cleanup(CACHED_DAYS)),
            cleanup_policy_dry_run=False,
            vulnerability_scanning_config={"enablement_config": "INHERITED"},
            labels=labels(self._args.labels),
            opts=self._ready(),
        ).repository_id
        return {
            f"cache_id/{upstream}": made,
            f"cache/{upstream}": made.apply(lambda id_: f"{site.registry}/{id_}"),
        }

    def _topics(
        self, store: Store, bucket: pulumi.Output[str]
    ) -> dict[Trust, gcp.pubsub.Topic]:
        """Make one topic for each trust level, written to the bucket by Pub/Sub."""
        site, name = self._site, f"{self._name}-{store.kind}"
        agent = site.project.agent("pubsub.googleapis.com")
        # What Pub/Sub needs on the bucket that it writes to (Pub/Sub documentation,
        # "Cloud Storage subscriptions").
        may_write: list[pulumi.Resource] = [
            gcp.storage.BucketIAMMember(
                f"{name}-pubsub-{suffix}",
                bucket=bucket,
                role=role,
                member=agent,
                opts=pulumi.ResourceOptions(parent=self),
            )
            for suffix, role in (
                ("creates", "roles/storage.objectCreator"),
                ("finds", "roles/storage.legacyBucketReader"),
            )
        ]
        topics: dict[Trust, gcp.pubsub.Topic] = {}
        for trust in Trust:
            topic = gcp.pubsub.Topic(
                f"{name}-topic-{trust}",
                name=site.topic(store, trust),
                project=site.project.id,
                kms_key_name=self._key.id,
                message_storage_policy={
                    "allowed_persistence_regions": [site.project.region]
                },
                labels=labels(self._args.labels),
                opts=self._ready(),
            )
            gcp.pubsub.Subscription(
                f"{name}-to-bucket-{trust}",
                name=site.topic(store, trust),
                project=site.project.id,
                topic=topic.id,
                ack_deadline_seconds=300,
                message_retention_duration=f"{7 * _DAY}s",
                expiration_policy={"ttl": ""},
                cloud_storage_config={
                    "bucket": bucket,
                    "filename_prefix": f"{trust}/",
                    "filename_suffix": ".jsonl",
                    "max_duration": "300s",
                    "max_bytes": 64 * 1024**2,
                },
                labels=labels(self._args.labels),
                opts=self._ready(*may_write),
            )
            topics[trust] = topic
        return topics


def bucket_id(name: str) -> str:
    """Return the full resource name of a bucket."""
    return f"//storage.googleapis.com/projects/_/buckets/{name}"


def days_kept(store: Store) -> int | None:
    """Return how many days a store keeps things; ``None`` when forever."""
    return math.ceil(store.keep.seconds / _DAY) if store.keep else None


def lifecycle(store: Store) -> list[dict[str, Any]]:
    """Return the lifecycle rules of a store's bucket.

    Objects go after the store's ``keep``; what was deleted can be restored for a
    month; parts of uploads that were never finished go after a week.
    """
    rules: list[dict[str, Any]] = [
        {"action": {"type": "AbortIncompleteMultipartUpload"}, "condition": {"age": 7}}
    ]
    days = days_kept(store)
    if days is not None:
        rules.append(
            {
                "action": {"type": "Delete"},
                "condition": {"age": days, "with_state": "LIVE"},
            }
        )
    if store.kind in BUCKET_KINDS - {StoreKind.RELEASE}:
        rules.append(
            {
                "action": {"type": "Delete"},
                "condition": {
                    "days_since_noncurrent_time": SUPERSEDED_DAYS,
                    "with_state": "ARCHIVED",
                },
            }
        )
    return rules


def cleanup(days: int | None) -> Sequence[dict[str, Any]]:
    """Return the cleanup policies of a repository.

    Args:
        days: After how many days images go; ``None`` for never. Images without a tag
            go after two weeks in any case.
    """
    found = [_cleanup("untagged", "UNTAGGED", UNTAGGED_DAYS)]
    if days is not None:
        found.append(_cleanup("old", "ANY", days))
    return found


def _cleanup(name: str, state: str, days: int) -> dict[str, Any]:
    return {
        "id": name,
        "action": "DELETE",
        "condition": {"tag_state": state, "older_than": f"{days * _DAY}s"},
    }
