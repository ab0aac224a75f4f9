"""The record: every resource of one stack, as a rehearsal saw it, in one file.

A record is plain data. It can be read, compared and judged without Pulumi and
without a cloud SDK, which is why this module imports neither. The same program
with the same settings writes the same bytes: keys are sorted, resources stand in
the order in which the program declares them, and nothing in the file depends on
time, machine or process.

The file is JSON with one resource per line, so that a line-based difference of
two records already says which resources changed. Members of a resource that have
their default value are left out.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from runfleet.errors import InputError, Problem
from runfleet.rehearsal.values import unknown_paths

FORMAT = "runfleet-record/1"
"""Format of the record file: a name, a slash and a whole number."""

STACK_TYPE = "pulumi:pulumi:Stack"
"""Type of the root resource that every stack has."""


def _mapping() -> dict[str, Any]:
    return {}


@dataclass(frozen=True)
class ResourceRecord:
    """One resource with everything that the engine would have been told.

    Attributes:
        urn: Pulumi's unique name, as the engine makes it.
        type: Type token, such as ``aws:s3/bucket:Bucket``.
        name: Logical name in the program.
        parent: URN of the parent, or empty for the stack itself.
        custom: True for a resource of a provider, False for a component.
        external: True when the program reads the resource and does not manage it.
        provider: Reference ``<urn>::<id>`` of the provider resource, or empty.
        id: Derived id; empty for components.
        inputs: Input properties under their wire names, secrets masked.
        outputs: Output properties: the inputs, and what was derived.
        dependencies: URNs of all resources it depends on, sorted.
        property_dependencies: The same for each input property.
        protect: Whether the engine refuses to delete it.
        retain_on_delete: Whether the real thing survives its deletion here.
        delete_before_replace: Set only when the program says so.
        ignore_changes: Input paths whose changes are ignored.
        replace_on_changes: Paths whose change forces a replacement.
        replacement_trigger: A value whose change forces a replacement, or None.
        aliases: Earlier URNs, own and inherited.
        additional_secret_outputs: Outputs that are kept as secrets.
        import_id: Id of an existing thing that is taken over, or empty.
        custom_timeouts: Timeouts (``create``, ``update``, ``delete``, ``read``).
        deleted_with: URN of the resource whose deletion deletes this too.
        version: Version of the provider's plugin, or empty.
        package_ref: Reference of a parameterised package, or empty.
    """

    urn: str
    type: str
    name: str
    parent: str = ""
    custom: bool = True
    external: bool = False
    provider: str = ""
    id: str = ""
    inputs: Mapping[str, Any] = field(default_factory=_mapping)
    outputs: Mapping[str, Any] = field(default_factory=_mapping)
    dependencies: tuple[str, ...] = ()
    property_dependencies: Mapping[str, tuple[str, ...]] = field(
        default_factory=_mapping
    )
    protect: bool = False
    retain_on_delete: bool = False
    delete_before_replace: bool | None = None
    ignore_changes: tuple[str, ...] = ()
    replace_on_changes: tuple[str, ...] = ()
    replacement_trigger: Any = None
    aliases: tuple[str, ...] = ()
    additional_secret_outputs: tuple[str, ...] = ()
    import_id: str = ""
    custom_timeouts: Mapping[str, str] = field(default_factory=_mapping)
    deleted_with: str = ""
    version: str = ""
    package_ref: str = ""


@dataclass(frozen=True)
class Record:
    """What one rehearsal of one stack recorded.

    Attributes:
        project: Name of the Pulumi project.
        stack: Name of the stack.
        sources: Files the program was made from, with their SHA-256 digests.
        resources: All resources in the order of their declaration.
        outputs: Stack outputs, secrets masked.
        references: Names of the stacks whose outputs the program reads, sorted.
        invokes: Calls of provider functions: ``tok``, ``args`` and ``result``.
        pins: The stack output ``pins`` when it is a list of objects.
        unresolved_pins: The stack output ``unresolved_pins`` when it is a list.
        format: Always :data:`FORMAT`.
    """

    project: str
    stack: str
    sources: Mapping[str, str] = field(default_factory=_mapping)
    resources: tuple[ResourceRecord, ...] = ()
    outputs: Mapping[str, Any] = field(default_factory=_mapping)
    references: tuple[str, ...] = ()
    invokes: tuple[Mapping[str, Any], ...] = ()
    pins: tuple[Mapping[str, Any], ...] = ()
    unresolved_pins: tuple[Any, ...] = ()
    format: str = FORMAT

    @cached_property
    def _by_urn(self) -> dict[str, ResourceRecord]:
        return {resource.urn: resource for resource in self.resources}

    @cached_property
    def _children(self) -> dict[str, tuple[ResourceRecord, ...]]:
        children: dict[str, list[ResourceRecord]] = {}
        for resource in self.resources:
            children.setdefault(resource.parent, []).append(resource)
        return {parent: tuple(found) for parent, found in children.items()}

    def by_urn(self, urn: str) -> ResourceRecord:
        """Return the resource of a URN; raise KeyError when there is none."""
        return self._by_urn[urn]

    def by_type(self, type: str) -> tuple[ResourceRecord, ...]:
        """Return all resources of a type, in declaration order."""
        return tuple(found for found in self.resources if found.type == type)

    def children(self, urn: str) -> tuple[ResourceRecord, ...]:
        """Return the direct children of a resource, in declaration order."""
        return self._children.get(urn, ())

    def count_by_type(self) -> dict[str, int]:
        """Return the number of managed resources of each type, sorted by type.

        The stack itself and resources that are only read are not counted.
        """
        counts = Counter(
            found.type
            for found in self.resources
            if not found.external and found.type != STACK_TYPE
        )
        return dict(sorted(counts.items()))

    def unknowns(self) -> Iterator[tuple[str, str]]:
        """Yield (URN, path) of every input that depends on an underived output."""
        for resource in self.resources:
            for path in unknown_paths(resource.inputs):
                yield resource.urn, path


def write_record(record: Record, path: Path | str) -> None:
    """Write a record so that equal records give equal bytes, all or nothing.

    Args:
        record: The record.
        path: The file; its folder is made when it is missing. The old file stays
            until the new one is complete.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(
        dir=target.parent, prefix=f".{target.name}.", suffix=".tmp"
    )
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
            stream.writelines(_lines(record))
        Path(temporary).chmod(0o644)
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def dump_record(record: Record) -> str:
    """Return the text of the record's file."""
    return "".join(_lines(record))


