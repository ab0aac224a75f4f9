"""Answers of an evaluator: allowed, denied or "cannot tell", with the reasons.

A record does not hold everything that a cloud knows at run time, so the evaluators
reason with three values. They are Kleene's: ``and`` is the least of two values,
``or`` the greatest, ``not`` swaps the ends. An answer is therefore only "allowed" or
"denied" when every completion of what is unknown gives the same answer to each
single question; it is "cannot tell" otherwise. Nothing unknown is ever taken as
harmless.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum, StrEnum


class Truth(IntEnum):
    """A truth value that may be unknown; ordered so that ``min`` is ``and``."""

    NO = 0
    UNSURE = 1
    YES = 2


class Outcome(StrEnum):
    """The answer to one request."""

    ALLOWED = "allowed"
    DENIED = "denied"
    CANNOT_TELL = "cannot-tell"


@dataclass(frozen=True)
class Reason:
    """One step of the way to a decision.

    Attributes:
        text: What the step did, in one sentence.
        policy: The policy that holds the statement, such as ``inline policy read``.
        owner: URN or ARN of the resource that carries the policy; may be empty.
        statement: The statement's ``Sid``, or ``Statement[n]``; empty when the
            reason is not one statement.
        effect: ``Allow``, ``Deny`` or empty.
    """

    text: str
    policy: str = ""
    owner: str = ""
    statement: str = ""
    effect: str = ""

    def __str__(self) -> str:
        """Render the reason on one line."""
        where = " of ".join(
            part for part in (self.statement, self.policy, self.owner) if part
        )
        return f"{self.text} ({where})" if where else self.text


@dataclass(frozen=True)
class Decision:
    """The outcome of one request and the statements that led to it.

    Attributes:
        outcome: Allowed, denied, or cannot tell.
        reasons: The statements and facts that decided, the deciding one first.
    """

    outcome: Outcome
    reasons: tuple[Reason, ...] = ()

    @property
    def allowed(self) -> bool:
        """Whether the request is certainly allowed."""
        return self.outcome is Outcome.ALLOWED

    @property
    def denied(self) -> bool:
        """Whether the request is certainly denied."""
        return self.outcome is Outcome.DENIED

    def explain(self) -> str:
        """Return the outcome and its reasons, one per line."""
        return "\n".join([str(self.outcome), *(f"  {r}" for r in self.reasons)])


def negate(value: Truth) -> Truth:
    """Return the opposite of a truth value; unknown stays unknown."""
    return _OPPOSITE[value]


def both(values: Iterable[Truth]) -> Truth:
    """Return the conjunction of all values; of none it is ``YES``."""
    result = Truth.YES
    for value in values:
        if value is Truth.NO:
            return Truth.NO
        if value < result:
            result = value
    return result


def either(values: Iterable[Truth]) -> Truth:
    """Return the disjunction of all values; of none it is ``NO``."""
    result = Truth.NO
    for value in values:
        if value is Truth.YES:
            return Truth.YES
        if value > result:
            result = value
    return result


def truth(value: bool) -> Truth:
    """Return a plain truth value as a :class:`Truth`."""
    return Truth.YES if value else Truth.NO


def outcome_of(allowed: Truth) -> Outcome:
    """Return the outcome that a truth value of "is allowed" stands for."""
    return _OUTCOMES[allowed]


_OPPOSITE = {
    Truth.NO: Truth.YES,
    Truth.UNSURE: Truth.UNSURE,
    Truth.YES: Truth.NO,
}
_OUTCOMES = {
    Truth.NO: Outcome.DENIED,
    Truth.UNSURE: Outcome.CANNOT_TELL,
    Truth.YES: Outcome.ALLOWED,
}
