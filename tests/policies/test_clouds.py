"""Google Cloud, Azure and IBM Cloud: unknown values, and where others are wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from policy_examples import azure, gcp, ibm
from policy_examples.support import LABELS, TODAY, Built, Example, build

from runfleet_policies.carriers import EXEMPT, carrier, exemption
from runfleet_policies.engine import Settings, evaluate
from runfleet_policies.registry import rule_named
from runfleet_policies.rules.gcp_iam import split
from runfleet_policies.values import UNKNOWN

EXAMPLES: list[Example] = [*gcp.EXAMPLES, *azure.EXAMPLES, *ibm.EXAMPLES]
AKS = "azure-native:containerservice:ManagedCluster"
GKE = "gcp:container/cluster:Cluster"
POOL = "gcp:container/nodePool:NodePool"
CREDENTIAL = "azure-native:managedidentity:FederatedIdentityCredential"
ASSIGNMENT = "azure-native:authorization:RoleAssignment"
PROVIDER = "gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider"
TEMPLATE = "ibm:index/isInstanceTemplate:IsInstanceTemplate"


def resource(kind: str, inputs: dict[str, Any], name: str = "x") -> Built:
    urn = f"urn:pulumi:gcp::runfleet::{kind}::{name}"
    return Built(urn, kind, name, inputs, f"{name}-id", inputs)


def judge(rule: str, *resources: Built) -> list[Any]:
    found = rule_named(rule)
    assert found is not None
    return evaluate(resources, [found], Settings(stack="gcp", today=TODAY))


@pytest.mark.parametrize(
    ("rule", "kind", "inputs", "path"),
    [
        ("R-GCP-01", GKE, {"privateClusterConfig": UNKNOWN}, "privateClusterConfig"),
        (
            "R-GCP-02",
            GKE,
            {"masterAuthorizedNetworksConfig": {"cidrBlocks": UNKNOWN}},
            "cidrBlocks",
        ),
        (
            "R-GCP-03",
            POOL,
            {"nodeConfig": {"workloadMetadataConfig": {"mode": UNKNOWN}}},
            "mode",
        ),
        (
            "R-GCP-04",
            POOL,
            {"nodeConfig": {"shieldedInstanceConfig": UNKNOWN}},
            "shieldedInstanceConfig",
        ),
        ("R-GCP-05", POOL, {"nodeConfig": {"serviceAccount": UNKNOWN}}, "Account"),
        (
            "R-GCP-07",
            "gcp:projects/iAMMember:IAMMember",
            {"role": UNKNOWN, "member": "user:a@b.c"},
            "role",
        ),
        (
            "R-GCP-08",
            PROVIDER,
            {"oidc": {"issuerUri": gcp.ISSUER}, "attributeCondition": UNKNOWN},
            "attributeCondition",
        ),
        (
            "R-GCP-10",
            "gcp:compute/firewall:Firewall",
            {"allows": [{"protocol": "tcp"}], "sourceRanges": ["10.0.0.0/8", UNKNOWN]},
            "sourceRanges[1]",
        ),
        (
            "R-AZ-01",
            AKS,
            {"apiServerAccessProfile": {"authorizedIPRanges": UNKNOWN}},
            "authorizedIPRanges",
        ),
        ("R-AZ-02", AKS, {"disableLocalAccounts": UNKNOWN}, "disableLocalAccounts"),
        ("R-AZ-04", AKS, {"networkProfile": UNKNOWN}, "networkProfile"),
        (
            "R-AZ-09",
            CREDENTIAL,
            {"audiences": [azure.AUDIENCE], "issuer": gcp.ISSUER, "subject": UNKNOWN},
            "subject",
        ),
        (
            "R-AZ-10",
            ASSIGNMENT,
            {"roleDefinitionId": azure.ACR_PULL, "scope": UNKNOWN},
            "scope",
        ),
        (
            "R-AZ-11",
            "azure-native:network:SecurityRule",
            {"direction": "Inbound", "access": "Allow", "sourceAddressPrefix": UNKNOWN},
            "sourceAddressPrefix",
        ),
        (
            "R-IBM-02",
            "ibm:index/iamTrustedProfilePolicy:IamTrustedProfilePolicy",
            {"roles": UNKNOWN},
            "roles",
        ),
        (
            "R-IBM-03",
            "ibm:index/iamTrustedProfileLink:IamTrustedProfileLink",
            {
                "crType": "IKS_SA",
                "link": {"crn": UNKNOWN, "namespace": "a", "name": UNKNOWN},
            },
            "link.name",
        ),
        ("R-IBM-04", TEMPLATE, {"metadataService": UNKNOWN}, "metadataService"),
        (
            "R-IBM-06",
            "ibm:index/isSecurityGroupRule:IsSecurityGroupRule",
            {"direction": "inbound", "remote": UNKNOWN},
            "remote",
        ),
        ("R-TAG-01", GKE, {"resourceLabels": UNKNOWN}, "resourceLabels"),
        ("R-TAG-01", "ibm:index/isVpc:IsVpc", {"tags": ["a:b", UNKNOWN]}, "tags[1]"),
        (
            "R-TAG-01",
            POOL,
            {"nodeConfig": {"resourceLabels": {**LABELS, "ci_env": UNKNOWN}}},
            "nodeConfig.resourceLabels.ci_env",
        ),
    ],
)
def test_an_unknown_value_never_passes(
    rule: str, kind: str, inputs: dict[str, Any], path: str
) -> None:
    findings = judge(rule, resource(kind, inputs))
    assert [found.cannot_tell for found in findings] == [True], findings
    assert findings[0].why.startswith("cannot tell: ")
    assert path in findings[0].where


@pytest.mark.parametrize(
    "example",
    [found for found in EXAMPLES if found.breaks],
    ids=lambda e: f"{e.rule}: {e.name}",
)
def test_hiding_all_of_a_breach_does_not_hide_it(example: Example) -> None:
    """A resource of which nothing is known keeps no rule silent.

    Types whose mere presence is the breach, or that are judged by their absence,
    keep their finding; all others say that they cannot tell.
    """
    rule = rule_named(example.rule)
    assert rule is not None
    built = [
        replace(found, inputs=dict.fromkeys(found.inputs, UNKNOWN))
        if not found.type.startswith("pulumi:")
        else found
        for found in build(example.build)  # type: ignore[arg-type]
    ]
    settings = Settings("gcp", TODAY, {rule.id: example.parameters})
    assert evaluate(built, [rule], settings), "nothing is said"


def test_azure_credentials_of_managed_identities_are_judged() -> None:
    # CKV_AZURE_249 knows the credential of an Entra application only.
    wide = {"audiences": [azure.AUDIENCE], "issuer": gcp.ISSUER, "subject": "repo:o/*"}
    (found,) = judge("R-AZ-09", resource(CREDENTIAL, wide))
    assert "has a wildcard" in found.why
    kind = "azuread:index/applicationFederatedIdentityCredential:"
    kind += "ApplicationFederatedIdentityCredential"
    assert [f.why for f in judge("R-AZ-09", resource(kind, wide))] == [found.why]


@pytest.mark.parametrize(("number", "name"), [
    ("8e3af657-a8ff-443c-a75c-2fe8c4bcb635", "Owner"),
    ("b24988ac-6180-42a0-ab88-20f7382dd24c", "Contributor"),
    ("18d7d88d-d35e-4fb5-a5c3-7773c20a72d9", "User Access Administrator"),
    ("F58310D9-A9F6-439A-9E8D-F62E7B41A168", "Role Based Access Control Admin"),
])  # fmt: skip
def test_azure_built_in_administrators_are_judged(number: str, name: str) -> None:
    # CKV_AZURE_39 knows custom roles with the actions of an owner only.
    inputs = {"roleDefinitionId": f"{azure.ROLES}/{number}", "scope": azure.SCOPE}
    (found,) = judge("R-AZ-10", resource(ASSIGNMENT, inputs))
    assert f"assigns {name}" in found.why


@pytest.mark.parametrize(
    ("scope", "wide"),
    [
        ("/subscriptions/1", True),
        ("/subscriptions/1/", True),
        ("/", True),
        ("/providers/Microsoft.Management/managementGroups/lf", True),
        ("/subscriptions/1/resourceGroups/fleet", False),
        ("/subscriptions/1/resourceGroups/fleet/providers/Microsoft.X/y/z", False),
    ],
)
def test_the_scope_of_an_assignment(scope: str, wide: bool) -> None:
    inputs = {"roleDefinitionId": azure.ACR_PULL, "scope": scope}
    assert bool(judge("R-AZ-10", resource(ASSIGNMENT, inputs))) is wide


def test_ibm_keys_and_policies_are_judged_one_by_one() -> None:
    # CKV2_IBM_3 and CKV2_IBM_5 look at the account's settings only.
    key = resource("ibm:index/iamServiceApiKey:IamServiceApiKey", {"name": "k"})
    (found,) = judge("R-IBM-01", key)
    assert found.why == "makes an API key of a service id"
    wide = {"iamId": "iam-Profile-1", "roles": ["Administrator"]}
    kind = "ibm:index/iamTrustedProfilePolicy:IamTrustedProfilePolicy"
    (found,) = judge("R-IBM-02", resource(kind, wide))
    assert found.why == "Administrator of everything in the account"


def test_types_in_another_api_version_are_judged() -> None:
    kind = "azure-native:containerservice/v20240901:ManagedCluster"
    assert judge("R-AZ-04", resource(kind, {}))
    assert carrier("azure-native:network/v20230101:Subnet") is None


@pytest.mark.parametrize(
    ("expression", "operator", "parts"),
    [
        ("a == 'x || y' || b", "||", ["a == 'x || y'", "b"]),
        ("(a && b) || (c)", "||", ["a && b", "c"]),
        ("(a || b) && c", "||", ["(a || b) && c"]),
        ("(a || b) && c", "&&", ["a || b", "c"]),
        ("x in ['a', 'b']", "&&", ["x in ['a', 'b']"]),
        ("", "||", [""]),
    ],
)
def test_a_condition_is_split_outside_of_its_parts(
    expression: str, operator: str, parts: list[str]
) -> None:
    assert split(expression, operator) == parts


@pytest.mark.parametrize(
    ("condition", "good"),
    [
        ("assertion.repository == 'pytorch/pytorch'", True),
        ("'pytorch/pytorch' == assertion.repository", True),
        ("assertion['repository_id'] == '65600975'", True),
        ("assertion.repository.startsWith('pytorch/')", True),
        ("assertion.repository_owner == 'a' && assertion.x == 'y'", True),
        (
            "(assertion.repository_id == '1' || assertion.repository_id == '2')"
            " && assertion.ref == 'x'",
            True,
        ),
        ("attribute.repo in ['a/b', 'a/c']", True),
        ("attribute.unmapped == 'a/b'", False),
        ("assertion.repository in []", False),
        ("assertion.repository == ''", False),
        ("assertion.repository.matches('pytorch')", False),
        ("assertion.repository.contains('pytorch/')", False),
        ("assertion.ref == 'refs/heads/main'", False),
        ("assertion.repository_owner == 'a' || true", False),
        ("!(assertion.repository == 'a/b')", False),
        ("assertion.sub.startsWith('repo:pytorch/')", True),
        ("assertion.sub.startsWith('repo:pytorch')", False),
        ("assertion.sub == 'repo:pytorch/*'", False),
    ],
)
def test_a_condition_binds_or_it_does_not(condition: str, good: bool) -> None:
    inputs = {
        "oidc": {"issuerUri": gcp.ISSUER},
        "attributeCondition": condition,
        "attributeMapping": {"attribute.repo": "assertion.repository"},
    }
    assert (judge("R-GCP-08", resource(PROVIDER, inputs)) == []) is good


def test_an_account_made_in_the_same_stack_is_one_of_its_own() -> None:
    kind = "gcp:serviceaccount/account:Account"
    account = resource(kind, {"accountId": "nodes"}, "nodes")
    pool = resource(POOL, {"nodeConfig": {"serviceAccount": UNKNOWN}})
    linked = replace(pool, property_dependencies={"nodeConfig": (account.urn,)})
    assert judge("R-GCP-05", account, linked) == []
    assert [f.cannot_tell for f in judge("R-GCP-05", account, pool)] == [True]


@pytest.mark.parametrize("kind", sorted(set(EXEMPT) - {"aws:autoscaling/group:Group"}))
def test_every_exemption_has_a_reason_and_no_carrier(kind: str) -> None:
    name = kind.replace("*", "index/thing:Thing")
    assert exemption(name)
    assert carrier(name) is None


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        (GKE, "resourceLabels"),
        (POOL, "nodeConfig.resourceLabels"),
        ("gcp:storage/bucket:Bucket", "labels"),
        ("gcp:monitoring/alertPolicy:AlertPolicy", "userLabels"),
        ("gcp:brandnew/thing:Thing", "labels"),
        (AKS, "tags"),
        ("azure-native:brandnew:Thing", "tags"),
        ("ibm:index/isVpc:IsVpc", "tags"),
        ("ibm:index/containerVpcWorkerPool:ContainerVpcWorkerPool", "labels"),
        ("kubernetes:karpenter.azure.com/v1beta1:AKSNodeClass", "spec.tags"),
    ],
)
def test_where_a_type_carries_its_labels(kind: str, place: str) -> None:
    found = carrier(kind)
    assert found is not None
    assert found.place == place


@pytest.mark.parametrize(
    "kind",
    [
        "gcp:projects/iAMMember:IAMMember",
        "gcp:monitoring/metricDescriptor:MetricDescriptor",
        "azure-native:authorization:RoleAssignment",
        "azure-native:network:Subnet",
        "ibm:index/iamTrustedProfileLink:IamTrustedProfileLink",
    ],
)
def test_what_takes_no_labels_need_not_have_them(kind: str) -> None:
    assert exemption(kind)
    assert judge("R-TAG-01", resource(kind, {})) == []
