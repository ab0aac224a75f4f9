"""Policy documents of AWS: strict reading, and which statements match a request.

A document is read as AWS reads it when it is stored: what AWS refuses as malformed
is refused here too, every problem at once and each with its place in the document.
A condition operator that nobody documents is no problem of the grammar; its
condition is answered with "unsure" instead.

Sources: AWS IAM User Guide, "Grammar of the IAM JSON policy language" and "IAM JSON
policy element reference"; Amazon ECR User Guide, "Private repository policies" (they
have no ``Resource``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, cast

from runfleet.errors import RunfleetError
from runfleet.review.evaluators.aws_conditions import Condition, make_condition
from runfleet.review.evaluators.aws_match import (
    MASKED,
    UNRESOLVED,
    Context,
    Pattern,
    any_matches,
    is_unresolved,
    split_pattern,
)
from runfleet.review.evaluators.aws_principals import Principals
from runfleet.review.evaluators.decision import Reason, Truth, both, negate


class PolicyKind(StrEnum):
    """Where a document stands, which decides what elements it may hold."""

    IDENTITY = "identity policy"
    BOUNDARY = "permissions boundary"
    SESSION = "session policy"
    TRUST = "trust policy"
    RESOURCE = "resource policy"
    REPOSITORY = "repository policy"
    ENDPOINT = "endpoint policy"


@dataclass(frozen=True, order=True)
class PolicyProblem:
    """One thing in a document that AWS would refuse.

    Attributes:
        owner: URN or ARN of the resource that carries the document.
        place: Path inside the document, such as ``Statement[1].Effect``.
        message: What is wrong, in one sentence.
    """

    owner: str
    place: str
    message: str

    def __str__(self) -> str:
        """Render the problem on one line."""
        return f"{self.owner}: {self.place or '(document)'}: {self.message}"


class PolicyError(RunfleetError):
    """A document is malformed.

    Attributes:
        problems: Everything that is wrong with it.
    """

    def __init__(self, problems: Iterable[PolicyProblem]) -> None:
        """Keep all problems and say each on its own line."""
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


@dataclass(eq=False, slots=True)
class Statement:
    """One compiled statement.

    Attributes:
        label: Its ``Sid``, or ``Statement[n]``.
        deny: Whether its effect is ``Deny``.
        not_action: Whether ``actions`` are those of ``NotAction``.
        actions: Action patterns, in lower case.
        not_resource: Whether ``resources`` are those of ``NotResource``.
        resources: Resource patterns; ``None`` where the kind has none.
        principals: The principal element; ``None`` in identity policies.
        conditions: All of them must hold.
    """

    label: str
    deny: bool
    not_action: bool
    actions: tuple[Pattern, ...]
    not_resource: bool
    resources: tuple[Pattern, ...] | None
    principals: Principals | None
    conditions: tuple[Condition, ...]

    @property
    def effect(self) -> str:
        """``Allow`` or ``Deny``."""
        return "Deny" if self.deny else "Allow"

    def covers_action(self, action: str) -> Truth:
        """Return whether the statement is about a lower-case action."""
        match = any_matches(self.actions, action, _NO_CONTEXT)
        return negate(match) if self.not_action else match

    def matches(self, resource: str, context: Context) -> Truth:
        """Return whether resource and conditions fit a request.

        Action and principal are looked at elsewhere, because they repeat.
        """
        fits = self.covers_resource(resource, context)
        if fits is Truth.NO or not self.conditions:
            return fits
        return min(fits, both(c.holds(context) for c in self.conditions))

    def covers_resource(self, resource: str, context: Context) -> Truth:
        """Return whether the statement is about a resource."""
        if self.resources is None:
            return Truth.YES
        match = any_matches(self.resources, resource, context)
        return negate(match) if self.not_resource else match


@dataclass(eq=False, slots=True)
class Policy:
    """A compiled document, or one whose content is not known.

    Attributes:
        name: What it is called in explanations.
        owner: URN or ARN of the resource that carries it.
        kind: Where it stands.
        statements: In the document's order.
        opaque: Whether the content is not known: it may allow or deny anything.
    """

    name: str
    owner: str
    kind: PolicyKind
    statements: tuple[Statement, ...] = ()
    opaque: bool = False
    _allows: dict[str, tuple[tuple[Statement, Truth], ...]] = field(
        default_factory=dict[str, tuple[tuple[Statement, Truth], ...]]
    )
    _denies: dict[str, tuple[tuple[Statement, Truth], ...]] = field(
        default_factory=dict[str, tuple[tuple[Statement, Truth], ...]]
    )

    def allows(self, action: str) -> tuple[tuple[Statement, Truth], ...]:
        """Return the ``Allow`` statements about a lower-case action."""
        found = self._allows.get(action)
        if found is None:
            found = self._allows[action] = self._about(action, deny=False)
        return found

    def denies(self, action: str) -> tuple[tuple[Statement, Truth], ...]:
        """Return the ``Deny`` statements about a lower-case action."""
        found = self._denies.get(action)
        if found is None:
            found = self._denies[action] = self._about(action, deny=True)
        return found

    def may_allow(self, action: str) -> bool:
        """Whether the policy could allow a lower-case action on anything."""
        return self.opaque or bool(self.allows(action))

    def reason(self, statement: Statement, text: str) -> Reason:
        """Return a reason that names one of the policy's statements."""
        return Reason(text, self.name, self.owner, statement.label, statement.effect)

    def _about(self, action: str, *, deny: bool) -> tuple[tuple[Statement, Truth], ...]:
        pairs: list[tuple[Statement, Truth]] = []
        for statement in self.statements:
            if statement.deny is deny:
                covered = statement.covers_action(action)
                if covered is not Truth.NO:
                    pairs.append((statement, covered))
        return tuple(pairs)


