"""The network: exact subnets, rules and gateway; nothing comes in."""

from __future__ import annotations

from typing import Any

import pytest

from clouds.azure import fleets
from clouds.azure.fleets import GROUP, Recording
from runfleet.clouds.azure.ranges import (
    AddressPlan,
    NetworkError,
    address_plan,
    check_apart,
    dns_address,
)


def rules(record: Recording, name: str) -> dict[str, Any]:
    return {rule["name"]: rule for rule in record.inputs(name)["securityRules"]}


def test_ranges() -> None:
    assert address_plan("10.20.0.0/16") == AddressPlan(
        "10.20.0.0/17", "10.20.192.0/20", "10.20.208.0/20"
    )
    assert address_plan("10.24.0.0/20").api == "10.24.12.0/24"
    assert dns_address("10.25.0.0/16") == "10.25.0.10"


@pytest.mark.parametrize("cidr", ["10.0.0.0/8", "10.0.0.0/23", "fd00::/64"])
def test_ranges_that_do_not_fit(cidr: str) -> None:
    with pytest.raises(NetworkError, match="/12 to /22"):
        address_plan(cidr)


def test_ranges_that_overlap() -> None:
    with pytest.raises(NetworkError, match=r"pods 10\.20\.0\.0/16"):
        check_apart(network="10.20.0.0/14", pods="10.20.0.0/16")


def test_children(cell: Recording) -> None:
    made = cell.children("azure-network")
    assert {name for name, kind in made.items() if kind.endswith(":Subnet")} == {
        "azure-network-nodes-subnet",
        "azure-network-api-subnet",
        "azure-network-endpoints-subnet",
    }
    assert len(made) == 21


def test_the_network_and_its_group_are_kept(cell: Recording) -> None:
    vnet = cell["azure-network-vnet"]
    assert vnet.id == f"{GROUP}/providers/Microsoft.Network/virtualNetworks/demo-eus"
    assert vnet.inputs["addressSpace"] == {"addressPrefixes": ["10.20.0.0/16"]}
    for name in ("group", "vnet", "nodes-subnet", "flow-logs"):
        found = cell[f"azure-network-{name}"]
        assert (found.protect, found.retain_on_delete) == (True, True)


def test_subnets(cell: Recording) -> None:
    nodes = cell.inputs("azure-network-nodes-subnet")
    assert nodes == {
        "addressPrefix": "10.20.0.0/17",
        "defaultOutboundAccess": False,
        "natGateway": {"id": cell["azure-network-nat"].id},
        "networkSecurityGroup": {"id": cell["azure-network-nodes-security"].id},
        "privateEndpointNetworkPolicies": "Disabled",
        "privateLinkServiceNetworkPolicies": "Enabled",
        "resourceGroupName": "demo-eus",
        "subnetName": "nodes",
        "virtualNetworkName": "demo-eus",
    }
    api = cell.inputs("azure-network-api-subnet")
    assert api["delegations"] == [
        {"name": "aks", "serviceName": "Microsoft.ContainerService/managedClusters"}
    ]
    assert "natGateway" not in api
    endpoints = cell.inputs("azure-network-endpoints-subnet")
    assert endpoints["privateEndpointNetworkPolicies"] == "Enabled"


def test_subnets_are_changed_one_at_a_time(cell: Recording) -> None:
    assert "azure-network-nodes-subnet" in cell.after("azure-network-api-subnet")
    assert "azure-network-api-subnet" in cell.after("azure-network-endpoints-subnet")


def test_nothing_comes_in_from_the_internet(cell: Recording, gpu: Recording) -> None:
    for record in (cell, gpu):
        for group in record.of("network:NetworkSecurityGroup"):
            found = group.inputs["securityRules"]
            inbound = [r for r in found if r["direction"] == "Inbound"]
            last = max(inbound, key=lambda r: r["priority"])
            assert (last["access"], last["priority"]) == ("Deny", 4096)
            assert (last["sourceAddressPrefix"], last["protocol"]) == ("*", "*")
            sources = {
                source
                for rule in inbound
                if rule["access"] == "Allow"
                for source in rule.get(
                    "sourceAddressPrefixes", [rule.get("sourceAddressPrefix")]
                )
            }
            assert not sources & {"*", "Internet", "0.0.0.0/0", "VirtualNetwork"}
            priorities = [(r["direction"], r["priority"]) for r in found]
            assert len(set(priorities)) == len(priorities)


