"""Earlier URNs of a resource, as the engine works them out.

A resource is known under the aliases it names, and under the URNs it had below the
earlier URNs of its parent (github.com/pulumi/pulumi,
``pkg/resource/deploy/step_generator.go``, ``generateAliases``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

MakeUrn = Callable[[str, str, str], str]
"""Makes a URN from the parent's URN, the type and the name."""


@dataclass(frozen=True)
class Parent:
    """What the aliases of a child need to know of its parent.

    Attributes:
        name: The parent's logical name.
        aliases: The parent's own earlier URNs.
    """

    name: str
    aliases: Sequence[str]


def aliases_of(request: Any, parent: Parent | None, make_urn: MakeUrn) -> Iterator[str]:
    """Yield the earlier URNs of a resource, each once, the own ones first.

    Args:
        request: The registration (``RegisterResourceRequest``).
        parent: The parent, or None when that is the stack.
        make_urn: Makes URNs of the current stack and project.
    """
    seen = {make_urn(request.parent, request.type, request.name)}
    own = [_alias(found, request, make_urn) for found in request.aliases]
    earlier: list[str] = [*request.aliasURNs, *(alias.urn for alias in own)]
    if parent is not None:
        kept = [(request.name, request.type)]
        kept += [(alias.name, alias.type) for alias in own if alias.same_parent]
        for found in parent.aliases:
            earlier += [_child_of(found, parent.name, *known) for known in kept]
    for found in earlier:
        if found not in seen:
            seen.add(found)
            yield found


@dataclass(frozen=True)
class _Alias:
    urn: str
    name: str
    type: str
    same_parent: bool


def _alias(alias: Any, request: Any, make_urn: MakeUrn) -> _Alias:
    if alias.HasField("urn"):
        return _Alias(alias.urn, "", "", False)
    spec = alias.spec
    name, type_ = spec.name or request.name, spec.type or request.type
    same = not spec.parentUrn and not spec.noParent
    urn = make_urn(request.parent if same else spec.parentUrn, type_, name)
    stack, project, chain, _ = urn.removeprefix("urn:pulumi:").split("::", 3)
    stack, project = spec.stack or stack, spec.project or project
    return _Alias(f"urn:pulumi:{stack}::{project}::{chain}::{name}", name, type_, same)


def _child_of(alias: str, parent_name: str, name: str, type_: str) -> str:
    """Return a child's URN under an earlier URN of its parent.

    A child whose name starts with the parent's is renamed with it, as the engine
    does.
    """
    prefix, _, alias_name = alias.rpartition("::")
    if name.startswith(parent_name):
        name = alias_name + name[len(parent_name) :]
    return f"{prefix}${type_}::{name}"
