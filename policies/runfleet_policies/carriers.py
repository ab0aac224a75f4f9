"""Where each type of resource carries its labels, and which types carry none.

AWS and Azure call them ``tags``; Google ``labels``, ``resourceLabels`` or
``userLabels``; IBM Cloud has a list of ``key:value`` texts. What an autoscaler makes
later is labelled through its template, so templates are carriers too.

The tables of types are generated from the SDKs (``policies/tables.py``). IBM Cloud
has no SDK; its types without tags are those of the provider's schema, 2.5.0.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

_NO_TAGS = "the provider takes no tags for it"

GROUP = "aws:autoscaling/group:Group"

EXEMPT: Mapping[str, str] = {
    "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup": "made by AWS with its VPC, "
    "which carries the labels; costs nothing",
    "aws:ec2/defaultNetworkAcl:DefaultNetworkAcl": "made by AWS with its VPC",
    "aws:ec2/defaultRouteTable:DefaultRouteTable": "made by AWS with its VPC",
    "aws:autoscaling/group:Group": "carries its tags as a list, judged as a template",
    "azure-native:resources:Deployment": "a record of a deployment; costs nothing",
    "ibm:index/containerAddons:ContainerAddons": "a setting of its cluster, which "
    "carries the labels",
    "ibm:index/containerIngressInstance:ContainerIngressInstance": "a setting of its "
    "cluster",
    "ibm:index/containerIngressSecretOpaque:ContainerIngressSecretOpaque": "a setting "
    "of its cluster",
    "ibm:index/containerIngressSecretTls:ContainerIngressSecretTls": "a setting of its "
    "cluster",
    "ibm:index/isSecurityGroupRule:IsSecurityGroupRule": "part of its group, which "
    "carries the labels",
    "ibm:index/isVpcAddressPrefix:IsVpcAddressPrefix": "part of its VPC",
    "ibm:index/isInstanceTemplate:IsInstanceTemplate": "takes no tags; the instance "
    "group that uses it carries the labels",
    "ibm:index/isInstanceGroupManager:IsInstanceGroupManager": "part of its group",
    "ibm:index/isInstanceGroupManagerPolicy:IsInstanceGroupManagerPolicy": "part of "
    "its group",
    "ibm:index/iamTrustedProfile:IamTrustedProfile": "takes no tags; costs nothing",
    "ibm:index/iamTrustedProfileLink:IamTrustedProfileLink": "part of its profile",
    "ibm:index/iamTrustedProfileClaimRule:IamTrustedProfileClaimRule": "part of its "
    "profile",
    "ibm:index/iamAuthorizationPolicy:IamAuthorizationPolicy": "takes no tags; costs "
    "nothing",
    "ibm:index/iamAccountSettings:IamAccountSettings": "one per account",
    "ibm:index/iamApiKey:IamApiKey": "takes no tags; forbidden by R-IBM-01",
    "ibm:index/iamServiceApiKey:IamServiceApiKey": "takes no tags; forbidden by "
    "R-IBM-01",
    "ibm:index/resourceKey:ResourceKey": "part of its instance; forbidden by R-IBM-01",
    "ibm:index/kmsKey:KmsKey": "takes no tags; labelled by a ResourceTag (R-TAG-02)",
    "ibm:index/cosBucket:CosBucket": "takes no tags; labelled by a ResourceTag "
    "(R-TAG-02)",
    "kubernetes:*": "costs nothing by itself; namespaces, scale sets and node "
    "templates carry the labels",
    "github:*": "GitHub's objects take no labels",
    "pulumi:*": "exists in the state only",
    "random:*": "exists in the state only",
    "tls:*": "exists in the state only",
}
"""Types that carry no labels of their own, with the reason, beside those for which
the SDKs know no tags (:func:`takes_tags`)."""

CLOUDS = ("aws:*", "gcp:*", "azure-native:*", "ibm:*")
"""Types of which every one is judged that takes labels."""

KUBERNETES: Mapping[str, tuple[str, ...]] = {
    "kubernetes:core/v1:Namespace": ("metadata", "labels"),
    "kubernetes:actions.github.com/*:AutoscalingRunnerSet": ("metadata", "labels"),
    "kubernetes:karpenter.k8s.aws/*:EC2NodeClass": ("spec", "tags"),
    "kubernetes:karpenter.azure.com/*:AKSNodeClass": ("spec", "tags"),
    "kubernetes:karpenter.k8s.gcp/*:GCENodeClass": ("spec", "labels"),
    "kubernetes:karpenter.sh/*:NodePool": ("spec", "template", "metadata", "labels"),
    "kubernetes:cloud.google.com/*:ComputeClass": (
        "spec",
        "nodePoolConfig",
        "nodeLabels",
    ),
}
"""Kubernetes kinds that carry the labels, and where."""

_PATHS: Mapping[str, tuple[str, ...]] = {
    "gcp:container/nodePool:NodePool": ("nodeConfig", "resourceLabels"),
    "ibm:index/containerVpcWorkerPool:ContainerVpcWorkerPool": ("labels",),
}
"""Types of the clouds that carry them in a place of their own."""

TAG_OF_ANOTHER = "ibm:index/resourceTag:ResourceTag"
TAGGED_FROM_OUTSIDE = ("ibm:index/kmsKey:KmsKey", "ibm:index/cosBucket:CosBucket")
"""Types that cost money, take no tags and have a CRN that a ResourceTag can name."""

_VERSION = re.compile(r"/v\d\w*:")


@dataclass(frozen=True)
class Carrier:
    """Where a type carries its labels.

    Attributes:
        path: The property.
        listed: Whether it is a list of ``key:value`` texts.
        defaults: The provider's setting that adds labels; empty when it has none.
    """

    path: tuple[str, ...]
    listed: bool = False
    defaults: str = ""

    @property
    def place(self) -> str:
        """How findings name it."""
        return ".".join(self.path)


@dataclass(frozen=True)
class _Tables:
    aws_taggable: frozenset[str]
    aws_without: frozenset[str]
    azure_without: frozenset[str]
    gcp_labels: Mapping[str, str]
    gcp_without: frozenset[str]


@lru_cache(maxsize=1)
def _tables() -> _Tables:
    folder = files("runfleet_policies") / "data"

    def read(name: str) -> dict[str, list[str]]:
        return json.loads((folder / name).read_text(encoding="utf-8"))

    aws, azure, gcp = (read(f"{c}_types.json") for c in ("aws", "azure", "gcp"))
    return _Tables(
        frozenset(aws["taggable"]),
        frozenset(aws["without_tags"]),
        frozenset(azure["without_tags"]),
        {
            kind: field
            for field in ("labels", "resourceLabels", "userLabels")
            for kind in gcp[field]
        },
        frozenset(gcp["without_labels"]),
    )


def takes_tags(kind: str) -> bool:
    """Say whether a cloud's type takes labels; types newer than the tables do."""
    tables = _tables()
    if kind.startswith("aws:"):
        return kind in tables.aws_taggable or kind not in tables.aws_without
    if kind.startswith("azure-native:"):
        return _VERSION.sub(":", kind) not in tables.azure_without
    if kind.startswith("gcp:"):
        return kind in _PATHS or kind not in tables.gcp_without
    return kind.startswith("ibm:")


