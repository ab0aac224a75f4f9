"""Kubernetes: the cluster, its worker pools and add-ons, and the image registry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pulumi

from runfleet.clouds.ibm.package import IbmResource


@dataclass(frozen=True)
class WorkerZone:
    """A zone that workers are in, with their subnet."""

    name: str
    subnet_id: pulumi.Input[str]


@dataclass(frozen=True)
class WorkerTaint:
    """A taint of every worker."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True)
class KmsConfig:
    """The key that encrypts the cluster's secrets."""

    instance_id: pulumi.Input[str]
    crk_id: pulumi.Input[str]
    private_endpoint: bool = True
    account_id: str | None = None
    wait_for_apply: bool | None = None


@dataclass(frozen=True)
class Addon:
    """An add-on; without a version IBM chooses the current one."""

    name: str
    version: str | None = None
    parameters_json: str | None = None


class ContainerVpcCluster(IbmResource):
    """A Kubernetes cluster on a VPC, with its default worker pool."""

    TOKEN: ClassVar[str] = "ibm:index/containerVpcCluster:ContainerVpcCluster"
    OUTPUTS: ClassVar[tuple[str, ...]] = (
        "crn",
        "master_url",
        "private_service_endpoint_url",
        "vpe_service_endpoint_url",
        "state",
    )
    APPLY_ONCE: ClassVar[tuple[str, ...]] = (
        "flavor",
        "zones",
        "worker_count",
        "worker_labels",
        "operating_system",
        "secondary_storage",
        "taints",
        "entitlement",
        "cos_instance_crn",
        "kms_instance_id",
        "crk",
        "kms_account_id",
        "security_groups",
        "host_pool_id",
    )

    crn: pulumi.Output[str]
    master_url: pulumi.Output[str]
    private_service_endpoint_url: pulumi.Output[str]
    vpe_service_endpoint_url: pulumi.Output[str]
    state: pulumi.Output[str]

    def __init__(
        self,
        resource_name: str,
        *,
        name: pulumi.Input[str],
        vpc_id: pulumi.Input[str],
        flavor: pulumi.Input[str],
        zones: Sequence[WorkerZone],
        worker_count: pulumi.Input[int] | None = None,
        kube_version: pulumi.Input[str] | None = None,
        operating_system: pulumi.Input[str] | None = None,
        pod_subnet: pulumi.Input[str] | None = None,
        service_subnet: pulumi.Input[str] | None = None,
        resource_group_id: pulumi.Input[str] | None = None,
        kms_config: KmsConfig | None = None,
        kms_instance_id: pulumi.Input[str] | None = None,
        crk: pulumi.Input[str] | None = None,
        kms_account_id: pulumi.Input[str] | None = None,
        security_groups: pulumi.Input[Sequence[pulumi.Input[str]]] | None = None,
        secondary_storage: pulumi.Input[str] | None = None,
        taints: Sequence[WorkerTaint] | None = None,
        worker_labels: Mapping[str, str] | None = None,
        host_pool_id: pulumi.Input[str] | None = None,
        entitlement: pulumi.Input[str] | None = None,
        cos_instance_crn: pulumi.Input[str] | None = None,
        disable_public_service_endpoint: pulumi.Input[bool] | None = None,
        disable_outbound_traffic_protection: pulumi.Input[bool] | None = None,
        image_security_enforcement: pulumi.Input[bool] | None = None,
        force_delete_storage: pulumi.Input[bool] | None = None,
        update_all_workers: pulumi.Input[bool] | None = None,
        wait_for_worker_update: pulumi.Input[bool] | None = None,
        wait_till: pulumi.Input[str] | None = None,
        tags: pulumi.Input[Sequence[pulumi.Input[str]]] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(
            resource_name,
            {
                "name": name,
                "vpc_id": vpc_id,
                "flavor": flavor,
                "zones": zones,
                "worker_count": worker_count,
                "kube_version": kube_version,
                "operating_system": operating_system,
                "pod_subnet": pod_subnet,
                "service_subnet": service_subnet,
                "resource_group_id": resource_group_id,
                "kms_config": kms_config,
                "kms_instance_id": kms_instance_id,
                "crk": crk,
                "kms_account_id": kms_account_id,
                "security_groups": security_groups,
                "secondary_storage": secondary_storage,
                "taints": taints,
                "worker_labels": worker_labels,
                "host_pool_id": host_pool_id,
                "entitlement": entitlement,
                "cos_instance_crn": cos_instance_crn,
                "disable_public_service_endpoint": disable_public_service_endpoint,
                "disable_outbound_traffic_protection": (
                    disable_outbound_traffic_protection
                ),
                "image_security_enforcement": image_security_enforcement,
                "force_delete_storage": force_delete_storage,
                "update_all_workers": update_all_workers,
                "wait_for_worker_update": wait_for_worker_update,
                "wait_till": wait_till,
                "tags": tags,
            },
            opts,
        )


class ContainerVpcWorkerPool(IbmResource):
    """Workers of one flavour; it takes no tags, only Kubernetes labels."""

    TOKEN: ClassVar[str] = "ibm:index/containerVpcWorkerPool:ContainerVpcWorkerPool"
    OUTPUTS: ClassVar[tuple[str, ...]] = (
        "worker_pool_id",
        "autoscale_enabled",
    )
    APPLY_ONCE: ClassVar[tuple[str, ...]] = (
        "entitlement",
        "kms_instance_id",
        "crk",
        "kms_account_id",
        "security_groups",
    )

    worker_pool_name: pulumi.Output[str]
    worker_pool_id: pulumi.Output[str]
    autoscale_enabled: pulumi.Output[bool]

    def __init__(
        self,
        resource_name: str,
        *,
        cluster: pulumi.Input[str],
        vpc_id: pulumi.Input[str],
        worker_pool_name: pulumi.Input[str],
        flavor: pulumi.Input[str],
        zones: Sequence[WorkerZone],
        worker_count: pulumi.Input[int],
        labels: Mapping[str, str] | None = None,
        taints: Sequence[WorkerTaint] | None = None,
        operating_system: pulumi.Input[str] | None = None,
        secondary_storage: pulumi.Input[str] | None = None,
        kms_instance_id: pulumi.Input[str] | None = None,
        crk: pulumi.Input[str] | None = None,
        kms_account_id: pulumi.Input[str] | None = None,
        security_groups: pulumi.Input[Sequence[pulumi.Input[str]]] | None = None,
        host_pool_id: pulumi.Input[str] | None = None,
        entitlement: pulumi.Input[str] | None = None,
        import_on_create: pulumi.Input[bool] | None = None,
        orphan_on_delete: pulumi.Input[bool] | None = None,
        resource_group_id: pulumi.Input[str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(
            resource_name,
            {
                "cluster": cluster,
                "vpc_id": vpc_id,
                "worker_pool_name": worker_pool_name,
                "flavor": flavor,
                "zones": zones,
                "worker_count": worker_count,
                "labels": labels,
                "taints": taints,
                "operating_system": operating_system,
                "secondary_storage": secondary_storage,
                "kms_instance_id": kms_instance_id,
                "crk": crk,
                "kms_account_id": kms_account_id,
                "security_groups": security_groups,
                "host_pool_id": host_pool_id,
                "entitlement": entitlement,
                "import_on_create": import_on_create,
                "orphan_on_delete": orphan_on_delete,
                "resource_group_id": resource_group_id,
            },
            opts,
        )


class ContainerAddons(IbmResource):
    """Add-ons of a cluster; by default it owns all and removes the others."""

    TOKEN: ClassVar[str] = "ibm:index/containerAddons:ContainerAddons"
    OUTPUTS: ClassVar[tuple[str, ...]] = ("managed_addons",)

    managed_addons: pulumi.Output[Sequence[str]]

    def __init__(
        self,
        resource_name: str,
        *,
        cluster: pulumi.Input[str],
        addons: Sequence[Addon],
        manage_all_addons: pulumi.Input[bool] | None = None,
        resource_group_id: pulumi.Input[str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(
            resource_name,
            {
                "cluster": cluster,
                "addons": addons,
                "manage_all_addons": manage_all_addons,
                "resource_group_id": resource_group_id,
            },
            opts,
        )


class CrNamespace(IbmResource):
    """A namespace of the image registry."""

    TOKEN: ClassVar[str] = "ibm:index/crNamespace:CrNamespace"
    OUTPUTS: ClassVar[tuple[str, ...]] = ("crn",)

    name: pulumi.Output[str]
    crn: pulumi.Output[str]

    def __init__(
        self,
        resource_name: str,
        *,
        name: pulumi.Input[str],
        resource_group_id: pulumi.Input[str] | None = None,
        tags: pulumi.Input[Sequence[pulumi.Input[str]]] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(
            resource_name,
            {
                "name": name,
                "resource_group_id": resource_group_id,
                "tags": tags,
            },
            opts,
        )
