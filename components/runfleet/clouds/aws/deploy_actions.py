"""The actions of the deploy role, by what they are done to.

One list per kind of thing, because each kind has its own ARNs; actions that IAM gives
no resource type stand in lists of their own. Which is which is in AWS's Service
Authorization Reference (https://docs.aws.amazon.com/service-authorization/latest/
reference/), and a test compares the lists with it.
"""

from __future__ import annotations


def actions(service: str, text: str) -> tuple[str, ...]:
    """Return the actions of a service, from their names in a text."""
    return tuple(f"{service}:{action}" for action in text.split())


PASSED_TO = (
    "ec2.amazonaws.com",
    "ecr.amazonaws.com",
    "eks.amazonaws.com",
    "firehose.amazonaws.com",
    "pods.eks.amazonaws.com",
    "vpc-flow-logs.amazonaws.com",
)
"""Services that the stacks hand roles to."""


NETWORK_READ = actions(
    "ec2",
    """
    DescribeAddresses DescribeAddressesAttribute DescribeAvailabilityZones
    DescribeFlowLogs DescribeImages DescribeInstanceTypes DescribeInternetGateways
    DescribeLaunchTemplateVersions DescribeLaunchTemplates DescribeNatGateways
    DescribeNetworkAcls DescribeNetworkInterfaces DescribePrefixLists
    DescribeRouteTables DescribeSecurityGroupRules DescribeSecurityGroups
    DescribeSubnets DescribeTags DescribeVpcEndpoints DescribeVpcs
    """,
)
"""IAM gives these no resource type."""

ACCOUNT_DEFAULTS = actions(
    "ec2",
    """
    EnableEbsEncryptionByDefault GetEbsEncryptionByDefault
    GetInstanceMetadataDefaults ModifyInstanceMetadataDefaults
    """,
)
"""IAM gives these no resource type. What makes disks unencrypted is not among them."""

NETWORK = actions(
    "ec2",
    """
    AllocateAddress AssociateRouteTable AttachInternetGateway
    AuthorizeSecurityGroupEgress AuthorizeSecurityGroupIngress CreateFlowLogs
    CreateInternetGateway CreateLaunchTemplate CreateLaunchTemplateVersion
    CreateNatGateway CreateRoute CreateRouteTable CreateSecurityGroup CreateSubnet
    CreateTags CreateVpc CreateVpcEndpoint DeleteRoute DeleteTags
    DescribeVpcAttribute DetachInternetGateway DisassociateAddress
    DisassociateRouteTable ModifyLaunchTemplate ModifySecurityGroupRules
    ModifySubnetAttribute ModifyVpcAttribute ModifyVpcEndpoint ReplaceRoute
    ReplaceRouteTableAssociation RevokeSecurityGroupEgress
    RevokeSecurityGroupIngress UpdateSecurityGroupRuleDescriptionsEgress
    UpdateSecurityGroupRuleDescriptionsIngress
    """,
)

NETWORK_REMOVE = actions(
    "ec2",
    """
    DeleteFlowLogs DeleteInternetGateway DeleteLaunchTemplate
    DeleteLaunchTemplateVersions DeleteNatGateway DeleteRouteTable
    DeleteSecurityGroup DeleteSubnet DeleteVpc DeleteVpcEndpoints ReleaseAddress
    """,
)
"""Every one of these things is labelled when it is made, so the label can be asked
for; it holds a mistake only, because the role sets labels too."""

START = actions("ec2", "RunInstances")
"""EKS checks that whoever makes a node group may start machines from its launch
template (EKS user guide, "Customize managed nodes with launch templates")."""

CLUSTER_NEW = actions("eks", "CreateCluster DescribeAddonVersions")
"""IAM gives these no resource type."""

CLUSTER = actions(
    "eks",
    """
    AssociateEncryptionConfig CreateAddon CreateNodegroup
    CreatePodIdentityAssociation DeleteAccessEntry DeleteAddon DeleteCluster
    DeleteNodegroup DeletePodIdentityAssociation DescribeAccessEntry DescribeAddon
    DescribeCluster DescribeNodegroup DescribePodIdentityAssociation DescribeUpdate
    DisassociateAccessPolicy ListAccessEntries ListAddons
    ListAssociatedAccessPolicies ListNodegroups ListPodIdentityAssociations
    ListTagsForResource TagResource UntagResource UpdateAddon UpdateClusterConfig
    UpdateClusterVersion UpdateNodegroupConfig UpdateNodegroupVersion
    UpdatePodIdentityAssociation
    """,
)

SCALING_READ = actions("autoscaling", "DescribeTags")
"""IAM gives it no resource type."""

SCALING = actions("autoscaling", "CreateOrUpdateTags DeleteTags")
"""EKS makes the base nodes' Auto Scaling group and does not label it."""

ADMIT = ("eks:CreateAccessEntry",)
ADMINISTER = ("eks:AssociateAccessPolicy",)

BUCKETS = actions(
    "s3",
    """
    CreateBucket GetAccelerateConfiguration GetBucketAcl GetBucketCORS
    GetBucketLocation GetBucketLogging GetBucketObjectLockConfiguration
    GetBucketOwnershipControls GetBucketPolicy GetBucketPublicAccessBlock
    GetBucketRequestPayment GetBucketTagging GetBucketVersioning
    GetBucketWebsite GetEncryptionConfiguration GetLifecycleConfiguration
    GetReplicationConfiguration ListBucket ListTagsForResource
    PutBucketObjectLockConfiguration PutBucketOwnershipControls PutBucketPolicy
    PutBucketPublicAccessBlock PutBucketTagging PutBucketVersioning
    PutEncryptionConfiguration PutLifecycleConfiguration TagResource UntagResource
    """,
)

