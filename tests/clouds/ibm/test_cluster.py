"""Cluster, worker pools and autoscaler: exact inputs."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from clouds.ibm.fleets import (
    FLEET,
    cell_program,
    of_kind,
    one,
    plan_of,
    run,
)
from runfleet.clouds.ibm.cluster import ClusterError
from runfleet.clouds.ibm.flavors import S390X_CLOSED, FlavorError
from runfleet.clouds.ibm.nodes import most_workers, pool_zones
from runfleet.clouds.ibm.settings import IbmSettings
from runfleet.clouds.ibm.tags import labels_of
from runfleet.clouds.protocols import StackSettings
from runfleet.placement.plan import CellPlan
from runfleet.rehearsal.record import Record

CLUSTER = "ibm-cluster-iks"
POOL = "ibm-pool-bx2--bx2-16x64-workers"
GPU = "ibm-pool-l40s--gx3-24x120x1l40s-workers"


def test_the_cluster_is_exactly_this(cell: Record, plan: CellPlan) -> None:
    cluster = one(cell, CLUSTER)
    inputs = dict(cluster.inputs)
    vault = one(cell, "ibm-network-vault").outputs["guid"]
    assert labels_of(inputs.pop("tags")) == plan.ci_labels
    assert inputs.pop("workerLabels") == {**plan.ci_labels, "runfleet/part": "base"}
    assert inputs.pop("zones") == [
        {"name": zone, "subnetId": one(cell, f"ibm-network-workers-{zone}").id}
        for zone in plan.cell.zones
    ]
    assert inputs == {
        "name": "demo-ibm",
        "vpcId": one(cell, "ibm-network-vpc").id,
        "flavor": "bx2.4x16",
        "workerCount": 1,
        "kubeVersion": "1.34.2",
        "kmsConfig": {
            "instanceId": vault,
            "crkId": one(cell, "ibm-network-vault-secrets").outputs["keyId"],
            "privateEndpoint": True,
        },
        "kmsInstanceId": vault,
        "crk": one(cell, "ibm-network-vault-workers").outputs["keyId"],
        "securityGroups": ["cluster", one(cell, "ibm-network-nodes").id],
        "taints": [
            {
                "key": "CriticalAddonsOnly",
                "value": "true",
                "effect": "PreferNoSchedule",
            }
        ],
        "disablePublicServiceEndpoint": True,
        "disableOutboundTrafficProtection": False,
        "imageSecurityEnforcement": True,
        "forceDeleteStorage": False,
        "updateAllWorkers": False,
        "waitTill": "OneWorkerNodeReady",
    }
    assert (cluster.protect, cluster.retain_on_delete) == (True, True)


def test_a_later_change_of_what_is_applied_once_asks_for_a_replacement(
    cell: Record,
) -> None:
    trigger = json.loads(one(cell, CLUSTER).replacement_trigger)
    assert trigger["flavor"] == "bx2.4x16"
    assert trigger["securityGroups"][0] == "cluster"
    text = FLEET.replace("machine: bx2-4x16", "machine: bx2-8x32")
    changed = one(run(cell_program(plan_of(text))), CLUSTER)
    assert json.loads(changed.replacement_trigger)["flavor"] == "bx2.8x32"
    text = FLEET.replace("bx2-4x16, count: 3", "bx2-4x16, count: 3").replace(
        "network: {cidr: 10.32.0.0/16}",
        "network: {cidr: 10.32.0.0/16, egress: [192.0.2.0/24]}",
    )
    same = one(run(cell_program(plan_of(text))), CLUSTER)
    assert same.replacement_trigger == one(cell, CLUSTER).replacement_trigger


def test_services_may_use_the_keys_before_the_cluster_is_made(cell: Record) -> None:
    cluster = one(cell, CLUSTER)
    guid = one(cell, "ibm-network-vault").outputs["guid"]
    for suffix, service in (
        ("clusters", "containers-kubernetes"),
        ("disks", "server-protect"),
    ):
        policy = one(cell, f"ibm-network-vault-for-{suffix}")
        assert policy.inputs["sourceServiceName"] == service
        assert policy.inputs["targetResourceInstanceId"] == guid
        assert policy.inputs["roles"] == ["Reader"]
        assert policy.urn in cluster.dependencies


def test_keys_are_private_and_cannot_be_deleted_in_use(cell: Record) -> None:
    for key in of_kind(cell, "KmsKey"):
        assert key.inputs["forceDelete"] is False
        assert key.inputs["endpointType"] == "private"
        assert key.inputs["standardKey"] is False
        assert "payload" not in key.inputs
        assert (key.protect, key.retain_on_delete) == (True, True)
    for instance in of_kind(cell, "ResourceInstance"):
        if instance.inputs["service"] == "kms":
            assert instance.inputs["serviceEndpoints"] == "private"


def test_the_kubeconfig_holds_no_credential(cell: Record) -> None:
    config = json.loads(cell.outputs["kubeconfig"])
    cluster = one(cell, CLUSTER)
    assert config["clusters"] == [
        {
            "name": "demo-ibm",
            "cluster": {"server": cluster.outputs["vpeServiceEndpointUrl"]},
        }
    ]
    assert config["clusters"][0]["cluster"]["server"].startswith(
        f"https://{cluster.id}.vpe.private.us-south.containers.cloud.ibm.com:"
    )
    assert config["users"][0]["user"] == {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "python3",
            "args": ["-m", "runfleet.clouds.ibm.kube_token", "--cluster", "demo-ibm"],
            "interactiveMode": "Never",
        }
    }
    assert "insecure" not in cell.outputs["kubeconfig"]


def test_the_kubeconfig_with_everything_set() -> None:
    text = FLEET.replace(
        "    settings:\n",
        "    api_access: {mode: tunnel, proxy: 'https://proxy:3128'}\n"
        "    settings:\n      certificate_authority: Q0E=\n"
        "      oidc_issuer: https://issuer.example.org/ibm\n",
    )
    made = run(cell_program(plan_of(text), StackSettings(deploy_role="Profile-deploy")))
    config = json.loads(made.outputs["kubeconfig"])
    cluster = config["clusters"][0]["cluster"]
    assert cluster["certificate-authority-data"] == "Q0E="
    assert cluster["proxy-url"] == "https://proxy:3128"
    plugin = config["users"][0]["user"]["exec"]
    assert plugin["args"][-2:] == ["--profile", "Profile-deploy"]
    assert one(made, "ibm-cloud").inputs["iamProfileId"] == "Profile-deploy"
    assert made.outputs["oidc_issuer"] == "https://issuer.example.org/ibm"


def test_without_a_known_issuer_none_is_claimed(cell: Record) -> None:
    assert cell.outputs["oidc_issuer"] == ""


def test_an_open_endpoint_cannot_be_narrowed() -> None:
    text = FLEET.replace(
        "    settings:\n",
        "    api_access: {mode: allow-list, allow: [192.0.2.0/24]}\n    settings:\n",
    )
    with pytest.raises(ClusterError, match="is open to every address"):
        run(cell_program(plan_of(text)))


@pytest.mark.parametrize("name", ["9demo", "a" * 36])
def test_names_that_the_service_refuses(name: str) -> None:
    text = FLEET.replace("cluster: demo-ibm", f"cluster: {name}")
    with pytest.raises(ClusterError, match="a letter first and at most 35"):
        run(cell_program(plan_of(text)))


def test_an_adopted_cluster_is_read() -> None:
    text = FLEET.replace(
        "    settings:\n", "    adopt_cluster: c0123456789\n    settings:\n"
    )
    made = run(cell_program(plan_of(text)))
    cluster = one(made, CLUSTER)
    assert (cluster.id, cluster.external) == ("c0123456789", True)
    assert one(made, POOL).inputs["cluster"] == "c0123456789"
    link = one(made, "ibm-identity-small-link").inputs["link"]
    assert link["crn"].endswith(":c0123456789::")


def test_a_worker_pool_is_exactly_this(cell: Record, plan: CellPlan) -> None:
    pool = one(cell, POOL)
    planned = next(p for p in plan.node_pools if p.name == "bx2--bx2-16x64")
    inputs = dict(pool.inputs)
    (zone,) = inputs.pop("zones")
    assert zone["subnetId"] == one(cell, f"ibm-network-workers-{zone['name']}").id
    assert inputs == {
        "cluster": one(cell, CLUSTER).id,
        "vpcId": one(cell, "ibm-network-vpc").id,
        "workerPoolName": "bx2--bx2-16x64",
        "flavor": "bx2.16x64",
        "workerCount": 1,
        "labels": {**planned.ci_labels, **planned.labels},
        "taints": [
            {"key": "node-fleet", "value": "bx2", "effect": "NoSchedule"},
            {"key": "instance-type", "value": "bx2-16x64", "effect": "NoSchedule"},
        ],
        "secondaryStorage": "300gb.5iops-tier",
        "kmsInstanceId": one(cell, "ibm-network-vault").outputs["guid"],
        "crk": one(cell, "ibm-network-vault-workers").outputs["keyId"],
        "securityGroups": ["cluster", one(cell, "ibm-network-nodes").id],
        "orphanOnDelete": False,
    }
    assert pool.ignore_changes == ("workerCount",)
    assert one(cell, "ibm-autoscaler-addon").urn in pool.dependencies


def test_a_gpu_pool_has_the_flavour_of_the_service(cell: Record) -> None:
    pool = one(cell, GPU)
    assert pool.inputs["flavor"] == "gx3.24x120.l40s"
    assert pool.inputs["secondaryStorage"] == "600gb.5iops-tier"
    taints = {taint["key"] for taint in pool.inputs["taints"]}
    assert taints == {"node-fleet", "instance-type", "nvidia.com/gpu"}


def test_release_workers_are_a_pool_of_their_own(cell: Record) -> None:
    pool = one(cell, "ibm-pool-bx2--bx2-16x64-release-workers")
    assert pool.inputs["labels"]["ci_trust"] == "release"
    assert {"key": "ci_trust", "value": "release", "effect": "NoSchedule"} in (
        pool.inputs["taints"]
    )
    assert "secondaryStorage" not in pool.inputs


def test_only_our_addon_is_owned(cell: Record) -> None:
    addon = one(cell, "ibm-autoscaler-addon")
    assert dict(addon.inputs) == {
        "cluster": one(cell, CLUSTER).id,
        "addons": [{"name": "cluster-autoscaler", "version": "2.0.1"}],
        "manageAllAddons": False,
    }


def test_the_autoscaler_is_told_once_all_pools_exist(
    cell: Record, plan: CellPlan
) -> None:
    config = one(cell, "ibm-autoscaler-config")
    assert config.type == "kubernetes:core/v1:ConfigMapPatch"
    metadata = config.inputs["metadata"]
    assert (metadata["namespace"], metadata["name"]) == (
        "kube-system",
        "iks-ca-configmap",
    )
    assert metadata["annotations"] == {"pulumi.com/patchForce": "true"}
    assert json.loads(config.inputs["data"]["workerPoolsConfig.json"]) == [
        {"name": "bx2--bx2-16x64", "minSize": 1, "maxSize": 20, "enabled": True},
        {
            "name": "bx2--bx2-16x64-release",
            "minSize": 1,
            "maxSize": 20,
            "enabled": True,
        },
        {
            "name": "l40s--gx3-24x120x1l40s",
            "minSize": 1,
            "maxSize": 8,
            "enabled": True,
        },
    ]
    pools = {r.urn for r in of_kind(cell, "ContainerVpcWorkerPool")}
    assert pools | {one(cell, "ibm-autoscaler-addon").urn} <= set(config.dependencies)
    assert config.provider.startswith(one(cell, "ibm-cluster-kubernetes").urn)


def test_pools_spread_over_the_zones_by_their_names(plan: CellPlan) -> None:
    settings = IbmSettings()
    found = {p.name: pool_zones(plan, p, settings) for p in plan.node_pools}
    assert all(len(zones) == 1 for zones in found.values())
    many = [
        pool_zones(plan, replace(plan.node_pools[0], name=f"p{n}"), settings)[0]
        for n in range(30)
    ]
    assert set(many) == set(plan.cell.zones)


def test_zones_and_sizes_as_set() -> None:
    text = FLEET.replace(
        "    settings:\n",
        "    settings:\n      pool_zones: {bx2: [us-south-3, us-south-1]}\n"
        "      max_nodes: {l40s: 3}\n",
    )
    plan = plan_of(text)
    made = run(cell_program(plan))
    pool = one(made, POOL)
    assert [zone["name"] for zone in pool.inputs["zones"]] == [
        "us-south-1",
        "us-south-3",
    ]
    data = one(made, "ibm-autoscaler-config").inputs["data"]
    sizes = {
        entry["name"]: entry["maxSize"]
        for entry in json.loads(data["workerPoolsConfig.json"])
    }
    # 20 jobs at most, over two zones.
    assert sizes["bx2--bx2-16x64"] == 10
    assert sizes["l40s--gx3-24x120x1l40s"] == 3


def test_a_quota_is_never_exceeded(plan: CellPlan) -> None:
    pool = replace(plan.node_pools[0], limit=7)
    assert most_workers(plan, pool, IbmSettings(), 3) == 2
    assert most_workers(plan, pool, IbmSettings(), 1) == 7


def pool_text(line: str, more: str = "") -> str:
    return (
        FLEET.replace("- {machine: bx2-16x64, weight: 100, disk: 250GiB}", line) + more
    )


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (
            "- {machine: bx2-16x64, disk: 250GiB, capacity: spot}",
            "worker pools have no spot capacity",
        ),
        ("- {machine: bz2-16x64, disk: 100GiB}", "take no new instances"),
        ("- {machine: m7i.large, disk: 100GiB}", "is no profile of a virtual server"),
        ("- {machine: bx2-16x64, disk: 5000GiB}", "at most 3725 GiB"),
    ],
)
def test_what_worker_pools_cannot_have(line: str, reason: str) -> None:
    with pytest.raises(FlavorError, match=reason) as caught:
        run(cell_program(plan_of(pool_text(line))))
    assert "pools.bx2" in str(caught.value)


def test_s390x_is_refused_with_its_reason() -> None:
    head, pools, rest = FLEET.partition("pools:\n")
    text = (
        head
        + pools
        + rest.replace("arch: amd64", "arch: s390x", 1).replace(
            "hardware: {arch: amd64, vcpu: 8", "hardware: {arch: s390x, vcpu: 8"
        )
    )
    with pytest.raises(FlavorError) as caught:
        run(cell_program(plan_of(text)))
    assert S390X_CLOSED in str(caught.value)


def test_a_reservation_is_a_pool_of_dedicated_hosts() -> None:
    text = pool_text(
        "- {machine: bx2-16x64, disk: 250GiB, capacity: reserved, "
        "reservations: [block]}",
        "reservations:\n  block: {id: dh-pool-1, cell: ibm, machine: bx2-16x64, "
        "count: 4, start: 2026-01-01, zone: us-south-2}\n",
    )
    made = run(cell_program(plan_of(text)))
    pool = one(made, POOL)
    assert pool.inputs["hostPoolId"] == "dh-pool-1"
    assert pool.inputs["workerCount"] == 4
    assert [zone["name"] for zone in pool.inputs["zones"]] == ["us-south-2"]
    data = one(made, "ibm-autoscaler-config").inputs["data"]["workerPoolsConfig.json"]
    assert "bx2--bx2-16x64-release" in data
    assert '"bx2--bx2-16x64"' not in data
