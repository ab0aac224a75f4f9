"""What job pods may be: one admission policy for all job namespaces of a cell.

A runner may create pods in its job namespace, and a Role cannot say which pods. So a
ValidatingAdmissionPolicy pins, for every pod there, the service account, the nodes,
the priority, the sources of images and the identity tokens, and refuses what would
reach the node. Pod Security ``baseline`` refuses the last too; this policy does not
depend on the namespace's label for it.

The policy is one and the same for all classes. What differs stands in annotations of
the job namespace, which the runner cannot change; a namespace without them refuses
every pod, because the policy fails closed. Expressions are CEL as Kubernetes 1.30 and
later evaluate it (https://kubernetes.io/docs/reference/using-api/cel/).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pulumi
from pulumi_kubernetes.admissionregistration import v1 as admission
from pulumi_kubernetes.meta import v1 as meta

from runfleet.placement.plan import PlannedClass
from runfleet.runners.job_pods import JOB_CONTAINER, job_priority
from runfleet.runners.scheduling import job_placement
from runfleet.runners.tenancy import PART
from runfleet.spec.roles import Trust

POLICY = "runfleet-job-pods"

ACCOUNT = "runfleet/service-account"
SELECTOR = "runfleet/node-selector"
PRIORITY = "runfleet/priority-class"
SOURCES = "runfleet/image-sources"

TOKEN_AUDIENCES = (
    "pods.eks.amazonaws.com",  # EKS Pod Identity
    "sts.amazonaws.com",  # EKS, roles for service accounts
    "api://AzureADTokenExchange",  # Azure workload identity
    "iam",  # IBM Cloud trusted profiles
)
"""Audiences that a job's identity token may have: the clouds', never the API server."""

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
        sources: Where images may come from: a registry or repository that ends in
            ``/``, or a whole reference.

    Raises:
        ValueError: A source could be continued to another registry's name.
    """
    for source in sources:
        if isinstance(source, str) and not re.search(r"/$|[:@][^/]+$", source):
            raise ValueError(f"image source {source!r} must end in / or with a tag")
    selector = job_placement(planned).selector
    return {
        ACCOUNT: planned.service_account,
        SELECTOR: ",".join(f"{key}={value}" for key, value in sorted(selector.items())),
        PRIORITY: job_priority(planned),
        SOURCES: _joined(sources),
    }


VARIABLES: Mapping[str, str] = {
    "wanted": "namespaceObject.metadata.annotations",
    "containers": "object.spec.containers"
    " + object.spec.?initContainers.orValue([])"
    " + object.spec.?ephemeralContainers.orValue([])",
    "volumes": "object.spec.?volumes.orValue([])",
    "selector": f"variables.wanted['{SELECTOR}'].split(',')",
    "sources": f"variables.wanted['{SOURCES}'].split(',')",
    "audiences": "[" + ", ".join(f"'{audience}'" for audience in TOKEN_AUDIENCES) + "]",
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
        f"object.spec.?priorityClassName.orValue('') == variables.wanted['{PRIORITY}']",
        "job pods have the priority of their class",
    ),
    (
        "variables.containers.all(c, variables.sources.exists(s, s != ''"
        " && (c.image.startsWith(s) || (s == 'docker.io/'"
        " && !c.image.matches('^([^/]*[.:][^/]*|localhost)/')))))",
        "images come from the sources that the class allows",
    ),
    (
        "!object.spec.?hostNetwork.orValue(false)"
        " && !object.spec.?hostPID.orValue(false)"
        " && !object.spec.?hostIPC.orValue(false)",
        "job pods share no namespace with their node",
    ),
    (
        "variables.volumes.all(v, !has(v.hostPath) && !has(v.persistentVolumeClaim))",
        "job pods mount nothing of their node and nothing that outlives them",
    ),
    (
        "variables.containers.all(c, !c.?securityContext.?privileged.orValue(false))",
        "container actions need privileged pods, which are refused",
    ),
    (
        f"object.spec.containers.all(c, c.name != '{JOB_CONTAINER}'"
        " || !c.?securityContext.?allowPrivilegeEscalation.orValue(true))",
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
