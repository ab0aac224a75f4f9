"""The cluster: exact inputs, who may do what to it, and the way in."""

from __future__ import annotations

import base64
import json
from dataclasses import replace

import pytest

from clouds.azure import fleets
from clouds.azure.fleets import ADMINS, DEPLOYER, GROUP, TENANT, Recording
from runfleet.clouds.azure import kubeconfig, roles
from runfleet.clouds.azure.cluster import ClusterError
from runfleet.clouds.azure.system import has_local_disk
from runfleet.clouds.protocols import StackSettings

AKS = f"{GROUP}/providers/Microsoft.ContainerService/managedClusters/demo-eus"


def test_the_cluster(cell: Recording) -> None:
    aks = cell["azure-cluster-aks"]
    found = dict(aks.inputs)
    pools = found.pop("agentPoolProfiles")
    identity = found.pop("identity")
    kubelet = found.pop("identityProfile")["kubeletidentity"]
    tags = found.pop("tags")
    security = found.pop("securityProfile")
    assert (aks.id, aks.protect, aks.retain_on_delete) == (AKS, True, True)
    assert found == {
        "aadProfile": {
            "managed": True,
            "enableAzureRBAC": True,
            "adminGroupObjectIDs": [ADMINS],
            "tenantID": TENANT,
        },
        "apiServerAccessProfile": {
            "enablePrivateCluster": True,
            "enablePrivateClusterPublicFQDN": False,
            "privateDNSZone": "system",
            "disableRunCommand": True,
            "enableVnetIntegration": True,
            "subnetId": cell["azure-network-api-subnet"].id,
        },
        "autoUpgradeProfile": {
            "upgradeChannel": "patch",
            "nodeOSUpgradeChannel": "NodeImage",
        },
        "disableLocalAccounts": True,
        "diskEncryptionSetID": cell["azure-cluster-disks"].id,
        "dnsPrefix": "demo-eus",
        "enableRBAC": True,
        "kubernetesVersion": "1.33",
        "location": "eastus",
        "networkProfile": {
            "networkPlugin": "azure",
            "networkPluginMode": "overlay",
            "networkDataplane": "cilium",
            "networkPolicy": "cilium",
            "outboundType": "userAssignedNATGateway",
            "loadBalancerSku": "standard",
            "podCidr": "10.244.0.0/16",
            "serviceCidr": "10.0.0.0/16",
            "dnsServiceIP": "10.0.0.10",
        },
        "nodeProvisioningProfile": {"mode": "Auto", "defaultNodePools": "None"},
        "nodeResourceGroup": "demo-eus--nodes",
        "nodeResourceGroupProfile": {"restrictionLevel": "ReadOnly"},
        "oidcIssuerProfile": {"enabled": True},
        "resourceGroupName": "demo-eus",
        "resourceName": "demo-eus",
        "sku": {"name": "Base", "tier": "Standard"},
    }
    assert identity == {
        "type": "UserAssigned",
        "userAssignedIdentities": [cell["azure-cluster-control-plane"].id],
    }
    assert kubelet["resourceId"] == cell["azure-cluster-kubelet"].id
    assert tags["ci_stack"] == "azure"
    assert security["workloadIdentity"] == {"enabled": True}
    assert security["azureKeyVaultKms"] == {
        "enabled": True,
        "keyId": cell["azure-cluster-secrets-key"].outputs["keyUriWithVersion"],
        "keyVaultNetworkAccess": "Private",
        "keyVaultResourceId": cell["azure-cluster-vault"].id,
    }
    assert len(pools) == 1


def test_system_nodes_are_fixed_tainted_and_private(cell: Recording) -> None:
    (pool,) = cell.inputs("azure-cluster-aks")["agentPoolProfiles"]
    pool = {key: value for key, value in pool.items() if key != "tags"}
    assert pool == {
        "name": "system",
        "mode": "System",
        "type": "VirtualMachineScaleSets",
        "osType": "Linux",
        "osSKU": "Ubuntu",
        "vmSize": "Standard_D4ds_v6",
        "count": 3,
        "enableAutoScaling": False,
        "availabilityZones": ["1", "2"],
        "vnetSubnetID": cell["azure-network-nodes-subnet"].id,
        "osDiskSizeGB": 100,
        "osDiskType": "Ephemeral",
        "enableEncryptionAtHost": True,
        "enableNodePublicIP": False,
        "nodeTaints": ["CriticalAddonsOnly=true:NoSchedule"],
        "securityProfile": {
            "enableSecureBoot": True,
            "enableVTPM": True,
            "sshAccess": "Disabled",
        },
        "upgradeSettings": {"maxSurge": "1"},
    }


