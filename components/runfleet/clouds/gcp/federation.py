"""GitHub's tokens as Google identities, for jobs that run outside this cloud.

Jobs on donated machines or a vendor's own runners have no pod identity. They exchange
the token that GitHub signs for each job at a workload identity pool, and then act as
the service account of their class. Two doors must both open:

* the pool's provider takes tokens of the known repositories only, by the numeric ids
  of owner and repository: a name can be given up and taken by somebody else (IAM
  documentation, "Configure Workload Identity Federation with deployment pipelines").
  A repository whose ids the fleet file does not give is known by its name;
* the service account is bound to exact subjects, each with a GitHub environment: never
  to a whole pool, a repository or ``pull_request``, which any fork can be.

GitHub writes a subject in two forms: with names, and, for repositories that were
created, renamed or transferred since 2026-07-15, with ids as well; both are bound when
the ids are known. A ``:`` inside a value is written ``%3A`` (GitHub documentation,
"OpenID Connect reference").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_gcp as gcp

from runfleet.clouds.gcp import addresses
from runfleet.clouds.gcp.addresses import Project
from runfleet.clouds.gcp.bindings import Handles, by_scope, make_bindings
from runfleet.clouds.gcp.grants import Binding, bindings
from runfleet.clouds.gcp.identity import MAY_ACT_AS, make_account
from runfleet.clouds.gcp.names import WORKLOAD_POOL
from runfleet.clouds.protocols import StoreHandle
from runfleet.errors import InputError, Problem
from runfleet.placement.plan import CentralPlan
from runfleet.spec.classes import RunnerClass
from runfleet.spec.fleet import Fleet
from runfleet.spec.github import FederatedRepository
from runfleet.spec.roles import Scope, StoreKind

PROVIDER = "github"
"""Id of the provider in the pool."""

MAPPING: Mapping[str, str] = {
    "google.subject": "assertion.sub",
    "attribute.repository_owner_id": "assertion.repository_owner_id",
    "attribute.repository_id": "assertion.repository_id",
}
"""Claims that become attributes of the principal."""


@dataclass(frozen=True)
class GitHubPoolArgs:
    """What :class:`GitHubPool` makes.

    Attributes:
        pool: Id of the workload identity pool.
        project: Its project.
        issuer: Address of the issuer of the tokens.
        condition: Which tokens are taken.
    """

    pool: str
    project: Project
    issuer: str
    condition: str

    @classmethod
    def from_plan(
        cls, plan: CentralPlan, more: Sequence[FederatedRepository] = ()
    ) -> GitHubPoolArgs:
        """Take the pool of a fleet.

        Args:
            plan: The stack ``central``.
            more: Repositories beside those of ``github.federation``.

        Raises:
            InputError: No repository is known, or the project is not.
        """
        github = plan.fleet.github
        known = [*github.federation]
        known += [r for r in more if r.repository not in {k.repository for k in known}]
        return cls(
            pool=WORKLOAD_POOL.encode("github", plan.fleet.project),
            project=addresses.plan_site(plan).project,
            issuer=github.oidc_issuer,
            condition=token_condition(known),
        )


class GitHubPool(pulumi.ComponentResource):
    """GitHub as an identity provider of the project.

    Attributes:
        provider_name: Resource name of the provider, which workflows name.
        principal: What the identifiers of its principals begin with.
    """

    provider_name: pulumi.Output[str]
    principal: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        args: GitHubPoolArgs,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Make the pool and its one provider."""
        super().__init__("runfleet:gcp:GitHubPool", name, None, opts)
        own = pulumi.ResourceOptions(parent=self)
        pool = gcp.iam.WorkloadIdentityPool(
            f"{name}-pool",
            workload_identity_pool_id=args.pool,
            project=args.project.id,
            display_name="GitHub Actions",
            description="Jobs of GitHub Actions, by repository and environment",
            opts=own,
        )
        provider = gcp.iam.WorkloadIdentityPoolProvider(
            f"{name}-provider",
            workload_identity_pool_id=pool.workload_identity_pool_id,
            workload_identity_pool_provider_id=PROVIDER,
            project=args.project.id,
            display_name="GitHub Actions",
            attribute_mapping=MAPPING,
            attribute_condition=args.condition,
            oidc={"issuer_uri": args.issuer},
            opts=own,
        )
        where = f"projects/{args.project.number}/locations/global"
        self.provider_name = pulumi.Output.all(
            pool.workload_identity_pool_id, provider.workload_identity_pool_provider_id
        ).apply(
            lambda ids: f"{where}/workloadIdentityPools/{ids[0]}/providers/{ids[1]}"
        )
        self.principal = pool.workload_identity_pool_id.apply(
            args.project.pool_principal
        )
        self.register_outputs(
            {"provider_name": self.provider_name, "principal": self.principal}
        )


