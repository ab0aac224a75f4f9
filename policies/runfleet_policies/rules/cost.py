"""Cost: budgets that watch each funder, capacity that is used and not left on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from runfleet.spec.classes import PlacementMode
from runfleet.spec.findings import Severity
from runfleet.spec.pools import Capacity
from runfleet_policies.carriers import carrier
from runfleet_policies.rule import Breach, Context, Pack, Parameter, Rule, guarded
from runfleet_policies.rules.azure_compute import AGENT_POOL
from runfleet_policies.rules.gcp_cluster import COMPUTE_CLASS
from runfleet_policies.rules.gcp_cluster import NODE_POOL as GKE_POOL
from runfleet_policies.values import (
    CannotTell,
    items,
    mapping,
    spell,
    text,
    texts,
)
from runfleet_policies.view import FleetView, ResourceView, StackView

BUDGET = "aws:budgets/budget:Budget"
GCP_BUDGET = "gcp:billing/budget:Budget"
AZURE_BUDGETS = (
    "azure-native:consumption*:Budget",
    "azure-native:costmanagement*:Budget",
)
NODE_GROUP = "aws:eks/nodeGroup:NodeGroup"
FREE = (
    "aws:iam/",
    "aws:budgets/",
    "aws:costexplorer/",
    "gcp:iam/",
    "gcp:billing/",
    "azure-native:managedidentity",
    "azure-native:resources",
)
"""Services that cost nothing: what carries their labels is not paid for."""

TEMPLATES = (
    "kubernetes:karpenter.k8s.aws/*:EC2NodeClass",
    "kubernetes:karpenter.k8s.gcp/*:GCENodeClass",
    "kubernetes:karpenter.azure.com/*:AKSNodeClass",
)
"""What an autoscaler makes paid machines from."""

NODE_POOL = "kubernetes:karpenter.sh/*:NodePool"


_SPOT: Mapping[str, tuple[tuple[str, ...], tuple[str, ...], str]] = {
    "NodeGroup": (("tags",), ("capacityType",), "SPOT"),
    "AgentPool": (("tags",), ("scaleSetPriority",), "Spot"),
}
"""Where node groups keep their labels, and what makes them spot machines."""


def rules() -> tuple[Rule, ...]:
    """Return the rules about cost."""
    return (
        Rule(
            id="R-COST-01",
            severity=Severity.MEDIUM,
            title="Every funder that pays for machines has a budget with an alert",
            rationale="A donor learns of an overspend from us or from the bill.",
            fix="add a budget with a filter on the label ci_funder and an alert "
            "(IBM Cloud has no resource for one: name it in watched_elsewhere)",
            pack=Pack.COST,
            anchors=("O10", "O33"),
            stack=_budgets,
            parameters=(
                Parameter(
                    "watched_elsewhere",
                    list[str](),
                    "Funders whose budget another stack of the account has.",
                ),
            ),
        ),
        Rule(
            id="R-COST-02",
            severity=Severity.HIGH,
            title="Release classes run on machines that are not taken away",
            rationale="A release that loses its machine halfway leaves artifacts half "
            "published; the saving is small next to that.",
            fix="use on-demand or reserved capacity for release node pools",
            pack=Pack.COST,
            anchors=("S28", "O29"),
            types=(
                NODE_POOL,
                NODE_GROUP,
                GKE_POOL,
                COMPUTE_CLASS,
                AGENT_POOL,
            ),
            resource=_spot,
        ),
        Rule(
            id="R-COST-03",
            severity=Severity.MEDIUM,
            title="No accelerator is kept running without a job",
            rationale="One idle accelerator machine costs more in a month than a "
            "small class does in a year.",
            fix="set scale.min and scale.warm to 0, or record why not in a waiver",
            pack=Pack.COST,
            anchors=("S07",),
            fleet=_left_on,
            parameters=(
                Parameter("most_idle", 0, "Accelerator runners that may be idle."),
            ),
        ),
        Rule(
            id="R-COST-04",
            severity=Severity.HIGH,
            title="No release machine of the fleet file is a spot machine",
            rationale="See R-COST-02; the fleet file shows it before a stack does.",
            fix="set the machine's capacity to on-demand or reserved",
            pack=Pack.COST,
            anchors=("S28", "O29"),
            fleet=_spot_release,
        ),
        Rule(
            id="R-COST-05",
            severity=Severity.MEDIUM,
            title="Every funder of the fleet file has a budget",
            rationale="Without an amount there is nothing that an alert can watch.",
            fix="add the funder under budgets",
            pack=Pack.COST,
            anchors=("O10",),
            fleet=_funders,
        ),
    )


def _budgets(stack: StackView, context: Context) -> Iterator[Breach]:
    watched = set(context.strings("watched_elsewhere"))
    unknown: CannotTell | None = None
    for budget in stack.of(BUDGET, GCP_BUDGET, *AZURE_BUDGETS):
        try:
            alerts = "thresholdRules" if budget.type == GCP_BUDGET else "notifications"
            if not budget.get(alerts):
                yield Breach("alerts nobody", alerts, urn=budget.urn)
            watched |= set(_funders_watched(budget))
        except CannotTell as error:
            unknown = error
    paying: dict[str, str] = {}
    for resource in stack.of("aws:*", "gcp:*", "azure-native:*", *TEMPLATES):
        if resource.type.startswith(FREE):
            continue
        try:
            funder = _funder(resource)
        except CannotTell as error:
            yield Breach(f"cannot tell: {error}", error.path, True, resource.urn)
            continue
        if funder:
            paying.setdefault(funder, resource.urn)
    missing = sorted(set(paying) - watched)
    if missing and unknown is not None:
        raise unknown
    for funder in missing:
        yield Breach(f"no budget watches what {funder} pays", f"ci_funder.{funder}")


def _funder(resource: ResourceView) -> str:
    """Return who pays for a resource; empty when nobody alone does."""
    carried = carrier(resource.type)
    if carried is None or carried.listed:
        return ""
    funder = resource.text(*carried.path, "ci_funder")
    return "" if funder == "shared" else funder


def mapping_text(value: Any, key: str) -> str:
    """Return a text of a mapping; empty when it is not there or not known."""
    try:
        return text(value, key)
    except CannotTell:
        return ""


def _funders_watched(budget: ResourceView) -> Iterator[str]:
    """Yield the funders that a budget filters on, in each cloud's spellings."""
    if budget.type == GCP_BUDGET:
        funder = budget.text("budgetFilter", "labels", "ci_funder")
        if funder:
            yield funder
        return
    if budget.type != BUDGET:
        yield from _in_azure_filter(budget.mapping("filter"))
        return
    for entry in budget.items("costFilters"):
        if text(entry, "name") == "TagKeyValue":
            for value in texts(entry, "values"):
                key, _, funder = value.partition("$")
                if key.removeprefix("user:") == "ci_funder":
                    yield funder
    yield from _in_expression(budget.mapping("filterExpression"))


