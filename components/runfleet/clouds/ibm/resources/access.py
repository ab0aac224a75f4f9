"""Access: trusted profiles, who may take them on, and what they may do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pulumi

from runfleet.clouds.ibm.package import IbmResource


@dataclass(frozen=True)
class ComputeLink:
    """One service account of one cluster; each field that is missing means any."""

    crn: pulumi.Input[str]
    namespace: str
    name: str


@dataclass(frozen=True)
class Claim:
    """A condition on what a compute resource is; ``value`` is JSON."""

    claim: str
    operator: str
    value: str


@dataclass(frozen=True)
class Attribute:
    """A property that a resource must have for a policy to be about it."""

    name: str
    value: pulumi.Input[str]
    operator: str = "stringEquals"


@dataclass(frozen=True)
class Condition:
    """A condition of a policy on one attribute of a request."""

    key: str
    operator: str
    values: Sequence[str]


@dataclass(frozen=True)
class RuleCondition:
    """A condition of a policy, or several joined by ``and`` or ``or``."""

    operator: str
    key: str | None = None
    values: Sequence[str] | None = None
    conditions: Sequence[Condition] | None = None


class IamTrustedProfile(IbmResource):
    """An identity without credentials; compute resources take it on."""

    TOKEN: ClassVar[str] = "ibm:index/iamTrustedProfile:IamTrustedProfile"
    OUTPUTS: ClassVar[tuple[str, ...]] = (
        "crn",
        "iam_id",
        "profile_id",
    )

    crn: pulumi.Output[str]
    iam_id: pulumi.Output[str]
    profile_id: pulumi.Output[str]

    def __init__(
        self,
        resource_name: str,
        *,
        name: pulumi.Input[str],
        description: pulumi.Input[str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(
            resource_name,
            {
                "name": name,
                "description": description,
            },
            opts,
        )


class IamTrustedProfileLink(IbmResource):
    """The one compute resource that may take a profile on."""

    TOKEN: ClassVar[str] = "ibm:index/iamTrustedProfileLink:IamTrustedProfileLink"
    OUTPUTS: ClassVar[tuple[str, ...]] = ("link_id",)

    link_id: pulumi.Output[str]

    def __init__(
        self,
        resource_name: str,
        *,
        profile_id: pulumi.Input[str],
        cr_type: pulumi.Input[str],
        link: ComputeLink,
        name: pulumi.Input[str] | None = None,
        is_cross_account: pulumi.Input[bool] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(
            resource_name,
            {
                "profile_id": profile_id,
                "cr_type": cr_type,
                "link": link,
                "name": name,
                "is_cross_account": is_cross_account,
            },
            opts,
        )


class IamTrustedProfileClaimRule(IbmResource):
    """A condition under which compute resources may take a profile on."""

    TOKEN: ClassVar[str] = (
        "ibm:index/iamTrustedProfileClaimRule:IamTrustedProfileClaimRule"
    )
    OUTPUTS: ClassVar[tuple[str, ...]] = ("rule_id",)

    rule_id: pulumi.Output[str]

    def __init__(
        self,
        resource_name: str,
        *,
        profile_id: pulumi.Input[str],
        type: pulumi.Input[str],
        conditions: Sequence[Claim],
        cr_type: pulumi.Input[str] | None = None,
        name: pulumi.Input[str] | None = None,
        expiration: pulumi.Input[int] | None = None,
        realm_name: pulumi.Input[str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(
            resource_name,
            {
                "profile_id": profile_id,
                "type": type,
                "conditions": conditions,
                "cr_type": cr_type,
                "name": name,
                "expiration": expiration,
                "realm_name": realm_name,
            },
            opts,
        )


class IamTrustedProfilePolicy(IbmResource):
    """What a profile may do on which resources."""

    TOKEN: ClassVar[str] = "ibm:index/iamTrustedProfilePolicy:IamTrustedProfilePolicy"

    def __init__(
        self,
        resource_name: str,
        *,
        iam_id: pulumi.Input[str],
        roles: pulumi.Input[Sequence[pulumi.Input[str]]],
        resource_attributes: Sequence[Attribute] | None = None,
        resource_tags: Sequence[Attribute] | None = None,
        rule_conditions: Sequence[RuleCondition] | None = None,
        rule_operator: pulumi.Input[str] | None = None,
        pattern: pulumi.Input[str] | None = None,
        account_management: pulumi.Input[bool] | None = None,
        description: pulumi.Input[str] | None = None,
        tags: pulumi.Input[Sequence[pulumi.Input[str]]] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(
            resource_name,
            {
                "iam_id": iam_id,
                "roles": roles,
                "resource_attributes": resource_attributes,
                "resource_tags": resource_tags,
                "rule_conditions": rule_conditions,
                "rule_operator": rule_operator,
                "pattern": pattern,
                "account_management": account_management,
                "description": description,
                "tags": tags,
            },
            opts,
        )


class IamAuthorizationPolicy(IbmResource):
    """What one of IBM Cloud's services may do on another."""

    TOKEN: ClassVar[str] = "ibm:index/iamAuthorizationPolicy:IamAuthorizationPolicy"
    OUTPUTS: ClassVar[tuple[str, ...]] = ("version",)

    version: pulumi.Output[str]

    def __init__(
        self,
        resource_name: str,
        *,
        roles: pulumi.Input[Sequence[pulumi.Input[str]]],
        source_service_name: pulumi.Input[str] | None = None,
        source_resource_type: pulumi.Input[str] | None = None,
        source_resource_instance_id: pulumi.Input[str] | None = None,
        source_service_account: pulumi.Input[str] | None = None,
        target_service_name: pulumi.Input[str] | None = None,
        target_resource_type: pulumi.Input[str] | None = None,
        target_resource_instance_id: pulumi.Input[str] | None = None,
        description: pulumi.Input[str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(
            resource_name,
            {
                "source_service_name": source_service_name,
                "source_resource_type": source_resource_type,
                "source_resource_instance_id": source_resource_instance_id,
                "source_service_account": source_service_account,
                "target_service_name": target_service_name,
                "target_resource_type": target_resource_type,
                "target_resource_instance_id": target_resource_instance_id,
                "roles": roles,
                "description": description,
            },
            opts,
        )


class IamCustomRole(IbmResource):
    """A role of one service with the actions that are listed, and no others.

    Source: IBM-Cloud/terraform-provider-ibm,
    ``website/docs/r/iam_custom_role.html.markdown``.
    """

    TOKEN: ClassVar[str] = "ibm:index/iamCustomRole:IamCustomRole"
    OUTPUTS: ClassVar[tuple[str, ...]] = ("crn",)

    crn: pulumi.Output[str]
    display_name: pulumi.Output[str]

    def __init__(
        self,
        resource_name: str,
        *,
        name: pulumi.Input[str],
        display_name: pulumi.Input[str],
        service: pulumi.Input[str],
        actions: pulumi.Input[Sequence[pulumi.Input[str]]],
        description: pulumi.Input[str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(
            resource_name,
            {
                "name": name,
                "display_name": display_name,
                "service": service,
                "actions": actions,
                "description": description,
            },
            opts,
        )
