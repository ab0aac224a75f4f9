from __future__ import annotations

from typing import Any

from runfleet.placement import CellPlan
from runners.cells import Cluster, class_of

GROUP = "rbac.authorization.k8s.io"


def allowed(rules: list[dict[str, Any]]) -> set[tuple[str, str, str]]:
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


HOOKS = {
    *(("", "pods", verb) for verb in ("get", "list", "create", "delete")),
    *(("", "pods/exec", verb) for verb in ("get", "create")),
    *(("", "pods/log", verb) for verb in ("get", "list", "watch")),
    *(("", "secrets", verb) for verb in ("get", "list", "create", "delete")),
}


def test_the_runner_may_do_what_the_hooks_check_for_and_only_in_the_job_namespace(
    plan: CellPlan, cluster: Cluster
) -> None:
    for planned in plan.classes:
        role = cluster.one("Role", "container-hooks", planned.job_namespace)
        assert allowed(role["rules"]) == HOOKS
        runner = {
            "kind": "ServiceAccount",
            "name": "runner",
            "namespace": planned.runner_namespace,
        }
        bindings = [
            made.inputs
            for kind in ("RoleBinding", "ClusterRoleBinding")
            for made in cluster.of(kind)
            if runner in made.inputs["subjects"]
        ]
        assert [
            (b["metadata"]["namespace"], b["roleRef"], b["subjects"]) for b in bindings
        ] == [
            (
                planned.job_namespace,
                {"apiGroup": GROUP, "kind": "Role", "name": "container-hooks"},
                [runner],
            )
        ]


def test_only_the_job_account_carries_the_identity_and_it_has_no_rights(
    plan: CellPlan, cluster: Cluster
) -> None:
    for planned in plan.classes:
        job = cluster.one("ServiceAccount", "job", planned.job_namespace)
        runner = cluster.one("ServiceAccount", "runner", planned.runner_namespace)
        assert job["automountServiceAccountToken"] is False
        assert runner["automountServiceAccountToken"] is False
        assert "annotations" not in runner["metadata"]
        expected = (
            {"example.com/identity": f"role-of-{planned.name}"}
            if planned.grants
            else None
        )
        assert job["metadata"].get("annotations") == expected
    subjects = {
        (s["namespace"], s["name"])
        for made in cluster.of("RoleBinding")
        for s in made.inputs["subjects"]
    }
    assert not any(name == "job" for _, name in subjects)


def test_the_controller_has_its_rights_namespace_by_namespace(
    plan: CellPlan, cluster: Cluster
) -> None:
    (role,) = [made.inputs for made in cluster.of("ClusterRole")]
    assert role["metadata"]["name"] == "runfleet-arc-manager"
    writes = ("create", "delete", "get", "patch", "update")
    assert allowed(role["rules"]) == {
        *(
            ("", resource, verb)
            for resource in ("secrets", "serviceaccounts")
            for verb in (*writes, "list")
        ),
        *(
            (GROUP, resource, verb)
            for resource in ("roles", "rolebindings")
            for verb in writes
        ),
        *(("", "pods", verb) for verb in ("create", "delete", "get")),
        ("", "pods/status", "get"),
    }
    planned = class_of(plan, "l4")
    binding = cluster.one("RoleBinding", "arc-manager", planned.runner_namespace)
    assert binding["roleRef"] == {
        "apiGroup": GROUP,
        "kind": "ClusterRole",
        "name": "runfleet-arc-manager",
    }
    assert binding["subjects"] == [
        {
            "kind": "ServiceAccount",
            "name": "arc-gha-rs-controller",
            "namespace": "arc-systems",
        }
    ]
    assert cluster.of("ClusterRoleBinding") == []


def test_no_role_holds_a_wildcard(cluster: Cluster) -> None:
    rules = [
        rule
        for kind in ("Role", "ClusterRole")
        for made in cluster.of(kind)
        for rule in made.inputs["rules"]
    ]
    assert rules
    for rule in rules:
        assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]
