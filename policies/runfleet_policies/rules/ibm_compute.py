"""IBM Cloud machines: metadata and disks, in instances, templates and worker pools.

The metadata service is off unless it is switched on (``metadataService.enabled``);
when it is on its default protocol is ``http``.
"""

from __future__ import annotations

from collections.abc import Iterator

from runfleet.spec.findings import Severity
from runfleet_policies.rule import Breach, Context, Rule
from runfleet_policies.rules.ibm_network import CLUSTER
from runfleet_policies.values import spell, stands
from runfleet_policies.view import ResourceView

INSTANCE = "ibm:index/isInstance:IsInstance"
TEMPLATE = "ibm:index/isInstanceTemplate:IsInstanceTemplate"
VOLUME = "ibm:index/isVolume:IsVolume"
WORKER_POOL = "ibm:index/containerVpcWorkerPool:ContainerVpcWorkerPool"


def rules() -> tuple[Rule, ...]:
    """Return the rules about IBM Cloud machines."""
    return (
        Rule(
            id="R-IBM-04",
            severity=Severity.HIGH,
            title="The metadata service is off, or encrypted and out of reach of pods",
            rationale="The metadata service gives tokens of the machine's trusted "
            "profile; a container is one hop further away than its machine.",
            fix="leave metadataService off, or set protocol https and "
            "responseHopLimit 1",
            anchors=("S15", "S30", "S04"),
            types=(INSTANCE, TEMPLATE),
            resource=_metadata,
        ),
        Rule(
            id="R-IBM-09",
            severity=Severity.MEDIUM,
            title="Disks are encrypted with a key of our own",
            rationale="Disks hold checkouts and caches; a key of our own makes every "
            "use of it visible and revocable.",
            fix="name the CRN of a Key Protect key on boot and data volumes "
            "(worker pools: kmsInstanceId and crk)",
            anchors=("S09", "S18", "S36"),
            types=(INSTANCE, TEMPLATE, VOLUME, WORKER_POOL, CLUSTER),
            resource=_disks,
        ),
    )


def _metadata(machine: ResourceView, context: Context) -> Iterator[Breach]:
    place = "metadataService"
    on = machine.truth(place, "enabled")
    if on is None:
        on = machine.truth("metadataServiceEnabled")
    if not on:
        return
    protocol = machine.text(place, "protocol", default="http")
    if protocol != "https":
        yield Breach(f"the protocol is {protocol}", f"{place}.protocol")
    hops = machine.number(place, "responseHopLimit")
    if hops is not None and hops != 1:
        yield Breach(f"the hop limit is {hops:g}", f"{place}.responseHopLimit")


def _disks(resource: ResourceView, context: Context) -> Iterator[Breach]:
    kind = resource.type.rpartition(":")[2]
    if kind == "IsVolume":
        if not stands(resource.inputs, "encryptionKey"):
            yield Breach("has IBM's key", "encryptionKey")
        return
    if kind in ("ContainerVpcWorkerPool", "ContainerVpcCluster"):
        for name in ("kmsInstanceId", "crk"):
            if not stands(resource.inputs, name):
                yield Breach("workers' disks have IBM's key", name)
                return
        return
    if not stands(resource.inputs, "bootVolume", "encryption"):
        yield Breach("the boot volume has IBM's key", "bootVolume.encryption")
    for index, _ in enumerate(resource.items("volumePrototypes")):
        path = ("volumePrototypes", index, "volumeEncryptionKey")
        if not stands(resource.inputs, *path):
            yield Breach("a data volume has IBM's key", spell(path))
    for index, _ in enumerate(resource.items("volumeAttachments")):
        path = ("volumeAttachments", index, "volumePrototype")
        if not stands(resource.inputs, *path):
            continue
        if not stands(resource.inputs, *path, "encryptionKey"):
            yield Breach("a data volume has IBM's key", spell(path))
