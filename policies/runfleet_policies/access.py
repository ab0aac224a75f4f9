"""Who holds which policy document: roles, their policies, and their trust.

A role's rights are spread over inline policies, policy resources of its own and
attachments. Rules about what a role can do ask here, so that rights that are
harmless alone and dangerous together are seen together. Policies that are only
used as permissions boundaries grant nothing and are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from runfleet_policies.iam import Statement, statements
from runfleet_policies.values import CannotTell
from runfleet_policies.view import ResourceView, StackView

ROLE = "aws:iam/role:Role"
POLICY = "aws:iam/policy:Policy"
ROLE_POLICY = "aws:iam/rolePolicy:RolePolicy"
ATTACHMENT = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
IDENTITY_POLICIES = (
    POLICY,
    ROLE_POLICY,
    "aws:iam/userPolicy:UserPolicy",
    "aws:iam/groupPolicy:GroupPolicy",
    "aws:ssoadmin/permissionSetInlinePolicy:PermissionSetInlinePolicy",
)
"""Types whose document grants rights to an identity."""


@dataclass(frozen=True)
class Grants:
    """One policy document that grants rights.

    Attributes:
        resource: The resource that carries it.
        path: Where it stands in that resource.
    """

    resource: ResourceView
    path: tuple[str | int, ...]

    def statements(self) -> Sequence[Statement]:
        """Return its statements; raises :class:`CannotTell` when not known."""
        return statements(self.resource.inputs, *self.path)

    @property
    def prefix(self) -> str:
        """What findings put before the statement."""
        if self.path[0] == "inlinePolicies":
            return f"inlinePolicies[{self.path[1]}]."
        return ""


@dataclass
class Holding:
    """What a role holds.

    Attributes:
        documents: Policy documents that stand in the stack.
        outside: ARNs of policies from outside the stack; ``?`` when not known.
    """

    documents: list[Grants]
    outside: list[str]


def documents(stack: StackView) -> Iterator[Grants]:
    """Yield every document of the stack that grants rights to an identity."""
    boundaries = _boundaries(stack)
    for resource in stack.of(*IDENTITY_POLICIES):
        if resource.urn in boundaries:
            continue
        inline = resource.type.startswith("aws:ssoadmin")
        yield Grants(resource, ("inlinePolicy" if inline else "policy",))
    for role in stack.of(ROLE):
        yield from _inline(role)


def holdings(stack: StackView) -> Mapping[str, Holding]:
    """Return what each role of the stack holds, by the role's URN."""
    return stack.memo("access.holdings", _holdings)


def trust(role: ResourceView) -> list[Statement]:
    """Return the statements of a role's trust policy."""
    return statements(role.inputs, "assumeRolePolicy")


def class_of(resource: ResourceView) -> str:
    """Return the runner class that a resource's tags name; empty when shared."""
    try:
        name = resource.text("tags", "ci_runner_class")
    except CannotTell:
        return ""
    return "" if name == "shared" else name


def _holdings(stack: StackView) -> dict[str, Holding]:
    found: dict[str, Holding] = {}
    for role in stack.of(ROLE):
        try:
            held = Holding(list(_inline(role)), role.texts("managedPolicyArns"))
        except CannotTell:
            held = Holding([], ["?"])
        found[role.urn] = held
    for policy in stack.of(ROLE_POLICY):
        held = _held_by(stack, policy, found)
        if held is not None:
            held.documents.append(Grants(policy, ("policy",)))
    for attachment in stack.of(ATTACHMENT):
        held = _held_by(stack, attachment, found)
        if held is None:
            continue
        try:
            policy = stack.pointed_at(attachment, "policyArn", POLICY)
            arn = "" if policy is not None else attachment.text("policyArn")
        except CannotTell:
            policy, arn = None, "?"
        if policy is not None:
            held.documents.append(Grants(policy, ("policy",)))
        else:
            held.outside.append(arn)
    return found


def _held_by(
    stack: StackView, resource: ResourceView, found: Mapping[str, Holding]
) -> Holding | None:
    try:
        role = stack.pointed_at(resource, "role", ROLE)
    except CannotTell:
        return None
    return found.get(role.urn) if role is not None else None


def _inline(role: ResourceView) -> Iterator[Grants]:
    for index in range(len(role.items("inlinePolicies"))):
        yield Grants(role, ("inlinePolicies", index, "policy"))


def _boundaries(stack: StackView) -> set[str]:
    used: set[str] = set()
    for holder in stack.of(ROLE, "aws:iam/user:User"):
        used |= _policy(stack, holder, "permissionsBoundary")
    for attachment in stack.of("aws:iam/*ttachment:*Attachment"):
        used -= _policy(stack, attachment, "policyArn")
    return used


def _policy(stack: StackView, resource: ResourceView, prop: str) -> set[str]:
    try:
        found = stack.pointed_at(resource, prop, POLICY)
    except CannotTell:
        return set()
    return {found.urn} if found is not None else set()