def test_nodes_reach_out_on_443_only(cell: Recording, gpu: Recording) -> None:
    found = rules(cell, "azure-network-nodes-security")
    assert found["https-out"]["destinationAddressPrefix"] == "Internet"
    assert found["https-out"]["destinationPortRange"] == "443"
    assert found["deny-all-out"]["access"] == "Deny"
    narrow = rules(gpu, "azure-gpu-network-nodes-security")
    assert narrow["https-out"]["destinationAddressPrefixes"] == [
        "192.0.2.0/24",
        "198.51.100.0/24",
    ]
    assert narrow["nodes-and-pods-in"]["sourceAddressPrefixes"] == [
        "10.24.0.0/21",
        "10.128.0.0/12",
    ]
    outside = {
        rule["destinationAddressPrefix"]
        for rule in narrow.values()
        if rule["direction"] == "Outbound" and "destinationAddressPrefix" in rule
    }
    assert "Internet" not in outside


def test_one_gateway_with_an_address_for_each_zone(
    cell: Recording, gpu: Recording
) -> None:
    assert len(cell.of("network:NatGateway")) == len(gpu.of("network:NatGateway")) == 1
    assert len(cell.of("network:PublicIPAddress")) == 2
    assert len(gpu.of("network:PublicIPAddress")) == 1
    addresses = cell.inputs("azure-network-nat")["publicIpAddresses"]
    assert addresses == [{"id": r.id} for r in cell.of("network:PublicIPAddress")]


def test_flow_logs(cell: Recording) -> None:
    log = cell.inputs("azure-network-flow-log")
    assert log["targetResourceId"] == cell["azure-network-vnet"].id
    assert log["networkWatcherName"] == "NetworkWatcher_eastus"
    assert log["resourceGroupName"] == "NetworkWatcherRG"
    assert log["enabled"] is True
    assert log["retentionPolicy"] == {"enabled": True, "days": 365}
    account = cell.inputs("azure-network-flow-logs")
    assert account["allowSharedKeyAccess"] is False
    assert account["networkRuleSet"] == {
        "bypass": "AzureServices",
        "defaultAction": "Deny",
    }
    assert "azure-network-flow-logs-writes" in cell.after("azure-network-flow-log")


def test_ranges_for_network_policies(cell: Recording) -> None:
    assert cell.record.outputs["service_ranges"] == ["10.20.208.0/20"]
    assert cell.record.outputs["api_ranges"] == ["10.20.192.0/20"]


def test_private_names_resolve_in_the_network(cell: Recording) -> None:
    zones = {r.inputs["privateZoneName"] for r in cell.of("privatedns:PrivateZone")}
    assert zones == {
        "privatelink.blob.core.windows.net",
        "privatelink.azurecr.io",
        "privatelink.vaultcore.azure.net",
    }
    for link in cell.of("privatedns:VirtualNetworkLink"):
        assert link.inputs["virtualNetwork"] == {"id": cell["azure-network-vnet"].id}
        assert link.inputs["registrationEnabled"] is False


def test_an_adopted_network_is_not_made() -> None:
    vnet = f"{GROUP}/providers/Microsoft.Network/virtualNetworks/theirs"
    subnets = ", ".join(
        f"{purpose}_subnet: {vnet}/subnets/{purpose}"
        for purpose in ("node", "api", "endpoint")
    )
    text = fleets.FLEET.replace(
        "cidr: 10.20.0.0/16}", f"cidr: 10.20.0.0/16, adopt: {vnet}}}"
    ).replace("settings: {budget_start", f"settings: {{{subnets}, budget_start")
    record = fleets.cell_record(fleets.fleet("aws", text=text))
    for kind in ("VirtualNetwork", "Subnet", "NetworkSecurityGroup", "NatGateway"):
        assert record.of(f"network:{kind}") == []
    pool = record.inputs("azure-cluster-aks")["agentPoolProfiles"][0]
    assert pool["vnetSubnetID"] == f"{vnet}/subnets/node"
    endpoint = record.inputs("azure-stores-cache-endpoint")
    assert endpoint["subnet"]["id"] == f"{vnet}/subnets/endpoint"
    assert record.record.outputs["api_ranges"] == []
