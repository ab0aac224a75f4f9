"""The fleet's questions to the Azure evaluator: parts of stores, pods, tokens.

A store is split by the trust of what writes to it: a prefix of a container, or a
registry, for each trust level. The meaning of each verb, in actions, is here; every
other action that matters on the part is asked as well, and what is allowed of them is
*beyond*.

Objects are asked for with several names: one that nobody thought of, and one made from
each value that a condition of the identity compares with, so that access to a piece of
a part shows as ``partial``. Listing is asked with the part's prefix.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from runfleet.review.evaluators.azure import (
    NOT_CROSS_CHECKED,
    AzureAccess,
    Request,
    Resource,
    covers,
)
from runfleet.review.evaluators.decision import Truth
from runfleet.review.evaluators.parts import Answer, Part
from runfleet.spec.github import GitHub
from runfleet.spec.roles import Scope, StoreKind, Trust, Verb

BLOBS = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs"
CONTAINERS = "Microsoft.Storage/storageAccounts/blobServices/containers"
ACCOUNTS = "Microsoft.Storage/storageAccounts"
REGISTRIES = "Microsoft.ContainerRegistry/registries"

READ, WRITE, ADD = f"{BLOBS}/read", f"{BLOBS}/write", f"{BLOBS}/add/action"
PULL, PUSH = f"{REGISTRIES}/pull/read", f"{REGISTRIES}/push/write"
PATH, PREFIX = f"@Resource[{BLOBS}:path]", f"@Request[{BLOBS}:prefix]"

OTHER_BLOB_ACTIONS = tuple(
    f"{BLOBS}/{name}"
    for name in (
        "delete",
        "deleteBlobVersion/action",
        "filter/action",
        "immutableStorage/runAsSuperUser/action",
        "manageOwnership/action",
        "modifyPermissions/action",
        "move/action",
        "permanentDelete/action",
        "tags/read",
        "tags/write",
    )
)
"""Other data actions on blobs (documentation, "Azure permissions for Storage")."""

OTHER_STORAGE_ACTIONS = (
    *(
        f"{CONTAINERS}/{name}"
        for name in (
            "clearLegalHold/action",
            "delete",
            "immutabilityPolicies/delete",
            "immutabilityPolicies/write",
            "lease/action",
            "read",
            "setLegalHold/action",
            "write",
        )
    ),
    *(
        f"{ACCOUNTS}/{name}"
        for name in (
            "blobServices/generateUserDelegationKey/action",
            "blobServices/write",
            "delete",
            "listAccountSas/action",
            "listKeys/action",
            "listServiceSas/action",
            "managementPolicies/write",
            "read",
            "regenerateKey/action",
            "write",
        )
    ),
)
"""Other actions on containers and their accounts (the same page)."""

OTHER_REGISTRY_ACTIONS = tuple(
    f"{REGISTRIES}/{name}"
    for name in (
        "artifacts/delete",
        "cacheRules/write",
        "credentialSets/write",
        "delete",
        "deleted/restore/action",
        "generateCredentials/action",
        "importImage/action",
        "listCredentials/action",
        "metadata/read",
        "metadata/write",
        "privateEndpointConnectionsApproval/action",
        "quarantine/read",
        "quarantine/write",
        "read",
        "regenerateCredential/action",
        "scheduleRun/action",
        "scopeMaps/write",
        "sign/write",
        "tasks/write",
        "tokens/write",
        "webhooks/write",
        "write",
    )
)
"""Other actions on registries (Azure documentation, "Azure permissions for
Containers")."""

EVERYWHERE = (
    "Microsoft.Authorization/roleAssignments/write",
    "Microsoft.Authorization/roleDefinitions/write",
    "Microsoft.Resources/deployments/write",
)
"""Actions that give all others."""


@dataclass(frozen=True)
class _Probe:
    action: str
    scope: str
    data: bool = True
    sub_operation: str = ""
    path: str | None = None
    prefix: str | None = None


class AzureReader:
    """Answers the access matrix from the records of one or several subscriptions."""

    not_cross_checked: Sequence[str] = NOT_CROSS_CHECKED

    def __init__(self, records: Iterable[tuple[Iterable[Resource], str]]) -> None:
        """Read records, each with the subscription that it deploys to."""
        resources = [each for found, _ in records for each in found]
        self._access = AzureAccess(resources)
        self.problems = tuple(self._access.inventory.problems)

    def parts(self, scope: Scope, exported: Mapping[str, Any]) -> list[Part]:
        """Return the parts of the stores that a stack exports."""
        found: list[Part] = []
        for name, handle in exported.items():
            kind = StoreKind(name)
            extra = cast("Mapping[str, str]", handle.get("extra") or {})
            for trust in Trust:
                if container := handle.get("bucket_id"):
                    found.append(Part(kind, scope, trust, f"{container}/{trust}/"))
                if registry := extra.get(f"repository_id/{trust}"):
                    found.append(Part(kind, scope, trust, registry, "images"))
        return found

    def pod(
        self,
        namespace: str,
        service_account: str,
        cluster: str,
        parts: Sequence[Part],
    ) -> Answer:
        """Return what the pods of a service account may do with each part."""
        issuer = self._access.inventory.issuers.get(cluster)
        if issuer is None:
            return self._answer({}, parts, ())
        subject = f"system:serviceaccount:{namespace}:{service_account}"
        return self._answer(self._access.identities_of(issuer, subject), parts, ())

    def federated(
        self,
        identity: str,
        subjects: Sequence[str],
        github: GitHub,
        parts: Sequence[Part],
    ) -> Answer:
        """Return what jobs with these token subjects may do through an identity.

        The trust is asked too: each subject must get the identity, and a pull request,
        another branch, another environment or another audience must not.
        """
        refused: list[str] = []
        issuer = github.oidc_issuer
        for subject in subjects:
            if self._gets(identity, issuer, subject) is not Truth.YES:
                refused.append(f"{subject} does not get the identity")
            if self._gets(identity, issuer, subject, "somebody-else") is not Truth.NO:
                refused.append(f"{subject} gets the identity with any audience")
            if self._gets(identity, f"{issuer}.example", subject) is not Truth.NO:
                refused.append(f"{subject} gets the identity from another issuer")
        for stranger in _strangers(subjects):
            if self._gets(identity, issuer, stranger) is not Truth.NO:
                refused.append(f"{stranger} may get the identity")
        expected = {subject.lower() for subject in subjects}
        refused += [
            f"{credential.subject or 'an expression'} may get the identity"
            for credential in self._access.inventory.credentials
            if credential.identity == identity
            and credential.subject.lower() not in expected
        ]
        return self._answer({identity: Truth.YES}, parts, tuple(refused))

    def _gets(
        self, identity: str, issuer: str, subject: str, audience: str = ""
    ) -> Truth:
        asked = [audience] if audience else []
        found = self._access.identities_of(issuer, subject, *asked)
        return found.get(identity, Truth.NO)

    def _answer(
        self,
        identities: Mapping[str, Truth],
        parts: Sequence[Part],
        refused: Sequence[str],
    ) -> Answer:
        known = self._access.inventory.identities
        principals: list[tuple[str, Truth]] = [
            (known.get(identity, identity), surely)
            for identity, surely in identities.items()
        ]
        strays = list(refused) + list(self._access.inventory.openings)
        for principal, _ in principals:
            strays += self._strays(principal, parts)
        return Answer(
            tuple(self._part(principals, part) for part in parts),
            tuple(sorted(set(strays))),
            tuple(sorted(identities)),
        )

    def _part(
        self, principals: Sequence[tuple[str, Truth]], part: Part
    ) -> Mapping[str, Any]:
        images = part.what == "images"
        read = self._images(principals, part, PULL) if images else None
        write = self._images(principals, part, PUSH) if images else None
        if read is None or write is None:
            read = self._objects(principals, part, READ)
            write = self._objects(principals, part, WRITE)
        insert = "none" if images else self._objects(principals, part, ADD)
        if part.kind is not StoreKind.TELEMETRY and write != "none":
            # What replaces an object may create it too: no right of its own.
            insert = "none"
        beyond: list[str] = []
        unclear: list[str] = []
        for probe in _others(part):
            answer = self._ask(principals, probe)
            if answer is Truth.YES:
                beyond.append(probe.action)
            elif answer is Truth.UNSURE:
                unclear.append(probe.action)
        may = [
            str(verb)
            for verb, access in zip(Verb, (read, write, insert), strict=True)
            if access != "none"
        ]
        account = part.place.partition("/blobServices/")[0].lower()
        open_to_plain = account in self._access.inventory.without_tls
        return {
            str(Verb.READ): read,
            str(Verb.WRITE): write,
            str(Verb.INSERT): insert,
            "beyond": tuple(beyond),
            "unclear": tuple(unclear),
            "without_tls": tuple(may) if open_to_plain else (),
        }

    def _images(
        self, principals: Sequence[tuple[str, Truth]], part: Part, action: str
    ) -> str:
        return _spelled([self._ask(principals, _Probe(action, part.place, data=False))])

    def _objects(
        self, principals: Sequence[tuple[str, Truth]], part: Part, action: str
    ) -> str:
        container, prefix = _split(part.place)
        names = {f"{prefix}probe/object"}
        for principal, _ in principals:
            names |= {
                f"{literal}{tail}"
                for literal in self._access.literals_of(principal)
                for tail in ("", "x")
                if literal.startswith(prefix) and literal + tail != prefix
            }
        probes = [_Probe(action, container, path=name) for name in sorted(names)]
        if action == READ:
            listing = _Probe(
                READ, container, sub_operation="Blob.List", prefix=prefix, path=None
            )
            probes.append(listing)
        return _spelled([self._ask(principals, probe) for probe in probes])

    def _ask(self, principals: Sequence[tuple[str, Truth]], probe: _Probe) -> Truth:
        attributes: dict[str, str | None] = {PATH: probe.path, PREFIX: probe.prefix}
        best = Truth.NO
        for principal, surely in principals:
            answer = self._access.decide(
                Request(
                    principal,
                    probe.action,
                    probe.scope,
                    probe.data,
                    probe.sub_operation,
                    attributes,
                )
            )
            best = max(best, min(answer, surely))
        return best

    def _strays(self, principal: str, parts: Sequence[Part]) -> list[str]:
        """Return what an identity may do on none of the parts.

        That is every assignment on anything but a part's own container or registry,
        and what is allowed in a container outside all parts.
        """
        own = {_split(part.place)[0] for part in parts if part.what != "images"}
        whole = own | {part.place for part in parts if part.what == "images"}
        found = [
            f"role {assignment.role} on {assignment.scope}"
            for assignment in self._access.assignments_of(principal)
            if not any(covers(place, assignment.scope) is Truth.YES for place in whole)
        ]
        for container in own:
            for action in (READ, WRITE, ADD):
                probe = _Probe(action, container, path="elsewhere/probe")
                if self._ask([(principal, Truth.YES)], probe) is not Truth.NO:
                    found.append(f"{action} on {container} outside all trust levels")
            listing = _Probe(READ, container, sub_operation="Blob.List")
            if self._ask([(principal, Truth.YES)], listing) is not Truth.NO:
                found.append(f"listing all of {container}")
        return found


def _others(part: Part) -> list[_Probe]:
    """Return the probes of what belongs to no verb on a part."""
    if part.what == "images":
        actions = (*OTHER_REGISTRY_ACTIONS, *EVERYWHERE)
        return [_Probe(action, part.place, data=False) for action in actions]
    container, prefix = _split(part.place)
    account = container.partition("/blobServices/")[0]
    return [
        *(
            _Probe(action, container, path=f"{prefix}probe/object")
            for action in OTHER_BLOB_ACTIONS
        ),
        *(
            _Probe(
                action,
                container if action.startswith(CONTAINERS) else account,
                data=False,
            )
            for action in (*OTHER_STORAGE_ACTIONS, *EVERYWHERE)
        ),
    ]


def _split(place: str) -> tuple[str, str]:
    """Return container and prefix of a part of a container."""
    head, _, rest = place.partition("/containers/")
    container, _, prefix = rest.partition("/")
    return f"{head}/containers/{container}", prefix


def _spelled(answers: Sequence[Truth]) -> str:
    """Return how much of a verb is allowed."""
    if all(answer is Truth.YES for answer in answers):
        return "full"
    if all(answer is Truth.NO for answer in answers):
        return "none"
    return "partial" if Truth.YES in answers else "cannot-tell"


def _strangers(subjects: Sequence[str]) -> list[str]:
    """Return subjects close to the accepted ones that must not be let in."""
    found: list[str] = []
    for subject in subjects:
        repository = ":".join(subject.split(":")[:2])
        found += [
            f"{repository}:pull_request",
            f"{repository}:ref:refs/heads/main",
            f"{subject}-more",
            subject.replace(":environment:", ":environment:x", 1),
            f"{repository}-fork:{':'.join(subject.split(':')[2:])}",
        ]
    return [stranger for stranger in found if stranger not in subjects]
