"""IAM policies of IBM Cloud, and whether one of them allows a request.

Written from IBM's published rules:

* access is refused unless a policy of the subject allows it; policies only ever allow,
  and what several allow adds up ("How IBM Cloud IAM works");
* a policy is about resources with *all* its attributes; an attribute that it does not
  name may have any value, so a policy without ``serviceName`` is about every service;
* a role is a list of actions, the service's own or a custom role's ("IAM roles and
  actions", kept in ``ibm_actions.json``);
* ``stringEquals`` compares literally: a star in it is a star. ``stringMatch`` knows
  ``*`` and ``?``, which stand for themselves inside double braces; the ``AnyOf``
  operators take up to ten values; ``stringExists`` asks whether the request has the
  attribute at all ("IAM condition properties");
* a condition on an attribute that the request does not have is not met ("Assigning
  access to objects within a bucket using IAM access conditions": actions "subject to
  the omitted condition attributes will be denied"). Requests on objects have a path,
  lists of objects a prefix and perhaps a delimiter, others none of them.

Anything else (time of day, operators that are not listed, values that the record does
not know) gives "cannot tell".
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, cast

from runfleet.review.evaluators.decision import Truth, both, either, truth

PATTERN = "attribute-based-condition:resource:literal-and-wildcard"
"""The pattern that policies with conditions on resource attributes must name."""

MOST_VALUES = 10
"""Most values of an ``AnyOf`` operator."""

_KEY = re.compile(r"\{\{resource\.attributes\.(\w+)\}\}")
_WILDCARD = re.compile(r"\{\{([*?])\}\}|([*?])")


@dataclass(frozen=True)
class Request:
    """One action on one resource.

    Attributes:
        action: The action, such as ``cloud-object-storage.object.get``.
        attributes: What the resource is, by attribute name. An attribute that it does
            not have is absent; one that is not known is ``None``.
    """

    action: str
    attributes: Mapping[str, str | None]


@dataclass(frozen=True)
class Attribute:
    """A property that a policy asks of a resource; ``None`` is not known."""

    name: str
    operator: str
    value: str | None


@dataclass(frozen=True)
class Condition:
    """A condition: a comparison, or several joined by an operator.

    Attributes:
        operator: Comparison, or ``and`` or ``or``.
        key: Attribute that is compared; empty when conditions are joined.
        values: What it is compared with; ``None`` is not known.
        parts: The conditions that are joined.
    """

    operator: str
    key: str = ""
    values: tuple[str | None, ...] = ()
    parts: tuple[Condition, ...] = ()


@dataclass(frozen=True)
class Policy:
    """A policy of one subject.

    Attributes:
        urn: URN of its resource.
        subject: IAM id of who it is for.
        roles: Display names of its roles; ``None`` is not known.
        attributes: What a resource must be.
        condition: What the request must be; ``None`` for anything.
        everywhere: Whether it is about managing the account.
        tagged: Whether it is about resources by their tags.
        problems: Why IAM would refuse it.
    """

    urn: str
    subject: str
    roles: tuple[str | None, ...]
    attributes: tuple[Attribute, ...] = ()
    condition: Condition | None = None
    everywhere: bool = False
    tagged: bool = False
    problems: tuple[str, ...] = ()

    def describe(self) -> str:
        """Return what it gives on what, in one line."""
        roles = ", ".join(role or "?" for role in self.roles)
        if self.everywhere:
            return f"{roles} on account management"
        where = ", ".join(f"{a.name}={a.value or '?'}" for a in self.attributes)
        return f"{roles} on {where or 'everything'}"

    def exact(self, name: str) -> str | None:
        """Return the one value that an attribute must have, or ``None``."""
        found = [a for a in self.attributes if a.name == name]
        if len(found) == 1 and found[0].operator == "stringEquals":
            return found[0].value
        return None


@dataclass(frozen=True)
class Roles:
    """What roles mean: those of the services, and custom ones.

    Attributes:
        custom: Actions of custom roles by display name.
    """

    custom: Mapping[str, frozenset[str]]

    def give(self, role: str | None, action: str) -> Truth:
        """Say whether a role holds an action."""
        if role is None:
            return Truth.UNSURE
        if role in self.custom:
            return truth(action in self.custom[role])
        service = action.partition(".")[0]
        table = actions_of(service)
        if not table or not any(role in holders for holders in table.values()):
            return Truth.UNSURE
        return truth(role in table.get(action, ()))


@cache
def actions_of(service: str) -> Mapping[str, tuple[str, ...]]:
    """Return the actions of a service, each with the roles that hold it."""
    folder = resources.files("runfleet.review.evaluators")
    text = folder.joinpath("ibm_actions.json").read_text("utf-8")
    services = cast("dict[str, dict[str, list[str]]]", json.loads(text)["services"])
    return {a: tuple(roles) for a, roles in services.get(service, {}).items()}


def allows(policy: Policy, request: Request, roles: Roles) -> Truth:
    """Say whether a policy allows a request."""
    if policy.problems:
        return Truth.UNSURE
    if policy.everywhere:
        return Truth.NO
    gives = either(roles.give(role, request.action) for role in policy.roles)
    about = both(_about(attribute, request) for attribute in policy.attributes)
    tagged = Truth.UNSURE if policy.tagged else Truth.YES
    met = Truth.YES
    if policy.condition is not None:
        met = _met(policy.condition, request)
    return both([gives, about, tagged, met])


def matches(pattern: str, value: str) -> bool:
    """Say whether a value matches a pattern with wildcards."""
    found, end = "", 0
    for wildcard in _WILDCARD.finditer(pattern):
        found += re.escape(pattern[end : wildcard.start()])
        literal, meant = wildcard.groups()
        found += re.escape(literal) if literal else {"*": ".*", "?": "."}[meant]
        end = wildcard.end()
    found += re.escape(pattern[end:])
    return re.fullmatch(found, value, re.DOTALL) is not None


def condition_of(found: Any, operator: str | None) -> Condition | None:
    """Read the conditions of a policy's ``ruleConditions`` and ``ruleOperator``."""
    if not isinstance(found, list) or not found:
        return None
    parts = tuple(_condition(item) for item in cast("list[Any]", found))
    return parts[0] if len(parts) == 1 else Condition(operator or "", parts=parts)


