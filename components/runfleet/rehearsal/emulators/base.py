"""What a rehearsal expects of an emulator.

An emulator creates resources in an in-memory cloud while the program runs. It
gives nothing back: the record must be the same with and without it. It only
refuses, by raising :class:`Refused`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol


class Refused(Exception):
    """The in-memory cloud refused a resource; the text is its message."""


@dataclass(frozen=True)
class Creation:
    """A resource that an emulator is asked to create.

    Attributes:
        urn: Its URN.
        type: Its type token.
        name: Its logical name.
        id: Its derived id, as the record has it.
        inputs: Its inputs, with secrets in clear: they stay in this process.
        outputs: Its outputs, likewise.
        provider: Inputs of its explicit provider.
    """

    urn: str
    type: str
    name: str
    id: str
    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]
    provider: Mapping[str, Any]


class Emulator(Protocol):
    """An in-memory cloud for the types of one package."""

    def create(self, creation: Creation) -> None:
        """Create one resource.

        Types that the emulator lacks are left alone.

        Raises:
            Refused: The in-memory cloud does not accept the resource.
        """
        ...

    def close(self) -> None:
        """Forget everything and undo all patches."""
        ...
