"""Private endpoints: how storage, registries and vaults are reached, and how alone.

Each is an address in the endpoints' subnet, under the service's own name: the private
DNS zone of its kind is linked to the network, and the endpoint writes its record there.

Source of groups and zones: Azure documentation, "Azure Private Endpoint private DNS
zone values" (read 2026-11).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
from pulumi_azure_native import network, privatedns

from runfleet.clouds.azure import names
from runfleet.clouds.azure.places import Place

ZONES: Mapping[str, str] = {
    "blob": "privatelink.blob.core.windows.net",
    "registry": "privatelink.azurecr.io",
    "vault": "privatelink.vaultcore.azure.net",
}
"""Private DNS zone by group."""


@dataclass(frozen=True)
class EndpointSubnet:
    """Where private endpoints are made.

    Attributes:
        resource_group: Resource group of the endpoints.
        subnet_id: Resource id of the subnet.
        zone_ids: Resource id of the private DNS zone, by group.
    """

    resource_group: pulumi.Input[str]
    subnet_id: pulumi.Input[str]
    zone_ids: Mapping[str, pulumi.Output[str]]


def private_zones(
    name: str,
    resource_group: pulumi.Input[str],
    network_id: pulumi.Input[str],
    options: pulumi.ResourceOptions,
) -> dict[str, pulumi.Output[str]]:
    """Make the private DNS zones, linked to a network.

    Args:
        name: What the logical names begin with.
        resource_group: Resource group of the zones.
        network_id: Resource id of the network.
        options: Options.
    """
    found: dict[str, pulumi.Output[str]] = {}
    for group, zone_name in ZONES.items():
        zone = privatedns.PrivateZone(
            f"{name}-zone-{group}",
            private_zone_name=zone_name,
            resource_group_name=resource_group,
            location="global",
            opts=options,
        )
        link = privatedns.VirtualNetworkLink(
            f"{name}-zone-{group}-link",
            virtual_network_link_name=names.NETWORK_PART.encode(name, group),
            private_zone_name=zone.name,
            resource_group_name=resource_group,
            location="global",
            registration_enabled=False,
            virtual_network=privatedns.SubResourceArgs(id=network_id),
            opts=options,
        )
        found[group] = pulumi.Output.all(zone.id, link.id).apply(
            lambda ids: str(ids[0])
        )
    return found


def private_endpoint(
    name: str,
    place: Place,
    subnet: EndpointSubnet,
    group: str,
    target_id: pulumi.Input[str],
    options: pulumi.ResourceOptions,
) -> network.PrivateDnsZoneGroup:
    """Make the private endpoint of one thing; return what must exist to resolve it.

    Args:
        name: Logical name; the DNS record's is ``<name>-dns``.
        place: Where the stack is.
        subnet: Where endpoints are made.
        group: Group of the thing: a key of :data:`ZONES`.
        target_id: Its resource id.
        options: Options.
    """
    endpoint = network.PrivateEndpoint(
        name,
        private_endpoint_name=names.PRIVATE_ENDPOINT.encode(place.name, name),
        resource_group_name=subnet.resource_group,
        location=place.region,
        subnet=network.SubnetArgs(id=subnet.subnet_id),
        private_link_service_connections=[
            network.PrivateLinkServiceConnectionArgs(
                name=group, group_ids=[group], private_link_service_id=target_id
            )
        ],
        opts=options,
    )
    return network.PrivateDnsZoneGroup(
        f"{name}-dns",
        private_dns_zone_group_name="default",
        private_endpoint_name=endpoint.name,
        resource_group_name=subnet.resource_group,
        private_dns_zone_configs=[
            network.PrivateDnsZoneConfigArgs(
                name=group, private_dns_zone_id=subnet.zone_ids[group]
            )
        ],
        opts=options,
    )
