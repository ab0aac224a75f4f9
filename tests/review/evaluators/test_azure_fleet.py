"""The whole matrix of a fleet on Azure: what is allowed is what is granted."""

from __future__ import annotations

import pytest

from clouds.azure import fleets
from runfleet.review.access import expected, expected_subjects
from runfleet.review.evaluators.azure_fleet import AzureReader
from runfleet.spec.roles import Scope, Verb


@pytest.mark.parametrize("cell", ["azure", "azure-gpu"])
@pytest.mark.parametrize("central", ["azure", "aws"])
def test_pods_may_do_what_their_class_is_granted(cell: str, central: str) -> None:
    fleet = fleets.fleet(central)
    record = fleets.cell_record(fleet, cell).record
    records = [(record.resources, fleets.SUBSCRIPTION)]
    parts_of_central = []
    if central == "azure":
        other = fleets.central_record(fleet).record
        records.append((other.resources, fleets.CENTRAL_SUBSCRIPTION))
        parts_of_central = AzureReader([]).parts(Scope.CENTRAL, other.outputs["stores"])
    reader = AzureReader(records)
    parts = reader.parts(Scope.LOCAL, record.outputs["stores"]) + parts_of_central
    assert reader.problems == ()
    assert len(parts) == (36 if central == "azure" else 15)
    for planned in fleets.cell_plan(fleet, cell).classes:
        answer = reader.pod(
            planned.job_namespace,
            planned.service_account,
            fleet.cells[cell].cluster,
            parts,
        )
        assert answer.strays == ()
        assert len(answer.identities) == (1 if planned.grants else 0)
        for part, access in zip(parts, answer.access, strict=True):
            found = {verb: access[str(verb)] for verb in Verb}
            trust = planned.runner_class.trust
            assert found == {
                verb: "full" if expected(planned.grants, trust, part, verb) else "none"
                for verb in Verb
            }, (planned.name, part)
            assert not access["beyond"]
            assert not access["unclear"]
            assert not access["without_tls"]


def test_jobs_elsewhere_may_do_what_their_class_is_granted() -> None:
    fleet = fleets.fleet()
    record = fleets.central_record(fleet).record
    reader = AzureReader([(record.resources, fleets.CENTRAL_SUBSCRIPTION)])
    parts = reader.parts(Scope.CENTRAL, record.outputs["stores"])
    donated = fleet.runner_classes["donated"]
    answer = reader.federated(
        record.outputs["federated"]["donated"],
        expected_subjects(fleet.github.federation, "ci:rocm"),
        fleet.github,
        parts,
    )
    assert answer.strays == ()
    may = {
        (str(verb), part.kind, part.trust)
        for part, access in zip(parts, answer.access, strict=True)
        for verb in Verb
        if access[str(verb)] != "none"
    }
    assert may == {
        (str(verb), part.kind, part.trust)
        for part in parts
        for verb in Verb
        if expected(donated.granted(), donated.trust, part, verb)
    }
    assert len(may) == 1
