"""Pods, runner scale sets, service accounts and roles, wherever they stand.

The pods that run jobs are written in several places: in an AutoscalingRunnerSet, in
the values of ARC's Helm chart, and in the pod template of the container hooks,
which is text inside a ConfigMap. The readers here find them all and give each the
same form.

Facts about ARC are those of its chart ``gha-runner-scale-set`` 0.14.2
(github.com/actions/actions-runner-controller at 2ee6b3b); facts about the hooks
those of github.com/actions/runner-container-hooks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, cast

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from runfleet_policies.values import CannotTell, get, items, mapping, text
from runfleet_policies.view import ResourceView, StackView

RUNNER_SET = "kubernetes:actions.github.com/*:AutoscalingRunnerSet"
RELEASE = "kubernetes:helm.sh/*:Release"
CHART = "kubernetes:helm.sh/*:Chart"
CONFIG_MAP = "kubernetes:core/v1:ConfigMap"
NAMESPACE = "kubernetes:core/v1:Namespace"
SERVICE_ACCOUNT = "kubernetes:core/v1:ServiceAccount"
SECRET = "kubernetes:core/v1:Secret"
WORKLOADS = (
    "kubernetes:core/v1:Pod",
    "kubernetes:apps/v1:Deployment",
    "kubernetes:apps/v1:StatefulSet",
    "kubernetes:apps/v1:ReplicaSet",
    "kubernetes:batch/v1:Job",
    "kubernetes:batch/v1:CronJob",
)
DAEMON_SET = "kubernetes:apps/v1:DaemonSet"
TEMPLATES = (RUNNER_SET, RELEASE, CHART, CONFIG_MAP)

SCALE_SET_CHART = "gha-runner-scale-set"
CONTROLLER_CHART = "gha-runner-scale-set-controller"


@dataclass(frozen=True)
class PodSpec:
    """One pod, or the template of one.

    Attributes:
        resource: The resource that it stands in.
        place: Where it stands there.
        spec: The pod's spec.
        role: ``runner`` (talks to GitHub), ``job`` (runs a job's steps beside the
            runner) or ``other``.
        namespace: Namespace that it runs in; empty when its runner decides.
    """

    resource: ResourceView
    place: str
    spec: Mapping[str, Any]
    role: str
    namespace: str

    def containers(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield each container with its place."""
        for field in ("initContainers", "containers"):
            for index, _ in enumerate(items(self.spec, field)):
                yield (
                    f"{self.place}.{field}[{index}]",
                    mapping(self.spec, field, index),
                )

    @property
    def service_account(self) -> str:
        """Name of its service account."""
        return (
            text(self.spec, "serviceAccountName")
            or text(self.spec, "serviceAccount")
            or "default"
        )

    def env(self, name: str) -> str | None:
        """Return the value of an environment variable of any container."""
        for _, container in self.containers():
            for index, _ in enumerate(items(container, "env")):
                if text(container, "env", index, "name") == name:
                    return text(container, "env", index, "value")
        return None


@dataclass(frozen=True)
class ScaleSet:
    """A runner scale set, as a resource or as values of ARC's chart.

    Attributes:
        resource: The resource that makes it.
        values: The chart's values, or the resource's spec: the same names in both.
        helm: Whether the chart makes it.
        prefix: What findings put before a place in ``values``.
        namespace: Namespace of its runners.
    """

    resource: ResourceView
    values: Mapping[str, Any]
    helm: bool
    prefix: str
    namespace: str

    @property
    def name(self) -> str:
        """The scale set's name: what jobs ask for."""
        named = text(self.values, "runnerScaleSetName")
        return named or helm_name(self.resource, self.helm)

    @property
    def mode(self) -> str:
        """The chart's container mode; for a resource, what its template does."""
        if self.helm:
            return text(self.values, "containerMode", "type")
        pod = self.pod
        if pod is None:
            return ""
        hooks = pod.env("ACTIONS_RUNNER_CONTAINER_HOOKS")
        if hooks is not None:
            return "kubernetes-novolume" if "novolume" in hooks else "kubernetes"
        return "dind" if any(_docker(c) for _, c in pod.containers()) else ""

    @property
    def pod(self) -> PodSpec | None:
        """The runner's pod template."""
        spec = mapping(self.values, "template", "spec")
        if not spec:
            return None
        place = f"{self.prefix}.template.spec"
        return PodSpec(self.resource, place, spec, "runner", self.namespace)

    @property
    def service_account(self) -> str:
        """Service account of its runners; empty when the chart makes one."""
        pod = self.pod
        named = text(pod.spec, "serviceAccountName") if pod is not None else ""
        return named or ("" if self.helm else "default")

    @property
    def job_namespace(self) -> str:
        """Namespace of its job pods."""
        pod = self.pod
        named = pod.env("ACTIONS_RUNNER_KUBERNETES_NAMESPACE") if pod else None
        return named or self.namespace

    def label(self, key: str) -> str:
        """Return a label of the scale set; empty when it has none."""
        if self.helm:
            return text(self.values, "labels", key)
        return self.resource.text("metadata", "labels", key)


