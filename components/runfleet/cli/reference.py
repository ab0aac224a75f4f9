"""Pages of the documentation that are made from the code.

A page that repeats what the models say would soon say something else, so the
reference of the fleet file is rendered from the models themselves: every field with
its type in words, its default, its unit, the values it may have and its description.
A test compares the committed page with what this module renders.
"""

from __future__ import annotations

import datetime as dt
import types
import typing
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, cast

import annotated_types
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from runfleet.spec.base import (
    CellName,
    LabelKey,
    LabelValue,
    PoolName,
    Repository,
    RunnerLabel,
    Syntax,
)
from runfleet.spec.cells import (
    ApiAccess,
    BaseNodes,
    Cell,
    ClusterName,
    NetworkSettings,
    RunnerPods,
)
from runfleet.spec.classes import Accelerator, Hardware, RunnerClass, Scale, Slo
from runfleet.spec.fleet import Fleet
from runfleet.spec.github import AppSecret, FederatedRepository, GitHub, RunnerGroup
from runfleet.spec.people import Contact, Owner
from runfleet.spec.pools import Pool, PoolMachine
from runfleet.spec.roles import (
    ROLE_TRIGGERS,
    STORE_SCOPES,
    Role,
    Scope,
    StoreKind,
    Trigger,
    Trust,
    matrix,
)
from runfleet.spec.stores import Budget, Central, Reservation, Store, Tenant
from runfleet.spec.units import Duration, Money, Percent, Range, Size

FLEET_PAGE = "docs/reference/fleet-file.md"
"""Where the committed output of :func:`fleet_reference` is."""


@dataclass(frozen=True)
class Section:
    """One chapter of the page.

    Attributes:
        title: Heading.
        models: Each model with the place where it stands in a fleet file; empty for
            the whole file.
    """

    title: str
    models: tuple[tuple[type[BaseModel], str], ...]


_SECTIONS = (
    Section("The fleet", ((Fleet, ""),)),
    Section("People", ((Owner, "owner"), (Contact, "contact"))),
    Section(
        "GitHub",
        (
            (GitHub, "github"),
            (AppSecret, "github.apps.<name>"),
            (RunnerGroup, "github.runner_groups.<name>"),
            (FederatedRepository, "github.federation[]"),
        ),
    ),
    Section(
        "Cells",
        (
            (Cell, "cells.<name>"),
            (NetworkSettings, "cells.<name>.network"),
            (ApiAccess, "cells.<name>.api_access"),
            (BaseNodes, "cells.<name>.base_nodes"),
            (RunnerPods, "cells.<name>.runner_pods"),
        ),
    ),
    Section(
        "Runner classes",
        (
            (RunnerClass, "runner_classes.<name>"),
            (Hardware, "runner_classes.<name>.hardware"),
            (Accelerator, "runner_classes.<name>.hardware.accelerator"),
            (Scale, "runner_classes.<name>.scale"),
            (Slo, "runner_classes.<name>.slo"),
        ),
    ),
    Section(
        "Pools", ((Pool, "pools.<name>"), (PoolMachine, "pools.<name>.machines[]"))
    ),
    Section("Stores", ((Central, "central"), (Store, "stores.<kind>"))),
    Section(
        "Reservations, tenants and budgets",
        (
            (Reservation, "reservations.<name>"),
            (Tenant, "tenants.<name>"),
            (Budget, "budgets.<funder>"),
        ),
    ),
)

_UNITS: tuple[tuple[str, type[Any], str, str], ...] = (
    ("size", Size, "64GiB", "MiB, GiB, TiB, MB, GB, TB (also Mi, Gi, Ti)"),
    ("duration", Duration, "1h30m", "s, m, h, d, w, one after the other"),
    ("range of counts", Range, "0..150", "low..high; without high it is unbounded"),
    ("percentage", Percent, "99.5%", "%"),
    ("amount of money", Money, "12000 USD", "ISO 4217 code of the currency"),
    ("day", dt.date, "2026-09-30", "year-month-day"),
)

_PLAIN: tuple[tuple[type[Any], str], ...] = (
    (str, "text"),
    (int, "whole number"),
    (float, "number"),
    (bool, "`true` or `false`"),
)

_RANGE = "IP range, such as `10.12.0.0/16`"

_NAMES: tuple[Any, ...] = (
    CellName,
    ClusterName,
    PoolName,
    RunnerLabel,
    LabelKey,
    LabelValue,
    Repository,
)

_INTRODUCTION = """\
# The fleet file

<!-- Made from the models in runfleet.spec by runfleet.cli.reference; edit those. -->

One file says which runner classes a project has and where they run. It is YAML 1.2;
`runfleet check FILE` reports everything that is wrong in it at once, each with file,
line, path, what was found, what is allowed and the nearest valid spelling, and ends
with exit code 2. `runfleet schema` prints the JSON Schema with which an editor
completes and checks it.

Unknown keys are errors. Values are not converted: text that looks like a number, such
as an account id, stands in quotes, and truth values are `true` and `false`. Optional
sections at the top may be empty. Anchors, aliases and merge keys (`<<`) work.

The smallest fleet: one cell, one pool, one class.

```yaml
"""