def read_record(path: Path | str) -> Record:
    """Read a record.

    Args:
        path: The file.

    Returns:
        The record, equal to the one that was written.

    Raises:
        InputError: The file is missing, is no JSON, is no record, or has a format
            that this version does not know.
    """
    name = str(path)
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise _refuse(name, f"cannot read the record: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise _refuse(name, "the record is not UTF-8 text") from error
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise _refuse(name, f"not JSON: {error.msg}", line=error.lineno) from error
    return _Reader(name).record(data)


_SCALARS = ("format", "project", "stack")
_MAPPINGS = ("sources", "outputs")
_LISTS = ("references", "invokes", "pins", "unresolved_pins")


def _lines(record: Record) -> Iterator[str]:
    yield "{\n"
    for name in _SCALARS:
        yield f"{_json(name)}: {_json(getattr(record, name))},\n"
    for name in _MAPPINGS + _LISTS:
        yield f"{_json(name)}: {_json(getattr(record, name))},\n"
    yield '"resources": ['
    defaults = _defaults()
    for index, resource in enumerate(record.resources):
        yield ",\n" if index else "\n"
        members = {name: getattr(resource, name) for name in defaults}
        yield _json(
            {
                name: value
                for name, value in members.items()
                if value != defaults[name] or type(value) is not type(defaults[name])
            }
        )
    yield "\n]\n}\n"


def _defaults() -> dict[str, Any]:
    """Return the default of each member; a line leaves out members that have it."""
    blank = ResourceRecord(urn="", type="", name="")
    return {found.name: getattr(blank, found.name) for found in fields(ResourceRecord)}


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _refuse(file: str, message: str, path: str = "", line: int = 0) -> InputError:
    return InputError([Problem(file=file, line=line, path=path, message=message)])


_RESOURCE_TYPES: dict[str, tuple[type, ...]] = {
    "urn": (str,),
    "type": (str,),
    "name": (str,),
    "parent": (str,),
    "custom": (bool,),
    "external": (bool,),
    "provider": (str,),
    "id": (str,),
    "inputs": (dict,),
    "outputs": (dict,),
    "dependencies": (list,),
    "property_dependencies": (dict,),
    "protect": (bool,),
    "retain_on_delete": (bool,),
    "delete_before_replace": (bool, type(None)),
    "ignore_changes": (list,),
    "replace_on_changes": (list,),
    "replacement_trigger": (object,),
    "aliases": (list,),
    "additional_secret_outputs": (list,),
    "import_id": (str,),
    "custom_timeouts": (dict,),
    "deleted_with": (str,),
    "version": (str,),
    "package_ref": (str,),
}

_RECORD_TYPES: dict[str, tuple[type, ...]] = {
    "format": (str,),
    "project": (str,),
    "stack": (str,),
    "sources": (dict,),
    "outputs": (dict,),
    "references": (list,),
    "invokes": (list,),
    "pins": (list,),
    "unresolved_pins": (list,),
    "resources": (list,),
}


@dataclass(frozen=True)
class _Reader:
    """Turns JSON data into a record, or says where it is wrong."""

    file: str

    def record(self, data: Any) -> Record:
        if not isinstance(data, dict):
            raise _refuse(self.file, "a record is a JSON object")
        members = cast("dict[str, Any]", data)
        self._format(members.get("format"))
        self._check(members, _RECORD_TYPES, _RECORD_TYPES.keys(), "")
        resources: list[Any] = members.pop("resources")
        values: dict[str, Any] = {
            name: tuple(cast("list[Any]", value)) if isinstance(value, list) else value
            for name, value in members.items()
        }
        return Record(
            **values,
            resources=tuple(
                self._resource(found, f"resources[{index}]")
                for index, found in enumerate(resources)
            ),
        )

    def _format(self, found: Any) -> None:
        name, _, number = FORMAT.partition("/")
        if not isinstance(found, str) or not found.startswith(f"{name}/"):
            raise _refuse(self.file, f"not a record: format is not {FORMAT}", "format")
        if found != FORMAT:
            given = found.partition("/")[2]
            newer = given.isdigit() and int(given) > int(number)
            what = (
                f"the record has format {found}, newer than {FORMAT}, which this "
                "version of Runfleet reads: update Runfleet or rehearse again"
                if newer
                else f"the record has the unknown format {found}: rehearse again"
            )
            raise _refuse(self.file, what, "format")

    def _resource(self, data: Any, path: str) -> ResourceRecord:
        if not isinstance(data, dict):
            raise _refuse(self.file, "a resource is a JSON object", path)
        members = cast("dict[str, Any]", data)
        self._check(members, _RESOURCE_TYPES, ("urn", "type", "name"), path)
        values: dict[str, Any] = {
            name: tuple(cast("list[Any]", value))
            if isinstance(value, list) and name != "replacement_trigger"
            else value
            for name, value in members.items()
        }
        values["property_dependencies"] = {
            name: tuple(urns)
            for name, urns in members.get("property_dependencies", {}).items()
        }
        return ResourceRecord(**values)

    def _check(
        self,
        members: dict[str, Any],
        types: dict[str, tuple[type, ...]],
        required: Collection[str],
        path: str,
    ) -> None:
        problems: list[Problem] = []
        for name, allowed in types.items():
            where = f"{path}.{name}" if path else name
            if name not in members:
                if name not in required:
                    continue
                message = "missing"
            elif not isinstance(members[name], allowed):
                message = f"has the wrong type {type(members[name]).__name__}"
            else:
                continue
            problems.append(Problem(self.file, 0, where, message))
        for name in sorted(members.keys() - types.keys()):
            where = f"{path}.{name}" if path else name
            problems.append(Problem(self.file, 0, where, "unknown member"))
        if problems:
            raise InputError(problems)
