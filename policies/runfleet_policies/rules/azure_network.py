"""Azure networks, registries and vaults: closed doors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from runfleet.spec.findings import Severity
from runfleet_policies.rule import Breach, Context, Rule
from runfleet_policies.rules.aws_network import is_world
from runfleet_policies.values import spell, text, texts
from runfleet_policies.view import ResourceView

GROUP = "azure-native:network*:NetworkSecurityGroup"
GROUP_RULE = "azure-native:network*:SecurityRule"
REGISTRY = "azure-native:containerregistry*:Registry"
VAULT = "azure-native:keyvault*:Vault"


def rules() -> tuple[Rule, ...]:
    """Return the rules about Azure networks, registries and vaults."""
    return (
        Rule(
            id="R-AZ-11",
            severity=Severity.HIGH,
            title="Nothing lets the internet connect in",
            rationale="Runners open connections, they take none.",
            fix="remove the rule; use Azure Bastion instead of SSH",
            anchors=("S33", "CIS 2.2.4"),
            types=(GROUP, GROUP_RULE),
            resource=_open_ingress,
        ),
        Rule(
            id="R-AZ-12",
            severity=Severity.MEDIUM,
            title="The registry is private and has no administrator's password",
            rationale="The administrator's password can replace every image and "
            "names nobody.",
            fix="set adminUserEnabled and anonymousPullEnabled to false, and "
            "publicNetworkAccess to Disabled",
            anchors=("S16", "S34"),
            types=(REGISTRY,),
            resource=_registry,
        ),
        Rule(
            id="R-AZ-13",
            severity=Severity.MEDIUM,
            title="The key vault is private and cannot be emptied",
            rationale="The vault holds the App's key: it answers from inside only, "
            "and what is deleted can be brought back.",
            fix="set publicNetworkAccess to disabled and enablePurgeProtection",
            anchors=("S15", "S18", "P03"),
            types=(VAULT,),
            resource=_vault,
        ),
    )


def _open_ingress(resource: ResourceView, context: Context) -> Iterator[Breach]:
    if resource.type.endswith(":SecurityRule"):
        yield from _open_rule(resource.inputs, ())
        return
    for index, _ in enumerate(resource.items("securityRules")):
        rule = resource.mapping("securityRules", index)
        yield from _open_rule(rule, ("securityRules", index))


def _open_rule(rule: Any, place: tuple[str | int, ...]) -> Iterator[Breach]:
    if text(rule, "direction") != "Inbound" or text(rule, "access") != "Allow":
        return
    sources = [text(rule, "sourceAddressPrefix"), *texts(rule, "sourceAddressPrefixes")]
    ports = [
        text(rule, "destinationPortRange"),
        *texts(rule, "destinationPortRanges"),
    ]
    spelled = ", ".join(port for port in ports if port) or "every port"
    for source in sources:
        if source.lower() in ("*", "internet", "any") or is_world(source):
            yield Breach(
                f"lets {source} in on {spelled}", spell(place) if place else ""
            )


def _registry(registry: ResourceView, context: Context) -> Iterator[Breach]:
    if registry.truth("adminUserEnabled"):
        yield Breach("the administrator's password works", "adminUserEnabled")
    if registry.truth("anonymousPullEnabled"):
        yield Breach("everybody may pull", "anonymousPullEnabled")
    if registry.text("publicNetworkAccess").lower() != "disabled":
        yield Breach("answers from the internet", "publicNetworkAccess")


def _vault(vault: ResourceView, context: Context) -> Iterator[Breach]:
    place = "properties"
    public = vault.text(place, "publicNetworkAccess").lower() != "disabled"
    refuses = vault.text(place, "networkAcls", "defaultAction") == "Deny"
    if public and not refuses:
        yield Breach("answers from the internet", f"{place}.publicNetworkAccess")
    if public and refuses:
        for index, _ in enumerate(vault.items(place, "networkAcls", "ipRules")):
            found = vault.text(place, "networkAcls", "ipRules", index, "value")
            if is_world(found):
                yield Breach(f"answers {found}", f"{place}.networkAcls.ipRules")
    if not vault.truth(place, "enablePurgeProtection"):
        why = "what is deleted can be purged"
        yield Breach(why, f"{place}.enablePurgeProtection")
    if vault.truth(place, "enableSoftDelete") is False:
        yield Breach("what is deleted is gone", f"{place}.enableSoftDelete")
