"""The PyTorch playbook: the import completed, without problems, lock current."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

from importers.osdc_source import LIES, LOAD, imported
from runfleet.catalogue.read import read_fleet
from runfleet.importers.osdc_load import read_load
from runfleet.placement.lock import make_lock, read_lock, write_lock
from runfleet.spec import FleetFile, PlacementMode, Waivers
from runfleet.spec.labels import encode_value
from runfleet.spec.source import read_source

PLAYBOOK = Path(__file__).parents[2] / "playbooks" / "pytorch"
EXTERNAL = {
    "linux.rocm.gpu.gfx950.1",
    "linux.rocm.gpu.gfx950.2",
    "linux.rocm.gpu.gfx950.4",
    "linux.rocm.gpu.mi350.dpx.1",
    "linux.rocm.gpu.mi350.dpx.2",
    "linux.rocm.gpu.mi350.dpx.4",
    "linux.rocm.gpu.gfx942.1",
    "linux.rocm.gpu.gfx942.4",
    "linux.rocm.gpu.mi250.1",
    "linux.rocm.gpu.mi210.1",
    "linux.rocm.gpu.mi210.2",
    "linux.rocm.gpu.rx7900.1",
    "linux.rocm.gpu.2",
    "linux.rocm.gpu.4",
    "linux.idc.xpu",
    "linux.client.xpu",
    "linux.s390x",
    "linux.google.tpuv7x.1",
    "linux.dgx.b200",
    "linux.dgx.b200.8",
    "linux.aws.h100",
    "linux.aws.h100.4",
    "linux.aws.h100.8",
    "windows.4xlarge",
    "windows.12xlarge",
    "windows.g4dn.xlarge",
    "windows-11-arm64-preview",
    "macos-m1-stable",
    "macos-m1-14",
    "macos-m2-15",
    "macos-m2-26",
}


@pytest.fixture(scope="module")
def file() -> FleetFile:
    return read_fleet(PLAYBOOK / "fleet.yaml")


def assert_holds(found: Any, wanted: Any, path: str = "fleet") -> None:
    """Assert that data holds other data: mappings may have more keys."""
    if isinstance(wanted, dict):
        assert isinstance(found, dict), path
        for key, value in wanted.items():
            assert key in found, f"{path}.{key}"
            assert_holds(found[key], value, f"{path}.{key}")
    else:
        assert found == wanted, path


def test_it_reads_without_a_problem(file: FleetFile) -> None:
    fleet = file.fleet
    assert (fleet.project, fleet.env) == ("pytorch", "prod")
    assert list(fleet.cells) == ["aws", "aws-ue2"]
    assert len(fleet.runner_classes) == 75
    assert len(fleet.pools) == 30
    assert sum(len(pool.machines) for pool in fleet.pools.values()) == 87
    for cell in fleet.cells.values():
        assert len(list(fleet.classes_in(cell))) == 44
        assert len(list(fleet.pools_in(cell))) == 30


def test_it_is_the_import_completed(file: FleetFile) -> None:
    wanted = imported().fleet
    assert_holds(file.source.data, wanted)
    assert file.source.data["pools"] == wanted["pools"]
    assert file.source.data["cells"] == wanted["cells"]
    for name, made in wanted["runner_classes"].items():
        added = set(file.source.data["runner_classes"][name]) - set(made)
        assert added == {"slo"}, name


def test_external_classes(file: FleetFile) -> None:
    external = {c.name: c for c in file.fleet.external()}
    assert set(external) == EXTERNAL
    for name, made in external.items():
        assert made.placement is PlacementMode.EXTERNAL
        assert made.contact is not None, name
        assert made.contact.to.startswith("https://"), name
        assert made.federation, name
        assert made.funder, name
        assert made.scale.max, name
        assert made.scale.derived, name
        assert made.slo is not None, name
        encode_value(name)


@pytest.mark.parametrize("name", sorted(EXTERNAL))
def test_external_maxima_are_measured_peaks(file: FleetFile, name: str) -> None:
    peaks = read_load(LOAD)
    made = file.fleet.runner_classes[name]
    measured = [peaks[label] for label in (name, *made.aliases) if label in peaks]
    stand_ins = {
        "linux.rocm.gpu.mi350.dpx.1": "linux.rocm.gpu.gfx950.1",
        "linux.rocm.gpu.mi350.dpx.2": "linux.rocm.gpu.gfx950.2",
        "linux.rocm.gpu.mi350.dpx.4": "linux.rocm.gpu.gfx950.4",
        "linux.rocm.gpu.mi210.1": "linux.rocm.gpu.mi210.1.test",
        "linux.rocm.gpu.mi210.2": "linux.rocm.gpu.mi210.2.test",
    }
    if not measured:
        stand_in = stand_ins[name]
        measured = [peaks[stand_in]]
        assert stand_in in (made.scale.derived or "")
    assert made.scale.max == sum(measured)


def test_service_levels(file: FleetFile) -> None:
    levels = {
        name: str(c.slo.queue) if c.slo else ""
        for name, c in file.fleet.runner_classes.items()
    }
    assert levels["l-x86iamx-8-16"] == "10m"
    assert levels["l-x86iavx512-29-115-t4"] == "30m"
    assert levels["linux.rocm.gpu.gfx950.1"] == "2h"
    assert set(levels.values()) == {"10m", "30m", "2h"}


def test_release_runners_are_pinned_to_workflows(file: FleetFile) -> None:
    groups = file.fleet.github.runner_groups
    release = [g for g in groups.values() if g.trust == "release"]
    assert [g.name for g in release] == [
        "lf-prod-aws-ue1-release-runners",
        "lf-prod-aws-ue2-release-runners",
    ]
    for group in release:
        assert len(group.workflows) == 2
        assert all("@refs/heads/" in workflow for workflow in group.workflows)
    assert {app.trust for app in file.fleet.github.apps.values()} == {
        "untrusted-pr",
        "release",
    }


def test_completed_parts(file: FleetFile) -> None:
    fleet = file.fleet
    assert fleet.central is not None
    assert (fleet.central.account, fleet.central.region) == (
        "391835788720",
        "us-east-1",
    )
    keep = {str(kind): str(s.keep) for kind, s in fleet.stores.items() if s.keep}
    assert keep == {"cache": "30d", "artifacts": "90d"}
    assert len(fleet.stores) == 6
    assert list(fleet.budgets) == ["linux-foundation"]
    assert fleet.owner.contact is not None


def test_seventeen_lies_are_waived_each_by_name() -> None:
    waivers = Waivers.model_validate(read_source(PLAYBOOK / "waivers.yaml").data)
    lies = [w for w in waivers.waivers if w.rule == "R-LABEL-02"]
    assert {w.resource for w in lies} == {f"runner_classes.{name}" for name in LIES}
    assert len(lies) == 17
    for waiver in waivers.waivers:
        assert waiver.owner == "pytorch-infra"
        assert waiver.expires == dt.date(2027, 5, 31)


def test_the_lock_is_current(file: FleetFile, tmp_path: Path) -> None:
    lock = read_lock(PLAYBOOK / "placement.lock.yaml", file.fleet)
    assert lock == make_lock(file.fleet)
    assert {u.runner_class for u in lock.unplaced} == EXTERNAL
    assert len(lock.placed) == 88
    written = tmp_path / "lock.yaml"
    write_lock(make_lock(file.fleet), written)
    committed = (PLAYBOOK / "placement.lock.yaml").read_text()
    assert written.read_text() == committed


def test_the_playbook_says_what_it_provides() -> None:
    data = read_source(PLAYBOOK / "playbook.yaml").data
    assert (data["name"], data["version"], data["model"]) == (
        "pytorch",
        "1.0.0",
        "central",
    )
    for name in data["provides"]:
        assert (PLAYBOOK / name).is_file(), name
    assert data["stacks"] == ["central", "aws", "aws-ue2"]