@pytest.mark.parametrize(
    ("size", "local"),
    [
        ("Standard_D4ds_v6", True),
        ("Standard_NC40ads_H100_v5", True),
        ("Standard_D4as_v6", False),
        ("Standard_ND96isr_MI300X_v5", False),
        ("Standard_M8-4ms", False),
    ],
)
def test_sizes_with_a_local_disk(size: str, local: bool) -> None:
    assert has_local_disk(size) is local


def test_an_allow_list_opens_listed_ranges_only(gpu: Recording) -> None:
    access = gpu.inputs("azure-gpu-cluster-aks")["apiServerAccessProfile"]
    assert access == {
        "enablePrivateCluster": False,
        "authorizedIPRanges": ["192.0.2.0/24"],
        "disableRunCommand": True,
        "enableVnetIntegration": True,
        "subnetId": gpu["azure-gpu-network-api-subnet"].id,
    }


def test_an_autoscaled_cluster(gpu: Recording) -> None:
    found = gpu.inputs("azure-gpu-cluster-aks")
    assert found["nodeProvisioningProfile"]["mode"] == "Manual"
    profile = found["autoScalerProfile"]
    assert profile["expander"] == "priority"
    assert profile["scaleDownUtilizationThreshold"] == "0.01"
    assert profile["ignoreDaemonsetsUtilization"] is True
    assert found["agentPoolProfiles"][0]["osSKU"] == "AzureLinux"


@pytest.mark.parametrize("allow", [["0.0.0.0/0"], ["192.0.2.0/24", "::/0"], []])
def test_an_open_api_is_refused(allow: list[str]) -> None:
    plan = fleets.cell_plan(fleets.fleet("aws"), "azure-gpu")
    access = plan.cell.api_access.model_copy(update={"allow": allow})
    cell = plan.cell.model_copy(update={"api_access": access})
    with pytest.raises(ClusterError, match=r"api_access\.allow"):
        fleets.run(lambda: fleets.build_cell(replace(plan, cell=cell), None, {}))


def test_the_control_plane_can_do_what_it_needs(cell: Recording) -> None:
    principal = cell["azure-cluster-control-plane"].outputs["principalId"]
    found = {
        (
            r.inputs["scope"],
            r.inputs["roleDefinitionId"].rpartition("/")[2],
        )
        for r in cell.of("authorization:RoleAssignment")
        if r.inputs["principalId"] == principal
    }
    vault = cell["azure-cluster-vault"].id
    assert found == {
        (cell["azure-network-nodes-subnet"].id, roles.NETWORK_CONTRIBUTOR),
        (cell["azure-network-api-subnet"].id, roles.NETWORK_CONTRIBUTOR),
        (cell["azure-cluster-kubelet"].id, roles.IDENTITY_OPERATOR),
        (cell["azure-cluster-disks"].id, roles.READER),
        (f"{vault}/keys/secrets", roles.KEY_USER),
        (vault, roles.KEY_VAULT_CONTRIBUTOR),
    }


def test_nodes_have_an_identity_that_can_do_nothing(cell: Recording) -> None:
    principal = cell["azure-cluster-kubelet"].outputs["principalId"]
    held = [
        r
        for r in cell.of("authorization:RoleAssignment")
        if r.inputs["principalId"] == principal
    ]
    assert held == []


def test_the_cluster_waits_for_its_assignments(cell: Recording) -> None:
    after = cell.after("azure-cluster-aks")
    assert {
        "azure-cluster-control-plane-uses-nodes",
        "azure-cluster-control-plane-uses-secrets-key",
        "azure-cluster-vault-endpoint-dns",
        "azure-network-nodes-subnet",
    } <= after


