"""Ids and outputs of every resource, derived from its URN and inputs only.

A real provider invents ids. A rehearsal must not: two runs of one program have
to give the same record, byte for byte, with or without an emulator beside it. So
each resource's id and computed outputs are a function of its URN, its inputs and
its explicit provider, looked up here by the package in its type token. The tables
of the packages are in ``providers``; a package without a table gets
:mod:`runfleet.rehearsal.providers.generic`.

Derivations see secrets as the text ``[secret]``, so no secret reaches a name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from runfleet.rehearsal.providers import (
    aws,
    azure,
    gcp,
    generic,
    github,
    ibm,
    kubernetes,
)
from runfleet.rehearsal.providers.subject import Derived, Subject

Derivation = Callable[[Subject], Derived]
Invocation = Callable[[str, Mapping[str, Any], Mapping[str, Any]], Any]
"""Answer a provider function from token, arguments and the provider's inputs."""


@dataclass(frozen=True)
class Table:
    """What a package's table offers.

    Attributes:
        derive: Id and computed outputs of a resource.
        invoke: Answer of a provider function, or None when only the real cloud
            can answer.
    """

    derive: Derivation
    invoke: Invocation


def tables() -> dict[str, Table]:
    """Return the tables by package name."""
    return {
        "aws": Table(aws.derive, aws.invoke),
        "azure-native": Table(azure.derive, azure.invoke),
        "gcp": Table(gcp.derive, gcp.invoke),
        "ibm": Table(ibm.derive, ibm.invoke),
        "kubernetes": Table(kubernetes.derive, kubernetes.invoke),
        "github": Table(github.derive, github.invoke),
    }


class Outputs:
    """Derives outputs with one table per package."""

    def __init__(self, extra: Mapping[str, Table] | None = None) -> None:
        """Use the built-in tables, and ``extra`` ones over them."""
        self._tables = {**tables(), **(extra or {})}
        self._generic = Table(generic.derive, generic.invoke)

    def derive(self, subject: Subject) -> Derived:
        """Return the id and the computed outputs of a resource.

        Args:
            subject: The resource, with secrets hidden.

        Returns:
            The id, never empty, and the outputs that are not inputs.
        """
        if subject.type.startswith("pulumi:"):
            return generic.derive(subject)
        return self._table(subject.type).derive(subject)

    def invoke(
        self, token: str, args: Mapping[str, Any], provider: Mapping[str, Any]
    ) -> Any:
        """Return the result of a provider function, or None when unknowable."""
        return self._table(token).invoke(token, args, provider)

    def _table(self, token: str) -> Table:
        return self._tables.get(token.partition(":")[0], self._generic)
