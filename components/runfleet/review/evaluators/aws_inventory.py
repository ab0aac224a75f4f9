"""The inventory: all that records say about AWS access, as plain objects.

``aws_reader`` makes one inventory per record; :func:`merge` joins those of several
records, because a cell's roles and the central stores stand in different ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from runfleet.review.evaluators.aws_policy import (
    Policy,
    PolicyProblem,
)


@dataclass(eq=False)
class Role:
    """An IAM role with everything that decides what its sessions may do.

    Attributes:
        arn: Its ARN.
        name: Its name.
        account: 12-digit id of its account.
        urn: URN of its resource.
        trust: Its trust policy.
        policies: Its inline and attached policies.
        boundary: Its permissions boundary, or ``None``.
        max_session_s: Longest session in seconds; AWS's default is 3600.
        tags: Its tags, which become ``aws:PrincipalTag`` keys.
        unique_id: Its unique id where the record has it.
    """

    arn: str
    name: str
    account: str
    urn: str
    trust: Policy
    policies: list[Policy] = field(default_factory=list[Policy])
    boundary: Policy | None = None
    max_session_s: int = 3600
    tags: Mapping[str, str] = field(default_factory=dict[str, str])
    unique_id: str | None = None


@dataclass(frozen=True, eq=False)
class PodIdentityAssociation:
    """An EKS Pod Identity association.

    Attributes:
        urn: URN of its resource.
        cluster: Name of the cluster.
        namespace: Kubernetes namespace.
        service_account: Kubernetes service account.
        role_arn: Role that EKS assumes for the pod.
        target_role_arn: Role that is assumed from it; the pod then gets only this.
        external_id: External id that EKS uses for the target role.
        policy: Session policy that narrows the role, or ``None``.
        session_tags: Whether EKS adds session tags.
    """

    urn: str
    cluster: str
    namespace: str
    service_account: str
    role_arn: str
    target_role_arn: str | None = None
    external_id: str | None = None
    policy: Policy | None = None
    session_tags: bool = True


@dataclass(frozen=True)
class OidcProvider:
    """An IAM OpenID Connect provider.

    Attributes:
        arn: Its ARN.
        issuer: Its issuer without ``https://``.
        audiences: Client ids that it accepts.
    """

    arn: str
    issuer: str
    audiences: tuple[str, ...]


@dataclass(frozen=True)
class Cluster:
    """An EKS cluster: its name, ARN and OIDC issuer without ``https://``."""

    name: str
    arn: str
    issuer: str | None


@dataclass
class Inventory:
    """Everything about access that was read from records.

    Attributes:
        accounts: Accounts that the records deploy to.
        roles: By ARN.
        resource_policies: By ARN of the resource; a resource without a policy has
            an empty list.
        owners: Account by ARN, for resources whose ARN does not name it.
        endpoints: VPC endpoint policies by endpoint id; ``None`` is full access.
        templates: ECR policies for repositories that a registry creates by itself,
            by ARN prefix.
        registry_policies: ECR registry policies by ARN prefix of the registry.
        bucket_keys: KMS key ARN or id by bucket ARN.
        associations: All pod identity associations.
        providers: OIDC providers by ARN.
        clusters: EKS clusters by name.
        problems: Documents that AWS would refuse, and attachments to nothing.
    """

    accounts: set[str] = field(default_factory=set[str])
    roles: dict[str, Role] = field(default_factory=dict[str, Role])
    resource_policies: dict[str, list[Policy]] = field(
        default_factory=dict[str, list[Policy]]
    )
    owners: dict[str, str] = field(default_factory=dict[str, str])
    endpoints: dict[str, Policy | None] = field(
        default_factory=dict[str, Policy | None]
    )
    templates: dict[str, list[Policy]] = field(default_factory=dict[str, list[Policy]])
    registry_policies: dict[str, list[Policy]] = field(
        default_factory=dict[str, list[Policy]]
    )
    bucket_keys: dict[str, str] = field(default_factory=dict[str, str])
    associations: list[PodIdentityAssociation] = field(
        default_factory=list[PodIdentityAssociation]
    )
    providers: dict[str, OidcProvider] = field(default_factory=dict[str, OidcProvider])
    clusters: dict[str, Cluster] = field(default_factory=dict[str, Cluster])
    problems: list[PolicyProblem] = field(default_factory=list[PolicyProblem])


def merge(inventories: Iterable[Inventory]) -> Inventory:
    """Join the inventories of several records, such as a cell's and the central.

    Policies that different records put on the same resource are all kept.
    """
    whole = Inventory()
    for part in inventories:
        whole.accounts |= part.accounts
        whole.roles.update(part.roles)
        for mine, theirs in (
            (whole.resource_policies, part.resource_policies),
            (whole.templates, part.templates),
            (whole.registry_policies, part.registry_policies),
        ):
            for arn, policies in theirs.items():
                mine.setdefault(arn, []).extend(policies)
        whole.owners.update(part.owners)
        whole.endpoints.update(part.endpoints)
        whole.bucket_keys.update(part.bucket_keys)
        whole.associations.extend(part.associations)
        whole.providers.update(part.providers)
        whole.clusters.update(part.clusters)
        whole.problems.extend(part.problems)
    return whole
