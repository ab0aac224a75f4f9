"""Network: a private VPC; what goes out is listed, nothing comes in."""

from __future__ import annotations

import pytest

from clouds.gcp import fleets
from clouds.gcp.fleets import of_type, one, parent_name
from runfleet.clouds.gcp.guards import CONSTRAINTS, guarded_by
from runfleet.errors import InputError
from runfleet.rehearsal.record import Record

VPC = "projects/demo-ci/global/networks/demo-uc1--vpc"


def test_children(cell: Record) -> None:
    names = {
        r.name: r.type.rpartition(":")[2]
        for r in cell.resources
        if parent_name(r) == "gcp-network" and "guard" not in r.name
    }
    assert names == {
        "gcp-network-vpc": "Network",
        "gcp-network-nodes": "Subnetwork",
        "gcp-network-control": "Subnetwork",
        "gcp-network-out": "Route",
        "gcp-network-router": "Router",
        "gcp-network-nat": "RouterNat",
        **{
            f"gcp-network-dns-{short}": "ManagedZone"
            for short in ("googleapis", "pkg-dev", "gcr")
        },
        **{
            f"gcp-network-dns-{short}-{suffix}": "RecordSet"
            for short in ("googleapis", "pkg-dev", "gcr")
            for suffix in ("a", "all")
        },
        **{
            f"gcp-network-to-{suffix}": "Firewall"
            for suffix in ("cluster", "control-plane", "google", "https")
        },
        "gcp-network-to-nothing-else": "Firewall",
    }


def test_the_vpc_has_only_what_is_made_here(cell: Record) -> None:
    vpc = one(cell, "gcp-network-vpc")
    assert vpc.inputs == {
        "name": "demo-uc1--vpc",
        "project": "demo-ci",
        "description": "Network of demo-uc1",
        "autoCreateSubnetworks": False,
        "deleteDefaultRoutesOnCreate": True,
        "routingMode": "REGIONAL",
    }
    assert (vpc.protect, vpc.retain_on_delete) == (True, True)


def test_subnets_are_private_and_logged(cell: Record) -> None:
    logs = {
        "aggregationInterval": "INTERVAL_1_MIN",
        "flowSampling": 0.5,
        "metadata": "INCLUDE_ALL_METADATA",
    }
    shared = {
        "project": "demo-ci",
        "region": "us-central1",
        "network": VPC,
        "privateIpGoogleAccess": True,
        "stackType": "IPV4_ONLY",
        "logConfig": logs,
    }
    nodes, control = one(cell, "gcp-network-nodes"), one(cell, "gcp-network-control")
    assert nodes.inputs == {
        **shared,
        "name": "demo-uc1--nodes",
        "ipCidrRange": "10.20.0.0/18",
        "secondaryIpRanges": [
            {"rangeName": "pods", "ipCidrRange": "10.20.128.0/17"},
            {"rangeName": "services", "ipCidrRange": "10.20.96.0/19"},
        ],
    }
    assert control.inputs == {
        **shared,
        "name": "demo-uc1--control",
        "ipCidrRange": "10.20.64.0/28",
    }
    for subnet in (nodes, control):
        assert (subnet.protect, subnet.retain_on_delete) == (True, True)


def test_nat_is_for_machines_and_pods(cell: Record) -> None:
    nat = one(cell, "gcp-network-nat").inputs
    assert nat["natIpAllocateOption"] == "AUTO_ONLY"
    assert nat["sourceSubnetworkIpRangesToNat"] == "LIST_OF_SUBNETWORKS"
    (subnet,) = nat["subnetworks"]
    assert subnet == {
        "name": "projects/demo-ci/regions/us-central1/subnetworks/demo-uc1--nodes",
        "sourceIpRangesToNats": ["PRIMARY_IP_RANGE", "LIST_OF_SECONDARY_IP_RANGES"],
        "secondaryIpRangeNames": ["pods"],
    }
    assert nat["logConfig"] == {"enable": True, "filter": "ERRORS_ONLY"}
    assert nat["enableEndpointIndependentMapping"] is False


def test_googles_services_resolve_to_private_addresses(cell: Record) -> None:
    zones = of_type(cell, "gcp:dns/managedZone:ManagedZone")
    assert {z.inputs["dnsName"] for z in zones} == {
        "googleapis.com.",
        "pkg.dev.",
        "gcr.io.",
    }
    for zone in zones:
        assert zone.inputs["visibility"] == "private"
        networks = zone.inputs["privateVisibilityConfig"]["networks"]
        assert networks == [{"networkUrl": VPC}]
        assert zone.inputs["labels"] == fleets.LABELS
    a = one(cell, "gcp-network-dns-googleapis-a").inputs
    assert (a["name"], a["type"]) == ("private.googleapis.com.", "A")
    assert a["rrdatas"] == [f"199.36.153.{n}" for n in range(8, 12)]
    every = one(cell, "gcp-network-dns-googleapis-all").inputs
    assert (every["name"], every["type"], every["rrdatas"]) == (
        "*.googleapis.com.",
        "CNAME",
        ["private.googleapis.com."],
    )


