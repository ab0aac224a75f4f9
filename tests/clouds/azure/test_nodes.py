"""Node pools: exact objects in both modes, and the order in which they are tried."""

from __future__ import annotations

import pytest

from clouds.azure import fleets
from clouds.azure.fleets import Recording
from clouds.azure.test_tags import SHARED
from runfleet.clouds.azure import nodes
from runfleet.clouds.azure.autoscaler import agent_pool_name, priorities
from runfleet.clouds.azure.nodes import NodePoolError
from runfleet.rehearsal.errors import RehearsalError

DAS = "azure-pool-das--standard-d32as-v6"
MI300X = "azure-gpu-pool-mi300x--standard-nd96isr-mi300x-v5"
H100 = "azure-gpu-pool-h100--standard-nc40ads-h100-v5"


def test_an_auto_provisioned_shape(cell: Recording) -> None:
    labels = SHARED
    assert cell.children(DAS) == {
        f"{DAS}-class": "kubernetes:karpenter.azure.com/v1beta1:AKSNodeClass",
        f"{DAS}-pool": "kubernetes:karpenter.sh/v1:NodePool",
    }
    name = "das--standard-d32as-v6"
    assert cell.inputs(f"{DAS}-class")["spec"] == {
        "imageFamily": "Ubuntu",
        "osDiskSizeGB": 600,
        "vnetSubnetID": cell["azure-network-nodes-subnet"].id,
        "security": {
            "encryptionAtHost": True,
            "trustedLaunch": {"secureBoot": True, "vtpm": True},
        },
        "kubelet": {
            "cpuManagerPolicy": "static",
            "topologyManagerPolicy": "best-effort",
            "containerLogMaxSize": "50Mi",
            "containerLogMaxFiles": 5,
        },
        "tags": labels,
    }
    pool = cell.inputs(f"{DAS}-pool")
    assert pool["metadata"]["name"] == name
    assert pool["spec"] == {
        "weight": 100,
        "disruption": {
            "consolidationPolicy": "WhenEmpty",
            "consolidateAfter": "5m",
            "budgets": [{"nodes": "20%"}],
        },
        "limits": {"nodes": "20"},
        "template": {
            "metadata": {
                "labels": {
                    **labels,
                    "workload-type": "github-runner",
                    "node-fleet": "das",
                    "instance-type": "Standard_D32as_v6",
                    "ci_trust": "shared",
                }
            },
            "spec": {
                "nodeClassRef": {
                    "group": "karpenter.azure.com",
                    "kind": "AKSNodeClass",
                    "name": name,
                },
                "requirements": [
                    {"key": key, "operator": "In", "values": values}
                    for key, values in {
                        "kubernetes.io/arch": ["amd64"],
                        "kubernetes.io/os": ["linux"],
                        "karpenter.sh/capacity-type": ["on-demand"],
                        "node.kubernetes.io/instance-type": ["Standard_D32as_v6"],
                        "topology.kubernetes.io/zone": ["eastus-1", "eastus-2"],
                    }.items()
                ],
                "taints": [
                    {"key": "node-fleet", "value": "das", "effect": "NoSchedule"},
                    {
                        "key": "instance-type",
                        "value": "Standard_D32as_v6",
                        "effect": "NoSchedule",
                    },
                ],
                "expireAfter": "720h",
                "terminationGracePeriod": "24h",
            },
        },
    }


def test_spot_and_small_disks(cell: Recording) -> None:
    name = "azure-pool-das--standard-d16as-v6"
    wanted = cell.inputs(f"{name}-pool")["spec"]["template"]["spec"]["requirements"]
    assert {r["key"]: r["values"] for r in wanted}["karpenter.sh/capacity-type"] == [
        "spot"
    ]
    assert cell.inputs(f"{name}-class")["spec"]["osDiskSizeGB"] == 30


def test_release_nodes_stay_apart(cell: Recording) -> None:
    spec = cell.inputs("azure-pool-das--standard-d16as-v6-release-pool")["spec"]
    assert spec["template"]["metadata"]["labels"]["ci_trust"] == "release"
    taints = {t["key"]: t["value"] for t in spec["template"]["spec"]["taints"]}
    assert taints["ci_trust"] == "release"


def test_no_agent_pool_beside_auto_provisioning(cell: Recording) -> None:
    assert cell.of("containerservice:AgentPool") == []
    assert cell.children("azure-autoscaler") == {}


def test_claims_go_before_the_cluster(cell: Recording, gpu: Recording) -> None:
    assert f"{DAS}-class" in cell.after(f"{DAS}-pool")
    assert "azure-cluster-aks" in cell.after(f"{DAS}-class")
    assert cell[f"{DAS}-pool"].custom_timeouts["delete"] == "25h"
    assert {"azure-gpu-cluster-aks", "azure-gpu-autoscaler-priorities"} <= gpu.after(
        f"{MI300X}-pool"
    )


