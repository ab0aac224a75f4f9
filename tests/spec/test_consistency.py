"""Checks of a fleet against itself: exact problem, line and path of each."""

from __future__ import annotations

import pytest

from runfleet.errors import Problem
from runfleet.spec.roles import Scope
from spec.fleets import FULL, SMALL, changed, fleet_of, line_of, problems_of

Change = tuple[str, str]

LONG = "l-x86iavx512-16-128-with-a-very-long-ending"

ONE_PROBLEM = [
    pytest.param(
        [("release_runner_group: release", "release_runner_group: relase")],
        "relase",
        "cells.aws.release_runner_group",
        "there is no runner group of this name",
        ("relase", "ci, release", "release"),
        id="runner group",
    ),
    pytest.param(
        [("{pool: m8g, cpu", "{pool: m9g, cpu")],
        "m9g",
        "cells.aws.runner_pods.pool",
        "there is no pool of this name",
        ("m9g", "c7i, m8g, n2, p5", "m8g"),
        id="pool of runner pods",
    ),
    pytest.param(
        [("{pool: m8g, cpu", "{pool: n2, cpu")],
        "{pool: n2",
        "cells.aws.runner_pods.pool",
        "pool n2 does not exist in cell aws",
        ("n2", "", ""),
        id="pool of runner pods on another cloud",
    ),
    pytest.param(
        [("reservations: [h100-block]", "reservations: [h100-blok]")],
        "h100-blok]",
        "pools.p5.machines[0].reservations[0]",
        "there is no reservation of this name",
        ("h100-blok", "h100-block", "h100-block"),
        id="reservation",
    ),
    pytest.param(
        [("machine: p5.48xlarge\n    count", "machine: p5e.48xlarge\n    count")],
        "reservations: [h100-block]",
        "pools.p5.machines[0].reservations[0]",
        "the reservation is of p5e.48xlarge, not of p5.48xlarge",
        ("h100-block", "", ""),
        id="reservation of another machine",
    ),
    pytest.param(
        [("    cell: aws\n", "    cell: aws-ue2\n")],
        "cell: aws-ue2",
        "reservations.h100-block.cell",
        "there is no cell of this name",
        ("aws-ue2", "aws, gcp, own-lab", "aws"),
        id="cell of a reservation",
    ),
    pytest.param(
        [("    pool: n2\n", "    pool: n3\n")],
        "pool: n3",
        "runner_classes.l-x86iavx2-4-16.pool",
        "there is no pool of this name",
        ("n3", "c7i, m8g, n2, p5", ""),
        id="pool of a class",
    ),
    pytest.param(
        [("    cells: [aws]", "    cells: [aws, gpc]")],
        "cells: [aws, gpc]",
        "runner_classes.l-x86iavx512-8-32.cells[1]",
        "there is no cell of this name",
        ("gpc", "aws, gcp, own-lab", "gcp"),
        id="cell of a class",
    ),
    pytest.param(
        [("    tenant: vision", "    tenant: audio")],
        "tenant: audio",
        "runner_classes.l-x86iavx512-8-32.tenant",
        "there is no tenant of this name",
        ("audio", "vision", ""),
        id="tenant",
    ),
    pytest.param(
        [("quota: {l-x86iavx512-8-32: 10", "quota: {l-x86iavx512-8-23: 10")],
        "l-x86iavx512-8-23",
        "tenants.vision.quota.l-x86iavx512-8-23",
        "there is no runner class of this name",
        (
            "l-x86iavx512-8-23",
            "l-x86iamx-22-225-h100, l-x86iavx2-4-16, l-x86iavx512-16-128, "
            "l-x86iavx512-8-32, linux.rocm.gpu.gfx942.1, rel-l-x86iavx512-8-64",
            "l-x86iavx512-8-32",
        ),
        id="class of a quota",
    ),
    pytest.param(
        [("  own-lab:", "  lab:")],
        "  lab:",
        "cells.lab",
        "a cell's name starts with its provider",
        ("lab", "own or own-<name>", ""),
        id="cell name",
    ),
    pytest.param(
        [("  own-lab:", "  ownlab:")],
        "  ownlab:",
        "cells.ownlab",
        "a cell's name starts with its provider",
        ("ownlab", "own or own-<name>", ""),
        id="cell name without dash",
    ),
    pytest.param(
        [("    kubeconfig: lab/kubeconfig\n", "")],
        "  own-lab:",
        "cells.own-lab.kubeconfig",
        "is missing (own hardware)",
        ("", "", ""),
        id="kubeconfig",
    ),
    pytest.param(
        [("    region: us-central1\n", "")],
        "  gcp:",
        "cells.gcp.region",
        "is missing (gcp)",
        ("", "", ""),
        id="region",
    ),
    pytest.param(
        [("    base_nodes: {machine: n2-standard-8}\n", "")],
        "  gcp:",
        "cells.gcp.base_nodes",
        "is missing (gcp)",
        ("", "", ""),
        id="base nodes",
    ),
    pytest.param(
        [("zones: [us-central1-a, us-central1-b]", "zones: [us-central1-a]")],
        "zones: [us-central1-a]",
        "cells.gcp.zones",
        "a cell spreads over two or three zones",
        ("1 zones", "", ""),
        id="zones",
    ),
    pytest.param(
        [
            (
                "zones: [us-central1-a, us-central1-b]",
                "zones: [us-central1-a, us-east1-b]",
            )
        ],
        "us-east1-b",
        "cells.gcp.zones[1]",
        "is not in region us-central1",
        ("us-east1-b", "", ""),
        id="zone of another region",
    ),
    pytest.param(
        [("{mode: allow-list, allow: [192.0.2.0/24]}", "{mode: tunnel}")],
        "{mode: tunnel}",
        "cells.aws.api_access.proxy",
        "is missing (mode tunnel)",
        ("", "", ""),
        id="proxy",
    ),
    pytest.param(
        [("{mode: allow-list, allow: [192.0.2.0/24]}", "{mode: allow-list}")],
        "{mode: allow-list}",
        "cells.aws.api_access.allow",
        "is missing (mode allow-list)",
        ("", "", ""),
        id="allow list",
    ),
    pytest.param(
        [("allow: [192.0.2.0/24]", 'allow: [192.0.2.0/24, "::/0"]')],
        '"::/0"',
        "cells.aws.api_access.allow[1]",
        "opens the API to everyone",
        ("::/0", "ranges narrower than the whole internet", ""),
        id="open API",
    ),
    pytest.param(
        [("cidr: 10.20.0.0/16", "cidr: 10.12.64.0/20")],
        "10.12.64.0/20",
        "cells.gcp.network.cidr",
        "overlaps 10.12.0.0/16 of cells.aws.network.cidr",
        ("10.12.64.0/20", "a range of its own", ""),
        id="overlap of cells",
    ),
    pytest.param(
        [("services: 172.20.0.0/16", "services: 10.12.0.0/20")],
        "services: 10.12.0.0/20",
        "cells.aws.network.services",
        "overlaps 10.12.0.0/16 of cells.aws.network.cidr",
        ("10.12.0.0/20", "a range of its own", ""),
        id="overlap inside a cell",
    ),
    pytest.param(
        [("aliases: [linux.4xlarge]", "aliases: [linux.4xlarge, l-x86iavx512-8-32]")],
        "  l-x86iavx512-8-32:",
        "runner_classes.l-x86iavx512-8-32",
        "the label is taken by l-x86iavx512-16-128",
        ("l-x86iavx512-8-32", "", ""),
        id="alias is another class",
    ),
    pytest.param(
        [("aliases: [linux.4xlarge]", "aliases: [linux.4xlarge, linux.4xlarge]")],
        "aliases: [linux.4xlarge, linux.4xlarge]",
        "runner_classes.l-x86iavx512-16-128.aliases[1]",
        "the label is taken by l-x86iavx512-16-128",
        ("linux.4xlarge", "", ""),
        id="alias twice",
    ),
    pytest.param(
        [("  l-x86iavx2-4-16:", "  lf-l-x86iavx512-16-128:")],
        "  lf-l-x86iavx512-16-128:",
        "runner_classes.lf-l-x86iavx512-16-128",
        "the label that it has in cell gcp is that of l-x86iavx512-16-128",
        ("lf-l-x86iavx512-16-128", "", ""),
        id="same label with and without prefix",
    ),
    pytest.param(
        [("  l-x86iavx512-16-128:", f"  {LONG}:")],
        f"  {LONG}:",
        f"runner_classes.{LONG}",
        "the scale-set name in cell aws has 46 characters, the ARC chart allows 45",
        (f"lf-{LONG}", "", ""),
        id="scale-set name",
    ),
    pytest.param(
        [("  l-x86iavx512-16-128:", "  l-x86.avx512:")],
        "  l-x86.avx512:",
        "runner_classes.l-x86.avx512",
        "a scale set's name holds no dots or underscores",
        ("lf-l-x86.avx512", "lower-case letters, digits and -", ""),
        id="dots in a scale-set name",
    ),
    pytest.param(
        [("  linux.rocm.gpu.gfx942.1:", "  " + "l_" * 22 + "1:")],
        "l_l_",
        "runner_classes." + "l_" * 22 + "1",
        f"'{'l_' * 22}1' cannot be a label value "
        "(^[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?$, dots and underscores encoded)",
        ("l_" * 22 + "1", "", ""),
        id="label value over its limit",
    ),
    pytest.param(
        [("  cost-center: ci", "  ci_funder: ci")],
        "  ci_funder: ci",
        "labels.ci_funder",
        "is set by Runfleet on every resource",
        ("ci_funder", "", ""),
        id="reserved label",
    ),
    pytest.param(
        [("c7i.12xlarge, weight: 50", "c7i.24xlarge, weight: 50")],
        "c7i.24xlarge, weight: 50",
        "pools.c7i.machines[1].machine",
        "stands twice in the pool",
        ("c7i.24xlarge", "", ""),
        id="machine twice",
    ),
    pytest.param(
        [("grants: [read cache local, write", "grants: [read cache locl, write")],
        "locl",
        "runner_classes.l-x86iavx512-8-32.grants[0]",
        "role builder has no such grant; grants narrow the role's matrix and never "
        "widen it",
        (
            "read cache locl",
            "insert telemetry central; read artifacts local; read cache local; "
            "read registry local; write artifacts central; write artifacts local; "
            "write cache central; write cache local; write registry central; "
            "write registry local",
            "read cache local",
        ),
        id="grant misspelt",
    ),
    pytest.param(
        [("role: releaser\n    trust: release", "role: publisher\n    trust: release")],
        ("  rel-l-x86iavx512-8-64:", 2),
        "runner_classes.rel-l-x86iavx512-8-64.trust",
        "role releaser and trust release go together",
        ("role publisher, trust release", "", ""),
        id="release trust without role",
    ),
    pytest.param(
        [("    federation: rocm\n", "    federation: rocm\n    pool: c7i\n")],
        ("federation: rocm", 1),
        "runner_classes.linux.rocm.gpu.gfx942.1.pool",
        "an external class has no pool",
        ("", "", ""),
        id="external class with a pool",
    ),
    pytest.param(
        [
            (
                "  federation:\n    - {repository: demo-org/demo, owner_id: 21003710, "
                "repository_id: 65600975}\n",
                "",
            )
        ],
        "federation: rocm",
        "runner_classes.linux.rocm.gpu.gfx942.1.federation",
        "needs repositories under github.federation",
        ("", "", ""),
        id="federation",
    ),
    pytest.param(
        [("arch: amd64, vcpu: 4", "arch: arm64, vcpu: 4")],
        "pool: n2",
        "runner_classes.l-x86iavx2-4-16.pool",
        "pool n2 is amd64, the class needs arm64",
        ("n2", "", ""),
        id="architecture",
    ),
    pytest.param(
        [("    gpu: true\n", "")],
        "pool: p5",
        "runner_classes.l-x86iamx-22-225-h100.pool",
        "pool p5 has no GPUs",
        ("p5", "", ""),
        id="GPUs",
    ),
    pytest.param(
        [
            ("disk: 600GiB, release: true}", "disk: 300GiB, release: false}"),
            ("c7i.12xlarge, weight: 50", "c7i.8xlarge, weight: 50"),
        ],
        ("  rel-l-x86iavx512-8-64:", 6),
        "runner_classes.rel-l-x86iavx512-8-64.pool",
        "pool c7i has no machines release",
        ("c7i", "", ""),
        id="no release machines",
    ),
    pytest.param(
        [("    cells: [aws]", "    cells: [aws, gcp]")],
        "cells: [aws, gcp]",
        "runner_classes.l-x86iavx512-8-32.cells",
        "pool c7i does not exist in cell gcp",
        ("gcp", "", ""),
        id="pool in another cell",
    ),
    pytest.param(
        [("telemetry: {}", "telemetry: {scopes: [local, central]}")],
        "telemetry: {scopes",
        "stores.telemetry.scopes[0]",
        "a telemetry store is never local",
        ("local", "central", ""),
        id="store in a scope that it has not",
    ),
    pytest.param(
        [
            (
                'central:\n  provider: aws\n  account: "111122223333"\n'
                "  region: us-east-1\n  funder: foundation\n",
                "",
            )
        ],
        "stores:",
        "stores",
        "has central stores, but the fleet says nothing of `central`",
        ("", "", ""),
        id="central stores without central",
    ),
]


