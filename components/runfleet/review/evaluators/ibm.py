"""The fleet's questions to the IBM Cloud evaluator: parts of stores, and pods.

A store is split by the trust of what writes to it: a prefix of a bucket, a registry
namespace for each trust level. The access matrix asks about each part.

**Who.** A pod gets the identity of every trusted profile that its service account may
take on: by a link, whose missing parts mean any, or by a claim rule. A pod has what all
of them have together.

**What a verb is**, in actions of the services:

* *read* objects: ``object.get`` and ``object.head`` on every path of the part; listing
  under the prefix belongs to it;
* *write* objects: uploads, whole or in parts;
* *insert*: the same on a bucket whose retention rule keeps what was written from being
  replaced or deleted; without such a rule it is *write*;
* *read* and *write* images: ``image.pull`` and ``image.push``.

Every other action of the service is asked as well, on the part and on the bucket or
registry around it; what is allowed and belongs to no verb that the identity has is
beyond its grants. Paths are fixed samples, and one made from each pattern of the
policies, so that access to a piece of a part shows as partial. Both services answer
over TLS only.

IBM Cloud's IAM takes no token of GitHub, so no federated identity can do anything.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from runfleet.review.evaluators.decision import Truth, either
from runfleet.review.evaluators.ibm_inventory import (
    ClaimRule,
    Inventory,
    Link,
    Profile,
    Resource,
    read,
)
from runfleet.review.evaluators.ibm_policy import (
    Policy,
    Request,
    Roles,
    actions_of,
    allows,
    patterns_of,
)
from runfleet.review.evaluators.parts import Answer, Part
from runfleet.spec.github import GitHub
from runfleet.spec.roles import Scope, StoreKind, Trust, Verb

STORAGE = "cloud-object-storage"
REGISTRY = "container-registry"

NOT_CROSS_CHECKED = (
    "IBM Cloud: no emulator of its IAM exists; every rule is read from documentation",
)

READ_OBJECTS = frozenset({f"{STORAGE}.object.get", f"{STORAGE}.object.head"})
WRITE_OBJECTS = frozenset(
    {
        f"{STORAGE}.object.put",
        f"{STORAGE}.object.post_initiate_upload",
        f"{STORAGE}.object.put_part",
        f"{STORAGE}.object.post_complete_upload",
    }
)
LISTS = frozenset(
    {
        f"{STORAGE}.bucket.get",
        f"{STORAGE}.bucket.get_versions",
        f"{STORAGE}.bucket.get_uploads",
    }
)
"""Actions on a bucket that name a prefix."""

PULL = frozenset({f"{REGISTRY}.image.pull"})
PUSH = frozenset({f"{REGISTRY}.image.push"})

BELONGS: Mapping[tuple[str, Verb], frozenset[str]] = {
    (STORAGE, Verb.READ): READ_OBJECTS
    | {
        f"{STORAGE}.bucket.get",
        f"{STORAGE}.bucket.get_versions",
        f"{STORAGE}.object.get_version",
        f"{STORAGE}.object.head_version",
        f"{STORAGE}.object.copy_get_version",
        f"{STORAGE}.object.copy_part_get_version",
    },
    (STORAGE, Verb.WRITE): WRITE_OBJECTS
    | {
        f"{STORAGE}.object.post",
        f"{STORAGE}.object.post_md",
        f"{STORAGE}.object.get_uploads",
        f"{STORAGE}.object.delete_upload",
        f"{STORAGE}.object.put_tagging",
        f"{STORAGE}.object.put_tagging_version",
        f"{STORAGE}.object.delete_tagging",
        f"{STORAGE}.object.delete_tagging_version",
        f"{STORAGE}.object.put_object_lock_retention",
        f"{STORAGE}.object.put_object_lock_retention_version",
        f"{STORAGE}.object.put_object_lock_legal_hold",
        f"{STORAGE}.object.put_object_lock_legal_hold_version",
    },
    (REGISTRY, Verb.READ): PULL
    | {
        f"{REGISTRY}.image.inspect",
        f"{REGISTRY}.image.list",
        f"{REGISTRY}.image.vulnerabilities",
        f"{REGISTRY}.namespace.list",
        f"{REGISTRY}.retention.analyze",
        f"{REGISTRY}.retention.get",
        f"{REGISTRY}.retention.list",
    },
    (REGISTRY, Verb.WRITE): PUSH,
}
"""What comes with a verb because no narrower way to give it is published."""

_SAMPLES = ("probe", "probe/deeper/object.bin")
_OUTSIDE = ("probe", "elsewhere/probe")


@dataclass(frozen=True)
class Place:
    """Where a part is.

    Attributes:
        service: The service that holds it.
        attributes: What the bucket or namespace is, as IAM sees it.
        prefix: Prefix of its objects; empty for a namespace.
    """

    service: str
    attributes: Mapping[str, str | None]
    prefix: str = ""

    @property
    def resource(self) -> str:
        """Name of the bucket or namespace."""
        return self.attributes["resource"] or ""


class IbmReader:
    """Answers the access matrix from the records of one or several accounts."""

    not_cross_checked: Sequence[str] = NOT_CROSS_CHECKED

    def __init__(self, records: Iterable[tuple[Iterable[Resource], str]]) -> None:
        """Read records, each with the account that it deploys to."""
        self._found: Inventory = read(
            resource for resources, _ in records for resource in resources
        )
        self._roles = Roles(self._found.roles)
        self.problems: tuple[str, ...] = tuple(
            f"{policy.urn}: {problem}"
            for policy in self._found.policies
            for problem in policy.problems
        )

    def parts(self, scope: Scope, exported: Mapping[str, Any]) -> list[Part]:
        """Return the parts of the stores that a stack exports.

        Stores of another cloud have no parts here.
        """
        found: list[Part] = []
        for name, handle in exported.items():
            kind = StoreKind(name)
            extra = cast("dict[str, str]", handle.get("extra") or {})
            for trust in Trust:
                bucket = handle.get("bucket_id")
                if isinstance(bucket, str) and bucket.startswith("crn:"):
                    found.append(Part(kind, scope, trust, f"{bucket}/{trust}/"))
                if namespace := extra.get(f"repository_id/{trust}"):
                    found.append(Part(kind, scope, trust, namespace, "images"))
        return found

    def pod(
        self,
        namespace: str,
        service_account: str,
        cluster: str,
        parts: Sequence[Part],
    ) -> Answer:
        """Return what the pods of a service account may do with each part."""
        crn = self._found.clusters.get(cluster, "")
        profiles: dict[str, Profile] = {}
        strays: list[str] = []
        for link in self._found.links:
            if link.profile_id in self._found.profiles and _links(
                link, crn, namespace, service_account
            ):
                profile = self._found.profiles[link.profile_id]
                profiles[profile.id] = profile
                if not (link.crn and link.namespace and link.name):
                    strays.append(
                        f"profile {profile.name} is linked to any {_any(link)}"
                    )
        for rule in self._found.claim_rules:
            lets_in = _lets_in(rule, crn, namespace, service_account)
            if rule.profile_id in self._found.profiles and lets_in is not Truth.NO:
                profile = self._found.profiles[rule.profile_id]
                profiles[profile.id] = profile
                strays.append(f"a claim rule of profile {profile.name} lets it in")
        subjects = {profile.iam_id for profile in profiles.values()}
        policies = [p for p in self._found.policies if p.subject in subjects]
        places = [place_of(part) for part in parts]
        strays += self._strays(policies, places)
        return Answer(
            tuple(
                self._access(policies, part, place)
                for part, place in zip(parts, places, strict=True)
            ),
            tuple(sorted(set(strays))),
            tuple(sorted(profiles)),
        )

    def federated(
        self,
        identity: str,
        subjects: Sequence[str],
        github: GitHub,
        parts: Sequence[Part],
    ) -> Answer:
        """Return that nothing is possible: IAM takes no token of GitHub.

        A profile that people may take on is named all the same: it is no identity for
        jobs.
        """
        del subjects, github
        nothing = {**{str(verb): "none" for verb in Verb}, **_NOTHING_ELSE}
        strays = tuple(
            f"profile {identity} may be taken on by people ({rule.urn})"
            for rule in self._found.claim_rules
            if rule.profile_id == identity and rule.type != "Profile-CR"
        )
        return Answer(tuple(nothing for _ in parts), strays, ())

    def _may(
        self, policies: Sequence[Policy], action: str, attributes: Mapping[str, Any]
    ) -> Truth:
        request = Request(action, attributes)
        return either(allows(policy, request, self._roles) for policy in policies)

    def _access(
        self, policies: Sequence[Policy], part: Part, place: Place
    ) -> Mapping[str, Any]:
        # Policies that name another resource can only refuse.
        policies = [
            p for p in policies if p.exact("resource") in (None, place.resource)
        ]
        if place.service == STORAGE:
            samples = _samples(policies, place)
            may = {
                action: [
                    self._may(policies, action, {**place.attributes, "path": sample})
                    for sample in samples
                ]
                for action in READ_OBJECTS | WRITE_OBJECTS
            }
            reads = _level(t for a in READ_OBJECTS for t in may[a])
            changes = _level(t for a in WRITE_OBJECTS for t in may[a])
        else:
            reads, changes = (
                _level(self._may(policies, a, place.attributes) for a in needed)
                for needed in (PULL, PUSH)
            )
        writes, inserts = changes, "none"
        if part.kind is StoreKind.TELEMETRY:
            bucket = self._found.buckets.get(place.resource)
            if bucket is None:
                inserts = writes = "none" if changes == "none" else "cannot-tell"
            elif bucket.unchanged:
                writes, inserts = "none", changes
        has = {
            Verb.READ: reads != "none",
            Verb.WRITE: changes != "none",
        }
        fine = {
            action
            for verb, held in has.items()
            if held
            for action in BELONGS[(place.service, verb)]
        }
        beyond: list[str] = []
        unclear: list[str] = []
        for action in actions_of(place.service):
            if action in fine:
                continue
            answer = either(
                self._may(policies, action, attributes)
                for attributes in _ways(action, place, policies)
            )
            if answer is Truth.YES:
                beyond.append(action)
            elif answer is Truth.UNSURE:
                unclear.append(action)
        return {
            str(Verb.READ): reads,
            str(Verb.WRITE): writes,
            str(Verb.INSERT): inserts,
            **_NOTHING_ELSE,
            "beyond": tuple(beyond),
            "unclear": tuple(unclear),
        }

    def _strays(self, policies: Sequence[Policy], places: Sequence[Place]) -> list[str]:
        """Return what policies give that is on none of the parts."""
        found: list[str] = []
        known = {(place.service, place.resource) for place in places}
        for policy in policies:
            target = (policy.exact("serviceName"), policy.exact("resource"))
            if policy.everywhere or target not in known:
                found.append(policy.describe())
                continue
            if target[0] != STORAGE:
                continue
            inside = [p for p in places if (p.service, p.resource) == target]
            for sample in [*_OUTSIDE, *_made(policy, "path")]:
                if any(sample.startswith(place.prefix) for place in inside):
                    continue
                attributes = {**inside[0].attributes, "path": sample}
                for action in sorted(READ_OBJECTS | WRITE_OBJECTS):
                    if self._may([policy], action, attributes) is not Truth.NO:
                        found.append(f"{action} on {target[1]}/{sample}")
        return found


_NOTHING_ELSE: Mapping[str, tuple[str, ...]] = {
    "beyond": (),
    "unclear": (),
    "without_tls": (),
}


def place_of(part: Part) -> Place:
    """Return where a part is, from its CRN."""
    crn, _, rest = part.place.partition("/")
    # The account in a CRN is a/<id>: put it back together.
    account, _, rest = rest.partition(":")
    fields = f"{crn}/{account}:{rest}".split(":")
    service, location, _, instance, kind = fields[4:9]
    name, _, prefix = fields[9].partition("/")
    attributes: dict[str, str | None] = {
        "serviceName": service,
        "accountId": account,
        "resourceType": kind,
        "resource": name,
        "resourceGroupId": None,
    }
    if service == STORAGE:
        attributes["serviceInstance"] = instance
    else:
        attributes["region"] = location
    return Place(service, attributes, prefix)


def _links(link: Link, crn: str, namespace: str, service_account: str) -> bool:
    """Say whether a link lets the pods of a service account in.

    A cluster that is not in the records is taken to be the linked one.
    """
    return (
        link.cr_type == "IKS_SA"
        and (not link.crn or not crn or link.crn == crn)
        and link.namespace in ("", namespace)
        and link.name in ("", service_account)
    )


def _any(link: Link) -> str:
    parts = {
        "cluster": link.crn,
        "namespace": link.namespace,
        "service account": link.name,
    }
    return " and ".join(name for name, value in parts.items() if not value)


def _lets_in(rule: ClaimRule, crn: str, namespace: str, service_account: str) -> Truth:
    """Say whether a claim rule lets the pods of a service account in."""
    if rule.type != "Profile-CR" or rule.cr_type not in ("", "IKS_SA"):
        return Truth.NO
    fields = crn.split(":")
    claims = {"namespace": namespace, "name": service_account}
    if len(fields) > 7:
        claims |= {"service_instance": fields[7], "location": fields[5]}
    answers: list[Truth] = [Truth.YES]
    for claim, operator, text in rule.conditions:
        answers.append(_claim(claims.get(claim), operator, text))
    return min(answers)


def _claim(actual: str | None, operator: str, text: str) -> Truth:
    try:
        wanted = json.loads(text)
    except ValueError:
        wanted = text
    if actual is None:
        return Truth.UNSURE
    values = (
        [str(v) for v in cast("list[Any]", wanted)]
        if isinstance(wanted, list)
        else [str(wanted)]
    )
    folded = [value.lower() for value in values]
    answers = {
        "EQUALS": actual in values,
        "NOT_EQUALS": actual not in values,
        "EQUALS_IGNORE_CASE": actual.lower() in folded,
        "NOT_EQUALS_IGNORE_CASE": actual.lower() not in folded,
        "IN": actual in values,
        "CONTAINS": any(value in actual for value in values),
    }
    if operator not in answers:
        return Truth.UNSURE
    return Truth.YES if answers[operator] else Truth.NO


def _samples(policies: Sequence[Policy], place: Place) -> list[str]:
    """Return paths of a part: fixed ones, and one for each pattern inside it."""
    made = [path for policy in policies for path in _made(policy, "path")]
    inside = [path for path in made if path.startswith(place.prefix)]
    fixed = [f"{place.prefix}{sample}" for sample in _SAMPLES]
    return list(dict.fromkeys([*fixed, *inside]))


def _made(policy: Policy, name: str) -> list[str]:
    """Return a value that each pattern of a policy's condition stands for."""
    return [
        pattern.replace("*", "probe").replace("?", "p")
        for pattern in patterns_of(policy.condition, name)
    ]


