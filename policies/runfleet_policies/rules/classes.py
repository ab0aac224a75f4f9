"""Runner classes: what belongs to one class serves no other."""

from __future__ import annotations

from collections.abc import Iterator

from runfleet.spec.findings import Severity
from runfleet_policies.access import ROLE, class_of
from runfleet_policies.kube import NAMESPACE, ScaleSet, scale_sets
from runfleet_policies.rule import Breach, Context, Rule, guarded
from runfleet_policies.rules.aws_trust import ASSOCIATION
from runfleet_policies.values import CannotTell, text
from runfleet_policies.view import ResourceView, StackView

NODE_GROUP = "aws:eks/nodeGroup:NodeGroup"
NODE_CLASS = "kubernetes:karpenter.k8s.aws/*:EC2NodeClass"
NODE_POOL = "kubernetes:karpenter.sh/*:NodePool"
LABEL = "ci_runner_class"


def rules() -> tuple[Rule, ...]:
    """Return the rules about runner classes."""
    return (
        Rule(
            id="R-CLASS-01",
            severity=Severity.CRITICAL,
            title="A class's identity, account and nodes serve that class only",
            rationale="A role, a service account or nodes that release jobs share "
            "with pull requests give pull requests what release jobs may do.",
            fix="give each class its own role, namespace and service account, and "
            "release classes their own nodes",
            anchors=("S28", "S04", "S25", "CIS 2.2.3", "SLSA L3"),
            stack=_separate,
        ),
    )


def _separate(stack: StackView, context: Context) -> Iterator[Breach]:
    spaces = {found.object_name: found for found in stack.of(NAMESPACE)}
    for association in stack.of(ASSOCIATION):
        yield from guarded(_association(stack, association, spaces), association.urn)
    for group in stack.of(NODE_GROUP):
        yield from guarded(_node_role(stack, group), group.urn)
    for node_class in stack.of(NODE_CLASS):
        yield from guarded(_node_class(stack, node_class), node_class.urn)
    yield from _shared_accounts(list(scale_sets(stack)))
    for found in scale_sets(stack):
        yield from guarded(_trusted_nodes(found), found.resource.urn)


def _association(
    stack: StackView, association: ResourceView, spaces: dict[str, ResourceView]
) -> Iterator[Breach]:
    own = class_of(association)
    role = stack.pointed_at(association, "roleArn", ROLE)
    theirs = class_of(role) if role is not None else ""
    if own and theirs and own != theirs:
        why = f"joins the role of class {theirs} to class {own}"
        yield Breach(why, "roleArn", urn=association.urn)
    space = spaces.get(association.text("namespace"))
    if space is None:
        return
    home = space.text("metadata", "labels", LABEL)
    wanted = theirs or own
    if home not in ("", "shared") and wanted and home != wanted:
        why = f"gives the role of class {wanted} to the namespace of class {home}"
        yield Breach(why, "namespace", urn=association.urn)


def _node_role(stack: StackView, group: ResourceView) -> Iterator[Breach]:
    role = stack.pointed_at(group, "nodeRoleArn", ROLE)
    if role is None:
        return
    theirs, own = class_of(role), class_of(group)
    if theirs and theirs != own:
        why = f"nodes of {own or 'several classes'} have the role of class {theirs}"
        yield Breach(why, "nodeRoleArn", urn=group.urn)


def _node_class(stack: StackView, node_class: ResourceView) -> Iterator[Breach]:
    name = node_class.get("spec", "role")
    if not isinstance(name, str) or not name:
        return
    role = next(
        (
            found
            for urn in node_class.points_at.get("spec", ())
            if (found := stack.by_urn(urn)) is not None and found.type == ROLE
        ),
        None,
    )
    if role is None:
        role = stack.named(name, ROLE)
    theirs = class_of(role) if role is not None else ""
    if not theirs:
        return
    own = node_class.text("spec", "tags", LABEL)
    if own != theirs:
        why = f"nodes of {own or 'several classes'} have the role of class {theirs}"
        yield Breach(why, "spec.role", urn=node_class.urn)


def _shared_accounts(found: list[ScaleSet]) -> Iterator[Breach]:
    users: dict[tuple[str, str], list[tuple[ScaleSet, str]]] = {}
    for scale in found:
        try:
            account = (scale.namespace, scale.service_account)
            tenant = _tenant(scale)
        except CannotTell as unknown:
            why = f"cannot tell: {unknown}"
            yield Breach(why, unknown.path, True, scale.resource.urn)
            continue
        users.setdefault(account, []).append((scale, tenant))
    for (namespace, account), sharing in users.items():
        if not account:
            continue
        (first_scale, first), *others = sorted(sharing, key=lambda s: s[0].resource.urn)
        for scale, tenant in others:
            if tenant != first:
                why = (
                    f"shares the service account {namespace}/{account} with "
                    f"{first_scale.name}: {tenant} and {first}"
                )
                yield Breach(why, scale.prefix, urn=scale.resource.urn)


def _tenant(scale: ScaleSet) -> str:
    """Return what a scale set's jobs may not share with those of another."""
    named = scale.label(LABEL)
    if named and named != "shared":
        return f"class {named}"
    trust = scale.label("ci_trust")
    if trust and trust != "shared":
        return f"trust {trust}"
    return f"runner group {text(scale.values, 'runnerGroup') or 'default'}"


def _trusted_nodes(scale: ScaleSet) -> Iterator[Breach]:
    trust = scale.label("ci_trust")
    pod = scale.pod
    if not trust or pod is None:
        return
    chosen = text(pod.spec, "nodeSelector", "ci_trust")
    release = chosen == "release"
    if chosen and release != (trust == "release"):
        why = f"jobs of trust {trust} run on nodes for {chosen}"
        yield Breach(why, f"{pod.place}.nodeSelector", urn=scale.resource.urn)
