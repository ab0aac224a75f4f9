"""DeployRole: the identity that runs ``pulumi up`` for AWS stacks, and no more.

It is assumed by the ``up`` workflow of one repository, in one GitHub environment.
A subject names an environment or a branch, never both, so the branch is held by the
environment: restrict its deployment branches to the protected one and ask for
approval there (GitHub documentation, "Managing environments for deployment").

It is no administrator. It holds the actions that the stacks' resources need, listed
one by one, in the stacks' regions, on what belongs to the fleet
(:mod:`runfleet.clouds.aws.belongings`); ``*`` stands only for actions that IAM knows
no resource type for. Networks and addresses carry no names in their ARNs, so it
removes only those with the project's label.

What it may do with IAM is bound three times:

* only roles, policies and instance profiles whose names begin as the fleet's do;
* roles of jobs, inside and outside the clusters, of the promoter and of External
  Secrets only with one of the fleet's permissions boundaries on them, which it cannot
  take off again, and nothing of its own;
* it may assume no role at all, so a role that it makes is of no use to itself, and it
  may pass roles only to the services of this floor.

In the clusters it gives access to nodes, to the admins whom the fleet file named when
the role was made, and to itself; a new admin needs the role to be made anew.

It has a permissions boundary of its own, which it can neither take off nor rewrite: a
policy that is attached to it later adds nothing outside this floor's services, the
stacks' regions and the fleet's own part of IAM.

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

from runfleet.clouds.aws import addresses, names
from runfleet.clouds.aws.belongings import Belongings
from runfleet.clouds.aws.cluster import ADMIN_POLICY
from runfleet.clouds.aws.deploy_actions import (
    ACCOUNT_DEFAULTS,
    ADMINISTER,
    ADMIT,
    ALERTS,
    BUCKETS,
    BUDGETS,
    CHANGE_ROLES,
    CLUSTER,
    CLUSTER_NEW,
    COSTS,
    DROP_BOUNDARY,
    IMAGE_CACHE,
    INTERRUPTIONS,
    KEYS,
    KEYS_LEND,
    KEYS_NEW,
    KEYS_OPEN,
    LOGS,
    LOGS_READ,
    MANAGE_IAM,
    NETWORK,
    NETWORK_READ,
    NETWORK_REMOVE,
    PASSED_TO,
    READ_IAM,
    READ_ISSUER,
    REPOSITORIES,
    SCALING,
    SCALING_READ,
    SERVICES,
    SERVICES_WITH_ROLES,
    START,
    STREAMS,
    actions,
)
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

PARTS = ("network", "cluster", "data", "signals", "identity", "guards")
"""The policies of the role: one would be longer than AWS accepts."""


@dataclass(frozen=True)
class DeployRoleArgs:
    """What :class:`DeployRole` makes.

    Attributes:
        fleet: What belongs to the fleet in the account that it deploys to.
        subjects: Exact subjects whose tokens are accepted.
        provider_arn: ARN of the identity provider of the account.
        issuer: Address of the issuer.
        boundaries: ARNs of the boundaries that roles of jobs must have.
        state_bucket: Bucket of the Pulumi state; empty when it is elsewhere.
        secrets_key: ARN of the key of the Pulumi secrets provider; may be empty.
        tags: Its tags.
    """

    fleet: Belongings
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
        return names.IAM_ROLE.encode(self.fleet.project, "deploy")

    @property
    def boundary_name(self) -> str:
        """Name of its own permissions boundary."""
        return addresses.boundary_policy(self.fleet.project, "deploy")

    @property
    def role_arn(self) -> str:
        """ARN of the role."""
        return self.fleet.arn("iam", f"role/{self.role_name}", "")

    def policy_name(self, part: str) -> str:
        """Return the name of one of its policies."""
        return names.IAM_POLICY.encode(self.fleet.project, "deploy", part)


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
        boundary = aws.iam.Policy(
            f"{name}-boundary",
            name=args.boundary_name,
            description="The most that the deployment can ever do",
            policy=document(
                deploy_boundary(args), MANAGED_POLICY_LIMIT, "the deploy boundary"
            ),
            tags=args.tags,
            opts=own,
        )
        role = web_identity_role(
            name,
            args.role_name,
            "Deploys the fleet's stacks",
            pulumi.Output.from_input(args.provider_arn).apply(
                lambda arn: web_identity_trust(arn, accepted, args.issuer)
            ),
            boundary.arn,
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

    ARNs leave the region out, which the condition on every statement holds.
    """
    fleet = args.fleet

    def on(sid: str, actions: Sequence[str], resources: Sequence[str]) -> Statement:
        return allow(sid, actions, resources, fleet.in_regions())

    every = ["*"]
    return {
        "network": [
            on("Account", (*NETWORK_READ, *ACCOUNT_DEFAULTS), every),
            on("Network", NETWORK, fleet.network()),
            _labelled(fleet, "Remove", NETWORK_REMOVE, fleet.network()),
            on("Start", START, fleet.machines()),
        ],
        "cluster": _cluster_statements(args),
        "data": [
            on("Buckets", BUCKETS, fleet.buckets()),
            on("Repositories", REPOSITORIES, fleet.repositories()),
            on("ImageCache", IMAGE_CACHE, every),
            on("Streams", STREAMS, fleet.streams()),
            on("NewKeys", KEYS_NEW, every),
            on("Keys", KEYS, [*fleet.keys(), *fleet.aliases()]),
            _labelled(fleet, "KeyPolicies", KEYS_OPEN, fleet.keys()),
            allow(
                "KeyGrants",
                KEYS_LEND,
                fleet.keys(),
                {**fleet.in_regions(), "Bool": {"kms:GrantIsForAWSResource": "true"}},
            ),
            *_state_statements(args),
        ],
        "signals": [
            on("FindLogs", LOGS_READ, every),
            on("Logs", LOGS, fleet.logs()),
            on("FindScaling", SCALING_READ, every),
            on("Scaling", SCALING, fleet.scaling_groups()),
            on("Interruptions", INTERRUPTIONS, fleet.interruptions()),
            on("Alerts", ALERTS, fleet.alerts()),
            allow("Budgets", BUDGETS, fleet.budgets()),
            allow("Costs", COSTS, every),
        ],
        "identity": _identity_statements(args),
        "guards": _guards(args),
    }


