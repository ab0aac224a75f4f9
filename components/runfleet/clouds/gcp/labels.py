"""The label taxonomy as Google Cloud labels, and as labels of nodes.

The syntax of labels (:mod:`runfleet.spec.labels`) is legal in Google Cloud labels as
it stands, so the encoder changes nothing and is injective by being the identity; it
checks what Google would refuse.

Limits: Compute Engine documentation, "Requirements for labels" (read 2026-08): 64
labels on a resource; keys and values of at most 63 characters of ``[a-z0-9_-]``; keys
start with a letter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

LIMIT = 64
"""The most labels on a resource."""

_KEY = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_VALUE = re.compile(r"[a-z0-9_-]{0,63}")


def labels(found: Mapping[str, str], **more: str) -> dict[str, str]:
    """Return the labels of a resource, sorted by key.

    Args:
        found: Its labels.
        **more: Further labels by keyword.

    Raises:
        ValueError: Google would refuse a label, a further label has the key of one of
            the first, or there are more than 64.
    """
    wrong = [f"{key!r} is there twice" for key in more if key in found]
    made = {**found, **more}
    wrong += [
        f"{key}={value!r} is no Google Cloud label"
        for key, value in made.items()
        if not _KEY.fullmatch(key) or not _VALUE.fullmatch(value)
    ]
    if len(made) > LIMIT:
        wrong.append(f"{len(made)} labels, Google Cloud allows {LIMIT}")
    if wrong:
        raise ValueError("; ".join(wrong))
    return dict(sorted(made.items()))