@pytest.mark.parametrize(("changes", "at", "path", "message", "hints"), ONE_PROBLEM)
def test_one_problem(
    changes: list[Change],
    at: str | tuple[str, int],
    path: str,
    message: str,
    hints: tuple[str, str, str],
) -> None:
    text = changed(*changes)
    problems = problems_of(text)
    found, allowed, nearest = hints
    anchor, below = (at, 0) if isinstance(at, str) else at
    line = line_of(anchor, text) + below
    assert problems == [
        Problem("fleet.yaml", line, path, message, found, allowed, nearest)
    ]


def test_two_cells_of_one_cluster() -> None:
    second = SMALL[SMALL.index("  aws:\n") : SMALL.index("pools:\n")]
    second = second.replace("  aws:", "  aws-two:").replace("10.12.", "10.13.")
    text = SMALL.replace("pools:\n", second + "pools:\n")
    assert [(p.path, p.message, p.found) for p in problems_of(text)] == [
        ("cells.aws-two.cluster", "is the cluster of cell aws too", "demo")
    ]
    fleet = fleet_of(text.replace("cluster: demo", "cluster: one", 1))
    assert list(fleet.cells) == ["aws", "aws-two"]


def test_classes_are_served_where_their_pool_exists() -> None:
    fleet = fleet_of(FULL)
    served = {
        name: [c.name for c in fleet.classes_in(cell)]
        for name, cell in fleet.cells.items()
    }
    assert served == {
        "aws": [
            "l-x86iavx512-16-128",
            "l-x86iavx512-8-32",
            "rel-l-x86iavx512-8-64",
            "l-x86iamx-22-225-h100",
        ],
        "gcp": ["l-x86iavx2-4-16"],
        "own-lab": [],
    }
    excluded = fleet_of(
        changed(("exclude_regions: [us-east-2]", "exclude_regions: [us-east-1]"))
    )
    names = [c.name for c in excluded.classes_in(excluded.cells["aws"])]
    assert "l-x86iamx-22-225-h100" not in names
    assert [p.name for p in excluded.pools_in(excluded.cells["aws"])] == ["c7i", "m8g"]


def test_stores_by_scope() -> None:
    fleet = fleet_of(FULL)
    local = [store.name for store in fleet.stores_in(Scope.LOCAL)]
    central = [store.name for store in fleet.stores_in(Scope.CENTRAL)]
    assert local == ["cache", "artifacts", "shared", "registry"]
    assert central == [
        "cache",
        "artifacts",
        "shared",
        "release",
        "registry",
        "telemetry",
    ]


def test_taints_are_tolerated_on_the_own_pool_only() -> None:
    fleet = fleet_of(FULL)
    for runner_class in fleet.runner_classes.values():
        if runner_class.pool is None:
            continue
        own = fleet.pools[runner_class.pool]
        tolerations = runner_class.tolerations(own)
        for pool in fleet.pools.values():
            for machine in pool.machines:
                taints = pool.taints(machine)
                tolerated = all(
                    any(taint.tolerated_by(t) for t in tolerations) for taint in taints
                )
                selected = (
                    runner_class.node_selector(own).items()
                    <= pool.node_labels(machine).items()
                )
                belongs = pool == own and machine.release == runner_class.release
                assert selected == belongs
                assert not selected or tolerated
                if pool != own:
                    assert not tolerated
