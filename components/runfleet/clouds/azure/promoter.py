"""The promoter, and what a cell does for what is central.

RFC-0049 lets a runner publish into a local store from which "a separate trusted
process" pulls. This is that process's identity: one GitHub workflow, in the environment
``promoter``, may read what every cell's classes wrote and write it to the central
stores.

Azure lets whoever owns a thing assign roles on it, so each side does its own half: the
stack ``central`` lets the promoter write, and each cell (:class:`CentralAccess`) lets
it read. A cell also makes the private endpoints by which its jobs reach the central
stores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pulumi
from pulumi_azure_native import managedidentity

from runfleet.clouds.azure.endpoints import EndpointSubnet, private_endpoint
from runfleet.clouds.azure.federation import by_name, exact, subjects
from runfleet.clouds.azure.grants import Assignment, grant_assignments
from runfleet.clouds.azure.identity import assign_grants, credentials
from runfleet.clouds.azure.places import (
    PROMOTED,
    REPOSITORY_KINDS,
    Place,
    central_here,
    place_of,
)
from runfleet.clouds.azure.stores import PROMOTER_PRINCIPAL
from runfleet.clouds.azure.tags import with_labels
from runfleet.clouds.protocols import StoreHandle
from runfleet.placement.plan import CellPlan, CentralPlan
from runfleet.spec.roles import Grant, Role, Scope, StoreKind, Trust, Verb

PROMOTER_ENVIRONMENT = "promoter"
"""GitHub environment of the one workflow that moves local results to central."""


@dataclass(frozen=True)
class PromoterArgs:
    """What :class:`Promoter` makes.

    Attributes:
        place: Where the central stores are.
        identity: Its identity, made with the central stores.
        subjects: Exact subjects whose tokens are accepted.
        issuer: Address of the issuer.
        group: Name of the resource group.
        central: The central stores.
    """

    place: Place
    identity: managedidentity.UserAssignedIdentity
    subjects: tuple[str, ...]
    issuer: str
    group: pulumi.Input[str]
    central: Mapping[StoreKind, StoreHandle]

    @classmethod
    def from_plan(
        cls,
        plan: CentralPlan,
        identity: managedidentity.UserAssignedIdentity,
        group: pulumi.Input[str],
        central: Mapping[StoreKind, StoreHandle],
    ) -> PromoterArgs:
        """Take the promoter of a fleet.

        Args:
            plan: The stack ``central``.
            identity: Its identity.
            group: Name of the resource group.
            central: The central stores.
        """
        github = plan.fleet.github
        return cls(
            place=place_of(plan),
            identity=identity,
            subjects=subjects(github.federation[:1], PROMOTER_ENVIRONMENT),
            issuer=github.oidc_issuer,
            group=group,
            central=central,
        )


class Promoter(pulumi.ComponentResource):
    """The separate trusted process that moves local results to the central stores.

    It must keep what it moves under the trust level that it found it at.

    Attributes:
        identity_id: Resource id of the identity.
    """

    identity_id: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        args: PromoterArgs,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Let one workflow use the identity, and let it write to the central stores.

        Args:
            name: Name of the component; children are called ``<name>-<suffix>``.
            args: What it is made from.
            opts: Options; the explicit provider comes with them.

        Raises:
            ValueError: No subject may use it.
        """
        accepted = exact(args.subjects)
        options = with_labels(opts, args.place.labels)
        super().__init__("runfleet:azure:Promoter", name, None, options)
        here = pulumi.ResourceOptions(parent=self)
        credentials(
            name, args.identity, args.group, args.issuer, by_name(accepted), here
        )
        assign_grants(
            name,
            args.place,
            args.identity.principal_id,
            promotion(Verb.WRITE, Scope.CENTRAL, args.central),
            {Scope.CENTRAL: args.central},
            here,
        )
        self.identity_id = args.identity.id
        self.register_outputs({"identity_id": self.identity_id})


@dataclass(frozen=True)
class CentralAccessArgs:
    """What :class:`CentralAccess` makes.

    Attributes:
        place: Where the cell is.
        endpoints: Where private endpoints are made.
        local: The cell's stores.
        central: The central stores.
        trusts: Trust levels of the cell's classes.
        labels: The required labels.
    """

    place: Place
    endpoints: EndpointSubnet
    local: Mapping[StoreKind, StoreHandle]
    central: Mapping[StoreKind, StoreHandle]
    trusts: Sequence[Trust]
    labels: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def from_plan(
        cls,
        plan: CellPlan,
        endpoints: EndpointSubnet,
        local: Mapping[StoreKind, StoreHandle],
        central: Mapping[StoreKind, StoreHandle],
    ) -> CentralAccessArgs | None:
        """Take what a cell does for what is central; ``None`` when that is elsewhere.

        Args:
            plan: The cell.
            endpoints: Where private endpoints are made.
            local: The cell's stores.
            central: The central stores.
        """
        if not central_here(plan.fleet):
            return None
        used = {grant.store for p in plan.classes for grant in p.granted(Scope.CENTRAL)}
        trusts = {planned.runner_class.trust for planned in plan.classes}
        return cls(
            place=place_of(plan),
            endpoints=endpoints,
            local=local,
            central={kind: h for kind, h in central.items() if kind in used},
            trusts=[trust for trust in Trust if trust in trusts],
            labels=plan.ci_labels,
        )


class CentralAccess(pulumi.ComponentResource):
    """What a cell does for what is central: ways to it, and the promoter's half."""

    def __init__(
        self,
        name: str,
        args: CentralAccessArgs,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Make the endpoints and the promoter's assignments.

        Args:
            name: Name of the component; children are called ``<name>-<suffix>``.
            args: What it is made from.
            opts: Options; the explicit provider comes with them.
        """
        options = with_labels(opts, args.labels)
        super().__init__("runfleet:azure:CentralAccess", name, None, options)
        here = pulumi.ResourceOptions(parent=self)
        for kind, handle in args.central.items():
            targets: dict[str, tuple[str, pulumi.Output[str]]] = {}
            if kind is not StoreKind.REGISTRY:
                targets[str(kind)] = ("blob", handle.extra["account_id"])
            if kind in REPOSITORY_KINDS:
                for trust in args.trusts:
                    registry = handle.extra[f"repository_id/{trust}"]
                    targets[f"{kind}-images-{trust}"] = ("registry", registry)
            for suffix, (group, target) in targets.items():
                private_endpoint(
                    f"{name}-{suffix}", args.place, args.endpoints, group, target, here
                )
        if args.central:
            principal = next(iter(args.central.values())).extra[PROMOTER_PRINCIPAL]
            assign_grants(
                f"{name}-promoter",
                args.place,
                principal,
                promotion(Verb.READ, Scope.LOCAL, args.local),
                {Scope.LOCAL: args.local},
                here,
            )
        self.register_outputs({})


def promotion(
    verb: Verb, scope: Scope, stores: Mapping[StoreKind, StoreHandle]
) -> list[Assignment]:
    """Return the promoter's half of a side: every trust level of what it moves.

    Args:
        verb: Read on the local side, write on the central one.
        scope: The side.
        stores: The stores of the side.
    """
    found: set[Assignment] = set()
    for kind in PROMOTED:
        if kind in stores:
            grant = Grant(Role.RELEASER, verb, kind, scope)
            found |= set(grant_assignments(grant, tuple(Trust)))
    return sorted(found)
