"""Guards: what a project refuses, whoever asks: its organisation policies.

An allow policy cannot say "over TLS only" or "never a key of a service account"; an
organisation policy on the project can, and holds for machines and buckets that
something else makes. Setting one takes the role Organization Policy Administrator,
which is given at the organisation (Resource Manager documentation, "Creating and
managing organization policies"); a project without an organisation turns them off
with the cell setting ``organization_policies: false``.

They belong to the project and not to a stack, so one stack of a project sets them and
they stay when it goes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pulumi
import pulumi_gcp as gcp

from runfleet.clouds.gcp.addresses import Project
from runfleet.clouds.gcp.settings import GcpSettings
from runfleet.placement.plan import CENTRAL_STACK
from runfleet.spec.cells import Provider
from runfleet.spec.fleet import Fleet

_ON: Mapping[str, Any] = {"enforce": "TRUE"}

CONSTRAINTS: Mapping[str, Mapping[str, Any]] = {
    "storage.secureHttpTransport": _ON,
    "storage.publicAccessPrevention": _ON,
    "storage.uniformBucketLevelAccess": _ON,
    "iam.disableServiceAccountKeyCreation": _ON,
    "iam.automaticIamGrantsForDefaultServiceAccounts": _ON,
    "compute.disableSerialPortAccess": _ON,
    "compute.vmExternalIpAccess": {"deny_all": "TRUE"},
}
"""Constraints and the rule of each (Resource Manager documentation, "Organization
policy constraints")."""


def guarded_by(fleet: Fleet, project: str) -> str | None:
    """Return the stack that sets the organisation policies of a project.

    Args:
        fleet: The fleet.
        project: Project id.

    Returns:
        The first cell in the project, or ``central`` when it has none; ``None`` when
        a cell there turns them off.
    """
    cells = [
        cell
        for cell in fleet.cells.values()
        if cell.provider is Provider.GCP and cell.account == project
    ]
    if not all(GcpSettings.of(cell).organization_policies for cell in cells):
        return None
    return cells[0].name if cells else CENTRAL_STACK


def make_guards(name: str, project: Project, parent: pulumi.Resource) -> None:
    """Set the organisation policies of a project.

    Args:
        name: What the names of the resources begin with.
        project: The project.
        parent: The component that they belong to.
    """
    home = f"projects/{project.id}"
    for constraint, rule in CONSTRAINTS.items():
        gcp.orgpolicy.Policy(
            f"{name}-guard-{constraint.replace('.', '-').lower()}",
            name=f"{home}/policies/{constraint}",
            parent=home,
            spec={"rules": [cast("Any", dict(rule))]},
            opts=pulumi.ResourceOptions(parent=parent, retain_on_delete=True),
        )
