"""Actions Runner Controller: scale sets, their App key and their controller.

A scale set is judged the same way as a Kubernetes resource of its own
(``AutoscalingRunnerSet``) and as values of ARC's Helm chart.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from runfleet.spec.findings import Severity
from runfleet.spec.grammar import MAX_SCALE_SET_NAME
from runfleet_policies.kube import (
    CHART,
    CONTROLLER_CHART,
    RELEASE,
    RUNNER_SET,
    SECRET,
    ScaleSet,
    chart_of,
    helm_name,
    is_controller,
    pods_in,
    rights,
    scale_set,
    scale_sets,
)
from runfleet_policies.rule import Breach, Context, Parameter, Rule, guarded
from runfleet_policies.rules.kubernetes import image_problem
from runfleet_policies.values import get, items, mapping, number, text, texts
from runfleet_policies.view import ResourceView, StackView

SETS = (RUNNER_SET, RELEASE, CHART)
APP_KEYS = ("github_app_private_key", "github_token")
HIGH_CARDINALITY = ("job_name", "job_workflow_ref", "job_workflow_target")
"""Listener metric labels with a value per job (ARC 0.14.2, cmd/ghalistener)."""

_TOKEN = re.compile(r"^(gh[pousr]_|github_pat_)|PRIVATE KEY")
_NAME = re.compile(r"^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$")
_PLAIN_NAME = re.compile(r"^[A-Za-z0-9_-]+$")
_REPOSITORY_URL = re.compile(r"^https?://[^/]+/[^/]+/[^/]+")


def rules() -> tuple[Rule, ...]:
    """Return the rules about ARC."""
    return (
        Rule(
            id="R-ARC-01",
            severity=Severity.CRITICAL,
            title="The App key is referred to by name and stands in no program",
            rationale="A key in values or in a Secret that the program writes is in "
            "the state and in the Helm release. It can register any runner with any "
            "label and so poison what others build.",
            fix="name a Secret that an operator makes from the secret manager",
            anchors=("S30", "P03", "BR-07.01"),
            types=(*SETS, SECRET),
            resource=_inline_key,
        ),
        Rule(
            id="R-ARC-02",
            severity=Severity.HIGH,
            title="Runners register with a GitHub App, not a personal token",
            rationale="A personal token has a person's rights, is long-lived and has "
            "a lower rate limit.",
            fix="make a GitHub App and give its id, installation id and private key",
            anchors=("S16", "S32", "P02"),
            types=(*SETS, SECRET),
            resource=_personal_token,
        ),
        Rule(
            id="R-ARC-03",
            severity=Severity.HIGH,
            title="Every scale set names a runner group of the organisation",
            rationale="The group `default` is open to every repository. A repository "
            "address forces it.",
            fix="set runnerGroup to a group that the stack manages, and "
            "githubConfigUrl to the organisation",
            anchors=("S27", "S29"),
            stack=_runner_group,
        ),
        Rule(
            id="R-ARC-04",
            severity=Severity.CRITICAL,
            title="No Docker in Docker on classes that run strangers' code",
            rationale="The chart's dind mode adds a privileged container whose socket "
            "every job has: the node is one command away.",
            fix="use kubernetes-novolume, rootless BuildKit or a microVM",
            anchors=("S04", "S10", "PSS baseline", "SLSA L3"),
            types=SETS,
            resource=_docker_in_docker,
        ),
        Rule(
            id="R-ARC-05",
            severity=Severity.HIGH,
            title="Jobs run in a container of their own, not in the runner's pod",
            rationale="The runner's pod holds the token that may create pods.",
            fix='set ACTIONS_RUNNER_REQUIRE_JOB_CONTAINER to "true"',
            anchors=("S04", "S30"),
            types=SETS,
            resource=_job_container,
        ),
        Rule(
            id="R-ARC-06",
            severity=Severity.CRITICAL,
            title="Runners cannot read the Secret with the App key",
            rationale="In kubernetes mode the chart's own Role lets the runner read "
            "every Secret of its namespace, where the App key has to be "
            "(actions-runner-controller#3714).",
            fix="set template.spec.serviceAccountName to an account whose Role has no "
            "secrets in that namespace, or use keyVault",
            anchors=("S30", "P03", "SLSA L3"),
            stack=_key_out_of_reach,
        ),
        Rule(
            id="R-ARC-07",
            severity=Severity.HIGH,
            title="Every scale set has a maximum within its quota",
            rationale="An unset maxRunners is unbounded: one loop in a workflow can "
            "spend a vendor's whole donation.",
            fix="set maxRunners, and minRunners within the budget",
            anchors=("S07", "O33"),
            types=SETS,
            resource=_bounds,
            parameters=(
                Parameter("most_runners", 5000, "Most runners of one scale set."),
                Parameter("most_idle", 50, "Most runners kept ready."),
            ),
        ),
        Rule(
            id="R-ARC-08",
            severity=Severity.MEDIUM,
            title="Scale-set names fit ARC's limit and alphabet",
            rationale="The chart refuses names over 45 characters, and GHARTS cannot "
            "route labels with dots.",
            fix="shorten or rename the scale set",
            anchors=("O27",),
            types=SETS,
            resource=_names,
            parameters=(
                Parameter("gharts", False, "Whether GHARTS routes jobs: no dots."),
            ),
        ),
        Rule(
            id="R-ARC-09",
            severity=Severity.MEDIUM,
            title="The controller watches one namespace, hardened, without debug logs",
            rationale="The chart's defaults watch the whole cluster, set no security "
            "context and log at debug level.",
            fix="set flags.watchSingleNamespace, flags.logLevel, securityContext and "
            "podSecurityContext",
            anchors=("S17", "S26", "S36"),
            types=(RELEASE, CHART, "kubernetes:apps/v1:Deployment"),
            resource=_controller,
        ),
        Rule(
            id="R-ARC-10",
            severity=Severity.MEDIUM,
            title="Metrics are on, without a series per job",
            rationale="Metrics are off unless set; a label per job name makes so many "
            "series that they get dropped when they are needed.",
            fix="set metrics on the controller; list listenerMetrics without job_name "
            "and workflow refs",
            anchors=("O13", "O19", "O25"),
            stack=_metrics,
        ),
        Rule(
            id="R-ARC-11",
            severity=Severity.HIGH,
            title="The runner image is pinned",
            rationale="GitHub stops accepting old runners and a moved tag changes all "
            "runners at once, without a review.",
            fix="name the runner image by digest",
            anchors=("S36", "CIS 2.2.2"),
            types=SETS,
            resource=_runner_image,
            parameters=(
                Parameter("digest", False, "Whether a digest is demanded, not a tag."),
            ),
        ),
    )


_PerSet = Callable[[ScaleSet, Context], Iterable[Breach]]


def _on_set(
    check: _PerSet, resource: ResourceView, context: Context
) -> Iterator[Breach]:
    found = scale_set(resource)
    if found is not None:
        yield from check(found, context)


def _inline_key(resource: ResourceView, context: Context) -> Iterator[Breach]:
    if resource.type == SECRET:
        for key in _keys_in(resource, APP_KEYS):
            yield Breach(f"the program writes {key} into a Secret", key)
        return
    found = scale_set(resource)
    if found is None:
        return
    place = f"{found.prefix}.githubConfigSecret"
    value = get(found.values, "githubConfigSecret")
    if isinstance(value, Mapping):
        yield Breach("githubConfigSecret holds the key itself", place)
    elif value is not None and _TOKEN.search(str(value)):
        yield Breach("githubConfigSecret is a token, not a name", place)
    elif not value and not mapping(found.values, "vaultConfig"):
        yield Breach("githubConfigSecret is not set", place)


def _keys_in(resource: ResourceView, keys: tuple[str, ...]) -> list[str]:
    found: list[str] = []
    for section in ("data", "stringData"):
        raw: Any = resource.inputs.get(section)
        if isinstance(raw, Mapping) and "value" in raw and len(raw) == 2:  # type: ignore[reportUnknownArgumentType]
            raw = raw["value"]  # type: ignore[reportUnknownVariableType]
        if isinstance(raw, Mapping):
            found += [key for key in keys if key in raw]
    return found


def _personal_token(resource: ResourceView, context: Context) -> Iterator[Breach]:
    if resource.type == SECRET:
        if _keys_in(resource, ("github_token",)):
            yield Breach("github_token is in a Secret", "github_token")
        return
    found = scale_set(resource)
    if found is None:
        return
    secret = found.values.get("githubConfigSecret")
    if isinstance(secret, Mapping) and "github_token" in secret:
        yield Breach("github_token is set", f"{found.prefix}.githubConfigSecret")
    elif isinstance(secret, str) and secret.startswith(("ghp_", "github_pat_")):
        why = "githubConfigSecret is a personal token"
        yield Breach(why, f"{found.prefix}.githubConfigSecret")


def _runner_group(stack: StackView, context: Context) -> Iterator[Breach]:
    groups = {
        str(found.inputs.get("name", found.name))
        for found in stack.of("github:index/actionsRunnerGroup:ActionsRunnerGroup")
    }
    for resource in stack.of(*SETS):
        yield from guarded(_group_of(resource, groups), resource.urn)


def _group_of(resource: ResourceView, groups: set[str]) -> Iterator[Breach]:
    found = scale_set(resource)
    if found is None:
        return
    place = f"{found.prefix}.runnerGroup"
    group = text(found.values, "runnerGroup")
    if group in ("", "default", "Default"):
        why = f"runnerGroup is {group or 'not set, so default'}"
        yield Breach(why, place, urn=resource.urn)
    elif groups and group not in groups:
        why = f"no runner group {group} is managed here"
        yield Breach(why, place, urn=resource.urn)
    url = text(found.values, "githubConfigUrl")
    if _REPOSITORY_URL.match(url) and "/enterprises/" not in url:
        why = f"{url} is a repository, whose runners are all in the group default"
        yield Breach(why, f"{found.prefix}.githubConfigUrl", urn=resource.urn)


def _docker_in_docker(resource: ResourceView, context: Context) -> Iterator[Breach]:
    return _on_set(_dind, resource, context)


def _dind(found: ScaleSet, context: Context) -> Iterator[Breach]:
    if found.mode == "dind" and found.label("ci_trust") not in ("trusted", "release"):
        why = "Docker in Docker on a class that may run strangers' code"
        yield Breach(why, found.prefix)


def _job_container(resource: ResourceView, context: Context) -> Iterator[Breach]:
    return _on_set(_required_container, resource, context)


def _required_container(found: ScaleSet, context: Context) -> Iterator[Breach]:
    if found.pod is None:
        return
    name = "ACTIONS_RUNNER_REQUIRE_JOB_CONTAINER"
    value = found.pod.env(name)
    if value is not None and value.lower() != "true":
        yield Breach(f"{name} is {value!r}", found.pod.place)
    elif value is None and not found.helm and found.mode.startswith("kubernetes"):
        yield Breach(f"{name} is not set", found.pod.place)


def _key_out_of_reach(stack: StackView, context: Context) -> Iterator[Breach]:
    for resource in stack.of(*SETS):
        yield from guarded(_reach(stack, resource), resource.urn)


def _reach(stack: StackView, resource: ResourceView) -> Iterator[Breach]:
    found = scale_set(resource)
    if found is None or mapping(found.values, "keyVault"):
        return
    account = found.service_account
    if not account:
        if found.mode.startswith("kubernetes"):
            why = "the chart's own Role lets runners read every Secret, the App key too"
            yield Breach(why, "values.containerMode", urn=resource.urn)
        return
    secret = get(found.values, "githubConfigSecret")
    name = secret if isinstance(secret, str) else ""
    for right in rights(stack, found.namespace, account):
        if right.namespace not in ("", found.namespace):
            continue
        if right.role is None:
            if right.role_name in ("cluster-admin", "admin", "edit"):
                why = f"{account} has {right.role_name}, so it reads the App key"
                yield Breach(why, urn=right.binding.urn)
            continue
        only = texts(right.rule, "resourceNames")
        reads = right.allows({"list", "watch"}, "secrets") or (
            right.allows({"get"}, "secrets") and (not only or name in only)
        )
        if reads:
            where = f"namespace {found.namespace}"
            why = f"{account} may read the App key's Secret {name or '?'} in {where}"
            yield Breach(why, f"rules[{right.index}]", urn=right.role.urn)


def _bounds(resource: ResourceView, context: Context) -> Iterator[Breach]:
    return _on_set(_bounded, resource, context)


def _bounded(found: ScaleSet, context: Context) -> Iterator[Breach]:
    most = number(found.values, "maxRunners")
    limit = context.number("most_runners")
    if most is None:
        yield Breach("maxRunners is not set", f"{found.prefix}.maxRunners")
    elif most > limit:
        why = f"maxRunners is {most:g}, more than {limit}"
        yield Breach(why, f"{found.prefix}.maxRunners")
    idle = number(found.values, "minRunners") or 0
    if idle > context.number("most_idle"):
        why = f"minRunners is {idle:g}, more than {context.number('most_idle')}"
        yield Breach(why, f"{found.prefix}.minRunners")


def _names(resource: ResourceView, context: Context) -> Iterator[Breach]:
    return _on_set(_named, resource, context)


def _named(found: ScaleSet, context: Context) -> Iterator[Breach]:
    place = f"{found.prefix}.runnerScaleSetName"
    name = found.name
    if len(name) > MAX_SCALE_SET_NAME:
        why = f"{name} has {len(name)} characters, more than {MAX_SCALE_SET_NAME}"
        yield Breach(why, place)
    if not _NAME.match(name):
        yield Breach(f"{name} holds characters that no label may have", place)
    names = [name, *texts(found.values, "runnerScaleSetLabels")]
    names += texts(found.values, "scaleSetLabels")
    for label in names:
        if context.flag("gharts") and not _PLAIN_NAME.match(label):
            yield Breach(f"GHARTS cannot route the label {label}", place)


def _controller(resource: ResourceView, context: Context) -> Iterator[Breach]:
    if resource.type.endswith(":Deployment"):
        if is_controller(resource):
            yield from _controller_pod(resource)
        return
    if chart_of(resource) != CONTROLLER_CHART:
        return
    if not resource.text("values", "flags", "watchSingleNamespace"):
        why = "flags.watchSingleNamespace is not set: it watches the whole cluster"
        yield Breach(why, "values.flags")
    level = resource.text("values", "flags", "logLevel", default="debug")
    if level == "debug":
        yield Breach("flags.logLevel is debug", "values.flags")
    for name in ("podSecurityContext", "securityContext"):
        if not resource.mapping("values", name):
            yield Breach(f"{name} is empty", f"values.{name}")


def _controller_pod(resource: ResourceView) -> Iterator[Breach]:
    for pod in pods_in(resource):
        for place, container in pod.containers():
            if CONTROLLER_CHART not in text(container, "image"):
                continue
            args = [*texts(container, "args"), *texts(container, "command")]
            if not any(a.startswith("--watch-single-namespace=") for a in args):
                why = "--watch-single-namespace is not set: it watches the cluster"
                yield Breach(why, place)
            level = [a.partition("=")[2] for a in args if a.startswith("--log-level")]
            if not level or level[-1] == "debug":
                yield Breach("--log-level is debug", place)
            if not mapping(container, "securityContext"):
                yield Breach("securityContext is empty", place)
        if not mapping(pod.spec, "securityContext"):
            yield Breach("the pod's securityContext is empty", pod.place)


def _metrics(stack: StackView, context: Context) -> Iterator[Breach]:
    for resource in stack.of(RELEASE, CHART):
        yield from guarded(_controller_metrics(resource), resource.urn)
    for found in scale_sets(stack):
        yield from guarded(_listener_metrics(found), found.resource.urn)


def _controller_metrics(resource: ResourceView) -> Iterator[Breach]:
    if chart_of(resource) == CONTROLLER_CHART and not resource.mapping(
        "values", "metrics"
    ):
        name = helm_name(resource, True)
        why = f"metrics are off: {name} sets no metrics"
        yield Breach(why, "values.metrics", urn=resource.urn)


def _listener_metrics(found: ScaleSet) -> Iterator[Breach]:
    place = f"{found.prefix}.listenerMetrics"
    metrics = mapping(found.values, "listenerMetrics")
    if not metrics:
        yield Breach("listenerMetrics is not set", place, urn=found.resource.urn)
        return
    labels: set[str] = set()
    for kind in ("counters", "gauges", "histograms"):
        for name in mapping(metrics, kind):
            labels |= {str(label) for label in items(metrics, kind, name, "labels")}
    many = sorted(labels & set(HIGH_CARDINALITY))
    if many:
        why = f"has a series per job: {', '.join(many)}"
        yield Breach(why, place, urn=found.resource.urn)


def _runner_image(resource: ResourceView, context: Context) -> Iterator[Breach]:
    return _on_set(_pinned_runner, resource, context)


def _pinned_runner(found: ScaleSet, context: Context) -> Iterator[Breach]:
    if found.pod is None:
        why = "no runner template: the chart's default image has the tag latest"
        yield Breach(why, f"{found.prefix}.template")
        return
    for place, container in found.pod.containers():
        image = text(container, "image")
        why = image_problem(image) if image else "no image is named"
        if not why and context.flag("digest") and "@sha256:" not in image:
            why = f"{image} is named by tag, not by digest"
        if why and text(container, "name") == "runner":
            yield Breach(why, f"{place}.image")
