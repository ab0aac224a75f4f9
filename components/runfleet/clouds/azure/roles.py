"""Built-in roles, and role assignments that are the same in every run.

An assignment's name is a GUID that its maker chooses. It is made from the logical name
here, so a preview knows it and a repeated deployment finds it. Azure refuses a second
assignment with the same name and another principal, so a changed one is deleted before
it is made again.

Ids: Azure documentation, "Azure built-in roles" (read 2026-11).
"""

from __future__ import annotations

import pulumi
from pulumi_azure_native import authorization

from runfleet.clouds.azure.grants import CONDITION_VERSION
from runfleet.clouds.azure.names import guid
from runfleet.clouds.azure.places import Place

NETWORK_CONTRIBUTOR = "4d97b98b-1d4f-4787-a291-c67834d212e7"
"""What AKS asks of its identity on the subnets that it joins (AKS documentation,
"API Server VNet Integration")."""

IDENTITY_OPERATOR = "f1a07417-d97a-45cb-824c-7a7467783830"
"""Managed Identity Operator: on the kubelet's identity, to put it on nodes."""

KEY_USER = "12338af0-0e69-4776-bea7-57ae8d297424"
"""Key Vault Crypto User: wraps and unwraps with a key (AKS documentation, "KMS")."""

KEY_VAULT_CONTRIBUTOR = "f25e0fa2-a7c8-4377-a976-54943a77a395"
"""Key Vault Contributor: on the vault, to connect to it privately (the same page)."""

DISK_KEY_USER = "e147488a-f6f5-4113-8e2d-b22465e65bf6"
"""Key Vault Crypto Service Encryption User: what a disk encryption set needs."""

READER = "acdd72a7-3385-48ef-bd42-f606fba81ae7"
"""Reader: on the disk encryption set, which AKS's Karpenter looks at before it makes
a node (Azure/karpenter-provider-azure, ``pkg/controllers/nodeclass/status``)."""

SECRETS_USER = "4633458b-17de-408a-b874-0445c86b69e6"
"""Key Vault Secrets User: reads the value of a secret."""

CLUSTER_ADMIN = "b1ff04bb-8a4e-4dc4-8eb5-8693973ce19b"
"""Azure Kubernetes Service RBAC Cluster Admin: what a deployment needs inside."""

BLOB_CONTRIBUTOR = "ba92f5b4-2d11-453d-a403-e96b0029c9fe"
"""Storage Blob Data Contributor: what the network watcher needs to write flow logs."""

PRINCIPAL = "ServicePrincipal"
"""Type of every identity's principal: said, so that Azure does not look it up before
it is replicated."""


def assign(
    name: str,
    place: Place,
    *,
    principal: pulumi.Input[str],
    scope: pulumi.Input[str],
    role: pulumi.Input[str],
    options: pulumi.ResourceOptions,
    condition: str = "",
    principal_type: str = PRINCIPAL,
) -> authorization.RoleAssignment:
    """Assign a role.

    Args:
        name: Logical name.
        place: Where the stack is.
        principal: Object id of who gets it.
        scope: Resource id of what it is on.
        role: GUID of the role's definition.
        options: Options.
        condition: ABAC condition.
        principal_type: ``ServicePrincipal``, ``Group`` or ``User``.
    """
    return authorization.RoleAssignment(
        name,
        role_assignment_name=guid(place.subscription, place.name, name),
        principal_id=principal,
        principal_type=principal_type,
        scope=scope,
        role_definition_id=definition_id(place.subscription, role),
        condition=condition or None,
        condition_version=CONDITION_VERSION if condition else None,
        opts=pulumi.ResourceOptions.merge(
            options, pulumi.ResourceOptions(delete_before_replace=True)
        ),
    )


def definition_id(subscription: str, role: pulumi.Input[str]) -> pulumi.Output[str]:
    """Return the resource id of a role's definition, as Azure spells it back."""
    return pulumi.Output.concat(
        f"/subscriptions/{subscription}/providers/Microsoft.Authorization"
        "/roleDefinitions/",
        role,
    )
