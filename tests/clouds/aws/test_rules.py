"""The rules for AWS of the policy catalogue, on all that the four rooms register.

Each test names the rule that it checks (R-AWS-01 to R-AWS-26); rules about stores and
runner identities are checked beside those rooms.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

import pulumi
import pulumi_aws as aws
import pytest

from clouds.aws.conftest import Record, Recorded, Recording
from runfleet.clouds.aws.autoscaler import Autoscaler, AutoscalerArgs
from runfleet.clouds.aws.belongings import Belongings
from runfleet.clouds.aws.cluster import Cluster, ClusterArgs
from runfleet.clouds.aws.deploy import DeployRoleArgs, deploy_statements
from runfleet.clouds.aws.names import IAM_POLICY
from runfleet.clouds.aws.network import Network, NetworkArgs
from runfleet.clouds.aws.nodes import NodePool, NodePoolArgs
from runfleet.clouds.aws.secrets_reader import SecretsReader, SecretsReaderArgs
from runfleet.clouds.aws.tags import labels_of
from runfleet.placement.plan import CellPlan
from runfleet.rehearsal.runner import rehearse
from runfleet.spec.labels import KEYS

UNTAGGABLE = {
    "aws:autoscaling/tag:Tag",
    "aws:cloudwatch/eventTarget:EventTarget",
    "aws:ebs/encryptionByDefault:EncryptionByDefault",
    "aws:ec2/instanceMetadataDefaults:InstanceMetadataDefaults",
    "aws:ec2/routeTableAssociation:RouteTableAssociation",
    "aws:eks/accessPolicyAssociation:AccessPolicyAssociation",
    "aws:iam/rolePolicy:RolePolicy",
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment",
    "aws:kms/alias:Alias",
    "aws:sqs/queuePolicy:QueuePolicy",
}
"""Types that take no tags."""

POLICY_KEYS = ("policy", "assumeRolePolicy")


def _cell(plan: CellPlan) -> Any:
    """Build the four rooms of a cell as a floor does."""

    def build(opts: pulumi.ResourceOptions, _: Any) -> Network:
        network = Network("net", NetworkArgs.from_plan(plan), opts)
        cluster = Cluster(
            "cluster",
            ClusterArgs.from_plan(
                plan,
                network.network_id,
                network.node_subnet_ids,
                network.control_subnet_ids,
                network.node_security_group_id,
            ),
            opts,
        )
        autoscaler = Autoscaler(
            "scaler",
            AutoscalerArgs.from_plan(
                plan,
                endpoint=cluster.endpoint,
                subnet_ids=network.node_subnet_ids,
                node_security_group_id=network.node_security_group_id,
                volumes_key_arn=cluster.volumes_key_arn,
                kubernetes=cluster.kubernetes,
                after=cluster.ready,
            ),
            opts,
        )
        SecretsReader(
            "secrets",
            SecretsReaderArgs.from_plan(
                plan, cluster.cluster_name, "external-secrets", "external-secrets"
            ),
            opts,
        )
        for pool in plan.node_pools:
            NodePool(
                f"pool-{pool.name}",
                NodePoolArgs.from_plan(
                    plan,
                    pool,
                    instance_profile=autoscaler.instance_profile_name,
                    subnet_ids=network.node_subnet_ids,
                    security_group_id=network.node_security_group_id,
                    volumes_key_arn=cluster.volumes_key_arn,
                    kubernetes=cluster.kubernetes,
                    after=autoscaler.ready,
                ),
                opts,
            )
        return network

    return build


@pytest.fixture(scope="module", params=["aws", "aws-two"])
def cell(
    request: pytest.FixtureRequest,
    record: Record,
    plan: CellPlan,
    second_plan: CellPlan,
) -> Recording:
    chosen = plan if request.param == "aws" else second_plan
    return record(_cell(chosen))


def _of(cell: Recording, kind: str) -> list[Recorded]:
    found = [r for r in cell.resources if r.type.endswith(f":{kind}")]
    assert found, f"no {kind}: the test would prove nothing"
    return found


def _statements(cell: Recording) -> Iterator[tuple[Recorded, dict[str, Any]]]:
    for resource in cell.resources:
        for key in POLICY_KEYS:
            if key in resource.inputs:
                for statement in json.loads(resource.inputs[key])["Statement"]:
                    yield resource, statement


def test_01_02_metadata_service(cell: Recording) -> None:
    for template in _of(cell, "LaunchTemplate"):
        options = template.inputs["metadataOptions"]
        assert options["httpTokens"] == "required"
        assert options["httpPutResponseHopLimit"] == 1
    for node_class in _of(cell, "EC2NodeClass"):
        options = node_class.inputs["spec"]["metadataOptions"]
        assert options["httpTokens"] == "required"
        assert options["httpPutResponseHopLimit"] == 1


def test_04_05_no_public_addresses(cell: Recording) -> None:
    for template in _of(cell, "LaunchTemplate"):
        for interface in template.inputs["networkInterfaces"]:
            assert interface["associatePublicIpAddress"] == "false"
    for node_class in _of(cell, "EC2NodeClass"):
        assert node_class.inputs["spec"]["associatePublicIPAddress"] is False
    for subnet in _of(cell, "Subnet"):
        assert subnet.inputs["mapPublicIpOnLaunch"] is False


def test_06_nothing_comes_in_from_outside(cell: Recording) -> None:
    network = _of(cell, "Vpc")[0].inputs["cidrBlock"]
    for rule in _of(cell, "SecurityGroupIngressRule"):
        assert rule.inputs.get("cidrIpv4") in (None, network)
        assert "cidrIpv6" not in rule.inputs
        assert "prefixListId" not in rule.inputs
    for group in _of(cell, "SecurityGroup"):
        assert "ingress" not in group.inputs
        assert "egress" not in group.inputs


def test_07_egress_is_explicit(cell: Recording) -> None:
    for rule in _of(cell, "SecurityGroupEgressRule"):
        if "cidrIpv4" in rule.inputs:
            ports = {rule.inputs["fromPort"], rule.inputs["toPort"]}
            assert ports in ({443}, {53})
            assert rule.inputs["ipProtocol"] in ("tcp", "udp")
        assert rule.inputs["description"]


def test_08_09_10_network(cell: Recording) -> None:
    (group,) = _of(cell, "DefaultSecurityGroup")
    assert (group.inputs["ingress"], group.inputs["egress"]) == ([], [])
    (flow_log,) = _of(cell, "FlowLog")
    assert flow_log.inputs["trafficType"] == "ALL"
    services = {e.inputs["serviceName"] for e in _of(cell, "VpcEndpoint")}
    assert {
        f"com.amazonaws.us-east-1.{name}"
        for name in ("s3", "ecr.api", "ecr.dkr", "sts", "logs")
    } <= services


def test_11_12_13_14_cluster(cell: Recording) -> None:
    (cluster,) = _of(cell, "Cluster")[-1:]
    vpc = cluster.inputs["vpcConfig"]
    assert vpc["endpointPrivateAccess"] is True
    if vpc["endpointPublicAccess"]:
        assert vpc["publicAccessCidrs"]
        assert not any(c.endswith("/0") for c in vpc["publicAccessCidrs"])
    assert cluster.inputs["encryptionConfig"]["resources"] == ["secrets"]
    assert len(cluster.inputs["enabledClusterLogTypes"]) == 5
    assert cluster.inputs["version"] == "1.35"


def test_15_25_no_ssh_and_no_user_data_secrets(cell: Recording) -> None:
    for group in _of(cell, "NodeGroup"):
        assert "remoteAccess" not in group.inputs
    for template in _of(cell, "LaunchTemplate"):
        assert "userData" not in template.inputs
        assert "keyName" not in template.inputs
    for node_class in _of(cell, "EC2NodeClass"):
        text = node_class.inputs["spec"]["userData"].lower()
        assert not any(word in text for word in ("secret", "password", "token"))


def test_16_disks_are_encrypted_with_our_key(cell: Recording) -> None:
    key = cell["cluster-volumes-key"]
    for template in _of(cell, "LaunchTemplate"):
        for mapping in template.inputs["blockDeviceMappings"]:
            assert mapping["ebs"]["encrypted"] == "true"
            assert mapping["ebs"]["kmsKeyId"] == f"arn:of:{key.name}"
    for node_class in _of(cell, "EC2NodeClass"):
        for mapping in node_class.inputs["spec"]["blockDeviceMappings"]:
            assert mapping["ebs"]["encrypted"] is True
            assert mapping["ebs"]["kmsKeyID"] == f"arn:of:{key.name}"


def test_17_18_19_no_administrators(cell: Recording) -> None:
    for resource, statement in _statements(cell):
        if resource.type != "aws:iam/rolePolicy:RolePolicy":
            continue
        assert statement["Effect"] == "Allow"
        assert not any("*" in action for action in statement["Action"])
        if "iam:PassRole" in statement["Action"]:
            assert statement["Resource"] == ["arn:of:scaler-node-role"]
            assert statement["Condition"]
    attached = {
        a.inputs["policyArn"].rpartition("/")[2]
        for a in _of(cell, "RolePolicyAttachment")
    }
    assert attached == {
        "AmazonEKSClusterPolicy",
        "AmazonEKS_CNI_Policy",
        "AmazonEBSCSIDriverPolicyV2",
        "AmazonEKSWorkerNodeMinimalPolicy",
        "AmazonEC2ContainerRegistryPullOnly",
    }


def test_20_22_23_trust(cell: Recording) -> None:
    for role in _of(cell, "Role"):
        assert role.inputs["maxSessionDuration"] == 3600
        (statement,) = json.loads(role.inputs["assumeRolePolicy"])["Statement"]
        assert list(statement["Principal"]) == ["Service"]
        if statement["Principal"]["Service"] == "pods.eks.amazonaws.com":
            asked = {k for block in statement["Condition"].values() for k in block}
            assert asked > {
                "aws:RequestTag/kubernetes-namespace",
                "aws:RequestTag/kubernetes-service-account",
            }
            assert asked & {"aws:RequestTag/eks-cluster-arn", "aws:SourceArn"}


def test_21_no_users(cell: Recording) -> None:
    types = {r.type for r in cell.resources}
    assert not {t for t in types if t.startswith(("aws:iam/user", "aws:iam/accessKey"))}


def test_26_keys_rotate_and_none_is_open(cell: Recording) -> None:
    for key in _of(cell, "Key"):
        assert key.inputs["enableKeyRotation"] is True
        assert key.protect
        assert key.retain
        for statement in json.loads(key.inputs["policy"])["Statement"]:
            assert "*" not in json.dumps(statement["Principal"])


def test_every_taggable_resource_has_every_label(cell: Recording) -> None:
    for resource in cell.resources:
        if not resource.type.startswith("aws:") or resource.type in UNTAGGABLE:
            assert "tags" not in resource.inputs
            continue
        labels = labels_of(resource.inputs["tags"])
        assert set(labels) == set(KEYS), resource.name
        assert resource.inputs["tags"].get("Name", resource.name) == resource.name


def test_labels_reach_machines_and_disks(cell: Recording) -> None:
    for template in _of(cell, "LaunchTemplate"):
        specifications = template.inputs["tagSpecifications"]
        assert {s["resourceType"] for s in specifications} == {
            "instance",
            "volume",
            "network-interface",
        }
        assert all(set(KEYS) <= set(s["tags"]) for s in specifications)
    for node_class in _of(cell, "EC2NodeClass"):
        assert set(KEYS) <= set(node_class.inputs["spec"]["tags"])
    for pool in _of(cell, "NodePool")[1:]:
        if pool.custom:
            labels = pool.inputs["spec"]["template"]["metadata"]["labels"]
            assert set(KEYS) <= set(labels)


def test_children_belong_to_their_component_and_no_provider_is_ambient(
    cell: Recording,
) -> None:
    for resource in cell.resources:
        if resource.type.startswith(("aws:", "kubernetes:")):
            assert resource.parent
            assert resource.name.startswith(f"{resource.parent}-")
            kind = resource.type.partition(":")[0]
            expected = {"aws": "cloud", "kubernetes": "cluster-kubernetes"}[kind]
            assert resource.provider == expected


def test_node_pools_wait_for_the_autoscaler(cell: Recording) -> None:
    for node_class in _of(cell, "EC2NodeClass"):
        assert "scaler-karpenter" in node_class.after
        assert {f"scaler-kind-{kind}" for kind in ("nodepools", "nodeclaims")} <= (
            node_class.after
        )
    assert cell["scaler-karpenter"].after >= {"cluster-base", "cluster-addon-coredns"}


NAMED = {
    "cloudwatch/logGroup:LogGroup": ("logs", "log-group:"),
    "sqs/queue:Queue": ("sqs", ""),
    "cloudwatch/eventRule:EventRule": ("events", "rule/"),
    "kms/alias:Alias": ("kms", ""),
    "iam/role:Role": ("iam", "role/"),
    "iam/policy:Policy": ("iam", "policy/"),
    "iam/instanceProfile:InstanceProfile": ("iam", "instance-profile/"),
    "eks/cluster:Cluster": ("eks", "cluster/"),
}
"""Types that the deploy role knows by name: service and start of the ARN's end."""


