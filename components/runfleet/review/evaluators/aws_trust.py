"""Who may get a session of a role: pods, holders of tokens, services, other roles.

Source: AWS IAM User Guide, "How to use trust policies" and "Available keys for AWS
OIDC federation"; Amazon EKS User Guide, "Create IAM role with trust policy required
by EKS Pod Identity" and "Grant Pods access to AWS resources based on tags" (the six
session tags); AWS STS API Reference, ``AssumeRole`` and
``AssumeRoleWithWebIdentity``.

Whether a trust policy is bound to one subject is not judged by the look of its text.
The policy is evaluated for strangers instead: a namespace, an audience and subjects
that no fleet uses. What lets a stranger in is open, whatever operator, value or
statement it comes from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from runfleet.review.evaluators.aws_decide import Request, Session, decide
from runfleet.review.evaluators.aws_inventory import (
    Inventory,
    PodIdentityAssociation,
    Role,
)
from runfleet.review.evaluators.aws_match import Context
from runfleet.review.evaluators.aws_policy import Statement
from runfleet.review.evaluators.aws_principals import (
    Caller,
    Principals,
    ServiceCaller,
    TokenCaller,
)
from runfleet.review.evaluators.decision import (
    Decision,
    Outcome,
    Reason,
    Truth,
    negate,
    outcome_of,
)

POD_SERVICE: Final = "pods.eks.amazonaws.com"
"""Principal that assumes roles for pods with an EKS Pod Identity association."""

STRANGERS: Final = (
    "repo:stranger/elsewhere:ref:refs/heads/main",
    "repo:stranger/elsewhere:pull_request",
    "repo:stranger/elsewhere:environment:production",
    "repo:stranger@987654321/elsewhere@987654322:ref:refs/heads/main",
    "repo:stranger@987654321/elsewhere@987654322:environment:production",
    "system:serviceaccount:stranger:elsewhere",
    "stranger",
)
"""Token subjects that no fleet uses, in the forms that issuers write."""


class AssumerKind(StrEnum):
    """What kind of caller a trust statement lets in."""

    POD = "pod"
    TOKEN = "token"
    SERVICE = "service"
    ACCOUNT = "account"
    EVERYONE = "everyone"


@dataclass(frozen=True)
class Assumer:
    """One principal of one ``Allow`` statement of a trust policy.

    Attributes:
        kind: What kind of caller it is.
        principal: The principal as written: service, provider ARN, role or account.
        statement: The statement that lets it in.
        subjects: For tokens: ``<operator> <value>`` of each condition on ``sub``.
        audiences: The same for ``aud``.
        associations: For pods: the associations through which pods get the role.
        lets_strangers_in: Whether the statement accepts, or may accept, a subject
            that no fleet uses (tokens) or a pod of any other namespace (pods; there
            the association still has to exist).
        any_audience: For tokens: whether an audience of the token matters not.
    """

    kind: AssumerKind
    principal: str
    statement: Reason
    subjects: tuple[str, ...] = ()
    audiences: tuple[str, ...] = ()
    associations: tuple[PodIdentityAssociation, ...] = ()
    lets_strangers_in: bool = False
    any_audience: bool = False


@dataclass(frozen=True)
class Reach:
    """One role that a pod may get, and how.

    Attributes:
        session: The session that it gets.
        via: ``pod identity``, ``token`` or the ARN of the role it comes from.
        decision: Allowed, or cannot tell.
    """

    session: Session
    via: str
    decision: Decision


def who_can_assume(inventory: Inventory, role_arn: str) -> tuple[Assumer, ...]:
    """Return everyone whom a role's trust policy lets in.

    Every statement and every principal is looked at. An opaque trust policy gives
    one entry of kind ``everyone`` that lets strangers in.

    Raises:
        KeyError: The role is not in the inventory.
    """
    role = inventory.roles[role_arn]
    if role.trust.opaque:
        reason = Reason(
            "its content is not in the record", role.trust.name, role.trust.owner
        )
        return (Assumer(AssumerKind.EVERYONE, "?", reason, lets_strangers_in=True),)
    return tuple(
        assumer
        for statement in role.trust.statements
        if not statement.deny and _is_about_assuming(statement)
        for assumer in _assumers(inventory, role, statement)
    )


def may_assume_with_token(
    inventory: Inventory, role_arn: str, claims: Mapping[str, str | Sequence[str]]
) -> Decision:
    """Decide whether the holder of an OIDC token may assume a role.

    Args:
        inventory: What the records hold.
        role_arn: The role.
        claims: The token's claims; ``iss`` and ``aud`` are needed. Only ``sub``,
            ``aud``, ``azp`` and ``amr`` are documented condition keys of every
            provider; a condition on another claim is answered with "cannot tell".

    Raises:
        KeyError: The role is not in the inventory.
    """
    role = inventory.roles[role_arn]
    issuer = str(claims.get("iss", "")).removeprefix("https://").rstrip("/")
    audiences = _texts(claims.get("aud", ()))
    caller, known = _token_caller(inventory, role, issuer, audiences)
    if caller is None:
        text = f"no provider of account {role.account} accepts issuer {issuer}"
        if known:
            text += f" with audience {', '.join(audiences)}"
        return Decision(Outcome.DENIED, (Reason(text),))
    allowed, reasons = _trusts(
        role, caller, _token_context(issuer, claims), "sts:assumerolewithwebidentity"
    )
    if not known:
        allowed = min(allowed, Truth.UNSURE)
        reasons.append(Reason(f"the record holds no provider for issuer {issuer}"))
    return Decision(outcome_of(allowed), tuple(reasons))


def may_assume_as_pod(
    inventory: Inventory, association: PodIdentityAssociation
) -> Decision:
    """Decide whether EKS gets a role for the pods of an association.

    Where the association names a target role, the answer covers both steps.
    """
    role = inventory.roles.get(association.role_arn)
    if role is None:
        text = f"role {association.role_arn} is not in the record"
        return Decision(Outcome.CANNOT_TELL, (Reason(text),))
    context = _pod_context(inventory, association, role.account)
    allowed, reasons = Truth.YES, list[Reason]()
    for action in _pod_actions(association):
        answer, why = _trusts(role, ServiceCaller(POD_SERVICE), context, action)
        allowed = min(allowed, answer)
        reasons.extend(why)
    if association.target_role_arn is None or allowed is Truth.NO:
        return Decision(outcome_of(allowed), tuple(reasons))
    first = _first_session(inventory, association)
    for action in _pod_actions(association):
        step = decide(
            inventory,
            Request(
                first,
                action,
                association.target_role_arn,
                _target_context(inventory, association),
            ),
        )
        allowed = min(allowed, _TRUTHS[step.outcome])
        reasons.extend(step.reasons)
    return Decision(outcome_of(allowed), tuple(reasons))


def pod_session(inventory: Inventory, association: PodIdentityAssociation) -> Session:
    """Return the session that a pod of an association works with."""
    first = _first_session(inventory, association)
    return Session(
        association.target_role_arn or association.role_arn,
        None,
        first.tags,
        first.unknown_tags,
        () if association.policy is None else (association.policy,),
    )


def reach(
    inventory: Inventory, namespace: str, service_account: str, cluster: str
) -> tuple[Reach, ...]:
    """Return every role that a pod may get, certainly or possibly.

    Counted are pod identity associations, tokens of the cluster's own issuer where
    IAM has a provider for it, and all roles that can be assumed from those.

    Args:
        inventory: What the records hold.
        namespace: The pod's namespace.
        service_account: The pod's service account.
        cluster: Name of the EKS cluster.
    """
    found: dict[str, Reach] = {}
    for item in _first_reach(inventory, namespace, service_account, cluster):
        _keep(found, item)
    waiting = list(found.values())
    while waiting:
        here = waiting.pop()
        for role in inventory.roles.values():
            if role.arn == here.session.role_arn:
                continue
            step = decide(inventory, Request(here.session, "sts:AssumeRole", role.arn))
            if step.denied:
                continue
            outcome = min(_TRUTHS[step.outcome], _TRUTHS[here.decision.outcome])
            item = Reach(
                # EKS marks its session tags as transitive: they are passed on.
                Session(role.arn, None, here.session.tags, here.session.unknown_tags),
                here.session.role_arn,
                Decision(outcome_of(outcome), step.reasons),
            )
            if _keep(found, item):
                waiting.append(item)
    return tuple(found[arn] for arn in sorted(found))


_TRUTHS = {
    Outcome.DENIED: Truth.NO,
    Outcome.CANNOT_TELL: Truth.UNSURE,
    Outcome.ALLOWED: Truth.YES,
}
_ASSUMING = (
    "sts:assumerole",
    "sts:assumerolewithwebidentity",
    "sts:assumerolewithsaml",
)
_BUILT_IN_ISSUERS = frozenset(
    {"accounts.google.com", "www.amazon.com", "graph.facebook.com"}
)


def _keep(found: dict[str, Reach], item: Reach) -> bool:
    """Keep a reach unless the same role is known as surely; tell if it was kept."""
    old = found.get(item.session.role_arn)
    if old is not None and (old.decision.allowed or not item.decision.allowed):
        return False
    found[item.session.role_arn] = item
    return True


def _first_reach(
    inventory: Inventory, namespace: str, service_account: str, cluster: str
) -> Iterator[Reach]:
    wanted = (cluster, namespace, service_account)
    for association in inventory.associations:
        place = (
            association.cluster,
            association.namespace,
            association.service_account,
        )
        if place == wanted:
            decision = may_assume_as_pod(inventory, association)
            if not decision.denied:
                session = pod_session(inventory, association)
                yield Reach(session, "pod identity", decision)
    known = inventory.clusters.get(cluster)
    if known is None or known.issuer is None:
        return
    for provider in inventory.providers.values():
        if provider.issuer != known.issuer:
            continue
        for role in inventory.roles.values():
            for audience in provider.audiences:
                claims = {
                    "iss": f"https://{known.issuer}",
                    "aud": audience,
                    "sub": f"system:serviceaccount:{namespace}:{service_account}",
                }
                decision = may_assume_with_token(inventory, role.arn, claims)
                if not decision.denied:
                    yield Reach(Session(role.arn), "token", decision)


def _is_about_assuming(statement: Statement) -> bool:
    return any(statement.covers_action(action) is not Truth.NO for action in _ASSUMING)


def _assumers(
    inventory: Inventory, role: Role, statement: Statement
) -> Iterator[Assumer]:
    principals = statement.principals or Principals(everyone=True)
    reason = role.trust.reason(statement, "lets them in")
    if principals.everyone or principals.negated:
        yield Assumer(
            AssumerKind.EVERYONE,
            "NotPrincipal" if principals.negated else "*",
            reason,
            lets_strangers_in=True,
        )
        if principals.negated:
            return
    for value in principals.aws:
        yield Assumer(AssumerKind.ACCOUNT, value, reason)
    for value in principals.services:
        if value != POD_SERVICE:
            yield Assumer(AssumerKind.SERVICE, value, reason)
            continue
        stranger = PodIdentityAssociation(
            "", "elsewhere", "stranger", "stranger", role.arn
        )
        yield Assumer(
            AssumerKind.POD,
            value,
            reason,
            associations=tuple(
                association
                for association in inventory.associations
                if association.role_arn == role.arn
                and not may_assume_as_pod(inventory, association).denied
            ),
            lets_strangers_in=_accepts(
                role,
                statement,
                ServiceCaller(POD_SERVICE),
                _pod_context(inventory, stranger, role.account),
                "sts:assumerole",
            ),
        )
    for value in principals.federated:
        yield _token_assumer(role, statement, value, reason)


def _token_assumer(
    role: Role, statement: Statement, provider: str, reason: Reason
) -> Assumer:
    issuer = provider.partition(":oidc-provider/")[2] or provider
    action = "sts:assumerolewithwebidentity"
    caller = TokenCaller(provider)

    def accepts(subject: str, audience: str) -> bool:
        context = _token_context(issuer, {"sub": subject, "aud": audience})
        return _accepts(role, statement, caller, context, action)

    audiences = _values_of(statement, f"{issuer}:aud")
    subjects = _values_of(statement, f"{issuer}:sub")
    fitting = [text for _, text in audiences] or ["sts.amazonaws.com"]
    known = [text.replace("*", "x").replace("?", "x") for _, text in subjects]
    return Assumer(
        AssumerKind.TOKEN,
        provider,
        reason,
        subjects=tuple(f"{operator} {text}" for operator, text in subjects),
        audiences=tuple(f"{operator} {text}" for operator, text in audiences),
        lets_strangers_in=any(
            accepts(subject, audience)
            for subject in STRANGERS
            for audience in (*fitting, "stranger.example")
        ),
        any_audience=any(
            accepts(subject, "stranger.example") for subject in (*known, *STRANGERS)
        ),
    )


def _values_of(statement: Statement, key: str) -> list[tuple[str, str]]:
    return [
        (condition.operator, value)
        for condition in statement.conditions
        if condition.key.lower() == key.lower()
        for value in condition.values
    ]


def _accepts(
    role: Role, statement: Statement, caller: Caller, context: Context, action: str
) -> bool:
    """Whether one statement accepts a caller whom no other one denies."""
    if statement.principals is None:
        return False
    means = statement.principals.means(caller, deny=False).any
    fits = min(
        means, statement.covers_action(action), statement.matches(role.arn, context)
    )
    denied, _ = _denied(role, caller, context, action)
    return min(fits, negate(denied)) is not Truth.NO


def _trusts(
    role: Role, caller: Caller, context: Context, action: str
) -> tuple[Truth, list[Reason]]:
    """Return whether a trust policy lets in a caller who has no other policies."""
    if role.trust.opaque:
        reason = Reason(
            "its content is not in the record", role.trust.name, role.trust.owner
        )
        return Truth.UNSURE, [reason]
    denied, denies = _denied(role, caller, context, action)
    allowed, allows = Truth.NO, list[Reason]()
    for statement, covered in role.trust.allows(action):
        if statement.principals is None:
            continue
        fits = min(
            covered,
            statement.principals.means(caller, deny=False).any,
            statement.matches(role.arn, context),
        )
        if fits is not Truth.NO:
            text = "lets them in" if fits is Truth.YES else "may let them in"
            allows.append(role.trust.reason(statement, text))
            allowed = max(allowed, fits)
    if allowed is Truth.NO:
        denies.append(
            Reason(f"no statement lets them {action}", "trust policy", role.urn)
        )
    return min(allowed, negate(denied)), [*denies, *allows]


def _denied(
    role: Role, caller: Caller, context: Context, action: str
) -> tuple[Truth, list[Reason]]:
    denied, reasons = Truth.NO, list[Reason]()
    for statement, covered in role.trust.denies(action):
        if statement.principals is None:
            continue
        fits = min(
            covered,
            statement.principals.means(caller, deny=True).any,
            statement.matches(role.arn, context),
        )
        if fits is not Truth.NO:
            text = "keeps them out" if fits is Truth.YES else "may keep them out"
            reasons.append(role.trust.reason(statement, text))
            denied = max(denied, fits)
    return denied, reasons


def _token_caller(
    inventory: Inventory, role: Role, issuer: str, audiences: Sequence[str]
) -> tuple[TokenCaller | None, bool]:
    """Return who the holder of a token is for IAM, and whether that is certain."""
    if issuer in _BUILT_IN_ISSUERS:
        return TokenCaller(issuer), True
    same_issuer = False
    in_account = False
    for provider in inventory.providers.values():
        if _account(provider.arn) != role.account:
            continue
        in_account = True
        if provider.issuer.rstrip("/") == issuer:
            same_issuer = True
            if set(audiences) & set(provider.audiences):
                return TokenCaller(provider.arn), True
    if same_issuer or in_account:
        return None, same_issuer
    partition = role.arn.split(":")[1]
    arn = f"arn:{partition}:iam::{role.account}:oidc-provider/{issuer}"
    return TokenCaller(arn), False


def _token_context(issuer: str, claims: Mapping[str, str | Sequence[str]]) -> Context:
    values: dict[str, str | Sequence[str]] = {}
    absent = {"aws:PrincipalArn", "aws:PrincipalAccount", "aws:username"}
    for claim in ("sub", "amr"):
        if claim in claims:
            values[f"{issuer}:{claim}"] = claims[claim]
        else:
            absent.add(f"{issuer}:{claim}")
    # STS compares "aud" with the token's azp claim where the token has one.
    audience = claims.get("azp", claims.get("aud", ()))
    if audience:
        values[f"{issuer}:aud"] = audience
    if "azp" in claims:
        values[f"{issuer}:oaud"] = claims.get("aud", ())
    return Context(values, absent)


def _pod_actions(association: PodIdentityAssociation) -> tuple[str, ...]:
    if association.session_tags:
        return ("sts:assumerole", "sts:tagsession")
    return ("sts:assumerole",)


def _first_session(
    inventory: Inventory, association: PodIdentityAssociation
) -> Session:
    if not association.session_tags:
        return Session(association.role_arn)
    tags, unknown = _session_tags(inventory, association)
    return Session(association.role_arn, None, tags, unknown)


def _session_tags(
    inventory: Inventory, association: PodIdentityAssociation
) -> tuple[dict[str, str], frozenset[str]]:
    tags = {
        "eks-cluster-name": association.cluster,
        "kubernetes-namespace": association.namespace,
        "kubernetes-service-account": association.service_account,
    }
    unknown = {"kubernetes-pod-name", "kubernetes-pod-uid"}
    cluster = inventory.clusters.get(association.cluster)
    if cluster is not None and cluster.arn:
        tags["eks-cluster-arn"] = cluster.arn
    else:
        unknown.add("eks-cluster-arn")
    return tags, frozenset(unknown)


def _pod_context(
    inventory: Inventory, association: PodIdentityAssociation, account: str
) -> Context:
    """Return the keys of the call by which EKS assumes the role.

    ``aws:SourceAccount`` and ``aws:SourceArn`` name the cluster, as the guide's
    advice against confused deputies has it.
    """
    values: dict[str, str | Sequence[str]] = {"aws:SourceAccount": account}
    absent = {"sts:ExternalId", "aws:PrincipalArn", "aws:PrincipalAccount"}
    unknown: set[str] = set()
    cluster = inventory.clusters.get(association.cluster)
    if cluster is not None and cluster.arn:
        values["aws:SourceArn"] = cluster.arn
        values["aws:SourceAccount"] = _account(cluster.arn) or account
    elif not association.urn:
        # A stranger's cluster: some ARN that no fleet has.
        values["aws:SourceArn"] = (
            f"arn:aws:eks:us-east-1:{account}:cluster/{association.cluster}"
        )
    if association.session_tags:
        tags, hidden = _session_tags(inventory, association)
        values.update({f"aws:RequestTag/{tag}": text for tag, text in tags.items()})
        values["aws:TagKeys"] = sorted({*tags, *hidden})
        unknown = {f"aws:RequestTag/{tag}" for tag in hidden}
    absent.add("aws:RequestTag/*")
    return Context(values, absent, unknown=unknown)


def _target_context(
    inventory: Inventory, association: PodIdentityAssociation
) -> dict[str, str | Sequence[str]]:
    context: dict[str, str | Sequence[str]] = {}
    if association.external_id is not None:
        context["sts:ExternalId"] = association.external_id
    if association.session_tags:
        tags, _ = _session_tags(inventory, association)
        context.update({f"aws:RequestTag/{tag}": text for tag, text in tags.items()})
    return context


def _account(arn: str) -> str:
    parts = arn.split(":", 5)
    return parts[4] if len(parts) == 6 else ""


def _texts(value: str | Sequence[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)
