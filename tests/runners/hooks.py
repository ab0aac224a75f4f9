"""The job pod that the container hooks build, from their published source.

actions/runner-container-hooks, ``packages/k8s/src/k8s/index.ts`` (``createJobPod``)
and ``utils.ts`` (the merge functions), variant without volumes.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

RESOURCES = ("cpu", "memory", "ephemeral-storage")


def hook_pod(
    template: Mapping[str, Any],
    runner_image: str,
    job_image: str = "ghcr.io/demo-org/ci:2026-01",
    services: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Return the pod that the hooks create for a job with this template."""
    job: dict[str, Any] = {
        "name": "job",
        "image": job_image,
        "command": ["tail"],
        "args": ["-f", "/dev/null"],
        "env": [{"name": "CI", "value": "true"}],
        "volumeMounts": [
            {"name": "work", "mountPath": "/__w"},
            {"name": "externals", "mountPath": "/__e"},
            {"name": "github", "mountPath": "/github"},
        ],
    }
    extension = copy.deepcopy(dict(template))
    for container in extension["spec"]["containers"]:
        if container["name"] == "$job":
            _merge_container(job, container)
    pod: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "lf-x86-abcde-workflow",
            "labels": {"runner-pod": "lf-x86-abcde"},
            "annotations": {},
        },
        "spec": {
            "containers": [
                job,
                *({"name": f"s{i}", "image": s} for i, s in enumerate(services)),
            ],
            "securityContext": {"fsGroup": 1001},
            "initContainers": [
                {
                    "name": "fs-init",
                    "image": runner_image,
                    "command": ["sh", "-c", "mv /home/runner/externals/* /mnt/"],
                    "securityContext": {"runAsGroup": 1001, "runAsUser": 1001},
                    "volumeMounts": [
                        {"name": "externals", "mountPath": "/mnt/externals"},
                        {"name": "work", "mountPath": "/mnt/work"},
                        {"name": "github", "mountPath": "/mnt/github"},
                    ],
                }
            ],
            "restartPolicy": "Never",
            "volumes": [
                {"name": "externals", "emptyDir": {}},
                {"name": "github", "emptyDir": {}},
                {"name": "work", "emptyDir": {}},
            ],
        },
    }
    pod["metadata"]["labels"] |= extension["metadata"].get("labels", {})
    pod["metadata"]["annotations"] |= extension["metadata"].get("annotations", {})
    for key, value in extension["spec"].items():
        if key == "containers":
            pod["spec"]["containers"] += [
                c for c in value if not c["name"].startswith("$")
            ]
        elif key == "volumes":
            pod["spec"]["volumes"] += value
        else:
            pod["spec"][key] = value
    return pod


def with_limit_defaults(
    pod: Mapping[str, Any], limit: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a pod as the API server's LimitRanger fills it in."""
    filled = copy.deepcopy(dict(pod))
    for container in _containers(filled):
        resources = container.setdefault("resources", {})
        limits = resources.setdefault("limits", {})
        requests = resources.setdefault("requests", {})
        for name in RESOURCES:
            given = limits.get(name)
            if name in limit["default"]:
                limits.setdefault(name, limit["default"][name])
            if name in limit["defaultRequest"]:
                requests.setdefault(name, given or limit["defaultRequest"][name])
    return filled


def quality_of_service(pod: Mapping[str, Any]) -> str:
    """Return a pod's QoS class, as Kubernetes documents it."""
    amounts = [
        (
            c.get("resources", {}).get("requests", {}).get(name),
            c.get("resources", {}).get("limits", {}).get(name),
        )
        for c in _containers(pod)
        for name in ("cpu", "memory")
    ]
    if all(limit is not None and request == limit for request, limit in amounts):
        return "Guaranteed"
    if all(request is None and limit is None for request, limit in amounts):
        return "BestEffort"
    return "Burstable"


def _containers(pod: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])]


def _merge_container(base: dict[str, Any], extra: Mapping[str, Any]) -> None:
    for key, value in extra.items():
        if key in ("name", "image"):
            continue
        if key in ("env", "volumeMounts", "ports"):
            base[key] = [*base.get(key, []), *value]
        else:
            base[key] = value
