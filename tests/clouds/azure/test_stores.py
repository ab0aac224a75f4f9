"""Stores: private, keyless, encrypted, protected; and what handles say of them."""

from __future__ import annotations

import pytest

from clouds.azure import fleets
from clouds.azure.fleets import GROUP, Recording
from runfleet.clouds.azure.places import adopted
from runfleet.errors import InputError
from runfleet.spec.roles import StoreKind, Trust


def test_an_account(cell: Recording) -> None:
    found = cell["azure-stores-cache"]
    inputs = {key: value for key, value in found.inputs.items() if key != "tags"}
    assert (found.protect, found.retain_on_delete) == (True, True)
    assert inputs == {
        "accessTier": "Hot",
        "accountName": found.id.rpartition("/")[2],
        "allowBlobPublicAccess": False,
        "allowCrossTenantReplication": False,
        "allowSharedKeyAccess": False,
        "allowedCopyScope": "AAD",
        "defaultToOAuthAuthentication": True,
        "enableHttpsTrafficOnly": True,
        "encryption": {
            "keySource": "Microsoft.Storage",
            "requireInfrastructureEncryption": True,
            "services": {"blob": {"enabled": True, "keyType": "Account"}},
        },
        "isHnsEnabled": False,
        "isLocalUserEnabled": False,
        "isSftpEnabled": False,
        "kind": "StorageV2",
        "location": "eastus",
        "minimumTlsVersion": "TLS1_2",
        "networkRuleSet": {"bypass": "None", "defaultAction": "Deny"},
        "publicNetworkAccess": "Disabled",
        "resourceGroupName": "demo-eus",
        "sku": {"name": "Standard_ZRS"},
    }


def test_settings_of_an_account(cell: Recording, gpu: Recording) -> None:
    settings = cell.inputs("azure-stores-cache-settings")
    assert settings["isVersioningEnabled"] is True
    assert settings["deleteRetentionPolicy"] == {"enabled": True, "days": 30}
    container = cell["azure-stores-cache-container"]
    assert container.inputs["publicAccess"] == "None"
    assert container.inputs["containerName"] == "cache"
    assert container.protect
    (rule,) = cell.inputs("azure-stores-cache-lifecycle")["policy"]["rules"]
    actions = rule["definition"]["actions"]
    assert actions["baseBlob"] == {"delete": {"daysAfterModificationGreaterThan": 30}}
    (forever,) = cell.inputs("azure-stores-artifacts-lifecycle")["policy"]["rules"]
    assert "baseBlob" not in forever["definition"]["actions"]
    assert gpu.inputs("azure-gpu-stores-cache")["sku"] == {"name": "Standard_LRS"}


def test_a_registry_for_each_trust_level(cell: Recording) -> None:
    found = cell.of("containerregistry:Registry")
    assert {r.name for r in found} == {
        f"azure-stores-{kind}-images-{trust}"
        for kind in ("registry", "shared")
        for trust in Trust
    }
    for registry in found:
        assert registry.protect
        inputs = registry.inputs
        assert inputs["sku"] == {"name": "Premium"}
        assert inputs["adminUserEnabled"] is False
        assert inputs["anonymousPullEnabled"] is False
        assert inputs["publicNetworkAccess"] == "Disabled"
        assert inputs["policies"]["exportPolicy"] == {"status": "disabled"}
        assert inputs["policies"]["azureADAuthenticationAsArmPolicy"] == {
            "status": "disabled"
        }


def test_everything_local_is_reached_privately(cell: Recording) -> None:
    wanted = {
        r.id
        for kind in ("storage:StorageAccount", "containerregistry:Registry")
        for r in cell.of(kind)
        if r.name != "azure-network-flow-logs"
    } | {cell["azure-cluster-vault"].id}
    reached = {
        connection["privateLinkServiceId"]
        for r in cell.of("network:PrivateEndpoint")
        for connection in r.inputs["privateLinkServiceConnections"]
        if not r.name.startswith("azure-central-access")
    }
    assert reached == wanted
    assert {r.inputs["subnet"]["id"] for r in cell.of("network:PrivateEndpoint")} == {
        cell["azure-network-endpoints-subnet"].id
    }


