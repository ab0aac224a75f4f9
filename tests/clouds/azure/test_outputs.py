"""Derived ids have the form that Azure Resource Manager gives them."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import pytest

from clouds.azure.fleets import GROUP, TENANT, Recording, central_record
from runfleet.rehearsal.outputs import tables
from runfleet.rehearsal.providers import azure
from runfleet.rehearsal.providers.subject import Subject

PROVIDER = {"subscriptionId": "sub-1", "tenantId": "tenant-1"}


def subject(kind: str, inputs: dict[str, Any], read_id: str = "") -> Subject:
    token = f"azure-native:{kind}"
    urn = f"urn:pulumi:s::p::{token}::thing"
    return Subject(urn, token, "thing", inputs, PROVIDER, read_id)


@pytest.mark.parametrize(
    ("kind", "inputs", "expected"),
    [
        pytest.param(
            "network:Subnet",
            {
                "resourceGroupName": "g",
                "virtualNetworkName": "v",
                "subnetName": "s",
            },
            "/subscriptions/sub-1/resourceGroups/g/providers/Microsoft.Network"
            "/virtualNetworks/v/subnets/s",
            id="subnet",
        ),
        pytest.param(
            "authorization:RoleAssignment",
            {"scope": "/subscriptions/x", "roleAssignmentName": "n"},
            "/subscriptions/x/providers/Microsoft.Authorization/roleAssignments/n",
            id="assignment",
        ),
        pytest.param(
            "resources:ResourceGroup",
            {"resourceGroupName": "g"},
            "/subscriptions/sub-1/resourceGroups/g",
            id="group",
        ),
        pytest.param(
            "eventhub:Namespace",
            {"resourceGroupName": "g", "name": "n"},
            "/subscriptions/sub-1/resourceGroups/g/providers"
            "/Microsoft.Eventhub/namespaces/n",
            id="unknown",
        ),
    ],
)
def test_ids(kind: str, inputs: dict[str, Any], expected: str) -> None:
    assert azure.derive(subject(kind, inputs)).id == expected


def test_what_is_read_keeps_its_id() -> None:
    found = azure.derive(subject("keyvault:Vault", {}, f"{GROUP}/vaults/theirs"))
    assert (found.id, found.outputs["name"]) == (f"{GROUP}/vaults/theirs", "theirs")


def test_automatic_names_are_stable() -> None:
    made = subject("storage:StorageAccount", {"resourceGroupName": "g"})
    assert azure.derive(made) == azure.derive(made)


@pytest.mark.parametrize("kind", sorted({*azure.PATHS, *azure.SCOPED}))
def test_the_table_names_inputs_that_the_sdk_has(kind: str) -> None:
    module, _, name = kind.partition(":")
    loaded = importlib.import_module(f"pulumi_azure_native.{module}")
    source = inspect.getsource(getattr(loaded, name)._internal_init)
    keys = azure.PATHS[kind][1] if kind in azure.PATHS else azure.SCOPED[kind][::2]
    for key in keys:
        snake = "".join(f"_{c.lower()}" if c.isupper() else c for c in key)
        assert f'__props__.__dict__["{snake}"]' in source, key


def test_identities_and_assigned_ones() -> None:
    found = azure.derive(subject("managedidentity:UserAssignedIdentity", {})).outputs
    assert found["tenantId"] == "tenant-1"
    assert found["principalId"] != found["clientId"]
    given = {"type": "UserAssigned", "userAssignedIdentities": ["id-1"]}
    flow = azure.derive(subject("network:FlowLog", {"identity": given})).outputs
    assert set(flow["identity"]["userAssignedIdentities"]) == {"id-1"}


def test_functions() -> None:
    token = "azure-native:authorization:getClientConfig"
    assert azure.invoke(token, {}, PROVIDER)["tenantId"] == "tenant-1"
    assert azure.invoke("azure-native:network:getSubnet", {}, PROVIDER) is None


def test_the_table_is_registered() -> None:
    assert tables()["azure-native"].derive is azure.derive


def test_a_record_is_the_same_twice(central: Recording) -> None:
    assert central_record().record == central.record


def test_issuers_name_the_tenant(cell: Recording) -> None:
    issuer = cell["azure-cluster-aks"].outputs["oidcIssuerProfile"]["issuerURL"]
    assert f"/{TENANT}/" in issuer
    assert issuer.endswith("/")
