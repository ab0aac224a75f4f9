"""AWS's policy evaluation logic for the session of a role.

Source: AWS IAM User Guide, "Policy evaluation logic" (single account, cross-account,
resource-based policies for role sessions), "Permissions boundaries for IAM
entities"; AWS KMS Developer Guide, "Key policies"; Amazon VPC User Guide, "Control
access to VPC endpoints using endpoint policies". In short, for a session of a role:

1. A matching ``Deny`` in any policy denies.
2. *Own* permissions are what identity policies, permissions boundary and session
   policy all allow.
3. Same account: own permissions are enough; so is a resource policy that names the
   session or everyone, and one that names the role, the latter still limited by
   boundary and session policy.
4. KMS keys and the assumption of roles need their resource policy: it must name the
   role, the session or everyone, or name the account *and* own permissions exist.
5. Another account: own permissions and the resource policy must both allow.
6. A request that comes through a VPC endpoint also needs the endpoint's policy.

What is not evaluated is listed in :data:`NOT_EVALUATED`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from runfleet.review.evaluators.aws_inventory import Inventory, Role
from runfleet.review.evaluators.aws_match import Context, Missing
from runfleet.review.evaluators.aws_policy import (
    Policy,
    PolicyKind,
    Statement,
    opaque_policy,
)
from runfleet.review.evaluators.aws_principals import (
    NOBODY,
    Caller,
    RoleCaller,
    Routes,
    role_parts,
)
from runfleet.review.evaluators.decision import (
    Decision,
    Outcome,
    Reason,
    Truth,
    negate,
    outcome_of,
)

NOT_EVALUATED: Final = (
    "service control policies and resource control policies of AWS Organizations",
    "S3 Block Public Access, access control lists, access points and access grants",
    "KMS grants",
    "resource policies of services other than S3, ECR, SQS, KMS, Secrets Manager and "
    "DynamoDB (answered with cannot-tell where they could decide)",
    "AWS managed policies whose document is not given (answered with cannot-tell)",
)
"""What AWS also looks at and this evaluator does not."""

NOT_CROSS_CHECKED: Final = (
    "conditions and policy variables: moto ignores them",
    "permissions boundaries and session policies: moto ignores them",
    "resource policies with conditions, and whom they name: moto ignores conditions, "
    "so that a bucket policy which denies requests without TLS refuses all",
    "repositories (ECR) and log groups: moto does not match their ARNs",
    "keys (KMS), queues, secrets and delivery streams",
    "access from one account to another",
    "trust policies, tokens and EKS Pod Identity",
)
"""Rules that the comparison with moto's IAM enforcement (moto 5.2.5) cannot check.

Checked against moto are the identity policies of roles on S3: actions, resources,
wildcards, ``NotAction`` and ``Deny``. The rest stands on tests of its own.
"""

SERVICES_WITH_POLICIES: Final = frozenset(
    {"s3", "ecr", "sqs", "kms", "secretsmanager", "dynamodb"}
)
"""Services whose resource policies are read from a record."""

SERVICES_WITHOUT_POLICIES: Final = frozenset(
    {
        "autoscaling",
        "budgets",
        "ce",
        "ec2",
        "eks",
        "eks-auth",
        "firehose",
        "pricing",
        "ssm",
        "sts",
    }
)
"""Services with no resource policies, by the IAM User Guide's table "AWS services
that work with IAM" (``ssm`` but for shared parameters; ``sts`` but for trust)."""


@dataclass(frozen=True)
class Session:
    """A session of a role that signs requests.

    Attributes:
        role_arn: ARN of the role.
        name: Session name; ``None`` when not known.
        tags: Session tags; they become ``aws:PrincipalTag`` keys and win over the
            role's own tags.
        unknown_tags: Session tags whose values are not known.
        policies: Session policies; all must allow.
    """

    role_arn: str
    name: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict[str, str])
    unknown_tags: frozenset[str] = frozenset()
    policies: tuple[Policy, ...] = ()


