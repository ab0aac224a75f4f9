"""The settings that only AWS cells have: ``cells.<name>.settings`` of the fleet file.

The fleet file lets every cloud keep settings of its own there; each cloud checks
its own, so that a misspelt key is an error and not silence.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, ValidationError

from runfleet.errors import InputError, Problem
from runfleet.spec.base import Spec, Syntax
from runfleet.spec.cells import Cell

KeyArn = Annotated[
    str,
    Syntax(
        r"arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/[A-Za-z0-9-]+", "a key's ARN", 256
    ),
]


class StartupTaint(Spec):
    """A taint that a node carries until something on it is ready and removes it."""

    key: str = Field(description="Taint key.")
    value: str = Field(default="true", description="Taint value.")
    effect: Literal["NoSchedule", "NoExecute"] = Field(
        default="NoSchedule", description="Kubernetes effect."
    )


class AwsSettings(Spec):
    """Settings of one AWS cell."""

    node_subnets: list[str] = Field(
        default_factory=list[str],
        description="Private subnets for nodes, when the network is adopted.",
    )
    log_retention_days: int = Field(
        default=365, ge=1, description="How long flow and cluster logs are kept."
    )
    app_secret_keys: list[KeyArn] = Field(
        default_factory=list[str],
        description="ARNs of the KMS keys that encrypt the GitHub Apps' secrets, where "
        "they have keys of their own.",
    )
    karpenter_replicas: int = Field(
        default=2, ge=2, le=10, description="Copies of the autoscaler."
    )
    startup_taints: list[StartupTaint] = Field(
        default_factory=list[StartupTaint],
        description="Taints of new nodes; something on the node must remove each.",
    )
    pool_limits: dict[str, dict[str, str]] = Field(
        default_factory=dict[str, dict[str, str]],
        description="Most resources by pool, such as {g5-large: {cpu: '1920'}}, for "
        "each of its node pools.",
    )

    @classmethod
    def of(cls, cell: Cell) -> AwsSettings:
        """Read the settings of a cell.

        Raises:
            InputError: A setting is unknown or has a wrong value.
        """
        try:
            return cls.model_validate(cell.settings)
        except ValidationError as error:
            raise InputError(
                [
                    Problem(
                        file="fleet file",
                        line=0,
                        path=".".join(
                            ["cells", cell.name, "settings", *map(str, found["loc"])]
                        ),
                        message=found["msg"],
                        found=repr(found["input"]),
                        allowed=", ".join(sorted(cls.model_fields)),
                    )
                    for found in error.errors()
                ]
            ) from None
