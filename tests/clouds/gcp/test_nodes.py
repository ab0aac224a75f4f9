"""Node pools: one for each plan, made as it says, and the order they are tried in."""

from __future__ import annotations

from typing import Any

import pytest

from clouds.gcp import fleets
from clouds.gcp.fleets import of_type, one
from runfleet.catalogue.machines import Machines
from runfleet.clouds.gcp import machines
from runfleet.errors import InputError
from runfleet.rehearsal.record import Record
from runfleet.spec.cells import Provider
from runfleet.spec.labels import KEYS

N2 = "gcp-pool-n2--n2-standard-48-pool"


def config(found: Record, name: str) -> dict[str, Any]:
    return dict(one(found, f"gcp-pool-{name}-pool").inputs["nodeConfig"])


def test_one_node_pool_for_each_plan(cell: Record) -> None:
    made = {r.inputs["name"] for r in of_type(cell, "gcp:container/nodePool:NodePool")}
    assert made == {
        "base",
        "n2--n2-standard-48",
        "n2--n2-standard-16",
        "n2--n2-standard-48-release",
        "c4a--c4a-standard-16",
        "h100--a3-highgpu-8g",
        "flex--g2-standard-48",
        "tpu--ct6e-standard-4t",
    }


def test_a_node_pool_starts_at_zero(cell: Record) -> None:
    pool = one(cell, N2)
    assert pool.inputs["initialNodeCount"] == 0
    assert pool.inputs["autoscaling"] == {
        "totalMinNodeCount": 0,
        "totalMaxNodeCount": 40,
        "locationPolicy": "ANY",
    }
    assert pool.inputs["nodeLocations"] == ["us-central1-a", "us-central1-b"]
    assert pool.inputs["networkConfig"] == {"enablePrivateNodes": True}
    assert set(pool.ignore_changes) == {"initialNodeCount", "version"}
    after = {urn.rpartition("::")[2] for urn in pool.dependencies}
    assert after >= {"gcp-autoscaler-order", "gcp-cluster-gke", "gcp-cluster-base"}


def test_machines_are_hardened_in_every_pool(cell: Record) -> None:
    for pool in of_type(cell, "gcp:container/nodePool:NodePool"):
        found = pool.inputs["nodeConfig"]
        assert found["workloadMetadataConfig"] == {"mode": "GKE_METADATA"}
        assert found["shieldedInstanceConfig"] == {
            "enableSecureBoot": True,
            "enableIntegrityMonitoring": True,
        }
        assert found["metadata"] == {
            "block-project-ssh-keys": "true",
            "disable-legacy-endpoints": "true",
        }
        assert found["serviceAccount"].startswith("node--demo-uc1@demo-ci.")
        assert found["bootDiskKmsKey"].endswith("/cryptoKeys/disks")
        assert found["kubeletConfig"]["insecureKubeletReadonlyPortEnabled"] == "FALSE"
        assert found["tags"] == ["demo-uc1"]
        assert set(found["resourceLabels"]) == set(KEYS)


def test_labels_taints_and_kubelet(cell: Record) -> None:
    found = config(cell, "n2--n2-standard-48-release")
    assert found["labels"] == {
        **fleets.LABELS,
        "ci_trust": "release",
        "workload-type": "github-runner",
        "node-fleet": "n2",
        "instance-type": "n2-standard-48",
    }
    assert found["taints"] == [
        {"key": "node-fleet", "value": "n2", "effect": "NO_SCHEDULE"},
        {"key": "instance-type", "value": "n2-standard-48", "effect": "NO_SCHEDULE"},
        {"key": "ci_trust", "value": "release", "effect": "NO_SCHEDULE"},
    ]
    assert found["kubeletConfig"] == {
        "insecureKubeletReadonlyPortEnabled": "FALSE",
        "cpuManagerPolicy": "static",
        "topologyManager": {"policy": "best-effort", "scope": "container"},
        "containerLogMaxSize": "50Mi",
        "containerLogMaxFiles": 5,
    }


