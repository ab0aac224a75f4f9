"""Runners live for one job: no machine and no deployment stands for a class.

ARC's scale sets make an ephemeral runner for each job. What would break that is a
machine of its own that carries a class's label, or a runner of ARC's older, legacy
controller (``actions.summerwind.dev``), whose ``ephemeral`` can be switched off.
"""

from __future__ import annotations

from collections.abc import Iterator

from runfleet.spec.findings import Severity
from runfleet_policies.carriers import carrier
from runfleet_policies.rule import Breach, Context, Rule
from runfleet_policies.view import ResourceView

MACHINES = (
    "aws:ec2/instance:Instance",
    "aws:ec2/spotInstanceRequest:SpotInstanceRequest",
    "gcp:compute/instance:Instance",
    "azure-native:compute*:VirtualMachine",
    "ibm:index/isInstance:IsInstance",
)
LEGACY = "kubernetes:actions.summerwind.dev/*"


def rules() -> tuple[Rule, ...]:
    """Return the rule about the life of runners."""
    return (
        Rule(
            id="R-EPH-01",
            severity=Severity.HIGH,
            title="Runners exist for one job only",
            rationale="What one job leaves behind, the next one runs. A machine that "
            "stands for a class serves one job after the other.",
            fix="use a scale set; take the class's label off machines that are no "
            "runners",
            anchors=("S03", "S05", "S08", "S25", "CIS 2.2.1", "SLSA L3"),
            types=(*MACHINES, LEGACY),
            resource=_standing,
        ),
    )


def _standing(resource: ResourceView, context: Context) -> Iterator[Breach]:
    if resource.type.startswith("kubernetes:"):
        for path in (("spec", "template", "spec", "ephemeral"), ("spec", "ephemeral")):
            if resource.truth(*path) is False:
                why = "its runners take one job after the other"
                yield Breach(why, ".".join(path))
        return
    found = carrier(resource.type)
    if found is None:
        return
    if found.listed:
        tags = (tag.partition(":") for tag in resource.texts(*found.path))
        name = next((value for key, _, value in tags if key == "ci_runner_class"), "")
    else:
        name = resource.text(*found.path, "ci_runner_class")
    if name and name != "shared":
        yield Breach(f"a machine of its own stands for class {name}", found.place)
