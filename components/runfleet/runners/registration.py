"""GitHub's runner groups: which repositories and workflows may use which runners.

A runner group is the boundary of who may send jobs to a scale set, so it is made by
code, once, in stack ``central``. Visibility is always ``selected``. GitHub wants the
numeric ids of repositories; the fleet file gives them under ``github.federation``.
A repository whose id is not known there is left out and reported: the group then
serves fewer repositories than wanted, never more.

Groups of trust ``release`` are always restricted to their workflows, each named with
its ref; without any, nothing can use them. GitHub offers that restriction to
organisations on an Enterprise plan only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_github as github

from runfleet.placement.plan import CentralPlan
from runfleet.spec.github import GitHub, RunnerGroup
from runfleet.spec.roles import Trust


@dataclass(frozen=True)
class Registration:
    """What one runner group allows.

    Attributes:
        name: Name of the group.
        repository_ids: Numeric ids of the repositories that may use it.
        public: Whether public repositories may be among them.
        workflows: Workflows that alone may use it.
        restricted: Whether only these workflows may use it.
        unresolved: What is wanted and cannot be said to GitHub, one sentence each.
    """

    name: str
    repository_ids: tuple[int, ...]
    public: bool
    workflows: tuple[str, ...]
    restricted: bool
    unresolved: tuple[str, ...]


def registration(group: RunnerGroup, settings: GitHub) -> Registration:
    """Return what a runner group allows."""
    ids = {
        repository.repository.lower(): repository.repository_id
        for repository in settings.federation
    }
    unresolved = [
        f"runner group {group.name}: the numeric id of {repository} is not known; "
        "give it as repository_id under github.federation"
        for repository in group.repositories
        if ids.get(repository.lower()) is None
    ]
    pinned = tuple(w for w in group.workflows if _pinned(w))
    unresolved += [
        f"runner group {group.name}: workflow {workflow} names no ref"
        for workflow in group.workflows
        if workflow not in pinned
    ]
    release = group.trust is Trust.RELEASE
    if release and not pinned:
        unresolved.append(
            f"runner group {group.name}: no workflow may use it until one is listed"
        )
    found = (ids.get(repository.lower()) for repository in group.repositories)
    return Registration(
        name=group.name,
        repository_ids=tuple(sorted({i for i in found if i is not None})),
        public=group.public,
        workflows=pinned,
        restricted=release or bool(group.workflows),
        unresolved=tuple(unresolved),
    )


@dataclass(frozen=True)
class RunnerGroupsArgs:
    """What the runner groups are made from.

    Attributes:
        plan: The plan of the stack ``central``.
    """

    plan: CentralPlan


class RunnerGroups(pulumi.ComponentResource):
    """The runner groups of the fleet's GitHub organisation.

    The options carry the explicit GitHub provider.

    Attributes:
        group_ids: Id of each group, by name.
        unresolved: What could not be said to GitHub, one sentence each.
    """

    group_ids: pulumi.Output[Mapping[str, str]]
    unresolved: Sequence[str]

    def __init__(
        self,
        name: str,
        args: RunnerGroupsArgs,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Make one runner group per entry of ``github.runner_groups``."""
        super().__init__("runfleet:runners:RunnerGroups", name, None, opts)
        settings = args.plan.fleet.github
        wanted = [registration(g, settings) for g in settings.runner_groups.values()]
        groups = {
            group.name: github.ActionsRunnerGroup(
                f"{name}-{group.name}",
                name=group.name,
                visibility="selected",
                selected_repository_ids=list(group.repository_ids),
                allows_public_repositories=group.public,
                restricted_to_workflows=group.restricted,
                selected_workflows=list(group.workflows),
                opts=pulumi.ResourceOptions(parent=self),
            )
            for group in wanted
        }
        self.group_ids = pulumi.Output.all(
            **{name: group.id for name, group in groups.items()}
        ).apply(lambda ids: {str(key): str(value) for key, value in ids.items()})
        self.unresolved = [text for group in wanted for text in group.unresolved]
        self.register_outputs(
            {"group_ids": self.group_ids, "unresolved": self.unresolved}
        )


def _pinned(workflow: str) -> bool:
    """Say whether a workflow is named with its ref: ``owner/repo/path@ref``."""
    path, _, ref = workflow.partition("@")
    return bool(path and ref)
