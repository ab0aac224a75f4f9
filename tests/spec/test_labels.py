"""The label taxonomy: required keys, encoding, and syntax legal on every cloud."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runfleet.spec import labels
from spec.fleets import FULL, fleet_of

RUNNER_LABEL = r"[a-z0-9]([._-]?[a-z0-9]){0,22}"
names = st.from_regex(RUNNER_LABEL, fullmatch=True)
keys = st.from_regex(labels.KEY_SYNTAX, fullmatch=True).map(lambda t: t.rstrip("\n"))
values = st.from_regex(labels.VALUE_SYNTAX, fullmatch=True).map(
    lambda t: t.rstrip("\n")
)

# What each cloud publishes about its labels, in its own words where it gives a
# pattern: (key pattern, longest key, value pattern, longest value).
CLOUDS = {
    # docs.aws.amazon.com, "Tag naming limits and requirements"
    "aws": (r"(?!aws:)[\w.:/=+\-@ ]+", 128, r"[\w.:/=+\-@ ]*", 256),
    # cloud.google.com, "Requirements for labels" (without international letters)
    "gcp": (r"[a-z][a-z0-9_-]{0,62}", 63, r"[a-z0-9_-]{0,63}", 63),
    # learn.microsoft.com, "Use tags to organize your Azure resources"
    "azure": (r"[^<>%&\\?/]+", 512, r".*", 256),
    # kubernetes.io, "Labels and Selectors: syntax and character set"
    "kubernetes": (
        r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?",
        63,
        r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?",
        63,
    ),
}
# cloud.ibm.com, "Working with tags": key:value, at most 128 characters together
IBM = r"[A-Za-z0-9_ .\-]+:[A-Za-z0-9_ .\-]+"


def decode(value: str) -> str:
    return re.sub("_+", lambda m: "." if len(m[0]) == 1 else "_", value)


@given(names)
def test_encode_value_can_be_read_back_so_it_is_injective(name: str) -> None:
    value = labels.encode_value(name)
    assert decode(value) == name
    assert re.fullmatch(r"[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?", value)


@given(names, names)
def test_encode_value_keeps_names_apart(one: str, other: str) -> None:
    same = labels.encode_value(one) == labels.encode_value(other)
    assert same == (one == other)


def test_encode_value_examples() -> None:
    assert labels.encode_value("linux.rocm.gpu.1") == "linux_rocm_gpu_1"
    assert labels.encode_value("linux_rocm.gpu-1") == "linux__rocm_gpu-1"


@pytest.mark.parametrize(
    "name", ["", "a..b", "a__b", "a._b", "Upper", "a b", ".a", "a-", "a\n", "a" * 64]
)
def test_encode_value_refuses(name: str) -> None:
    with pytest.raises(ValueError, match=r"holds two dots|cannot be a label value"):
        labels.encode_value(name)


@pytest.mark.parametrize("cloud", sorted(CLOUDS))
@settings(max_examples=60)
@given(key=keys, value=values)
def test_syntax_is_legal_on(cloud: str, key: str, value: str) -> None:
    key_pattern, longest_key, value_pattern, longest_value = CLOUDS[cloud]
    assert re.fullmatch(key_pattern, key)
    assert len(key) <= longest_key
    assert re.fullmatch(value_pattern, value)
    assert len(value) <= longest_value


@settings(max_examples=60)
@given(key=keys, value=values)
def test_syntax_is_legal_on_ibm(key: str, value: str) -> None:
    assert re.fullmatch(IBM, f"{key}:{value}")
    assert len(f"{key}:{value}") <= 128


def test_the_thirteen_keys() -> None:
    expected = (
        "ci_project ci_env ci_vendor ci_funder ci_provider ci_role ci_runner_class "
        "ci_runner_label ci_trust ci_owner ci_stack ci_managed_by ci_cost_model"
    )
    assert " ".join(labels.KEYS) == expected


def test_labels_of_a_class_in_a_cell() -> None:
    fleet = fleet_of(FULL)
    runner_class = fleet.runner_classes["l-x86iavx512-8-32"]
    found = fleet.labels_for("aws", fleet.cells["aws"], runner_class, "spot")
    assert found == {
        "ci_project": "demo",
        "ci_env": "prod",
        "ci_vendor": "intel",
        "ci_funder": "intel",
        "ci_provider": "aws",
        "ci_role": "builder",
        "ci_runner_class": "l-x86iavx512-8-32",
        "ci_runner_label": "lf-l-x86iavx512-8-32",
        "ci_trust": "trusted",
        "ci_owner": "infra",
        "ci_stack": "aws",
        "ci_managed_by": "runfleet",
        "ci_cost_model": "spot",
        "cost-center": "ci",
    }
    assert labels.check(found) == []


def test_labels_of_shared_things() -> None:
    fleet = fleet_of(FULL)
    shared = fleet.labels_for("aws", fleet.cells["aws"])
    about_classes = (
        "ci_vendor",
        "ci_role",
        "ci_runner_class",
        "ci_runner_label",
        "ci_trust",
    )
    assert {shared[key] for key in about_classes} == {"shared"}
    central = fleet.labels_for("central")
    assert central["ci_funder"] == "foundation"
    assert central["ci_provider"] == "aws"
    external = fleet.runner_classes["linux.rocm.gpu.gfx942.1"]
    assert fleet.labels_for("central", None, external)["ci_runner_class"] == (
        "linux_rocm_gpu_gfx942_1"
    )


def test_check_names_everything_that_is_wrong() -> None:
    good = dict.fromkeys(labels.KEYS, "x")
    assert labels.check(good) == []
    bad = {**good, "ci_env": "Prod", "Key": "x", "key-": "x", "ci_role": "a\n"}
    del bad["ci_trust"]
    assert labels.check(bad) == [
        "ci_trust is missing",
        f"ci_env='Prod' does not match {labels.VALUE_SYNTAX.pattern}",
        f"ci_role='a\\n' does not match {labels.VALUE_SYNTAX.pattern}",
        f"key 'Key' does not match {labels.KEY_SYNTAX.pattern}",
        f"key 'key-' does not match {labels.KEY_SYNTAX.pattern}",
    ]
