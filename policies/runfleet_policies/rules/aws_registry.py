"""AWS registries and keys: images that cannot change, keys that rotate."""

from __future__ import annotations

from collections.abc import Iterator

from runfleet.spec.findings import Severity
from runfleet_policies.rule import Breach, Context, Rule, guarded
from runfleet_policies.values import text
from runfleet_policies.view import ResourceView, StackView

REPOSITORY = "aws:ecr/repository:Repository"
REGISTRY_SCANNING = (
    "aws:ecr/registryScanningConfiguration:RegistryScanningConfiguration"
)
KEY = "aws:kms/key:Key"


def rules() -> tuple[Rule, ...]:
    """Return the rules about AWS registries and keys."""
    return (
        Rule(
            id="R-AWS-24",
            severity=Severity.MEDIUM,
            title="Image tags cannot change and images are scanned on push",
            rationale="A tag that can be moved lets one class hand another a "
            "different image under the same name.",
            fix="set imageTagMutability IMMUTABLE and scanOnPush true",
            anchors=("CIS 2.2.6", "SLSA L3", "S36"),
            stack=_repositories,
        ),
        Rule(
            id="R-AWS-26",
            severity=Severity.LOW,
            title="Keys rotate by themselves",
            rationale="Rotation limits how much one leaked key version opens.",
            fix="set enableKeyRotation to true",
            anchors=("S18",),
            types=(KEY,),
            resource=_rotation,
        ),
    )


def _repositories(stack: StackView, context: Context) -> Iterator[Breach]:
    registry = any(
        text(rule, "scanFrequency") in ("SCAN_ON_PUSH", "CONTINUOUS_SCAN")
        for setting in stack.of(REGISTRY_SCANNING)
        for rule in setting.items("rules")
    )
    for repository in stack.of(REPOSITORY):
        yield from guarded(_repository(repository, registry), repository.urn)


def _repository(repository: ResourceView, registry: bool) -> Iterator[Breach]:
    found = repository.text("imageTagMutability", default="MUTABLE")
    if found != "IMMUTABLE":
        why = f"imageTagMutability is {found}"
        yield Breach(why, "imageTagMutability", urn=repository.urn)
    scans = repository.truth("imageScanningConfiguration", "scanOnPush", default=False)
    if not (scans or registry):
        why = "images are not scanned on push"
        yield Breach(why, "imageScanningConfiguration", urn=repository.urn)


def _rotation(key: ResourceView, context: Context) -> Iterator[Breach]:
    usage = key.text("keyUsage", default="ENCRYPT_DECRYPT")
    spec = key.text("customerMasterKeySpec", default="SYMMETRIC_DEFAULT")
    if usage != "ENCRYPT_DECRYPT" or spec != "SYMMETRIC_DEFAULT":
        return
    if not key.truth("enableKeyRotation", default=False):
        yield Breach("enableKeyRotation is not true", "enableKeyRotation")
