"""AWS trust: who may take on a role.

GitHub's subject has two forms. ``repo:OWNER/REPO:...`` names the repository;
``repo:OWNER@ID/REPO@ID:...`` adds the numbers that no rename changes and is used
for repositories made, renamed or moved since 2026-07-15 (GitHub's documentation,
"OpenID Connect reference"). Both are accepted, neither with a wildcard in owner or
repository. Every statement, every condition and every value is looked at, because
one bad one is enough to let anybody in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from runfleet.spec.findings import Severity
from runfleet_policies.access import (
    ROLE,
    holdings,
    trust,
)
from runfleet_policies.iam import Condition, Statement, allowed, expand_all, table
from runfleet_policies.rule import Breach, Context, Parameter, Rule, guarded
from runfleet_policies.values import CannotTell
from runfleet_policies.view import ResourceView, StackView

ASSOCIATION = "aws:eks/podIdentityAssociation:PodIdentityAssociation"

_GITHUB = re.compile(r"token\.actions\.githubusercontent\.com|/_services/token")
_OWNER = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_REPO = r"[A-Za-z0-9_.-]+"
SUBJECT = re.compile(
    rf"^repo:(?:{_OWNER}/{_REPO}|{_OWNER}@\d+/{_REPO}@\d+):(?P<context>.+)$"
)
"""Both forms of GitHub's default subject."""

CUSTOM_SUBJECT = re.compile(r"(?:^|:)repository_id:\d+(?=:|$)(?:.*)$")
"""A customised subject that names the repository by its number."""

_ANY_CONTEXT = re.compile(
    r"^(\*|ref:\*|ref:refs/\*|ref:refs/heads/\*|ref:refs/tags/\*|environment:\*|[?*]+.*)$"
)
_SERVICE_ACCOUNT = re.compile(
    r"^system:serviceaccount:[a-z0-9]([a-z0-9-]*[a-z0-9])?"
    r":[a-z0-9]([a-z0-9.-]*[a-z0-9])?$"
)


def rules() -> tuple[Rule, ...]:
    """Return the rules about AWS trust policies."""
    return (
        Rule(
            id="R-AWS-20",
            severity=Severity.CRITICAL,
            title="GitHub tokens are trusted by exact audience and repository",
            rationale="Any workflow on GitHub gets a token from the same issuer. Only "
            "the audience and the subject say whose it is, and a pull request's token "
            "says `pull_request` whoever opened it.",
            fix="StringEquals on aud (sts.amazonaws.com) and on sub "
            "(repo:OWNER/REPO:environment:NAME or a protected ref)",
            anchors=("S31", "S17", "S32"),
            stack=_github_trust,
            parameters=(
                Parameter(
                    "audiences", ["sts.amazonaws.com"], "Audiences that are accepted."
                ),
            ),
        ),
        Rule(
            id="R-AWS-23",
            severity=Severity.HIGH,
            title="A pod's role is bound to one namespace and service account",
            rationale="A role that several service accounts may take on gives every "
            "class the rights of each. The account `default` is every pod's account.",
            fix="one role per namespace and service account, with an exact subject",
            anchors=("S04", "S17", "SLSA L3"),
            stack=_pod_trust,
        ),
    )


def _github_trust(stack: StackView, context: Context) -> Iterator[Breach]:
    for role in stack.of(ROLE):
        yield from guarded(_github_role(stack, role, context), role.urn)


def _github_role(
    stack: StackView, role: ResourceView, context: Context
) -> Iterator[Breach]:
    writes: bool | None = None
    for statement in trust(role):
        if not statement.allow or not _assumes(statement):
            continue
        place = f"assumeRolePolicy.{statement.place}"
        for why in _open_to_all(statement):
            yield Breach(why, place, urn=role.urn)
        federated = statement.principals.get("Federated", ())
        if not any(_GITHUB.search(provider) for provider in federated):
            continue
        if writes is None:
            writes = _writes(stack, role)
        for why in _github_statement(statement, context, writes):
            yield Breach(why, place, urn=role.urn)


def _assumes(statement: Statement) -> bool:
    if statement.not_actions:
        return True
    named = expand_all(statement.actions)
    return any(action.startswith("sts:assume") for action in named)


def _open_to_all(statement: Statement) -> Iterator[str]:
    if statement.not_principals:
        yield "NotPrincipal with Allow: everybody except those listed may assume it"
    everyone = [
        kind
        for kind, names in statement.principals.items()
        if any(name == "*" for name in names) and kind in ("*", "AWS", "Federated")
    ]
    bound = any(c.positive and not c.weak for c in statement.conditions)
    if everyone and not bound:
        yield "Principal is * without a condition: everybody may assume it"


def _github_statement(
    statement: Statement, context: Context, writes: bool
) -> Iterator[str]:
    yield from _audience(statement, context.strings("audiences"))
    subjects = [c for c in statement.conditions if c.key.lower().endswith(":sub")]
    positive = [c for c in subjects if c.positive]
    if not positive:
        operators = ", ".join(sorted({c.operator for c in subjects}))
        named = f" (only {operators}, which excludes some)" if operators else ""
        yield f"no condition binds sub to a repository{named}"
        return
    problems = [list(_subject_problems(c, writes)) for c in positive]
    if all(problems):
        for found in problems:
            yield from found


