"""Labels: every thing that costs money says whose it is.

The keys are the thirteen of :mod:`runfleet.spec.labels`. Where each type carries
them says :mod:`runfleet_policies.carriers`. What an autoscaler makes later is
labelled through its template, so templates are judged too: launch templates,
Karpenter's node classes and node pools, ComputeClasses, Auto Scaling groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from runfleet.spec import labels
from runfleet.spec.findings import Severity
from runfleet_policies.carriers import (
    CLOUDS,
    GROUP,
    KUBERNETES,
    TAG_OF_ANOTHER,
    TAGGED_FROM_OUTSIDE,
    Carrier,
    carrier,
)
from runfleet_policies.rule import Breach, Context, Pack, Parameter, Rule, guarded
from runfleet_policies.rules.gcp_cluster import auto_creates
from runfleet_policies.values import CannotTell, document, get, items, mapping, text
from runfleet_policies.view import ResourceView, StackView


def rules() -> tuple[Rule, ...]:
    """Return the rules about labels."""
    return (
        Rule(
            id="R-TAG-01",
            severity=Severity.HIGH,
            title="Everything that can carry labels carries the thirteen",
            rationale="A bill can be split by vendor, funder and class only by what "
            "each thing says about itself, and an alert finds its people the same "
            "way. Presence is not enough: a value in another spelling counts as "
            "another funder.",
            fix="label it with Fleet.labels_for, or set the pack's `defaults`",
            pack=Pack.LABELLING,
            anchors=("O27", "S34", "A02"),
            types=(*CLOUDS, *KUBERNETES),
            resource=_labels,
            parameters=(
                Parameter("keys", list(labels.KEYS), "Keys that are required."),
                Parameter(
                    "templates",
                    ["instance", "volume"],
                    "What a launch template must label.",
                ),
                Parameter(
                    "defaults",
                    dict[str, str](),
                    "Values that remediation fills in where a key is missing.",
                ),
            ),
            remediate=_fill,
        ),
        Rule(
            id="R-TAG-02",
            severity=Severity.MEDIUM,
            title="What takes no tags of its own is labelled from outside",
            rationale="Keys and buckets of IBM Cloud cost money and take no tags when "
            "they are made; a ResourceTag gives them the labels afterwards.",
            fix="add a ResourceTag with resourceId the CRN and the thirteen as tags",
            pack=Pack.LABELLING,
            anchors=("O27",),
            stack=_tagged_from_outside,
            parameters=(
                Parameter("keys", list(labels.KEYS), "Keys that are required."),
            ),
        ),
    )


def _labels(resource: ResourceView, context: Context) -> Iterator[Breach]:
    kind = resource.type
    if kind == GROUP:
        yield from _group(resource, context)
        return
    found = carrier(kind)
    if found is None or _owns_no_nodes(resource):
        return
    yield from guarded(_missing(_carried(resource, found), found.place, context))
    if kind == "aws:ec2/launchTemplate:LaunchTemplate":
        yield from _template(resource, context)


def _owns_no_nodes(resource: ResourceView) -> bool:
    """Say whether a ComputeClass only chooses among pools made elsewhere."""
    return resource.type.endswith(":ComputeClass") and not auto_creates(resource)


def _carried(resource: ResourceView, found: Carrier) -> Mapping[str, Any]:
    if found.listed:
        return _from_list(resource.texts(*found.path))
    defaults: Mapping[str, Any] = {}
    if found.defaults and resource.provider.get(found.defaults):
        defaults = document(resource.provider, found.defaults)
        if found.defaults == "defaultTags":
            defaults = mapping(defaults, "tags")
    own = resource.mapping(*found.path)
    return {**defaults, **resource.mapping("tagsAll"), **own}


def _from_list(tags: list[str]) -> Mapping[str, str]:
    """Return tags that are written as ``key:value``."""
    return {key: value for key, _, value in (tag.partition(":") for tag in tags)}


def _missing(
    found: Mapping[str, Any], place: str, context: Context
) -> Iterator[Breach]:
    missing: list[str] = []
    for key in context.strings("keys"):
        try:
            value = text(found, key)
        except CannotTell as unknown:
            yield Breach(f"cannot tell: {unknown}", f"{place}.{key}", True)
            continue
        if not value:
            missing.append(key)
        elif not labels.VALUE_SYNTAX.match(value):
            why = f"{key}={value!r} does not match {labels.VALUE_SYNTAX.pattern}"
            yield Breach(why, f"{place}.{key}")
    if missing:
        yield Breach(f"{', '.join(missing)} not set", place)


def _template(resource: ResourceView, context: Context) -> Iterator[Breach]:
    specified: dict[str, Mapping[str, Any]] = {
        text(entry, "resourceType"): mapping(entry, "tags")
        for entry in resource.items("tagSpecifications")
    }
    for kind in context.strings("templates"):
        place = f"tagSpecifications.{kind}"
        if kind not in specified:
            yield Breach(f"every {kind} it starts is without labels", place)
        else:
            yield from _missing(specified[kind], place, context)


def _group(resource: ResourceView, context: Context) -> Iterator[Breach]:
    found: dict[str, Any] = {}
    for entry in items(resource.inputs, "tags"):
        if get(entry, "propagateAtLaunch"):
            found[text(entry, "key")] = get(entry, "value")
    yield from _missing(found, "tags", context)


def _tagged_from_outside(stack: StackView, context: Context) -> Iterator[Breach]:
    carried: dict[str, dict[str, str]] = {}
    unknown: CannotTell | None = None
    for tag in stack.of(TAG_OF_ANOTHER):
        try:
            own = _tagged(stack, tag)
            if own is not None:
                carried.setdefault(own.urn, {}).update(_from_list(tag.texts("tags")))
        except CannotTell as error:
            unknown = error
    for resource in stack.of(*TAGGED_FROM_OUTSIDE):
        missing = [
            key
            for key in context.strings("keys")
            if not carried.get(resource.urn, {}).get(key)
        ]
        if missing and unknown is not None:
            yield Breach(f"cannot tell: {unknown}", "", True, resource.urn)
        elif missing:
            yield Breach(f"{', '.join(missing)} not set", urn=resource.urn)


def _tagged(stack: StackView, tag: ResourceView) -> ResourceView | None:
    """Return the resource of the stack that a ResourceTag labels."""
    linked = [
        found
        for urn in tag.points_at.get("resourceId", ())
        if (found := stack.by_urn(urn)) is not None
    ]
    if len(linked) == 1:
        return linked[0]
    return stack.pointed_at(tag, "resourceId", *TAGGED_FROM_OUTSIDE)


def _fill(resource: ResourceView, context: Context) -> Mapping[str, Any] | None:
    """Return inputs with the default labels added where keys are missing."""
    found = carrier(resource.type)
    if found is None or _owns_no_nodes(resource):
        return None
    defaults: Mapping[str, str] = context.values["defaults"]
    carried = _carried(resource, found)
    added = {
        key: value
        for key, value in defaults.items()
        if key in context.strings("keys") and key not in carried
    }
    if not added:
        return None
    if found.listed:
        written = [f"{key}:{value}" for key, value in added.items()]
        tags = [*resource.texts(*found.path), *written]
        return {**resource.inputs, found.path[0]: tags}
    return _with(resource.inputs, found.path, added)


def _with(
    value: Mapping[str, Any], path: tuple[str, ...], added: Mapping[str, str]
) -> dict[str, Any]:
    if not path:
        return {**value, **added}
    inner = mapping(value, path[0])
    return {**value, path[0]: _with(inner, path[1:], added)}
