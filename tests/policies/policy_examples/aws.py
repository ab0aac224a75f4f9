"""Examples of the AWS rules about networks, clusters, machines and registries."""

from __future__ import annotations

import base64

import pulumi_aws as aws
from pulumi import ResourceOptions
from pulumi_kubernetes.apiextensions import CustomResource

from policy_examples.support import LABELS, Example

WORLD = ["0.0.0.0/0"]


def node_class(version: str = "v1", **spec: object) -> CustomResource:
    return CustomResource(
        "nodes",
        api_version=f"karpenter.k8s.aws/{version}",
        kind="EC2NodeClass",
        metadata={"name": "nodes"},
        spec=spec,
    )


def template(**args: object) -> aws.ec2.LaunchTemplate:
    return aws.ec2.LaunchTemplate("template", **args)  # type: ignore[arg-type]


def group(name: str = "group", **args: object) -> aws.ec2.SecurityGroup:
    return aws.ec2.SecurityGroup(name, **args)  # type: ignore[arg-type]


def vpc() -> aws.ec2.Vpc:
    return aws.ec2.Vpc("vpc", cidr_block="10.12.0.0/16")


def cluster(**args: object) -> aws.eks.Cluster:
    config = args.pop("vpc_config", {"subnet_ids": ["subnet-1"]})
    return aws.eks.Cluster(
        "cluster",
        role_arn="arn:aws:iam::123456789012:role/cluster",
        vpc_config=config,  # type: ignore[arg-type]
        **args,  # type: ignore[arg-type]
    )


def endpoints(*services: str) -> None:
    network = vpc()
    for service in services:
        aws.ec2.VpcEndpoint(
            service,
            vpc_id=network.id,
            service_name=f"com.amazonaws.us-east-1.{service}",
        )


def flow_log(traffic: str) -> None:
    aws.ec2.FlowLog("log", vpc_id=vpc().id, traffic_type=traffic)


def default_group(**args: object) -> None:
    aws.ec2.DefaultSecurityGroup("default", vpc_id=vpc().id, **args)  # type: ignore[arg-type]


def node_group(**args: object) -> aws.eks.NodeGroup:
    return aws.eks.NodeGroup(
        "nodes",
        cluster_name="cluster",
        node_role_arn="arn:aws:iam::123456789012:role/nodes",
        subnet_ids=["subnet-1"],
        scaling_config={"desired_size": 1, "max_size": 1, "min_size": 1},
        **args,  # type: ignore[arg-type]
    )


def node_group_with_key() -> None:
    found = template(key_name="people")
    node_group(launch_template={"id": found.id, "version": "1"})


def metadata(tokens: str = "required", hops: int | None = 1) -> dict[str, object]:
    found: dict[str, object] = {"http_tokens": tokens}
    if hops is not None:
        found["http_put_response_hop_limit"] = hops
    return found


def disk(encrypted: str | None) -> list[dict[str, object]]:
    ebs: dict[str, object] = {"volume_size": 100}
    if encrypted is not None:
        ebs["encrypted"] = encrypted
    return [{"device_name": "/dev/xvda", "ebs": ebs}]


def machine(**args: object) -> aws.ec2.Instance:
    return aws.ec2.Instance(
        "machine",
        ami="ami-0123456789abcdef0",
        instance_type="m7i.large",
        **args,  # type: ignore[arg-type]
    )


def account_default(**args: object) -> None:
    template()
    aws.ec2.InstanceMetadataDefaults("defaults", **args)  # type: ignore[arg-type]


def default_encryption() -> None:
    aws.ebs.EncryptionByDefault("default", enabled=True)
    template()


def repository(**args: object) -> None:
    aws.ecr.Repository("images", **args)  # type: ignore[arg-type]


def scanned_registry() -> None:
    repository(image_tag_mutability="IMMUTABLE")
    aws.ecr.RegistryScanningConfiguration(
        "scanning",
        scan_type="BASIC",
        rules=[
            {
                "scan_frequency": "SCAN_ON_PUSH",
                "repository_filters": [{"filter": "*", "filter_type": "WILDCARD"}],
            }
        ],
    )


def default_tags() -> None:
    provider = aws.Provider("labelled", default_tags={"tags": LABELS})
    options = ResourceOptions(provider=provider)
    aws.ec2.Vpc("vpc", cidr_block="10.0.0.0/16", opts=options)


def encoded(content: str) -> str:
    return base64.b64encode(content.encode()).decode()


