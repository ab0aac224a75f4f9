"""Stores: what grants are given on, as storage containers and image registries.

Each kind of store has a storage account of its own with one container, and, where it
holds images, one registry for each trust level (see :mod:`.grants` for why). Nothing
takes keys: shared keys, local users, admin users and anonymous access are off, so an
Entra token is the only way in. Nothing has a public address: a cell's stores are
reached by private endpoints in the cell's network. Only central stores that classes
outside Azure hold grants on are open to the network, for Entra tokens over TLS 1.2.

Telemetry is a container too: its role can create blobs and neither read nor replace
any, which is what "insert" means.

The custom roles of a scope are made here, beside what they are for, and every handle
names them, so that identities of other stacks use the ones of the store's owner. The
promoter's identity is made with the central stores, because handles tell cells of it.

Everything is protected and kept when the stack goes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi_azure_native import (
    authorization,
    containerregistry,
    managedidentity,
    storage,
)

from runfleet.clouds.azure import names
from runfleet.clouds.azure.endpoints import EndpointSubnet, private_endpoint
from runfleet.clouds.azure.grants import ROLES
from runfleet.clouds.azure.names import guid
from runfleet.clouds.azure.network import resource_group
from runfleet.clouds.azure.places import (
    REPOSITORY_KINDS,
    Place,
    adopted,
    opened_to_internet,
    place_of,
)
from runfleet.clouds.azure.settings import AzureSettings
from runfleet.clouds.azure.tags import with_labels
from runfleet.clouds.protocols import StoreHandle
from runfleet.placement.plan import CellPlan, CentralPlan
from runfleet.spec.roles import Scope, StoreKind, Trust
from runfleet.spec.stores import Store

DELETED_DAYS = 30
"""How long a deleted object, version or container can be brought back."""

RELEASE_LOCK_DAYS = 365
"""How long a release cannot be changed or deleted, when the fleet does not say."""

PROMOTER_PRINCIPAL = "promoter_principal"
"""Handles of central stores name the promoter's principal under this key."""


@dataclass(frozen=True)
class StoresArgs:
    """What :class:`Stores` makes.

    Attributes:
        place: Where the stack is.
        scope: Local or central.
        stores: The stores of this scope.
        endpoints: Where private endpoints are made; ``None`` without a network.
        group: Name of the resource group; ``None`` to make it.
        redundancy: Copies of every object: ``LRS`` or ``ZRS``.
        opened: Kinds of stores that are open to the network.
    """

    place: Place
    scope: Scope
    stores: tuple[Store, ...]
    endpoints: EndpointSubnet | None = None
    group: pulumi.Input[str] | None = None
    redundancy: str = "ZRS"
    opened: frozenset[StoreKind] = frozenset()

    @classmethod
    def from_plan(
        cls,
        plan: CellPlan | CentralPlan,
        endpoints: EndpointSubnet | None = None,
        group: pulumi.Input[str] | None = None,
    ) -> StoresArgs:
        """Take the stores of a plan: local ones of a cell, or the central ones.

        Args:
            plan: The plan.
            endpoints: Where private endpoints are made.
            group: Name of the resource group, where the network made it.

        Raises:
            InputError: A setting is wrong.
        """
        local = isinstance(plan, CellPlan)
        return cls(
            place=place_of(plan),
            scope=Scope.LOCAL if local else Scope.CENTRAL,
            stores=plan.stores,
            endpoints=endpoints,
            group=group,
            redundancy=AzureSettings.of(plan.cell).redundancy if local else "ZRS",
            opened=frozenset() if local else opened_to_internet(plan.fleet),
        )


