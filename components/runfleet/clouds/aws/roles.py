"""Service roles: the IAM roles of nodes, controllers and AWS services.

A role of a controller is bound to exactly one namespace and service account of one
cluster, by its trust policy and by its EKS Pod Identity association. Source: EKS user
guide, "Create IAM role with trust policy required by EKS Pod Identity" and "Enable or
disable session tags", read 2026-08: Pod Identity sets the tags ``eks-cluster-arn``,
``kubernetes-namespace`` and ``kubernetes-service-account`` on every session, and a
trust policy can ask for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi
import pulumi_aws as aws

from runfleet.clouds.aws.keys import Statement, policy_document
from runfleet.clouds.aws.names import IAM_ROLE, Place
from runfleet.clouds.aws.tags import tags

SESSION = 3600
"""How long a session of any role lasts at most, in seconds."""


def service_role(
    name: str,
    purpose: str,
    place: Place,
    trust: Statement,
    parent: pulumi.Resource,
    managed: Sequence[str] = (),
    policies: Mapping[str, Sequence[Statement]] | None = None,
) -> tuple[aws.iam.Role, list[pulumi.Resource]]:
    """Make a role with its policies.

    Args:
        name: Name of the resource; policies are ``<name>-<suffix>``.
        purpose: One word for what it is for: last part of the role's name.
        place: Where it is.
        trust: Who may assume it.
        parent: The component that it belongs to.
        managed: AWS-managed policies to attach, by name.
        policies: Inline policies by suffix.

    Returns:
        The role, and the resources that must exist before it can do its work.
    """
    options = pulumi.ResourceOptions(parent=parent)
    role = aws.iam.Role(
        name,
        name=IAM_ROLE.encode(place.cluster, purpose),
        assume_role_policy=policy_document([trust]),
        max_session_duration=SESSION,
        tags=tags(place.labels, Name=name),
        opts=options,
    )
    attached: list[pulumi.Resource] = [
        aws.iam.RolePolicyAttachment(
            f"{name}-{policy.rpartition('/')[2]}",
            role=role.name,
            policy_arn=place.managed_policy(policy),
            opts=options,
        )
        for policy in managed
    ]
    attached += [
        aws.iam.RolePolicy(
            f"{name}-{suffix}",
            name=suffix,
            role=role.id,
            policy=policy_document(statements),
            opts=options,
        )
        for suffix, statements in (policies or {}).items()
    ]
    return role, attached


def trusts_service(service: str) -> Statement:
    """Return the trust statement for an AWS service."""
    return {
        "Effect": "Allow",
        "Principal": {"Service": service},
        "Action": "sts:AssumeRole",
    }


def trusts_pod(place: Place, namespace: str, service_account: str) -> Statement:
    """Return the trust statement for the pods of one service account."""
    return {
        "Sid": "OneServiceAccount",
        "Effect": "Allow",
        "Principal": {"Service": "pods.eks.amazonaws.com"},
        "Action": ["sts:AssumeRole", "sts:TagSession"],
        "Condition": {
            "StringEquals": {
                "aws:RequestTag/eks-cluster-arn": place.cluster_arn,
                "aws:RequestTag/kubernetes-namespace": namespace,
                "aws:RequestTag/kubernetes-service-account": service_account,
            }
        },
    }


NODE_POLICIES = (
    "AmazonEKSWorkerNodeMinimalPolicy",
    "AmazonEC2ContainerRegistryPullOnly",
)
"""What a node's role has from AWS: fetch pods' credentials and pull images. The
network plugin has a role of its own, so nodes do not get its permissions."""


def node_role(
    name: str, purpose: str, place: Place, parent: pulumi.Resource
) -> tuple[aws.iam.Role, list[pulumi.Resource]]:
    """Make the role of nodes.

    Besides :data:`NODE_POLICIES` a node asks EC2 for its own name and for the limits
    of its instance type while it starts (awslabs/amazon-eks-ami at 81fec2e,
    ``nodeadm/internal/aws/ec2/instance_waiter.go`` and
    ``nodeadm/internal/util/ec2.go``); IAM gives these actions no resource type.

    Args:
        name: Name of the resource.
        purpose: One word for which nodes: last part of the role's name.
        place: Where it is.
        parent: The component that it belongs to.
    """
    return service_role(
        name,
        purpose,
        place,
        trusts_service("ec2.amazonaws.com"),
        parent,
        managed=NODE_POLICIES,
        policies={
            "start": [
                {
                    "Sid": "KnowItself",
                    "Effect": "Allow",
                    "Action": ["ec2:DescribeInstances", "ec2:DescribeInstanceTypes"],
                    "Resource": "*",
                    "Condition": {
                        "StringEquals": {"aws:RequestedRegion": place.region}
                    },
                }
            ]
        },
    )