@lru_cache(maxsize=4096)
def carrier(kind: str) -> Carrier | None:
    """Return where a type carries its labels; ``None`` when it need not."""
    if exemption(kind):
        return None
    for pattern, path in KUBERNETES.items():
        if same(kind, pattern):
            return Carrier(path)
    if kind in _PATHS:
        return Carrier(_PATHS[kind])
    if kind.startswith("gcp:"):
        field = _tables().gcp_labels.get(kind, "labels")
        default = "" if field == "userLabels" else "defaultLabels"
        return Carrier((field,), defaults=default)
    if kind.startswith("ibm:"):
        return Carrier(("tags",), listed=True)
    if kind.startswith("aws:"):
        return Carrier(("tags",), defaults="defaultTags")
    return Carrier(("tags",))


@lru_cache(maxsize=4096)
def exemption(kind: str) -> str:
    """Return why a type carries no labels of its own; empty when it must."""
    if any(same(kind, pattern) for pattern in KUBERNETES):
        return ""
    for pattern, reason in EXEMPT.items():
        if same(kind, pattern):
            return reason
    if any(same(kind, pattern) for pattern in CLOUDS) and not takes_tags(kind):
        return _NO_TAGS
    return ""


def same(kind: str, pattern: str) -> bool:
    """Say whether a type is, or matches, a pattern with at most one ``*``."""
    head, star, tail = pattern.partition("*")
    if not star:
        return kind == pattern
    return kind.startswith(head) and kind.endswith(tail)
