"""Parts of stores, and answers about them: what all clouds' evaluators speak."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runfleet.spec.roles import Scope, StoreKind, Trust


@dataclass(frozen=True)
class Part:
    """A part of a store, as its cloud knows it.

    Attributes:
        kind: Kind of the store.
        scope: Local to a cell, or central.
        trust: Trust level of what is written there; ``None`` for copies that a
            pull-through cache makes, which nobody writes.
        place: The cloud's id of it: an ARN, a resource id, a CRN.
        what: ``images`` or the like, when the store has several kinds of parts.
    """

    kind: StoreKind
    scope: Scope
    trust: Trust | None
    place: str
    what: str = ""

    @property
    def label(self) -> str:
        """What a person calls the part inside its store."""
        name = str(self.trust) if self.trust is not None else ""
        return " ".join(part for part in (name, self.what) if part)


@dataclass(frozen=True)
class Answer:
    """What one identity may do.

    Attributes:
        access: For each part asked for, in order: ``read``, ``write`` and ``insert``
            (``full``, ``partial``, ``none`` or ``cannot-tell``), and the actions that
            are ``beyond`` its verbs, ``unclear``, or allowed ``without_tls``.
        strays: What it may do that is on none of the parts, or who gets it that
            should not.
        identities: Ids of the cloud identities behind it.
    """

    access: tuple[Mapping[str, Any], ...]
    strays: tuple[str, ...] = ()
    identities: tuple[str, ...] = ()