def deploy_boundary(args: DeployRoleArgs) -> list[Statement]:
    """Return the most that the role can ever do, whatever is attached to it."""
    fleet = args.fleet
    own = [*fleet.iam("role"), *fleet.iam("instance-profile")]
    return [
        allow("Services", SERVICES, ["*"], fleet.in_regions()),
        allow("Billing", ("budgets:*", "ce:*"), ["*"]),
        allow(
            "OwnIdentities", ("iam:*",), [*own, *fleet.iam("policy", names.IAM_POLICY)]
        ),
        allow("ServiceRoles", *_service_roles(fleet)),
        allow("Issuer", READ_ISSUER, [_issuer(args)]),
        *_state_statements(args),
        _deny("NotItself", (*CHANGE_ROLES, *MANAGE_IAM), _itself(args)),
        _deny("KeepBoundaries", DROP_BOUNDARY, ["*"]),
    ]


def _cluster_statements(args: DeployRoleArgs) -> list[Statement]:
    """Return what the role may do in the clusters; whom it lets in is named.

    An access entry for a person or role (``STANDARD``) can be made an administrator;
    one for nodes (``EC2_LINUX``) cannot (EKS user guide, "Create access entries").
    """
    fleet, region = args.fleet, args.fleet.in_regions()["StringEquals"]
    admin = f"arn:{fleet.partition}:eks::aws:cluster-access-policy/{ADMIN_POLICY}"
    people = list(dict.fromkeys([*fleet.admins, args.role_arn]))
    nodes = fleet.iam("role")
    return [
        allow("New", CLUSTER_NEW, ["*"], fleet.in_regions()),
        allow("Clusters", CLUSTER, fleet.in_clusters(), fleet.in_regions()),
        allow(
            "AdmitAdmins",
            ADMIT,
            fleet.the_clusters(),
            {
                "StringEquals": {**region, "eks:accessEntryType": "STANDARD"},
                "ArnEquals": {"eks:principalArn": people},
            },
        ),
        allow(
            "AdmitNodes",
            ADMIT,
            fleet.the_clusters(),
            {
                "StringEquals": {**region, "eks:accessEntryType": "EC2_LINUX"},
                "ArnLike": {"eks:principalArn": nodes},
            },
        ),
        allow(
            "Administer",
            ADMINISTER,
            fleet.access_entries(),
            {
                "StringEquals": region,
                "ArnEquals": {"eks:policyArn": admin, "eks:principalArn": people},
            },
        ),
    ]


