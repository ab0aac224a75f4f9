"""Reading a fleet file: exact problems, all of them at once, each in its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from runfleet.errors import InputError, Problem
from runfleet.spec.fleet import Fleet
from runfleet.spec.load import build_fleet, load_fleet
from runfleet.spec.source import Source, parse_source
from spec.fleets import FULL, SMALL, changed, fleet_of, line_of, problems_of


def only(text: str) -> Problem:
    problems = problems_of(text)
    assert len(problems) == 1, [str(problem) for problem in problems]
    return problems[0]


def test_load_fleet_reads_a_file(tmp_path: Path) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_text(FULL, encoding="utf-8")
    loaded = load_fleet(file)
    assert loaded.fleet == fleet_of(FULL)
    assert loaded.source.file == str(file)
    assert loaded.fleet.cells["aws"].name == "aws"
    assert loaded.fleet.github.runner_groups["ci"].name == "ci"
    assert [c.name for c in loaded.fleet.external()] == ["linux.rocm.gpu.gfx942.1"]


@pytest.mark.parametrize("text", ["", "# nothing\n", "- a\n", "text", "5", "~"])
def test_not_a_mapping(text: str) -> None:
    problem = only(text)
    assert (problem.line, problem.path, problem.allowed) == (1, "", "a mapping")


@pytest.mark.parametrize(
    ("change", "at", "path", "message", "found", "allowed", "nearest"),
    [
        pytest.param(
            ("    label_prefix: lf-", "    lable_prefix: lf-"),
            "lable_prefix",
            "cells.aws.lable_prefix",
            "is not a known key",
            "lable_prefix",
            "account, account_number, admins, adopt_cluster, api_access, base_nodes, "
            "cluster, funder, kubeconfig, label_prefix, network, provider, region, "
            "release_runner_group, runner_group, runner_pods, settings, weight, zones",
            "label_prefix",
            id="unknown key",
        ),
        pytest.param(
            ("weight: 50, disk", "wieght: 50, disk"),
            "wieght",
            "pools.c7i.machines[1].wieght",
            "is not a known key",
            "wieght",
            "bare_metal, capacity, disk, image_selector, labels, machine, nvme, "
            "release, reservations, topology_policy, topology_scope, weight",
            "weight",
            id="unknown key in a list",
        ),
        pytest.param(
            ("version: 1\n", "version: 1\ncell: {}\n"),
            "cell: {}",
            "cell",
            "is not a known key",
            "cell",
            "budgets, cells, central, env, github, labels, owner, pools, project, "
            "reservations, runner_classes, stores, tenants, version",
            "cells",
            id="unknown section",
        ),
        pytest.param(
            ("    role: publisher", "    role: publsher"),
            "publsher",
            "runner_classes.linux.rocm.gpu.gfx942.1.role",
            "is not one of the allowed values",
            "publsher",
            "tester, builder, publisher, releaser",
            "publisher",
            id="unknown role",
        ),
        pytest.param(
            ("  telemetry: {}", "  telemtry: {}"),
            "telemtry",
            "stores.telemtry",
            "is not one of the allowed values",
            "telemtry",
            "cache, artifacts, shared, release, registry, telemetry",
            "telemetry",
            id="unknown store",
        ),
        pytest.param(
            ("capacity: spot", "capacity: spott"),
            "spott",
            "pools.c7i.machines[1].capacity",
            "is not one of the allowed values",
            "spott",
            "on-demand, spot, reserved, donated",
            "spot",
            id="unknown value",
        ),
        pytest.param(
            ("nat: per-zone", "nat: per zone"),
            "per zone",
            "cells.aws.network.nat",
            "is not one of the allowed values",
            "per zone",
            "per-zone, single",
            "per-zone",
            id="unknown literal",
        ),
        pytest.param(
            (
                '  aws:\n    provider: aws\n    account: "111122223333"\n',
                "  aws:\n    provider: aws\n    account: 0123\n",
            ),
            "account: 0123",
            "cells.aws.account",
            "is not valid",
            "0123",
            'text; put it in quotes: "0123"',
            "",
            id="account without quotes",
        ),
        pytest.param(
            ("team: Infra team", "team: 2026-01-31"),
            "2026-01-31,",
            "owner.contact.team",
            "is not valid",
            "2026-01-31",
            'text; put it in quotes: "2026-01-31"',
            "",
            id="date where text is expected",
        ),
        pytest.param(
            ("public: true", "public: yes"),
            "public: yes",
            "github.runner_groups.ci.public",
            "is not valid",
            "yes",
            "true or false",
            "",
            id="yes is no truth value",
        ),
        pytest.param(
            ("nvme: true", "nvme: 1"),
            "nvme: 1",
            "pools.p5.machines[0].nvme",
            "is not valid",
            "1",
            "true or false",
            "",
            id="one is no truth value",
        ),
        pytest.param(
            ("    share: 2", "    share: true"),
            "share: true",
            "tenants.vision.share",
            "is not valid",
            "true",
            "a whole number",
            "",
            id="true is no number",
        ),
        pytest.param(
            ("vcpu: 22", 'vcpu: "22"'),
            'vcpu: "22"',
            "runner_classes.l-x86iamx-22-225-h100.hardware.vcpu",
            "is not valid",
            "22",
            "a number",
            "",
            id="text is no number",
        ),
        pytest.param(
            ("memory: 225GiB", "memory: 225"),
            "memory: 225",
            "runner_classes.l-x86iamx-22-225-h100.hardware.memory",
            "is not valid",
            "225",
            "a size with a unit, such as 64GiB",
            "",
            id="size without unit",
        ),
        pytest.param(
            ("scale: 0..150", "scale: 150"),
            "scale: 150",
            "runner_classes.l-x86iavx512-16-128.scale",
            "is not valid",
            "150",
            "a range such as 0..150, or a mapping with min and max",
            "",
            id="scale without range",
        ),
        pytest.param(
            ("max: 40", "max: 0"),
            "max: 0",
            "runner_classes.l-x86iavx512-8-32.scale",
            "is not valid",
            "a mapping",
            "a `max` that is not below `min`",
            "",
            id="scale upside down",
        ),
        pytest.param(
            ("    start: 2026-01-01", "    start: 20260101"),
            "20260101",
            "reservations.h100-block.start",
            "is not valid",
            "20260101",
            "a day such as 2026-09-30",
            "",
            id="number where a day is expected",
        ),
        pytest.param(
            ("    end: 2026-12-31", "    end: 2025-12-31"),
            "  h100-block:",
            "reservations.h100-block",
            "is not valid",
            "a mapping",
            "an `end` that is not before `start`",
            "",
            id="end before start",
        ),
        pytest.param(
            ("cidr: 10.12.0.0/16", "cidr: 10.12.0.1/16"),
            "10.12.0.1/16",
            "cells.aws.network.cidr",
            "is not valid",
            "10.12.0.1/16",
            "an IP range such as 10.12.0.0/16 (10.12.0.1/16 has host bits set)",
            "",
            id="range with host bits",
        ),
        pytest.param(
            ("infra@example.org", "infra"),
            "to: infra,",
            "owner.contact.to",
            "is not valid",
            "infra",
            "an e-mail address, an https:// link or a #channel",
            "",
            id="contact that reaches nobody",
        ),
        pytest.param(
            ("project: demo\n", "project: Demo\n"),
            "project: Demo",
            "project",
            "is not valid",
            "Demo",
            "a label value legal on every cloud matching "
            "[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?",
            "",
            id="label value",
        ),
        pytest.param(
            ("cost-center: ci", "cost-center-: ci"),
            "cost-center-",
            "labels.cost-center-",
            "is not valid",
            "cost-center-",
            "a label key legal on every cloud matching "
            "[a-z]([a-z0-9_-]{0,29}[a-z0-9])?",
            "",
            id="label key",
        ),
        pytest.param(
            ("weight: 60", "weight: 101"),
            "weight: 101",
            "cells.aws.weight",
            "is not valid",
            "101",
            "at most 100",
            "",
            id="number over a limit",
        ),
        pytest.param(
            ("label_prefix: lf-", "label_prefix: LF"),
            "label_prefix",
            "cells.aws.label_prefix",
            "is not valid",
            "LF",
            "text matching ^([a-z0-9][a-z0-9-]*-)?$",
            "",
            id="prefix",
        ),
        pytest.param(
            ("      machine: p5.48xlarge\n    scale", "      machine: [p5]\n    scale"),
            "machine: [p5]",
            "runner_classes.l-x86iamx-22-225-h100.hardware.machine",
            "is not valid",
            "a list",
            "text",
            "",
            id="list where text is expected",
        ),
        pytest.param(
            ("version: 1\n", "version: 1.0\n"),
            "version",
            "version",
            "is not valid",
            "1.0",
            "1",
            "",
            id="version",
        ),
        pytest.param(
            ("version: 1\n", "version: 2\n"),
            "version",
            "version",
            "is not one of the allowed values",
            "2",
            "1",
            "",
            id="newer version",
        ),
        pytest.param(
            ("    monthly: 12000 USD\n", ""),
            "  foundation:",
            "budgets.foundation.monthly",
            "is missing",
            "",
            "",
            "",
            id="missing key",
        ),
        pytest.param(
            ("  shared: {}", "  shared:"),
            "  shared:",
            "stores.shared",
            "is not valid",
            "nothing",
            "a mapping",
            "",
            id="empty entry",
        ),
        pytest.param(
            ("count: 1, memory", "count: 1.5, memory"),
            "count: 1.5",
            "runner_classes.l-x86iamx-22-225-h100.hardware.accelerator.count",
            "is not valid",
            "1.5",
            "a whole number, or one below 1 for a share of a device",
            "",
            id="one and a half accelerators",
        ),
        pytest.param(
            ("{keep: 90d}", "{keep: 90d, name: artifacts}"),
            "keep: 90d",
            "stores.artifacts.name",
            "is not a known key: the name is the key that it stands under",
            "name",
            "",
            "",
            id="name inside an entry",
        ),
        pytest.param(
            ("public: true", "public: true, name: ci"),
            "name: ci",
            "github.runner_groups.ci.name",
            "is not a known key: the name is the key that it stands under",
            "name",
            "",
            "",
            id="name inside a runner group",
        ),
    ],
)
def test_one_problem_exactly(
    change: tuple[str, str],
    at: str,
    path: str,
    message: str,
    found: str,
    allowed: str,
    nearest: str,
) -> None:
    text = changed(change)
    line = line_of(at, text)
    expected = Problem("fleet.yaml", line, path, message, found, allowed, nearest)
    assert problems_of(text) == [expected]


@pytest.mark.parametrize(
    ("old", "new", "path", "allowed"),
    [
        (
            "  own-lab:",
            "  own-" + "l" * 20 + ":",
            "cells.own-" + "l" * 20,
            "a cell name of at most 20 characters (this has 24)",
        ),
        (
            "  n2:\n",
            "  " + "n" * 41 + ":\n",
            "pools." + "n" * 41,
            "a pool name of at most 40 characters (this has 41)",
        ),
        (
            "  l-x86iavx2-4-16:",
            "  " + "l" * 46 + ":",
            "runner_classes." + "l" * 46,
            "a runner label of at most 45 characters (this has 46)",
        ),
        (
            "aliases: [linux.4xlarge]",
            "aliases: [" + "l" * 46 + "]",
            "runner_classes.l-x86iavx512-16-128.aliases[0]",
            "a runner label of at most 45 characters (this has 46)",
        ),
        (
            "    cluster: lab\n",
            "    cluster: " + "l" * 41 + "\n",
            "cells.own-lab.cluster",
            "a cluster name of at most 40 characters (this has 41)",
        ),
    ],
)
def test_names_over_a_limit(old: str, new: str, path: str, allowed: str) -> None:
    text = changed((old, new))
    first = problems_of(text)
    assert (path, line_of(new.strip(), text), allowed) in [
        (problem.path, problem.line, problem.allowed) for problem in first
    ]


def test_empty_required_section_is_missing_and_empty_optional_is_none() -> None:
    text = "project: demo\nowner: {team: a}\ngithub: {organization: a}\n"
    problems = problems_of(f"{text}cells:\nrunner_classes:\n")
    assert [(p.line, p.path, p.message) for p in problems] == [
        (4, "cells", "is missing"),
        (5, "runner_classes", "is missing"),
    ]
    empty = "stores:\nbudgets:\ntenants:\nreservations:\nlabels:\npools:\n"
    fleet = fleet_of(f"{text}cells: {{}}\nrunner_classes: {{}}\n{empty}")
    assert (fleet.stores, fleet.labels) == ({}, {})


def test_all_problems_at_once_in_file_order() -> None:
    """A syntax, a model and a consistency problem do not hide each other."""
    text = changed(
        ("env: prod", "env: prod\nenv: test"),
        ("owner_id: 21003710", "owner_id: me"),
        ("cidr: 10.20.0.0/16", "cidr: 10.12.128.0/20"),
        ("    cluster: lab\n", "    cluster: Lab\n"),
        ("cache: {scopes: [local, central]", "cache: {scopes: [local, centrl]"),
        ("release: {scopes: [central]}", "release: {scopes: [local]}"),
        ("    pool: n2\n", "    pool: n3\n"),
        ("aliases: [linux.4xlarge]", "aliases: [l-x86iavx2-4-16]"),
        ("machine: p5.48xlarge\n    count", "machine: p4d.24xlarge\n    count"),
        ("monthly: 12000 USD", "monthly: 12000"),
    )
    found = [(p.line, p.path, p.message) for p in problems_of(text)]
    assert found == [
        (4, "env", "stands twice (first on line 3)"),
        (
            line_of("owner_id", text),
            "github.federation[0].owner_id",
            "is not valid",
        ),
        (
            line_of("10.12.128.0/20", text),
            "cells.gcp.network.cidr",
            "overlaps 10.12.0.0/16 of cells.aws.network.cidr",
        ),
        (line_of("cluster: Lab", text), "cells.own-lab.cluster", "is not valid"),
        (
            line_of("centrl", text),
            "stores.cache.scopes[1]",
            "is not one of the allowed values",
        ),
        (
            line_of("release: {scopes", text),
            "stores.release.scopes[0]",
            "a release store is never local",
        ),
        (
            line_of("reservations: [h100-block]", text),
            "pools.p5.machines[0].reservations[0]",
            "the reservation is of p4d.24xlarge, not of p5.48xlarge",
        ),
        (
            line_of("  l-x86iavx2-4-16:", text),
            "runner_classes.l-x86iavx2-4-16",
            "the label is taken by l-x86iavx512-16-128",
        ),
        (
            line_of("pool: n3", text),
            "runner_classes.l-x86iavx2-4-16.pool",
            "there is no pool of this name",
        ),
        (
            line_of("monthly: 12000", text),
            "budgets.foundation.monthly",
            "is not valid",
        ),
    ]


@pytest.mark.parametrize(
    "change",
    [
        ("organization: demo-org", "organization: 5"),
        ("  team: infra\n", "  team: [infra]\n"),
        ("  region: us-east-1\n  funder", "  regoin: us-east-1\n  funder"),
        ("    gpu: true\n", "    gpu: maybe\n"),
        ("    zones: [us-east-1a, us-east-1b]", "    zones: us-east-1a"),
        ("    provider: own", "    provider: mine"),
        ("- {repository: demo-org/demo, owner_id", "- {repository: demo, owner_id"),
        ("placement: external", "placement: elsewhere"),
        ("  h100-block:\n    id: cr-0123456789abcdef0\n", "  h100-block:\n"),
        ("    repositories: [demo-org/vision]", "    repositories: vision"),
        ("    provider: gcp\n    arch: amd64\n", "    provider: gcp\n"),
        ("network: {cidr: 10.20.0.0/16, pods: 10.24.0.0/14}", "network: {cidr: x}"),
        ("project: demo\n", "porject: demo\n"),
    ],
)
def test_a_malformed_part_causes_no_false_problems_elsewhere(
    change: tuple[str, str],
) -> None:
    """What refers to a malformed part is not blamed; a second fault is found."""
    text = changed(change, ("    tenant: vision", "    tenant: visoin"))
    problems = problems_of(text)
    second = [p for p in problems if p.path.endswith("l-x86iavx512-8-32.tenant")]
    assert [(p.message, p.nearest) for p in second] == [
        ("there is no tenant of this name", "vision")
    ]
    first = [p for p in problems if p not in second]
    kinds = {"is not valid", "is missing", "is not a known key"}
    assert first
    assert {p.message for p in first} <= kinds | {"is not one of the allowed values"}
    assert all(p.line > 0 for p in problems)


def test_further_checks_run_with_the_others() -> None:
    def check(fleet: Fleet, source: Source) -> list[Problem]:
        path = ("runner_classes", "l-x86iavx2-2-4", "hardware")
        return [source.problem(path, f"{len(fleet.pools)} pools is one too few")]

    text = changed(("pool: c7i", "pool: c8i"), document=SMALL)
    assert [problem.message for problem in problems_of(text, [check])] == [
        "1 pools is one too few",
        "there is no pool of this name",
    ]
    broken = changed(("project: demo", "project: 5"), document=SMALL)
    assert [problem.message for problem in problems_of(broken, [check])] == [
        "is not valid",
        "1 pools is one too few",
    ]


def test_error_names_everything_in_its_text() -> None:
    with pytest.raises(InputError) as caught:
        build_fleet(parse_source("fleet.yaml", changed(("nat: per-zone", "nat: one"))))
    line = line_of("nat: one", changed(("nat: per-zone", "nat: one")))
    assert str(caught.value) == (
        f"fleet.yaml:{line}: cells.aws.network.nat: is not one of the allowed values; "
        "found one; allowed: per-zone, single"
    )
