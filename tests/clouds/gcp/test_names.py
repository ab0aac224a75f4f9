"""Names, labels and ranges: legal, injective, and wrong input refused at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clouds.gcp import fleets
from runfleet.clouds.gcp import addresses, names
from runfleet.clouds.gcp.addresses import Project
from runfleet.clouds.gcp.labels import labels
from runfleet.clouds.gcp.ranges import Ranges, plan_ranges
from runfleet.clouds.gcp.settings import GcpSettings
from runfleet.errors import InputError
from runfleet.spec.labels import KEY_SYNTAX, VALUE_SYNTAX

part = st.text("abcdefghijklmnopqrstuvwxyz0123456789-._", min_size=1, max_size=40)
parts = st.lists(part, min_size=1, max_size=4)


@pytest.mark.parametrize("rule", names.RULES, ids=lambda rule: rule.kind)
@given(one=parts, other=parts)
def test_names_are_legal_and_injective(
    rule: names.NameRule, one: list[str], other: list[str]
) -> None:
    made = rule.encode(*one)
    assert rule.accepts(made)
    assert len(made) <= rule.limit
    if one != other:
        assert made != rule.encode(*other)


@pytest.mark.parametrize(
    ("rule", "given_parts", "name"),
    [
        (names.SERVICE_ACCOUNT, ("job", "demo", "builds"), "job--demo--builds"),
        (names.NODE_POOL, ("h100", "a3-highgpu-8g"), "h100--a3-highgpu-8g"),
        (names.SECRET, ("demo", "github-app"), "demo--github-app"),
        (names.COMPUTE, ("1st",), "st-4b5d4e0c09"),
    ],
)
def test_readable_names(
    rule: names.NameRule, given_parts: tuple[str, ...], name: str
) -> None:
    made = rule.encode(*given_parts)
    assert made == name or made[:-10] == name[:-10]


def test_a_service_account_fits_thirty_characters() -> None:
    made = names.SERVICE_ACCOUNT.encode("job", "lf-prod-gcp-uc1", "linux.4xlarge.gpu")
    assert len(made) == 30
    assert made.startswith("job-lf-prod-gcp-uc1")


def test_a_bucket_never_has_the_plain_name_of_its_parts() -> None:
    assert names.BUCKET.encode("demo", "cache") != "demo--cache"


def test_no_parts_no_name() -> None:
    with pytest.raises(ValueError, match="at least one part"):
        names.COMPUTE.encode()


@given(
    st.dictionaries(
        st.from_regex(KEY_SYNTAX, fullmatch=True).filter(lambda k: "\n" not in k),
        st.from_regex(VALUE_SYNTAX, fullmatch=True).filter(lambda v: "\n" not in v),
        max_size=20,
    )
)
def test_labels_stay_as_they_are(found: dict[str, str]) -> None:
    assert labels(found) == found


@pytest.mark.parametrize(
    ("found", "more", "message"),
    [
        ({"Ci": "x"}, {}, "'Ci'='x'|Ci='x'"),
        ({"ci_a": "x.y"}, {}, "no Google Cloud label"),
        ({"ci_a": "x"}, {"ci_a": "y"}, "twice"),
        ({f"l{n}": "x" for n in range(65)}, {}, "65 labels"),
    ],
)
def test_labels_that_google_refuses(
    found: dict[str, str], more: dict[str, str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        labels(found, **more)


def test_ranges_of_a_network() -> None:
    assert plan_ranges(fleets.fleet().cells["gcp"]) == Ranges(
        nodes="10.20.0.0/18",
        control="10.20.64.0/28",
        services="10.20.96.0/19",
        pods="10.20.128.0/17",
    )
    assert plan_ranges(fleets.fleet().cells["gcp-two"]) == Ranges(
        nodes="10.24.0.0/22",
        control="10.24.4.0/28",
        services="10.25.0.0/20",
        pods="10.64.0.0/14",
    )


@pytest.mark.parametrize(
    ("update", "message"),
    [
        ({"cidr": "10.24.0.0/24"}, "a /20 or larger"),
        ({"cidr": "fd00::/20"}, "must be IPv4"),
        ({"pods": "10.24.0.0/18"}, "nodes and pods overlap"),
        ({"services": "10.64.0.0/20"}, "services and pods overlap"),
    ],
)
def test_ranges_that_do_not_fit(update: dict[str, str], message: str) -> None:
    cell = fleets.fleet().cells["gcp-two"]
    assert cell.network is not None
    network = cell.network.model_copy(update=update)
    with pytest.raises(InputError, match=message):
        plan_ranges(cell.model_copy(update={"network": network}))


def test_a_cell_without_a_network() -> None:
    cell = fleets.fleet().cells["gcp"].model_copy(update={"network": None})
    with pytest.raises(InputError, match=r"cells\.gcp\.network: .* needs `network`"):
        plan_ranges(cell)


def test_every_wrong_setting_is_named() -> None:
    text = fleets.changed(
        ("release_channel: STABLE", "release_chanel: STABLE"),
        ("nvidia-l4: 8}", "nvidia-l4: many}"),
    )
    with pytest.raises(InputError) as caught:
        GcpSettings.of(fleets.fleet(text).cells["gcp-two"])
    paths = {problem.path for problem in caught.value.problems}
    assert paths == {
        "cells.gcp-two.settings.release_chanel",
        "cells.gcp-two.settings.auto_provisioning.nvidia-l4",
    }


@pytest.mark.parametrize(
    ("pool", "message"),
    [
        ("{queued: true}", "with `flex_start` only"),
        ("{flex_start: true, longest_run: 8d}", "seven days"),
        ("{longest_run: 8h}", "with `flex_start` only"),
        ("{tpu_topology: 4}", "valid string|pattern"),
    ],
)
def test_pool_settings_that_do_not_fit(pool: str, message: str) -> None:
    text = fleets.changed(("n2: {max_nodes: 40}", f"n2: {pool}"))
    with pytest.raises(InputError, match=message):
        GcpSettings.of(fleets.fleet(text).cells["gcp"])


def test_the_project_number_is_asked_for() -> None:
    text = fleets.changed(
        ('    account_number: "123456789012"\n    region: us-e', "    region: us-e")
    )
    with pytest.raises(InputError, match=r"cells\.gcp-two\.account_number: .*number"):
        addresses.cell_project(fleets.fleet(text).cells["gcp-two"])
    text = fleets.changed(('  account_number: "210987654321"\n', ""))
    with pytest.raises(InputError, match=r"central\.account_number"):
        addresses.central_project(fleets.fleet(text))


def test_principals_name_the_project_by_number_and_the_pool_by_id() -> None:
    project = Project("demo-ci", "123456789012", "us-central1")
    assert project.pod("j-x--gcp", "job") == (
        "principal://iam.googleapis.com/projects/123456789012/locations/global/"
        "workloadIdentityPools/demo-ci.svc.id.goog/subject/ns/j-x--gcp/sa/job"
    )
    assert project.issuer("c") == (
        "https://container.googleapis.com/v1/projects/demo-ci/locations/us-central1/"
        "clusters/c"
    )
