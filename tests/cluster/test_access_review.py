"""Isolation by asking: what every account may do, and nothing beyond it.

`docs/access-review.md` holds the answers. It is written by these tests when
`RUNFLEET_WRITE_DOCS` is set, and compared with them when it is not.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

import pytest

from cluster.conftest import CELLS, ROOT, Cell
from cluster.harness.client import Account
from cluster.harness.reviews import (
    CLUSTER_RESOURCES,
    KEY_RESOURCES,
    RESOURCES,
    Right,
    Row,
    Subject,
    ask,
    questions,
    rules,
    text,
)

PAGE = ROOT / "docs" / "access-review.md"
WRITE = "RUNFLEET_WRITE_DOCS"
ARC = Account("arc-systems", "arc-gha-rs-controller")
SECRETS = Account("external-secrets", "external-secrets")
SYSTEM_SPACES = ("arc-systems", "external-secrets", "kube-system")

CLUSTER = "the whole cluster"
OWN_R, OWN_J = "its own R", "its own J"
OTHER_R, OTHER_J = "another class's R", "another class's J"
SYSTEM = "a system namespace"

EVERYBODY: frozenset[Right] = frozenset(
    {
        ("selfsubjectaccessreviews.authorization.k8s.io", "create"),
        ("selfsubjectrulesreviews.authorization.k8s.io", "create"),
        ("selfsubjectreviews.authentication.k8s.io", "create"),
    }
)
"""What Kubernetes lets every account ask about itself (`system:basic-user`)."""


def _all(**verbs: str) -> frozenset[Right]:
    return frozenset(
        (name.replace("__", "/"), verb)
        for name, found in verbs.items()
        for verb in found.split()
    )


HOOKS = _all(
    pods="create delete get list",
    pods__exec="create get",
    pods__log="get list watch",
    secrets="create delete get list",
)
"""What the hooks check for: `requiredPermissions` in actions/runner-container-hooks at
cf62bcc, `packages/k8s/src/k8s/index.ts`."""

MANAGER = _all(
    pods="create delete get",
    pods__status="get",
    secrets="create delete get list patch update",
    serviceaccounts="create delete get list patch update",
) | {
    (f"{name}.rbac.authorization.k8s.io", verb)
    for name in ("roles", "rolebindings")
    for verb in ("create", "delete", "get", "patch", "update")
}
"""What ARC's controller has in a runner namespace: `manager_role.yaml` of chart
gha-runner-scale-set in actions/actions-runner-controller at 2ee6b3b."""

RUNNER, JOB = "account of runners", "account of jobs"
DEFAULT_R, DEFAULT_J = "default account of R", "default account of J"
CONTROLLER, OPERATOR = "ARC's controller", "External Secrets operator"

EXPECTED: dict[tuple[str, str], frozenset[Right]] = {
    (RUNNER, OWN_R): frozenset(),
    (RUNNER, OWN_J): HOOKS,
    (RUNNER, OTHER_R): frozenset(),
    (RUNNER, OTHER_J): frozenset(),
    (RUNNER, SYSTEM): frozenset(),
    (RUNNER, CLUSTER): EVERYBODY,
    (JOB, OWN_R): frozenset(),
    (JOB, OWN_J): frozenset(),
    (JOB, OTHER_R): frozenset(),
    (JOB, OTHER_J): frozenset(),
    (JOB, SYSTEM): frozenset(),
    (JOB, CLUSTER): EVERYBODY,
    (DEFAULT_R, OWN_R): frozenset(),
    (DEFAULT_J, OWN_J): frozenset(),
    (CONTROLLER, "every R"): MANAGER,
    (CONTROLLER, "every J"): frozenset(),
    (CONTROLLER, SYSTEM): frozenset(),
    (CONTROLLER, CLUSTER): EVERYBODY,
    (OPERATOR, "every R"): frozenset(),
    (OPERATOR, "every J"): frozenset(),
    (OPERATOR, SYSTEM): frozenset(),
    (OPERATOR, CLUSTER): EVERYBODY,
}


@pytest.fixture(scope="module")
def rows(cell: Cell) -> list[Row]:
    return ask(cell.api, list(_subjects(cell)))


def test_every_account_may_do_exactly_what_it_needs(
    cell: Cell, rows: list[Row]
) -> None:
    found = {(row.who, row.where): row.rights for row in rows}
    assert len(found) == len(rows), "classes differ in what their accounts may do"
    assert found == EXPECTED
    for row in rows:
        if row.classes:
            assert row.classes == {one.name for one in cell.classes}


def test_no_account_has_a_rule_in_any_other_namespace(cell: Cell) -> None:
    """Ask each account for all its rules, in every namespace of the cluster."""
    spaces = [found["metadata"]["name"] for found in cell.api.list("v1", "Namespace")]
    assert len(spaces) > 2 * len(cell.classes)
    for one in cell.classes:
        for account, own, rights in (
            (one.runner, one.job_namespace, HOOKS),
            (one.job, "", frozenset[Right]()),
        ):
            for space in spaces:
                found = rules(cell.api, account, space)
                expected = EVERYBODY | rights if space == own else EVERYBODY
                assert found == expected, f"{account.user} in {space}"


def test_the_questions_find_what_is_there(cell: Cell) -> None:
    """Ask about an account that may do everything, so that "no" means something."""
    root = Account("kube-system", "all-powerful")
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "all-powerful"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "cluster-admin",
        },
        "subjects": [
            {"kind": "ServiceAccount", "name": root.name, "namespace": root.namespace}
        ],
    }
    cell.api.apply(binding)
    try:
        one = cell.classes[0]
        for space, asked in (
            (one.runner_namespace, RESOURCES),
            (one.job_namespace, KEY_RESOURCES),
            ("", CLUSTER_RESOURCES),
        ):
            [row] = ask(cell.api, [Subject("root", space, "", root, space, asked)])
            assert row.rights == frozenset(questions(asked))
    finally:
        cell.api.delete(binding)


def test_the_page_holds_the_answers(cell: Cell, rows: list[Row]) -> None:
    section = "\n".join(_section(cell, rows))
    if os.environ.get(WRITE):
        _write(cell.stack, section)
    assert PAGE.is_file(), f"make it with {WRITE}=1 make test-cluster"
    page = PAGE.read_text(encoding="utf-8")
    assert f"{section}\n" in page, f"write it anew with {WRITE}=1 make test-cluster"
    assert page.startswith(_head())
    if not os.environ.get(WRITE):
        found = re.findall(r"^## Cell `(.*)`$", page, re.MULTILINE)
        assert found == CELLS


def _subjects(cell: Cell) -> Iterator[Subject]:
    following = [*cell.classes[1:], cell.classes[0]]
    for one, other in zip(cell.classes, following, strict=True):
        r, j = one.runner_namespace, one.job_namespace
        for who, account in ((RUNNER, one.runner), (JOB, one.job)):
            for where, space, asked in (
                (OWN_R, r, RESOURCES),
                (OWN_J, j, RESOURCES),
                (OTHER_R, other.runner_namespace, KEY_RESOURCES),
                (OTHER_J, other.job_namespace, KEY_RESOURCES),
                *((SYSTEM, space, KEY_RESOURCES) for space in SYSTEM_SPACES),
                (CLUSTER, "", CLUSTER_RESOURCES),
            ):
                yield Subject(who, where, one.name, account, space, asked)
        for who, where, account, space, asked in (
            (DEFAULT_R, OWN_R, Account(r, "default"), r, KEY_RESOURCES),
            (DEFAULT_J, OWN_J, Account(j, "default"), j, KEY_RESOURCES),
            (CONTROLLER, "every R", ARC, r, RESOURCES),
            (CONTROLLER, "every J", ARC, j, KEY_RESOURCES),
            (OPERATOR, "every R", SECRETS, r, KEY_RESOURCES),
            (OPERATOR, "every J", SECRETS, j, KEY_RESOURCES),
        ):
            yield Subject(who, where, one.name, account, space, asked)
    for who, account in ((CONTROLLER, ARC), (OPERATOR, SECRETS)):
        for space in SYSTEM_SPACES:
            yield Subject(who, SYSTEM, "", account, space, RESOURCES)
        yield Subject(who, CLUSTER, "", account, "", CLUSTER_RESOURCES)


def _head() -> str:
    return f"""# Access review

