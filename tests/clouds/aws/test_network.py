"""Network: exact children and inputs, and the rules that they obey."""

from __future__ import annotations

import dataclasses
import ipaddress
import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clouds.aws.conftest import FLEET, LABELS, Record, Recording, id_of, plan_of
from runfleet.clouds.aws.endpoints import INTERFACE_ENDPOINTS
from runfleet.clouds.aws.network import Network, NetworkArgs
from runfleet.clouds.aws.ranges import AddressPlan, NetworkError, address_plan
from runfleet.errors import InputError
from runfleet.placement.plan import CellPlan

NETWORKS = st.builds(
    lambda address, length: str(ipaddress.ip_network((address, length), strict=False)),
    st.integers(10 << 24, (11 << 24) - 1),
    st.integers(16, 20),
)


@given(cidr=NETWORKS, zones=st.integers(2, 3))
def test_subnets_are_inside_and_apart(cidr: str, zones: int) -> None:
    network = ipaddress.IPv4Network(cidr)
    plan = address_plan(cidr, zones)
    small = (*plan.public, *plan.endpoints, *plan.control)
    subnets = [ipaddress.IPv4Network(text) for text in (*plan.private, *small)]
    kinds = (plan.private, plan.public, plan.endpoints, plan.control)
    assert [len(kind) for kind in kinds] == [zones] * 4
    assert all(subnet.subnet_of(network) for subnet in subnets)
    assert not any(a.overlaps(b) for a, b in itertools.combinations(subnets, 2))
    assert all(
        subnet.prefixlen == network.prefixlen + (2 if index < zones else 8)
        for index, subnet in enumerate(subnets)
    )
    assert all(subnet.prefixlen <= 28 for subnet in subnets), "AWS takes no smaller"
    last = list(network.subnets(prefixlen_diff=2))[3]
    assert all(ipaddress.IPv4Network(text).subnet_of(last) for text in small)


@given(cidr=NETWORKS)
def test_kinds_stay_apart_as_ranges(cidr: str) -> None:
    plan = address_plan(cidr, 3)
    groups = [
        {ipaddress.IPv4Network(text).supernet(prefixlen_diff=2) for text in kind}
        for kind in (plan.public, plan.endpoints, plan.control)
    ]
    assert [len(group) for group in groups] == [1, 1, 1]
    assert len(set.union(*groups)) == 3


@given(cidr=NETWORKS)
def test_a_third_zone_moves_no_subnet(cidr: str) -> None:
    two, three = address_plan(cidr, 2), address_plan(cidr, 3)
    assert three.private[:2] == two.private
    assert three.public[:2] == two.public
    assert three.endpoints[:2] == two.endpoints
    assert three.control[:2] == two.control


def test_exact_address_plan() -> None:
    assert address_plan("10.12.0.0/16", 3) == AddressPlan(
        private=("10.12.0.0/18", "10.12.64.0/18", "10.12.128.0/18"),
        public=("10.12.192.0/24", "10.12.193.0/24", "10.12.194.0/24"),
        endpoints=("10.12.196.0/24", "10.12.197.0/24", "10.12.198.0/24"),
        control=("10.12.200.0/24", "10.12.201.0/24", "10.12.202.0/24"),
        resolver="10.12.0.2/32",
    )
    assert address_plan("10.16.0.0/20", 2) == AddressPlan(
        private=("10.16.0.0/22", "10.16.4.0/22"),
        public=("10.16.12.0/28", "10.16.12.16/28"),
        endpoints=("10.16.12.64/28", "10.16.12.80/28"),
        control=("10.16.12.128/28", "10.16.12.144/28"),
        resolver="10.16.0.2/32",
    )


def test_the_smallest_subnet_has_an_address_for_every_endpoint() -> None:
    (smallest,) = {
        ipaddress.IPv4Network(text).num_addresses
        for text in address_plan("10.16.0.0/20", 3).endpoints
    }
    reserved = 5
    assert len(INTERFACE_ENDPOINTS) <= smallest - reserved


@pytest.mark.parametrize(
    ("cidr", "zones", "message"),
    [
        ("10.0.0.0/15", 2, "from /16 to /20"),
        ("10.0.0.0/21", 2, "from /16 to /20"),
        ("fd00::/16", 2, "from /16 to /20"),
        ("10.0.0.0/16", 1, "two or three"),
        ("10.0.0.0/16", 4, "two or three"),
    ],
)
def test_what_aws_would_refuse(cidr: str, zones: int, message: str) -> None:
    with pytest.raises(NetworkError, match=message) as caught:
        address_plan(cidr, zones)
    assert caught.value.exit_code == 2


