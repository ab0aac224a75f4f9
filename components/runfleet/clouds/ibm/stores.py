"""Stores: what grants are given on, as buckets and registry namespaces.

One :class:`Stores` holds the stores of one scope, a cell's or the central ones: one
Cloud Object Storage instance, one Key Protect instance with one root key, a bucket for
each store, and a registry namespace for each store with images and each trust level.
Nothing is public: a bucket is open to no one but by policy, and IBM Cloud has no
anonymous access unless a policy for the group ``Public Access`` is made, which nothing
here makes. Everything is encrypted with the root key, protected against deletion and
kept when the stack goes. Cloud Object Storage answers over TLS only.

Every store is split by trust (:mod:`runfleet.clouds.ibm.grants`): a bucket by prefix, a
registry into one namespace for each trust level.

Releases and telemetry are kept unchanged by a retention rule: until its days are over,
an object can be neither replaced nor deleted, by anyone. So telemetry can only be added
to. The other buckets keep replaced objects for a while, and forget objects when the
fleet file says so.

An image registry of IBM Cloud has no pull-through cache and no rule that makes tags
immutable; both are left out rather than imitated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import pulumi

from runfleet.clouds.ibm import addresses
from runfleet.clouds.ibm.addresses import Site
from runfleet.clouds.ibm.grants import PUSH_ACTIONS, REPOSITORY_KINDS
from runfleet.clouds.ibm.keys import Vault, VaultArgs, tagged
from runfleet.clouds.ibm.names import RESOURCE_INSTANCE, Place, custom_role
from runfleet.clouds.ibm.resources.access import IamCustomRole
from runfleet.clouds.ibm.resources.containers import CrNamespace
from runfleet.clouds.ibm.resources.storage import (
    ActivityTracking,
    CosBucket,
    ExpireRule,
    KmsKey,
    ObjectVersioning,
    ResourceInstance,
    RetentionRule,
    VersionExpiration,
)
from runfleet.clouds.ibm.settings import IbmSettings
from runfleet.clouds.ibm.tags import tags
from runfleet.clouds.protocols import StoreHandle
from runfleet.placement.plan import CellPlan, CentralPlan
from runfleet.spec.roles import StoreKind, Trust
from runfleet.spec.stores import Store

KEPT_UNCHANGED = frozenset({StoreKind.RELEASE, StoreKind.TELEMETRY})
"""Kinds whose objects cannot be replaced."""

RETENTION_DAYS = 365
"""How long those are kept unchanged when the fleet file does not say."""

REPLACED_DAYS = 30
"""How long a replaced object of the other buckets is kept."""

_DAY = 86_400


@dataclass(frozen=True)
class StoresArgs:
    """What :class:`Stores` makes.

    Attributes:
        site: Which stores these are, and where.
        stores: The stores of this scope.
        labels: The required labels.
    """

    site: Site
    stores: tuple[Store, ...]
    labels: Mapping[str, str]

    @classmethod
    def from_plan(cls, plan: CellPlan | CentralPlan) -> StoresArgs:
        """Take the stores of a plan: local ones of a cell, or the central ones."""
        group = (
            IbmSettings.of(plan.cell).resource_group
            if isinstance(plan, CellPlan)
            else None
        )
        return cls(addresses.plan_site(plan, group), plan.stores, plan.ci_labels)


class Stores(pulumi.ComponentResource):
    """The stores of one scope: encrypted, never public, protected.

    Attributes:
        handles: The stores by kind. ``bucket`` is the name of a bucket, ``bucket_id``
            its CRN. ``repository`` is what the addresses of a store's namespaces begin
            with; ``extra`` holds the whole ones as ``repository/<trust>``, their CRNs
            as ``repository_id/<trust>``, the namespaces as ``namespace/<trust>``, the
            display name of the role that pushes as ``push_role``, and the GUID of the
            storage instance as ``instance``.
    """

    handles: Mapping[StoreKind, StoreHandle]

    def __init__(
        self,
        name: str,
        args: StoresArgs,
        options: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Make the stores."""
        super().__init__("runfleet:ibm:Stores", name, None, options)
        self._name = name
        self._args = args
        self._site = args.site
        self._kept = pulumi.ResourceOptions(
            parent=self, protect=True, retain_on_delete=True
        )
        parts = (args.site.project, args.site.name, "stores")
        vault = Vault(
            f"{name}-vault",
            VaultArgs(parts, args.site.region, args.labels, args.site.resource_group),
            self,
        )
        self._key: KmsKey = vault.key(
            "objects", f"Stores of {args.site.project} {args.site.name}"
        )
        self._instance = ResourceInstance(
            f"{name}-objects",
            name=RESOURCE_INSTANCE.encode(*parts),
            service="cloud-object-storage",
            plan="standard",
            location="global",
            resource_group_id=args.site.resource_group,
            tags=tags(args.labels),
            opts=self._kept,
        )
        self._authorized = vault.usable_by(
            "objects", "cloud-object-storage", self._instance.guid
        )
        self._push_role = self._role()
        self.handles = {store.kind: self._store(store) for store in args.stores}
        self.register_outputs(
            {"handles": {str(k): h.exported() for k, h in self.handles.items()}}
        )

    def _role(self) -> pulumi.Output[str] | None:
        """Make the role that pushes images and does nothing else."""
        if not any(store.kind in REPOSITORY_KINDS for store in self._args.stores):
            return None
        role = IamCustomRole(
            f"{self._name}-push-role",
            name=custom_role(self._site.project, self._site.name, "image-push"),
            display_name=self._site.push_role,
            service="container-registry",
            actions=list(PUSH_ACTIONS),
            description="Pushes images; does not pull or delete them",
            opts=self._kept,
        )
        return role.display_name

    def _store(self, store: Store) -> StoreHandle:
        site = self._site
        extra: dict[str, pulumi.Output[str]] = {}
        bucket: pulumi.Output[str] | None = None
        bucket_id: pulumi.Output[str] | None = None
        if store.kind is not StoreKind.REGISTRY:
            bucket, bucket_id = self._bucket(store)
            extra["instance"] = self._instance.guid
        if store.kind in REPOSITORY_KINDS and self._push_role is not None:
            extra |= self._namespaces(store)
            extra["push_role"] = self._push_role
        first = extra.get(f"namespace/{Trust.UNTRUSTED_PR}")
        tail = f"-{Trust.UNTRUSTED_PR}"
        return StoreHandle(
            kind=store.kind,
            scope=site.scope,
            bucket=bucket,
            bucket_id=bucket_id,
            repository=first.apply(
                lambda found: f"{site.registry}/{found.removesuffix(tail)}"
            )
            if first is not None
            else None,
            repository_id=extra[f"repository_id/{Trust.UNTRUSTED_PR}"].apply(
                lambda found: found.removesuffix(tail)
            )
            if first is not None
            else None,
            key_id=self._key.crn,
            extra=extra,
        )

    def _bucket(self, store: Store) -> tuple[pulumi.Output[str], pulumi.Output[str]]:
        """Make a bucket, or take an existing one of the same instance as it is."""
        name = f"{self._name}-{store.kind}"
        bucket_name = self._site.bucket(store)
        if store.adopt:
            crn = self._instance.guid.apply(
                lambda guid: Place(self._site.account, self._site.region).crn(
                    "cloud-object-storage", guid, "bucket", bucket_name, "global"
                )
            )
            return pulumi.Output.from_input(bucket_name), crn
        unchanged = store.kind in KEPT_UNCHANGED
        days = days_kept(store)
        bucket = CosBucket(
            name,
            bucket_name=bucket_name,
            resource_instance_id=self._instance.crn,
            region_location=self._site.region,
            storage_class="smart",
            kms_key_crn=self._key.crn,
            endpoint_type="private",
            force_delete=False,
            retention_rule=retention(days) if unchanged else None,
            object_versioning=None if unchanged else ObjectVersioning(True),
            noncurrent_version_expiration=None
            if unchanged
            else VersionExpiration(True, REPLACED_DAYS, "replaced"),
            expire_rules=[ExpireRule(True, days, "old")]
            if days is not None and not unchanged
            else None,
            activity_tracking=ActivityTracking(
                read_data_events=False, write_data_events=True, management_events=True
            ),
            opts=pulumi.ResourceOptions.merge(
                self._kept, pulumi.ResourceOptions(depends_on=[self._authorized])
            ),
        )
        tagged(name, bucket.crn, self._args.labels, self._kept)
        return bucket.bucket_name, bucket.crn

    def _namespaces(self, store: Store) -> dict[str, pulumi.Output[str]]:
        """Make one registry namespace for each trust level."""
        site = self._site
        extra: dict[str, pulumi.Output[str]] = {}
        for trust in Trust:
            wanted = site.namespace(store, trust)
            if store.adopt and store.kind is StoreKind.REGISTRY:
                place = Place(site.account, site.registry_region)
                found = pulumi.Output.from_input(wanted)
                crn = pulumi.Output.from_input(
                    place.crn("container-registry", "", "namespace", wanted)
                )
            else:
                made = CrNamespace(
                    f"{self._name}-{store.kind}-images-{trust}",
                    name=wanted,
                    resource_group_id=site.resource_group,
                    tags=tags(self._args.labels),
                    opts=self._kept,
                )
                found, crn = made.name, made.crn
            extra[f"namespace/{trust}"] = found
            extra[f"repository/{trust}"] = pulumi.Output.concat(
                site.registry, "/", found
            )
            extra[f"repository_id/{trust}"] = crn
        return extra


def days_kept(store: Store) -> int | None:
    """Return how long a store keeps things, in days; ``None`` for ever."""
    if store.keep is None:
        return None
    return max(1, math.ceil(store.keep.seconds / _DAY))


def retention(days: int | None) -> RetentionRule:
    """Return the rule that keeps objects unchanged for a number of days.

    It is not permanent: an account's administrator can still shorten it for objects
    that are written later.
    """
    wanted = days or RETENTION_DAYS
    return RetentionRule(default=wanted, minimum=wanted, maximum=wanted)
