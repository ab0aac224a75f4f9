"""Keys: one key ring for each component that encrypts, with keys that rotate.

A key ring can never be deleted and its name never used again, and a key's material is
destroyed only after a delay (Cloud KMS documentation, "Cloud KMS resources"): both are
protected and kept when a stack goes. Services encrypt and decrypt as their service
agents, so nobody who reads or writes data needs a permission on a key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi
import pulumi_gcp as gcp

from runfleet.clouds.gcp.addresses import Project
from runfleet.clouds.gcp.names import KMS

ROTATION = f"{90 * 86_400}s"
"""How often a key gets a new version: 90 days."""

DESTROY_AFTER = f"{30 * 86_400}s"
"""How long a version that is to be destroyed can be restored: 30 days."""

USE = "roles/cloudkms.cryptoKeyEncrypterDecrypter"


def key_ring(
    name: str, project: Project, parts: Sequence[str], parent: pulumi.Resource
) -> gcp.kms.KeyRing:
    """Make a key ring.

    Args:
        name: Name of the resource.
        project: The project.
        parts: Parts of the key ring's name.
        parent: The component that it belongs to.
    """
    return gcp.kms.KeyRing(
        name,
        name=KMS.encode(*parts),
        project=project.id,
        location=project.region,
        opts=_kept(parent),
    )


def crypto_key(
    name: str,
    ring: gcp.kms.KeyRing,
    what: str,
    project: Project,
    services: Sequence[str],
    labels: Mapping[str, str],
    parent: pulumi.Resource,
    after: Sequence[pulumi.Resource] = (),
) -> tuple[gcp.kms.CryptoKey, list[pulumi.Resource]]:
    """Make a key that some of Google's services may use.

    Args:
        name: Name of the resource; bindings are ``<name>-<service>``.
        ring: The key ring.
        what: What it encrypts: the key's name.
        project: The project.
        services: The services that encrypt with it, such as
            ``compute.googleapis.com``.
        labels: The required labels.
        parent: The component that it belongs to.
        after: What makes the services' agents exist.

    Returns:
        The key, and what must exist before the services can use it.
    """
    key = gcp.kms.CryptoKey(
        name,
        name=KMS.encode(what),
        key_ring=ring.id,
        purpose="ENCRYPT_DECRYPT",
        rotation_period=ROTATION,
        destroy_scheduled_duration=DESTROY_AFTER,
        labels=labels,
        opts=_kept(parent),
    )
    uses: list[pulumi.Resource] = [
        gcp.kms.CryptoKeyIAMMember(
            f"{name}-{service.partition('.')[0]}",
            crypto_key_id=key.id,
            role=USE,
            member=project.agent(service),
            opts=pulumi.ResourceOptions(
                parent=parent, depends_on=list(after), retain_on_delete=True
            ),
        )
        for service in services
    ]
    return key, uses


def _kept(parent: pulumi.Resource) -> pulumi.ResourceOptions:
    return pulumi.ResourceOptions(parent=parent, protect=True, retain_on_delete=True)
