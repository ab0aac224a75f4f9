"""AWS rights: what identities may do, judged by meaning.

Documents are read with AWS's own action table (:mod:`runfleet_policies.iam`).
Every statement counts, ``NotAction`` and ``NotResource`` are inverted, and a
condition excuses a statement only when it narrows which resources are reached.

The ways to escalate are those described by Rhino Security Labs ("AWS IAM privilege
escalation", github.com/RhinoSecurityLabs/AWS-IAM-Privilege-Escalation) with the
later ones for EKS Pod Identity and EKS access entries, in our own words; the
actions that read data out are those that cloudsplaining (github.com/salesforce/
cloudsplaining) lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from runfleet.spec.findings import Severity
from runfleet_policies.access import (
    ROLE,
    Grants,
    class_of,
    documents,
    holdings,
    trust,
)
from runfleet_policies.iam import (
    Statement,
    allowed,
    denied,
    expand,
    spelled,
    table,
)
from runfleet_policies.rule import Breach, Context, Parameter, Rule, guarded
from runfleet_policies.values import CannotTell
from runfleet_policies.view import ResourceView, StackView

ADMINISTRATOR_POLICIES = (
    "AdministratorAccess",
    "AdministratorAccess-Amplify",
    "AdministratorAccess-AWSElasticBeanstalk",
    "PowerUserAccess",
    "IAMFullAccess",
    "job-function/SystemAdministrator",
)
"""AWS managed policies that make their holder an administrator, in effect."""

READING_OUT = (
    "s3:GetObject",
    "secretsmanager:GetSecretValue",
    "ssm:GetParameter",
    "ssm:GetParameters",
    "ssm:GetParametersByPath",
    "rds:CopyDBSnapshot",
    "rds:CreateDBSnapshot",
)
"""Actions that carry data or secrets out when they are allowed on everything."""


@dataclass(frozen=True)
class Escalation:
    """A way from some rights to more.

    Attributes:
        how: What the holder does, in words.
        actions: The actions needed, all of them; the first one needs a wide scope.
        kind: Kind of resource of the first action's ARNs, such as ``role``.
    """

    how: str
    actions: tuple[str, ...]
    kind: str


ESCALATIONS: tuple[Escalation, ...] = (
    Escalation("rewrite any policy", ("iam:CreatePolicyVersion",), "policy"),
    Escalation("restore an old policy", ("iam:SetDefaultPolicyVersion",), "policy"),
    Escalation("make keys for any user", ("iam:CreateAccessKey",), "user"),
    Escalation("give any user a password", ("iam:CreateLoginProfile",), "user"),
    Escalation("change any user's password", ("iam:UpdateLoginProfile",), "user"),
    Escalation("attach any policy to a user", ("iam:AttachUserPolicy",), "user"),
    Escalation("attach any policy to a group", ("iam:AttachGroupPolicy",), "group"),
    Escalation("attach any policy to a role", ("iam:AttachRolePolicy",), "role"),
    Escalation("write a user's inline policy", ("iam:PutUserPolicy",), "user"),
    Escalation("write a group's inline policy", ("iam:PutGroupPolicy",), "group"),
    Escalation("write a role's inline policy", ("iam:PutRolePolicy",), "role"),
    Escalation("join any group", ("iam:AddUserToGroup",), "group"),
    Escalation("change who a role trusts", ("iam:UpdateAssumeRolePolicy",), "role"),
    Escalation(
        "take a role's boundary away", ("iam:DeleteRolePermissionsBoundary",), "role"
    ),
    Escalation("widen a role's boundary", ("iam:PutRolePermissionsBoundary",), "role"),
    Escalation("become any role", ("sts:AssumeRole",), "role"),
    Escalation(
        "start a machine with any role", ("iam:PassRole", "ec2:RunInstances"), "role"
    ),
    Escalation(
        "run a function with any role",
        ("iam:PassRole", "lambda:CreateFunction", "lambda:InvokeFunction"),
        "role",
    ),
    Escalation(
        "run a function with any role from events",
        ("iam:PassRole", "lambda:CreateFunction", "lambda:CreateEventSourceMapping"),
        "role",
    ),
    Escalation(
        "let others run a function with any role",
        ("iam:PassRole", "lambda:CreateFunction", "lambda:AddPermission"),
        "role",
    ),
    Escalation("rewrite any function", ("lambda:UpdateFunctionCode",), "function"),
    Escalation(
        "load code into any function",
        ("lambda:UpdateFunctionConfiguration",),
        "function",
    ),
    Escalation(
        "deploy a stack with any role",
        ("iam:PassRole", "cloudformation:CreateStack"),
        "role",
    ),
    Escalation(
        "open a Glue endpoint with any role",
        ("iam:PassRole", "glue:CreateDevEndpoint"),
        "role",
    ),
    Escalation("take over a Glue endpoint", ("glue:UpdateDevEndpoint",), "devEndpoint"),
    Escalation(
        "run a pipeline with any role",
        (
            "iam:PassRole",
            "datapipeline:CreatePipeline",
            "datapipeline:PutPipelineDefinition",
        ),
        "role",
    ),
    Escalation(
        "open a notebook with any role",
        (
            "iam:PassRole",
            "sagemaker:CreateNotebookInstance",
            "sagemaker:CreatePresignedNotebookInstanceUrl",
        ),
        "role",
    ),
    Escalation(
        "build with any role",
        ("iam:PassRole", "codebuild:CreateProject", "codebuild:StartBuild"),
        "role",
    ),
    Escalation(
        "run a container with any role",
        ("iam:PassRole", "ecs:RegisterTaskDefinition", "ecs:RunTask"),
        "role",
    ),
    Escalation(
        "give a pod any role",
        ("iam:PassRole", "eks:CreatePodIdentityAssociation"),
        "role",
    ),
    Escalation(
        "become administrator of a cluster",
        ("eks:CreateAccessEntry", "eks:AssociateAccessPolicy"),
        "cluster",
    ),
    Escalation("run commands on any machine", ("ssm:SendCommand",), "instance"),
    Escalation("open a shell on any machine", ("ssm:StartSession",), "instance"),
    Escalation(
        "log in to any machine", ("ec2-instance-connect:SendSSHPublicKey",), "instance"
    ),
)


def rules() -> tuple[Rule, ...]:
    """Return the rules about AWS rights."""
    return (
        Rule(
            id="R-AWS-17",
            severity=Severity.CRITICAL,
            title="No statement gives administrator rights or every resource",
            rationale="A job runs arbitrary code, so whatever its role may do, an "
            "attacker may do. A wildcard gives rights that nobody decided on.",
            fix="list the actions and the ARNs that are needed",
            anchors=("S17", "S32", "CIS 2.2.3"),
            stack=_administrator_statements,
        ),
        Rule(
            id="R-AWS-18",
            severity=Severity.CRITICAL,
            title="No administrator policy of AWS is attached",
            rationale="AdministratorAccess, PowerUserAccess and their like turn one "
            "stolen token into the whole account.",
            fix="attach a policy of your own with the actions that are needed",
            anchors=("S01", "S17", "A01"),
            types=(
                "aws:iam/*ttachment:*Attachment",
                "aws:iam/rolePolicyAttachmentsExclusive:RolePolicyAttachmentsExclusive",
                ROLE,
                "aws:ssoadmin/managedPolicyAttachment:ManagedPolicyAttachment",
            ),
            resource=_administrator_policies,
        ),
        Rule(
            id="R-AWS-19",
            severity=Severity.HIGH,
            title="No rights that lead to more rights, read data out or expose it",
            rationale="Some rights are enough to get others: a role that may pass any "
            "role to a machine is an administrator with one more step. Rights spread "
            "over several policies of a role are judged together.",
            fix="name the resources, drop the action, or bind it with a condition",
            anchors=("S17", "S01", "SLSA L3"),
            stack=_escalations,
        ),
        Rule(
            id="R-AWS-21",
            severity=Severity.HIGH,
            title="No IAM users and no long-lived keys",
            rationale="A key that does not expire stays useful to whoever copies it "
            "once. Jobs, nodes and deployments all have short-lived credentials.",
            fix="delete it; use OIDC, EKS Pod Identity or IAM Identity Center",
            anchors=("S16", "S31", "S32"),
            types=("aws:iam/accessKey:AccessKey", "aws:iam/user:User"),
            resource=_long_lived,
        ),
        Rule(
            id="R-AWS-22",
            severity=Severity.MEDIUM,
            title="Runner roles have a boundary and sessions of at most one hour",
            rationale="The boundary caps what a mistake in a policy can give, the "
            "short session how long stolen credentials live.",
            fix="set permissionsBoundary, and maxSessionDuration to 3600 or less",
            anchors=("S17", "S32"),
            types=(ROLE,),
            resource=_boundary,
            parameters=(
                Parameter("longest_session", 3600, "Most seconds of a session."),
            ),
        ),
    )


def is_runner_role(role: ResourceView) -> bool:
    """Say whether jobs use a role: by its label, or else by whom it trusts.

    A role labelled ``ci_runner_class: shared`` belongs to a controller unless
    GitHub's tokens may assume it.
    """
    if class_of(role):
        return True
    labelled = bool(role.text("tags", "ci_runner_class"))
    for statement in trust(role):
        federated = " ".join(statement.principals.get("Federated", ()))
        services = statement.principals.get("Service", ())
        if "token.actions.githubusercontent.com" in federated:
            return True
        if labelled:
            continue
        if "oidc.eks." in federated or "pods.eks.amazonaws.com" in services:
            return True
    return False


def _administrator_statements(stack: StackView, context: Context) -> Iterator[Breach]:
    for grants in documents(stack):
        yield from guarded(_wide(grants), grants.resource.urn)


def _wide(grants: Grants) -> Iterator[Breach]:
    found = grants.statements()
    blocked = denied(found)
    for statement in found:
        if statement.allow:
            why = _too_wide(statement, blocked)
            if why:
                place = grants.prefix + statement.place
                yield Breach(why, place, urn=grants.resource.urn)


def _too_wide(statement: Statement, blocked: frozenset[str]) -> str:
    if any(action.strip("*:") == "" for action in statement.actions):
        return "Action is *: every action is allowed"
    if statement.not_actions:
        listed = ", ".join(statement.not_actions)
        return f"NotAction with Allow: every action except {listed} is allowed"
    if statement.not_resources:
        return "NotResource with Allow: every resource except those listed is reached"
    if not statement.broad() or statement.narrowed:
        return ""
    services = sorted(a for a in statement.actions if a.partition(":")[2] == "*")
    if services:
        return f"{', '.join(services)} on every resource"
    actions = statement.granted() - blocked
    levels = table().levels
    scoped = {
        action
        for action in actions
        if levels.get(action, "write") not in ("read", "list")
        and action not in table().unscoped
    }
    if scoped:
        return f"Resource is * for {spelled(scoped)}, which can be given by ARN"
    return ""


def _administrator_policies(
    resource: ResourceView, context: Context
) -> Iterator[Breach]:
    arns = [
        *resource.texts("managedPolicyArns"),
        *resource.texts("managedPolicyArn"),
        *resource.texts("policyArn"),
        *resource.texts("policyArns"),
    ]
    for arn in arns:
        name = arn.partition(":policy/")[2]
        if arn.split(":")[4:5] == ["aws"] and name in ADMINISTRATOR_POLICIES:
            yield Breach(f"{name} is attached")


def _escalations(stack: StackView, context: Context) -> Iterator[Breach]:
    seen: dict[str, set[str]] = {}
    for grants in documents(stack):
        urn = grants.resource.urn
        try:
            found = grants.statements()
        except CannotTell as unknown:
            yield Breach(f"cannot tell: {unknown}", unknown.path, True, urn)
            continue
        ways = {way.how: way for way in ways_up(found)}
        seen.setdefault(urn, set()).update(ways)
        place = grants.prefix.rstrip(".")
        for way in ways.values():
            yield Breach(f"can {way.how}: {', '.join(way.actions)}", place, urn=urn)
        yield from _exposed(found, urn, place)
    for role in stack.of(ROLE):
        yield from guarded(_together(stack, role, seen), role.urn)


def _together(
    stack: StackView, role: ResourceView, seen: dict[str, set[str]]
) -> Iterator[Breach]:
    held = holdings(stack)[role.urn].documents
    if len(held) < 2:
        return
    found = [s for grants in held for s in grants.statements()]
    alone: set[str] = set()
    for grants in held:
        alone |= seen.get(grants.resource.urn, set())
    for way in ways_up(found):
        if way.how not in alone:
            actions = ", ".join(way.actions)
            why = f"can {way.how} with all its policies together: {actions}"
            yield Breach(why, urn=role.urn)


def ways_up(found: Sequence[Statement]) -> list[Escalation]:
    """Return the ways to more rights that some statements open."""
    rights = allowed(found)
    return [
        way
        for way in ESCALATIONS
        if all(action.lower() in rights for action in way.actions)
        and _widely(found, way.actions[0], way.kind)
    ]


def _widely(found: Iterable[Statement], action: str, kind: str = "") -> bool:
    (wanted,) = expand(action)
    return any(
        statement.allow
        and statement.broad(kind)
        and not statement.narrowed
        and wanted in statement.granted()
        for statement in found
    )


def _exposed(found: Sequence[Statement], urn: str, place: str) -> Iterator[Breach]:
    rights = allowed(found)
    out = [a for a in READING_OUT if a.lower() in rights and _widely(found, a)]
    if out:
        yield Breach(f"can read everything out: {', '.join(out)} on *", place, urn=urn)
    wide: set[str] = set()
    for statement in found:
        if statement.allow and statement.broad() and not statement.narrowed:
            wide |= statement.granted()
    levels = table().levels
    exposing = {
        action
        for action in wide & rights
        if levels.get(action) == "permissions"
        and not action.startswith(("iam:", "sts:"))
    }
    if exposing:
        why = f"can open any resource to others: {spelled(exposing)} on *"
        yield Breach(why, place, urn=urn)


def _long_lived(resource: ResourceView, context: Context) -> Iterator[Breach]:
    if resource.type.endswith(":AccessKey"):
        yield Breach(f"a long-lived access key for {resource.text('user') or '?'}")
    else:
        yield Breach("an IAM user")


def _boundary(role: ResourceView, context: Context) -> Iterator[Breach]:
    if not is_runner_role(role):
        return
    longest = context.number("longest_session")
    session = role.number("maxSessionDuration")
    if session is not None and session > longest:
        yield Breach(
            f"maxSessionDuration is {session:g} s, more than {longest} s",
            "maxSessionDuration",
        )
    try:
        boundary = role.text("permissionsBoundary")
    except CannotTell:
        return
    if not boundary:
        yield Breach("has no permissionsBoundary", "permissionsBoundary")
