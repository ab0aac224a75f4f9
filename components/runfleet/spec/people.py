"""Who answers for a fleet, a class or a budget, and where to reach them."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from runfleet.spec.base import LabelValue, Spec
from runfleet.spec.units import Duration


def _reachable(value: str) -> str:
    if "@" in value or value.startswith(("https://", "#")):
        return value
    raise ValueError("an e-mail address, an https:// link or a #channel")


ContactPoint = Annotated[str, AfterValidator(_reachable)]


class Contact(Spec):
    """Where to reach the people who answer for something."""

    to: ContactPoint = Field(
        description="E-mail address, https:// link or #channel that reaches them."
    )
    team: str = Field(default="", description="Who they are, for a person to read.")
    response: Duration | None = Field(
        default=None, description="Expected time to the first answer."
    )


class Owner(Spec):
    """The team that owns the fleet."""

    team: LabelValue = Field(description="Team name; becomes the label ci_owner.")
    contact: Contact | None = Field(default=None, description="How to reach the team.")