@pytest.fixture(scope="module")
def first(record: Record, plan: CellPlan) -> Recording:
    return record(lambda opts, _: Network("n", NetworkArgs.from_plan(plan), opts))


@pytest.fixture(scope="module")
def second(record: Record, second_plan: CellPlan) -> Recording:
    args = NetworkArgs.from_plan(second_plan)
    return record(lambda opts, _: Network("n", args, opts))


ENDPOINTS = [endpoint.service.replace(".", "-") for endpoint in INTERFACE_ENDPOINTS]


def test_exact_children(first: Recording) -> None:
    zones = ("us-east-1a", "us-east-1b")
    expected = {
        "n-metadata-defaults": "ec2/instanceMetadataDefaults:InstanceMetadataDefaults",
        "n-disk-encryption": "ebs/encryptionByDefault:EncryptionByDefault",
        "n-vpc": "ec2/vpc:Vpc",
        "n-default-security-group": "ec2/defaultSecurityGroup:DefaultSecurityGroup",
        "n-internet": "ec2/internetGateway:InternetGateway",
        "n-public": "ec2/routeTable:RouteTable",
        "n-inner": "ec2/routeTable:RouteTable",
        "n-flow-logs-key": "kms/key:Key",
        "n-flow-logs-key-alias": "kms/alias:Alias",
        "n-flow-logs": "cloudwatch/logGroup:LogGroup",
        "n-flow-logs-role": "iam/role:Role",
        "n-flow-logs-role-write": "iam/rolePolicy:RolePolicy",
        "n-flow-log": "ec2/flowLog:FlowLog",
        "n-endpoints": "ec2/securityGroup:SecurityGroup",
        "n-nodes": "ec2/securityGroup:SecurityGroup",
        "n-endpoint-s3": "ec2/vpcEndpoint:VpcEndpoint",
    }
    for zone in zones:
        expected |= {
            f"n-private-{zone}": "ec2/subnet:Subnet",
            f"n-private-{zone}-routes": "ec2/routeTable:RouteTable",
            f"n-private-{zone}-association": (
                "ec2/routeTableAssociation:RouteTableAssociation"
            ),
            **{
                f"n-{kind}-{zone}": "ec2/subnet:Subnet"
                for kind in ("public", "endpoints", "control")
            },
            **{
                f"n-{kind}-{zone}-association": (
                    "ec2/routeTableAssociation:RouteTableAssociation"
                )
                for kind in ("public", "endpoints", "control")
            },
            f"n-nat-{zone}-address": "ec2/eip:Eip",
            f"n-nat-{zone}": "ec2/natGateway:NatGateway",
        }
    expected |= {
        f"n-endpoint-{name}": "ec2/vpcEndpoint:VpcEndpoint" for name in ENDPOINTS
    }
    ingress = "vpc/securityGroupIngressRule:SecurityGroupIngressRule"
    egress = "vpc/securityGroupEgressRule:SecurityGroupEgressRule"
    expected |= dict.fromkeys(
        ("n-endpoints-from-network", "n-nodes-from-nodes"), ingress
    )
    expected |= dict.fromkeys(
        (
            "n-nodes-to-nodes",
            "n-nodes-to-network",
            "n-nodes-to-dns-udp",
            "n-nodes-to-dns-tcp",
            "n-nodes-to-s3",
            "n-nodes-to-egress-0",
        ),
        egress,
    )
    assert first.children("n") == {name: f"aws:{t}" for name, t in expected.items()}
    assert first["n"].type == "runfleet:aws:Network"
    assert all(r.provider == "cloud" for r in first.resources if r.parent == "n")


def test_what_is_stateful_is_protected_and_kept(first: Recording) -> None:
    protected = {r.name for r in first.resources if r.protect}
    assert protected == {
        "n-vpc",
        *(
            f"n-{kind}-us-east-1{letter}"
            for kind in ("private", "public", "endpoints", "control")
            for letter in "ab"
        ),
        "n-flow-logs-key",
        "n-flow-logs",
    }
    defaults = {"n-metadata-defaults", "n-disk-encryption"}
    assert {r.name for r in first.resources if r.retain} == protected | defaults


