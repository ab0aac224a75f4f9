"""All rules, by family, in one place.

Rules are listed here and nowhere registered by import, so that what applies can be
read in one file and importing a module changes nothing.
"""

from __future__ import annotations

from functools import lru_cache

from runfleet_policies.rule import Pack, Rule
from runfleet_policies.rules import (
    arc,
    aws_cluster,
    aws_compute,
    aws_iam,
    aws_network,
    aws_registry,
    aws_trust,
    azure_cluster,
    azure_compute,
    azure_iam,
    azure_network,
    classes,
    cost,
    ephemeral,
    fleet,
    gcp_cluster,
    gcp_compute,
    gcp_iam,
    gcp_network,
    github,
    ibm_compute,
    ibm_iam,
    ibm_network,
    kubernetes,
    kubernetes_network,
    labelling,
    waiving,
)

FAMILIES = (
    aws_network,
    aws_cluster,
    aws_compute,
    aws_iam,
    aws_trust,
    aws_registry,
    gcp_network,
    gcp_cluster,
    gcp_compute,
    gcp_iam,
    azure_network,
    azure_cluster,
    azure_compute,
    azure_iam,
    ibm_network,
    ibm_compute,
    ibm_iam,
    kubernetes,
    kubernetes_network,
    arc,
    github,
    classes,
    ephemeral,
    labelling,
    cost,
    fleet,
    waiving,
)
"""The modules that hold rules."""


@lru_cache(maxsize=1)
def all_rules() -> tuple[Rule, ...]:
    """Return every rule, sorted by id."""
    found = [rule for family in FAMILIES for rule in family.rules()]
    ids = [rule.id for rule in found]
    doubled = sorted({name for name in ids if ids.count(name) > 1})
    if doubled:
        raise ValueError(f"rule ids stand twice: {', '.join(doubled)}")
    return tuple(sorted(found, key=lambda rule: rule.id))


def fleet_rules() -> tuple[Rule, ...]:
    """Return the rules that judge fleet files."""
    return tuple(rule for rule in all_rules() if rule.subject == "fleet")


def stack_rules() -> tuple[Rule, ...]:
    """Return the rules that judge the resources of a stack."""
    return tuple(rule for rule in all_rules() if rule.subject in ("resource", "stack"))


def rules_of(pack: Pack) -> tuple[Rule, ...]:
    """Return the rules of a pack that judge the resources of a stack."""
    return tuple(rule for rule in stack_rules() if rule.pack is pack)


def rule_named(name: str) -> Rule | None:
    """Return the rule with an id, whatever its case."""
    wanted = name.upper()
    return next((rule for rule in all_rules() if rule.id == wanted), None)
