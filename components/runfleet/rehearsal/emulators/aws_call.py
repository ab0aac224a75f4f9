"""The tools with which one AWS resource is created in moto.

boto3 is typed by its service models at run time only, so clients are ``Any`` here
and in the modules that use :class:`Call`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from runfleet.rehearsal.emulators.base import Creation


class Foreign(Exception):
    """A resource refers to something that this stack does not make."""


class Call:
    """One resource on its way into moto.

    Attributes:
        inputs: Its inputs under their wire names, references still derived.
        account: The account it belongs to.
        region: The region it belongs to.
        kind: Last part of its type token, such as ``Vpc``.
    """

    def __init__(
        self,
        creation: Creation,
        account: str,
        region: str,
        real: dict[str, str],
        client: Callable[[str, str, str], Any],
    ) -> None:
        """Keep the resource, and the table from derived ids to moto's."""
        self._creation = creation
        self._real = real
        self._client = client
        self.inputs = creation.inputs
        self.outputs = creation.outputs
        self.account = account
        self.region = region
        self.kind = creation.type.rpartition(":")[2]

    def client(self, service: str) -> Any:
        """Return the boto3 client of a service in the resource's place."""
        return self._client(service, self.account, self.region)

    def learn(self, id_: str, key: str = "id") -> None:
        """Note the id that moto gave for a derived id or output."""
        derived = self._creation.id if key == "id" else self.outputs.get(key)
        if isinstance(derived, str):
            self._real[derived] = id_

    def know(self) -> None:
        """Note that the derived id is also moto's (things known by name)."""
        self._real[self._creation.id] = self._creation.id
        arn = self.outputs.get("arn")
        if isinstance(arn, str):
            self._real.setdefault(arn, arn)

    def text(self, key: str, default: str = "") -> str:
        """Return a string of outputs (inputs included), or ``default``."""
        value = self.outputs.get(key)
        return value if isinstance(value, str) and value else default

    def flag(self, key: str) -> bool:
        """Return whether an input is true."""
        return self.inputs.get(key) is True

    def made(self, key: str) -> str:
        """Return moto's id for the reference in ``key``.

        Raises:
            Foreign: This stack did not make what it refers to.
        """
        return self.made_value(self.inputs.get(key))

    def made_value(self, value: Any) -> str:
        """Return moto's id for a reference."""
        if isinstance(value, str) and value in self._real:
            return self._real[value]
        raise Foreign(f"refers to {value}, which this stack does not make")

    def made_list(self, key: str) -> list[str]:
        """Return moto's ids for a list of references."""
        return [self.made_value(value) for value in self.items(key)]

    def items(self, key: str) -> list[Any]:
        """Return a list input, empty when absent."""
        value = self.inputs.get(key)
        return cast("list[Any]", value) if isinstance(value, list) else []

    def block(self, key: str) -> dict[str, Any]:
        """Return an object input, empty when absent."""
        value = self.inputs.get(key)
        return cast("dict[str, Any]", value) if isinstance(value, dict) else {}

    def translate(self, value: Any) -> Any:
        """Return ``value`` with every derived id, at any depth, as moto's."""
        if isinstance(value, str):
            return self._real.get(value, value)
        if isinstance(value, dict):
            items = cast("dict[str, Any]", value)
            return {key: self.translate(item) for key, item in items.items()}
        if isinstance(value, list):
            return [self.translate(item) for item in cast("list[Any]", value)]
        return value

    def take(self, *names: str, **renamed: str) -> dict[str, Any]:
        """Return the inputs that are set, as boto3 arguments.

        Args:
            names: Inputs whose argument is the same name with a capital.
            renamed: Argument name to input name, where they differ.
        """
        wanted = {capital(name): name for name in names} | renamed
        return {
            argument: self.translate(self.inputs[name])
            for argument, name in wanted.items()
            if self.inputs.get(name) is not None
        }

    def document(self, key: str) -> str:
        """Return a policy document as text; programs may give it as an object."""
        value = self.inputs.get(key)
        return value if isinstance(value, str) else json.dumps(value)

    def tags(self) -> list[dict[str, str]]:
        """Return the tags as ``Key`` and ``Value``."""
        return pairs(self.block("tags"))


def capital(name: str) -> str:
    """Return a wire name as a boto3 argument: ``cidrBlock`` is ``CidrBlock``."""
    return name[:1].upper() + name[1:]


def pascal(value: Any) -> Any:
    """Return a value with all keys, at any depth, capitalised."""
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value)
        return {capital(key): pascal(item) for key, item in items.items()}
    if isinstance(value, list):
        return [pascal(item) for item in cast("list[Any]", value)]
    return value


def pairs(tags: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return tags as ``Key`` and ``Value``."""
    return [{"Key": key, "Value": str(value)} for key, value in tags.items()]


def as_flag(value: Any) -> Any:
    """Return the texts ``true`` and ``false`` as booleans, other values as they are."""
    return {"true": True, "false": False}.get(value, value) if value else value


def without_empty(
    values: Mapping[str, Any], keep: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the members that hold something."""
    kept = set(keep)
    return {k: v for k, v in values.items() if k in kept or v not in (None, "", [], {})}
