"""Azure identities: who is trusted, with which rights, on how much.

A federated credential is compared exactly by Azure, so a wildcard in it is not a
wide trust but a mistake; what matters is whom the exact subject stands for. Both
forms of GitHub's subject are accepted, see :mod:`runfleet_policies.rules.aws_trust`.

Role numbers: learn.microsoft.com/azure/role-based-access-control/built-in-roles.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from runfleet.spec.findings import Severity
from runfleet_policies.rule import Breach, Context, Parameter, Rule, guarded
from runfleet_policies.rules.aws_trust import CUSTOM_SUBJECT, SUBJECT
from runfleet_policies.values import CannotTell, texts
from runfleet_policies.view import ResourceView, StackView

CREDENTIAL = "azure-native:managedidentity*:FederatedIdentityCredential"
APPLICATION_CREDENTIAL = (
    "azuread:index/applicationFederatedIdentityCredential:"
    "ApplicationFederatedIdentityCredential"
)
IDENTITY = "azure-native:managedidentity*:UserAssignedIdentity"
ASSIGNMENT = "azure-native:authorization*:RoleAssignment"
DEFINITION = "azure-native:authorization*:RoleDefinition"

ADMINISTRATORS: Mapping[str, str] = {
    "8e3af657-a8ff-443c-a75c-2fe8c4bcb635": "Owner",
    "b24988ac-6180-42a0-ab88-20f7382dd24c": "Contributor",
    "18d7d88d-d35e-4fb5-a5c3-7773c20a72d9": "User Access Administrator",
    "f58310d9-a9f6-439a-9e8d-f62e7b41a168": "Role Based Access Control Administrator",
}
"""Built-in roles that are, or can become, everything."""

READERS = frozenset(
    {
        "acdd72a7-3385-48ef-bd42-f606fba81ae7",  # Reader
        "7f951dda-4ed3-4680-a7ca-43fe172d538d",  # AcrPull
        "2a2b9908-6ea1-4ae2-8e65-a410df84e7d1",  # Storage Blob Data Reader
        "21090545-7ca7-4776-b22c-e363652d74d2",  # Key Vault Reader
    }
)
"""Built-in roles that change nothing."""

_ANY_SCOPE = re.compile(
    r"^(/|/subscriptions/[^/]+/?|/providers/Microsoft\.Management/managementGroups/.+)$",
    re.IGNORECASE,
)
_EVERYTHING = re.compile(
    r"^(\*|\*/write|\*/action|Microsoft\.Authorization/(\*|\*/write"
    r"|roleAssignments/(\*|write)|roleDefinitions/(\*|write)|elevateAccess/action))$",
    re.IGNORECASE,
)
_GITHUB = "token.actions.githubusercontent.com"
_SERVICE_ACCOUNT = re.compile(
    r"^system:serviceaccount:[a-z0-9]([a-z0-9-]*[a-z0-9])?"
    r":(?P<account>[a-z0-9]([a-z0-9.-]*[a-z0-9])?)$"
)


def rules() -> tuple[Rule, ...]:
    """Return the rules about Azure identities."""
    return (
        Rule(
            id="R-AZ-09",
            severity=Severity.CRITICAL,
            title="A federated credential names one subject and one audience",
            rationale="The subject is all that says whose token is taken. A pull "
            "request's token says `pull_request` whoever opened it, and the account "
            "`default` is every pod's.",
            fix="set subject to repo:OWNER/REPO:environment:NAME or "
            "system:serviceaccount:NAMESPACE:NAME, audiences to "
            "[api://AzureADTokenExchange]",
            anchors=("S31", "S17", "S04"),
            stack=_credentials,
            parameters=(
                Parameter(
                    "audiences",
                    ["api://AzureADTokenExchange"],
                    "Audiences that are accepted; other clouds have their own.",
                ),
            ),
        ),
        Rule(
            id="R-AZ-10",
            severity=Severity.CRITICAL,
            title="No identity is an administrator, or reaches a whole subscription",
            rationale="Owner and Contributor reach everything; who may assign roles "
            "can become either.",
            fix="assign a narrow role on one resource or resource group",
            anchors=("S17", "S01"),
            stack=_assignments,
        ),
    )


def _credentials(stack: StackView, context: Context) -> Iterator[Breach]:
    for found in stack.of(CREDENTIAL, APPLICATION_CREDENTIAL):
        yield from guarded(_credential(stack, found, context), found.urn)


def _credential(
    stack: StackView, found: ResourceView, context: Context
) -> Iterator[Breach]:
    accepted = context.strings("audiences")
    audiences = found.texts("audiences")
    if not audiences or any(name not in accepted for name in audiences):
        spelled = ", ".join(audiences) or "not set"
        why = f"the audience is {spelled}, not {' or '.join(accepted)}"
        yield Breach(why, "audiences", urn=found.urn)
    subject = found.text("subject")
    issuer = _issuer(found)
    why = (
        _github_subject(stack, found, subject)
        if _GITHUB in issuer
        else _other_subject(subject)
    )
    if why:
        yield Breach(f"subject {subject!r} {why}", "subject", urn=found.urn)


def _issuer(found: ResourceView) -> str:
    """Return the issuer; that of a cluster is not known before the cluster is."""
    try:
        return found.text("issuer")
    except CannotTell:
        return ""


def _github_subject(stack: StackView, found: ResourceView, subject: str) -> str:
    if "*" in subject or "?" in subject:
        return "has a wildcard, which Azure compares as a plain character"
    match = SUBJECT.match(subject)
    if match is None:
        named = CUSTOM_SUBJECT.search(subject)
        return "" if named else "does not name one repository"
    context = match["context"]
    if context.split(":")[0] == "pull_request" and _writes(stack, found):
        return "lets pull requests in, and the identity can write"
    return ""


def _other_subject(subject: str) -> str:
    if "*" in subject or "?" in subject:
        return "has a wildcard, which Azure compares as a plain character"
    if not subject.startswith("system:serviceaccount:"):
        return "" if subject else "is empty"
    match = _SERVICE_ACCOUNT.match(subject)
    if match is None:
        return "does not name one service account"
    if match["account"] == "default":
        return "names the account that every pod of the namespace has"
    return ""


def _writes(stack: StackView, credential: ResourceView) -> bool:
    """Say whether an identity can change anything; yes when that cannot be seen."""
    identities = {
        urn
        for urns in credential.points_at.values()
        for urn in urns
        if (at := stack.by_urn(urn)) is not None
        and at.type.endswith(":UserAssignedIdentity")
    }
    held: list[str] = []
    for assignment in stack.of(ASSIGNMENT):
        if identities & set(assignment.points_at.get("principalId", ())):
            try:
                held.append(_role_number(assignment.text("roleDefinitionId")))
            except CannotTell:
                return True
    return not held or any(role not in READERS for role in held)


def _role_number(role: str) -> str:
    return role.rstrip("/").rpartition("/")[2].lower()


def _assignments(stack: StackView, context: Context) -> Iterator[Breach]:
    for found in stack.of(ASSIGNMENT):
        yield from guarded(_role(found, stack), found.urn)
        yield from guarded(_scope(found), found.urn)
    for found in stack.of(DEFINITION):
        yield from guarded(_definition(found), found.urn)


def _role(found: ResourceView, stack: StackView) -> Iterator[Breach]:
    own = {d.urn for d in stack.of(DEFINITION)}
    if own & set(found.points_at.get("roleDefinitionId", ())):
        return  # a definition of the stack, which is judged itself
    name = ADMINISTRATORS.get(_role_number(found.text("roleDefinitionId")))
    if name:
        yield Breach(f"assigns {name}", "roleDefinitionId", urn=found.urn)


def _scope(found: ResourceView) -> Iterator[Breach]:
    if found.points_at.get("scope"):
        return  # the id of something in the stack, never a subscription
    scope = found.text("scope")
    if _ANY_SCOPE.match(scope):
        yield Breach(f"reaches all of {scope}", "scope", urn=found.urn)


def _definition(found: ResourceView) -> Iterator[Breach]:
    for index, _ in enumerate(found.items("permissions")):
        permission = found.mapping("permissions", index)
        broad = [a for a in texts(permission, "actions") if _EVERYTHING.match(a)]
        denied = {a.lower() for a in texts(permission, "notActions")}
        broad = [action for action in broad if action.lower() not in denied]
        if broad:
            why = f"the role can do, or become able to do, anything: {', '.join(broad)}"
            yield Breach(why, f"permissions[{index}].actions", urn=found.urn)