SMALLEST_FLEET = """\
project: demo
owner: {team: infra, contact: {to: infra@example.org}}
github:
  organization: demo-org
  runner_groups:
    ci: {repositories: [demo-org/demo]}
cells:
  aws:
    provider: aws
    account: "111122223333"
    region: us-east-1
    zones: [us-east-1a, us-east-1b]
    cluster: demo
    network: {cidr: 10.12.0.0/16}
    base_nodes: {machine: m7i.large}
    funder: foundation
    runner_group: ci
pools:
  c7i:
    provider: aws
    arch: amd64
    machines:
      - {machine: c7i.4xlarge, disk: 200GiB}
runner_classes:
  l-x86iavx512-8-16:
    role: tester
    trust: untrusted-pr
    hardware: {arch: amd64, vcpu: 8, memory: 16GiB}
    scale: 0..20
    vendor: intel
    pool: c7i
"""
"""The example on the page; a test reads it."""


def fleet_reference() -> str:
    """Return the reference page of the fleet file as Markdown."""
    titles = {model: _title(model) for part in _SECTIONS for model, _ in part.models}
    introduction = f"{_INTRODUCTION}{SMALLEST_FLEET}```\n"
    parts = [introduction, _contents(), _units(), _names()]
    for section in _SECTIONS:
        parts.append(f"## {section.title}\n")
        for model, place in section.models:
            parts.append(_model(model, place, titles))
    parts.append(_roles())
    return "\n".join(parts)


def write_pages(root: Path) -> list[Path]:
    """Write every page that is made from the code.

    Args:
        root: Root of the checkout.

    Returns:
        The pages written.
    """
    page = root / FLEET_PAGE
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(fleet_reference(), encoding="utf-8")
    return [page]


def _units() -> str:
    rows = [(name, f"`{example}`", forms) for name, _, example, forms in _UNITS]
    table = _table(("value", "written", "units"), rows)
    return (
        f"## Units\n\nA value with a unit is text; a bare number is refused.\n\n{table}"
    )


def _names() -> str:
    rows: list[tuple[str, ...]] = []
    for kind in _NAMES:
        syntax = next(s for s in typing.get_args(kind) if isinstance(s, Syntax))
        pattern = syntax.pattern.replace("|", "\\|")
        rows.append((_bare(syntax), str(syntax.limit), f"`{pattern}`"))
    table = _table(("name", "most characters", "must match"), rows)
    return f"## Names\n\n{table}"


def _contents() -> str:
    lines = ["## Contents\n"]
    for section in _SECTIONS:
        links = ", ".join(
            f"[{_title(model)}](#{_anchor(_title(model))})"
            for model, _ in section.models
        )
        lines.append(f"- {section.title}: {links}")
    lines.append("- [Roles, grants and triggers](#roles-grants-and-triggers)")
    return "\n".join(lines) + "\n"


def _model(
    model: type[BaseModel], place: str, titles: dict[type[BaseModel], str]
) -> str:
    rows: list[tuple[str, ...]] = []
    for name, info in model.model_fields.items():
        if info.exclude:
            continue
        rows.append(
            (
                f"`{name}`",
                _type_of(info, titles),
                "**required**" if info.is_required() else _default(info),
                _description(model, name, info),
            )
        )
    text = " ".join((model.__doc__ or "").split("Attributes:")[0].split())
    text = text.replace("``", "`")
    table = _table(("key", "type", "default", "meaning"), rows)
    where = f"`{place}`: " if place else ""
    return f"### {_title(model)}\n\n{where}{text}\n\n{table}"


def _title(model: type[BaseModel]) -> str:
    words = "".join(f" {c.lower()}" if c.isupper() else c for c in model.__name__)
    known = {"git hub": "GitHub", "api access": "API access", "slo": "Service levels"}
    return known.get(words.strip(), words.strip().capitalize())


def _anchor(title: str) -> str:
    return title.lower().replace(",", "").replace(" ", "-")


def _description(model: type[BaseModel], name: str, info: FieldInfo) -> str:
    text = info.description or (model.__doc__ or "").partition("\n")[0]
    return text.replace("``", "`").replace("|", "\\|").replace("<", "\\<")


def _type_of(info: FieldInfo, titles: dict[type[BaseModel], str]) -> str:
    words = _words(info.annotation, info.metadata, titles)
    if info.json_schema_extra == {"format": "cidr"}:
        words = _RANGE
    limits = _limits(info.metadata)
    return f"{words}{', ' + limits if limits else ''}".replace("|", "\\|")


