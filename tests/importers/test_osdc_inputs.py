"""The three node-pool formats, what is reported, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from importers.osdc_source import ARC, CLUSTERS, LOAD, NODEPOOLS, RUNNERS, imported
from runfleet.errors import InputError
from runfleet.importers.osdc import ImportResult, import_osdc
from runfleet.importers.report import Kind

CLUSTER = """\
defaults:
  base_node_count: 6
  base_node_instance_type: m7i.12xlarge
clusters:
  lf-prod-aws-ue1:
    region: us-east-1
    cluster_name: lf-prod-aws-ue1
    base: {vpc_cidr: 10.12.0.0/16, base_node_count: 4}
    arc-runners:
      github_config_url: https://github.com/pytorch
      runner_group: group
    modules: [arc-runners]
"""
FLEET = """\
fleet:
  name: c7i
  arch: amd64
  gpu: false
  instances:
    - type: c7i.12xlarge
      weight: 100
      node_disk_size: 500
"""
RUNNER = """\
runner:
  name: one
  instance_type: c7i.12xlarge
  disk_size: 100
  vcpu: 8
  memory: 16Gi
  gpu: 0
  max_burst_capacity: 5
"""


class Inputs:
    """A small set of definitions in a folder, changed by each test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.write("clusters.yaml", CLUSTER)
        self.write("nodepools/c7i.yaml", FLEET)
        self.write("runners/one.yaml", RUNNER)

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def load(self, **more: Any) -> ImportResult:
        more.setdefault("clusters_wanted", ["lf-prod-aws-ue1"])
        return import_osdc(
            self.folder / "clusters.yaml",
            self.folder / "nodepools",
            self.folder / "runners",
            **more,
        )

    def problems(self, **more: Any) -> list[str]:
        with pytest.raises(InputError) as caught:
            self.load(**more)
        assert caught.value.exit_code == 2
        prefix = f"{self.folder}/"
        return [str(p).removeprefix(prefix) for p in caught.value.problems]

    def notes(self, *kinds: Kind, **more: Any) -> list[str]:
        prefix = f"{self.folder}/"
        entries = self.load(**more).report
        return [str(e).removeprefix(prefix) for e in entries if e.kind in kinds]


@pytest.fixture
def inputs(tmp_path: Path) -> Inputs:
    return Inputs(tmp_path)


def test_the_cluster_wins_over_the_defaults(inputs: Inputs) -> None:
    cell = inputs.load().fleet["cells"]["aws"]
    assert cell["base_nodes"] == {"machine": "m7i.12xlarge", "count": 4}


def test_further_cells_are_named_by_the_end_of_the_id(inputs: Inputs) -> None:
    second = CLUSTER.partition("clusters:\n")[2].replace("-ue1", "-ue2")
    second = second.replace("10.12", "10.16").replace("us-east-1", "us-east-2")
    inputs.write("clusters.yaml", CLUSTER + second)
    wanted = ["lf-prod-aws-ue1", "lf-prod-aws-ue2"]
    cells = inputs.load(clusters_wanted=wanted).fleet["cells"]
    assert list(cells) == ["aws", "aws-ue2"]
    assert cells["aws-ue2"]["zones"] == ["us-east-2a", "us-east-2b", "us-east-2c"]
    assert inputs.notes(Kind.NOT_CARRIED, clusters_wanted=wanted[:1]) == [
        "clusters.yaml:13: clusters.lf-prod-aws-ue2: not-carried: not asked for"
    ]


def test_format_fleets(inputs: Inputs) -> None:
    inputs.write(
        "nodepools/more.yaml",
        """\
fleets:
  - name: g5
    arch: amd64
    gpu: true
    instances:
      - {type: g5.12xlarge, weight: 100, node_disk_size: 600, has_nvme: true}
  - name: r7a
    arch: amd64
    exclude_regions: [us-west-1]
    release:
      - {type: r7a.12xlarge, weight: 90, node_disk_size: 900}
""",
    )
    pools = inputs.load().fleet["pools"]
    assert list(pools) == ["c7i", "g5", "r7a"]
    assert pools["g5"] == {
        "provider": "aws",
        "arch": "amd64",
        "gpu": True,
        "machines": [
            {"machine": "g5.12xlarge", "weight": 100, "disk": "600GiB", "nvme": True}
        ],
    }
    assert pools["r7a"] == {
        "provider": "aws",
        "arch": "amd64",
        "exclude_regions": ["us-west-1"],
        "machines": [
            {
                "machine": "r7a.12xlarge",
                "weight": 90,
                "disk": "900GiB",
                "release": True,
            }
        ],
    }


