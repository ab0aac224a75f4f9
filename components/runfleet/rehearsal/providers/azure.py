"""Derived ids and outputs of the Azure Native provider (pulumi-azure-native 3).

An Azure resource's id is its path in Azure Resource Manager, made of the names in its
inputs; programs use such ids as scopes of role assignments, so each has the form that
Azure gives it (Azure documentation, "Resource providers and types"). What Azure invents
(principals, client ids, host names, the cluster's issuer) is derived from the URN.

Subscription and tenant come from the explicit provider; nothing said means the ids of
Azure's documentation.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any, cast

from runfleet.rehearsal.providers.subject import Derived, Subject

DEFAULT_SUBSCRIPTION = "00000000-0000-0000-0000-000000000000"
"""Subscription when the provider names none."""

DEFAULT_TENANT = "11111111-1111-1111-1111-111111111111"
"""Tenant when the provider names none."""

PATHS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "compute:DiskEncryptionSet": (
        "Microsoft.Compute/diskEncryptionSets/{}",
        ("diskEncryptionSetName",),
    ),
    "containerregistry:CacheRule": (
        "Microsoft.ContainerRegistry/registries/{}/cacheRules/{}",
        ("registryName", "cacheRuleName"),
    ),
    "containerregistry:Registry": (
        "Microsoft.ContainerRegistry/registries/{}",
        ("registryName",),
    ),
    "containerservice:AgentPool": (
        "Microsoft.ContainerService/managedClusters/{}/agentPools/{}",
        ("resourceName", "agentPoolName"),
    ),
    "containerservice:ManagedCluster": (
        "Microsoft.ContainerService/managedClusters/{}",
        ("resourceName",),
    ),
    "keyvault:Key": ("Microsoft.KeyVault/vaults/{}/keys/{}", ("vaultName", "keyName")),
    "keyvault:Vault": ("Microsoft.KeyVault/vaults/{}", ("vaultName",)),
    "managedidentity:FederatedIdentityCredential": (
        "Microsoft.ManagedIdentity/userAssignedIdentities/{}"
        "/federatedIdentityCredentials/{}",
        ("resourceName", "federatedIdentityCredentialResourceName"),
    ),
    "managedidentity:UserAssignedIdentity": (
        "Microsoft.ManagedIdentity/userAssignedIdentities/{}",
        ("resourceName",),
    ),
    "network:FlowLog": (
        "Microsoft.Network/networkWatchers/{}/flowLogs/{}",
        ("networkWatcherName", "flowLogName"),
    ),
    "network:NatGateway": ("Microsoft.Network/natGateways/{}", ("natGatewayName",)),
    "network:NetworkSecurityGroup": (
        "Microsoft.Network/networkSecurityGroups/{}",
        ("networkSecurityGroupName",),
    ),
    "network:PrivateDnsZoneGroup": (
        "Microsoft.Network/privateEndpoints/{}/privateDnsZoneGroups/{}",
        ("privateEndpointName", "privateDnsZoneGroupName"),
    ),
    "network:PrivateEndpoint": (
        "Microsoft.Network/privateEndpoints/{}",
        ("privateEndpointName",),
    ),
    "network:PublicIPAddress": (
        "Microsoft.Network/publicIPAddresses/{}",
        ("publicIpAddressName",),
    ),
    "network:Subnet": (
        "Microsoft.Network/virtualNetworks/{}/subnets/{}",
        ("virtualNetworkName", "subnetName"),
    ),
    "network:VirtualNetwork": (
        "Microsoft.Network/virtualNetworks/{}",
        ("virtualNetworkName",),
    ),
    "operationalinsights:Workspace": (
        "Microsoft.OperationalInsights/workspaces/{}",
        ("workspaceName",),
    ),
    "privatedns:PrivateZone": (
        "Microsoft.Network/privateDnsZones/{}",
        ("privateZoneName",),
    ),
    "privatedns:VirtualNetworkLink": (
        "Microsoft.Network/privateDnsZones/{}/virtualNetworkLinks/{}",
        ("privateZoneName", "virtualNetworkLinkName"),
    ),
    "storage:BlobContainer": (
        "Microsoft.Storage/storageAccounts/{}/blobServices/default/containers/{}",
        ("accountName", "containerName"),
    ),
    "storage:BlobContainerImmutabilityPolicy": (
        "Microsoft.Storage/storageAccounts/{}/blobServices/default/containers/{}"
        "/immutabilityPolicies/{}",
        ("accountName", "containerName", "immutabilityPolicyName"),
    ),
    "storage:BlobServiceProperties": (
        "Microsoft.Storage/storageAccounts/{}/blobServices/{}",
        ("accountName", "blobServicesName"),
    ),
    "storage:ManagementPolicy": (
        "Microsoft.Storage/storageAccounts/{}/managementPolicies/{}",
        ("accountName", "managementPolicyName"),
    ),
    "storage:StorageAccount": (
        "Microsoft.Storage/storageAccounts/{}",
        ("accountName",),
    ),
}
"""Path below the resource group by type, and the inputs that hold its names."""

SCOPED: Mapping[str, tuple[str, str, str]] = {
    "authorization:RoleAssignment": (
        "scope",
        "Microsoft.Authorization/roleAssignments",
        "roleAssignmentName",
    ),
    "authorization:RoleDefinition": (
        "scope",
        "Microsoft.Authorization/roleDefinitions",
        "roleDefinitionId",
    ),
    "consumption:Budget": ("scope", "Microsoft.Consumption/budgets", "budgetName"),
    "monitor:DiagnosticSetting": (
        "resourceUri",
        "Microsoft.Insights/diagnosticSettings",
        "name",
    ),
}
"""Types that extend another resource: input with its id, type, input with the name."""


def derive(subject: Subject) -> Derived:
    """Derive id and computed outputs of one Azure resource."""
    kind = subject.type.partition(":")[2]
    subscription, tenant = account(subject.provider)
    if kind == "resources:ResourceGroup":
        name = subject.physical_name("resourceGroupName", "")
        made = f"/subscriptions/{subscription}/resourceGroups/{name}"
    elif kind in SCOPED:
        scope, path, key = SCOPED[kind]
        name = subject.text(key) or subject.uuid("name")
        parent = subject.text(scope).rstrip("/")
        made = f"{parent}/providers/{path}/{name}"
    else:
        name, made = _in_group(subject, kind, subscription)
    identity = subject.read_id or made
    name = identity.rpartition("/")[2] if subject.read_id else name
    rule = _OUTPUTS.get(kind)
    outputs: dict[str, Any] = {"name": name, **_assigned_identities(subject)}
    outputs |= rule(subject, name, tenant) if rule else {}
    return Derived(identity, outputs)


def account(provider: Mapping[str, Any]) -> tuple[str, str]:
    """Return (subscription, tenant) of a provider's inputs."""
    return (
        str(provider.get("subscriptionId") or DEFAULT_SUBSCRIPTION),
        str(provider.get("tenantId") or DEFAULT_TENANT),
    )


