"""Google networks: closed doors, watched traffic."""

from __future__ import annotations

from collections.abc import Iterator

from runfleet.spec.findings import Severity
from runfleet_policies.rule import Breach, Context, Rule
from runfleet_policies.rules.aws_network import is_world
from runfleet_policies.view import ResourceView

FIREWALL = "gcp:compute/firewall:Firewall"
SUBNETWORK = "gcp:compute/subnetwork:Subnetwork"
NETWORK = "gcp:compute/network:Network"

_SOURCES = ("sourceRanges", "sourceTags", "sourceServiceAccounts")
_NO_MACHINES = (
    "REGIONAL_MANAGED_PROXY",
    "GLOBAL_MANAGED_PROXY",
    "INTERNAL_HTTPS_LOAD_BALANCER",
    "PRIVATE_SERVICE_CONNECT",
    "PRIVATE_NAT",
)
"""Purposes of subnetworks that hold no machines; they take no flow logs."""


def rules() -> tuple[Rule, ...]:
    """Return the rules about Google networks."""
    return (
        Rule(
            id="R-GCP-10",
            severity=Severity.HIGH,
            title="Nothing lets the internet connect in",
            rationale="Runners open connections, they take none.",
            fix="remove the firewall rule; use IAP TCP forwarding instead of SSH",
            anchors=("S33", "CIS 2.2.4"),
            types=(FIREWALL,),
            resource=_open_ingress,
        ),
        Rule(
            id="R-GCP-11",
            severity=Severity.MEDIUM,
            title="Subnetworks log their traffic and reach Google inside",
            rationale="Without flow logs nobody can say afterwards where data went; "
            "without private access traffic to Google's APIs needs a way out.",
            fix="set logConfig and privateIpGoogleAccess, and "
            "autoCreateSubnetworks to false",
            anchors=("S21", "S34", "S35", "CIS 2.2.6"),
            types=(SUBNETWORK, NETWORK),
            resource=_watched,
        ),
    )


def _open_ingress(rule: ResourceView, context: Context) -> Iterator[Breach]:
    inward = rule.text("direction", default="INGRESS") == "INGRESS"
    if not inward or rule.truth("disabled") or not rule.items("allows"):
        return
    if not any(rule.items(name) for name in _SOURCES):
        yield Breach("names no source, which means 0.0.0.0/0", "sourceRanges")
    for found in rule.texts("sourceRanges"):
        if is_world(found):
            yield Breach(f"lets {found} in", "sourceRanges")


def _watched(resource: ResourceView, context: Context) -> Iterator[Breach]:
    if resource.type == NETWORK:
        if resource.truth("autoCreateSubnetworks") is not False:
            why = "Google makes its subnetworks, without flow logs"
            yield Breach(why, "autoCreateSubnetworks")
        return
    if resource.text("purpose") in _NO_MACHINES:
        return
    logs = resource.get("logConfig")
    if logs is None:
        yield Breach("flow logs are off", "logConfig")
    elif resource.number("logConfig", "flowSampling") == 0:
        yield Breach("flow logs sample nothing", "logConfig.flowSampling")
    elif resource.text("logConfig", "filterExpr").strip().lower() == "false":
        yield Breach("flow logs keep nothing", "logConfig.filterExpr")
    if not resource.truth("privateIpGoogleAccess"):
        why = "Google's APIs are reached from outside"
        yield Breach(why, "privateIpGoogleAccess")
