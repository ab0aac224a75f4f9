"""The label taxonomy as IBM Cloud tags, which are texts and not pairs.

A tag is ``key:value``. Label keys hold no colon, so the first one separates the two and
the encoding is injective. IBM Cloud compares tags without case, and labels are lower
case. Limits (cloud.ibm.com/docs/account, "Working with tags"): 128 characters of
letters, digits, ``_``, ``-``, ``.``, space and one colon; 1,000 tags on a resource.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from runfleet.spec.labels import KEY_SYNTAX, VALUE_SYNTAX

UNTAGGABLE: Mapping[str, str] = {
    "ibm:index/containerAddons:ContainerAddons": "part of a cluster, which has them",
    "ibm:index/containerVpcWorkerPool:ContainerVpcWorkerPool": "has no CRN; carries "
    "the labels as Kubernetes labels of every worker",
    "ibm:index/iamAuthorizationPolicy:IamAuthorizationPolicy": "has no CRN and no cost",
    "ibm:index/iamCustomRole:IamCustomRole": "Global Tagging does not know it",
    "ibm:index/iamTrustedProfileClaimRule:IamTrustedProfileClaimRule": "part of a "
    "trusted profile, which has them",
    "ibm:index/iamTrustedProfileLink:IamTrustedProfileLink": "part of a trusted "
    "profile, which has them",
    "ibm:index/isSecurityGroupRule:IsSecurityGroupRule": "part of a security group, "
    "which has them",
    "ibm:index/isVpcAddressPrefix:IsVpcAddressPrefix": "part of a VPC, which has them",
    "ibm:index/resourceTag:ResourceTag": "is the tags of something else",
}
"""Types that can carry no tags at all, and why."""

TAGGED_BESIDE: frozenset[str] = frozenset(
    {
        "ibm:index/cosBucket:CosBucket",
        "ibm:index/iamTrustedProfile:IamTrustedProfile",
        "ibm:index/kmsKey:KmsKey",
    }
)
"""Types without ``tags`` but with a CRN: a ``resourceTag`` beside them carries them."""


def tags(labels: Mapping[str, str]) -> list[str]:
    """Return the tags of a resource, sorted.

    Args:
        labels: Its labels.

    Raises:
        ValueError: A key or a value is no label, and so might not be read back.
    """
    wrong = [
        f"{key}={value!r} is no label"
        for key, value in labels.items()
        if not (KEY_SYNTAX.fullmatch(key) and VALUE_SYNTAX.fullmatch(value))
    ]
    if wrong:
        raise ValueError("; ".join(wrong))
    return sorted(f"{key}:{value}" for key, value in labels.items())


def labels_of(tags: Iterable[str]) -> dict[str, str]:
    """Return the labels that tags stand for."""
    return dict(tag.split(":", 1) for tag in tags)
