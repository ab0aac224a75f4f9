"""Examples of the rules about Google Cloud, and of labels and cost there."""

from __future__ import annotations

import json

import pulumi_gcp as gcp
from pulumi import ResourceOptions
from pulumi_kubernetes.apiextensions import CustomResource as KubernetesObject

from policy_examples.support import LABELS, Example

ISSUER = "https://token.actions.githubusercontent.com"
OWN = "nodes@fleet.iam.gserviceaccount.com"
DEFAULT = "123-compute@developer.gserviceaccount.com"
CLOUD = "https://www.googleapis.com/auth/cloud-platform"


def cluster(**args: object) -> gcp.container.Cluster:
    args.setdefault("remove_default_node_pool", True)
    return gcp.container.Cluster("cluster", **args)  # type: ignore[arg-type]


def pool(**args: object) -> gcp.container.NodePool:
    return gcp.container.NodePool("pool", cluster="cluster", **args)  # type: ignore[arg-type]


def nodes(**config: object) -> gcp.container.NodePool:
    return pool(node_config=config)


def provisioning(**defaults: object) -> gcp.container.Cluster:
    return cluster(
        cluster_autoscaling={"enabled": True, "auto_provisioning_defaults": defaults}
    )


def compute_class(**spec: object) -> KubernetesObject:
    return KubernetesObject(
        "class",
        api_version="cloud.google.com/v1",
        kind="ComputeClass",
        metadata={"name": "l4"},
        spec=spec,
    )


def node_class(**spec: object) -> KubernetesObject:
    return KubernetesObject(
        "nodes",
        api_version="karpenter.k8s.gcp/v1alpha1",
        kind="GCENodeClass",
        metadata={"name": "nodes"},
        spec=spec,
    )


def template(**args: object) -> gcp.compute.InstanceTemplate:
    return gcp.compute.InstanceTemplate(
        "template",
        machine_type="n2-standard-8",
        disks=[{"source_image": "cos-cloud/cos-stable"}],
        **args,  # type: ignore[arg-type]
    )


def firewall(**args: object) -> gcp.compute.Firewall:
    return gcp.compute.Firewall("rule", network="network", **args)  # type: ignore[arg-type]


def subnetwork(**args: object) -> gcp.compute.Subnetwork:
    return gcp.compute.Subnetwork(
        "subnetwork",
        network="network",
        ip_cidr_range="10.12.0.0/20",
        **args,  # type: ignore[arg-type]
    )


def provider(condition: str | None, **args: object) -> None:
    gcp.iam.WorkloadIdentityPoolProvider(
        "github",
        workload_identity_pool_id="github",
        workload_identity_pool_provider_id="github",
        attribute_condition=condition,
        attribute_mapping={
            "google.subject": "assertion.sub",
            "attribute.repo": "assertion.repository",
        },
        oidc={"issuer_uri": ISSUER},
        **args,  # type: ignore[arg-type]
    )


def member(role: str, **args: object) -> None:
    gcp.projects.IAMMember(
        "member",
        project="fleet",
        role=role,
        member=f"serviceAccount:{OWN}",
        **args,  # type: ignore[arg-type]
    )


def policy(role: str) -> None:
    bindings = [{"role": role, "members": [f"serviceAccount:{OWN}"]}]
    gcp.projects.IAMPolicy(
        "policy", project="fleet", policy_data=json.dumps({"bindings": bindings})
    )


def whole_pool(tail: str) -> None:
    gcp.serviceaccount.IAMMember(
        "jobs",
        service_account_id="projects/fleet/serviceAccounts/jobs",
        role="roles/iam.workloadIdentityUser",
        member="principalSet://iam.googleapis.com/projects/1/locations/global/"
        f"workloadIdentityPools/github/{tail}",
    )


def secure(on: bool | None = True, **more: object) -> dict[str, object]:
    config = {} if on is None else {"enable_secure_boot": on}
    return {"shielded_instance_config": {**config, **more}}


def own_account() -> None:
    account = gcp.serviceaccount.Account("nodes", account_id="nodes")
    nodes(service_account=account.email)


def inheriting(**defaults: object) -> None:
    provisioning(**defaults)
    compute_class(nodePoolAutoCreation={"enabled": True})