What every service account of a cell may do on Kubernetes, as a real API server
answers it. `make test-cluster` puts everything that a stack records on an API server,
asks it (`SubjectAccessReview`) about each account, verb, resource and namespace, and
compares the answers with this page; `{WRITE}=1 make test-cluster` writes it.

`R` is the runner namespace of a class, `J` its job namespace. Each row holds for every
class of the cell. Kubernetes lets every account ask what it may do itself
(`selfsubjectaccessreviews`, `selfsubjectrulesreviews`, `selfsubjectreviews`: create);
"nothing" means: nothing but that. The tests also ask the accounts of
runners and jobs for all their rules in every namespace of the cluster, so that a
resource that is not in the lists below cannot hide.

Controllers are charts, and what a chart gives its own account is not in a record, so it
is not in this table: here stands what Runfleet adds to it. ARC's chart lets its
controller manage ARC's own kinds and list and watch pods, accounts, roles and bindings
in every namespace (actions/actions-runner-controller at 2ee6b3b,
`charts/gha-runner-scale-set-controller/templates/manager_cluster_role.yaml`).

What no table of rights shows: whoever may create pods in a namespace may choose any
account of that namespace. That is why each class has a job namespace of its own and an
admission policy pins the account there.

## What is asked

In a namespace:

{_list(RESOURCES)}

In a namespace where the account has no business:

{_list(KEY_RESOURCES)}

Of the whole cluster:

{_list(CLUSTER_RESOURCES)}
"""


def _list(asked: Mapping[str, str]) -> str:
    lines = [
        f"| `{name}` | {verbs.replace(' ', ', ')} |" for name, verbs in asked.items()
    ]
    return "\n".join(["| resource | verbs |", "|---|---|", *lines])


def _section(cell: Cell, rows: list[Row]) -> Iterator[str]:
    total = sum(row.questions for row in rows)
    yield f"## Cell `{cell.stack}`"
    yield ""
    yield (
        f"{len(cell.classes)} runner classes, {total} questions, "
        f"{len(rows)} different answers."
    )
    yield ""
    yield "| account | where | may | asked |"
    yield "|---|---|---|---:|"
    order = list(EXPECTED)
    for row in sorted(rows, key=lambda row: order.index((row.who, row.where))):
        rights = text(row.rights - EVERYBODY)
        yield f"| {row.who} | {row.where} | {rights} | {row.questions} |"


def _write(stack: str, section: str) -> None:
    page = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else ""
    parts = re.split(r"^(?=## Cell `)", page, flags=re.MULTILINE)[1:]
    kept = {
        found[1]: part.rstrip("\n")
        for part in parts
        if (found := re.match(r"## Cell `(.*)`", part)) and found[1] in CELLS
    }
    kept[stack] = section
    body = "\n\n".join(kept[name] for name in CELLS if name in kept)
    PAGE.write_text(f"{_head()}\n{body}\n", encoding="utf-8")
