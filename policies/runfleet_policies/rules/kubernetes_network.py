"""Kubernetes networks: nothing in, and out only where somebody said so.

NetworkPolicies add up: what any of them allows is allowed. So a namespace denies by
default only when one policy selects all its pods in a direction and allows nothing
in general, and every rule of every policy has to be looked at for what it opens.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from runfleet.spec.findings import Severity
from runfleet_policies.kube import NAMESPACE, runner_namespaces
from runfleet_policies.rule import Breach, Context, Parameter, Rule, guarded
from runfleet_policies.values import items, mapping, number, text, texts
from runfleet_policies.view import ResourceView, StackView

POLICY = "kubernetes:networking.k8s.io/v1:NetworkPolicy"

METADATA = ("169.254.169.254", "fd00:ec2::254")
"""Addresses of the instance metadata service (EC2 user guide)."""

PRIVATE = tuple(
    ipaddress.ip_network(found)
    for found in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")
)
"""Private ranges: RFC 1918 and, for IPv6, RFC 4193."""

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def rules() -> tuple[Rule, ...]:
    """Return the rule about NetworkPolicies."""
    return (
        Rule(
            id="R-K8S-02",
            severity=Severity.CRITICAL,
            title="Runner namespaces deny traffic by default and block metadata",
            rationale="A policy that selects a pod is not enough: only a policy for "
            "all pods in both directions denies what nobody listed, and any rule that "
            "reaches 169.254.169.254 gives the node's credentials away.",
            fix="add a NetworkPolicy for all pods with Ingress and Egress, and allow "
            "DNS and 443 with exceptions for metadata and private ranges",
            anchors=("S12", "S14", "S15", "CIS 2.2.4"),
            stack=_network_policies,
            parameters=(
                Parameter(
                    "ports", ["53", "443"], "Ports that may be opened to the world."
                ),
            ),
        ),
    )


def _network_policies(stack: StackView, context: Context) -> Iterator[Breach]:
    ports = {int(port) for port in context.strings("ports")}
    by_namespace: dict[str, list[ResourceView]] = {}
    for policy in stack.of(POLICY):
        by_namespace.setdefault(policy.namespace, []).append(policy)
    homes = {found.object_name: found.urn for found in stack.of(NAMESPACE)}
    for name in sorted(runner_namespaces(stack)):
        policies = by_namespace.get(name, [])
        urn = homes.get(name, "")
        yield from guarded(_denies_by_default(name, policies, urn), urn)
        for policy in policies:
            yield from guarded(_egress_rules(policy, ports), policy.urn)


def _denies_by_default(
    name: str, policies: list[ResourceView], urn: str
) -> Iterator[Breach]:
    covered: set[str] = set()
    for policy in policies:
        if not _selects_all(policy.mapping("spec", "podSelector")):
            continue
        kinds = policy.texts("spec", "policyTypes") or ["Ingress"]
        for kind in kinds:
            rules_of = policy.items("spec", kind.lower())
            if not any(rule == {} for rule in rules_of):
                covered.add(kind)
    for kind in ("Ingress", "Egress"):
        if kind not in covered:
            why = f"nothing denies {kind.lower()} by default in namespace {name}"
            yield Breach(why, urn=urn)


def _selects_all(selector: Mapping[str, Any]) -> bool:
    return not selector.get("matchLabels") and not selector.get("matchExpressions")


def _egress_rules(policy: ResourceView, ports: set[int]) -> Iterator[Breach]:
    for index, _ in enumerate(policy.items("spec", "egress")):
        place = f"spec.egress[{index}]"
        rule = policy.mapping("spec", "egress", index)
        peers = items(rule, "to")
        if not peers:
            opened = _open_ports(rule)
            why = f"lets {opened} out to everywhere, metadata included"
            yield Breach(why, place, urn=policy.urn)
            continue
        for number_, _ in enumerate(peers):
            block = mapping(rule, "to", number_, "ipBlock")
            if block:
                for why in _block_problems(block, rule, ports):
                    yield Breach(why, place, urn=policy.urn)


def _block_problems(
    block: Mapping[str, Any], rule: Mapping[str, Any], ports: set[int]
) -> Iterator[str]:
    try:
        cidr = ipaddress.ip_network(text(block, "cidr"), strict=False)
        excluded = [
            ipaddress.ip_network(found, strict=False)
            for found in texts(block, "except")
        ]
    except ValueError as error:
        yield f"holds no valid range: {error}"
        return
    merged = _merge(excluded, cidr.version)
    for address in METADATA:
        at = ipaddress.ip_address(address)
        if at in cidr and not any(at in found for found in excluded):
            yield f"{cidr} reaches the metadata service {address}"
    for private in PRIVATE:
        if private.version != cidr.version or cidr.prefixlen > private.prefixlen:
            continue
        if _within(private, cidr) and not any(_within(private, e) for e in merged):
            yield f"{cidr} reaches all of the private range {private}"
    if cidr.prefixlen <= 3:
        opened = _port_numbers(rule)
        if opened is None or not opened <= ports:
            listed = ", ".join(str(port) for port in sorted(ports))
            yield f"opens {_open_ports(rule)} to {cidr}; allowed are {listed}"


def _within(inner: _Network, outer: _Network) -> bool:
    if isinstance(inner, ipaddress.IPv4Network):
        return isinstance(outer, ipaddress.IPv4Network) and inner.subnet_of(outer)
    return isinstance(outer, ipaddress.IPv6Network) and inner.subnet_of(outer)


def _merge(found: Iterable[_Network], version: int) -> list[_Network]:
    if version == 4:
        return list(
            ipaddress.collapse_addresses(
                [n for n in found if isinstance(n, ipaddress.IPv4Network)]
            )
        )
    return list(
        ipaddress.collapse_addresses(
            [n for n in found if isinstance(n, ipaddress.IPv6Network)]
        )
    )


def _port_numbers(rule: Mapping[str, Any]) -> set[int] | None:
    """Return the ports that an egress rule opens; ``None`` when that is all."""
    found: set[int] = set()
    listed = items(rule, "ports")
    for port in listed:
        low = number(port, "port")
        if low is None:
            return None
        high = number(port, "endPort") or low
        found |= set(range(int(low), min(int(high), int(low) + 1000) + 1))
    return found if listed else None


def _open_ports(rule: Mapping[str, Any]) -> str:
    found = _port_numbers(rule)
    if found is None:
        return "all ports"
    shown = ", ".join(str(port) for port in sorted(found)[:5])
    return f"port {shown}" + (" and more" if len(found) > 5 else "")