def _audience(statement: Statement, accepted: list[str]) -> Iterator[str]:
    conditions = [c for c in statement.conditions if c.key.lower().endswith(":aud")]
    good = [
        c
        for c in conditions
        if c.positive and not c.weak and all(v in accepted for v in c.values)
    ]
    if good:
        return
    if not conditions:
        yield "no condition on aud: a token made for another service is accepted"
        return
    for condition in conditions:
        values = ", ".join(condition.values)
        mark = "IfExists" if condition.if_exists else ""
        yield (
            f"aud is not bound to {' or '.join(accepted)}: "
            f"{condition.operator}{mark} {values}"
        )


def _subject_problems(condition: Condition, writes: bool) -> Iterator[str]:
    if condition.if_exists:
        yield f"{condition.operator}IfExists on sub passes when the claim is missing"
    if condition.quantifier == "ForAllValues":
        yield "ForAllValues on sub passes when the claim is missing"
    for value in condition.values:
        why = _subject_problem(value, condition.exact, writes)
        if why:
            yield f"sub {value!r} {why}"


def _subject_problem(value: str, exact: bool, writes: bool) -> str:
    match = SUBJECT.match(value)
    if match is None:
        if CUSTOM_SUBJECT.search(value) and not value.startswith(("*", "?")):
            return ""
        if "*" in value or "?" in value:
            return "has a wildcard in owner or repository"
        return "does not name one repository"
    context = match["context"]
    if _ANY_CONTEXT.match(context):
        return "lets any ref, environment or pull request of the repository in"
    if exact and ("*" in context or "?" in context):
        return "has a wildcard, which this operator compares as a plain character"
    if context == "pull_request" or context.startswith("pull_request:"):
        return "lets pull requests in, and the role can write" if writes else ""
    return ""


def _writes(stack: StackView, role: ResourceView) -> bool:
    """Say whether a role can change anything; yes when that cannot be seen."""
    try:
        held = holdings(stack)[role.urn]
        rights = allowed([s for g in held.documents for s in g.statements()])
    except CannotTell:
        return True
    if any("ReadOnly" not in arn for arn in held.outside):
        return True
    if not (held.documents or held.outside):
        return True
    levels = table().levels
    return any(levels.get(action, "write") not in ("read", "list") for action in rights)


def _pod_trust(stack: StackView, context: Context) -> Iterator[Breach]:
    for role in stack.of(ROLE):
        yield from guarded(_service_account_trust(role), role.urn)
    held: dict[str, dict[tuple[str, str, str], str]] = {}
    for association in stack.of(ASSOCIATION):
        yield from guarded(_association(stack, association, held), association.urn)


def _service_account_trust(role: ResourceView) -> Iterator[Breach]:
    for statement in trust(role):
        federated = " ".join(statement.principals.get("Federated", ()))
        if not statement.allow or "oidc.eks." not in federated:
            continue
        place = f"assumeRolePolicy.{statement.place}"
        subjects = [
            c
            for c in statement.conditions
            if c.key.lower().endswith(":sub") and c.positive
        ]
        if not subjects:
            why = "no condition binds sub to a service account"
            yield Breach(why, place, urn=role.urn)
        elif not any(_exact_account(c) for c in subjects):
            values = ", ".join(v for c in subjects for v in c.values)
            why = f"sub is not one exact service account: {values}"
            yield Breach(why, place, urn=role.urn)
        if not any(
            c.key.lower().endswith(":aud")
            and c.positive
            and not c.weak
            and c.values == ("sts.amazonaws.com",)
            for c in statement.conditions
        ):
            why = "aud is not bound to sts.amazonaws.com"
            yield Breach(why, place, urn=role.urn)


def _exact_account(condition: Condition) -> bool:
    return (
        not condition.weak
        and len(condition.values) == 1
        and _SERVICE_ACCOUNT.match(condition.values[0]) is not None
    )


def _association(
    stack: StackView,
    association: ResourceView,
    held: dict[str, dict[tuple[str, str, str], str]],
) -> Iterator[Breach]:
    namespace = association.text("namespace")
    account = association.text("serviceAccount")
    if account in ("", "default"):
        why = f"is bound to the account every pod of {namespace} has: {account!r}"
        yield Breach(why, "serviceAccount", urn=association.urn)
    role = stack.pointed_at(association, "roleArn", ROLE)
    if role is None:
        return
    try:
        cluster = association.text("clusterName")
    except CannotTell:
        cluster = ""
    accounts = held.setdefault(role.urn, {})
    accounts[cluster, namespace, account] = association.urn
    if len(accounts) == 2:
        spelled = " and ".join(f"{n}/{a}" for _, n, a in sorted(accounts))
        why = f"one role for several service accounts: {spelled}"
        yield Breach(why, urn=role.urn)
