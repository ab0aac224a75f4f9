"""Kubeconfig: short-lived credentials from kubelogin, none in any state.

Local accounts are off, so Entra is the only way in: ``kubelogin`` gets a token for each
use and the cluster checks it against Azure's role assignments. Azure Resource Manager
gives the API's certificate only inside the cluster's user kubeconfig, which on such a
cluster holds no credential; that one value is taken out of it.

Source: Azure kubelogin documentation, "get-token"; Kubernetes documentation, "client-go
credential plugins", read 2026-11.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import pulumi
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

AKS_SERVER = "6dae42f8-4368-4678-94ff-3960e28e3630"
"""Application id of every AKS API server with Entra (AKS documentation, "Use kubelogin
to authenticate users")."""


@dataclass(frozen=True)
class KubeconfigArgs:
    """What a kubeconfig is made from.

    Attributes:
        cluster: Name of the cluster.
        tenant: Entra tenant id.
        endpoint: Address of the API.
        certificate_authority: Base64 certificate of the API.
        login: How kubelogin signs in.
        client: Client id to sign in as; empty for the ambient identity.
        proxy: HTTPS proxy that the API is reached through, if any.
    """

    cluster: str
    tenant: str
    endpoint: pulumi.Input[str]
    certificate_authority: pulumi.Input[str]
    login: str = "azurecli"
    client: str = ""
    proxy: str | None = None


def kubeconfig(args: KubeconfigArgs) -> pulumi.Output[str]:
    """Return a kubeconfig (JSON) that fetches a token with kubelogin for each use."""
    name = args.cluster
    command = ["get-token", "--server-id", AKS_SERVER, "--login", args.login]
    command += ["--tenant-id", args.tenant]
    if args.client and args.login != "azurecli":
        command += ["--client-id", args.client]
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
                            "command": "kubelogin",
                            "args": command,
                            "interactiveMode": "Never",
                            "provideClusterInfo": False,
                        }
                    },
                }
            ],
        }
    )


def certificate_of(encoded: str) -> str:
    """Return the API's certificate, in base64, out of a kubeconfig in base64.

    Returns:
        The certificate; empty when the text is no kubeconfig.
    """
    try:
        text = base64.b64decode(encoded, validate=True).decode()
        found: Any = YAML(typ="safe", pure=True).load(  # pyright: ignore[reportUnknownMemberType]
            text
        )
        clusters = cast("list[Mapping[str, Any]]", found["clusters"])
        return str(clusters[0]["cluster"]["certificate-authority-data"])
    except (binascii.Error, UnicodeError, YAMLError, KeyError, IndexError, TypeError):
        return ""
