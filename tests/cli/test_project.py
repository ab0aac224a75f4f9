"""rehearse, access, doctor and pins in a project folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.conftest import ROOT, Cli
from runfleet.catalogue import refresh


@pytest.fixture(autouse=True)
def in_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def test_an_unknown_stack_names_the_nearest(cli: Cli) -> None:
    outcome = cli("rehearse", "aws-ue3")
    assert outcome.code == 2
    assert "did you mean aws-ue2?" in outcome.err


def test_outside_a_project(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = cli("rehearse")
    assert outcome.code == 2
    assert "Pulumi.yaml" in outcome.err


def test_access_without_records_names_the_command(cli: Cli, tmp_path: Path) -> None:
    outcome = cli("access", "--records", tmp_path)
    assert outcome.code == 3
    assert "there is no record of stack central" in outcome.err
    assert "get it with: runfleet rehearse central" in outcome.err


def test_an_unusable_folder_for_records(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    outcome = cli("rehearse", "central", "--out", file)
    assert outcome.code == 2
    assert f"{file}: --out: records cannot be written there" in outcome.err


def test_doctor_says_what_is_missing(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "GITHUB_TOKEN", "GITHUB_APP_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("PULUMI_HOME", raising=False)
    monkeypatch.delenv("PULUMI_BACKEND_URL", raising=False)
    outcome = cli("doctor", "--json")
    assert outcome.code == 3
    results = {r["name"]: r for r in json.loads(outcome.out)}
    missing = {name for name, r in results.items() if not r["ok"]}
    assert {"aws credentials", "Pulumi plugins", "state backend"} <= missing
    assert all(results[name]["remedy"] for name in missing)
    assert results["fleet file"]["ok"]
    assert results["placement lock"]["ok"]


def test_doctor_finds_what_is_there(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, answer in (("pulumi", "v3.272.0"), ("aws", ""), ("kubectl", "")):
        tool = tools / name
        tool.write_text(f"#!/bin/sh\necho {answer}\n")
        tool.chmod(0o755)
    for plugin in ("aws", "kubernetes", "github"):
        (tmp_path / ".pulumi" / "plugins" / f"resource-{plugin}-v1.0.0").mkdir(
            parents=True
        )
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tools}:/bin:/usr/bin")
    monkeypatch.delenv("PULUMI_HOME", raising=False)
    monkeypatch.setenv("PULUMI_BACKEND_URL", "s3://state")
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "x")
    monkeypatch.setenv("AWS_PROFILE", "p")
    monkeypatch.setenv("GITHUB_TOKEN", "t")
    outcome = cli("doctor", "--json")
    missing = {r["name"] for r in json.loads(outcome.out) if not r["ok"]}
    assert missing == {"pins resolved"}
    assert outcome.code == 3


def test_pins_are_listed(cli: Cli) -> None:
    outcome = cli("pins", "list", "--json")
    assert outcome.code == 0
    pins = json.loads(outcome.out)
    assert pins["eks-version"]["value"] == "1.35"
    table = cli("pins", "list")
    assert table.code == 0
    assert "karpenter-chart" in table.out


def test_pins_that_cannot_be_read_end_with_three(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    change = refresh.PinChange("x", "1", "1", "no answer")
    monkeypatch.setattr(refresh, "refresh_pins", lambda path: [change])
    outcome = cli("pins", "refresh", "--file", tmp_path / "pins.lock")
    assert outcome.code == 3
    assert outcome.out == "x: stays 1: no answer\n"
