"""The pods that ARC and the container hooks build, written from their sources.

- Job and step pods: actions/runner-container-hooks at cf62bcc,
  `packages/k8s/src/k8s/index.ts` (`createJobPod`, `createContainerStepPod`),
  `hooks/prepare-job.ts`, `hooks/run-container-step.ts` and `k8s/utils.ts` (how a
  template is merged): the variant without volumes.
- Runner and listener pods: actions/actions-runner-controller at 2ee6b3b (0.14.2),
  `controllers/actions.github.com/resourcebuilder.go` (`newEphemeralRunnerPod`,
  `newScaleSetListenerPod`, `mergeListenerPodWithTemplate`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from cluster.harness.classes import RunnerClass
from cluster.harness.client import Object

_MARK = "$"
_LISTS = ("env", "volumeMounts", "ports")


def job_pod(
    runner_class: RunnerClass,
    image: str = "",
    services: Sequence[str] = (),
    registry_secret: str = "",
    change: Callable[[Object], None] | None = None,
) -> Object:
    """Return the pod that the hooks start for a job.

    Args:
        runner_class: The class.
        image: Image of the job's container; one that the class allows when empty.
        services: Images of service containers.
        registry_secret: Secret that the hooks made from the workflow's credentials.
        change: What a runner that plays foul does to the pod.
    """
    template = copy.deepcopy(runner_class.template)
    runner = f"{runner_class.name}-abcde-runner-fghij"
    containers = [
        _container("job", image or runner_class.job_image, template)
        | {"command": ["tail"], "args": ["-f", "/dev/null"]},
        *(
            _container(f"service-{number}", service, template)
            for number, service in enumerate(services)
        ),
    ]
    spec: Object = {
        "containers": containers,
        "securityContext": {"fsGroup": 1001},
        "initContainers": [_first_container(runner_class.runner_image)],
        "restartPolicy": "Never",
        "volumes": _volumes(),
    }
    if registry_secret:
        spec["imagePullSecrets"] = [{"name": registry_secret}]
    pod = _pod(runner_class, f"{runner[:54]}-workflow", runner, spec, template)
    if change is not None:
        change(pod)
    return pod


def step_pod(runner_class: RunnerClass, image: str = "") -> Object:
    """Return the pod that the hooks start for a container action."""
    template = copy.deepcopy(runner_class.template)
    runner = f"{runner_class.name}-abcde-runner-fghij"
    step = {
        "name": "job",
        "image": image or runner_class.job_image,
        "workingDir": "/__w",
        "command": ["tail"],
        "args": ["-f", "/dev/null"],
        "volumeMounts": _mounts(),
    }
    _merge_container(step, _of_job(template))
    spec: Object = {
        "containers": [step],
        "restartPolicy": "Never",
        "volumes": _volumes(),
    }
    return _pod(runner_class, f"{runner[:49]}-step-0a1b2c3d", runner, spec, template)


def runner_pod(runner_class: RunnerClass) -> Object:
    """Return the pod that ARC's controller starts for a runner."""
    template = copy.deepcopy(runner_class.scale_set["spec"]["template"])
    name = f"{runner_class.name}-abcde-runner-fghij"
    for container in template["spec"]["containers"]:
        if container["name"] == "runner":
            container["env"] += [
                {
                    "name": "ACTIONS_RUNNER_INPUT_JITCONFIG",
                    "valueFrom": {"secretKeyRef": {"name": name, "key": "jitToken"}},
                },
                {
                    "name": "GITHUB_ACTIONS_RUNNER_EXTRA_USER_AGENT",
                    "value": "actions-runner-controller/0.14.2",
                },
                {
                    "name": "ACTIONS_RUNNER_RETURN_VERSION_DEPRECATED_EXIT_CODE",
                    "value": "1",
                },
            ]
    metadata = template.get("metadata", {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": runner_class.runner_namespace,
            "labels": {"actions-ephemeral-runner": "True"} | metadata.get("labels", {}),
            "annotations": metadata.get("annotations", {}),
        },
        "spec": template["spec"],
    }


def listener_pod(runner_class: RunnerClass, namespace: str, account: str) -> Object:
    """Return the pod of a scale set's listener, beside ARC's controller."""
    template = copy.deepcopy(runner_class.scale_set["spec"]["listenerTemplate"])
    listener: Object = {
        "name": "listener",
        "image": "ghcr.io/actions/gha-runner-scale-set-controller:0.14.2",
        "command": ["/ghalistener"],
        "env": [
            {"name": "LISTENER_CONFIG_PATH", "value": "/etc/gha-listener/config.json"}
        ],
        "volumeMounts": [
            {
                "name": "listener-config",
                "mountPath": "/etc/gha-listener",
                "readOnly": True,
            }
        ],
    }
    for container in template["spec"].pop("containers"):
        if container["name"] == "listener":
            _merge_container(listener, container)
    spec: Object = {
        "serviceAccountName": account,
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "containers": [listener],
        "volumes": [
            {
                "name": "listener-config",
                "secret": {"secretName": f"{runner_class.name}-config"},
            }
        ],
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 60,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{runner_class.name}-listener",
            "namespace": namespace,
        },
        "spec": spec | template["spec"],
    }


def _pod(
    runner_class: RunnerClass, name: str, runner: str, spec: Object, template: Object
) -> Object:
    metadata = template.get("metadata", {})
    for key, value in template["spec"].items():
        if key == "containers":
            spec[key] += [one for one in value if not one["name"].startswith(_MARK)]
        elif key == "volumes":
            spec[key] += value
        else:
            spec[key] = value
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": runner_class.job_namespace,
            "labels": {"runner-pod": runner} | metadata.get("labels", {}),
            "annotations": metadata.get("annotations", {}),
        },
        "spec": spec,
    }


def _container(name: str, image: str, template: Object) -> Object:
    container: Object = {
        "name": name,
        "image": image,
        "ports": [],
        "env": [
            {"name": "GITHUB_ACTIONS", "value": "true"},
            {"name": "CI", "value": "true"},
        ],
        "volumeMounts": _mounts(),
    }
    for found in template["spec"]["containers"]:
        if found["name"] == f"{_MARK}{name}":
            _merge_container(container, found)
    return container


def _first_container(image: str) -> Object:
    """Return the init container that copies the runner's tools into the job's pod."""
    folders = " && ".join(
        f"mkdir -p /mnt/{name}" for name in ("externals", "work", "github")
    )
    return {
        "name": "fs-init",
        "image": image,
        "command": [
            "sh",
            "-c",
            f"{folders} && mv /home/runner/externals/* /mnt/externals/"
            " && mkdir -p /mnt/work/pytorch/pytorch",
        ],
        "securityContext": {"runAsGroup": 1001, "runAsUser": 1001},
        "volumeMounts": [
            {"name": name, "mountPath": f"/mnt/{name}"}
            for name in ("externals", "work", "github")
        ],
    }


def _mounts() -> list[Object]:
    return [
        {"name": "externals", "mountPath": "/__e"},
        {"name": "work", "mountPath": "/__w"},
        {"name": "github", "mountPath": "/github"},
    ]


def _volumes() -> list[Object]:
    return [{"name": name, "emptyDir": {}} for name in ("externals", "github", "work")]


def _of_job(template: Object) -> Object:
    for found in template["spec"]["containers"]:
        if found["name"] == f"{_MARK}job":
            return dict(found)
    return {}


def _merge_container(base: Object, extra: dict[str, Any]) -> None:
    for key, value in extra.items():
        if key in ("name", "image"):
            continue
        base[key] = [*base.get(key, []), *value] if key in _LISTS else value
