"""The fleet's questions to the Google Cloud evaluator: parts of stores, pods, tokens.

A store is split by the trust of what writes to it: a prefix of a bucket, a repository
or a topic for each trust level, and the remote repositories that copy others. The
access matrix asks about each part. Objects are asked for with several keys: fixed
ones, and one from each text that a condition on the bucket compares names with, so
that access to some of a part shows as ``partial``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from runfleet.review.evaluators.decision import Truth
from runfleet.review.evaluators.gcp_conditions import holds, literals
from runfleet.review.evaluators.gcp_decide import (
    Access,
    Principal,
    Target,
    account_target,
    bucket_target,
    named_target,
    object_target,
    pod,
)
from runfleet.review.evaluators.gcp_inventory import (
    Inventory,
    Resource,
    TokenProvider,
    read_inventory,
)
from runfleet.review.evaluators.gcp_roles import ALL, BELONGS, DECISIVE, ON_BUCKET
from runfleet.review.evaluators.parts import Answer, Part
from runfleet.spec.github import GitHub
from runfleet.spec.roles import Scope, StoreKind, Trust, Verb

NOT_CROSS_CHECKED = (
    "Google Cloud: no emulator confirms allow policies and conditions; deny policies, "
    "principal access boundaries, VPC Service Controls and policies of folders and "
    "organisations are not in a record",
    "Google Cloud: who is in a group is not in a record",
    "Google Cloud: that connections use TLS is an organisation policy of the project",
)
"""Rules of this evaluator that nothing else confirms."""

_BUCKET = "//storage.googleapis.com/projects/_/buckets/"
_KEYS = ("probe/object", "x")


class GcpReader:
    """Answers the access matrix from the records of one or several projects."""

    not_cross_checked: Sequence[str] = NOT_CROSS_CHECKED

    def __init__(self, records: Iterable[tuple[Iterable[Resource], str]]) -> None:
        """Read records, each with the project that it deploys to."""
        self._inventory: Inventory = read_inventory(records)
        self._access = Access(self._inventory)
        self.problems = tuple(self._inventory.problems)

    def parts(self, scope: Scope, exported: Mapping[str, Any]) -> list[Part]:
        """Return the parts of the stores that a stack exports.

        Stores of another cloud have none here: nobody reaches them with an identity
        of Google's alone.
        """
        found: list[Part] = []
        for name, handle in exported.items():
            kind = StoreKind(name)
            extra = cast("Mapping[str, str]", handle.get("extra") or {})
            images = str(handle.get("repository_id") or "").rpartition("/")[0]
            topics = str(handle.get("stream_id") or "").rpartition("/")[0]
            for trust in Trust:
                bucket = str(handle.get("bucket_id") or "")
                if bucket.startswith(_BUCKET) and kind is not StoreKind.TELEMETRY:
                    place = f"{bucket}/objects/{trust}/"
                    found.append(Part(kind, scope, trust, place))
                if repository := extra.get(f"repository_id/{trust}"):
                    place = f"{images}/{repository}"
                    found.append(Part(kind, scope, trust, place, "images"))
                if topic := extra.get(f"topic/{trust}"):
                    found.append(Part(kind, scope, trust, f"{topics}/{topic}"))
            for key, repository in sorted(extra.items()):
                upstream = key.removeprefix("cache_id/")
                if upstream != key:
                    place = f"{images}/{repository}"
                    found.append(Part(kind, scope, None, place, f"copy of {upstream}"))
        return found

    def pod(
        self,
        namespace: str,
        service_account: str,
        cluster: str,
        parts: Sequence[Part],
    ) -> Answer:
        """Return what the pods of a service account may do with each part."""
        pool = self._inventory.pools.get(cluster, "")
        strays: list[str] = []
        who: dict[Principal, Truth] = {}
        if pool:
            start = pod(pool, namespace, service_account)
            who = self._access.reach(start)
            strays += self._others(who, start)
        for machines in self._inventory.machines:
            if machines.cluster == cluster and not machines.hidden:
                name = machines.owner.rpartition("::")[2]
                strays.append(f"pods on {name} get the credentials of the machine")
                account = Principal(email=machines.service_account)
                who |= self._access.reach(account)
        return self._answer(who, parts, strays)

    def federated(
        self,
        identity: str,
        subjects: Sequence[str],
        github: GitHub,
        parts: Sequence[Part],
    ) -> Answer:
        """Return what jobs with these token subjects may do through an identity.

        The trust is asked too: each subject must get the identity, and a pull
        request, another branch, environment, repository or audience must not.
        """
        wrong: list[str] = []
        who: dict[Principal, Truth] = {}
        account = Principal(email=identity)
        for subject in subjects:
            found = self._token(subject, github)
            if found.get(account, Truth.NO) is not Truth.YES:
                wrong.append(f"{subject} does not get {identity}")
            for principal, sure in found.items():
                who[principal] = max(sure, who.get(principal, Truth.NO))
        who[account] = Truth.YES
        for stranger in _strangers(subjects):
            found = self._token(stranger, github)
            if found.get(account, Truth.NO) is not Truth.NO:
                wrong.append(f"{stranger} may get {identity}")
        for provider in self._inventory.providers:
            if provider.issuer == github.oidc_issuer and provider.audiences:
                named = ", ".join(provider.audiences)
                wrong.append(
                    f"{provider.provider} takes tokens for others too: {named}"
                )
        return self._answer(who, parts, wrong)

    def _token(self, subject: str, github: GitHub) -> dict[Principal, Truth]:
        """Return the identities that a job with a subject can become."""
        found: dict[Principal, Truth] = {}
        for provider in self._inventory.providers:
            if provider.issuer != github.oidc_issuer or provider.disabled:
                continue
            claims = _claims(subject, github)
            taken = (
                holds(provider.condition, claims) if provider.condition else Truth.YES
            )
            if taken is Truth.NO:
                continue
            for principal, sure in self._access.reach(
                _principal(provider, claims)
            ).items():
                step = min(taken, sure)
                found[principal] = max(step, found.get(principal, Truth.NO))
        return found

    def _others(
        self, who: Mapping[Principal, Truth], start: Principal
    ) -> Iterator[str]:
        """Say who else may become the identities that one may become."""
        for account in who:
            if not account.email:
                continue
            for binding in self._access.bindings_of(account_target(account.email).name):
                matched = self._access.matches(binding.member, start)
                if matched is not Truth.YES:
                    yield f"{binding.member} has {binding.role} on {account.email}"

    def _answer(
        self,
        who: Mapping[Principal, Truth],
        parts: Sequence[Part],
        strays: Iterable[str],
    ) -> Answer:
        asked = [_Part(self, part) for part in parts]
        held = _held_by_bucket(asked, who)
        return Answer(
            tuple(part.access(who, held) for part in asked),
            tuple(sorted({*strays, *self._strays(who, asked)})),
            tuple(
                sorted(
                    principal.email
                    for principal, sure in who.items()
                    if principal.email and sure is not Truth.NO
                )
            ),
        )

    def _strays(
        self, who: Mapping[Principal, Truth], parts: Sequence[_Part]
    ) -> Iterator[str]:
        """Say which roles the identities have on anything that is no part.

        Groups are left out: who is in one is in no record, and no identity of the
        fleet is ever put into one.
        """
        known = {part.home for part in parts}
        hops = {
            account_target(principal.email).name for principal in who if principal.email
        }
        for binding in self._inventory.bindings:
            if binding.resource in known or binding.resource in hops:
                continue
            if binding.member.startswith("group:"):
                continue
            for principal, sure in who.items():
                matched = min(sure, self._access.matches(binding.member, principal))
                if matched is not Truth.NO:
                    yield f"{binding.role} on {binding.resource}"
                    break

    @property
    def access(self) -> Access:
        """The evaluator itself."""
        return self._access

    def bucket_project(self, bucket: str) -> str:
        """Return the project of a bucket; empty when no record makes it."""
        return self._inventory.buckets.get(bucket, "")


class _Part:
    """A part of a store, and what is asked of it."""

    def __init__(self, reader: GcpReader, part: Part) -> None:
        self.part = part
        self._access = reader.access
        place = part.place
        if place.startswith(_BUCKET):
            self.kind = "object"
            bucket, _, prefix = place.removeprefix(_BUCKET).partition("/objects/")
            self.home = f"projects/_/buckets/{bucket}"
            project = reader.bucket_project(bucket)
            self._bucket: Target | None = bucket_target(bucket, project)
            keys = [prefix + key for key in _KEYS]
            for binding in reader.access.bindings_of(self.home):
                for text in literals(binding.condition):
                    key = text.removeprefix(f"{self.home}/objects/")
                    if key != text and key.startswith(prefix) and key != prefix:
                        keys.append(f"{key}/probe")
            self.targets = [
                object_target(bucket, key, project) for key in dict.fromkeys(keys)
            ]
            return
        self._bucket = None
        self.home = place
        topic = "/topics/" in place
        self.kind = "topic" if topic else "repository"
        type_ = (
            "pubsub.googleapis.com/Topic"
            if topic
            else "artifactregistry.googleapis.com/Repository"
        )
        self.targets = [named_target(place, type_)]

    def truths(self, who: Mapping[Principal, Truth], permission: str) -> list[Truth]:
        """Return whether the identities have a permission, for each target."""
        targets = self.targets
        if self._bucket is not None and permission in ON_BUCKET:
            targets = [self._bucket]
        return [self._access.any_may(who, permission, target) for target in targets]

    def verb(self, who: Mapping[Principal, Truth], verb: str) -> str:
        """Return how much of the part the identities may do a verb on."""
        permission = DECISIVE[self.kind].get(verb)
        return "none" if permission is None else _joined(self.truths(who, permission))

    def access(
        self, who: Mapping[Principal, Truth], held: Mapping[str, set[str]]
    ) -> Mapping[str, Any]:
        """Return the answer for the part."""
        verbs = {str(verb): self.verb(who, str(verb)) for verb in Verb}
        own = {verb for verb, found in verbs.items() if found != "none"}
        beyond: list[str] = []
        unclear: list[str] = []
        for permission in ALL[self.kind]:
            verbs_here = held[self.home] if permission in ON_BUCKET else own
            if any(permission in BELONGS[self.kind].get(v, ()) for v in verbs_here):
                continue
            found = self.truths(who, permission)
            if Truth.YES in found:
                beyond.append(permission)
            elif Truth.UNSURE in found:
                unclear.append(permission)
        return {
            **verbs,
            "beyond": tuple(beyond),
            "unclear": tuple(unclear),
            "without_tls": (),
        }


def _held_by_bucket(
    parts: Sequence[_Part], who: Mapping[Principal, Truth]
) -> dict[str, set[str]]:
    """Return the verbs that identities have on any part of each resource."""
    found: dict[str, set[str]] = {}
    for part in parts:
        held = found.setdefault(part.home, set())
        held |= {str(v) for v in Verb if part.verb(who, str(v)) != "none"}
    return found


def _joined(found: Sequence[Truth]) -> str:
    if Truth.UNSURE in found:
        return "cannot-tell"
    if all(truth is Truth.YES for truth in found):
        return "full"
    return "partial" if Truth.YES in found else "none"


def _claims(subject: str, github: GitHub) -> dict[str, Any]:
    """Return the claims of a token, by path in a provider's condition.

    A subject with ids says them; for one with names the fleet file may know them.
    """
    repository = subject.split(":")[1] if ":" in subject else ""
    owner, _, name = repository.partition("/")
    owner, _, owner_id = owner.partition("@")
    name, _, repository_id = name.partition("@")
    full = f"{owner}/{name}"
    claims: dict[str, Any] = {
        "assertion.sub": subject,
        "assertion.iss": github.oidc_issuer,
        "assertion.repository": full,
        "assertion.repository_owner": owner,
    }
    known = next((r for r in github.federation if r.repository == full), None)
    if known is None:
        # Somebody else's repository has ids of its own.
        owner_id, repository_id = owner_id or "0", repository_id or "0"
    else:
        owner_id = owner_id or str(known.owner_id or "")
        repository_id = repository_id or str(known.repository_id or "")
    if owner_id:
        claims["assertion.repository_owner_id"] = owner_id
    if repository_id:
        claims["assertion.repository_id"] = repository_id
    return claims


def _principal(provider: TokenProvider, claims: Mapping[str, Any]) -> Principal:
    """Return who a token's bearer is in a pool."""
    mapped = {
        key: claims.get(expression.strip())
        for key, expression in provider.mapping.items()
    }
    return Principal(
        pool=provider.pool,
        project=provider.project,
        subject=str(mapped.get("google.subject") or ""),
        sets=frozenset(
            f"{key}/{value}"
            for key, value in mapped.items()
            if key.startswith("attribute.") and value is not None
        ),
    )


def _strangers(subjects: Sequence[str]) -> list[str]:
    """Return subjects close to the accepted ones that must not be let in."""
    found: list[str] = []
    for subject in subjects:
        repository = ":".join(subject.split(":")[:2])
        tail = ":".join(subject.split(":")[2:])
        found += [
            f"{repository}:pull_request",
            f"{repository}:ref:refs/heads/main",
            f"{subject}-more",
            f"{repository}:{tail.replace('environment:', 'environment:x', 1)}",
            f"{repository.split('@')[0]}-fork:{tail}",
        ]
    return [stranger for stranger in found if stranger not in subjects]