def opaque_policy(name: str, owner: str, kind: PolicyKind) -> Policy:
    """Return a policy whose content the record does not hold."""
    return Policy(name, owner, kind, opaque=True)


def parse_policy(
    document: str | Mapping[str, Any],
    kind: PolicyKind,
    *,
    name: str = "",
    owner: str = "",
) -> Policy:
    """Read a policy document.

    Args:
        document: JSON text, or the object that it stands for.
        kind: Where the document stands.
        name: What to call it in explanations; the kind when empty.
        owner: URN or ARN of the resource that carries it.

    Returns:
        The compiled policy; :data:`Policy.opaque` when the text is a value that
        Pulumi does not know yet.

    Raises:
        PolicyError: AWS would refuse the document; holds every problem.
    """
    name = name or str(kind)
    if isinstance(document, str) and document.strip() in (UNRESOLVED, MASKED):
        return opaque_policy(name, owner, kind)
    reader = _Reader(kind, owner)
    statements = reader.read(document)
    if reader.problems:
        raise PolicyError(reader.problems)
    return Policy(name, owner, kind, statements)


_NO_CONTEXT: Final = Context({}, complete=True)
_IDENTITY_KINDS = frozenset(
    {PolicyKind.IDENTITY, PolicyKind.BOUNDARY, PolicyKind.SESSION}
)
_NO_RESOURCE_KINDS = frozenset({PolicyKind.TRUST, PolicyKind.REPOSITORY})
_STATEMENT_KEYS = frozenset(
    {
        "Sid",
        "Effect",
        "Action",
        "NotAction",
        "Resource",
        "NotResource",
        "Principal",
        "NotPrincipal",
        "Condition",
    }
)
_ACTION = re.compile(r"\*|[A-Za-z0-9*?-]+:[A-Za-z0-9*?]+")
_PRINCIPAL_VALUE = re.compile(
    r"\*|\d{12}|A[A-Z]{2}A[A-Z0-9]+|arn:[a-z-]+:(?:iam|sts)::(?:\d{12}|cloudfront):[^*?]+"
)


