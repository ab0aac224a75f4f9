"""AWS access as a whole: what the identities in records may do, and who gets them.

This is the door of the AWS evaluator. :class:`AwsAccounts` is made from the resources
of one or several records and answers three questions: may this session do that
(:meth:`~AwsAccounts.decide`), who may assume this role
(:meth:`~AwsAccounts.who_can_assume` and its relatives), and which roles may a pod
get (:meth:`~AwsAccounts.reachable`). The rules are in the modules beside it:
``aws_reader`` reads records,
``aws_policy`` documents, ``aws_decide`` holds AWS's evaluation logic,
``aws_trust`` the trust side, ``aws_verbs`` translates to the fleet's verbs and stores.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from runfleet.review.evaluators import aws_decide, aws_trust
from runfleet.review.evaluators.aws_decide import (
    NOT_CROSS_CHECKED,
    NOT_EVALUATED,
    Request,
    Session,
)
from runfleet.review.evaluators.aws_inventory import (
    Inventory,
    PodIdentityAssociation,
    Role,
    merge,
)
from runfleet.review.evaluators.aws_policy import PolicyProblem
from runfleet.review.evaluators.aws_reader import Resource, read_inventory
from runfleet.review.evaluators.aws_trust import Assumer, AssumerKind, Reach
from runfleet.review.evaluators.decision import Decision

__all__ = [
    "NOT_CROSS_CHECKED",
    "NOT_EVALUATED",
    "Assumer",
    "AssumerKind",
    "AwsAccounts",
    "PodIdentityAssociation",
    "Reach",
    "Request",
    "Role",
    "Session",
]


class AwsAccounts:
    """Everything about access that records say of one or several AWS accounts."""

    def __init__(self, inventory: Inventory) -> None:
        """Answer from an inventory; see :meth:`from_resources`."""
        self.inventory = inventory

    @classmethod
    def from_resources(
        cls,
        resources: Iterable[Resource],
        *,
        account: str | None = None,
        managed_policies: Mapping[str, str | Mapping[str, Any]] | None = None,
    ) -> AwsAccounts:
        """Read the resources of one record.

        Args:
            resources: Objects with ``urn``, ``type``, ``id``, ``inputs`` and
                ``outputs``; resources of other clouds are ignored.
            account: The account that the record deploys to; when ``None`` it is
                taken from the ARNs of the record's roles, if they agree.
            managed_policies: Documents, by ARN, of policies that the record only
                refers to.
        """
        return cls(
            read_inventory(
                resources, account=account, managed_policies=managed_policies
            )
        )

    @classmethod
    def combined(cls, accounts: Iterable[AwsAccounts]) -> AwsAccounts:
        """Join what several records say, such as a cell's and the central one's."""
        return cls(merge(each.inventory for each in accounts))

    @property
    def problems(self) -> tuple[PolicyProblem, ...]:
        """Documents that AWS would refuse; questions on them are "cannot tell"."""
        return tuple(self.inventory.problems)

    @property
    def roles(self) -> Mapping[str, Role]:
        """All roles by ARN."""
        return self.inventory.roles

    @property
    def associations(self) -> Sequence[PodIdentityAssociation]:
        """All EKS Pod Identity associations."""
        return tuple(self.inventory.associations)

    def decide(self, request: Request) -> Decision:
        """Decide one request; see :func:`aws_decide.decide`."""
        return aws_decide.decide(self.inventory, request)

    def who_can_assume(self, role_arn: str) -> tuple[Assumer, ...]:
        """Return everyone whom a role's trust policy lets in."""
        return aws_trust.who_can_assume(self.inventory, role_arn)

    def may_assume_with_token(
        self, role_arn: str, claims: Mapping[str, str | Sequence[str]]
    ) -> Decision:
        """Decide whether a token with these claims gets a role."""
        return aws_trust.may_assume_with_token(self.inventory, role_arn, claims)

    def may_assume_as_pod(self, association: PodIdentityAssociation) -> Decision:
        """Decide whether the pods of an association get its role."""
        return aws_trust.may_assume_as_pod(self.inventory, association)

    def pod_session(self, association: PodIdentityAssociation) -> Session:
        """Return the session that pods of an association work with."""
        return aws_trust.pod_session(self.inventory, association)

    def reach(
        self, namespace: str, service_account: str, cluster: str
    ) -> tuple[Reach, ...]:
        """Return the roles that a pod may get, how, and how surely."""
        return aws_trust.reach(self.inventory, namespace, service_account, cluster)

    def reachable(
        self, namespace: str, service_account: str, cluster: str
    ) -> frozenset[str]:
        """Return the ARNs of all roles that a pod certainly or possibly gets."""
        return frozenset(
            item.session.role_arn
            for item in self.reach(namespace, service_account, cluster)
        )
