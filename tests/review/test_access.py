"""The access matrix: what is expected, and every way in which policies may differ."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contract.records import Rehearsed, change
from contract.small import rehearse_small
from runfleet.errors import MissingError
from runfleet.placement.lock import LockError
from runfleet.rehearsal.record import Record
from runfleet.review.access import (
    Beyond,
    Matrix,
    Row,
    access_matrix,
    by_role,
    expected,
    expected_subjects,
    read_records,
)
from runfleet.review.evaluators.parts import Part
from runfleet.spec.github import FederatedRepository
from runfleet.spec.roles import Grant, Role, Scope, StoreKind, Trust, Verb

ROLE = "aws:iam/role:Role"
ROLE_POLICY = "aws:iam/rolePolicy:RolePolicy"
TESTER = "l-x86iavx2-2-4"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Rehearsed:
    return rehearse_small(tmp_path_factory.mktemp("access") / "project")


def grant(text: str) -> Grant:
    verb, store, scope = text.split()
    return Grant(Role.TESTER, Verb(verb), StoreKind(store), Scope(scope))


def part(text: str, trust: Trust | None) -> Part:
    store, scope = text.split()
    return Part(StoreKind(store), Scope(scope), trust, "a place")


READ_AND_WRITE = [grant("read cache local"), grant("write cache local")]


@pytest.mark.parametrize(
    ("trust", "written_at", "read", "write"),
    [
        (Trust.UNTRUSTED_PR, Trust.UNTRUSTED_PR, True, True),
        (Trust.UNTRUSTED_PR, Trust.TRUSTED, True, False),
        (Trust.UNTRUSTED_PR, Trust.RELEASE, True, False),
        (Trust.TRUSTED, Trust.UNTRUSTED_PR, False, False),
        (Trust.TRUSTED, Trust.TRUSTED, True, True),
        (Trust.TRUSTED, Trust.RELEASE, True, False),
        (Trust.RELEASE, Trust.UNTRUSTED_PR, False, False),
        (Trust.RELEASE, Trust.TRUSTED, False, False),
        (Trust.RELEASE, Trust.RELEASE, True, True),
    ],
)
def test_read_what_is_as_trusted_and_write_ones_own(
    trust: Trust, written_at: Trust, read: bool, write: bool
) -> None:
    asked = part("cache local", written_at)
    assert expected(READ_AND_WRITE, trust, asked, Verb.READ) is read
    assert expected(READ_AND_WRITE, trust, asked, Verb.WRITE) is write
    assert expected(READ_AND_WRITE, trust, asked, Verb.INSERT) is False


def test_insert_at_ones_own_trust_only() -> None:
    grants = [grant("insert telemetry central")]
    allowed = [
        level
        for level in Trust
        if expected(
            grants, Trust.TRUSTED, part("telemetry central", level), Verb.INSERT
        )
    ]
    assert allowed == [Trust.TRUSTED]


@pytest.mark.parametrize("other", ["cache central", "artifacts local"])
def test_no_other_scope_and_no_other_store(other: str) -> None:
    asked = part(other, Trust.TRUSTED)
    assert not expected(READ_AND_WRITE, Trust.TRUSTED, asked, Verb.READ)
    assert not expected(READ_AND_WRITE, Trust.TRUSTED, asked, Verb.WRITE)


def test_copies_of_a_registry_are_read_at_any_trust_and_written_by_nobody() -> None:
    grants = [grant("read registry local"), grant("write registry local")]
    copies = part("registry local", None)
    for trust in Trust:
        assert expected(grants, trust, copies, Verb.READ)
        assert not expected(grants, trust, copies, Verb.WRITE)
        assert not expected([], trust, copies, Verb.READ)


def test_subjects_stand_in_both_forms() -> None:
    repositories = [
        FederatedRepository(repository="org/one", owner_id=7, repository_id=9),
        FederatedRepository(repository="org/two"),
        FederatedRepository(repository="org/three", repository_id=9),
    ]
    assert expected_subjects(repositories, "rocm") == [
        "repo:org/one:environment:rocm",
        "repo:org@7/one@9:environment:rocm",
        "repo:org/two:environment:rocm",
        "repo:org/three:environment:rocm",
    ]


def test_a_colon_in_an_environment_is_encoded() -> None:
    repositories = [FederatedRepository(repository="org/one")]
    assert expected_subjects(repositories, "a:b:c") == [
        "repo:org/one:environment:a%3Ab%3Ac"
    ]
    assert expected_subjects([], "rocm") == []


def test_policies_as_generated_allow_what_the_grants_say(made: Rehearsed) -> None:
    matrix = access_matrix(made.fleet, made.records)
    assert matrix.differences == []
    assert matrix.identities == {"aws": 2, "central": 1}
    assert matrix.not_cross_checked
    # Locally 3 levels of cache and of images, and copies of 3 registries; centrally
    # 3 levels of cache. Three verbs each; three classes in the cell, one outside.
    assert len(matrix.rows) == 3 * (9 + 3) * 3 + 3 * 3
    may = [(r.stack, r.runner_class, r.verb, r.store, r.scope, r.part)
           for r in matrix.rows if r.expected and r.runner_class != TESTER]  # fmt: skip
    assert may == [
        ("aws", "build", "read", "cache", "local", "trusted"),
        ("aws", "build", "read", "cache", "local", "release"),
        ("aws", "build", "write", "cache", "central", "trusted"),
        ("central", "linux.rocm.gpu.1", "write", "cache", "central", "trusted"),
    ]


def edited(key: str, edit: Callable[[dict[str, Any]], object]) -> Any:
    """Return an edit of a policy's text in some inputs."""

    def apply(inputs: dict[str, Any]) -> None:
        document = json.loads(inputs[key])
        edit(document)
        inputs[key] = json.dumps(document)

    return apply