def invoke(token: str, args: Mapping[str, Any], provider: Mapping[str, Any]) -> Any:
    """Answer the functions whose result follows from arguments and provider.

    The cluster's user kubeconfig is the form that a cluster with Entra and without
    local accounts gives: a certificate and no credential.
    """
    subscription, tenant = account(provider)
    function = token.rpartition(":")[2]
    if function == "getClientConfig":
        nobody = DEFAULT_SUBSCRIPTION
        return {
            "clientId": nobody,
            "objectId": nobody,
            "subscriptionId": subscription,
            "tenantId": tenant,
        }
    if function == "listManagedClusterUserCredentials":
        cluster = str(args.get("resourceName", ""))
        certificate = base64.b64encode(f"certificate of {cluster}".encode()).decode()
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": cluster,
                    "cluster": {"certificate-authority-data": certificate},
                }
            ],
        }
        encoded = base64.b64encode(json.dumps(content).encode()).decode()
        return {"kubeconfigs": [{"name": "clusterUser", "value": encoded}]}
    return None


def _in_group(subject: Subject, kind: str, subscription: str) -> tuple[str, str]:
    """Return name and id of a resource that is in a resource group."""
    group = subject.text("resourceGroupName", "group")
    below, keys = PATHS.get(kind, (f"Microsoft.{_namespace(kind)}/{{}}", ("name",)))
    given = [subject.text(key) for key in keys]
    if not given[-1]:
        given[-1] = subject.physical_name("name", "")
    path = below.format(*given)
    prefix = f"/subscriptions/{subscription}/resourceGroups/{group}/providers"
    return given[-1], f"{prefix}/{path}"


