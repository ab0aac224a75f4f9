"""Network: a private VPC whose nodes can reach out on 443 and cannot be reached.

Which range holds what is in :mod:`runfleet.clouds.aws.ranges`. AWS's own services are
reached through VPC endpoints (:mod:`runfleet.clouds.aws.endpoints`) in subnets of
their own, and the cluster's API server has subnets of its own too; neither kind has
a route out of the network. NetworkPolicy knows ranges only, so this is what lets job
pods with an identity reach nothing private but the service endpoints, and runner pods
nothing private but the API server.

An existing network is used with ``network.adopt`` (its VPC id) and the setting
``node_subnets``; then only security groups are made, and flow logs, endpoints and
gateways are its owner's. Its endpoints and API server cannot be told apart from the
rest of it, so it has no ranges for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws

from runfleet.clouds.aws.endpoints import (
    INTERFACE_ENDPOINTS,
    endpoint_policy,
    s3_endpoint_policy,
)
from runfleet.clouds.aws.flow_logs import flow_logs
from runfleet.clouds.aws.names import SECURITY_GROUP, Place
from runfleet.clouds.aws.ranges import NetworkError, address_plan
from runfleet.clouds.aws.settings import AwsSettings
from runfleet.clouds.aws.tags import tags
from runfleet.placement.plan import CellPlan
from runfleet.spec.cells import Provider

DISCOVERY_TAG = "karpenter.sh/discovery"
"""Tag by which Karpenter's documentation finds a cluster's subnets."""


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
        nat: ``per-zone`` or ``single``.
        egress: Ranges that nodes may open HTTPS connections to.
        trusted_accounts: Accounts whose roles may use the endpoints.
        log_retention_days: How long flow logs are kept.
        account_defaults: Whether this network sets the account's defaults for this
            region (metadata service, disk encryption): one cell of them does.
        adopt: Id of an existing VPC to use.
        adopted_subnets: Its private subnets for nodes.
    """

    cluster: str
    account: str
    region: str
    zones: Sequence[str]
    cidr: str
    labels: Mapping[str, str]
    nat: str = "per-zone"
    egress: Sequence[str] = ("0.0.0.0/0",)
    trusted_accounts: Sequence[str] = ()
    log_retention_days: int = 365
    account_defaults: bool = True
    adopt: str | None = None
    adopted_subnets: Sequence[str] = ()

    @classmethod
    def from_plan(cls, plan: CellPlan) -> NetworkArgs:
        """Take what a cell's network needs from its plan.

        Raises:
            NetworkError: The cell has no network section.
            InputError: A setting of the cell is wrong.
        """
        cell, fleet = plan.cell, plan.fleet
        if cell.network is None:
            raise NetworkError(f"cell {cell.name}: a cell on AWS needs `network`")
        settings = AwsSettings.of(cell)
        accounts = {cell.account}
        if fleet.central is not None and fleet.central.provider is Provider.AWS:
            accounts.add(fleet.central.account)
        first = next(
            other
            for other in fleet.cells.values()
            if (other.provider, other.account, other.region)
            == (cell.provider, cell.account, cell.region)
        )
        return cls(
            cluster=cell.cluster,
            account=cell.account,
            region=cell.region,
            zones=tuple(cell.zones),
            cidr=cell.network.cidr,
            labels=plan.ci_labels,
            nat=cell.network.nat,
            egress=tuple(cell.network.egress),
            trusted_accounts=tuple(sorted(accounts)),
            log_retention_days=settings.log_retention_days,
            account_defaults=first.name == cell.name,
            adopt=cell.network.adopt,
            adopted_subnets=tuple(settings.node_subnets),
        )