def statement(document: dict[str, Any], sid: str) -> dict[str, Any]:
    (found,) = [s for s in document["Statement"] if s["Sid"] == sid]
    return found


def differences(made: Rehearsed) -> list[str]:
    matrix = access_matrix(made.fleet, made.records)
    return [item.describe() for item in matrix.differences]


def in_policy(name: str, edit: Callable[[dict[str, Any]], object]) -> Any:
    def apply(record: Record) -> Record:
        return change(
            record, ROLE_POLICY, edited("policy", edit), f"aws-identity-{name}-policy"
        )

    return apply


def test_a_widened_resource_is_named_row_by_row(made: Rehearsed) -> None:
    def widen(document: dict[str, Any]) -> None:
        found = statement(document, "ReadCacheLocal")
        bucket = found["Resource"][0].split("/")[0]
        found["Resource"] = [f"{bucket}/*"]

    row_, stray = differences(made.changed(in_policy("build", widen)))
    assert row_ == (
        "aws build (builder) may not read cache local [untrusted-pr]: policies allow "
        "full"
    )
    bucket = made.record.outputs["stores"]["cache"]["bucket_id"]
    assert stray.lower() == f"aws build beyond its grants: s3:getobject on {bucket}/*"


def test_a_lost_action_is_a_difference_too(made: Rehearsed) -> None:
    def narrow(document: dict[str, Any]) -> None:
        for sid in ("WriteCacheCentral", "KeyCentral"):
            document["Statement"].remove(statement(document, sid))

    assert differences(made.changed(in_policy("build", narrow))) == [
        "aws build (builder) may write cache central [trusted]: policies allow none"
    ]


def test_an_action_beyond_the_verbs_is_named(made: Rehearsed) -> None:
    def widen(document: dict[str, Any]) -> None:
        statement(document, "WriteCacheCentral")["Action"].append("s3:DeleteObject")

    # The permissions boundary holds it, so nothing can be deleted ...
    held = made.changed(in_policy("build", widen))
    assert differences(held) == []

    # ... until the boundary is gone.
    def unbound(record: Record) -> Record:
        return change(
            record,
            ROLE,
            lambda inputs: inputs.pop("permissionsBoundary"),
            "aws-identity-build-role",
        )

    (found,) = differences(held.changed(unbound))
    bucket = made.records["central"].outputs["stores"]["cache"]["bucket_id"]
    assert found == (
        f"aws build beyond its grants: s3:DeleteObject on {bucket}/trusted/ (beyond)"
    )