def _docker(container: Mapping[str, Any]) -> bool:
    image = text(container, "image")
    privileged = get(container, "securityContext", "privileged") is True
    return "dind" in image and ("rootless" not in image or privileged)


def helm_name(resource: ResourceView, helm: bool) -> str:
    """Return the name of a Helm release, or of a Kubernetes object."""
    return (
        resource.text("name", default=resource.name) if helm else (resource.object_name)
    )


def chart_of(resource: ResourceView) -> str:
    """Return the name of the chart that a Helm resource installs."""
    return resource.text("chart").rstrip("/").rpartition("/")[2]


def helm_namespace(resource: ResourceView) -> str:
    """Return the namespace that a Helm resource installs into."""
    return resource.text("namespace", default="default")


def releases(stack: StackView, chart: str) -> Iterator[ResourceView]:
    """Yield the Helm resources that install a chart."""
    for resource in stack.of(RELEASE, CHART):
        try:
            if chart_of(resource) == chart:
                yield resource
        except CannotTell:
            continue


def scale_set(resource: ResourceView) -> ScaleSet | None:
    """Return the scale set that a resource makes, if it makes one."""
    if resource.type.endswith(":AutoscalingRunnerSet"):
        spec = resource.mapping("spec")
        return ScaleSet(resource, spec, False, "spec", resource.namespace)
    if resource.type.startswith("kubernetes:helm.sh/"):
        if chart_of(resource) != SCALE_SET_CHART:
            return None
        values = resource.mapping("values")
        return ScaleSet(resource, values, True, "values", helm_namespace(resource))
    return None


def scale_sets(stack: StackView) -> Sequence[ScaleSet]:
    """Return the scale sets of a stack; those that cannot be read are passed over.

    A rule that judges scale sets one by one reports what it cannot read.
    """
    return stack.memo("kube.scale_sets", lambda s: tuple(_scale_sets(s)))


def _scale_sets(stack: StackView) -> Iterator[ScaleSet]:
    for resource in stack.of(RUNNER_SET, RELEASE, CHART):
        try:
            found = scale_set(resource)
        except CannotTell:
            continue
        if found is not None:
            yield found


def pods_in(resource: ResourceView) -> Iterator[PodSpec]:
    """Yield the pods that a resource starts, or whose template it carries."""
    kind = resource.type.rpartition(":")[2]
    if kind == "ConfigMap":
        yield from _hook_templates(resource)
        return
    found = scale_set(resource)
    if found is not None:
        if found.pod is not None:
            yield found.pod
        return
    path: tuple[str, ...] = {
        "Pod": ("spec",),
        "CronJob": ("spec", "jobTemplate", "spec", "template", "spec"),
    }.get(kind, ("spec", "template", "spec"))
    spec = resource.mapping(*path)
    if spec and not kind.endswith(("Release", "Chart")):
        yield PodSpec(resource, ".".join(path), spec, "other", resource.namespace)


def _hook_templates(resource: ResourceView) -> Iterator[PodSpec]:
    for key in resource.mapping("data"):
        content = resource.text("data", key)
        if "spec" not in content or "containers" not in content:
            continue
        spec = _template_spec(content)
        if spec is not None:
            yield PodSpec(resource, f"data.{key}.spec", spec, "job", "")


@lru_cache(maxsize=16384)
def _template_spec(content: str) -> Mapping[str, Any] | None:
    try:
        data: Any = json.loads(content)
    except json.JSONDecodeError:
        try:
            data = YAML(typ="safe").load(content)  # type: ignore[reportUnknownMemberType]
        except YAMLError:
            return None
    if not isinstance(data, Mapping):
        return None
    template = cast("Mapping[str, Any]", data)
    if template.get("kind", "PodTemplate") not in ("PodTemplate", "Pod"):
        return None
    spec: Any = template.get("spec") or get(template, "template", "spec")
    if not isinstance(spec, Mapping) or "containers" not in spec:
        return None
    return cast("Mapping[str, Any]", spec)


def runner_namespaces(stack: StackView) -> set[str]:
    """Return the namespaces in which runners and jobs run."""
    return stack.memo("kube.runner_namespaces", _runner_namespaces)


def job_namespaces(stack: StackView) -> set[str]:
    """Return the namespaces in which job pods run.

    Raises:
        CannotTell: A scale set's is not known.
    """
    return stack.memo(
        "kube.job_namespaces", lambda s: {f.job_namespace for f in scale_sets(s)}
    )


