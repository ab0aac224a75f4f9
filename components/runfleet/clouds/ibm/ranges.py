"""Which range of a cell's network holds what.

A VPC has address prefixes, each in one zone, and subnets inside them. The range is cut
into four quarters, one for each zone and one to spare; of a zone's quarter the first
half is for workers, and the first sixteen addresses of the second half for the private
endpoints of IBM Cloud's services, so that a NetworkPolicy, which knows ranges only, can
let job pods reach the endpoints and nothing else that is private.

The cluster's own API server has no range here: IBM puts its endpoint into one of the
workers' subnets. Pods reach it through a proxy on their own node instead
(:data:`API_PROXY`).
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from runfleet.errors import RunfleetError

LONGEST_PREFIX = 22
"""Smallest network: a worker subnet of /25 in each zone."""

ENDPOINT_PREFIX = 28
"""Size of an endpoint subnet; IBM keeps five addresses of each subnet
(cloud.ibm.com/docs/vpc, "Designing an addressing plan for a VPC")."""

API_PROXY = "172.20.0.1/32"
"""Address of the API server's proxy on every worker, port 2040: where the service
``kubernetes.default`` leads (ibm-cloud-docs/containers, Calico policy
``allow-master-local``)."""

API_PORT = 2040
"""Port of that proxy."""

INFRASTRUCTURE = ("161.26.0.0/16", "166.8.0.0/14")
"""IBM Cloud's own services: name servers, mirrors and time, and the private service
endpoints (cloud.ibm.com/docs/containers, "Understanding secure by default Cluster VPC
Networking")."""

PODS = "172.17.0.0/18"
"""Default range of pods of a VPC cluster (the same page)."""

SERVICES = "172.21.0.0/16"
"""Default range of services (ibm-cloud-docs/containers ``cluster-access-vpe.md``)."""


class NetworkError(RunfleetError):
    """A cell's network cannot be built as the fleet file describes it."""

    exit_code = 2


@dataclass(frozen=True)
class ZoneRanges:
    """The ranges of one zone.

    Attributes:
        zone: The zone.
        prefix: Address prefix of the VPC in the zone.
        workers: Subnet of the workers.
        endpoints: Subnet of the private endpoints.
    """

    zone: str
    prefix: str
    workers: str
    endpoints: str


def api_ranges(services: str | None) -> tuple[str, ...]:
    """Return where pods reach the API server: its service, and the proxy behind it.

    Args:
        services: Range of service addresses; ``None`` for the default one.
    """
    network = ipaddress.ip_network(services or SERVICES)
    return (API_PROXY, f"{network[1]}/{network.max_prefixlen}")


def zone_ranges(cidr: str, zones: tuple[str, ...]) -> tuple[ZoneRanges, ...]:
    """Cut a network into ranges.

    Args:
        cidr: Range of the network.
        zones: Two or three zones.

    Raises:
        NetworkError: The range is too small or no private IPv4 range, or the number of
            zones is wrong.
    """
    network = ipaddress.ip_network(cidr)
    if network.version != 4 or not network.is_private:
        raise NetworkError(f"{cidr}: a VPC needs a private IPv4 range")
    if network.prefixlen > LONGEST_PREFIX:
        raise NetworkError(
            f"{cidr}: a VPC for a fleet needs at least a /{LONGEST_PREFIX}"
        )
    if not 2 <= len(set(zones)) == len(zones) <= 3:
        raise NetworkError(
            f"zones {', '.join(zones)}: a cell has two or three different ones"
        )
    for other in (*INFRASTRUCTURE, API_PROXY, PODS, SERVICES):
        if network.overlaps(ipaddress.ip_network(other)):
            raise NetworkError(f"{cidr} overlaps {other}, which IBM Cloud uses itself")
    found: list[ZoneRanges] = []
    for zone, quarter in zip(zones, network.subnets(prefixlen_diff=2), strict=False):
        workers, rest = quarter.subnets(prefixlen_diff=1)
        endpoints = next(iter(rest.subnets(new_prefix=ENDPOINT_PREFIX)))
        found.append(ZoneRanges(zone, str(quarter), str(workers), str(endpoints)))
    return tuple(found)