@dataclass(frozen=True)
class Request:
    """One call of one action on one resource.

    Attributes:
        session: Who calls.
        action: The action, such as ``s3:GetObject``.
        resource: ARN of the resource, or ``*`` for actions that have none.
        context: Values of condition keys; those that follow from session and
            resource need not be given. ``aws:SourceVpce`` names the VPC endpoint.
        absent: Condition keys that the request is known not to have.
        complete: Whether every key that is not given is absent. Otherwise it is
            unknown, and a condition on it makes the answer "cannot tell".
        resource_account: Account of the resource, where neither its ARN nor the
            record says it.
    """

    session: Session
    action: str
    resource: str
    context: Mapping[str, str | Sequence[str]] = field(
        default_factory=dict[str, "str | Sequence[str]"]
    )
    absent: frozenset[str] = frozenset()
    complete: bool = False
    resource_account: str | None = None


def decide(inventory: Inventory, request: Request) -> Decision:
    """Decide one request of a role's session.

    Args:
        inventory: What the records hold.
        request: The request.

    Returns:
        Allowed or denied when that is certain for everything that is unknown,
        else "cannot tell"; with the statements that decided.
    """
    action = request.action.lower()
    role = inventory.roles.get(request.session.role_arn)
    side = resource_side(inventory, request)
    if role is not None and not may_be_allowed(role, side, action):
        return Decision(Outcome.DENIED, (Reason("no statement allows it"),))
    caller = caller_of(request.session, role)
    context = context_of(request, role, caller, side.account)
    weighing = _Weighing(action, request.resource, context, caller)

    identity = weighing.weigh(
        role.policies if role else [_unknown_role(request.session)],
        "the role's policies",
    )
    limits = [] if role is None or role.boundary is None else [role.boundary]
    limits.extend(request.session.policies)
    limit = Truth.YES
    for policy in limits:
        limit = min(limit, weighing.weigh([policy], f"the {policy.kind}"))
    endpoint = weighing.endpoint(inventory)
    routes = weighing.routes(side.policies)
    if not side.known:
        routes = Routes(
            max(routes.account, Truth.UNSURE),
            max(routes.role, Truth.UNSURE),
            max(routes.direct, Truth.UNSURE),
        )
        weighing.deny = max(weighing.deny, Truth.UNSURE)
        weighing.note(f"the record holds no policy of {request.resource}")

    own = min(identity, limit)
    same = max(own, min(routes.role, limit), routes.direct)
    if side.mandatory:
        same = max(min(routes.account, own), min(routes.role, limit), routes.direct)
    other = min(own, routes.any)
    allowed = _by_account(same, other, side.account, caller.account)
    allowed = min(allowed, endpoint, negate(weighing.deny))
    if allowed is Truth.YES and weighing.deny is Truth.NO:
        return Decision(Outcome.ALLOWED, tuple(weighing.allows))
    return _explained(outcome_of(allowed), weighing, side.account, caller.account)


@dataclass(frozen=True, slots=True)
class ResourceSide:
    """What the resource of a request brings into the decision.

    Attributes:
        policies: Its policies.
        account: Its account; ``None`` when not known.
        known: Whether ``policies`` are certainly all of them.
        mandatory: Whether nothing is allowed without a resource policy.
    """

    policies: tuple[Policy, ...]
    account: str | None
    known: bool
    mandatory: bool


def resource_side(inventory: Inventory, request: Request) -> ResourceSide:
    """Return policies and account of a request's resource."""
    service = request.action.partition(":")[0].lower()
    arn = request.resource
    caller_account = (role_parts(request.session.role_arn) or ("", ""))[0]
    if arn == "*":
        return ResourceSide((), caller_account, True, False)
    account = request.resource_account or _segment(arn, 4) or None
    if service == "sts" and arn in inventory.roles:
        role = inventory.roles[arn]
        return ResourceSide((role.trust,), role.account, True, True)
    if service not in SERVICES_WITH_POLICIES:
        known = service in SERVICES_WITHOUT_POLICIES and role_parts(arn) is None
        return ResourceSide((), account or caller_account, known, service == "sts")
    owner = _policy_arn(service, arn)
    account = account or inventory.owners.get(owner)
    found = inventory.resource_policies.get(owner)
    if service == "s3" and found is None and account in inventory.accounts:
        # An access point, job or grant of an own account; see NOT_EVALUATED. The
        # ARN of a bucket names no account.
        found = list[Policy]() if _segment(arn, 4) else None
    if service == "ecr":
        registry = inventory.registry_policies.get(account or "", [])
        if found is None and account in inventory.accounts:
            # A repository that the record lacks is made by the registry itself,
            # by a pull-through cache rule or by a push, from its templates.
            found = _from_template(inventory, arn)
        if found is not None:
            found = [*found, *registry]
    return ResourceSide(
        tuple(found or ()), account, found is not None, service == "kms"
    )


