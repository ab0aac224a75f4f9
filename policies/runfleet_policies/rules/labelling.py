"""Labels: every thing that costs money says whose it is.

The keys are the thirteen of :mod:`runfleet.spec.labels`. What an autoscaler makes
later is labelled through its template, so templates are judged too: launch
templates, Karpenter's node classes and node pools, Auto Scaling groups.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any

from runfleet.spec import labels
from runfleet.spec.findings import Severity
from runfleet_policies.rule import Breach, Context, Pack, Parameter, Rule, guarded
from runfleet_policies.values import CannotTell, document, get, items, mapping, text
from runfleet_policies.view import ResourceView

_NO_TAGS = "the provider takes no tags for it"

EXEMPT: Mapping[str, str] = {
    "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup": "made by AWS with its VPC, "
    "which carries the labels; costs nothing",
    "aws:ec2/defaultNetworkAcl:DefaultNetworkAcl": "made by AWS with its VPC",
    "aws:ec2/defaultRouteTable:DefaultRouteTable": "made by AWS with its VPC",
    "aws:autoscaling/group:Group": "carries its tags as a list, judged as a template",
    "kubernetes:*": "costs nothing by itself; namespaces, scale sets and node "
    "templates carry the labels",
    "github:*": "GitHub's objects take no labels",
    "pulumi:*": "exists in the state only",
    "random:*": "exists in the state only",
    "tls:*": "exists in the state only",
}
"""Types that carry no labels of their own, with the reason, beside those of AWS
that take no tags (:func:`takes_tags`)."""

LABELLED_KUBERNETES: Mapping[str, tuple[str, ...]] = {
    "kubernetes:core/v1:Namespace": ("metadata", "labels"),
    "kubernetes:actions.github.com/*:AutoscalingRunnerSet": ("metadata", "labels"),
    "kubernetes:karpenter.k8s.aws/*:EC2NodeClass": ("spec", "tags"),
    "kubernetes:karpenter.sh/*:NodePool": ("spec", "template", "metadata", "labels"),
}
"""Kubernetes kinds that carry the labels, and where."""


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
            types=("aws:*", *LABELLED_KUBERNETES),
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
    )


@lru_cache(maxsize=1)
def _types() -> tuple[frozenset[str], frozenset[str]]:
    path = files("runfleet_policies") / "data" / "aws_types.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    return frozenset(data["taggable"]), frozenset(data["without_tags"])


def takes_tags(kind: str) -> bool:
    """Say whether an AWS type takes tags; types newer than the table do."""
    taggable, without = _types()
    return kind in taggable or kind not in without


def exemption(kind: str) -> str:
    """Return why a type carries no labels of its own; empty when it must."""
    if any(_same(kind, pattern) for pattern in LABELLED_KUBERNETES):
        return ""
    for pattern, reason in EXEMPT.items():
        if _same(kind, pattern):
            return reason
    if kind.startswith("aws:") and not takes_tags(kind):
        return _NO_TAGS
    return ""


def _same(kind: str, pattern: str) -> bool:
    head, star, tail = pattern.partition("*")
    if not star:
        return kind == pattern
    return kind.startswith(head) and kind.endswith(tail)


def _labels(resource: ResourceView, context: Context) -> Iterator[Breach]:
    kind = resource.type
    if kind == "aws:autoscaling/group:Group":
        yield from _group(resource, context)
        return
    if exemption(kind):
        return
    yield from guarded(_missing(_carried(resource), _place(kind), context))
    if kind == "aws:ec2/launchTemplate:LaunchTemplate":
        yield from _template(resource, context)


def _place(kind: str) -> str:
    return ".".join(_path(kind) or ("tags",))


def _path(kind: str) -> tuple[str, ...]:
    return next((path for p, path in LABELLED_KUBERNETES.items() if _same(kind, p)), ())


def _carried(resource: ResourceView) -> Mapping[str, Any]:
    path = _path(resource.type)
    if path:
        return resource.mapping(*path)
    defaults: Mapping[str, Any] = {}
    if resource.provider.get("defaultTags"):
        defaults = mapping(document(resource.provider, "defaultTags"), "tags")
    return {**defaults, **resource.mapping("tagsAll"), **resource.mapping("tags")}


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


def _fill(resource: ResourceView, context: Context) -> Mapping[str, Any] | None:
    """Return inputs with the default labels added where keys are missing."""
    if exemption(resource.type) or resource.type == "aws:autoscaling/group:Group":
        return None
    defaults: Mapping[str, str] = context.values["defaults"]
    carried = _carried(resource)
    added = {
        key: value
        for key, value in defaults.items()
        if key in context.strings("keys") and key not in carried
    }
    if not added:
        return None
    path = _path(resource.type) or ("tags",)
    return _with(resource.inputs, path, added)


def _with(
    value: Mapping[str, Any], path: tuple[str, ...], added: Mapping[str, str]
) -> dict[str, Any]:
    if not path:
        return {**value, **added}
    inner = mapping(value, path[0])
    return {**value, path[0]: _with(inner, path[1:], added)}
