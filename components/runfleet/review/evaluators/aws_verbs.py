"""From AWS actions to the fleet's words: what an identity may do with a store.

The meaning of each verb, in actions, is in ``aws_actions``; here it is *asked* of the
evaluator. Every other action of the store's service is asked as well. What is allowed
and belongs to no verb that the identity has is listed in :attr:`VerbAccess.beyond`.

Objects are asked for with several keys: fixed ones, and one made from each resource
pattern of the policies involved, so that access to a part of a store shows as
``partial``. Headers that a client chooses (server-side encryption) are tried in the
variants a client would try; the most that is allowed counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from runfleet.review.evaluators.aws import AwsAccounts
from runfleet.review.evaluators.aws_actions import (
    PULL_THROUGH_ACTIONS,
    VERB_ACTIONS,
    ActionEntry,
    VerbActions,
    actions_by_name,
    arn_formats,
    known_services,
    service_actions,
)
from runfleet.review.evaluators.aws_decide import (
    Request,
    ResourceSide,
    Session,
    may_be_allowed,
    resource_side,
)
from runfleet.review.evaluators.aws_match import Context
from runfleet.review.evaluators.aws_policy import Policy
from runfleet.review.evaluators.decision import Decision, Outcome
from runfleet.spec.roles import StoreKind, Verb


class Access(StrEnum):
    """How much of a verb an identity has on a store."""

    FULL = "full"
    PARTIAL = "partial"
    NONE = "none"
    CANNOT_TELL = "cannot-tell"


@dataclass(frozen=True)
class Store:
    """A store as AWS knows it.

    Attributes:
        kind: What the fleet uses it for.
        arn: Bucket, repository, delivery stream, table or secret. For a registry
            it may end in ``/*``: all repositories under a prefix. For a bucket it
            may end in ``/<prefix>/``: the keys under a prefix.
        pull_through: Whether its repositories are copies that a pull-through
            cache rule makes.
    """

    kind: StoreKind
    arn: str
    pull_through: bool = False

    @property
    def service(self) -> str:
        """The service prefix of its actions, such as ``s3``."""
        return self.arn.split(":", 3)[2]


@dataclass(frozen=True)
class Probe:
    """One question that was asked, and its answer.

    Attributes:
        action: The action.
        resource: The ARN that was asked for.
        decision: The answer.
    """

    action: str
    resource: str
    decision: Decision


@dataclass(frozen=True)
class VerbAccess:
    """What one identity may do with one store.

    Attributes:
        store: The store.
        read: Access to what is in it.
        write: Access to put things in.
        insert: Access to add records that it can neither read nor change.
        beyond: Other actions of the service, or of the store's key, that are
            allowed on the store, its contents or without any resource.
        unclear: Actions for which the record does not say; none of them counts
            as allowed.
        without_tls: Actions that would be allowed without TLS.
        evidence: The questions behind ``read``, ``write`` and ``insert``.
    """

    store: Store
    read: Access
    write: Access
    insert: Access
    beyond: tuple[str, ...] = ()
    unclear: tuple[str, ...] = ()
    without_tls: tuple[str, ...] = ()
    evidence: tuple[Probe, ...] = field(default=(), repr=False, compare=False)

    def of(self, verb: Verb) -> Access:
        """Return the access of one verb."""
        return {Verb.READ: self.read, Verb.WRITE: self.write}.get(verb, self.insert)


def verb_access(accounts: AwsAccounts, session: Session, store: Store) -> VerbAccess:
    """Return what a session may do with one store; see :func:`store_access`."""
    return store_access(accounts, session, [store])[0]


def store_access(
    accounts: AwsAccounts, session: Session, stores: Sequence[Store]
) -> tuple[VerbAccess, ...]:
    """Return what a session may do with each of several stores.

    Ask for all stores that matter at once: what a verb on one of them needs on a
    thing that they share (the bucket of two prefixes, a key, signing in to the
    registry) is then not "beyond" on the other.

    Args:
        accounts: What the records hold.
        session: The session; see :meth:`AwsAccounts.pod_session`.
        stores: The stores.
    """
    asking = [_Asking(accounts, session, store) for store in stores]
    granted: set[tuple[str, str]] = set()
    for each in asking:
        each.ask_verbs()
        granted |= each.granted
    return tuple(each.answer(granted) for each in asking)


def pod_access(
    accounts: AwsAccounts,
    namespace: str,
    service_account: str,
    cluster: str,
    stores: Sequence[Store],
) -> tuple[VerbAccess, ...]:
    """Return what a pod may do with stores, through every role that it may get.

    Of several roles the greatest access counts, and everything beyond is listed. A
    role that the pod only possibly gets counts like one that it gets.
    """
    none = tuple(
        VerbAccess(store, Access.NONE, Access.NONE, Access.NONE) for store in stores
    )
    for item in accounts.reach(namespace, service_account, cluster):
        found = store_access(accounts, item.session, stores)
        none = tuple(map(_joined, none, found))
    return none


def stray_permissions(
    accounts: AwsAccounts, session: Session, stores: Iterable[Store]
) -> tuple[str, ...]:
    """Return what a role's policies allow outside all of the stores.

    These are ``<action> on <resource>`` for each pattern of an ``Allow`` statement
    of the role that no store contains: other services, other buckets, ``*`` where
    the action has a resource type. They may be right, but nobody granted them.

    Raises:
        KeyError: The role is not in the records.
    """
    inventory = accounts.inventory
    known = list(stores)
    arns = [store.arn for store in known]
    services = {store.service for store in known}
    keys = {
        key
        for store in known
        if (key := inventory.bucket_keys.get(store.arn.partition("/")[0]))
    }
    strays: set[str] = set()
    for policy in inventory.roles[session.role_arn].policies:
        if policy.opaque:
            strays.add(f"anything in {policy.name}")
        for statement in policy.statements:
            if statement.deny:
                continue
            patterns = [pattern.text for pattern in statement.resources or ()]
            actions = [pattern.text for pattern in statement.actions]
            if statement.not_resource or statement.not_action:
                strays.add(
                    f"{'not ' if statement.not_action else ''}{', '.join(actions)} "
                    f"on {'not ' if statement.not_resource else ''}"
                    f"{', '.join(patterns)}"
                )
                continue
            for action in actions:
                service = action.partition(":")[0]
                for pattern in patterns:
                    inside = (service in services and _inside(pattern, arns)) or (
                        service == "kms" and pattern in keys
                    )
                    if not inside and not _without_resource(action, pattern):
                        strays.add(f"{action} on {pattern}")
    return tuple(sorted(strays))


_STORE_TYPES: Final = {
    "s3": ("bucket", "object"),
    "ecr": ("repository",),
    "firehose": ("deliverystream",),
    "dynamodb": ("table",),
    "secretsmanager": ("Secret",),
    "kms": ("key",),
}
_KEYS = ("probe", "deep/er/probe.tar.gz")
_NO_HEADERS = frozenset(
    {
        "s3:prefix",
        "s3:delimiter",
        "s3:max-keys",
        "s3:x-amz-acl",
        "s3:x-amz-copy-source",
        "s3:x-amz-server-side-encryption-customer-algorithm",
        "s3:x-amz-storage-class",
        "s3:x-amz-website-redirect-location",
        "s3:ExistingObjectTag/*",
        "s3:RequestObjectTag/*",
        "s3:RequestObjectTagKeys",
        "s3:object-lock-mode",
        "s3:object-lock-legal-hold",
        "aws:RequestTag/*",
        "aws:TagKeys",
    }
)
_ENCRYPTION_HEADERS = (
    "s3:x-amz-server-side-encryption",
    "s3:x-amz-server-side-encryption-aws-kms-key-id",
)


class _Asking:
    """Asks everything about one session and one store."""

    def __init__(self, accounts: AwsAccounts, session: Session, store: Store) -> None:
        self.accounts = accounts
        self.inventory = accounts.inventory
        self.role = accounts.inventory.roles.get(session.role_arn)
        self.session = session
        self.store = store
        self.service = store.service
        self.base = store.arn
        self.prefix = ""
        if self.service == "s3":
            self.base, _, self.prefix = store.arn.partition("/")
        self.key = self.inventory.bucket_keys.get(self.base)
        self.asked: dict[tuple[str, str, bool], Decision] = {}
        self.sides: dict[tuple[str, str], ResourceSide] = {}
        self._objects: list[str] | None = None
        self.levels: dict[Verb, Access] = {}
        self.evidence: list[Probe] = []
        self.granted: set[tuple[str, str]] = set()

    def ask_verbs(self) -> None:
        """Find the access of each verb and what belongs to the verbs that exist."""
        for verb in Verb:
            actions = VERB_ACTIONS.get((self.service, verb))
            if actions is None:
                self.levels[verb] = Access.NONE
                continue
            level, probes = self._level(actions)
            self.levels[verb] = level
            self.evidence.extend(probes)
            if level is Access.NONE:
                continue
            extra = PULL_THROUGH_ACTIONS if self.store.pull_through else ()
            extra = extra if verb is Verb.READ else ()
            for action in actions.core + actions.needed + actions.companions + extra:
                for resource in self._where(action):
                    self.granted.add((action, resource))

    def answer(self, granted: set[tuple[str, str]]) -> VerbAccess:
        """Ask for every other action; ``granted`` are not beyond."""
        beyond: set[str] = set()
        unclear: set[str] = set()
        without_tls: set[str] = set()
        for entry, resources in self._everything():
            for resource in resources:
                decision = self.ask(entry.name, resource)
                if decision.outcome is Outcome.CANNOT_TELL:
                    unclear.add(entry.name)
                if not decision.allowed:
                    continue
                if (entry.name, resource) not in granted:
                    beyond.add(entry.name)
                if self._insecure(entry.name, resource):
                    without_tls.add(entry.name)
        return VerbAccess(
            self.store,
            self.levels[Verb.READ],
            self.levels[Verb.WRITE],
            self.levels[Verb.INSERT],
            tuple(sorted(beyond)),
            tuple(sorted(unclear)),
            tuple(sorted(without_tls)),
            tuple(self.evidence),
        )

    def ask(self, action: str, resource: str, *, tls: bool = True) -> Decision:
        """Return the best answer over the headers that a client may choose."""
        at = (action, resource, tls)
        found = self.asked.get(at)
        if found is None:
            found = self.asked[at] = self._ask(action, resource, tls)
        return found

    def _ask(self, action: str, resource: str, tls: bool) -> Decision:
        if not self._possible(action, resource):
            return _IMPOSSIBLE
        best: Decision | None = None
        for context, absent in self._contexts(action, tls):
            decision = self.accounts.decide(
                Request(self.session, action, resource, context, absent)
            )
            if decision.allowed:
                return decision
            if best is None or best.denied:
                best = decision
        assert best is not None
        return best

    def _possible(self, action: str, resource: str) -> bool:
        if self.role is None:
            return True
        service = action.partition(":")[0]
        side = self.sides.get((service, resource))
        if side is None:
            side = resource_side(
                self.inventory, Request(self.session, action, resource)
            )
            self.sides[service, resource] = side
        return may_be_allowed(self.role, side, action.lower())

    def _contexts(
        self, action: str, tls: bool
    ) -> Iterator[tuple[Mapping[str, str | Sequence[str]], frozenset[str]]]:
        secure = {"aws:SecureTransport": "true" if tls else "false"}
        # A client sends its requests to the region of the store; a bucket's is that
        # of the key that encrypts it. It speaks TLS 1.3, if TLS at all.
        region = self.base.split(":")[3] or (self.key or ":::").split(":")[3]
        if region:
            secure["aws:RequestedRegion"] = region
        if self.service == "s3" and tls:
            secure["s3:TlsVersion"] = "1.3"
        if action.startswith("kms:"):
            region = (self.key or "").split(":")[3:4] or ["us-east-1"]
            yield (
                {
                    **secure,
                    "kms:ViaService": f"{self.service}.{region[0]}.amazonaws.com",
                    "kms:EncryptionContext:aws:s3:arn": self.base,
                    "kms:EncryptionContextKeys": ("aws:s3:arn",),
                    "kms:CallerAccount": self.session.role_arn.split(":")[4],
                    "kms:EncryptionAlgorithm": "SYMMETRIC_DEFAULT",
                },
                _NO_HEADERS,
            )
            return
        if action != "s3:PutObject":
            absent = _NO_HEADERS.union(_ENCRYPTION_HEADERS)
            if self.prefix and action.startswith("s3:ListBucket"):
                yield {**secure, "s3:prefix": self.prefix}, absent - {"s3:prefix"}
            yield secure, absent
            return
        algorithm, key = _ENCRYPTION_HEADERS
        yield secure, _NO_HEADERS.union(_ENCRYPTION_HEADERS)
        if self.key is not None:
            yield {**secure, algorithm: "aws:kms", key: self.key}, _NO_HEADERS
        yield {**secure, algorithm: "aws:kms"}, _NO_HEADERS | {key}
        yield {**secure, algorithm: "AES256"}, _NO_HEADERS | {key}

    def _insecure(self, action: str, resource: str) -> bool:
        """Whether an action that S3 also serves over plain HTTP needs no TLS."""
        if not action.startswith("s3:"):
            return False
        return not self.ask(action, resource, tls=False).denied

    def _level(self, actions: VerbActions) -> tuple[Access, list[Probe]]:
        core = [probe for action in actions.core for probe in self._probes(action)]
        needed = [probe for action in actions.needed for probe in self._probes(action)]
        answers = {probe.decision.outcome for probe in core}
        if answers == {Outcome.DENIED}:
            return Access.NONE, core
        answers |= {probe.decision.outcome for probe in needed}
        if Outcome.CANNOT_TELL in answers:
            level = Access.CANNOT_TELL
        elif answers == {Outcome.ALLOWED}:
            level = Access.FULL
        else:
            level = Access.PARTIAL
        return level, core + needed

    def _probes(self, action: str) -> Iterator[Probe]:
        for resource in self._where(action):
            yield Probe(action, resource, self.ask(action, resource))

    def _where(self, action: str) -> list[str]:
        service = action.partition(":")[0]
        if service == "kms" and self.key is None:
            return []
        return self._resources(service, actions_by_name(service)[action])

    def _everything(self) -> Iterator[tuple[ActionEntry, list[str]]]:
        """Yield every action that some policy could allow, with its resources."""
        services = [self.service] if self.key is None else [self.service, "kms"]
        for service in services:
            for entry in service_actions(service):
                resources = self._resources(service, entry)
                if any(self._possible(entry.name, item) for item in resources):
                    yield entry, resources

    def _resources(self, service: str, entry: ActionEntry) -> list[str]:
        """Return the ARNs for which an action is asked."""
        if not entry.types:
            return ["*"]
        if service == "kms":
            return [self.key] if self.key and "key" in entry.types else []
        wanted = [kind for kind in entry.types if kind in _STORE_TYPES[service]]
        if not wanted:
            return [
                _instance(arn_formats(service)[kind], self.base, self.session)
                for kind in entry.types
            ]
        found: list[str] = []
        for kind in wanted:
            if kind == "bucket":
                found.append(self.base)
            elif kind == "object" or self.base.endswith("*"):
                found.extend(self._samples())
            else:
                found.append(self.base)
        return found

    def _samples(self) -> list[str]:
        """Return ARNs of objects, or of repositories under a prefix."""
        if self._objects is None:
            if self.service == "s3":
                stem = f"{self.base}/{self.prefix}"
            else:
                stem = self.base.rstrip("*")
            found = {stem + key for key in _KEYS}
            for arn in self.inventory.resource_policies:
                if self.service == "ecr" and arn.startswith(stem):
                    found.add(arn)
            context = self._tags()
            for policy in self._policies():
                for statement in policy.statements:
                    for pattern in statement.resources or ():
                        sample = pattern.sample(context)
                        if sample and sample.startswith(stem) and sample != stem:
                            found.add(sample)
            self._objects = sorted(found)
        return self._objects

    def _tags(self) -> Context:
        tags = {**(self.role.tags if self.role else {}), **self.session.tags}
        known = {f"aws:PrincipalTag/{tag}": value for tag, value in tags.items()}
        return Context(known, complete=True)

    def _policies(self) -> Iterator[Policy]:
        if self.role is not None:
            yield from self.role.policies
            if self.role.boundary is not None:
                yield self.role.boundary
        yield from self.session.policies
        yield from self.inventory.resource_policies.get(self.base, ())


def _joined(left: VerbAccess, right: VerbAccess) -> VerbAccess:
    return VerbAccess(
        left.store,
        max(left.read, right.read, key=_ORDER.index),
        max(left.write, right.write, key=_ORDER.index),
        max(left.insert, right.insert, key=_ORDER.index),
        tuple(sorted({*left.beyond, *right.beyond})),
        tuple(sorted({*left.unclear, *right.unclear})),
        tuple(sorted({*left.without_tls, *right.without_tls})),
        left.evidence + right.evidence,
    )


_ORDER: Final = (Access.NONE, Access.PARTIAL, Access.CANNOT_TELL, Access.FULL)


def _instance(form: str, arn: str, session: Session) -> str:
    """Return some ARN of a format of the Service Authorization Reference."""
    parts = arn.split(":")
    text = form.replace("${Partition}", parts[1])
    text = text.replace("${Region}", parts[3] or "us-east-1")
    text = text.replace("${Account}", parts[4] or session.role_arn.split(":")[4])
    head, *rest = text.split("${")
    return head + "".join("probe" + piece.partition("}")[2] for piece in rest)


def _inside(pattern: str, arns: Sequence[str]) -> bool:
    """Whether a resource pattern lies within a store, or is the store's bucket."""
    for arn in arns:
        stem = arn.removesuffix("*").rstrip("/")
        bucket = arn.partition("/")[0] if arn.startswith("arn:aws:s3:") else arn
        if pattern in (arn, bucket) or pattern.startswith(f"{stem}/"):
            return True
    return False


def _without_resource(pattern: str, resource: str) -> bool:
    """Whether all actions of a pattern are ones that only ``*`` can stand for."""
    if resource != "*" or "*" in pattern or "?" in pattern:
        return False
    service = pattern.partition(":")[0]
    if service not in known_services():
        return False
    return any(
        entry.name.lower() == pattern and not entry.types
        for entry in service_actions(service)
    )


_IMPOSSIBLE: Final = Decision(Outcome.DENIED)