class Network(pulumi.ComponentResource):
    """A VPC over two or three zones for private nodes.

    Attributes:
        network_id: Id of the VPC.
        node_subnet_ids: Ids of the private subnets.
        control_subnet_ids: Ids of the subnets for the API server's interfaces; those
            for nodes when the network is adopted.
        node_security_group_id: Id of the security group of every node.
        service_ranges: Ranges that hold nothing but endpoints of AWS's services;
            empty when the network is adopted.
        api_ranges: Ranges that hold nothing but the API server; empty when the
            network is adopted.
    """

    network_id: pulumi.Output[str]
    node_subnet_ids: pulumi.Output[Sequence[str]]
    control_subnet_ids: pulumi.Output[Sequence[str]]
    service_ranges: Sequence[str]
    api_ranges: Sequence[str]
    node_security_group_id: pulumi.Output[str]

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
        super().__init__("runfleet:aws:Network", name, None, opts)
        self._name = name
        self._args = args
        self._addresses = address_plan(args.cidr, len(args.zones))
        if args.account_defaults:
            self._account_defaults()
        s3: aws.ec2.VpcEndpoint | None = None
        if args.adopt is None:
            vpc = self._vpc()
            subnets = self._private_subnets(vpc)
            tables = self._routes(vpc, subnets)
            inner = self._inner_table(vpc)
            self.service_ranges = self._addresses.endpoints
            self.api_ranges = self._addresses.control
            services = self._inner_subnets("endpoints", self.service_ranges, vpc, inner)
            control = self._inner_subnets("control", self.api_ranges, vpc, inner)
            flow_logs(
                name,
                Place(args.cluster, args.account, args.region, args.labels),
                vpc.id,
                args.log_retention_days,
                self,
            )
            s3 = self._endpoints(vpc, services, tables)
        else:
            vpc = aws.ec2.Vpc.get(f"{name}-vpc", args.adopt, opts=self._options())
            subnets = control = self._adopted_subnets()
            self.service_ranges = self.api_ranges = ()
        self.network_id = vpc.id
        self.node_subnet_ids = pulumi.Output.all(*[subnet.id for subnet in subnets])
        self.control_subnet_ids = pulumi.Output.all(*[subnet.id for subnet in control])
        self.node_security_group_id = self._node_security_group(vpc, s3)
        self.register_outputs(
            {
                "network_id": self.network_id,
                "node_subnet_ids": self.node_subnet_ids,
                "control_subnet_ids": self.control_subnet_ids,
                "service_ranges": list(self.service_ranges),
                "api_ranges": list(self.api_ranges),
                "node_security_group_id": self.node_security_group_id,
            }
        )

    def _options(self, **more: Any) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self, **more)

    def _tags(self, suffix: str, more: Mapping[str, str] | None = None) -> Any:
        return tags(self._args.labels, more, Name=f"{self._name}-{suffix}")

    def _account_defaults(self) -> None:
        """Make machines that something else starts as safe as ours."""
        aws.ec2.InstanceMetadataDefaults(
            f"{self._name}-metadata-defaults",
            http_endpoint="enabled",
            http_tokens="required",
            http_put_response_hop_limit=1,
            instance_metadata_tags="disabled",
            opts=self._options(retain_on_delete=True),
        )
        aws.ebs.EncryptionByDefault(
            f"{self._name}-disk-encryption",
            enabled=True,
            opts=self._options(retain_on_delete=True),
        )

    def _vpc(self) -> aws.ec2.Vpc:
        name = self._name
        vpc = aws.ec2.Vpc(
            f"{name}-vpc",
            cidr_block=self._args.cidr,
            enable_dns_hostnames=True,
            enable_dns_support=True,
            tags=self._tags("vpc"),
            opts=self._options(protect=True, retain_on_delete=True),
        )
        aws.ec2.DefaultSecurityGroup(
            f"{name}-default-security-group",
            vpc_id=vpc.id,
            ingress=[],
            egress=[],
            tags=self._tags("default-security-group"),
            opts=self._options(),
        )
        return vpc

    def _private_subnets(self, vpc: aws.ec2.Vpc) -> list[aws.ec2.Subnet]:
        return [
            aws.ec2.Subnet(
                f"{self._name}-private-{zone}",
                vpc_id=vpc.id,
                availability_zone=zone,
                cidr_block=cidr,
                map_public_ip_on_launch=False,
                tags=self._tags(
                    f"private-{zone}",
                    {
                        DISCOVERY_TAG: self._args.cluster,
                        "kubernetes.io/role/internal-elb": "1",
                    },
                ),
                opts=self._options(protect=True, retain_on_delete=True),
            )
            for zone, cidr in zip(
                self._args.zones, self._addresses.private, strict=True
            )
        ]

    def _inner_table(self, vpc: aws.ec2.Vpc) -> aws.ec2.RouteTable:
        """Make the route table of subnets that nothing leaves the network from."""
        return aws.ec2.RouteTable(
            f"{self._name}-inner",
            vpc_id=vpc.id,
            routes=[],
            tags=self._tags("inner"),
            opts=self._options(),
        )

    def _inner_subnets(
        self,
        kind: str,
        ranges: Sequence[str],
        vpc: aws.ec2.Vpc,
        table: aws.ec2.RouteTable,
    ) -> list[aws.ec2.Subnet]:
        """Make the subnets of a kind, which have no route but the local one."""
        subnets: list[aws.ec2.Subnet] = []
        for zone, cidr in zip(self._args.zones, ranges, strict=True):
            name = f"{self._name}-{kind}-{zone}"
            subnet = aws.ec2.Subnet(
                name,
                vpc_id=vpc.id,
                availability_zone=zone,
                cidr_block=cidr,
                map_public_ip_on_launch=False,
                tags=self._tags(f"{kind}-{zone}"),
                opts=self._options(protect=True, retain_on_delete=True),
            )
            aws.ec2.RouteTableAssociation(
                f"{name}-association",
                subnet_id=subnet.id,
                route_table_id=table.id,
                opts=self._options(),
            )
            subnets.append(subnet)
        return subnets

    def _adopted_subnets(self) -> list[aws.ec2.Subnet]:
        if not self._args.adopted_subnets:
            raise NetworkError(
                f"network {self._args.adopt} is adopted: `settings.node_subnets` "
                "must list its private subnets for nodes"
            )
        return [
            aws.ec2.Subnet.get(
                f"{self._name}-private-{number}", subnet, opts=self._options()
            )
            for number, subnet in enumerate(self._args.adopted_subnets)
        ]

    def _routes(
        self, vpc: aws.ec2.Vpc, private: Sequence[aws.ec2.Subnet]
    ) -> list[aws.ec2.RouteTable]:
        """Make the gateways and route tables; return those of the private subnets."""
        name = self._name
        gateway = aws.ec2.InternetGateway(
            f"{name}-internet",
            vpc_id=vpc.id,
            tags=self._tags("internet"),
            opts=self._options(),
        )
        public_table = aws.ec2.RouteTable(
            f"{name}-public",
            vpc_id=vpc.id,
            routes=[
                aws.ec2.RouteTableRouteArgs(
                    cidr_block="0.0.0.0/0", gateway_id=gateway.id
                )
            ],
            tags=self._tags("public"),
            opts=self._options(),
        )
        nats: list[aws.ec2.NatGateway] = []
        zones = (
            self._args.zones if self._args.nat == "per-zone" else [self._args.zones[0]]
        )
        for zone, cidr in zip(zones, self._addresses.public, strict=False):
            nats.append(self._nat(vpc, gateway, public_table, zone, cidr))
        tables: list[aws.ec2.RouteTable] = []
        for number, (zone, subnet) in enumerate(
            zip(self._args.zones, private, strict=True)
        ):
            table = aws.ec2.RouteTable(
                f"{name}-private-{zone}-routes",
                vpc_id=vpc.id,
                routes=[
                    aws.ec2.RouteTableRouteArgs(
                        cidr_block="0.0.0.0/0",
                        nat_gateway_id=nats[number if len(nats) > 1 else 0].id,
                    )
                ],
                tags=self._tags(f"private-{zone}-routes"),
                opts=self._options(),
            )
            aws.ec2.RouteTableAssociation(
                f"{name}-private-{zone}-association",
                subnet_id=subnet.id,
                route_table_id=table.id,
                opts=self._options(),
            )
            tables.append(table)
        return tables

    def _nat(
        self,
        vpc: aws.ec2.Vpc,
        gateway: aws.ec2.InternetGateway,
        table: aws.ec2.RouteTable,
        zone: str,
        cidr: str,
    ) -> aws.ec2.NatGateway:
        name = self._name
        subnet = aws.ec2.Subnet(
            f"{name}-public-{zone}",
            vpc_id=vpc.id,
            availability_zone=zone,
            cidr_block=cidr,
            map_public_ip_on_launch=False,
            tags=self._tags(f"public-{zone}"),
            opts=self._options(protect=True, retain_on_delete=True),
        )
        aws.ec2.RouteTableAssociation(
            f"{name}-public-{zone}-association",
            subnet_id=subnet.id,
            route_table_id=table.id,
            opts=self._options(),
        )
        address = aws.ec2.Eip(
            f"{name}-nat-{zone}-address",
            domain="vpc",
            tags=self._tags(f"nat-{zone}-address"),
            opts=self._options(),
        )
        return aws.ec2.NatGateway(
            f"{name}-nat-{zone}",
            subnet_id=subnet.id,
            allocation_id=address.allocation_id,
            tags=self._tags(f"nat-{zone}"),
            opts=self._options(depends_on=[gateway]),
        )

    def _endpoints(
        self,
        vpc: aws.ec2.Vpc,
        subnets: Sequence[aws.ec2.Subnet],
        tables: Sequence[aws.ec2.RouteTable],
    ) -> aws.ec2.VpcEndpoint:
        """Make the endpoints; return the one of S3."""
        name, args = self._name, self._args
        group = aws.ec2.SecurityGroup(
            f"{name}-endpoints",
            name=SECURITY_GROUP.encode(args.cluster, "endpoints"),
            description="AWS services, reached from inside the network only",
            vpc_id=vpc.id,
            tags=self._tags("endpoints"),
            opts=self._options(),
        )
        aws.vpc.SecurityGroupIngressRule(
            f"{name}-endpoints-from-network",
            security_group_id=group.id,
            description="HTTPS from the network",
            ip_protocol="tcp",
            from_port=443,
            to_port=443,
            cidr_ipv4=args.cidr,
            tags=self._tags("endpoints-from-network"),
            opts=self._options(),
        )
        for endpoint in INTERFACE_ENDPOINTS:
            suffix = f"endpoint-{endpoint.service.replace('.', '-')}"
            aws.ec2.VpcEndpoint(
                f"{name}-{suffix}",
                vpc_id=vpc.id,
                service_name=f"com.amazonaws.{args.region}.{endpoint.service}",
                vpc_endpoint_type="Interface",
                private_dns_enabled=True,
                subnet_ids=[subnet.id for subnet in subnets],
                security_group_ids=[group.id],
                policy=endpoint_policy(endpoint, args.trusted_accounts),
                tags=self._tags(suffix),
                opts=self._options(),
            )
        return aws.ec2.VpcEndpoint(
            f"{name}-endpoint-s3",
            vpc_id=vpc.id,
            service_name=f"com.amazonaws.{args.region}.s3",
            vpc_endpoint_type="Gateway",
            route_table_ids=[table.id for table in tables],
            policy=s3_endpoint_policy(args.trusted_accounts),
            tags=self._tags("endpoint-s3"),
            opts=self._options(),
        )

    def _node_security_group(
        self, vpc: aws.ec2.Vpc, s3: aws.ec2.VpcEndpoint | None
    ) -> pulumi.Output[str]:
        name, args = self._name, self._args
        group = aws.ec2.SecurityGroup(
            f"{name}-nodes",
            name=SECURITY_GROUP.encode(args.cluster, "nodes"),
            description="Nodes: nothing comes in from outside, HTTPS goes out",
            vpc_id=vpc.id,
            tags=self._tags("nodes", {DISCOVERY_TAG: args.cluster}),
            opts=self._options(),
        )
        aws.vpc.SecurityGroupIngressRule(
            f"{name}-nodes-from-nodes",
            security_group_id=group.id,
            description="Pods and nodes among each other",
            ip_protocol="-1",
            referenced_security_group_id=group.id,
            tags=self._tags("nodes-from-nodes"),
            opts=self._options(),
        )
        https = {"ip_protocol": "tcp", "from_port": 443, "to_port": 443}
        dns = {"from_port": 53, "to_port": 53, "cidr_ipv4": self._addresses.resolver}
        out: dict[str, tuple[str, dict[str, Any]]] = {
            "nodes-to-nodes": (
                "Pods and nodes among each other",
                {"ip_protocol": "-1", "referenced_security_group_id": group.id},
            ),
            "nodes-to-network": (
                "HTTPS to the cluster and the endpoints",
                {**https, "cidr_ipv4": args.cidr},
            ),
            "nodes-to-dns-udp": ("DNS", {**dns, "ip_protocol": "udp"}),
            "nodes-to-dns-tcp": ("DNS", {**dns, "ip_protocol": "tcp"}),
        }
        if s3 is not None:
            out["nodes-to-s3"] = (
                "HTTPS to S3 through the gateway endpoint",
                {**https, "prefix_list_id": s3.prefix_list_id},
            )
        for number, cidr in enumerate(args.egress):
            out[f"nodes-to-egress-{number}"] = (
                "HTTPS to the allowed ranges",
                {**https, "cidr_ipv4": cidr},
            )
        for suffix, (description, rule) in out.items():
            aws.vpc.SecurityGroupEgressRule(
                f"{name}-{suffix}",
                security_group_id=group.id,
                description=description,
                tags=self._tags(suffix),
                opts=self._options(),
                **rule,
            )
        return group.id