EXAMPLES = [
    Example("R-AWS-01", "IMDSv2", lambda: template(metadata_options=metadata())),
    Example(
        "R-AWS-01",
        "metadata service off",
        lambda: template(metadata_options={"http_endpoint": "disabled"}),
    ),
    Example("R-AWS-01", "Karpenter's default", lambda: node_class()),
    Example(
        "R-AWS-01",
        "IMDSv1",
        lambda: template(metadata_options=metadata("optional")),
        ("httpTokens is optional",),
    ),
    Example("R-AWS-01", "nothing said", lambda: machine(), ("not set",)),
    Example(
        "R-AWS-01",
        "a node class with IMDSv1",
        lambda: node_class(metadataOptions={"httpTokens": "optional"}),
        ("httpTokens is optional",),
    ),
    Example("R-AWS-02", "one hop", lambda: template(metadata_options=metadata())),
    Example("R-AWS-02", "Karpenter v1 says nothing", lambda: node_class()),
    Example(
        "R-AWS-02",
        "two hops",
        lambda: template(metadata_options=metadata(hops=2)),
        ("hop limit is 2",),
    ),
    Example(
        "R-AWS-02",
        "a node class with two hops",
        lambda: node_class(metadataOptions={"httpPutResponseHopLimit": 2}),
        ("hop limit is 2",),
    ),
    Example(
        "R-AWS-02",
        "the older node class says nothing",
        lambda: node_class("v1beta1"),
        ("hop limit is 2",),
    ),
    Example(
        "R-AWS-03",
        "the account asks for IMDSv2",
        lambda: account_default(http_tokens="required", http_put_response_hop_limit=1),
    ),
    Example("R-AWS-03", "no machines", lambda: vpc()),
    Example("R-AWS-03", "no default", lambda: cluster(), ("no InstanceMetadata",)),
    Example(
        "R-AWS-03",
        "a weak default",
        lambda: account_default(http_tokens="optional"),
        ("httpTokens is optional", "hop limit is not set"),
    ),
    Example(
        "R-AWS-04",
        "private interface",
        lambda: template(network_interfaces=[{"associate_public_ip_address": "false"}]),
    ),
    Example(
        "R-AWS-04",
        "the second interface is public",
        lambda: template(
            network_interfaces=[
                {"associate_public_ip_address": "false"},
                {"associate_public_ip_address": "true"},
            ]
        ),
        ("associatePublicIpAddress is true",),
    ),
    Example(
        "R-AWS-04",
        "an elastic address",
        lambda: aws.ec2.Eip("address", instance=machine().id),
        ("elastic address",),
    ),
    Example(
        "R-AWS-04",
        "a public node class",
        lambda: node_class(associatePublicIPAddress=True),
        ("associatePublicIPAddress is true",),
    ),
    Example("R-AWS-04", "an address for NAT", lambda: aws.ec2.Eip("nat", domain="vpc")),
    Example(
        "R-AWS-05",
        "private subnet",
        lambda: aws.ec2.Subnet("subnet", vpc_id="vpc-1", cidr_block="10.12.0.0/18"),
    ),
    Example(
        "R-AWS-05",
        "public subnet",
        lambda: aws.ec2.Subnet(
            "subnet",
            vpc_id="vpc-1",
            cidr_block="10.12.0.0/18",
            map_public_ip_on_launch=True,
        ),
        ("mapPublicIpOnLaunch is true",),
    ),
    Example(
        "R-AWS-06",
        "inside only",
        lambda: group(
            ingress=[
                {
                    "protocol": "tcp",
                    "from_port": 443,
                    "to_port": 443,
                    "cidr_blocks": ["10.12.0.0/16"],
                }
            ]
        ),
    ),
    Example(
        "R-AWS-06",
        "the second rule is open",
        lambda: group(
            ingress=[
                {
                    "protocol": "tcp",
                    "from_port": 443,
                    "to_port": 443,
                    "cidr_blocks": ["10.12.0.0/16"],
                },
                {
                    "protocol": "tcp",
                    "from_port": 22,
                    "to_port": 22,
                    "cidr_blocks": WORLD,
                },
            ]
        ),
        ("tcp 22 from 0.0.0.0/0",),
    ),
    Example(
        "R-AWS-06",
        "open to IPv6",
        lambda: aws.vpc.SecurityGroupIngressRule(
            "rule",
            security_group_id="sg-1",
            ip_protocol="-1",
            cidr_ipv6="::/0",
        ),
        ("all ports from ::/0",),
    ),
    Example(
        "R-AWS-06",
        "the world in two halves",
        lambda: aws.ec2.SecurityGroupRule(
            "rule",
            type="ingress",
            security_group_id="sg-1",
            protocol="tcp",
            from_port=22,
            to_port=22,
            cidr_blocks=["0.0.0.0/1", "128.0.0.0/1"],
        ),
        ("0.0.0.0/1, 128.0.0.0/1",),
    ),
    Example(
        "R-AWS-07",
        "HTTPS only",
        lambda: aws.vpc.SecurityGroupEgressRule(
            "rule",
            security_group_id="sg-1",
            ip_protocol="tcp",
            from_port=443,
            to_port=443,
            cidr_ipv4="0.0.0.0/0",
        ),
    ),
    Example(
        "R-AWS-07",
        "everything",
        lambda: group(
            egress=[
                {
                    "protocol": "-1",
                    "from_port": 0,
                    "to_port": 0,
                    "cidr_blocks": WORLD,
                }
            ]
        ),
        ("all ports to 0.0.0.0/0",),
    ),
    Example(
        "R-AWS-07",
        "a range of ports",
        lambda: aws.vpc.SecurityGroupEgressRule(
            "rule",
            security_group_id="sg-1",
            ip_protocol="tcp",
            from_port=443,
            to_port=8443,
            cidr_ipv4="0.0.0.0/0",
        ),
        ("tcp 443-8443",),
    ),
    Example("R-AWS-08", "empty default group", lambda: default_group()),
    Example("R-AWS-08", "not managed", lambda: vpc(), ("not managed",)),
    Example(
        "R-AWS-08",
        "AWS's own rules",
        lambda: default_group(
            egress=[
                {
                    "protocol": "-1",
                    "from_port": 0,
                    "to_port": 0,
                    "cidr_blocks": WORLD,
                }
            ]
        ),
        ("all ports",),
    ),
    Example("R-AWS-09", "all traffic", lambda: flow_log("ALL")),
    Example("R-AWS-09", "none", lambda: vpc(), ("no flow log",)),
    Example("R-AWS-09", "rejected only", lambda: flow_log("REJECT"), ("only REJECT",)),
    Example(
        "R-AWS-10",
        "all endpoints",
        lambda: endpoints("s3", "ecr.api", "ecr.dkr", "sts", "logs"),
    ),
    Example("R-AWS-10", "one", lambda: endpoints("s3"), ("ecr.api, ecr.dkr, sts",)),
    Example(
        "R-AWS-11",
        "private",
        lambda: cluster(
            vpc_config={
                "subnet_ids": ["subnet-1"],
                "endpoint_public_access": False,
                "endpoint_private_access": True,
            }
        ),
    ),
    Example(
        "R-AWS-11",
        "allow-list",
        lambda: cluster(
            vpc_config={
                "subnet_ids": ["subnet-1"],
                "endpoint_public_access": True,
                "public_access_cidrs": ["192.0.2.0/24"],
            }
        ),
    ),
    Example("R-AWS-11", "EKS's default", lambda: cluster(), ("the default",)),
    Example(
        "R-AWS-11",
        "the world after an office",
        lambda: cluster(
            vpc_config={
                "subnet_ids": ["subnet-1"],
                "endpoint_public_access": True,
                "public_access_cidrs": ["192.0.2.0/24", "0.0.0.0/0"],
            }
        ),
        ("open to 0.0.0.0/0",),
    ),
    Example(
        "R-AWS-12",
        "own key",
        lambda: cluster(
            encryption_config={
                "provider": {"key_arn": "arn:aws:kms:us-east-1:1:key/2"},
                "resources": ["secrets"],
            }
        ),
    ),
    Example("R-AWS-12", "none", lambda: cluster(), ("not encrypted",)),
    Example(
        "R-AWS-13",
        "all five",
        lambda: cluster(
            enabled_cluster_log_types=[
                "api",
                "audit",
                "authenticator",
                "controllerManager",
                "scheduler",
            ]
        ),
    ),
    Example(
        "R-AWS-13",
        "no audit log",
        lambda: cluster(enabled_cluster_log_types=["api"]),
        ("audit, authenticator",),
    ),
    Example("R-AWS-14", "in support", lambda: cluster(version="1.35")),
    Example("R-AWS-14", "newer than the table", lambda: cluster(version="1.41")),
    Example("R-AWS-14", "out of support", lambda: cluster(version="1.31"), ("1.31",)),
    Example("R-AWS-14", "very old", lambda: cluster(version="1.21"), ("1.21",)),
    Example(
        "R-AWS-14",
        "below a minimum of our own",
        lambda: cluster(version="1.34"),
        ("below 1.35",),
        {"minimum_version": "1.35"},
    ),
    Example("R-AWS-15", "no SSH", lambda: node_group()),
    Example(
        "R-AWS-15",
        "SSH from one group (CKV_AWS_100 passes this)",
        lambda: node_group(
            remote_access={
                "ec2_ssh_key": "people",
                "source_security_group_ids": ["sg-1"],
            }
        ),
        ("remoteAccess is set",),
    ),
    Example(
        "R-AWS-15", "key in the template", node_group_with_key, ("key pair people",)
    ),
    Example(
        "R-AWS-16",
        "encrypted",
        lambda: template(block_device_mappings=disk("true")),
    ),
    Example("R-AWS-16", "the account encrypts by default", default_encryption),
    Example("R-AWS-16", "Karpenter's default", lambda: node_class(amiFamily="AL2023")),
    Example(
        "R-AWS-16",
        "the second disk is plain",
        lambda: template(block_device_mappings=[*disk("true"), *disk("false")]),
        ("encrypted is false",),
    ),
    Example(
        "R-AWS-16",
        "a plain node class",
        lambda: node_class(
            blockDeviceMappings=[
                {"deviceName": "/dev/xvda", "ebs": {"encrypted": False}}
            ]
        ),
        ("encrypted is false",),
    ),
    Example("R-AWS-16", "image decides", lambda: template(), ("the image decides",)),
    Example(
        "R-AWS-16",
        "a plain volume",
        lambda: aws.ebs.Volume("volume", availability_zone="us-east-1a", size=10),
        ("encrypted is not set",),
    ),
    Example(
        "R-AWS-24",
        "immutable and scanned",
        lambda: repository(
            image_tag_mutability="IMMUTABLE",
            image_scanning_configuration={"scan_on_push": True},
        ),
    ),
    Example("R-AWS-24", "the registry scans", scanned_registry),
    Example("R-AWS-24", "defaults", lambda: repository(), ("MUTABLE", "not scanned")),
    Example(
        "R-AWS-25",
        "no secret",
        lambda: template(user_data=encoded("#!/bin/bash\nset -e\nTOKEN=$(get)\n")),
    ),
    Example(
        "R-AWS-25",
        "a token, encoded",
        lambda: template(user_data=encoded(f"#!/bin/bash\nx ghp_{'a' * 36}\n")),
        ("a GitHub token",),
    ),
    Example(
        "R-AWS-25",
        "a password, plain",
        lambda: machine(user_data="export DB_PASSWORD=hunter2hunter2\n"),
        ("a password or token",),
    ),
    Example(
        "R-AWS-25",
        "a key in a node class",
        lambda: node_class(userData="-----BEGIN RSA PRIVATE KEY-----\nabc"),
        ("a private key",),
    ),
    Example(
        "R-AWS-26",
        "rotating",
        lambda: aws.kms.Key("key", enable_key_rotation=True),
    ),
    Example(
        "R-AWS-26",
        "a signing key cannot rotate",
        lambda: aws.kms.Key(
            "key", key_usage="SIGN_VERIFY", customer_master_key_spec="ECC_NIST_P256"
        ),
    ),
    Example("R-AWS-26", "default", lambda: aws.kms.Key("key"), ("not true",)),
    Example(
        "R-TAG-01",
        "all labels",
        lambda: aws.ec2.Vpc("vpc", cidr_block="10.0.0.0/16", tags=LABELS),
    ),
    Example(
        "R-TAG-01",
        "a type that takes no tags",
        lambda: aws.iam.RolePolicyAttachment(
            "join", role="role", policy_arn="arn:aws:iam::aws:policy/ReadOnlyAccess"
        ),
    ),
    Example("R-TAG-01", "no labels", lambda: vpc(), ("ci_project, ci_env",)),
    Example(
        "R-TAG-01",
        "a value in another spelling",
        lambda: aws.ec2.Vpc(
            "vpc", cidr_block="10.0.0.0/16", tags={**LABELS, "ci_funder": "Linux F."}
        ),
        ("ci_funder='Linux F.' does not match",),
    ),
    Example(
        "R-TAG-01",
        "a template that labels all it starts",
        lambda: template(
            tags=LABELS,
            tag_specifications=[
                {"resource_type": kind, "tags": LABELS}
                for kind in ("instance", "volume")
            ],
        ),
    ),
    Example(
        "R-TAG-01",
        "a template that labels instances only",
        lambda: template(
            tags=LABELS,
            tag_specifications=[{"resource_type": "instance", "tags": LABELS}],
        ),
        ("every volume it starts",),
    ),
    Example("R-TAG-01", "a node class", lambda: node_class(tags=LABELS)),
    Example(
        "R-TAG-01",
        "a node class without a funder",
        lambda: node_class(tags={k: v for k, v in LABELS.items() if k != "ci_funder"}),
        ("ci_funder not set",),
    ),
    Example(
        "R-TAG-01",
        "the provider's default tags",
        default_tags,
    ),
    Example(
        "R-EPH-01",
        "a shared machine",
        lambda: machine(tags={"ci_runner_class": "shared"}),
    ),
    Example(
        "R-EPH-01",
        "a machine of a class",
        lambda: machine(tags={"ci_runner_class": "l-x86iamx-8-16"}),
        ("stands for class l-x86iamx-8-16",),
    ),
]
