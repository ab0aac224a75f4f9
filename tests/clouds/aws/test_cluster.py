"""Cluster: exact children and inputs, access, order and credentials."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from clouds.aws.conftest import LABELS, Record, Recording, id_of
from runfleet.clouds.aws.base_nodes import base_image
from runfleet.clouds.aws.cluster import Cluster, ClusterArgs, ClusterError
from runfleet.placement.plan import CellPlan

DEPLOY = "arn:aws:iam::111122223333:role/deploy"
SUBNETS = ["subnet-0a", "subnet-0b"]
CONTROL = ["subnet-0c", "subnet-0d"]


def _args(plan: CellPlan, **changes: Any) -> ClusterArgs:
    made = ClusterArgs.from_plan(plan, "vpc-0abc", SUBNETS, CONTROL, "sg-0abc", DEPLOY)
    return dataclasses.replace(made, **changes)


@pytest.fixture(scope="module")
def first(record: Record, plan: CellPlan) -> Recording:
    return record(lambda opts, _: Cluster("c", _args(plan), opts))


@pytest.fixture(scope="module")
def second(record: Record, second_plan: CellPlan) -> Recording:
    return record(lambda opts, _: Cluster("c", _args(second_plan), opts))


PORTS = (443, 4443, 8443, 9443, 10250)


def test_exact_children(first: Recording) -> None:
    attachment = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
    inline = "aws:iam/rolePolicy:RolePolicy"
    role = "aws:iam/role:Role"
    ingress = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
    egress = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
    expected = {
        "c-control-plane": "aws:ec2/securityGroup:SecurityGroup",
        "c-api-from-nodes": ingress,
        "c-role": role,
        "c-role-AmazonEKSClusterPolicy": attachment,
        "c-logs": "aws:cloudwatch/logGroup:LogGroup",
        "c-eks": "aws:eks/cluster:Cluster",
        "c-kubernetes": "pulumi:providers:kubernetes",
        "c-addon-vpc-cni-role": role,
        "c-addon-vpc-cni-role-AmazonEKS_CNI_Policy": attachment,
        "c-addon-aws-ebs-csi-driver-role": role,
        "c-addon-aws-ebs-csi-driver-role-AmazonEBSCSIDriverPolicyV2": attachment,
        "c-addon-aws-ebs-csi-driver-role-volumes": inline,
        "c-base": "aws:eks/nodeGroup:NodeGroup",
        "c-base-template": "aws:ec2/launchTemplate:LaunchTemplate",
        "c-base-role": role,
        "c-base-role-AmazonEKSWorkerNodeMinimalPolicy": attachment,
        "c-base-role-AmazonEC2ContainerRegistryPullOnly": attachment,
        "c-base-role-start": inline,
    }
    for port in PORTS:
        expected[f"c-api-to-nodes-{port}"] = egress
        expected[f"c-nodes-from-api-{port}"] = ingress
    for key in ("secrets", "logs", "volumes"):
        expected[f"c-{key}-key"] = "aws:kms/key:Key"
        expected[f"c-{key}-key-alias"] = "aws:kms/alias:Alias"
    for who in ("admin-demo-admin", "deployment"):
        expected[f"c-{who}"] = "aws:eks/accessEntry:AccessEntry"
        expected[f"c-{who}-policy"] = (
            "aws:eks/accessPolicyAssociation:AccessPolicyAssociation"
        )
    for addon in (
        "vpc-cni",
        "kube-proxy",
        "eks-pod-identity-agent",
        "coredns",
        "aws-ebs-csi-driver",
    ):
        expected[f"c-addon-{addon}"] = "aws:eks/addon:Addon"
    for label in (*LABELS, "Name"):
        expected[f"c-base-tag-{label}"] = "aws:autoscaling/tag:Tag"
    assert first.children("c") == expected
    clouds = {r.provider for r in first.resources if r.type.startswith("aws:")}
    assert clouds == {"cloud"}


def test_exact_cluster(first: Recording) -> None:
    assert first["c-eks"].inputs == {
        "name": "demo-ue1",
        "version": "1.35",
        "roleArn": "arn:of:c-role",
        "vpcConfig": {
            "subnetIds": CONTROL,
            "securityGroupIds": [id_of("sg-", "c-control-plane")],
            "endpointPrivateAccess": True,
            "endpointPublicAccess": False,
        },
        "kubernetesNetworkConfig": {"ipFamily": "ipv4"},
        "accessConfig": {
            "authenticationMode": "API",
            "bootstrapClusterCreatorAdminPermissions": False,
        },
        "encryptionConfig": {
            "provider": {"keyArn": "arn:of:c-secrets-key"},
            "resources": ["secrets"],
        },
        "enabledClusterLogTypes": [
            "api",
            "audit",
            "authenticator",
            "controllerManager",
            "scheduler",
        ],
        "upgradePolicy": {"supportType": "STANDARD"},
        "bootstrapSelfManagedAddons": False,
        "deletionProtection": True,
        "tags": {**LABELS, "Name": "c-eks"},
    }
    assert first["c-eks"].after >= {"c-logs", "c-role-AmazonEKSClusterPolicy"}


def test_stateful_things_are_protected_and_kept(first: Recording) -> None:
    expected = {"c-eks", "c-logs", "c-secrets-key", "c-logs-key", "c-volumes-key"}
    assert {r.name for r in first.resources if r.protect} == expected
    assert {r.name for r in first.resources if r.retain} == expected


def test_an_allow_list_opens_the_api_to_its_ranges_only(second: Recording) -> None:
    vpc = second["c-eks"].inputs["vpcConfig"]
    assert vpc["endpointPublicAccess"] is True
    assert vpc["endpointPrivateAccess"] is True
    assert vpc["publicAccessCidrs"] == ["192.0.2.0/24"]


@pytest.mark.parametrize("allow", [(), ("0.0.0.0/0",), ("192.0.2.0/24", "::/0")])
def test_the_api_is_never_open_to_all(
    record: Record, plan: CellPlan, allow: tuple[str, ...]
) -> None:
    args = _args(plan, api_mode="allow-list", api_allow=allow)
    with pytest.raises(ClusterError, match="narrower than the whole internet"):
        record(lambda opts, _: Cluster("c", args, opts))


def test_admins_and_the_deployment_are_all_who_have_access(
    first: Recording, second: Recording
) -> None:
    role = "arn:aws:iam::111122223333:role"
    assert {
        entry.inputs["principalArn"]: entry.inputs["type"]
        for entry in first.of_type("aws:eks/accessEntry:AccessEntry")
    } == {f"{role}/demo-admin": "STANDARD", f"{role}/deploy": "STANDARD"}
    assert first["c-admin-demo-admin-policy"].inputs == {
        "clusterName": "demo-ue1",
        "principalArn": f"{role}/demo-admin",
        "policyArn": "arn:aws:eks::aws:cluster-access-policy/"
        "AmazonEKSClusterAdminPolicy",
        "accessScope": {"type": "cluster"},
    }
    (entry,) = second.of_type("aws:eks/accessEntry:AccessEntry")
    assert entry.inputs["principalArn"] == f"{role}/deploy"


def test_a_deployment_that_is_an_admin_has_one_entry(
    record: Record, plan: CellPlan
) -> None:
    args = _args(plan, admins=("deploy",))
    made = record(lambda opts, _: Cluster("c", args, opts))
    (entry,) = made.of_type("aws:eks/accessEntry:AccessEntry")
    assert entry.name == "c-admin-deploy"


def test_rules_between_nodes_and_control_plane(first: Recording) -> None:
    group = id_of("sg-", "c-control-plane")
    api = first["c-api-from-nodes"].inputs
    assert (api["securityGroupId"], api["referencedSecurityGroupId"]) == (
        group,
        "sg-0abc",
    )
    assert (api["ipProtocol"], api["fromPort"], api["toPort"]) == ("tcp", 443, 443)
    for port in PORTS:
        out, into = (
            first[f"c-api-to-nodes-{port}"].inputs,
            first[f"c-nodes-from-api-{port}"].inputs,
        )
        assert (out["fromPort"], out["toPort"]) == (port, port)
        assert (into["fromPort"], into["toPort"]) == (port, port)
        assert out["securityGroupId"] == into["referencedSecurityGroupId"] == group
        assert into["securityGroupId"] == out["referencedSecurityGroupId"] == "sg-0abc"


def test_addons_come_from_pins_in_the_right_order(first: Recording) -> None:
    addons = first.of_type("aws:eks/addon:Addon")
    assert {a.inputs["addonName"]: a.inputs["addonVersion"] for a in addons} == {
        "vpc-cni": "v1.1",
        "kube-proxy": "v1.2",
        "eks-pod-identity-agent": "v1.3",
        "coredns": "v1.4",
        "aws-ebs-csi-driver": "v1.5",
    }
    for addon in addons:
        assert addon.inputs["resolveConflictsOnCreate"] == "OVERWRITE"
        assert addon.inputs["resolveConflictsOnUpdate"] == "OVERWRITE"
    early = {"c-addon-vpc-cni", "c-addon-kube-proxy", "c-addon-eks-pod-identity-agent"}
    assert first["c-base"].after >= early
    for late in ("c-addon-coredns", "c-addon-aws-ebs-csi-driver"):
        assert "c-base" in first[late].after
    for name in early:
        assert "c-base" not in first[name].after


def test_network_policy_is_enforced(first: Recording) -> None:
    plugin = first["c-addon-vpc-cni"].inputs
    assert json.loads(plugin["configurationValues"]) == {"enableNetworkPolicy": "true"}
    assert plugin["podIdentityAssociations"] == [
        {"serviceAccount": "aws-node", "roleArn": "arn:of:c-addon-vpc-cni-role"}
    ]


@pytest.mark.parametrize(
    ("role", "account"),
    [
        ("c-addon-vpc-cni-role", "aws-node"),
        ("c-addon-aws-ebs-csi-driver-role", "ebs-csi-controller-sa"),
    ],
)
def test_addon_roles_are_bound_to_one_service_account(
    first: Recording, role: str, account: str
) -> None:
    (trust,) = first.statements(role, "assumeRolePolicy")
    assert trust == {
        "Sid": "OneServiceAccount",
        "Effect": "Allow",
        "Principal": {"Service": "pods.eks.amazonaws.com"},
        "Action": ["sts:AssumeRole", "sts:TagSession"],
        "Condition": {
            "StringEquals": {
                "aws:RequestTag/eks-cluster-arn": (
                    "arn:aws:eks:us-east-1:111122223333:cluster/demo-ue1"
                ),
                "aws:RequestTag/kubernetes-namespace": "kube-system",
                "aws:RequestTag/kubernetes-service-account": account,
            }
        },
    }
    assert first[role].inputs["maxSessionDuration"] == 3600


def test_exact_base_nodes(first: Recording) -> None:
    assert first["c-base"].inputs == {
        "clusterName": "demo-ue1",
        "nodeGroupName": "base",
        "nodeRoleArn": "arn:of:c-base-role",
        "subnetIds": SUBNETS,
        "instanceTypes": ["m7g.4xlarge"],
        "amiType": "AL2023_ARM_64_STANDARD",
        "capacityType": "ON_DEMAND",
        "version": "1.35",
        "releaseVersion": "1.35.2-20260318",
        "launchTemplate": {"id": id_of("lt-", "c-base-template"), "version": "1"},
        "scalingConfig": {"minSize": 3, "desiredSize": 3, "maxSize": 3},
        "updateConfig": {"maxUnavailablePercentage": 33},
        "nodeRepairConfig": {"enabled": True},
        "labels": {"role": "base-infrastructure"},
        "taints": [
            {"key": "CriticalAddonsOnly", "value": "true", "effect": "NO_SCHEDULE"}
        ],
        "tags": {**LABELS, "Name": "c-base"},
    }
    tags = {**LABELS, "Name": "c-base"}
    assert first["c-base-template"].inputs == {
        "name": "demo-ue1--base",
        "description": "Nodes for system pods",
        "updateDefaultVersion": True,
        "metadataOptions": {
            "httpEndpoint": "enabled",
            "httpTokens": "required",
            "httpPutResponseHopLimit": 1,
            "instanceMetadataTags": "disabled",
        },
        "blockDeviceMappings": [
            {
                "deviceName": "/dev/xvda",
                "ebs": {
                    "volumeType": "gp3",
                    "volumeSize": 100,
                    "encrypted": "true",
                    "kmsKeyId": "arn:of:c-volumes-key",
                    "deleteOnTermination": "true",
                },
            }
        ],
        "networkInterfaces": [
            {
                "deviceIndex": 0,
                "associatePublicIpAddress": "false",
                "deleteOnTermination": "true",
                "securityGroups": ["sg-0abc"],
            }
        ],
        "tagSpecifications": [
            {"resourceType": kind, "tags": tags}
            for kind in ("instance", "volume", "network-interface")
        ],
        "tags": {**LABELS, "Name": "c-base-template"},
    }


def test_the_scaling_group_is_labelled(first: Recording) -> None:
    made = first.of_type("aws:autoscaling/tag:Tag")
    assert {tag.inputs["autoscalingGroupName"] for tag in made} == {"eks-base"}
    assert {t.inputs["tag"]["key"]: t.inputs["tag"]["value"] for t in made} == {
        **LABELS,
        "Name": "c-base",
    }
    assert {tag.inputs["tag"]["propagateAtLaunch"] for tag in made} == {False}


def test_nodes_know_themselves_and_little_else(first: Recording) -> None:
    (statement,) = first.statements("c-base-role-start")
    assert statement["Action"] == [
        "ec2:DescribeInstances",
        "ec2:DescribeInstanceTypes",
    ]
    assert statement["Condition"] == {
        "StringEquals": {"aws:RequestedRegion": "us-east-1"}
    }
    attached = {
        a.inputs["policyArn"]
        for a in first.of_type("aws:iam/rolePolicyAttachment:RolePolicyAttachment")
        if a.name.startswith("c-base-role")
    }
    assert attached == {
        "arn:aws:iam::aws:policy/AmazonEKSWorkerNodeMinimalPolicy",
        "arn:aws:iam::aws:policy/AmazonEC2ContainerRegistryPullOnly",
    }


def test_keys_name_who_may_use_them(first: Recording) -> None:
    users = {
        key: {
            json.dumps(statement["Principal"])
            for statement in first.statements(f"c-{key}-key")[1:]
        }
        for key in ("secrets", "logs", "volumes")
    }
    service_role = (
        "arn:aws:iam::111122223333:role/aws-service-role/autoscaling.amazonaws.com/"
        "AWSServiceRoleForAutoScaling"
    )
    assert users == {
        "secrets": {'{"AWS": "arn:of:c-role"}'},
        "logs": {'{"Service": "logs.us-east-1.amazonaws.com"}'},
        "volumes": {json.dumps({"AWS": service_role})},
    }
    for key in users:
        inputs = first[f"c-{key}-key"].inputs
        assert inputs["enableKeyRotation"] is True
        assert inputs["rotationPeriodInDays"] == 365
        assert inputs["deletionWindowInDays"] == 30
    assert first["c-volumes-key-alias"].inputs["name"] == "alias/demo-ue1/volumes"


def _kubeconfig(recording: Recording) -> dict[str, Any]:
    return json.loads(recording["c-kubernetes"].inputs["kubeconfig"])


def test_credentials_are_fetched_and_never_kept(first: Recording) -> None:
    config = _kubeconfig(first)
    assert config["clusters"] == [
        {
            "name": "demo-ue1",
            "cluster": {
                "server": "https://api.example.org",
                "certificate-authority-data": "Q0E=",
            },
        }
    ]
    assert config["users"] == [
        {
            "name": "demo-ue1",
            "user": {
                "exec": {
                    "apiVersion": "client.authentication.k8s.io/v1beta1",
                    "command": "aws",
                    "args": [
                        "eks",
                        "get-token",
                        "--cluster-name",
                        "demo-ue1",
                        "--region",
                        "us-east-1",
                        "--output",
                        "json",
                        "--role-arn",
                        DEPLOY,
                    ],
                    "interactiveMode": "Never",
                }
            },
        }
    ]
    assert config["current-context"] == "demo-ue1"
    assert first["c-kubernetes"].inputs["enableServerSideApply"] == "true"


def test_a_tunnel_goes_through_the_proxy(record: Record, plan: CellPlan) -> None:
    args = _args(plan, api_mode="tunnel", api_proxy="https://proxy:3128")
    made = record(lambda opts, _: Cluster("c", args, opts))
    cluster = _kubeconfig(made)["clusters"][0]["cluster"]
    assert cluster["proxy-url"] == "https://proxy:3128"
    assert made["c-eks"].inputs["vpcConfig"]["endpointPublicAccess"] is False


def test_an_existing_cluster_is_read_and_not_made(
    record: Record, plan: CellPlan
) -> None:
    args = _args(plan, adopt="theirs", cluster="theirs")
    made = record(lambda opts, _: Cluster("c", args, opts))
    assert {r.name: r.read for r in made.resources if r.read} == {"c-eks": "theirs"}
    expected = {"c-eks", "c-kubernetes", "c-volumes-key", "c-volumes-key-alias"}
    expected |= {"c-api-from-nodes"}
    expected |= {f"c-api-to-nodes-{port}" for port in PORTS}
    expected |= {f"c-nodes-from-api-{port}" for port in PORTS}
    assert set(made.children("c")) == expected
    rule = made["c-api-from-nodes"].inputs
    assert rule["securityGroupId"] == "sg-0ec5"


def test_a_cluster_needs_base_nodes(record: Record, plan: CellPlan) -> None:
    args = _args(plan, base_nodes=None)
    with pytest.raises(ClusterError, match="base_nodes") as caught:
        record(lambda opts, _: Cluster("c", args, opts))
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("machine", "arm"),
    [
        ("m7g.4xlarge", True),
        ("c7gd.large", True),
        ("t4g.small", True),
        ("a1.large", True),
        ("is4gen.large", True),
        ("m8g.metal-24xl", True),
        ("m7i.4xlarge", False),
        ("m7i-flex.large", False),
        ("g4dn.xlarge", False),
        ("c7a.large", False),
        ("p6-b200.48xlarge", False),
    ],
)
def test_image_of_a_machine(machine: str, arm: bool) -> None:
    expected = "AL2023_ARM_64_STANDARD" if arm else "AL2023_x86_64_STANDARD"
    assert base_image(machine) == expected
