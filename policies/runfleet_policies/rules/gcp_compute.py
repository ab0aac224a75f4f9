"""Google machines: boot, accounts, addresses, logins; also those made later.

A node pool, the defaults of node auto-provisioning, an instance template, a
ComputeClass and the community Karpenter's GCENodeClass all describe machines, each
in its own place. :func:`_described` gives them one form, so that no rule is blind to
one of them. What a ComputeClass leaves out comes from its cluster's defaults, so it
passes when every cluster of the stack has good ones.

Sources: pulumi-gcp 10.2; cloud.google.com/kubernetes-engine/docs/reference/crds/
computeclass; github.com/cloudpilot-ai/karpenter-provider-gcp at 417f047b.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from runfleet.spec.findings import Severity
from runfleet_policies.rule import Breach, Context, Rule, guarded
from runfleet_policies.rules.gcp_cluster import (
    CLUSTER,
    COMPUTE_CLASS,
    NODE_CLASS,
    NODE_POOL,
    auto_creates,
    auto_provisioning,
    autopilot,
    pools,
)
from runfleet_policies.values import CannotTell, get, items, spell, text, texts, truth
from runfleet_policies.view import ResourceView, StackView

TEMPLATE = "gcp:compute/instanceTemplate:InstanceTemplate"
REGION_TEMPLATE = "gcp:compute/regionInstanceTemplate:RegionInstanceTemplate"
INSTANCE = "gcp:compute/instance:Instance"
MACHINES = (TEMPLATE, REGION_TEMPLATE, INSTANCE)
DESCRIBING = (CLUSTER, NODE_POOL, *MACHINES, COMPUTE_CLASS, NODE_CLASS)
ACCOUNT = "gcp:serviceaccount/account:Account"

_DEFAULT_ACCOUNT = "-compute@developer.gserviceaccount.com"
_WHOLE_CLOUD = "https://www.googleapis.com/auth/cloud-platform"


def rules() -> tuple[Rule, ...]:
    """Return the rules about Google machines."""
    return (
        Rule(
            id="R-GCP-04",
            severity=Severity.HIGH,
            title="Machines boot signed software only and can prove it",
            rationale="Secure boot, a virtual TPM and integrity monitoring keep a job "
            "that became root from staying across a reboot.",
            fix="set shieldedInstanceConfig.enableSecureBoot, and leave vTPM and "
            "integrity monitoring on (GPU nodes: Container-Optimized OS drivers)",
            anchors=("S10", "S36", "CIS GKE"),
            stack=_shielded,
        ),
        Rule(
            id="R-GCP-05",
            severity=Severity.HIGH,
            title="Machines have a service account of their own",
            rationale="Compute Engine's default account is shared by everything in "
            "the project and is an Editor of it where nobody took that away.",
            fix="set serviceAccount to a dedicated account",
            anchors=("S17", "S04", "CIS GKE"),
            stack=_dedicated_accounts,
        ),
        Rule(
            id="R-GCP-09",
            severity=Severity.HIGH,
            title="Runners have no external address",
            rationale="Connections out go through Cloud NAT; an address of its own "
            "makes a machine reachable.",
            fix="remove accessConfigs and ipv6AccessConfigs; use Cloud NAT",
            anchors=("S33", "S34", "CIS 2.2.4"),
            types=MACHINES,
            resource=_external_address,
        ),
        Rule(
            id="R-GCP-13",
            severity=Severity.MEDIUM,
            title="Nobody logs in with project-wide keys or through the serial port",
            rationale="A key in the project's metadata opens every machine of the "
            "project; the serial port lets people in past the firewall.",
            fix="set metadata block-project-ssh-keys and enable-oslogin to true and "
            "serial-port-enable to false",
            anchors=("S16", "S33", "S36"),
            types=(*MACHINES, NODE_POOL, CLUSTER, NODE_CLASS),
            resource=_logins,
        ),
    )


@dataclass(frozen=True)
class _Machine:
    """Settings of machines, wherever they are written.

    Attributes:
        resource: The resource that they stand in.
        place: Where, in that resource.
        settings: Properties ``shieldedInstanceConfig`` and ``serviceAccount``.
        inherits: Whether what is missing comes from the clusters' defaults.
        virtual: Whether it is a plain machine and not a Kubernetes node.
    """

    resource: ResourceView
    place: tuple[str | int, ...]
    settings: Mapping[str, Any]
    inherits: bool = False
    virtual: bool = False

    def breach(self, why: str, *path: str) -> Breach:
        """Return a breach below the machine's place."""
        return Breach(why, spell((*self.place, *path)), urn=self.resource.urn)


def _described(resource: ResourceView) -> Iterator[_Machine]:
    kind = resource.type.rpartition(":")[2]
    if kind in ("Cluster", "NodePool"):
        for pool in pools(resource):
            settings = get(pool.settings, "nodeConfig", default={})
            yield _Machine(resource, (*pool.place, "nodeConfig"), settings)
    if kind == "Cluster":
        defaults = auto_provisioning(resource)
        if defaults is not None:
            place = ("clusterAutoscaling", "autoProvisioningDefaults")
            yield _Machine(resource, place, defaults)
    elif kind == "ComputeClass":
        if auto_creates(resource):
            creation = resource.mapping("spec", "nodePoolAutoCreation")
            config = resource.mapping("spec", "nodePoolConfig")
            settings = {
                "shieldedInstanceConfig": creation.get("shieldedInstanceConfig"),
                "serviceAccount": config.get("serviceAccount"),
            }
            yield _Machine(resource, ("spec",), settings, inherits=True)
    elif kind == "GCENodeClass":
        yield _Machine(resource, ("spec",), resource.mapping("spec"))
    elif kind != "NodePool":
        yield _Machine(resource, (), resource.inputs, virtual=True)


