"""Writing a fleet file: readable, complete, and all or nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from importers.osdc_source import imported
from runfleet.errors import InputError
from runfleet.importers.write import fleet_text, write_fleet
from runfleet.spec.source import parse_source

DATA = {
    "version": 1,
    "owner": {"team": "t"},
    "cells": {
        "aws": {"account": "012345678901", "zones": ["a", "b"], "funder": "f"},
        "aws-2": {"account": "1", "zones": [], "funder": "f"},
    },
    "pools": {"p": {"machines": [{"machine": "m", "weight": 100}]}},
}


def test_the_text_is_what_people_would_write() -> None:
    assert fleet_text(DATA, "A test.") == (
        "# A test.\n"
        "version: 1\n"
        "\n"
        "# Who answers for the fleet.\n"
        "owner:\n"
        "  team: t\n"
        "\n"
        "# Cells: one cluster in one account and region each. The name is the "
        "stack's.\n"
        "cells:\n"
        "  aws:\n"
        '    account: "012345678901"\n'
        "    zones: [a, b]\n"
        "    funder: f\n"
        "\n"
        "  aws-2:\n"
        '    account: "1"\n'
        "    zones: []\n"
        "    funder: f\n"
        "\n"
        "# Pools: machines that serve the same classes; the highest weight is tried "
        "first.\n"
        "pools:\n"
        "  p:\n"
        "    machines:\n"
        "      - {machine: m, weight: 100}\n"
    )


def test_the_text_reads_back_as_the_same_data() -> None:
    assert parse_source("f", fleet_text(DATA)).data == DATA
    fleet = imported().fleet
    assert parse_source("f", fleet_text(fleet)).data == fleet


def test_the_data_is_left_alone() -> None:
    before = repr(DATA)
    fleet_text(DATA)
    assert repr(DATA) == before


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text("old")
    write_fleet(DATA, path)
    assert path.read_text() == fleet_text(DATA)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("name", "reason"),
    [("folder", "Is a directory"), ("missing/fleet.yaml", "No such file or directory")],
)
def test_nothing_is_left_behind_on_an_error(
    tmp_path: Path, name: str, reason: str
) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError) as caught:
        write_fleet(DATA, tmp_path / name)
    assert str(caught.value) == (
        f"{tmp_path / name}: (document): cannot be written: {reason}"
    )
    assert list(tmp_path.iterdir()) == [tmp_path / "folder"]


def test_an_old_file_survives_data_that_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text("old")
    with pytest.raises(Exception, match="cannot represent"):
        write_fleet({"version": object()}, path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
