"""Pods: what ARC and the hooks build is taken, anything else is refused with a reason.

Requests are dry runs that pass through the whole of the API server (defaults, Pod
Security, admission policy, limits, quotas), made as the account that makes them on a
real cluster. Each refused pod differs in one thing from an accepted twin, so that the
reason is that one thing.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from kubernetes.utils.quantity import parse_quantity

from cluster.conftest import Cell
from cluster.harness.applied import until
from cluster.harness.classes import RunnerClass
from cluster.harness.client import Account, Api, Object, Refused
from cluster.harness.pods import job_pod, listener_pod, runner_pod, step_pod

ARC = Account("arc-systems", "arc-gha-rs-controller")
RESTRICTED = 'would violate PodSecurity "restricted:latest"'

Change = Callable[[Object], None]


@dataclass(frozen=True)
class Foul:
    """Something that a runner must not be able to do with a job pod.

    Attributes:
        name: What it is.
        bad: What it does to the pod.
        good: The same thing as it is allowed.
        policy: What the admission policy says; empty when it says nothing.
        security: What Pod Security says; empty when it says nothing.
    """

    name: str
    bad: Change
    good: Change
    policy: str = ""
    security: str = ""


# --- What the programs really build -------------------------------------------------


def test_job_pods_of_every_class_are_taken(cell: Cell) -> None:
    for one in cell.classes:
        for pod in (
            job_pod(one),
            job_pod(one, services=[one.job_image, one.job_image]),
            job_pod(one, registry_secret=f"{one.name}-secret-0a1b2c3d"),
            step_pod(one),
        ):
            answer = cell.api.create(pod, one.runner)
            assert answer.object["status"]["qosClass"] == "Guaranteed"
            assert answer.object["spec"]["serviceAccountName"] == one.job.name
            mounted = _token_volumes(answer.object)
            assert not mounted, f"{one.name}: {mounted}"


def test_job_namespaces_warn_of_what_restricted_would_refuse(cell: Cell) -> None:
    one = cell.classes[0]
    [warning] = cell.api.create(job_pod(one), one.runner).warnings
    assert warning.startswith(RESTRICTED)
    assert 'container "fs-init" must set' in warning or '"fs-init"' in warning


def test_runner_pods_of_every_class_are_taken(cell: Cell) -> None:
    for one in cell.classes:
        # The chart of ARC's controller lets it list pods; creating them in this
        # namespace is a right of the recorded role.
        answer = cell.api.create(runner_pod(one), ARC)
        assert not answer.warnings
        assert answer.object["spec"]["serviceAccountName"] == one.runner.name
        assert _token_volumes(answer.object) == ["runner"]


def test_listener_pods_of_every_class_are_taken(cell: Cell) -> None:
    account = Account(ARC.namespace, "default")
    for one in cell.classes:
        pod = listener_pod(one, account.namespace, account.name)
        assert not cell.api.create(pod).warnings


def test_hooks_may_keep_registry_credentials(cell: Cell) -> None:
    for one in cell.classes:
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/dockerconfigjson",
            "immutable": True,
            "metadata": {
                "name": f"{one.name}-secret-0a1b2c3d",
                "namespace": one.job_namespace,
            },
            "data": {".dockerconfigjson": "eyJhdXRocyI6e319"},
        }
        cell.api.create(secret, one.runner)


# --- What is refused ----------------------------------------------------------------


def _spec(**fields: Any) -> Change:
    return lambda pod: pod["spec"].update(copy.deepcopy(fields))


def _secure(**fields: Any) -> Change:
    return lambda pod: _job(pod)["securityContext"].update(copy.deepcopy(fields))


def _volume(**source: Any) -> Change:
    return lambda pod: pod["spec"]["volumes"].append({"name": "extra"} | source)


def _token(audience: str | None) -> Change:
    token: dict[str, Any] = {"path": "token"}
    if audience is not None:
        token["audience"] = audience
    return _volume(projected={"sources": [{"serviceAccountToken": token}]})


def _port(**fields: int) -> Change:
    return lambda pod: _job(pod).update(ports=[fields])


def _image(image: str, part: str = "containers") -> Change:
    def change(pod: Object) -> None:
        pod["spec"][part][0]["image"] = image

    return change


def _sysctl(name: str) -> Change:
    setting = {"name": name, "value": "1024 65000"}
    return lambda pod: pod["spec"]["securityContext"].update(sysctls=[setting])


def _as_is(pod: Object) -> None:
    del pod


def _add(*capabilities: str) -> Change:
    return lambda pod: _job(pod)["securityContext"]["capabilities"]["add"].extend(
        capabilities
    )


def _old_account_field(pod: Object) -> None:
    pod["spec"]["serviceAccount"] = "default"
    del pod["spec"]["serviceAccountName"]


def _old_step(pod: Object) -> None:
    """Do as the hooks did for container actions up to version 0.8.0."""
    pod["spec"]["initContainers"][0]["securityContext"]["privileged"] = True


def _without_security(pod: Object) -> None:
    del _job(pod)["securityContext"]


def _another(part: str, **fields: Any) -> Change:
    """Add a container with an image that the class allows."""

    def change(pod: Object) -> None:
        added = {"name": "another", "image": _job(pod)["image"]} | fields
        pod["spec"][part].append(copy.deepcopy(added))

    return change


def _first(**fields: Any) -> Change:
    return lambda pod: pod["spec"]["initContainers"][0]["securityContext"].update(
        copy.deepcopy(fields)
    )


def _label(key: str, value: str | None) -> Change:
    def change(pod: Object) -> None:
        labels = pod["metadata"]["labels"]
        if value is None:
            del labels[key]
        else:
            labels[key] = value

    return change


def _bear(**toleration: Any) -> Change:
    return lambda pod: pod["spec"]["tolerations"].append(dict(toleration))


def _no_deadline(pod: Object) -> None:
    del pod["spec"]["activeDeadlineSeconds"]


def _finalizer(pod: Object) -> None:
    pod["metadata"]["finalizers"] = ["example.com/keep"]


def _amount(resource: str, amount: str) -> Change:
    def change(pod: Object) -> None:
        for amounts in _job(pod)["resources"].values():
            amounts[resource] = amount

    return change


def _lower_case(pod: Object) -> None:
    """Name an image of Docker Hub in short, where the class allows Docker Hub."""
    if not _job(pod)["image"].startswith("docker.io/"):
        return
    _job(pod)["image"] = "registry/ci:1"


NO_NODE = "job pods mount nothing of their node and nothing that outlives them"
NO_HOST = "job pods share no namespace with their node"
ACCOUNT = "job pods run under the service account of their class"
TOKENS = "identity tokens of job pods are for a cloud's token service only"
IMAGES = "images come from the sources that the class allows"
PRIVILEGED = "container actions need privileged pods, which are refused"
SELECT = "job pods select the nodes of their class"
PRIORITY = "job pods have the priority of their class"
GAIN = "jobs gain no privileges"
LABELS = "job pods have the ci_ labels of their class"
TAINTS = "job pods bear the taints of the nodes of their class only"
DEADLINE = "job pods end by the deadline of their template"
FINALIZERS = "job pods have no finalizers, which would keep them"
DEVICES = "job pods have the devices of their class and no more"

FOULS = [
    Foul("another account", _spec(serviceAccountName="default"), _as_is, ACCOUNT),
    Foul("another account, old field", _old_account_field, _as_is, ACCOUNT),
    Foul(
        "an API token",
        _spec(automountServiceAccountToken=True),
        _spec(automountServiceAccountToken=False),
        "job pods get no Kubernetes API token",
    ),
    Foul(
        "a token for the API server",
        _token(None),
        _token("pods.eks.amazonaws.com"),
        TOKENS,
    ),
    Foul(
        "a token for somebody else",
        _token("https://vault.example.com"),
        _token("sts.amazonaws.com"),
        TOKENS,
    ),
    Foul(
        "privileged",
        _secure(privileged=True, allowPrivilegeEscalation=True),
        _as_is,
        PRIVILEGED,
        'privileged (container "job" must not set',
    ),
    Foul(
        "privileged first container",
        _old_step,
        _as_is,
        PRIVILEGED,
        'privileged (container "fs-init" must not set',
    ),
    Foul(
        "gaining privileges",
        _secure(allowPrivilegeEscalation=True),
        _secure(allowPrivilegeEscalation=False),
        GAIN,
    ),
    Foul(
        "gaining privileges by silence",
        _without_security,
        _as_is,
        GAIN,
    ),
    Foul(
        "another container that gains privileges",
        _another("containers", securityContext={"allowPrivilegeEscalation": True}),
        _another("containers", securityContext={"allowPrivilegeEscalation": False}),
        GAIN,
    ),
    Foul(
        "another container with a capability",
        _another("containers", securityContext={"capabilities": {"add": ["CHOWN"]}}),
        _another("containers"),
        GAIN,
    ),
    Foul(
        "a first container that gains privileges",
        _another("initContainers"),
        _another("initContainers", securityContext={"allowPrivilegeEscalation": False}),
        GAIN,
    ),
    Foul("the hooks' first container as root", _first(runAsUser=0), _as_is, GAIN),
    Foul(
        "the hooks' first container with a capability",
        _first(capabilities={"add": ["CHOWN"]}),
        _first(allowPrivilegeEscalation=False, capabilities={"add": ["CHOWN"]}),
        GAIN,
    ),
    Foul("another funder", _label("ci_funder", "elsewhere"), _as_is, LABELS),
    Foul("another class", _label("ci_runner_class", "elsewhere"), _as_is, LABELS),
    Foul("no trust level", _label("ci_trust", None), _as_is, LABELS),
    Foul(
        "a label of its own",
        _label("ci_extra", "x"),
        _label("extra", "x"),
        LABELS,
    ),
    Foul(
        "all taints",
        _bear(operator="Exists"),
        _bear(key="instance-type", operator="Exists", effect="NoSchedule"),
        TAINTS,
    ),
    Foul(
        "all effects of a taint",
        _bear(key="instance-type", operator="Exists"),
        _as_is,
        TAINTS,
    ),
    Foul(
        "another fleet's taint",
        _bear(key="node-fleet", value="elsewhere", effect="NoSchedule"),
        _as_is,
        TAINTS,
    ),
    Foul(
        "every fleet's taint",
        _bear(key="node-fleet", operator="Exists", effect="NoSchedule"),
        _bear(
            key="node.kubernetes.io/not-ready",
            operator="Exists",
            effect="NoExecute",
            tolerationSeconds=300,
        ),
        TAINTS,
    ),
    Foul("no deadline", _no_deadline, _as_is, DEADLINE),
    Foul(
        "a longer deadline",
        _spec(activeDeadlineSeconds=86_401),
        _spec(activeDeadlineSeconds=86_400),
        DEADLINE,
    ),
    Foul(
        "a long end",
        _spec(terminationGracePeriodSeconds=31),
        _spec(terminationGracePeriodSeconds=30),
        DEADLINE,
    ),
    Foul("a finalizer", _finalizer, _as_is, FINALIZERS),
    Foul(
        "a device that no class has",
        _amount("example.com/device", "1"),
        _amount("ephemeral-storage", "1Gi"),
        DEVICES,
    ),
    Foul(
        "a device for another container",
        _another("containers", resources={"limits": {"nvidia.com/gpu": "1"}}),
        _another("containers", resources={"limits": {"cpu": "100m"}}),
        DEVICES,
    ),
    Foul(
        "huge pages",
        _amount("hugepages-2Mi", "2Mi"),
        _as_is,
        DEVICES,
    ),
    Foul(
        "an added capability",
        _add("SYS_ADMIN"),
        _add("SETPCAP"),
        security='non-default capabilities (container "job" must not include '
        '"SYS_ADMIN" in securityContext.capabilities.add)',
    ),
    Foul(
        "no system call filter",
        _secure(seccompProfile={"type": "Unconfined"}),
        _secure(seccompProfile={"type": "RuntimeDefault"}),
        security="seccompProfile",
    ),
    Foul(
        "a kernel setting",
        _sysctl("kernel.msgmax"),
        _sysctl("net.ipv4.ip_local_port_range"),
        security="forbidden sysctls (kernel.msgmax)",
    ),
    Foul(
        "a folder of the node",
        _volume(hostPath={"path": "/"}),
        _volume(emptyDir={}),
        NO_NODE,
        'hostPath volumes (volume "extra")',
    ),
    Foul(
        "a lasting volume",
        _volume(persistentVolumeClaim={"claimName": "x"}),
        _volume(emptyDir={}),
        NO_NODE,
    ),
    Foul(
        "the node's network",
        _spec(hostNetwork=True),
        _spec(hostNetwork=False),
        NO_HOST,
        "host namespaces (hostNetwork=true)",
    ),
    Foul(
        "the node's processes",
        _spec(hostPID=True),
        _spec(hostPID=False),
        NO_HOST,
        "host namespaces (hostPID=true)",
    ),
    Foul(
        "the node's memory",
        _spec(hostIPC=True),
        _spec(hostIPC=False),
        NO_HOST,
        "host namespaces (hostIPC=true)",
    ),
    Foul(
        "a port of the node",
        _port(containerPort=6379, hostPort=6379),
        _port(containerPort=6379),
        security='hostPort (container "job" uses hostPort',
    ),
    Foul(
        "a chosen node",
        _spec(nodeName="node-of-release"),
        _as_is,
        "job pods go through the scheduler",
    ),
    Foul("any node", _spec(nodeSelector={}), _as_is, SELECT),
    Foul("other nodes", _spec(nodeSelector={"ci_trust": "elsewhere"}), _as_is, SELECT),
    Foul(
        "the runners' priority",
        _spec(priorityClassName="runfleet-runner"),
        _as_is,
        PRIORITY,
    ),
    Foul(
        "the system's priority",
        _spec(priorityClassName="system-node-critical"),
        _as_is,
        PRIORITY,
    ),
    Foul("a foreign image", _image("registry.example.com/ci:1"), _as_is, IMAGES),
    Foul("a foreign registry by port", _image("mirror:5000/ci:1"), _as_is, IMAGES),
    Foul(
        "a foreign registry in upper case",
        _image("REGISTRY/ci:1"),
        _lower_case,
        IMAGES,
    ),
    Foul("this node's images", _image("localhost/ci:1"), _as_is, IMAGES),
    Foul(
        "a source's name continued", _image("ghcr.io.example.com/ci:1"), _as_is, IMAGES
    ),
    Foul(
        "a foreign first container",
        _image("quay.example.com/x:1", "initContainers"),
        _as_is,
        IMAGES,
    ),
]


@pytest.mark.parametrize("foul", FOULS, ids=[foul.name for foul in FOULS])
def test_fouls_are_refused_in_every_class(cell: Cell, foul: Foul) -> None:
    for one in cell.classes:
        cell.api.create(job_pod(one, change=foul.good), one.runner)
        with pytest.raises(Refused) as refused:
            cell.api.create(job_pod(one, change=foul.bad), one.runner)
        if foul.security:
            assert 'violates PodSecurity "baseline:latest"' in refused.value.message
            assert foul.security in refused.value.message
        else:
            _by_policy(refused.value, foul.policy)


HOLES = [
    Foul(
        "a network share",
        _volume(nfs={"server": "10.0.0.1", "path": "/"}),
        _volume(emptyDir={}),
        NO_NODE,
    ),
    Foul(
        "a network disk",
        _volume(iscsi={"targetPortal": "10.0.0.1", "iqn": "iqn.2026-01.x:y", "lun": 0}),
        _volume(emptyDir={}),
        NO_NODE,
    ),
    Foul(
        "a cloud's disk",
        _volume(awsElasticBlockStore={"volumeID": "vol-0a1b2c3d"}),
        _volume(configMap={"name": "x", "optional": True}),
        NO_NODE,
    ),
    Foul(
        "a claim of its own",
        _volume(
            ephemeral={
                "volumeClaimTemplate": {
                    "spec": {
                        "accessModes": ["ReadWriteOnce"],
                        "resources": {"requests": {"storage": "1Gi"}},
                    }
                }
            }
        ),
        _volume(secret={"secretName": "x", "optional": True}),
        NO_NODE,
    ),
    Foul(
        "a cluster's certificates",
        _volume(
            projected={
                "sources": [
                    {"clusterTrustBundle": {"name": "x", "path": "x", "optional": True}}
                ]
            }
        ),
        _volume(
            projected={
                "sources": [
                    {"configMap": {"name": "x", "optional": True}},
                    {"secret": {"name": "x", "optional": True}},
                    {"downwardAPI": {"items": []}},
                ]
            }
        ),
        NO_NODE,
    ),
    Foul(
        "a driver's volume",
        _volume(csi={"driver": "efs.csi.aws.com"}),
        _volume(emptyDir={}),
        NO_NODE,
    ),
    Foul(
        "a foreign image as a volume",
        _volume(image={"reference": "registry.example.com/x:1"}),
        _volume(emptyDir={}),
        NO_NODE,
    ),
]
"""What the node itself fetches or mounts, past network policies and image sources."""


@pytest.mark.parametrize("hole", HOLES, ids=[hole.name for hole in HOLES])
def test_holes_are_closed(cell: Cell, hole: Foul) -> None:
    one = cell.classes[0]
    cell.api.create(job_pod(one, change=hole.good), one.runner)
    with pytest.raises(Refused) as refused:
        cell.api.create(job_pod(one, change=hole.bad), one.runner)
    _by_policy(refused.value, hole.policy)


POLICED = [foul for foul in FOULS if foul.policy]


def test_the_policy_needs_no_help_of_pod_security(cell: Cell) -> None:
    one = next(c for c in cell.classes if c.job_image.endswith("runfleet-test/ci:1"))
    with _lax_namespace(cell, one) as space:

        def inside(change: Change) -> Object:
            pod = job_pod(one, change=change)
            pod["metadata"]["namespace"] = space
            return pod

        for foul in POLICED:
            cell.api.create(inside(foul.good))
            with pytest.raises(Refused) as refused:
                cell.api.create(inside(foul.bad))
            _by_policy(refused.value, foul.policy)


def test_a_job_namespace_without_terms_takes_no_pod(cell: Cell) -> None:
    one = cell.classes[0]
    with _lax_namespace(cell, one, terms=False) as space:
        pod = job_pod(one)
        pod["metadata"]["namespace"] = space
        with pytest.raises(Refused) as refused:
            cell.api.create(pod)
    assert "runfleet-job-pods" in refused.value.message
    assert refused.value.code in (403, 422)


def test_release_jobs_use_no_public_images(cell: Cell) -> None:
    release = [c for c in cell.classes if "release" in c.annotations[_PRIORITY]]
    assert release
    for one in release:
        for image in ("ubuntu:24.04", "ghcr.io/pytorch/ci:1", "docker.io/x/y:1"):
            with pytest.raises(Refused) as refused:
                cell.api.create(job_pod(one, image), one.runner)
            _by_policy(refused.value, IMAGES)
        cell.api.create(job_pod(one, one.runner_image), one.runner)


def test_a_runner_starts_pods_in_its_own_job_namespace_only(cell: Cell) -> None:
    others = [*cell.classes[1:], cell.classes[0]]
    for one, other in zip(cell.classes, others, strict=True):
        cell.api.create(job_pod(one), one.runner)
        for pod in (job_pod(other), runner_pod(one), runner_pod(other)):
            with pytest.raises(Refused) as refused:
                cell.api.create(pod, one.runner)
            assert refused.value.code == 403
            assert f'User "{one.runner.user}" cannot create resource "pods"' in (
                refused.value.message
            )


def test_a_job_starts_nothing(cell: Cell) -> None:
    for one in cell.classes:
        with pytest.raises(Refused, match="cannot create resource"):
            cell.api.create(job_pod(one), one.job)


def test_arc_starts_nothing_among_jobs(cell: Cell) -> None:
    for one in cell.classes:
        cell.api.create(runner_pod(one), ARC)
        with pytest.raises(Refused, match="cannot create resource"):
            cell.api.create(job_pod(one), ARC)


def test_a_job_asks_for_no_more_than_its_class_has(cell: Cell) -> None:
    for one in cell.classes:
        cell.api.create(job_pod(one), one.runner)

        def more(pod: Object) -> None:
            for amounts in _job(pod)["resources"].values():
                amounts["cpu"] = str(int(amounts["cpu"]) + 1)

        with pytest.raises(Refused, match="maximum cpu usage per Container is"):
            cell.api.create(job_pod(one, change=more), one.runner)


def test_the_quota_has_room_for_the_devices_of_all_its_pods(cell: Cell) -> None:
    with_devices = [one for one in cell.classes if one.devices]
    assert with_devices
    for one in with_devices:
        [(device, count)] = one.devices.items()
        most = parse_quantity(one.quota[f"requests.{device}"])
        assert most == parse_quantity(one.quota["pods"]) * int(count)


def test_a_job_takes_no_more_devices_than_its_class_has(cell: Cell) -> None:
    with_devices = [one for one in cell.classes if one.devices]
    assert with_devices
    for one in with_devices:
        [(device, count)] = one.devices.items()
        for good in (count, "1"):
            cell.api.create(job_pod(one, change=_amount(device, good)), one.runner)
        more = _amount(device, str(int(count) + 1))
        with pytest.raises(Refused) as refused:
            cell.api.create(job_pod(one, change=more), one.runner)
        _by_policy(refused.value, DEVICES)
        # The API server's own toleration, by plug-in ExtendedResourceToleration.
        given = {"key": device, "operator": "Exists", "effect": "NoSchedule"}
        made = cell.api.create(job_pod(one), one.runner).object
        assert given in made["spec"]["tolerations"]


def test_short_names_of_images_are_those_of_docker_hub(cell: Cell) -> None:
    open_classes = [
        one
        for one in cell.classes
        if "docker.io/" in one.annotations["runfleet/image-sources"].split(",")
    ]
    assert open_classes
    for one in open_classes:
        cell.api.create(job_pod(one, "registry/ci:1"), one.runner)
        with pytest.raises(Refused) as refused:
            cell.api.create(job_pod(one, "REGISTRY/ci:1"), one.runner)
        _by_policy(refused.value, IMAGES)


def test_a_full_quota_takes_no_further_pod(cell: Cell) -> None:
    one = min(cell.classes, key=lambda c: parse_quantity(c.quota.get("pods", "1M")))
    most = int(parse_quantity(one.quota["pods"]))
    made: list[Object] = []
    try:
        for number in range(most):
            pod = _named(job_pod(one), f"job-{number}")
            cell.api.create(pod, one.runner, dry_run=False)
            made.append(pod)
        with pytest.raises(Refused) as refused:
            cell.api.create(_named(job_pod(one), "one-more"), one.runner)
        assert "exceeded quota: quota" in refused.value.message
        assert re.search(
            rf" used: \S*,pods={most},\S*, limited: \S*,pods={most},",
            refused.value.message,
        ), refused.value.message
        cell.api.delete(made.pop())
        until(lambda: _taken(cell.api, one), "the freed place in the quota")
    finally:
        for pod in made:
            cell.api.delete(pod)


def test_nothing_is_added_to_a_running_job(cell: Cell) -> None:
    one = cell.classes[0]
    pod = _named(job_pod(one), "running")
    made = cell.api.create(pod, one.runner, dry_run=False).object

    def with_debugger(image: str, confined: bool = True) -> Object:
        changed = copy.deepcopy(made)
        debugger: Object = {"name": "debug", "image": image}
        if confined:
            debugger["securityContext"] = {"allowPrivilegeEscalation": False}
        changed["spec"]["ephemeralContainers"] = [debugger]
        return changed

    try:
        with pytest.raises(Refused, match="cannot update resource"):
            cell.api.subresource(
                "PUT", with_debugger(one.job_image), "ephemeralcontainers", one.runner
            )
        # Administrators may, within the same rules.
        cell.api.subresource("PUT", with_debugger(one.job_image), "ephemeralcontainers")
        foreign = with_debugger("registry.example.com/tools:1")
        with pytest.raises(Refused) as refused:
            cell.api.subresource("PUT", foreign, "ephemeralcontainers")
        _by_policy(refused.value, IMAGES)
        loose = with_debugger(one.job_image, confined=False)
        with pytest.raises(Refused) as refused:
            cell.api.subresource("PUT", loose, "ephemeralcontainers")
        _by_policy(refused.value, GAIN)
    finally:
        cell.api.delete(made)


_PRIORITY = "runfleet/priority-class"


def _job(pod: Object) -> Object:
    container: Object = pod["spec"]["containers"][0]
    assert container["name"] == "job"
    return container


def _by_policy(refused: Refused, reason: str) -> None:
    assert refused.code == 403
    assert refused.message.endswith(
        "ValidatingAdmissionPolicy 'runfleet-job-pods' with binding "
        f"'runfleet-job-pods' denied request: {reason}"
    ), refused.message


def _token_volumes(pod: Object) -> list[str]:
    """Return the containers that get a token of the API server."""
    mounted = "/var/run/secrets/kubernetes.io/serviceaccount"
    return [
        container["name"]
        for part in ("containers", "initContainers")
        for container in pod["spec"].get(part, [])
        if any(m["mountPath"] == mounted for m in container.get("volumeMounts", []))
    ]


def _named(pod: Object, name: str) -> Object:
    pod["metadata"]["name"] = name
    return pod


def _taken(api: Api, one: RunnerClass) -> bool:
    try:
        api.create(_named(job_pod(one), "one-more"), one.runner)
    except Refused as refused:
        if "exceeded quota" in refused.message:
            return False
        raise
    return True


@contextmanager
def _lax_namespace(cell: Cell, one: RunnerClass, terms: bool = True) -> Iterator[str]:
    """Make a job namespace that Pod Security does not guard."""
    name = "lax" if terms else "lax-without-terms"
    space: Object = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": name,
            "labels": {"runfleet/part": "job"} | one.labels,
            "annotations": one.annotations if terms else {},
        },
    }
    cell.api.create(space, dry_run=False)
    for account in {one.job.name, "default"}:
        body: Object = {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": account, "namespace": name},
        }
        cell.api.apply(body)
    try:
        yield name
    finally:
        cell.api.delete(space)