def test_the_deploy_role_reaches_every_name(cell: Recording, plan: CellPlan) -> None:
    own = Belongings.of(plan.fleet, plan.cell.account)
    known = [
        *own.logs(),
        *own.interruptions(),
        *own.aliases(),
        *own.iam("role"),
        *own.iam("policy", IAM_POLICY),
        *own.iam("instance-profile"),
        *own.in_clusters(),
    ]
    seen: set[str] = set()
    for resource in cell.resources:
        kind = resource.type.removeprefix("aws:")
        if kind in NAMED:
            seen.add(kind)
            service, start = NAMED[kind]
            region = "" if service == "iam" else plan.cell.region
            arn = own.arn(service, f"{start}{resource.inputs['name']}", region)
            assert any(fnmatchcase(arn, pattern) for pattern in known), arn
    assert seen == NAMED.keys()


MADE_BY = {
    "autoscaling/tag:Tag": "autoscaling:CreateOrUpdateTags",
    "cloudwatch/eventRule:EventRule": "events:PutRule",
    "cloudwatch/eventTarget:EventTarget": "events:PutTargets",
    "cloudwatch/logGroup:LogGroup": "logs:CreateLogGroup",
    "ebs/encryptionByDefault:EncryptionByDefault": "ec2:EnableEbsEncryptionByDefault",
    "ec2/defaultSecurityGroup:DefaultSecurityGroup": "ec2:RevokeSecurityGroupIngress",
    "ec2/eip:Eip": "ec2:AllocateAddress",
    "ec2/flowLog:FlowLog": "ec2:CreateFlowLogs",
    "ec2/instanceMetadataDefaults:InstanceMetadataDefaults": (
        "ec2:ModifyInstanceMetadataDefaults"
    ),
    "ec2/internetGateway:InternetGateway": "ec2:CreateInternetGateway",
    "ec2/launchTemplate:LaunchTemplate": "ec2:CreateLaunchTemplate",
    "ec2/natGateway:NatGateway": "ec2:CreateNatGateway",
    "ec2/routeTable:RouteTable": "ec2:CreateRouteTable",
    "ec2/routeTableAssociation:RouteTableAssociation": "ec2:AssociateRouteTable",
    "ec2/securityGroup:SecurityGroup": "ec2:CreateSecurityGroup",
    "ec2/subnet:Subnet": "ec2:CreateSubnet",
    "ec2/vpc:Vpc": "ec2:CreateVpc",
    "ec2/vpcEndpoint:VpcEndpoint": "ec2:CreateVpcEndpoint",
    "eks/accessEntry:AccessEntry": "eks:CreateAccessEntry",
    "eks/accessPolicyAssociation:AccessPolicyAssociation": "eks:AssociateAccessPolicy",
    "eks/addon:Addon": "eks:CreateAddon",
    "eks/cluster:Cluster": "eks:CreateCluster",
    "eks/nodeGroup:NodeGroup": "eks:CreateNodegroup",
    "eks/podIdentityAssociation:PodIdentityAssociation": (
        "eks:CreatePodIdentityAssociation"
    ),
    "iam/instanceProfile:InstanceProfile": "iam:CreateInstanceProfile",
    "iam/policy:Policy": "iam:CreatePolicy",
    "iam/role:Role": "iam:CreateRole",
    "iam/rolePolicy:RolePolicy": "iam:PutRolePolicy",
    "iam/rolePolicyAttachment:RolePolicyAttachment": "iam:AttachRolePolicy",
    "kms/alias:Alias": "kms:CreateAlias",
    "kms/key:Key": "kms:CreateKey",
    "sqs/queue:Queue": "sqs:CreateQueue",
    "sqs/queuePolicy:QueuePolicy": "sqs:SetQueueAttributes",
    "vpc/securityGroupEgressRule:SecurityGroupEgressRule": (
        "ec2:AuthorizeSecurityGroupEgress"
    ),
    "vpc/securityGroupIngressRule:SecurityGroupIngressRule": (
        "ec2:AuthorizeSecurityGroupIngress"
    ),
}
"""The action that makes each type of a cell."""


