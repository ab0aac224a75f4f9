"""Runner classes: what jobs ask for by label."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import (
    Field,
    GetJsonSchemaHandler,
    StrictBool,
    StrictFloat,
    StrictInt,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from pydantic_core import CoreSchema

from runfleet.spec.base import LabelValue, Named, PoolName, RunnerLabel, Spec
from runfleet.spec.people import Contact
from runfleet.spec.pools import Pool, PoolMachine, Toleration
from runfleet.spec.roles import Grant, Role, Trigger, Trust, matrix, parse_grant
from runfleet.spec.units import Duration, Percent, Range, Size


class PlacementMode(StrEnum):
    """Who decides where a class runs.

    ``auto``: placement chooses; ``external``: outside this code, by its contact.
    """

    AUTO = "auto"
    EXTERNAL = "external"


class Accelerator(Spec):
    """The accelerators that one job gets."""

    model: LabelValue = Field(description="Model in lower case, such as a100.")
    count: StrictFloat = Field(
        default=1, gt=0, le=64, description="Devices per job; below 1 for a share."
    )
    memory: Size | None = Field(
        default=None, description="Least memory of each device."
    )
    vendor: LabelValue = Field(default="nvidia", description="Who makes it.")
    partition: str | None = Field(
        default=None, description="Partition mode, such as dpx, where it has one."
    )

    @field_validator("count")
    @classmethod
    def _whole(cls, value: float) -> float:
        if value > 1 and not value.is_integer():
            raise ValueError("a whole number, or one below 1 for a share of a device")
        return value

    @property
    def resource(self) -> str:
        """The Kubernetes extended resource that the device plugin advertises."""
        return {
            "nvidia": "nvidia.com/gpu",
            "amd": "amd.com/gpu",
            "intel": "gpu.intel.com/xe",
            "habana": "habana.ai/gaudi",
            "google": "google.com/tpu",
            "aws": "aws.amazon.com/neuron",
        }.get(self.vendor, f"{self.vendor}.com/accelerator")


class Hardware(Spec):
    """What one job gets, by need; the machine that gives it is placement's choice."""

    arch: Literal["amd64", "arm64", "s390x", "ppc64le"] = Field(
        description="CPU architecture."
    )
    os: Literal["linux", "windows", "macos"] = Field(
        default="linux", description="Operating system."
    )
    vcpu: StrictFloat = Field(gt=0, le=1024, description="Virtual CPUs.")
    memory: Size = Field(description="Memory.")
    disk: Size = Field(default=Size.gib_of(100), description="Ephemeral disk.")
    features: list[str] = Field(
        default_factory=list[str],
        description="Instruction-set features that the CPU must have, such as amx.",
    )
    accelerator: Accelerator | None = Field(
        default=None, description="Accelerators, if any."
    )
    whole_node: StrictBool = Field(
        default=False, description="Whether the job gets a node to itself."
    )
    machine: str | None = Field(
        default=None, description="Pin: exactly this machine (instance type)."
    )


