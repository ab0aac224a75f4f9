"""The promoter: the separate trusted process that moves local results to central.

RFC-0049 lets a runner publish for other pools in two ways: with credentials for one
central target, or into a local store from which "a separate trusted process" pulls.
This is that process's identity: one GitHub workflow, in the environment ``promoter``,
may read what every cell's classes wrote and write it to the central stores, at every
trust level; it must keep what it moves under the trust level that it found it at.

What it may read of a cell's stores is bound by that cell's stack, on its own stores
(:mod:`runfleet.clouds.gcp.stores`): Google keeps permissions with the resource.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi

from runfleet.clouds.gcp import addresses
from runfleet.clouds.gcp.addresses import PROMOTED, Project
from runfleet.clouds.gcp.bindings import Handles, by_scope, make_bindings
from runfleet.clouds.gcp.federation import bind_subjects, exact, subjects
from runfleet.clouds.gcp.grants import (
    BUCKET_KINDS,
    PUSHER,
    REPOSITORY_KINDS,
    WRITER,
    Binding,
)
from runfleet.clouds.gcp.identity import make_account
from runfleet.clouds.protocols import StoreHandle
from runfleet.placement.plan import CentralPlan
from runfleet.spec.roles import Scope, StoreKind, Trust

PROMOTER_ENVIRONMENT = "promoter"
"""GitHub environment of the one workflow that moves local results to central."""


@dataclass(frozen=True)
class PromoterArgs:
    """What :class:`Promoter` makes.

    Attributes:
        account: Id of the service account.
        project: Its project.
        subjects: Exact subjects whose tokens are accepted.
        principal: What the identifiers of the pool's principals begin with.
        bindings: What it may write.
        handles: The central stores.
    """

    account: str
    project: Project
    subjects: tuple[str, ...]
    principal: pulumi.Input[str]
    bindings: Sequence[Binding]
    handles: Handles

    @classmethod
    def from_plan(
        cls,
        plan: CentralPlan,
        principal: pulumi.Input[str],
        central: Mapping[StoreKind, StoreHandle],
    ) -> PromoterArgs:
        """Take the promoter of a fleet: of its first federated repository.

        Args:
            plan: The stack ``central``.
            principal: What the identifiers of the pool's principals begin with.
            central: The central stores.
        """
        fleet = plan.fleet
        return cls(
            account=addresses.promoter_account(fleet.project),
            project=addresses.plan_site(plan).project,
            subjects=subjects(fleet.github.federation[:1], PROMOTER_ENVIRONMENT),
            principal=principal,
            bindings=promotions(plan),
            handles=by_scope({}, central),
        )


class Promoter(pulumi.ComponentResource):
    """The separate trusted process that moves local results to the central stores.

    Attributes:
        identity_id: Address of the service account.
    """

    identity_id: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        args: PromoterArgs,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Make the promoter.

        Raises:
            InputError: No subject may use it.
        """
        accepted = exact(args.subjects)
        super().__init__("runfleet:gcp:Promoter", name, None, opts)
        account = make_account(
            name,
            args.account,
            args.project,
            "Moves local results to the central stores",
            self,
        )
        bind_subjects(name, account, args.principal, accepted, self)
        make_bindings(
            name,
            args.bindings,
            args.handles,
            {Scope.CENTRAL: args.project},
            account.email.apply(lambda email: f"serviceAccount:{email}"),
            self,
        )
        self.identity_id = account.email
        self.register_outputs({"identity_id": self.identity_id})


def promotions(plan: CentralPlan) -> list[Binding]:
    """Return what the promoter may write: every promoted store, at every trust."""
    site = addresses.plan_site(plan)
    found: list[Binding] = []
    for store in plan.stores:
        place = addresses.place_of(site, store)
        if store.kind not in PROMOTED:
            continue
        if store.kind in BUCKET_KINDS:
            found.append(
                Binding(
                    f"{store.kind}-write",
                    "bucket",
                    place.bucket,
                    WRITER,
                    store.kind,
                    Scope.CENTRAL,
                    "bucket",
                )
            )
        if store.kind in REPOSITORY_KINDS:
            found += [
                Binding(
                    f"{store.kind}-push-{trust}",
                    "repository",
                    place.repositories[trust],
                    PUSHER,
                    store.kind,
                    Scope.CENTRAL,
                    f"repository_id/{trust}",
                )
                for trust in Trust
            ]
    return found
