"""The base model of the fleet file and the checked text types it is made of."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
)
from pydantic_core import core_schema


class Spec(BaseModel):
    """Base of all models: unknown keys are errors, values do not change."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        populate_by_name=True,
        validate_default=False,
        allow_inf_nan=False,
    )


class Named(Spec):
    """An entry of a mapping that knows the key it stands under.

    Attributes:
        name: The key; filled in by the fleet, never written inside the entry.
    """

    name: str = Field(default="", exclude=True, json_schema_extra={"hidden": True})


@dataclass(frozen=True)
class Syntax:
    """The syntax and the length limit of a text type, given in ``Annotated``.

    Attributes:
        pattern: Regular expression that the whole text must match.
        what: What the text is, in words, for the error message.
        limit: The most characters allowed.
    """

    pattern: str
    what: str
    limit: int

    def check(self, value: str) -> str:
        """Return the text; raise ``ValueError`` with what is allowed."""
        if len(value) > self.limit:
            raise ValueError(
                f"{self.what} of at most {self.limit} characters "
                f"(this has {len(value)})"
            )
        if not re.fullmatch(self.pattern, value):
            raise ValueError(f"{self.what} matching {self.pattern}")
        return value

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Check the text after it is known to be one."""
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Describe syntax and limit for editors."""
        pattern = f"^(?:{self.pattern})$"
        return {**handler(schema), "pattern": pattern, "maxLength": self.limit}


def _version(value: object) -> object:
    if type(value) is not int:
        raise ValueError("1")
    return value


Version = Annotated[Literal[1], BeforeValidator(_version)]
"""Version of a file format: the number 1, not ``1.0`` and not ``true``."""

CellName = Annotated[str, Syntax(r"[a-z](-?[a-z0-9])*", "a cell name", 20)]
"""20 characters, no two dashes in a row: names of cloud resources start with it."""

PoolName = Annotated[str, Syntax(r"[a-z0-9](-?[a-z0-9])*", "a pool name", 40)]

RunnerLabel = Annotated[str, Syntax(r"[a-z0-9]([._-]?[a-z0-9])*", "a runner label", 45)]
"""Lower case; no two of ``.``, ``_`` and ``-`` in a row, so that encodings of it
are injective and ``--`` can separate it from other names."""

LabelValue = Annotated[
    str,
    Syntax(
        r"[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?", "a label value legal on every cloud", 63
    ),
]
LabelKey = Annotated[
    str,
    Syntax(r"[a-z]([a-z0-9_-]{0,29}[a-z0-9])?", "a label key legal on every cloud", 31),
]
KubernetesName = Annotated[
    str, Syntax(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", "a Kubernetes name", 63)
]
Repository = Annotated[
    str, Syntax(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+", "a repository as owner/name", 140)
]
