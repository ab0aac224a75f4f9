"""Network policies: everything is denied but what is listed here.

Each namespace has one policy that selects every pod, in both directions, and lists
the only connections that may be opened; nothing may connect in. NetworkPolicy is an
allow list, so a policy with a list is the default deny and its exceptions in one.

What is listed: the cluster's DNS; HTTPS to public addresses, with every private and
link-local range cut out (RFC 1918, RFC 6598, the metadata addresses 169.254.169.254
and fd00:ec2::254, Azure's 168.63.129.16); for runner pods the API server, through
which the container hooks start jobs; for job pods of a class with grants the cloud's
workload-identity endpoint, which is the one link-local exception. Anything more is a
declared :class:`EgressException` with reason, owner and expiry.

NetworkPolicy knows no names and does not cover pods on the host's network; admission
(:mod:`runfleet.runners.admission`) refuses those.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pulumi
from pulumi_kubernetes.meta import v1 as meta
from pulumi_kubernetes.networking import v1 as networking

from runfleet.placement.plan import CellPlan, PlannedClass
from runfleet.runners.tenancy import PART
from runfleet.spec.cells import Cell

PrivateRange = ipaddress.IPv4Network | ipaddress.IPv6Network

CLOSED: tuple[PrivateRange, ...] = tuple(
    ipaddress.ip_network(text)
    for text in (
        "10.0.0.0/8",  # RFC 1918
        "172.16.0.0/12",  # RFC 1918
        "192.168.0.0/16",  # RFC 1918
        "100.64.0.0/10",  # RFC 6598; second ranges of clusters
        "169.254.0.0/16",  # RFC 3927; instance metadata of every cloud
        "168.63.129.16/32",  # Azure's platform endpoint ("WireServer")
        "fc00::/7",  # RFC 4193; holds fd00:ec2::254
        "fe80::/10",  # RFC 4291 link-local
    )
)
"""Ranges that HTTPS egress never reaches."""

DEFAULT_API_ADDRESSES = (
    "10.100.0.1/32",  # Amazon EKS, first of its two default service ranges
    "172.20.0.1/32",  # Amazon EKS, the second (EKS user guide, "networking")
    "10.96.0.1/32",  # kubeadm's default service range
    "10.0.0.1/32",  # Azure AKS's default service range
)
"""Address of ``kubernetes.default`` where the fleet file names no service range: the
first address of each default service range."""

API_PORTS = (443, 6443)
EXCEPTIONS = "runfleet/egress-exceptions"


@dataclass(frozen=True)
class EgressException:
    """A connection that pods may open beyond the usual ones.

    Attributes:
        name: What it is, in a few words.
        cidr: Range that may be reached.
        ports: TCP ports.
        part: Pods that it is for: ``runner`` or ``job``.
        reason: Why it is needed.
        owner: Who asked for it.
        expires: Last day; a review reports it after that.
        classes: Names of the classes that it is for; ``None`` for all.
        granted_only: Whether it is for classes with grants only.
    """

    name: str
    cidr: str
    ports: tuple[int, ...]
    part: Literal["runner", "job"]
    reason: str
    owner: str
    expires: dt.date
    classes: frozenset[str] | None = None
    granted_only: bool = False

    def concerns(self, planned: PlannedClass, part: str) -> bool:
        """Say whether it is for a class's pods."""
        return (
            part == self.part
            and (self.classes is None or planned.name in self.classes)
            and (bool(planned.grants) or not self.granted_only)
        )


@dataclass(frozen=True)
class Reach:
    """One kind of connection that pods may open.

    Attributes:
        blocks: Ranges that may be reached, each with what is cut out of it.
        ports: TCP ports.
        dns: The cluster's DNS pods instead of ranges, over UDP and TCP.
    """

    blocks: tuple[tuple[str, tuple[str, ...]], ...] = ()
    ports: tuple[int, ...] = ()
    dns: bool = False


DNS = Reach(ports=(53,), dns=True)


def https_reach(ranges: Iterable[str]) -> Reach:
    """Return HTTPS to some ranges, with all closed ranges cut out.

    A range that lies inside a closed one is left out: it takes a declared exception.
    """
    blocks: list[tuple[str, tuple[str, ...]]] = []
    for text in ranges:
        network = ipaddress.ip_network(text)
        inside = [c for c in CLOSED if _within(c, network)]
        if any(_within(network, closed) for closed in CLOSED):
            continue
        blocks.append((str(network), tuple(str(closed) for closed in inside)))
    return Reach(tuple(blocks), (443,))


def https_private(ranges: Iterable[str]) -> Reach:
    """Return HTTPS to private ranges, such as the cloud's own service endpoints."""
    return Reach(tuple((text, ()) for text in ranges), (443,))


def api_addresses(cell: Cell) -> tuple[str, ...]:
    """Return where the API server of a cell is reached from inside the cluster.

    That is the cell's own network, which holds the private endpoint, and the first
    address of the service range, which is ``kubernetes.default``.
    """
    if cell.network is None:
        return DEFAULT_API_ADDRESSES
    if cell.network.services is None:
        service = DEFAULT_API_ADDRESSES
    else:
        services = ipaddress.ip_network(cell.network.services)
        service = (f"{services[1]}/{services.max_prefixlen}",)
    return (cell.network.cidr, *service)


