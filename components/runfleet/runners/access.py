"""Accounts and roles: what the runner, its jobs and ARC's controller may do.

Three accounts, each with one purpose:

- the runner's account lives in the runner namespace, where it has no rights at all,
  and may do in the job namespace exactly what the container hooks check for before
  every command (``requiredPermissions`` in actions/runner-container-hooks,
  ``packages/k8s/src/k8s/index.ts``, the variant without volumes). ``secrets`` is
  among it: without that every job fails. The GitHub App's key is in the other
  namespace, so the runner cannot read it;
- the job's account lives in the job namespace, carries the class's cloud identity and
  has no Kubernetes rights and no token;
- ARC's controller may manage what it makes in each runner namespace. Those rules are
  the same for all classes, so they are one ClusterRole, bound per namespace and
  never cluster-wide.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
from pulumi_kubernetes.core import v1 as core
from pulumi_kubernetes.meta import v1 as meta
from pulumi_kubernetes.rbac import v1 as rbac

RBAC_GROUP = "rbac.authorization.k8s.io"
RUNNER_ACCOUNT = "runner"
HOOKS_ROLE = "container-hooks"
MANAGER_ROLE = "runfleet-arc-manager"
MANAGER_BINDING = "arc-manager"
CONTROLLER_NAMESPACE = "arc-systems"
CONTROLLER_ACCOUNT = "arc-gha-rs-controller"


@dataclass(frozen=True)
class Rule:
    """One rule of a role.

    Attributes:
        group: API group; empty for the core group.
        resources: Resources, with ``/subresource`` where one is meant.
        verbs: What may be done.
    """

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]


HOOK_RULES = (
    Rule("", ("pods",), ("create", "delete", "get", "list")),
    Rule("", ("pods/exec",), ("create", "get")),
    Rule("", ("pods/log",), ("get", "list", "watch")),
    Rule("", ("secrets",), ("create", "delete", "get", "list")),
)
"""What the container hooks need in the job namespace, and nothing more."""

MANAGER_RULES = (
    Rule(
        "",
        ("secrets", "serviceaccounts"),
        ("create", "delete", "get", "list", "patch", "update"),
    ),
    Rule(
        RBAC_GROUP,
        ("rolebindings", "roles"),
        ("create", "delete", "get", "patch", "update"),
    ),
    Rule("", ("pods",), ("create", "delete", "get")),
    Rule("", ("pods/status",), ("get",)),
)
"""What ARC's controller needs in a runner namespace: the manager Role of the chart
gha-runner-scale-set 0.14.2 (actions/actions-runner-controller at 2ee6b3b)."""


@dataclass(frozen=True)
class ClassAccounts:
    """The accounts and roles of one runner class.

    Attributes:
        runner: Account of the runner pods, in the runner namespace.
        job: Account of the job pods, in the job namespace.
        hooks: The runner's role in the job namespace.
        hooks_binding: What gives it to the runner.
        manager_binding: What gives ARC's controller its rights in the runner namespace.
    """

    runner: core.ServiceAccount
    job: core.ServiceAccount
    hooks: rbac.Role
    hooks_binding: rbac.RoleBinding
    manager_binding: rbac.RoleBinding


def make_manager_role(
    resource_name: str, labels: Mapping[str, str], opts: pulumi.ResourceOptions
) -> rbac.ClusterRole:
    """Make the rules that ARC's controller has in each runner namespace."""
    return rbac.ClusterRole(
        f"{resource_name}-arc-manager",
        metadata=meta.ObjectMetaArgs(name=MANAGER_ROLE, labels=dict(labels)),
        rules=_rules(MANAGER_RULES),
        opts=opts,
    )


def make_accounts(
    resource_name: str,
    runner_namespace: str,
    job_namespace: str,
    job_account: str,
    labels: Mapping[str, str],
    annotations: Mapping[str, pulumi.Input[str]],
    opts: pulumi.ResourceOptions,
) -> ClassAccounts:
    """Make the accounts and roles of one class.

    Args:
        resource_name: Start of the logical names.
        runner_namespace: Namespace of the runner pods.
        job_namespace: Namespace of the job pods.
        job_account: Name of the job pods' account.
        labels: Labels of every object.
        annotations: What joins the job's account to the class's cloud identity.
        opts: Parent, provider and dependencies.
    """

    def metadata(
        name: str,
        namespace: str,
        extra: Mapping[str, pulumi.Input[str]] | None = None,
    ) -> meta.ObjectMetaArgs:
        return meta.ObjectMetaArgs(
            name=name,
            namespace=namespace,
            labels=dict(labels),
            annotations=dict(extra) if extra else None,
        )

    runner = core.ServiceAccount(
        f"{resource_name}-runner-account",
        metadata=metadata(RUNNER_ACCOUNT, runner_namespace),
        automount_service_account_token=False,
        opts=opts,
    )
    job = core.ServiceAccount(
        f"{resource_name}-job-account",
        metadata=metadata(job_account, job_namespace, annotations),
        automount_service_account_token=False,
        opts=opts,
    )
    hooks = rbac.Role(
        f"{resource_name}-hooks-role",
        metadata=metadata(HOOKS_ROLE, job_namespace),
        rules=_rules(HOOK_RULES),
        opts=opts,
    )
    hooks_binding = rbac.RoleBinding(
        f"{resource_name}-hooks-binding",
        metadata=metadata(HOOKS_ROLE, job_namespace),
        role_ref=rbac.RoleRefArgs(api_group=RBAC_GROUP, kind="Role", name=HOOKS_ROLE),
        subjects=[_subject(RUNNER_ACCOUNT, runner_namespace)],
        opts=opts,
    )
    manager_binding = rbac.RoleBinding(
        f"{resource_name}-manager-binding",
        metadata=metadata(MANAGER_BINDING, runner_namespace),
        role_ref=rbac.RoleRefArgs(
            api_group=RBAC_GROUP, kind="ClusterRole", name=MANAGER_ROLE
        ),
        subjects=[_subject(CONTROLLER_ACCOUNT, CONTROLLER_NAMESPACE)],
        opts=opts,
    )
    return ClassAccounts(runner, job, hooks, hooks_binding, manager_binding)


def _rules(rules: tuple[Rule, ...]) -> list[rbac.PolicyRuleArgs]:
    return [
        rbac.PolicyRuleArgs(
            api_groups=[rule.group],
            resources=list(rule.resources),
            verbs=list(rule.verbs),
        )
        for rule in rules
    ]


def _subject(account: str, namespace: str) -> rbac.SubjectArgs:
    return rbac.SubjectArgs(kind="ServiceAccount", name=account, namespace=namespace)
