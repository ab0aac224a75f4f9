"""Network: a private VPC whose workers can reach out on 443 and cannot be reached.

Which range holds what is in :mod:`runfleet.clouds.ibm.ranges`. Everything is closed
that IBM Cloud opens by default: the VPC is made with ``noSgAclRules``, so its own
security group and ACL are empty; subnets have ACLs of ours that list what passes and
end in a refusal; security groups start without rules, and every rule names its remote,
because one without means any address.

ACLs keep no state, so each allowed way out needs its way back. Worker nodes get
private addresses only; a public gateway in each zone lets them out and nothing in. IBM
Cloud's own services are reached through virtual endpoint gateways in subnets of their
own, which have no gateway.

Flow logs go to a bucket that nobody but the collector writes to, encrypted with the
platform's key, and kept unchanged for their time.

An existing network is used with ``network.adopt`` (its VPC id) and the setting
``node_subnets``; then only the workers' security group is made here. Its endpoints
cannot be told apart from the rest of it, so it has no ranges for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi

from runfleet.clouds.ibm.keys import Vault, VaultArgs, tagged
from runfleet.clouds.ibm.names import BUCKET, RESOURCE_INSTANCE, VPC_OBJECT
from runfleet.clouds.ibm.ranges import (
    API_PORT,
    INFRASTRUCTURE,
    NetworkError,
    ZoneRanges,
    api_ranges,
    zone_ranges,
)
from runfleet.clouds.ibm.resources.access import IamAuthorizationPolicy
from runfleet.clouds.ibm.resources.storage import (
    CosBucket,
    ResourceInstance,
    RetentionRule,
)
from runfleet.clouds.ibm.resources.vpc import (
    AclRule,
    EndpointAddress,
    EndpointTarget,
    IsFlowLog,
    IsNetworkAcl,
    IsPublicGateway,
    IsSecurityGroup,
    IsSecurityGroupRule,
    IsSubnet,
    IsVirtualEndpointGateway,
    IsVpc,
    IsVpcAddressPrefix,
)
from runfleet.clouds.ibm.settings import IbmSettings
from runfleet.clouds.ibm.tags import tags
from runfleet.placement.plan import CellPlan

ANY_PROTOCOL = "icmp_tcp_udp"
"""All protocols that a VPC carries; ``all`` is its old spelling (provider 1.87)."""

FLOW_LOG_DAYS = 365
"""How long flow logs are kept, and cannot be changed or deleted."""

_EPHEMERAL = (1024, 65535)


@dataclass(frozen=True)
class NetworkArgs:
    """What a network is made from.

    Attributes:
        cluster: Name of the cluster that it is for.
        account: Account id.
        region: Region.
        zones: Two or three zones.
        cidr: Range of the network.
        labels: The required labels.
        egress: Ranges that workers may open HTTPS connections to.
        services: Range of service addresses; ``None`` for the default one.
        resource_group: Id of the resource group; ``None`` for the default one.
        adopt: Id of an existing VPC to use.
        adopted_subnets: Its subnets for workers, by zone.
    """

    cluster: str
    account: str
    region: str
    zones: tuple[str, ...]
    cidr: str
    labels: Mapping[str, str]
    egress: Sequence[str] = ("0.0.0.0/0",)
    services: str | None = None
    resource_group: str | None = None
    adopt: str | None = None
    adopted_subnets: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def from_plan(cls, plan: CellPlan) -> NetworkArgs:
        """Take what a cell's network needs from its plan.

        Raises:
            NetworkError: The cell has no network section, or asks for one gateway.
            InputError: A setting of the cell is wrong.
        """
        cell = plan.cell
        if cell.network is None:
            raise NetworkError(f"cell {cell.name}: a cell on IBM Cloud needs `network`")
        if cell.network.nat != "per-zone":
            raise NetworkError(
                f"cell {cell.name}: `network.nat: single` cannot be built: a public "
                "gateway serves the subnets of its own zone only"
            )
        settings = IbmSettings.of(cell)
        return cls(
            cluster=cell.cluster,
            account=cell.account,
            region=cell.region,
            zones=tuple(cell.zones),
            cidr=cell.network.cidr,
            labels=plan.ci_labels,
            egress=tuple(cell.network.egress),
            services=cell.network.services,
            resource_group=settings.resource_group,
            adopt=cell.network.adopt,
            adopted_subnets=settings.node_subnets,
        )


class Network(pulumi.ComponentResource):
    """A VPC over two or three zones for private workers.

    Attributes:
        network_id: Id of the VPC.
        node_subnet_ids: Ids of the workers' subnets, in the order of the zones.
        subnets_by_zone: The same by zone.
        node_security_group_id: Security group of every worker, beside IBM's own.
        service_ranges: Ranges that hold nothing but endpoints of IBM Cloud's services;
            empty when the network is adopted.
        api_ranges: Where pods reach the API server: its service, and the proxy on
            their own node behind it.
        api_port: Port of that proxy.
        vault: Key Protect instance of the platform.
    """

    network_id: pulumi.Output[str]
    node_subnet_ids: pulumi.Output[Sequence[str]]
    subnets_by_zone: Mapping[str, pulumi.Output[str]]
    node_security_group_id: pulumi.Output[str]
    service_ranges: Sequence[str]
    api_ranges: Sequence[str]
    api_port: int
    vault: Vault

    def __init__(
        self,
        name: str,
        args: NetworkArgs,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Make the network, or use the one to adopt.

        Args:
            name: Name of the component; children are called ``<name>-<suffix>``.
            args: What it is made from.
            opts: Options; the explicit provider comes with them.

        Raises:
            NetworkError: The address range or the zones do not fit.
        """
        ranges = zone_ranges(args.cidr, args.zones)
        super().__init__("runfleet:ibm:Network", name, None, opts)
        self._name = name
        self._args = args
        self._tags = tags(args.labels)
        self.vault = Vault(
            f"{name}-vault",
            VaultArgs(
                (args.cluster, "platform"),
                args.region,
                args.labels,
                args.resource_group,
            ),
            self,
        )
        if args.adopt is None:
            vpc = self._vpc()
            prefixes = self._prefixes(vpc, ranges)
            self.subnets_by_zone = self._worker_subnets(vpc, ranges, prefixes)
            self._endpoints(vpc, ranges, prefixes)
            self._flow_logs(vpc)
            self.service_ranges = tuple(zone.endpoints for zone in ranges)
        else:
            vpc = IsVpc.existing(f"{name}-vpc", args.adopt, self._options())
            self.subnets_by_zone = self._adopted_subnets()
            self.service_ranges = ()
        self.api_ranges = api_ranges(args.services)
        self.api_port = API_PORT
        self.network_id = vpc.id
        self.node_subnet_ids = pulumi.Output.all(*self.subnets_by_zone.values())
        self.node_security_group_id = self._node_security_group(vpc)
        self.register_outputs(
            {
                "network_id": self.network_id,
                "node_subnet_ids": self.node_subnet_ids,
                "node_security_group_id": self.node_security_group_id,
                "service_ranges": list(self.service_ranges),
                "api_ranges": list(self.api_ranges),
                "api_port": self.api_port,
            }
        )

    def _options(self, **more: Any) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self, **more)

    def _kept(self, **more: Any) -> pulumi.ResourceOptions:
        return self._options(protect=True, retain_on_delete=True, **more)

    def _encoded(self, *parts: str) -> str:
        return VPC_OBJECT.encode(self._args.cluster, *parts)

    def _vpc(self) -> IsVpc:
        return IsVpc(
            f"{self._name}-vpc",
            name=self._encoded("vpc"),
            address_prefix_management="manual",
            no_sg_acl_rules=True,
            resource_group=self._args.resource_group,
            tags=self._tags,
            opts=self._kept(),
        )

    def _prefixes(
        self, vpc: IsVpc, ranges: Sequence[ZoneRanges]
    ) -> list[IsVpcAddressPrefix]:
        return [
            IsVpcAddressPrefix(
                f"{self._name}-prefix-{zone.zone}",
                name=self._encoded("prefix", zone.zone),
                vpc=vpc.id,
                zone=zone.zone,
                cidr=zone.prefix,
                is_default=True,
                opts=self._kept(),
            )
            for zone in ranges
        ]

    def _worker_subnets(
        self,
        vpc: IsVpc,
        ranges: Sequence[ZoneRanges],
        prefixes: Sequence[pulumi.Resource],
    ) -> dict[str, pulumi.Output[str]]:
        acl = self._acl(
            "workers", vpc, worker_rules(self._args.cidr, self._args.egress)
        )
        made: dict[str, pulumi.Output[str]] = {}
        for zone, prefix in zip(ranges, prefixes, strict=True):
            gateway = IsPublicGateway(
                f"{self._name}-gateway-{zone.zone}",
                name=self._encoded("gateway", zone.zone),
                vpc=vpc.id,
                zone=zone.zone,
                resource_group=self._args.resource_group,
                tags=self._tags,
                opts=self._options(),
            )
            made[zone.zone] = IsSubnet(
                f"{self._name}-workers-{zone.zone}",
                name=self._encoded("workers", zone.zone),
                vpc=vpc.id,
                zone=zone.zone,
                ipv4_cidr_block=zone.workers,
                network_acl=acl.id,
                public_gateway=gateway.id,
                resource_group=self._args.resource_group,
                tags=self._tags,
                opts=self._kept(depends_on=[prefix]),
            ).id
        return made

    def _adopted_subnets(self) -> dict[str, pulumi.Output[str]]:
        args = self._args
        missing = [zone for zone in args.zones if zone not in args.adopted_subnets]
        if missing:
            raise NetworkError(
                f"network {args.adopt} is adopted: `settings.node_subnets` must name a "
                f"subnet for workers in {', '.join(missing)}"
            )
        return {
            zone: IsSubnet.existing(
                f"{self._name}-workers-{zone}",
                args.adopted_subnets[zone],
                self._options(),
            ).id
            for zone in args.zones
        }

    def _acl(self, kind: str, vpc: IsVpc, rules: Sequence[AclRule]) -> IsNetworkAcl:
        return IsNetworkAcl(
            f"{self._name}-acl-{kind}",
            name=self._encoded("acl", kind),
            vpc=vpc.id,
            rules=list(rules),
            resource_group=self._args.resource_group,
            tags=self._tags,
            opts=self._options(),
        )

    def _endpoints(
        self,
        vpc: IsVpc,
        ranges: Sequence[ZoneRanges],
        prefixes: Sequence[pulumi.Resource],
    ) -> None:
        """Make the private endpoints of what jobs and workers use."""
        name, args = self._name, self._args
        acl = self._acl("endpoints", vpc, inner_rules(args.cidr))
        subnets = {
            zone.zone: IsSubnet(
                f"{name}-endpoints-{zone.zone}",
                name=self._encoded("endpoints", zone.zone),
                vpc=vpc.id,
                zone=zone.zone,
                ipv4_cidr_block=zone.endpoints,
                network_acl=acl.id,
                resource_group=args.resource_group,
                tags=self._tags,
                opts=self._kept(depends_on=[prefix]),
            )
            for zone, prefix in zip(ranges, prefixes, strict=True)
        }
        group = self._security_group("endpoints", vpc)
        self._rule("endpoints-from-network", group.id, "inbound", args.cidr, "tcp", 443)
        for service, crn in endpoint_targets(args.region).items():
            IsVirtualEndpointGateway(
                f"{name}-endpoint-{service}",
                name=self._encoded("endpoint", service),
                vpc=vpc.id,
                target=EndpointTarget(crn),
                ips=[
                    EndpointAddress(self._encoded("endpoint", service, zone), subnet.id)
                    for zone, subnet in subnets.items()
                ],
                security_groups=[group.id],
                resource_group=args.resource_group,
                tags=self._tags,
                opts=self._options(),
            )

    def _flow_logs(self, vpc: IsVpc) -> None:
        """Record every connection, where nobody can change the record."""
        name, args = self._name, self._args
        instance = ResourceInstance(
            f"{name}-logs",
            name=RESOURCE_INSTANCE.encode(args.cluster, "logs"),
            service="cloud-object-storage",
            plan="standard",
            location="global",
            resource_group_id=args.resource_group,
            tags=self._tags,
            opts=self._kept(),
        )
        key = self.vault.key("logs", f"Flow logs of {args.cluster}")
        reads_key = self.vault.usable_by("logs", "cloud-object-storage", instance.guid)
        bucket = CosBucket(
            f"{name}-flow-logs",
            bucket_name=BUCKET.encode(args.cluster, "flow-logs", args.account),
            resource_instance_id=instance.crn,
            region_location=args.region,
            storage_class="smart",
            kms_key_crn=key.crn,
            endpoint_type="private",
            force_delete=False,
            retention_rule=RetentionRule(FLOW_LOG_DAYS, FLOW_LOG_DAYS, FLOW_LOG_DAYS),
            opts=self._kept(depends_on=[reads_key]),
        )
        tagged(f"{name}-flow-logs", bucket.crn, args.labels, self._kept())
        writes = IamAuthorizationPolicy(
            f"{name}-flow-logs-writer",
            source_service_name="is",
            source_resource_type="flow-log-collector",
            target_service_name="cloud-object-storage",
            target_resource_instance_id=instance.guid,
            roles=["Writer"],
            description=f"Flow logs of {args.cluster}",
            opts=self._options(),
        )
        IsFlowLog(
            f"{name}-flow-log",
            name=self._encoded("flow-log"),
            target=vpc.id,
            storage_bucket=bucket.bucket_name,
            active=True,
            resource_group=args.resource_group,
            tags=self._tags,
            opts=self._options(depends_on=[writes]),
        )

    def _node_security_group(self, vpc: IsVpc) -> pulumi.Output[str]:
        """Let workers out on 443; what the cluster itself needs is in IBM's group."""
        args = self._args
        group = self._security_group("nodes", vpc)
        self._rule("nodes-to-network", group.id, "outbound", args.cidr, "tcp", 443)
        for number, cidr in enumerate(args.egress):
            self._rule(
                f"nodes-to-egress-{number}", group.id, "outbound", cidr, "tcp", 443
            )
        return group.id

    def _security_group(self, kind: str, vpc: IsVpc) -> IsSecurityGroup:
        return IsSecurityGroup(
            f"{self._name}-{kind}",
            name=self._encoded(kind),
            vpc=vpc.id,
            resource_group=self._args.resource_group,
            tags=self._tags,
            opts=self._options(),
        )

    def _rule(
        self,
        suffix: str,
        group: pulumi.Input[str],
        direction: str,
        remote: str,
        protocol: str,
        port: int,
    ) -> None:
        IsSecurityGroupRule(
            f"{self._name}-{suffix}",
            group=group,
            direction=direction,
            name=self._encoded(suffix),
            remote=remote,
            protocol=protocol,
            port_min=port,
            port_max=port,
            opts=self._options(),
        )


