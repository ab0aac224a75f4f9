"""Kubeconfig: the route to the cluster's API, with no credential in any state.

The cluster resource gives no kubeconfig, and the file that ``ibmcloud ks cluster
config`` writes holds an identity token and a refresh token that lives for 30 days, so
it must not come into a state. The kubeconfig made here holds neither: it names the
endpoint, the cluster's certificate, and a command that prints a fresh token for each
use (:mod:`runfleet.clouds.ibm.kube_token`; Kubernetes documentation, "client-go
credential plugins").

The endpoint is the virtual private endpoint of the cluster, which is reached from
inside the VPC (``private``), or from outside through a proxy in it (``tunnel``). The
certificate is the cluster's own; nothing but the cluster knows it before it is made,
and no resource tells it, so it is a setting that is read once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pulumi

TOKEN_MODULE = "runfleet.clouds.ibm.kube_token"
"""What the command runs."""


@dataclass(frozen=True)
class KubeconfigArgs:
    """What a kubeconfig is made from.

    Attributes:
        cluster: Name of the cluster.
        endpoint: Address of the API.
        certificate_authority: Base64 certificate of the API; empty until it is known.
        profile: Trusted profile that the deployment takes on; empty for none.
        proxy: HTTPS proxy that the API is reached through, if any.
    """

    cluster: str
    endpoint: pulumi.Input[str]
    certificate_authority: str = ""
    profile: str = ""
    proxy: str | None = None


def kubeconfig(args: KubeconfigArgs) -> pulumi.Output[str]:
    """Return a kubeconfig (JSON) that fetches a token of IBM's IAM for each use.

    Without a certificate nothing is trusted, rather than everything: the first
    connection fails.
    """
    name = args.cluster
    command = ["-m", TOKEN_MODULE, "--cluster", name]
    if args.profile:
        command += ["--profile", args.profile]
    cluster: dict[str, Any] = {"server": args.endpoint}
    if args.certificate_authority:
        cluster["certificate-authority-data"] = args.certificate_authority
    if args.proxy:
        cluster["proxy-url"] = args.proxy
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "python3",
        "args": command,
        "interactiveMode": "Never",
    }
    return pulumi.Output.json_dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": cluster}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "current-context": name,
            "users": [{"name": name, "user": {"exec": plugin}}],
        }
    )
