"""IBM Cloud: what pods may do with the parts of stores, asked of records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from clouds.ibm.fleets import (
    ACCOUNT,
    cell_program,
    central_of,
    central_program,
    imported,
    plan_of,
    run,
)
from runfleet.placement.plan import CellPlan, PlannedClass
from runfleet.rehearsal.record import Record, ResourceRecord
from runfleet.review.access import expected
from runfleet.review.evaluators.ibm import IbmReader, place_of
from runfleet.review.evaluators.parts import Answer, Part
from runfleet.spec.github import GitHub
from runfleet.spec.roles import Scope, StoreKind, Trust, Verb

POLICY = "ibm:index/iamTrustedProfilePolicy:IamTrustedProfilePolicy"
LINK = "ibm:index/iamTrustedProfileLink:IamTrustedProfileLink"
RULE = "ibm:index/iamTrustedProfileClaimRule:IamTrustedProfileClaimRule"
BUCKET = "ibm:index/cosBucket:CosBucket"

Change = Callable[[ResourceRecord], ResourceRecord]


@pytest.fixture(scope="module")
def plan() -> CellPlan:
    return plan_of()


@pytest.fixture(scope="module")
def central() -> Record:
    return run(central_program(central_of()), "central")


@pytest.fixture(scope="module")
def cell(plan: CellPlan, central: Record) -> Record:
    return run(cell_program(plan, central=imported(central)))


def planned(plan: CellPlan, name: str) -> PlannedClass:
    return next(found for found in plan.classes if found.name == name)


def ask(
    plan: CellPlan,
    name: str,
    cell: Record,
    central: Record,
    change: Change = lambda resource: resource,
    more: tuple[ResourceRecord, ...] = (),
) -> tuple[list[Part], Answer]:
    """Ask what the job pods of a class may do, with some resources changed."""
    resources = (*(change(r) for r in cell.resources), *more)
    reader = IbmReader(
        [(resources, ACCOUNT), (tuple(map(change, central.resources)), ACCOUNT)]
    )
    parts = [
        *reader.parts(Scope.LOCAL, cell.outputs["stores"]),
        *reader.parts(Scope.CENTRAL, central.outputs["stores"]),
    ]
    found = planned(plan, name)
    answer = reader.pod(
        found.job_namespace, found.service_account, plan.cell.cluster, parts
    )
    return parts, answer


def change_of(type: str, where: str, inputs: dict[str, Any]) -> Change:
    """Return a change of the inputs of resources of a type whose name holds a text."""

    def change(resource: ResourceRecord) -> ResourceRecord:
        if resource.type != type or where not in resource.name:
            return resource
        return replace(resource, inputs={**resource.inputs, **inputs})

    return change


def of(
    parts: list[Part], answer: Answer, kind: StoreKind, scope: Scope, trust: Trust
) -> dict[str, Any]:
    (found,) = [
        dict(access)
        for part, access in zip(parts, answer.access, strict=True)
        if (part.kind, part.scope, part.trust, part.what) == (kind, scope, trust, "")
    ]
    return found


@pytest.mark.parametrize("name", ["small", "release", "gpu", "idle"])
def test_every_part_is_as_the_grants_say(
    plan: CellPlan, cell: Record, central: Record, name: str
) -> None:
    parts, answer = ask(plan, name, cell, central)
    found = planned(plan, name)
    assert len(parts) == 3 * (5 + 7)
    wrong = [
        (part.kind, part.scope, part.trust, part.what, verb, access[str(verb)])
        for part, access in zip(parts, answer.access, strict=True)
        for verb in Verb
        if (access[str(verb)] == "full")
        != expected(found.grants, found.runner_class.trust, part, verb)
        or access[str(verb)] in ("partial", "cannot-tell")
    ]
    assert wrong == []
    assert [a["beyond"] + a["unclear"] for a in answer.access] == [()] * len(parts)
    assert answer.strays == ()
    assert len(answer.identities) == (0 if name == "idle" else 1)


def test_no_two_classes_share_an_identity(
    plan: CellPlan, cell: Record, central: Record
) -> None:
    found = [ask(plan, n, cell, central)[1].identities for n in ("small", "gpu")]
    assert found[0] != found[1]


def test_another_service_account_of_the_namespace_gets_nothing(
    plan: CellPlan, cell: Record
) -> None:
    reader = IbmReader([(cell.resources, ACCOUNT)])
    parts = reader.parts(Scope.LOCAL, cell.outputs["stores"])
    namespace = planned(plan, "small").job_namespace
    for asked in ((namespace, "default"), ("default", "job")):
        answer = reader.pod(*asked, plan.cell.cluster, parts)
        assert answer.identities == ()
        assert {a["read"] for a in answer.access} == {"none"}


def test_a_link_without_a_service_account_is_for_any(
    plan: CellPlan, cell: Record
) -> None:
    namespace = planned(plan, "small").job_namespace

    def change(resource: ResourceRecord) -> ResourceRecord:
        if resource.type != LINK or "small" not in resource.name:
            return resource
        link = {**resource.inputs["link"]}
        del link["name"]
        return replace(resource, inputs={**resource.inputs, "link": link})

    reader = IbmReader([(tuple(map(change, cell.resources)), ACCOUNT)])
    parts = reader.parts(Scope.LOCAL, cell.outputs["stores"])
    answer = reader.pod(namespace, "default", plan.cell.cluster, parts)
    assert len(answer.identities) == 1
    assert any("any service account" in stray for stray in answer.strays)


def test_a_link_to_another_cluster_lets_nobody_in(
    plan: CellPlan, cell: Record, central: Record
) -> None:
    link = {
        "crn": "crn:v1:bluemix:public:containers-kubernetes:eu-de:a/x:other::",
        "namespace": planned(plan, "small").job_namespace,
        "name": "job",
    }
    _, answer = ask(
        plan, "small", cell, central, change_of(LINK, "small", {"link": link})
    )
    assert answer.identities == ()


@pytest.mark.parametrize(
    ("conditions", "lets_in"),
    [
        ([("namespace", "EQUALS", '"{}"'), ("name", "EQUALS", '"job"')], True),
        ([("namespace", "CONTAINS", '"j-"')], True),
        ([("namespace", "IN", '["a", "b"]')], False),
        ([("namespace", "NOT_EQUALS", '"kube-system"')], True),
        ([("pod", "EQUALS", '"x"')], True),
        ([("name", "EQUALS", '"Job"')], False),
        ([("name", "EQUALS_IGNORE_CASE", '"Job"')], True),
        ([("service_instance", "EQUALS", '"other"')], False),
    ],
)
def test_a_claim_rule_is_a_way_in_and_is_told(
    plan: CellPlan,
    cell: Record,
    central: Record,
    conditions: list[tuple[str, str, str]],
    lets_in: bool,
) -> None:
    namespace = planned(plan, "idle").job_namespace
    profile = next(r for r in cell.resources if r.name == "ibm-identity-small-profile")
    rule = ResourceRecord(
        urn="urn:rule",
        type=RULE,
        name="rule",
        inputs={
            "profileId": profile.outputs["profileId"],
            "type": "Profile-CR",
            "crType": "IKS_SA",
            "conditions": [
                {"claim": c, "operator": o, "value": v.replace("{}", namespace)}
                for c, o, v in conditions
            ],
        },
    )
    _, answer = ask(plan, "idle", cell, central, more=(rule,))
    assert bool(answer.identities) is lets_in
    assert bool(answer.strays) is lets_in


def test_a_policy_without_its_condition_reads_every_level(
    plan: CellPlan, cell: Record, central: Record
) -> None:
    change = change_of(POLICY, "gpu-read-cache-local", {"ruleConditions": None})
    parts, answer = ask(plan, "gpu", cell, central, change)
    # The lowest trust may read all levels anyway; what it should not is the rest.
    assert any("cache" in stray and "elsewhere" in stray for stray in answer.strays)
    change = change_of(POLICY, "small-read-cache-local", {"ruleConditions": None})
    parts, answer = ask(plan, "small", cell, central, change)
    access = of(parts, answer, StoreKind.CACHE, Scope.LOCAL, Trust.UNTRUSTED_PR)
    assert access["read"] == "full"


def test_a_narrower_path_shows_as_partial(
    plan: CellPlan, cell: Record, central: Record
) -> None:
    condition = {
        "key": "{{resource.attributes.path}}",
        "operator": "stringMatch",
        "values": ["trusted/team-a/*"],
    }
    change = change_of(
        POLICY, "small-write-cache-local", {"ruleConditions": [condition]}
    )
    parts, answer = ask(plan, "small", cell, central, change)
    access = of(parts, answer, StoreKind.CACHE, Scope.LOCAL, Trust.TRUSTED)
    assert access["write"] == "partial"


def test_the_services_own_writer_is_beyond_the_grants(
    plan: CellPlan, cell: Record, central: Record
) -> None:
    change = change_of(POLICY, "small-write-cache-local", {"roles": ["Writer"]})
    parts, answer = ask(plan, "small", cell, central, change)
    access = of(parts, answer, StoreKind.CACHE, Scope.LOCAL, Trust.TRUSTED)
    assert "cloud-object-storage.object.delete" in access["beyond"]
    change = change_of(POLICY, "small-write-registry-central", {"roles": ["Writer"]})
    parts, answer = ask(plan, "small", cell, central, change)
    (images,) = [
        access
        for part, access in zip(parts, answer.access, strict=True)
        if (part.kind, part.scope, part.trust)
        == (StoreKind.REGISTRY, Scope.CENTRAL, Trust.TRUSTED)
    ]
    assert images["read"] == "full"
    assert "container-registry.image.delete" in images["beyond"]


def test_a_policy_on_more_than_the_stores_is_a_stray(
    plan: CellPlan, cell: Record, central: Record
) -> None:
    for attributes, told in (
        ([{"name": "serviceName", "value": "kms"}], "serviceName=kms"),
        (
            [{"name": "serviceName", "value": "cloud-object-storage"}],
            "serviceName=cloud-object-storage",
        ),
        ([], "everything"),
    ):
        change = change_of(
            POLICY,
            "small-write-cache-local",
            {"resourceAttributes": attributes, "roles": ["Manager"]},
        )
        _, answer = ask(plan, "small", cell, central, change)
        assert any(f"Manager on {told}" in stray for stray in answer.strays)


def test_a_role_that_nobody_describes_cannot_be_told(
    plan: CellPlan, cell: Record, central: Record
) -> None:
    change = change_of(POLICY, "small-write-cache-local", {"roles": ["Librarian"]})
    parts, answer = ask(plan, "small", cell, central, change)
    access = of(parts, answer, StoreKind.CACHE, Scope.LOCAL, Trust.TRUSTED)
    assert access["write"] == "cannot-tell"
    assert access["unclear"]


def test_telemetry_that_can_be_replaced_is_written_and_not_inserted(
    plan: CellPlan, cell: Record, central: Record
) -> None:
    parts, answer = ask(plan, "gpu", cell, central)
    kept = of(parts, answer, StoreKind.TELEMETRY, Scope.CENTRAL, Trust.UNTRUSTED_PR)
    assert (kept["insert"], kept["write"], kept["read"]) == ("full", "none", "none")
    change = change_of(BUCKET, "telemetry", {"retentionRule": None})
    parts, answer = ask(plan, "gpu", cell, central, change)
    open_ = of(parts, answer, StoreKind.TELEMETRY, Scope.CENTRAL, Trust.UNTRUSTED_PR)
    assert (open_["insert"], open_["write"]) == ("none", "full")


def test_a_malformed_policy_is_a_problem(plan: CellPlan, cell: Record) -> None:
    change = change_of(POLICY, "small-write-cache-local", {"pattern": None})
    reader = IbmReader([(tuple(map(change, cell.resources)), ACCOUNT)])
    assert len(reader.problems) == 1
    assert "conditions need the pattern" in reader.problems[0]


def test_githubs_tokens_give_nothing(cell: Record) -> None:
    reader = IbmReader([(cell.resources, ACCOUNT)])
    parts = reader.parts(Scope.LOCAL, cell.outputs["stores"])
    profile = next(r for r in cell.resources if r.name.endswith("small-profile"))
    github = GitHub(organization="demo-org")
    answer = reader.federated(profile.id, ["repo:a/b:environment:c"], github, parts)
    assert answer.identities == ()
    assert {a[v] for a in answer.access for v in ("read", "write", "insert")} == {
        "none"
    }


def test_stores_of_another_cloud_have_no_parts() -> None:
    reader = IbmReader([])
    handle = {"bucket_id": "arn:aws:s3:::cache", "extra": {}}
    assert reader.parts(Scope.CENTRAL, {"cache": handle}) == []


def test_places_are_read_from_crns() -> None:
    bucket = (
        f"crn:v1:bluemix:public:cloud-object-storage:global:a/{ACCOUNT}:guid:bucket"
    )
    place = place_of(
        Part(StoreKind.CACHE, Scope.LOCAL, Trust.TRUSTED, f"{bucket}:name/trusted/")
    )
    assert (place.service, place.resource, place.prefix) == (
        "cloud-object-storage",
        "name",
        "trusted/",
    )
    assert place.attributes["serviceInstance"] == "guid"
    images = f"crn:v1:bluemix:public:container-registry:us-south:a/{ACCOUNT}::namespace"
    place = place_of(
        Part(StoreKind.REGISTRY, Scope.LOCAL, Trust.TRUSTED, f"{images}:n-trusted")
    )
    assert (place.resource, place.attributes["region"]) == ("n-trusted", "us-south")
