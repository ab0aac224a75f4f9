"""The incumbent's label grammar, on its own naming examples."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runfleet.spec.grammar import LabelClaim, parse_label


def claim(
    arch: str,
    feature: str,
    vcpu: int,
    memory: int,
    gpu: str = "",
    count: int = 0,
    *,
    whole: bool = False,
    release: bool = False,
) -> LabelClaim:
    return LabelClaim(arch, feature, vcpu, memory, gpu, count, whole, release)


# Names from pytorch/ci-infra at b1ce4a6, osdc/docs/runner_naming_convention.md
# and the runner definitions beside it.
EXAMPLES = {
    "mt-l-x86iavx512-8-16": claim("amd64", "avx512", 8, 16),
    "nv-l-x86aavx2-48-192-a10g-4": claim("amd64", "avx2", 48, 192, "a10g", 4),
    "mt-rel-l-arm64g3-44-340": claim("arm64", "", 44, 340, release=True),
    "c-mt-l-x86iavx512-8-16": claim("amd64", "avx512", 8, 16),
    "c-mt-l-bx86iavx512-88-1000-a100-8": claim(
        "amd64", "avx512", 88, 1000, "a100", 8, whole=True
    ),
    "l-x86iavx512-16-128": claim("amd64", "avx512", 16, 128),
    "mt-l-x86iavx512-16-32": claim("amd64", "avx512", 16, 32),
    "l-x86iavx512-8-64": claim("amd64", "avx512", 8, 64),
    "l-x86iamx-8-32": claim("amd64", "amx", 8, 32),
    "l-bx86iamx-92-1000-h100-fab-8": claim(
        "amd64", "amx", 92, 1000, "h100", 8, whole=True
    ),
    "l-x86iavx512-29-115-t4": claim("amd64", "avx512", 29, 115, "t4", 1),
    "lf-w-x86iavx2-8-32": claim("amd64", "avx2", 8, 32),
    "am-m-arm64g4-12-24": claim("arm64", "", 12, 24),
    "rel-l-arm64g3-44-340": claim("arm64", "", 44, 340, release=True),
}


@pytest.mark.parametrize(
    ("label", "expected"), [pytest.param(k, v, id=k) for k, v in EXAMPLES.items()]
)
def test_examples(label: str, expected: LabelClaim) -> None:
    assert parse_label(label) == expected


@pytest.mark.parametrize(
    "label",
    [
        "",
        "linux.4xlarge",
        "linux.rocm.gpu.gfx942.1",
        "xx-l-x86iavx512-8-16",
        "l-x86avx512-8-16",
        "l-x86i-8-16",
        "l-arm64-8-16",
        "l-x86iavx512-8",
        "l-x86iavx512-8-16-",
        "l-x86iavx512-8-16\n",
        "l-x86iavx512-٨-16",
        "L-x86iavx512-8-16",
    ],
)
def test_other_labels_claim_nothing(label: str) -> None:
    assert parse_label(label) is None


@given(
    prefix=st.sampled_from(["", "c-", "mt-", "c-lf-", "rel-", "nv-rel-"]),
    system=st.sampled_from("lwm"),
    whole=st.booleans(),
    cpu=st.sampled_from(["x86iavx2", "x86aavx512", "x86iamx", "arm64g2", "arm64g4"]),
    vcpu=st.integers(1, 512),
    memory=st.integers(1, 4096),
    gpu=st.sampled_from(["", "t4", "a10g", "h100", "b200"]),
    count=st.integers(1, 16),
)
def test_what_is_spelled_is_what_is_claimed(
    prefix: str,
    system: str,
    whole: bool,
    cpu: str,
    vcpu: int,
    memory: int,
    gpu: str,
    count: int,
) -> None:
    label = f"{prefix}{system}-{'b' if whole else ''}{cpu}-{vcpu}-{memory}"
    if gpu:
        label += f"-{gpu}" if count == 1 else f"-{gpu}-{count}"
    assert parse_label(label) == claim(
        "amd64" if cpu.startswith("x86") else "arm64",
        cpu[4:] if cpu.startswith("x86") else "",
        vcpu,
        memory,
        gpu,
        count if gpu else 0,
        whole=whole,
        release="rel-" in prefix,
    )