def _state_statements(args: DeployRoleArgs) -> list[Statement]:
    """Return what the role may do with Pulumi's state and the key of its secrets."""
    found: list[Statement] = []
    if args.state_bucket:
        bucket = f"arn:{args.fleet.partition}:s3:::{args.state_bucket}"
        objects = actions("s3", "DeleteObject GetObject PutObject")
        found.append(allow("State", objects, [f"{bucket}/*"]))
        found.append(allow("StateList", ("s3:ListBucket",), [bucket]))
    if args.secrets_key:
        use = ("kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey")
        found.append(allow("Secrets", use, [args.secrets_key]))
    return found


def _identity_statements(args: DeployRoleArgs) -> list[Statement]:
    """Return what the role may do with IAM."""
    fleet = args.fleet
    roles = fleet.iam("role")
    everything = [
        *roles,
        *fleet.iam("policy", names.IAM_POLICY),
        *fleet.iam("instance-profile"),
    ]
    services = {"StringEquals": {"iam:PassedToService": list(PASSED_TO)}}
    return [
        allow("Manage", (*READ_IAM, *MANAGE_IAM), everything),
        allow("ChangeRoles", CHANGE_ROLES, roles),
        allow("Pass", ("iam:PassRole",), roles, services),
        allow("ServiceRoles", *_service_roles(fleet)),
        allow("Issuer", READ_ISSUER, [_issuer(args)]),
    ]


def _guards(args: DeployRoleArgs) -> list[Statement]:
    """Return what the role may not do, whatever allows it."""
    bounded = [
        f"{role}{kind}*"
        for role in args.fleet.iam("role")
        for kind in ("job-", "federated-", "promoter", "secrets-reader")
    ]
    unbounded = {"StringNotEquals": {"iam:PermissionsBoundary": list(args.boundaries)}}
    return [
        _deny("BoundedJobs", CHANGE_ROLES, bounded, unbounded),
        _deny("KeepBoundaries", DROP_BOUNDARY, ["*"]),
        _deny("NotItself", (*CHANGE_ROLES, *MANAGE_IAM), _itself(args)),
        _deny("NoOtherRole", ("sts:AssumeRole",), ["*"]),
    ]


def _itself(args: DeployRoleArgs) -> list[str]:
    """Return the ARNs of the role, its policies and its boundary."""
    policies = [args.boundary_name, *(args.policy_name(part) for part in PARTS)]
    arns = [args.fleet.arn("iam", f"policy/{policy}", "") for policy in policies]
    return [args.role_arn, *arns]


def _issuer(args: DeployRoleArgs) -> str:
    host = args.issuer.removeprefix("https://")
    return args.fleet.arn("iam", f"oidc-provider/{host}", "")


def _service_roles(
    fleet: Belongings,
) -> tuple[tuple[str, ...], list[str], Mapping[str, Any]]:
    return (
        ("iam:CreateServiceLinkedRole",),
        [fleet.arn("iam", "role/aws-service-role/*", "")],
        {"StringEquals": {"iam:AWSServiceName": list(SERVICES_WITH_ROLES)}},
    )


def _labelled(
    fleet: Belongings, sid: str, actions: Sequence[str], resources: Sequence[str]
) -> Statement:
    """Allow actions on what carries the project's label."""
    region = fleet.in_regions()["StringEquals"]
    label = {"aws:ResourceTag/ci_project": fleet.project}
    return allow(sid, actions, resources, {"StringEquals": {**region, **label}})


def _deny(
    sid: str,
    actions: Sequence[str],
    resources: Sequence[str],
    condition: Mapping[str, Any] | None = None,
) -> Statement:
    return {**allow(sid, actions, resources, condition), "Effect": "Deny"}
