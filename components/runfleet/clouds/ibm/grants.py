"""Grants as IAM policies: the one place where IBM Cloud permissions of jobs are made.

Everything here is data in, data out. :func:`policies` turns grants (RFC-0049's matrix,
:mod:`runfleet.spec.roles`) and the places of the stores into the policies of a trusted
profile. Each policy names its service, the one bucket or registry namespace, and for
objects the prefix; none is about a whole service. Places may be outputs that are not
known yet; which policies there are never depends on them.

**What a verb means**, by the roles of cloud.ibm.com/docs/account, "IAM roles and
actions":

* *read* a bucket: ``Content Reader``, which downloads objects and lists them, under the
  condition that the object's path, or the prefix that is listed, is a readable one;
* *write* a bucket: ``Object Writer``, which uploads and cannot read, list or delete,
  under the condition on the path;
* *read* a registry: ``Reader`` on one namespace;
* *write* a registry: a role of our own whose one action is
  ``container-registry.image.push``: the service's ``Writer`` also pulls and deletes;
* *insert* telemetry: ``Object Writer`` on a bucket with a retention rule, in which an
  object that was written can be neither changed nor deleted.

**Trust.** Every store is split by the trust of the class that writes: prefixes
``untrusted-pr/``, ``trusted/`` and ``release/`` of a bucket, and one registry namespace
for each. A class writes under its own trust only and reads what classes of the same or
a higher trust wrote.

**Keys.** Nothing here: Cloud Object Storage unwraps its data keys with an authorization
of its own (:mod:`runfleet.clouds.ibm.keys`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pulumi

from runfleet.clouds.ibm.resources.access import Attribute, RuleCondition
from runfleet.spec.roles import Grant, Scope, StoreKind, Trust, Verb

READ_OBJECTS = "Content Reader"
WRITE_OBJECTS = "Object Writer"
READ_IMAGES = "Reader"

PUSH_ACTIONS = ("container-registry.image.push",)
"""Actions of the role of our own for pushing images."""

PATTERN = "attribute-based-condition:resource:literal-and-wildcard"
"""Kind of condition that a policy on paths has (ibm-cloud-docs/cloud-object-storage
``assign-access-indvobjects.md``)."""

PATH = "{{resource.attributes.path}}"
PREFIX = "{{resource.attributes.prefix}}"

BUCKET_KINDS = frozenset(
    {StoreKind.CACHE, StoreKind.ARTIFACTS, StoreKind.SHARED, StoreKind.RELEASE}
)
"""Kinds whose objects are in a bucket that grants name."""

REPOSITORY_KINDS = frozenset({StoreKind.REGISTRY, StoreKind.SHARED})
"""Kinds with image repositories."""


@dataclass(frozen=True)
class StorePlace:
    """Where one store is; empty for what it does not have.

    Attributes:
        bucket: Name of its bucket, which all accounts of the world share.
        instance: GUID of the storage instance that the bucket is in; ``None`` when only
            its name is known.
        namespaces: Its registry namespaces by trust.
        region: Region of the registry.
        push_role: Display name of the role that pushes images.
    """

    bucket: pulumi.Input[str] = ""
    instance: pulumi.Input[str] | None = None
    namespaces: Mapping[Trust, pulumi.Input[str]] = field(
        default_factory=dict[Trust, pulumi.Input[str]]
    )
    region: str = ""
    push_role: pulumi.Input[str] = ""


@dataclass(frozen=True)
class StorePlaces:
    """Where the stores are that an identity may be granted access to.

    Attributes:
        local: The cell's stores by kind.
        central: The central stores by kind.
    """

    local: Mapping[StoreKind, StorePlace] = field(
        default_factory=dict[StoreKind, StorePlace]
    )
    central: Mapping[StoreKind, StorePlace] = field(
        default_factory=dict[StoreKind, StorePlace]
    )

    def place(self, kind: StoreKind, scope: Scope) -> StorePlace | None:
        """Return where a store is, or ``None`` when the fleet does not have it."""
        stores = self.local if scope is Scope.LOCAL else self.central
        return stores.get(kind)


@dataclass(frozen=True)
class Policy:
    """One policy of a trusted profile.

    Attributes:
        name: What it is for, unique among those of an identity.
        roles: Roles that it gives.
        attributes: What a resource must be.
        conditions: Conditions on the request, any of which is enough.
    """

    name: str
    roles: tuple[pulumi.Input[str], ...]
    attributes: tuple[Attribute, ...]
    conditions: tuple[RuleCondition, ...] = ()


def readable(trust: Trust) -> tuple[Trust, ...]:
    """Return the trust levels whose writings a class of a trust level may read."""
    levels = list(Trust)
    return tuple(levels[levels.index(trust) :])


def policies(
    grants: Iterable[Grant], trust: Trust, places: StorePlaces
) -> list[Policy]:
    """Return the policies of the identity of a class.

    A grant on a store that the fleet does not have gives none.

    Args:
        grants: What the class may touch.
        trust: The trust level of the class.
        places: Where the stores are.
    """
    found: list[Policy] = []
    for grant in ordered(grants):
        place = places.place(grant.store, grant.scope)
        if place is None:
            continue
        name = f"{grant.verb}-{grant.store}-{grant.scope}"
        inserts = grant.verb is Verb.INSERT
        if inserts and grant.store is StoreKind.TELEMETRY:
            found.append(object_policy(name, grant.verb, trust, place))
        if not inserts and grant.store in BUCKET_KINDS:
            found.append(object_policy(name, grant.verb, trust, place))
        if not inserts and grant.store in REPOSITORY_KINDS:
            found += image_policies(f"{name}-images", grant.verb, trust, place)
    return found


def object_policy(name: str, verb: Verb, trust: Trust, place: StorePlace) -> Policy:
    """Return what lets an identity read or write the objects of its trust.

    Args:
        name: Name of the policy.
        verb: ``read``, or ``write`` and ``insert``, which take the same role.
        trust: The trust level of the class.
        place: Where the store is.
    """
    attributes = [Attribute("serviceName", "cloud-object-storage")]
    if place.instance is not None:
        attributes.append(Attribute("serviceInstance", place.instance))
    attributes += [
        Attribute("resourceType", "bucket"),
        Attribute("resource", place.bucket),
    ]
    if verb is Verb.READ:
        levels = tuple(f"{level}/*" for level in readable(trust))
        conditions = (_matches(PATH, levels), _matches(PREFIX, levels))
        return Policy(name, (READ_OBJECTS,), tuple(attributes), conditions)
    condition = _matches(PATH, (f"{trust}/*",))
    return Policy(name, (WRITE_OBJECTS,), tuple(attributes), (condition,))


def image_policies(
    name: str, verb: Verb, trust: Trust, place: StorePlace
) -> list[Policy]:
    """Return what lets an identity pull or push images, one namespace each.

    Args:
        name: What the names of the policies start with.
        verb: ``read`` or ``write``.
        trust: The trust level of the class.
        place: Where the store is.
    """
    levels = readable(trust) if verb is Verb.READ else (trust,)
    role = READ_IMAGES if verb is Verb.READ else place.push_role
    return [
        Policy(
            f"{name}-{level}",
            (role,),
            (
                Attribute("serviceName", "container-registry"),
                Attribute("region", place.region),
                Attribute("resourceType", "namespace"),
                Attribute("resource", place.namespaces[level]),
            ),
        )
        for level in levels
    ]


def ordered(grants: Iterable[Grant]) -> list[Grant]:
    """Return grants without repetition, by scope, store and verb."""
    kinds, scopes, verbs = list(StoreKind), list(Scope), list(Verb)
    return sorted(
        {grant.text: grant for grant in grants}.values(),
        key=lambda g: (
            scopes.index(g.scope),
            kinds.index(g.store),
            verbs.index(g.verb),
        ),
    )


def _matches(key: str, patterns: tuple[str, ...]) -> RuleCondition:
    """Return a condition that an attribute matches one of at most ten patterns."""
    operator = "stringMatchAnyOf" if len(patterns) > 1 else "stringMatch"
    return RuleCondition(operator=operator, key=key, values=patterns)
