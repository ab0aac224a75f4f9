"""The GitHub App's key: fetched from the cloud's secret manager, by reference only.

The key is never in the fleet file, in a setting, in a Helm value or in state. The
External Secrets operator copies it from the cloud's secret manager to the runner
namespace of each class, where ARC's controller reads it and the runner's account may
not. Each trust level has an App of its own and so a store of its own, which only the
runner namespaces of that level may use.
"""

from __future__ import annotations

from collections.abc import Mapping

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.meta import v1 as meta

from runfleet.clouds.protocols import AppSecretSource
from runfleet.placement.plan import PlannedClass
from runfleet.runners.scale_sets import APP_SECRET
from runfleet.runners.tenancy import PART
from runfleet.spec.roles import Trust

EXTERNAL_SECRETS_API = "external-secrets.io/v1"
REFRESH = "1h"
APP_KEYS = (
    "github_app_id",
    "github_app_installation_id",
    "github_app_private_key",
)
"""Keys of the Secret that ARC reads, and properties of the secret in the manager."""


def store_name(trust: Trust) -> str:
    """Return the name of the store of a trust level."""
    return f"github-app-{trust}"


def make_store(
    resource_name: str,
    trust: Trust,
    source: AppSecretSource,
    labels: Mapping[str, str],
    opts: pulumi.ResourceOptions,
) -> CustomResource:
    """Make the secret store of a trust level."""
    return CustomResource(
        f"{resource_name}-app-store-{trust}",
        api_version=EXTERNAL_SECRETS_API,
        kind="ClusterSecretStore",
        metadata=meta.ObjectMetaArgs(name=store_name(trust), labels=dict(labels)),
        spec={
            "provider": {source.store_kind: dict(source.settings)},
            "conditions": [
                {
                    "namespaceSelector": {
                        "matchLabels": {PART: "runner", "ci_trust": str(trust)}
                    }
                }
            ],
        },
        opts=opts,
    )


def make_app_secret(
    resource_name: str,
    planned: PlannedClass,
    source: AppSecretSource,
    opts: pulumi.ResourceOptions,
) -> CustomResource:
    """Make what copies the App's key to a class's runner namespace."""
    return CustomResource(
        f"{resource_name}-app-secret",
        api_version=EXTERNAL_SECRETS_API,
        kind="ExternalSecret",
        metadata=meta.ObjectMetaArgs(
            name=APP_SECRET,
            namespace=planned.runner_namespace,
            labels=dict(planned.ci_labels),
        ),
        spec={
            "refreshInterval": REFRESH,
            "secretStoreRef": {
                "kind": "ClusterSecretStore",
                "name": store_name(planned.runner_class.trust),
            },
            "target": {"name": APP_SECRET, "creationPolicy": "Owner"},
            "data": [
                {
                    "secretKey": key,
                    "remoteRef": {"key": source.key, "property": key},
                }
                for key in APP_KEYS
            ],
        },
        opts=opts,
    )
