"""AWS networks: private nodes, closed doors, watched traffic."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from runfleet.spec.findings import Severity
from runfleet_policies.rule import Breach, Context, Parameter, Rule, guarded
from runfleet_policies.values import CannotTell, number, text, texts
from runfleet_policies.view import ResourceView, StackView

VPC = "aws:ec2/vpc:Vpc"
DEFAULT_GROUP = "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup"
FLOW_LOG = "aws:ec2/flowLog:FlowLog"
ENDPOINT = "aws:ec2/vpcEndpoint:VpcEndpoint"
GROUP_TYPES = (
    "aws:ec2/securityGroup:SecurityGroup",
    "aws:ec2/securityGroupRule:SecurityGroupRule",
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule",
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule",
)

_WORLD_BITS = 3
"""A range with at most this many fixed bits is the world, cut in a few pieces."""


def rules() -> tuple[Rule, ...]:
    """Return the rules about AWS networks."""
    return (
        Rule(
            id="R-AWS-04",
            severity=Severity.HIGH,
            title="Runners have no public address",
            rationale="A machine that runs strangers' code and can be reached from "
            "the internet is a place to persist on and to pivot from.",
            fix="set associatePublicIpAddress to false and drop the elastic address",
            anchors=("S33", "S34", "CIS 2.2.4"),
            types=(
                "aws:ec2/launchTemplate:LaunchTemplate",
                "aws:ec2/launchConfiguration:LaunchConfiguration",
                "aws:ec2/instance:Instance",
                "aws:ec2/spotInstanceRequest:SpotInstanceRequest",
                "aws:ec2/eip:Eip",
                "aws:ec2/eipAssociation:EipAssociation",
                "kubernetes:karpenter.k8s.aws/*:EC2NodeClass",
            ),
            resource=_public_address,
        ),
        Rule(
            id="R-AWS-05",
            severity=Severity.HIGH,
            title="Subnets give no public address on launch",
            rationale="A machine that asks for nothing takes what its subnet gives.",
            fix="set mapPublicIpOnLaunch to false",
            anchors=("S33", "S34", "CIS 2.2.4"),
            types=(
                "aws:ec2/subnet:Subnet",
                "aws:ec2/defaultSubnet:DefaultSubnet",
            ),
            resource=_public_subnet,
        ),
        Rule(
            id="R-AWS-06",
            severity=Severity.HIGH,
            title="Nothing lets the internet connect in",
            rationale="Runners open connections, they take none.",
            fix="remove the rule; use Session Manager instead of SSH",
            anchors=("S33", "CIS 2.2.4"),
            types=GROUP_TYPES,
            resource=_open_ingress,
        ),
        Rule(
            id="R-AWS-07",
            severity=Severity.HIGH,
            title="Connections to the world use listed ports only",
            rationale="Code on a runner sends what it stole wherever it may; an open "
            "egress makes every protocol a way out.",
            fix="allow TCP 443 to the world, other ports to named ranges only",
            anchors=("S11", "S12", "S14", "CIS 2.2.4"),
            types=GROUP_TYPES,
            resource=_open_egress,
            parameters=(
                Parameter("ports", ["443"], "Ports that may be opened to the world."),
            ),
        ),
        Rule(
            id="R-AWS-08",
            severity=Severity.MEDIUM,
            title="The default security group of each VPC is empty",
            rationale="What names no group gets this one, and AWS makes it open "
            "between its members and to the world.",
            fix="add a DefaultSecurityGroup of the VPC without rules",
            anchors=("S33", "S12"),
            stack=_default_group,
        ),
        Rule(
            id="R-AWS-09",
            severity=Severity.MEDIUM,
            title="Every VPC has flow logs of all traffic",
            rationale="Without them nobody can say afterwards where data went.",
            fix="add a FlowLog of the VPC with trafficType ALL",
            anchors=("S21", "S35", "CIS 2.2.6"),
            stack=_flow_logs,
        ),
        Rule(
            id="R-AWS-10",
            severity=Severity.MEDIUM,
            title="AWS's own services are reached inside the network",
            rationale="Traffic to stores and registries that leaves through NAT needs "
            "wider egress rules, costs more and cannot be bound to the network.",
            fix="add VPC endpoints for the services named",
            anchors=("S14", "S34"),
            stack=_endpoints,
            parameters=(
                Parameter(
                    "services",
                    ["s3", "ecr.api", "ecr.dkr", "sts", "logs"],
                    "Services that need an endpoint.",
                ),
            ),
        ),
    )


def is_world(cidr: str) -> bool:
    """Say whether a range is the whole internet, or nearly so."""
    try:
        return ipaddress.ip_network(cidr, strict=False).prefixlen <= _WORLD_BITS
    except ValueError:
        return False


@dataclass(frozen=True)
class Opening:
    """One rule of a security group, in either of its spellings.

    Attributes:
        place: Where it stands in the resource.
        egress: True when it lets connections out.
        protocol: Protocol, ``-1`` for all.
        low: First port; ``None`` for all.
        high: Last port.
        ranges: The other side, as IP ranges.
    """

    place: str
    egress: bool
    protocol: str
    low: int | None
    high: int | None
    ranges: tuple[str, ...]

    @property
    def ports(self) -> str:
        """The protocol and ports, to read."""
        if self.protocol in ("-1", "all") or self.low is None:
            return "all ports" if self.protocol in ("-1", "all") else self.protocol
        span = f"{self.low}" if self.low == self.high else f"{self.low}-{self.high}"
        return f"{self.protocol} {span}"


def openings(resource: ResourceView) -> Iterator[Opening]:
    """Yield the rules of a security group or of a rule of its own."""
    kind = resource.type.rpartition(":")[2]
    if kind in ("SecurityGroup", "DefaultSecurityGroup"):
        for side in ("ingress", "egress"):
            for index, entry in enumerate(resource.items(side)):
                yield _opening(entry, f"{side}[{index}]", side == "egress")
    elif kind == "SecurityGroupRule":
        yield _opening(resource.inputs, "", resource.text("type") == "egress")
    else:
        yield _opening(resource.inputs, "", kind == "SecurityGroupEgressRule")


def _opening(entry: Any, place: str, egress: bool) -> Opening:
    ranges = [
        *texts(entry, "cidrBlocks"),
        *texts(entry, "ipv6CidrBlocks"),
        *texts(entry, "cidrIpv4"),
        *texts(entry, "cidrIpv6"),
    ]
    protocol = text(entry, "protocol") or text(entry, "ipProtocol", default="-1")
    low, high = number(entry, "fromPort"), number(entry, "toPort")
    return Opening(
        place,
        egress,
        protocol,
        None if low is None else int(low),
        None if high is None else int(high),
        tuple(ranges),
    )


def _public_address(resource: ResourceView, context: Context) -> Iterator[Breach]:
    kind = resource.type.rpartition(":")[2]
    if kind == "LaunchTemplate":
        for index, _ in enumerate(resource.items("networkInterfaces")):
            place = ("networkInterfaces", index, "associatePublicIpAddress")
            if resource.truth(*place):
                yield Breach(
                    "associatePublicIpAddress is true", f"networkInterfaces[{index}]"
                )
        return
    if kind in ("Eip", "EipAssociation"):
        instance = resource.text("instance") or resource.text("instanceId")
        if instance:
            yield Breach(f"gives {instance} an elastic address")
        return
    path = ("associatePublicIpAddress",)
    if kind == "EC2NodeClass":
        path = ("spec", "associatePublicIPAddress")
    if resource.truth(*path):
        yield Breach(f"{path[-1]} is true", ".".join(path))


def _public_subnet(resource: ResourceView, context: Context) -> Iterator[Breach]:
    unset = resource.type.endswith(":DefaultSubnet")
    if resource.truth("mapPublicIpOnLaunch", default=unset):
        why = "mapPublicIpOnLaunch is true"
        yield Breach(why, "mapPublicIpOnLaunch")


def _open_ingress(resource: ResourceView, context: Context) -> Iterator[Breach]:
    for opening in openings(resource):
        world = [found for found in opening.ranges if is_world(found)]
        if world and not opening.egress:
            why = f"{opening.ports} from {', '.join(world)}"
            yield Breach(why, opening.place)


def _open_egress(resource: ResourceView, context: Context) -> Iterator[Breach]:
    ports = {int(port) for port in context.strings("ports")}
    for opening in openings(resource):
        world = [found for found in opening.ranges if is_world(found)]
        if not world or not opening.egress:
            continue
        if (
            opening.protocol in ("tcp", "udp", "6", "17")
            and opening.low is not None
            and opening.high is not None
            and opening.high - opening.low < 100
            and set(range(opening.low, opening.high + 1)) <= ports
        ):
            continue
        listed = ", ".join(str(port) for port in sorted(ports))
        why = f"{opening.ports} to {', '.join(world)}; allowed are {listed}"
        yield Breach(why, opening.place)


def _of_vpc(stack: StackView, vpc: ResourceView, kind: str) -> list[ResourceView]:
    return [
        found
        for found in stack.of(kind)
        if stack.pointed_at(found, "vpcId", VPC) is vpc
    ]


def _default_group(stack: StackView, context: Context) -> Iterator[Breach]:
    for vpc in stack.of(VPC):
        yield from guarded(_default_group_of(stack, vpc), vpc.urn)


def _default_group_of(stack: StackView, vpc: ResourceView) -> Iterator[Breach]:
    groups = _of_vpc(stack, vpc, DEFAULT_GROUP)
    if not groups:
        yield Breach("its default security group is not managed", urn=vpc.urn)
    for group in groups:
        for opening in openings(group):
            why = f"has a rule: {opening.ports}"
            yield Breach(why, opening.place, urn=group.urn)


def _flow_logs(stack: StackView, context: Context) -> Iterator[Breach]:
    for vpc in stack.of(VPC):
        yield from guarded(_flow_logs_of(stack, vpc), vpc.urn)


def _flow_logs_of(stack: StackView, vpc: ResourceView) -> Iterator[Breach]:
    kinds = [log.text("trafficType") for log in _of_vpc(stack, vpc, FLOW_LOG)]
    if not kinds:
        yield Breach("has no flow log", urn=vpc.urn)
    elif "ALL" not in kinds:
        yield Breach(f"its flow log keeps only {', '.join(kinds)}", urn=vpc.urn)


def _endpoints(stack: StackView, context: Context) -> Iterator[Breach]:
    for vpc in stack.of(VPC):
        wanted = context.strings("services")
        yield from guarded(_endpoints_of(stack, vpc, wanted), vpc.urn)


def _endpoints_of(
    stack: StackView, vpc: ResourceView, wanted: list[str]
) -> Iterator[Breach]:
    found: set[str] = set()
    unknown: CannotTell | None = None
    for endpoint in _of_vpc(stack, vpc, ENDPOINT):
        try:
            name = endpoint.text("serviceName")
        except CannotTell as error:
            unknown = error
            continue
        found.add(".".join(name.split(".")[3:]))
    missing = [service for service in wanted if service not in found]
    if missing and unknown is not None:
        raise unknown
    if missing:
        yield Breach(f"has no endpoint for {', '.join(missing)}", urn=vpc.urn)
