"""AKS clusters: a closed API, people from Entra, identities and policies for pods.

Types are matched in every API version that pulumi-azure-native offers, such as
``azure-native:containerservice/v20250101:ManagedCluster``.

Source: pulumi-azure-native 3.29; learn.microsoft.com/azure/aks, "Security concepts".
"""

from __future__ import annotations

from collections.abc import Iterator

from runfleet.spec.findings import Severity
from runfleet_policies.rule import Breach, Context, Rule
from runfleet_policies.rules.aws_network import is_world
from runfleet_policies.view import ResourceView

CLUSTER = "azure-native:containerservice*:ManagedCluster"

_ENFORCING = ("cilium", "azure", "calico")


def rules() -> tuple[Rule, ...]:
    """Return the rules about AKS clusters."""
    return (
        Rule(
            id="R-AZ-01",
            severity=Severity.HIGH,
            title="The cluster's API is not open to the internet",
            rationale="The default of AKS is a public endpoint without a list: one "
            "leaked token or one flaw in the API server is then enough.",
            fix="set apiServerAccessProfile.enablePrivateCluster, or list "
            "authorizedIPRanges",
            anchors=("S02", "S33", "CIS AKS"),
            types=(CLUSTER,),
            resource=_public_api,
        ),
        Rule(
            id="R-AZ-02",
            severity=Severity.HIGH,
            title="People come from Entra ID, local accounts are off",
            rationale="A local account is a certificate without a name, without MFA "
            "and without a way to take it back.",
            fix="set disableLocalAccounts and aadProfile.managed",
            anchors=("S16", "S35", "A04", "CIS AKS"),
            types=(CLUSTER,),
            resource=_local_accounts,
        ),
        Rule(
            id="R-AZ-03",
            severity=Severity.CRITICAL,
            title="Pods get identities of their own, never the node's",
            rationale="Without workload identity a pod that needs a token takes the "
            "node's from the metadata service, or is given a secret.",
            fix="set oidcIssuerProfile.enabled and "
            "securityProfile.workloadIdentity.enabled",
            anchors=("S15", "S16", "S30"),
            types=(CLUSTER,),
            resource=_workload_identity,
        ),
        Rule(
            id="R-AZ-04",
            severity=Severity.HIGH,
            title="Network policies are enforced",
            rationale="Without a policy engine AKS accepts NetworkPolicy objects and "
            "ignores them.",
            fix="set networkProfile.networkPolicy to cilium",
            anchors=("S12", "S04", "CIS AKS"),
            types=(CLUSTER,),
            resource=_network_policy,
        ),
    )


def _public_api(cluster: ResourceView, context: Context) -> Iterator[Breach]:
    profile = "apiServerAccessProfile"
    if cluster.text("publicNetworkAccess").lower() == "disabled":
        return
    if cluster.truth(profile, "enablePrivateCluster"):
        return
    place = f"{profile}.authorizedIPRanges"
    ranges = cluster.texts(profile, "authorizedIPRanges")
    if not ranges:
        yield Breach("the API is public and lists no ranges", place)
    for found in ranges:
        if is_world(found):
            yield Breach(f"the API is open to {found}", place)


def _local_accounts(cluster: ResourceView, context: Context) -> Iterator[Breach]:
    if not cluster.truth("disableLocalAccounts"):
        yield Breach("local accounts are on", "disableLocalAccounts")
    if cluster.truth("enableRBAC") is False:
        yield Breach("access is not checked at all", "enableRBAC")
    if not cluster.mapping("aadProfile"):
        yield Breach("people do not come from Entra ID", "aadProfile")


def _workload_identity(cluster: ResourceView, context: Context) -> Iterator[Breach]:
    if not cluster.truth("oidcIssuerProfile", "enabled"):
        yield Breach("the OIDC issuer is off", "oidcIssuerProfile.enabled")
    if not cluster.truth("securityProfile", "workloadIdentity", "enabled"):
        place = "securityProfile.workloadIdentity.enabled"
        yield Breach("workload identity is off", place)
    if cluster.truth("podIdentityProfile", "enabled"):
        why = "pod-managed identities go through the metadata service"
        yield Breach(why, "podIdentityProfile.enabled")


def _network_policy(cluster: ResourceView, context: Context) -> Iterator[Breach]:
    found = cluster.text("networkProfile", "networkPolicy")
    if found not in _ENFORCING:
        why = f"networkPolicy is {found or 'not set'}"
        yield Breach(why, "networkProfile.networkPolicy")
