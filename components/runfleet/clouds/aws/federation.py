"""GitHub's tokens as AWS identities, for jobs that run outside this cloud.

Jobs that run outside this cloud (donated machines, a vendor's own runners) have no
pod identity. They exchange the token that GitHub signs for each job
(``sts:AssumeRoleWithWebIdentity``). The token says which repository and which GitHub
environment a job belongs to and not which runner it runs on, so a role is bound to
exact subjects of an environment: never to ``pull_request``, which any fork can be,
and never with a wildcard, and the audience is compared exactly as well.

GitHub writes a subject in two forms: with names, and, for repositories that were
created, renamed or transferred since 2026-07-15, with numeric ids as well. A role
accepts both when the ids are known, so that a renamed repository keeps working and
nobody who takes the old name over gets in by it once the name form is dropped.
A ``:`` inside a value is written ``%3A`` (GitHub documentation, "OpenID Connect
reference").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pulumi
import pulumi_aws as aws

from runfleet.clouds.aws import addresses
from runfleet.clouds.aws.grants import (
    ROLE_POLICY_LIMIT,
    TRUST_POLICY_LIMIT,
    StoreArns,
    document,
    statements,
)
from runfleet.clouds.aws.identity import (
    SESSION_SECONDS,
    store_arns,
)
from runfleet.clouds.aws.tags import tags
from runfleet.clouds.protocols import StoreHandle
from runfleet.placement.plan import CentralPlan
from runfleet.spec.classes import RunnerClass
from runfleet.spec.github import FederatedRepository
from runfleet.spec.roles import Grant, Scope, StoreKind, Trust

AUDIENCE = "sts.amazonaws.com"
"""The audience that tokens for AWS are asked for (aws-actions/configure-aws-
credentials, its default)."""


@dataclass(frozen=True)
class GitHubOidcArgs:
    """What :class:`GitHubOidc` makes.

    Attributes:
        issuer: Address of the issuer of the tokens.
        tags: Its tags.
        adopt: ARN of a provider that the account has already; one issuer can be
            registered once per account.
    """

    issuer: str
    tags: Mapping[str, str] = field(default_factory=dict[str, str])
    adopt: str = ""


class GitHubOidc(pulumi.ComponentResource):
    """GitHub as an identity provider of the account.

    No thumbprint is given: AWS verifies GitHub's certificate with its own list of
    authorities (IAM user guide, "Obtain the thumbprint for an OpenID Connect identity
    provider").

    Attributes:
        arn: ARN of the provider.
        issuer: Address of the issuer.
    """

    arn: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        args: GitHubOidcArgs,
        options: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("runfleet:aws:GitHubOidc", name, None, options)
        self.issuer = args.issuer
        if args.adopt:
            self.arn = pulumi.Output.from_input(args.adopt)
        else:
            self.arn = aws.iam.OpenIdConnectProvider(
                f"{name}-provider",
                url=args.issuer,
                client_id_lists=[AUDIENCE],
                tags=args.tags,
                opts=pulumi.ResourceOptions(parent=self),
            ).arn
        self.register_outputs({"arn": self.arn})


@dataclass(frozen=True)
class FederatedIdentityArgs:
    """What :class:`FederatedIdentity` makes.

    Attributes:
        class_name: Name of the runner class.
        role_name: Name of the role.
        grants: Its central grants.
        trust: What code may run on it.
        subjects: Exact subjects whose tokens are accepted.
        provider_arn: ARN of the identity provider.
        issuer: Address of the issuer.
        stores: Where the stores are.
        boundary: ARN of the permissions boundary.
        tags: Its tags.
    """

    class_name: str
    role_name: str
    grants: frozenset[Grant]
    trust: Trust
    subjects: tuple[str, ...]
    provider_arn: pulumi.Input[str]
    issuer: str
    stores: pulumi.Input[StoreArns]
    boundary: pulumi.Input[str]
    tags: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def from_plan(
        cls,
        plan: CentralPlan,
        runner_class: RunnerClass,
        provider_arn: pulumi.Input[str],
        boundary: pulumi.Input[str],
        central: Mapping[StoreKind, StoreHandle],
    ) -> FederatedIdentityArgs:
        """Take the identity of an external class.

        Args:
            plan: The stack ``central``.
            runner_class: A class with a ``federation`` environment.
            provider_arn: ARN of the identity provider.
            boundary: ARN of the permissions boundary of federated identities.
            central: The central stores.

        Raises:
            ValueError: The class names no environment.
        """
        if not runner_class.federation:
            raise ValueError(f"class {runner_class.name} names no GitHub environment")
        github = plan.fleet.github
        return cls(
            class_name=runner_class.name,
            role_name=addresses.federated_role(plan.fleet.project, runner_class),
            grants=addresses.effective(runner_class.granted(), plan.fleet, local=False),
            trust=runner_class.trust,
            subjects=subjects(github.federation, runner_class.federation),
            provider_arn=provider_arn,
            issuer=github.oidc_issuer,
            stores=store_arns({}, central),
            boundary=boundary,
            tags=tags(plan.fleet.labels_for(plan.stack, None, runner_class)),
        )


class FederatedIdentity(pulumi.ComponentResource):
    """The identity of a class that runs outside this cloud: its central grants only.

    Attributes:
        identity_id: ARN of the role.
    """

    identity_id: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        args: FederatedIdentityArgs,
        options: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Make the identity.

        Raises:
            ValueError: The class has no central grants, has local ones, or no subject
                may use it.
        """
        if not args.grants:
            raise ValueError(
                f"class {args.class_name} has no grants on central stores, so it gets "
                "no federated identity"
            )
        if any(grant.scope is Scope.LOCAL for grant in args.grants):
            raise ValueError(f"class {args.class_name} has no local stores out there")
        accepted = exact(args.subjects)
        super().__init__("runfleet:aws:FederatedIdentity", name, None, options)
        stores: pulumi.Output[StoreArns] = pulumi.Output.from_input(args.stores)
        role = web_identity_role(
            name,
            args.role_name,
            f"Jobs of runner class {args.class_name}, outside this cloud",
            pulumi.Output.from_input(args.provider_arn).apply(
                lambda arn: web_identity_trust(arn, accepted, args.issuer)
            ),
            args.boundary,
            args.tags,
            self,
        )
        aws.iam.RolePolicy(
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
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.identity_id = role.arn
        self.register_outputs({"identity_id": self.identity_id})


def subjects(
    repositories: Sequence[FederatedRepository], environment: str
) -> tuple[str, ...]:
    """Return the exact subjects of an environment's jobs, in every form known.

    Args:
        repositories: The repositories.
        environment: The GitHub environment.
    """
    tail = f"environment:{environment.replace(':', '%3A')}"
    found: list[str] = []
    for known in repositories:
        owner, _, repository = known.repository.partition("/")
        found.append(f"repo:{owner}/{repository}:{tail}")
        if known.owner_id is not None and known.repository_id is not None:
            ids = f"{owner}@{known.owner_id}/{repository}@{known.repository_id}"
            found.append(f"repo:{ids}:{tail}")
    return tuple(found)


def web_identity_trust(provider: str, accepted: Sequence[str], issuer: str) -> str:
    """Return the trust policy of a role for jobs with exact subjects.

    Args:
        provider: ARN of the identity provider.
        accepted: The subjects, checked by :func:`exact`.
        issuer: Address of the issuer.
    """
    host = issuer.removeprefix("https://")
    trusted = {
        "Sid": "ExactSubjects",
        "Effect": "Allow",
        "Principal": {"Federated": provider},
        "Action": ["sts:AssumeRoleWithWebIdentity"],
        "Condition": {
            "StringEquals": {
                f"{host}:aud": AUDIENCE,
                f"{host}:sub": list(exact(accepted)),
            }
        },
    }
    return document([trusted], TRUST_POLICY_LIMIT, "federated subjects")


def exact(accepted: Sequence[str]) -> tuple[str, ...]:
    """Return subjects that are all of one environment each, and nothing wider.

    Raises:
        ValueError: There is none, or one is a pattern or not bound to an environment.
    """
    if not accepted:
        raise ValueError(
            "no repository is trusted: name one in `github.federation` of the fleet "
            "file"
        )
    wide = [s for s in accepted if "*" in s or "?" in s or ":environment:" not in s]
    if wide:
        raise ValueError(f"not bound to an environment by exact name: {wide}")
    return tuple(accepted)


def web_identity_role(
    name: str,
    role_name: str,
    description: str,
    trust: pulumi.Input[str],
    boundary: pulumi.Input[str] | None,
    labels: Mapping[str, str],
    parent: pulumi.Resource,
) -> aws.iam.Role:
    """Make a role that tokens of GitHub are exchanged for, for one hour at most."""
    return aws.iam.Role(
        f"{name}-role",
        name=role_name,
        description=description,
        assume_role_policy=trust,
        max_session_duration=SESSION_SECONDS,
        permissions_boundary=boundary,
        tags=labels,
        opts=pulumi.ResourceOptions(parent=parent),
    )
