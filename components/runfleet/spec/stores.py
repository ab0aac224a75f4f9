"""Stores: what grants are given on; and reservations, tenants and budgets."""

from __future__ import annotations

from pydantic import Field, StrictInt, model_validator

from runfleet.spec.base import LabelValue, Named, Spec
from runfleet.spec.cells import Provider
from runfleet.spec.people import Contact
from runfleet.spec.roles import STORE_SCOPES, Scope, StoreKind
from runfleet.spec.units import Day, Duration, Money, Percent


class Store(Named):
    """One kind of store: where it exists and how long it keeps things.

    The key in the fleet file is the kind: cache, artifacts, shared, release,
    registry or telemetry.
    """

    scopes: list[Scope] | None = Field(
        default=None, description="local, central or both; default: all it can have."
    )
    keep: Duration | None = Field(
        default=None, description="How long objects are kept; default: forever."
    )
    adopt: str | None = Field(
        default=None, description="Name of an existing bucket or repository to use."
    )

    @property
    def kind(self) -> StoreKind:
        """The kind of store, from the key it stands under."""
        return StoreKind(self.name)

    def in_scope(self, scope: Scope) -> bool:
        """Say whether the store exists in a scope."""
        allowed = STORE_SCOPES[self.kind]
        return scope in allowed and (self.scopes is None or scope in self.scopes)


class Central(Spec):
    """Where the things are that exist once: central stores and the promoter."""

    provider: Provider = Field(description="Cloud of the central stores.")
    account: str = Field(description="Account, project or subscription id.")
    account_number: str | None = Field(
        default=None, description="Google Cloud project number or Azure tenant id."
    )
    region: str = Field(description="Region of the central stores.")
    funder: LabelValue = Field(description="Who pays for them.")


class Reservation(Named):
    """Reserved capacity, as data: id, machine, count, start and end."""

    id: str = Field(description="The provider's id, such as cr-0123456789abcdef0.")
    cell: str = Field(description="Cell that it is in.")
    machine: str = Field(description="Instance type.")
    count: StrictInt = Field(ge=1, description="Machines reserved.")
    start: Day = Field(description="First day.")
    end: Day | None = Field(default=None, description="Last day, when it has one.")
    zone: str | None = Field(default=None, description="Zone that it is in.")

    @model_validator(mode="after")
    def _ordered(self) -> Reservation:
        if self.end is not None and self.end < self.start:
            raise ValueError("an `end` that is not before `start`")
        return self


class Tenant(Named):
    """Another project on the same hardware, with its fair share and its caps."""

    repositories: list[str] = Field(
        default_factory=list[str], description="Repositories that it comes from."
    )
    quota: dict[str, StrictInt] = Field(
        default_factory=dict[str, int],
        description="Most runners by class name, or by accelerator as "
        "accelerator/<model>.",
    )
    share: StrictInt = Field(default=1, ge=1, description="Weight of its fair share.")
    contact: Contact | None = Field(default=None, description="Who answers for it.")


class Budget(Named):
    """What a funder is ready to pay in a month, by funder name."""

    monthly: Money = Field(description="Amount per month.")
    alerts: list[Percent] = Field(
        default_factory=lambda: [Percent(50), Percent(80), Percent(100)],
        description="Shares of the amount at which an alert is sent.",
    )
    contact: Contact = Field(description="Who gets the alerts.")
    credit: Money | None = Field(
        default=None, description="Total credit that it is paid from, if limited."
    )
