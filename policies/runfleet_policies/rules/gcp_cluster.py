"""GKE clusters: private nodes, a closed control plane, identities for pods.

Defaults are those of pulumi-gcp 10.2 and of Google's page "Harden your cluster's
security" (cloud.google.com/kubernetes-engine/docs/how-to/hardening-your-cluster).
Autopilot clusters always have workload identity, shielded nodes, Dataplane V2 and a
release channel. What node auto-provisioning makes later follows the cluster's
``autoProvisioningDefaults`` and the ComputeClass, so both are judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from runfleet.spec.findings import Severity
from runfleet_policies.rule import Breach, Context, Rule
from runfleet_policies.rules.aws_network import is_world
from runfleet_policies.values import mapping, spell, stands, text, truth
from runfleet_policies.view import ResourceView

CLUSTER = "gcp:container/cluster:Cluster"
NODE_POOL = "gcp:container/nodePool:NodePool"
COMPUTE_CLASS = "kubernetes:cloud.google.com/*:ComputeClass"
NODE_CLASS = "kubernetes:karpenter.k8s.gcp/*:GCENodeClass"

_ENCRYPTED = ("ENCRYPTED", "ALL_OBJECTS_ENCRYPTION_ENABLED")


def rules() -> tuple[Rule, ...]:
    """Return the rules about GKE clusters."""
    return (
        Rule(
            id="R-GCP-01",
            severity=Severity.HIGH,
            title="Nodes have private addresses only",
            rationale="A node that runs strangers' code and can be reached from the "
            "internet is a place to persist on and to pivot from.",
            fix="set privateClusterConfig.enablePrivateNodes, and never public "
            "addresses in a pool or ComputeClass",
            anchors=("S33", "S34", "CIS GKE"),
            types=(CLUSTER, NODE_POOL, COMPUTE_CLASS, NODE_CLASS),
            resource=_private_nodes,
        ),
        Rule(
            id="R-GCP-02",
            severity=Severity.HIGH,
            title="The control plane is not open to the internet",
            rationale="Without authorised networks the API answers everybody; with "
            "Google's public addresses let in, it answers every customer of Google.",
            fix="set enablePrivateEndpoint, or list masterAuthorizedNetworksConfig "
            "with gcpPublicCidrsAccessEnabled false",
            anchors=("S02", "S33", "CIS GKE"),
            types=(CLUSTER,),
            resource=_closed_control_plane,
        ),
        Rule(
            id="R-GCP-03",
            severity=Severity.CRITICAL,
            title="Pods get identities of their own, never the node's",
            rationale="Without workload identity and GKE's metadata server every pod "
            "can ask the metadata service for the node's token.",
            fix="set workloadIdentityConfig.workloadPool and, on every pool, "
            "workloadMetadataConfig.mode GKE_METADATA",
            anchors=("S15", "S16", "S30", "CIS GKE"),
            types=(CLUSTER, NODE_POOL),
            resource=_workload_identity,
        ),
        Rule(
            id="R-GCP-12",
            severity=Severity.MEDIUM,
            title="Network policies are enforced, and nodes are kept up to date",
            rationale="Without Dataplane V2 or Calico a NetworkPolicy is accepted and "
            "ignored; without a channel and upgrades a flaw stays until somebody "
            "remembers it.",
            fix="set datapathProvider ADVANCED_DATAPATH, a releaseChannel, and leave "
            "autoUpgrade and autoRepair on",
            anchors=("S12", "S36", "CIS GKE"),
            types=(CLUSTER, NODE_POOL, COMPUTE_CLASS),
            resource=_upkeep,
        ),
        Rule(
            id="R-GCP-14",
            severity=Severity.MEDIUM,
            title="Kubernetes secrets are encrypted with a key of our own",
            rationale="The App's key passes through etcd; a key of our own makes "
            "every use of it visible and revocable.",
            fix="set databaseEncryption with state ENCRYPTED and keyName",
            anchors=("S18", "S19", "CIS GKE"),
            types=(CLUSTER,),
            resource=_secret_encryption,
        ),
    )


@dataclass(frozen=True)
class Pool:
    """A node pool, wherever it is written.

    Attributes:
        place: Where its settings stand; empty for a pool of its own.
        settings: The pool's properties, as ``gcp:container/nodePool`` has them.
    """

    place: tuple[str | int, ...]
    settings: Mapping[str, Any]

    def at(self, *path: str | int) -> str:
        """Spell a path below the pool's place."""
        return spell((*self.place, *path))


def pools(resource: ResourceView) -> Iterator[Pool]:
    """Yield the node pools of a cluster or of a node pool resource."""
    if resource.type == NODE_POOL:
        yield Pool((), resource.inputs)
        return
    for index, _ in enumerate(resource.items("nodePools")):
        yield Pool(("nodePools", index), resource.mapping("nodePools", index))
    own = resource.items("nodePools")
    if not (own or resource.truth("removeDefaultNodePool") or autopilot(resource)):
        found = {"nodeConfig": resource.get("nodeConfig")}
        yield Pool((), found)


def autopilot(cluster: ResourceView) -> bool:
    """Say whether Google runs the nodes of a cluster."""
    return bool(cluster.truth("enableAutopilot"))


def auto_creates(compute_class: ResourceView) -> bool:
    """Say whether a ComputeClass lets GKE make node pools."""
    return bool(compute_class.truth("spec", "nodePoolAutoCreation", "enabled"))


