from __future__ import annotations

import dataclasses

from runfleet.placement import CellPlan
from runfleet.runners.controllers import arc_values, secrets_values
from runners.cells import Cluster, pins_of
from runners.reachability import egress_allowed


def test_arcs_controller(plan: CellPlan, cluster: Cluster) -> None:
    release = cluster.release("arc")
    assert release["chart"] == (
        "oci://ghcr.io/actions/actions-runner-controller-charts/"
        "gha-runner-scale-set-controller"
    )
    assert release["version"] == "0.14.2"
    assert release["namespace"] == "arc-systems"
    values = release["values"]
    assert values["serviceAccount"] == {"create": True, "name": "arc-gha-rs-controller"}
    assert values["flags"]["logLevel"] == "info"
    assert values["metrics"] == {
        "controllerManagerAddr": ":8080",
        "listenerAddr": ":8080",
        "listenerEndpoint": "/metrics",
    }
    assert values["podSecurityContext"] == {
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert values["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    assert "image" not in values


def test_the_version_label_of_scale_sets_is_the_controllers_version(
    cluster: Cluster,
) -> None:
    versions = {
        made.inputs["metadata"]["labels"]["app.kubernetes.io/version"]
        for made in cluster.of("AutoscalingRunnerSet")
    }
    assert versions == {cluster.release("arc")["version"]}


def test_a_resolved_controller_image_is_used_by_digest(plan: CellPlan) -> None:
    pinned = dataclasses.replace(plan, pins=pins_of(arc_controller_image="sha256:ab"))
    assert arc_values(pinned)["image"] == {
        "repository": "ghcr.io/actions/gha-runner-scale-set-controller",
        "tag": "0.14.2@sha256:ab",
    }


def test_the_secrets_operator(cluster: Cluster) -> None:
    release = cluster.release("external-secrets")
    assert release["version"] == "1.2.3"
    assert release["namespace"] == "external-secrets"
    assert release["repositoryOpts"] == {"repo": "https://charts.external-secrets.io"}
    assert release["values"]["installCRDs"] is True
    assert release["values"]["processPushSecret"] is False


def test_the_cloud_s_annotations_reach_the_secrets_operator_s_account(
    cluster: Cluster,
) -> None:
    plain = {"create": True, "name": "external-secrets"}
    assert cluster.release("external-secrets")["values"]["serviceAccount"] == plain
    bound = {"iam.gke.io/gcp-service-account": "reader@demo.iam.gserviceaccount.com"}
    assert secrets_values() == secrets_values({})
    assert secrets_values(bound) == {
        **secrets_values(),
        "serviceAccount": {**plain, "annotations": bound},
    }


def test_arcs_namespace_is_closed_but_for_github_the_api_and_metrics(
    cluster: Cluster,
) -> None:
    policy = cluster.one("NetworkPolicy", "default-deny", "arc-systems")
    assert egress_allowed([policy], "140.82.112.3", 443)
    assert egress_allowed([policy], "172.20.0.1", 443)
    assert not egress_allowed([policy], "169.254.169.254", 80)
    assert not egress_allowed([policy], "169.254.170.23", 80)
    assert policy["spec"]["ingress"] == [
        {
            "from": [
                {"namespaceSelector": {"matchLabels": {"runfleet/part": "system"}}}
            ],
            "ports": [{"port": 8080, "protocol": "TCP"}],
        }
    ]
