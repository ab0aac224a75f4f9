"""Address plan: which range of a cell's network holds what.

Addresses follow the incumbent's plan (pytorch/ci-infra at b1ce4a6,
``osdc/modules/eks/terraform/modules/vpc/main.tf``): the range is cut in four; three
quarters are one private subnet per zone, and the last holds small subnets, each a
256th of the range. Here it holds three kinds of them, four places for each kind, so
that a third zone added later moves no subnet:

* public ones, for NAT gateways only;
* endpoint ones, for the private endpoints of AWS's own services only;
* control ones, for the interfaces of the cluster's API server only.

Endpoints and the API server have ranges of their own because NetworkPolicy knows
ranges only, neither names nor security groups: job pods with an identity may reach
nothing private but the cloud's service endpoints, and runner pods nothing private but
the API server. In the nodes' subnets both would be among nodes and pods.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from runfleet.errors import RunfleetError

_PLACES = 4
"""Small subnets kept for each kind: three zones, and what makes the group a range."""


class NetworkError(RunfleetError):
    """A cell's network cannot be built as the fleet file describes it."""

    exit_code = 2


@dataclass(frozen=True)
class AddressPlan:
    """The subnets of a network, one of each kind per zone.

    Attributes:
        private: Ranges for nodes and pods.
        public: Ranges for NAT gateways.
        endpoints: Ranges for the private endpoints of AWS's services.
        control: Ranges for the interfaces of the cluster's API server.
        resolver: The network's DNS resolver, its base address plus two.
    """

    private: tuple[str, ...]
    public: tuple[str, ...]
    endpoints: tuple[str, ...]
    control: tuple[str, ...]
    resolver: str


def address_plan(cidr: str, zones: int) -> AddressPlan:
    """Cut a range into subnets.

    Args:
        cidr: An IPv4 range between /16 and /20: AWS takes nothing above /16, and
            below /20 the small subnets fall under its smallest, /28. That one has
            eleven usable addresses (VPC user guide, "Subnet sizing"): one for each
            interface endpoint, and more than the six that EKS needs (EKS user guide,
            "View Amazon EKS networking requirements for VPC and subnets").
        zones: Two or three.

    Raises:
        NetworkError: The range or the number of zones does not fit.
    """
    network = ipaddress.ip_network(cidr, strict=False)
    if not isinstance(network, ipaddress.IPv4Network) or not (
        16 <= network.prefixlen <= 20
    ):
        raise NetworkError(f"network {cidr}: AWS needs an IPv4 range from /16 to /20")
    if not 2 <= zones <= 3:
        raise NetworkError(f"{zones} zones: a cell on AWS has two or three")
    quarters = [str(quarter) for quarter in network.subnets(prefixlen_diff=2)]
    last = ipaddress.IPv4Network(quarters[3])
    small = [str(subnet) for subnet in last.subnets(prefixlen_diff=6)]

    def kind(number: int) -> tuple[str, ...]:
        first = number * _PLACES
        return tuple(small[first : first + zones])

    return AddressPlan(
        private=tuple(quarters[:zones]),
        public=kind(0),
        endpoints=kind(1),
        control=kind(2),
        resolver=f"{network.network_address + 2}/32",
    )
