"""Kubernetes: what keeps jobs apart from each other and from the node."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from runfleet.spec.findings import Severity
from runfleet_policies.kube import (
    DAEMON_SET,
    NAMESPACE,
    RUNNER_SET,
    SERVICE_ACCOUNT,
    TEMPLATES,
    WORKLOADS,
    PodSpec,
    Right,
    controller_namespaces,
    job_namespaces,
    matches_any,
    pods_in,
    rights,
    runner_namespaces,
    scale_sets,
)
from runfleet_policies.rule import Breach, Context, Parameter, Rule, guarded
from runfleet_policies.values import (
    CannotTell,
    get,
    items,
    mapping,
    text,
    texts,
    truth,
)
from runfleet_policies.view import ResourceView, StackView

ENFORCE = "pod-security.kubernetes.io/enforce"
BASELINE_CAPABILITIES = (
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
)
"""What Pod Security level baseline lets a container add (kubernetes.io, "Pod Security
Standards")."""

_IMAGE = re.compile(
    r"^(?P<name>[^@]+?)(?::(?P<tag>[\w][\w.-]*))?(?P<digest>@sha256:[0-9a-f]{64})?$"
)
_MOVING_TAGS = {"", "latest", "main", "master", "stable", "edge", "nightly"}


_SYSTEM = Parameter(
    "system_namespaces",
    ["kube-system", "kube-node-lease"],
    "Namespaces of the cluster's own pods, which may need a hold on nodes.",
)


def rules() -> tuple[Rule, ...]:
    """Return the rules about Kubernetes."""
    return (
        Rule(
            id="R-K8S-01",
            severity=Severity.HIGH,
            title="Runner and controller namespaces enforce a Pod Security level",
            rationale="The label makes the API server refuse pods that could take "
            "over a node, whatever a template or a job asks for.",
            fix=f"label the namespace {ENFORCE}: restricted (controller) or baseline",
            anchors=("S04", "S10", "PSS baseline", "CIS 2.2.5"),
            stack=_pod_security,
        ),
        Rule(
            id="R-K8S-03",
            severity=Severity.CRITICAL,
            title="No job or runner pod has a hold on its node",
            rationale="Privileged pods, host paths, host namespaces and the container "
            "runtime's socket each let a job become root on its node and reach the "
            "next job there.",
            fix="remove privileged, hostPath, hostPID, hostIPC, hostNetwork",
            anchors=("S10", "S04", "S09", "PSS baseline", "SLSA L3"),
            types=(*TEMPLATES, *WORKLOADS),
            resource=_host_access,
            parameters=(_SYSTEM,),
        ),
        Rule(
            id="R-K8S-04",
            severity=Severity.HIGH,
            title="Containers run without root, capabilities or new privileges",
            rationale="What a container cannot do inside, it cannot use to get out.",
            fix="set allowPrivilegeEscalation false, drop ALL, runAsNonRoot, seccomp "
            "RuntimeDefault",
            anchors=("S04", "S10", "PSS restricted", "CIS 2.2.5"),
            types=(*TEMPLATES, *WORKLOADS),
            resource=_security_context,
            parameters=(
                _SYSTEM,
                Parameter(
                    "root_in_jobs",
                    True,
                    "Whether job containers may run as root, all else being dropped: "
                    "the workflow chooses the image and most need it.",
                ),
                Parameter(
                    "job_capabilities",
                    list(BASELINE_CAPABILITIES),
                    "Capabilities that job containers may add.",
                ),
            ),
        ),
        Rule(
            id="R-K8S-05",
            severity=Severity.HIGH,
            title="Job pods have no Kubernetes credentials",
            rationale="A job's steps need no access to the API; a token that is "
            "mounted can be used and taken away.",
            fix="set automountServiceAccountToken to false in the pod template, and "
            "bind no role to its service account",
            anchors=("S30", "S17", "S10"),
            stack=_job_credentials,
        ),
        Rule(
            id="R-K8S-06",
            severity=Severity.HIGH,
            title="Runner service accounts have narrow roles",
            rationale="The runner's token is within reach of the jobs it starts. "
            "Listing secrets is accepted only in a namespace that holds nothing but "
            "jobs, because the container hooks refuse to start without it.",
            fix="name verbs and resources; give secrets only in the job namespace",
            anchors=("S17", "S30", "CIS 2.2.3"),
            stack=_runner_roles,
        ),
        Rule(
            id="R-K8S-07",
            severity=Severity.MEDIUM,
            title="Runner namespaces have quotas and limits",
            rationale="Without a limit one job, or one loop, takes the node and the "
            "cluster from all others.",
            fix="add a ResourceQuota and a LimitRange, and limits to each container",
            anchors=("O56", "O09"),
            stack=_quotas,
        ),
        Rule(
            id="R-K8S-08",
            severity=Severity.MEDIUM,
            title="Images have a fixed tag or digest and a known registry",
            rationale="An image that moves is code that nobody reviewed.",
            fix="name the image by digest or release tag, from an approved registry",
            anchors=("S36", "CIS 2.2.2", "SLSA L3"),
            types=(*TEMPLATES, *WORKLOADS, DAEMON_SET),
            resource=_images,
            parameters=(
                Parameter(
                    "registries",
                    [
                        "ghcr.io",
                        "public.ecr.aws",
                        "*.dkr.ecr.*.amazonaws.com",
                        "registry.k8s.io",
                        "quay.io",
                        "nvcr.io",
                        "mcr.microsoft.com",
                        "gcr.io",
                        "*.gcr.io",
                        "*-docker.pkg.dev",
                        "icr.io",
                        "*.icr.io",
                    ],
                    "Registries that images may come from, as shell patterns.",
                ),
            ),
        ),
    )


def _pod_security(stack: StackView, context: Context) -> Iterator[Breach]:
    runners = runner_namespaces(stack)
    controllers = controller_namespaces(stack)
    for namespace in stack.of(NAMESPACE):
        name = namespace.object_name
        if name not in runners | controllers:
            continue
        allowed = ["restricted"] if name in controllers else ["restricted", "baseline"]
        yield from guarded(_enforced(namespace, allowed), namespace.urn)


def _enforced(namespace: ResourceView, allowed: list[str]) -> Iterator[Breach]:
    level = namespace.text("metadata", "labels", ENFORCE)
    if level not in allowed:
        why = f"{ENFORCE} is {level or 'not set'}, not {' or '.join(allowed)}"
        yield Breach(why, "metadata.labels", urn=namespace.urn)


def _judged(resource: ResourceView, context: Context) -> Iterator[PodSpec]:
    system = context.strings("system_namespaces")
    for pod in pods_in(resource):
        if pod.role != "other" or not matches_any(pod.namespace, system):
            yield pod


def _host_access(resource: ResourceView, context: Context) -> Iterator[Breach]:
    for pod in _judged(resource, context):
        yield from guarded(_host_fields(pod))
        for index, _ in enumerate(items(pod.spec, "volumes")):
            path = text(pod.spec, "volumes", index, "hostPath", "path")
            if path:
                socket = ", the container runtime's socket" if ".sock" in path else ""
                place = f"{pod.place}.volumes[{index}]"
                yield Breach(f"mounts the host path {path}{socket}", place)
        for place, container in pod.containers():
            if truth(container, "securityContext", "privileged"):
                yield Breach("is privileged", place)


def _host_fields(pod: PodSpec) -> Iterator[Breach]:
    for name in ("hostPID", "hostIPC", "hostNetwork"):
        if truth(pod.spec, name):
            yield Breach(f"{name} is true", f"{pod.place}.{name}")


def _security_context(resource: ResourceView, context: Context) -> Iterator[Breach]:
    for pod in _judged(resource, context):
        for place, container in pod.containers():
            missing = list(_missing_hardening(pod, container, context))
            if missing:
                yield Breach(", ".join(missing), f"{place}.securityContext")


def _missing_hardening(
    pod: PodSpec, container: Mapping[str, Any], context: Context
) -> Iterator[str]:
    own = ("securityContext",)
    job = pod.role == "job"
    if truth(container, *own, "allowPrivilegeEscalation", default=True):
        yield "allowPrivilegeEscalation is not false"
    if "ALL" not in texts(container, *own, "capabilities", "drop"):
        yield "capabilities are not dropped"
    may = context.strings("job_capabilities") if job else ["NET_BIND_SERVICE"]
    added = texts(container, *own, "capabilities", "add")
    more = sorted(set(added) - set(may))
    if more:
        yield f"adds the capabilities {', '.join(more)}"
    root = truth(container, *own, "runAsNonRoot")
    if root is None:
        root = truth(pod.spec, *own, "runAsNonRoot", default=False)
    if not root and not (job and context.flag("root_in_jobs")):
        yield "runAsNonRoot is not true"
    profile = text(container, *own, "seccompProfile", "type") or text(
        pod.spec, *own, "seccompProfile", "type"
    )
    if profile not in ("RuntimeDefault", "Localhost"):
        yield f"seccomp profile is {profile or 'not set'}"


def _job_credentials(stack: StackView, context: Context) -> Iterator[Breach]:
    accounts = {
        (found.namespace, found.object_name): found
        for found in stack.of(SERVICE_ACCOUNT)
    }
    for resource in stack.of("kubernetes:core/v1:ConfigMap"):
        yield from guarded(_templates(stack, resource, accounts), resource.urn)
    for scale in scale_sets(stack):
        if scale.pod is not None and scale.mode == "" and not scale.helm:
            found = _mounted(stack, scale.pod, scale.namespace, accounts)
            yield from guarded(found, scale.resource.urn)


def _templates(
    stack: StackView,
    resource: ResourceView,
    accounts: Mapping[tuple[str, str], ResourceView],
) -> Iterator[Breach]:
    for pod in pods_in(resource):
        named = pod.service_account
        spaces = job_namespaces(stack) or {resource.namespace}
        homes = [space for space in _homes(stack, named) if space in spaces]
        yield from _mounted(stack, pod, (homes or [resource.namespace])[0], accounts)


def _mounted(
    stack: StackView,
    pod: PodSpec,
    namespace: str,
    accounts: Mapping[tuple[str, str], ResourceView],
) -> Iterator[Breach]:
    urn = pod.resource.urn
    account = accounts.get((namespace, pod.service_account))
    mounted = truth(pod.spec, "automountServiceAccountToken")
    if mounted is None and account is not None:
        mounted = account.truth("automountServiceAccountToken")
    if mounted is not False:
        said = "true" if mounted else "not set"
        why = f"automountServiceAccountToken is {said}"
        yield Breach(why, pod.place, urn=urn)
    for name in sorted(
        {right.role_name for right in rights(stack, namespace, pod.service_account)}
    ):
        why = f"the service account {pod.service_account} has the role {name}"
        yield Breach(why, pod.place, urn=urn)


def _runner_roles(stack: StackView, context: Context) -> Iterator[Breach]:
    done: set[tuple[str, str]] = set()
    for scale in scale_sets(stack):
        try:
            account = (scale.namespace, scale.service_account)
            jobs = scale.job_namespace
        except CannotTell as error:
            yield Breach(f"cannot tell: {error}", "", True, scale.resource.urn)
            continue
        if account in done or not account[1]:
            continue
        done.add(account)
        found = _narrow(stack, account, jobs)
        yield from guarded(found, scale.resource.urn)


def _narrow(stack: StackView, account: tuple[str, str], jobs: str) -> Iterator[Breach]:
    own, name = account
    holds = _holds_secrets(stack, jobs)
    for right in rights(stack, own, name):
        if right.role_name in ("cluster-admin", "admin", "edit"):
            why = f"{own}/{name} has the role {right.role_name}"
            yield Breach(why, "roleRef", urn=right.binding.urn)
        elif right.role is not None:
            place = f"rules[{right.index}]"
            for why in _wide_right(right, own, name, jobs, holds):
                yield Breach(why, place, urn=right.role.urn)


def _wide_right(
    right: Right, own: str, name: str, jobs: str, holds: bool
) -> Iterator[str]:
    verbs = [str(v) for v in items(right.rule, "verbs")]
    resources = [str(r) for r in items(right.rule, "resources")]
    if "*" in verbs:
        yield f"{own}/{name} may use every verb on {', '.join(resources)}"
    if "*" in resources:
        yield f"{own}/{name} may {', '.join(verbs)} every kind of resource"
    named = bool(items(right.rule, "resourceNames"))
    if right.allows({"list", "watch"}, "secrets") or (
        right.allows({"get"}, "secrets") and not named
    ):
        where = f"namespace {right.namespace}" if right.namespace else "the cluster"
        if right.namespace != jobs or jobs == own or holds:
            yield f"{own}/{name} may read all secrets of {where}"


def _holds_secrets(stack: StackView, namespace: str) -> bool:
    return namespace in stack.memo("kubernetes.secrets", _secret_namespaces)


def _secret_namespaces(stack: StackView) -> set[str]:
    kinds = ("kubernetes:core/v1:Secret", "kubernetes:external-secrets.io/*:*Secret")
    return {found.namespace for found in stack.of(*kinds)}


def _homes(stack: StackView, account: str) -> list[str]:
    """Return the namespaces that have a service account of a name."""
    return stack.memo("kubernetes.homes", _account_homes).get(account, [])


def _account_homes(stack: StackView) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for account in stack.of(SERVICE_ACCOUNT):
        found.setdefault(account.object_name, []).append(account.namespace)
    return found


def _quotas(stack: StackView, context: Context) -> Iterator[Breach]:
    have = {
        kind: {found.namespace for found in stack.of(f"kubernetes:core/v1:{kind}")}
        for kind in ("ResourceQuota", "LimitRange")
    }
    homes = {found.object_name: found.urn for found in stack.of(NAMESPACE)}
    for name in sorted(runner_namespaces(stack)):
        for kind, namespaces in have.items():
            if name not in namespaces:
                why = f"namespace {name} has no {kind}"
                yield Breach(why, urn=homes.get(name, ""))
    for resource in stack.of(RUNNER_SET, "kubernetes:helm.sh/*:*"):
        yield from guarded(_limits(resource), resource.urn)


def _limits(resource: ResourceView) -> Iterator[Breach]:
    for pod in pods_in(resource):
        for place, container in pod.containers():
            limits = mapping(container, "resources", "limits")
            missing = [kind for kind in ("cpu", "memory") if kind not in limits]
            if missing:
                why = f"has no limit of {' and '.join(missing)}"
                yield Breach(why, place, urn=resource.urn)


def _images(resource: ResourceView, context: Context) -> Iterator[Breach]:
    for pod in pods_in(resource):
        for place, container in pod.containers():
            image = get(container, "image")
            if not image:
                continue
            why = image_problem(str(image)) or registry_problem(
                str(image), context.strings("registries")
            )
            if why:
                yield Breach(why, f"{place}.image")


def image_problem(image: str) -> str:
    """Return what is wrong with how an image is pinned; empty when nothing is."""
    match = _IMAGE.match(image)
    if match is None:
        return f"{image!r} is no image reference"
    if match["digest"]:
        return ""
    tag = match["tag"] or ""
    if tag in _MOVING_TAGS:
        return f"{image} has {'no tag' if not tag else 'a tag that moves'}"
    return ""


def registry_problem(image: str, registries: list[str]) -> str:
    """Return what is wrong with an image's registry; empty when nothing is."""
    head, slash, _ = image.partition("/")
    registry = head if slash and ("." in head or ":" in head) else "docker.io"
    if matches_any(registry, registries):
        return ""
    return f"{image} comes from {registry}, which is not approved"
