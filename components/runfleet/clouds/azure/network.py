"""Network: a private virtual network whose nodes reach out on 443 and are not reached.

Three subnets (:mod:`runfleet.clouds.azure.ranges`), each with a security group of its
own that ends in "deny all" in both directions, none with Azure's default way out:
nodes, the interfaces of the API server (API Server VNet Integration, so that the API
has a range of its own), and private endpoints (:mod:`.endpoints`).

Outbound traffic leaves through one NAT gateway, because Azure attaches one to a subnet
and subnets are not zonal. The cell's ``nat`` says how many addresses it has, and so how
many connections: one for each zone, or one.

With an overlay network pods keep their own addresses between nodes, and security
groups see them: Azure asks that nodes and pods reach each other on all ports (AKS
documentation, "Azure CNI Overlay networking", section "Network security groups").
Which pod may talk to which is NetworkPolicy's business, which Cilium enforces.

An existing network is used with ``network.adopt`` (its resource id) and the settings
``node_subnet``, ``api_subnet`` and ``endpoint_subnet``: its owner keeps its security
groups, gateway and flow logs; only the resource group and DNS zones are made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi_azure_native import managedidentity, network, resources, storage

from runfleet.clouds.azure import names, roles
from runfleet.clouds.azure.endpoints import EndpointSubnet, private_zones
from runfleet.clouds.azure.places import Place, place_of
from runfleet.clouds.azure.ranges import (
    POD_RANGE,
    SERVICE_RANGE,
    NetworkError,
    address_plan,
    check_apart,
)
from runfleet.clouds.azure.settings import AzureSettings
from runfleet.clouds.azure.tags import with_labels
from runfleet.placement.plan import CellPlan

WATCHER_GROUP = "NetworkWatcherRG"
"""Resource group in which Azure makes each region's network watcher by itself."""

API_DELEGATION = "Microsoft.ContainerService/managedClusters"
"""Service that the API server's subnet is delegated to."""

AZURE_SERVICES = (
    "AzureActiveDirectory",
    "AzureCloud",
    "AzureFrontDoor.FirstParty",
    "AzureResourceManager",
    "MicrosoftContainerRegistry",
)
"""Service tags that nodes need to start and to sign in (AKS documentation, "Outbound
network and FQDN rules")."""

EVERYWHERE = "0.0.0.0/0"
"""The range that stands for the whole internet."""

PROBES = "AzureLoadBalancer"
"""Service tag of the load balancer's health probes."""


@dataclass(frozen=True)
class NetworkArgs:
    """What a network is made from.

    Attributes:
        place: Where the cell is.
        zones: How many zones the cell has.
        cidr: Range of the network.
        pods: Range of pods, outside the network.
        services: Range of service addresses.
        nat: ``per-zone`` or ``single``: addresses of the NAT gateway.
        egress: Ranges that nodes may open HTTPS connections to.
        log_retention_days: How long flow logs are kept.
        watcher: Name of the region's network watcher.
        redundancy: Copies of the flow logs: ``LRS`` or ``ZRS``.
        adopt: Resource id of an existing network.
        adopted_subnets: Its subnets for nodes, API server and endpoints.
    """

    place: Place
    zones: int
    cidr: str
    pods: str = POD_RANGE
    services: str = SERVICE_RANGE
    nat: str = "per-zone"
    egress: Sequence[str] = (EVERYWHERE,)
    log_retention_days: int = 365
    watcher: str = ""
    redundancy: str = "ZRS"
    adopt: str | None = None
    adopted_subnets: tuple[str, str, str] | None = None

    @classmethod
    def from_plan(cls, plan: CellPlan) -> NetworkArgs:
        """Take what a cell's network needs from its plan.

        Raises:
            NetworkError: The cell has no network section.
            InputError: A setting of the cell is wrong.
        """
        cell = plan.cell
        if cell.network is None:
            raise NetworkError(f"cell {cell.name}: a cell on Azure needs `network`")
        settings = AzureSettings.of(cell)
        return cls(
            place=place_of(plan),
            zones=len(cell.zones),
            cidr=cell.network.cidr,
            pods=cell.network.pods or POD_RANGE,
            services=cell.network.services or SERVICE_RANGE,
            nat=cell.network.nat,
            egress=tuple(cell.network.egress),
            log_retention_days=settings.log_retention_days,
            watcher=settings.network_watcher or f"NetworkWatcher_{cell.region}",
            redundancy=settings.redundancy,
            adopt=cell.network.adopt,
            adopted_subnets=(
                settings.node_subnet or "",
                settings.api_subnet or "",
                settings.endpoint_subnet or "",
            )
            if cell.network.adopt
            else None,
        )


