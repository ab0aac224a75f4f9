"""What one stack builds: the fleet and the lock, cut down to one cell.

A plan is pure data and knows no cloud: the rooms of each cloud and the runner side
take what they need from it. So a question such as "which node pools does this cell
have" has one answer, whoever asks it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from runfleet.catalogue.pins import Pins
from runfleet.placement.lock import Lock, Placed, Shape
from runfleet.spec.cells import Cell
from runfleet.spec.classes import RunnerClass
from runfleet.spec.fleet import Fleet
from runfleet.spec.pools import Capacity, Pool, PoolMachine, Taint, node_pool_name
from runfleet.spec.roles import Grant, Scope
from runfleet.spec.stores import Budget, Central, Reservation, Store

CENTRAL_STACK = "central"


@dataclass(frozen=True)
class NodePoolPlan:
    """Machines of one shape in one cell.

    Attributes:
        name: Name of the node pool, unique in the cell: pool and machine.
        pool: The family that it belongs to.
        machine: The shape.
        weight: Preference for the autoscaler, 1 to 100, highest first.
        labels: Node labels that pods select.
        taints: Node taints.
        reservations: Reserved capacity that it draws from.
        ci_labels: The thirteen required labels, for what the autoscaler creates.
        shape: What the machine holds and is called by node pools, where the lock
            says it: always of a pool that was made by placement.
        limit: Most machines, by quota or reservation; ``None`` for no limit.
    """

    name: str
    pool: Pool
    machine: PoolMachine
    weight: int
    labels: dict[str, str]
    taints: tuple[Taint, ...]
    reservations: tuple[Reservation, ...]
    ci_labels: dict[str, str]
    shape: Shape | None = None
    limit: int | None = None

    @property
    def node_name(self) -> str:
        """What the cloud's node pools call the machine (IBM: the worker flavour)."""
        if self.shape is not None and self.shape.node_name:
            return self.shape.node_name
        return self.machine.machine

    @property
    def release(self) -> bool:
        """Whether it is for release classes only."""
        return self.machine.release


@dataclass(frozen=True)
class PlannedClass:
    """A class in one cell.

    Attributes:
        runner_class: The class.
        placed: Where the lock puts it.
        pool: The pool that serves it.
        label: The label that jobs use, prefix included; the scale set's name.
        runner_namespace: Namespace of its scale set and runner pods.
        job_namespace: Namespace of its job pods.
        service_account: Service account of its job pods, in the job namespace.
        runner_group: GitHub runner group that its runners register in.
        grants: What its jobs may touch.
        ci_labels: The thirteen required labels.
    """

    runner_class: RunnerClass
    placed: Placed
    pool: Pool
    label: str
    runner_namespace: str
    job_namespace: str
    service_account: str
    runner_group: str
    grants: frozenset[Grant]
    ci_labels: dict[str, str]

    @property
    def name(self) -> str:
        """Name of the class."""
        return self.runner_class.name

    def granted(self, scope: Scope) -> frozenset[Grant]:
        """Return the grants in one scope."""
        return frozenset(grant for grant in self.grants if grant.scope is scope)


@dataclass(frozen=True)
class CellPlan:
    """All that one cell's stack builds.

    Attributes:
        fleet: The fleet.
        cell: The cell.
        stack: Name of the stack, which is the cell's.
        classes: The classes that it serves.
        node_pools: The node pools that serve them and the runner pods.
        stores: The stores that are local to it.
        budget: The budget of its funder, if there is one.
        ci_labels: The thirteen required labels of things that serve several classes.
        pins: Versions of everything from outside.
    """

    fleet: Fleet
    cell: Cell
    stack: str
    classes: tuple[PlannedClass, ...]
    node_pools: tuple[NodePoolPlan, ...]
    stores: tuple[Store, ...]
    budget: Budget | None
    ci_labels: dict[str, str]
    pins: Pins

    @property
    def central_stores(self) -> tuple[Store, ...]:
        """The stores that exist once, in stack ``central``."""
        return tuple(self.fleet.stores_in(Scope.CENTRAL))


@dataclass(frozen=True)
class CentralPlan:
    """All that the stack ``central`` builds.

    Attributes:
        fleet: The fleet.
        central: Where its things are.
        stack: Name of the stack: ``central``.
        stores: The stores that exist once.
        external: Classes that run outside this code.
        budget: The budget of its funder, if there is one.
        ci_labels: The thirteen required labels.
        pins: Versions of everything from outside.
    """

    fleet: Fleet
    central: Central
    stack: str
    stores: tuple[Store, ...]
    external: tuple[RunnerClass, ...]
    budget: Budget | None
    ci_labels: dict[str, str]
    pins: Pins