def _namespace(kind: str) -> str:
    service, _, name = kind.partition(":")
    return f"{service.capitalize()}/{name[:1].lower()}{name[1:]}s"


def _assigned_identities(subject: Subject) -> dict[str, Any]:
    """Return ``identity`` as it comes back: a list goes in, a mapping comes out."""
    identity = _mapping(subject.inputs.get("identity"))
    given = identity.get("userAssignedIdentities")
    if not isinstance(given, list):
        return {}
    found = {
        str(each): {
            "principalId": subject.uuid(f"principal of {each}"),
            "clientId": subject.uuid(f"client of {each}"),
        }
        for each in cast("list[Any]", given)
    }
    return {"identity": {**identity, "userAssignedIdentities": found}}


def _identity(subject: Subject, name: str, tenant: str) -> dict[str, Any]:
    del name
    return {
        "principalId": subject.uuid("principal"),
        "clientId": subject.uuid("client"),
        "tenantId": tenant,
    }


def _cluster(subject: Subject, name: str, tenant: str) -> dict[str, Any]:
    region = subject.text("location", "region")
    host = f"{name}-{subject.digest(8, 'host')}"
    access = _mapping(subject.inputs.get("apiServerAccessProfile"))
    profile = {
        **_mapping(subject.inputs.get("oidcIssuerProfile")),
        "issuerURL": f"https://{region}.oic.prod-aks.azure.com/{tenant}/"
        f"{subject.uuid('issuer')}/",
    }
    hosts = {"fqdn": f"{host}.hcp.{region}.azmk8s.io"}
    if access.get("enablePrivateCluster", True):
        private = f"{host}.{subject.uuid('zone')}.privatelink.{region}.azmk8s.io"
        hosts = {"privateFQDN": private}
    return {
        **hosts,
        "oidcIssuerProfile": profile,
        "currentKubernetesVersion": subject.text("kubernetesVersion"),
    }


def _vault(subject: Subject, name: str, tenant: str) -> dict[str, Any]:
    del tenant
    properties = _mapping(subject.inputs.get("properties"))
    return {
        "properties": {**properties, "vaultUri": f"https://{name}.vault.azure.net/"}
    }


def _key(subject: Subject, name: str, tenant: str) -> dict[str, Any]:
    del tenant
    uri = f"https://{subject.text('vaultName')}.vault.azure.net/keys/{name}"
    version = subject.digest(32, "version")
    return {"keyUri": uri, "keyUriWithVersion": f"{uri}/{version}"}


def _registry(subject: Subject, name: str, tenant: str) -> dict[str, Any]:
    del subject, tenant
    return {"loginServer": f"{name}.azurecr.io"}


def _storage(subject: Subject, name: str, tenant: str) -> dict[str, Any]:
    del subject, tenant
    services = ("blob", "dfs", "file", "queue", "table", "web")
    return {
        "primaryEndpoints": {
            service: f"https://{name}.{service}.core.windows.net/"
            for service in services
        }
    }


def _workspace(subject: Subject, name: str, tenant: str) -> dict[str, Any]:
    del name, tenant
    return {"customerId": subject.uuid("customer")}


def _address(subject: Subject, name: str, tenant: str) -> dict[str, Any]:
    del name, tenant
    # 198.51.100.0/24 is kept for documentation (RFC 5737).
    return {"ipAddress": f"198.51.100.{int(subject.digest(2, 'address'), 16)}"}


def _mapping(value: Any) -> dict[str, Any]:
    return dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else {}


_OUTPUTS: Mapping[str, Callable[[Subject, str, str], dict[str, Any]]] = {
    "containerregistry:Registry": _registry,
    "containerservice:ManagedCluster": _cluster,
    "keyvault:Key": _key,
    "keyvault:Vault": _vault,
    "managedidentity:UserAssignedIdentity": _identity,
    "network:PublicIPAddress": _address,
    "operationalinsights:Workspace": _workspace,
    "storage:StorageAccount": _storage,
}
