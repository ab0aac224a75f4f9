"""Network: exact inputs of the VPC and of everything that filters."""

from __future__ import annotations

import ipaddress

import pytest

from clouds.ibm.fleets import (
    ACCOUNT,
    FLEET,
    cell_program,
    of_kind,
    one,
    plan_of,
    run,
)
from runfleet.clouds.ibm.network import endpoint_targets, inner_rules, worker_rules
from runfleet.clouds.ibm.ranges import NetworkError, api_ranges, zone_ranges
from runfleet.clouds.ibm.tags import labels_of
from runfleet.placement.plan import CellPlan
from runfleet.rehearsal.record import Record
from runfleet.spec.labels import KEYS

ZONES = ("us-south-1", "us-south-2", "us-south-3")


def test_the_vpc_is_closed(cell: Record, plan: CellPlan) -> None:
    vpc = one(cell, "ibm-network-vpc")
    inputs = dict(vpc.inputs)
    assert labels_of(inputs.pop("tags")) == plan.ci_labels
    assert inputs == {
        "name": "demo-ibm--vpc",
        "addressPrefixManagement": "manual",
        "noSgAclRules": True,
    }
    assert (vpc.protect, vpc.retain_on_delete) == (True, True)
    assert vpc.replacement_trigger == '{"noSgAclRules": true}'


def test_each_zone_has_its_prefix_gateway_and_two_subnets(cell: Record) -> None:
    found = {
        zone: (
            one(cell, f"ibm-network-prefix-{zone}").inputs["cidr"],
            one(cell, f"ibm-network-workers-{zone}").inputs["ipv4CidrBlock"],
            one(cell, f"ibm-network-endpoints-{zone}").inputs["ipv4CidrBlock"],
        )
        for zone in ZONES
    }
    assert found == {
        "us-south-1": ("10.32.0.0/18", "10.32.0.0/19", "10.32.32.0/28"),
        "us-south-2": ("10.32.64.0/18", "10.32.64.0/19", "10.32.96.0/28"),
        "us-south-3": ("10.32.128.0/18", "10.32.128.0/19", "10.32.160.0/28"),
    }
    for zone in ZONES:
        workers = one(cell, f"ibm-network-workers-{zone}").inputs
        gateway = one(cell, f"ibm-network-gateway-{zone}")
        assert workers["publicGateway"] == gateway.id
        assert workers["networkAcl"] == one(cell, "ibm-network-acl-workers").id
        endpoints = one(cell, f"ibm-network-endpoints-{zone}").inputs
        assert "publicGateway" not in endpoints
        assert endpoints["networkAcl"] == one(cell, "ibm-network-acl-endpoints").id


def test_every_subnet_has_an_acl_that_ends_in_refusals(cell: Record) -> None:
    for subnet in of_kind(cell, "IsSubnet"):
        assert subnet.inputs["networkAcl"]
    for acl in of_kind(cell, "IsNetworkAcl"):
        last = [(r["action"], r["direction"]) for r in acl.inputs["rules"][-2:]]
        assert last == [("deny", "inbound"), ("deny", "outbound")]
        names = [rule["name"] for rule in acl.inputs["rules"]]
        assert len(names) == len(set(names))


def test_acls_are_exactly_this() -> None:
    made = [
        (r.action, r.direction, r.source, r.destination, r.protocol, r.port_min)
        for r in worker_rules("10.32.0.0/16", ["192.0.2.0/24"])
    ]
    every, inside, any_ = "0.0.0.0/0", "10.32.0.0/16", "icmp_tcp_udp"
    ibm, cse, out = "161.26.0.0/16", "166.8.0.0/14", "192.0.2.0/24"
    assert made == [
        ("allow", "outbound", inside, inside, any_, None),
        ("allow", "inbound", inside, inside, any_, None),
        ("allow", "outbound", inside, ibm, any_, None),
        ("allow", "inbound", ibm, inside, any_, None),
        ("allow", "outbound", inside, cse, any_, None),
        ("allow", "inbound", cse, inside, any_, None),
        ("allow", "outbound", inside, out, "tcp", 443),
        ("allow", "inbound", out, inside, "tcp", 1024),
        ("deny", "inbound", every, every, any_, None),
        ("deny", "outbound", every, every, any_, None),
    ]
    back = worker_rules(inside, [out])[7]
    assert (back.source_port_min, back.source_port_max) == (443, 443)
    assert len(inner_rules(inside)) == 4


def test_security_groups_let_nothing_in_from_outside(cell: Record) -> None:
    network = ipaddress.ip_network("10.32.0.0/16")
    rules = of_kind(cell, "IsSecurityGroupRule")
    for rule in rules:
        assert rule.inputs["remote"]
        if rule.inputs["direction"] == "inbound":
            remote = ipaddress.ip_network(rule.inputs["remote"])
            assert remote.subnet_of(network)
    assert [
        (r.inputs["direction"], r.inputs["remote"], r.inputs["portMin"]) for r in rules
    ] == [
        ("inbound", "10.32.0.0/16", 443),
        ("outbound", "10.32.0.0/16", 443),
        ("outbound", "0.0.0.0/0", 443),
    ]


def test_endpoints_are_in_their_own_subnets(cell: Record) -> None:
    subnets = {one(cell, f"ibm-network-endpoints-{zone}").id for zone in ZONES}
    gateways = of_kind(cell, "IsVirtualEndpointGateway")
    targets = endpoint_targets("us-south")
    assert [g.inputs["target"] for g in gateways] == [
        {"crn": crn, "resourceType": "provider_cloud_service"}
        for crn in targets.values()
    ]
    for gateway in gateways:
        assert {ip["subnet"] for ip in gateway.inputs["ips"]} == subnets
        assert gateway.inputs["securityGroups"] == [
            one(cell, "ibm-network-endpoints").id
        ]