class Stores(pulumi.ComponentResource):
    """The stores of one scope: encrypted, keyless, private, TLS only, protected.

    Attributes:
        handles: The stores by kind. ``bucket`` is ``<account>/<container>``,
            ``bucket_id`` the container's resource id, ``stream`` the address that
            records are put under. ``repository`` is the registry that all may read,
            the one of release images; ``extra`` holds every registry as
            ``repository/<trust>`` and ``repository_id/<trust>``, the storage account
            as ``account_id``, its address as ``url``, and the custom roles as
            ``role/<name>``.
        promoter: The promoter's identity; ``None`` in a cell.
        group: Name of the resource group that holds them.
    """

    group: pulumi.Input[str]
    handles: Mapping[StoreKind, StoreHandle]
    promoter: managedidentity.UserAssignedIdentity | None

    def __init__(
        self,
        name: str,
        args: StoresArgs,
        options: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Make the stores.

        Args:
            name: Name of the component; children are called ``<name>-<suffix>``.
            args: What it makes.
            options: Options; the explicit provider comes with them.
        """
        labelled = with_labels(options, args.place.labels)
        super().__init__("runfleet:azure:Stores", name, None, labelled)
        self._name = name
        self._args = args
        self.group = args.group or resource_group(
            f"{name}-group", args.place, self._options()
        )
        self._shared: dict[str, pulumi.Output[str]] = {}
        self.promoter = None
        if args.stores:
            self._shared = self._roles()
        if args.scope is Scope.CENTRAL:
            self.promoter = managedidentity.UserAssignedIdentity(
                f"{name}-promoter",
                resource_name_=names.IDENTITY.encode(args.place.name, "promoter"),
                resource_group_name=self.group,
                location=args.place.region,
                opts=self._options(),
            )
            self._shared[PROMOTER_PRINCIPAL] = self.promoter.principal_id
        self.handles = {store.kind: self._store(store) for store in args.stores}
        self.register_outputs(
            {"handles": {str(k): h.exported() for k, h in self.handles.items()}}
        )

    def _options(self, **more: Any) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self, **more)

    def _kept(self, **more: Any) -> pulumi.ResourceOptions:
        return self._options(protect=True, retain_on_delete=True, **more)

    def _roles(self) -> dict[str, pulumi.Output[str]]:
        """Make the custom roles, assignable in this resource group only."""
        place = self._args.place
        # From the group's name as an output: the roles wait for the group.
        group_id = pulumi.Output.concat(
            place.subscription_id, "/resourceGroups/", self.group
        )
        found: dict[str, pulumi.Output[str]] = {}
        for role, content in ROLES.items():
            made = authorization.RoleDefinition(
                f"{self._name}-role-{role}",
                role_definition_id=guid(place.subscription, place.name, "role", role),
                role_name=f"Runfleet {place.name} {role}",
                role_type="CustomRole",
                description=content.description,
                scope=group_id,
                assignable_scopes=[group_id],
                permissions=[
                    authorization.PermissionArgs(
                        actions=list(content.actions),
                        data_actions=list(content.data_actions),
                        not_actions=[],
                        not_data_actions=[],
                    )
                ],
                opts=self._options(),
            )
            found[f"role/{role}"] = made.name
        return found

    def _store(self, store: Store) -> StoreHandle:
        account: pulumi.Output[str] | None = None
        bucket: pulumi.Output[str] | None = None
        bucket_id: pulumi.Output[str] | None = None
        extra = dict(self._shared)
        if store.kind is not StoreKind.REGISTRY:
            account, container, bucket_id = self._container(store)
            bucket = pulumi.Output.concat(account, "/", container)
            url = pulumi.Output.concat(
                "https://", account, ".blob.core.windows.net/", container
            )
            extra["url"] = url
            extra["account_id"] = bucket_id.apply(
                lambda found: found.partition("/blobServices/")[0]
            )
        if store.kind in REPOSITORY_KINDS:
            for trust in Trust:
                registry = self._registry(store, trust)
                extra[f"repository/{trust}"] = registry.login_server
                extra[f"repository_id/{trust}"] = registry.id
        telemetry = store.kind is StoreKind.TELEMETRY
        return StoreHandle(
            kind=store.kind,
            scope=self._args.scope,
            bucket=bucket,
            bucket_id=bucket_id,
            repository=extra.get(f"repository/{Trust.RELEASE}"),
            repository_id=extra.get(f"repository_id/{Trust.RELEASE}"),
            stream=extra["url"] if telemetry else None,
            stream_id=bucket_id if telemetry else None,
            extra=extra,
        )

    def _container(
        self, store: Store
    ) -> tuple[pulumi.Output[str], pulumi.Output[str], pulumi.Output[str]]:
        """Make account and container with all their settings, or take existing ones."""
        args, place = self._args, self._args.place
        name = f"{self._name}-{store.kind}"
        known = adopted(store)
        if known is not None:
            return (
                pulumi.Output.from_input(known[0]),
                pulumi.Output.from_input(known[1]),
                pulumi.Output.from_input(place.container_id(store)),
            )
        opened = store.kind in args.opened
        release = store.kind is StoreKind.RELEASE
        account = storage.StorageAccount(
            name,
            account_name=place.account(store.kind),
            resource_group_name=self.group,
            location=place.region,
            kind="StorageV2",
            sku=storage.SkuArgs(name=f"Standard_{args.redundancy}"),
            access_tier=storage.AccessTier.HOT,
            allow_blob_public_access=False,
            allow_shared_key_access=False,
            allow_cross_tenant_replication=False,
            allowed_copy_scope="AAD",
            default_to_o_auth_authentication=True,
            enable_https_traffic_only=True,
            is_hns_enabled=False,
            is_local_user_enabled=False,
            is_sftp_enabled=False,
            minimum_tls_version="TLS1_2",
            public_network_access="Enabled" if opened else "Disabled",
            network_rule_set=storage.NetworkRuleSetArgs(
                default_action=storage.DefaultAction.ALLOW
                if opened
                else storage.DefaultAction.DENY,
                bypass="None",
            ),
            encryption=storage.EncryptionArgs(
                key_source="Microsoft.Storage",
                require_infrastructure_encryption=True,
                services=storage.EncryptionServicesArgs(
                    blob=storage.EncryptionServiceArgs(enabled=True, key_type="Account")
                ),
            ),
            opts=self._kept(),
        )
        storage.BlobServiceProperties(
            f"{name}-settings",
            account_name=account.name,
            blob_services_name="default",
            resource_group_name=self.group,
            is_versioning_enabled=True,
            change_feed=storage.ChangeFeedArgs(enabled=False),
            delete_retention_policy=storage.DeleteRetentionPolicyArgs(
                enabled=True, days=DELETED_DAYS
            ),
            container_delete_retention_policy=storage.DeleteRetentionPolicyArgs(
                enabled=True, days=DELETED_DAYS
            ),
            opts=self._kept(),
        )
        container = storage.BlobContainer(
            f"{name}-container",
            account_name=account.name,
            container_name=store.name,
            resource_group_name=self.group,
            public_access=storage.PublicAccess.NONE,
            opts=self._kept(),
        )
        storage.ManagementPolicy(
            f"{name}-lifecycle",
            account_name=account.name,
            management_policy_name="default",
            resource_group_name=self.group,
            policy=storage.ManagementPolicySchemaArgs(rules=[lifecycle(store)]),
            opts=self._kept(),
        )
        if release:
            storage.BlobContainerImmutabilityPolicy(
                f"{name}-lock",
                account_name=account.name,
                container_name=container.name,
                immutability_policy_name="default",
                resource_group_name=self.group,
                immutability_period_since_creation_in_days=days_kept(store)
                or RELEASE_LOCK_DAYS,
                allow_protected_append_writes=False,
                opts=self._kept(),
            )
        self._endpoint(f"{name}-endpoint", "blob", account.id)
        return account.name, container.name, container.id

    def _registry(self, store: Store, trust: Trust) -> containerregistry.Registry:
        """Make the registry of one trust level."""
        args, place = self._args, self._args.place
        name = f"{self._name}-{store.kind}-images-{trust}"
        opened = store.kind in args.opened
        registry = containerregistry.Registry(
            name,
            registry_name=place.registry(store.kind, trust),
            resource_group_name=self.group,
            location=place.region,
            sku=containerregistry.SkuArgs(name="Premium"),
            admin_user_enabled=False,
            anonymous_pull_enabled=False,
            data_endpoint_enabled=False,
            public_network_access="Enabled" if opened else "Disabled",
            network_rule_bypass_options="None",
            zone_redundancy="Enabled" if args.redundancy == "ZRS" else "Disabled",
            policies=containerregistry.PoliciesArgs(
                azure_ad_authentication_as_arm_policy=(
                    containerregistry.AzureADAuthenticationAsArmPolicyArgs(
                        status="disabled"
                    )
                ),
                export_policy=containerregistry.ExportPolicyArgs(
                    status="enabled" if opened else "disabled"
                ),
                retention_policy=containerregistry.RetentionPolicyArgs(
                    status="enabled", days=DELETED_DAYS
                ),
            ),
            opts=self._kept(),
        )
        self._endpoint(f"{name}-endpoint", "registry", registry.id)
        return registry

    def _endpoint(self, name: str, group: str, target: pulumi.Output[str]) -> None:
        if self._args.endpoints is not None:
            private_endpoint(
                name,
                self._args.place,
                self._args.endpoints,
                group,
                target,
                self._options(),
            )


def lifecycle(store: Store) -> storage.ManagementPolicyRuleArgs:
    """Return what is deleted by itself: old versions, and objects that are not kept."""
    days = days_kept(store)
    return storage.ManagementPolicyRuleArgs(
        name="keep",
        enabled=True,
        type="Lifecycle",
        definition=storage.ManagementPolicyDefinitionArgs(
            filters=storage.ManagementPolicyFilterArgs(blob_types=["blockBlob"]),
            actions=storage.ManagementPolicyActionArgs(
                base_blob=storage.ManagementPolicyBaseBlobArgs(
                    delete=storage.DateAfterModificationArgs(
                        days_after_modification_greater_than=days
                    )
                )
                if days is not None
                else None,
                version=storage.ManagementPolicyVersionArgs(
                    delete=storage.DateAfterCreationArgs(
                        days_after_creation_greater_than=DELETED_DAYS
                    )
                ),
            ),
        ),
    )


def days_kept(store: Store) -> int | None:
    """Return how many days objects are kept; ``None`` for ever."""
    return None if store.keep is None else max(1, -(-store.keep.seconds // 86_400))
