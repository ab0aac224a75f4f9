"""Google identities: no keys, no basic roles, federation bound to repositories.

A condition of a workload identity pool is an expression in CEL. It is read as far
as it can be: alternatives (``||``) must each bind, of terms joined by ``&&`` one
must. A term binds when it compares a claim that names a repository or its owner
with fixed texts. What cannot be read is not taken for good.

Sources: cloud.google.com/iam/docs/workload-identity-federation-with-deployment-
pipelines and /iam/docs/principal-identifiers; GitHub's "OpenID Connect reference".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from runfleet.spec.findings import Severity
from runfleet_policies.rule import Breach, Context, Rule
from runfleet_policies.rules.aws_trust import SUBJECT
from runfleet_policies.values import document, items, text, texts
from runfleet_policies.view import ResourceView

PROVIDER = "gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider"
ACCOUNT_ACCESS = (
    "gcp:serviceaccount/iAMMember:IAMMember",
    "gcp:serviceaccount/iAMBinding:IAMBinding",
    "gcp:serviceaccount/iAMPolicy:IAMPolicy",
)
ACCESS = tuple(
    f"gcp:{scope}/iAM{form}:IAM{form}"
    for scope in ("projects", "folder", "organizations")
    for form in ("Member", "Binding", "Policy")
)
CUSTOM_ROLES = (
    "gcp:projects/iAMCustomRole:IAMCustomRole",
    "gcp:organizations/iAMCustomRole:IAMCustomRole",
)

_BASIC = ("roles/owner", "roles/editor")
_IMPERSONATING = (
    "roles/iam.serviceAccountUser",
    "roles/iam.serviceAccountTokenCreator",
    "roles/iam.serviceAccountKeyAdmin",
    "roles/iam.serviceAccountAdmin",
    "roles/iam.workloadIdentityUser",
    "roles/iam.securityAdmin",
    "roles/resourcemanager.projectIamAdmin",
)
_ESCALATING = re.compile(
    r"^(iam\.serviceAccounts\.(actAs|getAccessToken|getOpenIdToken|implicitDelegation"
    r"|signBlob|signJwt|setIamPolicy)|iam\.serviceAccountKeys\.create"
    r"|iam\.roles\.(create|update)"
    r"|resourcemanager\.(projects|folders|organizations)\.setIamPolicy)$"
)
"""Permissions with which an identity can give itself any other."""

_SHARED_ISSUERS = re.compile(
    r"token\.actions\.githubusercontent\.com|gitlab\.com|app\.terraform\.io"
    r"|agent\.buildkite\.com|oidc\.circleci\.com"
)
"""Issuers that give tokens to every customer."""

_GITHUB = "token.actions.githubusercontent.com"
_OWNED = ("repository", "repository_id", "repository_owner", "repository_owner_id")
_TERM = re.compile(
    r"^(?P<claim>[a-z]+\.[A-Za-z_]+|assertion\[(?P<quote>['\"])[a-z_]+(?P=quote)\])\s*"
    r"(?:==\s*(?P<value>\"[^\"]*\"|'[^']*')"
    r"|in\s*\[(?P<list>[^\]]*)\]"
    r"|\.startsWith\((?P<prefix>\"[^\"]*\"|'[^']*')\))$"
)
_REVERSED = re.compile(
    r"^(?P<value>\"[^\"]*\"|'[^']*')\s*==\s*(?P<claim>[a-z]+\.[A-Za-z_]+)$"
)


def rules() -> tuple[Rule, ...]:
    """Return the rules about Google identities."""
    return (
        Rule(
            id="R-GCP-06",
            severity=Severity.CRITICAL,
            title="Service accounts have no keys",
            rationale="A key is a file that works anywhere for years; federation "
            "gives tokens for an hour to the workload that asks.",
            fix="delete the key and use workload identity federation",
            anchors=("S16", "S30", "S32", "CIS GCP"),
            types=(
                "gcp:serviceaccount/key:Key",
                "gcp:storage/hmacKey:HmacKey",
            ),
            resource=_keys,
        ),
        Rule(
            id="R-GCP-07",
            severity=Severity.CRITICAL,
            title="Nobody holds a basic role, or one that amounts to it",
            rationale="Owner and Editor reach everything in a project. So does who "
            "may act as any of its service accounts, or may change who holds what.",
            fix="grant predefined roles on single resources, and account roles on "
            "single service accounts",
            anchors=("S17", "S01", "CIS GCP"),
            types=(*ACCESS, *CUSTOM_ROLES),
            resource=_broad_roles,
        ),
        Rule(
            id="R-GCP-08",
            severity=Severity.CRITICAL,
            title="Federation is bound to an owner or repository",
            rationale="Every workflow on GitHub gets a token from the same issuer; "
            "without a condition the pool takes all of them.",
            fix="set attributeCondition, such as assertion.repository_id == '65600975'",
            anchors=("S31", "S17", "S32"),
            types=(PROVIDER, *ACCOUNT_ACCESS, *ACCESS),
            resource=_federation,
        ),
    )


def _keys(key: ResourceView, context: Context) -> Iterator[Breach]:
    kind = "HMAC key" if key.type.endswith(":HmacKey") else "key"
    yield Breach(f"a long-lived {kind} of a service account")


def _granted(resource: ResourceView) -> Iterator[tuple[str, list[str], bool, str]]:
    """Yield role, members, whether a condition stands there, and place."""
    if resource.type.endswith(":IAMPolicy"):
        policy = document(resource.inputs, "policyData")
        for index, binding in enumerate(items(policy, "bindings")):
            place = f"policyData.bindings[{index}]"
            conditional = isinstance(binding, Mapping) and "condition" in binding
            yield text(binding, "role"), texts(binding, "members"), conditional, place
        return
    field = "members" if resource.type.endswith(":IAMBinding") else "member"
    role = resource.text("role")
    yield role, resource.texts(field), resource.get("condition") is not None, field


def _broad_roles(resource: ResourceView, context: Context) -> Iterator[Breach]:
    if resource.type in CUSTOM_ROLES:
        found = [p for p in resource.texts("permissions") if _ESCALATING.match(p)]
        if found:
            listed = ", ".join(sorted(found))
            yield Breach(f"the role can raise its own rights: {listed}", "permissions")
        return
    if resource.type.endswith(":IAMPolicy"):
        for role, _, conditional, place in _granted(resource):
            yield from _broad_role(role, conditional, place)
        return
    conditional = resource.get("condition") is not None
    yield from _broad_role(resource.text("role"), conditional, "role")


def _broad_role(role: str, conditional: bool, place: str) -> Iterator[Breach]:
    if role in _BASIC:
        yield Breach(f"grants {role}", place)
    elif role in _IMPERSONATING and not conditional:
        yield Breach(f"grants {role} on everything below", place)


def _federation(resource: ResourceView, context: Context) -> Iterator[Breach]:
    if resource.type != PROVIDER:
        for role, members, _, place in _granted(resource):
            for member in members:
                if member.startswith("principalSet://") and member.endswith("/*"):
                    why = f"gives {role} to every identity of the pool: {member}"
                    yield Breach(why, place)
        return
    issuer = resource.text("oidc", "issuerUri")
    if not _SHARED_ISSUERS.search(issuer):
        return
    condition = resource.text("attributeCondition")
    if not condition.strip():
        yield Breach(f"takes every token of {issuer}", "attributeCondition")
        return
    if _GITHUB in issuer:
        mapped = resource.mapping("attributeMapping")
        for alternative in split(condition, "||"):
            if not _binds(alternative, mapped):
                why = f"{alternative!r} binds to no owner or repository"
                yield Breach(why, "attributeCondition")


def split(expression: str, operator: str) -> list[str]:
    """Split a CEL expression at an operator that stands outside of parentheses.

    Args:
        expression: The expression.
        operator: ``||`` or ``&&``.
    """
    found: list[str] = []
    depth, start, quote = 0, 0, ""
    for at, char in enumerate(expression):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif depth == 0 and at >= start and expression.startswith(operator, at):
            found.append(expression[start:at])
            start = at + len(operator)
    return [_bare(part) for part in (*found, expression[start:])]


def _bare(expression: str) -> str:
    """Return an expression without spaces and parentheses around the whole."""
    stripped = expression.strip()
    while stripped.startswith("(") and stripped.endswith(")"):
        depth = 0
        for at, char in enumerate(stripped):
            depth += (char == "(") - (char == ")")
            if depth == 0 and at < len(stripped) - 1:
                return stripped
        stripped = stripped[1:-1].strip()
    return stripped


def _binds(expression: str, mapped: Mapping[str, object], depth: int = 0) -> bool:
    if depth > 20:
        return False
    alternatives = split(expression, "||")
    if len(alternatives) > 1:
        return all(_binds(part, mapped, depth + 1) for part in alternatives)
    terms = split(expression, "&&")
    if len(terms) > 1:
        return any(_binds(part, mapped, depth + 1) for part in terms)
    return _binding_term(terms[0], mapped)


def _binding_term(term: str, mapped: Mapping[str, object]) -> bool:
    match = _TERM.match(term) or _REVERSED.match(term)
    if match is None:
        return False
    claim = _claim(match["claim"], mapped)
    parts = match.groupdict()
    prefix = parts.get("prefix")
    if prefix is not None:
        return _bound_prefix(claim, prefix[1:-1])
    if parts.get("value") is not None:
        return _bound_values(claim, [parts["value"][1:-1]])
    listed = re.findall(r"\"([^\"]*)\"|'([^']*)'", parts.get("list") or "")
    return _bound_values(claim, [a or b for a, b in listed])


def _claim(written: str, mapped: Mapping[str, object]) -> str:
    """Return the claim of GitHub's token that a name stands for."""
    if written.startswith("assertion["):
        return written[len("assertion['") : -2]
    source, _, name = written.partition(".")
    if source == "assertion":
        return name
    origin = str(mapped.get(written, ""))
    return origin.removeprefix("assertion.") if "." in origin else ""


def _bound_values(claim: str, values: Sequence[str]) -> bool:
    if not values or not all(value.strip() for value in values):
        return False
    if claim == "sub":
        return all(SUBJECT.match(value) and "*" not in value for value in values)
    return claim in _OWNED


def _bound_prefix(claim: str, prefix: str) -> bool:
    """Say whether a beginning ends after a whole owner or repository."""
    if claim in ("repository", "job_workflow_ref", "workflow_ref"):
        return re.match(r"^[A-Za-z0-9-]+/", prefix) is not None
    return claim == "sub" and re.match(r"^repo:[A-Za-z0-9@-]+/", prefix) is not None
