"""DeployAccount: the identity that runs ``pulumi up`` for Google Cloud stacks.

It is used by the ``up`` workflow of one repository, in one GitHub environment. A
subject names an environment or a branch, never both, so the branch is held by the
environment: restrict its deployment branches to the protected one and ask for
approval there (GitHub documentation, "Managing environments for deployment").

It is no owner and no editor. It has the administrator role of each service that the
stacks use, in the fleet's projects, and each cell's stack lets it act as the machines'
service account, because making a node pool asks for that. What it may give away in a
project is bound: it can give and take the roles in :data:`GIVES` and no other, and on
service accounts those in :data:`LENDS`, so it cannot make itself or a job an
administrator (IAM documentation, "Set limits on
granting roles"). Organisation policies and budgets are above a project: those roles
are given by hand.

What stays is in the nature of the work: it writes the allow policies of stores, so
whoever may change the fleet decides who reaches them. It is made
once by an administrator, in stack ``central``: it cannot make itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_gcp as gcp

from runfleet.clouds.gcp import addresses
from runfleet.clouds.gcp.addresses import Project
from runfleet.clouds.gcp.cluster import NODE_ROLES
from runfleet.clouds.gcp.federation import bind_subjects, exact, subjects
from runfleet.clouds.gcp.identity import make_account
from runfleet.placement.plan import CentralPlan
from runfleet.spec.cells import Provider
from runfleet.spec.github import FederatedRepository

ROLES: tuple[str, ...] = (
    "roles/artifactregistry.admin",
    "roles/cloudkms.admin",
    "roles/compute.networkAdmin",
    "roles/compute.securityAdmin",
    "roles/container.admin",
    "roles/dns.admin",
    "roles/iam.roleAdmin",
    "roles/iam.workloadIdentityPoolAdmin",
    "roles/monitoring.notificationChannelEditor",
    "roles/pubsub.admin",
    "roles/secretmanager.admin",
    "roles/serviceusage.serviceUsageAdmin",
    "roles/storage.admin",
)
"""What the stacks' resources need, by service (IAM roles reference)."""

GIVES: tuple[str, ...] = (*NODE_ROLES, "roles/container.clusterViewer")
"""The roles that the stacks give in a project."""

LENDS: tuple[str, ...] = (
    "roles/iam.serviceAccountUser",
    "roles/iam.workloadIdentityUser",
)
"""The roles that the stacks give on service accounts."""

LIMITED: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "gives": ("roles/resourcemanager.projectIamAdmin", GIVES),
    "lends": ("roles/iam.serviceAccountAdmin", LENDS),
}
"""Roles that are held under a condition, with the roles that may be given by them."""


@dataclass(frozen=True)
class DeployAccountArgs:
    """What :class:`DeployAccount` makes.

    Attributes:
        account: Id of the service account.
        project: Its project.
        projects: Ids of all projects that it deploys to.
        subjects: Exact subjects whose tokens are accepted.
        principal: What the identifiers of the pool's principals begin with.
    """

    account: str
    project: Project
    projects: Sequence[str]
    subjects: tuple[str, ...]
    principal: pulumi.Input[str]

    @classmethod
    def from_plan(
        cls,
        plan: CentralPlan,
        repository: FederatedRepository,
        environment: str,
        principal: pulumi.Input[str],
    ) -> DeployAccountArgs:
        """Take the deployment's identity of a fleet.

        Args:
            plan: The stack ``central``.
            repository: Repository of the ``up`` workflow.
            environment: GitHub environment that it runs in.
            principal: What the identifiers of the pool's principals begin with.
        """
        fleet, project = plan.fleet, addresses.plan_site(plan).project
        cells = [c for c in fleet.cells.values() if c.provider is Provider.GCP]
        return cls(
            account=addresses.deploy_account(fleet.project),
            project=project,
            projects=sorted({project.id, *(cell.account for cell in cells)}),
            subjects=subjects([repository], environment),
            principal=principal,
        )


class DeployAccount(pulumi.ComponentResource):
    """The service account of deployments.

    Attributes:
        identity_id: Address of the service account.
    """

    identity_id: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        args: DeployAccountArgs,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Make the service account."""
        accepted = exact(args.subjects)
        super().__init__("runfleet:gcp:DeployAccount", name, None, opts)
        own = pulumi.ResourceOptions(parent=self)
        account = make_account(
            name, args.account, args.project, "Deploys the fleet's stacks", self
        )
        member = account.email.apply(lambda email: f"serviceAccount:{email}")
        bind_subjects(name, account, args.principal, accepted, self)
        for project in args.projects:
            for role in ROLES:
                short = role.removeprefix("roles/").replace(".", "-").lower()
                gcp.projects.IAMMember(
                    f"{name}-{project}-{short}",
                    project=project,
                    role=role,
                    member=member,
                    opts=own,
                )
            for suffix, (role, given) in LIMITED.items():
                gcp.projects.IAMMember(
                    f"{name}-{project}-{suffix}",
                    project=project,
                    role=role,
                    member=member,
                    condition={
                        "title": "Gives only what the stacks give",
                        "expression": gives_only(given),
                    },
                    opts=own,
                )
        self.identity_id = account.email
        self.register_outputs({"identity_id": self.identity_id})


def gives_only(roles: Sequence[str]) -> str:
    """Return the condition under which only some roles can be given and taken."""
    listed = ", ".join(f'"{role}"' for role in roles)
    changed = 'api.getAttribute("iam.googleapis.com/modifiedGrantsByRole", [])'
    return f"{changed}.hasOnly([{listed}])"
