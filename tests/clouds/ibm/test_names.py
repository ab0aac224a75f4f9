"""Names, tags, flavours and settings of IBM Cloud."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clouds.ibm.fleets import FLEET, plan_of
from runfleet.catalogue.machines import Machines
from runfleet.clouds.ibm import names
from runfleet.clouds.ibm.flavors import (
    S390X_CLOSED,
    FlavorError,
    secondary_storage,
    worker_flavor,
)
from runfleet.clouds.ibm.names import RULES, Place, custom_role
from runfleet.clouds.ibm.settings import IbmSettings
from runfleet.clouds.ibm.tags import labels_of, tags
from runfleet.errors import InputError
from runfleet.spec.cells import Provider

PART = st.text("abc-_.0123456789", max_size=24)
PARTS = st.lists(PART, min_size=1, max_size=4).map(tuple)


@pytest.mark.parametrize("rule", [r for r in RULES if r is not names.CLUSTER])
@given(first=PARTS, second=PARTS)
def test_encoders_are_injective_and_legal(
    rule: names.NameRule, first: tuple[str, ...], second: tuple[str, ...]
) -> None:
    one, other = rule.encode(*first), rule.encode(*second)
    assert rule.accepts(one)
    assert rule.accepts(other)
    assert (one == other) == (first == second)


def test_readable_names_stay_readable() -> None:
    assert names.VPC_OBJECT.encode("demo-ibm", "vpc") == "demo-ibm--vpc"
    assert names.BUCKET.encode("demo", "cache", "account").startswith("demo-cache-")
    long = names.VPC_OBJECT.encode("a" * 40, "endpoint", "registry", "us-south-1")
    assert len(long) <= 63
    assert long.startswith("a" * 40)
    assert names.VPC_OBJECT.encode("9demo", "vpc").startswith("x9demo-vpc-")


def test_a_registry_namespace_leaves_room_for_the_trust() -> None:
    base = names.REGISTRY_NAMESPACE.encode("p" * 30, "cell", "registry", "account")
    assert 4 <= len(f"{base}-untrusted-pr") <= 30


def test_a_custom_role_is_letters_and_digits() -> None:
    made = {custom_role("demo", cell, "image-push") for cell in ("a", "b")}
    assert len(made) == 2
    assert all(len(m) <= 30 and m.isalnum() and m[0].isupper() for m in made)


def test_crns() -> None:
    place = Place("acc", "us-south")
    assert place.crn("is", "", "vpc", "r006-x") == (
        "crn:v1:bluemix:public:is:us-south:a/acc::vpc:r006-x"
    )
    assert place.crn("kms", "guid") == "crn:v1:bluemix:public:kms:us-south:a/acc:guid::"


def test_tags_are_read_back() -> None:
    labels = {"ci_project": "demo", "ci_owner": "infra"}
    assert tags(labels) == ["ci_owner:infra", "ci_project:demo"]
    assert labels_of(tags(labels)) == labels


@pytest.mark.parametrize("value", ["a:b", "Demo", "", "a b"])
def test_what_cannot_be_read_back_is_no_tag(value: str) -> None:
    with pytest.raises(ValueError, match="is no label"):
        tags({"ci_project": value})


@pytest.mark.parametrize(
    ("profile", "flavor"),
    [
        ("bx2-16x64", "bx2.16x64"),
        ("bx3d-96x480", "bx3d.96x480"),
        ("cx2-2x4", "cx2.2x4"),
        ("mx2-64x512", "mx2.64x512"),
        ("gx2-8x64x1v100", "gx2.8x64.v100"),
        ("gx2-16x128x2v100", "gx2.16x128.2v100"),
        ("gx3-16x80x1l4", "gx3.16x80.l4"),
        ("gx3-32x160x2l4", "gx3.32x160.2l4"),
        ("gx3-64x320x4l4", "gx3.64x320.4l4"),
        ("gx3-24x120x1l40s", "gx3.24x120.l40s"),
        ("gx3-48x240x2l40s", "gx3.48x240.2l40s"),
        ("gx3d-160x1792x8h100", "gx3d.160x1792.8h100"),
        ("gx3d-160x1792x8h200", "gx3d.160x1792.8h200"),
        ("gx3d.160x1792.8h100", "gx3d.160x1792.8h100"),
        ("gx3.16x80.l4", "gx3.16x80.l4"),
    ],
)
def test_profiles_become_flavours(profile: str, flavor: str) -> None:
    assert worker_flavor(profile) == flavor


@pytest.mark.parametrize(
    ("profile", "reason"),
    [
        ("bz2-4x16", S390X_CLOSED),
        ("cz2-16x32", S390X_CLOSED),
        ("mz2-2x16", S390X_CLOSED),
        ("gx3d-48x240x2a100p", "no worker flavour with a100p is known"),
        ("gx3d-160x1792x8gaudi3", "no worker flavour with gaudi3 is known"),
        ("gx4d-232x3840x8b300", "no worker flavour with b300 is known"),
        ("gx3d-metal-224x2048x8mi300x-sn", "bare metal workers"),
        ("m7i.4xlarge", "is no profile of a virtual server"),
        ("gx3-16x80xl4", "did you mean gx3-16x80x1l4"),
    ],
)
def test_what_workers_cannot_be_is_refused(profile: str, reason: str) -> None:
    with pytest.raises(FlavorError) as caught:
        worker_flavor(profile, "pools.p")
    assert reason in str(caught.value)
    assert caught.value.exit_code == 2
    assert "pools.p" in str(caught.value)


def test_flavours_agree_with_the_catalogue() -> None:
    """The catalogue's own column of worker flavours says the same, or nothing."""
    known = {
        machine.name: machine.node_name for machine in Machines.load().of(Provider.IBM)
    }
    assert len(known) > 50
    for profile, flavor in known.items():
        try:
            made = worker_flavor(profile)
        except FlavorError:
            made = ""
        assert made == flavor, profile


@pytest.mark.parametrize(
    ("gib", "storage"),
    [
        (100, None),
        (101, "300gb.5iops-tier"),
        (279, "300gb.5iops-tier"),
        (280, "600gb.5iops-tier"),
        (1200, "1600gb.5iops-tier"),
        (3725, "4000gb.10iops-tier"),
    ],
)
def test_second_disks_are_large_enough(gib: float, storage: str | None) -> None:
    assert secondary_storage(gib) == storage


def test_no_second_disk_is_larger_than_the_largest() -> None:
    with pytest.raises(FlavorError, match="at most 3725 GiB"):
        secondary_storage(3726)


def test_every_wrong_setting_is_named() -> None:
    text = FLEET.replace(
        "    settings:\n",
        "    settings:\n      zone: x\n      pool_zones: 3\n      resource_group: y\n",
    )
    with pytest.raises(InputError) as caught:
        IbmSettings.of(plan_of(text).cell)
    assert {problem.path for problem in caught.value.problems} == {
        "cells.ibm.settings.zone",
        "cells.ibm.settings.pool_zones",
        "cells.ibm.settings.resource_group",
    }
    assert "node_subnets" in caught.value.problems[0].allowed


def test_a_zone_of_a_pool_is_one_of_the_cell() -> None:
    text = FLEET.replace(
        "    settings:\n", "    settings:\n      pool_zones: {bx2: [eu-de-1]}\n"
    )
    with pytest.raises(InputError, match="is no zone of the cell; found eu-de-1"):
        IbmSettings.of(plan_of(text).cell)
