"""Examples of the rules about AWS rights and trust."""

from __future__ import annotations

from typing import Any

import pulumi_aws as aws

from policy_examples.support import (
    ACCOUNT,
    Example,
    allow,
    document,
    github_trust,
    service_trust,
)

BUCKET = "arn:aws:s3:::cache"
PODS = "pods.eks.amazonaws.com"
EKS_OIDC = "oidc.eks.us-east-1.amazonaws.com/id/ABC"
MAIN = "repo:pytorch/ci-infra:ref:refs/heads/main"
NUMBERED = "repo:pytorch@21003710/ci-infra@77:environment:release"


def policy(*statements: dict[str, Any]) -> aws.iam.Policy:
    return aws.iam.Policy("policy", policy=document(*statements))


def role(trust: str | None = None, name: str = "role", **args: Any) -> aws.iam.Role:
    return aws.iam.Role(
        name, assume_role_policy=trust or service_trust("ec2.amazonaws.com"), **args
    )


def boundary_only() -> None:
    cap = policy(allow("*"))
    role(permissions_boundary=cap.arn)


def boundary_and_grant() -> None:
    cap = policy(allow("*"))
    held = role(permissions_boundary=cap.arn)
    aws.iam.RolePolicyAttachment("join", role=held.name, policy_arn=cap.arn)


def spread() -> None:
    held = role()
    for name, statement in (
        ("pass", allow("iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/*")),
        ("run", allow("ec2:RunInstances", "arn:aws:ec2:*:*:instance/*")),
    ):
        aws.iam.RolePolicy(name, role=held.id, policy=document(statement))


def github_role(
    *statements: dict[str, Any], grants: dict[str, Any] | None = None
) -> None:
    held = role(document(*statements))
    given = grants or allow("s3:PutObject", f"{BUCKET}/*")
    aws.iam.RolePolicy("grants", role=held.id, policy=document(given))


def irsa(subject: Any, operator: str = "StringEquals", audience: bool = True) -> None:
    condition: dict[str, Any] = {operator: {f"{EKS_OIDC}:sub": subject}}
    if audience:
        condition.setdefault("StringEquals", {})[f"{EKS_OIDC}:aud"] = (
            "sts.amazonaws.com"
        )
    role(
        document(
            {
                "Effect": "Allow",
                "Action": "sts:AssumeRoleWithWebIdentity",
                "Principal": {
                    "Federated": f"arn:aws:iam::{ACCOUNT}:oidc-provider/{EKS_OIDC}"
                },
                "Condition": condition,
            }
        )
    )


def pods(*accounts: tuple[str, str]) -> None:
    held = role(service_trust(PODS))
    for index, (namespace, account) in enumerate(accounts):
        aws.eks.PodIdentityAssociation(
            f"join-{index}",
            cluster_name="cluster",
            namespace=namespace,
            service_account=account,
            role_arn=held.arn,
        )


def attached(name: str) -> None:
    aws.iam.RolePolicyAttachment(
        "join", role=role().name, policy_arn=f"arn:aws:iam::aws:policy/{name}"
    )


def trust_of_everybody() -> None:
    role(document({"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": "*"}))


def not_principal() -> None:
    role(
        document(
            {
                "Effect": "Allow",
                "Action": "sts:AssumeRole",
                "NotPrincipal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"},
            }
        )
    )


KARPENTER = (
    allow(
        ["ec2:RunInstances", "ec2:CreateFleet"],
        ["arn:aws:ec2:us-east-1::image/*", "arn:aws:ec2:us-east-1:*:subnet/*"],
    ),
    allow(
        "ec2:TerminateInstances",
        "*",
        Condition={"StringEquals": {"aws:ResourceTag/cluster": "owned"}},
    ),
    allow(["ec2:DescribeInstances", "ec2:DescribeSubnets"], "*"),
    allow("iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/nodes"),
)

