from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runfleet.placement import CellPlan
from runfleet.runners.tenancy import (
    PRIORITIES,
    ScaleLimits,
    _shared,  # type: ignore[reportPrivateUsage]
    amount,
    cores,
    job_quota,
    runner_quota,
    scale_limits,
)
from runners.cells import FLEET, Cluster, class_of, fleet_of, plan_of


def test_namespaces_enforce_pod_security(plan: CellPlan, cluster: Cluster) -> None:
    planned = class_of(plan, "x86-8-16")
    runner = cluster.one("Namespace", planned.runner_namespace)["metadata"]
    job = cluster.one("Namespace", planned.job_namespace)["metadata"]
    assert runner["labels"] == {
        **planned.ci_labels,
        "runfleet/part": "runner",
        "pod-security.kubernetes.io/enforce": "restricted",
        "pod-security.kubernetes.io/warn": "restricted",
        "pod-security.kubernetes.io/audit": "restricted",
    }
    assert "annotations" not in runner
    assert job["labels"] == {
        **planned.ci_labels,
        "runfleet/part": "job",
        "pod-security.kubernetes.io/enforce": "baseline",
        "pod-security.kubernetes.io/warn": "restricted",
        "pod-security.kubernetes.io/audit": "restricted",
    }


def test_every_namespace_has_a_level(cluster: Cluster) -> None:
    levels = {
        made.inputs["metadata"]["name"]: made.inputs["metadata"]["labels"][
            "pod-security.kubernetes.io/enforce"
        ]
        for made in cluster.of("Namespace")
    }
    assert {n: v for n, v in levels.items() if not n.startswith(("r-", "j-"))} == {
        "arc-systems": "restricted",
        "external-secrets": "restricted",
        "device-plugins": "privileged",
    }
    assert len(levels) == 3 + 2 * 5


def test_quotas_follow_from_the_maximum_with_room_for_pods_that_end(
    plan: CellPlan, cluster: Cluster
) -> None:
    planned = class_of(plan, "x86-8-16")
    runner = cluster.one("ResourceQuota", "quota", planned.runner_namespace)
    assert runner["spec"]["hard"] == {
        "services": "0",
        "persistentvolumeclaims": "0",
        "pods": "50",
        "requests.cpu": "37500m",
        "limits.cpu": "37500m",
        "requests.memory": "50Gi",
        "limits.memory": "50Gi",
    }
    job = cluster.one("ResourceQuota", "quota", planned.job_namespace)
    assert job["spec"]["hard"] == {
        "services": "0",
        "persistentvolumeclaims": "0",
        "pods": "50",
        "requests.cpu": "450",
        "limits.cpu": "450",
        "requests.memory": "900Gi",
        "limits.memory": "900Gi",
        "requests.ephemeral-storage": "8500Gi",
        "limits.ephemeral-storage": "8500Gi",
    }


def test_quotas_count_accelerators(plan: CellPlan) -> None:
    hard = job_quota(class_of(plan, "l4"), ScaleLimits(0, 4))
    assert hard["pods"] == "6"
    assert hard["requests.nvidia.com/gpu"] == "12"


def test_without_a_maximum_a_quota_bounds_no_pods(plan: CellPlan) -> None:
    limits = ScaleLimits(1, None)
    nothing = {"services": "0", "persistentvolumeclaims": "0"}
    assert job_quota(class_of(plan, "x86-plain"), limits) == nothing
    assert runner_quota(plan.cell, limits) == nothing


