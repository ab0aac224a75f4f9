"""What job pods may be: one admission policy for all job namespaces of a cell.

A runner may create pods in its job namespace, and a Role cannot say which pods. So a
ValidatingAdmissionPolicy pins, for every pod there, the service account, the nodes
and the taints that it bears, the priority, the labels, the deadline, the devices, the
sources of images and the identity tokens, and refuses what would reach the node. Pod
Security ``baseline`` refuses much of the last too; this policy does not depend on the
namespace's label for it.

The policy is one and the same for all classes. What differs stands in labels and
annotations of the job namespace, which the runner cannot change; a namespace without
them refuses every pod, because the policy fails closed. Expressions are CEL as
Kubernetes 1.30 and later evaluate it
(https://kubernetes.io/docs/reference/using-api/cel/).

Volumes are held to a list of what is allowed. ``dyn(v).all(key, ...)`` goes through
the fields that a volume has, not through those that the rule knows, so a kind of
volume that a later Kubernetes adds is refused until it is put on the list.

What this means for workflows, by version of the container hooks
(actions/runner-container-hooks, ``packages/k8s/src/k8s/index.ts``):

- Container actions: up to v0.8.0 their pod has a privileged init container and is
  refused; since v0.8.1 it has none and is accepted.
- Service containers are accepted as the hooks build them, without a security context;
  the hooks' template cannot give them one, because it would have to know their names.
  A service with ``ports: 8080:80`` gets a ``hostPort``, which Pod Security
  ``baseline`` refuses, so the job fails to start; a port without a host part
  (``ports: 80``) is accepted. The job reaches its services at ``localhost``.
- Since v0.8.1 the init container ``fs-init`` uses no ``sudo``; it still does not
  forbid gaining privileges. So this one container may leave that open, and only with
  the runner's own image and the user and group that the hooks give it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pulumi
from pulumi_kubernetes.admissionregistration import v1 as admission
from pulumi_kubernetes.meta import v1 as meta

from runfleet.placement.plan import PlannedClass
from runfleet.runners.job_pods import (
    HOOKS_GROUP,
    JOB_CONTAINER,
    LONGEST_JOB_SECONDS,
    job_priority,
)
from runfleet.runners.scheduling import job_placement
from runfleet.runners.tenancy import PART
from runfleet.spec.classes import extended_resources
from runfleet.spec.roles import Trust

POLICY = "runfleet-job-pods"

ACCOUNT = "runfleet/service-account"
SELECTOR = "runfleet/node-selector"
TOLERATIONS = "runfleet/tolerations"
DEVICES = "runfleet/devices"
PRIORITY = "runfleet/priority-class"
SOURCES = "runfleet/image-sources"

TOKEN_AUDIENCES = (
    "pods.eks.amazonaws.com",  # EKS Pod Identity
    "sts.amazonaws.com",  # EKS, roles for service accounts
    "api://AzureADTokenExchange",  # Azure workload identity
    "iam",  # IBM Cloud trusted profiles
)
"""Audiences that a job's identity token may have: the clouds', never the API server."""

SERVER_TOLERATIONS = (
    "node.kubernetes.io/not-ready:NoExecute",
    "node.kubernetes.io/unreachable:NoExecute",
)
"""Tolerations that the API server itself gives to every pod (admission plug-in
``DefaultTolerationSeconds``)."""

VOLUMES = ("emptyDir", "projected", "secret", "configMap", "downwardAPI")
"""Kinds of volumes that job pods may have: those that neither the node nor a driver
fetches from elsewhere, and that end with the pod."""

PROJECTED = ("serviceAccountToken", "secret", "configMap", "downwardAPI")
"""What projected volumes may hold."""

AMOUNTS = ("cpu", "memory", "ephemeral-storage")
"""Resources that the namespace's limits and quota bound; all others are devices."""

LONGEST_GRACE_SECONDS = 30
"""Kubernetes' own default, which the hooks leave: a longer one would let a pod run on
after its deadline."""

INIT_CONTAINER = "fs-init"
"""The hooks' own init container."""

DEFAULT_IMAGE_SOURCES: Mapping[Trust, tuple[str, ...]] = {
    Trust.UNTRUSTED_PR: ("docker.io/", "ghcr.io/", "public.ecr.aws/", "quay.io/"),
    Trust.TRUSTED: ("docker.io/", "ghcr.io/", "public.ecr.aws/", "quay.io/"),
    Trust.RELEASE: (),
}
"""Where job images may come from, besides the runner's image and the fleet's own
registries. Release jobs use the fleet's own registries only."""


