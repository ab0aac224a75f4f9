"""Pins: versions and digests of things outside, with where and when they were read.

Charts, images, machine images, add-ons and actions are used at the version that
``pins.lock`` names. None is invented: what could not be read from a source stands
there as ``unresolved``; a rehearsal reports it, a real ``up`` refuses it. The package
carries a default lock; a ``pins.lock`` beside the fleet file overrides it by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path as FilePath

from pydantic import Field, ValidationError

from runfleet.errors import InputError
from runfleet.spec.base import Spec, Version
from runfleet.spec.load import model_problems
from runfleet.spec.source import Source, parse_source, read_source
from runfleet.spec.units import Day

PINS_NAME = "pins.lock"
UNRESOLVED = "unresolved"


class Pin(Spec):
    """One pinned version or digest."""

    value: str = Field(description="The version or digest, or `unresolved`.")
    kind: str = Field(
        description="chart, crd, image, machine-image, addon, version or action."
    )
    used_by: list[str] = Field(
        description="Providers that use it; `all` for every stack with a cluster."
    )
    source: str = Field(description="Where it was read, or where it can be read.")
    read: Day | None = Field(default=None, description="Day it was read.")
    resolve: str | None = Field(
        default=None,
        description="How `runfleet pins refresh` reads the current value, as "
        "github-release:<owner>/<repo>, github-tag:<owner>/<repo>@<tag> (the commit "
        "of a tag), eks-addon:<name>, eks-image:<family> or eks-node-release:<family>.",
    )

    @property
    def resolved(self) -> bool:
        """Whether the value is known."""
        return self.value != UNRESOLVED


class _PinsFile(Spec):
    version: Version = 1
    pins: dict[str, Pin]


@dataclass(frozen=True)
class Pins:
    """All pins by name.

    Attributes:
        pins: The pins.
    """

    pins: Mapping[str, Pin]

    def value(self, name: str) -> str:
        """Return the pinned value of a name, ``unresolved`` when it is not known.

        Raises:
            KeyError: There is no pin of this name: a mistake in the calling code.
        """
        return self.pins[name].value

    def unresolved(self, provider: str) -> list[str]:
        """Return the names of pins that a provider's stacks use and nobody resolved."""
        return sorted(
            name
            for name, pin in self.pins.items()
            if not pin.resolved and {"all", provider} & set(pin.used_by)
        )


def load_pins(override: str | FilePath | None = None) -> Pins:
    """Read the package's pins, overridden by name from another lock.

    Args:
        override: A ``pins.lock`` to lay over the package's own; may not exist.

    Raises:
        InputError: A lock is malformed.
    """
    default = resources.files("runfleet.catalogue").joinpath("data", PINS_NAME)
    pins = _read(parse_source(PINS_NAME, default.read_text(encoding="utf-8")))
    if override is not None and FilePath(override).exists():
        pins |= _read(read_source(override))
    return Pins(pins)


def _read(source: Source) -> dict[str, Pin]:
    problems = list(source.problems)
    try:
        pins = dict(_PinsFile.model_validate(source.data).pins)
    except ValidationError as error:
        raise InputError(problems + model_problems(error, _PinsFile, source)) from None
    if problems:
        raise InputError(problems)
    return pins
