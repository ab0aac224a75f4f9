"""Cluster: private, encrypted, named administrators, short-lived credentials."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from clouds.gcp import fleets
from clouds.gcp.fleets import of_type, one
from runfleet.clouds.protocols import StackSettings
from runfleet.errors import InputError
from runfleet.rehearsal.record import Record
from runfleet.spec.cells import ApiAccess

RING = "projects/demo-ci/locations/us-central1/keyRings/demo-uc1--cluster"


def test_the_cluster_is_private(cell: Record) -> None:
    cluster = one(cell, "gcp-cluster-gke")
    inputs = cluster.inputs
    assert inputs["privateClusterConfig"] == {
        "enablePrivateNodes": True,
        "enablePrivateEndpoint": True,
        "privateEndpointSubnetwork": (
            "projects/demo-ci/regions/us-central1/subnetworks/demo-uc1--control"
        ),
        "masterGlobalAccessConfig": {"enabled": False},
    }
    assert inputs["masterAuthorizedNetworksConfig"] == {
        "cidrBlocks": [],
        "gcpPublicCidrsAccessEnabled": False,
        "privateEndpointEnforcementEnabled": True,
    }
    assert inputs["controlPlaneEndpointsConfig"]["dnsEndpointConfig"] == {
        "allowExternalTraffic": False,
        "enableK8sTokensViaDns": False,
        "enableK8sCertsViaDns": False,
    }
    assert (inputs["location"], inputs["nodeLocations"]) == (
        "us-central1",
        ["us-central1-a", "us-central1-b"],
    )
    assert (cluster.protect, cluster.retain_on_delete) == (True, True)
    assert inputs["deletionProtection"] is True


def test_the_cluster_is_hardened(cell: Record) -> None:
    inputs = one(cell, "gcp-cluster-gke").inputs
    assert inputs["datapathProvider"] == "ADVANCED_DATAPATH"
    assert inputs["workloadIdentityConfig"] == {"workloadPool": "demo-ci.svc.id.goog"}
    assert inputs["databaseEncryption"] == {
        "state": "ENCRYPTED",
        "keyName": f"{RING}/cryptoKeys/secrets",
    }
    assert inputs["enableShieldedNodes"] is True
    assert inputs["enableLegacyAbac"] is False
    assert inputs["anonymousAuthenticationConfig"] == {"mode": "LIMITED"}
    assert not any(inputs["rbacBindingConfig"].values())
    assert inputs["masterAuth"]["clientCertificateConfig"] == {
        "issueClientCertificate": False
    }
    assert inputs["releaseChannel"] == {"channel": "REGULAR"}
    assert inputs["loggingConfig"]["enableComponents"] == [
        "APISERVER",
        "CONTROLLER_MANAGER",
        "SCHEDULER",
        "SYSTEM_COMPONENTS",
    ]
    assert inputs["resourceLabels"] == fleets.LABELS
    assert inputs["removeDefaultNodePool"] is True


def test_keys_rotate_and_only_google_s_services_use_them(cell: Record) -> None:
    for key in of_type(cell, "gcp:kms/cryptoKey:CryptoKey"):
        assert key.inputs["rotationPeriod"] == "7776000s"
        assert key.inputs["labels"] == fleets.LABELS
        assert (key.protect, key.retain_on_delete) == (True, True)
    uses = {
        (r.inputs["cryptoKeyId"].rpartition("/")[2], r.inputs["member"])
        for r in of_type(cell, "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember")
    }
    agent = "serviceAccount:service-123456789012@{}.iam.gserviceaccount.com".format
    assert uses == {
        ("disks", agent("compute-system")),
        ("disks", agent("container-engine-robot")),
        ("secrets", agent("container-engine-robot")),
        ("stores", agent("gs-project-accounts")),
        ("stores", agent("gcp-sa-artifactregistry")),
    }


def test_keys_can_be_used_before_the_cluster_is_made(cell: Record) -> None:
    after = {
        urn.rpartition("::")[2] for urn in one(cell, "gcp-cluster-gke").dependencies
    }
    assert after >= {
        "gcp-cluster-disks-key-compute",
        "gcp-cluster-disks-key-container",
        "gcp-cluster-secrets-key-container",
        "gcp-network-nat",
        "gcp-network-to-https",
        "gcp-network-dns-googleapis-all",
    }


def test_machines_have_a_service_account_with_the_least(cell: Record) -> None:
    account = one(cell, "gcp-cluster-nodes").inputs["accountId"]
    member = f"serviceAccount:{account}@demo-ci.iam.gserviceaccount.com"
    roles = {
        r.inputs["role"]
        for r in of_type(cell, "gcp:projects/iAMMember:IAMMember")
        if r.inputs["member"] == member
    }
    assert roles == {
        "roles/container.defaultNodeServiceAccount",
        "roles/artifactregistry.reader",
    }


def test_base_nodes_are_fixed_and_tainted(cell: Record) -> None:
    base = one(cell, "gcp-cluster-base").inputs
    assert base["autoscaling"] == {
        "totalMinNodeCount": 3,
        "totalMaxNodeCount": 3,
        "locationPolicy": "BALANCED",
    }
    config = base["nodeConfig"]
    assert (config["machineType"], config["diskSizeGb"]) == ("e2-standard-4", 100)
    assert config["taints"] == [
        {"key": "CriticalAddonsOnly", "value": "true", "effect": "PREFER_NO_SCHEDULE"}
    ]
    assert config["labels"] == {"role": "base-infrastructure"}
    assert base["management"] == {"autoRepair": True, "autoUpgrade": True}


def test_administrators_are_named(cell: Record) -> None:
    assert one(cell, "gcp-cluster-gke").inputs["authenticatorGroupsConfig"] == {
        "securityGroup": "gke-security-groups@example.org"
    }
    group, user = (one(cell, f"gcp-cluster-admin-{n}").inputs for n in (0, 1))
    api = "rbac.authorization.k8s.io"
    assert group["subjects"] == [
        {"apiGroup": api, "kind": "Group", "name": "infra@example.org"}
    ]
    assert user["subjects"] == [
        {"apiGroup": api, "kind": "User", "name": "ann@example.org"}
    ]
    assert user["roleRef"] == {
        "apiGroup": api,
        "kind": "ClusterRole",
        "name": "cluster-admin",
    }
    sees = one(cell, "gcp-cluster-admin-1-sees").inputs
    assert (sees["role"], sees["member"]) == (
        "roles/container.clusterViewer",
        "user:ann@example.org",
    )
    assert sees["condition"]["expression"] == (
        'resource.name == "projects/demo-ci/locations/us-central1/clusters/demo-uc1"'
    )


def test_credentials_are_short_lived_and_never_in_state(
    cell: Record, second: Record
) -> None:
    config = json.loads(cell.outputs["kubeconfig"])
    (user,) = config["users"]
    assert user["user"] == {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1beta1",
            "command": "gke-gcloud-auth-plugin",
            "installHint": "gcloud components install gke-gcloud-auth-plugin",
            "interactiveMode": "Never",
            "provideClusterInfo": True,
        }
    }
    (cluster,) = config["clusters"]
    assert cluster["cluster"]["server"].startswith("https://192.0.2.")
    assert "proxy-url" not in cluster["cluster"]
    (user,) = json.loads(second.outputs["kubeconfig"])["users"]
    assert user["user"]["exec"]["args"] == [
        "--impersonate_service_account",
        "up@demo-ci.iam.gserviceaccount.com",
    ]


def test_the_issuer_is_exported(cell: Record) -> None:
    assert cell.outputs["oidc_issuer"] == (
        "https://container.googleapis.com/v1/projects/demo-ci/locations/us-central1/"
        "clusters/demo-uc1"
    )


def test_an_allow_list_opens_the_listed_ranges_only(second: Record) -> None:
    inputs = one(second, "gcp-two-cluster-gke").inputs
    assert inputs["privateClusterConfig"]["enablePrivateEndpoint"] is False
    assert inputs["masterAuthorizedNetworksConfig"]["cidrBlocks"] == [
        {"cidrBlock": "192.0.2.0/24", "displayName": "allowed-0"}
    ]
    assert inputs["releaseChannel"] == {"channel": "STABLE"}


def test_auto_provisioning_is_off_unless_it_is_limited(
    cell: Record, second: Record
) -> None:
    first = dict(one(cell, "gcp-cluster-gke").inputs["clusterAutoscaling"])
    assert first.pop("autoProvisioningDefaults")["serviceAccount"].startswith("node-")
    assert first == {
        "enabled": False,
        "autoscalingProfile": "OPTIMIZE_UTILIZATION",
        "defaultComputeClassEnabled": True,
    }
    limited = one(second, "gcp-two-cluster-gke").inputs["clusterAutoscaling"]
    assert limited["enabled"] is True
    assert limited["resourceLimits"] == [
        {"resourceType": "cpu", "minimum": 0, "maximum": 1000},
        {"resourceType": "memory", "minimum": 0, "maximum": 4000},
        {"resourceType": "nvidia-l4", "minimum": 0, "maximum": 8},
    ]
    defaults = limited["autoProvisioningDefaults"]
    assert defaults["shieldedInstanceConfig"]["enableSecureBoot"] is True
    assert defaults["bootDiskKmsKey"].endswith("/cryptoKeys/disks")
    assert defaults["serviceAccount"].startswith("node--demo-ue1@")


def test_the_dns_endpoint_and_a_tunnel() -> None:
    text = fleets.changed(
        ("      admin_groups", "      dns_endpoint: true\n      admin_groups")
    )
    found = fleets.cell_record(fleets.plan_of(known=fleets.fleet(text)))
    (cluster,) = json.loads(found.outputs["kubeconfig"])["clusters"]
    assert cluster["cluster"]["server"].endswith(".us-central1.gke.goog")
    assert "certificate-authority-data" not in cluster["cluster"]
    dns = one(found, "gcp-cluster-gke").inputs["controlPlaneEndpointsConfig"]
    assert dns["dnsEndpointConfig"]["allowExternalTraffic"] is True
    text = fleets.changed(
        (
            "mode: allow-list, allow: [192.0.2.0/24]",
            "mode: tunnel, proxy: https://proxy.example.org:3128",
        )
    )
    found = fleets.cell_record(fleets.plan_of("gcp-two", fleets.fleet(text)))
    (cluster,) = json.loads(found.outputs["kubeconfig"])["clusters"]
    assert cluster["cluster"]["proxy-url"] == "https://proxy.example.org:3128"


def test_an_adopted_cluster_is_read_and_gets_node_pools_only() -> None:
    text = fleets.changed(
        (
            "    cluster: demo-uc1\n",
            "    cluster: demo-uc1\n    adopt_cluster: theirs\n",
        )
    )
    found = fleets.cell_record(fleets.plan_of(known=fleets.fleet(text)))
    cluster = one(found, "gcp-cluster-gke")
    assert cluster.external
    assert cluster.id == "projects/demo-ci/locations/us-central1/clusters/theirs"
    assert not [r for r in found.resources if r.name.startswith("gcp-cluster-base")]
    assert not [r for r in found.resources if "secrets-key" in r.name]
    pools = of_type(found, "gcp:container/nodePool:NodePool")
    assert {pool.inputs["cluster"] for pool in pools} == {"theirs"}


@pytest.mark.parametrize(
    ("update", "path"),
    [
        ({"base_nodes": None}, "cells.gcp-two.base_nodes"),
        (
            {"api_access": ApiAccess(mode="allow-list", allow=["0.0.0.0/0"])},
            "cells.gcp-two.api_access.allow",
        ),
        (
            {"api_access": ApiAccess(mode="allow-list")},
            "cells.gcp-two.api_access.allow",
        ),
    ],
)
def test_a_cluster_that_cannot_be(update: dict[str, Any], path: str) -> None:
    plan = fleets.plan_of("gcp-two")
    plan = replace(plan, cell=plan.cell.model_copy(update=update))
    with pytest.raises(InputError) as caught:
        fleets.cell_record(plan)
    assert [p.path for p in caught.value.problems] == [path]


def test_every_wrong_administrator_is_named() -> None:
    text = fleets.changed(
        ('"group:infra@example.org", "user:ann@example.org"', '"admin", "role:x"')
    )
    with pytest.raises(InputError) as caught:
        fleets.cell_record(fleets.plan_of(known=fleets.fleet(text)))
    assert [p.found for p in caught.value.problems] == ["admin", "role:x"]
    text = fleets.changed(("      admin_groups_domain: example.org\n", ""))
    with pytest.raises(InputError, match="admin_groups_domain"):
        fleets.cell_record(fleets.plan_of(known=fleets.fleet(text)))


def test_the_provider_is_explicit_and_adds_nothing_of_its_own() -> None:
    found = fleets.cell_record(
        fleets.plan_of("gcp-two"), StackSettings(deploy_role="up@x.example")
    )
    provider = one(found, "gcp-two-cloud").inputs
    assert provider["project"] == "demo-ci"
    assert provider["region"] == "us-east1"
    assert provider["impersonateServiceAccount"] == "up@x.example"
    assert provider["addPulumiAttributionLabel"] == "false"
    assert json.loads(provider["defaultLabels"])["ci_stack"] == "gcp-two"
