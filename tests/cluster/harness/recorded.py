"""What a stack puts on its cluster, taken from the stack's record.

A record keeps inputs under Pulumi's names. Three things differ from what the
provider sends to the API server, and are undone here as the provider does: schema
keywords are `x_kubernetes_*` instead of `x-kubernetes-*`
(pulumi/pulumi-kubernetes, `JSONSchemaProps`), secrets are marked, and annotations
`pulumi.com/*` are for the provider but stored all the same.

Helm releases are no objects of their own: controllers stay charts. So the kinds that
charts would bring come from `tests/data/crds`, and an object that waits for a release
waits for what the release itself waits for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from runfleet.rehearsal.record import Record, ResourceRecord
from runfleet.rehearsal.values import (
    SIGNATURE_KEY,
    UNKNOWN,
    has_secrets,
)

Object = dict[str, Any]

DEFINITIONS = Path(__file__).parents[2] / "data" / "crds"
"""Definitions of the kinds that charts bring."""

CHART = "kubernetes:helm.sh/v3:Release"
DEFINITION = "CustomResourceDefinition"


@dataclass(frozen=True)
class Recorded:
    """One Kubernetes object of a record.

    Attributes:
        name: Logical name of the resource.
        object: The object as the provider would send it.
    """

    name: str
    object: Object

    @property
    def kind(self) -> str:
        """The object's kind."""
        return str(self.object["kind"])

    @property
    def key(self) -> tuple[str, str, str, str]:
        """API version, kind, namespace and name."""
        metadata = self.object["metadata"]
        return (
            self.object["apiVersion"],
            self.kind,
            metadata.get("namespace", ""),
            metadata["name"],
        )


def waves(record: Record) -> list[list[Recorded]]:
    """Return a record's Kubernetes objects in the order of their dependencies.

    Each wave holds what needs only earlier waves, by the dependencies that the record
    states and nothing else: an order that is wrong here is wrong in `pulumi up`.
    """
    depths: dict[str, int] = {}

    def depth(urn: str) -> int:
        if urn not in depths:
            resource = record.by_urn(urn)
            before = [depth(other) for other in _waits_for(resource)]
            own = 1 if _is_object(resource) else 0
            depths[urn] = max(before, default=0) + own
        return depths[urn]

    found: dict[int, list[Recorded]] = {}
    for resource in record.resources:
        if _is_object(resource):
            one = Recorded(resource.name, object_of(resource))
            found.setdefault(depth(resource.urn), []).append(one)
    return [found[number] for number in sorted(found)]


def object_of(resource: ResourceRecord) -> Object:
    """Return the object that the provider would send for a resource.

    Raises:
        ValueError: Its inputs hold a secret or a value that is not known.
    """
    if has_secrets(dict(resource.inputs)):
        raise ValueError(f"{resource.name}: a secret is in a Kubernetes object")
    converted = _converted(dict(resource.inputs), resource.name)
    if not isinstance(converted, dict):
        raise TypeError(resource.name)
    return converted


def charts(record: Record) -> list[str]:
    """Return the names of a record's Helm releases, which are not applied."""
    return [found.name for found in record.by_type(CHART)]


def definitions(folder: Path = DEFINITIONS) -> list[Object]:
    """Return the definitions of a folder's YAML files."""
    return list(_documents(sorted(folder.glob("*.yaml"))))


def lost(wanted: Any, stored: Any, path: str = "") -> Iterator[str]:
    """Yield each path of an object that is not stored as it was wanted.

    Nothing is forgiven: another spelling of the same (`40000` for `40k`, a `false`
    that is left out) is a difference that each later apply would set again.
    """
    if isinstance(wanted, dict) and isinstance(stored, dict):
        for key, value in wanted.items():
            where = f"{path}.{key}" if path else key
            if key not in stored:
                yield f"{where}: {value!r} is not stored"
            else:
                yield from lost(value, stored[key], where)
    elif isinstance(wanted, list) and isinstance(stored, list):
        if len(wanted) != len(stored):
            yield f"{path}: {len(wanted)} items became {len(stored)}"
        else:
            for index, (one, other) in enumerate(zip(wanted, stored, strict=True)):
                yield from lost(one, other, f"{path}[{index}]")
    elif wanted != stored or type(wanted) is not type(stored):
        yield f"{path}: {wanted!r} became {stored!r}"


def _is_object(resource: ResourceRecord) -> bool:
    return (
        resource.type.startswith("kubernetes:")
        and resource.custom
        and not resource.external
        and resource.type != CHART
    )


def _waits_for(resource: ResourceRecord) -> list[str]:
    """Return what a resource waits for: its dependencies and its provider."""
    provider = resource.provider.rpartition("::")[0]
    return [*resource.dependencies, *([provider] if provider else [])]


def _converted(value: Any, where: str) -> Any:
    if isinstance(value, dict):
        if SIGNATURE_KEY in value:
            raise ValueError(f"{where}: not plain data")
        return {
            _keyword(key): _converted(item, f"{where}.{key}")
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_converted(item, f"{where}[]") for item in value]
    if isinstance(value, str) and UNKNOWN in value:
        raise ValueError(f"{where}: the value is not known in a rehearsal")
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _keyword(key: str) -> str:
    prefix = "x_kubernetes_"
    return key.replace("_", "-") if key.startswith(prefix) else key


def _documents(files: Sequence[Path]) -> Iterator[Object]:
    yaml = YAML(typ="safe", pure=True)
    for file in files:
        yield from yaml.load_all(file.read_text(encoding="utf-8"))
