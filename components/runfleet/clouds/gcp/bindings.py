"""Bindings as resources: an identity's roles on each store that it was granted.

:mod:`runfleet.clouds.gcp.grants` says which; here they are made, next to the identity
that gets them. Resources and roles come from the handles of the stores, so that they
exist before; a central store's come from another stack, whose deployment must allow
this one to change the allow policies of its stores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi
import pulumi_gcp as gcp

from runfleet.clouds.gcp.addresses import Project
from runfleet.clouds.gcp.grants import Binding
from runfleet.clouds.protocols import StoreHandle
from runfleet.spec.roles import Scope, StoreKind

Handles = Mapping[tuple[StoreKind, Scope], StoreHandle]
"""The stores by kind and scope."""


def make_bindings(
    name: str,
    found: Sequence[Binding],
    handles: Handles,
    projects: Mapping[Scope, Project],
    member: pulumi.Input[str],
    parent: pulumi.Resource,
) -> list[pulumi.Resource]:
    """Make bindings with one member each.

    Args:
        name: What the names of the resources begin with.
        found: The bindings.
        handles: The stores.
        projects: Project of the stores of each scope.
        member: Who gets the roles.
        parent: The component that they belong to.
    """
    made: list[pulumi.Resource] = []
    own = pulumi.ResourceOptions(parent=parent)
    for binding in found:
        handle = handles[binding.store, binding.scope]
        role = handle.extra[f"role/{binding.role}"]
        project = projects[binding.scope]
        if binding.kind == "bucket":
            condition = binding.condition
            made.append(
                gcp.storage.BucketIAMMember(
                    f"{name}-{binding.suffix}",
                    bucket=handle.bucket or binding.resource,
                    role=role,
                    member=member,
                    condition={
                        "title": condition.title,
                        "expression": condition.expression,
                    }
                    if condition
                    else None,
                    opts=own,
                )
            )
        elif binding.kind == "repository":
            made.append(
                gcp.artifactregistry.RepositoryIamMember(
                    f"{name}-{binding.suffix}",
                    project=project.id,
                    location=project.region,
                    repository=handle.extra[binding.key],
                    role=role,
                    member=member,
                    opts=own,
                )
            )
        else:
            made.append(
                gcp.pubsub.TopicIAMMember(
                    f"{name}-{binding.suffix}",
                    project=project.id,
                    topic=handle.extra[binding.key],
                    role=role,
                    member=member,
                    opts=own,
                )
            )
    return made


def by_scope(
    local: Mapping[StoreKind, StoreHandle], central: Mapping[StoreKind, StoreHandle]
) -> Handles:
    """Return the stores of a cell and the central ones by kind and scope."""
    return {
        **{(kind, Scope.LOCAL): handle for kind, handle in local.items()},
        **{(kind, Scope.CENTRAL): handle for kind, handle in central.items()},
    }
