"""Which nodes take which pods, as pure functions that can be checked.

The Kubernetes scheduler puts a pod on a node when the node carries every label of
the pod's node selector and the pod tolerates every taint of the node
(https://kubernetes.io/docs/concepts/scheduling-eviction/). This module says both for
job pods and runner pods and applies the rule to a plan's node pools, so that "each
class has exactly one pool" and "release jobs share no node with other jobs" are
statements that tests prove and a stack checks before it makes anything.

Runner pods go to the cell's runner pool. Those of release classes stay on the
class's own release nodes instead: a runner holds the token of its job, so it keeps
the same distance from other classes as the job does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from runfleet.errors import RunfleetError
from runfleet.placement.plan import CellPlan, NodePoolPlan, PlannedClass
from runfleet.spec.cells import Cell
from runfleet.spec.pools import Toleration
from runfleet.spec.roles import Trust


class SchedulingError(RunfleetError):
    """Pods of a class would match no pool, or more than one (exit 2).

    Attributes:
        problems: One sentence per class that does not fit.
    """

    exit_code = 2

    def __init__(self, problems: Sequence[str]) -> None:
        """Keep every problem."""
        self.problems = list(problems)
        super().__init__("\n".join(self.problems))


@dataclass(frozen=True)
class Placement:
    """Where a pod may run.

    Attributes:
        selector: Node labels that a node must carry.
        tolerations: Taints of effect ``NoSchedule`` that the pod bears.
    """

    selector: Mapping[str, str]
    tolerations: tuple[Toleration, ...]

    def accepts(self, pool: NodePoolPlan) -> bool:
        """Say whether nodes of a node pool take the pod."""
        return all(
            pool.labels.get(key) == value for key, value in self.selector.items()
        ) and all(
            any(taint.tolerated_by(toleration) for toleration in self.tolerations)
            for taint in pool.taints
        )

    def toleration_fields(self) -> list[dict[str, str]]:
        """Return the tolerations as Kubernetes writes them."""
        return [
            {"key": t.key, "operator": t.operator, "effect": "NoSchedule"}
            | ({"value": t.value} if t.operator == "Equal" else {})
            for t in self.tolerations
        ]


def job_placement(planned: PlannedClass) -> Placement:
    """Return where the job pods of a class run."""
    runner_class = planned.runner_class
    return Placement(
        runner_class.node_selector(planned.pool),
        tuple(runner_class.tolerations(planned.pool)),
    )


def runner_placement(planned: PlannedClass, cell: Cell) -> Placement:
    """Return where the runner pods of a class run."""
    pool = cell.runner_pods.pool
    if pool is None or planned.runner_class.release:
        return job_placement(planned)
    return Placement(
        {
            "workload-type": "github-runner",
            "node-fleet": pool,
            "ci_trust": "shared",
        },
        (
            Toleration("node-fleet", "Equal", pool),
            Toleration("instance-type", "Exists"),
        ),
    )


def matching_node_pools(
    planned: PlannedClass, node_pools: Iterable[NodePoolPlan]
) -> list[NodePoolPlan]:
    """Return the node pools whose nodes take the job pods of a class."""
    placement = job_placement(planned)
    return [pool for pool in node_pools if placement.accepts(pool)]


def matching_runner_pools(
    planned: PlannedClass, cell: Cell, node_pools: Iterable[NodePoolPlan]
) -> list[NodePoolPlan]:
    """Return the node pools whose nodes take the runner pods of a class."""
    placement = runner_placement(planned, cell)
    return [pool for pool in node_pools if placement.accepts(pool)]


def scheduling_problems(plan: CellPlan) -> list[str]:
    """Return what is wrong with where a plan's pods would run; none when good.

    Job pods must match the class's own pool and no other, runner pods the runner
    pool and no other, and release pods nothing but release nodes.
    """
    problems: list[str] = []
    for planned in plan.classes:
        release = planned.runner_class.release
        expected = planned.pool.name
        jobs = matching_node_pools(planned, plan.node_pools)
        problems += _wrong(f"job pods of {planned.name}", jobs, expected, release)
        runner_pool = plan.cell.runner_pods.pool
        own = release or runner_pool is None
        runners = matching_runner_pools(planned, plan.cell, plan.node_pools)
        problems += _wrong(
            f"runner pods of {planned.name}",
            runners,
            expected if own or runner_pool is None else runner_pool,
            release,
        )
    return problems


def _wrong(
    what: str, pools: Sequence[NodePoolPlan], expected: str, release: bool
) -> list[str]:
    families = sorted({pool.pool.name for pool in pools})
    if families != [expected]:
        found = ", ".join(families) or "no pool"
        return [f"{what} match {found}; they must match {expected} only"]
    if any(pool.release != release for pool in pools):
        kind = Trust.RELEASE if release else "other than release"
        return [f"{what} match nodes that are not {kind}"]
    return []
