"""Read the current value of pins from their sources, where the network allows.

Each pin says in ``resolve`` how it is read. A source that does not answer leaves the
pin as it is and is reported; the lock is written in one step at the end, and only
when something changed.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any, cast

import httpx
from ruamel.yaml import YAML

from runfleet.catalogue.pins import Pin, Pins, load_pins

GITHUB_API = "https://api.github.com"


class _SourceError(Exception):
    """A source did not give a value; the message says why."""


@dataclass(frozen=True)
class PinChange:
    """What happened to one pin.

    Attributes:
        name: The pin.
        before: Its value before.
        after: Its value now; the same as before when the source failed.
        failed: Why the source gave no value; empty when it did.
    """

    name: str
    before: str
    after: str
    failed: str = ""

    def __str__(self) -> str:
        """Say what happened in one line."""
        if self.failed:
            return f"{self.name}: stays {self.before}: {self.failed}"
        return f"{self.name}: {self.before} -> {self.after}"


@dataclass
class Sources:
    """Where current values come from; tests give their own.

    Attributes:
        http: Client for the GitHub API.
        eks: Client with boto3's EKS interface, made on first use.
        ssm: Client with boto3's SSM interface, made on first use.
    """

    http: httpx.Client = field(
        default_factory=lambda: httpx.Client(timeout=20, follow_redirects=True)
    )
    eks: Callable[[], Any] = field(default=lambda: _boto3("eks"))
    ssm: Callable[[], Any] = field(default=lambda: _boto3("ssm"))


def refresh_pins(
    path: str | FilePath, sources: Sources | None = None, today: dt.date | None = None
) -> list[PinChange]:
    """Read all pins that say how, and write what changed to a lock.

    Args:
        path: The ``pins.lock`` to write; it overrides the package's own by name.
        sources: Where current values come from; default: the real ones.
        today: Date to write beside new values; default: today.

    Returns:
        What changed and what failed, by name; nothing for pins that are current.
    """
    used = sources or Sources()
    day = today or dt.date.today()
    pins = load_pins(path)
    changes: list[PinChange] = []
    changed: dict[str, Pin] = {}
    for name, pin in sorted(pins.pins.items()):
        if pin.resolve is None:
            continue
        try:
            value = _current(pin.resolve, used, pins)
        except _SourceError as error:
            changes.append(PinChange(name, pin.value, pin.value, str(error)))
            continue
        if value != pin.value:
            changes.append(PinChange(name, pin.value, value))
            changed[name] = pin.model_copy(update={"value": value, "read": day})
    if changed:
        _write(FilePath(path), changed)
    return changes


def _current(how: str, sources: Sources, pins: Pins) -> str:
    kind, _, what = how.partition(":")
    resolvers: Mapping[str, Callable[[str, Sources, Pins], str]] = {
        "github-release": _github_release,
        "github-tag": _github_tag,
        "eks-addon": _eks_addon,
        "eks-image": _eks_image,
        "eks-node-release": _eks_node_release,
    }
    if kind not in resolvers:
        raise _SourceError(f"no way to read {how!r}; known: {', '.join(resolvers)}")
    return resolvers[kind](what, sources, pins)


def _github_release(repository: str, sources: Sources, pins: Pins) -> str:
    data = _get(sources, f"{GITHUB_API}/repos/{repository}/releases/latest")
    return str(data["tag_name"]).removeprefix("v").rsplit("-", 1)[-1]


def _github_tag(what: str, sources: Sources, pins: Pins) -> str:
    repository, _, tag = what.partition("@")
    data = _get(sources, f"{GITHUB_API}/repos/{repository}/commits/{tag}")
    return str(data["sha"])


def _get(sources: Sources, url: str) -> dict[str, Any]:
    token = os.environ.get("GITHUB_TOKEN")
    headers = {"X-GitHub-Api-Version": "2022-11-28"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    try:
        answer = sources.http.get(url, headers=headers)
        answer.raise_for_status()
        return cast("dict[str, Any]", answer.json())
    except (httpx.HTTPError, ValueError) as error:
        raise _SourceError(f"{url} gave no answer ({error})") from None


def _eks_addon(name: str, sources: Sources, pins: Pins) -> str:
    version = pins.value("eks-version")
    answer = _aws(
        lambda: sources.eks().describe_addon_versions(
            addonName=name, kubernetesVersion=version
        )
    )
    for addon in answer.get("addons", []):
        for candidate in addon.get("addonVersions", []):
            for fit in candidate.get("compatibilities", []):
                if fit.get("defaultVersion"):
                    return str(candidate["addonVersion"])
    raise _SourceError(f"EKS names no default version of {name} for {version}")


def _eks_image(family: str, sources: Sources, pins: Pins) -> str:
    release = _eks_node_release(family, sources, pins)
    return f"{family}@v{release.rsplit('-', 1)[-1]}"


def _eks_node_release(family: str, sources: Sources, pins: Pins) -> str:
    parameter = (
        f"/aws/service/eks/optimized-ami/{pins.value('eks-version')}/"
        "amazon-linux-2023/x86_64/standard/recommended/release_version"
    )
    answer = _aws(lambda: sources.ssm().get_parameter(Name=parameter))
    return str(answer["Parameter"]["Value"])


def _aws(call: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return call()
    except Exception as error:
        # botocore raises classes that it makes at run time; all mean "no answer".
        raise _SourceError(f"AWS gave no answer ({error})") from None


def _boto3(service: str) -> Any:
    try:
        import boto3  # type: ignore[reportMissingTypeStubs]
    except ModuleNotFoundError:
        raise _SourceError("boto3 is missing: pip install 'runfleet[aws]'") from None
    return boto3.client(service)  # type: ignore[reportUnknownMemberType]


def _write(path: FilePath, changed: Mapping[str, Pin]) -> None:
    yaml = YAML()
    data: Any = {"version": 1, "pins": {}}
    if path.exists():
        data = yaml.load(path.read_text(encoding="utf-8"))  # type: ignore[reportUnknownMemberType]
    for name, pin in changed.items():
        data["pins"][name] = pin.model_dump(mode="json", exclude_none=True)
    temporary = path.with_name(f".{path.name}.tmp")
    with temporary.open("w", encoding="utf-8") as stream:
        yaml.dump(data, stream)  # type: ignore[reportUnknownMemberType]
    temporary.replace(path)
