"""The keys of OSDC's ``clusters.yaml``: carried over, or not, and why.

Source: pytorch/ci-infra at b1ce4a6, ``osdc/clusters.yaml`` and
``osdc/scripts/cluster-config.py`` (2026-08-21). A dotted path is looked up in the
cluster first, then under ``defaults``. The settings of ``base`` stand in the cluster
under ``base`` and flat under ``defaults``.
"""

from __future__ import annotations

BASE_KEYS = (
    "vpc_cidr",
    "base_node_count",
    "base_node_instance_type",
    "single_nat_gateway",
)

CARRIED: frozenset[str] = frozenset(
    {
        "region",
        "cluster_name",
        "modules",
        "proactive_capacity_max",
        "access_config.cluster_admin_role_names",
        "base.access_config.cluster_admin_role_names",
        "arc-runners.github_config_url",
        "arc-runners.runner_name_prefix",
        "arc-runners.runner_group",
        "nodepools.gpu_consolidate_after",
        "nodepools.cpu_consolidate_after",
        "nodepools.baremetal_consolidate_after",
        "nodepools.gpu_disruption_budget",
        "nodepools.cpu_disruption_budget",
        *(f"base.{key}" for key in BASE_KEYS),
        *BASE_KEYS,
    }
)
"""Paths whose values become part of the fleet file."""

_IMAGE = "versions stand in pins.lock"
_CACHE = "in-cluster caches are no part of a fleet file"
_COMPACTION = "consolidation is the autoscaler's, by pool"

NOT_CARRIED: dict[str, str] = {
    "access_config.authentication_mode": "cells use API access entries only",
    "agent_sandbox": "the sandbox prototype runs no runner class",
    "alloy_chart_version": _IMAGE,
    "arc": "the controller is upstream ARC at the version in pins.lock, not a fork",
    "arc-runners": "upstream ARC has no such setting",
    "arc-runners.github_secret_name": "a cell has one GitHub App secret per trust "
    "level, named under github.apps, not one for all classes",
    "arc-runners.scheduler_name": "jobs use the cluster's scheduler",
    "arc-runners.capacity_aware_fresh_multiplier": "a setting of the forked listener",
    "arc-runners-h100": "settings of a module whose definitions are not read here",
    "arc-runners-b200": "settings of a module whose definitions are not read here",
    "base_node_ami_version": _IMAGE,
    "base.base_node_ami_version": _IMAGE,
    "base_node_max_unavailable_percentage": "the base node group updates one by one",
    "base.base_node_max_unavailable_percentage": "the base node group updates one "
    "by one",
    "bin_pack_scheduler": "jobs use the cluster's scheduler",
    "buildkit": "image builders are no runner class",
    "coredns": "CoreDNS is an add-on of the cluster at its own default size",
    "eks_version": _IMAGE,
    "base.eks_version": _IMAGE,
    "harbor": _CACHE,
    "hf_cache": _CACHE,
    "karpenter": "the autoscaler is sized by its floor",
    "keda": _IMAGE,
    "logging": "where telemetry goes is not part of a fleet file",
    "monitoring": "where telemetry goes is not part of a fleet file",
    "node_compactor": _COMPACTION,
    "nodepools-b200": "settings of a module whose definitions are not read here; write "
    "its reservations under reservations",
    "nodepools-h100": "settings of a module whose definitions are not read here; write "
    "its reservations under reservations",
    "pause_runners": "pausing is an operation, not a definition",
    "pypi_cache": _CACHE,
    "recycle_karpenter_nodes": "an action after deploying, not a definition",
    "state_bucket": "Pulumi keeps its state where its backend says",
    "zombie_cleanup": "ephemeral runners are removed by the runner side itself",
}
"""Paths, or the beginnings of paths, that a fleet file has no place for, and why."""

MODULES_CARRIED = frozenset({"arc", "arc-runners", "karpenter", "nodepools"})

MODULES_NOT_CARRIED: dict[str, str] = {
    "agent-sandbox": NOT_CARRIED["agent_sandbox"],
    "arc-runners-b200": "its definitions are not among those read",
    "arc-runners-h100": "its definitions are not among those read",
    "bin-pack-scheduler": NOT_CARRIED["bin_pack_scheduler"],
    "buildkit": NOT_CARRIED["buildkit"],
    "cache-enforcer": _CACHE,
    "harbor-cache-recovery": _CACHE,
    "hf-cache": _CACHE,
    "keda": "it scales image builders only",
    "logging": NOT_CARRIED["logging"],
    "monitoring": NOT_CARRIED["monitoring"],
    "nodepools-agent-sandbox": NOT_CARRIED["agent_sandbox"],
    "nodepools-b200": "its definitions are not among those read",
    "nodepools-h100": "its definitions are not among those read",
    "pypi-cache": _CACHE,
    "zombie-cleanup": NOT_CARRIED["zombie_cleanup"],
}

RUNNER_NOT_CARRIED: dict[str, str] = {
    "runner_group": "runner groups are the cell's, by trust level",
    "scheduler_name": NOT_CARRIED["arc-runners.scheduler_name"],
    "fresh_multiplier": NOT_CARRIED["arc-runners.capacity_aware_fresh_multiplier"],
}

MACHINE_NOT_CARRIED: dict[str, str] = {
    "node_compactor": _COMPACTION,
    "user_data_script": "nodes are set up by their image and by daemon sets",
    "capacity_reservation_ids": "write each as an entry of reservations with its "
    "start and end, and name it in the machine's reservations",
}


def reason(path: str) -> str | None:
    """Return why a path is not carried over: its own reason or that of its section."""
    parts = path.split(".")
    for end in range(len(parts), 0, -1):
        found = NOT_CARRIED.get(".".join(parts[:end]))
        if found is not None:
            return found
    return None