def test_an_agent_pool_of_amd_machines(gpu: Recording) -> None:
    found = gpu.inputs(f"{MI300X}-pool")
    labels, tags = found.pop("nodeLabels"), found.pop("tags")
    assert tags == SHARED | {"ci_stack": "azure-gpu"}
    assert labels == tags | {
        "workload-type": "github-runner",
        "node-fleet": "mi300x",
        "instance-type": "Standard_ND96isr_MI300X_v5",
        "nvidia.com/gpu": "true",
        "ci_trust": "shared",
    }
    assert found == {
        "agentPoolName": agent_pool_name("mi300x--standard-nd96isr-mi300x-v5"),
        "availabilityZones": ["1", "2", "3"],
        "count": 0,
        "enableAutoScaling": True,
        "enableEncryptionAtHost": True,
        "enableNodePublicIP": False,
        "gpuProfile": {"driver": "None"},
        "kubeletConfig": {
            "cpuManagerPolicy": "static",
            "topologyManagerPolicy": "best-effort",
            "containerLogMaxSizeMB": 50,
            "containerLogMaxFiles": 5,
        },
        "kubeletDiskType": "OS",
        "maxCount": 2,
        "minCount": 0,
        "mode": "User",
        "nodeTaints": [
            "node-fleet=mi300x:NoSchedule",
            "instance-type=Standard_ND96isr_MI300X_v5:NoSchedule",
            "nvidia.com/gpu=true:NoSchedule",
        ],
        "osDiskSizeGB": 3000,
        "osDiskType": "Ephemeral",
        "osSKU": "AzureLinux",
        "osType": "Linux",
        "resourceGroupName": "demo-gpu",
        "resourceName": "demo-gpu",
        "scaleDownMode": "Delete",
        "scaleSetPriority": "Regular",
        "securityProfile": {
            "enableSecureBoot": False,
            "enableVTPM": False,
            "sshAccess": "Disabled",
        },
        "type": "VirtualMachineScaleSets",
        "upgradeSettings": {
            "maxSurge": "0",
            "maxUnavailable": "1",
            "drainTimeoutInMinutes": 1440,
        },
        "vmSize": "Standard_ND96isr_MI300X_v5",
        "vnetSubnetID": gpu["azure-gpu-network-nodes-subnet"].id,
    }
    assert gpu[f"{MI300X}-pool"].ignore_changes == ("count",)


def test_an_agent_pool_of_reserved_nvidia_machines(gpu: Recording) -> None:
    found = gpu.inputs(f"{H100}-pool")
    assert found["gpuProfile"] == {"driver": "Install"}
    assert found["capacityReservationGroupID"].endswith(
        "/capacityReservationGroups/h100"
    )
    assert found["kubeletConfig"]["topologyManagerPolicy"] == "single-numa-node"
    assert (found["minCount"], found["maxCount"]) == (0, 5)


def test_an_agent_pool_without_gpus(gpu: Recording) -> None:
    found = gpu.inputs("azure-gpu-pool-dps--standard-d32ps-v6-pool")
    assert "gpuProfile" not in found
    assert found["upgradeSettings"]["maxSurge"] == "10%"


def test_pools_are_tried_by_weight(gpu: Recording) -> None:
    pools = {
        weight: agent_pool_name(name)
        for name, weight in {
            "dps--standard-d32ps-v6": 100,
            "mi300x--standard-nd96isr-mi300x-v5": 90,
            "h100--standard-nc40ads-h100-v5": 80,
        }.items()
        for name, weight in [(name, weight)]
    }
    found = gpu.inputs("azure-gpu-autoscaler-priorities")
    assert found["metadata"]["name"] == "cluster-autoscaler-priority-expander"
    assert found["metadata"]["namespace"] == "kube-system"
    assert found["data"]["priorities"] == (
        f"100:\n  - ^aks-{pools[100]}-.*\n"
        f"90:\n  - ^aks-{pools[90]}-.*\n"
        f"80:\n  - ^aks-{pools[80]}-.*\n"
    )
    assert priorities({}) == "{}\n"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        pytest.param(
            "reservations: [h100]",
            "reservations: [h100, second]",
            "2 reservations",
            id="reservations",
        ),
        pytest.param(
            "topology_policy: single-numa-node",
            "image_selector: {family: gpu}",
            "image_selector",
            id="image",
        ),
    ],
)
def test_what_azure_does_not_have(old: str, new: str, message: str) -> None:
    second = fleets.FLEET.rpartition("  h100:\n    id:")[2]
    text = fleets.FLEET.replace(old, new) + f"  second:\n    id:{second}"
    with pytest.raises((NodePoolError, RehearsalError), match=message):
        fleets.cell_record(fleets.fleet("aws", text=text), "azure-gpu")


def test_limits() -> None:
    plan = fleets.cell_plan(cell="azure-gpu")
    mi300x = next(p for p in plan.node_pools if p.pool.name == "mi300x")
    assert nodes.most_nodes(plan, mi300x, {}) == 40
    assert nodes.most_nodes(plan, mi300x, {"mi300x": 3}) == 3
    assert nodes.gpu_vendor(plan, mi300x) == "amd"


@pytest.mark.parametrize(
    ("seconds", "text"), [(3600, "1h"), (5400, "90m"), (61, "61s"), (0, "0s")]
)
def test_durations(seconds: int, text: str) -> None:
    assert nodes.duration(seconds) == text