REPOSITORIES = actions(
    "ecr",
    """
    CreateRepository DeleteLifecyclePolicy DeleteRepositoryPolicy
    DescribeRepositories GetLifecyclePolicy GetRepositoryPolicy ListTagsForResource
    PutImageScanningConfiguration PutImageTagMutability PutLifecyclePolicy
    SetRepositoryPolicy TagResource UntagResource
    """,
)

IMAGE_CACHE = actions(
    "ecr",
    """
    CreatePullThroughCacheRule CreateRepositoryCreationTemplate
    DeletePullThroughCacheRule DeleteRepositoryCreationTemplate
    DescribePullThroughCacheRules DescribeRepositoryCreationTemplates
    UpdatePullThroughCacheRule UpdateRepositoryCreationTemplate
    """,
)
"""IAM gives these no resource type."""

STREAMS = actions(
    "firehose",
    """
    CreateDeliveryStream DescribeDeliveryStream ListTagsForDeliveryStream
    StartDeliveryStreamEncryption TagDeliveryStream UntagDeliveryStream
    UpdateDestination
    """,
)

KEYS_NEW = actions("kms", "CreateKey ListAliases")
"""IAM gives these no resource type."""

KEYS = actions(
    "kms",
    """
    CreateAlias DescribeKey EnableKeyRotation GetKeyPolicy GetKeyRotationStatus
    ListResourceTags TagResource UntagResource UpdateAlias UpdateKeyDescription
    """,
)

KEYS_OPEN = actions("kms", "PutKeyPolicy")
"""Only keys with the project's label: a new key is made with its policy, so the label,
which may take five minutes to count (KMS developer guide, "ABAC for AWS KMS"), has
counted long before a policy changes."""

KEYS_LEND = actions("kms", "CreateGrant")
"""Only grants that a service makes for its own resource: EKS, EBS and Firehose do."""

LOGS = actions(
    "logs",
    """
    AssociateKmsKey CreateLogGroup DeleteLogGroup ListTagsForResource
    PutRetentionPolicy TagResource UntagResource
    """,
)

LOGS_READ = actions("logs", "DescribeLogGroups")
"""IAM gives it no resource type."""

INTERRUPTIONS = (
    *actions(
        "sqs",
        """
        CreateQueue DeleteQueue GetQueueAttributes GetQueueUrl ListQueueTags
        SetQueueAttributes TagQueue UntagQueue
        """,
    ),
    *actions(
        "events",
        """
        DeleteRule DescribeRule ListTagsForResource ListTargetsByRule PutRule
        PutTargets RemoveTargets TagResource UntagResource
        """,
    ),
)

ALERTS = actions(
    "sns",
    """
    CreateTopic DeleteTopic GetTopicAttributes ListTagsForResource
    SetTopicAttributes TagResource UntagResource
    """,
)

BUDGETS = actions(
    "budgets",
    "ListTagsForResource ModifyBudget TagResource UntagResource ViewBudget",
)

COSTS = actions("ce", "ListCostAllocationTags UpdateCostAllocationTagsStatus")
"""IAM gives these no resource type, and they have no region."""

SERVICES_WITH_ROLES = (
    "autoscaling.amazonaws.com",
    "ec2.amazonaws.com",
    "eks-nodegroup.amazonaws.com",
    "eks.amazonaws.com",
    "spot.amazonaws.com",
)
"""Services that make a role of their own when an account first uses them."""

READ_IAM = actions(
    "iam",
    """
    GetInstanceProfile GetPolicy GetPolicyVersion GetRole
    GetRolePolicy ListAttachedRolePolicies ListInstanceProfilesForRole
    ListPolicyVersions ListRolePolicies
    """,
)

CHANGE_ROLES = actions(
    "iam",
    """
    AttachRolePolicy CreateRole DeleteRolePolicy DetachRolePolicy
    PutRolePermissionsBoundary PutRolePolicy
    """,
)
"""What IAM lets a condition on the role's permissions boundary hold (service
authorization reference of IAM, condition key ``iam:PermissionsBoundary``)."""

MANAGE_IAM = actions(
    "iam",
    """
    AddRoleToInstanceProfile CreateInstanceProfile CreatePolicy CreatePolicyVersion
    DeleteInstanceProfile DeletePolicy DeletePolicyVersion DeleteRole
    RemoveRoleFromInstanceProfile TagInstanceProfile TagPolicy TagRole
    UntagInstanceProfile UntagPolicy UntagRole UpdateAssumeRolePolicy UpdateRole
    UpdateRoleDescription
    """,
)

READ_ISSUER = ("iam:GetOpenIDConnectProvider",)
DROP_BOUNDARY = ("iam:DeleteRolePermissionsBoundary",)

SERVICES = tuple(
    f"{service}:*"
    for service in (
        "autoscaling",
        "ec2",
        "ecr",
        "eks",
        "events",
        "firehose",
        "kms",
        "logs",
        "s3",
        "sns",
        "sqs",
    )
)
"""Services of this floor that have regions."""