def test_the_deploy_role_can_make_every_type(cell: Recording, plan: CellPlan) -> None:
    args = DeployRoleArgs(
        fleet=Belongings.of(plan.fleet, plan.cell.account),
        subjects=("repo:demo-org/demo:environment:production",),
        provider_arn="arn:of:github",
        issuer="https://token.actions.githubusercontent.com",
        boundaries=["arn:of:boundary"],
    )
    allowed = {
        action
        for found in deploy_statements(args).values()
        for statement in found
        if statement["Effect"] == "Allow"
        for action in statement["Action"]
    }
    made = {
        resource.type.removeprefix("aws:")
        for resource in cell.resources
        if resource.type.startswith("aws:") and resource.custom
    }
    assert made <= MADE_BY.keys()
    assert {MADE_BY[kind] for kind in made} <= allowed


@pytest.mark.slow
def test_moto_accepts_the_whole_cell(plan: CellPlan) -> None:
    def program() -> None:
        provider = aws.Provider(
            "cloud", region="us-east-1", allowed_account_ids=["111122223333"]
        )
        _cell(plan)(pulumi.ResourceOptions(providers=[provider]), None)

    made = rehearse(program, project="demo", stack="aws", emulate=True)
    assert len(made.by_type("aws:ec2/vpcEndpoint:VpcEndpoint")) == 11
    assert len(made.by_type("kubernetes:karpenter.sh/v1:NodePool")) == 4