def test_a_permission_elsewhere_is_a_stray(made: Rehearsed) -> None:
    def stray(record: Record) -> Record:
        record = change(
            record,
            ROLE,
            lambda inputs: inputs.pop("permissionsBoundary"),
            "aws-identity-build-role",
        )
        more = {
            "Sid": "Stray",
            "Effect": "Allow",
            "Action": ["sqs:SendMessage"],
            "Resource": ["arn:aws:sqs:us-east-1:111122223333:queue"],
        }
        return in_policy("build", lambda d: d["Statement"].append(more))(record)

    (found,) = differences(made.changed(stray))
    assert found.lower() == (
        "aws build beyond its grants: sqs:sendmessage on "
        "arn:aws:sqs:us-east-1:111122223333:queue"
    )


def test_an_association_of_a_class_without_grants(made: Rehearsed) -> None:
    """Pods of another class with the role: held by the trust policy, else named."""

    def moved(record: Record) -> Record:
        return change(
            record,
            "aws:eks/podIdentityAssociation:PodIdentityAssociation",
            lambda inputs: inputs.update(namespace="j-wide--aws"),
            "aws-identity-build-association",
        )

    lost = [
        "aws build (builder) may read cache local [trusted]: policies allow none",
        "aws build (builder) may read cache local [release]: policies allow none",
        "aws build (builder) may write cache central [trusted]: policies allow none",
    ]
    held = made.changed(moved)
    assert differences(held) == lost

    def opened(document: dict[str, Any]) -> None:
        wanted = document["Statement"][0]["Condition"]["StringEquals"]
        del wanted["aws:RequestTag/kubernetes-namespace"]

    wide = held.changed(
        lambda record: change(
            record, ROLE, edited("assumeRolePolicy", opened), "aws-identity-build-role"
        )
    )
    assert differences(wide) == [
        *(text.replace("build (builder) may", "wide (tester) may not")
          .replace("allow none", "allow full") for text in lost),
        *lost,
    ]  # fmt: skip


def test_a_federated_role_that_lets_strangers_in(made: Rehearsed) -> None:
    issuer = "token.actions.githubusercontent.com"

    def widen(document: dict[str, Any]) -> None:
        document["Statement"][0]["Condition"] = {
            "StringEquals": {f"{issuer}:aud": "sts.amazonaws.com"},
            "StringLike": {f"{issuer}:sub": "repo:demo-org/demo:*"},
        }

    central = change(
        made.records["central"],
        ROLE,
        edited("assumeRolePolicy", widen),
        "central-federated-linux.rocm.gpu.1-role",
    )
    matrix = access_matrix(made.fleet, {**made.records, "central": central})
    assert all(isinstance(item, Beyond) for item in matrix.differences)
    said = [item.describe() for item in matrix.differences]
    head = "central linux.rocm.gpu.1 beyond its grants: repo:"
    assert f"{head}demo-org/demo:pull_request may get the role" in said
    assert f"{head}demo-org/demo:ref:refs/heads/main may get the role" in said
    assert f"{head}demo-org/other:environment:rocm does not get the role" in said
    assert not any("demo-fork" in text for text in said)


def test_a_malformed_policy_is_reported_once(made: Rehearsed) -> None:
    def broken(inputs: dict[str, Any]) -> None:
        inputs["policy"] = "{"

    wrong = made.changed(
        lambda record: change(record, ROLE_POLICY, broken, "aws-identity-build-policy")
    )
    matrix = access_matrix(made.fleet, wrong.records)
    said = [i.what for i in matrix.beyond if i.stack == "-"]
    assert len(said) == 1
    assert said[0].startswith("a policy document is malformed: ")
    assert "aws-identity-build-policy" in said[0]