def _shielded(stack: StackView, context: Context) -> Iterator[Breach]:
    for cluster in stack.of(CLUSTER):
        yield from guarded(_shielded_nodes(cluster), cluster.urn)
    good = _all_defaults(stack, _secure_boot)
    for resource in stack.of(*DESCRIBING):
        yield from guarded(_shielded_machines(resource, good), resource.urn)


def _shielded_nodes(cluster: ResourceView) -> Iterator[Breach]:
    if cluster.truth("enableShieldedNodes") is False:
        yield Breach("shielded nodes are off", "enableShieldedNodes", urn=cluster.urn)


def _secure_boot(settings: Mapping[str, Any]) -> bool | None:
    return truth(settings, "shieldedInstanceConfig", "enableSecureBoot")


def _shielded_machines(resource: ResourceView, good: bool) -> Iterator[Breach]:
    for machine in _described(resource):
        if resource.type == CLUSTER and autopilot(resource):
            continue
        secure = _secure_boot(machine.settings)
        path = ("shieldedInstanceConfig", "enableSecureBoot")
        if secure is False or (secure is None and not (machine.inherits and good)):
            said = "false" if secure is False else "not set"
            yield machine.breach(f"enableSecureBoot is {said}", *path)
        for name in ("enableIntegrityMonitoring", "enableVtpm"):
            if truth(machine.settings, path[0], name) is False:
                yield machine.breach(f"{name} is false", path[0], name)


def _all_defaults(
    stack: StackView, good: Callable[[Mapping[str, Any]], object]
) -> bool:
    """Say whether every cluster of the stack has good auto-provisioning defaults."""
    found: list[bool] = []
    for cluster in stack.of(CLUSTER):
        try:
            defaults = auto_provisioning(cluster)
            found.append(bool(defaults) and bool(good(defaults)))
        except CannotTell:
            found.append(False)
    return bool(found) and all(found)


def _dedicated_accounts(stack: StackView, context: Context) -> Iterator[Breach]:
    good = _all_defaults(stack, _named_account)
    for resource in stack.of(*DESCRIBING):
        yield from guarded(_accounts(stack, resource, good), resource.urn)


def _named_account(settings: Mapping[str, Any]) -> str:
    return text(settings, "serviceAccount")


def _accounts(stack: StackView, resource: ResourceView, good: bool) -> Iterator[Breach]:
    for machine in _described(resource):
        path: tuple[str, ...] = ("serviceAccount",)
        scopes = "oauthScopes"
        settings = machine.settings
        if machine.virtual:
            if resource.get("serviceAccount") is None:
                continue
            path, scopes = ("serviceAccount", "email"), "scopes"
            settings = resource.mapping("serviceAccount")
        try:
            account = text(settings, path[-1])
        except CannotTell:
            if _made_here(stack, resource, machine):
                continue
            raise
        if not account and machine.inherits and good:
            continue
        if account in ("", "default") or account.endswith(_DEFAULT_ACCOUNT):
            said = f"the default account ({account or 'not set'})"
            if _WHOLE_CLOUD in texts(settings, scopes):
                said += " with the scope of the whole cloud"
            yield machine.breach(f"machines have {said}", *path)


def _made_here(stack: StackView, resource: ResourceView, machine: _Machine) -> bool:
    """Say whether an account that is not known yet is one that the stack makes."""
    top = machine.place[0] if machine.place else "serviceAccount"
    return any(
        (found := stack.by_urn(urn)) is not None and found.type == ACCOUNT
        for urn in resource.points_at.get(str(top), ())
    )


def _external_address(resource: ResourceView, context: Context) -> Iterator[Breach]:
    for index, _ in enumerate(resource.items("networkInterfaces")):
        for name in ("accessConfigs", "ipv6AccessConfigs"):
            if resource.items("networkInterfaces", index, name):
                place = f"networkInterfaces[{index}].{name}"
                yield Breach("the interface has an external address", place)


def _logins(resource: ResourceView, context: Context) -> Iterator[Breach]:
    kind = resource.type.rpartition(":")[2]
    if kind in ("Cluster", "NodePool"):
        for pool in pools(resource):
            metadata = get(pool.settings, "nodeConfig", "metadata", default={})
            yield from _doors(metadata, pool.at("nodeConfig", "metadata"))
        return
    if kind == "GCENodeClass":
        yield from _doors(resource.get("spec", "metadata"), "spec.metadata")
        return
    metadata = resource.get("metadata", default={})
    for key in ("block-project-ssh-keys", "enable-oslogin"):
        if not _on(metadata, key):
            yield Breach(f"{key} is not true", f"metadata.{key}")
    yield from _doors(metadata, "metadata")


def _doors(metadata: Any, place: str) -> Iterator[Breach]:
    if _on(metadata, "serial-port-enable"):
        yield Breach("the serial port is on", f"{place}.serial-port-enable")
    for key in ("ssh-keys", "sshKeys"):
        if items(metadata, key):
            yield Breach("SSH keys stand in the metadata", f"{place}.{key}")


def _on(metadata: Any, key: str) -> bool:
    return text(metadata, key).strip().lower() in ("true", "1", "yes", "y")
