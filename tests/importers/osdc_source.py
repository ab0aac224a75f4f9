"""Where the copy of OSDC's definitions is, and how tests read it by themselves."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from runfleet.importers.osdc import ImportResult, import_osdc
from runfleet.importers.write import fleet_text
from runfleet.spec import Fleet, build_fleet
from runfleet.spec.source import parse_source

DATA = Path(__file__).parents[1] / "data" / "osdc"
CLUSTERS = DATA / "clusters.yaml"
NODEPOOLS = DATA / "nodepools"
RUNNERS = DATA / "arc-runners"
ARC = DATA / "arc.yaml"
LOAD = DATA / "load-2026-03.csv"

LIES = {
    "l-arm64g3-16-62",
    "l-arm64g3-61-463",
    "l-arm64g4-16-62",
    "l-barm64g4-94-344",
    "l-bx86iavx512-94-344-t4-8",
    "l-x86aavx2-189-704-a10g-8",
    "l-x86aavx2-45-167-a10g-4",
    "l-x86aavx2-45-172-l4-4",
    "l-x86aavx512-125-463",
    "l-x86iamx-16-128",
    "l-x86iamx-46-84",
    "l-x86iavx512-16-128",
    "l-x86iavx512-45-172-t4-4",
    "l-x86iavx512-46-85",
    "l-x86iavx512-48-384",
    "l-x86iavx512-94-192",
    "l-x86iavx512-94-768",
}
"""The 17 labels that disagree with their own definition's vCPU or memory."""


def yaml(path: Path) -> Any:
    return YAML(typ="safe").load(path.read_text())


def definitions(folder: Path) -> dict[str, Any]:
    """Return the raw definitions of a folder by file name."""
    return {path.name: yaml(path) for path in sorted(folder.glob("*.yaml"))}


@cache
def imported() -> ImportResult:
    """Return the import of the two Linux Foundation clusters, made once."""
    return import_osdc(
        CLUSTERS, NODEPOOLS, RUNNERS, arc=ARC, load=LOAD, revision="b1ce4a6"
    )


def as_fleet(data: dict[str, Any]) -> Fleet:
    """Return fleet data as the checked model, by way of the file's text."""
    return build_fleet(parse_source("fleet.yaml", fleet_text(data))).fleet