def endpoint_targets(region: str) -> dict[str, str]:
    """Return the CRNs of the services with a private endpoint, by short name.

    ``iam`` hands out the tokens of trusted profiles, ``cos`` and ``cr`` hold the
    stores. The cluster adds what it needs itself.

    Sources: IBM's script ``create-iam-vpe-gateway.sh``; cloud.ibm.com/docs/Registry,
    "Securing your connection", Table 1; openshift/installer, IBM Cloud machine setup.
    """
    public = "crn:v1:bluemix:public"
    storage = f"s3.direct.{region}.cloud-object-storage.appdomain.cloud"
    images = f"vpe.{region}.container-registry.cloud.ibm.com"
    return {
        "iam": f"{public}:iam-svcs:global:::endpoint:private.iam.cloud.ibm.com",
        "cos": f"{public}:cloud-object-storage:global:::endpoint:{storage}",
        "cr": f"{public}:container-registry:{region}:::endpoint:{images}",
    }


def worker_rules(cidr: str, egress: Sequence[str]) -> list[AclRule]:
    """Return what passes the workers' subnets, first match first.

    Args:
        cidr: Range of the network.
        egress: Ranges that HTTPS connections may be opened to.
    """
    rules = _both_ways("network", cidr, cidr)
    for number, range_ in enumerate(INFRASTRUCTURE):
        rules += _both_ways(f"ibm-{number}", cidr, range_)
    for number, range_ in enumerate(egress):
        rules += [
            AclRule(
                name=f"https-out-{number}",
                action="allow",
                direction="outbound",
                source=cidr,
                destination=range_,
                protocol="tcp",
                port_min=443,
                port_max=443,
                source_port_min=_EPHEMERAL[0],
                source_port_max=_EPHEMERAL[1],
            ),
            AclRule(
                name=f"https-back-{number}",
                action="allow",
                direction="inbound",
                source=range_,
                destination=cidr,
                protocol="tcp",
                port_min=_EPHEMERAL[0],
                port_max=_EPHEMERAL[1],
                source_port_min=443,
                source_port_max=443,
            ),
        ]
    return [*rules, *_refusals()]


def inner_rules(cidr: str) -> list[AclRule]:
    """Return what passes subnets that nothing leaves the network from."""
    return [*_both_ways("network", cidr, cidr), *_refusals()]


def _both_ways(name: str, inside: str, outside: str) -> list[AclRule]:
    return [
        AclRule(f"{name}-out", "allow", "outbound", inside, outside, ANY_PROTOCOL),
        AclRule(f"{name}-in", "allow", "inbound", outside, inside, ANY_PROTOCOL),
    ]


def _refusals() -> list[AclRule]:
    everywhere = "0.0.0.0/0"
    return [
        AclRule("refuse-in", "deny", "inbound", everywhere, everywhere, ANY_PROTOCOL),
        AclRule("refuse-out", "deny", "outbound", everywhere, everywhere, ANY_PROTOCOL),
    ]
