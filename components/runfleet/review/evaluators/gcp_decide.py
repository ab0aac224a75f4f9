"""Whether a principal may do something on Google Cloud.

Written from Google's published semantics: a permission is granted when a binding of
the resource's allow policy, or of the project that it is in, gives a role with that
permission to the principal under a condition that holds (IAM documentation, "Policy
evaluation"). Nothing else grants; identities have no policies of their own. Members
are matched as in "Principal identifiers". Resource attributes are known to conditions
only for the services listed in "Resource attributes for IAM Conditions"; for others
what a condition says about them is unknown here.

A principal can become a service account that it may get tokens of ("Service account
impersonation"), and from there the next one: :func:`reach` follows these steps, and
an identity may do what any of those that it can become may do.

Deny policies, principal access boundaries, VPC Service Controls and policies of
folders and organisations are not in a record. A deny policy that is there makes what
would be allowed unsure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from runfleet.review.evaluators.decision import Truth, both, either
from runfleet.review.evaluators.gcp_conditions import holds
from runfleet.review.evaluators.gcp_inventory import Binding, Inventory
from runfleet.review.evaluators.gcp_roles import ACTS_AS, PREDEFINED


@dataclass(frozen=True)
class Principal:
    """Somebody who asks.

    Attributes:
        email: Address of a service account; empty for a federated identity.
        pool: Id of the workload identity pool of a federated identity.
        project: Project of the pool.
        subject: Its subject in the pool.
        sets: What else of the pool it belongs to, such as ``namespace/ci``.
    """

    email: str = ""
    pool: str = ""
    project: str = ""
    subject: str = ""
    sets: frozenset[str] = frozenset()

    def __str__(self) -> str:
        """Name the principal as a member does."""
        if self.email:
            return f"serviceAccount:{self.email}"
        return f"principal://.../{self.pool}/subject/{self.subject}"


def pod(pool: str, namespace: str, service_account: str) -> Principal:
    """Return the identity of the pods of a Kubernetes service account.

    Args:
        pool: Workload identity pool of the cluster.
        namespace: Their namespace.
        service_account: Their service account.
    """
    return Principal(
        pool=pool,
        project=pool.removesuffix(".svc.id.goog"),
        subject=f"ns/{namespace}/sa/{service_account}",
        sets=frozenset(
            {
                f"namespace/{namespace}",
                f"kubernetes.serviceaccount.name/{service_account}",
            }
        ),
    )


@dataclass(frozen=True)
class Target:
    """A resource that something is done to.

    Attributes:
        name: Its resource name, as conditions see it.
        type: Its type, as conditions see it.
        policies: Names of the resources whose allow policies hold for it, itself
            first and its project last.
    """

    name: str
    type: str
    policies: tuple[str, ...]

    @property
    def attributes(self) -> dict[str, Any]:
        """What a condition knows of it; nothing where Google tells it nothing."""
        service = self.type.partition("/")[0]
        if service not in WITH_ATTRIBUTES:
            return {}
        return {
            "resource.name": self.name,
            "resource.type": self.type,
            "resource.service": service,
        }


WITH_ATTRIBUTES = frozenset(
    {
        "cloudkms.googleapis.com",
        "cloudresourcemanager.googleapis.com",
        "compute.googleapis.com",
        "container.googleapis.com",
        "secretmanager.googleapis.com",
        "storage.googleapis.com",
    }
)
"""Services that tell conditions about their resources (IAM documentation, "Resource
attributes for IAM Conditions"); Artifact Registry, Pub/Sub and IAM are not there."""


@dataclass
class Access:
    """Answers questions over an inventory.

    Attributes:
        inventory: What the records say.
    """

    inventory: Inventory
    _of: dict[str, list[Binding]] = field(default_factory=dict[str, list[Binding]])
    _concerning: dict[tuple[Principal, str], list[tuple[Binding, Truth]]] = field(
        default_factory=dict[tuple[Principal, str], list[tuple[Binding, Truth]]]
    )

    def __post_init__(self) -> None:
        """Sort bindings by resource."""
        for binding in self.inventory.bindings:
            self._of.setdefault(binding.resource, []).append(binding)

    def bindings_of(self, resource: str) -> Sequence[Binding]:
        """Return the bindings of one allow policy."""
        return self._of.get(resource, ())

    def permissions(self, role: str) -> frozenset[str] | None:
        """Return the permissions of a role; ``None`` when not known."""
        if role in self.inventory.roles:
            return self.inventory.roles[role]
        return PREDEFINED.get(role)

    def may(self, who: Principal, permission: str, target: Target) -> Truth:
        """Say whether a principal itself has a permission on a resource."""
        found = either(
            self._gives(binding, matched, permission, target)
            for name in target.policies
            for binding, matched in self.concerning(who, name)
        )
        if found is Truth.YES and self.inventory.denies:
            return Truth.UNSURE
        return found

    def concerning(
        self, who: Principal, resource: str
    ) -> Sequence[tuple[Binding, Truth]]:
        """Return the bindings of an allow policy that are, or may be, a principal's."""
        found = self._concerning.get((who, resource))
        if found is None:
            found = [
                (binding, matched)
                for binding in self.bindings_of(resource)
                if (matched := self.matches(binding.member, who)) is not Truth.NO
            ]
            self._concerning[who, resource] = found
        return found

    def any_may(
        self, who: Mapping[Principal, Truth], permission: str, target: Target
    ) -> Truth:
        """Say whether one of several identities has a permission.

        Args:
            who: The identities, each with how sure it is.
            permission: The permission.
            target: The resource.
        """
        return either(
            both([sure, self.may(principal, permission, target)])
            for principal, sure in who.items()
        )

    def reach(self, start: Principal) -> dict[Principal, Truth]:
        """Return the identities that a principal can become, itself included."""
        found = {start: Truth.YES}
        open_: list[Principal] = [start]
        while open_:
            who = open_.pop()
            for email in sorted(self.inventory.accounts):
                account = Principal(email=email)
                step = both([found[who], self.acts_as(who, email)])
                if step > found.get(account, Truth.NO):
                    found[account] = step
                    open_.append(account)
        return found

    def acts_as(self, who: Principal, email: str) -> Truth:
        """Say whether a principal can become a service account."""
        if who.email == email:
            return Truth.YES
        target = account_target(email)
        return either(self.may(who, permission, target) for permission in ACTS_AS)

    def matches(self, member: str, who: Principal) -> Truth:
        """Say whether a member of a binding is, or includes, a principal."""
        if member == "allUsers":
            return Truth.YES
        if member == "allAuthenticatedUsers":
            return _sure(bool(who.email))
        kind, _, value = member.partition(":")
        if member.startswith(("principal://", "principalSet://")):
            return self._pool_member(member, who)
        if kind == "serviceAccount":
            return self._account_member(value, who)
        if kind in ("projectOwner", "projectEditor", "projectViewer"):
            role = f"roles/{kind.removeprefix('project').lower()}"
            return either(
                self.matches(binding.member, who)
                for binding in self.bindings_of(f"projects/{value}")
                if binding.role == role
            )
        if kind in ("user", "domain", "deleted"):
            return Truth.NO
        return Truth.UNSURE

    def _gives(
        self, binding: Binding, matched: Truth, permission: str, target: Target
    ) -> Truth:
        permissions = self.permissions(binding.role)
        has = Truth.UNSURE if permissions is None else _sure(permission in permissions)
        if has is Truth.NO:
            return Truth.NO
        held = (
            holds(binding.condition, target.attributes)
            if binding.condition
            else Truth.YES
        )
        sure = Truth.YES if binding.sure else Truth.UNSURE
        return both([has, matched, held, sure])

    def _account_member(self, value: str, who: Principal) -> Truth:
        """Match a service account, or the old form of a pod's identity."""
        old = re.fullmatch(r"(.+)\[([^/\]]+)/([^\]]+)\]", value)
        if old is not None:
            subject = f"ns/{old[2]}/sa/{old[3]}"
            return _sure((who.pool, who.subject) == (old[1], subject))
        return _sure(bool(who.email) and value.lower() == who.email.lower())

    def _pool_member(self, member: str, who: Principal) -> Truth:
        match = _POOL_MEMBER.fullmatch(member)
        if match is None:
            # Sets of Google's own, such as all service accounts of a project.
            return Truth.UNSURE
        if not who.pool or match["pool"] != who.pool:
            return Truth.NO
        number = self._number(match["number"], who.project)
        rest = match["rest"]
        if match["kind"] == "principal":
            return both([number, _sure(rest == f"subject/{who.subject}")])
        if rest == "*" or rest in who.sets:
            return number
        if rest.startswith(_KNOWN_SETS):
            return Truth.NO
        return both([number, Truth.UNSURE])

    def _number(self, number: str, project: str) -> Truth:
        """Say whether a number is that of a project: members name pools by it."""
        known = self.inventory.numbers.get(project)
        if number == project:
            # An id where Google takes numbers only.
            return Truth.NO
        return _sure(number in known) if known else Truth.UNSURE


_KNOWN_SETS = (
    "attribute.",
    "kubernetes.serviceaccount.name/",
    "namespace/",
    "subject/",
)

_POOL_MEMBER = re.compile(
    r"(?P<kind>principal|principalSet)://iam\.googleapis\.com/projects/"
    r"(?P<number>[^/]+)/locations/global/workloadIdentityPools/(?P<pool>[^/]+)/"
    r"(?P<rest>.+)"
)


def object_target(bucket: str, key: str, project: str) -> Target:
    """Return an object of a bucket."""
    home = f"projects/_/buckets/{bucket}"
    return Target(
        f"{home}/objects/{key}",
        "storage.googleapis.com/Object",
        (home, *_project(project)),
    )


def bucket_target(bucket: str, project: str) -> Target:
    """Return a bucket."""
    home = f"projects/_/buckets/{bucket}"
    return Target(home, "storage.googleapis.com/Bucket", (home, *_project(project)))


def named_target(name: str, type_: str) -> Target:
    """Return a resource whose name begins with its project."""
    return Target(name, type_, (name, *_project(name.split("/")[1])))


def account_target(email: str) -> Target:
    """Return a service account."""
    project = email.partition("@")[2].removesuffix(".iam.gserviceaccount.com")
    name = f"projects/{project}/serviceAccounts/{email}"
    return named_target(name, "iam.googleapis.com/ServiceAccount")


def _project(project: str) -> Iterable[str]:
    return (f"projects/{project}",) if project else ()


def _sure(value: bool) -> Truth:
    return Truth.YES if value else Truth.NO
