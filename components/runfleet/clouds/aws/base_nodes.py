"""Base nodes: a small fixed group of tainted nodes that carries system pods.

The autoscaler cannot start the nodes that it runs on, so these are an EKS managed
node group. Their taint ``CriticalAddonsOnly`` keeps jobs off; they have no SSH, no
public address, encrypted disks and a metadata service that pods cannot reach.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from runfleet.clouds.aws import roles
from runfleet.clouds.aws.names import EKS_NODE_GROUP, LAUNCH_TEMPLATE, Place
from runfleet.clouds.aws.tags import tags
from runfleet.spec.cells import BaseNodes

LABELS = {"role": "base-infrastructure"}
"""Labels of the base nodes, by the incumbent's name."""


@dataclass(frozen=True)
class BaseNodesArgs:
    """What the base nodes are made from.

    Attributes:
        place: Their cluster.
        cluster_name: Name of the cluster, once it exists.
        subnet_ids: Private subnets.
        security_group_id: Security group of every node.
        volumes_key_arn: Key that encrypts their disks.
        version: Kubernetes version.
        release: Node image release.
        nodes: Machine, count and disk.
    """

    place: Place
    cluster_name: pulumi.Input[str]
    subnet_ids: pulumi.Input[Sequence[pulumi.Input[str]]]
    security_group_id: pulumi.Input[str]
    volumes_key_arn: pulumi.Input[str]
    version: str
    release: str
    nodes: BaseNodes


def base_nodes(
    name: str,
    args: BaseNodesArgs,
    parent: pulumi.Resource,
    after: Sequence[pulumi.Resource],
) -> aws.eks.NodeGroup:
    """Make the base nodes.

    Args:
        name: Name of the node group; others are ``<name>-<suffix>``.
        args: What they are made from.
        parent: The component that they belong to.
        after: What a node needs to become ready.
    """
    place = args.place
    role, attached = roles.node_role(f"{name}-role", "base-nodes", place, parent)
    instance_tags = tags(place.labels, Name=name)
    template = aws.ec2.LaunchTemplate(
        f"{name}-template",
        name=LAUNCH_TEMPLATE.encode(place.cluster, "base"),
        description="Nodes for system pods",
        update_default_version=True,
        metadata_options=aws.ec2.LaunchTemplateMetadataOptionsArgs(
            http_endpoint="enabled",
            http_tokens="required",
            http_put_response_hop_limit=1,
            instance_metadata_tags="disabled",
        ),
        block_device_mappings=[
            aws.ec2.LaunchTemplateBlockDeviceMappingArgs(
                device_name="/dev/xvda",
                ebs=aws.ec2.LaunchTemplateBlockDeviceMappingEbsArgs(
                    volume_type="gp3",
                    volume_size=-(-args.nodes.disk // 1024**3),
                    encrypted="true",
                    kms_key_id=args.volumes_key_arn,
                    delete_on_termination="true",
                ),
            )
        ],
        network_interfaces=[
            aws.ec2.LaunchTemplateNetworkInterfaceArgs(
                device_index=0,
                associate_public_ip_address="false",
                delete_on_termination="true",
                security_groups=[args.security_group_id],
            )
        ],
        tag_specifications=[
            aws.ec2.LaunchTemplateTagSpecificationArgs(
                resource_type=kind, tags=instance_tags
            )
            for kind in ("instance", "volume", "network-interface")
        ],
        tags=tags(place.labels, Name=f"{name}-template"),
        opts=pulumi.ResourceOptions(parent=parent),
    )
    group = aws.eks.NodeGroup(
        name,
        cluster_name=args.cluster_name,
        node_group_name=EKS_NODE_GROUP.encode("base"),
        node_role_arn=role.arn,
        subnet_ids=args.subnet_ids,
        instance_types=[args.nodes.machine],
        ami_type=base_image(args.nodes.machine),
        capacity_type="ON_DEMAND",
        version=args.version,
        release_version=args.release,
        launch_template=aws.eks.NodeGroupLaunchTemplateArgs(
            id=template.id,
            version=template.latest_version.apply(str),
        ),
        scaling_config=aws.eks.NodeGroupScalingConfigArgs(
            min_size=args.nodes.count,
            desired_size=args.nodes.count,
            max_size=args.nodes.count,
        ),
        update_config=aws.eks.NodeGroupUpdateConfigArgs(max_unavailable_percentage=33),
        node_repair_config=aws.eks.NodeGroupNodeRepairConfigArgs(enabled=True),
        labels=LABELS,
        taints=[
            aws.eks.NodeGroupTaintArgs(
                key="CriticalAddonsOnly", value="true", effect="NO_SCHEDULE"
            )
        ],
        tags=tags(place.labels, Name=name),
        opts=pulumi.ResourceOptions(parent=parent, depends_on=[*after, *attached]),
    )
    _tag_scaling_group(name, group, instance_tags, parent)
    return group


def base_image(machine: str) -> str:
    """Return the EKS image type of a machine without accelerators.

    AWS's own processors are marked by a ``g`` right after the generation, as in
    ``m7g`` or ``c7gd`` (EC2 user guide, "Amazon EC2 instance type naming
    conventions"); the first of them was ``a1``.
    """
    arm = re.match(r"(a1|[a-z]+\d+g[a-z]*)[.-]", machine)
    return "AL2023_ARM_64_STANDARD" if arm else "AL2023_x86_64_STANDARD"


def _tag_scaling_group(
    name: str,
    group: aws.eks.NodeGroup,
    labels: Mapping[str, str],
    parent: pulumi.Resource,
) -> None:
    """Label the Auto Scaling group that EKS makes and does not label itself."""
    scaling_group = group.resources.apply(
        lambda found: (found[0].autoscaling_groups or [])[0].name or ""
    )
    for key, value in labels.items():
        aws.autoscaling.Tag(
            f"{name}-tag-{key}",
            autoscaling_group_name=scaling_group,
            tag=aws.autoscaling.TagTagArgs(
                key=key, value=value, propagate_at_launch=False
            ),
            opts=pulumi.ResourceOptions(parent=parent),
        )