def test_container_limits(plan: CellPlan, cluster: Cluster) -> None:
    def limits(name: str, part: str) -> object:
        planned = class_of(plan, name)
        namespace = planned.job_namespace if part == "job" else planned.runner_namespace
        return cluster.one("LimitRange", "limits", namespace)["spec"]["limits"]

    side = {"cpu": "500m", "memory": "1Gi", "ephemeral-storage": "10Gi"}
    assert limits("x86-8-16", "job") == [
        {
            "type": "Container",
            "default": side,
            "defaultRequest": side,
            "max": {"cpu": "8", "memory": "16Gi", "ephemeral-storage": "150Gi"},
        }
    ]
    small = {"cpu": "250m", "memory": "512Mi", "ephemeral-storage": "5Gi"}
    assert limits("x86-plain", "job") == [
        {"type": "Container", "default": small, "defaultRequest": small, "max": small}
    ]
    runner = {"cpu": "750m", "memory": "1Gi"}
    assert limits("x86-8-16", "runner") == [
        {
            "type": "Container",
            "default": runner,
            "defaultRequest": runner,
            "max": runner,
        }
    ]


def test_a_tenants_cap_on_an_accelerator_is_shared_among_its_classes(
    plan: CellPlan,
) -> None:
    assert scale_limits(plan) == {
        "x86-8-16": ScaleLimits(0, 40),  # the cap is of a tenant that it is not of
        "x86-plain": ScaleLimits(1, None),
        "l4": ScaleLimits(2, 4),
        "l4-4": ScaleLimits(0, 1),
        "rel-x86": ScaleLimits(0, 5),
    }


def test_a_tenants_cap_on_a_class_lowers_its_maximum_and_minimum() -> None:
    text = FLEET.replace("accelerator/l4: 5", "l4: 1, l4-4: 9")
    limits = scale_limits(plan_of(fleet_of(text)))
    assert limits["l4"] == ScaleLimits(1, 1)
    assert limits["l4-4"] == ScaleLimits(0, 4)


@given(
    st.integers(0, 500),
    st.lists(st.one_of(st.none(), st.integers(0, 300)), min_size=1, max_size=8),
)
def test_shares_never_pass_the_quota_nor_what_is_wanted(
    quota: int, wanted: list[int | None]
) -> None:
    shares = _shared(quota, wanted)
    asked = [quota if want is None else want for want in wanted]
    assert sum(shares) == min(quota, sum(asked))
    assert all(0 <= share <= want for share, want in zip(shares, asked, strict=True))


def test_only_placeholders_are_ever_preempted(cluster: Cluster) -> None:
    made = {
        m.inputs["metadata"]["name"]: (
            m.inputs["value"],
            m.inputs["preemptionPolicy"],
            m.inputs.get("globalDefault"),  # a stored `false` is left out
        )
        for m in cluster.of("PriorityClass")
    }
    assert made == {
        "runfleet-runner": (2000, "Never", None),
        "runfleet-job-release": (1500, "PreemptLowerPriority", None),
        "runfleet-job": (1000, "PreemptLowerPriority", None),
        "runfleet-placeholder": (-10, "Never", None),
    }
    assert set(made) == set(PRIORITIES)


@pytest.mark.parametrize(
    ("value", "quantity"),
    [
        (4, "4"),
        (0.75, "750m"),
        (11.5, "11500m"),
        (0.1, "100m"),
        (0, "0"),
        (1500, "1500"),
        (1000, "1k"),
        (40000, "40k"),
        (1000.5, "1000500m"),
    ],
)
def test_cores(value: float, quantity: str) -> None:
    assert cores(value) == quantity


@pytest.mark.parametrize(
    ("count", "quantity"),
    [(0, "0"), (999, "999"), (1000, "1k"), (1250, "1250"), (3 * 10**6, "3M")],
)
def test_counts_are_written_as_the_api_server_stores_them(
    count: int, quantity: str
) -> None:
    assert amount(count) == quantity


def test_large_quotas_are_written_as_the_api_server_stores_them(
    plan: CellPlan,
) -> None:
    hard = job_quota(class_of(plan, "l4"), ScaleLimits(0, 1600))
    assert hard["pods"] == "2k"
    assert hard["requests.nvidia.com/gpu"] == "4k"
    assert hard["requests.cpu"] == "25k"
    assert runner_quota(plan.cell, ScaleLimits(0, 1600))["pods"] == "2k"
