"""What every machine of a cluster has in common, whatever node pool it is in.

A machine has no public address, boots verified code only, encrypts its disk with our
key, runs as a service account of its own with the least GKE needs, and hides its
credentials from pods: GKE's metadata server answers them in the machine's place, with
the identity of the pod (GKE documentation, "Harden your cluster's security").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi

from runfleet.clouds.gcp.labels import labels
from runfleet.clouds.gcp.machines import disk_type
from runfleet.spec.pools import Taint

EFFECTS: Mapping[str, str] = {
    "NoSchedule": "NO_SCHEDULE",
    "NoExecute": "NO_EXECUTE",
    "PreferNoSchedule": "PREFER_NO_SCHEDULE",
}
"""Kubernetes effects, as GKE's API spells them."""

SCOPE = "https://www.googleapis.com/auth/cloud-platform"
"""The access scope of a machine: what it may do is said by the roles of its service
account alone (GKE documentation, "About service accounts in GKE")."""


@dataclass(frozen=True)
class Machines:
    """What machines of a cluster need, from the other rooms.

    Attributes:
        cluster: Name of the cluster; also the machines' network tag.
        service_account: Address of the machines' service account.
        disk_key: Resource name of the key that encrypts disks.
        labels: The required labels.
    """

    cluster: str
    service_account: pulumi.Input[str]
    disk_key: pulumi.Input[str]
    labels: Mapping[str, str]


def node_config(
    machines: Machines,
    machine: str,
    disk_gib: int,
    node_labels: Mapping[str, str],
    taints: Sequence[Taint],
    **more: Any,
) -> dict[str, Any]:
    """Return the configuration of the machines of a node pool.

    Args:
        machines: What they need from the other rooms.
        machine: Machine type.
        disk_gib: Size of the boot disk, in GiB.
        node_labels: Kubernetes labels.
        taints: Kubernetes taints.
        **more: What this node pool adds, over what is common.
    """
    common: dict[str, Any] = {
        "machine_type": machine,
        "image_type": "COS_CONTAINERD",
        "disk_type": disk_type(machine),
        "disk_size_gb": disk_gib,
        "boot_disk_kms_key": machines.disk_key,
        "service_account": machines.service_account,
        "oauth_scopes": [SCOPE],
        "tags": [machines.cluster],
        "labels": dict(sorted(node_labels.items())),
        "resource_labels": labels(machines.labels),
        "taints": [
            {"key": t.key, "value": t.value, "effect": EFFECTS[t.effect]}
            for t in taints
        ],
        "taint_config": {"architecture_taint_behavior": "NONE"},
        "metadata": {
            "block-project-ssh-keys": "true",
            "disable-legacy-endpoints": "true",
        },
        "shielded_instance_config": {
            "enable_secure_boot": True,
            "enable_integrity_monitoring": True,
        },
        "workload_metadata_config": {"mode": "GKE_METADATA"},
        "gvnic": {"enabled": True},
        "kubelet_config": {"insecure_kubelet_readonly_port_enabled": "FALSE"},
        "reservation_affinity": {"consume_reservation_type": "NO_RESERVATION"},
        "logging_variant": "DEFAULT",
    }
    return {**common, **more}
