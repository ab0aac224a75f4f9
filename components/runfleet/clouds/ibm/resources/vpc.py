"""VPC: the network, its rules and its private endpoints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import pulumi

from runfleet.clouds.ibm.package import IbmResource


@dataclass(frozen=True)
class AclRule:
    """One rule of a network ACL; the first that matches decides."""

    name: str
    action: Literal["allow", "deny"]
    direction: Literal["inbound", "outbound"]
    source: str
    destination: str
    protocol: str | None = None
    port_min: int | None = None
    port_max: int | None = None
    source_port_min: int | None = None
    source_port_max: int | None = None


@dataclass(frozen=True)
class EndpointTarget:
    """The service that a virtual endpoint gateway leads to."""

    crn: str
    resource_type: str = "provider_cloud_service"


@dataclass(frozen=True)
class EndpointAddress:
    """An address of a virtual endpoint gateway, taken from a subnet."""

    name: str
    subnet: pulumi.Input[str]


class IsVpc(IbmResource):
    """A virtual private cloud, generation 2."""

    TOKEN: ClassVar[str] = "ibm:index/isVpc:IsVpc"
    OUTPUTS: ClassVar[tuple[str, ...]] = (
        "crn",
        "default_network_acl",
        "default_security_group",
        "status",
    )
    APPLY_ONCE: ClassVar[tuple[str, ...]] = ("no_sg_acl_rules",)

    crn: pulumi.Output[str]
    default_network_acl: pulumi.Output[str]
    default_security_group: pulumi.Output[str]
    status: pulumi.Output[str]

    def __init__(
        self,
        resource_name: str,
        *,
        name: pulumi.Input[str],
        address_prefix_management: pulumi.Input[str] | None = None,
        no_sg_acl_rules: pulumi.Input[bool] | None = None,
        resource_group: pulumi.Input[str] | None = None,
        tags: pulumi.Input[Sequence[pulumi.Input[str]]] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(
            resource_name,
            {
                "name": name,
                "address_prefix_management": address_prefix_management,
                "no_sg_acl_rules": no_sg_acl_rules,
                "resource_group": resource_group,
                "tags": tags,
            },
            opts,
        )


class IsVpcAddressPrefix(IbmResource):
    """The range of one zone of a VPC."""

    TOKEN: ClassVar[str] = "ibm:index/isVpcAddressPrefix:IsVpcAddressPrefix"

    def __init__(
        self,
        resource_name: str,
        *,
        name: pulumi.Input[str],
        vpc: pulumi.Input[str],
        zone: pulumi.Input[str],
        cidr: pulumi.Input[str],
        is_default: pulumi.Input[bool] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(
            resource_name,
            {
                "name": name,
                "vpc": vpc,
                "zone": zone,
                "cidr": cidr,
                "is_default": is_default,
            },
            opts,
        )


class IsSubnet(IbmResource):
    """A subnet of one zone."""

    TOKEN: ClassVar[str] = "ibm:index/isSubnet:IsSubnet"
    OUTPUTS: ClassVar[tuple[str, ...]] = ("crn",)

    crn: pulumi.Output[str]

    def __init__(
        self,
        resource_name: str,
        *,
        name: pulumi.Input[str],
        vpc: pulumi.Input[str],
        zone: pulumi.Input[str],
        ipv4_cidr_block: pulumi.Input[str] | None = None,
        network_acl: pulumi.Input[str] | None = None,
        public_gateway: pulumi.Input[str] | None = None,
        resource_group: pulumi.Input[str] | None = None,
        tags: pulumi.Input[Sequence[pulumi.Input[str]]] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(
            resource_name,
            {
                "name": name,
                "vpc": vpc,
                "zone": zone,
                "ipv4_cidr_block": ipv4_cidr_block,
                "network_acl": network_acl,
                "public_gateway": public_gateway,
                "resource_group": resource_group,
                "tags": tags,
            },
            opts,
        )


class IsPublicGateway(IbmResource):
    """What lets the subnets of one zone out to the internet; nothing comes in."""

    TOKEN: ClassVar[str] = "ibm:index/isPublicGateway:IsPublicGateway"
    OUTPUTS: ClassVar[tuple[str, ...]] = ("crn",)

    crn: pulumi.Output[str]

    def __init__(
        self,
        resource_name: str,
        *,
        name: pulumi.Input[str],
        vpc: pulumi.Input[str],
        zone: pulumi.Input[str],
        resource_group: pulumi.Input[str] | None = None,
        tags: pulumi.Input[Sequence[pulumi.Input[str]]] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(
            resource_name,
            {
                "name": name,
                "vpc": vpc,
                "zone": zone,
                "resource_group": resource_group,
                "tags": tags,
            },
            opts,
        )


class IsNetworkAcl(IbmResource):
    """The stateless filter of subnets; without rules it allows everything."""

    TOKEN: ClassVar[str] = "ibm:index/isNetworkAcl:IsNetworkAcl"
    OUTPUTS: ClassVar[tuple[str, ...]] = ("crn",)

    crn: pulumi.Output[str]

    def __init__(
        self,
        resource_name: str,
        *,
        name: pulumi.Input[str],
        vpc: pulumi.Input[str],
        rules: Sequence[AclRule],
        incremental_rule_update: pulumi.Input[bool] | None = None,
        resource_group: pulumi.Input[str] | None = None,
        tags: pulumi.Input[Sequence[pulumi.Input[str]]] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(
            resource_name,
            {
                "name": name,
                "vpc": vpc,
                "rules": rules,
                "incremental_rule_update": incremental_rule_update,
                "resource_group": resource_group,
                "tags": tags,
            },
            opts,
        )


class IsSecurityGroup(IbmResource):
    """The stateful filter of interfaces; without rules it denies everything."""

    TOKEN: ClassVar[str] = "ibm:index/isSecurityGroup:IsSecurityGroup"
    OUTPUTS: ClassVar[tuple[str, ...]] = ("crn",)

    crn: pulumi.Output[str]

    def __init__(
        self,
        resource_name: str,
        *,
        name: pulumi.Input[str],
        vpc: pulumi.Input[str],
        resource_group: pulumi.Input[str] | None = None,
        tags: pulumi.Input[Sequence[pulumi.Input[str]]] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(
            resource_name,
            {
                "name": name,
                "vpc": vpc,
                "resource_group": resource_group,
                "tags": tags,
            },
            opts,
        )


class IsSecurityGroupRule(IbmResource):
    """One rule of a security group; without ``remote`` it means any address."""

    TOKEN: ClassVar[str] = "ibm:index/isSecurityGroupRule:IsSecurityGroupRule"
    OUTPUTS: ClassVar[tuple[str, ...]] = ("rule_id",)

    rule_id: pulumi.Output[str]

    def __init__(
        self,
        resource_name: str,
        *,
        group: pulumi.Input[str],
        direction: pulumi.Input[str],
        name: pulumi.Input[str],
        remote: pulumi.Input[str],
        protocol: pulumi.Input[str] | None = None,
        port_min: pulumi.Input[int] | None = None,
        port_max: pulumi.Input[int] | None = None,
        ip_version: pulumi.Input[str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(
            resource_name,
            {
                "group": group,
                "direction": direction,
                "name": name,
                "remote": remote,
                "protocol": protocol,
                "port_min": port_min,
                "port_max": port_max,
                "ip_version": ip_version,
            },
            opts,
        )


class IsFlowLog(IbmResource):
    """The collector that writes a record of every connection to a bucket."""

    TOKEN: ClassVar[str] = "ibm:index/isFlowLog:IsFlowLog"
    OUTPUTS: ClassVar[tuple[str, ...]] = ("crn",)

    crn: pulumi.Output[str]

    def __init__(
        self,
        resource_name: str,
        *,
        name: pulumi.Input[str],
        target: pulumi.Input[str],
        storage_bucket: pulumi.Input[str],
        active: pulumi.Input[bool] | None = None,
        resource_group: pulumi.Input[str] | None = None,
        tags: pulumi.Input[Sequence[pulumi.Input[str]]] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(
            resource_name,
            {
                "name": name,
                "target": target,
                "storage_bucket": storage_bucket,
                "active": active,
                "resource_group": resource_group,
                "tags": tags,
            },
            opts,
        )


class IsVirtualEndpointGateway(IbmResource):
    """A private address of one of IBM Cloud's services."""

    TOKEN: ClassVar[str] = "ibm:index/isVirtualEndpointGateway:IsVirtualEndpointGateway"
    OUTPUTS: ClassVar[tuple[str, ...]] = ("crn",)

    crn: pulumi.Output[str]

    def __init__(
        self,
        resource_name: str,
        *,
        name: pulumi.Input[str],
        vpc: pulumi.Input[str],
        target: EndpointTarget,
        ips: Sequence[EndpointAddress] | None = None,
        security_groups: pulumi.Input[Sequence[pulumi.Input[str]]] | None = None,
        resource_group: pulumi.Input[str] | None = None,
        tags: pulumi.Input[Sequence[pulumi.Input[str]]] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(
            resource_name,
            {
                "name": name,
                "vpc": vpc,
                "target": target,
                "ips": ips,
                "security_groups": security_groups,
                "resource_group": resource_group,
                "tags": tags,
            },
            opts,
        )
