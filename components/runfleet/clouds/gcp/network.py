"""Network: a private VPC whose nodes can reach out on 443 and cannot be reached.

One regional subnet holds the machines, with secondary ranges for pods and services;
another holds the API server's address and nothing else. Nothing has a public address:
what goes out goes through Cloud NAT, and Google's own services are reached at
``private.googleapis.com``, whose addresses every name of theirs resolves to inside
the network (VPC documentation, "Configure Private Google Access"). Cloud NAT is one
per region and redundant by itself, so ``network.nat`` changes nothing here.

A VPC network refuses all that comes in and lets all out (VPC documentation, "VPC
firewall rules", implied rules). The first is kept; GKE adds what its control plane
needs. The second is closed for the cluster's machines by a rule of low priority, with
the openings that :func:`openings` lists. The metadata server, which is the network's
DNS server as well, is beyond the reach of firewall rules.

An existing network is used with ``network.adopt`` (its resource name) and the setting
``node_subnet``; then only the firewall rules are made, and flow logs, NAT and DNS are
its owner's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import pulumi
import pulumi_gcp as gcp

from runfleet.clouds.gcp.addresses import Project, cell_project
from runfleet.clouds.gcp.guards import guarded_by, make_guards
from runfleet.clouds.gcp.labels import labels
from runfleet.clouds.gcp.names import COMPUTE, DNS_ZONE
from runfleet.clouds.gcp.ranges import PRIVATE_ACCESS, Ranges, plan_ranges
from runfleet.clouds.gcp.settings import GcpSettings, problem
from runfleet.errors import InputError
from runfleet.placement.plan import CellPlan

DOMAINS: Mapping[str, str] = {
    "googleapis": "googleapis.com.",
    "pkg-dev": "pkg.dev.",
    "gcr": "gcr.io.",
}
"""Domains of Google's services that nodes and jobs use, by short name."""

PRIVATE_ADDRESSES = (
    "199.36.153.8",
    "199.36.153.9",
    "199.36.153.10",
    "199.36.153.11",
)

FIRST, LAST = 1000, 65000
"""Priorities of openings and of the rule that closes the rest; lower wins."""


@dataclass(frozen=True)
class Opening:
    """What machines may connect to.

    Attributes:
        suffix: What it is.
        ranges: Where to.
        protocol: Protocol; ``all`` for every one.
        ports: Ports; empty for all.
    """

    suffix: str
    ranges: tuple[str, ...]
    protocol: str = "tcp"
    ports: tuple[str, ...] = ()


