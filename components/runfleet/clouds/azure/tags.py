"""The label taxonomy as Azure tags, put on by a transform.

The azure-native provider has no default tags, so every room carries a resource
transform that adds its labels to each child of a type that takes tags
(:data:`TAGGABLE`). A transform runs before the policy packs see a resource, in a real
deployment and in a rehearsal alike, and a resource that a room forgot to tag cannot
exist. What a resource says of itself wins.

The syntax of labels (:mod:`runfleet.spec.labels`) is legal in Azure tags as it stands,
so the encoder changes nothing and is injective by being the identity. Limits: Azure
documentation, "Use tags to organize your Azure resources" (read 2026-11): 50 tags on a
resource, names of 512 characters (128 on storage accounts), values of 256, names
without angle brackets, percent, ampersand, question mark and slashes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

import pulumi

from runfleet.clouds.azure.aliases import drop_old_types

LIMIT = 50
"""The most tags on a resource."""

TAGGABLE = frozenset(
    f"azure-native:{name}"
    for name in (
        "compute:DiskEncryptionSet",
        "containerregistry:Registry",
        "containerservice:AgentPool",
        "containerservice:ManagedCluster",
        "keyvault:Key",
        "keyvault:Vault",
        "managedidentity:UserAssignedIdentity",
        "network:FlowLog",
        "network:NatGateway",
        "network:NetworkSecurityGroup",
        "network:PrivateEndpoint",
        "network:PublicIPAddress",
        "network:VirtualNetwork",
        "operationalinsights:Workspace",
        "privatedns:PrivateZone",
        "privatedns:VirtualNetworkLink",
        "resources:ResourceGroup",
        "storage:StorageAccount",
    )
)
"""Types that this floor makes and that take tags."""

UNTAGGED: Mapping[str, str] = {
    f"azure-native:{name}": reason
    for name, reason in {
        "authorization:RoleAssignment": "Azure has no tags on role assignments",
        "authorization:RoleDefinition": "Azure has no tags on role definitions",
        "consumption:Budget": "a budget belongs to a scope and has no tags",
        "managedidentity:FederatedIdentityCredential": "part of its identity",
        "monitor:DiagnosticSetting": "part of what it watches",
        "network:PrivateDnsZoneGroup": "part of its private endpoint",
        "network:Subnet": "part of its virtual network",
        "storage:BlobContainer": "part of its storage account",
        "storage:BlobContainerImmutabilityPolicy": "part of its container",
        "storage:BlobServiceProperties": "part of its storage account",
        "storage:ManagementPolicy": "part of its storage account",
    }.items()
}
"""Types that this floor makes and that take no tags, with the reason."""

_TEXT = re.compile(r"[^<>%&\\?/\x00-\x1f]*")


def tags(labels: Mapping[str, str]) -> dict[str, str]:
    """Return the tags of a resource with these labels, sorted by name.

    Raises:
        ValueError: Azure would refuse a tag, or there are more than 50.
    """
    wrong = [
        f"{key}={value!r} is no Azure tag"
        for key, value in labels.items()
        if not (0 < len(key) <= 128 and len(value) <= 256 and _TEXT.fullmatch(key))
    ]
    if len(labels) > LIMIT:
        wrong.append(f"{len(labels)} tags, Azure allows {LIMIT}")
    if wrong:
        raise ValueError("; ".join(wrong))
    return dict(sorted(labels.items()))


def with_labels(
    options: pulumi.ResourceOptions | None, labels: Mapping[str, str]
) -> pulumi.ResourceOptions:
    """Return the options of a component whose children all get the labels as tags.

    Args:
        options: What the component was given.
        labels: Its labels.

    Raises:
        ValueError: Azure would refuse one of them.
    """
    return pulumi.ResourceOptions.merge(
        options,
        pulumi.ResourceOptions(
            transforms=[label_transform(labels)], transformations=[drop_old_types]
        ),
    )


def label_transform(labels: Mapping[str, str]) -> pulumi.ResourceTransform:
    """Return the transform that adds labels as tags to what takes tags."""
    found = tags(labels)

    def transform(
        args: pulumi.ResourceTransformArgs,
    ) -> pulumi.ResourceTransformResult | None:
        if args.type_ not in TAGGABLE:
            return None
        props = dict(cast("Mapping[str, Any]", args.props))
        own = cast("Mapping[str, Any]", props.get("tags") or {})
        props["tags"] = {**found, **own}
        return pulumi.ResourceTransformResult(props=props, opts=args.opts)

    return transform
