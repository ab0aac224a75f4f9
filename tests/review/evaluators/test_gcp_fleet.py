"""The access matrix on Google Cloud: equal to the grants, and every trap shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from clouds.gcp import fleets
from review.evaluators.gcp_cases import (
    BASE,
    EMAIL,
    OBJECTS,
    POD,
    PROJECT,
    Made,
    account,
    acts,
    bound,
    made,
    member,
    reader,
    starts,
)
from runfleet.rehearsal.record import Record, ResourceRecord
from runfleet.review.access import expected, expected_subjects
from runfleet.review.evaluators.gcp_fleet import GcpReader
from runfleet.review.evaluators.parts import Answer, Part
from runfleet.spec.roles import Scope, StoreKind, Trust, Verb

PLACE = f"//storage.googleapis.com/{OBJECTS}"
PARTS = [
    Part(StoreKind.CACHE, Scope.LOCAL, trust, f"{PLACE}/{trust}/") for trust in Trust
]
GITHUB = fleets.fleet().github


@pytest.fixture(scope="module")
def records() -> tuple[Record, Record]:
    known = fleets.fleet()
    cell = fleets.cell_record(fleets.plan_of(known=known))
    return cell, fleets.central_record(fleets.central_of(known))


Changed = Sequence[ResourceRecord | Made]


def reading(
    cell: Record,
    central: Record,
    more: Changed = (),
    resources: Changed | None = None,
    central_resources: Changed | None = None,
) -> tuple[GcpReader, list[Part]]:
    """Return the evaluator over both records, and the parts of all stores."""
    own: Any = cell.resources if resources is None else resources
    theirs: Any = central.resources if central_resources is None else central_resources
    found = GcpReader(
        [((*own, *more), fleets.PROJECT), (theirs, fleets.CENTRAL_PROJECT)]
    )
    parts = found.parts(Scope.LOCAL, cell.outputs["stores"])
    return found, parts + found.parts(Scope.CENTRAL, central.outputs["stores"])


def differences(parts: list[Part], answer: Answer, planned: Any) -> list[str]:
    """Return in which rows the answer is not what the grants say."""
    wrong: list[str] = list(answer.strays)
    for part, access in zip(parts, answer.access, strict=True):
        for verb in Verb:
            may = expected(planned.grants, planned.runner_class.trust, part, verb)
            if access[str(verb)] != ("full" if may else "none"):
                wrong.append(f"{verb} {part.kind} {part.label}: {access[str(verb)]}")
        wrong += [f"beyond: {p}" for p in access["beyond"]]
        wrong += [f"unclear: {p}" for p in access["unclear"]]
    return wrong


def test_every_class_may_do_what_its_grants_say(
    records: tuple[Record, Record],
) -> None:
    found, parts = reading(*records)
    assert found.problems == ()
    assert len(parts) == 39
    plan = fleets.plan_of()
    assert len(plan.classes) == 9
    for planned in plan.classes:
        answer = found.pod(
            planned.job_namespace, planned.service_account, "demo-uc1", parts
        )
        assert differences(parts, answer, planned) == []
        assert len(answer.identities) == (1 if planned.grants else 0)
    rows = [row for row in answer.access if row["insert"] == "full"]
    assert rows


def test_nobody_else_in_the_cluster_may_do_anything(
    records: tuple[Record, Record],
) -> None:
    found, parts = reading(*records)
    for namespace, name in (("j-builds--gcp", "default"), ("default", "job")):
        answer = found.pod(namespace, name, "demo-uc1", parts)
        assert answer.identities == ()
        verbs = {row[str(v)] for row in answer.access for v in Verb}
        assert verbs == {"none"}


def test_external_classes(records: tuple[Record, Record]) -> None:
    found, parts = reading(*records)
    (donated,) = fleets.fleet().external()
    identity = records[1].outputs["federated"]["donated"]
    subjects = expected_subjects(GITHUB.federation, "ci:rocm")
    assert len(subjects) == 3
    answer = found.federated(identity, subjects, GITHUB, parts)
    assert answer.strays == ()
    assert answer.identities == (identity,)
    for part, access in zip(parts, answer.access, strict=True):
        for verb in Verb:
            may = part.scope is Scope.CENTRAL and expected(
                donated.granted(), donated.trust, part, verb
            )
            assert access[str(verb)] == ("full" if may else "none")


def test_a_pool_that_takes_any_repository_changes_nothing_alone(
    records: tuple[Record, Record],
) -> None:
    """The second door, exact subjects, is still shut: a stranger gets nothing."""
    cell, central = records
    opened = [
        replace(r, inputs={**r.inputs, "attributeCondition": "true"})
        if r.type.endswith(":WorkloadIdentityPoolProvider")
        else r
        for r in central.resources
    ]
    found, parts = reading(cell, central, central_resources=opened)
    identity = central.outputs["federated"]["donated"]
    subjects = expected_subjects(GITHUB.federation, "ci:rocm")
    assert found.federated(identity, subjects, GITHUB, parts).strays == ()


def test_both_doors_open_shows_who_gets_in(records: tuple[Record, Record]) -> None:
    cell, central = records
    identity = central.outputs["federated"]["donated"]
    name = f"projects/{fleets.CENTRAL_PROJECT}/serviceAccounts/{identity}"
    everybody = (
        f"principalSet://iam.googleapis.com/projects/{fleets.CENTRAL_NUMBER}/locations/"
        "global/workloadIdentityPools/github--demo/*"
    )
    more = made(
        "gcp:serviceaccount/iAMMember:IAMMember",
        "wide",
        serviceAccountId=name,
        role="roles/iam.workloadIdentityUser",
        member=everybody,
    )
    found, parts = reading(cell, central, [more])
    subjects = expected_subjects(GITHUB.federation, "ci:rocm")
    strays = found.federated(identity, subjects, GITHUB, parts).strays
    assert f"repo:demo-org/demo:pull_request may get {identity}" in strays
    # The fork is another repository, which the pool does not take.
    assert not [s for s in strays if "-fork:" in s]


def test_a_pool_that_takes_other_audiences_shows(
    records: tuple[Record, Record],
) -> None:
    cell, central = records
    opened = [
        replace(
            r,
            inputs={
                **r.inputs,
                "oidc": {**r.inputs["oidc"], "allowedAudiences": ["x"]},
            },
        )
        if r.type.endswith(":WorkloadIdentityPoolProvider")
        else r
        for r in central.resources
    ]
    found, parts = reading(cell, central, central_resources=opened)
    identity = central.outputs["federated"]["donated"]
    subjects = expected_subjects(GITHUB.federation, "ci:rocm")
    assert [
        s
        for s in found.federated(identity, subjects, GITHUB, parts).strays
        if ": x" in s
    ]


def test_a_wrong_project_number_takes_everything_away(
    records: tuple[Record, Record],
) -> None:
    cell, central = records
    wrong = [
        replace(
            r,
            inputs={
                **r.inputs,
                "member": r.inputs["member"].replace(fleets.NUMBER, "999999999999"),
            },
        )
        if r.name == "gcp-identity-builds-pods"
        else r
        for r in cell.resources
    ]
    found, parts = reading(cell, central, resources=wrong)
    answer = found.pod("j-builds--gcp", "job", "demo-uc1", parts)
    assert answer.identities == ()
    assert {row["write"] for row in answer.access} == {"none"}


def verbs(answer: Answer) -> list[tuple[str, str]]:
    return [(str(row["read"]), str(row["write"])) for row in answer.access]


@pytest.mark.parametrize(
    ("expression", "reads"),
    [
        (starts("trusted/"), ["none", "full", "none"]),
        (starts("trusted/part/"), ["none", "partial", "none"]),
        (starts("trust"), ["none", "full", "none"]),
        ("true", ["full"] * 3),
        (f"{starts('')} && !{starts('release/')}", ["full", "full", "none"]),
        ('resource.type == "storage.googleapis.com/Bucket"', ["none"] * 3),
        ('request.time < timestamp("2030-01-01T00:00:00Z")', ["cannot-tell"] * 3),
    ],
)
def test_how_much_of_a_part(expression: str, reads: list[str]) -> None:
    found = reader(acts(), member("b", **bound(expression=expression)))
    answer = found.pod("ci", "job", "gke", PARTS)
    assert [read for read, _ in verbs(answer)] == reads


def test_what_is_beyond_a_verb() -> None:
    found = reader(acts(), member("b", **bound(role="roles/storage.objectAdmin")))
    answer = found.pod("ci", "job", "gke", PARTS)
    assert "storage.objects.delete" in answer.access[0]["beyond"]
    assert "storage.objects.setIamPolicy" in answer.access[0]["beyond"]
    assert "storage.objects.get" not in answer.access[0]["beyond"]


def test_listing_without_reading_is_beyond() -> None:
    lister = made(
        "gcp:projects/iAMCustomRole:IAMCustomRole",
        "lister",
        roleId="lister",
        project=PROJECT,
        permissions=["storage.objects.list"],
    )
    role = f"projects/{PROJECT}/roles/lister"
    only = reader(lister, acts(), member("b", **bound(role=role)))
    (row, *_) = only.pod("ci", "job", "gke", PARTS).access
    assert row["beyond"] == ("storage.objects.list",)
    both = reader(
        lister,
        acts(),
        member("b", **bound(role=role)),
        member("c", **bound(expression=starts("trusted/"))),
    )
    assert {r["beyond"] for r in both.pod("ci", "job", "gke", PARTS).access} == {()}


def test_an_unknown_role_is_unclear() -> None:
    found = reader(acts(), member("b", **bound(role="roles/storage.new")))
    (row, *_) = found.pod("ci", "job", "gke", PARTS).access
    assert row["read"] == "cannot-tell"
    assert "storage.objects.delete" in row["unclear"]


def test_a_role_in_the_project_is_a_stray() -> None:
    found = reader(
        acts(),
        member(
            "p",
            "projects",
            project=PROJECT,
            role="roles/storage.admin",
            member=f"serviceAccount:{EMAIL}",
        ),
    )
    answer = found.pod("ci", "job", "gke", PARTS)
    assert f"roles/storage.admin on projects/{PROJECT}" in answer.strays
    assert verbs(answer) == [("full", "full")] * 3


def test_who_else_may_be_the_identity_is_a_stray() -> None:
    found = reader(acts(), acts("user:ann@example.org"))
    (stray,) = found.pod("ci", "job", "gke", PARTS).strays
    assert (
        stray == f"user:ann@example.org has roles/iam.workloadIdentityUser on {EMAIL}"
    )


def test_a_whole_namespace_bound_to_an_identity_lets_others_in() -> None:
    space = POD.replace("principal:", "principalSet:").partition("/subject")[0]
    found = reader(acts(f"{space}/namespace/ci"), member("b", **bound()))
    answer = found.pod("ci", "other", "gke", PARTS)
    assert answer.identities == (EMAIL,)
    assert verbs(answer)[0] == ("full", "none")


def test_two_clusters_of_a_project_share_the_identity() -> None:
    """The pool is one per project: the same namespace and account is the same pod."""
    twin = replace(BASE[0], inputs={**BASE[0].inputs, "name": "twin"})
    found = reader(twin, acts(), member("b", **bound()))
    assert found.pod("ci", "job", "twin", PARTS).identities == (EMAIL,)


def test_machines_whose_credentials_are_open() -> None:
    node = f"node@{PROJECT}.iam.gserviceaccount.com"
    opened = made(
        "gcp:container/nodePool:NodePool",
        "open",
        cluster="gke",
        nodeConfig={"serviceAccount": node},
    )
    found = reader(
        opened, account(node), member("b", **bound(member=f"serviceAccount:{node}"))
    )
    answer = found.pod("ci", "anybody", "gke", PARTS)
    assert "pods on open get the credentials of the machine" in answer.strays
    assert answer.identities == (node,)
    assert verbs(answer)[0] == ("full", "none")


def test_a_cluster_without_a_pool_gives_no_identities() -> None:
    bare = replace(BASE[0], inputs={"name": "gke"})
    found = reader(acts(), member("b", **bound()), base=(bare, *BASE[1:]))
    assert found.pod("ci", "job", "gke", PARTS).identities == ()


def test_a_public_bucket_shows() -> None:
    found = reader(member("b", **bound(member="allUsers")))
    answer = found.pod("ci", "nobody", "gke", PARTS)
    assert [read for read, _ in verbs(answer)] == ["full"] * 3


def test_stores_of_another_cloud_have_no_parts_here() -> None:
    exported = {
        "cache": {"bucket_id": "arn:aws:s3:::theirs", "extra": {}},
        "registry": {"repository_id": "arn:aws:ecr:us-east-1:1:repository/theirs"},
    }
    assert reader().parts(Scope.CENTRAL, exported) == []