def auto_provisioning(cluster: ResourceView) -> Mapping[str, Any] | None:
    """Return the defaults of what GKE makes later; ``None`` when it makes nothing."""
    on = cluster.truth("clusterAutoscaling", "enabled") or autopilot(cluster)
    if not (on or cluster.truth("clusterAutoscaling", "defaultComputeClassEnabled")):
        return None
    return cluster.mapping("clusterAutoscaling", "autoProvisioningDefaults")


def _private_nodes(resource: ResourceView, context: Context) -> Iterator[Breach]:
    kind = resource.type.rpartition(":")[2]
    if kind == "ComputeClass":
        if resource.text("spec", "nodePoolConfig", "ipType").lower() == "public":
            why = "the nodes it makes have public addresses"
            yield Breach(why, "spec.nodePoolConfig.ipType")
        return
    if kind == "GCENodeClass":
        path = ("spec", "networkConfig", "enablePrivateNodes")
        if resource.truth(*path) is False:
            why = "the nodes it makes have public addresses"
            yield Breach(why, spell(path))
        return
    if kind == "Cluster":
        private = resource.truth("privateClusterConfig", "enablePrivateNodes")
        if not private:
            said = "not set" if private is None else "false"
            place = "privateClusterConfig.enablePrivateNodes"
            yield Breach(f"enablePrivateNodes is {said}", place)
    for pool in pools(resource):
        if truth(pool.settings, "networkConfig", "enablePrivateNodes") is False:
            why = "the pool has public addresses, whatever its cluster says"
            yield Breach(why, pool.at("networkConfig", "enablePrivateNodes"))


def _closed_control_plane(cluster: ResourceView, context: Context) -> Iterator[Breach]:
    endpoints = "controlPlaneEndpointsConfig"
    if cluster.truth(endpoints, "dnsEndpointConfig", "allowExternalTraffic"):
        why = "the DNS endpoint answers requests from the internet"
        yield Breach(why, f"{endpoints}.dnsEndpointConfig.allowExternalTraffic")
    by_address = cluster.truth(endpoints, "ipEndpointsConfig", "enabled", default=True)
    if not by_address or cluster.truth("privateClusterConfig", "enablePrivateEndpoint"):
        return
    networks = "masterAuthorizedNetworksConfig"
    if cluster.get(networks) is None:
        yield Breach("the public endpoint has no authorised networks", networks)
        return
    for index, _ in enumerate(cluster.items(networks, "cidrBlocks")):
        found = cluster.text(networks, "cidrBlocks", index, "cidrBlock")
        if is_world(found):
            place = f"{networks}.cidrBlocks[{index}]"
            yield Breach(f"the public endpoint is open to {found}", place)
    if cluster.truth(networks, "gcpPublicCidrsAccessEnabled") is not False:
        why = "machines of every customer of Google may connect"
        yield Breach(why, f"{networks}.gcpPublicCidrsAccessEnabled")


def _workload_identity(resource: ResourceView, context: Context) -> Iterator[Breach]:
    if resource.type == CLUSTER:
        if autopilot(resource):
            return
        if not resource.text("workloadIdentityConfig", "workloadPool"):
            why = "workload identity is off"
            yield Breach(why, "workloadIdentityConfig.workloadPool")
    for pool in pools(resource):
        path = ("nodeConfig", "workloadMetadataConfig", "mode")
        mode = text(pool.settings, *path)
        if mode != "GKE_METADATA":
            why = f"the metadata mode is {mode or 'not set'}"
            yield Breach(why, pool.at(*path))


def _upkeep(resource: ResourceView, context: Context) -> Iterator[Breach]:
    kind = resource.type.rpartition(":")[2]
    if kind == "ComputeClass":
        settings = resource.mapping("spec", "nodePoolConfig")
        yield from _management(settings, ("spec", "nodePoolConfig"))
        return
    if kind == "Cluster" and not autopilot(resource):
        dataplane = resource.text("datapathProvider") == "ADVANCED_DATAPATH"
        if not (dataplane or resource.truth("networkPolicy", "enabled")):
            yield Breach("network policies are not enforced", "datapathProvider")
        channel = resource.text("releaseChannel", "channel")
        if channel in ("", "UNSPECIFIED"):
            why = f"the release channel is {channel or 'not set'}"
            yield Breach(why, "releaseChannel.channel")
    if kind == "Cluster":
        defaults = auto_provisioning(resource)
        place = ("clusterAutoscaling", "autoProvisioningDefaults", "management")
        yield from _management(mapping(defaults, "management"), place)
    for pool in pools(resource):
        place = (*pool.place, "management")
        yield from _management(mapping(pool.settings, "management"), place)


def _management(
    settings: Mapping[str, Any], place: tuple[str | int, ...]
) -> Iterator[Breach]:
    for name in ("autoUpgrade", "autoRepair"):
        if truth(settings, name) is False:
            yield Breach(f"{name} is off", spell((*place, name)))


def _secret_encryption(cluster: ResourceView, context: Context) -> Iterator[Breach]:
    state = cluster.text("databaseEncryption", "state", default="DECRYPTED")
    if state not in _ENCRYPTED:
        yield Breach(f"the state is {state}", "databaseEncryption.state")
    elif not stands(cluster.inputs, "databaseEncryption", "keyName"):
        yield Breach("databaseEncryption names no key", "databaseEncryption.keyName")
