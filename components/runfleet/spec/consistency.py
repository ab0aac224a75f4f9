"""Checks of a fleet against itself: references, overlaps, collisions, limits."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator

from runfleet.errors import Problem
from runfleet.spec import labels
from runfleet.spec.cells import Cell, Provider
from runfleet.spec.classes import PlacementMode, RunnerClass
from runfleet.spec.fleet import Fleet
from runfleet.spec.grammar import MAX_SCALE_SET_NAME
from runfleet.spec.pools import node_pool_name
from runfleet.spec.roles import STORE_SCOPES, Scope, matrix, parse_grant
from runfleet.spec.source import Path, Source, is_mapping, nearest


def consistency_problems(fleet: Fleet, source: Source) -> Iterator[Problem]:
    """Yield what cannot be built in a fleet whose parts are each well formed."""
    yield from _references(fleet, source)
    yield from _cells(fleet, source)
    yield from _networks(fleet, source)
    yield from _labels(fleet, source)
    yield from _pools(fleet, source)
    for runner_class in fleet.runner_classes.values():
        yield from _grants(runner_class, source)
        yield from _class(fleet, runner_class, source)
    for store in fleet.stores.values():
        for index, scope in enumerate(store.scopes or []):
            if scope not in STORE_SCOPES[store.kind]:
                yield source.problem(
                    ("stores", store.name, "scopes", index),
                    f"a {store.kind} store is never {scope}",
                    found=str(scope),
                    allowed=_listed(STORE_SCOPES[store.kind]),
                )
    if source.part(("central",)) is None and any(fleet.stores_in(Scope.CENTRAL)):
        yield source.problem(
            ("stores",), "has central stores, but the fleet says nothing of `central`"
        )


def _references(fleet: Fleet, source: Source) -> Iterator[Problem]:
    groups = fleet.github.runner_groups
    for cell in fleet.cells.values():
        for attribute in ("runner_group", "release_runner_group"):
            name = getattr(cell, attribute)
            if name is not None:
                path: Path = ("cells", cell.name, attribute)
                yield from _known(source, path, "runner group", name, groups)
        if cell.runner_pods.pool is not None:
            path = ("cells", cell.name, "runner_pods", "pool")
            yield from _known(source, path, "pool", cell.runner_pods.pool, fleet.pools)
    for pool in fleet.pools.values():
        for index, machine in enumerate(pool.machines):
            for place, name in enumerate(machine.reservations):
                path = ("pools", pool.name, "machines", index, "reservations", place)
                yield from _known(source, path, "reservation", name, fleet.reservations)
                reservation = fleet.reservations.get(name)
                if reservation is not None and reservation.machine != machine.machine:
                    yield source.problem(
                        path,
                        f"the reservation is of {reservation.machine}, "
                        f"not of {machine.machine}",
                        found=name,
                    )
    for name, runner_class in fleet.runner_classes.items():
        at = ("runner_classes", name)
        if runner_class.pool is not None:
            yield from _known(
                source, (*at, "pool"), "pool", runner_class.pool, fleet.pools
            )
        for index, cell_name in enumerate(runner_class.cells or []):
            path = (*at, "cells", index)
            yield from _known(source, path, "cell", cell_name, fleet.cells)
        if runner_class.tenant is not None:
            path = (*at, "tenant")
            yield from _known(
                source, path, "tenant", runner_class.tenant, fleet.tenants
            )
    for name, reservation in fleet.reservations.items():
        path = ("reservations", name, "cell")
        yield from _known(source, path, "cell", reservation.cell, fleet.cells)
    for tenant in fleet.tenants.values():
        for key in tenant.quota:
            path = ("tenants", tenant.name, "quota", key)
            if not key.startswith("accelerator/"):
                yield from _known(
                    source, path, "runner class", key, fleet.runner_classes
                )


_SECTION: dict[str, Path] = {
    "runner group": ("github", "runner_groups"),
    "runner class": ("runner_classes",),
    "pool": ("pools",),
    "cell": ("cells",),
    "tenant": ("tenants",),
    "reservation": ("reservations",),
}
"""Where the names of each kind stand in the file."""


def _known(
    source: Source, path: Path, what: str, name: str, choices: Iterable[str]
) -> Iterator[Problem]:
    """Yield a problem for a name that the file does not hold.

    A name whose own entry is malformed is known all the same.
    """
    written = source.part(_SECTION[what])
    known = list(written if is_mapping(written) else choices)
    if name not in known:
        yield source.problem(
            path,
            f"there is no {what} of this name",
            found=name,
            allowed=_listed(known),
            nearest=nearest(name, known),
        )


def _cells(fleet: Fleet, source: Source) -> Iterator[Problem]:
    clusters: dict[tuple[str, str, str], str] = {}
    for cell in fleet.cells.values():
        at: Path = ("cells", cell.name)
        if not f"{cell.name}-".startswith(f"{cell.provider}-"):
            yield source.problem(
                at,
                "a cell's name starts with its provider",
                found=cell.name,
                allowed=f"{cell.provider} or {cell.provider}-<name>",
            )
        if cell.provider is Provider.OWN:
            if cell.kubeconfig is None:
                yield source.problem((*at, "kubeconfig"), "is missing (own hardware)")
        else:
            yield from _cloud_cell(cell, source)
        pods = fleet.pools.get(cell.runner_pods.pool or "")
        if pods is not None and pods not in list(fleet.pools_in(cell)):
            yield source.problem(
                (*at, "runner_pods", "pool"),
                f"pool {pods.name} does not exist in cell {cell.name}",
                found=pods.name,
            )
        key = (str(cell.provider), cell.account, cell.cluster)
        if key in clusters:
            yield source.problem(
                (*at, "cluster"),
                f"is the cluster of cell {clusters[key]} too",
                found=cell.cluster,
            )
        clusters.setdefault(key, cell.name)
        if cell.api_access.mode == "tunnel" and cell.api_access.proxy is None:
            yield source.problem(
                (*at, "api_access", "proxy"), "is missing (mode tunnel)"
            )
        if cell.api_access.mode == "allow-list" and not cell.api_access.allow:
            yield source.problem(
                (*at, "api_access", "allow"), "is missing (mode allow-list)"
            )
        for index, allowed in enumerate(cell.api_access.allow):
            if ipaddress.ip_network(allowed).prefixlen == 0:
                yield source.problem(
                    (*at, "api_access", "allow", index),
                    "opens the API to everyone",
                    found=allowed,
                    allowed="ranges narrower than the whole internet",
                )


def _cloud_cell(cell: Cell, source: Source) -> Iterator[Problem]:
    at: Path = ("cells", cell.name)
    for attribute in ("account", "region", "network", "base_nodes"):
        if not getattr(cell, attribute):
            yield source.problem((*at, attribute), f"is missing ({cell.provider})")
    if not 2 <= len(cell.zones) <= 3:
        yield source.problem(
            (*at, "zones"),
            "a cell spreads over two or three zones",
            found=f"{len(cell.zones)} zones",
        )
    for index, zone in enumerate(cell.zones):
        if not zone.startswith(cell.region) and cell.provider is not Provider.AZURE:
            yield source.problem(
                (*at, "zones", index),
                f"is not in region {cell.region}",
                found=zone,
            )


def _networks(fleet: Fleet, source: Source) -> Iterator[Problem]:
    seen: list[tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, str]] = []
    for cell in fleet.cells.values():
        if cell.network is None:
            continue
        for attribute in ("cidr", "pods", "services"):
            value = getattr(cell.network, attribute)
            if value is None:
                continue
            network = ipaddress.ip_network(value)
            path: Path = ("cells", cell.name, "network", attribute)
            for other, owner in seen:
                if network.version == other.version and network.overlaps(other):
                    yield source.problem(
                        path,
                        f"overlaps {other} of {owner}",
                        found=value,
                        allowed="a range of its own",
                    )
            seen.append((network, f"cells.{cell.name}.network.{attribute}"))


def _labels(fleet: Fleet, source: Source) -> Iterator[Problem]:
    for key in fleet.labels:
        if key in labels.KEYS:
            yield source.problem(
                ("labels", key), "is set by Runfleet on every resource", found=key
            )
    owners: dict[str, str] = {}
    for name, runner_class in fleet.runner_classes.items():
        at: Path = ("runner_classes", name)
        try:
            labels.encode_value(name)
        except ValueError as error:
            yield source.problem(at, str(error), found=name)
        for index, alias in enumerate([name, *runner_class.aliases]):
            path = at if index == 0 else (*at, "aliases", index - 1)
            if alias in owners:
                yield source.problem(
                    path, f"the label is taken by {owners[alias]}", found=alias
                )
            owners.setdefault(alias, name)
    served: dict[str, str] = {}
    for cell in fleet.cells.values():
        for runner_class in fleet.classes_in(cell):
            label = cell.runner_label(runner_class.name)
            at = ("runner_classes", runner_class.name)
            other = served.setdefault(label, runner_class.name)
            if other != runner_class.name:
                yield source.problem(
                    at,
                    f"the label that it has in cell {cell.name} is that of {other}",
                    found=label,
                )
            if len(label) > MAX_SCALE_SET_NAME:
                yield source.problem(
                    at,
                    f"the scale-set name in cell {cell.name} has {len(label)} "
                    f"characters, the ARC chart allows {MAX_SCALE_SET_NAME}",
                    found=label,
                )
            if "." in label or "_" in label:
                yield source.problem(
                    at,
                    "a scale set's name holds no dots or underscores",
                    found=label,
                    allowed="lower-case letters, digits and -",
                )


def _pools(fleet: Fleet, source: Source) -> Iterator[Problem]:
    for pool in fleet.pools.values():
        seen: set[str] = set()
        for index, machine in enumerate(pool.machines):
            name = node_pool_name(pool, machine)
            if name in seen:
                yield source.problem(
                    ("pools", pool.name, "machines", index, "machine"),
                    "stands twice in the pool",
                    found=machine.machine,
                )
            seen.add(name)


def _grants(runner_class: RunnerClass, source: Source) -> Iterator[Problem]:
    if isinstance(runner_class.grants, str):
        return
    allowed = sorted(grant.text for grant in matrix(runner_class.role))
    for index, text in enumerate(runner_class.grants):
        if parse_grant(text, runner_class.role) is None:
            yield source.problem(
                ("runner_classes", runner_class.name, "grants", index),
                f"role {runner_class.role} has no such grant; "
                "grants narrow the role's matrix and never widen it",
                found=text,
                allowed="; ".join(allowed),
                nearest=nearest(text, allowed),
            )


def _class(
    fleet: Fleet, runner_class: RunnerClass, source: Source
) -> Iterator[Problem]:
    at: Path = ("runner_classes", runner_class.name)
    if (runner_class.role == "releaser") != runner_class.release:
        yield source.problem(
            (*at, "trust"),
            "role releaser and trust release go together",
            found=f"role {runner_class.role}, trust {runner_class.trust}",
        )
    if runner_class.placement is PlacementMode.EXTERNAL:
        if runner_class.pool is not None:
            yield source.problem((*at, "pool"), "an external class has no pool")
        listed = source.part(("github", "federation"))
        if runner_class.federation and not (fleet.github.federation or listed):
            yield source.problem(
                (*at, "federation"), "needs repositories under github.federation"
            )
        return
    pool = fleet.pools.get(runner_class.pool or "")
    if pool is None:
        return
    if pool.arch != runner_class.hardware.arch:
        yield source.problem(
            (*at, "pool"),
            f"pool {pool.name} is {pool.arch}, the class needs "
            f"{runner_class.hardware.arch}",
            found=pool.name,
        )
    if runner_class.gpus and not pool.gpu:
        yield source.problem(
            (*at, "pool"), f"pool {pool.name} has no GPUs", found=pool.name
        )
    if not runner_class.machines(pool):
        kind = "release" if runner_class.release else "other than release"
        yield source.problem(
            (*at, "pool"), f"pool {pool.name} has no machines {kind}", found=pool.name
        )
    for cell_name in runner_class.cells or []:
        cell = fleet.cells.get(cell_name)
        if cell is not None and runner_class not in list(fleet.classes_in(cell)):
            yield source.problem(
                (*at, "cells"),
                f"pool {pool.name} does not exist in cell {cell_name}",
                found=cell_name,
            )


def _listed(choices: Iterable[object]) -> str:
    return ", ".join(sorted(str(choice) for choice in choices)) or "none"
