"""Namespaces, quotas, limits and priorities: who may use how much.

Each runner class has two namespaces. The runner namespace holds its scale set, its
runner pods and the GitHub App's key, under Pod Security ``restricted``. The job
namespace holds job pods only, under ``baseline``: the container hooks add an init
container that ``restricted`` refuses (actions/runner-container-hooks,
``packages/k8s/src/k8s/index.ts``, ``fs-init``); it still warns of what ``restricted``
would refuse.

Quotas follow from the most runners that a class may have, times what each asks for.
They are a second line behind ``maxRunners``: a quota that is hit while a finished
pod is still terminating makes a runner fail for good
(actions/actions-runner-controller#3629), so every quota leaves room for that.

A tenant's caps lower ``maxRunners`` itself. A cap on an accelerator is shared among
the tenant's classes with it, because a Kubernetes quota never spans namespaces.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import pulumi
from pulumi_kubernetes.core import v1 as core
from pulumi_kubernetes.meta import v1 as meta
from pulumi_kubernetes.scheduling import v1 as scheduling

from runfleet.placement.plan import CellPlan, PlannedClass
from runfleet.spec.cells import Cell
from runfleet.spec.classes import extended_resources
from runfleet.spec.units import Size

PART = "runfleet/part"
"""Label that says what a namespace holds: ``runner``, ``job`` or ``system``."""

RUNNER_PRIORITY = "runfleet-runner"
JOB_PRIORITY = "runfleet-job"
RELEASE_PRIORITY = "runfleet-job-release"
PLACEHOLDER_PRIORITY = "runfleet-placeholder"

PRIORITIES: Mapping[str, tuple[int, str, str]] = {
    RUNNER_PRIORITY: (2000, "Never", "Runners: each holds a job that waits for it."),
    RELEASE_PRIORITY: (1500, "PreemptLowerPriority", "Jobs of release classes."),
    JOB_PRIORITY: (1000, "PreemptLowerPriority", "Jobs."),
    PLACEHOLDER_PRIORITY: (-10, "Never", "Placeholders: jobs take their place."),
}
"""Priority classes: value, preemption policy, what for. Only placeholders are ever
preempted: release jobs and other jobs never share a node."""

SIDE_CPU = 0.5
SIDE_MEMORY = Size.gib_of(1)
SIDE_DISK = Size.gib_of(10)
"""What the hooks' own init container and each service container get."""

SERVICES_PER_JOB = 2
"""Service containers per job that a quota leaves room for."""


@dataclass(frozen=True)
class ScaleLimits:
    """How many runners a class may have in a cell.

    Attributes:
        minimum: Runners kept ready.
        maximum: Most runners; ``None`` when the fleet file sets no bound.
    """

    minimum: int
    maximum: int | None

    @property
    def room(self) -> int | None:
        """Pods that a quota allows: the maximum and a quarter, for those ending."""
        if self.maximum is None:
            return None
        return self.maximum + max(2, math.ceil(self.maximum / 4))


def scale_limits(plan: CellPlan) -> dict[str, ScaleLimits]:
    """Return the limits of each class, with the caps of its tenant applied."""
    caps = _tenant_caps(plan)
    limits: dict[str, ScaleLimits] = {}
    for planned in plan.classes:
        scale = planned.runner_class.scale
        bounds = [b for b in (scale.max, caps.get(planned.name)) if b is not None]
        maximum = min(bounds) if bounds else None
        minimum = scale.min if maximum is None else min(scale.min, maximum)
        limits[planned.name] = ScaleLimits(minimum, maximum)
    return limits


def runner_quota(cell: Cell, limits: ScaleLimits) -> dict[str, str]:
    """Return the hard quota of a class's runner namespace."""
    hard = {"services": "0", "persistentvolumeclaims": "0"}
    if limits.room is None:
        return hard
    pods = limits.room
    cpu, memory = (
        cores(pods * cell.runner_pods.cpu),
        _times(cell.runner_pods.memory, pods),
    )
    return hard | {
        "pods": amount(pods),
        "requests.cpu": cpu,
        "limits.cpu": cpu,
        "requests.memory": memory,
        "limits.memory": memory,
    }


def job_quota(planned: PlannedClass, limits: ScaleLimits) -> dict[str, str]:
    """Return the hard quota of a class's job namespace."""
    hard = {"services": "0", "persistentvolumeclaims": "0"}
    if limits.room is None:
        return hard
    pods, hardware = limits.room, planned.runner_class.hardware
    sides = SERVICES_PER_JOB
    cpu = cores(pods * (hardware.vcpu + sides * SIDE_CPU))
    memory = _times(Size(hardware.memory + sides * SIDE_MEMORY), pods)
    disk = _times(Size(hardware.disk + sides * SIDE_DISK), pods)
    devices = {
        f"requests.{name}": amount(pods * int(count))
        for name, count in extended_resources(planned.runner_class).items()
    }
    return (
        hard
        | devices
        | {
            "pods": amount(pods),
            "requests.cpu": cpu,
            "limits.cpu": cpu,
            "requests.memory": memory,
            "limits.memory": memory,
            "requests.ephemeral-storage": disk,
            "limits.ephemeral-storage": disk,
        }
    )


def runner_container_limit(cell: Cell) -> core.LimitRangeItemArgs:
    """Return the limits of containers in a runner namespace."""
    amounts = {
        "cpu": cores(cell.runner_pods.cpu),
        "memory": cell.runner_pods.memory.kubernetes,
    }
    return core.LimitRangeItemArgs(
        type="Container", default=amounts, default_request=amounts, max=amounts
    )


