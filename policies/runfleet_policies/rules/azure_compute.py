"""Azure machines: addresses, disks, boot, logins; also those made later.

Agent pools stand in a cluster or on their own, scale sets and virtual machines are
written for fleets without Kubernetes, and node auto-provisioning follows an
AKSNodeClass. Its fields are those of github.com/Azure/karpenter-provider-azure at
352646f5, where encryption at host and Trusted Launch are off unless they are set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from runfleet.spec.findings import Severity
from runfleet_policies.rule import Breach, Context, Rule
from runfleet_policies.rules.azure_cluster import CLUSTER
from runfleet_policies.values import (
    get,
    items,
    known,
    mapping,
    spell,
    stands,
    text,
    truth,
)
from runfleet_policies.view import ResourceView

AGENT_POOL = "azure-native:containerservice*:AgentPool"
SCALE_SET = "azure-native:compute*:VirtualMachineScaleSet"
MACHINE = "azure-native:compute*:VirtualMachine"
INTERFACE = "azure-native:network*:NetworkInterface"
NODE_CLASS = "kubernetes:karpenter.azure.com/*:AKSNodeClass"
MACHINES = (SCALE_SET, MACHINE)
POOLS = (AGENT_POOL, CLUSTER)


def rules() -> tuple[Rule, ...]:
    """Return the rules about Azure machines."""
    return (
        Rule(
            id="R-AZ-05",
            severity=Severity.HIGH,
            title="Nodes have no public address",
            rationale="A machine that runs strangers' code and can be reached from "
            "the internet is a place to persist on and to pivot from.",
            fix="set enableNodePublicIP to false; use a NAT gateway",
            anchors=("S33", "S34", "CIS AKS"),
            types=(*POOLS, *MACHINES, INTERFACE),
            resource=_public_address,
        ),
        Rule(
            id="R-AZ-06",
            severity=Severity.MEDIUM,
            title="Disks are encrypted at the host and gone with the machine",
            rationale="Encryption at host covers the temporary disk and the cache, "
            "which hold checkouts; an ephemeral system disk keeps nothing of a job.",
            fix="set enableEncryptionAtHost, and osDiskType Ephemeral",
            anchors=("S09", "S05", "S36"),
            types=(*POOLS, *MACHINES, NODE_CLASS),
            resource=_disks,
        ),
        Rule(
            id="R-AZ-07",
            severity=Severity.MEDIUM,
            title="Machines boot signed software only and can prove it",
            rationale="Trusted Launch keeps a job that became root from staying "
            "across a reboot.",
            fix="set securityProfile with secure boot and vTPM (GPU: signed drivers)",
            anchors=("S10", "S36"),
            types=(*POOLS, *MACHINES, NODE_CLASS),
            resource=_trusted_launch,
        ),
        Rule(
            id="R-AZ-08",
            severity=Severity.HIGH,
            title="Nobody logs in with a password",
            rationale="A password is guessed, shared and kept in the state.",
            fix="set linuxConfiguration.disablePasswordAuthentication, "
            "and no adminPassword",
            anchors=("S16", "S33", "S36"),
            types=MACHINES,
            resource=_passwords,
        ),
    )


@dataclass(frozen=True)
class _Pool:
    place: tuple[str | int, ...]
    settings: Mapping[str, Any]

    def breach(self, why: str, *path: str) -> Breach:
        return Breach(why, spell((*self.place, *path)))


def _pools(resource: ResourceView) -> Iterator[_Pool]:
    """Yield the pools of a cluster, or the pool that the resource is."""
    if resource.type.endswith(":AgentPool"):
        yield _Pool((), resource.inputs)
    elif resource.type.endswith(":ManagedCluster"):
        for index, _ in enumerate(resource.items("agentPoolProfiles")):
            found = resource.mapping("agentPoolProfiles", index)
            yield _Pool(("agentPoolProfiles", index), found)


def _machine(resource: ResourceView) -> _Pool | None:
    """Return the profile of a scale set's machines, or the machine itself."""
    if resource.type.endswith(":VirtualMachineScaleSet"):
        place = ("virtualMachineProfile",)
        return _Pool(place, resource.mapping(*place))
    if resource.type.endswith(":VirtualMachine"):
        return _Pool((), resource.inputs)
    return None


