from __future__ import annotations

import pulumi
import pulumi_github as github

from runfleet.placement import plan_central
from runfleet.runners.registration import (
    Registration,
    RunnerGroups,
    RunnerGroupsArgs,
    registration,
)
from runfleet.spec.github import GitHub, RunnerGroup
from runfleet.spec.roles import Trust
from runners.cells import fleet_of, pins_of, record

GROUP = "github:index/actionsRunnerGroup:ActionsRunnerGroup"


def test_groups_are_registered_with_exactly_these_inputs() -> None:
    found: list[RunnerGroups] = []

    def program() -> None:
        provider = github.Provider("github", owner="demo-org")
        plan = plan_central(fleet_of(), pins_of())
        found.append(
            RunnerGroups(
                "central-groups",
                RunnerGroupsArgs(plan),
                pulumi.ResourceOptions(provider=provider),
            )
        )

    cluster = record(program)
    made = {m.name: m.inputs for m in cluster.made if m.type == GROUP}
    workflow = "demo-org/demo/.github/workflows/release.yml@refs/heads/main"
    assert made == {
        "central-groups-ci": {
            "name": "ci",
            "visibility": "selected",
            "selectedRepositoryIds": [65600975],
            "allowsPublicRepositories": True,
            "restrictedToWorkflows": False,
            "selectedWorkflows": [],
        },
        "central-groups-release": {
            "name": "release",
            "visibility": "selected",
            "selectedRepositoryIds": [65600975],
            "allowsPublicRepositories": False,
            "restrictedToWorkflows": True,
            "selectedWorkflows": [workflow],
        },
        "central-groups-closed": {
            "name": "closed",
            "visibility": "selected",
            "selectedRepositoryIds": [65600975],
            "allowsPublicRepositories": False,
            "restrictedToWorkflows": True,
            "selectedWorkflows": [],
        },
    }
    assert found[0].unresolved == [
        "runner group ci: the numeric id of demo-org/other is not known; give it as "
        "repository_id under github.federation",
        "runner group closed: no workflow may use it until one is listed",
    ]


def test_a_workflow_without_ref_is_left_out_and_reported() -> None:
    group = RunnerGroup(
        name="g",
        workflows=["o/r/.github/workflows/a.yml", "o/r/.github/workflows/b.yml@v1"],
        trust=Trust.RELEASE,
    )
    assert registration(group, GitHub(organization="o")) == Registration(
        name="g",
        repository_ids=(),
        public=False,
        workflows=("o/r/.github/workflows/b.yml@v1",),
        restricted=True,
        unresolved=(
            "runner group g: workflow o/r/.github/workflows/a.yml names no ref",
        ),
    )


def test_leaving_workflows_out_never_opens_a_group() -> None:
    group = RunnerGroup(name="g", workflows=["o/r/.github/workflows/a.yml"])
    assert registration(group, GitHub(organization="o")).restricted
