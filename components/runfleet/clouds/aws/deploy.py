"""DeployRole: the identity that runs ``pulumi up`` for AWS stacks, and no more.

It is assumed by the ``up`` workflow of one repository, in one GitHub environment.
A subject names an environment or a branch, never both, so the branch is held by the
environment: restrict its deployment branches to the protected one and ask for
approval there (GitHub documentation, "Managing environments for deployment").

It is no administrator. It holds the actions that the stacks' resources need, listed
one by one, in the stacks' regions. What it may do with IAM is bound three times:

* only roles, policies and instance profiles whose names begin as the fleet's do;
* roles of jobs, inside and outside the clusters, and of the promoter only with one of
  the fleet's permissions boundaries on them, which it cannot take off again, and
  nothing of its own;
* it may assume no role at all, so a role that it makes is of no use to itself, and it
  may pass roles only to the services of this floor.

What stays is in the nature of the work: whoever may change the fleet may run code on
the fleet's nodes, and the boundaries are part of the stacks, so they hold a mistake in
a job's policy and not whoever writes the stacks. The role is made once per account by
an administrator: it cannot make itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi
import pulumi_aws as aws

from runfleet.clouds.aws import names
from runfleet.clouds.aws.federation import (
    exact,
    subjects,
    web_identity_role,
    web_identity_trust,
)
from runfleet.clouds.aws.grants import (
    MANAGED_POLICY_LIMIT,
    Statement,
    allow,
    document,
)
from runfleet.spec.github import FederatedRepository

PASSED_TO = (
    "ec2.amazonaws.com",
    "ecr.amazonaws.com",
    "eks.amazonaws.com",
    "firehose.amazonaws.com",
    "pods.eks.amazonaws.com",
    "vpc-flow-logs.amazonaws.com",
)
"""Services that the stacks hand roles to."""


def _actions(service: str, text: str) -> tuple[str, ...]:
    return tuple(f"{service}:{action}" for action in text.split())


NETWORK = _actions(
    "ec2",
    """
    AllocateAddress AssociateRouteTable AttachInternetGateway
    AuthorizeSecurityGroupEgress AuthorizeSecurityGroupIngress CreateFlowLogs
    CreateInternetGateway CreateLaunchTemplate CreateLaunchTemplateVersion
    CreateNatGateway CreateRoute CreateRouteTable CreateSecurityGroup CreateSubnet
    CreateTags CreateVpc CreateVpcEndpoint DeleteFlowLogs DeleteInternetGateway
    DeleteLaunchTemplate DeleteLaunchTemplateVersions DeleteNatGateway DeleteRoute
    DeleteRouteTable DeleteSecurityGroup DeleteSubnet DeleteTags DeleteVpc
    DeleteVpcEndpoints DescribeAddresses DescribeAddressesAttribute
    DescribeAvailabilityZones DescribeFlowLogs DescribeImages DescribeInstanceTypes
    DescribeInternetGateways DescribeLaunchTemplateVersions DescribeLaunchTemplates
    DescribeNatGateways DescribeNetworkAcls DescribeNetworkInterfaces
    DescribePrefixLists DescribeRouteTables DescribeSecurityGroupRules
    DescribeSecurityGroups DescribeSubnets DescribeTags DescribeVpcAttribute
    DescribeVpcEndpoints DescribeVpcs DetachInternetGateway DisassociateAddress
    DisassociateRouteTable ModifyLaunchTemplate ModifySecurityGroupRules
    ModifySubnetAttribute ModifyVpcAttribute ModifyVpcEndpoint ReleaseAddress
    ReplaceRoute ReplaceRouteTableAssociation RevokeSecurityGroupEgress
    RevokeSecurityGroupIngress RunInstances UpdateSecurityGroupRuleDescriptionsEgress
    UpdateSecurityGroupRuleDescriptionsIngress
    """,
)

"""``ec2:RunInstances``: EKS checks that whoever makes a node group may start machines
from its launch template (EKS user guide, "Customize managed nodes with launch
templates")."""

CLUSTER = _actions(
    "eks",
    """
    AssociateAccessPolicy AssociateEncryptionConfig CreateAccessEntry CreateAddon
    CreateCluster CreateNodegroup CreatePodIdentityAssociation DeleteAccessEntry
    DeleteAddon DeleteCluster DeleteNodegroup DeletePodIdentityAssociation
    DescribeAccessEntry DescribeAddon DescribeAddonVersions DescribeCluster
    DescribeNodegroup DescribePodIdentityAssociation DescribeUpdate
    DisassociateAccessPolicy ListAccessEntries ListAddons
    ListAssociatedAccessPolicies ListNodegroups ListPodIdentityAssociations
    ListTagsForResource TagResource UntagResource UpdateAccessEntry UpdateAddon
    UpdateClusterConfig UpdateClusterVersion UpdateNodegroupConfig
    UpdateNodegroupVersion UpdatePodIdentityAssociation
    """,
)

DATA = (
    *_actions(
        "s3",
        """
        CreateBucket GetAccelerateConfiguration GetBucketAcl GetBucketCORS
        GetBucketLocation GetBucketLogging GetBucketObjectLockConfiguration
        GetBucketOwnershipControls GetBucketPolicy GetBucketPublicAccessBlock
        GetBucketRequestPayment GetBucketTagging GetBucketVersioning
        GetBucketWebsite GetEncryptionConfiguration GetLifecycleConfiguration
        GetReplicationConfiguration ListBucket PutBucketObjectLockConfiguration
        PutBucketOwnershipControls PutBucketPolicy PutBucketPublicAccessBlock
        PutBucketTagging PutBucketVersioning PutEncryptionConfiguration
        PutLifecycleConfiguration
        """,
    ),
    *_actions(
        "ecr",
        """
        CreatePullThroughCacheRule CreateRepository CreateRepositoryCreationTemplate
        DeleteLifecyclePolicy DeletePullThroughCacheRule
        DeleteRepositoryCreationTemplate DeleteRepositoryPolicy
        DescribePullThroughCacheRules DescribeRepositories
        DescribeRepositoryCreationTemplates GetLifecyclePolicy GetRepositoryPolicy
        ListTagsForResource PutImageScanningConfiguration PutImageTagMutability
        PutLifecyclePolicy SetRepositoryPolicy TagResource UntagResource
        UpdatePullThroughCacheRule UpdateRepositoryCreationTemplate
        """,
    ),
    *_actions(
        "firehose",
        """
        CreateDeliveryStream DescribeDeliveryStream ListTagsForDeliveryStream
        StartDeliveryStreamEncryption TagDeliveryStream UntagDeliveryStream
        UpdateDestination
        """,
    ),
    *_actions(
        "kms",
        """
        CreateAlias CreateGrant CreateKey DescribeKey EnableKeyRotation GetKeyPolicy
        GetKeyRotationStatus ListAliases ListResourceTags PutKeyPolicy TagResource
        UntagResource UpdateAlias UpdateKeyDescription
        """,
    ),
)

SIGNALS = (
    *_actions(
        "logs",
        """
        AssociateKmsKey CreateLogGroup DeleteLogGroup DescribeLogGroups
        ListTagsForResource PutRetentionPolicy TagResource UntagResource
        """,
    ),
    *_actions(
        "sqs",
        """
        CreateQueue DeleteQueue GetQueueAttributes GetQueueUrl ListQueueTags
        SetQueueAttributes TagQueue UntagQueue
        """,
    ),
    *_actions(
        "events",
        """
        DeleteRule DescribeRule ListTagsForResource ListTargetsByRule PutRule
        PutTargets RemoveTargets TagResource UntagResource
        """,
    ),
    *_actions(
        "sns",
        """
        CreateTopic DeleteTopic GetTopicAttributes ListTagsForResource
        SetTopicAttributes TagResource UntagResource
        """,
    ),
)

BILLING = (
    *_actions(
        "budgets",
        "ListTagsForResource ModifyBudget TagResource UntagResource ViewBudget",
    ),
    *_actions("ce", "ListCostAllocationTags UpdateCostAllocationTagsStatus"),
)

SERVICES_WITH_ROLES = (
    "autoscaling.amazonaws.com",
    "ec2.amazonaws.com",
    "eks-nodegroup.amazonaws.com",
    "eks.amazonaws.com",
    "spot.amazonaws.com",
)
"""Services that make a role of their own when an account first uses them."""

READ_IAM = _actions(
    "iam",
    """
    GetInstanceProfile GetPolicy GetPolicyVersion GetRole
    GetRolePolicy ListAttachedRolePolicies ListInstanceProfilesForRole
    ListPolicyVersions ListRolePolicies
    """,
)

CHANGE_ROLES = _actions(
    "iam",
    """
    AttachRolePolicy CreateRole DeleteRolePolicy DetachRolePolicy
    PutRolePermissionsBoundary PutRolePolicy
    """,
)
"""What IAM lets a condition on the role's permissions boundary hold (service
authorization reference of IAM, condition key ``iam:PermissionsBoundary``)."""

MANAGE_IAM = _actions(
    "iam",
    """
    AddRoleToInstanceProfile CreateInstanceProfile CreatePolicy CreatePolicyVersion
    DeleteInstanceProfile DeletePolicy DeletePolicyVersion DeleteRole
    RemoveRoleFromInstanceProfile TagInstanceProfile TagPolicy TagRole
    UntagInstanceProfile UntagPolicy UntagRole UpdateAssumeRolePolicy UpdateRole
    UpdateRoleDescription
    """,
)

PARTS = ("network", "cluster", "data", "identity")
"""The policies of the role: one would be longer than AWS accepts."""


@dataclass(frozen=True)
class DeployRoleArgs:
    """What :class:`DeployRole` makes.

    Attributes:
        account: Account that it deploys to.
        regions: Regions that it deploys to.
        prefixes: What the names of the fleet's things in the account begin with: the
            project, and the clusters.
        subjects: Exact subjects whose tokens are accepted.
        provider_arn: ARN of the identity provider of the account.
        issuer: Address of the issuer.
        boundaries: ARNs of the boundaries that roles of jobs must have.
        state_bucket: Bucket of the Pulumi state; empty when it is elsewhere.
        secrets_key: ARN of the key of the Pulumi secrets provider; may be empty.
        tags: Its tags.
    """

    account: str
    regions: Sequence[str]
    prefixes: Sequence[str]
    subjects: tuple[str, ...]
    provider_arn: pulumi.Input[str]
    issuer: str
    boundaries: Sequence[str]
    state_bucket: str = ""
    secrets_key: str = ""
    tags: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def role_name(self) -> str:
        """Name of the role."""
        return names.IAM_ROLE.encode(self.prefixes[0], "deploy")

    def policy_name(self, part: str) -> str:
        """Return the name of one of its policies."""
        return names.IAM_POLICY.encode(self.prefixes[0], "deploy", part)


def deploy_subjects(
    repository: FederatedRepository, environment: str
) -> tuple[str, ...]:
    """Return the subjects of the ``up`` workflow's jobs.

    Args:
        repository: The repository that holds the fleet.
        environment: The GitHub environment with approval, open to one branch only.
    """
    return subjects([repository], environment)


class DeployRole(pulumi.ComponentResource):
    """The role that deploys the fleet's stacks in one account.

    Attributes:
        role_arn: ARN of the role.
    """

    role_arn: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        args: DeployRoleArgs,
        options: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Make the role.

        Raises:
            ValueError: A subject is not exact, or no boundary is given.
        """
        accepted = exact(args.subjects)
        if not args.boundaries:
            raise ValueError("a deploy role needs the boundaries of the roles it makes")
        super().__init__("runfleet:aws:DeployRole", name, None, options)
        own = pulumi.ResourceOptions(parent=self, protect=True)
        role = web_identity_role(
            name,
            args.role_name,
            "Deploys the fleet's stacks",
            pulumi.Output.from_input(args.provider_arn).apply(
                lambda arn: web_identity_trust(arn, accepted, args.issuer)
            ),
            None,
            args.tags,
            self,
        )
        for part, found in deploy_statements(args).items():
            policy = aws.iam.Policy(
                f"{name}-{part}",
                name=args.policy_name(part),
                policy=document(found, MANAGED_POLICY_LIMIT, f"deploy {part}"),
                tags=args.tags,
                opts=own,
            )
            aws.iam.RolePolicyAttachment(
                f"{name}-{part}-attachment",
                role=role.name,
                policy_arn=policy.arn,
                opts=own,
            )
        self.role_arn = role.arn
        self.register_outputs({"role_arn": self.role_arn})


def deploy_statements(args: DeployRoleArgs) -> dict[str, list[Statement]]:
    """Return what the role may do, split into policies that AWS's limit has room for.

    ``Resource: "*"`` stands where most things get their id when they are created; the
    region bounds it.
    """
    region = {"StringEquals": {"aws:RequestedRegion": list(args.regions)}}
    everything = ["*"]
    data = [allow("Data", DATA, everything, region)]
    if args.state_bucket:
        bucket = f"arn:{names.partition(args.regions[0])}:s3:::{args.state_bucket}"
        state = _actions("s3", "DeleteObject GetObject PutObject")
        data.append(allow("State", state, [f"{bucket}/*"]))
        data.append(allow("StateList", ("s3:ListBucket",), [bucket]))
    if args.secrets_key:
        use = ("kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey")
        data.append(allow("Secrets", use, [args.secrets_key]))
    return {
        "network": [allow("Network", NETWORK, everything, region)],
        "cluster": [
            allow("Cluster", CLUSTER, everything, region),
            allow("Signals", SIGNALS, everything, region),
            allow("Billing", BILLING, everything),
        ],
        "data": data,
        "identity": _identity_statements(args),
    }


def _identity_statements(args: DeployRoleArgs) -> list[Statement]:
    iam = f"arn:{names.partition(args.regions[0])}:iam::{args.account}"
    roles = [f"{iam}:role/{prefix}-*" for prefix in args.prefixes]
    policies = [f"{iam}:policy/{prefix}-*" for prefix in args.prefixes]
    profiles = [f"{iam}:instance-profile/{prefix}-*" for prefix in args.prefixes]
    jobs = [
        f"{iam}:role/{prefix}-*{kind}*"
        for prefix in args.prefixes
        for kind in ("job-", "federated-", "promoter")
    ]
    own = [
        f"{iam}:role/{args.role_name}",
        *(f"{iam}:policy/{args.policy_name(part)}" for part in PARTS),
    ]
    unbounded = {"StringNotEquals": {"iam:PermissionsBoundary": list(args.boundaries)}}
    services = {"StringEquals": {"iam:PassedToService": list(PASSED_TO)}}
    return [
        allow("Read", READ_IAM, [*roles, *policies, *profiles]),
        allow("ChangeRoles", CHANGE_ROLES, roles),
        allow("Manage", MANAGE_IAM, [*roles, *policies, *profiles]),
        allow("Pass", ("iam:PassRole",), roles, services),
        allow(
            "ServiceRoles",
            ("iam:CreateServiceLinkedRole",),
            [f"{iam}:role/aws-service-role/*"],
            {"StringEquals": {"iam:AWSServiceName": list(SERVICES_WITH_ROLES)}},
        ),
        allow(
            "Issuer",
            ("iam:GetOpenIDConnectProvider",),
            [f"{iam}:oidc-provider/{args.issuer.removeprefix('https://')}"],
        ),
        _deny("BoundedJobs", CHANGE_ROLES, jobs, unbounded),
        _deny("KeepBoundaries", ("iam:DeleteRolePermissionsBoundary",), ["*"]),
        _deny("NotItself", (*CHANGE_ROLES, *MANAGE_IAM), own),
        _deny("NoOtherRole", ("sts:AssumeRole",), ["*"]),
    ]


def _deny(
    sid: str,
    actions: Sequence[str],
    resources: Sequence[str],
    condition: Mapping[str, Any] | None = None,
) -> Statement:
    return {**allow(sid, actions, resources, condition), "Effect": "Deny"}
