from __future__ import annotations

import json

from runfleet.placement import CellPlan
from runners.cells import Cluster, class_of


def test_each_trust_level_has_a_store_for_its_runner_namespaces(
    cluster: Cluster,
) -> None:
    stores = {
        made.inputs["metadata"]["name"]: made.inputs["spec"]
        for made in cluster.of("ClusterSecretStore")
    }
    provider = {"aws": {"service": "SecretsManager", "region": "us-east-1"}}

    def only(trust: str) -> list[object]:
        labels = {"runfleet/part": "runner", "ci_trust": trust}
        return [{"namespaceSelector": {"matchLabels": labels}}]

    assert stores == {
        "github-app-untrusted-pr": {
            "provider": provider,
            "conditions": only("untrusted-pr"),
        },
        "github-app-release": {"provider": provider, "conditions": only("release")},
    }


def test_the_key_of_each_class_is_fetched_into_its_runner_namespace(
    plan: CellPlan, cluster: Cluster
) -> None:
    for name, key, trust in (
        ("x86-8-16", "app-jobs", "untrusted-pr"),
        ("rel-x86", "app-release", "release"),
    ):
        planned = class_of(plan, name)
        made = cluster.one("ExternalSecret", "github-app", planned.runner_namespace)
        assert made["apiVersion"] == "external-secrets.io/v1"
        assert made["spec"] == {
            "refreshInterval": "1h",
            "secretStoreRef": {
                "kind": "ClusterSecretStore",
                "name": f"github-app-{trust}",
            },
            "target": {"name": "github-app", "creationPolicy": "Owner"},
            "data": [
                {
                    "secretKey": property_,
                    "remoteRef": {"key": key, "property": property_},
                }
                for property_ in (
                    "github_app_id",
                    "github_app_installation_id",
                    "github_app_private_key",
                )
            ],
        }
    assert len(cluster.of("ExternalSecret")) == len(plan.classes)


def test_no_key_is_ever_inline(cluster: Cluster) -> None:
    assert cluster.of("Secret") == []
    for made in cluster.of("AutoscalingRunnerSet"):
        assert made.inputs["spec"]["githubConfigSecret"] == "github-app"
    names = {"github_app_private_key", "github_token"}
    for made in cluster.made:
        if made.type.endswith(":ExternalSecret"):
            continue
        assert not any(name in json.dumps(made.inputs) for name in names), made.name


def test_job_namespaces_hold_no_app_key(plan: CellPlan, cluster: Cluster) -> None:
    namespaces = {
        m.inputs["metadata"]["namespace"] for m in cluster.of("ExternalSecret")
    }
    assert namespaces == {planned.runner_namespace for planned in plan.classes}