def job_container_limit(planned: PlannedClass) -> core.LimitRangeItemArgs:
    """Return the limits of containers in a job namespace.

    The defaults, equal as request and limit, reach the hooks' init container, which
    asks for nothing; without them it would make every job pod Burstable. The maximum
    names no accelerator, because a maximum refuses containers that ask for none.
    """
    hardware = planned.runner_class.hardware
    default = {
        "cpu": cores(min(SIDE_CPU, hardware.vcpu)),
        "memory": Size(min(SIDE_MEMORY, hardware.memory)).kubernetes,
        "ephemeral-storage": Size(min(SIDE_DISK, hardware.disk)).kubernetes,
    }
    return core.LimitRangeItemArgs(
        type="Container",
        default=default,
        default_request=default,
        max={
            "cpu": cores(hardware.vcpu),
            "memory": hardware.memory.kubernetes,
            "ephemeral-storage": hardware.disk.kubernetes,
        },
    )


def pod_security(part: str, enforce: str) -> dict[str, str]:
    """Return the labels of a namespace: its part and its Pod Security levels."""
    prefix = "pod-security.kubernetes.io"
    stricter = enforce if enforce == "privileged" else "restricted"
    return {
        PART: part,
        f"{prefix}/enforce": enforce,
        f"{prefix}/warn": stricter,
        f"{prefix}/audit": stricter,
    }


def make_namespace(
    resource_name: str,
    namespace: str,
    labels: Mapping[str, str],
    annotations: Mapping[str, pulumi.Input[str]],
    opts: pulumi.ResourceOptions,
) -> core.Namespace:
    """Make a namespace."""
    return core.Namespace(
        resource_name,
        metadata=meta.ObjectMetaArgs(
            name=namespace,
            labels=dict(labels),
            annotations=dict(annotations) or None,
        ),
        opts=opts,
    )


def make_limits(
    resource_name: str,
    namespace: str,
    labels: Mapping[str, str],
    hard: Mapping[str, str],
    limit: core.LimitRangeItemArgs,
    opts: pulumi.ResourceOptions,
) -> tuple[core.ResourceQuota, core.LimitRange]:
    """Make the quota and the container limits of a namespace."""
    quota = core.ResourceQuota(
        f"{resource_name}-quota",
        metadata=meta.ObjectMetaArgs(
            name="quota", namespace=namespace, labels=dict(labels)
        ),
        spec=core.ResourceQuotaSpecArgs(hard=dict(hard)),
        opts=opts,
    )
    limits = core.LimitRange(
        f"{resource_name}-limits",
        metadata=meta.ObjectMetaArgs(
            name="limits", namespace=namespace, labels=dict(labels)
        ),
        spec=core.LimitRangeSpecArgs(limits=[limit]),
        opts=opts,
    )
    return quota, limits


def make_priorities(
    resource_name: str, labels: Mapping[str, str], opts: pulumi.ResourceOptions
) -> list[scheduling.PriorityClass]:
    """Make the priority classes of a cell.

    None is the global default. That is left unsaid, because the API server does not
    store a ``false`` there and each later apply would set it again.
    """
    return [
        scheduling.PriorityClass(
            f"{resource_name}-{priority.removeprefix('runfleet-')}-priority",
            metadata=meta.ObjectMetaArgs(name=priority, labels=dict(labels)),
            value=value,
            preemption_policy=policy,
            description=description,
            opts=opts,
        )
        for priority, (value, policy, description) in PRIORITIES.items()
    ]


def cores(value: float) -> str:
    """Return a number of cores as a Kubernetes quantity: ``4``, ``750m``, ``40k``."""
    milli = round(value * 1000)
    return amount(milli // 1000) if milli % 1000 == 0 else f"{milli}m"


def amount(count: int) -> str:
    """Return a count as the API server stores it: ``450``, ``1500``, ``40k``.

    The API server writes a quantity with the largest suffix that keeps it whole
    (https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/).
    Written otherwise it would differ from what is stored, at each apply anew.
    """
    suffixes = ["M", "k", ""]
    while count and len(suffixes) > 1 and count % 1000 == 0:
        count //= 1000
        suffixes.pop()
    return f"{count}{suffixes[-1]}"


def _times(size: Size, count: int) -> str:
    return Size(size * count).kubernetes


def _tenant_caps(plan: CellPlan) -> dict[str, int]:
    caps: dict[str, int] = {}
    for name, tenant in plan.fleet.tenants.items():
        own = [p for p in plan.classes if p.runner_class.tenant == name]
        for key, quota in tenant.quota.items():
            if key.startswith("accelerator/"):
                model = key.removeprefix("accelerator/")
                sharing = [p for p in own if _model(p) == model]
                shares = _shared(quota, [p.runner_class.scale.max for p in sharing])
                named = {p.name: s for p, s in zip(sharing, shares, strict=True)}
            else:
                named = {key: quota}
            for class_name, cap in named.items():
                caps[class_name] = min(cap, caps.get(class_name, cap))
    served = {p.name for p in plan.classes if p.runner_class.tenant is not None}
    return {name: cap for name, cap in caps.items() if name in served}


def _model(planned: PlannedClass) -> str | None:
    accelerator = planned.runner_class.hardware.accelerator
    return accelerator.model if accelerator else None


def _shared(quota: int, wanted: Sequence[int | None]) -> list[int]:
    """Split a quota in proportion to what each wants, by largest remainder."""
    weights = [quota if want is None else want for want in wanted]
    total = sum(weights)
    if total <= quota:
        return weights
    exact = [Fraction(quota * weight, total) for weight in weights]
    shares = [math.floor(share) for share in exact]
    order = sorted(range(len(exact)), key=lambda i: (shares[i] - exact[i], i))
    for index in order[: quota - sum(shares)]:
        shares[index] += 1
    return shares