def may_be_allowed(role: Role, side: ResourceSide, action: str) -> bool:
    """Whether any policy could allow a lower-case action at all."""
    return (
        not side.known
        or any(policy.may_allow(action) for policy in role.policies)
        or any(policy.may_allow(action) for policy in side.policies)
    )


def caller_of(session: Session, role: Role | None) -> RoleCaller:
    """Return the names that policies know a session by."""
    account, name = role_parts(session.role_arn) or ("", session.role_arn)
    return RoleCaller(
        session.role_arn,
        account,
        name,
        session.name,
        role.unique_id if role else None,
        role is not None and role.boundary is not None,
    )


def context_of(
    request: Request, role: Role | None, caller: RoleCaller, account: str | None
) -> Context:
    """Return the condition keys of a request, derived ones included."""
    session = request.session
    values: dict[str, str | Sequence[str]] = {
        "aws:PrincipalArn": session.role_arn,
        "aws:PrincipalAccount": caller.account,
        "aws:PrincipalType": "AssumedRole",
        "aws:PrincipalIsAWSService": "false",
        "aws:ViaAWSService": "false",
    }
    absent: set[str] = set(_NEVER_IN_ROLE_SESSIONS)
    if account is not None:
        values["aws:ResourceAccount"] = account
    region = _segment(request.resource, 3)
    if region:
        values["aws:RequestedRegion"] = region
    unknown = {f"aws:PrincipalTag/{tag}" for tag in session.unknown_tags}
    unknown |= {"aws:PrincipalOrgID", "aws:PrincipalOrgPaths", "aws:userid"}
    tags = dict(role.tags) if role is not None else {}
    tags.update(session.tags)
    for tag, value in tags.items():
        if tag not in session.unknown_tags:
            values[f"aws:PrincipalTag/{tag}"] = value
    if role is not None:
        absent.add("aws:PrincipalTag/*")
    values.update(request.context)
    return Context(
        values,
        absent | request.absent,
        unknown=unknown,
        complete=request.complete,
    )


_NEVER_IN_ROLE_SESSIONS = (
    "aws:username",
    "aws:CalledVia",
    "aws:CalledViaFirst",
    "aws:CalledViaLast",
    "aws:PrincipalServiceName",
    "aws:PrincipalServiceNamesList",
    "aws:MultiFactorAuthPresent",
    "aws:MultiFactorAuthAge",
)


def _unknown_role(session: Session) -> Policy:
    name = "policies of a role outside the record"
    return opaque_policy(name, session.role_arn, PolicyKind.IDENTITY)