class Network(pulumi.ComponentResource):
    """A virtual network for private nodes, and the cell's resource group.

    Attributes:
        network_id: Resource id of the network.
        node_subnet_ids: Resource ids of the subnets for nodes: one.
        api_subnet_id: Resource id of the subnet for the API server.
        resource_group: Name of the resource group that holds the cell.
        endpoints: Where private endpoints are made.
        service_ranges: Ranges of private endpoints; empty when adopted.
        api_ranges: Ranges of the API server; empty when adopted.
        ready: What must exist before nodes start.
    """

    network_id: pulumi.Output[str]
    node_subnet_ids: pulumi.Output[Sequence[str]]
    api_subnet_id: pulumi.Output[str]
    resource_group: pulumi.Output[str]
    endpoints: EndpointSubnet
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

        Raises:
            NetworkError: The address ranges do not fit.
        """
        options = with_labels(opts, args.place.labels)
        super().__init__("runfleet:azure:Network", name, None, options)
        check_apart(network=args.cidr, pods=args.pods, services=args.services)
        self._name = name
        self._args = args
        self._addresses = address_plan(args.cidr)
        self.resource_group = resource_group(
            f"{name}-group", args.place, self._options()
        )
        if args.adopt is None:
            made = self._network()
            nodes, api, endpoints = self._subnets(made)
            self._flow_logs(made)
            self.network_id = made.id
            self.ready = (made, nodes, api, endpoints)
            ids = (nodes.id, api.id, endpoints.id)
            self.service_ranges = (self._addresses.endpoints,)
            self.api_ranges = (self._addresses.api,)
        else:
            self.network_id = pulumi.Output.from_input(args.adopt)
            known = args.adopted_subnets or ("", "", "")
            ids = tuple(pulumi.Output.from_input(subnet) for subnet in known)
            self.ready = ()
            self.service_ranges = self.api_ranges = ()
        self.node_subnet_ids = pulumi.Output.all(ids[0])
        self.api_subnet_id = ids[1]
        self.endpoints = EndpointSubnet(
            self.resource_group,
            ids[2],
            private_zones(name, self.resource_group, self.network_id, self._options()),
        )
        self.register_outputs(
            {
                "network_id": self.network_id,
                "node_subnet_ids": self.node_subnet_ids,
                "api_subnet_id": self.api_subnet_id,
                "resource_group": self.resource_group,
            }
        )

    def _options(self, **more: Any) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self, **more)

    def _kept(self, **more: Any) -> pulumi.ResourceOptions:
        return self._options(protect=True, retain_on_delete=True, **more)

    def _network(self) -> network.VirtualNetwork:
        place = self._args.place
        return network.VirtualNetwork(
            f"{self._name}-vnet",
            virtual_network_name=names.NETWORK.encode(place.name),
            resource_group_name=self.resource_group,
            location=place.region,
            address_space=network.AddressSpaceArgs(address_prefixes=[self._args.cidr]),
            opts=self._kept(),
        )

    def _subnets(
        self, made: network.VirtualNetwork
    ) -> tuple[network.Subnet, network.Subnet, network.Subnet]:
        """Make the subnets one after the other: Azure changes one at a time."""
        plan = self._addresses
        nat = self._nat()
        nodes = self._subnet(
            made, "nodes", plan.nodes, self._node_rules(), nat_gateway=nat
        )
        api = self._subnet(
            made,
            "api",
            plan.api,
            self._api_rules(),
            after=[nodes],
            delegations=[
                network.DelegationArgs(name="aks", service_name=API_DELEGATION)
            ],
        )
        endpoints = self._subnet(
            made,
            "endpoints",
            plan.endpoints,
            self._endpoint_rules(),
            after=[api],
            private_endpoint_network_policies="Enabled",
        )
        return nodes, api, endpoints

    def _subnet(
        self,
        made: network.VirtualNetwork,
        purpose: str,
        cidr: str,
        security: list[network.SecurityRuleArgs],
        *,
        nat_gateway: network.NatGateway | None = None,
        after: Sequence[pulumi.Resource] = (),
        **more: Any,
    ) -> network.Subnet:
        place, name = self._args.place, f"{self._name}-{purpose}"
        group = network.NetworkSecurityGroup(
            f"{name}-security",
            network_security_group_name=names.NETWORK_PART.encode(place.name, purpose),
            resource_group_name=self.resource_group,
            location=place.region,
            security_rules=security,
            opts=self._options(),
        )
        return network.Subnet(
            f"{name}-subnet",
            subnet_name=purpose,
            virtual_network_name=made.name,
            resource_group_name=self.resource_group,
            address_prefix=cidr,
            default_outbound_access=False,
            network_security_group=network.NetworkSecurityGroupArgs(id=group.id),
            nat_gateway=network.SubResourceArgs(id=nat_gateway.id)
            if nat_gateway
            else None,
            opts=self._kept(depends_on=list(after)),
            **more,
        )

    def _nat(self) -> network.NatGateway:
        place, name = self._args.place, self._name
        count = self._args.zones if self._args.nat == "per-zone" else 1
        addresses = [
            network.PublicIPAddress(
                f"{name}-nat-address-{number}",
                public_ip_address_name=names.NETWORK_PART.encode(
                    place.name, f"nat-{number}"
                ),
                resource_group_name=self.resource_group,
                location=place.region,
                public_ip_allocation_method="Static",
                public_ip_address_version="IPv4",
                sku=network.PublicIPAddressSkuArgs(name="Standard"),
                opts=self._options(),
            )
            for number in range(1, count + 1)
        ]
        return network.NatGateway(
            f"{name}-nat",
            nat_gateway_name=names.NETWORK_PART.encode(place.name, "nat"),
            resource_group_name=self.resource_group,
            location=place.region,
            sku=network.NatGatewaySkuArgs(name="Standard"),
            public_ip_addresses=[
                network.SubResourceArgs(id=address.id) for address in addresses
            ],
            opts=self._options(),
        )

    def _node_rules(self) -> list[network.SecurityRuleArgs]:
        args, plan = self._args, self._addresses
        inside = [plan.nodes, args.pods]
        return [
            _rule("nodes-and-pods-in", 100, "Inbound", "*", inside, inside, ["*"]),
            _rule("api-in", 110, "Inbound", "Tcp", [plan.api], inside, ["*"]),
            _rule("probes-in", 120, "Inbound", "*", [PROBES], ["*"], ["*"]),
            _deny("Inbound"),
            _rule("nodes-and-pods-out", 100, "Outbound", "*", inside, inside, ["*"]),
            _rule(
                "api-out", 110, "Outbound", "Tcp", inside, [plan.api], ["443", "4443"]
            ),
            _rule("endpoints-out", 120, "Outbound", "Tcp", inside, [plan.endpoints]),
            *(
                _rule(
                    f"{tag.replace('.', '-')}-out",
                    130 + number,
                    "Outbound",
                    "Tcp",
                    inside,
                    [tag],
                )
                for number, tag in enumerate(AZURE_SERVICES)
            ),
            _rule(
                "https-out",
                200,
                "Outbound",
                "Tcp",
                inside,
                ["Internet"] if EVERYWHERE in args.egress else list(args.egress),
            ),
            _deny("Outbound"),
        ]

    def _api_rules(self) -> list[network.SecurityRuleArgs]:
        args, plan = self._args, self._addresses
        inside = [plan.nodes, args.pods]
        return [
            _rule(
                "nodes-in", 100, "Inbound", "Tcp", inside, [plan.api], ["443", "4443"]
            ),
            _rule("probes-in", 110, "Inbound", "*", [PROBES], ["*"], ["*"]),
            # Deployments come from elsewhere in the network, or through its gateways.
            _rule("network-in", 120, "Inbound", "Tcp", [args.cidr], [plan.api]),
            _deny("Inbound"),
            _rule("nodes-out", 100, "Outbound", "Tcp", [plan.api], inside, ["*"]),
            _rule(
                "endpoints-out", 110, "Outbound", "Tcp", [plan.api], [plan.endpoints]
            ),
            _deny("Outbound"),
        ]

    def _endpoint_rules(self) -> list[network.SecurityRuleArgs]:
        args, plan = self._args, self._addresses
        return [
            _rule(
                "network-in",
                100,
                "Inbound",
                "Tcp",
                [args.cidr, args.pods],
                [plan.endpoints],
            ),
            _deny("Inbound"),
            _deny("Outbound"),
        ]

    def _flow_logs(self, made: network.VirtualNetwork) -> None:
        """Log every flow of the network to an account that takes no keys."""
        args, place, name = self._args, self._args.place, self._name
        account = storage.StorageAccount(
            f"{name}-flow-logs",
            account_name=place.global_name(names.STORAGE_ACCOUNT, "flow-logs"),
            resource_group_name=self.resource_group,
            location=place.region,
            kind="StorageV2",
            sku=storage.SkuArgs(name=f"Standard_{args.redundancy}"),
            allow_blob_public_access=False,
            allow_shared_key_access=False,
            allow_cross_tenant_replication=False,
            enable_https_traffic_only=True,
            minimum_tls_version="TLS1_2",
            public_network_access="Enabled",
            network_rule_set=storage.NetworkRuleSetArgs(
                default_action=storage.DefaultAction.DENY, bypass="AzureServices"
            ),
            encryption=storage.EncryptionArgs(
                key_source="Microsoft.Storage", require_infrastructure_encryption=True
            ),
            opts=self._kept(),
        )
        writer = managedidentity.UserAssignedIdentity(
            f"{name}-flow-logs-writer",
            resource_name_=names.IDENTITY.encode(place.name, "flow-logs"),
            resource_group_name=self.resource_group,
            location=place.region,
            opts=self._options(),
        )
        allowed = roles.assign(
            f"{name}-flow-logs-writes",
            place,
            principal=writer.principal_id,
            scope=account.id,
            role=roles.BLOB_CONTRIBUTOR,
            options=self._options(),
        )
        network.FlowLog(
            f"{name}-flow-log",
            flow_log_name=names.NETWORK_PART.encode(place.name, "flow-log"),
            network_watcher_name=args.watcher,
            resource_group_name=WATCHER_GROUP,
            location=place.region,
            enabled=True,
            target_resource_id=made.id,
            storage_id=account.id,
            identity=network.ManagedServiceIdentityArgs(
                type=network.ResourceIdentityType.USER_ASSIGNED,
                user_assigned_identities=[writer.id],
            ),
            format=network.FlowLogFormatParametersArgs(type="JSON", version=2),
            retention_policy=network.RetentionPolicyParametersArgs(
                enabled=True, days=min(args.log_retention_days, 365)
            ),
            opts=self._options(depends_on=[allowed]),
        )


def resource_group(
    name: str, place: Place, options: pulumi.ResourceOptions
) -> pulumi.Output[str]:
    """Make the resource group of a stack, protected and kept; return its name."""
    return resources.ResourceGroup(
        name,
        resource_group_name=place.resource_group,
        location=place.region,
        opts=pulumi.ResourceOptions.merge(
            options, pulumi.ResourceOptions(protect=True, retain_on_delete=True)
        ),
    ).name


def _rule(
    name: str,
    priority: int,
    direction: str,
    protocol: str,
    sources: Sequence[str],
    destinations: Sequence[str],
    ports: Sequence[str] = ("443",),
    access: str = "Allow",
) -> network.SecurityRuleArgs:
    """Return a security rule; a single source or destination may be a service tag."""
    given: dict[str, Any] = {}
    for side, values in (("source", sources), ("destination", destinations)):
        if len(values) == 1:
            given[f"{side}_address_prefix"] = values[0]
        else:
            given[f"{side}_address_prefixes"] = list(values)
    if len(ports) == 1:
        given["destination_port_range"] = ports[0]
    else:
        given["destination_port_ranges"] = list(ports)
    return network.SecurityRuleArgs(
        name=name,
        priority=priority,
        direction=direction,
        access=access,
        protocol=protocol,
        source_port_range="*",
        **given,
    )


def _deny(direction: str) -> network.SecurityRuleArgs:
    """Return the last rule: Azure's own ones would let the whole network in and out."""
    end = "in" if direction == "Inbound" else "out"
    return _rule(
        f"deny-all-{end}", 4096, direction, "*", ["*"], ["*"], ["*"], access="Deny"
    )