def _runner_namespaces(stack: StackView) -> set[str]:
    found: set[str] = set()
    for scale in scale_sets(stack):
        found.add(scale.namespace)
        try:
            found.add(scale.job_namespace)
        except CannotTell:
            continue
    return found


def controller_namespaces(stack: StackView) -> set[str]:
    """Return the namespaces in which ARC's controller runs."""
    found = {helm_namespace(r) for r in releases(stack, CONTROLLER_CHART)}
    for resource in stack.of("kubernetes:apps/v1:Deployment"):
        try:
            if is_controller(resource):
                found.add(resource.namespace)
        except CannotTell:
            continue
    return found


def is_controller(deployment: ResourceView) -> bool:
    """Say whether a Deployment runs ARC's controller."""
    return any(
        CONTROLLER_CHART in text(container, "image")
        for pod in pods_in(deployment)
        for _, container in pod.containers()
    )


@dataclass(frozen=True)
class Right:
    """One rule of a role that a service account has.

    Attributes:
        role: The Role or ClusterRole; ``None`` when it is not in the stack.
        role_name: Its name.
        binding: What binds it.
        namespace: Namespace that it counts in; empty for the whole cluster.
        rule: The rule: ``verbs``, ``resources``, ``apiGroups``, ``resourceNames``.
        index: Position of the rule in the role.
    """

    role: ResourceView | None
    role_name: str
    binding: ResourceView
    namespace: str
    rule: Mapping[str, Any]
    index: int

    def allows(self, verbs: set[str], resource: str) -> bool:
        """Say whether it allows one of some verbs on a kind of core resource."""
        groups = [str(g) for g in items(self.rule, "apiGroups")]
        named = [str(r) for r in items(self.rule, "resources")]
        listed = {str(v) for v in items(self.rule, "verbs")}
        return (
            ("" in groups or "*" in groups)
            and (resource in named or "*" in named)
            and bool(listed & (verbs | {"*"}))
        )


def rights(stack: StackView, namespace: str, account: str) -> Iterator[Right]:
    """Yield the rights of a service account, those of its groups included.

    Roles that are not in the stack yield one right with an empty rule.
    """
    roles = stack.memo("kube.roles", _roles)
    bindings = stack.memo("kube.bindings", _bindings)
    subjects = (
        ("ServiceAccount", namespace, account),
        ("User", "", f"system:serviceaccount:{namespace}:{account}"),
        ("Group", "", "system:authenticated"),
        ("Group", "", "system:serviceaccounts"),
        ("Group", "", f"system:serviceaccounts:{namespace}"),
    )
    for binding in (found for s in subjects for found in bindings.get(s, ())):
        kind = binding.text("roleRef", "kind", default="ClusterRole")
        name = binding.text("roleRef", "name")
        wide = binding.type.endswith(":ClusterRoleBinding")
        scope = "" if wide else binding.namespace
        role = roles.get((kind, "" if kind == "ClusterRole" else scope, name))
        if role is None:
            yield Right(None, name, binding, scope, {}, 0)
            continue
        for index, _ in enumerate(role.items("rules")):
            rule = role.mapping("rules", index)
            yield Right(role, name, binding, scope, rule, index)


def _roles(stack: StackView) -> dict[tuple[str, str, str], ResourceView]:
    found: dict[tuple[str, str, str], ResourceView] = {}
    for role in stack.of("kubernetes:rbac.authorization.k8s.io/v1:Role"):
        found["Role", role.namespace, role.object_name] = role
    for role in stack.of("kubernetes:rbac.authorization.k8s.io/v1:ClusterRole"):
        found["ClusterRole", "", role.object_name] = role
    return found


def _bindings(
    stack: StackView,
) -> dict[tuple[str, str, str], list[ResourceView]]:
    """Index the bindings by subject: kind, namespace (accounts only) and name."""
    found: dict[tuple[str, str, str], list[ResourceView]] = {}
    for binding in stack.of(
        "kubernetes:rbac.authorization.k8s.io/v1:RoleBinding",
        "kubernetes:rbac.authorization.k8s.io/v1:ClusterRoleBinding",
    ):
        own = "" if binding.type.endswith("ClusterRoleBinding") else binding.namespace
        for index, _ in enumerate(binding.items("subjects")):
            kind = binding.text("subjects", index, "kind")
            where = binding.text("subjects", index, "namespace", default=own)
            key = (
                kind,
                where if kind == "ServiceAccount" else "",
                binding.text("subjects", index, "name"),
            )
            found.setdefault(key, []).append(binding)
    return found


def matches_any(name: str, patterns: list[str]) -> bool:
    """Say whether a name matches one of some shell patterns."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)