def test_vpc_and_subnets(first: Recording) -> None:
    assert first["n-vpc"].inputs == {
        "cidrBlock": "10.12.0.0/16",
        "enableDnsHostnames": True,
        "enableDnsSupport": True,
        "tags": {**LABELS, "Name": "n-vpc"},
    }
    vpc = id_of("vpc-", "n-vpc")
    assert first["n-private-us-east-1b"].inputs == {
        "vpcId": vpc,
        "availabilityZone": "us-east-1b",
        "cidrBlock": "10.12.64.0/18",
        "mapPublicIpOnLaunch": False,
        "tags": {
            **LABELS,
            "Name": "n-private-us-east-1b",
            "karpenter.sh/discovery": "demo-ue1",
            "kubernetes.io/role/internal-elb": "1",
        },
    }
    assert first["n-public-us-east-1b"].inputs == {
        "vpcId": vpc,
        "availabilityZone": "us-east-1b",
        "cidrBlock": "10.12.193.0/24",
        "mapPublicIpOnLaunch": False,
        "tags": {**LABELS, "Name": "n-public-us-east-1b"},
    }
    assert first["n-endpoints-us-east-1b"].inputs == {
        "vpcId": vpc,
        "availabilityZone": "us-east-1b",
        "cidrBlock": "10.12.197.0/24",
        "mapPublicIpOnLaunch": False,
        "tags": {**LABELS, "Name": "n-endpoints-us-east-1b"},
    }
    assert first["n-control-us-east-1a"].inputs == {
        "vpcId": vpc,
        "availabilityZone": "us-east-1a",
        "cidrBlock": "10.12.200.0/24",
        "mapPublicIpOnLaunch": False,
        "tags": {**LABELS, "Name": "n-control-us-east-1a"},
    }
    closed = first["n-default-security-group"].inputs
    assert (closed["ingress"], closed["egress"]) == ([], [])


def test_outputs(first: Recording) -> None:
    assert first.outputs["network_id"] == id_of("vpc-", "n-vpc")
    assert first.outputs["node_subnet_ids"] == [
        id_of("subnet-", f"n-private-us-east-1{letter}") for letter in "ab"
    ]
    assert first.outputs["control_subnet_ids"] == [
        id_of("subnet-", f"n-control-us-east-1{letter}") for letter in "ab"
    ]
    assert first.outputs["node_security_group_id"] == id_of("sg-", "n-nodes")


def test_ranges(record: Record, plan: CellPlan) -> None:
    made: list[Network] = []

    def build(opts: Any, _: Any) -> Network:
        made.append(Network("n", NetworkArgs.from_plan(plan), opts))
        return made[0]

    record(build)
    assert list(made[0].service_ranges) == ["10.12.196.0/24", "10.12.197.0/24"]
    assert list(made[0].api_ranges) == ["10.12.200.0/24", "10.12.201.0/24"]


def test_endpoints_and_the_api_have_no_route_out(first: Recording) -> None:
    assert first["n-inner"].inputs == {
        "vpcId": id_of("vpc-", "n-vpc"),
        "routes": [],
        "tags": {**LABELS, "Name": "n-inner"},
    }
    tables = {
        link.name: link.inputs["routeTableId"].split(":")[0]
        for link in first.of_type("aws:ec2/routeTableAssociation:RouteTableAssociation")
    }
    assert {name for name, table in tables.items() if table == "n-inner"} == {
        f"n-{kind}-us-east-1{letter}-association"
        for kind in ("endpoints", "control")
        for letter in "ab"
    }
    for name in tables:
        subnet = first[name].inputs["subnetId"]
        assert subnet == id_of("subnet-", name.removesuffix("-association"))


def _gateways(recording: Recording) -> dict[str, Any]:
    return {
        table.name: table.inputs["routes"]
        for table in recording.of_type("aws:ec2/routeTable:RouteTable")
        if table.name.endswith("-routes")
    }


def test_one_gateway_in_each_zone(first: Recording) -> None:
    assert {name: len(routes) for name, routes in _gateways(first).items()} == {
        "n-private-us-east-1a-routes": 1,
        "n-private-us-east-1b-routes": 1,
    }
    for zone in ("us-east-1a", "us-east-1b"):
        routes = _gateways(first)[f"n-private-{zone}-routes"]
        assert routes[0]["cidrBlock"] == "0.0.0.0/0"
        assert routes[0]["natGatewayId"].startswith(f"n-nat-{zone}:")
        assert first[f"n-nat-{zone}"].after >= {"n-internet"}


def test_a_single_gateway_serves_all_zones(second: Recording) -> None:
    gateways = second.of_type("aws:ec2/natGateway:NatGateway")
    assert [gateway.name for gateway in gateways] == ["n-nat-us-east-1a"]
    targets = {
        routes[0]["natGatewayId"].split(":")[0] for routes in _gateways(second).values()
    }
    assert targets == {"n-nat-us-east-1a"}
    subnets = {s.name for s in second.of_type("aws:ec2/subnet:Subnet")}
    assert {name for name in subnets if "public" in name} == {"n-public-us-east-1a"}
    assert len(subnets) == 3 + 1 + 3 + 3


