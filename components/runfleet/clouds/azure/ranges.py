"""Address plan: which range of a cell's network holds what.

The first half holds nodes, in one subnet over all zones (Azure's subnets are not
zonal). The last quarter holds what policies name by range: the API server's interfaces
and the private endpoints, a sixteenth of the network each; the third quarter stays
free. Pods have a range of their own outside the network (overlay).
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from runfleet.errors import RunfleetError

POD_RANGE = "10.244.0.0/16"
"""AKS's own choice of the pod range with an overlay network."""

SERVICE_RANGE = "10.0.0.0/16"
"""AKS's own choice of the range of service addresses."""


class NetworkError(RunfleetError):
    """A cell's network cannot be built as the fleet file describes it."""

    exit_code = 2


@dataclass(frozen=True)
class AddressPlan:
    """The subnets of a network.

    Attributes:
        nodes: Range for nodes.
        api: Range for the interfaces of the cluster's API server.
        endpoints: Range for private endpoints.
    """

    nodes: str
    api: str
    endpoints: str


def address_plan(cidr: str) -> AddressPlan:
    """Cut a range into subnets.

    Args:
        cidr: An IPv4 range between /12 and /22: below, the API server's subnet falls
            under AKS's smallest, /28, or the endpoints find no room.

    Raises:
        NetworkError: The range does not fit.
    """
    network = ipaddress.ip_network(cidr, strict=False)
    if not isinstance(network, ipaddress.IPv4Network) or not (
        12 <= network.prefixlen <= 22
    ):
        raise NetworkError(
            f"network {cidr}: a cell on Azure needs an IPv4 range from /12 to /22"
        )
    nodes = next(iter(network.subnets(prefixlen_diff=1)))
    small = list(network.subnets(prefixlen_diff=4))
    return AddressPlan(str(nodes), str(small[12]), str(small[13]))


def dns_address(services: str) -> str:
    """Return the address of the cluster's DNS: the tenth of the service range."""
    network = ipaddress.ip_network(services, strict=False)
    return str(network.network_address + 10)


def check_apart(**ranges: str) -> None:
    """Refuse ranges that overlap.

    Raises:
        NetworkError: Two of them do.
    """
    known = {name: ipaddress.ip_network(r, strict=False) for name, r in ranges.items()}
    clashes = [
        f"{one} {ranges[one]} and {two} {ranges[two]}"
        for number, one in enumerate(known)
        for two in list(known)[number + 1 :]
        if known[one].overlaps(known[two])
    ]
    if clashes:
        raise NetworkError("ranges overlap: " + "; ".join(clashes))
