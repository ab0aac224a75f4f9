"""The GitHub side of a fleet: organisation, App, runner groups, federation."""

from __future__ import annotations

from pydantic import Field, StrictBool, StrictInt

from runfleet.spec.base import Named, Repository, Spec
from runfleet.spec.roles import Trust


class AppSecret(Spec):
    """The GitHub App's key, by reference only: the key itself is never in a file."""

    secret: str = Field(
        description="Name of the secret in the cell's secret manager that holds "
        "github_app_id, github_app_installation_id and github_app_private_key."
    )
    trust: Trust = Field(
        default=Trust.UNTRUSTED_PR,
        description="The trust level that this App registers runners for.",
    )


class RunnerGroup(Named):
    """A GitHub runner group: who may use the runners that register in it."""

    repositories: list[Repository] = Field(
        default_factory=list[str],
        description="Repositories that may use the group; visibility is `selected`.",
    )
    public: StrictBool = Field(
        default=False,
        description="Whether public repositories may use it (needs an approval "
        "policy for outside collaborators).",
    )
    workflows: list[str] = Field(
        default_factory=list[str],
        description="Workflows that alone may use it, as "
        "owner/repo/.github/workflows/file.yml@ref; empty means all.",
    )
    trust: Trust = Field(
        default=Trust.UNTRUSTED_PR, description="Trust level of its classes."
    )


class FederatedRepository(Spec):
    """A repository whose workflows may get cloud credentials through OIDC."""

    repository: Repository = Field(description="As owner/name.")
    owner_id: StrictInt | None = Field(
        default=None,
        description="Numeric id of the owner, for the immutable subject form.",
    )
    repository_id: StrictInt | None = Field(
        default=None,
        description="Numeric id of the repository, for the immutable subject form.",
    )


class GitHub(Spec):
    """The organisation that the fleet's runners serve."""

    organization: str = Field(description="Organisation login, such as pytorch.")
    url: str = Field(
        default="https://github.com", description="Base address of the GitHub server."
    )
    oidc_issuer: str = Field(
        default="https://token.actions.githubusercontent.com",
        description="Issuer of the workflow tokens.",
    )
    apps: dict[str, AppSecret] = Field(
        default_factory=dict[str, AppSecret],
        description="GitHub Apps by name, one per trust level.",
    )
    runner_groups: dict[str, RunnerGroup] = Field(
        default_factory=dict[str, RunnerGroup], description="Runner groups by name."
    )
    federation: list[FederatedRepository] = Field(
        default_factory=list[FederatedRepository],
        description="Repositories that jobs outside the stores' cloud come from.",
    )

    @property
    def organization_url(self) -> str:
        """The address that scale sets register at."""
        return f"{self.url}/{self.organization}"

    def app_for(self, trust: Trust) -> AppSecret | None:
        """Return the App that registers runners of a trust level."""
        return next((app for app in self.apps.values() if app.trust == trust), None)
