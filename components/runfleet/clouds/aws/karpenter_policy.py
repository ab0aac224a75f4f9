"""What Karpenter's controller may do in AWS, and nothing else.

The actions are those of Karpenter's own documentation, "CloudFormation"
(aws/karpenter-provider-aws at 1d92708, v1.14.1,
``getting-started-with-karpenter/cloudformation.yaml``), with less reach: machines
start only in the cell's subnets, with the nodes' security group and role, from the
reservations that the fleet file lists; and nothing changes IAM, because the instance
profile is made by the stack.

What Karpenter starts or stops carries its tags: the cluster as owner and the node
pool; the conditions ask for them, so it cannot touch a machine of anybody else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi

from runfleet.clouds.aws.keys import Statement, volumes_on
from runfleet.clouds.aws.names import Place

READS = (
    "ec2:DescribeCapacityReservations",
    "ec2:DescribeImages",
    "ec2:DescribeInstanceStatus",
    "ec2:DescribeInstanceTypeOfferings",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeInstances",
    "ec2:DescribeLaunchTemplates",
    "ec2:DescribePlacementGroups",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSpotPriceHistory",
    "ec2:DescribeSubnets",
)
"""What it looks up in EC2; IAM gives none of these a resource type."""

MADE = (
    "fleet",
    "instance",
    "launch-template",
    "network-interface",
    "spot-instances-request",
    "volume",
)
"""What it makes in EC2, each with its tags."""


@dataclass(frozen=True)
class ControllerReach:
    """What the controller's permissions are limited to.

    Attributes:
        place: Account, region and cluster.
        node_role_arn: The role that machines get.
        instance_profile_arn: The instance profile that carries it.
        subnet_ids: Subnets that machines start in.
        security_group_id: Security group that machines get.
        reservation_ids: Reserved capacity that machines may draw from.
        volumes_key_arn: Key that encrypts their disks.
        queue_arn: Queue that it reads interruptions from.
    """

    place: Place
    node_role_arn: pulumi.Input[str]
    instance_profile_arn: pulumi.Input[str]
    subnet_ids: pulumi.Output[Sequence[str]]
    security_group_id: pulumi.Output[str]
    reservation_ids: Sequence[str]
    volumes_key_arn: pulumi.Input[str]
    queue_arn: pulumi.Input[str]


def controller_policies(reach: ControllerReach) -> dict[str, list[Statement]]:
    """Return the controller's inline policies by name."""
    return {
        "machines": _start(reach) + _tag_and_stop(reach.place),
        "disks": volumes_on(reach.volumes_key_arn, reach.place.region),
        "look-up": _look_up(reach),
    }


def _start(reach: ControllerReach) -> list[Statement]:
    place = reach.place
    images = [
        f"arn:{place.partition}:ec2:{place.region}::{kind}/*"
        for kind in ("image", "snapshot")
    ]
    reservations = [
        f"arn:{place.partition}:ec2:{place.region}:*:capacity-reservation/{found}"
        for found in sorted(reach.reservation_ids)
    ]
    used = pulumi.Output.all(reach.subnet_ids, reach.security_group_id).apply(
        lambda found: [
            *images,
            place.arn("ec2", f"security-group/{found[1]}"),
            *(place.arn("ec2", f"subnet/{subnet}") for subnet in found[0]),
            *reservations,
        ]
    )
    return [
        {
            "Sid": "StartFrom",
            "Effect": "Allow",
            "Action": ["ec2:CreateFleet", "ec2:RunInstances"],
            "Resource": used,
        },
        {
            "Sid": "StartFromOwnTemplates",
            "Effect": "Allow",
            "Action": ["ec2:CreateFleet", "ec2:RunInstances"],
            "Resource": [place.arn("ec2", "launch-template/*")],
            "Condition": _owned("aws:ResourceTag", place),
        },
        {
            "Sid": "StartTagged",
            "Effect": "Allow",
            "Action": [
                "ec2:CreateFleet",
                "ec2:CreateLaunchTemplate",
                "ec2:RunInstances",
            ],
            "Resource": [place.arn("ec2", f"{kind}/*") for kind in MADE],
            "Condition": _requested(place),
        },
        {
            "Sid": "GiveNodeRole",
            "Effect": "Allow",
            "Action": ["iam:PassRole"],
            "Resource": [reach.node_role_arn],
            "Condition": {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}},
        },
    ]


