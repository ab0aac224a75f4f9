"""The rules for Google Cloud hold for everything a fleet makes (R-GCP-01 to 14)."""

from __future__ import annotations

import datetime as dt

import pytest

from clouds.gcp.fleets import of_type, parent_name
from runfleet.rehearsal.record import Record
from runfleet.spec.labels import KEYS
from runfleet_policies.engine import Settings, evaluate
from runfleet_policies.registry import stack_rules

LABELS_INPUT = {
    "gcp:artifactregistry/repository:Repository": "labels",
    "gcp:container/cluster:Cluster": "resourceLabels",
    "gcp:dns/managedZone:ManagedZone": "labels",
    "gcp:kms/cryptoKey:CryptoKey": "labels",
    "gcp:monitoring/notificationChannel:NotificationChannel": "userLabels",
    "gcp:pubsub/subscription:Subscription": "labels",
    "gcp:pubsub/topic:Topic": "labels",
    "gcp:storage/bucket:Bucket": "labels",
}
"""The types that carry labels, and the input that holds them."""

WITHOUT_LABELS = {
    "gcp:billing/budget:Budget",
    "gcp:compute/firewall:Firewall",
    "gcp:compute/network:Network",
    "gcp:compute/route:Route",
    "gcp:compute/router:Router",
    "gcp:compute/routerNat:RouterNat",
    "gcp:compute/subnetwork:Subnetwork",
    "gcp:dns/recordSet:RecordSet",
    "gcp:iam/workloadIdentityPool:WorkloadIdentityPool",
    "gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider",
    "gcp:kms/keyRing:KeyRing",
    "gcp:orgpolicy/policy:Policy",
    "gcp:projects/iAMCustomRole:IAMCustomRole",
    "gcp:projects/serviceIdentity:ServiceIdentity",
    "gcp:serviceaccount/account:Account",
}
"""Types that Google knows no labels for."""


@pytest.fixture(params=["cell", "second", "central"])
def found(request: pytest.FixtureRequest) -> Record:
    return request.getfixturevalue(request.param)


def test_everything_that_can_carry_labels_does(found: Record) -> None:
    for resource in found.resources:
        if not resource.type.startswith("gcp:") or resource.external:
            continue
        if resource.type == "gcp:container/nodePool:NodePool":
            labels = resource.inputs["nodeConfig"]["resourceLabels"]
            assert set(labels) == set(KEYS), resource.name
        elif resource.type in LABELS_INPUT:
            labels = resource.inputs[LABELS_INPUT[resource.type]]
            assert set(labels) == set(KEYS), resource.name
        else:
            assert resource.type in WITHOUT_LABELS or resource.type.lower().endswith(
                "iammember"
            ), resource.type


def test_01_to_05_clusters_and_machines(cell: Record, second: Record) -> None:
    for record in (cell, second):
        (cluster,) = of_type(record, "gcp:container/cluster:Cluster")
        private = cluster.inputs["privateClusterConfig"]
        assert private["enablePrivateNodes"] is True
        listed = cluster.inputs["masterAuthorizedNetworksConfig"]["cidrBlocks"]
        assert private["enablePrivateEndpoint"] is True or listed
        assert not [b for b in listed if b["cidrBlock"].endswith("/0")]
        configs = [
            p.inputs["nodeConfig"]
            for p in of_type(record, "gcp:container/nodePool:NodePool")
        ]
        for config in [*configs, cluster.inputs["nodeConfig"]]:
            assert config["workloadMetadataConfig"]["mode"] == "GKE_METADATA"
            assert all(config["shieldedInstanceConfig"].values())
            assert config["serviceAccount"].startswith("node--")
            assert config["metadata"]["block-project-ssh-keys"] == "true"


def test_06_07_no_keys_and_no_basic_roles(found: Record) -> None:
    assert not [
        r for r in found.resources if r.type.startswith("gcp:serviceaccount/key")
    ]
    roles = {r.inputs.get("role") for r in found.resources}
    assert not roles & {"roles/owner", "roles/editor", "roles/viewer"}


def test_08_tokens_are_taken_under_a_condition(central: Record) -> None:
    for provider in of_type(
        central, "gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider"
    ):
        assert "repository_owner_id" in provider.inputs["attributeCondition"]


def test_10_11_14_network_and_secrets(cell: Record) -> None:
    for rule in of_type(cell, "gcp:compute/firewall:Firewall"):
        assert rule.inputs["direction"] == "EGRESS"
    for subnet in of_type(cell, "gcp:compute/subnetwork:Subnetwork"):
        assert subnet.inputs["privateIpGoogleAccess"] is True
        assert subnet.inputs["logConfig"]["flowSampling"] > 0
    (cluster,) = of_type(cell, "gcp:container/cluster:Cluster")
    assert cluster.inputs["databaseEncryption"]["state"] == "ENCRYPTED"


def test_12_upgrades_and_repairs(cell: Record) -> None:
    """Flex-start machines are not repaired: Google asks for that."""
    for pool in of_type(cell, "gcp:container/nodePool:NodePool"):
        management = pool.inputs["management"]
        assert management["autoUpgrade"] is True
        flex = pool.inputs["nodeConfig"].get("flexStart", False)
        assert management["autoRepair"] is not flex


def test_no_member_is_everybody_and_no_provider_is_ambient(found: Record) -> None:
    for resource in found.resources:
        if resource.type.startswith(("gcp:", "kubernetes:")):
            assert resource.provider, resource.name
            assert parent_name(resource)


def test_names_of_children_begin_with_their_component(found: Record) -> None:
    for resource in found.resources:
        if resource.type.startswith(("gcp:", "kubernetes:")):
            assert resource.name.startswith(f"{parent_name(resource)}-")


DAY = dt.date(2026, 11, 21)

KNOWN = {
    # Google asks that machines of the Dynamic Workload Scheduler are not repaired.
    ("R-GCP-12", "gcp-pool-flex--g2-standard-48-pool"),
    # The first cell's stack makes the funder's one budget in the project.
    ("R-COST-01", "stack gcp-two#ci_funder.foundation"),
}


def test_the_policy_packs_find_nothing_else(found: Record) -> None:
    findings = evaluate(
        found.resources, stack_rules(), Settings(stack=found.stack, today=DAY)
    )
    seen = {
        (f.rule, f.where.rpartition("::")[2].partition("#")[0])
        if "::" in f.where
        else (f.rule, f.where)
        for f in findings
    }
    assert seen <= KNOWN
