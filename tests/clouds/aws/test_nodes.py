"""NodePool: exact objects, and that our CRDs and Karpenter's rules accept them."""

from __future__ import annotations

import dataclasses
from typing import Any

import jsonschema
import pulumi
import pulumi_aws as aws
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from clouds.aws.conftest import LABELS, Record, Recording
from runfleet.clouds.aws import crds
from runfleet.clouds.aws.nodes import (
    NodePool,
    NodePoolArgs,
    consolidate_after,
    disruption,
    duration,
)
from runfleet.placement.plan import CellPlan
from runfleet.spec.pools import Capacity
from runfleet.spec.units import Percent

NAMES = (
    "c7i--c7i-24xlarge",
    "c7i--c7i-12xlarge",
    "c7i--c7i-12xlarge-release",
    "p5--p5-48xlarge",
)


def _build(plan: CellPlan, name: str, **changes: Any) -> Any:
    pool = next(pool for pool in plan.node_pools if pool.name == name)

    def build(opts: pulumi.ResourceOptions, kubernetes: Any) -> NodePool:
        autoscaler = aws.sqs.Queue("autoscaler")
        args = NodePoolArgs.from_plan(
            plan,
            pool,
            instance_profile="demo-ue1--runner-nodes",
            subnet_ids=pulumi.Output.from_input(["subnet-0a", "subnet-0b"]),
            security_group_id="sg-0abc",
            volumes_key_arn="arn:of:key",
            kubernetes=kubernetes,
            after=[autoscaler],
        )
        return NodePool("p", dataclasses.replace(args, **changes), opts)

    return build


@pytest.fixture(scope="module")
def pools(record: Record, plan: CellPlan) -> dict[str, Recording]:
    return {name: record(_build(plan, name)) for name in NAMES}


def _yaml(text: str) -> Any:
    return YAML(typ="safe").load(text)


def test_one_pool_for_each_machine_shape(plan: CellPlan) -> None:
    assert tuple(pool.name for pool in plan.node_pools) == NAMES


def test_exact_children(pools: dict[str, Recording]) -> None:
    for name, made in pools.items():
        assert made.children("p") == {
            "p-class": "kubernetes:karpenter.k8s.aws/v1:EC2NodeClass",
            "p-pool": "kubernetes:karpenter.sh/v1:NodePool",
        }
        assert made["p"].type == "runfleet:aws:NodePool"
        assert {made["p-class"].provider, made["p-pool"].provider} == {"kubernetes"}
        assert made["p-class"].inputs["metadata"]["name"] == name
        assert made.outputs["pool_name"] == name


def test_the_autoscaler_outlives_the_machines(pools: dict[str, Recording]) -> None:
    made = pools["c7i--c7i-24xlarge"]
    assert "autoscaler" in made["p-class"].after
    assert made["p-pool"].after == {"p-class"}
    assert made["p-pool"].inputs["metadata"]["annotations"] == {
        "pulumi.com/deletionPropagationPolicy": "foreground"
    }
    assert made["p-class"].delete_timeout == made["p-pool"].delete_timeout == "25h"


