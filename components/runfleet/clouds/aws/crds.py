"""Karpenter's kinds, described in our own words as resources of their own.

Helm installs the definitions in a chart's ``crds`` folder once and never upgrades
them (Helm documentation, "Custom Resource Definitions"), so they are not left to the
chart. The definitions here are minimal: the fields that Runfleet writes are typed
with the values that Karpenter accepts, so that the API server refuses a mistake, and
everything else passes through (``x-kubernetes-preserve-unknown-fields``), so that
Karpenter's own fields and its status are never cut off. Karpenter itself validates
every object again and reports what it refuses in the object's conditions. What is
not here: upstream's CEL rules and defaults; :mod:`runfleet.clouds.aws.nodes` writes
each value that has a default upstream.

Field names, values and columns: aws/karpenter-provider-aws at 1d92708 (v1.14.1),
``pkg/apis/crds/karpenter.sh_nodepools.yaml``, ``karpenter.sh_nodeclaims.yaml`` and
``karpenter.k8s.aws_ec2nodeclasses.yaml``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from pulumi_kubernetes.apiextensions.v1 import (
    CustomResourceColumnDefinitionArgs,
    CustomResourceDefinitionNamesArgs,
    CustomResourceDefinitionSpecArgs,
    CustomResourceDefinitionVersionArgs,
    CustomResourceSubresourcesArgs,
    CustomResourceSubresourceScaleArgs,
    CustomResourceValidationArgs,
    JSONSchemaPropsArgs,
)

NODE_POOL = "NodePool"
NODE_CLAIM = "NodeClaim"
NODE_CLASS = "EC2NodeClass"

_DURATION = r"^(([0-9]+(s|m|h))+|Never)$"
_BOUNDED = r"^([0-9]+(s|m|h))+$"

Schema = dict[str, Any]
"""A part of an OpenAPI v3 schema, with Kubernetes' spelling."""


@dataclass(frozen=True)
class Kind:
    """One of Karpenter's kinds.

    Attributes:
        name: The kind.
        group: Its API group.
        plural: Its name in addresses.
        spec: Schema of its specification.
        columns: Printed columns, name to path in the object.
        short: Short names.
        scale: Whether it has the scale subresource.
    """

    name: str
    group: str
    plural: str
    spec: Schema
    columns: Mapping[str, str]
    short: tuple[str, ...] = ()
    scale: bool = False
    version: str = field(default="v1", init=False)

    @property
    def full_name(self) -> str:
        """Name of the definition: plural and group."""
        return f"{self.plural}.{self.group}"

    @property
    def api_version(self) -> str:
        """API version of its objects."""
        return f"{self.group}/{self.version}"

    def schema(self) -> Schema:
        """Return the schema of its objects."""
        return {
            "type": "object",
            "required": ["spec"],
            "properties": {
                "apiVersion": {"type": "string"},
                "kind": {"type": "string"},
                "metadata": {"type": "object"},
                "spec": self.spec,
                "status": _open({}),
            },
        }


def kinds() -> tuple[Kind, ...]:
    """Return Karpenter's kinds, in the order in which they are made."""
    ready = '.status.conditions[?(@.type=="Ready")].status'
    age = ".metadata.creationTimestamp"
    return (
        Kind(
            NODE_CLASS,
            "karpenter.k8s.aws",
            "ec2nodeclasses",
            _node_class(),
            {"Ready": ready, "Age": age},
            short=("ec2nc", "ec2ncs"),
        ),
        Kind(
            NODE_POOL,
            "karpenter.sh",
            "nodepools",
            _node_pool(),
            {
                "NodeClass": ".spec.template.spec.nodeClassRef.name",
                "Nodes": ".status.nodes",
                "Ready": ready,
                "Age": age,
            },
            scale=True,
        ),
        Kind(
            NODE_CLAIM,
            "karpenter.sh",
            "nodeclaims",
            _node_claim(),
            {
                "Type": r".metadata.labels.node\.kubernetes\.io/instance-type",
                "Capacity": r".metadata.labels.karpenter\.sh/capacity-type",
                "Zone": r".metadata.labels.topology\.kubernetes\.io/zone",
                "Node": ".status.nodeName",
                "Ready": ready,
                "Age": age,
            },
        ),
    )


def definition_args(kind: Kind) -> CustomResourceDefinitionSpecArgs:
    """Return the specification of a kind's CustomResourceDefinition."""
    scale = CustomResourceSubresourceScaleArgs(
        spec_replicas_path=".spec.replicas", status_replicas_path=".status.nodes"
    )
    return CustomResourceDefinitionSpecArgs(
        group=kind.group,
        scope="Cluster",
        names=CustomResourceDefinitionNamesArgs(
            kind=kind.name,
            list_kind=f"{kind.name}List",
            plural=kind.plural,
            singular=kind.name.lower(),
            categories=["karpenter"],
            short_names=list(kind.short) or None,
        ),
        versions=[
            CustomResourceDefinitionVersionArgs(
                name=kind.version,
                served=True,
                storage=True,
                subresources=CustomResourceSubresourcesArgs(
                    status={}, scale=scale if kind.scale else None
                ),
                additional_printer_columns=[
                    CustomResourceColumnDefinitionArgs(
                        name=name,
                        type="date" if name == "Age" else "string",
                        json_path=path,
                    )
                    for name, path in kind.columns.items()
                ],
                schema=CustomResourceValidationArgs(
                    open_apiv3_schema=_schema_args(kind.schema())
                ),
            )
        ],
    )