EXAMPLES = [
    Example("R-AWS-17", "by ARN", lambda: policy(allow("s3:GetObject", f"{BUCKET}/*"))),
    Example("R-AWS-17", "an autoscaler's rights", lambda: policy(*KARPENTER)),
    Example(
        "R-AWS-17",
        "actions without a resource type",
        lambda: policy(allow("ecr:GetAuthorizationToken")),
    ),
    Example("R-AWS-17", "a boundary grants nothing", boundary_only),
    Example(
        "R-AWS-17", "a boundary that is attached", boundary_and_grant, ("Action is *",)
    ),
    Example("R-AWS-17", "star", lambda: policy(allow("*")), ("Action is *",)),
    Example(
        "R-AWS-17",
        "the second statement",
        lambda: policy(allow("s3:GetObject", f"{BUCKET}/*"), allow("s3:*")),
        ("s3:* on every resource",),
    ),
    Example(
        "R-AWS-17",
        "pushing to every repository",
        lambda: policy(allow(["ecr:PutImage", "ecr:UploadLayerPart"])),
        ("ecr:PutImage, ecr:UploadLayerPart",),
    ),
    Example(
        "R-AWS-17",
        "all but a few actions",
        lambda: policy(
            {"Effect": "Allow", "NotAction": "iam:*", "Resource": f"{BUCKET}/*"}
        ),
        ("NotAction with Allow",),
    ),
    Example(
        "R-AWS-17",
        "all but a few resources",
        lambda: policy(
            {"Effect": "Allow", "Action": "s3:PutObject", "NotResource": BUCKET}
        ),
        ("NotResource with Allow",),
    ),
    Example(
        "R-AWS-17",
        "a condition that narrows nothing",
        lambda: policy(
            allow(
                "s3:PutObject",
                Condition={"StringLike": {"aws:ResourceAccount": "*"}},
            )
        ),
        ("s3:PutObject",),
    ),
    Example(
        "R-AWS-17",
        "a condition that passes without its key",
        lambda: policy(
            allow(
                "s3:PutObject",
                Condition={"StringEqualsIfExists": {"aws:ResourceAccount": ACCOUNT}},
            )
        ),
        ("s3:PutObject",),
    ),
    Example(
        "R-AWS-17",
        "inline",
        lambda: role(inline_policies=[{"name": "x", "policy": document(allow("*"))}]),
        ("Action is *",),
    ),
    Example("R-AWS-18", "read only", lambda: attached("ReadOnlyAccess")),
    Example(
        "R-AWS-18",
        "administrator",
        lambda: attached("AdministratorAccess"),
        ("AdministratorAccess is attached",),
    ),
    Example(
        "R-AWS-18",
        "in the role's own list",
        lambda: role(
            managed_policy_arns=[
                "arn:aws:iam::aws:policy/ReadOnlyAccess",
                "arn:aws:iam::aws:policy/IAMFullAccess",
            ]
        ),
        ("IAMFullAccess is attached",),
    ),
    Example("R-AWS-19", "one role by ARN", lambda: policy(*KARPENTER)),
    Example(
        "R-AWS-19",
        "denied again",
        lambda: policy(
            allow("iam:CreateAccessKey"),
            {"Effect": "Deny", "Action": "iam:*", "Resource": "*"},
        ),
    ),
    Example(
        "R-AWS-19",
        "keys for any user",
        lambda: policy(allow("iam:CreateAccessKey", f"arn:aws:iam::{ACCOUNT}:user/*")),
        ("make keys for any user",),
    ),
    Example(
        "R-AWS-19",
        "any role on a machine",
        lambda: policy(
            allow(["iam:Pass*", "ec2:Run*"]),
        ),
        ("start a machine with any role",),
    ),
    Example("R-AWS-19", "rights spread over two policies", spread, ("together",)),
    Example(
        "R-AWS-19",
        "all secrets, and a bucket policy",
        lambda: policy(allow(["secretsmanager:GetSecretValue", "s3:PutBucketPolicy"])),
        ("can open any resource", "can read everything out"),
    ),
    Example("R-AWS-20", "exact name", lambda: github_role(github_trust(MAIN))),
    Example(
        "R-AWS-20",
        "exact numbers (checkov refuses them)",
        lambda: github_role(github_trust(NUMBERED)),
    ),
    Example(
        "R-AWS-20",
        "both forms, and one branch pattern",
        lambda: github_role(
            github_trust([NUMBERED, "repo:o/r:ref:refs/tags/v*"], "StringLike")
        ),
    ),
    Example(
        "R-AWS-20",
        "a customised subject with the repository's number",
        lambda: github_role(
            github_trust("repository_owner_id:1:repository_id:77:environment:release")
        ),
    ),
    Example(
        "R-AWS-20",
        "pull requests that may only read",
        lambda: github_role(
            github_trust("repo:o/r:pull_request"),
            grants=allow("s3:GetObject", f"{BUCKET}/*"),
        ),
    ),
    Example(
        "R-AWS-20",
        "pull requests that may write",
        lambda: github_role(github_trust("repo:o/r:pull_request")),
        ("lets pull requests in",),
    ),
    Example(
        "R-AWS-20",
        "a later statement is unsafe",
        lambda: github_role(
            {
                "Effect": "Allow",
                "Action": "sts:AssumeRole",
                "Principal": {"Service": "ec2.amazonaws.com"},
            },
            github_trust("*", "StringLike"),
        ),
        ("wildcard in owner or repository",),
    ),
    Example(
        "R-AWS-20",
        "a later value is unsafe",
        lambda: github_role(github_trust([MAIN, "*"], "StringLike")),
        ("wildcard in owner or repository",),
    ),
    Example(
        "R-AWS-20",
        "an owner's every repository",
        lambda: github_role(github_trust("repo:pytorch/*", "StringLike")),
        ("wildcard in owner or repository",),
    ),
    Example(
        "R-AWS-20",
        "any ref of a repository",
        lambda: github_role(github_trust("repo:pytorch/ci-infra:*", "StringLike")),
        ("lets any ref",),
    ),
    Example(
        "R-AWS-20",
        "no audience",
        lambda: github_role(github_trust(MAIN, audience=None)),
        ("no condition on aud",),
    ),
    Example(
        "R-AWS-20",
        "another audience beside the right one",
        lambda: github_role(github_trust(MAIN, audience=["sts.amazonaws.com", "x"])),
        ("aud is not bound",),
    ),
    Example(
        "R-AWS-20",
        "a condition that excludes instead",
        lambda: github_role(github_trust(MAIN, "StringNotLike")),
        ("no condition binds sub",),
    ),
    Example(
        "R-AWS-20",
        "a condition that passes without the claim",
        lambda: github_role(github_trust(MAIN, "StringEqualsIfExists")),
        ("passes when the claim is missing",),
    ),
    Example(
        "R-AWS-20",
        "no subject",
        lambda: github_role(github_trust(None)),
        ("no condition binds sub",),
    ),
    Example("R-AWS-20", "everybody", trust_of_everybody, ("Principal is *",)),
    Example("R-AWS-20", "everybody but one", not_principal, ("NotPrincipal",)),
    Example("R-AWS-21", "a role", lambda: role()),
    Example(
        "R-AWS-21",
        "a user with a key",
        lambda: aws.iam.AccessKey("key", user=aws.iam.User("user").name),
        ("an IAM user", "long-lived access key"),
    ),
    Example(
        "R-AWS-22",
        "bounded",
        lambda: role(
            service_trust(PODS),
            permissions_boundary=f"arn:aws:iam::{ACCOUNT}:policy/cap",
            max_session_duration=3600,
        ),
    ),
    Example("R-AWS-22", "not a runner's role", lambda: role()),
    Example(
        "R-AWS-22",
        "a controller's role",
        lambda: role(service_trust(PODS), tags={"ci_runner_class": "shared"}),
    ),
    Example(
        "R-AWS-22",
        "a class's role for half a day",
        lambda: role(tags={"ci_runner_class": "gpu"}, max_session_duration=43200),
        ("maxSessionDuration is 43200 s", "no permissionsBoundary"),
    ),
    Example("R-AWS-23", "exact", lambda: irsa("system:serviceaccount:class-a:job")),
    Example(
        "R-AWS-23",
        "a whole namespace",
        lambda: irsa("system:serviceaccount:class-a:*", "StringLike"),
        ("not one exact service account",),
    ),
    Example(
        "R-AWS-23",
        "no audience",
        lambda: irsa("system:serviceaccount:class-a:job", audience=False),
        ("aud is not bound",),
    ),
    Example("R-AWS-23", "one association", lambda: pods(("class-a", "job"))),
    Example(
        "R-AWS-23",
        "one role for two classes",
        lambda: pods(("class-a", "job"), ("class-b", "job")),
        ("class-a/job and class-b/job",),
    ),
    Example(
        "R-AWS-23",
        "every pod's account",
        lambda: pods(("class-a", "default")),
        ("account every pod",),
    ),
]