def test_exact_objects(pools: dict[str, Recording]) -> None:
    made = pools["c7i--c7i-24xlarge"]
    name = "c7i--c7i-24xlarge"
    assert made["p-pool"].inputs == {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {
            "name": name,
            "labels": LABELS,
            "annotations": {"pulumi.com/deletionPropagationPolicy": "foreground"},
        },
        "spec": {
            "weight": 100,
            "disruption": {
                "consolidationPolicy": "WhenEmpty",
                "consolidateAfter": "5m",
                "budgets": [{"nodes": "20%"}],
            },
            "template": {
                "metadata": {
                    "labels": {
                        **LABELS,
                        "workload-type": "github-runner",
                        "node-fleet": "c7i",
                        "instance-type": "c7i.24xlarge",
                    }
                },
                "spec": {
                    "nodeClassRef": {
                        "group": "karpenter.k8s.aws",
                        "kind": "EC2NodeClass",
                        "name": name,
                    },
                    "requirements": [
                        {"key": key, "operator": "In", "values": values}
                        for key, values in (
                            ("kubernetes.io/arch", ["amd64"]),
                            ("kubernetes.io/os", ["linux"]),
                            ("karpenter.sh/capacity-type", ["on-demand"]),
                            ("node.kubernetes.io/instance-type", ["c7i.24xlarge"]),
                            (
                                "topology.kubernetes.io/zone",
                                ["us-east-1a", "us-east-1b"],
                            ),
                        )
                    ],
                    "taints": [
                        {"key": "node-fleet", "value": "c7i", "effect": "NoSchedule"},
                        {
                            "key": "instance-type",
                            "value": "c7i.24xlarge",
                            "effect": "NoSchedule",
                        },
                    ],
                    "expireAfter": "720h",
                    "terminationGracePeriod": "24h",
                },
            },
        },
    }
    inputs = made["p-class"].inputs
    assert _yaml(inputs["spec"].pop("userData")) == {
        "apiVersion": "node.eks.aws/v1alpha1",
        "kind": "NodeConfig",
        "spec": {
            "kubelet": {
                "config": {
                    "cpuManagerPolicy": "static",
                    "topologyManagerPolicy": "best-effort",
                    "topologyManagerScope": "container",
                    "topologyManagerPolicyOptions": {
                        "prefer-closest-numa-nodes": "true"
                    },
                    "containerLogMaxSize": "50Mi",
                    "containerLogMaxFiles": 5,
                }
            }
        },
    }
    assert inputs == {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": name, "labels": LABELS},
        "spec": {
            "amiFamily": "AL2023",
            "amiSelectorTerms": [{"alias": "al2023@v20260318"}],
            "instanceProfile": "demo-ue1--runner-nodes",
            "subnetSelectorTerms": [{"id": "subnet-0a"}, {"id": "subnet-0b"}],
            "securityGroupSelectorTerms": [{"id": "sg-0abc"}],
            "associatePublicIPAddress": False,
            "metadataOptions": {
                "httpEndpoint": "enabled",
                "httpProtocolIPv6": "disabled",
                "httpPutResponseHopLimit": 1,
                "httpTokens": "required",
            },
            "blockDeviceMappings": [
                {
                    "deviceName": "/dev/xvda",
                    "ebs": {
                        "volumeType": "gp3",
                        "volumeSize": "1200Gi",
                        "encrypted": True,
                        "kmsKeyID": "arn:of:key",
                        "deleteOnTermination": True,
                        "iops": 16000,
                        "throughput": 1000,
                    },
                }
            ],
            "tags": {**LABELS, "Name": f"demo-ue1-{name}"},
        },
    }


def _requirement(made: Recording, key: str) -> list[str]:
    spec = made["p-pool"].inputs["spec"]["template"]["spec"]
    (found,) = [r["values"] for r in spec["requirements"] if r["key"] == key]
    return found


def test_capacity_types(pools: dict[str, Recording]) -> None:
    assert {
        name: _requirement(made, "karpenter.sh/capacity-type")
        for name, made in pools.items()
    } == {
        "c7i--c7i-24xlarge": ["on-demand"],
        "c7i--c7i-12xlarge": ["spot"],
        "c7i--c7i-12xlarge-release": ["on-demand"],
        "p5--p5-48xlarge": ["reserved"],
    }


def test_reserved_gpu_machines(pools: dict[str, Recording]) -> None:
    made = pools["p5--p5-48xlarge"]
    spec = made["p-class"].inputs["spec"]
    assert spec["capacityReservationSelectorTerms"] == [{"id": "cr-0123456789abcdef0"}]
    assert spec["amiSelectorTerms"] == [{"tags": {"family": "gpu"}}]
    assert spec["instanceStorePolicy"] == "RAID0"
    kubelet = _yaml(spec["userData"])["spec"]["kubelet"]["config"]
    assert kubelet["topologyManagerPolicy"] == "single-numa-node"
    assert kubelet["topologyManagerScope"] == "pod"
    assert "topologyManagerPolicyOptions" not in kubelet
    assert _requirement(made, "topology.kubernetes.io/zone") == ["us-east-1b"]
    pool = made["p-pool"].inputs["spec"]
    assert pool["disruption"]["consolidateAfter"] == "90m"
    assert pool["disruption"]["budgets"] == [{"nodes": "1%"}]
    assert {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"} in pool[
        "template"
    ]["spec"]["taints"]
    assert pool["template"]["metadata"]["labels"]["ci_cost_model"] == "reserved"
    assert spec["tags"]["ci_cost_model"] == "reserved"


def test_release_nodes_are_labelled_and_tainted(pools: dict[str, Recording]) -> None:
    made = pools["c7i--c7i-12xlarge-release"]
    template = made["p-pool"].inputs["spec"]["template"]
    assert template["metadata"]["labels"]["ci_trust"] == "release"
    assert made["p-class"].inputs["spec"]["tags"]["ci_trust"] == "release"
    assert {"key": "ci_trust", "value": "release", "effect": "NoSchedule"} in template[
        "spec"
    ]["taints"]


def test_a_small_disk_asks_for_no_more_than_gp3_gives(
    pools: dict[str, Recording],
) -> None:
    (disk,) = pools["c7i--c7i-12xlarge"]["p-class"].inputs["spec"][
        "blockDeviceMappings"
    ]
    assert disk["ebs"] == {
        "volumeType": "gp3",
        "volumeSize": "20Gi",
        "encrypted": True,
        "kmsKeyID": "arn:of:key",
        "deleteOnTermination": True,
    }


