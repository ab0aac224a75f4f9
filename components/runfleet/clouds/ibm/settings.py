"""The settings that only IBM Cloud cells have: ``cells.<name>.settings``.

The fleet file lets every cloud keep settings of its own there; each cloud checks its
own, so that a misspelt key is an error and not silence.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StrictInt, ValidationError

from runfleet.errors import InputError, Problem
from runfleet.spec.base import Spec, Syntax
from runfleet.spec.cells import Cell

Guid = Annotated[
    str, Syntax(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "a GUID", 36)
]
ResourceGroupId = Annotated[str, Syntax(r"[0-9a-f]{32}", "a resource group's id", 32)]
Issuer = Annotated[str, Syntax(r"https://[^\s?#]+", "an https:// address", 256)]


class SecretsManager(Spec):
    """Where the keys of the GitHub Apps are kept."""

    instance: Guid = Field(description="GUID of the Secrets Manager instance.")
    group: Guid = Field(description="Id of the secret group that holds nothing else.")
    group_name: str = Field(min_length=1, description="Name of that group.")


class IbmSettings(Spec):
    """Settings of one IBM Cloud cell."""

    resource_group: ResourceGroupId | None = Field(
        default=None, description="Resource group; default: the account's default one."
    )
    visibility: Literal["private", "public-and-private"] = Field(
        default="public-and-private",
        description="Endpoints that the deployment calls the services through.",
    )
    node_subnets: dict[str, str] = Field(
        default_factory=dict[str, str],
        description="Subnets for workers by zone, when the network is adopted.",
    )
    certificate_authority: str = Field(
        default="",
        description="Base64 certificate of the cluster's API; read once after the "
        "cluster is made, see docs/deploying-to-ibm.md.",
    )
    oidc_issuer: Issuer | None = Field(
        default=None,
        description="Issuer of the cluster's service account tokens, when its "
        "discovery document can be read from the internet.",
    )
    secrets_manager: SecretsManager | None = Field(
        default=None, description="Where the keys of the GitHub Apps are kept."
    )
    pool_zones: dict[str, list[str]] = Field(
        default_factory=dict[str, list[str]],
        description="Zones by pool; default: one, because each pool keeps one worker "
        "in each of its zones.",
    )
    max_nodes: dict[str, Annotated[StrictInt, Field(ge=1, le=1000)]] = Field(
        default_factory=dict[str, int],
        description="Most workers by pool, in each zone.",
    )

    @classmethod
    def of(cls, cell: Cell) -> IbmSettings:
        """Read the settings of a cell.

        Raises:
            InputError: A setting is unknown or has a wrong value.
        """
        try:
            found = cls.model_validate(cell.settings)
        except ValidationError as error:
            raise InputError(
                [
                    _problem(
                        cell,
                        *(str(part) for part in wrong["loc"]),
                        message=wrong["msg"],
                        found=repr(wrong["input"]),
                        allowed=", ".join(sorted(cls.model_fields)),
                    )
                    for wrong in error.errors()
                ]
            ) from None
        problems = [
            _problem(
                cell,
                "pool_zones",
                pool,
                message="is no zone of the cell",
                found=zone,
                allowed=", ".join(cell.zones),
            )
            for pool, zones in found.pool_zones.items()
            for zone in zones
            if zone not in cell.zones
        ]
        if problems:
            raise InputError(problems)
        return found


def _problem(cell: Cell, *path: str, message: str, found: str, allowed: str) -> Problem:
    where = ".".join(["cells", cell.name, "settings", *path])
    return Problem("fleet file", 0, where, message, found, allowed)