def _words(
    annotation: Any, metadata: list[Any], titles: dict[type[BaseModel], str]
) -> str:
    """Say in words what may stand in a place of a type."""
    syntax = next((item for item in metadata if isinstance(item, Syntax)), None)
    if syntax is not None:
        return f"[{_bare(syntax)}](#names)"
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _words(arguments[0], list(arguments[1:]), titles)
    if origin is typing.Literal:
        return _one_of(_scalar(value) for value in arguments)
    if origin in (typing.Union, types.UnionType):
        kinds = [a for a in arguments if a is not type(None)]
        return " or ".join(_words(kind, [], titles) for kind in kinds)
    if origin is list:
        return f"list of {_plural(_words(arguments[0], [], titles))}"
    if origin is dict:
        key, value = (_words(argument, [], titles) for argument in arguments)
        if value == "anything":
            return "mapping"
        return f"mapping of {_plural(key)} to {_plural(value)}"
    return _plain_words(annotation, metadata, titles)


def _plain_words(
    kind: Any, metadata: list[Any], titles: dict[type[BaseModel], str]
) -> str:
    if kind in titles:
        return f"[{titles[kind]}](#{_anchor(titles[kind])})"
    for name, unit, example, _ in _UNITS:
        if kind is unit:
            return f"{name}, such as `{example}`"
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _one_of(str(member.value) for member in kind)
    if any(getattr(item, "json_schema_extra", None) == {"format": "cidr"}
           for item in metadata):  # fmt: skip
        return _RANGE
    for plain, name in _PLAIN:
        if kind is plain:
            return name
    return "anything"


def _bare(syntax: Syntax) -> str:
    """Return what a text is, without article and explanation."""
    words = syntax.what.removeprefix("a ").removeprefix("an ")
    return words.partition(" legal on")[0].partition(" as ")[0]


def _one_of(values: Iterable[str]) -> str:
    spelled = [f"`{value}`" for value in values]
    return f"one of {', '.join(spelled)}" if len(spelled) > 2 else " or ".join(spelled)


def _plural(words: str) -> str:
    """Leave alone what reads well after `list of`, and mark the rest off."""
    if words == "text":
        return "texts"
    if words == "whole number":
        return "whole numbers"
    return f"({words})" if " or " in words or ", " in words else words


def _limits(metadata: list[Any]) -> str:
    limits: list[str] = []
    for item in metadata:
        if isinstance(item, annotated_types.Ge):
            limits.append(f"at least {item.ge}")
        elif isinstance(item, annotated_types.Gt):
            limits.append(f"more than {item.gt}")
        elif isinstance(item, annotated_types.Le):
            limits.append(f"at most {item.le}")
        elif isinstance(item, annotated_types.MinLen):
            limits.append(f"at least {item.min_length}")
        elif getattr(item, "pattern", None) and not isinstance(item, Syntax):
            limits.append(f"matching `{item.pattern}`")
    return ", ".join(limits)


def _default(info: FieldInfo) -> str:
    value: Any = info.get_default(call_default_factory=True, validated_data={})
    if value is None or value is PydanticUndefined:
        return "none"
    if isinstance(value, BaseModel):
        return "its defaults"
    if isinstance(value, list):
        items = [_scalar(item) for item in cast("list[Any]", value)]
        return f"`[{', '.join(items)}]`"
    if isinstance(value, dict):
        return "`{}`"
    return f"`{_scalar(value)}`" if _scalar(value) else "empty"


def _scalar(value: Any) -> str:
    if isinstance(value, Enum):
        return str(value.value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _roles() -> str:
    rows = [
        (
            f"`{grant.text}`",
            *("yes" if grant in matrix(role) else "" for role in Role),
        )
        for grant in sorted(
            matrix(Role.RELEASER), key=lambda g: (g.role.rank, g.store, g.scope, g.verb)
        )
    ]
    grants = _table(("grant", *(str(role) for role in Role)), rows)
    triggers = _table(
        ("trigger", *(str(role) for role in Role)),
        [
            (
                f"`{trigger}`",
                *("yes" if trigger in ROLE_TRIGGERS[role] else "" for role in Role),
            )
            for trigger in Trigger
        ],
    )
    stores = _table(
        ("store", *(str(scope) for scope in Scope)),
        [
            (
                f"`{kind}`",
                *("yes" if scope in STORE_SCOPES[kind] else "" for scope in Scope),
            )
            for kind in StoreKind
        ],
    )
    trusts = ", ".join(f"`{trust}`" for trust in Trust)
    return (
        "## Roles, grants and triggers\n\n"
        "The matrix is that of RFC-0049 (pytorch/rfcs PR 89). Roles are cumulative. A\n"
        "class has its role's grants; `grants` may list a part of them or say `none`,\n"
        f"and can never add to them.\n\n{grants}\n"
        f"Triggers that a role allows; another one is a finding:\n\n{triggers}\n"
        f"Where each store exists:\n\n{stores}\n"
        f"Trust is one of {trusts}; role `releaser` and trust `release` go together.\n"
    )


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


if __name__ == "__main__":
    write_pages(Path.cwd())