def test_only_the_stacks_that_are_asked_for(made: Rehearsed) -> None:
    for stack, classes in (
        ("aws", {TESTER, "wide", "build"}),
        ("central", {"linux.rocm.gpu.1"}),
    ):
        matrix = access_matrix(made.fleet, made.records, stacks=[stack])
        assert {row.stack for row in matrix.rows} == {stack}
        assert {row.runner_class for row in matrix.rows} == classes


def test_the_lock_says_where_the_classes_are(made: Rehearsed, tmp_path: Path) -> None:
    path = made.root / "fleet.yaml"
    with_lock = access_matrix(made.fleet, made.records, path)
    assert with_lock == access_matrix(made.fleet, made.records)
    shutil.copy(path, tmp_path / "fleet.yaml")
    text = (made.root / "placement.lock.yaml").read_text()
    line = next(t for t in text.splitlines() if t.startswith("fleet_sha256:"))
    old = text.replace(line, f"fleet_sha256: {'a' * 64}")
    (tmp_path / "placement.lock.yaml").write_text(old)
    with pytest.raises(LockError, match="the lock is older than the fleet file"):
        access_matrix(made.fleet, made.records, tmp_path / "fleet.yaml")


def row(name: str, allowed: str, expects: bool = True, role: str = "tester") -> Row:
    return Row("aws", name, role, "read", "cache", "local", "trusted", expects, allowed)


@pytest.mark.parametrize(
    ("expects", "allowed", "equal"),
    [
        (True, "full", True),
        (True, "partial", False),
        (True, "none", False),
        (True, "cannot-tell", False),
        (False, "none", True),
        (False, "partial", False),
        (False, "full", False),
        (False, "cannot-tell", False),
    ],
)
def test_equal_is_full_or_nothing(expects: bool, allowed: str, equal: bool) -> None:
    found = row("one", allowed, expects)
    assert found.equal is equal
    assert Matrix((found,)).differences == ([] if equal else [found])


def test_one_line_per_role() -> None:
    rows = (
        row("one", "full"),
        row("two", "full"),
        replace(row("two", "none", False), verb="write"),
        row("three", "none", False, role="builder"),
        row("four", "full", False, role="releaser"),
    )
    beyond = (Beyond("aws", "three", "s3:DeleteObject on a place (beyond)"),)
    assert by_role(Matrix(rows)) == [
        ("aws", "tester", 2, "read cache local", "yes"),
        ("aws", "builder", 1, "nothing", "yes"),
        ("aws", "releaser", 1, "read cache local", "NO"),
    ]
    assert by_role(Matrix(rows, beyond))[1] == ("aws", "builder", 1, "nothing", "NO")


def test_as_plain_data() -> None:
    wrong = row("one", "full", False)
    beyond = Beyond("aws", "one", "a thing")
    data = Matrix((wrong,), (beyond,), {"aws": 1}, ("a rule",)).as_dict()
    assert data == {
        "rows": [
            {
                "stack": "aws",
                "runner_class": "one",
                "role": "tester",
                "verb": "read",
                "store": "cache",
                "scope": "local",
                "part": "trusted",
                "expected": False,
                "allowed": "full",
                "equal": False,
            }
        ],
        "beyond": [{"stack": "aws", "runner_class": "one", "what": "a thing"}],
        "identities": {"aws": 1},
        "differences": [
            "aws one (tester) may not read cache local [trusted]: policies allow full",
            "aws one beyond its grants: a thing",
        ],
        "not_cross_checked": ["a rule"],
    }
    json.dumps(data)


def test_records_are_read_stack_by_stack(made: Rehearsed) -> None:
    records = read_records(made.root / "out", made.fleet)
    assert list(records) == ["central", "aws"]
    assert records == made.records


def test_a_missing_record_names_its_command(made: Rehearsed, tmp_path: Path) -> None:
    shutil.copytree(made.root / "out" / "central", tmp_path / "central")
    with pytest.raises(MissingError) as caught:
        read_records(tmp_path, made.fleet)
    assert str(caught.value) == (
        f"there is no record of stack aws ({tmp_path}/aws/record.json)\n"
        "  get it with: runfleet rehearse aws"
    )
    assert caught.value.exit_code == 3