def test_format_nodepool(inputs: Inputs) -> None:
    inputs.write(
        "nodepools/p6.yaml",
        """\
nodepool:
  name: p6-b200-48xlarge
  instance_type: p6-b200.48xlarge
  arch: amd64
  node_disk_size: 1000
  gpu: true
  has_nvme: true
  topology_manager_policy: single-numa-node
  topology_manager_scope: pod
  capacity_type: reserved
  baremetal: true
  user_data_script: scripts/b200-node-setup.sh
""",
    )
    pool = inputs.load().fleet["pools"]["p6-b200"]
    assert pool == {
        "provider": "aws",
        "arch": "amd64",
        "gpu": True,
        "machines": [
            {
                "machine": "p6-b200.48xlarge",
                "disk": "1000GiB",
                "nvme": True,
                "bare_metal": True,
                "capacity": "reserved",
                "topology_policy": "single-numa-node",
                "topology_scope": "pod",
            }
        ],
    }
    assert [
        note for note in inputs.notes(Kind.NOT_CARRIED) if note.startswith("nodepools")
    ] == [
        "nodepools/p6.yaml:12: nodepool.user_data_script (scripts/b200-node-setup.sh): "
        "not-carried: nodes are set up by their image and by daemon sets"
    ]


def test_two_nodepools_of_a_family_are_one_pool(inputs: Inputs) -> None:
    text = "nodepool: {{instance_type: r7g.{0}, node_disk_size: 100}}\n"
    inputs.write("nodepools/a.yaml", text.format("12xlarge"))
    inputs.write("nodepools/b.yaml", text.format("16xlarge"))
    pool = inputs.load().fleet["pools"]["r7g"]
    assert pool["arch"] == "arm64"  # from the family's name, as the generator does
    assert [m["machine"] for m in pool["machines"]] == ["r7g.12xlarge", "r7g.16xlarge"]


def test_unknown_keys_are_reported_with_their_lines(inputs: Inputs) -> None:
    inputs.write(
        "clusters.yaml",
        CLUSTER.replace("    modules: [arc-runners]", "    vpc_cdir: 10.0.0.0/8\n")
        + "    modules: [arc-runners, new-thing]\nextra: 1\n",
    )
    inputs.write("nodepools/c7i.yaml", FLEET + "      wieght: 3\n  color: red\n")
    inputs.write("runners/one.yaml", RUNNER + "  dsik_size: 7\nother: 1\n")
    unknown = "unknown: the importer does not know this key"
    cluster = "clusters.lf-prod-aws-ue1"
    assert inputs.notes(Kind.UNKNOWN) == [
        f"clusters.yaml:12: {cluster}.vpc_cdir (10.0.0.0/8): {unknown}; "
        "did you mean vpc_cidr?",
        f"clusters.yaml:14: {cluster}.modules[1] (new-thing): {unknown}",
        f"clusters.yaml:15: extra (1): {unknown}",
        f"nodepools/c7i.yaml:9: fleet.instances[0].wieght (3): {unknown}; "
        "did you mean weight?",
        f"nodepools/c7i.yaml:10: fleet.color (red): {unknown}",
        f"runners/one.yaml:9: runner.dsik_size (7): {unknown}; did you mean disk_size?",
        f"runners/one.yaml:10: other (1): {unknown}",
    ]


def test_the_real_source_holds_no_unknown_key() -> None:
    assert [e for e in imported().report if e.kind is Kind.UNKNOWN] == []


def test_what_the_real_source_holds_and_a_fleet_file_does_not() -> None:
    notes = {(e.path, e.line): e for e in imported().report}
    entry = next(e for (path, _), e in notes.items() if path.endswith("cloud_url"))
    assert (entry.kind, entry.line) == (Kind.NOT_CARRIED, 84)
    assert entry.path == "defaults.monitoring.grafana_cloud_url"
    assert entry.value.startswith("https://prometheus-prod-36")
    assert entry.why == "where telemetry goes is not part of a fleet file"
    skipped = [e.path for e in imported().report if e.why == "not asked for"]
    assert [path.removeprefix("clusters.meta-") for path in skipped] == [
        "staging-aws-uw1",
        "staging-aws-ue1",
        "staging-aws-ue2",
        "prod-aws-uw1",
        "prod-aws-ue1",
        "prod-aws-ue2",
    ]


