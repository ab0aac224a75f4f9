"""OSDC's node-pool definitions become pools.

A definition comes in three formats: ``fleet:`` (machine sizes that share a name),
``fleets:`` (several of these) and the older ``nodepool:`` (one size). The rules are
those of ``osdc/modules/nodepools/scripts/python/generate_nodepools.py`` in
pytorch/ci-infra at b1ce4a6: the fleet's name becomes the label and taint
``node-fleet``; a ``nodepool:`` belongs to the fleet named after its instance family;
``release:`` machines carry the label ``osdc.io/runner-class: release``; bare-metal
machines have a longer time before they are given back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from runfleet.importers.osdc_keys import MACHINE_NOT_CARRIED
from runfleet.importers.report import Entry, Kind, Log
from runfleet.spec.source import Path, Source

RELEASE_LABEL = "osdc.io/runner-class"

_FLEET_KEYS = ("name", "arch", "gpu", "exclude_regions", "instances", "release")
_MACHINE_KEYS = (
    "type",
    "weight",
    "node_disk_size",
    "has_nvme",
    "baremetal",
    "capacity_type",
    "extra_labels",
    "topology_manager_policy",
    "topology_manager_scope",
    "ami_selector_tags",
)


@dataclass
class Pools:
    """The pools of a folder of definitions.

    Attributes:
        pools: Pools in fleet-file form, by name.
        places: Where each was defined.
    """

    pools: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    places: dict[str, tuple[Source, Path]] = field(
        default_factory=dict[str, tuple[Source, Path]]
    )


def read_pools(sources: list[Source], settings: Mapping[str, str], log: Log) -> Pools:
    """Read node-pool definitions.

    Args:
        sources: The files, in the order in which their pools are to stand.
        settings: The values under ``nodepools`` of ``clusters.yaml``.
        log: Takes the report and the problems.
    """
    found = Pools()
    for source in sources:
        top = Entry(log, source, (), source.data)
        formats = [key for key in ("fleet", "fleets", "nodepool") if key in top]
        if len(formats) != 1:
            log.problems.append(
                source.problem(
                    (),
                    "is no node-pool definition",
                    found=", ".join(formats) or "none of the three",
                    allowed="one of fleet, fleets and nodepool",
                )
            )
            continue
        if "fleets" in top:
            for path, data in top.items("fleets"):
                _fleet(found, Entry(log, source, path, data), log)
        elif "fleet" in top:
            _fleet(found, Entry(log, source, ("fleet",), top.raw("fleet")), log)
        else:
            data = top.raw("nodepool")
            _nodepool(found, Entry(log, source, ("nodepool",), data), log)
        top.leave({})
    for name, pool in found.pools.items():
        _consolidation(name, pool, found, settings, log)
    return found


def family(machine: str) -> str:
    """Return the family of an AWS instance type: the part before the dot."""
    return machine.split(".")[0]


def _fleet(found: Pools, entry: Entry, log: Log) -> None:
    name = entry.text("name", required=True)
    pool: dict[str, Any] = {"provider": "aws", "arch": entry.text("arch", True)}
    if entry.flag("gpu"):
        pool["gpu"] = True
    excluded = entry.texts("exclude_regions")
    machines: list[dict[str, Any]] = []
    for section in ("instances", "release"):
        for path, data in entry.items(section):
            machine = Entry(log, entry.source, path, data)
            machines.append(_machine(machine, "type", section == "release"))
    entry.leave({}, _FLEET_KEYS)
    if excluded:
        pool["exclude_regions"] = excluded
    pool["machines"] = machines
    if name is None:
        return
    if name in found.pools:
        first, at = found.places[name]
        entry.wrong("name", f"is the fleet of {first.file}:{first.line(at)} too", name)
        return
    if not machines:
        entry.wrong("name", "has neither instances nor release machines", name)
        return
    found.pools[name] = pool
    found.places[name] = (entry.source, entry.path)


def _nodepool(found: Pools, entry: Entry, log: Log) -> None:
    entry.raw("name")
    arch, gpu = entry.text("arch"), entry.flag("gpu")
    excluded = entry.texts("exclude_regions")
    machine = _machine(entry, "instance_type", False)
    name = family(machine["machine"] or "")
    if not name:
        return
    if arch is None:  # the generator's own rule for a definition without one
        arch = "arm64" if "g" in name[2:] else "amd64"
        why = f"absent; {arch} by the instance family, as the generator does"
        entry.note(Kind.DERIVED, "arch", why)
    why = f"one node pool of one size: a machine of pool {name}, its instance family"
    entry.note(Kind.DERIVED, "name", why)
    pool = found.pools.get(name)
    if pool is None:
        made: dict[str, Any] = {"provider": "aws", "arch": arch}
        if gpu:
            made["gpu"] = True
        if excluded:
            made["exclude_regions"] = excluded
        made["machines"] = [machine]
        found.pools[name] = made
        found.places[name] = (entry.source, entry.path)
        return
    have = (pool["arch"], pool.get("gpu", False), pool.get("exclude_regions", []))
    if have != (arch, gpu, excluded):
        entry.wrong("name", f"differs from pool {name} in arch, gpu or regions", name)
    pool["machines"].append(machine)


def _machine(entry: Entry, type_key: str, release: bool) -> dict[str, Any]:
    legacy = type_key == "instance_type"
    machine: dict[str, Any] = {"machine": entry.text(type_key, required=True)}
    weight = entry.number("weight", required=not legacy)
    if weight is not None:
        machine["weight"] = weight
    disk = entry.number("node_disk_size", required=True)
    machine["disk"] = f"{disk}GiB"
    if entry.flag("has_nvme"):
        machine["nvme"] = True
    if entry.flag("baremetal"):
        machine["bare_metal"] = True
    labels = entry.pairs("extra_labels")
    if labels.pop(RELEASE_LABEL, None) == "release" or release:
        machine["release"] = True
    capacity = entry.text("capacity_type")
    if capacity not in (None, "on-demand"):
        machine["capacity"] = capacity
    for key in ("policy", "scope"):
        value = entry.text(f"topology_manager_{key}")
        if value is not None:
            machine[f"topology_{key}"] = value
    tags = entry.pairs("ami_selector_tags")
    if tags:
        machine["image_selector"] = tags
    if labels:
        machine["labels"] = labels
    entry.leave(MACHINE_NOT_CARRIED, (*_MACHINE_KEYS, type_key))
    return machine


def _consolidation(
    name: str,
    pool: dict[str, Any],
    found: Pools,
    settings: Mapping[str, str],
    log: Log,
) -> None:
    kind = "gpu" if pool.get("gpu") else "cpu"
    metal = [m for m in pool["machines"] if m.get("bare_metal")]
    after = settings.get(f"{kind}_consolidate_after")
    metal_after = settings.get("baremetal_consolidate_after")
    if metal and len(metal) == len(pool["machines"]):
        after = metal_after or after
    elif metal and metal_after not in (None, after):
        source, path = found.places[name]
        names = ", ".join(m["machine"] for m in metal)
        why = (
            f"a pool has one time for all its machines, {after}; "
            f"baremetal_consolidate_after {metal_after} of {names} is not carried"
        )
        log.note(Kind.NOT_CARRIED, source, path, why, name)
    if after is not None:
        pool["consolidate_after"] = after
    budget = settings.get(f"{kind}_disruption_budget")
    if budget is not None:
        pool["disruption"] = budget