def _rules(recording: Recording, direction: str) -> dict[str, tuple[Any, ...]]:
    token = f"aws:vpc/securityGroup{direction}Rule:SecurityGroup{direction}Rule"
    keys = ("ipProtocol", "fromPort", "toPort")
    peers = ("cidrIpv4", "referencedSecurityGroupId", "prefixListId")
    return {
        rule.name: (
            *(rule.inputs.get(key) for key in keys),
            *(rule.inputs[peer] for peer in peers if peer in rule.inputs),
        )
        for rule in recording.of_type(token)
    }


def test_exact_rules(first: Recording) -> None:
    nodes = id_of("sg-", "n-nodes")
    assert _rules(first, "Ingress") == {
        "n-endpoints-from-network": ("tcp", 443, 443, "10.12.0.0/16"),
        "n-nodes-from-nodes": ("-1", None, None, nodes),
    }
    assert _rules(first, "Egress") == {
        "n-nodes-to-nodes": ("-1", None, None, nodes),
        "n-nodes-to-network": ("tcp", 443, 443, "10.12.0.0/16"),
        "n-nodes-to-dns-udp": ("udp", 53, 53, "10.12.0.2/32"),
        "n-nodes-to-dns-tcp": ("tcp", 53, 53, "10.12.0.2/32"),
        "n-nodes-to-s3": ("tcp", 443, 443, "pl-1"),
        "n-nodes-to-egress-0": ("tcp", 443, 443, "0.0.0.0/0"),
    }


def test_egress_is_what_the_fleet_file_lists(second: Recording) -> None:
    listed = {n: r for n, r in _rules(second, "Egress").items() if "egress" in n}
    assert listed == {
        "n-nodes-to-egress-0": ("tcp", 443, 443, "192.0.2.0/24"),
        "n-nodes-to-egress-1": ("tcp", 443, 443, "198.51.100.0/24"),
    }


@pytest.mark.parametrize("endpoint", INTERFACE_ENDPOINTS, ids=lambda e: e.service)
def test_interface_endpoints(first: Recording, endpoint: Any) -> None:
    name = f"n-endpoint-{endpoint.service.replace('.', '-')}"
    inputs = dict(first[name].inputs)
    policy = inputs.pop("policy", None)
    assert inputs == {
        "vpcId": id_of("vpc-", "n-vpc"),
        "serviceName": f"com.amazonaws.us-east-1.{endpoint.service}",
        "vpcEndpointType": "Interface",
        "privateDnsEnabled": True,
        "subnetIds": [
            id_of("subnet-", f"n-endpoints-us-east-1{letter}") for letter in "ab"
        ],
        "securityGroupIds": [id_of("sg-", "n-endpoints")],
        "tags": {**LABELS, "Name": name},
    }
    if endpoint.service == "eks-auth":
        assert policy is None
        return
    own, *others = json.loads(policy)["Statement"]
    assert own["Action"] == f"{endpoint.prefix}:*"
    assert own["Condition"] == {
        "StringEquals": {"aws:PrincipalAccount": ["111122223333", "444455556666"]}
    }
    anyone = [action for statement in others for action in statement["Action"]]
    expected = ["sts:AssumeRoleWithWebIdentity"] if endpoint.service == "sts" else []
    assert anyone == expected


def test_exact_services() -> None:
    assert [endpoint.service for endpoint in INTERFACE_ENDPOINTS] == [
        "ecr.api",
        "ecr.dkr",
        "sts",
        "ec2",
        "logs",
        "eks-auth",
        "eks",
        "sqs",
        "secretsmanager",
        "kinesis-firehose",
    ]


def test_only_our_accounts_write_to_s3(first: Recording) -> None:
    own, anyone = first.statements("n-endpoint-s3")
    assert own["Condition"] == {
        "StringEquals": {"aws:PrincipalAccount": ["111122223333", "444455556666"]}
    }
    assert anyone["Action"] == ["s3:GetObject", "s3:GetObjectVersion", "s3:ListBucket"]
    assert len(first["n-endpoint-s3"].inputs["routeTableIds"]) == 2


