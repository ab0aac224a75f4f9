"""GitHub: who may use the runners, and what workflows may do by default."""

from __future__ import annotations

import re
from collections.abc import Iterator

from runfleet.spec.findings import Severity
from runfleet_policies.kube import matches_any, scale_sets
from runfleet_policies.rule import Breach, Context, Parameter, Rule, guarded
from runfleet_policies.view import ResourceView, StackView

GROUPS = (
    "github:index/actionsRunnerGroup:ActionsRunnerGroup",
    "github:index/enterpriseActionsRunnerGroup:EnterpriseActionsRunnerGroup",
)

_WORKFLOW = re.compile(
    r"^[^/]+/[^/]+/\.github/workflows/[^@*?]+\.ya?ml(?:@(?P<ref>.+))?$"
)
_COMMIT = re.compile(r"^[0-9a-f]{40}$")


def rules() -> tuple[Rule, ...]:
    """Return the rules about GitHub."""
    return (
        Rule(
            id="R-GH-01",
            severity=Severity.HIGH,
            title="Runner groups list the repositories that may use them",
            rationale="A group that is open to all repositories, or to public ones, "
            "lets anybody who can open a pull request run code on its runners.",
            fix="set visibility selected with repository ids; record the approval "
            "policy for outside collaborators in the waiver for a public one",
            anchors=("S22", "S24", "S27", "S29"),
            types=GROUPS,
            resource=_visibility,
        ),
        Rule(
            id="R-GH-02",
            severity=Severity.CRITICAL,
            title="Release groups take named workflows at a protected ref only",
            rationale="Whoever can add a workflow to an allowed repository could "
            "otherwise publish with the release runners.",
            fix="set restrictedToWorkflows with owner/repo/.github/workflows/x.yml@"
            "refs/heads/main",
            anchors=("S28", "S27", "CIS 2.2.3", "SLSA L3"),
            stack=_restricted,
            parameters=(
                Parameter(
                    "groups",
                    ["*release*", "*publish*"],
                    "Names of groups with more rights, as shell patterns.",
                ),
                Parameter(
                    "refs",
                    [
                        "refs/heads/main",
                        "refs/heads/master",
                        "refs/heads/release/*",
                        "refs/tags/v*",
                    ],
                    "Refs that are protected, as shell patterns.",
                ),
            ),
        ),
        Rule(
            id="R-GH-03",
            severity=Severity.MEDIUM,
            title="The workflows' GITHUB_TOKEN is read-only by default",
            rationale="A workflow that needs to write says so; all others cannot be "
            "used to push.",
            fix="set defaultWorkflowPermissions to read",
            anchors=("S17", "S32"),
            types=(
                "github:index/actionsOrganizationWorkflowPermissions:"
                "ActionsOrganizationWorkflowPermissions",
                "github:index/workflowRepositoryPermissions:"
                "WorkflowRepositoryPermissions",
            ),
            resource=_token,
        ),
    )


def _visibility(group: ResourceView, context: Context) -> Iterator[Breach]:
    found = group.text("visibility", default="all")
    if found != "selected":
        yield Breach(f"visibility is {found}", "visibility")
    if group.truth("allowsPublicRepositories", default=False):
        why = "public repositories may use it"
        yield Breach(why, "allowsPublicRepositories")


def _restricted(stack: StackView, context: Context) -> Iterator[Breach]:
    release = {
        str(found.values.get("runnerGroup"))
        for found in scale_sets(stack)
        if found.label("ci_trust") == "release"
    }
    for group in stack.of(*GROUPS):
        yield from guarded(_workflows(group, context, release), group.urn)


def _workflows(
    group: ResourceView, context: Context, release: set[str]
) -> Iterator[Breach]:
    name = group.text("name", default=group.name)
    restricted = group.truth("restrictedToWorkflows", default=False)
    more = matches_any(name, context.strings("groups")) or name in release
    if more and not restricted:
        why = f"any workflow may use {name}"
        yield Breach(why, "restrictedToWorkflows", urn=group.urn)
    if not restricted:
        return
    workflows = group.texts("selectedWorkflows")
    if more and not workflows:
        why = f"{name} is restricted and lists no workflow"
        yield Breach(why, "selectedWorkflows", urn=group.urn)
    for workflow in workflows:
        why = _unprotected(workflow, context.strings("refs"))
        if why:
            yield Breach(why, "selectedWorkflows", urn=group.urn)


def _unprotected(workflow: str, refs: list[str]) -> str:
    match = _WORKFLOW.match(workflow)
    if match is None:
        return f"{workflow} is not owner/repo/.github/workflows/file.yml@ref"
    ref = match["ref"] or ""
    if not ref:
        return f"{workflow} names no ref"
    if _COMMIT.match(ref) or ("*" not in ref and matches_any(ref, refs)):
        return ""
    return f"{workflow}: {ref} is not a protected ref"


def _token(setting: ResourceView, context: Context) -> Iterator[Breach]:
    found = setting.text("defaultWorkflowPermissions", default="read")
    if found != "read":
        why = f"defaultWorkflowPermissions is {found}"
        yield Breach(why, "defaultWorkflowPermissions")
    if setting.truth("canApprovePullRequestReviews", default=False):
        why = "workflows may approve pull requests"
        yield Breach(why, "canApprovePullRequestReviews")
