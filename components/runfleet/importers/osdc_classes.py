"""OSDC's runner definitions become runner classes.

The rules are those of ``osdc/modules/arc-runners`` in pytorch/ci-infra at b1ce4a6:
requests equal limits; the pool is ``node_fleet`` or the instance family;
``runner_class: release`` puts a class on release machines. What OSDC does not know
(role, trust, triggers) follows from that: release classes are releasers that run on
demand, all others serve pull requests of anybody today and are testers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, cast

from runfleet.catalogue.machines import Machines
from runfleet.importers.osdc_keys import RUNNER_NOT_CARRIED
from runfleet.importers.osdc_pools import Pools, family
from runfleet.importers.report import Entry, Kind, Log
from runfleet.spec.grammar import parse_label
from runfleet.spec.source import Path, Source, nearest
from runfleet.spec.units import Size

RUNNER_POOL = "c7i-runner"
"""The fleet that carries runner pods; no runner class may name it."""

DEFINITIONS = "osdc/modules/arc-runners/defs"
ALL_TRIGGERS = ["on-demand", "periodic", "some-prs", "all-prs"]
BURST = "max_burst_capacity of the source"

_KEYS = (
    "name",
    "instance_type",
    "disk_size",
    "vcpu",
    "memory",
    "gpu",
    "node_fleet",
    "proactive_capacity",
    "max_burst_capacity",
    "hud_failure_base_capacity",
    "max_runners",
    "imex_channels",
    "runner_class",
)


@dataclass
class Classes:
    """The runner classes of a folder of definitions.

    Attributes:
        classes: Classes in fleet-file form, by name.
        places: Where each was defined.
    """

    classes: dict[str, dict[str, Any]] = field(
        default_factory=dict[str, dict[str, Any]]
    )
    places: dict[str, tuple[Source, Path]] = field(
        default_factory=dict[str, tuple[Source, Path]]
    )


@dataclass(frozen=True)
class Context:
    """What a runner definition is read against.

    Attributes:
        pools: The pools that classes may name.
        clusters: Ids of the clusters that are imported.
        warm_limit: Most placeholders per class (``proactive_capacity_max``), if set.
        revision: Commit that the definitions are of, for ``source``; may be empty.
        machines: The table of machines.
        log: Takes the report and the problems.
    """

    pools: Pools
    clusters: Sequence[str]
    warm_limit: int | None
    revision: str
    machines: Machines
    log: Log


def read_classes(sources: list[Source], context: Context) -> Classes:
    """Read runner definitions, one per file, in the order given."""
    found = Classes()
    for source in sources:
        top = Entry(context.log, source, (), source.data)
        if "runner" not in top:
            context.log.problems.append(
                source.problem((), "is no runner definition: it has no key `runner`")
            )
            continue
        entry = Entry(context.log, source, ("runner",), top.raw("runner"))
        top.leave({}, ("runner",))
        name = entry.text("name", required=True)
        runner_class = _class(entry, name or "", context)
        entry.leave(RUNNER_NOT_CARRIED, _KEYS)
        if name is None:
            continue
        if name in found.classes:
            first, at = found.places[name]
            line = first.line(at)
            entry.wrong("name", f"is the class of {first.file}:{line} too", name)
            continue
        found.classes[name] = runner_class
        found.places[name] = (source, ("runner",))
    return found


def silicon_vendor(instance_type: str) -> str:
    """Return who makes the CPU of an AWS instance type, from its name.

    After the generation number, ``g`` stands for Graviton, which AWS makes, and
    ``a`` for AMD; types with neither have Intel CPUs (AWS documentation, "Amazon EC2
    instance type naming conventions").
    """
    match = re.match(r"[a-z]+\d+([a-z]*)", family(instance_type))
    letters = match[1] if match else ""
    if "g" in letters:
        return "aws"
    return "amd" if "a" in letters else "intel"


def _class(entry: Entry, name: str, context: Context) -> dict[str, Any]:
    instance = entry.text("instance_type", required=True) or ""
    pool_name = _pool(entry, instance, context)
    pool = context.pools.pools.get(pool_name, {})
    release = _release(entry)
    gpus = entry.number("gpu", required=True) or 0
    made: dict[str, Any] = {
        "role": "releaser" if release else "tester",
        "trust": "release" if release else "untrusted-pr",
        "vendor": "nvidia" if gpus else silicon_vendor(instance),
        "pool": pool_name,
        "hardware": _hardware(entry, name, gpus, instance, pool, context),
        "scale": _scale(entry, context),
        "triggers": ["on-demand"] if release else list(ALL_TRIGGERS),
    }
    channels = entry.raw("imex_channels")
    if channels is not None:
        made["environment"] = {"NVIDIA_IMEX_CHANNELS": str(channels)}
    file = PurePath(entry.source.file).name
    revision = f"@{context.revision}" if context.revision else ""
    made["source"] = f"{DEFINITIONS}/{file}{revision}"
    return made


def _pool(entry: Entry, instance: str, context: Context) -> str:
    named = entry.text("node_fleet")
    name = named or family(instance)
    pools = context.pools.pools
    key = "node_fleet" if named else "instance_type"
    if named == RUNNER_POOL:
        entry.wrong(key, "is reserved for runner pods", named)
    elif name and name not in pools:
        message = "names no fleet" if named else f"its family {name} is no fleet"
        allowed = ", ".join(sorted(pools))
        close = nearest(name, pools)
        entry.wrong(key, message, named or instance, allowed=allowed, nearest=close)
    elif name and instance not in {m["machine"] for m in pools[name]["machines"]}:
        why = f"pool {name} has no such machine; the class runs on those it has"
        entry.note(Kind.NOT_CARRIED, "instance_type", why)
    return name


def _release(entry: Entry) -> bool:
    value = entry.text("runner_class")
    if value not in (None, "release"):
        entry.wrong("runner_class", "is not known", value, allowed="release")
    return value == "release"


def _hardware(
    entry: Entry,
    name: str,
    gpus: int,
    instance: str,
    pool: Mapping[str, Any],
    context: Context,
) -> dict[str, Any]:
    claim = parse_label(name)
    made: dict[str, Any] = {
        "arch": pool.get("arch", "amd64"),
        "vcpu": entry.number("vcpu", required=True),
        "memory": _memory(entry),
        "disk": f"{entry.number('disk_size', required=True)}GiB",
    }
    if claim is not None and claim.feature:
        made["features"] = [claim.feature]
    if gpus:
        machine = context.machines.get("aws", instance)
        model = claim.gpu if claim is not None else ""
        model = model or (machine.accelerator if machine is not None else "")
        if not model:
            message = "neither the name nor the machine says which accelerator it is"
            entry.wrong("gpu", message, gpus)
        made["accelerator"] = {"model": model, "count": gpus}
    if claim is not None and claim.whole_node:
        made["whole_node"] = True
    return made


def _memory(entry: Entry) -> str | None:
    value = entry.text("memory", required=True)
    if value is None:
        return None
    try:
        return str(Size.parse(value))
    except ValueError as error:
        entry.wrong("memory", "is not a quantity", value, allowed=str(error))
        return None


def _scale(entry: Entry, context: Context) -> dict[str, Any]:
    scale: dict[str, Any] = {}
    most = _max_runners(entry, context)
    burst = entry.number("max_burst_capacity")
    fallback = entry.number("hud_failure_base_capacity")
    warm = entry.number("proactive_capacity")
    if most is not None:
        scale["max"] = most
    elif burst is not None:
        scale["max"] = burst
        scale["derived"] = BURST
        entry.note(Kind.DERIVED, "max_burst_capacity", f"scale.max is the {BURST}")
    if burst is not None:
        scale["burst"] = burst
    if fallback is not None:
        scale["fallback"] = fallback
    if warm and context.warm_limit is not None and context.warm_limit < warm:
        why = f"scale.warm is {context.warm_limit}, the proactive_capacity_max"
        entry.note(Kind.DERIVED, "proactive_capacity", why)
        warm = context.warm_limit
    if warm:
        scale["warm"] = warm
    return scale


def _max_runners(entry: Entry, context: Context) -> int | None:
    value = entry.raw("max_runners")
    if not isinstance(value, Mapping):
        return entry.number("max_runners")
    limits = cast("Mapping[str, object]", value)
    wrong = [
        key
        for key, limit in limits.items()
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0
    ]
    if wrong:
        message = f"is not a whole number for {', '.join(sorted(wrong))}"
        entry.wrong("max_runners", message, limits)
        return None
    by_cluster = {
        cluster: cast("int | None", limits.get(cluster, limits.get("default")))
        for cluster in context.clusters
    }
    chosen = [limit for limit in by_cluster.values() if limit is not None]
    if len(set(chosen)) > 1:
        spelled = ", ".join(f"{c}: {n}" for c, n in by_cluster.items())
        why = f"one maximum for all cells: the largest of {spelled}"
        entry.note(Kind.NOT_CARRIED, "max_runners", why)
    others = sorted(set(limits) - {"default", *context.clusters})
    if others:
        why = f"values for clusters that are not imported: {', '.join(others)}"
        entry.note(Kind.NOT_CARRIED, "max_runners", why)
    return max(chosen) if chosen else None