class _Reader:
    """Reads one document and collects what is wrong with it."""

    def __init__(self, kind: PolicyKind, owner: str) -> None:
        self.kind = kind
        self.owner = owner
        self.problems: list[PolicyProblem] = []
        self.variables = False

    def problem(self, place: str, message: str) -> None:
        self.problems.append(PolicyProblem(self.owner, place, message))

    def read(self, document: object) -> tuple[Statement, ...]:
        if isinstance(document, str):
            try:
                document = json.loads(document, object_pairs_hook=_no_duplicates)
            except ValueError as error:
                self.problem("", f"not a JSON document: {error}")
                return ()
        if not isinstance(document, Mapping):
            self.problem("", "a policy is a JSON object")
            return ()
        body = cast("Mapping[str, object]", document)
        for key in body.keys() - {"Version", "Id", "Statement"}:
            self.problem(key, "unknown element")
        version = body.get("Version", "2008-10-17")
        if version not in ("2012-10-17", "2008-10-17"):
            self.problem("Version", "must be 2012-10-17 or 2008-10-17")
        self.variables = version == "2012-10-17"
        if "Statement" not in body:
            self.problem("Statement", "missing")
            return ()
        many = body["Statement"]
        entries: list[tuple[str, object]]
        if isinstance(many, list):
            items = cast("list[object]", many)
            entries = [(f"Statement[{i}]", item) for i, item in enumerate(items)]
            if not items:
                self.problem("Statement", "holds no statement")
        else:
            entries = [("Statement", many)]
        return tuple(self._statements(entries))

    def _statements(self, entries: list[tuple[str, object]]) -> Iterator[Statement]:
        seen: set[str] = set()
        for place, entry in entries:
            if not isinstance(entry, Mapping):
                self.problem(place, "a statement is a JSON object")
                continue
            body = cast("Mapping[str, object]", entry)
            sid = body.get("Sid", "")
            if not isinstance(sid, str):
                self.problem(f"{place}.Sid", "must be text")
                sid = ""
            elif sid and sid in seen:
                self.problem(f"{place}.Sid", f"{sid!r} is used twice")
            elif (
                self.kind in _IDENTITY_KINDS | {PolicyKind.TRUST}
                and sid
                and re.fullmatch(r"[A-Za-z0-9]+", sid) is None
            ):
                self.problem(f"{place}.Sid", f"{sid!r} is not letters and digits")
            seen.add(sid)
            statement = self._statement(place, body, sid)
            if statement is not None:
                yield statement

    def _statement(
        self, place: str, body: Mapping[str, object], sid: str
    ) -> Statement | None:
        before = len(self.problems)
        for key in sorted(body.keys() - _STATEMENT_KEYS):
            self.problem(f"{place}.{key}", "unknown element")
        effect = body.get("Effect")
        if effect not in ("Allow", "Deny"):
            self.problem(f"{place}.Effect", "must be Allow or Deny")
        not_action, actions = self._actions(place, body)
        not_resource, resources = self._resources(place, body)
        principals = self._principals(place, body)
        conditions = self._conditions(f"{place}.Condition", body.get("Condition", {}))
        if len(self.problems) > before:
            return None
        return Statement(
            sid or place,
            effect == "Deny",
            not_action,
            actions,
            not_resource,
            resources,
            principals,
            conditions,
        )

    def _one_of(
        self, place: str, body: Mapping[str, object], name: str
    ) -> tuple[bool, str, object] | None:
        """Return negation, key and value of ``name`` or ``Not<name>``, if any."""
        negated = f"Not{name}"
        if name in body and negated in body:
            self.problem(place, f"holds both {name} and {negated}")
            return None
        for key in (name, negated):
            if key in body:
                return key == negated, f"{place}.{key}", body[key]
        return None

    def _actions(
        self, place: str, body: Mapping[str, object]
    ) -> tuple[bool, tuple[Pattern, ...]]:
        found = self._one_of(place, body, "Action")
        if found is None:
            if not {"Action", "NotAction"} <= body.keys():
                self.problem(f"{place}.Action", "missing")
            return False, ()
        negated, where, value = found
        patterns: list[Pattern] = []
        for spot, text in self._texts(where, value):
            if not is_unresolved(text) and _ACTION.fullmatch(text) is None:
                self.problem(spot, f"{text!r} is not service:Action")
                continue
            lower = text.lower()
            patterns.append(Pattern(lower, split_pattern(lower, variables=False)))
        return negated, tuple(patterns)

    def _resources(
        self, place: str, body: Mapping[str, object]
    ) -> tuple[bool, tuple[Pattern, ...] | None]:
        found = self._one_of(place, body, "Resource")
        if self.kind in _NO_RESOURCE_KINDS:
            if found is not None:
                self.problem(found[1], f"has no place in this kind: {self.kind}")
            return False, None
        if found is None:
            if not {"Resource", "NotResource"} <= body.keys():
                self.problem(f"{place}.Resource", "missing")
            return False, None
        negated, where, value = found
        patterns: list[Pattern] = []
        for spot, text in self._texts(where, value):
            if not (text == "*" or text.startswith("arn:") or is_unresolved(text)):
                self.problem(spot, f"{text!r} is neither an ARN nor *")
                continue
            try:
                pieces = split_pattern(text, variables=self.variables)
            except ValueError as error:
                self.problem(spot, str(error))
                continue
            patterns.append(
                Pattern(
                    text,
                    pieces,
                    segments=text != "*",
                    lacking=Truth.UNSURE if negated else Truth.NO,
                )
            )
        return negated, tuple(patterns)

    def _principals(self, place: str, body: Mapping[str, object]) -> Principals | None:
        found = self._one_of(place, body, "Principal")
        if self.kind in _IDENTITY_KINDS:
            if found is not None:
                self.problem(found[1], f"has no place in this kind: {self.kind}")
            return None
        if found is None:
            if not {"Principal", "NotPrincipal"} <= body.keys():
                self.problem(f"{place}.Principal", "missing")
            return None
        negated, where, value = found
        if value == "*":
            return Principals(negated=negated, everyone=True)
        if not isinstance(value, Mapping) or not value:
            self.problem(where, 'must be "*" or an object')
            return None
        lists: dict[str, tuple[str, ...]] = {}
        for key, inner in cast("Mapping[str, object]", value).items():
            if key not in ("AWS", "Service", "Federated", "CanonicalUser"):
                self.problem(f"{where}.{key}", "unknown kind of principal")
                continue
            texts = self._texts(f"{where}.{key}", inner)
            if key == "AWS":
                for spot, text in texts:
                    if is_unresolved(text) or _PRINCIPAL_VALUE.fullmatch(text):
                        continue
                    self.problem(spot, f"{text!r} is not a principal")
            lists[key] = tuple(text for _, text in texts)
        aws = lists.get("AWS", ())
        return Principals(
            negated,
            "*" in aws,
            tuple(text for text in aws if text != "*"),
            lists.get("Service", ()),
            lists.get("Federated", ()),
            lists.get("CanonicalUser", ()),
        )

    def _conditions(self, place: str, block: object) -> tuple[Condition, ...]:
        if not isinstance(block, Mapping):
            self.problem(place, "must be an object")
            return ()
        conditions: list[Condition] = []
        for operator, keys in cast("Mapping[str, object]", block).items():
            where = f"{place}.{operator}"
            if not isinstance(keys, Mapping):
                self.problem(where, "must be an object of keys and values")
                continue
            for key, value in cast("Mapping[str, object]", keys).items():
                spot = f"{where}.{key}"
                texts = self._texts(spot, value, scalars=True)
                try:
                    conditions.append(
                        make_condition(
                            operator,
                            key,
                            tuple(text for _, text in texts),
                            variables=self.variables,
                        )
                    )
                except ValueError as error:
                    self.problem(spot, str(error))
        return tuple(conditions)

    def _texts(
        self, place: str, value: object, *, scalars: bool = False
    ) -> list[tuple[str, str]]:
        """Return the texts of a value that may be one or a list, with places."""
        if isinstance(value, list):
            items = [
                (f"{place}[{index}]", item)
                for index, item in enumerate(cast("list[object]", value))
            ]
            if not items and not scalars:
                self.problem(place, "holds no value")
        else:
            items = [(place, value)]
        texts: list[tuple[str, str]] = []
        for spot, item in items:
            if isinstance(item, str):
                texts.append((spot, item))
            elif scalars and isinstance(item, bool):
                texts.append((spot, "true" if item else "false"))
            elif scalars and isinstance(item, int | float):
                texts.append((spot, str(item)))
            else:
                self.problem(spot, "must be text")
        return texts


def _no_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result: dict[str, object] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f"{key!r} stands twice in one object")
        result[key] = value
    return result
