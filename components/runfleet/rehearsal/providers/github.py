"""Derived ids and outputs of the GitHub provider (pulumi-github 6).

Most GitHub objects have a decimal id; repositories and environments are named by
their path. Source of the shapes: the provider's documentation at
https://www.pulumi.com/registry/packages/github/.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runfleet.rehearsal.providers.subject import Derived, Subject

_API = "https://api.github.com"


def derive(subject: Subject) -> Derived:
    """Derive id and computed outputs of one GitHub resource."""
    kind = subject.type.rpartition(":")[2]
    number = int(subject.digits(9))
    owner = subject.provider.get("owner")
    organisation = owner if isinstance(owner, str) else "organization"
    etag = {"etag": f'W/"{subject.digest(64, "etag")}"'}
    if kind == "Repository":
        name = subject.physical_name()
        full = f"{organisation}/{name}"
        return Derived(
            subject.read_id or name,
            {
                "name": name,
                "fullName": full,
                "htmlUrl": f"https://github.com/{full}",
                "gitCloneUrl": f"git://github.com/{full}.git",
                "httpCloneUrl": f"https://github.com/{full}.git",
                "sshCloneUrl": f"git@github.com:{full}.git",
                "nodeId": f"R_{subject.digest(16, 'node')}",
                "repoId": number,
                **etag,
            },
        )
    if kind == "ActionsRunnerGroup":
        groups = f"{_API}/orgs/{organisation}/actions/runner-groups/{number}"
        return Derived(
            subject.read_id or str(number),
            {
                "name": subject.physical_name(),
                "default": False,
                "inherited": False,
                "runnersUrl": f"{groups}/runners",
                "selectedRepositoriesUrl": f"{groups}/repositories",
                **etag,
            },
        )
    if kind == "RepositoryEnvironment":
        repository = subject.text("repository")
        environment = subject.text("environment")
        return Derived(f"{repository}:{environment}", {})
    if kind in ("ActionsSecret", "ActionsVariable"):
        key = "secretName" if kind == "ActionsSecret" else "variableName"
        return Derived(f"{subject.text('repository')}:{subject.text(key)}", {})
    if kind in ("ActionsOrganizationSecret", "ActionsOrganizationVariable"):
        key = "secretName" if kind.endswith("Secret") else "variableName"
        return Derived(subject.text(key) or subject.name, {})
    if kind == "Team":
        return Derived(
            subject.read_id or str(number),
            {"slug": subject.physical_name().lower().replace(" ", "-"), **etag},
        )
    return Derived(subject.read_id or str(number), {})


def invoke(token: str, args: Mapping[str, Any], provider: Mapping[str, Any]) -> Any:
    """Answer no function: only GitHub knows."""
    del token, args, provider