def template_metadata(**metadata: str) -> None:
    template(metadata={key.replace("_", "-"): text for key, text in metadata.items()})


def labelled_by_provider(**own: str) -> None:
    google = gcp.Provider("google", default_labels=dict(LABELS))
    gcp.storage.Bucket(
        "bucket", location="US", labels=own, opts=ResourceOptions(provider=google)
    )


def budgeted(funder: str, rules: object = ({"threshold_percent": 0.9},)) -> None:
    gcp.storage.Bucket("bucket", location="US", labels={"ci_funder": "acme"})
    gcp.billing.Budget(
        "budget",
        billing_account="000000-000000-000000",
        amount={"specified_amount": {"units": "1000"}},
        budget_filter={"labels": {"ci_funder": funder}},
        threshold_rules=rules,  # type: ignore[arg-type]
    )


def release_pool(**config: object) -> None:
    nodes(resource_labels={"ci_trust": "release"}, **config)


EXAMPLES: list[Example] = [
    Example(
        "R-GCP-01",
        "private nodes",
        lambda: cluster(private_cluster_config={"enable_private_nodes": True}),
    ),
    Example("R-GCP-01", "nothing said", cluster, ("enablePrivateNodes is not set",)),
    Example(
        "R-GCP-01",
        "a pool that undoes it",
        lambda: pool(network_config={"enable_private_nodes": False}),
        ("whatever its cluster says",),
    ),
    Example("R-GCP-01", "a pool that says nothing", pool),
    Example(
        "R-GCP-01",
        "a ComputeClass with public addresses",
        lambda: compute_class(nodePoolConfig={"ipType": "public"}),
        ("it makes have public addresses",),
    ),
    Example(
        "R-GCP-01",
        "Karpenter with public addresses",
        lambda: node_class(networkConfig={"enablePrivateNodes": False}),
        ("it makes have public addresses",),
    ),
    Example(
        "R-GCP-02",
        "a private endpoint",
        lambda: cluster(
            private_cluster_config={
                "enable_private_nodes": True,
                "enable_private_endpoint": True,
            }
        ),
    ),
    Example(
        "R-GCP-02",
        "authorised networks",
        lambda: cluster(
            master_authorized_networks_config={
                "cidr_blocks": [{"cidr_block": "192.0.2.0/24"}],
                "gcp_public_cidrs_access_enabled": False,
            }
        ),
    ),
    Example(
        "R-GCP-02",
        "no address at all",
        lambda: cluster(
            control_plane_endpoints_config={
                "ip_endpoints_config": {"enabled": False},
                "dns_endpoint_config": {"allow_external_traffic": False},
            }
        ),
    ),
    Example("R-GCP-02", "the default", cluster, ("no authorised networks",)),
    Example(
        "R-GCP-02",
        "the world and Google's customers",
        lambda: cluster(
            master_authorized_networks_config={
                "cidr_blocks": [{"cidr_block": "0.0.0.0/0"}],
            }
        ),
        ("open to 0.0.0.0/0", "every customer of Google"),
    ),
    Example(
        "R-GCP-02",
        "an open DNS endpoint",
        lambda: cluster(
            control_plane_endpoints_config={
                "ip_endpoints_config": {"enabled": False},
                "dns_endpoint_config": {"allow_external_traffic": True},
            }
        ),
        ("the DNS endpoint answers",),
    ),
    Example(
        "R-GCP-03",
        "a cluster with workload identity",
        lambda: cluster(workload_identity_config={"workload_pool": "f.svc.id.goog"}),
    ),
    Example("R-GCP-03", "Autopilot", lambda: cluster(enable_autopilot=True)),
    Example(
        "R-GCP-03",
        "a pool with GKE's metadata server",
        lambda: nodes(workload_metadata_config={"mode": "GKE_METADATA"}),
    ),
    Example("R-GCP-03", "a cluster without", cluster, ("workload identity is off",)),
    Example(
        "R-GCP-03",
        "a pool that shows the node",
        lambda: nodes(workload_metadata_config={"mode": "GCE_METADATA"}),
        ("the metadata mode is GCE_METADATA",),
    ),
    Example(
        "R-GCP-03",
        "the cluster's own default pool",
        lambda: cluster(
            remove_default_node_pool=False,
            workload_identity_config={"workload_pool": "f.svc.id.goog"},
        ),
        ("the metadata mode is not set",),
    ),
    Example("R-GCP-04", "a pool with secure boot", lambda: nodes(**secure())),
    Example("R-GCP-04", "a machine with secure boot", lambda: template(**secure())),
    Example("R-GCP-04", "a pool without", lambda: nodes(), ("is not set",)),
    Example(
        "R-GCP-04",
        "a machine with parts off",
        lambda: template(**secure(False, enable_vtpm=False)),
        ("enableSecureBoot is false", "enableVtpm is false"),
    ),
    Example(
        "R-GCP-04",
        "a cluster that switches it off",
        lambda: cluster(enable_shielded_nodes=False),
        ("shielded nodes are off",),
    ),
    Example(
        "R-GCP-04",
        "auto-provisioning without",
        provisioning,
        ("enableSecureBoot is not set",),
    ),
    Example(
        "R-GCP-04",
        "a ComputeClass on good defaults",
        lambda: inheriting(**secure()),
    ),
    Example(
        "R-GCP-04",
        "a ComputeClass on bad defaults",
        inheriting,
        ("is not set", "is not set"),
    ),
    Example(
        "R-GCP-04",
        "Karpenter with secure boot",
        lambda: node_class(shieldedInstanceConfig={"enableSecureBoot": True}),
    ),
    Example("R-GCP-05", "an account of its own", own_account),
    Example("R-GCP-05", "a machine without account", template),
    Example(
        "R-GCP-05",
        "auto-provisioning with an account",
        lambda: inheriting(service_account=OWN),
    ),
    Example(
        "R-GCP-05", "a pool that says nothing", lambda: nodes(), ("default account",)
    ),
    Example(
        "R-GCP-05",
        "the default account by name",
        lambda: nodes(service_account=DEFAULT, oauth_scopes=[CLOUD]),
        (f"({DEFAULT}) with the scope of the whole cloud",),
    ),
    Example(
        "R-GCP-05",
        "a machine on the default account",
        lambda: template(service_account={"scopes": [CLOUD]}),
        ("(not set) with the scope of the whole cloud",),
    ),
    Example(
        "R-GCP-05",
        "a ComputeClass on the default account",
        lambda: compute_class(
            nodePoolAutoCreation={"enabled": True},
            nodePoolConfig={"serviceAccount": "default"},
        ),
        ("(default)",),
    ),
    Example(
        "R-GCP-06",
        "an account",
        lambda: gcp.serviceaccount.Account("jobs", account_id="jobs"),
    ),
    Example(
        "R-GCP-06",
        "a key",
        lambda: gcp.serviceaccount.Key("key", service_account_id="jobs"),
        ("a long-lived key",),
    ),
    Example(
        "R-GCP-06",
        "a key for storage",
        lambda: gcp.storage.HmacKey("key", service_account_email=OWN),
        ("a long-lived HMAC key",),
    ),
    Example("R-GCP-07", "a narrow role", lambda: member("roles/logging.logWriter")),
    Example(
        "R-GCP-07",
        "an account role under a condition",
        lambda: member(
            "roles/iam.serviceAccountUser",
            condition={"title": "one", "expression": "resource.name == 'x'"},
        ),
    ),
    Example("R-GCP-07", "a narrow policy", lambda: policy("roles/logging.logWriter")),
    Example(
        "R-GCP-07", "owner", lambda: member("roles/owner"), ("grants roles/owner",)
    ),
    Example("R-GCP-07", "a policy", lambda: policy("roles/editor"), ("roles/editor",)),
    Example(
        "R-GCP-07",
        "acting as every account",
        lambda: member("roles/iam.serviceAccountTokenCreator"),
        ("on everything below",),
    ),
    Example(
        "R-GCP-07",
        "a binding of a folder",
        lambda: gcp.folder.IAMBinding(
            "b", folder="folders/1", role="roles/editor", members=["user:a@b.c"]
        ),
        ("grants roles/editor",),
    ),
    Example(
        "R-GCP-07",
        "a custom role that can raise itself",
        lambda: gcp.projects.IAMCustomRole(
            "role",
            role_id="jobs",
            title="jobs",
            permissions=["storage.objects.get", "iam.serviceAccounts.actAs"],
        ),
        ("iam.serviceAccounts.actAs",),
    ),
    Example(
        "R-GCP-08",
        "a repository",
        lambda: provider("assertion.repository_id == '65600975'"),
    ),
    Example(
        "R-GCP-08",
        "a mapped repository and a branch",
        lambda: provider(
            "(attribute.repo == 'pytorch/ci-infra') && assertion.ref == 'refs/heads/x'"
        ),
    ),
    Example(
        "R-GCP-08",
        "two owners",
        lambda: provider('assertion.repository_owner in ["pytorch", "pytorch-fdn"]'),
    ),
    Example(
        "R-GCP-08",
        "a subject in the newer form",
        lambda: provider("assertion.sub == 'repo:pytorch@1/ci-infra@2:environment:e'"),
    ),
    Example("R-GCP-08", "no condition", lambda: provider(None), ("takes every token",)),
    Example(
        "R-GCP-08",
        "a way round",
        lambda: provider("assertion.repository_owner == 'a' || assertion.ref != ''"),
        ("\"assertion.ref != ''\" binds to no owner",),
    ),
    Example(
        "R-GCP-08",
        "the beginning of an owner's name",
        lambda: provider("assertion.repository.startsWith('pytorch')"),
        ("binds to no owner",),
    ),
    Example(
        "R-GCP-08",
        "an exclusion",
        lambda: provider("assertion.repository != 'evil/repo'"),
        ("binds to no owner",),
    ),
    Example(
        "R-GCP-08",
        "one repository of the pool",
        lambda: whole_pool("attribute.repository/pytorch/pytorch"),
    ),
    Example(
        "R-GCP-08", "the whole pool", lambda: whole_pool("*"), ("every identity of",)
    ),
    Example(
        "R-GCP-09",
        "inside only",
        lambda: template(network_interfaces=[{"network": "network"}]),
    ),
    Example(
        "R-GCP-09",
        "an external address",
        lambda: template(network_interfaces=[{"access_configs": [{}]}]),
        ("has an external address",),
    ),
    Example(
        "R-GCP-10",
        "health checks only",
        lambda: firewall(source_ranges=["35.191.0.0/16"], allows=[{"protocol": "tcp"}]),
    ),
    Example(
        "R-GCP-10",
        "a denial",
        lambda: firewall(source_ranges=["0.0.0.0/0"], denies=[{"protocol": "all"}]),
    ),
    Example(
        "R-GCP-10",
        "the world",
        lambda: firewall(
            source_ranges=["10.0.0.0/8", "::/0"], allows=[{"protocol": "tcp"}]
        ),
        ("lets ::/0 in",),
    ),
    Example(
        "R-GCP-10",
        "no source",
        lambda: firewall(allows=[{"protocol": "tcp", "ports": ["22"]}]),
        ("names no source",),
    ),
    Example(
        "R-GCP-11",
        "watched and private",
        lambda: subnetwork(
            private_ip_google_access=True, log_config={"flow_sampling": 0.5}
        ),
    ),
    Example(
        "R-GCP-11",
        "a proxy's subnetwork",
        lambda: subnetwork(purpose="REGIONAL_MANAGED_PROXY"),
    ),
    Example(
        "R-GCP-11",
        "neither",
        subnetwork,
        ("flow logs are off", "reached from outside"),
    ),
    Example(
        "R-GCP-11",
        "logs that keep nothing",
        lambda: subnetwork(
            private_ip_google_access=True, log_config={"flow_sampling": 0.0}
        ),
        ("sample nothing",),
    ),
    Example(
        "R-GCP-11",
        "a network that makes its own",
        lambda: gcp.compute.Network("network"),
        ("without flow logs",),
    ),
    Example(
        "R-GCP-12",
        "Dataplane V2 and a channel",
        lambda: cluster(
            datapath_provider="ADVANCED_DATAPATH",
            release_channel={"channel": "REGULAR"},
        ),
    ),
    Example(
        "R-GCP-12",
        "neither",
        cluster,
        ("policies are not enforced", "the release channel is not set"),
    ),
    Example(
        "R-GCP-12",
        "a pool without upgrades",
        lambda: pool(management={"auto_upgrade": False, "auto_repair": True}),
        ("autoUpgrade is off",),
    ),
    Example(
        "R-GCP-12",
        "a ComputeClass without repair",
        lambda: compute_class(nodePoolConfig={"autoRepair": False}),
        ("autoRepair is off",),
    ),
    Example(
        "R-GCP-12",
        "auto-provisioning without upgrades",
        lambda: cluster(
            datapath_provider="ADVANCED_DATAPATH",
            release_channel={"channel": "REGULAR"},
            cluster_autoscaling={
                "enabled": True,
                "auto_provisioning_defaults": {"management": {"auto_upgrade": False}},
            },
        ),
        ("autoUpgrade is off",),
    ),
    Example(
        "R-GCP-13",
        "OS Login",
        lambda: template_metadata(block_project_ssh_keys="true", enable_oslogin="TRUE"),
    ),
    Example(
        "R-GCP-13",
        "nothing said",
        template,
        ("block-project-ssh-keys is not true", "enable-oslogin is not true"),
    ),
    Example(
        "R-GCP-13",
        "every door",
        lambda: template_metadata(
            block_project_ssh_keys="true",
            enable_oslogin="true",
            serial_port_enable="TRUE",
            ssh_keys="me:ssh-ed25519 AAAA me",
        ),
        ("the serial port is on", "SSH keys stand in the metadata"),
    ),
    Example(
        "R-GCP-13",
        "nodes with a serial port",
        lambda: nodes(metadata={"serial-port-enable": "true"}),
        ("the serial port is on",),
    ),
    Example(
        "R-GCP-14",
        "a key",
        lambda: cluster(database_encryption={"state": "ENCRYPTED", "key_name": "k"}),
    ),
    Example("R-GCP-14", "the default", cluster, ("the state is DECRYPTED",)),
    Example(
        "R-GCP-14",
        "no key",
        lambda: cluster(database_encryption={"state": "ENCRYPTED"}),
        ("names no key",),
    ),
    Example("R-TAG-01", "a Google cluster", lambda: cluster(resource_labels=LABELS)),
    Example("R-TAG-01", "a Google bucket", labelled_by_provider),
    Example(
        "R-TAG-01",
        "Google nodes",
        lambda: nodes(resource_labels={**LABELS, "ci_funder": "Acme Inc"}),
        ("ci_funder='Acme Inc' does not match",),
    ),
    Example(
        "R-TAG-01",
        "a Google template without labels",
        template,
        ("ci_project, ci_env",),
    ),
    Example(
        "R-TAG-01",
        "an alert",
        lambda: gcp.monitoring.AlertPolicy(
            "alert",
            combiner="OR",
            conditions=[],
            display_name="alert",
            user_labels=LABELS,
        ),
    ),
    Example(
        "R-TAG-01",
        "a ComputeClass that makes nodes",
        lambda: compute_class(
            nodePoolAutoCreation={"enabled": True},
            nodePoolConfig={"nodeLabels": {"a": "b"}},
        ),
        ("ci_project, ci_env",),
    ),
    Example("R-TAG-01", "a ComputeClass that makes none", compute_class),
    Example("R-COST-01", "a budget at Google", lambda: budgeted("acme")),
    Example(
        "R-COST-01",
        "a budget of somebody else at Google",
        lambda: budgeted("other", []),
        ("alerts nobody", "what acme pays"),
    ),
    Example("R-COST-02", "release nodes at Google", release_pool),
    Example(
        "R-COST-02",
        "spot release nodes at Google",
        lambda: release_pool(spot=True),
        ("release nodes are spot machines",),
    ),
    Example(
        "R-COST-02",
        "a ComputeClass with spot for releases",
        lambda: compute_class(
            nodePoolConfig={"nodeLabels": {"ci_trust": "release"}},
            priorities=[{"machineFamily": "n4"}, {"spot": True}],
        ),
        ("may be spot machines",),
    ),
]
