"""Autoscaler: exact children and inputs, least privilege, order."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import kubernetes_validate
import pulumi
import pulumi_aws as aws
import pytest
from policy_sentry.querying.actions import get_action_data

from clouds.aws.conftest import LABELS, Record, Recording
from runfleet.clouds.aws import crds
from runfleet.clouds.aws.autoscaler import Autoscaler, AutoscalerArgs
from runfleet.clouds.aws.karpenter_policy import READS
from runfleet.placement.plan import CellPlan

EC2 = "arn:aws:ec2:us-east-1:111122223333"


def _build(plan: CellPlan, **changes: Any) -> Any:
    def build(opts: pulumi.ResourceOptions, kubernetes: Any) -> Autoscaler:
        cluster = aws.sqs.Queue("cluster")
        args = AutoscalerArgs.from_plan(
            plan,
            endpoint="https://api.example.org",
            subnet_ids=pulumi.Output.from_input(["subnet-0a", "subnet-0b"]),
            node_security_group_id=pulumi.Output.from_input("sg-0abc"),
            volumes_key_arn="arn:of:key",
            kubernetes=kubernetes,
            after=[cluster],
        )
        return Autoscaler("a", dataclasses.replace(args, **changes), opts)

    return build


@pytest.fixture(scope="module")
def first(record: Record, plan: CellPlan) -> Recording:
    return record(_build(plan))


EVENTS = {
    "spot-interruption": ("aws.ec2", "EC2 Spot Instance Interruption Warning"),
    "rebalance": ("aws.ec2", "EC2 Instance Rebalance Recommendation"),
    "state-change": ("aws.ec2", "EC2 Instance State-change Notification"),
    "health": ("aws.health", "AWS Health Event"),
    "reservation-end": (
        "aws.ec2",
        "EC2 Capacity Reservation Instance Interruption Warning",
    ),
}
KINDS = ("ec2nodeclasses", "nodepools", "nodeclaims")


def test_exact_children(first: Recording) -> None:
    attachment = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
    inline = "aws:iam/rolePolicy:RolePolicy"
    definition = "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition"
    expected = {
        "a-node-role": "aws:iam/role:Role",
        "a-node-role-AmazonEKSWorkerNodeMinimalPolicy": attachment,
        "a-node-role-AmazonEC2ContainerRegistryPullOnly": attachment,
        "a-node-role-start": inline,
        "a-node-profile": "aws:iam/instanceProfile:InstanceProfile",
        "a-node-access": "aws:eks/accessEntry:AccessEntry",
        "a-interruptions": "aws:sqs/queue:Queue",
        "a-interruptions-policy": "aws:sqs/queuePolicy:QueuePolicy",
        "a-role": "aws:iam/role:Role",
        "a-role-machines": inline,
        "a-role-disks": inline,
        "a-role-look-up": inline,
        "a-identity": "aws:eks/podIdentityAssociation:PodIdentityAssociation",
        "a-karpenter": "kubernetes:helm.sh/v3:Release",
    }
    for event in EVENTS:
        expected[f"a-event-{event}"] = "aws:cloudwatch/eventRule:EventRule"
        expected[f"a-event-{event}-target"] = "aws:cloudwatch/eventTarget:EventTarget"
    for kind in KINDS:
        expected[f"a-kind-{kind}"] = definition
    assert first.children("a") == expected
    providers = {
        r.type.split(":")[0]: r.provider for r in first.resources if r.parent == "a"
    }
    assert providers == {"aws": "cloud", "kubernetes": "kubernetes"}


def test_exact_queue_and_rules(first: Recording) -> None:
    assert first["a-interruptions"].inputs == {
        "name": "demo-ue1--karpenter",
        "messageRetentionSeconds": 300,
        "sqsManagedSseEnabled": True,
        "tags": {**LABELS, "Name": "a-interruptions"},
    }
    for event, (source, kind) in EVENTS.items():
        rule = first[f"a-event-{event}"].inputs
        assert json.loads(rule["eventPattern"]) == {
            "source": [source],
            "detail-type": [kind],
        }
        assert rule["name"] == f"demo-ue1--{event}"
        target = first[f"a-event-{event}-target"].inputs
        assert target == {
            "rule": rule["name"],
            "targetId": "karpenter",
            "arn": "arn:of:a-interruptions",
        }
    allow, deny = first.statements("a-interruptions-policy")
    assert allow == {
        "Sid": "OwnRules",
        "Effect": "Allow",
        "Principal": {"Service": "events.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": "arn:of:a-interruptions",
        "Condition": {
            "StringEquals": {"aws:SourceAccount": "111122223333"},
            "ArnEquals": {
                "aws:SourceArn": [f"arn:of:a-event-{event}" for event in EVENTS]
            },
        },
    }
    assert (deny["Effect"], deny["Condition"]) == (
        "Deny",
        {"Bool": {"aws:SecureTransport": "false"}},
    )


def test_exact_release(first: Recording) -> None:
    inputs = dict(first["a-karpenter"].inputs)
    values = inputs.pop("values")
    inputs.pop("compat")
    assert inputs == {
        "name": "karpenter",
        "namespace": "kube-system",
        "chart": "oci://public.ecr.aws/karpenter/karpenter",
        "version": "1.14.1",
        "skipCrds": True,
        "atomic": True,
        "timeout": 600,
    }
    size = {"cpu": "1", "memory": "2Gi"}
    assert values == {
        "replicas": 2,
        "additionalLabels": LABELS,
        "podLabels": LABELS,
        "serviceAccount": {"create": True, "name": "karpenter"},
        "nodeSelector": {
            "kubernetes.io/os": "linux",
            "role": "base-infrastructure",
        },
        "tolerations": [
            {
                "key": "CriticalAddonsOnly",
                "operator": "Equal",
                "value": "true",
                "effect": "NoSchedule",
            }
        ],
        "controller": {
            "resources": {"requests": size, "limits": size},
            "env": [{"name": "AWS_REGION", "value": "us-east-1"}],
        },
        "settings": {
            "clusterName": "demo-ue1",
            "clusterEndpoint": "https://api.example.org",
            "eksControlPlane": True,
            "interruptionQueue": "demo-ue1--karpenter",
            "batchMaxDuration": "45s",
            "batchIdleDuration": "45s",
            "vmMemoryOverheadPercent": 0.06,
            "featureGates": {"reservedCapacity": True},
        },
    }


def test_replicas_are_a_setting(record: Record, second_plan: CellPlan) -> None:
    made = record(_build(second_plan))
    assert made["a-karpenter"].inputs["values"]["replicas"] == 3


def test_the_controller_starts_after_all_that_it_needs(first: Recording) -> None:
    needs = {
        "cluster",
        "a-role-machines",
        "a-role-disks",
        "a-role-look-up",
        "a-identity",
        "a-interruptions-policy",
        *(f"a-kind-{kind}" for kind in KINDS),
        *(f"a-event-{event}-target" for event in EVENTS),
    }
    assert first["a-karpenter"].after >= needs
    for name in ("a-identity", "a-node-access", *(f"a-kind-{k}" for k in KINDS)):
        assert "cluster" in first[name].after


def test_ready_is_all_that_a_node_pool_needs(record: Record, plan: CellPlan) -> None:
    seen: list[str] = []

    def build(opts: pulumi.ResourceOptions, kubernetes: Any) -> Autoscaler:
        made = _build(plan)(opts, kubernetes)
        seen.extend(resource._name for resource in made.ready)
        return made

    children = set(record(build).children("a"))
    indirect = {"a-node-role", "a-role", "a-interruptions"}
    assert set(seen) == children - indirect


def test_machines_get_a_role_of_their_own(first: Recording) -> None:
    assert first["a-node-profile"].inputs == {
        "name": "demo-ue1--runner-nodes",
        "role": "demo-ue1--runner-nodes",
        "tags": {**LABELS, "Name": "a-node-profile"},
    }
    assert first["a-node-access"].inputs == {
        "clusterName": "demo-ue1",
        "principalArn": "arn:of:a-node-role",
        "type": "EC2_LINUX",
        "tags": {**LABELS, "Name": "a-node-access"},
    }
    assert first.outputs["instance_profile_name"] == "demo-ue1--runner-nodes"
    assert first.outputs["node_role_arn"] == "arn:of:a-node-role"


def test_the_controller_is_one_service_account(first: Recording) -> None:
    assert first["a-identity"].inputs == {
        "clusterName": "demo-ue1",
        "namespace": "kube-system",
        "serviceAccount": "karpenter",
        "roleArn": "arn:of:a-role",
        "tags": {**LABELS, "Name": "a-identity"},
    }
    (trust,) = first.statements("a-role", "assumeRolePolicy")
    assert trust["Condition"]["StringEquals"] == {
        "aws:RequestTag/eks-cluster-arn": (
            "arn:aws:eks:us-east-1:111122223333:cluster/demo-ue1"
        ),
        "aws:RequestTag/kubernetes-namespace": "kube-system",
        "aws:RequestTag/kubernetes-service-account": "karpenter",
    }


def _statements(recording: Recording) -> dict[str, dict[str, Any]]:
    found = [
        statement
        for name in ("machines", "disks", "look-up")
        for statement in recording.statements(f"a-role-{name}")
    ]
    assert len({statement["Sid"] for statement in found}) == len(found)
    return {statement["Sid"]: statement for statement in found}


def test_machines_start_only_in_our_network(first: Recording) -> None:
    statement = _statements(first)["StartFrom"]
    assert statement["Action"] == ["ec2:CreateFleet", "ec2:RunInstances"]
    assert statement["Resource"] == [
        "arn:aws:ec2:us-east-1::image/*",
        "arn:aws:ec2:us-east-1::snapshot/*",
        f"{EC2}:security-group/sg-0abc",
        f"{EC2}:subnet/subnet-0a",
        f"{EC2}:subnet/subnet-0b",
        "arn:aws:ec2:us-east-1:*:capacity-reservation/cr-0123456789abcdef0",
    ]


def test_machines_are_tagged_when_they_are_made_and_stopped(first: Recording) -> None:
    statements = _statements(first)
    owner = "kubernetes.io/cluster/demo-ue1"
    request = {
        "StringEquals": {
            f"aws:RequestTag/{owner}": "owned",
            "aws:RequestTag/eks:eks-cluster-name": "demo-ue1",
        },
        "StringLike": {"aws:RequestTag/karpenter.sh/nodepool": "*"},
    }
    own = {
        "StringEquals": {f"aws:ResourceTag/{owner}": "owned"},
        "StringLike": {"aws:ResourceTag/karpenter.sh/nodepool": "*"},
    }
    assert statements["StartTagged"]["Condition"] == request
    assert statements["StartFromOwnTemplates"]["Condition"] == own
    assert statements["StopItsMachines"]["Condition"] == own
    assert statements["StopItsMachines"]["Action"] == [
        "ec2:DeleteLaunchTemplate",
        "ec2:TerminateInstances",
    ]
    made = statements["TagWhatItMakes"]["Condition"]
    assert made["StringEquals"]["ec2:CreateAction"] == [
        "CreateFleet",
        "CreateLaunchTemplate",
        "RunInstances",
    ]
    assert made["StringEquals"].items() > request["StringEquals"].items()


def test_it_passes_one_role_to_ec2_and_changes_no_iam(first: Recording) -> None:
    statements = _statements(first)
    assert statements["GiveNodeRole"] == {
        "Sid": "GiveNodeRole",
        "Effect": "Allow",
        "Action": ["iam:PassRole"],
        "Resource": ["arn:of:a-node-role"],
        "Condition": {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}},
    }
    iam = {
        action
        for statement in statements.values()
        for action in statement["Action"]
        if action.startswith("iam:")
    }
    assert iam == {"iam:PassRole", "iam:ListInstanceProfiles", "iam:GetInstanceProfile"}


def test_disks_are_encrypted_through_ec2_only(first: Recording) -> None:
    for sid in ("EncryptVolumes", "GrantVolumes"):
        statement = _statements(first)[sid]
        assert statement["Resource"] == ["arn:of:key"]
        via = statement["Condition"]["StringEquals"]
        assert via == {"kms:ViaService": "ec2.us-east-1.amazonaws.com"}


def test_no_action_is_a_pattern_and_every_action_exists(first: Recording) -> None:
    actions = {a for s in _statements(first).values() for a in s["Action"]}
    assert not any("*" in action or "?" in action for action in actions)
    for action in sorted(actions):
        service, _, name = action.partition(":")
        assert get_action_data(service, name), f"IAM knows no {action}"


def test_any_resource_only_where_iam_has_no_type(first: Recording) -> None:
    anywhere = [s for s in _statements(first).values() if s["Resource"] == "*"]
    actions = {action for statement in anywhere for action in statement["Action"]}
    assert actions == {*READS, "pricing:GetProducts"}
    for action in sorted(actions):
        service, _, name = action.partition(":")
        data = get_action_data(service, name)
        types = {row["resource_arn_format"] for row in data[service]}
        assert types == {"*"}, f"{action} could be limited to {types}"


def test_inline_policies_fit_into_a_role(first: Recording) -> None:
    size = sum(
        len("".join(first[f"a-role-{name}"].inputs["policy"].split()))
        for name in ("machines", "disks", "look-up")
    )
    assert size <= 10240, "IAM: inline policies of a role, without white space"


@pytest.mark.parametrize("kind", crds.kinds(), ids=lambda kind: kind.name)
def test_definitions_are_valid(first: Recording, kind: crds.Kind) -> None:
    inputs = first[f"a-kind-{kind.plural}"].inputs
    assert inputs["metadata"] == {"name": kind.full_name, "labels": LABELS}
    written = _kubernetes(inputs)
    kubernetes_validate.validate(written, "1.35", strict=True)
    (version,) = written["spec"]["versions"]
    assert version["schema"]["openAPIV3Schema"] == kind.schema()
    assert (version["name"], version["served"], version["storage"]) == (
        "v1",
        True,
        True,
    )
    assert version["subresources"]["status"] == {}
    assert ("scale" in version["subresources"]) == (kind.name == "NodePool")
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert spec["x-kubernetes-preserve-unknown-fields"] is True


def _kubernetes(value: Any) -> Any:
    """Spell what Pulumi sends as the provider spells it for Kubernetes."""
    if isinstance(value, dict):
        return {
            key.replace("_", "-") if key.startswith("x_kubernetes") else key: (
                _kubernetes(found)
            )
            for key, found in value.items()
        }
    return [_kubernetes(found) for found in value] if isinstance(value, list) else value
