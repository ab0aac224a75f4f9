"""Grants as role bindings: the one place where job permissions are made.

Everything here is pure data in, pure data out. On Google Cloud an identity has no
policy of its own: each resource has an allow policy, whose bindings give a role to
members under a condition (IAM documentation, "Allow policies"). :func:`bindings`
turns grants (:mod:`runfleet.spec.roles`) and the addresses of the stores into such
bindings, without members: whoever is granted becomes one.

**What a verb means.** The roles are custom ones, with the permissions listed here and
no pattern; predefined roles hold more than a grant says (``roles/storage.objectUser``
can delete, ``roles/artifactregistry.writer`` can read):

* *read* a bucket: ``storage.objects.get`` on the readable prefixes, and
  ``storage.objects.list`` on the bucket, so that a missing object reads as 404 and
  not as 403 (Cloud Storage documentation, "IAM permissions for JSON methods"). As on
  other clouds, names can be listed everywhere and read nowhere else;
* *write* a bucket: ``storage.objects.create`` and the permissions of multipart
  uploads. Overwriting needs ``storage.objects.delete`` (the same page), so objects
  here are written once and never replaced;
* *read* and *write* a registry: download, and upload with the tag that goes with it;
* *insert* telemetry: ``pubsub.topics.publish``, which can only add.

**Trust.** Prefixes ``untrusted-pr/``, ``trusted/`` and ``release/`` of a bucket are
held apart by conditions on ``resource.name``. Artifact Registry and Pub/Sub do not
recognise resource attributes (IAM documentation, "Resource attributes for IAM
Conditions", read 2026-08), so a registry is one repository for each trust level and
telemetry one topic for each, and the binding sits on that one. A class writes under
its own trust only and reads what classes of the same or a higher trust wrote.

**Limits.** An allow policy holds at most 100 conditional bindings, and a binding is a
role with a condition (IAM documentation, "Overview of IAM Conditions"). So conditions
depend on trust, verb and bucket alone: all classes of a trust level share a binding.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from runfleet.spec.roles import Grant, Scope, StoreKind, Trust, Verb

READER = "objectreader"
LISTER = "objectlister"
WRITER = "objectwriter"
PULLER = "imagepuller"
PUSHER = "imagepusher"
INSERTER = "recordinserter"

PERMISSIONS: Mapping[str, tuple[str, ...]] = {
    READER: ("storage.objects.get",),
    LISTER: ("storage.objects.list",),
    WRITER: (
        "storage.multipartUploads.abort",
        "storage.multipartUploads.create",
        "storage.multipartUploads.listParts",
        "storage.objects.create",
    ),
    PULLER: ("artifactregistry.repositories.downloadArtifacts",),
    PUSHER: (
        "artifactregistry.repositories.uploadArtifacts",
        "artifactregistry.tags.create",
    ),
    INSERTER: ("pubsub.topics.publish",),
}
"""Permissions of each custom role (IAM permissions reference)."""

BUCKET_KINDS = frozenset(
    {StoreKind.CACHE, StoreKind.ARTIFACTS, StoreKind.SHARED, StoreKind.RELEASE}
)
"""Kinds whose objects are in a bucket that grants name."""

REPOSITORY_KINDS = frozenset({StoreKind.REGISTRY, StoreKind.SHARED})
"""Kinds with image repositories."""


@dataclass(frozen=True)
class Condition:
    """When a binding holds.

    Attributes:
        title: What it is, for people.
        expression: The condition, in the Common Expression Language.
    """

    title: str
    expression: str


@dataclass(frozen=True)
class Binding:
    """A role on one resource.

    Attributes:
        suffix: What the binding is, unique among those of an identity.
        kind: ``bucket``, ``repository`` or ``topic``.
        resource: Name of the bucket; id of the repository or the topic.
        role: The custom role, one of :data:`PERMISSIONS`.
        store: Kind of the store.
        scope: In whose project the resource and the role are.
        key: What the store's handle calls the resource: ``bucket``, or a key of its
            ``extra``.
        condition: When it holds; ``None`` for always.
    """

    suffix: str
    kind: str
    resource: str
    role: str
    store: StoreKind
    scope: Scope
    key: str
    condition: Condition | None = None


@dataclass(frozen=True)
class StorePlace:
    """Where one store is.

    Attributes:
        bucket: Name of its bucket; empty without one that grants name.
        repositories: Ids of its repositories by trust.
        caches: Ids of remote repositories by upstream; they are read only.
        topics: Ids of its topics by trust.
    """

    bucket: str = ""
    repositories: Mapping[Trust, str] = field(default_factory=dict[Trust, str])
    caches: Mapping[str, str] = field(default_factory=dict[str, str])
    topics: Mapping[Trust, str] = field(default_factory=dict[Trust, str])


Places = Mapping[tuple[StoreKind, Scope], StorePlace]
"""Where the stores are."""


def readable(trust: Trust) -> tuple[Trust, ...]:
    """Return the trust levels whose writings a class of a trust level may read."""
    levels = list(Trust)
    return tuple(levels[levels.index(trust) :])


def bindings(grants: Iterable[Grant], trust: Trust, places: Places) -> list[Binding]:
    """Return the bindings of the identity of a class.

    A grant on a store that the fleet does not have gives no binding.

    Args:
        grants: What the class may touch.
        trust: The trust level of the class.
        places: Where the stores are.
    """
    found: dict[str, Binding] = {}
    for grant in _ordered(grants):
        place = places.get((grant.store, grant.scope))
        if place is not None:
            for binding in _of_grant(grant, trust, place):
                found[binding.suffix] = binding
    return list(found.values())


def roles_of(kinds: Iterable[StoreKind]) -> list[str]:
    """Return the custom roles that stores of some kinds need, in a fixed order."""
    wanted: set[str] = set()
    for kind in kinds:
        if kind in BUCKET_KINDS:
            wanted |= {READER, LISTER, WRITER}
        if kind in REPOSITORY_KINDS:
            wanted |= {PULLER, PUSHER}
        if kind is StoreKind.TELEMETRY:
            wanted.add(INSERTER)
    return [role for role in PERMISSIONS if role in wanted]


def prefixes(bucket: str, levels: Iterable[Trust]) -> str:
    """Return the expression that holds for objects under some trust levels."""
    return " || ".join(
        f'resource.name.startsWith("projects/_/buckets/{bucket}/objects/{level}/")'
        for level in levels
    )


def _of_grant(grant: Grant, trust: Trust, place: StorePlace) -> list[Binding]:
    name, store, scope = f"{grant.scope}-{grant.store}", grant.store, grant.scope
    reads = grant.verb is Verb.READ
    found: list[Binding] = []

    def add(
        suffix: str,
        key: str,
        resource: str,
        role: str,
        condition: Condition | None = None,
    ) -> None:
        kind = key.partition("/")[0].removesuffix("_id").replace("cache", "repository")
        found.append(
            Binding(
                f"{name}-{suffix}", kind, resource, role, store, scope, key, condition
            )
        )

    if store in BUCKET_KINDS and place.bucket and grant.verb is not Verb.INSERT:
        levels = readable(trust) if reads else (trust,)
        condition = Condition(
            f"{'Read' if reads else 'Write'} as {trust}",
            prefixes(place.bucket, levels),
        )
        role = READER if reads else WRITER
        add(str(grant.verb), "bucket", place.bucket, role, condition)
        if reads:
            add("list", "bucket", place.bucket, LISTER)
    if store in REPOSITORY_KINDS and grant.verb is not Verb.INSERT:
        verb, role = ("pull", PULLER) if reads else ("push", PUSHER)
        for level in readable(trust) if reads else (trust,):
            if level in place.repositories:
                key = f"repository_id/{level}"
                add(f"{verb}-{level}", key, place.repositories[level], role)
        caches = place.caches.items() if reads else ()
        for upstream, cache in caches:
            add(f"pull-cache-{upstream}", f"cache_id/{upstream}", cache, PULLER)
    if grant.verb is Verb.INSERT and trust in place.topics:
        add("insert", f"topic/{trust}", place.topics[trust], INSERTER)
    return found


def _ordered(grants: Iterable[Grant]) -> list[Grant]:
    kinds, scopes, verbs = list(StoreKind), list(Scope), list(Verb)
    return sorted(
        {grant.text: grant for grant in grants}.values(),
        key=lambda g: (
            scopes.index(g.scope),
            kinds.index(g.store),
            verbs.index(g.verb),
        ),
    )
