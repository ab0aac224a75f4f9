"""Who asks, and whether a ``Principal`` element of a policy means them.

How a statement names a role decides what else has to allow the request (AWS IAM
User Guide, "How AWS enforcement code logic evaluates requests to allow or deny
access" and "IAM JSON policy elements: Principal"):

* by *account* (``"123456789012"``, its ``root`` ARN): the account's own identity
  policies decide who in it may;
* by *role* ARN: permissions boundary and session policy still limit the session;
* *direct*, by the ARN of the session or as everyone (``"*"``): they do not.

``NotPrincipal`` means everyone but those listed. A request of a role has three names:
session, role and account. The guide says that all three must be listed to exclude a
session for certain, and that a role with a permissions boundary is always denied by
``NotPrincipal`` with ``Deny``. Where only some are listed the answer is "unsure".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from runfleet.review.evaluators.aws_match import is_unresolved
from runfleet.review.evaluators.decision import Truth, negate, truth


@dataclass(frozen=True)
class RoleCaller:
    """A session of a role.

    Attributes:
        arn: The role's ARN.
        account: The 12-digit id of the role's account.
        name: The role's name, without its path.
        session: The session's name; ``None`` when not known.
        unique_id: The role's unique id (``AROA...``); ``None`` when not known.
        has_boundary: Whether the role has a permissions boundary.
    """

    arn: str
    account: str
    name: str
    session: str | None = None
    unique_id: str | None = None
    has_boundary: bool = False


@dataclass(frozen=True)
class ServiceCaller:
    """An AWS service, named like ``pods.eks.amazonaws.com``."""

    name: str


@dataclass(frozen=True)
class TokenCaller:
    """Someone with a token of an identity provider.

    Attributes:
        provider: ARN of the provider, or its host for the providers built into AWS.
    """

    provider: str


Caller = RoleCaller | ServiceCaller | TokenCaller


class Routes(NamedTuple):
    """In which ways a statement means a caller."""

    account: Truth
    role: Truth
    direct: Truth

    @property
    def any(self) -> Truth:
        """Whether the statement means the caller in any way."""
        return max(self)


NOBODY = Routes(Truth.NO, Truth.NO, Truth.NO)
EVERYONE = Routes(Truth.NO, Truth.NO, Truth.YES)
_UNSURE = Routes(Truth.UNSURE, Truth.UNSURE, Truth.UNSURE)


@dataclass(frozen=True)
class Principals:
    """A ``Principal`` or ``NotPrincipal`` element.

    Attributes:
        negated: Whether it is ``NotPrincipal``.
        everyone: Whether it is ``"*"`` or holds ``{"AWS": "*"}``.
        aws: Values of ``AWS`` other than ``*``.
        services: Values of ``Service``.
        federated: Values of ``Federated``.
        canonical: Values of ``CanonicalUser``.
    """

    negated: bool = False
    everyone: bool = False
    aws: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    federated: tuple[str, ...] = ()
    canonical: tuple[str, ...] = ()

    def means(self, caller: Caller, *, deny: bool) -> Routes:
        """Return in which ways the element means a caller.

        Args:
            caller: Who asks.
            deny: Whether the statement's effect is ``Deny``.
        """
        if self.negated:
            return self._all_but(caller, deny=deny)
        if isinstance(caller, RoleCaller):
            routes = EVERYONE if self.everyone else NOBODY
            for value in self.aws:
                routes = _wider(routes, _names_role(value, caller))
            if self.canonical:
                routes = _wider(routes, _UNSURE)
            return routes
        if isinstance(caller, ServiceCaller):
            return _direct(_listed(caller.name, self.services), truth(self.everyone))
        # Whether "*" means a caller who has nothing but a token is not written down.
        return _direct(
            _listed(caller.provider, self.federated),
            Truth.UNSURE if self.everyone else Truth.NO,
        )

    def _all_but(self, caller: Caller, *, deny: bool) -> Routes:
        if not isinstance(caller, RoleCaller):
            names = (
                self.services if isinstance(caller, ServiceCaller) else self.federated
            )
            name = caller.name if isinstance(caller, ServiceCaller) else caller.provider
            listed = _listed(name, names)
            return NOBODY if listed is Truth.YES else _direct(negate(listed))
        if deny and caller.has_boundary:
            return EVERYONE
        if self.everyone:
            return NOBODY
        named = NOBODY
        for value in self.aws:
            named = _wider(named, _names_role(value, caller))
        if max(named) is Truth.NO:
            return EVERYONE
        return NOBODY if min(named) is Truth.YES else _direct(Truth.UNSURE)


def role_parts(arn: str) -> tuple[str, str] | None:
    """Return account and name of a role's ARN; ``None`` when it is none."""
    match = _ROLE.fullmatch(arn)
    return (match["account"], match["name"]) if match else None


_ROLE = re.compile(r"arn:[a-z-]+:iam::(?P<account>\d{12}):role/(?:.*/)?(?P<name>[^/]+)")
_ACCOUNT = re.compile(r"(?:arn:[a-z-]+:iam::)?(?P<account>\d{12})(?::root)?")
_SESSION = re.compile(
    r"arn:[a-z-]+:sts::(?P<account>\d{12}):assumed-role/(?P<name>[^/]+)/(?P<session>.+)"
)
_UNIQUE_ID = re.compile(r"A[A-Z]{2}A[A-Z0-9]{12,}")


def _names_role(value: str, caller: RoleCaller) -> Routes:
    if is_unresolved(value):
        return _UNSURE
    if value == caller.arn:
        return Routes(Truth.NO, Truth.YES, Truth.NO)
    if account := _ACCOUNT.fullmatch(value):
        yes = truth(account["account"] == caller.account)
        return Routes(yes, Truth.NO, Truth.NO)
    if session := _SESSION.fullmatch(value):
        if (session["account"], session["name"]) != (caller.account, caller.name):
            return NOBODY
        if caller.session is None:
            return Routes(Truth.NO, Truth.NO, Truth.UNSURE)
        return _direct(truth(session["session"] == caller.session))
    if _UNIQUE_ID.fullmatch(value):
        if caller.unique_id is None:
            return Routes(Truth.NO, Truth.UNSURE, Truth.NO)
        return Routes(Truth.NO, truth(value == caller.unique_id), Truth.NO)
    return NOBODY


def _listed(name: str, values: tuple[str, ...]) -> Truth:
    if name in values or "*" in values:
        return Truth.YES
    unresolved = any(is_unresolved(value) for value in values)
    return Truth.UNSURE if unresolved else Truth.NO


def _direct(*values: Truth) -> Routes:
    return Routes(Truth.NO, Truth.NO, max(values))


def _wider(left: Routes, right: Routes) -> Routes:
    return Routes(
        max(left.account, right.account),
        max(left.role, right.role),
        max(left.direct, right.direct),
    )