def _public_address(resource: ResourceView, context: Context) -> Iterator[Breach]:
    for pool in _pools(resource):
        if truth(pool.settings, "enableNodePublicIP"):
            yield pool.breach("nodes have public addresses", "enableNodePublicIP")
    if resource.type.endswith(":NetworkInterface"):
        yield from _addresses(resource.inputs, (), "publicIPAddress")
    machine = _machine(resource)
    if machine is None:
        return
    path = ("networkProfile", "networkInterfaceConfigurations")
    for index, entry in enumerate(items(machine.settings, *path)):
        place = (*machine.place, *path, index)
        yield from _addresses(known(entry), place, "publicIPAddressConfiguration")


def _addresses(
    interface: Any, place: tuple[str | int, ...], name: str
) -> Iterator[Breach]:
    for index, _ in enumerate(items(interface, "ipConfigurations")):
        path = ("ipConfigurations", index, name)
        if stands(interface, *path):
            yield Breach("has a public address", spell((*place, *path)))


def _disks(resource: ResourceView, context: Context) -> Iterator[Breach]:
    if resource.type.endswith(":AKSNodeClass"):
        path = ("spec", "security", "encryptionAtHost")
        if not resource.truth(*path):
            yield Breach("encryption at host is off", spell(path))
        return
    for pool in _pools(resource):
        if not truth(pool.settings, "enableEncryptionAtHost"):
            yield pool.breach("encryption at host is off", "enableEncryptionAtHost")
        if text(pool.settings, "osDiskType") == "Managed":
            yield pool.breach("the system disk outlives the machine", "osDiskType")
    machine = _machine(resource)
    if machine is None:
        return
    if not truth(machine.settings, "securityProfile", "encryptionAtHost"):
        why = "encryption at host is off"
        yield machine.breach(why, "securityProfile", "encryptionAtHost")
    path = ("storageProfile", "osDisk", "diffDiskSettings", "option")
    if text(machine.settings, *path) != "Local":
        yield machine.breach("the system disk outlives the machine", *path)


def _trusted_launch(resource: ResourceView, context: Context) -> Iterator[Breach]:
    if resource.type.endswith(":AKSNodeClass"):
        path = ("spec", "security", "trustedLaunch")
        yield from _boot(resource.mapping(*path), path, ("secureBoot", "vtpm"))
    for pool in _pools(resource):
        path = (*pool.place, "securityProfile")
        found = mapping(pool.settings, "securityProfile")
        yield from _boot(found, path, ("enableSecureBoot", "enableVTPM"))
    machine = _machine(resource)
    if machine is None:
        return
    kind = text(machine.settings, "securityProfile", "securityType")
    if kind not in ("TrustedLaunch", "ConfidentialVM"):
        why = f"securityType is {kind or 'not set'}"
        yield machine.breach(why, "securityProfile", "securityType")
        return
    path = (*machine.place, "securityProfile", "uefiSettings")
    found = mapping(machine.settings, "securityProfile", "uefiSettings")
    yield from _boot(found, path, ("secureBootEnabled", "vTpmEnabled"))


def _boot(
    settings: Mapping[str, Any], place: tuple[str | int, ...], names: tuple[str, ...]
) -> Iterator[Breach]:
    off = [name for name in names if not truth(settings, name)]
    if off:
        yield Breach(f"{' and '.join(off)} not set to true", spell(place))


def _passwords(resource: ResourceView, context: Context) -> Iterator[Breach]:
    machine = _machine(resource)
    if machine is None:
        return
    profile = get(machine.settings, "osProfile")
    if profile is None:
        return
    if stands(profile, "adminPassword"):
        yield machine.breach("an administrator's password is set", "osProfile")
    elif get(profile, "windowsConfiguration") is None and not truth(
        profile, "linuxConfiguration", "disablePasswordAuthentication"
    ):
        why = "logging in with a password is allowed"
        yield machine.breach(why, "osProfile", "linuxConfiguration")