def _in_azure_filter(expression: Mapping[str, Any]) -> Iterator[str]:
    if text(expression, "tags", "name") == "ci_funder":
        yield from texts(expression, "tags", "values")
    for index, _ in enumerate(items(expression, "and")):
        yield from _in_azure_filter(mapping(expression, "and", index))


def _in_expression(expression: Mapping[str, Any]) -> Iterator[str]:
    for index, _ in enumerate(items(expression, "tags")):
        if text(expression, "tags", index, "key") == "ci_funder":
            yield from texts(expression, "tags", index, "values")
    for joined in ("ands", "ors"):
        for index, _ in enumerate(items(expression, joined)):
            yield from _in_expression(mapping(expression, joined, index))


def _spot(resource: ResourceView, context: Context) -> Iterator[Breach]:
    kind = resource.type.rpartition(":")[2]
    place = _SPOT.get(kind)
    if place is not None:
        labelled, setting, value = place
        trust = mapping_text(resource.mapping(*labelled), "ci_trust")
        if trust == "release" and resource.text(*setting) == value:
            yield Breach("release nodes are spot machines", spell(setting))
        return
    if kind == "ComputeClass":
        labels = resource.mapping("spec", "nodePoolConfig", "nodeLabels")
        if mapping_text(labels, "ci_trust") == "release":
            for index, _ in enumerate(resource.items("spec", "priorities")):
                if resource.truth("spec", "priorities", index, "spot"):
                    where = f"spec.priorities[{index}].spot"
                    yield Breach("release nodes may be spot machines", where)
        return
    if resource.type == GKE_POOL:
        labels = resource.mapping("nodeConfig", "resourceLabels")
        if mapping_text(labels, "ci_trust") == "release":
            for name in ("spot", "preemptible"):
                if resource.truth("nodeConfig", name):
                    why = "release nodes are spot machines"
                    yield Breach(why, f"nodeConfig.{name}")
        return
    template = resource.mapping("spec", "template")
    trust = text(template, "metadata", "labels", "ci_trust")
    if trust != "release":
        return
    yield from guarded(_spot_pool(template))


def _spot_pool(template: Mapping[str, Any]) -> Iterator[Breach]:
    place = "spec.template.spec.requirements"
    kinds: list[str] | None = None
    for index, _ in enumerate(items(template, "spec", "requirements")):
        entry = mapping(template, "spec", "requirements", index)
        if text(entry, "key") != "karpenter.sh/capacity-type":
            continue
        if text(entry, "operator", default="In") == "In":
            kinds = texts(entry, "values")
    if kinds is not None and "spot" in kinds:
        yield Breach(f"release nodes may be {', '.join(kinds)}", place)


def _left_on(view: FleetView, context: Context) -> Iterator[Breach]:
    for name, found in view.fleet.runner_classes.items():
        idle = found.scale.min + found.scale.warm
        external = found.placement is PlacementMode.EXTERNAL
        if found.hardware.accelerator is None or external:
            continue
        if idle > context.number("most_idle"):
            why = f"{idle} runners with accelerators are kept without a job"
            path = ("runner_classes", name)
            yield Breach(why, path=path, line_path=(*path, "scale"))


def _spot_release(view: FleetView, context: Context) -> Iterator[Breach]:
    for name, pool in view.fleet.pools.items():
        for index, machine in enumerate(pool.machines):
            if machine.release and machine.capacity is Capacity.SPOT:
                why = f"{machine.machine} serves release classes and is spot"
                yield Breach(why, path=("pools", name, "machines", index))


def _funders(view: FleetView, context: Context) -> Iterator[Breach]:
    fleet = view.fleet
    paying: dict[str, tuple[str, ...]] = {}
    for name, cell in fleet.cells.items():
        paying.setdefault(cell.funder, ("cells", name, "funder"))
    if fleet.central is not None:
        paying.setdefault(fleet.central.funder, ("central", "funder"))
    for name, found in fleet.runner_classes.items():
        if found.funder and found.placement is not PlacementMode.EXTERNAL:
            paying.setdefault(found.funder, ("runner_classes", name, "funder"))
    for funder, path in paying.items():
        if funder not in fleet.budgets:
            yield Breach(f"{funder} pays and has no budget", path=path)