def _schema_args(schema: Schema) -> JSONSchemaPropsArgs:
    """Spell a schema as Pulumi does: snake case, nested schemas as objects."""
    values: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("items", "additionalProperties"):
            value = _schema_args(value)
        elif key == "properties":
            properties = cast("Mapping[str, Schema]", value)
            value = {name: _schema_args(found) for name, found in properties.items()}
        elif key == "anyOf":
            value = [_schema_args(found) for found in cast("list[Schema]", value)]
        values[_snake(key)] = value
    return JSONSchemaPropsArgs(**values)


def _snake(key: str) -> str:
    dashes = key.replace("-", "_")
    return re.sub(r"(?<=[a-z])([A-Z])", lambda found: f"_{found[1].lower()}", dashes)


def _open(properties: Mapping[str, Schema], *required: str) -> Schema:
    """An object with typed fields that keeps the fields that are not listed."""
    schema: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    if properties:
        schema["properties"] = dict(properties)
    if required:
        schema["required"] = list(required)
    return schema


def _text(pattern: str | None = None, *values: str) -> Schema:
    schema: Schema = {"type": "string"}
    if pattern is not None:
        schema["pattern"] = pattern
    if values:
        schema["enum"] = list(values)
    return schema


def _list(items: Schema, **limits: int) -> Schema:
    return {"type": "array", "items": items, **limits}


def _map(pattern: str | None = None) -> Schema:
    return {"type": "object", "additionalProperties": _text(pattern)}


def _number(low: int, high: int | None = None) -> Schema:
    schema: Schema = {"type": "integer", "minimum": low}
    return schema if high is None else {**schema, "maximum": high}


def _quantity() -> Schema:
    return {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
    }


def _requirements() -> Schema:
    operators = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte")
    return _list(
        _open(
            {
                "key": _text(),
                "operator": _text(None, *operators),
                "values": _list(_text()),
                "minValues": _number(1, 50),
            },
            "key",
            "operator",
        ),
        maxItems=100,
    )


def _taints() -> Schema:
    effects = ("NoSchedule", "PreferNoSchedule", "NoExecute")
    return _list(
        _open(
            {"key": _text(), "value": _text(), "effect": _text(None, *effects)},
            "key",
            "effect",
        )
    )


def _claim_fields() -> dict[str, Schema]:
    return {
        "nodeClassRef": _open(
            {"group": _text(), "kind": _text(), "name": _text()},
            "group",
            "kind",
            "name",
        ),
        "requirements": _requirements(),
        "taints": _taints(),
        "startupTaints": _taints(),
        "expireAfter": _text(_DURATION),
        "terminationGracePeriod": _text(_BOUNDED),
    }


def _node_claim() -> Schema:
    return _open(_claim_fields(), "nodeClassRef", "requirements")


def _node_pool() -> Schema:
    budgets = _list(
        _open({"nodes": _text(r"^((100|[0-9]{1,2})%|[0-9]+)$")}, "nodes"), maxItems=50
    )
    policies = ("WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced")
    return _open(
        {
            "weight": _number(1, 100),
            "replicas": {**_number(0), "format": "int64"},
            "limits": {"type": "object", "additionalProperties": _quantity()},
            "disruption": _open(
                {
                    "consolidationPolicy": _text(None, *policies),
                    "consolidateAfter": _text(_DURATION),
                    "budgets": budgets,
                },
                "consolidateAfter",
            ),
            "template": _open(
                {
                    "metadata": _open({"labels": _map(), "annotations": _map()}),
                    "spec": _open(_claim_fields(), "nodeClassRef", "requirements"),
                },
                "spec",
            ),
        },
        "template",
    )


def _node_class() -> Schema:
    families = ("AL2", "AL2023", "Bottlerocket", "Custom")
    disk = _open(
        {
            "encrypted": {"type": "boolean"},
            "kmsKeyID": _text(),
            "volumeType": _text(None, "gp3", "io2", "gp2", "io1", "st1", "sc1"),
            "volumeSize": _text(r"^[1-9][0-9]*(Gi|G|Ti|T)$"),
            "iops": {**_number(100), "format": "int64"},
            "throughput": {**_number(125), "format": "int64"},
            "deleteOnTermination": {"type": "boolean"},
        }
    )
    switch = _text(None, "enabled", "disabled")
    return _open(
        {
            "amiFamily": _text(None, *families),
            "amiSelectorTerms": _list(
                _open(
                    {
                        "alias": _text(r"^[a-z0-9]+@.+$"),
                        "tags": _map(),
                        "id": _text(r"^ami-[0-9a-z]+$"),
                    }
                ),
                minItems=1,
                maxItems=30,
            ),
            "subnetSelectorTerms": _list(
                _open({"id": _text(r"^subnet-[0-9a-z]+$"), "tags": _map()}),
                minItems=1,
                maxItems=30,
            ),
            "securityGroupSelectorTerms": _list(
                _open({"id": _text(r"^sg-[0-9a-z]+$"), "tags": _map()}),
                minItems=1,
                maxItems=30,
            ),
            "capacityReservationSelectorTerms": _list(
                _open({"id": _text(r"^cr-[0-9a-z]+$"), "tags": _map()}), maxItems=30
            ),
            "role": _text(),
            "instanceProfile": _text(),
            "associatePublicIPAddress": {"type": "boolean"},
            "blockDeviceMappings": _list(
                _open({"deviceName": _text(), "ebs": disk}), maxItems=50
            ),
            "instanceStorePolicy": _text(None, "RAID0"),
            "metadataOptions": _open(
                {
                    "httpEndpoint": switch,
                    "httpProtocolIPv6": switch,
                    "httpPutResponseHopLimit": {
                        **_number(1, 64),
                        "format": "int64",
                    },
                    "httpTokens": _text(None, "required", "optional"),
                }
            ),
            "userData": _text(),
            "tags": _map(),
        },
        "amiSelectorTerms",
        "subnetSelectorTerms",
        "securityGroupSelectorTerms",
    )
