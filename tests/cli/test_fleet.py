"""check, schema, place and import: what a person sees, and the exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from cli.conftest import ROOT, Cli
from spec.fleets import SMALL

PYTORCH = ROOT / "playbooks" / "pytorch"
OSDC = ROOT / "tests" / "data" / "osdc"


def test_help_names_every_command(cli: Cli) -> None:
    outcome = cli("--help")
    assert outcome.code == 0
    for command in ("check", "schema", "place", "rehearse", "access", "doctor"):
        assert f"  {command} " in outcome.out


def test_version(cli: Cli) -> None:
    outcome = cli("--version")
    assert (outcome.code, outcome.out) == (0, "runfleet 0.1.0\n")


def test_unknown_command_is_bad_input(cli: Cli) -> None:
    outcome = cli("rehearze")
    assert outcome.code == 2
    assert "rehearze" in outcome.err


def test_the_pytorch_fleet_is_clean(cli: Cli) -> None:
    outcome = cli("check", PYTORCH / "fleet.yaml")
    assert outcome.code == 0
    assert outcome.out.endswith(
        "2 cells, 75 classes, 30 pools; no findings (17 waived)\n"
    )


def test_waived_findings_are_shown_on_request(cli: Cli) -> None:
    outcome = cli("check", PYTORCH / "fleet.yaml", "--waived")
    assert outcome.code == 0
    assert outcome.out.count("R-LABEL-02 (waived by pytorch-infra)") == 17
    line = 1 + PYTORCH.joinpath("fleet.yaml").read_text().splitlines().index(
        "  l-arm64g3-16-62:"
    )
    assert f"fleet.yaml:{line}: medium R-LABEL-02" in outcome.out or (
        f"fleet.yaml:{line}:" in outcome.out
    )


def test_all_errors_at_once_with_lines(cli: Cli, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(
        SMALL.replace("provider: aws", "provider: awz", 1) + "nonsense: 1\n"
    )
    outcome = cli("check", fleet)
    assert outcome.code == 2
    assert outcome.out == ""
    assert "did you mean aws?" in outcome.err
    assert "nonsense: is not a known key" in outcome.err
    assert all(line.startswith(f"{fleet}:") for line in outcome.err.splitlines())


def test_errors_as_json(cli: Cli, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text("project: 5\n")
    outcome = cli("check", fleet, "--json")
    assert outcome.code == 2
    errors = json.loads(outcome.out)["errors"]
    assert {"file", "line", "path", "message", "found", "allowed", "nearest"} == set(
        errors[0]
    )


def test_a_missing_file_is_bad_input(cli: Cli, tmp_path: Path) -> None:
    outcome = cli("check", tmp_path / "none.yaml")
    assert outcome.code == 2
    assert (
        outcome.err == f"{tmp_path / 'none.yaml'}: (document): there is no such file\n"
    )


def test_findings_end_with_one(cli: Cli, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.yaml"
    text = PYTORCH.joinpath("fleet.yaml").read_text()
    fleet.write_text(text)
    outcome = cli("check", fleet)
    assert outcome.code == 1
    assert "17 findings" in outcome.out
    found = cli("check", fleet, "--json")
    assert found.code == 1
    rules = {f["rule"] for f in json.loads(found.out)["findings"]}
    assert rules == {"R-LABEL-02"}


def test_schema_is_json_schema(cli: Cli) -> None:
    outcome = cli("schema")
    assert outcome.code == 0
    assert json.loads(outcome.out)["$schema"].endswith("2020-12/schema")


def test_place_shows_and_writes(cli: Cli, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(PYTORCH.joinpath("fleet.yaml").read_text())
    shown = cli("place", fleet)
    assert shown.code == 0
    assert not (tmp_path / "placement.lock.yaml").exists()
    assert "linux.s390x: not placed (external)" in shown.out
    written = cli("place", fleet, "--write")
    assert written.code == 0
    assert (tmp_path / "placement.lock.yaml").read_text() == PYTORCH.joinpath(
        "placement.lock.yaml"
    ).read_text()


def test_place_explains_one_class(cli: Cli) -> None:
    outcome = cli(
        "place", PYTORCH / "fleet.yaml", "--explain", "--class", "l-x86iamx-8-16"
    )
    assert outcome.code == 0
    assert "machine c7i.large, kind list, lost vcpu" in outcome.out
    report = cli("place", PYTORCH / "fleet.yaml", "--json", "--class", "l-x86iamx-8-16")
    (entry,) = json.loads(report.out)["classes"]
    assert [served["cell"] for served in entry["served"]] == ["aws", "aws-ue2"]


def test_an_unknown_place_names_the_choices(cli: Cli) -> None:
    outcome = cli("place", PYTORCH / "fleet.yaml", "--to", "awz")
    assert outcome.code == 2
    assert "did you mean aws?" in outcome.err


def test_routing(cli: Cli) -> None:
    outcome = cli("routing", PYTORCH / "fleet.yaml")
    assert outcome.code == 0
    mapping = YAML(typ="safe", pure=True).load(outcome.out)["runner_mapping"]
    assert mapping["linux.g5.12xlarge.nvidia.gpu"] == "l-x86aavx2-45-167-a10g-4"
    settings = cli("routing", PYTORCH / "fleet.yaml", "--determinator")
    assert settings.out.startswith("experiments:\n  lf:\n    rollout_perc: 100\n")


def test_import_osdc(cli: Cli, tmp_path: Path) -> None:
    target = tmp_path / "imported.yaml"
    outcome = cli(
        "import",
        "osdc",
        OSDC / "clusters.yaml",
        OSDC / "nodepools",
        OSDC / "arc-runners",
        "--output",
        target,
    )
    assert outcome.code == 0
    assert f"wrote {target}: 2 cells, 44 classes, 30 pools;" in outcome.out
    data = YAML(typ="safe", pure=True).load(target.read_text())
    assert set(data["cells"]) == {"aws", "aws-ue2"}
    assert len(data["runner_classes"]) == 44


def test_import_writes_nothing_on_bad_input(cli: Cli, tmp_path: Path) -> None:
    bad = tmp_path / "clusters.yaml"
    bad.write_text("clusters: [\n")
    target = tmp_path / "imported.yaml"
    outcome = cli(
        "import", "osdc", bad, OSDC / "nodepools", OSDC / "arc-runners", "-o", target
    )
    assert outcome.code == 2
    assert str(bad) in outcome.err
    assert not target.exists()


@pytest.mark.parametrize("arguments", [("check",), ("import", "osdc"), ("place",)])
def test_missing_arguments_are_bad_input(cli: Cli, arguments: tuple[str, ...]) -> None:
    assert cli(*arguments).code == 2
