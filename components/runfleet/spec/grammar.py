"""The incumbent's runner-label grammar: what a label says about its own size.

Source: ``osdc/docs/runner_naming_convention.md`` in pytorch/ci-infra at b1ce4a6:
``[c-]{provider}-[rel-]{os}-[b]{arch}{vendor}{features}-{vcpu}-{memory}``
``[-{gpu_type}[-{gpu_count}]]``; the token ``fab`` between GPU type and count is in
use there without being documented. A label that does not follow the grammar makes
no claim, so it cannot lie.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_SCALE_SET_NAME = 45
"""Longest scale-set name that the ARC chart accepts (gha-runner-scale-set 0.14.2)."""

TARGET_LENGTH = 42
"""Length to aim at: ARC adds 21 characters and Kubernetes labels end at 63."""

_LABEL = re.compile(
    r"^(?P<canary>c-)?(?:(?P<provider>mt|lf|am|in|nv|ib)-)?(?P<release>rel-)?"
    r"(?P<os>[lwm])-(?P<whole>b)?"
    r"(?:(?P<x86>x86)(?P<isa>[ia])(?P<features>avx2|avx512|amx)"
    r"|(?P<arm>arm64)(?P<generation>g\d))"
    r"-(?P<vcpu>\d+)-(?P<memory>\d+)"
    r"(?:-(?P<gpu>[a-z][a-z0-9]*)(?P<fabric>-fab)?(?:-(?P<count>\d+))?)?$",
    re.ASCII,
)


@dataclass(frozen=True)
class LabelClaim:
    """What a label claims about the machine that a job gets.

    Attributes:
        arch: ``amd64`` or ``arm64``.
        feature: The instruction-set feature, such as ``avx512``, or empty.
        vcpu: Virtual CPUs.
        memory_gib: Memory in GiB.
        gpu: Accelerator model in lower case, or empty.
        gpu_count: Accelerators; 0 without a model.
        whole_node: Whether the label claims a whole node.
        release: Whether the label is a release label.
    """

    arch: str
    feature: str
    vcpu: int
    memory_gib: int
    gpu: str
    gpu_count: int
    whole_node: bool
    release: bool


def parse_label(label: str) -> LabelClaim | None:
    """Return what a label claims, or ``None`` when it follows another grammar."""
    match = _LABEL.fullmatch(label)
    if match is None:
        return None
    gpu = match["gpu"] or ""
    return LabelClaim(
        arch="amd64" if match["x86"] else "arm64",
        feature=match["features"] or "",
        vcpu=int(match["vcpu"]),
        memory_gib=int(match["memory"]),
        gpu=gpu,
        gpu_count=int(match["count"] or 1) if gpu else 0,
        whole_node=bool(match["whole"]),
        release=bool(match["release"]),
    )