class _Weighing:
    """Goes through the policies of one request and notes what matched.

    Attributes:
        deny: Whether any statement denies the request.
        denies: Reasons of the statements that deny, or may.
        allows: Reasons of the statements that allow, or may.
        notes: What else matters for the outcome.
    """

    def __init__(
        self, action: str, resource: str, context: Context, caller: Caller
    ) -> None:
        self.action = action
        self.resource = resource
        self.context = context
        self.caller = caller
        self.deny = Truth.NO
        self.denies: list[Reason] = []
        self.allows: list[Reason] = []
        self.notes: list[Reason] = []

    def weigh(self, policies: Sequence[Policy], whose: str) -> Truth:
        """Return whether policies without principals allow the request."""
        allow = Truth.NO
        for policy in policies:
            if policy.opaque:
                self._opaque(policy)
                allow = max(allow, Truth.UNSURE)
                continue
            for statement, covered in policy.allows(self.action):
                fits = min(covered, statement.matches(self.resource, self.context))
                if fits is not Truth.NO:
                    self._allow(policy, statement, fits)
                    allow = max(allow, fits)
            for statement, covered in policy.denies(self.action):
                fits = min(covered, statement.matches(self.resource, self.context))
                if fits is not Truth.NO:
                    self._deny(policy, statement, fits)
        if allow is Truth.NO:
            self.notes.append(Reason(f"no statement of {whose} allows it"))
        return allow

    def routes(self, policies: Sequence[Policy]) -> Routes:
        """Return in which ways policies with principals allow the request."""
        account = role = direct = Truth.NO
        for policy in policies:
            if policy.opaque:
                self._opaque(policy)
                account = max(account, Truth.UNSURE)
                role = max(role, Truth.UNSURE)
                direct = max(direct, Truth.UNSURE)
                continue
            for statement, covered in policy.allows(self.action):
                means = self._means(statement)
                fits = min(means.any, covered)
                if fits is not Truth.NO:
                    fits = min(fits, statement.matches(self.resource, self.context))
                if fits is not Truth.NO:
                    self._allow(policy, statement, fits)
                    account = max(account, min(fits, means.account))
                    role = max(role, min(fits, means.role))
                    direct = max(direct, min(fits, means.direct))
            for statement, covered in policy.denies(self.action):
                fits = min(self._means(statement).any, covered)
                if fits is not Truth.NO:
                    fits = min(fits, statement.matches(self.resource, self.context))
                if fits is not Truth.NO:
                    self._deny(policy, statement, fits)
        return Routes(account, role, direct)

    def endpoint(self, inventory: Inventory) -> Truth:
        """Return whether the VPC endpoint that the request names lets it pass."""
        found = self.context.get("aws:sourcevpce")
        if isinstance(found, Missing):
            return Truth.YES
        allowed = Truth.YES
        for name in found:
            if name not in inventory.endpoints:
                self.note(f"the record holds no policy of VPC endpoint {name}")
                self.deny = max(self.deny, Truth.UNSURE)
                allowed = min(allowed, Truth.UNSURE)
                continue
            policy = inventory.endpoints[name]
            if policy is not None:
                passes = self.routes([policy]).any
                if passes is Truth.NO:
                    self.note(f"the policy of VPC endpoint {name} does not allow it")
                allowed = min(allowed, passes)
        return allowed

    def note(self, text: str) -> None:
        """Keep a fact that no single statement stands for."""
        self.notes.append(Reason(text))

    def _means(self, statement: Statement) -> Routes:
        if statement.principals is None:
            return NOBODY
        return statement.principals.means(self.caller, deny=statement.deny)

    def _opaque(self, policy: Policy) -> None:
        self.deny = max(self.deny, Truth.UNSURE)
        self.notes.append(
            Reason("its content is not in the record", policy.name, policy.owner)
        )

    def _allow(self, policy: Policy, statement: Statement, fits: Truth) -> None:
        text = "allows it" if fits is Truth.YES else "may allow it"
        self.allows.append(policy.reason(statement, text))

    def _deny(self, policy: Policy, statement: Statement, fits: Truth) -> None:
        self.deny = max(self.deny, fits)
        text = "denies it" if fits is Truth.YES else "may deny it"
        self.denies.append(policy.reason(statement, text))


def _by_account(same: Truth, other: Truth, resource: str | None, caller: str) -> Truth:
    """Return the answer for the same or another account, or for either."""
    if resource is None:
        return same if same is other else Truth.UNSURE
    return same if resource == caller else other


def _explained(
    outcome: Outcome, weighing: _Weighing, resource: str | None, caller: str
) -> Decision:
    notes = list(weighing.notes)
    if resource is None:
        notes.append(Reason("the account of the resource is not known"))
    elif resource != caller:
        notes.append(
            Reason(f"the resource is in account {resource}, the role in {caller}")
        )
    return Decision(outcome, (*weighing.denies, *notes, *weighing.allows))


def _policy_arn(service: str, arn: str) -> str:
    """Return the ARN that carries the policy for a resource."""
    if service == "s3":
        return arn.partition("/")[0] if arn.startswith("arn:aws") else arn
    if service == "dynamodb":
        table = arn.split("/")
        return "/".join(table[:2])
    return arn


def _from_template(inventory: Inventory, arn: str) -> list[Policy]:
    """Return the policy that a registry gives a repository it creates."""
    name = _segment(arn, 5).removeprefix("repository/")
    fitting = [prefix for prefix in inventory.templates if name.startswith(prefix)]
    return inventory.templates[max(fitting, key=len)] if fitting else []


def _segment(arn: str, index: int) -> str:
    parts = arn.split(":", 5)
    return parts[index] if len(parts) == 6 else ""
