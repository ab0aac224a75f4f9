"""The runner classes of an applied stack, read as ARC and the container hooks do.

Nothing here asks Runfleet's own code: names, namespaces, templates and images come
from the objects, in the way in which the programs that act on them find them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cluster.harness.client import Account, Object
from cluster.harness.recorded import Recorded

HOOK_TEMPLATE_VARIABLE = "ACTIONS_RUNNER_CONTAINER_HOOK_TEMPLATE"
NAMESPACE_VARIABLE = "ACTIONS_RUNNER_KUBERNETES_NAMESPACE"
IMAGE_VARIABLE = "ACTIONS_RUNNER_IMAGE"
_AMOUNTS = ("cpu", "memory", "ephemeral-storage")


@dataclass(frozen=True)
class RunnerClass:
    """One class on a cluster.

    Attributes:
        name: Name of its scale set.
        runner_namespace: Namespace `R` of its runner pods.
        job_namespace: Namespace `J` of its job pods.
        scale_set: Its AutoscalingRunnerSet.
        template: The pod template that the hooks read in its runner pods.
        annotations: Annotations of its job namespace.
        quota: What `J` may use at most.
    """

    name: str
    runner_namespace: str
    job_namespace: str
    scale_set: Object
    template: Object
    annotations: dict[str, str]
    quota: dict[str, str]

    @property
    def runner(self) -> Account:
        """Account of its runner pods."""
        spec = self.scale_set["spec"]["template"]["spec"]
        return Account(self.runner_namespace, spec["serviceAccountName"])

    @property
    def job(self) -> Account:
        """Account of its job pods."""
        return Account(self.job_namespace, self.template["spec"]["serviceAccountName"])

    @property
    def runner_image(self) -> str:
        """Image that the hooks' own init container uses."""
        return environment(self.scale_set)[IMAGE_VARIABLE]

    @property
    def job_image(self) -> str:
        """An image that the class's jobs may use: the first source, named in full."""
        sources = self.annotations["runfleet/image-sources"].split(",")
        for source in sources:
            if source.endswith("/"):
                return f"{source}runfleet-test/ci:1"
        return sources[0]

    @property
    def labels(self) -> dict[str, str]:
        """Labels of its job pods that say whose they are."""
        found = self.template["metadata"]["labels"]
        return {key: found[key] for key in found if key.startswith("ci_")}

    @property
    def devices(self) -> dict[str, str]:
        """Extended resources that each job asks for."""
        [job] = self.template["spec"]["containers"]
        limits = job["resources"]["limits"]
        return {name: limits[name] for name in limits if name not in _AMOUNTS}


def classes_of(objects: Sequence[Recorded]) -> list[RunnerClass]:
    """Return the classes of a stack's objects, by their scale sets."""
    by_key = {found.key[1:]: found.object for found in objects}
    return [
        _class(found.object, by_key)
        for found in objects
        if found.kind == "AutoscalingRunnerSet"
    ]


def environment(scale_set: Object) -> dict[str, str]:
    """Return the fixed environment of a scale set's runner container."""
    return {
        entry["name"]: entry["value"]
        for entry in _runner(scale_set)["env"]
        if "value" in entry
    }


def _class(scale_set: Object, by_key: dict[Any, Object]) -> RunnerClass:
    metadata = scale_set["metadata"]
    space = metadata["namespace"]
    job_space = environment(scale_set)[NAMESPACE_VARIABLE]
    return RunnerClass(
        metadata["name"],
        space,
        job_space,
        scale_set,
        _hook_template(scale_set, space, by_key),
        by_key[("Namespace", "", job_space)]["metadata"]["annotations"],
        by_key[("ResourceQuota", job_space, "quota")]["spec"]["hard"],
    )


def _hook_template(scale_set: Object, space: str, by_key: dict[Any, Object]) -> Object:
    """Return the file that the runner container finds at the hooks' variable."""
    folder, _, file = environment(scale_set)[HOOK_TEMPLATE_VARIABLE].rpartition("/")
    [mount] = [
        found
        for found in _runner(scale_set)["volumeMounts"]
        if found["mountPath"] == folder
    ]
    [volume] = [
        found
        for found in scale_set["spec"]["template"]["spec"]["volumes"]
        if found["name"] == mount["name"]
    ]
    held = by_key[("ConfigMap", space, volume["configMap"]["name"])]
    template: Object = json.loads(held["data"][file])
    return template


def _runner(scale_set: Object) -> Object:
    [container] = [
        found
        for found in scale_set["spec"]["template"]["spec"]["containers"]
        if found["name"] == "runner"
    ]
    return container
