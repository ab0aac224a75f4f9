"""AWS policy documents, read by meaning.

A document's statements are normalised (one or many, text or list), action patterns
are expanded with AWS's own action table, and questions are answered over all
statements: what is allowed, on which scope, under which conditions, less what is
denied without conditions.

The table is ``data/iam_actions.json``, generated from AWS's Service Authorization
Reference (https://docs.aws.amazon.com/service-authorization/latest/reference/).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache
from importlib.resources import files
from typing import Any, cast

from runfleet_policies.values import CannotTell, document, get, items, known, texts

_CONDITION_MARKS = ("ForAnyValue:", "ForAllValues:")

_NARROWING_KEYS = re.compile(
    r"(?i)^(aws:resourcetag/|aws:requesttag/|aws:resourceaccount$|aws:sourcearn$"
    r"|aws:sourceaccount$|iam:permissionsboundary$|iam:resourcetag/"
    r"|ec2:resourcetag/|s3:resourceaccount$|kms:viaservice$"
    r"|kms:grantisforawsresource$|eks:)"
)
"""Condition keys that narrow which resources a statement reaches."""


@dataclass(frozen=True)
class Condition:
    """One key of a condition block.

    Attributes:
        operator: Operator without set prefix and suffix, such as ``StringLike``.
        key: Condition key as written.
        values: The values; any one of them matching is enough.
        if_exists: Whether a missing key counts as a match.
        quantifier: ``ForAnyValue``, ``ForAllValues`` or empty.
    """

    operator: str
    key: str
    values: tuple[str, ...]
    if_exists: bool = False
    quantifier: str = ""

    @property
    def positive(self) -> bool:
        """Whether it demands a value, instead of excluding some."""
        return self.operator in (
            "StringEquals",
            "StringEqualsIgnoreCase",
            "StringLike",
            "ArnEquals",
            "ArnLike",
            "Bool",
            "NumericEquals",
            "IpAddress",
        )

    @property
    def weak(self) -> bool:
        """Whether a request without the key passes."""
        return self.if_exists or self.quantifier == "ForAllValues"

    @property
    def exact(self) -> bool:
        """Whether its values are compared without wildcards."""
        return self.operator in ("StringEquals", "StringEqualsIgnoreCase")


@dataclass(frozen=True)
class Statement:
    """One statement of a policy document.

    Attributes:
        index: Position in the document.
        allow: True for ``Allow``, False for ``Deny``.
        actions: Patterns of ``Action``.
        not_actions: Patterns of ``NotAction``.
        resources: Patterns of ``Resource``.
        not_resources: Patterns of ``NotResource``.
        principals: Values of ``Principal`` by kind; ``*`` is ``{"*": ["*"]}``.
        not_principals: The same for ``NotPrincipal``.
        conditions: All condition keys; all must match.
        sid: Its name.
    """

    index: int
    allow: bool
    actions: tuple[str, ...]
    not_actions: tuple[str, ...]
    resources: tuple[str, ...]
    not_resources: tuple[str, ...]
    principals: Mapping[str, tuple[str, ...]]
    not_principals: Mapping[str, tuple[str, ...]]
    conditions: tuple[Condition, ...]
    sid: str = ""

    @property
    def place(self) -> str:
        """How findings name it."""
        return f"Statement[{self.index}]" + (f" ({self.sid})" if self.sid else "")

    @property
    def narrowed(self) -> bool:
        """Whether a condition really narrows which resources it reaches."""
        return any(
            condition.positive
            and not condition.weak
            and _NARROWING_KEYS.match(condition.key)
            and not any(value.strip() == "*" for value in condition.values)
            for condition in self.conditions
        )

    def granted(self) -> frozenset[str]:
        """Return the actions it names, in lower case: ``NotAction`` inverts."""
        named = expand_all(self.actions)
        if self.not_actions:
            named |= table().all - expand_all(self.not_actions)
        return named

    def broad(self, kind: str = "") -> bool:
        """Say whether it reaches every resource, or every one of a kind.

        Args:
            kind: The resource part of an ARN, such as ``role``: the statement is
                broad for it when it names ``role/*``.
        """
        if self.not_resources:
            return True
        return any(_everything(pattern, kind) for pattern in self.resources)


@dataclass(frozen=True)
class ActionTable:
    """The actions of IAM, all in lower case.

    Attributes:
        levels: Access level of each action.
        unscoped: Actions for which IAM knows no resource type.
        names: Spelling of each action.
    """

    levels: Mapping[str, str]
    unscoped: frozenset[str]
    names: Mapping[str, str]

    @property
    def all(self) -> frozenset[str]:
        """Every action."""
        return frozenset(self.levels)


@lru_cache(maxsize=1)
def table() -> ActionTable:
    """Return the table of IAM actions, read once."""
    path = files("runfleet_policies") / "data" / "iam_actions.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    levels: dict[str, str] = {}
    names: dict[str, str] = {}
    unscoped: set[str] = set()
    services: Mapping[str, Mapping[str, list[str]]] = data["services"]
    for prefix, by_level in services.items():
        for level, actions in by_level.items():
            for action in actions:
                name = f"{prefix}:{action}"
                key = name.lower()
                levels[key] = level.rstrip("*")
                names[key] = name
                if level.endswith("*"):
                    unscoped.add(key)
    return ActionTable(levels, frozenset(unscoped), names)


@lru_cache(maxsize=8192)
def expand(pattern: str) -> frozenset[str]:
    """Return the actions that a pattern names, in lower case.

    An action that the table does not know is returned as it is, because AWS may be
    newer than the table.
    """
    lowered = pattern.lower()
    if lowered in ("*", "*:*"):
        return table().all
    if "*" not in lowered and "?" not in lowered:
        return frozenset({lowered})
    matches = re.compile(translate(lowered)).match
    prefix = lowered.partition(":")[0]
    plain = not any(mark in prefix for mark in "*?")
    return frozenset(
        action
        for action in (_by_service().get(prefix, ()) if plain else table().levels)
        if matches(action)
    )


@lru_cache(maxsize=4096)
def expand_all(patterns: tuple[str, ...]) -> frozenset[str]:
    """Return the actions that any of the patterns names."""
    found: frozenset[str] = frozenset()
    for pattern in patterns:
        found |= expand(pattern)
    return found


@lru_cache(maxsize=1)
def _by_service() -> dict[str, tuple[str, ...]]:
    services: dict[str, list[str]] = {}
    for action in table().levels:
        services.setdefault(action.partition(":")[0], []).append(action)
    return {prefix: tuple(actions) for prefix, actions in services.items()}


def statements(value: Any, *path: str | int) -> list[Statement]:
    """Return the statements of the policy document at a path.

    Raises:
        CannotTell: The document, or a part of it, is not known or is no JSON.
    """
    found = document(value, *path)
    return [
        _statement(entry, index)
        for index, entry in enumerate(items(found, "Statement"))
    ]


def denied(found: Iterable[Statement]) -> frozenset[str]:
    """Return the actions that are denied everywhere without conditions."""
    blocked: frozenset[str] = frozenset()
    for statement in found:
        whole = statement.resources == ("*",) and not statement.not_resources
        if not statement.allow and whole and not statement.conditions:
            blocked |= statement.granted()
    return blocked


def allowed(found: Iterable[Statement]) -> frozenset[str]:
    """Return the actions that are allowed on something, less what is denied."""
    listed = list(found)
    granted: frozenset[str] = frozenset()
    for statement in listed:
        if statement.allow:
            granted |= statement.granted()
    return granted - denied(listed)


def spelled(actions: Iterable[str], limit: int = 4) -> str:
    """Spell some actions as AWS does, at most ``limit`` of them."""
    known_names = table().names
    names = sorted(known_names.get(action, action) for action in actions)
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def _statement(value: Any, index: int) -> Statement:
    entry = known(value, ("Statement", index))
    if not isinstance(entry, Mapping):
        raise CannotTell(f"Statement[{index}]", "is not an object")
    members = cast("Mapping[str, Any]", entry)
    for name, part in members.items():
        _refuse_unknown(part, f"Statement[{index}].{name}")
    return Statement(
        index=index,
        allow=str(members.get("Effect", "Deny")) == "Allow",
        actions=tuple(texts(members, "Action")),
        not_actions=tuple(texts(members, "NotAction")),
        resources=tuple(texts(members, "Resource")),
        not_resources=tuple(texts(members, "NotResource")),
        principals=_principals(members, "Principal"),
        not_principals=_principals(members, "NotPrincipal"),
        conditions=tuple(_conditions(members)),
        sid=str(members.get("Sid", "")),
    )


def _refuse_unknown(value: Any, path: str) -> None:
    known(value, (path,))
    if isinstance(value, Mapping):
        for name, part in cast("Mapping[str, Any]", value).items():
            _refuse_unknown(part, f"{path}.{name}")
    elif isinstance(value, list):
        for part in cast("list[Any]", value):
            _refuse_unknown(part, path)


def _principals(members: Mapping[str, Any], name: str) -> dict[str, tuple[str, ...]]:
    value = get(members, name)
    if isinstance(value, Mapping):
        kinds = cast("Mapping[str, Any]", value)
        return {kind: tuple(texts(kinds, kind)) for kind in kinds}
    return {"*": tuple(texts(members, name))} if value is not None else {}


def _conditions(members: Mapping[str, Any]) -> Iterator[Condition]:
    block = get(members, "Condition", default={})
    if not isinstance(block, Mapping):
        return
    operators = cast("Mapping[str, Any]", block)
    for written, keys in operators.items():
        operator, quantifier = written, ""
        for mark in _CONDITION_MARKS:
            if operator.startswith(mark):
                operator, quantifier = operator[len(mark) :], mark.rstrip(":")
        if_exists = operator.endswith("IfExists")
        operator = operator.removesuffix("IfExists")
        if not isinstance(keys, Mapping):
            continue
        entries = cast("Mapping[str, Any]", keys)
        for key in entries:
            yield Condition(
                operator, key, tuple(texts(entries, key)), if_exists, quantifier
            )


def _everything(pattern: str, kind: str) -> bool:
    if pattern.strip("*?:") in ("", "arn"):
        return True
    parts = pattern.split(":", 5)
    if len(parts) < 6:
        return pattern.startswith("arn:") and pattern.endswith("*")
    resource = parts[5]
    if resource.strip("*?") == "":
        return True
    return bool(kind) and resource in (f"{kind}/*", f"{kind}*", f"{kind}:*")
