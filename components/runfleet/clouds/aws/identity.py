"""RunnerIdentity: the AWS identity of one runner class, made from its grants alone.

Every class with grants has a role of its own in every cell; a class without grants
has no cloud identity at all. EKS Pod Identity hands the role's credentials to pods of
exactly one namespace and service account: the association says so, and the role says
it again in its trust policy (by the session tags that Pod Identity sets, the cluster
and the account), so that no other association can use the role. Sessions last one
hour at most.

What the role may do is bounded twice: its own policy holds what
:mod:`runfleet.clouds.aws.grants` makes of the class's grants, and the permissions
boundary, made once per stack, holds what any job identity of the stack could ever
do: data actions on this fleet's stores, in their regions and accounts.

Sources: EKS user guide, "Create IAM role with trust policy required by EKS Pod
Identity" and "Define permissions for EKS Pod Identities to assume roles based on
tags"; IAM user guide, "Permissions boundaries for IAM entities".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi
import pulumi_aws as aws

from runfleet.clouds.aws import addresses
from runfleet.clouds.aws.grants import (
    ASSUME,
    BUCKET_KINDS,
    IMPORT,
    INSERT,
    LIST_BUCKET,
    MANAGED_POLICY_LIMIT,
    PULL,
    PUSH,
    READ_OBJECTS,
    ROLE_POLICY_LIMIT,
    TRUST_POLICY_LIMIT,
    USE_KEY,
    WRITE_OBJECTS,
    Statement,
    StoreArns,
    StorePlace,
    allow,
    document,
    login_statement,
    statements,
    via_s3,
)
from runfleet.clouds.aws.names import partition
from runfleet.clouds.aws.tags import tags
from runfleet.clouds.protocols import StoreHandle
from runfleet.placement.plan import CellPlan, CentralPlan, PlannedClass
from runfleet.spec.roles import Grant, Scope, StoreKind, Trust

SESSION_SECONDS = 3600
"""The longest session of any identity that is made here: one hour."""

POD_IDENTITY_ENDPOINTS = ("169.254.170.23:80", "[fd00:ec2::23]:80")
"""Addresses of the EKS Pod Identity agent on every node (EKS user guide, "How EKS Pod
Identity works")."""


@dataclass(frozen=True)
class BoundaryArgs:
    """What :class:`PermissionsBoundary` makes.

    Attributes:
        policy_name: Name of the managed policy.
        policy: Its document (:func:`boundary_document`).
        tags: Its tags.
        description: What it bounds.
    """

    policy_name: str
    policy: pulumi.Input[str]
    tags: Mapping[str, str]
    description: str = "The most that job identities of this stack can ever do"

    @classmethod
    def from_plan(
        cls,
        plan: CellPlan,
        local: Mapping[StoreKind, StoreHandle],
        central: Mapping[StoreKind, StoreHandle],
    ) -> BoundaryArgs:
        """Bound the job identities of a cell by its own and the central stores."""
        cell, site = plan.cell, addresses.central_site(plan.fleet)
        accounts, regions = {cell.account}, {cell.region}
        inserts: list[str] = []
        if site is not None:
            accounts.add(site.account)
            regions.add(site.region)
            if site.account != cell.account:
                pattern = f"{cell.cluster}-*telemetry-*"
                inserts.append(addresses.role_arn(site.account, site.region, pattern))
        policy = store_arns(local, central if site else {}).apply(
            lambda arns: boundary_document(
                [*arns.local.values(), *arns.central.values()],
                sorted(accounts),
                sorted(regions),
                inserts,
            )
        )
        name = addresses.boundary_policy(cell.cluster, "job")
        return cls(name, policy, tags(plan.ci_labels))

    @classmethod
    def for_central(
        cls, plan: CentralPlan, central: Mapping[StoreKind, StoreHandle]
    ) -> BoundaryArgs:
        """Bound the federated identities by the central stores."""
        place = plan.central
        policy = store_arns({}, central).apply(
            lambda arns: boundary_document(
                arns.central.values(), [place.account], [place.region]
            )
        )
        name = addresses.boundary_policy(plan.fleet.project, "federated")
        return cls(name, policy, tags(plan.ci_labels))


class PermissionsBoundary(pulumi.ComponentResource):
    """The most that some identities of a stack can ever do, as a managed policy.

    Attributes:
        arn: ARN of the policy, for ``permissions_boundary`` of roles.
    """

    arn: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        args: BoundaryArgs,
        options: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("runfleet:aws:PermissionsBoundary", name, None, options)
        policy = aws.iam.Policy(
            f"{name}-policy",
            name=args.policy_name,
            description=args.description,
            policy=args.policy,
            tags=args.tags,
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.arn = policy.arn
        self.register_outputs({"arn": self.arn})


@dataclass(frozen=True)
class RunnerIdentityArgs:
    """What :class:`RunnerIdentity` makes.

    Attributes:
        class_name: Name of the runner class.
        grants: What its jobs may touch, on stores that the fleet has.
        trust: What code may run on it.
        role_name: Name of the role.
        account: Account of the cell.
        region: Region of the cell.
        cluster_name: Name of the cluster.
        namespace: Namespace of its job pods.
        service_account: Service account of its job pods.
        stores: Where the stores are.
        boundary: ARN of the permissions boundary.
        tags: Tags of everything.
    """

    class_name: str
    grants: frozenset[Grant]
    trust: Trust
    role_name: str
    account: str
    region: str
    cluster_name: pulumi.Input[str]
    namespace: pulumi.Input[str]
    service_account: pulumi.Input[str]
    stores: pulumi.Input[StoreArns]
    boundary: pulumi.Input[str]
    tags: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def from_plan(
        cls,
        plan: CellPlan,
        planned: PlannedClass,
        cluster_name: pulumi.Input[str],
        boundary: pulumi.Input[str],
        local: Mapping[StoreKind, StoreHandle],
        central: Mapping[StoreKind, StoreHandle],
    ) -> RunnerIdentityArgs:
        """Take the identity of a class in a cell.

        Args:
            plan: The cell.
            planned: The class in it.
            cluster_name: Name of the cluster that its pods run in.
            boundary: ARN of the cell's permissions boundary.
            local: The cell's stores.
            central: The central stores.

        Raises:
            ValueError: The class has no grants on stores that the fleet has.
        """
        cell, site = plan.cell, addresses.central_site(plan.fleet)
        insert_role = ""
        if site is not None and site.account != cell.account:
            name = addresses.insert_role(cell, planned.runner_class)
            insert_role = addresses.role_arn(site.account, site.region, name)
        return cls(
            class_name=planned.name,
            grants=addresses.effective(planned.grants, plan.fleet),
            trust=planned.runner_class.trust,
            role_name=addresses.job_role(cell, planned.runner_class),
            account=cell.account,
            region=cell.region,
            cluster_name=cluster_name,
            namespace=planned.job_namespace,
            service_account=planned.service_account,
            stores=store_arns(local, central if site else {}, insert_role),
            boundary=boundary,
            tags=tags(planned.ci_labels),
        )


class RunnerIdentity(pulumi.ComponentResource):
    """The identity of a class: a role, its policy and its one association.

    Attributes:
        identity_id: ARN of the role.
        role_name: Name of the role.
        service_account_annotations: None: Pod Identity needs none.
        pod_labels: None, for the same reason.
        endpoints: Addresses of the agent that hands out the credentials.
    """

    identity_id: pulumi.Output[str]
    role_name: pulumi.Output[str]
    service_account_annotations: Mapping[str, pulumi.Input[str]]
    pod_labels: Mapping[str, pulumi.Input[str]]
    endpoints: Sequence[str]

    def __init__(
        self,
        name: str,
        args: RunnerIdentityArgs,
        options: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Make the identity.

        Raises:
            ValueError: The class has no grants, so it must have no identity.
        """
        if not args.grants:
            raise ValueError(
                f"class {args.class_name} has no grants on stores of this fleet, so "
                "it gets no cloud identity"
            )
        super().__init__("runfleet:aws:RunnerIdentity", name, None, options)
        own = pulumi.ResourceOptions(parent=self)
        role = aws.iam.Role(
            f"{name}-role",
            name=args.role_name,
            description=f"Jobs of runner class {args.class_name}",
            assume_role_policy=pulumi.Output.all(
                args.cluster_name, args.namespace, args.service_account
            ).apply(
                lambda known: pod_identity_trust(
                    args.account, args.region, known[0], known[1], known[2]
                )
            ),
            max_session_duration=SESSION_SECONDS,
            permissions_boundary=args.boundary,
            tags=args.tags,
            opts=own,
        )
        stores: pulumi.Output[StoreArns] = pulumi.Output.from_input(args.stores)
        policy = aws.iam.RolePolicy(
            f"{name}-policy",
            name="grants",
            role=role.name,
            policy=stores.apply(
                lambda arns: document(
                    statements(args.grants, args.trust, arns),
                    ROLE_POLICY_LIMIT,
                    f"class {args.class_name}",
                )
            ),
            opts=own,
        )
        aws.eks.PodIdentityAssociation(
            f"{name}-association",
            cluster_name=args.cluster_name,
            namespace=args.namespace,
            service_account=args.service_account,
            role_arn=role.arn,
            tags=args.tags,
            opts=pulumi.ResourceOptions(parent=self, depends_on=[policy]),
        )
        self.identity_id = role.arn
        self.role_name = role.name
        self.service_account_annotations = {}
        self.pod_labels = {}
        self.endpoints = POD_IDENTITY_ENDPOINTS
        self.register_outputs(
            {
                "identity_id": self.identity_id,
                "role_name": self.role_name,
                "service_account_annotations": {},
                "pod_labels": {},
                "endpoints": list(self.endpoints),
            }
        )


def pod_identity_trust(
    account: str, region: str, cluster: str, namespace: str, service_account: str
) -> str:
    """Return the trust policy that binds a role to one service account of one cluster.

    Args:
        account: Account of the cluster.
        region: Region of the cluster.
        cluster: Name of the cluster.
        namespace: The one namespace.
        service_account: The one service account in it.
    """
    arn = f"arn:{partition(region)}:eks:{region}:{account}:cluster/{cluster}"
    trusted = {
        "Sid": "OneServiceAccount",
        "Effect": "Allow",
        "Principal": {"Service": "pods.eks.amazonaws.com"},
        "Action": list(ASSUME),
        "Condition": {
            "StringEquals": {
                "aws:SourceAccount": account,
                "aws:RequestTag/kubernetes-namespace": namespace,
                "aws:RequestTag/kubernetes-service-account": service_account,
            },
            "ArnEquals": {"aws:SourceArn": arn},
        },
    }
    return document([trusted], TRUST_POLICY_LIMIT, f"{namespace}/{service_account}")


def boundary_document(
    places: Iterable[StorePlace],
    accounts: Sequence[str],
    regions: Sequence[str],
    insert_roles: Sequence[str] = (),
    key_aliases: Sequence[str] = (),
) -> str:
    """Return the document of a permissions boundary.

    Everything that it does not name is refused.

    Args:
        places: The stores.
        accounts: The accounts that the buckets are in: a bucket's ARN does not say,
            and its name can be taken by somebody else once it is gone.
        regions: The regions that the stores are in.
        insert_roles: ARN patterns of the roles that classes assume to insert
            telemetry in another account.
        key_aliases: Aliases of keys, for places whose key is a pattern.
    """
    known = list(places)
    region = {"aws:RequestedRegion": list(regions)}
    where = {"StringEquals": region}
    there = {"StringEquals": {**region, "aws:ResourceAccount": list(accounts)}}
    buckets = _distinct(place.bucket for place in known)
    images = _distinct(place.repository for place in known)
    cached = _distinct(arn for place in known for arn in place.pull_through)
    streams = _distinct(place.stream for place in known)
    keys = _distinct(place.key for place in known)
    found: list[Statement] = []
    if buckets:
        objects = [f"{bucket}/*" for bucket in buckets]
        found.append(allow("Objects", [*READ_OBJECTS, *WRITE_OBJECTS], objects, there))
        found.append(allow("Buckets", LIST_BUCKET, buckets, there))
    if images:
        pushed = [f"{repository}/*" for repository in images]
        found.append(allow("Images", sorted({*PULL, *PUSH}), pushed, where))
    if cached:
        pulled = [f"{repository}/*" for repository in cached]
        found.append(allow("ImageCache", sorted({*PULL, *IMPORT}), pulled, where))
    if images or cached:
        found.append({**login_statement(), "Condition": where})
    if streams:
        found.append(allow("Streams", INSERT, [f"{s}-*" for s in streams], where))
    if keys:
        via: dict[str, Any] = {
            "StringEquals": {"kms:ViaService": [via_s3(region) for region in regions]}
        }
        if key_aliases:
            via["ForAnyValue:StringEquals"] = {"kms:ResourceAliases": list(key_aliases)}
        found.append(allow("Keys", USE_KEY, keys, via))
    if insert_roles:
        found.append(allow("Telemetry", ASSUME, insert_roles))
    return document(found, MANAGED_POLICY_LIMIT, "the permissions boundary")


def store_arns(
    local: Mapping[StoreKind, StoreHandle],
    central: Mapping[StoreKind, StoreHandle],
    insert_role: str = "",
) -> pulumi.Output[StoreArns]:
    """Return where stores are, once they are known.

    Args:
        local: The cell's stores.
        central: The central stores.
        insert_role: ARN of the role to assume for inserting telemetry, when the
            central stores are in another account.
    """
    outputs: dict[str, pulumi.Output[StorePlace]] = {}
    for scope, handles in ((Scope.LOCAL, local), (Scope.CENTRAL, central)):
        for kind, handle in handles.items():
            role = insert_role if kind is StoreKind.TELEMETRY else ""
            outputs[f"{scope}/{kind}"] = place_of(handle, role)

    def collect(places: Mapping[str, StorePlace]) -> StoreArns:
        def of(scope: Scope) -> dict[StoreKind, StorePlace]:
            return {
                kind: places[f"{scope}/{kind}"]
                for kind in StoreKind
                if f"{scope}/{kind}" in places
            }

        return StoreArns(of(Scope.LOCAL), of(Scope.CENTRAL))

    if not outputs:
        return pulumi.Output.from_input(StoreArns())
    return pulumi.Output.all(**outputs).apply(collect)


def place_of(handle: StoreHandle, insert_role: str = "") -> pulumi.Output[StorePlace]:
    """Return where the store of a handle is, once it is known."""
    values: dict[str, pulumi.Input[str]] = {
        "bucket": (handle.bucket_id or "") if handle.kind in BUCKET_KINDS else "",
        "repository": handle.repository_id or "",
        "stream": handle.stream_id or "",
        "key": handle.key_id or "",
        "pull_through": "",
    }
    if handle.kind is StoreKind.REGISTRY and handle.scope is Scope.LOCAL:
        values["pull_through"] = handle.extra["pull_through_ids"]

    def make(known: Mapping[str, str]) -> StorePlace:
        return StorePlace(
            bucket=known["bucket"] or "",
            repository=known["repository"] or "",
            pull_through=tuple(filter(None, (known["pull_through"] or "").split(","))),
            stream=known["stream"] or "",
            key=known["key"] or "",
            insert_role=insert_role,
        )

    return pulumi.Output.all(**values).apply(make)


def _distinct(arns: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(arn for arn in arns if arn))
