"""The credential plugin for IBM Cloud clusters: one IAM token for each use.

``kubectl`` and Pulumi's Kubernetes provider run ``python3 -m
runfleet.clouds.ibm.kube_token --cluster <name>`` and read a token from its output. The
API server of an IBM Cloud cluster accepts identity tokens that IAM issues to the client
``kube``; the way to one is IBM's ("Working with your cluster by using the Kubernetes
API", ibm-cloud-docs/containers ``api-install.md``):

1. an API key, or the token of a compute resource for a trusted profile, is exchanged
   for a refresh token;
2. the refresh token for a delegated one, for the client ``kube``;
3. that for an identity token of ``kube``, which lasts an hour at most.

Between 1 and 2 the cluster is asked to copy the caller's IAM roles into its own RBAC,
which otherwise happens some time later, so that a first deployment can make objects in
a cluster that it has just made.

The credential comes from the environment, as for IBM's own tools: ``IC_API_KEY`` (or
``IBMCLOUD_API_KEY``), or ``IBMCLOUD_CR_TOKEN_FILE`` together with ``--profile``. It is
sent to IAM only, and nothing is written anywhere.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import httpx

from runfleet.errors import MissingError, RunfleetError

IAM = "https://iam.cloud.ibm.com"
CONTAINERS = "https://containers.cloud.ibm.com"
TIMEOUT_S = 30.0

API_KEYS = ("IC_API_KEY", "IBMCLOUD_API_KEY")
"""Variables that may hold the API key; the first one wins."""

TOKEN_FILE = "IBMCLOUD_CR_TOKEN_FILE"
"""Variable with the path of the token of a compute resource."""

_GRANT = "urn:ibm:params:oauth:grant-type:"


class TokenError(RunfleetError):
    """IAM or the cluster service refused (exit 1)."""


@dataclass(frozen=True)
class Login:
    """What is known of the caller.

    Attributes:
        form: What IAM is asked with.
    """

    form: Mapping[str, str]


def login(environment: Mapping[str, str], profile: str = "") -> Login:
    """Return how the caller identifies itself.

    Args:
        environment: Environment variables.
        profile: Id of the trusted profile to take on.

    Raises:
        MissingError: The environment holds no credential.
    """
    for name in API_KEYS:
        if environment.get(name):
            return Login({"grant_type": f"{_GRANT}apikey", "apikey": environment[name]})
    path = environment.get(TOKEN_FILE)
    if path and profile:
        token = Path(path).read_text(encoding="utf-8").strip()
        form = {"cr_token": token, "profile_id": profile}
        return Login({"grant_type": f"{_GRANT}cr-token", **form})
    raise MissingError(
        "no credential for IBM Cloud in the environment",
        f"export {API_KEYS[0]}=<API key>, or {TOKEN_FILE}=<file> and a trusted profile",
    )


def credential(cluster: str, caller: Login, client: httpx.Client) -> dict[str, Any]:
    """Return an ``ExecCredential`` for a cluster.

    Args:
        cluster: Name or id of the cluster.
        caller: Who asks.
        client: HTTP client.

    Raises:
        TokenError: A request was refused, or the answer holds no token.
    """
    first = _iam(client, "bx", {**caller.form, "response_type": "cloud_iam"})
    access, refresh = _text(first, "access_token"), _text(first, "refresh_token")
    _sync_roles(client, cluster, access, refresh)
    delegated = _iam(
        client,
        "bx",
        {
            "grant_type": "refresh_token",
            "refresh_token": refresh,
            "response_type": "delegated_refresh_token",
            "receiver_client_ids": "kube",
            "delegated_refresh_token_expiry": "600",
        },
    )
    final = _iam(
        client,
        "kube",
        {
            "grant_type": f"{_GRANT}delegated-refresh-token",
            "refresh_token": _text(delegated, "delegated_refresh_token"),
        },
    )
    ends = dt.datetime.fromtimestamp(int(final.get("expiration") or 0), dt.UTC)
    return {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {
            "token": _text(final, "id_token"),
            "expirationTimestamp": ends.strftime("%Y-%m-%dT%H:%M:%SZ"),
        },
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a credential; return the exit code."""
    parser = argparse.ArgumentParser(prog="kube_token", description=__doc__)
    parser.add_argument("--cluster", required=True, help="Name or id of the cluster.")
    parser.add_argument("--profile", default="", help="Trusted profile to take on.")
    given = parser.parse_args(arguments)
    try:
        caller = login(os.environ, given.profile)
        with httpx.Client(timeout=TIMEOUT_S) as client:
            found = credential(given.cluster, caller, client)
    except (RunfleetError, OSError) as error:
        print(f"runfleet: {error}", file=sys.stderr)
        return error.exit_code if isinstance(error, RunfleetError) else 3
    print(json.dumps(found))
    return 0


def _iam(client: httpx.Client, user: str, form: Mapping[str, str]) -> Mapping[str, Any]:
    """Ask IAM for a token as one of its public clients, which have no secret."""
    request = client.build_request(
        "POST",
        f"{IAM}/identity/token",
        headers={"Accept": "application/json"},
        data=dict(form),
    )
    answer = _send(client, "IAM", request, httpx.BasicAuth(user, user))
    try:
        return cast("Mapping[str, Any]", answer.json())
    except ValueError:
        raise TokenError("IAM did not answer with JSON") from None


def _sync_roles(client: httpx.Client, cluster: str, access: str, refresh: str) -> None:
    """Have the caller's IAM roles copied into the cluster; the answer is not used."""
    request = client.build_request(
        "POST",
        f"{CONTAINERS}/global/v2/applyRBACAndGetKubeconfig",
        headers={"Authorization": f"Bearer {access}", "X-Auth-Refresh-Token": refresh},
        json={"cluster": cluster},
    )
    _send(client, f"cluster {cluster}", request)


def _send(
    client: httpx.Client,
    who: str,
    request: httpx.Request,
    auth: httpx.Auth | None = None,
) -> httpx.Response:
    try:
        answer = client.send(request, auth=auth)
    except httpx.HTTPError as error:
        raise TokenError(f"{who} cannot be reached: {error}") from None
    if answer.status_code >= 400:
        raise TokenError(f"{who} refused ({answer.status_code}): {_reason(answer)}")
    return answer


def _reason(answer: httpx.Response) -> str:
    """Return what an error says, without anything that was sent."""
    try:
        body = cast("Mapping[str, Any]", answer.json())
    except ValueError:
        return answer.reason_phrase
    for key in ("errorMessage", "errorDescription", "description", "message"):
        if body.get(key):
            return str(body[key])
    return answer.reason_phrase


def _text(answer: Mapping[str, Any], key: str) -> str:
    value = answer.get(key)
    if not isinstance(value, str) or not value:
        raise TokenError(f"IAM's answer holds no {key}")
    return value


if __name__ == "__main__":
    raise SystemExit(main())