def test_settings_of_the_cell(record: Record, second_plan: CellPlan) -> None:
    made = record(_build(second_plan, "c7i--c7i-24xlarge"))
    spec = made["p-pool"].inputs["spec"]
    assert spec["limits"] == {"cpu": "960"}
    assert spec["template"]["spec"]["startupTaints"] == [
        {"key": "node-init.example.org/mirror", "value": "true", "effect": "NoSchedule"}
    ]
    assert (
        "limits"
        not in record(_build(second_plan, "p5--p5-48xlarge"))["p-pool"].inputs["spec"]
    )


def test_donated_machines(record: Record, plan: CellPlan) -> None:
    machine = plan.node_pools[0].machine.model_copy(
        update={"capacity": Capacity.DONATED}
    )
    build = _build(plan, NAMES[0], machine=machine)
    assert _requirement(record(build), "karpenter.sh/capacity-type") == ["on-demand"]
    build = _build(plan, NAMES[0], machine=machine, reservation_ids=("cr-1",))
    assert _requirement(record(build), "karpenter.sh/capacity-type") == ["reserved"]


def test_defaults_of_an_empty_node(plan: CellPlan) -> None:
    c7i, p5 = plan.fleet.pools["c7i"], plan.fleet.pools["p5"]
    unset = p5.model_copy(update={"consolidate_after": None})
    metal = c7i.machines[0].model_copy(update={"bare_metal": True})
    assert consolidate_after(c7i, c7i.machines[0]) == 300
    assert consolidate_after(unset, p5.machines[0]) == 600
    assert consolidate_after(c7i, metal) == 900
    assert consolidate_after(p5, p5.machines[0]) == 5400


@pytest.mark.parametrize(
    ("share", "expected"), [("0%", 0), ("0.5%", 1), ("33.9%", 33), ("100%", 100)]
)
def test_disruption_is_whole_percent(plan: CellPlan, share: str, expected: int) -> None:
    pool = plan.fleet.pools["c7i"].model_copy(
        update={"disruption": Percent.parse(share)}
    )
    assert disruption(pool) == expected


@given(st.integers(0, 10**7))
def test_durations_keep_their_length(seconds: int) -> None:
    text = duration(seconds)
    assert int(text[:-1]) * {"s": 1, "m": 60, "h": 3600}[text[-1]] == seconds


def test_tags_leave_room_for_karpenters_own(record: Record, plan: CellPlan) -> None:
    labels = {f"extra{number}": "x" for number in range(45)}
    with pytest.raises(ValueError, match="leave no room"):
        record(_build(plan, NAMES[0], labels=labels))
    del labels["extra0"]
    made = record(_build(plan, NAMES[0], labels=labels))
    assert len(made["p-class"].inputs["spec"]["tags"]) == 45


def _typed(schema: dict[str, Any], value: Any, path: str = "") -> list[str]:
    """Return the paths of a value that a schema says nothing about."""
    if isinstance(value, list) and "items" in schema:
        return [
            found
            for index, item in enumerate(value)
            for found in _typed(schema["items"], item, f"{path}[{index}]")
        ]
    if not isinstance(value, dict) or "additionalProperties" in schema:
        return [] if schema.keys() & {"type", "anyOf"} else [path]
    known = schema.get("properties", {})
    return [
        found
        for key, item in value.items()
        for found in (
            _typed(known[key], item, f"{path}.{key}")
            if key in known
            else [f"{path}.{key}"]
        )
    ]


@pytest.mark.parametrize("name", NAMES)
def test_our_definitions_type_every_field_that_we_write(
    pools: dict[str, Recording], name: str
) -> None:
    schemas = {kind.name: kind.schema() for kind in crds.kinds()}
    for child in ("p-class", "p-pool"):
        written = pools[name][child].inputs
        schema = schemas[written["kind"]]
        jsonschema.validate(written, schema)
        assert _typed(schema["properties"]["spec"], written["spec"]) == []


@pytest.mark.parametrize(
    ("child", "path", "value"),
    [
        ("p-pool", ("disruption", "consolidationPolicy"), "WhenIdle"),
        ("p-pool", ("disruption", "consolidateAfter"), "1d"),
        ("p-pool", ("weight",), 101),
        ("p-class", ("amiFamily",), "Ubuntu"),
        ("p-class", ("metadataOptions", "httpTokens"), "sometimes"),
        ("p-class", ("capacityReservationSelectorTerms",), [{"id": "block"}]),
    ],
)
def test_our_definitions_refuse_mistakes(
    pools: dict[str, Recording], child: str, path: tuple[str, ...], value: Any
) -> None:
    written = _copy(pools[NAMES[3]][child].inputs)
    at = written["spec"]
    for part in path[:-1]:
        at = at[part]
    at[path[-1]] = value
    schemas = {kind.name: kind.schema() for kind in crds.kinds()}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(written, schemas[written["kind"]])


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(found) for key, found in value.items()}
    return [_copy(found) for found in value] if isinstance(value, list) else value
