"""The label taxonomy as AWS tags.

The syntax of labels (:mod:`runfleet.spec.labels`) is legal in AWS tags as it stands,
so the encoder changes nothing and is injective by being the identity; it checks what
AWS would refuse, and keeps further tags, such as ``Name``, apart from labels: their
keys must not be label keys, so :func:`labels_of` reads the labels back exactly.

Limits: EC2 user guide, "Tag restrictions" (read 2026-08): 50 tags on a resource, keys
of 128 and values of 256 characters out of letters, digits, spaces and ``+-=._:/@``,
keys not starting with ``aws:``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from runfleet.spec.labels import KEY_SYNTAX

LIMIT = 50
"""The most tags on a resource."""

KARPENTER_TAGS = 6
"""Tags that Karpenter adds to what it creates (``Name`` and five of its own)."""

_TEXT = re.compile(r"[A-Za-z0-9 +\-=._:/@]*")


def tags(
    labels: Mapping[str, str], more: Mapping[str, str] | None = None, **named: str
) -> dict[str, str]:
    """Return the tags of a resource.

    Args:
        labels: Its labels.
        more: Further tags whose keys are no label keys, such as
            ``karpenter.sh/discovery``.
        **named: Further tags by keyword, such as ``Name="aws-network"``.

    Returns:
        The tags, sorted by key.

    Raises:
        ValueError: AWS would refuse a tag, a further tag has the key of a label, or
            there are more than 50.
    """
    further = {**(more or {}), **named}
    wrong = [f"{key!r} is no label key" for key in labels if not _is_label(key)]
    wrong += [f"{key!r} is a label key" for key in further if _is_label(key)]
    found = {**labels, **further}
    wrong += [
        f"{key}={value!r} is no AWS tag"
        for key, value in found.items()
        if not _legal(key, value)
    ]
    if len(found) > LIMIT:
        wrong.append(f"{len(found)} tags, AWS allows {LIMIT}")
    if wrong:
        raise ValueError("; ".join(wrong))
    return dict(sorted(found.items()))


def labels_of(tags: Mapping[str, str]) -> dict[str, str]:
    """Return the labels among the tags of a resource."""
    return {key: value for key, value in tags.items() if _is_label(key)}


def _is_label(key: str) -> bool:
    return bool(KEY_SYNTAX.fullmatch(key))


def _legal(key: str, value: str) -> bool:
    return (
        0 < len(key) <= 128
        and len(value) <= 256
        and not key.lower().startswith("aws:")
        and bool(_TEXT.fullmatch(key))
        and bool(_TEXT.fullmatch(value))
    )
