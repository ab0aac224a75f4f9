"""The promoter: the separate trusted process that moves local results to central.

RFC-0049 lets a runner publish for other pools in two ways: with credentials for one
central target, or into a local store from which "a separate trusted process" pulls.
This is that process's identity: one GitHub workflow, in the environment ``promoter``,
may read what every cell's classes wrote and write it to the central stores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pulumi
import pulumi_aws as aws

from runfleet.clouds.aws import addresses
from runfleet.clouds.aws.addresses import Site
from runfleet.clouds.aws.federation import (
    exact,
    subjects,
    web_identity_role,
    web_identity_trust,
)
from runfleet.clouds.aws.grants import (
    BUCKET_KINDS,
    LIST_BUCKET,
    PULL,
    PUSH,
    READ_OBJECTS,
    REPOSITORY_KINDS,
    ROLE_POLICY_LIMIT,
    USE_KEY,
    USE_KEY_TO_READ,
    WRITE_OBJECTS,
    Statement,
    StoreArns,
    StorePlace,
    allow,
    document,
    key_statement,
    login_statement,
)
from runfleet.clouds.aws.identity import (
    BoundaryArgs,
    PermissionsBoundary,
    boundary_document,
    store_arns,
)
from runfleet.clouds.aws.tags import tags
from runfleet.clouds.protocols import StoreHandle
from runfleet.placement.plan import CentralPlan
from runfleet.spec.cells import Provider
from runfleet.spec.github import FederatedRepository
from runfleet.spec.roles import Scope, StoreKind

PROMOTER_ENVIRONMENT = "promoter"
"""GitHub environment of the one workflow that moves local results to central."""


@dataclass(frozen=True)
class PromoterArgs:
    """What :class:`Promoter` makes.

    Attributes:
        role_name: Name of the role.
        subjects: Exact subjects whose tokens are accepted.
        provider_arn: ARN of the identity provider.
        issuer: Address of the issuer.
        cells: Where the local stores of each cell are.
        local: The local stores that are promoted, for each cell.
        central: Where the central stores are.
        central_site: Account and region of the central stores.
        boundary_name: Name of its permissions boundary.
        tags: Its tags.
    """

    role_name: str
    subjects: tuple[str, ...]
    provider_arn: pulumi.Input[str]
    issuer: str
    cells: tuple[Site, ...]
    local: tuple[StorePlace, ...]
    central: pulumi.Input[StoreArns]
    central_site: Site
    boundary_name: str
    tags: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def from_plan(
        cls,
        plan: CentralPlan,
        provider_arn: pulumi.Input[str],
        central: Mapping[StoreKind, StoreHandle],
        repository: FederatedRepository | None = None,
    ) -> PromoterArgs:
        """Take the promoter of a fleet.

        Args:
            plan: The stack ``central``.
            provider_arn: ARN of the identity provider.
            central: The central stores.
            repository: Repository of the promoting workflow; the first one of
                ``github.federation`` by default.

        Raises:
            ValueError: No repository is known.
        """
        fleet = plan.fleet
        known = [repository] if repository else fleet.github.federation[:1]
        cells = tuple(
            addresses.cell_site(fleet, cell)
            for cell in fleet.cells.values()
            if cell.provider is Provider.AWS
        )
        promoted = [
            store
            for store in fleet.stores_in(Scope.LOCAL)
            if store.kind in addresses.PROMOTED
        ]
        return cls(
            role_name=addresses.promoter_role(fleet.project),
            subjects=subjects(known, PROMOTER_ENVIRONMENT),
            provider_arn=provider_arn,
            issuer=fleet.github.oidc_issuer,
            cells=cells,
            local=tuple(site.place(store) for site in cells for store in promoted),
            central=store_arns(
                {}, {k: h for k, h in central.items() if k in addresses.PROMOTED}
            ),
            central_site=addresses.plan_site(plan),
            boundary_name=addresses.boundary_policy(fleet.project, "promoter"),
            tags=tags(plan.ci_labels),
        )


class Promoter(pulumi.ComponentResource):
    """The separate trusted process that moves local results to the central stores.

    It reads every cell's promoted stores and writes to the central ones, at every
    trust level; what it verifies on the way is the workflow's business, and it must
    keep what it moves under the trust level that it found it at. Cells in other
    accounts let it in by its name (:func:`runfleet.clouds.aws.addresses.peers`).

    Attributes:
        identity_id: ARN of the role.
    """

    identity_id: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        args: PromoterArgs,
        options: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Make the promoter.

        Raises:
            ValueError: No subject may use it.
        """
        accepted = exact(args.subjects)
        super().__init__("runfleet:aws:Promoter", name, None, options)
        central: pulumi.Output[StoreArns] = pulumi.Output.from_input(args.central)
        boundary = PermissionsBoundary(
            f"{name}-boundary",
            BoundaryArgs(
                args.boundary_name,
                central.apply(lambda arns: promoter_boundary(args, arns)),
                args.tags,
            ),
            pulumi.ResourceOptions(parent=self),
        )
        role = web_identity_role(
            name,
            args.role_name,
            "Moves local results to the central stores",
            pulumi.Output.from_input(args.provider_arn).apply(
                lambda arn: web_identity_trust(arn, accepted, args.issuer)
            ),
            boundary.arn,
            args.tags,
            self,
        )
        aws.iam.RolePolicy(
            f"{name}-policy",
            name="promotion",
            role=role.name,
            policy=central.apply(
                lambda arns: document(
                    promoter_statements(args, arns), ROLE_POLICY_LIMIT, "the promoter"
                )
            ),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.identity_id = role.arn
        self.register_outputs({"identity_id": self.identity_id})


def promoter_statements(args: PromoterArgs, central: StoreArns) -> list[Statement]:
    """Return what the promoter may do: read what is local, write what is central.

    The keys of cells are named by alias, because their ARNs are outputs of stacks
    that read this one: any key of the account and region, with the alias of the
    cell's stores, through S3.
    """
    buckets = [place.bucket for place in args.local if place.bucket]
    images = [place.repository for place in args.local if place.repository]
    found: list[Statement] = []
    if buckets:
        objects = [f"{bucket}/*" for bucket in buckets]
        found.append(allow("ReadLocalObjects", READ_OBJECTS, objects))
        found.append(allow("ReadLocalBuckets", LIST_BUCKET, buckets))
        found += [
            key_statement(
                f"KeyOf{site.name.title()}",
                site.arn("kms", "key/*"),
                USE_KEY_TO_READ,
                {"ForAnyValue:StringEquals": {"kms:ResourceAliases": site.key_alias}},
            )
            for site in args.cells
        ]
    if images:
        found.append(allow("ReadLocalImages", PULL, [f"{image}/*" for image in images]))
    keys: list[str] = []
    for kind, place in central.central.items():
        name = f"Write{str(kind).title()}"
        if kind in BUCKET_KINDS and place.bucket:
            found.append(allow(name, WRITE_OBJECTS, [f"{place.bucket}/*"]))
            keys.append(place.key)
        if kind in REPOSITORY_KINDS and place.repository:
            found.append(allow(f"{name}Images", PUSH, [f"{place.repository}/*"]))
            images.append(place.repository)
    if images:
        found.append(login_statement())
    for key in dict.fromkeys(filter(None, keys)):
        found.append(key_statement("KeyOfCentral", key, USE_KEY))
    return found


def promoter_boundary(args: PromoterArgs, central: StoreArns) -> str:
    """Return the document of the promoter's own permissions boundary."""
    sites = [*args.cells, args.central_site]
    local = [StorePlace(key=site.arn("kms", "key/*")) for site in args.cells]
    return boundary_document(
        [*args.local, *local, *central.central.values()],
        sorted({site.account for site in sites}),
        sorted({site.region for site in sites}),
        key_aliases=[site.key_alias for site in sites],
    )