def job_annotations(
    planned: PlannedClass, sources: Sequence[pulumi.Input[str]]
) -> dict[str, pulumi.Input[str]]:
    """Return the annotations of a job namespace that the policy reads.

    Args:
        planned: The class in its cell.
        sources: Where images may come from: first the runner's image, which the
            hooks' init container uses; then registries or repositories that end in
            ``/`` and whole references.

    Raises:
        ValueError: A source could be continued to another registry's name.
    """
    for source in sources:
        if isinstance(source, str) and not re.search(r"/$|[:@][^/]+$", source):
            raise ValueError(f"image source {source!r} must end in / or with a tag")
    placement = job_placement(planned)
    devices = extended_resources(planned.runner_class)
    tolerations = [
        f"{t.key}={t.value}:NoSchedule"
        if t.operator == "Equal"
        else f"{t.key}:NoSchedule"
        for t in placement.tolerations
    ]
    # Some API servers (EKS, GKE) add this by plug-in ExtendedResourceToleration.
    tolerations += [f"{device}:NoSchedule" for device in devices]
    return {
        ACCOUNT: planned.service_account,
        SELECTOR: ",".join(
            f"{key}={value}" for key, value in sorted(placement.selector.items())
        ),
        TOLERATIONS: ",".join(sorted(set(tolerations))),
        DEVICES: ",".join(f"{key}={value}" for key, value in sorted(devices.items())),
        PRIORITY: job_priority(planned),
        SOURCES: _joined(sources),
    }


def _cel(names: Sequence[str]) -> str:
    return "[" + ", ".join(f"'{name}'" for name in names) + "]"


_CONFINED = "c.?securityContext.?allowPrivilegeEscalation.orValue(true) == false"

VARIABLES: Mapping[str, str] = {
    "wanted": "namespaceObject.metadata.annotations",
    "containers": "object.spec.containers"
    " + object.spec.?initContainers.orValue([])"
    " + object.spec.?ephemeralContainers.orValue([])",
    "volumes": "object.spec.?volumes.orValue([])",
    "selector": f"variables.wanted['{SELECTOR}'].split(',')",
    "sources": f"variables.wanted['{SOURCES}'].split(',')",
    "tolerations": f"variables.wanted['{TOLERATIONS}'].split(',')"
    f" + {_cel(SERVER_TOLERATIONS)}",
    "devices": f"variables.wanted['{DEVICES}'].split(',')",
    "audiences": _cel(TOKEN_AUDIENCES),
    "labels": "object.metadata.?labels.orValue({})",
    "own": "namespaceObject.metadata.?labels.orValue({})",
}
"""Names that the rules use, as CEL expressions, in the order of their use."""

