"""A fleet back in OSDC's form: its definitions, as data by file name.

It serves two ends: whoever wants to return to OSDC can, and a test shows that an
import loses nothing it claims to carry, because import, export and import again give
the same fleet. Only what OSDC can say is exported: AWS cells, their pools, and the
classes that run on them. Its ``instance_type`` is the smallest machine of the pool
that holds the class, of the class's vendor, which is how OSDC chooses it.
"""

from __future__ import annotations

from typing import Any

from runfleet.catalogue.checks import shortfall
from runfleet.catalogue.machines import Machines
from runfleet.importers.osdc_classes import silicon_vendor
from runfleet.importers.osdc_pools import family
from runfleet.spec.cells import Cell, Provider
from runfleet.spec.classes import PlacementMode, RunnerClass
from runfleet.spec.fleet import Fleet
from runfleet.spec.pools import Capacity, Pool, PoolMachine

CLUSTERS = "clusters.yaml"
ARC = "arc.yaml"
NODEPOOLS = "nodepools"
RUNNERS = "arc-runners"


def export_osdc(
    fleet: Fleet, machines: Machines | None = None
) -> dict[str, dict[str, Any]]:
    """Return a fleet's AWS part in OSDC's form.

    Args:
        fleet: The fleet.
        machines: The table of machines; default: the package's own.

    Returns:
        The content of each file by its name: ``clusters.yaml``, ``arc.yaml``,
        ``nodepools/<pool>.yaml`` and ``arc-runners/<class>.yaml``.
    """
    table = Machines.load() if machines is None else machines
    pools = {n: p for n, p in fleet.pools.items() if p.provider is Provider.AWS}
    cells = [c for c in fleet.cells.values() if c.provider is Provider.AWS]
    settings = _nodepool_settings(pools)
    files: dict[str, dict[str, Any]] = {
        CLUSTERS: {"clusters": {c.cluster: _cluster(fleet, c, settings) for c in cells}}
    }
    mapping: dict[str, str] = {}
    for name, pool in pools.items():
        files[f"{NODEPOOLS}/{name}.yaml"] = {"fleet": _fleet(pool)}
    for name, runner_class in fleet.runner_classes.items():
        external = runner_class.placement is PlacementMode.EXTERNAL
        found = pools.get(runner_class.pool or "")
        if external or found is None:
            continue
        runner = _runner(runner_class, found, table)
        files[f"{RUNNERS}/{name}.yaml"] = {"runner": runner}
        mapping |= dict.fromkeys(runner_class.aliases, name)
    files[ARC] = {"runner_mapping": mapping}
    return files


def _cluster(fleet: Fleet, cell: Cell, settings: dict[str, str]) -> dict[str, Any]:
    base: dict[str, Any] = {}
    if cell.network is not None:
        base["vpc_cidr"] = cell.network.cidr
        base["single_nat_gateway"] = cell.network.nat == "single"
    if cell.base_nodes is not None:
        base["base_node_count"] = cell.base_nodes.count
        base["base_node_instance_type"] = cell.base_nodes.machine
    serves = any(True for _ in fleet.classes_in(cell))
    return {
        "region": cell.region,
        "cluster_name": cell.cluster,
        "access_config": {"cluster_admin_role_names": list(cell.admins)},
        "base": base,
        "arc-runners": {
            "github_config_url": fleet.github.organization_url,
            "runner_name_prefix": cell.label_prefix,
            "runner_group": cell.runner_group,
        },
        "nodepools": dict(settings),
        "modules": [
            "karpenter",
            "arc",
            "nodepools",
            *(["arc-runners"] if serves else []),
        ],
    }


def _nodepool_settings(pools: dict[str, Pool]) -> dict[str, str]:
    """Return OSDC's settings, which are one per kind of pool for a whole cluster."""
    settings: dict[str, str] = {}
    for pool in pools.values():
        kind = "gpu" if pool.gpu else "cpu"
        metal = all(machine.bare_metal for machine in pool.machines)
        if pool.consolidate_after is not None:
            key = "baremetal" if metal else kind
            settings.setdefault(f"{key}_consolidate_after", str(pool.consolidate_after))
        if pool.disruption is not None:
            settings.setdefault(f"{kind}_disruption_budget", str(pool.disruption))
    return settings


def _fleet(pool: Pool) -> dict[str, Any]:
    made: dict[str, Any] = {"name": pool.name, "arch": pool.arch, "gpu": pool.gpu}
    if pool.exclude_regions:
        made["exclude_regions"] = list(pool.exclude_regions)
    for section, release in (("instances", False), ("release", True)):
        machines = [_machine(m) for m in pool.machines if m.release is release]
        if machines:
            made[section] = machines
    return made


def _machine(machine: PoolMachine) -> dict[str, Any]:
    made: dict[str, Any] = {
        "type": machine.machine,
        "weight": machine.weight,
        "node_disk_size": round(machine.disk.gib),
    }
    if machine.nvme:
        made["has_nvme"] = True
    if machine.bare_metal:
        made["baremetal"] = True
    if machine.capacity is not Capacity.ON_DEMAND:
        made["capacity_type"] = str(machine.capacity)
    if machine.topology_policy is not None:
        made["topology_manager_policy"] = machine.topology_policy
    if machine.topology_scope is not None:
        made["topology_manager_scope"] = machine.topology_scope
    if machine.image_selector:
        made["ami_selector_tags"] = dict(machine.image_selector)
    if machine.labels:
        made["extra_labels"] = dict(machine.labels)
    return made


def _runner(
    runner_class: RunnerClass, pool: Pool, machines: Machines
) -> dict[str, Any]:
    need, scale = runner_class.hardware, runner_class.scale
    instance = _instance_type(runner_class, pool, machines)
    made: dict[str, Any] = {
        "name": runner_class.name,
        "instance_type": instance,
        "disk_size": round(need.disk.gib),
        "vcpu": round(need.vcpu),
        "memory": need.memory.kubernetes,
        "gpu": round(runner_class.gpus),
    }
    if pool.name != family(instance):
        made["node_fleet"] = pool.name
    if scale.burst is not None or scale.warm:
        made["proactive_capacity"] = scale.warm
    if scale.burst is not None:
        made["max_burst_capacity"] = scale.burst
    if scale.fallback is not None:
        made["hud_failure_base_capacity"] = scale.fallback
    if scale.max is not None and scale.derived is None:
        made["max_runners"] = scale.max
    channels = runner_class.environment.get("NVIDIA_IMEX_CHANNELS")
    if channels is not None:
        made["imex_channels"] = channels
    if runner_class.release:
        made["runner_class"] = "release"
    return made


def _instance_type(runner_class: RunnerClass, pool: Pool, machines: Machines) -> str:
    shapes = runner_class.machines(pool) or pool.machines
    whole = runner_class.hardware.whole_node
    holding: list[tuple[bool, float, float, float, bool, str]] = []
    for shape in shapes:
        machine = machines.get(pool.provider, shape.machine)
        if machine is not None and not shortfall(runner_class, machine):
            metal = shape.bare_metal is not whole
            maker = silicon_vendor(shape.machine)
            other = not runner_class.gpus and maker != runner_class.vendor
            size = (machine.accelerator_count, machine.vcpu, machine.memory_gib)
            holding.append((other, *size, metal, shape.machine))
    return min(holding)[-1] if holding else shapes[0].machine
