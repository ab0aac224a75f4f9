"""The credential plugin: which requests it sends, and what it prints."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import parse_qs

import httpx
import pytest

from runfleet.clouds.ibm import kube_token
from runfleet.clouds.ibm.kube_token import Login, TokenError, credential, login
from runfleet.errors import MissingError

BX = "Basic Yng6Yng="
KUBE = "Basic a3ViZTprdWJl"


class Iam:
    """IAM and the cluster service, as they answer in IBM's documentation."""

    def __init__(self, **answers: httpx.Response) -> None:
        self.seen: list[tuple[str, str, dict[str, str]]] = []
        self._answers = answers

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.host == "containers.cloud.ibm.com":
            kind, form = "sync", json.loads(request.content)
        else:
            form = {k: v[0] for k, v in parse_qs(request.content.decode()).items()}
            kind = form["grant_type"].rpartition(":")[2]
        who = request.headers["Authorization"]
        self.seen.append((kind, who, form))
        if kind in self._answers:
            return self._answers[kind]
        return httpx.Response(
            200,
            json={
                "apikey": {"access_token": "access", "refresh_token": "refresh"},
                "cr-token": {"access_token": "access", "refresh_token": "refresh"},
                "refresh_token": {"delegated_refresh_token": "delegated"},
                "delegated-refresh-token": {
                    "id_token": "identity",
                    "expiration": 1_800_000_000,
                },
                "sync": {},
            }[kind],
        )

    def client(self) -> httpx.Client:
        return httpx.Client(transport=httpx.MockTransport(self))


def test_the_whole_exchange() -> None:
    iam = Iam()
    with iam.client() as client:
        found = credential("demo", login({"IC_API_KEY": "key"}), client)
    assert found == {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {
            "token": "identity",
            "expirationTimestamp": "2027-01-15T08:00:00Z",
        },
    }
    grant = "urn:ibm:params:oauth:grant-type:"
    assert iam.seen == [
        (
            "apikey",
            BX,
            {
                "grant_type": f"{grant}apikey",
                "apikey": "key",
                "response_type": "cloud_iam",
            },
        ),
        ("sync", "Bearer access", {"cluster": "demo"}),
        (
            "refresh_token",
            BX,
            {
                "grant_type": "refresh_token",
                "refresh_token": "refresh",
                "response_type": "delegated_refresh_token",
                "receiver_client_ids": "kube",
                "delegated_refresh_token_expiry": "600",
            },
        ),
        (
            "delegated-refresh-token",
            KUBE,
            {
                "grant_type": f"{grant}delegated-refresh-token",
                "refresh_token": "delegated",
            },
        ),
    ]


def test_a_compute_resource_takes_on_a_profile(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("from-the-pod\n")
    caller = login({"IBMCLOUD_CR_TOKEN_FILE": str(token)}, "Profile-1")
    assert caller == Login(
        {
            "grant_type": "urn:ibm:params:oauth:grant-type:cr-token",
            "cr_token": "from-the-pod",
            "profile_id": "Profile-1",
        }
    )


def test_the_first_variable_wins() -> None:
    caller = login({"IBMCLOUD_API_KEY": "second", "IC_API_KEY": "first"})
    assert caller.form["apikey"] == "first"


@pytest.mark.parametrize("environment", [{}, {"IBMCLOUD_CR_TOKEN_FILE": "/token"}])
def test_without_a_credential_the_line_to_get_one(environment: dict[str, str]) -> None:
    with pytest.raises(MissingError, match="IC_API_KEY") as caught:
        login(environment)
    assert caught.value.exit_code == 3


@pytest.mark.parametrize(
    ("kind", "answer", "reason"),
    [
        (
            "apikey",
            httpx.Response(400, json={"errorMessage": "Provided API key not found"}),
            "IAM refused (400): Provided API key not found",
        ),
        (
            "sync",
            httpx.Response(404, text="no"),
            "cluster demo refused (404): Not Found",
        ),
        ("refresh_token", httpx.Response(200, json={}), "no delegated_refresh_token"),
        (
            "delegated-refresh-token",
            httpx.Response(200, text="<html>"),
            "did not answer with JSON",
        ),
    ],
)
def test_refusals_are_told_without_what_was_sent(
    kind: str, answer: httpx.Response, reason: str
) -> None:
    iam = Iam(**{kind: answer})
    with iam.client() as client, pytest.raises(TokenError) as caught:
        credential("demo", login({"IC_API_KEY": "key"}), client)
    assert reason in str(caught.value)
    assert "key'" not in str(caught.value)


def test_an_endpoint_that_cannot_be_reached() -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("no route", request=request)

    client = httpx.Client(transport=httpx.MockTransport(refuse))
    with client, pytest.raises(TokenError, match="IAM cannot be reached: no route"):
        credential("demo", login({"IC_API_KEY": "key"}), client)


def test_the_command_prints_a_credential_or_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    iam = Iam()
    monkeypatch.setenv("IC_API_KEY", "key")
    prepared = iam.client()
    monkeypatch.setattr(kube_token.httpx, "Client", lambda timeout: prepared)
    assert kube_token.main(["--cluster", "demo"]) == 0
    assert json.loads(capsys.readouterr().out)["status"]["token"] == "identity"
    monkeypatch.delenv("IC_API_KEY")
    monkeypatch.delenv("IBMCLOUD_API_KEY", raising=False)
    assert kube_token.main(["--cluster", "demo"]) == 3
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("runfleet: no credential for IBM Cloud")
