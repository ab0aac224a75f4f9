"""IBM Cloud networks and clusters: closed doors, watched traffic.

Names are those that Pulumi's bridge gives to the Terraform provider ``IBM-Cloud/ibm``
2.5.0. A floating IP is not part of the schema that the examples are checked with;
its arguments are those of the provider's documentation.
"""

from __future__ import annotations

from collections.abc import Iterator

from runfleet.spec.findings import Severity
from runfleet_policies.rule import Breach, Context, Rule
from runfleet_policies.rules.aws_network import is_world
from runfleet_policies.values import CannotTell
from runfleet_policies.view import ResourceView, StackView

VPC = "ibm:index/isVpc:IsVpc"
SUBNET = "ibm:index/isSubnet:IsSubnet"
CLUSTER = "ibm:index/containerVpcCluster:ContainerVpcCluster"
FLOATING_IP = "ibm:index/isFloatingIp:IsFloatingIp"
ATTACHED_IPS = (
    "ibm:index/isInstanceNetworkInterfaceFloatingIp:"
    "IsInstanceNetworkInterfaceFloatingIp",
    "ibm:index/isVirtualNetworkInterfaceFloatingIp:IsVirtualNetworkInterfaceFloatingIp",
)
GROUP_RULE = "ibm:index/isSecurityGroupRule:IsSecurityGroupRule"
FLOW_LOG = "ibm:index/isFlowLog:IsFlowLog"


def rules() -> tuple[Rule, ...]:
    """Return the rules about IBM Cloud networks and clusters."""
    return (
        Rule(
            id="R-IBM-05",
            severity=Severity.HIGH,
            title="Runners have no floating address",
            rationale="Connections out go through the public gateway; a floating "
            "address makes a machine reachable.",
            fix="remove the floating IP; use a public gateway or endpoint gateways",
            anchors=("S33", "S34", "CIS 2.2.4"),
            types=(FLOATING_IP, *ATTACHED_IPS),
            resource=_floating,
        ),
        Rule(
            id="R-IBM-06",
            severity=Severity.HIGH,
            title="Nothing lets the internet connect in",
            rationale="Runners open connections, they take none. A rule without a "
            "remote means every source.",
            fix="remove the rule, or name a remote group or range",
            anchors=("S33", "CIS 2.2.4"),
            types=(GROUP_RULE,),
            resource=_open_ingress,
        ),
        Rule(
            id="R-IBM-07",
            severity=Severity.HIGH,
            title="The cluster's API has a private endpoint only",
            rationale="The default is a public endpoint: one leaked token or one flaw "
            "in the API server is then enough.",
            fix="set disablePublicServiceEndpoint to true",
            anchors=("S02", "S33"),
            types=(CLUSTER,),
            resource=_public_api,
        ),
        Rule(
            id="R-IBM-08",
            severity=Severity.MEDIUM,
            title="The network is not joined to the classic infrastructure",
            rationale="Classic access opens routes to every classic machine of the "
            "account, which this fleet does not know.",
            fix="set classicAccess to false",
            anchors=("S02", "S14"),
            types=(VPC,),
            resource=_classic,
        ),
        Rule(
            id="R-IBM-10",
            severity=Severity.MEDIUM,
            title="Every VPC has an active flow log",
            rationale="Without it nobody can say afterwards where data went.",
            fix="add a flow log whose target is the VPC, with active true",
            anchors=("S21", "S35", "CIS 2.2.6"),
            stack=_flow_logs,
        ),
        Rule(
            id="R-IBM-12",
            severity=Severity.MEDIUM,
            title="The VPC's default group and access list start empty",
            rationale="What names no group gets the default one, which IBM makes open "
            "to the world outwards unless it is told not to.",
            fix="set noSgAclRules to true",
            anchors=("S12", "S33"),
            types=(VPC,),
            resource=_default_rules,
        ),
    )


def _floating(address: ResourceView, context: Context) -> Iterator[Breach]:
    if address.type == FLOATING_IP and not _targets(address):
        return
    yield Breach("a floating address is attached to a machine", "target")


def _targets(address: ResourceView) -> bool:
    try:
        return bool(address.text("target"))
    except CannotTell:
        return True  # the interface that it will be attached to


def _open_ingress(rule: ResourceView, context: Context) -> Iterator[Breach]:
    if rule.text("direction") != "inbound":
        return
    remote = rule.text("remote")
    if not remote:
        yield Breach("names no remote, which means every source", "remote")
    elif is_world(remote):
        yield Breach(f"lets {remote} in", "remote")


def _public_api(cluster: ResourceView, context: Context) -> Iterator[Breach]:
    if not cluster.truth("disablePublicServiceEndpoint"):
        why = "the public endpoint is on"
        yield Breach(why, "disablePublicServiceEndpoint")


def _classic(network: ResourceView, context: Context) -> Iterator[Breach]:
    if network.truth("classicAccess"):
        yield Breach("classic access is on", "classicAccess")


def _default_rules(network: ResourceView, context: Context) -> Iterator[Breach]:
    if not network.truth("noSgAclRules"):
        yield Breach("the default rules of IBM are in force", "noSgAclRules")


def _flow_logs(stack: StackView, context: Context) -> Iterator[Breach]:
    watched: set[str] = set()
    unknown: CannotTell | None = None
    for log in stack.of(FLOW_LOG):
        try:
            if log.truth("active", default=True) is False:
                yield Breach("the flow log is not active", "active", urn=log.urn)
                continue
            target = stack.pointed_at(log, "target", VPC)
        except CannotTell as error:
            unknown = error
            continue
        if target is not None:
            watched.add(target.urn)
    for network in stack.of(VPC):
        if network.urn in watched:
            continue
        if unknown is not None:
            yield Breach(f"cannot tell: {unknown}", "", True, network.urn)
        else:
            yield Breach("no flow log has it as target", urn=network.urn)
