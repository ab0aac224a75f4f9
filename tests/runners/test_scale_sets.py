from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runfleet.placement import CellPlan
from runfleet.runners.scale_sets import (
    ScaleSetArgs,
    runner_image,
    scale_set_annotations,
    scale_set_spec,
)
from runfleet.runners.tenancy import ScaleLimits
from runners.cells import IMAGE, Cluster, class_of, pins_of


def scale_set(cluster: Cluster, plan: CellPlan, name: str) -> dict[str, Any]:
    planned = class_of(plan, name)
    return cluster.one("AutoscalingRunnerSet", planned.label, planned.runner_namespace)


def test_a_scale_set_is_exactly_this(plan: CellPlan, cluster: Cluster) -> None:
    planned = class_of(plan, "x86-8-16")
    made = scale_set(cluster, plan, "x86-8-16")
    assert made["apiVersion"] == "actions.github.com/v1alpha1"
    assert made["metadata"]["labels"] == {
        **planned.ci_labels,
        "app.kubernetes.io/name": "lf-x86-8-16",
        "app.kubernetes.io/instance": "lf-x86-8-16",
        "app.kubernetes.io/version": "0.14.2",
        "app.kubernetes.io/component": "autoscaling-runner-set",
        "app.kubernetes.io/part-of": "gha-rs",
        "app.kubernetes.io/managed-by": "runfleet",
        "actions.github.com/scale-set-name": "lf-x86-8-16",
        "actions.github.com/scale-set-namespace": "r-lf-x86-8-16--aws",
    }
    spec = made["spec"]
    pod = spec.pop("template")["spec"]
    spec.pop("listenerMetrics")
    listener = spec.pop("listenerTemplate")["spec"]
    assert spec == {
        "githubConfigUrl": "https://github.com/demo-org",
        "githubConfigSecret": "github-app",
        "runnerGroup": "ci",
        "runnerScaleSetName": "lf-x86-8-16",
        "minRunners": 0,
        "maxRunners": 40,
    }
    assert pod.pop("containers") == [
        {
            "name": "runner",
            "image": IMAGE,
            "command": ["/home/runner/run.sh"],
            "env": [
                {
                    "name": "ACTIONS_RUNNER_POD_NAME",
                    "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}},
                },
                {
                    "name": "ACTIONS_RUNNER_CONTAINER_HOOKS",
                    "value": "/home/runner/k8s-novolume/index.js",
                },
                {
                    "name": "ACTIONS_RUNNER_CONTAINER_HOOK_TEMPLATE",
                    "value": "/home/runner/hook-template/job-pod.yaml",
                },
                {"name": "ACTIONS_RUNNER_IMAGE", "value": IMAGE},
                {
                    "name": "ACTIONS_RUNNER_KUBERNETES_NAMESPACE",
                    "value": "j-lf-x86-8-16--aws",
                },
                {
                    "name": "ACTIONS_RUNNER_PREPARE_JOB_TIMEOUT_SECONDS",
                    "value": "7200",
                },
                {"name": "ACTIONS_RUNNER_REQUIRE_JOB_CONTAINER", "value": "true"},
                {"name": "DOTNET_GCConserveMemory", "value": "5"},
                {"name": "DOTNET_GCHeapHardLimit", "value": "C800000"},
                {"name": "NODE_OPTIONS", "value": "--max-old-space-size=128"},
            ],
            "resources": {
                "requests": {"cpu": "750m", "memory": "1Gi"},
                "limits": {"cpu": "750m", "memory": "1Gi"},
            },
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
                "privileged": False,
            },
            "volumeMounts": [
                {"name": "work", "mountPath": "/home/runner/_work"},
                {
                    "name": "hook-template",
                    "mountPath": "/home/runner/hook-template",
                    "readOnly": True,
                },
            ],
        }
    ]
    assert pod == {
        "serviceAccountName": "runner",
        "automountServiceAccountToken": True,
        "enableServiceLinks": False,
        "restartPolicy": "Never",
        "priorityClassName": "runfleet-runner",
        "nodeSelector": {
            "workload-type": "github-runner",
            "node-fleet": "runners",
            "ci_trust": "shared",
        },
        "tolerations": [
            {
                "key": "node-fleet",
                "operator": "Equal",
                "effect": "NoSchedule",
                "value": "runners",
            },
            {"key": "instance-type", "operator": "Exists", "effect": "NoSchedule"},
        ],
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 1001,
            "runAsGroup": 1001,
            "fsGroup": 1001,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumes": [
            {"name": "work", "emptyDir": {}},
            {"name": "hook-template", "configMap": {"name": "hook-template"}},
        ],
    }
    assert [c["name"] for c in listener["containers"]] == ["listener"]
    assert listener["securityContext"]["runAsNonRoot"] is True


