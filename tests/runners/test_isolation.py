from __future__ import annotations

import json
from typing import Any

import pytest

from runfleet.placement import CellPlan
from runfleet.runners.isolation import api_addresses, https_reach
from runners.cells import Cluster, class_of, record_runners
from runners.reachability import dns_allowed, egress_allowed, ingress_allowed

CLOSED = [
    "169.254.169.254",
    "fd00:ec2::254",
    "10.12.3.4",
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.254",
    "192.168.1.1",
    "100.64.0.1",
    "168.63.129.16",
    "fe80::1",
]


def policies(cluster: Cluster, namespace: str) -> list[dict[str, Any]]:
    return [
        made.inputs
        for made in cluster.of("NetworkPolicy")
        if made.inputs["metadata"]["namespace"] == namespace
    ]


def test_every_namespace_of_every_class_has_one_policy_for_all_pods(
    plan: CellPlan, cluster: Cluster
) -> None:
    for planned in plan.classes:
        for namespace in (planned.runner_namespace, planned.job_namespace):
            (policy,) = policies(cluster, namespace)
            assert policy["metadata"]["name"] == "default-deny"
            assert policy["spec"]["podSelector"] == {}
            assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
            assert "ingress" not in policy["spec"]
            assert not ingress_allowed([policy])


@pytest.mark.parametrize("name", ["x86-8-16", "x86-plain", "l4", "rel-x86"])
@pytest.mark.parametrize("port", [80, 443])
@pytest.mark.parametrize("address", CLOSED)
def test_jobs_reach_no_private_address(
    plan: CellPlan, cluster: Cluster, name: str, address: str, port: int
) -> None:
    own = policies(cluster, class_of(plan, name).job_namespace)
    assert not egress_allowed(own, address, port)


@pytest.mark.parametrize("name", ["x86-8-16", "x86-plain", "rel-x86"])
def test_jobs_and_runners_reach_dns_and_public_https(
    plan: CellPlan, cluster: Cluster, name: str
) -> None:
    planned = class_of(plan, name)
    for namespace in (planned.runner_namespace, planned.job_namespace):
        own = policies(cluster, namespace)
        assert dns_allowed(own, "UDP")
        assert dns_allowed(own, "TCP")
        assert egress_allowed(own, "140.82.112.3", 443)
        assert not egress_allowed(own, "140.82.112.3", 22)
        assert not egress_allowed(own, "140.82.112.3", 443, "UDP")


@pytest.mark.parametrize("address", [a for a in CLOSED if a != "10.12.3.4"])
def test_runners_reach_the_api_server_and_no_other_private_address(
    plan: CellPlan, cluster: Cluster, address: str
) -> None:
    own = policies(cluster, class_of(plan, "x86-8-16").runner_namespace)
    assert egress_allowed(own, "172.20.0.1", 443)
    assert egress_allowed(own, "10.12.200.7", 443)
    assert not egress_allowed(own, "10.12.200.7", 10250)
    assert not egress_allowed(own, "172.20.0.2", 443)
    assert not egress_allowed(own, address, 443)


def test_the_identity_endpoint_is_open_for_classes_with_an_identity_only(
    plan: CellPlan, cluster: Cluster
) -> None:
    with_identity = policies(cluster, class_of(plan, "x86-8-16").job_namespace)
    without = policies(cluster, class_of(plan, "x86-plain").job_namespace)
    runner = policies(cluster, class_of(plan, "x86-8-16").runner_namespace)
    for address in ("169.254.170.23", "fd00:ec2::23"):
        assert egress_allowed(with_identity, address, 80)
        assert not egress_allowed(with_identity, address, 443)
        assert not egress_allowed(without, address, 80)
        assert not egress_allowed(runner, address, 80)
    assert not egress_allowed(with_identity, "169.254.170.22", 80)


def test_a_declared_exception_opens_one_range_for_one_class_and_says_why(
    plan: CellPlan, cluster: Cluster
) -> None:
    (policy,) = policies(cluster, class_of(plan, "x86-8-16").job_namespace)
    assert egress_allowed([policy], "10.50.0.9", 8080)
    assert not egress_allowed([policy], "10.50.1.9", 8080)
    assert json.loads(
        policy["metadata"]["annotations"]["runfleet/egress-exceptions"]
    ) == [
        {
            "name": "package mirror",
            "cidr": "10.50.0.0/24",
            "ports": [8080],
            "reason": "builds download from it",
            "owner": "infra",
            "expires": "2027-01-31",
        }
    ]
    (other,) = policies(cluster, class_of(plan, "l4").job_namespace)
    assert not egress_allowed([other], "10.50.0.9", 8080)
    assert "annotations" not in other["metadata"]


def test_private_service_endpoints_are_for_classes_with_an_identity_only(
    plan: CellPlan,
) -> None:
    cluster = record_runners(plan, service_endpoints=["10.12.240.0/24"])
    granted = policies(cluster, class_of(plan, "x86-8-16").job_namespace)
    plain = policies(cluster, class_of(plan, "x86-plain").job_namespace)
    assert egress_allowed(granted, "10.12.240.5", 443)
    assert not egress_allowed(granted, "10.12.241.5", 443)
    assert not egress_allowed(plain, "10.12.240.5", 443)


def test_the_api_server_may_be_given_exactly(plan: CellPlan) -> None:
    cluster = record_runners(plan, api_addresses=["10.99.0.2/32"])
    own = policies(cluster, class_of(plan, "x86-8-16").runner_namespace)
    assert egress_allowed(own, "10.99.0.2", 443)
    assert egress_allowed(own, "10.99.0.2", 6443)
    assert not egress_allowed(own, "10.12.200.7", 443)
    assert not egress_allowed(own, "172.20.0.1", 443)


def test_https_to_a_closed_range_takes_an_exception() -> None:
    assert https_reach(["10.1.0.0/16"]).blocks == ()
    assert https_reach(["203.0.113.0/24"]).blocks == (("203.0.113.0/24", ()),)
    (wide, six) = https_reach(["0.0.0.0/0", "::/0"]).blocks
    assert set(wide[1]) == {
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "100.64.0.0/10",
        "169.254.0.0/16",
        "168.63.129.16/32",
    }
    assert set(six[1]) == {"fc00::/7", "fe80::/10"}


def test_api_addresses_are_the_network_and_the_first_service_address(
    plan: CellPlan,
) -> None:
    assert api_addresses(plan.cell) == ("10.12.0.0/16", "172.20.0.1/32")
    unknown = plan.cell.model_copy(update={"network": None})
    assert api_addresses(unknown) == (
        "10.100.0.1/32",
        "172.20.0.1/32",
        "10.96.0.1/32",
        "10.0.0.1/32",
    )
