"""The promoter: the separate trusted process that moves local results to central.

RFC-0049 lets a runner publish for other pools in two ways: with credentials for one
central target, or into a local store from which "a separate trusted process" pulls.
This is that process's identity on IBM Cloud. Because IAM takes no token of GitHub
(:mod:`runfleet.clouds.ibm.federation`), the process is a workload in one of the fleet's
clusters: its trusted profile is linked to the service account ``promoter`` in the
namespace ``promoter`` of the cluster that the setting ``promoterCluster`` of stack
``central`` names by CRN. Until the setting is there, nobody can take the profile on.

It reads what every class wrote in the cells of its own account, at every trust level,
and writes to the central stores.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import pulumi

from runfleet.clouds.ibm import addresses
from runfleet.clouds.ibm.grants import (
    BUCKET_KINDS,
    REPOSITORY_KINDS,
    Policy,
    StorePlace,
    image_policies,
    object_policy,
)
from runfleet.clouds.ibm.identity import give, link, place_of, trusted_profile
from runfleet.clouds.ibm.names import TRUSTED_PROFILE
from runfleet.clouds.ibm.resources.access import ComputeLink
from runfleet.clouds.protocols import StoreHandle
from runfleet.errors import InputError, Problem
from runfleet.placement.plan import CentralPlan
from runfleet.spec.cells import Provider
from runfleet.spec.roles import Scope, StoreKind, Trust, Verb

CLUSTER_SETTING = "promoterCluster"
"""Setting of stack ``central``: CRN of the cluster that the promoter runs in."""

NAMESPACE = "promoter"
SERVICE_ACCOUNT = "promoter"

_CLUSTER_CRN = re.compile(
    r"crn:v1:bluemix:public:containers-kubernetes:[a-z0-9-]+:a/[0-9a-f]{32}:"
    r"[a-z0-9]+::"
)


@dataclass(frozen=True)
class PromoterArgs:
    """What :class:`Promoter` makes.

    Attributes:
        profile_name: Name of its trusted profile.
        policies: What it may do.
        cluster_crn: CRN of the cluster that it runs in; empty until it is known.
        labels: The required labels.
    """

    profile_name: str
    policies: tuple[Policy, ...]
    cluster_crn: str
    labels: Mapping[str, str]

    @classmethod
    def from_plan(
        cls,
        plan: CentralPlan,
        central: Mapping[StoreKind, StoreHandle],
        cluster_crn: str = "",
    ) -> PromoterArgs:
        """Take the promoter of a fleet.

        Args:
            plan: The stack ``central``.
            central: The central stores.
            cluster_crn: CRN of the cluster that it runs in.

        Raises:
            InputError: The CRN is none of a cluster.
        """
        if cluster_crn and not _CLUSTER_CRN.fullmatch(cluster_crn):
            raise InputError(
                [
                    Problem(
                        "Pulumi.central.yaml",
                        0,
                        f"config.runfleet:{CLUSTER_SETTING}",
                        "is no CRN of a cluster",
                        found=cluster_crn,
                        allowed=_CLUSTER_CRN.pattern,
                    )
                ]
            )
        return cls(
            profile_name=TRUSTED_PROFILE.encode(
                plan.fleet.project, plan.stack, "promoter"
            ),
            policies=(*_reads(plan), *_writes(plan, central)),
            cluster_crn=cluster_crn,
            labels=plan.ci_labels,
        )


class Promoter(pulumi.ComponentResource):
    """The identity of the promoter.

    Attributes:
        identity_id: Id of its trusted profile.
    """

    identity_id: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        args: PromoterArgs,
        options: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Make the identity."""
        super().__init__("runfleet:ibm:Promoter", name, None, options)
        profile = trusted_profile(
            name,
            args.profile_name,
            "Moves local results to the central stores",
            args.labels,
            self,
        )
        made = give(name, profile, args.policies, args.labels, self)
        if args.cluster_crn:
            to = ComputeLink(args.cluster_crn, NAMESPACE, SERVICE_ACCOUNT)
            link(name, profile, to, self, made)
        else:
            pulumi.log.warn(
                "nobody can take on the promoter's profile: set "
                f"runfleet:{CLUSTER_SETTING} to the CRN of a cluster",
                self,
            )
        self.identity_id = profile.profile_id
        self.register_outputs({"identity_id": self.identity_id})


def _reads(plan: CentralPlan) -> list[Policy]:
    """Return what reads the promoted stores of the cells in the same account.

    The instances that their buckets are in are known to the cells' stacks only; a
    bucket's name is enough, because no two buckets in the world share one.
    """
    found: list[Policy] = []
    fleet = plan.fleet
    for cell in fleet.cells.values():
        if (cell.provider, cell.account) != (Provider.IBM, plan.central.account):
            continue
        site = addresses.cell_site(fleet, cell)
        for store in fleet.stores_in(Scope.LOCAL):
            if store.kind not in addresses.PROMOTED:
                continue
            name = f"read-{store.kind}-{cell.name}"
            place = StorePlace(
                bucket=site.bucket(store),
                namespaces={t: site.namespace(store, t) for t in Trust},
                region=site.registry_region,
            )
            least = Trust.UNTRUSTED_PR
            if store.kind in BUCKET_KINDS:
                found.append(object_policy(name, Verb.READ, least, place))
            if store.kind in REPOSITORY_KINDS:
                found += image_policies(f"{name}-images", Verb.READ, least, place)
    return found


def _writes(
    plan: CentralPlan, central: Mapping[StoreKind, StoreHandle]
) -> list[Policy]:
    """Return what writes to the central stores at every trust level."""
    site = addresses.plan_site(plan)
    found: list[Policy] = []
    for kind, handle in central.items():
        if kind not in addresses.PROMOTED:
            continue
        place = place_of(handle, site.registry_region)
        for trust in Trust:
            name = f"write-{kind}-{trust}"
            if kind in BUCKET_KINDS:
                found.append(object_policy(name, Verb.WRITE, trust, place))
            if kind in REPOSITORY_KINDS:
                found += image_policies(f"{name}-images", Verb.WRITE, trust, place)
    return found
