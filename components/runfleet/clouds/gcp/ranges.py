"""Which range of a cell's network holds what.

The network's range is split in four. The first quarter is for machines. The second
holds, at its start, the sixteen addresses of the API server's subnet and, in its
second half, the addresses of Kubernetes services. The other half is for pods, unless
the fleet file gives them a range of their own: GKE takes 256 addresses for a machine
with up to 110 pods (GKE documentation, "Optimizing IP address allocation"), so half
of a /16 carries 128 machines.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from itertools import combinations

from runfleet.clouds.gcp.settings import problem
from runfleet.errors import InputError
from runfleet.spec.cells import Cell

SMALLEST = 20
"""Longest prefix of a network's range: machines get a /22 of it."""

PRIVATE_ACCESS = "199.36.153.8/30"
"""Addresses of ``private.googleapis.com``: Google's own services, reached without a
route to the internet (VPC documentation, "Configure Private Google Access")."""


@dataclass(frozen=True)
class Ranges:
    """The ranges of a cell's network.

    Attributes:
        nodes: For machines.
        control: For the API server's address.
        services: For Kubernetes services.
        pods: For pods.
    """

    nodes: str
    control: str
    services: str
    pods: str


def plan_ranges(cell: Cell) -> Ranges:
    """Return the ranges of a cell's network.

    Raises:
        InputError: There is no network, it is too small or no IPv4 range, or ranges
            overlap.
    """
    if cell.network is None:
        message = "a cell on Google Cloud needs `network`"
        raise InputError([problem([cell.name, "network"], message)])
    network = ipaddress.ip_network(cell.network.cidr)
    if not isinstance(network, ipaddress.IPv4Network) or network.prefixlen > SMALLEST:
        raise InputError(
            [
                problem(
                    [cell.name, "network", "cidr"],
                    "the range must be IPv4 and hold all machines",
                    cell.network.cidr,
                    f"a /{SMALLEST} or larger",
                )
            ]
        )
    nodes, second, *_ = network.subnets(prefixlen_diff=2)
    made = Ranges(
        nodes=str(nodes),
        control=str(next(second.subnets(new_prefix=28))),
        services=cell.network.services or str(list(second.subnets(1))[1]),
        pods=cell.network.pods or str(list(network.subnets(1))[1]),
    )
    wrong = [
        problem([cell.name, "network"], f"the ranges of {one} and {other} overlap")
        for one, other in combinations(vars(made), 2)
        if _overlap(getattr(made, one), getattr(made, other))
    ]
    if wrong:
        raise InputError(wrong)
    return made


def _overlap(one: str, other: str) -> bool:
    return ipaddress.ip_network(one).overlaps(ipaddress.ip_network(other))
