"""Kubeconfig: short-lived credentials from the AWS CLI, none in any state.

Source: AWS CLI reference, ``eks get-token``; Kubernetes documentation, "client-go
credential plugins", read 2026-08.
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
        region: Region.
        endpoint: Address of the API.
        certificate_authority: Base64 certificate of the API.
        deploy_role: ARN of the role to ask as; empty for the ambient identity.
        proxy: HTTPS proxy that the API is reached through, if any.
    """

    cluster: str
    region: str
    endpoint: pulumi.Input[str]
    certificate_authority: pulumi.Input[str]
    deploy_role: str = ""
    proxy: str | None = None


def kubeconfig(args: KubeconfigArgs) -> pulumi.Output[str]:
    """Return a kubeconfig (JSON) that fetches a token with the AWS CLI for each use."""
    name = args.cluster
    command = ["eks", "get-token", "--cluster-name", name, "--region", args.region]
    command += ["--output", "json"]
    if args.deploy_role:
        command += ["--role-arn", args.deploy_role]
    cluster: dict[str, Any] = {
        "server": args.endpoint,
        "certificate-authority-data": args.certificate_authority,
    }
    if args.proxy:
        cluster["proxy-url"] = args.proxy
    return pulumi.Output.json_dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": cluster}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "current-context": name,
            "users": [
                {
                    "name": name,
                    "user": {
                        "exec": {
                            "apiVersion": "client.authentication.k8s.io/v1beta1",
                            "command": "aws",
                            "args": command,
                            "interactiveMode": "Never",
                        }
                    },
                }
            ],
        }
    )
