"""Waivers are judged too: an exception that nobody needs is one that hides things."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from runfleet.spec.findings import Severity
from runfleet_policies.rule import Breach, Context, Rule
from runfleet_policies.view import WaiverView


def rules() -> tuple[Rule, ...]:
    """Return the rules about waivers."""
    return (
        Rule(
            id="R-WAIVER-01",
            severity=Severity.HIGH,
            title="No waiver has expired",
            rationale="An exception is granted until a day; after it the finding "
            "counts again and somebody has to decide.",
            fix="mend what is waived and delete the waiver, or have it approved anew",
            anchors=("S13",),
            waiver=_expired,
        ),
        Rule(
            id="R-WAIVER-02",
            severity=Severity.LOW,
            title="Every waiver covers a finding",
            rationale="A waiver that covers nothing waits for a new finding to hide.",
            fix="delete the waiver, or correct its rule or resource pattern",
            anchors=("S13",),
            waiver=_unused,
        ),
    )


def _expired(view: WaiverView, context: Context) -> Iterator[Breach]:
    for index, waiver in enumerate(view.waivers.waivers):
        if waiver.expires < context.today:
            why = f"the waiver of {waiver.owner} for {waiver.rule} on "
            why += f"{waiver.resource} expired on {waiver.expires}"
            yield Breach(why, path=("waivers", index))


def _unused(view: WaiverView, context: Context) -> Iterator[Breach]:
    for index, waiver in enumerate(view.waivers.waivers):
        if waiver.expires < context.today or waiver.rule not in view.judged:
            continue
        if not any(fnmatchcase(stack, waiver.stack) for stack in view.stacks):
            continue
        if not any(waiver.covers(found, context.today) for found in view.findings):
            why = f"no finding of {waiver.rule} at {waiver.resource}"
            yield Breach(why, path=("waivers", index))
