"""What checks look at: a resource, a stack, a fleet file.

Views are made once per evaluation. A stack view indexes its resources by type, so
that a rule touches only the resources it is about, and answers the questions that
several rules ask, such as which resource another one points at.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Protocol, TypeVar, cast

from runfleet.spec.findings import Finding, Waivers
from runfleet.spec.fleet import Fleet
from runfleet.spec.source import Source
from runfleet_policies import values

T = TypeVar("T")


class ResourceLike(Protocol):
    """A resource as a record or a policy pack has it.

    Beside these members, ``id``, ``provider``, ``external`` and
    ``property_dependencies`` are used where the object has them.
    """

    @property
    def urn(self) -> str:
        """Pulumi's unique name."""
        ...

    @property
    def type(self) -> str:
        """Type token."""
        ...

    @property
    def name(self) -> str:
        """Logical name."""
        ...

    @property
    def inputs(self) -> Mapping[str, Any]:
        """Input properties in wire names."""
        ...

    @property
    def outputs(self) -> Mapping[str, Any]:
        """Output properties in wire names."""
        ...

    @property
    def parent(self) -> str:
        """URN of the parent."""
        ...


@dataclass(frozen=True)
class ResourceView:
    """One resource, with readers that refuse unknown values.

    Attributes:
        urn: Pulumi's unique name.
        type: Type token, such as ``aws:ec2/vpc:Vpc``.
        name: Logical name.
        inputs: Input properties in wire names.
        id: Physical id; empty when not known.
        arn: The ARN that AWS gave or a rehearsal derived; empty when not known.
        provider: Inputs of the provider that manages it.
        points_at: URNs that each property depends on.
    """

    urn: str
    type: str
    name: str
    inputs: Mapping[str, Any]
    id: str = ""
    arn: str = ""
    provider: Mapping[str, Any] = field(default_factory=dict[str, Any])
    points_at: Mapping[str, Sequence[str]] = field(
        default_factory=dict[str, Sequence[str]]
    )

    def get(self, *path: str | int, default: Any = None) -> Any:
        """Return the input at a path; see :func:`runfleet_policies.values.get`."""
        return values.get(self.inputs, *path, default=default)

    def text(self, *path: str | int, default: str = "") -> str:
        """Return the input text at a path."""
        return values.text(self.inputs, *path, default=default)

    def truth(self, *path: str | int, default: bool | None = None) -> bool | None:
        """Return the input truth value at a path."""
        return values.truth(self.inputs, *path, default=default)

    def number(self, *path: str | int) -> float | None:
        """Return the input number at a path."""
        return values.number(self.inputs, *path)

    def items(self, *path: str | int) -> list[Any]:
        """Return the input list at a path."""
        return values.items(self.inputs, *path)

    def texts(self, *path: str | int) -> list[str]:
        """Return the input texts at a path."""
        return values.texts(self.inputs, *path)

    def mapping(self, *path: str | int) -> Mapping[str, Any]:
        """Return the input mapping at a path."""
        return values.mapping(self.inputs, *path)

    @property
    def namespace(self) -> str:
        """Kubernetes namespace; ``default`` when none is written."""
        return self.text("metadata", "namespace", default="default")

    @property
    def object_name(self) -> str:
        """Kubernetes name; the logical name when none is written."""
        return self.text("metadata", "name", default=self.name)


class StackView:
    """All resources of a stack, indexed by type and by URN."""

    def __init__(self, resources: Iterable[ResourceLike], stack: str = "") -> None:
        """Index the resources.

        Args:
            resources: Resources of a record or of a policy pack.
            stack: Name of the stack.
        """
        self.stack = stack
        self._by_type: dict[str, list[ResourceView]] = {}
        self._by_urn: dict[str, ResourceView] = {}
        self._matches: dict[str, list[ResourceView]] = {}
        self._names: dict[str, dict[str, ResourceView]] = {}
        self._memo: dict[str, Any] = {}
        providers: dict[str, Mapping[str, Any]] = {}
        for resource in resources:
            if resource.type.startswith("pulumi:providers:"):
                providers[resource.urn] = resource.inputs
            if getattr(resource, "external", False):
                continue
            reference = str(getattr(resource, "provider", "") or "")
            view = ResourceView(
                urn=resource.urn,
                type=resource.type,
                name=resource.name,
                inputs=resource.inputs,
                id=str(getattr(resource, "id", "") or ""),
                arn=str(resource.outputs.get("arn") or ""),
                provider=providers.get(reference.rpartition("::")[0], {}),
                points_at=getattr(resource, "property_dependencies", None) or {},
            )
            self._by_type.setdefault(view.type, []).append(view)
            self._by_urn[view.urn] = view

    def __len__(self) -> int:
        """Return how many resources the stack has."""
        return len(self._by_urn)

    def by_urn(self, urn: str) -> ResourceView | None:
        """Return the resource of a URN."""
        return self._by_urn.get(urn)

    def of(self, *patterns: str) -> Iterator[ResourceView]:
        """Yield the resources whose type is, or matches, one of the patterns."""
        for pattern in patterns:
            found = self._matches.get(pattern)
            if found is None:
                found = self._matching(pattern)
                self._matches[pattern] = found
            yield from found

    def pointed_at(
        self, resource: ResourceView, prop: str, *types: str
    ) -> ResourceView | None:
        """Return the resource of one of the types that a property refers to.

        The program's own dependencies decide; where they name none or several,
        the value is compared with the resources' ids, ARNs and names.

        Args:
            resource: The resource that refers.
            prop: Its property, at the top of the inputs.
            types: Types that the property may refer to, without patterns.

        Raises:
            CannotTell: The value is unknown and nothing says what it refers to.
        """
        linked = [
            found
            for urn in resource.points_at.get(prop, ())
            if (found := self._by_urn.get(urn)) is not None and found.type in types
        ]
        if len(linked) == 1:
            return linked[0]
        value = resource.get(prop)
        if not isinstance(value, str):
            return None
        return self.named(value, *types)

    def memo(self, key: str, make: Callable[[StackView], T]) -> T:
        """Return what ``make`` gives for this stack, made once."""
        if key not in self._memo:
            self._memo[key] = make(self)
        return cast("T", self._memo[key])

    def named(self, value: str, *types: str) -> ResourceView | None:
        """Return the resource of one of the types with an id, ARN or name."""
        for kind in types:
            names = self._names.get(kind)
            if names is None:
                names = {
                    key: found
                    for found in reversed(self._by_type.get(kind, []))
                    for key in (found.inputs.get("name"), found.arn, found.id)
                    if isinstance(key, str) and key and key not in values.UNKNOWNS
                }
                self._names[kind] = names
            if value in names:
                return names[value]
        return None

    def _matching(self, pattern: str) -> list[ResourceView]:
        if "*" not in pattern:
            return self._by_type.get(pattern, [])
        return [
            view
            for kind, views in self._by_type.items()
            if fnmatchcase(kind, pattern)
            for view in views
        ]


@dataclass(frozen=True)
class FleetView:
    """A fleet and the file that it stands in."""

    fleet: Fleet
    source: Source


@dataclass(frozen=True)
class WaiverView:
    """Waivers, and what they were applied to.

    Attributes:
        waivers: The waivers, in file order.
        findings: What the rules found.
        stacks: Names of the stacks that were judged; empty for the fleet file.
        judged: Ids of the rules that were applied.
    """

    waivers: Waivers
    findings: Sequence[Finding]
    stacks: Collection[str]
    judged: Collection[str]