def openings(ranges: Ranges | None, egress: Sequence[str]) -> list[Opening]:
    """Return what the cluster's machines may connect to.

    The API server's address takes 443 and, for the tunnel that it reaches nodes
    through, 8132 (GKE documentation, "Automatically created firewall rules").

    Args:
        ranges: The network's ranges; ``None`` when it is adopted, and its owner's
            rules hold inside it.
        egress: Where HTTPS may go.
    """
    inside = (
        [
            Opening("cluster", (ranges.nodes, ranges.pods), "all"),
            Opening("control-plane", (ranges.control,), "tcp", ("443", "8132")),
        ]
        if ranges is not None
        else [Opening("inside", ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"))]
    )
    return [
        *inside,
        Opening("google", (PRIVATE_ACCESS,), "tcp", ("443",)),
        Opening("https", tuple(egress), "tcp", ("443",)),
    ]


@dataclass(frozen=True)
class NetworkArgs:
    """What a network is made from.

    Attributes:
        cluster: Name of the cluster that it is for; also the machines' network tag.
        project: The project.
        labels: The required labels.
        ranges: Which range holds what; ``None`` when the network is adopted.
        egress: Ranges that nodes may open HTTPS connections to.
        pods_range: Name of the subnet's range for pods.
        services_range: Name of the subnet's range for services.
        guards: Whether this network sets the project's organisation policies: one
            cell of a project does.
        adopt: Resource name of an existing network to use.
        adopted_subnet: Its private subnet for nodes.
        adopted_control_subnet: Its subnet for the API server's address.
    """

    cluster: str
    project: Project
    labels: Mapping[str, str]
    ranges: Ranges | None
    egress: Sequence[str] = ("0.0.0.0/0",)
    pods_range: str = "pods"
    services_range: str = "services"
    guards: bool = True
    adopt: str | None = None
    adopted_subnet: str | None = None
    adopted_control_subnet: str | None = None

    @classmethod
    def from_plan(cls, plan: CellPlan) -> NetworkArgs:
        """Take what a cell's network needs from its plan.

        Raises:
            InputError: The network or a setting of the cell is wrong.
        """
        cell = plan.cell
        settings = GcpSettings.of(cell)
        adopt = cell.network.adopt if cell.network else None
        if adopt and not (settings.node_subnet and settings.control_subnet):
            raise InputError(
                [
                    problem(
                        [cell.name, "settings", name],
                        "needed because the network is adopted",
                    )
                    for name in ("node_subnet", "control_subnet")
                    if getattr(settings, name) is None
                ]
            )
        return cls(
            cluster=cell.cluster,
            project=cell_project(cell),
            labels=plan.ci_labels,
            ranges=None if adopt else plan_ranges(cell),
            egress=tuple(cell.network.egress) if cell.network else ("0.0.0.0/0",),
            pods_range=settings.pods_range,
            services_range=settings.services_range,
            guards=guarded_by(plan.fleet, cell.account) == cell.name,
            adopt=adopt,
            adopted_subnet=settings.node_subnet,
            adopted_control_subnet=settings.control_subnet,
        )


class Network(pulumi.ComponentResource):
    """A private network in one region.

    Attributes:
        network_id: Resource name of the network.
        node_subnet_ids: Resource name of the subnet for machines, as the only entry.
        control_subnet_id: Resource name of the subnet for the API server's address.
        pods_range: Name of the range for pods.
        services_range: Name of the range for services.
        service_ranges: Addresses of Google's own services.
        api_ranges: Range of the API server's subnet; empty when it is adopted.
        ready: What must exist before a machine can start.
    """

    network_id: pulumi.Output[str]
    node_subnet_ids: pulumi.Output[Sequence[str]]
    control_subnet_id: pulumi.Output[str]
    pods_range: str
    services_range: str
    service_ranges: Sequence[str]
    api_ranges: Sequence[str]
    ready: Sequence[pulumi.Resource]

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
        """
        super().__init__("runfleet:gcp:Network", name, None, opts)
        self._name = name
        self._args = args
        self.pods_range = args.pods_range
        self.services_range = args.services_range
        self.service_ranges = (PRIVATE_ACCESS,)
        self.api_ranges = (args.ranges.control,) if args.ranges else ()
        ready: list[pulumi.Resource] = []
        if args.guards:
            make_guards(name, args.project, self)
        if args.ranges is None:
            network = gcp.compute.Network.get(
                f"{name}-vpc", args.adopt or "", opts=self._options()
            )
            subnet = gcp.compute.Subnetwork.get(
                f"{name}-nodes", args.adopted_subnet or "", opts=self._options()
            )
            control = gcp.compute.Subnetwork.get(
                f"{name}-control",
                args.adopted_control_subnet or "",
                opts=self._options(),
            )
        else:
            network = self._network()
            subnet, control = self._subnets(network, args.ranges)
            ready += self._way_out(network, subnet)
            ready += self._private_access(network)
        ready += self._firewall(network)
        self.ready = tuple(ready)
        self.network_id = network.id
        self.node_subnet_ids = pulumi.Output.all(subnet.id)
        self.control_subnet_id = control.id
        self.register_outputs(
            {
                "network_id": self.network_id,
                "node_subnet_ids": self.node_subnet_ids,
                "control_subnet_id": self.control_subnet_id,
                "service_ranges": list(self.service_ranges),
                "api_ranges": list(self.api_ranges),
            }
        )

    def _options(self, **more: Any) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self, **more)

    def _object(self, suffix: str) -> str:
        return COMPUTE.encode(self._args.cluster, suffix)

    def _network(self) -> gcp.compute.Network:
        return gcp.compute.Network(
            f"{self._name}-vpc",
            name=self._object("vpc"),
            project=self._args.project.id,
            description=f"Network of {self._args.cluster}",
            auto_create_subnetworks=False,
            delete_default_routes_on_create=True,
            routing_mode="REGIONAL",
            opts=self._options(protect=True, retain_on_delete=True),
        )

    def _subnets(
        self, network: gcp.compute.Network, ranges: Ranges
    ) -> tuple[gcp.compute.Subnetwork, gcp.compute.Subnetwork]:
        args = self._args
        made: list[gcp.compute.Subnetwork] = []
        second = [
            gcp.compute.SubnetworkSecondaryIpRangeArgs(
                range_name=args.pods_range, ip_cidr_range=ranges.pods
            ),
            gcp.compute.SubnetworkSecondaryIpRangeArgs(
                range_name=args.services_range, ip_cidr_range=ranges.services
            ),
        ]
        for suffix, cidr, more in (
            ("nodes", ranges.nodes, second),
            ("control", ranges.control, None),
        ):
            made.append(
                gcp.compute.Subnetwork(
                    f"{self._name}-{suffix}",
                    name=self._object(suffix),
                    project=args.project.id,
                    region=args.project.region,
                    network=network.id,
                    ip_cidr_range=cidr,
                    secondary_ip_ranges=more,
                    private_ip_google_access=True,
                    stack_type="IPV4_ONLY",
                    log_config=gcp.compute.SubnetworkLogConfigArgs(
                        aggregation_interval="INTERVAL_1_MIN",
                        flow_sampling=0.5,
                        metadata="INCLUDE_ALL_METADATA",
                    ),
                    opts=self._options(protect=True, retain_on_delete=True),
                )
            )
        return made[0], made[1]

    def _way_out(
        self, network: gcp.compute.Network, subnet: gcp.compute.Subnetwork
    ) -> list[pulumi.Resource]:
        """Make the route out and the NAT that all of it goes through."""
        name, args = self._name, self._args
        route = gcp.compute.Route(
            f"{name}-out",
            name=self._object("out"),
            project=args.project.id,
            network=network.id,
            description="To the internet, for Cloud NAT and Private Google Access",
            dest_range="0.0.0.0/0",
            next_hop_gateway="default-internet-gateway",
            priority=1000,
            opts=self._options(),
        )
        router = gcp.compute.Router(
            f"{name}-router",
            name=self._object("router"),
            project=args.project.id,
            region=args.project.region,
            network=network.id,
            opts=self._options(),
        )
        nat = gcp.compute.RouterNat(
            f"{name}-nat",
            name=self._object("nat"),
            project=args.project.id,
            region=args.project.region,
            router=router.name,
            nat_ip_allocate_option="AUTO_ONLY",
            source_subnetwork_ip_ranges_to_nat="LIST_OF_SUBNETWORKS",
            subnetworks=[
                gcp.compute.RouterNatSubnetworkArgs(
                    name=subnet.id,
                    source_ip_ranges_to_nats=[
                        "PRIMARY_IP_RANGE",
                        "LIST_OF_SECONDARY_IP_RANGES",
                    ],
                    secondary_ip_range_names=[args.pods_range],
                )
            ],
            enable_dynamic_port_allocation=True,
            enable_endpoint_independent_mapping=False,
            min_ports_per_vm=128,
            max_ports_per_vm=8192,
            log_config=gcp.compute.RouterNatLogConfigArgs(
                enable=True, filter="ERRORS_ONLY"
            ),
            opts=self._options(),
        )
        return [route, nat]

    def _private_access(self, network: gcp.compute.Network) -> list[pulumi.Resource]:
        """Make Google's services resolve to their private addresses."""
        project = self._args.project.id
        made: list[pulumi.Resource] = []
        for short, domain in DOMAINS.items():
            zone = gcp.dns.ManagedZone(
                f"{self._name}-dns-{short}",
                name=DNS_ZONE.encode(self._args.cluster, short),
                project=project,
                dns_name=domain,
                description="Google's services at their private addresses",
                visibility="private",
                private_visibility_config={
                    "networks": [{"network_url": network.id}],
                },
                labels=labels(self._args.labels),
                opts=self._options(),
            )
            apex = f"private.{domain}" if short == "googleapis" else domain
            for suffix, record, kind, values in (
                ("a", apex, "A", list(PRIVATE_ADDRESSES)),
                ("all", f"*.{domain}", "CNAME", [apex]),
            ):
                made.append(
                    gcp.dns.RecordSet(
                        f"{self._name}-dns-{short}-{suffix}",
                        name=record,
                        project=project,
                        managed_zone=zone.name,
                        type=kind,
                        ttl=300,
                        rrdatas=values,
                        opts=self._options(),
                    )
                )
        return made

    def _firewall(self, network: gcp.compute.Network) -> list[pulumi.Resource]:
        """Let machines out where they need to go, and nowhere else."""
        args = self._args
        shared: dict[str, Any] = {
            "project": args.project.id,
            "network": network.id,
            "direction": "EGRESS",
            "target_tags": [args.cluster],
        }
        rules: list[pulumi.Resource] = []
        for opening in openings(args.ranges, args.egress):
            allow: dict[str, Any] = {"protocol": opening.protocol}
            if opening.ports:
                allow["ports"] = list(opening.ports)
            rules.append(
                gcp.compute.Firewall(
                    f"{self._name}-to-{opening.suffix}",
                    name=self._object(f"to-{opening.suffix}"),
                    description=f"Nodes to {opening.suffix}",
                    priority=FIRST,
                    destination_ranges=list(opening.ranges),
                    allows=[cast("Any", allow)],
                    opts=self._options(),
                    **shared,
                )
            )
        rules.append(
            gcp.compute.Firewall(
                f"{self._name}-to-nothing-else",
                name=self._object("to-nothing-else"),
                description="Nodes reach nothing that is not opened",
                priority=LAST,
                destination_ranges=["0.0.0.0/0"],
                denies=[{"protocol": "all"}],
                log_config={"metadata": "INCLUDE_ALL_METADATA"},
                opts=self._options(depends_on=list(rules)),
                **shared,
            )
        )
        return rules
