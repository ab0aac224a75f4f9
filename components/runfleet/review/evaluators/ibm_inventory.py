"""The inventory: all that records say about IBM Cloud access, as plain objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from runfleet.review.evaluators.ibm_policy import (
    Attribute,
    Policy,
    condition_of,
    condition_problems,
)

_PREFIX = "ibm:index/"


class Resource(Protocol):
    """A resource of a record."""

    @property
    def urn(self) -> str:
        """URN."""
        ...

    @property
    def type(self) -> str:
        """Type token."""
        ...

    @property
    def id(self) -> str:
        """Id."""
        ...

    @property
    def inputs(self) -> Mapping[str, Any]:
        """Inputs under their wire names."""
        ...

    @property
    def outputs(self) -> Mapping[str, Any]:
        """Outputs under their wire names."""
        ...


@dataclass(frozen=True)
class Profile:
    """A trusted profile.

    Attributes:
        urn: URN of its resource.
        id: Its id.
        iam_id: Its IAM id, which policies name.
        name: Its name.
    """

    urn: str
    id: str
    iam_id: str
    name: str


@dataclass(frozen=True)
class Link:
    """Who may take a profile on: a compute resource. An empty part means any.

    Attributes:
        urn: URN of its resource.
        profile_id: Id of the profile.
        cr_type: Kind of compute resource.
        crn: CRN of the cluster.
        namespace: Namespace.
        name: Service account.
    """

    urn: str
    profile_id: str
    cr_type: str
    crn: str
    namespace: str
    name: str


@dataclass(frozen=True)
class ClaimRule:
    """Who may take a profile on: what meets all conditions.

    Attributes:
        urn: URN of its resource.
        profile_id: Id of the profile.
        type: ``Profile-CR`` for compute resources, ``Profile-SAML`` for people.
        cr_type: Kind of compute resource.
        conditions: Claim, operator and value of each; values are JSON.
    """

    urn: str
    profile_id: str
    type: str
    cr_type: str
    conditions: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class Bucket:
    """A bucket.

    Attributes:
        name: Its name.
        crn: Its CRN.
        unchanged: Whether its objects can be neither replaced nor deleted.
    """

    name: str
    crn: str
    unchanged: bool


@dataclass
class Inventory:
    """Everything about access that was read from records.

    Attributes:
        profiles: Trusted profiles by id.
        links: All links.
        claim_rules: All claim rules.
        policies: All policies of trusted profiles.
        roles: Actions of custom roles by display name.
        buckets: Buckets by name.
        clusters: CRNs of clusters by name, of adopted ones by id.
    """

    profiles: dict[str, Profile] = field(default_factory=dict[str, Profile])
    links: list[Link] = field(default_factory=list[Link])
    claim_rules: list[ClaimRule] = field(default_factory=list[ClaimRule])
    policies: list[Policy] = field(default_factory=list[Policy])
    roles: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    buckets: dict[str, Bucket] = field(default_factory=dict[str, Bucket])
    clusters: dict[str, str] = field(default_factory=dict[str, str])


def read(resources: Iterable[Resource]) -> Inventory:
    """Read all that resources say about access."""
    found = Inventory()
    for resource in resources:
        if not resource.type.startswith(_PREFIX):
            continue
        kind = resource.type.removeprefix(_PREFIX).partition(":")[0]
        inputs, outputs = resource.inputs, resource.outputs
        if kind == "iamTrustedProfile":
            profile = Profile(
                resource.urn,
                _text(outputs, "profileId") or resource.id,
                _text(outputs, "iamId"),
                _text(inputs, "name"),
            )
            found.profiles[profile.id] = profile
        elif kind == "iamTrustedProfileLink":
            to = _mapping(inputs.get("link"))
            found.links.append(
                Link(
                    resource.urn,
                    _text(inputs, "profileId"),
                    _text(inputs, "crType"),
                    _text(to, "crn"),
                    _text(to, "namespace"),
                    _text(to, "name"),
                )
            )
        elif kind == "iamTrustedProfileClaimRule":
            found.claim_rules.append(_claim_rule(resource))
        elif kind == "iamTrustedProfilePolicy":
            found.policies.append(_policy(resource))
        elif kind == "iamCustomRole":
            actions = inputs.get("actions")
            found.roles[_text(inputs, "displayName")] = frozenset(
                str(action) for action in _list(actions)
            )
        elif kind == "cosBucket":
            name = _text(inputs, "bucketName") or _text(outputs, "bucketName")
            rule = _mapping(inputs.get("retentionRule"))
            days = rule.get("minimum")
            unchanged = isinstance(days, (int, float)) and days > 0
            found.buckets[name] = Bucket(name, _text(outputs, "crn"), unchanged)
        elif kind == "containerVpcCluster":
            name = _text(inputs, "name") or resource.id
            found.clusters[name] = _text(outputs, "crn")
    return found


def _policy(resource: Resource) -> Policy:
    inputs = resource.inputs
    attributes = [
        Attribute(
            _text(item, "name"),
            _text(item, "operator") or "stringEquals",
            value if isinstance(value := item.get("value"), str) else None,
        )
        for item in map(_mapping, _list(inputs.get("resourceAttributes")))
    ]
    attributes += _flat(_mapping(inputs.get("resources")))
    condition = condition_of(
        inputs.get("ruleConditions"), _text(inputs, "ruleOperator") or None
    )
    problems = condition_problems(condition, _text(inputs, "pattern") or None)
    if inputs.get("resources") and inputs.get("resourceAttributes"):
        problems.append("resources and resourceAttributes exclude each other")
    subject = _text(inputs, "iamId") or _text(resource.outputs, "iamId")
    if not subject and (profile := _text(inputs, "profileId")):
        subject = f"iam-{profile}"
    return Policy(
        urn=resource.urn,
        subject=subject,
        roles=tuple(
            role if isinstance(role, str) else None
            for role in _list(inputs.get("roles"))
        ),
        attributes=tuple(attributes),
        condition=condition,
        everywhere=inputs.get("accountManagement") is True,
        tagged=bool(inputs.get("resourceTags")),
        problems=tuple(problems),
    )


_FLAT = {
    "service": "serviceName",
    "resourceInstanceId": "serviceInstance",
    "resourceType": "resourceType",
    "resource": "resource",
    "resourceGroupId": "resourceGroupId",
    "region": "region",
    "serviceType": "serviceType",
    "serviceGroupId": "service_group_id",
}
"""Attributes that the older form ``resources`` stands for."""


def _flat(resources: Mapping[str, Any]) -> list[Attribute]:
    found: list[Attribute] = []
    for key, value in resources.items():
        if key == "attributes":
            found += [
                Attribute(name, "stringEquals", str(item))
                for name, item in _mapping(value).items()
            ]
        elif key in _FLAT:
            known = value if isinstance(value, str) else None
            found.append(Attribute(_FLAT[key], "stringEquals", known))
    return found


def _claim_rule(resource: Resource) -> ClaimRule:
    inputs = resource.inputs
    return ClaimRule(
        resource.urn,
        _text(inputs, "profileId"),
        _text(inputs, "type"),
        _text(inputs, "crType"),
        tuple(
            (_text(item, "claim"), _text(item, "operator"), _text(item, "value"))
            for item in map(_mapping, _list(inputs.get("conditions")))
        ),
    )


def _text(found: Mapping[str, Any], key: str) -> str:
    value = found.get(key)
    return value if isinstance(value, str) else ""


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
