"""Build resources with the real SDKs and keep what they would send to the engine.

The SDK's own mock monitor takes the registrations; their wire form is kept whole,
so that the property names in examples are those of the SDKs and a rule that looks
for a property that does not exist fails its example.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from google.protobuf import json_format
from pulumi.runtime import mocks, set_mocks
from pulumi.runtime.stack import run_pulumi_func
from pulumi.runtime.sync_await import _sync_await

from runfleet.spec.labels import KEYS

TODAY = dt.date(2026, 6, 1)
"""The day on which examples are judged."""

ACCOUNT = "123456789012"
LABELS = dict.fromkeys(KEYS, "shared")


@dataclass(frozen=True)
class Built:
    """A resource as the SDK registered it."""

    urn: str
    type: str
    name: str
    inputs: Mapping[str, Any]
    id: str
    outputs: Mapping[str, Any]
    parent: str = ""
    provider: str = ""
    property_dependencies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Example:
    """Resources, or a fleet file, that keep a rule or break it.

    Attributes:
        rule: Id of the rule.
        name: What the example shows.
        build: Program that makes the resources; or the text of a fleet file.
        breaks: Parts of the reasons, one for each finding; none when it passes.
        parameters: Parameters of the rule.
    """

    rule: str
    name: str
    build: Callable[[], object] | str
    breaks: tuple[str, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)


def build(program: Callable[[], object]) -> list[Built]:
    """Run a program under the mock monitor and return its resources in order."""
    found: list[Built] = []

    class Answers(mocks.Mocks):
        def new_resource(
            self, args: mocks.MockResourceArgs
        ) -> tuple[str, dict[Any, Any]]:
            kind = args.typ.rpartition("/")[2].partition(":")[0]
            service = args.typ.partition(":")[2].partition("/")[0]
            named = args.inputs.get("name") or args.name
            arn = f"arn:aws:{service}::{ACCOUNT}:{kind}/{named}"
            derived = {"arn": arn}
            if args.typ == "gcp:serviceaccount/account:Account":
                derived["email"] = f"{args.name}@fleet.iam.gserviceaccount.com"
            if args.typ.endswith(":UserAssignedIdentity"):
                derived |= {"name": args.name, "principalId": f"{args.name}-principal"}
            return f"{args.name}-id", {**args.inputs, **derived}

        def call(self, args: mocks.MockCallArgs) -> Any:
            return {}

    class Recorder(mocks.MockMonitor):
        def RegisterResource(self, request: Any) -> Any:
            inputs = json_format.MessageToDict(request.object)
            answer = super().RegisterResource(request)
            if request.type != "pulumi:pulumi:Stack":
                found.append(
                    Built(
                        urn=answer.urn,
                        type=request.type,
                        name=request.name,
                        inputs=_whole(inputs),
                        id=answer.id,
                        outputs=json_format.MessageToDict(answer.object),
                        parent=request.parent,
                        provider=request.provider,
                        property_dependencies={
                            name: tuple(listed.urns)
                            for name, listed in request.propertyDependencies.items()
                        },
                    )
                )
            return answer

    answers = Answers()
    set_mocks(
        answers, project="runfleet", stack="aws", preview=False,
        monitor=Recorder(answers),
    )  # fmt: skip

    async def run() -> None:
        program()

    _sync_await(run_pulumi_func(run))
    return found


def _whole(value: Any) -> Any:
    """Turn the wire's numbers into whole ones, as a record has them."""
    if isinstance(value, dict):
        return {key: _whole(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def document(*statements: Mapping[str, Any]) -> str:
    """Return a policy document."""
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


def allow(action: Any, resource: Any = "*", **more: Any) -> dict[str, Any]:
    """Return an Allow statement."""
    return {"Effect": "Allow", "Action": action, "Resource": resource, **more}


def service_trust(service: str) -> str:
    """Return a trust policy for an AWS service."""
    return document(
        {
            "Effect": "Allow",
            "Action": "sts:AssumeRole",
            "Principal": {"Service": service},
        }
    )


def github_trust(
    subject: Any, operator: str = "StringEquals", audience: Any = "sts.amazonaws.com"
) -> dict[str, Any]:
    """Return a statement that trusts GitHub's tokens."""
    issuer = "token.actions.githubusercontent.com"
    condition: dict[str, dict[str, Any]] = {}
    if audience is not None:
        condition.setdefault("StringEquals", {})[f"{issuer}:aud"] = audience
    if subject is not None:
        condition.setdefault(operator, {})[f"{issuer}:sub"] = subject
    return {
        "Effect": "Allow",
        "Action": "sts:AssumeRoleWithWebIdentity",
        "Principal": {"Federated": f"arn:aws:iam::{ACCOUNT}:oidc-provider/{issuer}"},
        "Condition": condition,
    }