def condition_problems(condition: Condition | None, pattern: str | None) -> list[str]:
    """Return why IAM would refuse a policy's conditions."""
    if condition is None:
        return []
    wrong: list[str] = []
    if pattern != PATTERN:
        wrong.append(f"conditions need the pattern {PATTERN}, found {pattern!r}")
    for part in _walk(condition):
        if part.parts and part.operator not in ("and", "or"):
            wrong.append(f"several conditions are joined by {part.operator!r}")
        if part.operator.endswith("AnyOf") and len(part.values) > MOST_VALUES:
            wrong.append(f"{part.operator} takes {MOST_VALUES} values")
        if not part.operator.endswith("AnyOf") and len(part.values) > 1:
            wrong.append(f"{part.operator} takes one value")
    return wrong


def patterns_of(condition: Condition | None, name: str) -> list[str]:
    """Return every value that a condition compares an attribute with."""
    if condition is None:
        return []
    return [
        value
        for part in _walk(condition)
        if _name(part.key) == name and part.operator != "stringExists"
        for value in part.values
        if value is not None
    ]


def _about(attribute: Attribute, request: Request) -> Truth:
    if attribute.name == "serviceType":
        return truth(attribute.value == "service")
    if attribute.name not in request.attributes:
        exists = attribute.operator == "stringExists"
        return truth(exists and attribute.value == "false")
    actual = request.attributes[attribute.name]
    return _compare(attribute.operator, actual, (attribute.value,))


def _met(condition: Condition, request: Request) -> Truth:
    if condition.parts:
        parts = [_met(part, request) for part in condition.parts]
        return both(parts) if condition.operator == "and" else either(parts)
    name = _name(condition.key)
    if name is None:
        return Truth.UNSURE
    if condition.operator == "stringExists":
        wanted = condition.values[:1] == ("true",)
        return truth((name in request.attributes) == wanted)
    if name not in request.attributes:
        return Truth.NO
    return _compare(condition.operator, request.attributes[name], condition.values)


def _compare(operator: str, actual: str | None, values: Sequence[str | None]) -> Truth:
    if operator == "stringExists":
        return truth(values[:1] == ("true",) or list(values[:1]) == ["true"])
    if actual is None:
        return Truth.UNSURE
    if operator in ("stringEquals", "stringEqualsAnyOf"):
        return either(
            Truth.UNSURE if value is None else truth(value == actual)
            for value in values
        )
    if operator in ("stringMatch", "stringMatchAnyOf"):
        return either(
            Truth.UNSURE if value is None else truth(matches(value, actual))
            for value in values
        )
    return Truth.UNSURE


def _condition(found: Any) -> Condition:
    item = cast("Mapping[str, Any]", found if isinstance(found, dict) else {})
    operator = str(item.get("operator") or "")
    inner = item.get("conditions")
    if isinstance(inner, list) and inner:
        parts = tuple(_condition(part) for part in cast("list[Any]", inner))
        return Condition(operator, parts=parts)
    values = item.get("values")
    known = cast("list[Any]", values) if isinstance(values, list) else [None]
    return Condition(
        operator,
        str(item.get("key") or ""),
        tuple(value if isinstance(value, str) else None for value in known),
    )


def _walk(condition: Condition) -> list[Condition]:
    return [condition, *(found for part in condition.parts for found in _walk(part))]


def _name(key: str) -> str | None:
    found = _KEY.fullmatch(key)
    return found[1] if found else None
