"""Kubeconfig: short-lived credentials from Google's plugin, none in any state.

``gke-gcloud-auth-plugin`` asks for an access token of the ambient identity each time
it is called (GKE documentation, "Install kubectl and configure cluster access"; the
flag to ask as another service account is in kubernetes/cloud-provider-gcp,
``cmd/gke-gcloud-auth-plugin``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pulumi


@dataclass(frozen=True)
class KubeconfigArgs:
    """What a kubeconfig is made from.

    Attributes:
        cluster: Name of the cluster.
        server: Address of the API, with scheme.
        certificate_authority: Base64 certificate of the API; empty when the
            certificate is one that everybody trusts, as that of the DNS endpoint.
        deploy_role: Service account to ask as; empty for the ambient identity.
        proxy: HTTPS proxy that the API is reached through, if any.
    """

    cluster: str
    server: pulumi.Input[str]
    certificate_authority: pulumi.Input[str] = ""
    deploy_role: str = ""
    proxy: str | None = None


def kubeconfig(args: KubeconfigArgs) -> pulumi.Output[str]:
    """Return a kubeconfig (JSON) that fetches a token with the plugin for each use."""
    name = args.cluster
    cluster: dict[str, Any] = {"server": args.server}
    if args.certificate_authority != "":
        cluster["certificate-authority-data"] = args.certificate_authority
    if args.proxy:
        cluster["proxy-url"] = args.proxy
    credentials: dict[str, Any] = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": "gke-gcloud-auth-plugin",
        "installHint": "gcloud components install gke-gcloud-auth-plugin",
        "interactiveMode": "Never",
        "provideClusterInfo": True,
    }
    if args.deploy_role:
        credentials["args"] = ["--impersonate_service_account", args.deploy_role]
    return pulumi.Output.json_dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": cluster}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "current-context": name,
            "users": [{"name": name, "user": {"exec": credentials}}],
        }
    )
