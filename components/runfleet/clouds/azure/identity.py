"""RunnerIdentity: the Azure identity of one runner class, made from its grants alone.

Every class with grants has a user-assigned identity of its own in every cell; a class
without grants has none. Its one federated credential takes tokens of exactly one
namespace and service account of the cell's cluster, for Entra's exchange audience and
no other. What it may do is the role assignments that :mod:`.grants` makes, each on one
container or one registry.

The token that a pod exchanges lasts one hour and is projected for the one service
account; how long the Entra token lives that it gets is Microsoft's choice (Azure
documentation, "Managed identities FAQ": up to 24 hours for a managed identity).

Where the central stores are on AWS, pods exchange another projected token there, with
AWS's own audience (:attr:`RunnerIdentity.token_audiences`); the cluster's issuer is in
its outputs for that.

Sources: AKS documentation, "Workload identity overview" (labels, annotations); Azure
documentation, "Considerations for workload identity federation" (at most 20 credentials
on an identity, and concurrent writes to one identity fail).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
from pulumi_azure_native import managedidentity

from runfleet.clouds.azure import names, roles
from runfleet.clouds.azure.grants import CONTAINER, Assignment, assignments
from runfleet.clouds.azure.places import Place, effective, place_of
from runfleet.clouds.azure.tags import with_labels
from runfleet.clouds.protocols import StoreHandle
from runfleet.placement.plan import CellPlan, PlannedClass
from runfleet.spec.cells import Provider
from runfleet.spec.fleet import Fleet
from runfleet.spec.roles import Scope, StoreKind

AUDIENCE = "api://AzureADTokenExchange"
"""The audience that Entra takes tokens of other issuers for."""

AWS_AUDIENCE = "sts.amazonaws.com"
"""The audience that AWS takes tokens of other issuers for."""

MOST_CREDENTIALS = 20
"""Federated credentials of one identity."""

TOKEN_SECONDS = 3600
"""How long the projected token lasts: the least that AKS's webhook takes."""

Handles = Mapping[Scope, Mapping[StoreKind, StoreHandle]]
"""The stores by scope and kind."""


@dataclass(frozen=True)
class RunnerIdentityArgs:
    """What :class:`RunnerIdentity` makes.

    Attributes:
        place: Where the cell is.
        class_name: Name of the runner class.
        namespace: The one namespace that may use it.
        service_account: The one service account in it.
        issuer: Issuer of the cluster's tokens.
        group: Name of the resource group.
        assignments: What it needs.
        handles: The stores.
        labels: The required labels of the class.
        token_audiences: Audiences of further projected tokens that its pods need.
    """

    place: Place
    class_name: str
    namespace: str
    service_account: str
    issuer: pulumi.Input[str]
    group: pulumi.Input[str]
    assignments: Sequence[Assignment]
    handles: Handles
    labels: Mapping[str, str]
    token_audiences: Sequence[str] = ()

    @classmethod
    def from_plan(
        cls,
        plan: CellPlan,
        planned: PlannedClass,
        *,
        issuer: pulumi.Input[str],
        group: pulumi.Input[str],
        local: Mapping[StoreKind, StoreHandle],
        central: Mapping[StoreKind, StoreHandle],
    ) -> RunnerIdentityArgs:
        """Take the identity of a class in a cell.

        Args:
            plan: The cell.
            planned: The class.
            issuer: Issuer of the cluster's tokens.
            group: Name of the resource group.
            local: The cell's stores.
            central: The central stores.
        """
        wanted = effective(planned.grants, plan.fleet)
        return cls(
            place=place_of(plan),
            class_name=planned.name,
            namespace=planned.job_namespace,
            service_account=planned.service_account,
            issuer=issuer,
            group=group,
            assignments=assignments(wanted, planned.runner_class.trust),
            handles={Scope.LOCAL: local, Scope.CENTRAL: central},
            labels=planned.ci_labels,
            token_audiences=token_audiences(plan.fleet, planned),
        )