def test_dangling_targets_are_reported_and_not_used() -> None:
    dangling = [e for e in imported().report if e.kind is Kind.DANGLING]
    assert [(e.path.removeprefix("runner_mapping."), e.value) for e in dangling] == [
        ("linux.g5.4xlarge.nvidia.gpu", "l-x86aavx2-11-41-a10g"),
        ("linux.g6.4xlarge.experimental.nvidia.gpu", "l-x86aavx2-11-41-l4"),
        ("linux.arm64.2xlarge", "l-arm64g2-6-32"),
        ("linux.arm64.2xlarge.ephemeral", "l-arm64g2-6-32"),
        # These three are classes of a module that the two clusters do not have.
        ("linux.aws.h100", "l-x86iamx-22-225-h100"),
        ("linux.aws.h100.4", "l-x86iamx-88-900-h100-4"),
        ("linux.aws.h100.8", "l-bx86iamx-176-1800-h100-8"),
    ]
    aliases = {
        alias
        for made in imported().fleet["runner_classes"].values()
        for alias in made.get("aliases", [])
    }
    assert "linux.arm64.2xlarge" not in aliases


def test_max_runners_by_cluster(inputs: Inputs) -> None:
    limits = "  max_runners: {default: 8, meta-prod-aws-uw1: 48}\n"
    inputs.write("runners/one.yaml", RUNNER + limits)
    result = inputs.load()
    assert result.fleet["runner_classes"]["one"]["scale"] == {"max": 8, "burst": 5}
    assert [e.why for e in result.report if e.path == "runner.max_runners"] == [
        "values for clusters that are not imported: meta-prod-aws-uw1"
    ]


def test_an_open_maximum_is_reported(inputs: Inputs) -> None:
    inputs.write("runners/one.yaml", RUNNER.replace("  max_burst_capacity: 5\n", ""))
    result = inputs.load()
    assert result.fleet["runner_classes"]["one"]["scale"] == {}
    assert [e.why for e in result.report if e.value == "one"] == [
        "the source gives no maximum and none could be derived: set scale.max"
    ]


def test_measured_load_of_several_labels_adds_up(inputs: Inputs) -> None:
    inputs.write("runners/one.yaml", RUNNER.replace("  max_burst_capacity: 5\n", ""))
    inputs.write("arc.yaml", "runner_mapping: {old.a: one, old.b: one, own: own}\n")
    inputs.write(
        "load.csv",
        "group,runner_label,jobs_30d,peak_concurrent\nx,old.a,10,7\nx,old.b,10,4\n",
    )
    folder = inputs.folder
    result = inputs.load(arc=folder / "arc.yaml", load=folder / "load.csv")
    made = result.fleet["runner_classes"]["one"]
    assert made["aliases"] == ["old.a", "old.b"]
    assert made["scale"] == {
        "max": 14,  # ceil(11 x 1.25)
        "derived": "measured peak of 11 jobs at once (old.a, old.b) times 1.25, "
        "rounded up",
    }


def test_imex_channels_become_the_environment(inputs: Inputs) -> None:
    inputs.write("runners/one.yaml", RUNNER + "  imex_channels: 0\n")
    made = inputs.load().fleet["runner_classes"]["one"]
    assert made["environment"] == {"NVIDIA_IMEX_CHANNELS": "0"}


def test_placeholders_are_capped(inputs: Inputs) -> None:
    inputs.write("runners/one.yaml", RUNNER + "  proactive_capacity: 9\n")
    made = inputs.load().fleet["runner_classes"]["one"]
    assert made["scale"]["warm"] == 9
    capped = CLUSTER.replace(
        "    region:", "    proactive_capacity_max: 2\n    region:"
    )
    inputs.write("clusters.yaml", capped)
    made = inputs.load().fleet["runner_classes"]["one"]
    assert made["scale"]["warm"] == 2


def test_a_cluster_without_runner_classes(inputs: Inputs) -> None:
    second = CLUSTER.partition("clusters:\n")[2].replace("-ue1", "-ue2")
    second = second.replace("10.12", "10.16").replace("[arc-runners]", "[karpenter]")
    inputs.write("clusters.yaml", CLUSTER + second)
    wanted = ["lf-prod-aws-ue1", "lf-prod-aws-ue2"]
    fleet = inputs.load(clusters_wanted=wanted).fleet
    assert fleet["runner_classes"]["one"]["cells"] == ["aws"]


