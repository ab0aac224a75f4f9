"""OSDC, the incumbent of pytorch/ci-infra: its definitions become a fleet file.

Three inputs are read as they are: ``clusters.yaml``, the folder of node-pool
definitions and the folder of runner definitions; two more are welcome, ``arc.yaml``
for older labels and a table of measured load for maxima that the source leaves open.
The result is a fleet in the form of its file, checked as such, and a report of all
that was not carried over as it stands. Nothing is written here:
:func:`runfleet.importers.write.write_fleet` does that.

Source of the formats: pytorch/ci-infra at b1ce4a6 (2026-08-21), ``osdc/``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Any

from runfleet.catalogue.machines import Machines
from runfleet.catalogue.read import read_fleet_source
from runfleet.errors import InputError, Problem
from runfleet.importers.osdc_cells import (
    LF_CLUSTERS,
    RUNNER_CPU,
    RUNNER_MEMORY,
    Clusters,
    read_clusters,
)
from runfleet.importers.osdc_classes import (
    RUNNER_POOL,
    Classes,
    Context,
    read_classes,
)
from runfleet.importers.osdc_load import derive_maxima, read_aliases, read_load
from runfleet.importers.osdc_pools import Pools, read_pools
from runfleet.importers.report import Kind, Log, ReportEntry
from runfleet.spec.source import Path, Source, read_source

APP_SECRETS = {
    "jobs": ("github-app-jobs", "untrusted-pr"),
    "release": ("github-app-release", "release"),
}
"""GitHub Apps by name: secret in the cell's secret manager, and trust level."""


@dataclass(frozen=True)
class ImportResult:
    """What an import gives.

    Attributes:
        fleet: The fleet in the form of its file; it passes all checks.
        report: What was not carried over as it stands in the source, in file order.
    """

    fleet: dict[str, Any]
    report: tuple[ReportEntry, ...]


def import_osdc(
    clusters: str | FilePath,
    nodepools: str | FilePath,
    runners: str | FilePath,
    *,
    clusters_wanted: Sequence[str] = LF_CLUSTERS,
    arc: str | FilePath | None = None,
    load: str | FilePath | None = None,
    revision: str = "",
    account: str = "",
    machines: Machines | None = None,
) -> ImportResult:
    """Turn OSDC's definitions into a fleet.

    Args:
        clusters: ``osdc/clusters.yaml``.
        nodepools: Folder of node-pool definitions, one YAML file each.
        runners: Folder of runner definitions, one YAML file each.
        clusters_wanted: Ids of the clusters to import; the first becomes the cell
            ``aws``, further ones ``aws-<last part of the id>``.
        arc: ``.github/arc.yaml``, which maps older labels to classes.
        load: Table of measured load by label, for maxima that are left open.
        revision: Commit of the definitions, noted in each class's ``source``.
        account: AWS account of the clusters, which the source does not hold; it may
            be left out for those of the Linux Foundation and of Meta.
        machines: The table of machines; default: the package's own.

    Raises:
        InputError: The definitions have problems; all of them are in it.
    """
    log = Log()
    table = Machines.load() if machines is None else machines
    files = _Files(log)
    cluster_source = files.one(clusters)
    pool_sources = files.folder(nodepools)
    runner_sources = files.folder(runners)
    arc_source = files.one(arc) if arc is not None else None
    peaks = files.table(load) if load is not None else None
    if cluster_source is None or log.problems:
        raise InputError(log.problems)
    cells = read_clusters(cluster_source, clusters_wanted, account, log)
    pools = read_pools(pool_sources, cells.nodepools, log)
    context = Context(
        pools, list(cells.ids.values()), cells.warm_limit, revision, table, log
    )
    classes = read_classes(runner_sources, context)
    if log.problems:
        raise InputError(log.problems)
    aliases = read_aliases(arc_source, classes, log) if arc_source else {}
    derive_maxima(classes, aliases, peaks or {}, log)
    fleet = _fleet(cells, pools, classes, log)
    if not log.problems:
        log.problems += _checked(fleet, cells, pools, classes, table)
    if log.problems:
        raise InputError(log.problems)
    entries = sorted(log.entries, key=lambda entry: (entry.file, entry.line))
    return ImportResult(fleet, tuple(entries))