class Scale(Spec):
    """How many runners of a class there may be, in each cell.

    Written ``0..150`` in short, or with its parts when more is to say.
    """

    min: StrictInt = Field(default=0, ge=0, description="Runners kept ready.")
    max: StrictInt | None = Field(
        default=None, ge=0, description="Most runners; without one it is unbounded."
    )
    burst: StrictInt | None = Field(
        default=None,
        ge=0,
        description="Most runners that may start beyond the measured queue.",
    )
    fallback: StrictInt | None = Field(
        default=None,
        ge=0,
        description="Capacity to advertise while the queue cannot be measured.",
    )
    warm: StrictInt = Field(default=0, ge=0, description="Placeholders kept scheduled.")
    derived: str | None = Field(
        default=None,
        description="How `max` was derived, when the source left it open.",
    )

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: object) -> object:
        if isinstance(value, str):
            parsed = Range.parse(value)
            return {"min": parsed.low, "max": parsed.high}
        if not isinstance(value, (dict, cls)):
            raise ValueError("a range such as 0..150, or a mapping with min and max")
        return value  # type: ignore[reportUnknownVariableType]

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Offer the short form beside the mapping."""
        short = {
            "type": "string",
            "pattern": r"^[0-9]{1,9} *\.\. *([0-9]{1,9})?$",
            "examples": ["0..150"],
        }
        return {"anyOf": [short, handler.resolve_ref_schema(handler(schema))]}

    @model_validator(mode="after")
    def _ordered(self) -> Scale:
        if self.max is not None and self.max < self.min:
            raise ValueError("a `max` that is not below `min`")
        return self


class Slo(Spec):
    """The service levels that a class promises."""

    queue: Duration | None = Field(
        default=None, description="95 of 100 jobs start within this time."
    )
    availability: Percent | None = Field(
        default=None, description="Share of time in which jobs can start."
    )
    infra_failures: Percent | None = Field(
        default=None, description="Most jobs that may fail by the machines' fault."
    )
    response: Duration | None = Field(
        default=None, description="Time to the first answer of the people behind it."
    )


GrantsField = Annotated[
    Literal["default", "none"] | list[str],
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": ["default", "none"]},
                {
                    "type": "array",
                    "items": {
                        "type": "string",
                        "enum": sorted({g.text for g in matrix(Role.RELEASER)}),
                    },
                },
            ]
        }
    ),
]


class RunnerClass(Named):
    """A kind of runner that jobs ask for by label: hardware, role and scale."""

    role: Role = Field(description="What its jobs may touch (RFC-0049).")
    trust: Trust = Field(description="What code may run on it.")
    hardware: Hardware = Field(description="What one job gets.")
    scale: Scale = Field(description="How many runners, in each cell.")
    triggers: list[Trigger] = Field(
        default_factory=lambda: [Trigger.ON_DEMAND],
        description="When jobs may ask for it.",
    )
    vendor: LabelValue = Field(description="Who makes the hardware that it tests.")
    funder: LabelValue | None = Field(
        default=None, description="Who pays, when not the cell's funder."
    )
    placement: PlacementMode = Field(
        default=PlacementMode.AUTO, description="auto, or external with a contact."
    )
    pool: PoolName | None = Field(
        default=None, description="Pool that serves it, on that pool's provider."
    )
    cells: list[str] | None = Field(
        default=None, description="Cells that serve it; default: all that can."
    )
    aliases: list[RunnerLabel] = Field(
        default_factory=list[str], description="Older labels that mean this class."
    )
    grants: GrantsField = Field(
        default="default",
        description="The role's matrix, `none`, or the part of it that is wanted.",
    )
    federation: str | None = Field(
        default=None,
        description="GitHub environment whose jobs get this class's central grants "
        "through OIDC, when it runs outside the stores' cloud.",
    )
    contact: Contact | None = Field(
        default=None, description="Who answers for it, when not the fleet's owner."
    )
    slo: Slo | None = Field(default=None, description="What it promises.")
    tenant: str | None = Field(
        default=None, description="Tenant that it belongs to, when not the fleet's."
    )
    environment: dict[str, str] = Field(
        default_factory=dict[str, str], description="Environment of its jobs."
    )
    source: str | None = Field(
        default=None, description="Where its definition was imported from."
    )

    @property
    def gpus(self) -> float:
        """Accelerators per job; 0 without."""
        return self.hardware.accelerator.count if self.hardware.accelerator else 0

    @property
    def release(self) -> bool:
        """Whether it runs release code, on nodes of its own."""
        return self.trust == Trust.RELEASE

    def granted(self) -> frozenset[Grant]:
        """Return its grants: the role's matrix, or the part that is asked for."""
        if self.grants == "default":
            return matrix(self.role)
        if self.grants == "none":
            return frozenset()
        found = (parse_grant(text, self.role) for text in self.grants)
        return frozenset(grant for grant in found if grant is not None)

    def tolerations(self, pool: Pool) -> list[Toleration]:
        """Return the tolerations that let its jobs onto its pool."""
        tolerations = [
            Toleration("node-fleet", "Equal", pool.name),
            Toleration("instance-type", "Exists"),
        ]
        if self.hardware.accelerator is not None:
            tolerations.append(Toleration("nvidia.com/gpu", "Equal", "true"))
        if self.release:
            tolerations.append(Toleration("ci_trust", "Equal", str(Trust.RELEASE)))
        return tolerations

    def node_selector(self, pool: Pool) -> dict[str, str]:
        """Return the node selector that keeps its jobs on its pool."""
        return {
            "workload-type": "github-runner",
            "node-fleet": pool.name,
            "ci_trust": str(Trust.RELEASE) if self.release else "shared",
        }

    def machines(self, pool: Pool) -> list[PoolMachine]:
        """Return the shapes of a pool that its jobs may run on, preferred first."""
        fitting = [m for m in pool.machines if m.release == self.release]
        return sorted(fitting, key=lambda m: -m.weight)


def extended_resources(runner_class: RunnerClass) -> dict[str, Any]:
    """Return the extended resources that one job requests, such as GPUs."""
    accelerator = runner_class.hardware.accelerator
    if accelerator is None:
        return {}
    return {accelerator.resource: str(int(accelerator.count) or 1)}
