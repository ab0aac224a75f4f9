"""GitHub's tokens as Azure identities, for jobs that run outside this cloud.

Jobs on donated machines or a vendor's own runners exchange the token that GitHub signs
for each job. The token says which repository and which GitHub environment a job belongs
to, so an identity takes exact subjects of one environment: never ``pull_request``,
which any fork can be, and never a pattern.

GitHub writes a subject in two forms: with names, and, for repositories that were
created, renamed or transferred since 2026-07-15, with numeric ids as well. Both are
taken when the ids are known. A ``:`` inside a value is written ``%3A`` (GitHub
documentation, "OpenID Connect reference"). Twenty credentials fit on an identity, so
ten repositories with ids, or twenty without.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
from pulumi_azure_native import managedidentity

from runfleet.clouds.azure import names
from runfleet.clouds.azure.grants import Assignment, assignments
from runfleet.clouds.azure.identity import assign_grants, credentials
from runfleet.clouds.azure.places import Place, effective, place_of
from runfleet.clouds.azure.tags import with_labels
from runfleet.clouds.protocols import StoreHandle
from runfleet.placement.plan import CentralPlan
from runfleet.spec.classes import RunnerClass
from runfleet.spec.github import FederatedRepository
from runfleet.spec.roles import Scope, StoreKind


@dataclass(frozen=True)
class FederatedIdentityArgs:
    """What :class:`FederatedIdentity` makes.

    Attributes:
        place: Where the central stores are.
        class_name: Name of the runner class.
        subjects: Exact subjects whose tokens are accepted.
        issuer: Address of the issuer.
        group: Name of the resource group.
        assignments: What it needs.
        central: The central stores.
        labels: The required labels of the class.
    """

    place: Place
    class_name: str
    subjects: tuple[str, ...]
    issuer: str
    group: pulumi.Input[str]
    assignments: Sequence[Assignment]
    central: Mapping[StoreKind, StoreHandle]
    labels: Mapping[str, str]

    @classmethod
    def from_plan(
        cls,
        plan: CentralPlan,
        runner_class: RunnerClass,
        group: pulumi.Input[str],
        central: Mapping[StoreKind, StoreHandle],
    ) -> FederatedIdentityArgs:
        """Take the identity of an external class.

        Args:
            plan: The stack ``central``.
            runner_class: A class with a ``federation`` environment.
            group: Name of the resource group.
            central: The central stores.

        Raises:
            ValueError: The class names no environment.
        """
        if not runner_class.federation:
            raise ValueError(f"class {runner_class.name} names no GitHub environment")
        github = plan.fleet.github
        granted = effective(runner_class.granted(), plan.fleet, local=False)
        return cls(
            place=place_of(plan),
            class_name=runner_class.name,
            subjects=subjects(github.federation, runner_class.federation),
            issuer=github.oidc_issuer,
            group=group,
            assignments=assignments(granted, runner_class.trust),
            central=central,
            labels=plan.fleet.labels_for(plan.stack, None, runner_class),
        )


class FederatedIdentity(pulumi.ComponentResource):
    """The identity of a class that runs outside this cloud: its central grants only.

    Attributes:
        identity_id: Resource id of the identity.
    """

    identity_id: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        args: FederatedIdentityArgs,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Make the identity.

        Args:
            name: Name of the component; children are called ``<name>-<suffix>``.
            args: What it is made from.
            opts: Options; the explicit provider comes with them.

        Raises:
            ValueError: The class has no central grants, or no subject may use it.
        """
        if not args.assignments:
            raise ValueError(
                f"class {args.class_name} has no grants on central stores, so it gets "
                "no federated identity"
            )
        accepted = exact(args.subjects)
        options = with_labels(opts, args.labels)
        super().__init__("runfleet:azure:FederatedIdentity", name, None, options)
        here = pulumi.ResourceOptions(parent=self)
        identity = managedidentity.UserAssignedIdentity(
            f"{name}-identity",
            resource_name_=names.IDENTITY.encode(
                args.place.name, "federated", args.class_name
            ),
            resource_group_name=args.group,
            location=args.place.region,
            opts=here,
        )
        credentials(name, identity, args.group, args.issuer, by_name(accepted), here)
        assign_grants(
            name,
            args.place,
            identity.principal_id,
            args.assignments,
            {Scope.CENTRAL: args.central},
            here,
        )
        self.identity_id = identity.id
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


def by_name(accepted: Sequence[str]) -> dict[str, str]:
    """Return subjects by a name that stays theirs when others come and go."""
    found: dict[str, str] = {}
    for subject in accepted:
        repository = subject.split(":")[1]
        plain = re.sub(r"[^a-z0-9]+", "-", repository.lower()).strip("-")
        form = "ids" if "@" in repository else "names"
        found[f"{form}-{plain}"[:60].rstrip("-")] = subject
    if len(found) != len(accepted):
        return {f"subject-{names.guid(subject)}": subject for subject in accepted}
    return found
