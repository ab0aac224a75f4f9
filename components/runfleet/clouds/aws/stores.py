"""Stores: what grants are given on, as buckets, image repositories and streams.

One :class:`Stores` holds the stores of one scope, a cell's or the central ones, under
one key of their own. Nothing in it is ever public, everything asks for TLS 1.2, is
encrypted with that key, protected against deletion and kept when the stack goes: the
settings of a bucket too, because a bucket that outlives its policy would be open.

Every store is split by trust (see :mod:`runfleet.clouds.aws.grants`): a bucket by
prefix, a registry into one repository for each trust level, telemetry into one
delivery stream for each, which writes under that prefix. Telemetry can only be added
to: jobs may put records on a stream and have no access to the bucket behind it.

Identities of other accounts are let in by name (:mod:`.store_policies`). Delivery
streams have no resource policy, so there each such class has a role in the streams'
account that it alone may assume.

Central images and objects are read by nobody here but the promoter's account; how the
foundation publishes them is not part of a fleet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import pulumi
import pulumi_aws as aws

from runfleet.clouds.aws import addresses, names
from runfleet.clouds.aws import store_policies as documents
from runfleet.clouds.aws.addresses import UPSTREAMS, Peer, Site
from runfleet.clouds.aws.grants import REPOSITORY_KINDS
from runfleet.clouds.aws.tags import tags
from runfleet.clouds.protocols import StoreHandle
from runfleet.placement.plan import CellPlan, CentralPlan
from runfleet.spec.roles import Scope, StoreKind, Trust, Verb
from runfleet.spec.stores import Store


@dataclass(frozen=True)
class StoresArgs:
    """What :class:`Stores` makes.

    Attributes:
        site: Which stores these are, and where.
        stores: The stores of this scope.
        peers: Identities of other accounts that are let in.
        upstreams: Registries that the pull-through cache reads, by short name; only
            a local registry has a cache.
        tags: Tags of everything.
        boundary: ARN of the permissions boundary of the roles that are made here.
    """

    site: Site
    stores: tuple[Store, ...]
    tags: Mapping[str, str]
    peers: tuple[Peer, ...] = ()
    upstreams: Mapping[str, str] = field(default_factory=lambda: dict(UPSTREAMS))
    boundary: pulumi.Input[str] | None = None

    @classmethod
    def from_plan(
        cls,
        plan: CellPlan | CentralPlan,
        boundary: pulumi.Input[str] | None = None,
    ) -> StoresArgs:
        """Take the stores of a plan: local ones of a cell, or the central ones."""
        return cls(
            site=addresses.plan_site(plan),
            stores=plan.stores,
            tags=tags(plan.ci_labels),
            peers=addresses.peers(plan),
            boundary=boundary,
        )


class Stores(pulumi.ComponentResource):
    """The stores of one scope: encrypted, never public, TLS only, protected.

    Attributes:
        handles: The stores by kind. ``repository``, ``repository_id``, ``stream`` and
            ``stream_id`` are what the names and ARNs of a store's repositories (plus
            ``/<trust>``) and streams (plus ``-<trust>``) begin with; ``extra`` holds
            the whole ones as ``repository/<trust>`` and ``stream/<trust>``, the
            prefixes of the pull-through cache as ``pull_through/<upstream>``, and
            their ARNs, joined by commas, as ``pull_through_ids``.
        key_arn: ARN of the key that encrypts them.
    """

    handles: Mapping[StoreKind, StoreHandle]
    key_arn: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        args: StoresArgs,
        options: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("runfleet:aws:Stores", name, None, options)
        self._name = name
        self._args = args
        self._site = args.site
        self._kept = pulumi.ResourceOptions(
            parent=self, protect=True, retain_on_delete=True
        )
        self.key_arn = self._key()
        self.handles = {store.kind: self._store(store) for store in args.stores}
        self.register_outputs(
            {
                "key_arn": self.key_arn,
                "handles": {str(k): h.exported() for k, h in self.handles.items()},
            }
        )

    def _store(self, store: Store) -> StoreHandle:
        bucket: pulumi.Output[str] | None = None
        bucket_arn: pulumi.Output[str] | None = None
        repository: _Repositories | None = None
        streams: dict[Trust, aws.kinesis.FirehoseDeliveryStream] = {}
        extra: dict[str, pulumi.Output[str]] = {}
        if store.kind is not StoreKind.REGISTRY:
            bucket, bucket_arn = self._bucket(store)
        if store.kind in REPOSITORY_KINDS:
            repository = self._repositories(store)
            extra |= {f"repository/{t}": url for t, url in repository.urls.items()}
        if store.kind is StoreKind.REGISTRY and self._site.scope is Scope.LOCAL:
            extra |= self._pull_through(store)
        if store.kind is StoreKind.TELEMETRY and bucket_arn is not None:
            streams = self._streams(store, bucket_arn)
            extra |= {f"stream/{t}": stream.name for t, stream in streams.items()}
        first = streams.get(Trust.UNTRUSTED_PR)
        tail = f"-{Trust.UNTRUSTED_PR}"
        return StoreHandle(
            kind=store.kind,
            scope=self._site.scope,
            bucket=bucket,
            bucket_id=bucket_arn,
            repository=repository.base if repository else None,
            repository_id=repository.base_arn if repository else None,
            stream=first.name.apply(lambda v: v.removesuffix(tail)) if first else None,
            stream_id=first.arn.apply(lambda v: v.removesuffix(tail))
            if first
            else None,
            key_id=self.key_arn,
            extra=extra,
        )

    def _key(self) -> pulumi.Output[str]:
        key = aws.kms.Key(
            f"{self._name}-key",
            description=f"Stores of {self._site.project} {self._site.name}",
            enable_key_rotation=True,
            rotation_period_in_days=365,
            deletion_window_in_days=30,
            policy=documents.key_policy(self._site, self._args.peers),
            tags=self._args.tags,
            opts=self._kept,
        )
        aws.kms.Alias(
            f"{self._name}-key-alias",
            name=self._site.key_alias,
            target_key_id=key.key_id,
            opts=self._kept,
        )
        return key.arn

    def _bucket(self, store: Store) -> tuple[pulumi.Output[str], pulumi.Output[str]]:
        """Make a bucket with all its settings, or take an existing one as it is."""
        name = f"{self._name}-{store.kind}"
        if store.adopt:
            arn = self._site.bucket_arn(store)
            return pulumi.Output.from_input(store.adopt), pulumi.Output.from_input(arn)
        release = store.kind is StoreKind.RELEASE
        bucket = aws.s3.Bucket(
            name,
            bucket=self._site.bucket(store),
            force_destroy=False,
            object_lock_enabled=release,
            tags=self._args.tags,
            opts=self._kept,
        )
        block = aws.s3.BucketPublicAccessBlock(
            f"{name}-public-access",
            bucket=bucket.bucket,
            block_public_acls=True,
            block_public_policy=True,
            ignore_public_acls=True,
            restrict_public_buckets=True,
            opts=self._kept,
        )
        ownership = aws.s3.BucketOwnershipControls(
            f"{name}-ownership",
            bucket=bucket.bucket,
            rule={"object_ownership": "BucketOwnerEnforced"},
            opts=self._kept,
        )
        aws.s3.BucketServerSideEncryptionConfiguration(
            f"{name}-encryption",
            bucket=bucket.bucket,
            rules=[
                {
                    "apply_server_side_encryption_by_default": {
                        "sse_algorithm": "aws:kms",
                        "kms_master_key_id": self.key_arn,
                    },
                    "bucket_key_enabled": True,
                }
            ],
            opts=self._kept,
        )
        versioning = aws.s3.BucketVersioning(
            f"{name}-versioning",
            bucket=bucket.bucket,
            versioning_configuration={"status": "Enabled"},
            opts=self._kept,
        )
        after = self._after(versioning)
        aws.s3.BucketLifecycleConfiguration(
            f"{name}-lifecycle",
            bucket=bucket.bucket,
            rules=[cast("Any", documents.lifecycle(store))],
            opts=after,
        )
        if release:
            aws.s3.BucketObjectLockConfiguration(
                f"{name}-lock",
                bucket=bucket.bucket,
                rule={
                    "default_retention": {
                        "mode": "GOVERNANCE",
                        "days": documents.days_kept(store)
                        or documents.RELEASE_LOCK_DAYS,
                    }
                },
                opts=after,
            )
        aws.s3.BucketPolicy(
            f"{name}-policy",
            bucket=bucket.bucket,
            policy=self.key_arn.apply(
                lambda key: documents.bucket_policy(
                    self._site, store, self._args.peers, key
                )
            ),
            opts=self._after(block, ownership),
        )
        return bucket.bucket, bucket.arn

    def _repositories(self, store: Store) -> _Repositories:
        """Make one repository for each trust level."""
        base = self._site.repository(store)
        if store.adopt and store.kind is StoreKind.REGISTRY:
            address = f"{self._site.registry}/{base}"
            return _Repositories(
                {t: pulumi.Output.from_input(f"{address}/{t}") for t in Trust},
                pulumi.Output.from_input(address),
                pulumi.Output.from_input(self._site.place(store).repository),
            )
        urls: dict[Trust, pulumi.Output[str]] = {}
        arns: list[pulumi.Output[str]] = []
        for trust in Trust:
            name = f"{self._name}-{store.kind}-images-{trust}"
            repository = aws.ecr.Repository(
                name,
                name=f"{base}/{trust}",
                image_tag_mutability="IMMUTABLE",
                image_scanning_configuration={"scan_on_push": True},
                encryption_configurations=[
                    {"encryption_type": "KMS", "kms_key": self.key_arn}
                ],
                force_delete=False,
                tags=self._args.tags,
                opts=self._kept,
            )
            aws.ecr.LifecyclePolicy(
                f"{name}-lifecycle",
                repository=repository.name,
                policy=documents.image_lifecycle(documents.days_kept(store)),
                opts=self._kept,
            )
            policy = documents.repository_policy(store, trust, self._args.peers)
            if policy is not None:
                aws.ecr.RepositoryPolicy(
                    f"{name}-policy",
                    repository=repository.name,
                    policy=policy,
                    opts=self._kept,
                )
            urls[trust] = repository.repository_url
            arns.append(repository.arn)
        tail = f"/{Trust.UNTRUSTED_PR}"
        return _Repositories(
            urls,
            urls[Trust.UNTRUSTED_PR].apply(lambda url: url.removesuffix(tail)),
            arns[0].apply(lambda arn: arn.removesuffix(tail)),
        )

    def _pull_through(self, store: Store) -> dict[str, pulumi.Output[str]]:
        """Make the pull-through cache, and say how its repositories are made."""
        prefixes = {u: self._site.cache_prefix(u) for u in self._args.upstreams}
        arns = [self._site.arn("ecr", f"repository/{p}") for p in prefixes.values()]
        name = f"{self._name}-{store.kind}-cache"
        role = self._role(
            f"{name}-role",
            names.IAM_ROLE.encode(self._site.project, self._site.name, "image-cache"),
            "ecr.amazonaws.com",
            self.key_arn.apply(lambda key: documents.cache_role_policy(arns, key)),
        )
        extra: dict[str, pulumi.Output[str]] = {
            "pull_through_ids": pulumi.Output.from_input(",".join(arns))
        }
        for upstream, prefix in prefixes.items():
            template = aws.ecr.RepositoryCreationTemplate(
                f"{name}-{upstream}-template",
                prefix=prefix,
                applied_fors=["PULL_THROUGH_CACHE"],
                description=f"Images cached from {self._args.upstreams[upstream]}",
                encryption_configurations=[
                    {"encryption_type": "KMS", "kms_key": self.key_arn}
                ],
                image_tag_mutability="IMMUTABLE",
                lifecycle_policy=documents.image_lifecycle(documents.CACHED_DAYS),
                custom_role_arn=role.arn,
                resource_tags=self._args.tags,
                opts=self._kept,
            )
            rule = aws.ecr.PullThroughCacheRule(
                f"{name}-{upstream}",
                ecr_repository_prefix=prefix,
                upstream_registry_url=self._args.upstreams[upstream],
                opts=self._after(template),
            )
            extra[f"pull_through/{upstream}"] = rule.ecr_repository_prefix.apply(
                lambda made: f"{self._site.registry}/{made}"
            )
        return extra

    def _streams(
        self, store: Store, bucket_arn: pulumi.Output[str]
    ) -> dict[Trust, aws.kinesis.FirehoseDeliveryStream]:
        """Make one delivery stream for each trust level."""
        base = self._site.stream(store)
        name = f"{self._name}-{store.kind}"
        role = self._role(
            f"{name}-delivery",
            names.IAM_ROLE.encode(self._site.project, self._site.name, "delivery"),
            "firehose.amazonaws.com",
            pulumi.Output.all(bucket_arn, self.key_arn).apply(
                lambda known: documents.delivery_role_policy(known[0], known[1])
            ),
        )
        made: dict[Trust, aws.kinesis.FirehoseDeliveryStream] = {}
        for trust in Trust:
            made[trust] = aws.kinesis.FirehoseDeliveryStream(
                f"{name}-stream-{trust}",
                name=f"{base}-{trust}",
                destination="extended_s3",
                extended_s3_configuration={
                    "role_arn": role.arn,
                    "bucket_arn": bucket_arn,
                    "prefix": f"{trust}/!{{timestamp:yyyy/MM/dd/HH}}/",
                    "error_output_prefix": f"errors/{trust}/"
                    "!{firehose:error-output-type}/!{timestamp:yyyy/MM/dd}/",
                    "buffering_size": 64,
                    "buffering_interval": 60,
                    "compression_format": "GZIP",
                    "kms_key_arn": self.key_arn,
                },
                server_side_encryption={
                    "enabled": True,
                    "key_type": "CUSTOMER_MANAGED_CMK",
                    "key_arn": self.key_arn,
                },
                tags=self._args.tags,
                opts=self._kept,
            )
        for peer in self._args.peers:
            if peer.insert_role and documents.granted(peer, Verb.INSERT, store.kind):
                self._insert_role(f"{name}-insert", store, peer)
        return made

    def _insert_role(self, name: str, store: Store, peer: Peer) -> None:
        """Make the role that a class of another account inserts with."""
        child = f"{name}-{peer.insert_role}"
        role = aws.iam.Role(
            child,
            name=peer.insert_role,
            description=f"Inserts telemetry for {peer.role}",
            assume_role_policy=documents.peer_trust(peer),
            max_session_duration=3600,
            permissions_boundary=self._args.boundary,
            tags=self._args.tags,
            opts=self._kept,
        )
        aws.iam.RolePolicy(
            f"{child}-policy",
            role=role.name,
            policy=documents.insert_policy(self._site, store, peer),
            opts=self._kept,
        )

    def _role(
        self, name: str, role_name: str, service: str, policy: pulumi.Input[str]
    ) -> aws.iam.Role:
        """Make the role of an AWS service, for this account's things only."""
        role = aws.iam.Role(
            name,
            name=role_name,
            assume_role_policy=documents.service_trust(service, self._site.account),
            max_session_duration=3600,
            permissions_boundary=self._args.boundary,
            tags=self._args.tags,
            opts=self._kept,
        )
        aws.iam.RolePolicy(
            f"{name}-policy", role=role.name, policy=policy, opts=self._kept
        )
        return role

    def _after(self, *others: pulumi.Resource) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions.merge(
            self._kept, pulumi.ResourceOptions(depends_on=list(others))
        )


@dataclass(frozen=True)
class _Repositories:
    urls: Mapping[Trust, pulumi.Output[str]]
    base: pulumi.Output[str]
    base_arn: pulumi.Output[str]
