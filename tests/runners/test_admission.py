"""What can be shown without an API server: the policy's shape and its inputs.

That the expressions accept the hooks' pods and refuse the others is proven on a real
API server by the cluster tests.
"""

from __future__ import annotations

import re

import pulumi
import pytest

from runfleet.placement import CellPlan
from runfleet.runners.admission import (
    RULES,
    TOKEN_AUDIENCES,
    VARIABLES,
    job_annotations,
)
from runners.cells import IMAGE, Cluster, class_of, record, record_runners

OWN = "111122223333.dkr.ecr.us-east-1.amazonaws.com/"


def test_the_policy_is_in_force_for_pods_of_job_namespaces_and_fails_closed(
    cluster: Cluster,
) -> None:
    policy = cluster.one("ValidatingAdmissionPolicy", "runfleet-job-pods")["spec"]
    assert policy["failurePolicy"] == "Fail"
    assert policy["matchConstraints"] == {
        "namespaceSelector": {"matchLabels": {"runfleet/part": "job"}},
        "resourceRules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE", "UPDATE"],
                "resources": ["pods", "pods/ephemeralcontainers"],
            }
        ],
    }
    assert [(v["expression"], v["message"]) for v in policy["validations"]] == list(
        RULES
    )
    assert [(v["name"], v["expression"]) for v in policy["variables"]] == list(
        VARIABLES.items()
    )
    binding = cluster.one("ValidatingAdmissionPolicyBinding", "runfleet-job-pods")
    assert binding["spec"] == {
        "policyName": "runfleet-job-pods",
        "validationActions": ["Deny", "Audit"],
    }


def test_variables_are_defined_before_they_are_used_and_all_are_used() -> None:
    defined: set[str] = set()
    used: set[str] = set()
    for name, expression in VARIABLES.items():
        needs = set(re.findall(r"variables\.(\w+)", expression))
        assert needs <= defined
        used |= needs
        defined.add(name)
    for expression, _ in RULES:
        needs = set(re.findall(r"variables\.(\w+)", expression))
        assert needs <= defined
        used |= needs
    assert used == defined


def test_what_the_policy_pins_stands_on_the_job_namespace(
    plan: CellPlan, cluster: Cluster
) -> None:
    job = cluster.one("Namespace", class_of(plan, "x86-8-16").job_namespace)
    assert job["metadata"]["annotations"] == {
        "runfleet/service-account": "job",
        "runfleet/node-selector": "ci_trust=shared,node-fleet=c7i,"
        "workload-type=github-runner",
        "runfleet/tolerations": "instance-type:NoSchedule,node-fleet=c7i:NoSchedule",
        "runfleet/devices": "",
        "runfleet/priority-class": "runfleet-job",
        "runfleet/image-sources": f"{IMAGE},{OWN},docker.io/,ghcr.io/,"
        "public.ecr.aws/,quay.io/",
    }
    release = cluster.one("Namespace", class_of(plan, "rel-x86").job_namespace)
    assert release["metadata"]["annotations"] == {
        "runfleet/service-account": "job",
        "runfleet/node-selector": "ci_trust=release,node-fleet=c7i,"
        "workload-type=github-runner",
        "runfleet/tolerations": "ci_trust=release:NoSchedule,"
        "instance-type:NoSchedule,node-fleet=c7i:NoSchedule",
        "runfleet/devices": "",
        "runfleet/priority-class": "runfleet-job-release",
        "runfleet/image-sources": f"{IMAGE},{OWN}",
    }


def test_annotations_hold_every_annotation_that_the_rules_read() -> None:
    text = " ".join([*VARIABLES.values(), *(expression for expression, _ in RULES)])
    assert set(re.findall(r"runfleet/[a-z-]+", text)) == {
        "runfleet/service-account",
        "runfleet/node-selector",
        "runfleet/tolerations",
        "runfleet/devices",
        "runfleet/priority-class",
        "runfleet/image-sources",
    }


def test_the_terms_of_a_gpu_class_name_its_devices_and_their_taint(
    plan: CellPlan,
) -> None:
    terms = job_annotations(class_of(plan, "l4"), [IMAGE])
    assert terms["runfleet/devices"] == "nvidia.com/gpu=2"
    assert terms["runfleet/tolerations"] == (
        "instance-type:NoSchedule,node-fleet=g6:NoSchedule,"
        "nvidia.com/gpu:NoSchedule,nvidia.com/gpu=true:NoSchedule"
    )


def test_every_toleration_of_a_template_is_among_the_terms(
    plan: CellPlan, cluster: Cluster
) -> None:
    for planned in plan.classes:
        terms = str(job_annotations(planned, [IMAGE])["runfleet/tolerations"])
        for toleration in cluster.template(planned)["spec"]["tolerations"]:
            value = f"={toleration['value']}" if "value" in toleration else ""
            written = f"{toleration['key']}{value}:{toleration['effect']}"
            assert written in terms.split(",")


def test_the_runners_image_is_the_first_source(
    plan: CellPlan, cluster: Cluster
) -> None:
    """The rule for the hooks' init container reads it there."""
    for planned in plan.classes:
        job = cluster.one("Namespace", planned.job_namespace)
        sources = job["metadata"]["annotations"]["runfleet/image-sources"]
        assert sources.split(",")[0] == IMAGE


def test_a_registry_that_is_an_output_reaches_the_namespace(plan: CellPlan) -> None:
    later = pulumi.Output.from_input("registry.example")
    cluster = record_runners(plan, registries=[later], image_sources={})
    job = cluster.one("Namespace", class_of(plan, "l4").job_namespace)
    sources = job["metadata"]["annotations"]["runfleet/image-sources"]
    assert sources == f"{IMAGE},registry.example/"


@pytest.mark.parametrize("source", ["ghcr.io", "docker.io/library", ""])
def test_a_source_that_another_name_could_continue_is_refused(
    plan: CellPlan, source: str
) -> None:
    with pytest.raises(ValueError, match="must end in / or with a tag"):
        job_annotations(class_of(plan, "l4"), [source])


def test_no_audience_is_the_api_server() -> None:
    assert not any("kubernetes" in audience for audience in TOKEN_AUDIENCES)


def test_recording_an_empty_program_makes_nothing() -> None:
    assert record(lambda: None).made == []
