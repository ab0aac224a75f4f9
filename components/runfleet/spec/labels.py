"""The label taxonomy: thirteen required keys in one syntax legal on every cloud.

AWS tags, Google Cloud labels, Azure tags, IBM Cloud ``key:value`` tags and
Kubernetes labels accept different alphabets. The syntax below is legal on all of
them, so one set of labels serves all, and a bill can be split by vendor, funder
and provider wherever it comes from. Each cloud folder has an encoder that turns
these into that cloud's form.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

KEYS: tuple[str, ...] = (
    "ci_project",
    "ci_env",
    "ci_vendor",
    "ci_funder",
    "ci_provider",
    "ci_role",
    "ci_runner_class",
    "ci_runner_label",
    "ci_trust",
    "ci_owner",
    "ci_stack",
    "ci_managed_by",
    "ci_cost_model",
)
"""The required keys, in the order in which they are shown."""

KEY_SYNTAX = re.compile(r"^[a-z]([a-z0-9_-]{0,29}[a-z0-9])?$")
"""A Kubernetes label key ends in a letter or digit, so this one does too."""

VALUE_SYNTAX = re.compile(r"^[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?$")

SHARED = "shared"
"""The value for keys that describe one class, on things that serve several."""

MANAGED_BY = "runfleet"


def encode_value(text: str) -> str:
    """Return a name as a label value; different names give different values.

    Runner labels such as ``linux.rocm.gpu.gfx950.1`` hold dots, which label values
    may not. A dot becomes ``_`` and an underscore ``__``; because two dots or
    underscores in a row are no valid name, the encoding is injective.

    Args:
        text: A lower-case name of letters, digits, ``-``, ``.`` and ``_``.

    Raises:
        ValueError: The name holds other characters, doubled dots or underscores,
            or is longer than a label value may be.
    """
    if re.search(r"[._]{2}", text):
        raise ValueError(f"{text!r} holds two dots or underscores in a row")
    value = text.replace("_", "__").replace(".", "_")
    if not VALUE_SYNTAX.fullmatch(value):
        raise ValueError(
            f"{text!r} cannot be a label value ({VALUE_SYNTAX.pattern}, "
            "dots and underscores encoded)"
        )
    return value


def check(labels: Mapping[str, str]) -> list[str]:
    """Return what is wrong with a set of labels, one sentence each; none when good."""
    wrong = [f"{key} is missing" for key in KEYS if key not in labels]
    for key, value in labels.items():
        if not KEY_SYNTAX.fullmatch(key):
            wrong.append(f"key {key!r} does not match {KEY_SYNTAX.pattern}")
        if key in KEYS and not VALUE_SYNTAX.fullmatch(value):
            wrong.append(f"{key}={value!r} does not match {VALUE_SYNTAX.pattern}")
    return wrong