def test_flow_logs_are_on_and_cannot_be_changed(cell: Record) -> None:
    log = one(cell, "ibm-network-flow-log")
    bucket = one(cell, "ibm-network-flow-logs")
    assert log.inputs["active"] is True
    assert log.inputs["target"] == one(cell, "ibm-network-vpc").id
    assert log.inputs["storageBucket"] == bucket.inputs["bucketName"]
    assert bucket.inputs["retentionRule"] == {
        "default": 365,
        "minimum": 365,
        "maximum": 365,
        "permanent": False,
    }
    key = one(cell, "ibm-network-vault-logs")
    assert bucket.inputs["kmsKeyCrn"] == key.outputs["crn"]
    writer = one(cell, "ibm-network-flow-logs-writer")
    assert writer.inputs["sourceResourceType"] == "flow-log-collector"
    assert (
        writer.inputs["targetResourceInstanceId"]
        == one(cell, "ibm-network-logs").outputs["guid"]
    )
    assert writer.urn in log.dependencies


def test_outputs_of_the_network(cell: Record) -> None:
    outputs = one(cell, "ibm-network").outputs
    assert outputs["service_ranges"] == [
        "10.32.32.0/28",
        "10.32.96.0/28",
        "10.32.160.0/28",
    ]
    assert outputs["api_ranges"] == ["172.20.0.1/32", "172.21.0.1/32"]
    assert api_ranges("172.25.0.0/16") == ("172.20.0.1/32", "172.25.0.1/32")
    assert outputs["api_port"] == 2040


@pytest.mark.parametrize(
    ("cidr", "zones", "reason"),
    [
        ("10.0.0.0/23", ZONES, "at least a /22"),
        ("8.8.0.0/16", ZONES, "private IPv4"),
        ("fd00::/48", ZONES, "private IPv4"),
        ("10.0.0.0/16", ZONES[:1], "two or three"),
        ("10.0.0.0/16", ("a", "a"), "two or three"),
        ("172.16.0.0/12", ZONES, "overlaps 172.20.0.1/32"),
        ("172.17.0.0/16", ZONES, "overlaps 172.17.0.0/18"),
        ("172.21.0.0/20", ZONES, "overlaps 172.21.0.0/16"),
    ],
)
def test_ranges_that_do_not_fit(cidr: str, zones: tuple[str, ...], reason: str) -> None:
    with pytest.raises(NetworkError, match=reason) as caught:
        zone_ranges(cidr, zones)
    assert caught.value.exit_code == 2


def test_ranges_of_a_small_network() -> None:
    found = zone_ranges("10.0.0.0/22", ZONES[:2])
    assert [(z.prefix, z.workers, z.endpoints) for z in found] == [
        ("10.0.0.0/24", "10.0.0.0/25", "10.0.0.128/28"),
        ("10.0.1.0/24", "10.0.1.0/25", "10.0.1.128/28"),
    ]


def test_one_gateway_for_all_zones_cannot_be_built() -> None:
    text = FLEET.replace("{cidr: 10.32.0.0/16}", "{cidr: 10.32.0.0/16, nat: single}")
    with pytest.raises(NetworkError, match="serves the subnets of its own zone only"):
        run(cell_program(plan_of(text)))


def test_an_adopted_network_gets_a_security_group_only() -> None:
    subnets = ", ".join(f"{zone}: subnet-{zone}" for zone in ZONES)
    text = FLEET.replace(
        "{cidr: 10.32.0.0/16}", "{cidr: 10.32.0.0/16, adopt: r006-mine}"
    ).replace("    settings:\n", f"    settings:\n      node_subnets: {{{subnets}}}\n")
    made = run(cell_program(plan_of(text)))
    vpc = one(made, "ibm-network-vpc")
    assert (vpc.id, vpc.external) == ("r006-mine", True)
    kinds = {r.type.rpartition(":")[2] for r in made.resources if not r.external}
    assert not kinds & {"IsVpc", "IsSubnet", "IsNetworkAcl", "IsFlowLog"}
    assert one(made, "ibm-network-nodes").inputs["vpc"] == "r006-mine"
    pool = one(made, "ibm-pool-bx2--bx2-16x64-workers")
    (zone,) = pool.inputs["zones"]
    assert zone["subnetId"] == f"subnet-{zone['name']}"
    assert one(made, "ibm-network").outputs["service_ranges"] == []


def test_an_adopted_network_without_subnets_is_refused() -> None:
    text = FLEET.replace(
        "{cidr: 10.32.0.0/16}", "{cidr: 10.32.0.0/16, adopt: r006-mine}"
    )
    with pytest.raises(NetworkError, match="us-south-1, us-south-2, us-south-3"):
        run(cell_program(plan_of(text)))


def test_everything_that_takes_tags_has_them_all(cell: Record) -> None:
    for resource in cell.resources:
        if "tags" in resource.inputs and resource.type.startswith("ibm:"):
            assert set(labels_of(resource.inputs["tags"])) == set(KEYS), resource.name


def test_the_provider_is_explicit_and_its_values_are_texts(cell: Record) -> None:
    provider = one(cell, "ibm-cloud")
    assert dict(provider.inputs) == {
        "ibmcloudAccountId": ACCOUNT,
        "region": "us-south",
        "visibility": "public-and-private",
        "ibmcloudTimeout": "300",
        "maxRetries": "10",
    }
    for resource in cell.resources:
        if resource.type.startswith("ibm:"):
            assert resource.provider == f"{provider.urn}::{provider.id}", resource.name
