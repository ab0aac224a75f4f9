"""The difference of two records: what a change adds, removes and alters.

The comparison is what a reviewer reads before a deployment, so it follows the
engine's own rule for identity: two resources are the same when their URNs are
equal, or when the new one names the old URN among its aliases. Everything else
is plain data. Outputs are not compared, because they are derived from URN and
inputs and would only repeat what the inputs say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from runfleet.rehearsal.record import Record, ResourceRecord
from runfleet.rehearsal.values import is_secret

ABSENT = "<absent>"
"""Stands for a value that one of the two records does not have."""

_OPTIONS = (
    "provider",
    "protect",
    "retain_on_delete",
    "delete_before_replace",
    "ignore_changes",
    "replace_on_changes",
    "replacement_trigger",
    "additional_secret_outputs",
    "import_id",
    "custom_timeouts",
    "deleted_with",
    "version",
    "dependencies",
)


@dataclass(frozen=True)
class Change:
    """One property that differs.

    Attributes:
        urn: URN in the new record (empty for a stack output).
        path: Property path: ``inputs.tags.ci_env``, ``options.protect``,
            ``outputs.url`` for a stack output, or ``urn`` for a renamed resource.
        before: The old value, or :data:`ABSENT`.
        after: The new value, or :data:`ABSENT`.
    """

    urn: str
    path: str
    before: Any
    after: Any


@dataclass(frozen=True)
class Comparison:
    """All differences from an old record to a new one.

    Attributes:
        added: Resources that only the new record has, in its order.
        removed: Resources that only the old record has, in its order.
        changed: Differing properties, in the new record's order.
    """

    added: tuple[ResourceRecord, ...]
    removed: tuple[ResourceRecord, ...]
    changed: tuple[Change, ...]

    @property
    def empty(self) -> bool:
        """Whether the two records describe the same deployment."""
        return not (self.added or self.removed or self.changed)

    def changed_urns(self) -> tuple[str, ...]:
        """Return the URNs of changed resources, each once, in order."""
        return tuple(dict.fromkeys(change.urn for change in self.changed if change.urn))


def compare(old: Record, new: Record) -> Comparison:
    """Compare two records of the same stack.

    Args:
        old: The record before the change.
        new: The record after it.

    Returns:
        What was added, removed and changed. Secrets are masked in records, so a
        changed secret shows no difference.
    """
    before = {resource.urn: resource for resource in old.resources}
    pairs: list[tuple[ResourceRecord, ResourceRecord]] = []
    added: list[ResourceRecord] = []
    current = {resource.urn for resource in new.resources}
    renamed: dict[str, str] = {}
    for resource in new.resources:
        match = _match(resource, before, current, renamed)
        if match is None:
            added.append(resource)
            continue
        if match.urn != resource.urn:
            renamed[match.urn] = resource.urn
        pairs.append((match, resource))
    matched = {match.urn for match, _ in pairs}
    removed = tuple(found for found in old.resources if found.urn not in matched)
    changed: list[Change] = []
    for match, resource in pairs:
        changed.extend(_resource_changes(match, resource, renamed))
    changed.extend(
        Change("", path, was, now)
        for path, was, now in _differences(old.outputs, new.outputs, "outputs")
    )
    return Comparison(tuple(added), removed, tuple(changed))


def _match(
    resource: ResourceRecord,
    before: Mapping[str, ResourceRecord],
    current: set[str],
    taken: Mapping[str, str],
) -> ResourceRecord | None:
    if resource.urn in before and resource.urn not in taken:
        return before[resource.urn]
    for alias in resource.aliases:
        if alias in before and alias not in current and alias not in taken:
            return before[alias]
    return None


def _resource_changes(
    old: ResourceRecord, new: ResourceRecord, renamed: Mapping[str, str]
) -> Iterator[Change]:
    if old.urn != new.urn:
        yield Change(new.urn, "urn", old.urn, new.urn)
    for path, was, now in _differences(old.inputs, new.inputs, "inputs"):
        yield Change(new.urn, path, was, now)
    for option in _OPTIONS:
        was = _follow(getattr(old, option), renamed)
        now = getattr(new, option)
        if option == "dependencies":
            was, now = tuple(sorted(was)), tuple(sorted(now))
        if was != now:
            yield Change(new.urn, f"options.{option}", getattr(old, option), now)
    if old.external != new.external:
        yield Change(new.urn, "options.external", old.external, new.external)


def _follow(value: Any, renamed: Mapping[str, str]) -> Any:
    """Give old references to renamed resources their new names."""
    if isinstance(value, tuple):
        return tuple(_follow(item, renamed) for item in cast("tuple[Any, ...]", value))
    if isinstance(value, str):
        if value in renamed:
            return renamed[value]
        urn, separator, id_ = value.rpartition("::")
        if separator and urn in renamed:
            return f"{renamed[urn]}::{id_}"
    return value


def _differences(old: Any, new: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if old == new and type(old) is type(new):
        return
    if is_secret(old) or is_secret(new):
        if old != new:
            yield path, old, new
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        was = cast("Mapping[str, Any]", old)
        now = cast("Mapping[str, Any]", new)
        for key in sorted(was.keys() | now.keys()):
            yield from _differences(
                was.get(key, ABSENT), now.get(key, ABSENT), f"{path}.{key}"
            )
        return
    if isinstance(old, list) and isinstance(new, list):
        left, right = cast("list[Any]", old), cast("list[Any]", new)
        for index in range(max(len(left), len(right))):
            yield from _differences(
                left[index] if index < len(left) else ABSENT,
                right[index] if index < len(right) else ABSENT,
                f"{path}[{index}]",
            )
        return
    if old != new or isinstance(old, bool) != isinstance(new, bool):
        yield path, old, new
