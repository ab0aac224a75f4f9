"""Apply a stack to an API server and read back what became of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from cluster.harness.client import Answer, Api, Object, Refused
from cluster.harness.recorded import DEFINITION, Recorded

Key = tuple[str, str, str, str]

WORKERS = 4
SETTLE_SECONDS = 60.0


@dataclass(frozen=True)
class Outcome:
    """What became of one object.

    Attributes:
        recorded: The object.
        answer: What the API server stored; `None` when it refused.
        refused: Why it refused, or `None`.
    """

    recorded: Recorded
    answer: Answer | None
    refused: Refused | None


def install(api: Api, definitions: Sequence[Object]) -> None:
    """Make kinds and wait until the API server serves them."""
    for definition in definitions:
        api.apply(definition)
    _await_kinds(api, definitions)


def apply_waves(api: Api, waves: Sequence[Sequence[Recorded]]) -> list[Outcome]:
    """Apply objects wave by wave; a refusal does not stop the others."""
    outcomes: list[Outcome] = []
    with ThreadPoolExecutor(WORKERS) as pool:
        for wave in waves:
            for version in {found.object["apiVersion"] for found in wave}:
                api.kinds_of(version)
            outcomes += pool.map(lambda one: _apply(api, one), wave)
            made = [one.object for one in wave if one.kind == DEFINITION]
            if made:
                _await_kinds(api, made)
    return outcomes


def settle(api: Api) -> None:
    """Wait until the controller manager has seen everything that it acts on."""
    until(lambda: all(map(_quota_counted, api.list("v1", "ResourceQuota"))), "quotas")
    until(
        lambda: all(
            policy.get("status", {}).get("observedGeneration")
            == policy["metadata"]["generation"]
            for policy in api.list(
                "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"
            )
        ),
        "the check of admission policies",
    )
    until(
        lambda: (
            {space["metadata"]["name"] for space in api.list("v1", "Namespace")}
            <= {
                account["metadata"]["namespace"]
                for account in api.list("v1", "ServiceAccount")
                if account["metadata"]["name"] == "default"
            }
        ),
        "the default accounts",
    )


def stored(api: Api, objects: Sequence[Recorded]) -> Mapping[Key, Object]:
    """Return what the API server holds now, for the kinds of some objects."""
    found: dict[Key, Object] = {}
    for version, kind in dict.fromkeys(one.key[:2] for one in objects):
        for item in api.list(version, kind):
            metadata = item["metadata"]
            space = metadata.get("namespace", "")
            found[(version, kind, space, metadata["name"])] = item
    return found


def until(true: Callable[[], bool], what: str) -> None:
    """Wait until something holds; fail when it does not within a minute."""
    pause = threading.Event()
    deadline = time.monotonic() + SETTLE_SECONDS
    while not true():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {SETTLE_SECONDS:.0f} s in vain for {what}")
        pause.wait(0.2)


def _apply(api: Api, recorded: Recorded) -> Outcome:
    try:
        return Outcome(recorded, api.apply(recorded.object), None)
    except Refused as refused:
        return Outcome(recorded, None, refused)


def _await_kinds(api: Api, definitions: Sequence[Object]) -> None:
    names = {definition["metadata"]["name"] for definition in definitions}
    until(lambda: names <= set(_established(api)), f"the kinds {sorted(names)}")
    versions = {
        f"{definition['spec']['group']}/{version['name']}"
        for definition in definitions
        for version in definition["spec"]["versions"]
    }
    kinds = {definition["spec"]["names"]["kind"] for definition in definitions}
    until(
        lambda: kinds <= {kind for v in versions for kind in api.kinds_of(v, new=True)},
        f"the addresses of {sorted(kinds)}",
    )


def _established(api: Api) -> list[str]:
    return [
        found["metadata"]["name"]
        for found in api.list("apiextensions.k8s.io/v1", DEFINITION)
        if any(
            condition["type"] == "Established" and condition["status"] == "True"
            for condition in found.get("status", {}).get("conditions") or []
        )
    ]


def _quota_counted(quota: Object) -> bool:
    status = quota.get("status", {})
    hard = quota["spec"].get("hard", {})
    return status.get("hard") == hard and status.get("used", {}).keys() == hard.keys()
