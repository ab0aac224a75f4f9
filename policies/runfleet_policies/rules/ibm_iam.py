"""IBM Cloud identities: trusted profiles instead of keys, each bound and narrow.

Sources: IBM's page "Creating trusted profiles", the documentation of the Terraform
provider ``IBM-Cloud/ibm`` (resources ``iam_trusted_profile_link``,
``iam_trusted_profile_claim_rule``, ``iam_service_policy``, ``iam_account_settings``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from runfleet.spec.findings import Severity
from runfleet_policies.rule import Breach, Context, Parameter, Rule, guarded
from runfleet_policies.rules.ibm_network import CLUSTER
from runfleet_policies.values import mapping, stands, text
from runfleet_policies.view import ResourceView, StackView

KEYS: Mapping[str, str] = {
    "ibm:index/iamApiKey:IamApiKey": "an API key of a person",
    "ibm:index/iamServiceApiKey:IamServiceApiKey": "an API key of a service id",
    "ibm:index/resourceKey:ResourceKey": "a credential of a service instance",
}
"""Types that make a long-lived secret."""

PROFILE_POLICY = "ibm:index/iamTrustedProfilePolicy:IamTrustedProfilePolicy"
SERVICE_POLICY = "ibm:index/iamServicePolicy:IamServicePolicy"
LINK = "ibm:index/iamTrustedProfileLink:IamTrustedProfileLink"
CLAIM_RULE = "ibm:index/iamTrustedProfileClaimRule:IamTrustedProfileClaimRule"
ACCOUNT_SETTINGS = "ibm:index/iamAccountSettings:IamAccountSettings"

_ADMINISTRATORS = ("Administrator", "Manager")
_READERS = ("Viewer", "Reader")
_SERVICE = ("service", "serviceName", "serviceType", "serviceGroupId")
_PLACE = (
    "resourceInstanceId",
    "serviceInstance",
    "resourceGroupId",
    "resource",
    "attributes",
)
_MFA = ("TOTP", "TOTP4ALL", "LEVEL1", "LEVEL2", "LEVEL3")
_ACCOUNT_CLAIMS = ("name", "service_account", "serviceaccount")
_CLUSTER_CLAIMS = ("crn", "cluster_id")


def rules() -> tuple[Rule, ...]:
    """Return the rules about IBM Cloud identities."""
    return (
        Rule(
            id="R-IBM-01",
            severity=Severity.CRITICAL,
            title="Workloads have trusted profiles, not keys",
            rationale="A key works anywhere until somebody deletes it; a trusted "
            "profile gives tokens for an hour to the workload that it is linked to.",
            fix="delete the key; link a trusted profile to the cluster's service "
            "account",
            anchors=("S16", "S30", "S32"),
            types=tuple(KEYS),
            resource=_keys,
        ),
        Rule(
            id="R-IBM-02",
            severity=Severity.CRITICAL,
            title="No policy makes a workload administrator of everything",
            rationale="A policy without a scope covers every service of the account, "
            "those of tomorrow too.",
            fix="name a service and an instance or resource group; drop "
            "Administrator and Manager",
            anchors=("S17", "S01"),
            types=(PROFILE_POLICY, SERVICE_POLICY),
            resource=_policies,
        ),
        Rule(
            id="R-IBM-03",
            severity=Severity.HIGH,
            title="A trusted profile is bound to one named workload",
            rationale="A link or rule that names no namespace and account lets every "
            "pod of the cluster take the profile; the account `default` is every "
            "pod's.",
            fix="link crType IKS_SA with crn, namespace and name of the service "
            "account",
            anchors=("S04", "S17", "S31"),
            types=(LINK, CLAIM_RULE),
            resource=_bound,
        ),
        Rule(
            id="R-IBM-11",
            severity=Severity.MEDIUM,
            title="People log in with a second factor",
            rationale="One stolen password would otherwise open the account.",
            fix="set iamAccountSettings.mfa to LEVEL3 or TOTP4ALL",
            anchors=("A04",),
            stack=_second_factor,
            parameters=(
                Parameter(
                    "set_elsewhere",
                    False,
                    "True when another stack of the account sets it.",
                ),
            ),
        ),
    )


def _keys(resource: ResourceView, context: Context) -> Iterator[Breach]:
    yield Breach(f"makes {KEYS[resource.type]}")


def _policies(policy: ResourceView, context: Context) -> Iterator[Breach]:
    roles = [role.rpartition(":")[2] for role in policy.texts("roles")]
    if policy.truth("accountManagement"):
        if any(role not in _READERS for role in roles):
            why = f"{', '.join(roles)} of all account management services"
            yield Breach(why, "accountManagement")
        return
    named = set(_scope(policy))
    service = any(name in named for name in _SERVICE)
    place = any(name in named for name in _PLACE)
    writing = [role for role in roles if role not in _READERS]
    top = [role for role in roles if role in _ADMINISTRATORS]
    if writing and not (service or place):
        yield Breach(f"{', '.join(writing)} of everything in the account", "roles")
    elif top and not (service and place):
        missing = "names no instance or group" if service else "names no service"
        yield Breach(f"{', '.join(top)}, and the policy {missing}", "roles")


def _scope(policy: ResourceView) -> Iterator[str]:
    """Yield the names of what narrows a policy; a wildcard narrows nothing."""
    resources = policy.mapping("resources")
    for name in resources:
        if not stands(resources, name):
            continue
        if name == "attributes":
            values = mapping(resources, name)
            if any(text(values, key) != "*" for key in values):
                yield name
        elif name == "resource" or not _is_wildcard(resources, name):
            yield name
    for index, _ in enumerate(policy.items("resourceAttributes")):
        entry = policy.mapping("resourceAttributes", index)
        if text(entry, "operator", default="stringEquals") == "stringExists":
            continue
        if stands(entry, "value") and not _is_wildcard(entry, "value"):
            yield text(entry, "name")


def _is_wildcard(found: Mapping[str, object], name: str) -> bool:
    value = found.get(name)
    return isinstance(value, str) and value.strip() == "*"


def _bound(resource: ResourceView, context: Context) -> Iterator[Breach]:
    if resource.type == LINK:
        yield from _link(resource)
    else:
        yield from _claims(resource)


def _link(link: ResourceView) -> Iterator[Breach]:
    if not stands(link.inputs, "link", "crn"):
        yield Breach("names no resource", "link.crn")
    if link.text("crType") not in ("IKS_SA", "ROKS_SA"):
        return
    for name in ("namespace", "name"):
        found = link.text("link", name)
        if not found or "*" in found:
            yield Breach(f"{name} is {found or 'not set'}", f"link.{name}")
    if link.text("link", "name") == "default":
        why = "names the account that every pod of the namespace has"
        yield Breach(why, "link.name")


def _claims(rule: ResourceView) -> Iterator[Breach]:
    exact: dict[str, str] = {}
    for index, _ in enumerate(rule.items("conditions")):
        operator = rule.text("conditions", index, "operator")
        if operator in ("EQUALS", "EQUALS_IGNORE_CASE", "IN"):
            claim = rule.text("conditions", index, "claim").lower()
            value = _claimed(rule.text("conditions", index, "value"))
            if value and "*" not in value:
                exact[claim] = value
    if not exact:
        yield Breach("no condition demands a value of a claim", "conditions")
        return
    if rule.text("type") != "Profile-CR" or rule.text("crType") not in (
        "IKS_SA",
        "ROKS_SA",
    ):
        return
    wanted = (_CLUSTER_CLAIMS, ("namespace",), _ACCOUNT_CLAIMS)
    missing = [names[0] for names in wanted if not any(n in exact for n in names)]
    if missing:
        yield Breach(f"no exact condition on {', '.join(missing)}", "conditions")
    if any(exact.get(name) == "default" for name in _ACCOUNT_CLAIMS):
        why = "names the account that every pod of the namespace has"
        yield Breach(why, "conditions")


def _claimed(value: str) -> str:
    """Return a claim's value, which is written as JSON, as text."""
    try:
        found = json.loads(value)
    except json.JSONDecodeError:
        return value
    return found if isinstance(found, str) else value


def _second_factor(stack: StackView, context: Context) -> Iterator[Breach]:
    settings = list(stack.of(ACCOUNT_SETTINGS))
    elsewhere = context.flag("set_elsewhere")
    if not settings and not elsewhere and next(stack.of(CLUSTER), None) is not None:
        yield Breach("the stack has a cluster and sets no iamAccountSettings")
    for found in settings:
        yield from guarded(_mfa(found), found.urn)


def _mfa(found: ResourceView) -> Iterator[Breach]:
    kind = found.text("mfa")
    if kind not in _MFA:
        yield Breach(f"mfa is {kind or 'not set'}", "mfa", urn=found.urn)