def test_the_account_of_an_unknown_owner_is_asked_for(inputs: Inputs) -> None:
    inputs.write("clusters.yaml", CLUSTER.replace("  lf-prod", "  acme-prod"))
    wanted = ["acme-prod-aws-ue1"]
    assert inputs.problems(clusters_wanted=wanted) == [
        "clusters.yaml:5: clusters.acme-prod-aws-ue1: has no account, and its id does "
        "not tell it: give the account; found acme-prod-aws-ue1"
    ]
    cell = inputs.load(clusters_wanted=wanted, account="42").fleet["cells"]["aws"]
    assert (cell["account"], cell["funder"]) == ("42", "acme")


def test_missing_files_are_all_named(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        import_osdc(tmp_path / "c.yaml", tmp_path / "n", CLUSTERS, arc=tmp_path / "a")
    assert {(p.file, p.message) for p in caught.value.problems} == {
        (str(tmp_path / "c.yaml"), "there is no such file"),
        (str(tmp_path / "n"), "there is no such folder"),
        (str(CLUSTERS), "is a file, not a folder"),
        (str(tmp_path / "a"), "there is no such file"),
    }


def test_broken_yaml_has_its_line(inputs: Inputs) -> None:
    inputs.write("runners/two.yaml", "runner:\n  name: [\n")
    (problem,) = inputs.problems()
    assert problem.startswith("runners/two.yaml:3: (document): is not valid YAML")


def test_keys_that_stand_twice_are_refused(inputs: Inputs) -> None:
    inputs.write("runners/one.yaml", RUNNER + "  vcpu: 9\n")
    assert inputs.problems() == [
        "runners/one.yaml:9: runner.vcpu: stands twice (first on line 5); found vcpu"
    ]


@pytest.mark.parametrize(
    ("file", "old", "new", "problem"),
    [
        (
            "runners/one.yaml",
            "  vcpu: 8",
            "  node_fleet: c7l",
            "runners/one.yaml:5: runner.node_fleet: names no fleet; found c7l; "
            "allowed: c7i; did you mean c7i?",
        ),
        (
            "runners/one.yaml",
            "c7i.12xlarge",
            "m7i.12xlarge",
            "runners/one.yaml:3: runner.instance_type: its family m7i is no fleet; "
            "found m7i.12xlarge; allowed: c7i; did you mean c7i?",
        ),
        (
            "runners/one.yaml",
            "vcpu: 8",
            "vcpu: eight",
            "runners/one.yaml:5: runner.vcpu: is not a whole number; found eight",
        ),
        (
            "runners/one.yaml",
            "memory: 16Gi",
            "memory: 16",
            "runners/one.yaml:6: runner.memory: is not text; found 16",
        ),
        (
            "runners/one.yaml",
            "memory: 16Gi",
            "memory: lots",
            "runners/one.yaml:6: runner.memory: is not a quantity; found lots; "
            "allowed: a size with a unit, such as 64GiB",
        ),
        (
            "runners/one.yaml",
            "gpu: 0",
            "gpu: 0\n  runner_class: rel",
            "runners/one.yaml:8: runner.runner_class: is not known; found rel; "
            "allowed: release",
        ),
        (
            "runners/one.yaml",
            "gpu: 0",
            "gpu: 0\n  node_fleet: c7i-runner",
            "runners/one.yaml:8: runner.node_fleet: is reserved for runner pods; "
            "found c7i-runner",
        ),
        (
            "runners/one.yaml",
            "runner:",
            "rnner:",
            "runners/one.yaml:1: (document): is no runner definition: it has no key "
            "`runner`",
        ),
        (
            "runners/one.yaml",
            "  name: one",
            "  name: One",
            "runners/one.yaml:1: runner_classes.One: is not valid; found One; allowed: "
            "a runner label matching [a-z0-9]([._-]?[a-z0-9])*",
        ),
        (
            "nodepools/c7i.yaml",
            "fleet:",
            "flet:",
            "nodepools/c7i.yaml:1: (document): is no node-pool definition; found none "
            "of the three; allowed: one of fleet, fleets and nodepool",
        ),
        (
            "nodepools/c7i.yaml",
            "weight: 100",
            "weight: 101",
            "nodepools/c7i.yaml:1: pools.c7i.machines[0].weight: is not valid; found "
            "101; allowed: at most 100",
        ),
        (
            "nodepools/c7i.yaml",
            "c7i.12xlarge",
            "c7i.12xlage",
            "nodepools/c7i.yaml:1: pools.c7i.machines[0].machine: aws has no machine "
            "of this name in the catalogue; found c7i.12xlage; did you mean "
            "c7i.12xlarge?",
        ),
        (
            "clusters.yaml",
            "github.com/pytorch",
            "github.com/pytorch/pytorch",
            "clusters.yaml:10: clusters.lf-prod-aws-ue1.arc-runners.github_config_url: "
            "is not an organisation's address; found "
            "https://github.com/pytorch/pytorch; allowed: "
            "https://github.com/<organisation>",
        ),
        (
            "clusters.yaml",
            "10.12.0.0/16",
            "10.12.0.0/33",
            "clusters.yaml:5: cells.aws.network.cidr: is not valid; found "
            "10.12.0.0/33; allowed: an IP range such as 10.12.0.0/16 ('10.12.0.0/33' "
            "does not appear to be an IPv4 or IPv6 network)",
        ),
        (
            "clusters.yaml",
            "base_node_count: 4",
            "base_node_count: many",
            "clusters.yaml:8: clusters.lf-prod-aws-ue1.base.base_node_count: is not a "
            "whole number; found many",
        ),
    ],
)
def test_bad_definitions(
    inputs: Inputs, file: str, old: str, new: str, problem: str
) -> None:
    text = (inputs.folder / file).read_text()
    assert old in text
    inputs.write(file, text.replace(old, new, 1))
    assert problem in inputs.problems()


def test_all_problems_come_at_once(inputs: Inputs) -> None:
    inputs.write("clusters.yaml", CLUSTER.replace("    region: us-east-1\n", ""))
    inputs.write("nodepools/c7i.yaml", FLEET.replace("weight: 100", "weight: high"))
    inputs.write("runners/one.yaml", RUNNER.replace("gpu: 0", "gpu: -1"))
    assert [problem.split(": ")[1:3] for problem in inputs.problems()] == [
        ["clusters.lf-prod-aws-ue1.region", "is missing"],
        ["fleet.instances[0].weight", "is not a whole number; found high"],
        ["runner.gpu", "is below zero; found -1"],
    ]


def test_two_definitions_of_one_name(inputs: Inputs) -> None:
    inputs.write("runners/two.yaml", RUNNER)
    inputs.write("nodepools/two.yaml", FLEET)
    folder = inputs.folder
    assert inputs.problems() == [
        f"nodepools/two.yaml:2: fleet.name: is the fleet of "
        f"{folder}/nodepools/c7i.yaml:1 too; found c7i",
        f"runners/two.yaml:2: runner.name: is the class of {folder}/runners/one.yaml:1 "
        "too; found one",
    ]


def test_unknown_cluster(inputs: Inputs) -> None:
    assert inputs.problems(clusters_wanted=["lf-prod-aws-ue3"]) == [
        "clusters.yaml:4: clusters: has no cluster of this id; found lf-prod-aws-ue3; "
        "allowed: lf-prod-aws-ue1; did you mean lf-prod-aws-ue1?"
    ]


def test_bad_load_table(inputs: Inputs) -> None:
    inputs.write("load.csv", "group,runner_label,jobs_30d,peak_concurrent\nx,y,1,no\n")
    assert inputs.problems(load=inputs.folder / "load.csv") == [
        "load.csv:2: (document): is not a row of group, label, jobs and peak; found "
        "x,y,1,no"
    ]
    inputs.write("load.csv", "a,b\n")
    (problem,) = inputs.problems(load=inputs.folder / "load.csv")
    assert "does not start with the columns of a load table" in problem


def test_other_clusters_of_the_real_source() -> None:
    # Meta's us-west-1 cluster runs only modules whose definitions are not here.
    fleet = import_osdc(
        CLUSTERS,
        NODEPOOLS,
        RUNNERS,
        clusters_wanted=["meta-prod-aws-ue1"],
        arc=ARC,
        load=LOAD,
    ).fleet
    assert fleet["cells"]["aws"]["funder"] == "meta"
    assert fleet["cells"]["aws"]["base_nodes"] == {
        "machine": "m7i.12xlarge",
        "count": 6,
    }
    assert len(fleet["runner_classes"]) == 44
