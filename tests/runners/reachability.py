"""A small evaluator of NetworkPolicy egress, written from its documentation.

https://kubernetes.io/docs/concepts/services-networking/network-policies/: a pod that
some policy selects for egress may open only what one of these policies allows; a
rule allows what matches one of its peers and one of its ports; an ``ipBlock`` allows
its range without what ``except`` cuts out.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from typing import Any

Policy = Mapping[str, Any]


def egress_allowed(
    policies: Iterable[Policy], address: str, port: int, protocol: str = "TCP"
) -> bool:
    """Say whether any pod of the namespace may connect to an address."""
    selecting = [
        p["spec"] for p in policies
        if p["spec"]["podSelector"] == {} and "Egress" in p["spec"]["policyTypes"]
    ]  # fmt: skip
    if not selecting:
        return True
    return any(
        _port(rule, port, protocol)
        and ("to" not in rule or any(_holds(peer, address) for peer in rule["to"]))
        for spec in selecting
        for rule in spec.get("egress", [])
    )


def dns_allowed(policies: Iterable[Policy], protocol: str) -> bool:
    """Say whether pods of the namespace may ask the cluster's DNS."""
    wanted = {
        "namespaceSelector": {
            "matchLabels": {"kubernetes.io/metadata.name": "kube-system"}
        },
        "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
    }
    return any(
        wanted in rule["to"] and _port(rule, 53, protocol)
        for policy in policies
        for rule in policy["spec"]["egress"]
    )


def ingress_allowed(policies: Iterable[Policy]) -> bool:
    """Say whether anything may connect to a pod of the namespace."""
    selecting = [
        p["spec"] for p in policies
        if p["spec"]["podSelector"] == {} and "Ingress" in p["spec"]["policyTypes"]
    ]  # fmt: skip
    return not selecting or any(spec.get("ingress") for spec in selecting)


def _port(rule: Mapping[str, Any], port: int, protocol: str) -> bool:
    if "ports" not in rule:
        return True
    return any(
        int(p["port"]) == port and p.get("protocol", "TCP") == protocol
        for p in rule["ports"]
    )


def _holds(peer: Mapping[str, Any], address: str) -> bool:
    block = peer.get("ipBlock")
    if block is None:
        return False
    ip = ipaddress.ip_address(address)
    return ip in ipaddress.ip_network(block["cidr"]) and not any(
        ip in ipaddress.ip_network(cut) for cut in block.get("except", [])
    )