class _Files:
    """Reads the input files; what cannot be read is a problem of the import."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def one(self, path: str | FilePath) -> Source | None:
        try:
            source = read_source(path)
        except InputError as error:
            self._log.problems += error.problems
            return None
        self._log.problems += source.problems
        return source

    def folder(self, path: str | FilePath) -> list[Source]:
        folder = FilePath(path)
        if not folder.is_dir():
            message = (
                "is a file, not a folder"
                if folder.exists()
                else ("there is no such folder")
            )
            self._log.problems.append(Problem(str(path), 0, "", message))
            return []
        files = sorted(folder.glob("*.yaml"))
        if not files:
            problem = Problem(str(path), 0, "", "holds no definitions (*.yaml)")
            self._log.problems.append(problem)
        return [source for file in files if (source := self.one(file)) is not None]

    def table(self, path: str | FilePath) -> dict[str, int]:
        try:
            return read_load(FilePath(path))
        except InputError as error:
            self._log.problems += error.problems
            return {}


def _fleet(cells: Clusters, pools: Pools, classes: Classes, log: Log) -> dict[str, Any]:
    release = any(c["trust"] == "release" for c in classes.classes.values())
    groups: dict[str, dict[str, Any]] = {}
    for name, cell in cells.cells.items():
        if RUNNER_POOL in pools.pools:
            cell["runner_pods"] = {
                "pool": RUNNER_POOL,
                "cpu": RUNNER_CPU,
                "memory": RUNNER_MEMORY,
            }
        group = cell["runner_group"]
        groups[group] = {"trust": "untrusted-pr"}
        if release:
            cell["release_runner_group"] = f"{group}-release-runners"
            groups[cell["release_runner_group"]] = {"trust": "release"}
        source, path = cells.places[name]
        why = "repositories of the runner groups; the source keeps them in GitHub only"
        log.note(Kind.CHOSEN, source, (*path, "arc-runners"), why)
    _restrict(cells, pools, classes, log)
    apps = {
        name: {"secret": secret, "trust": trust}
        for name, (secret, trust) in APP_SECRETS.items()
        if release or trust != "release"
    }
    return {
        "version": 1,
        "project": cells.organization,
        "env": cells.env,
        "owner": {"team": f"{cells.organization}-infra"},
        "github": {
            "organization": cells.organization,
            "apps": apps,
            "runner_groups": groups,
        },
        "cells": cells.cells,
        "pools": pools.pools,
        "runner_classes": classes.classes,
    }


def _restrict(cells: Clusters, pools: Pools, classes: Classes, log: Log) -> None:
    """List a class's cells when not all cells run classes."""
    if len(cells.serving) == len(cells.cells):
        return
    for name, made in classes.classes.items():
        excluded = pools.pools[made["pool"]].get("exclude_regions", [])
        made["cells"] = [
            cell
            for cell in cells.serving
            if cells.cells[cell]["region"] not in excluded
        ]
        if not made["cells"]:
            source, path = classes.places[name]
            log.note(Kind.CHOSEN, source, path, "no imported cell serves it", name)


def _checked(
    fleet: dict[str, Any],
    cells: Clusters,
    pools: Pools,
    classes: Classes,
    machines: Machines,
) -> list[Problem]:
    """Check the result as a fleet file; problems name the file that they come from."""
    source = Source("the imported fleet", data=fleet)
    try:
        read_fleet_source(source, machines)
    except InputError as error:
        places: dict[str, tuple[Source, Path]] = {}
        for section, found in (
            ("cells", cells.places),
            ("pools", pools.places),
            ("runner_classes", classes.places),
        ):
            places |= {f"{section}.{name}": place for name, place in found.items()}
        return [_traced(problem, places) for problem in error.problems]
    return []


def _traced(problem: Problem, places: dict[str, tuple[Source, Path]]) -> Problem:
    found = [
        prefix
        for prefix in places
        if problem.path == prefix
        or problem.path.startswith((f"{prefix}.", f"{prefix}["))
    ]
    if not found:
        return replace(problem, line=0)
    source, path = places[max(found, key=len)]
    return replace(problem, file=source.file, line=source.line(path))
