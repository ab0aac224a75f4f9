"""Old type names that the SDK claims for every resource, left out.

The generated classes of azure-native list, for each resource, every API version that
earlier major releases had as a type of its own: up to sixty aliases, which the SDK
turns into URNs one by one and sends with each registration. A stack of this floor was
never deployed with those releases, so they can match nothing, and they take three
quarters of the time of a preview. Aliases of other forms, such as a former name or
parent, stay.
"""

from __future__ import annotations

import re
from typing import Any

import pulumi

_VERSIONED = re.compile(r"azure-native:[a-z]+/v\d{8}(preview)?:\w+")


def drop_old_types(
    args: pulumi.ResourceTransformationArgs,
) -> pulumi.ResourceTransformationResult | None:
    """Leave out the aliases of types that carry an API version."""
    if not args.type_.startswith("azure-native:") or not args.opts.aliases:
        return None
    aliases: list[Any] = list(args.opts.aliases)  # type: ignore[reportUnknownArgumentType]
    kept = [alias for alias in aliases if not _is_old_type(alias)]
    options = pulumi.ResourceOptions.merge(args.opts, None)
    options.aliases = kept
    return pulumi.ResourceTransformationResult(props=args.props, opts=options)


def _is_old_type(alias: Any) -> bool:
    """Say whether an alias says nothing but a type with an API version."""
    if not isinstance(alias, pulumi.Alias) or not isinstance(alias.type_, str):
        return False
    others: list[Any] = [alias.name, alias.parent, alias.stack, alias.project]
    return bool(_VERSIONED.fullmatch(alias.type_)) and all(
        other is ... or other is None for other in others
    )
