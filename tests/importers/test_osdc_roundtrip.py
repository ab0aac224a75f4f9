"""Import, export and import again give the same fleet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from importers.osdc_source import (
    LOAD,
    NODEPOOLS,
    RUNNERS,
    as_fleet,
    definitions,
    imported,
)
from runfleet.importers.osdc import import_osdc
from runfleet.importers.osdc_export import export_osdc


def write(folder: Path, files: dict[str, dict[str, Any]]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w") as stream:
            YAML().dump(content, stream)


def load(folder: Path, clusters: list[str], **more: Any) -> dict[str, Any]:
    return import_osdc(
        folder / "clusters.yaml",
        folder / "nodepools",
        folder / "arc-runners",
        clusters_wanted=clusters,
        **more,
    ).fleet


def test_the_real_fleet_comes_back(tmp_path: Path) -> None:
    fleet = imported().fleet
    write(tmp_path, export_osdc(as_fleet(fleet)))
    clusters = ["lf-prod-aws-ue1", "lf-prod-aws-ue2"]
    again = load(
        tmp_path,
        clusters,
        arc=tmp_path / "arc.yaml",
        load=LOAD,
        revision="b1ce4a6",
    )
    # Files come back under the name of the pool, so the order of pools may differ.
    assert again == fleet


def test_the_export_is_the_source_s_own_definitions() -> None:
    files = export_osdc(as_fleet(imported().fleet))
    for name, definition in definitions(NODEPOOLS).items():
        assert files[f"nodepools/{name}"] == definition
    for name, definition in definitions(RUNNERS).items():
        assert files[f"arc-runners/{name}"] == definition


names = st.from_regex(r"[a-z][a-z0-9]{0,6}(-[a-z0-9]{1,4}){0,2}", fullmatch=True)
cpu_machines = st.sampled_from(["c7i.12xlarge", "m7i.16xlarge", "c7a.48xlarge"])
gpu_machines = st.sampled_from(["g5.48xlarge", "g5.24xlarge"])


@st.composite
def machine(draw: st.DrawFn, kind: st.SearchStrategy[str]) -> dict[str, Any]:
    made: dict[str, Any] = {
        "type": draw(kind),
        "weight": draw(st.integers(1, 100)),
        "node_disk_size": draw(st.integers(1, 9000)),
    }
    for key in ("has_nvme", "baremetal"):
        if draw(st.booleans()):
            made[key] = draw(st.booleans())
    if draw(st.booleans()):
        made["capacity_type"] = draw(st.sampled_from(["on-demand", "reserved"]))
    if draw(st.booleans()):
        policies = ["none", "best-effort", "restricted", "single-numa-node"]
        made["topology_manager_policy"] = draw(st.sampled_from(policies))
        made["topology_manager_scope"] = draw(st.sampled_from(["container", "pod"]))
    if draw(st.booleans()):
        made["extra_labels"] = {"team": draw(names)}
    if draw(st.booleans()):
        made["ami_selector_tags"] = {"image": draw(names)}
    return made


def shapes(
    kind: st.SearchStrategy[dict[str, Any]], most: int
) -> st.SearchStrategy[list[dict[str, Any]]]:
    return st.lists(
        kind, min_size=1, max_size=most, unique_by=lambda made: made["type"]
    )


@st.composite
def fleets(draw: st.DrawFn) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for name in draw(st.lists(names, min_size=1, max_size=4, unique=True)):
        gpu = draw(st.booleans())
        kind = machine(gpu_machines if gpu else cpu_machines)
        fleet: dict[str, Any] = {"name": name, "arch": "amd64", "gpu": gpu}
        fleet["instances"] = draw(shapes(kind, 3))
        if draw(st.booleans()):
            fleet["release"] = draw(shapes(kind, 2))
        if draw(st.booleans()):
            fleet["exclude_regions"] = ["us-west-1"]
        made.append(fleet)
    return made


@st.composite
def runners(draw: st.DrawFn, pools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for name in draw(st.lists(names, max_size=4, unique=True)):
        pool = draw(st.sampled_from(pools))
        release = "release" in pool and draw(st.booleans())
        machines = pool["release" if release else "instances"]
        gpus = draw(st.integers(1, 4)) if pool["gpu"] else 0
        runner: dict[str, Any] = {
            "name": name,
            "instance_type": draw(st.sampled_from(machines))["type"],
            "node_fleet": pool["name"],
            "disk_size": draw(st.integers(1, 900)),
            "vcpu": draw(st.integers(1, 48)),
            "memory": f"{draw(st.integers(1, 96))}Gi",
            "gpu": gpus,
        }
        if draw(st.booleans()):
            runner["max_burst_capacity"] = draw(st.integers(0, 2000))
            runner["hud_failure_base_capacity"] = draw(st.integers(0, 90))
            runner["proactive_capacity"] = draw(st.integers(0, 5))
        if draw(st.booleans()):
            runner["max_runners"] = draw(st.integers(0, 50))
        if draw(st.booleans()):
            runner["imex_channels"] = draw(st.integers(0, 9))
        if release:
            runner["runner_class"] = "release"
        made.append(runner)
    return made


@st.composite
def systems(draw: st.DrawFn) -> dict[str, dict[str, Any]]:
    pools = draw(fleets())
    cluster = {
        "region": "us-east-1",
        "cluster_name": draw(names),
        "access_config": {
            "cluster_admin_role_names": draw(st.lists(names, max_size=2))
        },
        "base": {
            "vpc_cidr": "10.12.0.0/16",
            "base_node_count": draw(st.integers(1, 9)),
            "base_node_instance_type": "m7i.4xlarge",
            "single_nat_gateway": draw(st.booleans()),
        },
        "arc-runners": {
            "github_config_url": "https://github.com/some-org",
            "runner_name_prefix": draw(st.sampled_from(["", "lf-", "c-mt-"])),
            "runner_group": draw(names),
        },
        "nodepools": {
            "cpu_consolidate_after": "5m",
            "gpu_consolidate_after": "10m",
            "baremetal_consolidate_after": "15m",
            "cpu_disruption_budget": "20%",
            "gpu_disruption_budget": "10%",
        },
        "modules": ["arc-runners", "nodepools"],
    }
    # OSDC's ids are the clusters' names; an export has nothing else to go by.
    files: dict[str, dict[str, Any]] = {
        "clusters.yaml": {"clusters": {cluster["cluster_name"]: cluster}}
    }
    for pool in pools:
        files[f"nodepools/{pool['name']}.yaml"] = {"fleet": pool}
    for runner in draw(runners(pools)):
        files[f"arc-runners/{runner['name']}.yaml"] = {"runner": runner}
    files.setdefault(
        "arc-runners/always.yaml",
        {
            "runner": {
                "name": "always-1",
                "instance_type": pools[0]["instances"][0]["type"],
                "node_fleet": pools[0]["name"],
                "disk_size": 1,
                "vcpu": 1,
                "memory": "1Gi",
                "gpu": 0,
            }
        },
    )
    return files


@given(files=systems())
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_fleet_comes_back(
    tmp_path_factory: Any, files: dict[str, dict[str, Any]]
) -> None:
    first, second = tmp_path_factory.mktemp("first"), tmp_path_factory.mktemp("second")
    write(first, files)
    clusters = list(files["clusters.yaml"]["clusters"])
    fleet = load(first, clusters, account="1")
    write(second, export_osdc(as_fleet(fleet)))
    again = load(second, clusters, account="1")
    for made in (fleet, again):  # the source names the file, which an export renames
        for runner_class in made["runner_classes"].values():
            del runner_class["source"]
    assert again == fleet