def test_arm_machines_are_not_tainted_by_architecture(cell: Record) -> None:
    found = config(cell, "c4a--c4a-standard-16")
    assert found["taintConfig"] == {"architectureTaintBehavior": "NONE"}
    assert found["diskType"] == "hyperdisk-balanced"


def test_spot_and_on_demand_draw_from_no_reservation(cell: Record) -> None:
    spot, plain = config(cell, "n2--n2-standard-16"), config(cell, "n2--n2-standard-48")
    assert (spot["spot"], plain["spot"]) == (True, False)
    assert spot["resourceLabels"]["ci_cost_model"] == "spot"
    for found in (spot, plain):
        assert found["reservationAffinity"] == {
            "consumeReservationType": "NO_RESERVATION"
        }


def test_reserved_machines_with_gpus_and_local_disks(cell: Record) -> None:
    pool = one(cell, "gcp-pool-h100--a3-highgpu-8g-pool").inputs
    found = pool["nodeConfig"]
    assert found["guestAccelerators"] == [
        {
            "type": "nvidia-h100-80gb",
            "count": 8,
            "gpuDriverInstallationConfig": {"gpuDriverVersion": "DEFAULT"},
        }
    ]
    assert found["reservationAffinity"] == {
        "consumeReservationType": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": ["h100-block"],
    }
    assert found["ephemeralStorageLocalSsdConfig"] == {"localSsdCount": 16}
    assert found["kubeletConfig"]["topologyManager"] == {
        "policy": "single-numa-node",
        "scope": "pod",
    }
    assert {"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"} in (
        found["taints"]
    )
    assert pool["nodeLocations"] == ["us-central1-b"]
    assert pool["autoscaling"]["totalMaxNodeCount"] == 2


def test_flex_start(cell: Record) -> None:
    pool = one(cell, "gcp-pool-flex--g2-standard-48-pool").inputs
    found = pool["nodeConfig"]
    assert (found["flexStart"], found["maxRunDuration"]) == (True, "86400s")
    assert pool["queuedProvisioning"] == {"enabled": True}
    assert pool["management"] == {"autoRepair": False, "autoUpgrade": True}
    (gpu,) = found["guestAccelerators"]
    assert (gpu["type"], gpu["count"]) == ("nvidia-l4", 4)
    assert gpu["gpuDriverInstallationConfig"] == {"gpuDriverVersion": "LATEST"}
    assert found["reservationAffinity"]["consumeReservationType"] == "NO_RESERVATION"


def test_tpu_slices(cell: Record) -> None:
    pool = one(cell, "gcp-pool-tpu--ct6e-standard-4t-pool").inputs
    assert pool["placementPolicy"] == {"type": "COMPACT", "tpuTopology": "4x4"}
    assert pool["autoscaling"]["totalMaxNodeCount"] == 4
    assert pool["nodeLocations"] == ["us-central1-a"]
    found = pool["nodeConfig"]
    assert "guestAccelerators" not in found
    assert "nvidia.com/gpu" not in found["labels"]
    assert [t["key"] for t in found["taints"]] == [
        "node-fleet",
        "instance-type",
        "google.com/tpu",
    ]