def runner_reach(
    plan: CellPlan, api: Sequence[str] | None, exceptions: Sequence[EgressException]
) -> tuple[Reach, ...]:
    """Return what the runner pods of a cell may connect to.

    Args:
        plan: The plan of the cell.
        api: Ranges of the API server; ``None`` for :func:`api_addresses`.
        exceptions: Declared exceptions that concern them.
    """
    ranges = tuple(api if api is not None else api_addresses(plan.cell))
    return (
        DNS,
        https_reach(_egress(plan.cell)),
        Reach(tuple((text, ()) for text in ranges), API_PORTS),
        *(_declared(exception) for exception in exceptions),
    )


def job_reach(
    plan: CellPlan, endpoints: Sequence[str], exceptions: Sequence[EgressException]
) -> tuple[Reach, ...]:
    """Return what the job pods of a class may connect to.

    Args:
        plan: The plan of the cell.
        endpoints: Workload-identity endpoints as ``ip:port``; none without grants.
        exceptions: Declared exceptions that concern them.
    """
    return (
        DNS,
        https_reach(_egress(plan.cell)),
        *(_endpoint(endpoint) for endpoint in endpoints),
        *(_declared(exception) for exception in exceptions),
    )


def make_policy(
    resource_name: str,
    namespace: str,
    labels: Mapping[str, str],
    reaches: Sequence[Reach],
    exceptions: Sequence[EgressException],
    opts: pulumi.ResourceOptions,
    scraped_ports: Sequence[int] = (),
) -> networking.NetworkPolicy:
    """Make the one policy of a namespace.

    Args:
        resource_name: Logical name.
        namespace: The namespace.
        labels: Labels of the policy.
        reaches: All that its pods may connect to.
        exceptions: Declared exceptions among these, to be written on the policy.
        opts: Parent, provider and dependencies.
        scraped_ports: Ports that system namespaces may connect to, for metrics.
    """
    declared = [
        {
            "name": e.name,
            "cidr": e.cidr,
            "ports": list(e.ports),
            "reason": e.reason,
            "owner": e.owner,
            "expires": e.expires.isoformat(),
        }
        for e in exceptions
    ]
    return networking.NetworkPolicy(
        resource_name,
        metadata=meta.ObjectMetaArgs(
            name="default-deny",
            namespace=namespace,
            labels=dict(labels),
            annotations={EXCEPTIONS: json.dumps(declared)} if declared else None,
        ),
        spec=networking.NetworkPolicySpecArgs(
            pod_selector=meta.LabelSelectorArgs(),
            policy_types=["Ingress", "Egress"],
            ingress=[_scrape(scraped_ports)] if scraped_ports else None,
            egress=[_rule(reach) for reach in reaches if reach.dns or reach.blocks],
        ),
        opts=opts,
    )


def _rule(reach: Reach) -> networking.NetworkPolicyEgressRuleArgs:
    protocols = ("UDP", "TCP") if reach.dns else ("TCP",)
    ports = [
        networking.NetworkPolicyPortArgs(port=port, protocol=protocol)
        for port in reach.ports
        for protocol in protocols
    ]
    if reach.dns:
        peers = [
            networking.NetworkPolicyPeerArgs(
                namespace_selector=meta.LabelSelectorArgs(
                    match_labels={"kubernetes.io/metadata.name": "kube-system"}
                ),
                pod_selector=meta.LabelSelectorArgs(
                    match_labels={"k8s-app": "kube-dns"}
                ),
            )
        ]
    else:
        peers = [
            networking.NetworkPolicyPeerArgs(
                ip_block=networking.IPBlockArgs(
                    cidr=cidr, except_=list(cut) if cut else None
                )
            )
            for cidr, cut in reach.blocks
        ]
    return networking.NetworkPolicyEgressRuleArgs(to=peers, ports=ports)


def _scrape(ports: Sequence[int]) -> networking.NetworkPolicyIngressRuleArgs:
    system = meta.LabelSelectorArgs(match_labels={PART: "system"})
    return networking.NetworkPolicyIngressRuleArgs(
        from_=[networking.NetworkPolicyPeerArgs(namespace_selector=system)],
        ports=[
            networking.NetworkPolicyPortArgs(port=port, protocol="TCP")
            for port in ports
        ],
    )


def _egress(cell: Cell) -> Sequence[str]:
    return cell.network.egress if cell.network is not None else ["0.0.0.0/0"]


def _endpoint(endpoint: str) -> Reach:
    host, _, port = endpoint.rpartition(":")
    address = ipaddress.ip_address(host.strip("[]"))
    return Reach(((f"{address}/{address.max_prefixlen}", ()),), (int(port),))


def _declared(exception: EgressException) -> Reach:
    return Reach(((exception.cidr, ()),), exception.ports)


def _within(inner: PrivateRange, outer: PrivateRange) -> bool:
    if isinstance(inner, ipaddress.IPv4Network):
        return isinstance(outer, ipaddress.IPv4Network) and inner.subnet_of(outer)
    return isinstance(outer, ipaddress.IPv6Network) and inner.subnet_of(outer)
