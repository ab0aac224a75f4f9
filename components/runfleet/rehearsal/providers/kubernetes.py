"""Derived ids and outputs of the Kubernetes provider (pulumi-kubernetes 4).

The provider's id is ``namespace/name`` or ``name``; objects without a name get the
logical name and eight hexadecimal digits (documented under "auto-naming" at
https://www.pulumi.com/registry/packages/kubernetes/how-to-guides/). The API server
adds ``metadata.uid``; a namespaced object without a namespace lands in the
provider's ``namespace`` or in ``default``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from runfleet.rehearsal.providers.subject import Derived, Subject

CLUSTER_SCOPED = frozenset(
    {
        "AdminNetworkPolicy",
        "APIService",
        "BaselineAdminNetworkPolicy",
        "CertificateSigningRequest",
        "ClusterRole",
        "ClusterRoleBinding",
        "ClusterTrustBundle",
        "ComponentStatus",
        "CSIDriver",
        "CSINode",
        "CustomResourceDefinition",
        "DeviceClass",
        "FlowSchema",
        "GatewayClass",
        "IngressClass",
        "IPAddress",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "MutatingWebhookConfiguration",
        "Namespace",
        "Node",
        "PersistentVolume",
        "PriorityClass",
        "PriorityLevelConfiguration",
        "ResourceSlice",
        "RuntimeClass",
        "ServiceCIDR",
        "StorageClass",
        "StorageVersion",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
        "VolumeAttachment",
        "VolumeAttributesClass",
        "VolumeSnapshotClass",
        "VolumeSnapshotContent",
    }
)
"""Kinds of ``*.k8s.io`` without namespace (Kubernetes API reference, v1.33)."""


def derive(subject: Subject) -> Derived:
    """Derive id, object metadata and status of one Kubernetes resource."""
    if subject.type.startswith("kubernetes:helm.sh/"):
        return _release(subject)
    given = subject.inputs.get("metadata")
    metadata: dict[str, Any] = (
        dict(cast("Mapping[str, Any]", given)) if isinstance(given, Mapping) else {}
    )
    api_version, kind = _identity(subject)
    if not metadata.get("name"):
        metadata["name"] = _name(subject, metadata)
    namespace = metadata.get("namespace")
    if not namespace and kind not in CLUSTER_SCOPED and _built_in(api_version):
        namespace = _default_namespace(subject)
        metadata["namespace"] = namespace
    metadata.setdefault("uid", subject.uuid("uid"))
    name = str(metadata["name"])
    return Derived(
        subject.read_id or (f"{namespace}/{name}" if namespace else name),
        {"apiVersion": api_version, "kind": kind, "metadata": metadata},
    )


def invoke(token: str, args: Mapping[str, Any], provider: Mapping[str, Any]) -> Any:
    """Answer no function: charts are downloaded and objects read from a cluster."""
    del token, args, provider


def _identity(subject: Subject) -> tuple[str, str]:
    _, _, rest = subject.type.partition(":")
    group_version, _, kind = rest.rpartition(":")
    group_version = group_version.removeprefix("core/")
    return (
        subject.text("apiVersion", group_version),
        subject.text("kind", kind.removesuffix("Patch")),
    )


def _built_in(api_version: str) -> bool:
    group, separator, _ = api_version.partition("/")
    return not separator or "." not in group or group.endswith(".k8s.io")


def _name(subject: Subject, metadata: Mapping[str, Any]) -> str:
    prefix = metadata.get("generateName")
    if isinstance(prefix, str) and prefix:
        return prefix + subject.digest(5, "generate-name")
    return f"{subject.name}-{subject.digest(8, 'auto-name')}"


def _default_namespace(subject: Subject) -> str:
    namespace = subject.provider.get("namespace")
    return namespace if isinstance(namespace, str) and namespace else "default"


def _release(subject: Subject) -> Derived:
    name = subject.text("name") or f"{subject.name}-{subject.digest(8, 'auto-name')}"
    namespace = subject.text("namespace") or _default_namespace(subject)
    status = {"name": name, "namespace": namespace, "status": "deployed"}
    return Derived(
        subject.read_id or f"{namespace}/{name}",
        {"name": name, "namespace": namespace, "status": status},
    )