class RunnerIdentity(pulumi.ComponentResource):
    """The identity of a class in a cell.

    Attributes:
        identity_id: Resource id of the identity.
        client_id: Client id that its pods sign in as.
        service_account_annotations: What AKS's webhook reads.
        pod_labels: The label by which the webhook knows its pods.
        endpoints: None: tokens are exchanged at Entra, over HTTPS.
        token_audiences: Audiences of further projected tokens that its pods need.
    """

    identity_id: pulumi.Output[str]
    client_id: pulumi.Output[str]
    service_account_annotations: Mapping[str, pulumi.Input[str]]
    pod_labels: Mapping[str, pulumi.Input[str]]
    endpoints: Sequence[str]
    token_audiences: Sequence[str]

    def __init__(
        self,
        name: str,
        args: RunnerIdentityArgs,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Make the identity.

        Args:
            name: Name of the component; children are called ``<name>-<suffix>``.
            args: What it is made from.
            opts: Options; the explicit provider comes with them.
        """
        options = with_labels(opts, args.labels)
        super().__init__("runfleet:azure:RunnerIdentity", name, None, options)
        here = pulumi.ResourceOptions(parent=self)
        identity = managedidentity.UserAssignedIdentity(
            f"{name}-identity",
            resource_name_=names.IDENTITY.encode(
                args.place.name, "job", args.class_name
            ),
            resource_group_name=args.group,
            location=args.place.region,
            opts=here,
        )
        subject = f"system:serviceaccount:{args.namespace}:{args.service_account}"
        credentials(name, identity, args.group, args.issuer, {"pods": subject}, here)
        assign_grants(
            name,
            args.place,
            identity.principal_id,
            args.assignments,
            args.handles,
            here,
        )
        self.identity_id = identity.id
        self.client_id = identity.client_id
        self.service_account_annotations = workload_annotations(
            identity.client_id, args.place.tenant
        )
        self.pod_labels = {"azure.workload.identity/use": "true"}
        self.endpoints = ()
        self.token_audiences = tuple(args.token_audiences)
        self.register_outputs(
            {
                "identity_id": self.identity_id,
                "client_id": self.client_id,
                "token_audiences": list(self.token_audiences),
            }
        )


def credentials(
    name: str,
    identity: managedidentity.UserAssignedIdentity,
    group: pulumi.Input[str],
    issuer: pulumi.Input[str],
    subjects: Mapping[str, str],
    options: pulumi.ResourceOptions,
) -> None:
    """Let exact subjects use an identity, one credential after the other.

    Entra refuses concurrent writes of an identity's credentials, so each waits for the
    one before.

    Args:
        name: What the logical names begin with.
        identity: The identity.
        group: Name of its resource group.
        issuer: Issuer of the tokens.
        subjects: The subjects, by a name of each.
        options: Options.

    Raises:
        ValueError: There is none, one is a pattern, or there are more than 20.
    """
    wide = [text for text in subjects.values() if "*" in text or "?" in text]
    if not subjects or wide:
        raise ValueError(f"identity {name} needs exact subjects, not {wide}")
    if len(subjects) > MOST_CREDENTIALS:
        raise ValueError(
            f"identity {name} has {len(subjects)} subjects, Azure allows "
            f"{MOST_CREDENTIALS} credentials on an identity"
        )
    before: list[pulumi.Resource] = []
    for key, subject in subjects.items():
        made = managedidentity.FederatedIdentityCredential(
            f"{name}-credential-{key}",
            federated_identity_credential_resource_name=names.CREDENTIAL.encode(
                "subject", key
            ),
            resource_name_=identity.name,
            resource_group_name=group,
            issuer=issuer,
            subject=subject,
            audiences=[AUDIENCE],
            opts=pulumi.ResourceOptions.merge(
                options, pulumi.ResourceOptions(depends_on=before)
            ),
        )
        before = [made]


def assign_grants(
    name: str,
    place: Place,
    principal: pulumi.Input[str],
    wanted: Sequence[Assignment],
    handles: Handles,
    options: pulumi.ResourceOptions,
) -> None:
    """Assign what an identity needs.

    Args:
        name: What the logical names begin with.
        place: Where the stack is.
        principal: The identity's principal.
        wanted: The assignments.
        handles: The stores.
        options: Options.
    """
    for assignment in wanted:
        handle = handles[assignment.scope][assignment.kind]
        scope = target_id(handle, assignment.target)
        role = handle.extra[f"role/{assignment.role}"]
        roles.assign(
            f"{name}-{assignment.key}",
            place,
            principal=principal,
            scope=scope,
            role=role,
            condition=assignment.condition,
            options=options,
        )


def target_id(handle: StoreHandle, target: str) -> pulumi.Input[str]:
    """Return the resource id of an assignment's target in a store.

    Raises:
        ValueError: The store has no such part: a mistake in the calling code.
    """
    if target == CONTAINER:
        if handle.bucket_id is None:
            raise ValueError(f"store {handle.kind} has no container")
        return handle.bucket_id
    return handle.extra[target.replace("registry/", "repository_id/")]


def workload_annotations(
    client_id: pulumi.Input[str], tenant: str
) -> dict[str, pulumi.Input[str]]:
    """Return the annotations of a service account whose pods sign in as an identity."""
    prefix = "azure.workload.identity"
    return {
        f"{prefix}/client-id": client_id,
        f"{prefix}/tenant-id": tenant,
        f"{prefix}/service-account-token-expiration": str(TOKEN_SECONDS),
    }


def token_audiences(fleet: Fleet, planned: PlannedClass) -> tuple[str, ...]:
    """Return the audiences of further projected tokens that a class's pods need."""
    central = fleet.central
    if central is None or central.provider is not Provider.AWS:
        return ()
    stores = {store.kind for store in fleet.stores_in(Scope.CENTRAL)}
    wanted = any(grant.store in stores for grant in planned.granted(Scope.CENTRAL))
    return (AWS_AUDIENCE,) if wanted else ()