def test_flow_logs(first: Recording, second: Recording) -> None:
    assert first["n-flow-log"].inputs == {
        "vpcId": id_of("vpc-", "n-vpc"),
        "trafficType": "ALL",
        "logDestinationType": "cloud-watch-logs",
        "logDestination": "arn:of:n-flow-logs",
        "iamRoleArn": "arn:of:n-flow-logs-role",
        "maxAggregationInterval": 600,
        "tags": {**LABELS, "Name": "n-flow-log"},
    }
    assert first["n-flow-logs"].inputs == {
        "name": "/runfleet/demo-ue1/flow-logs",
        "retentionInDays": 365,
        "kmsKeyId": "arn:of:n-flow-logs-key",
        "tags": {**LABELS, "Name": "n-flow-logs"},
    }
    assert second["n-flow-logs"].inputs["retentionInDays"] == 30
    group = "arn:aws:logs:us-east-1:111122223333:log-group"
    write, find = first.statements("n-flow-logs-role-write")
    assert write["Resource"] == [
        f"{group}:/runfleet/demo-ue1/flow-logs",
        f"{group}:/runfleet/demo-ue1/flow-logs:log-stream:*",
    ]
    assert (find["Action"], find["Resource"]) == (
        ["logs:DescribeLogGroups"],
        [f"{group}:*"],
    )
    (trust,) = first.statements("n-flow-logs-role", "assumeRolePolicy")
    assert trust["Principal"] == {"Service": "vpc-flow-logs.amazonaws.com"}
    assert trust["Condition"] == {
        "StringEquals": {"aws:SourceAccount": "111122223333"},
        "ArnLike": {
            "aws:SourceArn": "arn:aws:ec2:us-east-1:111122223333:vpc-flow-log/*"
        },
    }
    root, logs = first.statements("n-flow-logs-key")
    assert root["Principal"] == {"AWS": "arn:aws:iam::111122223333:root"}
    assert logs["Condition"] == {
        "ArnEquals": {
            "kms:EncryptionContext:aws:logs:arn": (
                f"{group}:/runfleet/demo-ue1/flow-logs"
            )
        }
    }


def test_account_defaults_are_set_by_one_cell_of_a_region(
    first: Recording, second: Recording
) -> None:
    assert first["n-metadata-defaults"].inputs == {
        "httpEndpoint": "enabled",
        "httpTokens": "required",
        "httpPutResponseHopLimit": 1,
        "instanceMetadataTags": "disabled",
    }
    assert first["n-disk-encryption"].inputs == {"enabled": True}
    assert "n-metadata-defaults" not in second.children("n")
    assert "n-disk-encryption" not in second.children("n")


def test_an_existing_network_is_read_and_not_made(
    record: Record, plan: CellPlan
) -> None:
    args = dataclasses.replace(
        NetworkArgs.from_plan(plan),
        adopt="vpc-0abc",
        adopted_subnets=("subnet-0a", "subnet-0b"),
        account_defaults=False,
    )
    networks: list[Network] = []

    def build(opts: Any, _: Any) -> Network:
        networks.append(Network("n", args, opts))
        return networks[0]

    made = record(build)
    assert list(networks[0].service_ranges) == []
    assert list(networks[0].api_ranges) == []
    read = {r.name: r.read for r in made.resources if r.read}
    assert read == {
        "n-vpc": "vpc-0abc",
        "n-private-0": "subnet-0a",
        "n-private-1": "subnet-0b",
    }
    assert made.outputs["network_id"] == "vpc-0abc"
    assert made.outputs["node_subnet_ids"] == ["subnet-0a", "subnet-0b"]
    assert made.outputs["control_subnet_ids"] == ["subnet-0a", "subnet-0b"]
    assert set(made.children("n")) == {
        *read,
        "n-nodes",
        "n-nodes-from-nodes",
        "n-nodes-to-nodes",
        "n-nodes-to-network",
        "n-nodes-to-dns-udp",
        "n-nodes-to-dns-tcp",
        "n-nodes-to-egress-0",
    }


def test_an_adopted_network_needs_its_subnets(record: Record, plan: CellPlan) -> None:
    args = dataclasses.replace(NetworkArgs.from_plan(plan), adopt="vpc-0abc")
    with pytest.raises(NetworkError, match=r"settings\.node_subnets"):
        record(lambda opts, _: Network("n", args, opts))


def test_an_unknown_setting_is_refused() -> None:
    text = FLEET.replace("karpenter_replicas: 3", "karpenter_copies: 3")
    with pytest.raises(InputError) as caught:
        NetworkArgs.from_plan(plan_of(text, "aws-two"))
    (problem,) = caught.value.problems
    assert problem.path == "cells.aws-two.settings.karpenter_copies"
    assert "karpenter_replicas" in problem.allowed