def test_deployers_administer_the_cluster(cell: Recording) -> None:
    found = cell.inputs(f"azure-cluster-deployer-{DEPLOYER}")
    assert (found["principalId"], found["scope"]) == (DEPLOYER, AKS)
    assert found["roleDefinitionId"].endswith(roles.CLUSTER_ADMIN)


def test_the_vault(cell: Recording) -> None:
    vault = cell["azure-cluster-vault"]
    assert (vault.protect, vault.retain_on_delete) == (True, True)
    assert vault.inputs["properties"] == {
        "tenantId": TENANT,
        "sku": {"family": "A", "name": "premium"},
        "enableRbacAuthorization": True,
        "enableSoftDelete": True,
        "enablePurgeProtection": True,
        "softDeleteRetentionInDays": 90,
        "enabledForDeployment": False,
        "enabledForDiskEncryption": False,
        "enabledForTemplateDeployment": False,
        "publicNetworkAccess": "Disabled",
        "networkAcls": {"defaultAction": "Deny", "bypass": "AzureServices"},
    }
    disks = cell.inputs("azure-cluster-disks")
    assert disks["encryptionType"] == "EncryptionAtRestWithPlatformAndCustomerKeys"
    assert "azure-cluster-disks-uses-key" in cell.after("azure-cluster-disks")


def test_logs(cell: Recording, gpu: Recording) -> None:
    audit = cell.inputs("azure-cluster-audit")
    assert audit["resourceUri"] == AKS
    assert {log["category"] for log in audit["logs"] if log["enabled"]} == {
        "kube-apiserver",
        "kube-audit",
        "kube-controller-manager",
        "kube-scheduler",
        "cluster-autoscaler",
        "guard",
    }
    assert gpu.inputs("azure-gpu-cluster-logs")["retentionInDays"] == 90
    assert cell.inputs("azure-cluster-logs")["features"]["disableLocalAuth"] is True


def test_the_kubeconfig_holds_no_credential(cell: Recording) -> None:
    found = json.loads(cell.record.outputs["kubeconfig"])
    (cluster,) = found["clusters"]
    certificate = base64.b64encode(b"certificate of demo-eus").decode()
    fqdn = cell["azure-cluster-aks"].outputs["privateFQDN"]
    assert cluster["cluster"] == {
        "server": f"https://{fqdn}:443",
        "certificate-authority-data": certificate,
    }
    (user,) = found["users"]
    assert set(user["user"]) == {"exec"}
    assert user["user"]["exec"]["command"] == "kubelogin"
    assert user["user"]["exec"]["args"] == [
        "get-token",
        "--server-id",
        "6dae42f8-4368-4678-94ff-3960e28e3630",
        "--login",
        "azurecli",
        "--tenant-id",
        TENANT,
    ]


def test_a_deployment_signs_in_as_its_own_client() -> None:
    record = fleets.cell_record(
        fleets.fleet("aws"), "azure-gpu", StackSettings(deploy_role="client-1")
    )
    (user,) = json.loads(record.record.outputs["kubeconfig"])["users"]
    assert user["user"]["exec"]["args"][-2:] == ["--client-id", "client-1"]
    provider = record["azure-gpu-cloud"].inputs
    assert "clientId" in provider
    assert provider["useOidc"] in ("true", True)
    assert provider["subscriptionId"] == fleets.SUBSCRIPTION


@pytest.mark.parametrize("text", ["", "!", base64.b64encode(b"a: [").decode(), "YQ=="])
def test_what_is_no_kubeconfig_has_no_certificate(text: str) -> None:
    assert kubeconfig.certificate_of(text) == ""


def test_an_existing_cluster_is_used() -> None:
    text = fleets.FLEET.replace(
        "cluster: demo-eus", "cluster: demo-eus\n    adopt_cluster: theirs"
    )
    record = fleets.cell_record(fleets.fleet("aws", text=text))
    aks = record["azure-cluster-aks"]
    assert aks.external
    assert aks.id.endswith("/managedClusters/theirs")
    assert record.of("compute:DiskEncryptionSet") == []
    credential = record.inputs("azure-identity-tests-credential-pods")
    assert credential["issuer"] == aks.outputs["oidcIssuerProfile"]["issuerURL"]
