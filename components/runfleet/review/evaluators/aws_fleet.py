"""The fleet's questions to the AWS evaluator: parts of stores, pods, tokens.

A store is split by the trust of what writes to it: a prefix of a bucket, a repository
or a stream for each trust level, and the pull-through cache. The access matrix asks
about each part, so that "may write the cache" and "may write what a release reads"
are different questions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from runfleet.review.evaluators.aws import NOT_CROSS_CHECKED, AwsAccounts, Session
from runfleet.review.evaluators.aws_reader import Resource
from runfleet.review.evaluators.aws_verbs import (
    Store,
    VerbAccess,
    pod_access,
    store_access,
    stray_permissions,
)
from runfleet.review.evaluators.parts import Answer, Part
from runfleet.spec.github import GitHub
from runfleet.spec.roles import Scope, StoreKind, Trust, Verb


class AwsReader:
    """Answers the access matrix from the records of one or several AWS accounts."""

    not_cross_checked: Sequence[str] = NOT_CROSS_CHECKED

    def __init__(self, records: Iterable[tuple[Iterable[Resource], str]]) -> None:
        """Read records, each with the account that it deploys to."""
        self._accounts = AwsAccounts.combined(
            AwsAccounts.from_resources(resources, account=account or None)
            for resources, account in records
        )
        self.problems = tuple(str(problem) for problem in self._accounts.problems)

    def parts(self, scope: Scope, exported: Mapping[str, Any]) -> list[Part]:
        """Return the parts of the stores that a stack exports."""
        found: list[Part] = []
        for name, handle in exported.items():
            kind = StoreKind(name)
            extra = cast("dict[str, str]", handle.get("extra") or {})
            for trust in Trust:
                bucket = handle.get("bucket_id")
                if bucket and kind is not StoreKind.TELEMETRY:
                    found.append(Part(kind, scope, trust, f"{bucket}/{trust}/"))
                if repository := handle.get("repository_id"):
                    found.append(
                        Part(kind, scope, trust, f"{repository}/{trust}", "images")
                    )
                if stream := handle.get("stream_id"):
                    found.append(Part(kind, scope, trust, f"{stream}-{trust}"))
            for arn in filter(None, extra.get("pull_through_ids", "").split(",")):
                name = arn.rsplit("/", 1)[-1]
                found.append(Part(kind, scope, None, f"{arn}/*", f"copy of {name}"))
        return found

    def pod(
        self,
        namespace: str,
        service_account: str,
        cluster: str,
        parts: Sequence[Part],
    ) -> Answer:
        """Return what the pods of a service account may do with each part."""
        reach = self._accounts.reach(namespace, service_account, cluster)
        found = pod_access(
            self._accounts, namespace, service_account, cluster, _stores(parts)
        )
        strays: list[str] = []
        inserts = {item.session.role_arn for item in reach}
        for item in reach:
            strays += [
                stray
                for stray in stray_permissions(
                    self._accounts, item.session, _stores(parts)
                )
                if not _is_hop(stray, inserts)
            ]
        return Answer(
            tuple(_plain(access) for access in found),
            tuple(sorted(set(strays))),
            tuple(sorted(inserts)),
        )

    def federated(
        self,
        identity: str,
        subjects: Sequence[str],
        github: GitHub,
        parts: Sequence[Part],
    ) -> Answer:
        """Return what jobs with these token subjects may do through an identity.

        The trust is asked too: each subject must get the role, and a pull request,
        another branch, another environment or another audience must not.
        """
        refused: list[str] = []
        claims = {"iss": github.oidc_issuer, "aud": "sts.amazonaws.com"}
        for subject in subjects:
            asked = {**claims, "sub": subject}
            decision = self._accounts.may_assume_with_token(identity, asked)
            if not decision.allowed:
                refused.append(f"{subject} does not get the role")
            wrong = {**asked, "aud": "somebody-else"}
            if not self._accounts.may_assume_with_token(identity, wrong).denied:
                refused.append(f"{subject} gets the role with any audience")
        for stranger in _strangers(subjects):
            asked = {**claims, "sub": stranger}
            if not self._accounts.may_assume_with_token(identity, asked).denied:
                refused.append(f"{stranger} may get the role")
        session = Session(identity)
        found = store_access(self._accounts, session, _stores(parts))
        strays = stray_permissions(self._accounts, session, _stores(parts))
        return Answer(
            tuple(_plain(access) for access in found),
            (*strays, *refused),
            (identity,),
        )


def _stores(parts: Sequence[Part]) -> list[Store]:
    return [
        Store(part.kind, part.place, pull_through=part.trust is None) for part in parts
    ]


def _plain(access: VerbAccess) -> Mapping[str, Any]:
    return {
        **{str(verb): str(access.of(verb)) for verb in Verb},
        "beyond": access.beyond,
        "unclear": access.unclear,
        "without_tls": access.without_tls,
    }


def _is_hop(stray: str, roles: set[str]) -> bool:
    """Say whether a stray is taking on one of the roles that the pod may get."""
    action, _, resource = stray.partition(" on ")
    return action.lower() in ("sts:assumerole", "sts:tagsession") and resource in roles


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
