"""What a cluster has beside its API: nodes for system pods, and audit logs."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import pulumi
from pulumi_azure_native import containerservice, monitor, operationalinsights

from runfleet.clouds.azure import names
from runfleet.clouds.azure.places import Place
from runfleet.clouds.azure.tags import tags
from runfleet.spec.cells import BaseNodes

SYSTEM_TAINT = "CriticalAddonsOnly=true:NoSchedule"
"""Taint of the system pool (AKS documentation, "Manage system node pools")."""

LOGS = (
    "kube-apiserver",
    "kube-audit",
    "kube-controller-manager",
    "kube-scheduler",
    "cluster-autoscaler",
    "guard",
)
"""Control-plane logs; ``guard`` is the Entra authentication and authorisation."""


def system_pool(
    nodes: BaseNodes,
    place: Place,
    zones: Sequence[str],
    subnet_id: pulumi.Input[str],
    image: str,
) -> containerservice.ManagedClusterAgentPoolProfileArgs:
    """Return the fixed, tainted pool that carries system pods.

    Args:
        nodes: The nodes.
        place: Where the cell is.
        zones: Zones by number.
        subnet_id: Subnet for nodes.
        image: Operating system.
    """
    return containerservice.ManagedClusterAgentPoolProfileArgs(
        name="system",
        mode="System",
        type="VirtualMachineScaleSets",
        os_type="Linux",
        os_sku=image,
        vm_size=nodes.machine,
        count=nodes.count,
        enable_auto_scaling=False,
        availability_zones=list(zones),
        vnet_subnet_id=subnet_id,
        os_disk_size_gb=math.ceil(nodes.disk.gib),
        os_disk_type="Ephemeral" if has_local_disk(nodes.machine) else "Managed",
        enable_encryption_at_host=True,
        enable_node_public_ip=False,
        node_taints=[SYSTEM_TAINT],
        security_profile=containerservice.AgentPoolSecurityProfileArgs(
            enable_secure_boot=True, enable_vtpm=True, ssh_access="Disabled"
        ),
        upgrade_settings=containerservice.AgentPoolUpgradeSettingsArgs(max_surge="1"),
        tags=tags(place.labels),
    )


def has_local_disk(size: str) -> bool:
    """Say whether machines of a size have a local disk: feature ``d`` of its name.

    Source: Azure documentation, "Azure virtual machine sizes naming conventions".
    """
    match = re.fullmatch(r"Standard_[A-Z]+\d+(?:-\d+)?([a-z]*)(?:_.*)?", size)
    return match is not None and "d" in match[1]


def audit_logs(
    name: str,
    place: Place,
    group: pulumi.Input[str],
    cluster_id: pulumi.Input[str],
    days: int,
    parent: pulumi.Resource,
) -> pulumi.Resource:
    """Keep the control plane's logs; return what must exist for it.

    Args:
        name: What the logical names begin with.
        place: Where the cell is.
        group: Name of the resource group.
        cluster_id: Resource id of the cluster.
        days: How long they are kept.
        parent: Component that they belong to.
    """
    workspace = operationalinsights.Workspace(
        f"{name}-logs",
        workspace_name=names.WORKSPACE.encode(place.name, "logs"),
        resource_group_name=group,
        location=place.region,
        sku=operationalinsights.WorkspaceSkuArgs(name="PerGB2018"),
        retention_in_days=days,
        features=operationalinsights.WorkspaceFeaturesArgs(
            disable_local_auth=True,
            enable_log_access_using_only_resource_permissions=True,
        ),
        opts=pulumi.ResourceOptions(parent=parent, protect=True, retain_on_delete=True),
    )
    return monitor.DiagnosticSetting(
        f"{name}-audit",
        name=names.DIAGNOSTICS.encode(place.name, "audit"),
        resource_uri=cluster_id,
        workspace_id=workspace.id,
        log_analytics_destination_type="Dedicated",
        logs=[
            monitor.DiagnosticsLogSettingsArgs(category=category, enabled=True)
            for category in LOGS
        ],
        opts=pulumi.ResourceOptions(parent=parent),
    )