def _ways(
    action: str, place: Place, policies: Sequence[Policy]
) -> list[dict[str, Any]]:
    """Return the requests that an action can be part of, on a part or around it."""
    if place.service == REGISTRY:
        kind = action.removeprefix(f"{REGISTRY}.").partition(".")[0]
        if kind in ("image", "namespace", "retention"):
            return [dict(place.attributes)]
        return [_around(place)]
    kind = action.removeprefix(f"{STORAGE}.").partition(".")[0]
    if kind == "object":
        return [
            {**place.attributes, "path": path} for path in _samples(policies, place)
        ]
    if action in LISTS:
        return [
            {**place.attributes, "prefix": prefix, **delimiter}
            for prefix in ("", place.prefix, f"{place.prefix}probe/")
            for delimiter in ({}, {"delimiter": "/"})
        ]
    return [dict(place.attributes) if kind == "bucket" else _around(place)]


def _around(place: Place) -> dict[str, Any]:
    """Return the service instance or account around a part."""
    return {
        name: value
        for name, value in place.attributes.items()
        if name not in ("resource", "resourceType")
    }


def _level(answers: Iterable[Truth]) -> str:
    found = set(answers)
    if found == {Truth.YES}:
        return "full"
    if found == {Truth.NO}:
        return "none"
    return "cannot-tell" if Truth.UNSURE in found else "partial"