def _tag_and_stop(place: Place) -> list[Statement]:
    creation = _requested(place)
    creation["StringEquals"] = {
        **creation["StringEquals"],
        "ec2:CreateAction": ["CreateFleet", "CreateLaunchTemplate", "RunInstances"],
    }
    return [
        {
            "Sid": "TagWhatItMakes",
            "Effect": "Allow",
            "Action": ["ec2:CreateTags"],
            "Resource": [place.arn("ec2", f"{kind}/*") for kind in MADE],
            "Condition": creation,
        },
        {
            "Sid": "NameItsMachines",
            "Effect": "Allow",
            "Action": ["ec2:CreateTags"],
            "Resource": [place.arn("ec2", "instance/*")],
            "Condition": {
                **_owned("aws:ResourceTag", place),
                "StringEqualsIfExists": {
                    "aws:RequestTag/eks:eks-cluster-name": place.cluster
                },
                "ForAllValues:StringEquals": {
                    "aws:TagKeys": [
                        "Name",
                        "eks:eks-cluster-name",
                        "karpenter.sh/nodeclaim",
                    ]
                },
            },
        },
        {
            "Sid": "StopItsMachines",
            "Effect": "Allow",
            "Action": ["ec2:DeleteLaunchTemplate", "ec2:TerminateInstances"],
            "Resource": [
                place.arn("ec2", "instance/*"),
                place.arn("ec2", "launch-template/*"),
            ],
            "Condition": _owned("aws:ResourceTag", place),
        },
    ]


def _look_up(reach: ControllerReach) -> list[Statement]:
    place = reach.place
    profiles = f"arn:{place.partition}:iam::{place.account}:instance-profile/*"
    return [
        {
            "Sid": "ReadEc2",
            "Effect": "Allow",
            "Action": list(READS),
            "Resource": "*",
            "Condition": {"StringEquals": {"aws:RequestedRegion": place.region}},
        },
        {
            "Sid": "ReadImageParameters",
            "Effect": "Allow",
            "Action": ["ssm:GetParameter"],
            "Resource": [
                f"arn:{place.partition}:ssm:{place.region}::parameter/aws/service/*"
            ],
        },
        {
            "Sid": "ReadPrices",
            "Effect": "Allow",
            "Action": ["pricing:GetProducts"],
            "Resource": "*",
        },
        {
            "Sid": "ListProfiles",
            "Effect": "Allow",
            "Action": ["iam:ListInstanceProfiles"],
            "Resource": [profiles],
        },
        {
            "Sid": "ReadProfile",
            "Effect": "Allow",
            "Action": ["iam:GetInstanceProfile"],
            "Resource": [reach.instance_profile_arn],
        },
        {
            "Sid": "ReadCluster",
            "Effect": "Allow",
            "Action": ["eks:DescribeCluster"],
            "Resource": [place.cluster_arn],
        },
        {
            "Sid": "ReadInterruptions",
            "Effect": "Allow",
            "Action": ["sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"],
            "Resource": [reach.queue_arn],
        },
    ]


def _owned(where: str, place: Place) -> dict[str, Mapping[str, Any]]:
    return {
        "StringEquals": {f"{where}/kubernetes.io/cluster/{place.cluster}": "owned"},
        "StringLike": {f"{where}/karpenter.sh/nodepool": "*"},
    }


def _requested(place: Place) -> dict[str, Mapping[str, Any]]:
    owned = _owned("aws:RequestTag", place)
    owned["StringEquals"] = {
        **owned["StringEquals"],
        "aws:RequestTag/eks:eks-cluster-name": place.cluster,
    }
    return owned
