"""What every account may do, asked from the API server and written as a table.

Two kinds of questions are asked. `SubjectAccessReview` answers one (account, verb,
resource, namespace) with yes or no; it is asked for every pair of verb and resource
in :data:`RESOURCES`, :data:`KEY_RESOURCES` or :data:`CLUSTER_RESOURCES`.
`SelfSubjectRulesReview`, asked as
the account itself, answers with all rules that apply to it in one namespace, so that
nothing hides behind a resource that nobody thought to ask for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from cluster.harness.client import Account, Api

WORKERS = 2

Right = tuple[str, str]
"""Resource with its group, and verb: ``("pods/exec", "create")``."""

_ALL = "create delete deletecollection get list patch update watch"

RESOURCES: Mapping[str, str] = {
    "pods": _ALL,
    "pods/attach": "create get",
    "pods/binding": "create",
    "pods/ephemeralcontainers": "get patch update",
    "pods/eviction": "create",
    "pods/exec": "create get",
    "pods/log": "get list watch",
    "pods/portforward": "create get",
    "pods/proxy": "create get",
    "pods/status": "get patch update",
    "configmaps": _ALL,
    "secrets": _ALL,
    "serviceaccounts": f"{_ALL} impersonate",
    "serviceaccounts/token": "create",
    "services": "create get list",
    "persistentvolumeclaims": "create get list",
    "resourcequotas": "create delete get patch update",
    "limitranges": "create delete get patch update",
    "events": "create get list",
    "deployments.apps": "create delete get patch update",
    "daemonsets.apps": "create delete get patch update",
    "statefulsets.apps": "create",
    "jobs.batch": "create delete get patch update",
    "cronjobs.batch": "create",
    "roles.rbac.authorization.k8s.io": f"{_ALL} bind escalate",
    "rolebindings.rbac.authorization.k8s.io": _ALL,
    "networkpolicies.networking.k8s.io": "create delete get patch update",
    "leases.coordination.k8s.io": "create update",
    "resourceclaims.resource.k8s.io": "create",
    "localsubjectaccessreviews.authorization.k8s.io": "create",
    "autoscalingrunnersets.actions.github.com": _ALL,
    "autoscalinglisteners.actions.github.com": "create get",
    "ephemeralrunners.actions.github.com": _ALL,
    "ephemeralrunnersets.actions.github.com": "create get patch",
    "externalsecrets.external-secrets.io": _ALL,
    "*.*": "*",
}
"""Resources in a namespace, each with the verbs that are asked for."""

KEY_RESOURCES: Mapping[str, str] = {
    "pods": "create delete get list patch",
    "pods/exec": "create get",
    "pods/ephemeralcontainers": "patch",
    "configmaps": "create get list",
    "secrets": "create delete get list watch",
    "serviceaccounts": "create impersonate",
    "serviceaccounts/token": "create",
    "roles.rbac.authorization.k8s.io": "create escalate",
    "rolebindings.rbac.authorization.k8s.io": "create",
    "autoscalingrunnersets.actions.github.com": "create patch",
    "*.*": "*",
}
"""What is asked where an account has no business at all: the keys to the rest."""

CLUSTER_RESOURCES: Mapping[str, str] = {
    "namespaces": _ALL,
    "nodes": _ALL,
    "nodes/proxy": "create get",
    "nodes/status": "patch update",
    "persistentvolumes": "create get",
    "pods": "create get list watch",
    "secrets": "get list watch",
    "configmaps": "get list",
    "serviceaccounts": "list",
    "users": "impersonate",
    "groups": "impersonate",
    "clusterroles.rbac.authorization.k8s.io": f"{_ALL} bind escalate",
    "clusterrolebindings.rbac.authorization.k8s.io": _ALL,
    "validatingadmissionpolicies.admissionregistration.k8s.io": _ALL,
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": _ALL,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": "create update",
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": "create update",
    "customresourcedefinitions.apiextensions.k8s.io": "create get list update",
    "apiservices.apiregistration.k8s.io": "create update",
    "certificatesigningrequests.certificates.k8s.io": "create get update",
    "certificatesigningrequests/approval.certificates.k8s.io": "update",
    "signers.certificates.k8s.io": "approve sign",
    "priorityclasses.scheduling.k8s.io": "create get list",
    "runtimeclasses.node.k8s.io": "create get",
    "tokenreviews.authentication.k8s.io": "create",
    "subjectaccessreviews.authorization.k8s.io": "create",
    "selfsubjectaccessreviews.authorization.k8s.io": "create",
    "selfsubjectrulesreviews.authorization.k8s.io": "create",
    "selfsubjectreviews.authentication.k8s.io": "create",
    "nodepools.karpenter.sh": _ALL,
    "nodeclaims.karpenter.sh": "create delete get list",
    "ec2nodeclasses.karpenter.k8s.aws": _ALL,
    "clustersecretstores.external-secrets.io": "create get list update",
    "*.*": "*",
}
"""Resources of no namespace, and some of all namespaces at once."""


@dataclass(frozen=True)
class Subject:
    """An account of one class in one place.

    Attributes:
        who: What kind of account it is.
        where: What kind of place it is.
        runner_class: The class, or empty.
        account: The account.
        namespace: The namespace; empty for the whole cluster.
        asked: Resources and verbs that are asked for.
    """

    who: str
    where: str
    runner_class: str
    account: Account
    namespace: str
    asked: Mapping[str, str]


@dataclass(frozen=True)
class Row:
    """What accounts of one kind may do in places of one kind.

    Attributes:
        who: What kind of account.
        where: What kind of place.
        rights: What they may do there.
        subjects: How many accounts and places this is true for.
        questions: How many questions were asked about them.
        classes: Names of the classes.
    """

    who: str
    where: str
    rights: frozenset[Right]
    subjects: int = 0
    questions: int = 0
    classes: frozenset[str] = field(default=frozenset())


def ask(api: Api, subjects: Iterable[Subject]) -> list[Row]:
    """Ask everything about some subjects and join what is equal.

    Returns:
        One row for each kind of account, kind of place and set of rights.
    """
    rows: dict[tuple[str, str, frozenset[Right]], Row] = {}
    with ThreadPoolExecutor(WORKERS) as pool:
        for subject, rights in pool.map(lambda s: (s, _rights(api, s)), subjects):
            key = (subject.who, subject.where, rights)
            row = rows.get(key, Row(*key))
            rows[key] = Row(
                *key,
                row.subjects + 1,
                row.questions + len(questions(subject.asked)),
                row.classes | ({subject.runner_class} - {""}),
            )
    return list(rows.values())


def questions(asked: Mapping[str, str]) -> list[Right]:
    """Return each pair of resource and verb of a table of resources."""
    return [(name, verb) for name, verbs in asked.items() for verb in verbs.split()]


def rules(api: Api, account: Account, namespace: str) -> frozenset[Right]:
    """Return all that an account may do in a namespace, as it is told itself."""
    answer = api.post_as(
        account,
        "authorization.k8s.io/v1",
        "SelfSubjectRulesReview",
        {"namespace": namespace},
    )
    status = answer["status"]
    assert not status.get("evaluationError"), status
    return frozenset(
        (_joined(resource, group), verb)
        for rule in status["resourceRules"]
        for group in rule.get("apiGroups", [])
        for resource in rule.get("resources", [])
        for verb in rule["verbs"]
    )


def text(rights: Iterable[Right]) -> str:
    """Return rights as a short line: ``pods: create, get; secrets: get``."""
    by_resource: dict[str, list[str]] = {}
    for resource, verb in sorted(rights):
        by_resource.setdefault(resource, []).append(verb)
    parts = [f"`{name}`: {', '.join(verbs)}" for name, verbs in by_resource.items()]
    return "; ".join(parts) or "nothing"


def _rights(api: Api, subject: Subject) -> frozenset[Right]:
    return frozenset(
        right
        for right in questions(subject.asked)
        if _may(api, subject.account, subject.namespace, right)
    )


def _may(api: Api, account: Account, namespace: str, right: Right) -> bool:
    named, verb = right
    resource, _, group = named.partition(".")
    resource, _, subresource = resource.partition("/")
    attributes = {"verb": verb, "group": group, "resource": resource}
    if subresource:
        attributes["subresource"] = subresource
    if namespace:
        attributes["namespace"] = namespace
    return api.review(account, **attributes)


def _joined(resource: str, group: str) -> str:
    return f"{resource}.{group}" if group else resource