def test_what_goes_out_is_listed(cell: Record, second: Record) -> None:
    found = {
        r.name.removeprefix("gcp-network-to-"): r.inputs
        for r in of_type(cell, "gcp:compute/firewall:Firewall")
    }
    assert {i["direction"] for i in found.values()} == {"EGRESS"}
    assert {tuple(i["targetTags"]) for i in found.values()} == {("demo-uc1",)}
    opened = {
        name: (i["destinationRanges"], i["allows"])
        for name, i in found.items()
        if "allows" in i
    }
    assert opened == {
        "cluster": (["10.20.0.0/18", "10.20.128.0/17"], [{"protocol": "all"}]),
        "control-plane": (
            ["10.20.64.0/28"],
            [{"protocol": "tcp", "ports": ["443", "8132"]}],
        ),
        "google": (["199.36.153.8/30"], [{"protocol": "tcp", "ports": ["443"]}]),
        "https": (["0.0.0.0/0"], [{"protocol": "tcp", "ports": ["443"]}]),
    }
    closed = found["nothing-else"]
    assert closed["denies"] == [{"protocol": "all"}]
    assert closed["destinationRanges"] == ["0.0.0.0/0"]
    assert closed["priority"] > max(found[name]["priority"] for name in opened)
    https = one(second, "gcp-two-network-to-https").inputs
    assert https["destinationRanges"] == ["192.0.2.0/24", "198.51.100.0/24"]


def test_nothing_comes_in(cell: Record) -> None:
    for rule in of_type(cell, "gcp:compute/firewall:Firewall"):
        assert "sourceRanges" not in rule.inputs
        assert rule.inputs["direction"] == "EGRESS"


def test_one_stack_of_a_project_sets_its_organisation_policies(
    cell: Record, second: Record, central: Record
) -> None:
    made = of_type(cell, "gcp:orgpolicy/policy:Policy")
    assert {r.inputs["name"] for r in made} == {
        f"projects/demo-ci/policies/{constraint}" for constraint in CONSTRAINTS
    }
    tls = one(cell, "gcp-network-guard-storage-securehttptransport")
    assert tls.inputs["spec"] == {"rules": [{"enforce": "TRUE"}]}
    assert tls.retain_on_delete
    assert not [r for r in second.resources if "orgpolicy" in r.type]
    others = {
        r.inputs["parent"] for r in of_type(central, "gcp:orgpolicy/policy:Policy")
    }
    assert others == {"projects/demo-central"}


def test_organisation_policies_can_be_turned_off() -> None:
    text = fleets.changed(
        ("organization_policies: true", "organization_policies: false")
    )
    assert guarded_by(fleets.fleet(text), "demo-ci") is None
    assert guarded_by(fleets.fleet(text), "demo-central") == "central"
    assert guarded_by(fleets.fleet(), "demo-ci") == "gcp"


ADOPTED = (
    "network: {cidr: 10.20.0.0/16}",
    "network: {cidr: 10.20.0.0/16, adopt: projects/shared/global/networks/big}",
)


def test_an_adopted_network_is_read_and_not_changed() -> None:
    text = fleets.changed(
        ADOPTED,
        (
            "      admin_groups_domain",
            "      node_subnet: projects/shared/regions/us-central1/subnetworks/ours\n"
            "      control_subnet: "
            "projects/shared/regions/us-central1/subnetworks/api\n"
            "      pods_range: our-pods\n"
            "      admin_groups_domain",
        ),
    )
    found = fleets.cell_record(fleets.plan_of(known=fleets.fleet(text)))
    made = {
        r.type.rpartition(":")[2]
        for r in found.resources
        if parent_name(r) == "gcp-network" and not r.external
    }
    assert made == {"Firewall", "Policy"}
    cluster = one(found, "gcp-cluster-gke").inputs
    assert cluster["network"] == "projects/shared/global/networks/big"
    assert cluster["ipAllocationPolicy"]["clusterSecondaryRangeName"] == "our-pods"
    control = cluster["privateClusterConfig"]["privateEndpointSubnetwork"]
    assert control == "projects/shared/regions/us-central1/subnetworks/api"


def test_an_adopted_network_needs_its_subnets() -> None:
    with pytest.raises(InputError) as caught:
        fleets.cell_record(fleets.plan_of(known=fleets.fleet(fleets.changed(ADOPTED))))
    assert [p.path for p in caught.value.problems] == [
        "cells.gcp.settings.control_subnet",
        "cells.gcp.settings.node_subnet",
    ]
