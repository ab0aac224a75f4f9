"""Storage: object storage, keys, service instances and the tags of what has none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pulumi

from runfleet.clouds.ibm.package import IbmResource


@dataclass(frozen=True)
class ObjectVersioning:
    """Whether a bucket keeps replaced and deleted objects."""

    enable: bool


@dataclass(frozen=True)
class RetentionRule:
    """How long objects can be neither changed nor deleted, in days."""

    default: int
    minimum: int
    maximum: int
    permanent: bool = False


@dataclass(frozen=True)
class VersionExpiration:
    """When replaced and deleted objects go."""

    enable: bool
    noncurrent_days: int
    rule_id: str
    prefix: str | None = None


@dataclass(frozen=True)
class ExpireRule:
    """When objects go, in days after they were written."""

    enable: bool
    days: int
    rule_id: str
    prefix: str | None = None


@dataclass(frozen=True)
class ActivityTracking:
    """Which requests to a bucket are recorded as events."""

    read_data_events: bool
    write_data_events: bool
    management_events: bool
    activity_tracker_crn: str | None = None


@dataclass(frozen=True)
class MetricsMonitoring:
    """Which measurements a bucket sends."""

    request_metrics_enabled: bool
    usage_metrics_enabled: bool
    metrics_monitoring_crn: str | None = None


class ResourceInstance(IbmResource):
    """An instance of one of IBM Cloud's services."""

    TOKEN: ClassVar[str] = "ibm:index/resourceInstance:ResourceInstance"
    OUTPUTS: ClassVar[tuple[str, ...]] = (
        "crn",
        "guid",
    )

    crn: pulumi.Output[str]
    guid: pulumi.Output[str]

    def __init__(
        self,
        resource_name: str,
        *,
        name: pulumi.Input[str],
        service: pulumi.Input[str],
        plan: pulumi.Input[str],
        location: pulumi.Input[str],
        service_endpoints: pulumi.Input[str] | None = None,
        parameters: Mapping[str, str] | None = None,
        resource_group_id: pulumi.Input[str] | None = None,
        tags: pulumi.Input[Sequence[pulumi.Input[str]]] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(
            resource_name,
            {
                "name": name,
                "service": service,
                "plan": plan,
                "location": location,
                "service_endpoints": service_endpoints,
                "parameters": parameters,
                "resource_group_id": resource_group_id,
                "tags": tags,
            },
            opts,
        )


class ResourceTag(IbmResource):
    """Tags of a thing whose own type takes none."""

    TOKEN: ClassVar[str] = "ibm:index/resourceTag:ResourceTag"

    def __init__(
        self,
        resource_name: str,
        *,
        resource_id: pulumi.Input[str],
        tags: pulumi.Input[Sequence[pulumi.Input[str]]] | None = None,
        tag_type: pulumi.Input[str] | None = None,
        replace: pulumi.Input[bool] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(
            resource_name,
            {
                "resource_id": resource_id,
                "tags": tags,
                "tag_type": tag_type,
                "replace": replace,
            },
            opts,
        )


class KmsKey(IbmResource):
    """A root key of Key Protect."""

    TOKEN: ClassVar[str] = "ibm:index/kmsKey:KmsKey"
    OUTPUTS: ClassVar[tuple[str, ...]] = (
        "crn",
        "key_id",
    )

    crn: pulumi.Output[str]
    key_id: pulumi.Output[str]

    def __init__(
        self,
        resource_name: str,
        *,
        instance_id: pulumi.Input[str],
        key_name: pulumi.Input[str],
        description: pulumi.Input[str] | None = None,
        standard_key: pulumi.Input[bool] | None = None,
        force_delete: pulumi.Input[bool] | None = None,
        endpoint_type: pulumi.Input[str] | None = None,
        key_ring_id: pulumi.Input[str] | None = None,
        payload: pulumi.Input[str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(
            resource_name,
            {
                "instance_id": instance_id,
                "key_name": key_name,
                "description": description,
                "standard_key": standard_key,
                "force_delete": force_delete,
                "endpoint_type": endpoint_type,
                "key_ring_id": key_ring_id,
                "payload": payload,
            },
            opts,
        )


class CosBucket(IbmResource):
    """A bucket of Cloud Object Storage."""

    TOKEN: ClassVar[str] = "ibm:index/cosBucket:CosBucket"
    OUTPUTS: ClassVar[tuple[str, ...]] = (
        "crn",
        "s3_endpoint_private",
        "s3_endpoint_direct",
    )

    bucket_name: pulumi.Output[str]
    crn: pulumi.Output[str]
    s3_endpoint_private: pulumi.Output[str]
    s3_endpoint_direct: pulumi.Output[str]

    def __init__(
        self,
        resource_name: str,
        *,
        bucket_name: pulumi.Input[str],
        resource_instance_id: pulumi.Input[str],
        region_location: pulumi.Input[str] | None = None,
        cross_region_location: pulumi.Input[str] | None = None,
        storage_class: pulumi.Input[str] | None = None,
        kms_key_crn: pulumi.Input[str] | None = None,
        endpoint_type: pulumi.Input[str] | None = None,
        force_delete: pulumi.Input[bool] | None = None,
        hard_quota: pulumi.Input[int] | None = None,
        allowed_ips: pulumi.Input[Sequence[pulumi.Input[str]]] | None = None,
        object_versioning: ObjectVersioning | None = None,
        object_lock: pulumi.Input[bool] | None = None,
        retention_rule: RetentionRule | None = None,
        noncurrent_version_expiration: VersionExpiration | None = None,
        expire_rules: Sequence[ExpireRule] | None = None,
        activity_tracking: ActivityTracking | None = None,
        metrics_monitoring: MetricsMonitoring | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(
            resource_name,
            {
                "bucket_name": bucket_name,
                "resource_instance_id": resource_instance_id,
                "region_location": region_location,
                "cross_region_location": cross_region_location,
                "storage_class": storage_class,
                "kms_key_crn": kms_key_crn,
                "endpoint_type": endpoint_type,
                "force_delete": force_delete,
                "hard_quota": hard_quota,
                "allowed_ips": allowed_ips,
                "object_versioning": object_versioning,
                "object_lock": object_lock,
                "retention_rule": retention_rule,
                "noncurrent_version_expiration": noncurrent_version_expiration,
                "expire_rules": expire_rules,
                "activity_tracking": activity_tracking,
                "metrics_monitoring": metrics_monitoring,
            },
            opts,
        )
