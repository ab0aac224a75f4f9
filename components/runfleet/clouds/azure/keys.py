"""Keys: the cell's vault, the key of the cluster's secrets, the key of all disks.

The vault has no public address, keeps what is deleted for 90 days and lets nobody purge
it; access is by role assignments only. The cluster reaches it over its private link
(``Private`` network access of AKS's KMS), disks by Azure's own trusted services.
"""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_azure_native import compute, keyvault, managedidentity

from runfleet.clouds.azure import names, roles
from runfleet.clouds.azure.endpoints import EndpointSubnet, private_endpoint
from runfleet.clouds.azure.places import Place

DELETED_DAYS = 90
"""How long a deleted key or secret can be brought back: the most that Azure keeps."""


@dataclass(frozen=True)
class Vault:
    """A vault that exists.

    Attributes:
        vault: The vault.
        reachable: What must exist before it can be reached from the network.
    """

    vault: keyvault.Vault
    reachable: pulumi.Resource


def key_vault(
    name: str,
    place: Place,
    group: pulumi.Input[str],
    endpoints: EndpointSubnet,
    parent: pulumi.Resource,
) -> Vault:
    """Make the vault of a cell and its private endpoint.

    Args:
        name: Logical name.
        place: Where the cell is.
        group: Name of the resource group.
        endpoints: Where private endpoints are made.
        parent: Component that it belongs to.
    """
    vault = keyvault.Vault(
        name,
        vault_name=place.global_name(names.VAULT, "vault"),
        resource_group_name=group,
        location=place.region,
        properties=keyvault.VaultPropertiesArgs(
            tenant_id=place.tenant,
            sku=keyvault.SkuArgs(family="A", name=keyvault.SkuName.PREMIUM),
            enable_rbac_authorization=True,
            enable_soft_delete=True,
            enable_purge_protection=True,
            soft_delete_retention_in_days=DELETED_DAYS,
            enabled_for_deployment=False,
            enabled_for_disk_encryption=False,
            enabled_for_template_deployment=False,
            public_network_access="Disabled",
            network_acls=keyvault.NetworkRuleSetArgs(
                default_action="Deny", bypass="AzureServices"
            ),
        ),
        opts=_kept(parent),
    )
    reachable = private_endpoint(
        f"{name}-endpoint",
        place,
        endpoints,
        "vault",
        vault.id,
        pulumi.ResourceOptions(parent=parent),
    )
    return Vault(vault, reachable)


def encryption_key(
    name: str,
    purpose: str,
    vault: Vault,
    group: pulumi.Input[str],
    parent: pulumi.Resource,
) -> keyvault.Key:
    """Make a key that never leaves the vault's hardware.

    Args:
        name: Logical name.
        purpose: What it encrypts; its name in the vault.
        vault: The vault.
        group: Name of the vault's resource group.
        parent: Component that it belongs to.
    """
    return keyvault.Key(
        name,
        key_name=names.KEY.encode(purpose),
        vault_name=vault.vault.name,
        resource_group_name=group,
        properties=keyvault.KeyPropertiesArgs(
            kty="RSA-HSM", key_size=3072, key_ops=["wrapKey", "unwrapKey"]
        ),
        opts=_kept(parent),
    )


def disk_encryption(
    name: str,
    place: Place,
    vault: Vault,
    group: pulumi.Input[str],
    parent: pulumi.Resource,
) -> compute.DiskEncryptionSet:
    """Make what encrypts the disks of all nodes.

    Args:
        name: Logical name.
        place: Where the cell is.
        vault: The vault.
        group: Name of the resource group.
        parent: Component that it belongs to.
    """
    options = pulumi.ResourceOptions(parent=parent)
    key = encryption_key(f"{name}-key", "disks", vault, group, parent)
    user = managedidentity.UserAssignedIdentity(
        f"{name}-identity",
        resource_name_=names.IDENTITY.encode(place.name, "disks"),
        resource_group_name=group,
        location=place.region,
        opts=options,
    )
    allowed = roles.assign(
        f"{name}-uses-key",
        place,
        principal=user.principal_id,
        scope=key_id(vault, key),
        role=roles.DISK_KEY_USER,
        options=options,
    )
    return compute.DiskEncryptionSet(
        name,
        disk_encryption_set_name=names.DISK_ENCRYPTION_SET.encode(place.name, "disks"),
        resource_group_name=group,
        location=place.region,
        encryption_type="EncryptionAtRestWithPlatformAndCustomerKeys",
        rotation_to_latest_key_version_enabled=True,
        active_key=compute.KeyForDiskEncryptionSetArgs(
            key_url=key.key_uri_with_version,
            source_vault=compute.SourceVaultArgs(id=vault.vault.id),
        ),
        identity=compute.EncryptionSetIdentityArgs(
            type="UserAssigned", user_assigned_identities=[user.id]
        ),
        opts=pulumi.ResourceOptions.merge(
            _kept(parent), pulumi.ResourceOptions(depends_on=[allowed])
        ),
    )


def key_id(vault: Vault, key: keyvault.Key) -> pulumi.Output[str]:
    """Return the resource id of a key, for role assignments on it alone."""
    return pulumi.Output.concat(vault.vault.id, "/keys/", key.name)


def _kept(parent: pulumi.Resource) -> pulumi.ResourceOptions:
    return pulumi.ResourceOptions(parent=parent, protect=True, retain_on_delete=True)