def test_handles(cell: Recording) -> None:
    found = cell.record.outputs["stores"]
    account = cell["azure-stores-shared"].id
    name = account.rpartition("/")[2]
    shared = found["shared"]
    assert shared["bucket"] == f"{name}/shared"
    assert shared["bucket_id"] == f"{account}/blobServices/default/containers/shared"
    assert shared["extra"]["account_id"] == account
    assert shared["extra"]["url"] == f"https://{name}.blob.core.windows.net/shared"
    registry = cell["azure-stores-shared-images-trusted"]
    assert shared["extra"]["repository_id/trusted"] == registry.id
    assert shared["extra"]["repository/trusted"] == registry.outputs["loginServer"]
    assert shared["repository"] == shared["extra"]["repository/release"]
    assert "bucket" not in found["registry"]
    assert set(found) == {"cache", "artifacts", "shared", "registry"}


def test_central_stores_are_open_only_for_classes_elsewhere(
    central: Recording,
) -> None:
    access = {
        r.name.removeprefix("central-stores-"): r.inputs["publicNetworkAccess"]
        for r in central.of("storage:StorageAccount")
    }
    # The one class outside is a tester: telemetry is its only central grant.
    assert access == {
        "artifacts": "Disabled",
        "cache": "Disabled",
        "release": "Disabled",
        "shared": "Disabled",
        "telemetry": "Enabled",
    }
    for resource in central.of("storage:StorageAccount"):
        assert resource.inputs["allowSharedKeyAccess"] is False


def test_releases_cannot_be_changed(central: Recording) -> None:
    lock = central.inputs("central-stores-release-lock")
    assert lock["immutabilityPeriodSinceCreationInDays"] == 365
    assert lock["containerName"] == "release"


def test_telemetry_is_a_container_to_add_to(central: Recording) -> None:
    found = central.record.outputs["stores"]["telemetry"]
    assert found["stream"].endswith(".blob.core.windows.net/telemetry")
    assert found["stream_id"] == found["bucket_id"]


def test_a_cell_reaches_central_stores_privately(
    cell: Recording, central: Recording
) -> None:
    reached = {
        r.inputs["privateLinkServiceConnections"][0]["privateLinkServiceId"]
        for r in cell.of("network:PrivateEndpoint")
        if r.name.startswith("azure-central-access")
    }
    wanted = {
        r.id
        for kind in ("storage:StorageAccount", "containerregistry:Registry")
        for r in central.of(kind)
    }
    assert reached == wanted


def test_the_promoter_reads_cells_and_writes_central(
    cell: Recording, central: Recording
) -> None:
    principal = central["central-stores-promoter"].outputs["principalId"]
    local = [
        r.name.removeprefix("azure-central-access-promoter-local-")
        for r in cell.of("authorization:RoleAssignment")
        if r.inputs["principalId"] == principal
    ]
    assert sorted(local) == sorted(
        [f"{kind}-container-object-reader" for kind in ("cache", "artifacts", "shared")]
        + [
            f"{kind}-registry-{trust}-image-reader"
            for kind in ("registry", "shared")
            for trust in Trust
        ]
    )
    written = {
        r.name.rpartition("-")[2]
        for r in central.of("authorization:RoleAssignment")
        if r.inputs["principalId"] == principal
    }
    assert written == {"writer"}
    credential = central.inputs("central-promoter-credential-names-demo-org-demo")
    assert credential["subject"] == "repo:demo-org/demo:environment:promoter"


def test_an_existing_container_is_used() -> None:
    text = fleets.FLEET.replace("cache: {keep: 30d}", "cache: {adopt: theirs/cache}")
    record = fleets.cell_record(fleets.fleet("aws", text=text))
    assert "azure-stores-cache" not in {r.name for r in record.native}
    assert record.record.outputs["stores"]["cache"]["bucket_id"] == (
        f"{GROUP}/providers/Microsoft.Storage/storageAccounts/theirs"
        "/blobServices/default/containers/cache"
    )


def test_what_is_no_container_is_refused() -> None:
    fleet = fleets.fleet(text=fleets.FLEET.replace("keep: 30d", "adopt: cache"))
    with pytest.raises(InputError, match="storage account"):
        adopted(fleet.stores[StoreKind.CACHE])