def test_the_order_of_node_pools(cell: Record, second: Record) -> None:
    order = one(cell, "gcp-autoscaler-order").inputs
    assert order["kind"] == "ComputeClass"
    assert order["metadata"]["name"] == "default"
    assert order["spec"] == {
        "priorities": [
            {
                "nodepools": [
                    "n2--n2-standard-48",
                    "n2--n2-standard-48-release",
                    "c4a--c4a-standard-16",
                    "h100--a3-highgpu-8g",
                    "flex--g2-standard-48",
                    "tpu--ct6e-standard-4t",
                ]
            },
            {"nodepools": ["n2--n2-standard-16"]},
        ],
        "nodePoolAutoCreation": {"enabled": False},
        "whenUnsatisfiable": "DoNotScaleUp",
        "activeMigration": {"optimizeRulePriority": False},
        "autoscalingPolicy": {
            "consolidationDelayMinutes": 20,
            "consolidationThreshold": 0,
        },
    }
    spec = one(second, "gcp-two-autoscaler-order").inputs["spec"]
    assert spec["nodePoolAutoCreation"] == {"enabled": True}
    assert spec["whenUnsatisfiable"] == "ScaleUpAnyway"
    assert set(spec["nodePoolConfig"]["nodeLabels"]) == set(KEYS)
    assert spec["autoscalingPolicy"]["consolidationDelayMinutes"] == 10


@pytest.mark.parametrize(
    ("old", "new", "path", "message"),
    [
        ("g2-standard-48", "g2-standard-5", "pools.flex.machines", "accelerators"),
        (
            "machine: c4a-standard-16, disk",
            "machine: c4a-standard-16, nvme: true, disk",
            "cells.gcp.settings.pools.c4a.local_ssds",
            "how many local disks",
        ),
        (
            "machine: c4a-standard-16, disk",
            "machine: c4a-standard-16, image_selector: {a: b}, disk",
            "pools.c4a.machines.c4a-standard-16.image_selector",
            "no machine images",
        ),
        (
            "tpu_topology: 4x4",
            "tpu_topology: 3x3",
            "cells.gcp.settings.pools.tpu.tpu_topology",
            "9 chips",
        ),
        (
            "n2: {max_nodes: 40}",
            "n2: {flex_start: true}",
            "cells.gcp.settings.pools.n2.flex_start",
            "bought on demand",
        ),
    ],
)
def test_node_pools_that_cannot_be(old: str, new: str, path: str, message: str) -> None:
    plan = fleets.plan_of(known=fleets.fleet(fleets.changed((old, new))))
    with pytest.raises(InputError, match=message) as caught:
        fleets.cell_record(plan)
    assert caught.value.problems[0].path.startswith(path)


@pytest.mark.parametrize(
    ("machine", "kind", "count"),
    [
        ("a2-highgpu-4g", "nvidia-tesla-a100", 4),
        ("a2-megagpu-16g", "nvidia-tesla-a100", 16),
        ("a2-ultragpu-1g", "nvidia-a100-80gb", 1),
        ("a3-megagpu-8g", "nvidia-h100-mega-80gb", 8),
        ("a3-ultragpu-8g", "nvidia-h200-141gb", 8),
        ("a4-highgpu-8g", "nvidia-b200", 8),
        ("a4x-highgpu-4g", "nvidia-gb200", 4),
        ("g2-standard-24", "nvidia-l4", 2),
        ("g2-standard-32", "nvidia-l4", 1),
        ("g4-standard-384", "nvidia-rtx-pro-6000", 8),
    ],
)
def test_gpus_of_machines(machine: str, kind: str, count: int) -> None:
    assert machines.gpus(machine) == machines.Gpus(kind, count)


def test_gpus_agree_with_the_catalogue() -> None:
    rows = [m for m in Machines.load() if m.provider is Provider.GCP]
    assert rows
    for row in rows:
        found = machines.gpus(row.name)
        by_vendor = {"nvidia": found.count if found else 0}
        by_vendor["google"] = machines.tpu_chips(row.name)
        expected = {row.accelerator_vendor: row.accelerator_count}
        assert {v: n for v, n in by_vendor.items() if n} == {
            v: n for v, n in expected.items() if n
        }, row.name


@pytest.mark.parametrize("machine", ["n2-standard-8", "t2a-standard-48", "g2-standard"])
def test_machines_without_gpus(machine: str) -> None:
    assert machines.gpus(machine) is None
    assert machines.tpu_chips(machine) == 0
