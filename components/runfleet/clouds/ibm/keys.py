"""Key Protect: an instance for a purpose, root keys in it, and who may use them.

Root keys never leave Key Protect: a service asks it to wrap and unwrap its own data
keys. So the service needs an authorization of its own, ``Reader`` on the one instance
("Integrating services", ibm-cloud-docs/key-protect), and no identity of a job ever
needs a key.

A cell has two instances: one for its platform (the cluster's secrets, disks and flow
logs) and one for its stores, so that neither side can reach the other's keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi

from runfleet.clouds.ibm.names import KEY, RESOURCE_INSTANCE
from runfleet.clouds.ibm.resources.access import IamAuthorizationPolicy
from runfleet.clouds.ibm.resources.storage import (
    KmsKey,
    ResourceInstance,
    ResourceTag,
)
from runfleet.clouds.ibm.tags import tags


@dataclass(frozen=True)
class VaultArgs:
    """What a Key Protect instance is made from.

    Attributes:
        parts: What it is for, as parts of its name.
        region: Region.
        resource_group: Id of the resource group; ``None`` for the default one.
        labels: The required labels.
    """

    parts: tuple[str, ...]
    region: str
    labels: Mapping[str, str]
    resource_group: str | None = None


class Vault:
    """A Key Protect instance and its root keys, as children of a room.

    Attributes:
        guid: Id of the instance.
        crn: CRN of the instance.
    """

    def __init__(self, name: str, args: VaultArgs, parent: pulumi.Resource) -> None:
        """Make the instance, reached privately only."""
        self._name = name
        self._args = args
        self._parent = parent
        instance = ResourceInstance(
            name,
            name=RESOURCE_INSTANCE.encode(*args.parts, "keys"),
            service="kms",
            plan="tiered-pricing",
            location=args.region,
            service_endpoints="private",
            resource_group_id=args.resource_group,
            tags=tags(args.labels),
            opts=self._kept(),
        )
        self.guid: pulumi.Output[str] = instance.guid
        self.crn: pulumi.Output[str] = instance.crn

    def key(self, purpose: str, description: str) -> KmsKey:
        """Make a root key; it can be deleted only when nothing uses it any more."""
        name = f"{self._name}-{purpose}"
        key = KmsKey(
            name,
            instance_id=self.guid,
            key_name=KEY.encode(*self._args.parts, purpose),
            description=description,
            standard_key=False,
            force_delete=False,
            endpoint_type="private",
            opts=self._kept(),
        )
        tagged(name, key.crn, self._args.labels, self._kept())
        return key

    def usable_by(
        self,
        suffix: str,
        service: str,
        instance: pulumi.Input[str] | None = None,
        resource_type: str | None = None,
    ) -> IamAuthorizationPolicy:
        """Let a service wrap and unwrap its data keys with the keys of the instance.

        Args:
            suffix: End of the logical name.
            service: The service that asks.
            instance: The one instance of it that may ask; ``None`` for all of the
                account, where the service has none.
            resource_type: The kind of its resources that may ask.
        """
        return IamAuthorizationPolicy(
            f"{self._name}-for-{suffix}",
            source_service_name=service,
            source_resource_instance_id=instance,
            source_resource_type=resource_type,
            target_service_name="kms",
            target_resource_instance_id=self.guid,
            roles=["Reader"],
            description=f"{service} uses keys of {self._name}",
            opts=pulumi.ResourceOptions(parent=self._parent),
        )

    def _kept(self) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(
            parent=self._parent, protect=True, retain_on_delete=True
        )


def tagged(
    name: str,
    crn: pulumi.Input[str],
    labels: Mapping[str, str],
    opts: pulumi.ResourceOptions,
) -> ResourceTag:
    """Tag a thing whose own type takes no tags.

    Args:
        name: Logical name of the thing.
        crn: Its CRN.
        labels: Its labels.
        opts: Parent and protection of the thing.
    """
    return ResourceTag(
        f"{name}-tags", resource_id=crn, tags=tags(labels), tag_type="user", opts=opts
    )