@dataclass(frozen=True)
class FederatedIdentityArgs:
    """What :class:`FederatedIdentity` makes.

    Attributes:
        class_name: Name of the runner class.
        account: Id of the service account.
        project: Its project.
        subjects: Exact subjects whose tokens are accepted.
        principal: What the identifiers of the pool's principals begin with.
        bindings: What it may do with which central store.
        handles: The central stores.
    """

    class_name: str
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
        runner_class: RunnerClass,
        principal: pulumi.Input[str],
        central: Mapping[StoreKind, StoreHandle],
    ) -> FederatedIdentityArgs:
        """Take the identity of an external class.

        Args:
            plan: The stack ``central``.
            runner_class: A class with a ``federation`` environment.
            principal: What the identifiers of the pool's principals begin with.
            central: The central stores.

        Raises:
            ValueError: The class names no environment.
        """
        if not runner_class.federation:
            raise ValueError(f"class {runner_class.name} names no GitHub environment")
        fleet = plan.fleet
        granted = addresses.effective(runner_class.granted(), fleet, local=False)
        return cls(
            class_name=runner_class.name,
            account=addresses.federated_account(fleet.project, runner_class),
            project=addresses.plan_site(plan).project,
            subjects=subjects(fleet.github.federation, runner_class.federation),
            principal=principal,
            bindings=bindings(
                granted, runner_class.trust, addresses.places(fleet, None)
            ),
            handles=by_scope({}, central),
        )


class FederatedIdentity(pulumi.ComponentResource):
    """The identity of a class that runs outside this cloud: its central grants only.

    Attributes:
        identity_id: Address of the service account.
    """

    identity_id: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        args: FederatedIdentityArgs,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Make the identity.

        Raises:
            ValueError: The class has no central grants, has local ones, or no subject
                may use it.
        """
        if not args.bindings:
            raise ValueError(
                f"class {args.class_name} has no grants on central stores, so it gets "
                "no federated identity"
            )
        if any(binding.scope is Scope.LOCAL for binding in args.bindings):
            raise ValueError(f"class {args.class_name} has no local stores out there")
        accepted = exact(args.subjects)
        super().__init__("runfleet:gcp:FederatedIdentity", name, None, opts)
        account = make_account(
            name,
            args.account,
            args.project,
            f"Jobs of runner class {args.class_name}, outside this cloud",
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


def bind_subjects(
    name: str,
    account: gcp.serviceaccount.Account,
    principal: pulumi.Input[str],
    accepted: Sequence[str],
    parent: pulumi.Resource,
) -> None:
    """Let jobs with exact subjects act as a service account.

    Args:
        name: What the names of the resources begin with.
        account: The service account.
        principal: What the identifiers of the pool's principals begin with.
        accepted: The subjects.
        parent: The component that they belong to.
    """
    for number, subject in enumerate(accepted):
        gcp.serviceaccount.IAMMember(
            f"{name}-subject-{number}",
            service_account_id=account.name,
            role=MAY_ACT_AS,
            member=pulumi.Output.concat(principal, "/subject/", subject),
            opts=pulumi.ResourceOptions(parent=parent),
        )


def token_condition(repositories: Sequence[FederatedRepository]) -> str:
    """Return which tokens the provider takes: those of known repositories.

    Raises:
        InputError: There is no repository.
    """
    if not repositories:
        message = "no repository is trusted: name one"
        raise InputError([Problem("fleet file", 0, "github.federation", message)])
    found: list[str] = []
    for known in repositories:
        if known.owner_id is not None and known.repository_id is not None:
            found.append(
                f'(assertion.repository_owner_id == "{known.owner_id}" && '
                f'assertion.repository_id == "{known.repository_id}")'
            )
        else:
            found.append(f'assertion.repository == "{known.repository}"')
    return " || ".join(found)


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


def exact(accepted: Sequence[str]) -> tuple[str, ...]:
    """Return subjects that are all of one environment each, and nothing wider.

    Raises:
        InputError: There is none.
        ValueError: One is a pattern, not bound to an environment, or longer than a
            subject of Google may be (127 bytes).
    """
    if not accepted:
        message = "no repository is trusted: name one"
        raise InputError([Problem("fleet file", 0, "github.federation", message)])
    wrong = [
        subject
        for subject in accepted
        if "*" in subject or ":environment:" not in subject or len(subject) > 127
    ]
    if wrong:
        raise ValueError(f"not bound to an environment by exact name: {wrong}")
    return tuple(accepted)


def repository_of(fleet: Fleet, repository: str) -> FederatedRepository:
    """Return what the fleet file knows of a repository."""
    return next(
        (r for r in fleet.github.federation if r.repository == repository),
        FederatedRepository(repository=repository),
    )