RULES: Sequence[tuple[str, str]] = (
    (
        f"object.spec.?serviceAccountName.orValue('') == variables.wanted['{ACCOUNT}']",
        "job pods run under the service account of their class",
    ),
    (
        "object.spec.?automountServiceAccountToken.orValue(true) == false",
        "job pods get no Kubernetes API token",
    ),
    (
        "variables.volumes.all(v, v.?projected.?sources.orValue([]).all(s,"
        " !has(s.serviceAccountToken)"
        " || s.serviceAccountToken.?audience.orValue('') in variables.audiences))",
        "identity tokens of job pods are for a cloud's token service only",
    ),
    (
        "request.operation != 'CREATE' || !has(object.spec.nodeName)",
        "job pods go through the scheduler",
    ),
    (
        "variables.selector.all(p, object.spec.?nodeSelector.orValue({})"
        ".exists(k, k + '=' + object.spec.nodeSelector[k] == p))",
        "job pods select the nodes of their class",
    ),
    (
        # Before the taints: the API server may add those of the devices asked for.
        "!has(object.spec.resourceClaims) && variables.containers.all(c,"
        f" c.?resources.?limits.orValue({{}}).all(k, k in {_cel(AMOUNTS)}"
        f" || (c.name == '{JOB_CONTAINER}' && variables.devices.exists(d,"
        " d.split('=')[0] == k && quantity(c.resources.limits[k])"
        ".compareTo(quantity(d.split('=')[1])) <= 0))))",
        "job pods have the devices of their class and no more",
    ),
    (
        # As `kubectl taint` writes taints: key=value:effect, or key:effect for any.
        "object.spec.?tolerations.orValue([]).all(t, t.?key.orValue('')"
        " + (t.?operator.orValue('Equal') == 'Exists' ? ''"
        " : t.?operator.orValue('Equal') == 'Equal' ? '=' + t.?value.orValue('')"
        " : t.operator + t.?value.orValue(''))"
        " + ':' + t.?effect.orValue('') in variables.tolerations)",
        "job pods bear the taints of the nodes of their class only",
    ),
    (
        f"object.spec.?priorityClassName.orValue('') == variables.wanted['{PRIORITY}']",
        "job pods have the priority of their class",
    ),
    (
        "variables.own.all(k, !k.startsWith('ci_')"
        " || variables.labels[?k].orValue('') == variables.own[k])"
        " && variables.labels.all(k, !k.startsWith('ci_') || k in variables.own)",
        "job pods have the ci_ labels of their class",
    ),
    (
        "object.spec.?activeDeadlineSeconds.orValue(0) > 0"
        f" && object.spec.activeDeadlineSeconds <= {LONGEST_JOB_SECONDS}"
        " && object.spec.?terminationGracePeriodSeconds.orValue(0)"
        f" <= {LONGEST_GRACE_SECONDS}",
        "job pods end by the deadline of their template",
    ),
    (
        "object.metadata.?finalizers.orValue([]).all(f, request.operation == 'UPDATE'"
        " && f in oldObject.metadata.?finalizers.orValue([]))",
        "job pods have no finalizers, which would keep them",
    ),
    (
        "variables.containers.all(c, variables.sources.exists(s, s != ''"
        " && (c.image.startsWith(s) || (s == 'docker.io/'"
        " && !c.image.matches('^([^/]*[.:A-Z][^/]*|localhost)/')))))",
        "images come from the sources that the class allows",
    ),
    (
        "!object.spec.?hostNetwork.orValue(false)"
        " && !object.spec.?hostPID.orValue(false)"
        " && !object.spec.?hostIPC.orValue(false)",
        "job pods share no namespace with their node",
    ),
    (
        f"variables.volumes.all(v, dyn(v).all(k, k == 'name' || k in {_cel(VOLUMES)})"
        " && v.?projected.?sources.orValue([]).all(s,"
        f" dyn(s).all(k, k in {_cel(PROJECTED)})))",
        "job pods mount nothing of their node and nothing that outlives them",
    ),
    (
        "variables.containers.all(c, !c.?securityContext.?privileged.orValue(false))",
        "container actions need privileged pods, which are refused",
    ),
    (
        f"object.spec.containers.all(c, {_CONFINED}"
        # A service container, to which the hooks give no security context.
        f" || (c.name != '{JOB_CONTAINER}' && !has(c.securityContext)))"
        f" && object.spec.?initContainers.orValue([]).all(c, {_CONFINED}"
        f" || (c.name == '{INIT_CONTAINER}' && c.image == variables.sources[0]"
        f" && c.?securityContext.?runAsUser.orValue(0) == {HOOKS_GROUP}"
        f" && c.?securityContext.?runAsGroup.orValue(0) == {HOOKS_GROUP}"
        " && dyn(c.securityContext).all(k, k in ['runAsUser', 'runAsGroup'])))"
        " && object.spec.?ephemeralContainers.orValue([]).all(c, "
        f"{_CONFINED})",
        "jobs gain no privileges",
    ),
)
"""The rules, each with what a refused pod is told."""


def make_admission(
    resource_name: str, labels: Mapping[str, str], opts: pulumi.ResourceOptions
) -> tuple[
    admission.ValidatingAdmissionPolicy, admission.ValidatingAdmissionPolicyBinding
]:
    """Make the policy for the job pods of a cell, and what puts it in force."""
    policy = admission.ValidatingAdmissionPolicy(
        f"{resource_name}-job-admission",
        metadata=meta.ObjectMetaArgs(name=POLICY, labels=dict(labels)),
        spec=admission.ValidatingAdmissionPolicySpecArgs(
            failure_policy="Fail",
            match_constraints=admission.MatchResourcesArgs(
                namespace_selector=meta.LabelSelectorArgs(match_labels={PART: "job"}),
                resource_rules=[
                    admission.NamedRuleWithOperationsArgs(
                        api_groups=[""],
                        api_versions=["v1"],
                        operations=["CREATE", "UPDATE"],
                        resources=["pods", "pods/ephemeralcontainers"],
                    )
                ],
            ),
            variables=[
                admission.VariableArgs(name=name, expression=expression)
                for name, expression in VARIABLES.items()
            ],
            validations=[
                admission.ValidationArgs(
                    expression=expression, message=message, reason="Forbidden"
                )
                for expression, message in RULES
            ],
        ),
        opts=opts,
    )
    binding = admission.ValidatingAdmissionPolicyBinding(
        f"{resource_name}-job-admission-binding",
        metadata=meta.ObjectMetaArgs(name=POLICY, labels=dict(labels)),
        spec=admission.ValidatingAdmissionPolicyBindingSpecArgs(
            policy_name=POLICY, validation_actions=["Deny", "Audit"]
        ),
        opts=opts,
    )
    return policy, binding


def _joined(sources: Sequence[pulumi.Input[str]]) -> pulumi.Input[str]:
    known = [source for source in sources if isinstance(source, str)]
    if len(known) == len(sources):
        return ",".join(known)
    return pulumi.Output.all(*sources).apply(
        lambda values: ",".join(str(value) for value in values)
    )