def plan_cell(fleet: Fleet, lock: Lock, cell: Cell, pins: Pins) -> CellPlan:
    """Cut a fleet down to what one cell's stack builds.

    Args:
        fleet: The fleet.
        lock: The placement; every class is built exactly where it says.
        cell: The cell.
        pins: Versions of everything from outside.
    """
    stack = cell.name
    pools = lock.pools_of(fleet)
    classes = tuple(
        _planned(fleet, cell, stack, placed, pools[placed.pool])
        for placed in lock.in_cell(cell.name)
    )
    wanted: dict[str, set[bool]] = {}
    for planned in classes:
        wanted.setdefault(planned.pool.name, set()).add(planned.runner_class.release)
    if cell.runner_pods.pool is not None:
        wanted.setdefault(cell.runner_pods.pool, set()).add(False)
    rungs = {
        (planned.pool.name, rung.machine, planned.runner_class.release)
        for planned in classes
        for rung in planned.placed.rungs
    }
    node_pools = tuple(
        _node_pool(fleet, cell, stack, pool, machine, lock)
        for pool in (*fleet.pools_in(cell), *lock.pools.values())
        for machine in pool.machines
        if machine.release in wanted.get(pool.name, set())
        # A pool that placement made may hold shapes for other cells: only the rungs
        # of this one are built.
        and (
            pool.name not in lock.pools
            or (pool.name, machine.machine, machine.release) in rungs
        )
    )
    return CellPlan(
        fleet=fleet,
        cell=cell,
        stack=stack,
        classes=classes,
        node_pools=node_pools,
        stores=tuple(fleet.stores_in(Scope.LOCAL)),
        budget=fleet.budgets.get(cell.funder),
        ci_labels=fleet.labels_for(stack, cell),
        pins=pins,
    )


def plan_central(fleet: Fleet, pins: Pins) -> CentralPlan:
    """Cut a fleet down to what the stack ``central`` builds.

    Raises:
        ValueError: The fleet has no ``central`` section.
    """
    if fleet.central is None:
        raise ValueError("the fleet has no `central` section")
    return CentralPlan(
        fleet=fleet,
        central=fleet.central,
        stack=CENTRAL_STACK,
        stores=tuple(fleet.stores_in(Scope.CENTRAL)),
        external=tuple(fleet.external()),
        budget=fleet.budgets.get(fleet.central.funder),
        ci_labels=fleet.labels_for(CENTRAL_STACK),
        pins=pins,
    )


def namespace(kind: str, label: str, cell: str) -> str:
    """Return the Kubernetes namespace of a class in a cell.

    The cell is part of it because Google Cloud's workload identity pool is one per
    project: two clusters with the same namespace and account share an identity.
    Neither part holds ``--``, so the name is injective; one that would pass 63
    characters is cut and ends in a digest of the whole.

    Args:
        kind: ``r`` for runner pods and the scale set, ``j`` for job pods.
        label: The label that jobs use, prefix included.
        cell: Name of the cell.
    """
    name = f"{kind}-{label}--{cell}"
    if len(name) <= 63:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:10]
    return f"{name[:51].rstrip('-')}--{digest}"


def _planned(
    fleet: Fleet, cell: Cell, stack: str, placed: Placed, pool: Pool
) -> PlannedClass:
    runner_class = fleet.runner_classes[placed.runner_class]
    label = cell.runner_label(runner_class.name)
    group = cell.runner_group
    if runner_class.release and cell.release_runner_group is not None:
        group = cell.release_runner_group
    return PlannedClass(
        runner_class=runner_class,
        placed=placed,
        pool=pool,
        label=label,
        runner_namespace=namespace("r", label, cell.name),
        job_namespace=namespace("j", label, cell.name),
        service_account="job",
        runner_group=group,
        grants=runner_class.granted(),
        ci_labels=fleet.labels_for(stack, cell, runner_class),
    )


def _node_pool(
    fleet: Fleet,
    cell: Cell,
    stack: str,
    pool: Pool,
    machine: PoolMachine,
    lock: Lock,
) -> NodePoolPlan:
    reservations = tuple(
        reservation
        for name in machine.reservations
        if (reservation := fleet.reservations[name]).cell == cell.name
    )
    cost_model = (
        "on-demand" if machine.capacity is Capacity.ON_DEMAND else str(machine.capacity)
    )
    labels = fleet.labels_for(stack, cell, cost_model=cost_model)
    if machine.release:
        labels["ci_trust"] = "release"
    locked = (
        lock.machine_in(cell.name, machine.machine, machine.capacity)
        if pool.name in lock.pools
        else None
    )
    return NodePoolPlan(
        name=node_pool_name(pool, machine),
        pool=pool,
        machine=machine,
        weight=machine.weight,
        labels=pool.node_labels(machine),
        taints=tuple(pool.taints(machine)),
        reservations=reservations,
        ci_labels=labels,
        shape=locked.shape if locked is not None else None,
        limit=locked.limit if locked is not None else None,
    )