def test_listener_metrics_reach_a_day_and_carry_few_labels(
    plan: CellPlan, cluster: Cluster
) -> None:
    metrics = scale_set(cluster, plan, "l4")["spec"]["listenerMetrics"]
    expected = [30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 14400, 18000,
                21600, 28800, 43200, 86400]  # fmt: skip
    assert metrics["histograms"] == {
        "gha_job_startup_duration_seconds": {
            "labels": ["repository", "job_workflow_name"],
            "buckets": expected,
        },
        "gha_job_execution_duration_seconds": {
            "labels": ["repository", "job_workflow_name", "job_result"],
            "buckets": expected,
        },
    }
    labels = {
        label
        for kind in metrics.values()
        for series in kind.values()
        for label in series["labels"]
    }
    assert labels.isdisjoint(
        {"job_name", "event_name", "job_workflow_ref", "job_workflow_target"}
    )


def test_release_classes_register_in_their_own_group(
    plan: CellPlan, cluster: Cluster
) -> None:
    spec = scale_set(cluster, plan, "rel-x86")["spec"]
    assert spec["runnerGroup"] == "release"
    assert spec["template"]["spec"]["nodeSelector"] == {
        "workload-type": "github-runner",
        "node-fleet": "c7i",
        "ci_trust": "release",
    }


def test_an_unbounded_class_has_no_maximum(plan: CellPlan, cluster: Cluster) -> None:
    spec = scale_set(cluster, plan, "x86-plain")["spec"]
    assert spec["minRunners"] == 1
    assert "maxRunners" not in spec


@given(st.integers(1, 60))
def test_names_are_as_long_as_the_chart_allows(plan: CellPlan, length: int) -> None:
    planned = dataclasses.replace(class_of(plan, "l4"), label="x" * length)
    args = ScaleSetArgs(plan, planned, ScaleLimits(0, 1))
    if length <= 45:
        assert scale_set_spec(args)["runnerScaleSetName"] == "x" * length
    else:
        with pytest.raises(ValueError, match=f"has {length} characters.*at most 45"):
            scale_set_spec(args)


def test_the_values_hash_changes_with_the_spec_and_with_nothing_else() -> None:
    key = "actions.github.com/values-hash"
    first = scale_set_annotations({"maxRunners": 1, "minRunners": 0})
    same = scale_set_annotations({"minRunners": 0, "maxRunners": 1})
    other = scale_set_annotations({"maxRunners": 2, "minRunners": 0})
    assert first == same
    assert first[key] != other[key]
    assert len(first[key]) == 63


@pytest.mark.parametrize(
    ("pinned", "image"),
    [
        ("sha256:ab", "ghcr.io/actions/actions-runner@sha256:ab"),
        ("2.331.0", "ghcr.io/actions/actions-runner:2.331.0"),
        ("unresolved", "ghcr.io/actions/actions-runner:unresolved"),
        ("registry.example/r:1", "registry.example/r:1"),
    ],
)
def test_the_runner_image_pin_may_be_a_reference_a_digest_or_a_tag(
    pinned: str, image: str
) -> None:
    assert runner_image(pins_of(arc_runner_image=pinned)) == image
