"""Administrators: who rules in a cluster, by name.

Google Cloud's roles hold for all clusters of a project; the cluster's own roles hold
for one. So an administrator may see this cluster in the project, which is what
fetching credentials takes, and rules inside it by a role binding of the cluster (GKE
documentation, "Authorize actions in clusters using role-based access control"). Groups
must be members of one group, ``gke-security-groups@<domain>`` ("Configure Google
Groups for RBAC").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi
import pulumi_gcp as gcp
import pulumi_kubernetes as k8s

from runfleet.clouds.gcp.settings import problem
from runfleet.errors import Problem

KINDS: Mapping[str, str] = {
    "user": "User",
    "serviceAccount": "User",
    "group": "Group",
}
"""Kinds of members that may administer a cluster, as Kubernetes calls them."""

SEES = "roles/container.clusterViewer"
"""Lets one see a cluster and fetch what is needed to connect to it."""


def admin_problems(
    cell: str, admins: Sequence[str], groups_domain: str | None
) -> list[Problem]:
    """Return what is wrong with the administrators of a cell.

    Args:
        cell: Name of the cell.
        admins: The administrators.
        groups_domain: Domain of ``gke-security-groups@``, if the cell says it.
    """
    wrong = [
        problem(
            [cell, "admins"],
            "an administrator is a member of Google Cloud",
            member,
            "user:<address>, group:<address> or serviceAccount:<address>",
        )
        for member in admins
        if member.partition(":")[0] not in KINDS or "@" not in member
    ]
    if any(member.startswith("group:") for member in admins) and not groups_domain:
        message = "groups among `admins` need the domain of gke-security-groups@"
        wrong.append(problem([cell, "settings", "admin_groups_domain"], message))
    return wrong


def make_admins(
    name: str,
    cluster: str,
    admins: Sequence[str],
    labels: Mapping[str, str],
    kubernetes: pulumi.ProviderResource,
    parent: pulumi.Resource,
    after: Sequence[pulumi.Resource],
) -> None:
    """Let administrators find a cluster and rule inside it.

    Args:
        name: What the names of the resources begin with.
        cluster: Resource name of the cluster.
        admins: The administrators.
        labels: The required labels.
        kubernetes: Provider of the cluster.
        parent: The component that they belong to.
        after: What must exist before anything is put on the cluster.
    """
    for number, member in enumerate(admins):
        kind, _, who = member.partition(":")
        gcp.projects.IAMMember(
            f"{name}-{number}-sees",
            project=cluster.split("/")[1],
            role=SEES,
            member=member,
            condition={
                "title": f"Cluster {cluster.rpartition('/')[2]}",
                "expression": f'resource.name == "{cluster}"',
            },
            opts=pulumi.ResourceOptions(parent=parent),
        )
        k8s.rbac.v1.ClusterRoleBinding(
            f"{name}-{number}",
            metadata={"name": f"admin-{number}", "labels": dict(labels)},
            role_ref={
                "api_group": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "cluster-admin",
            },
            subjects=[
                {
                    "api_group": "rbac.authorization.k8s.io",
                    "kind": KINDS[kind],
                    "name": who,
                }
            ],
            opts=pulumi.ResourceOptions(
                parent=parent, provider=kubernetes, depends_on=list(after)
            ),
        )
