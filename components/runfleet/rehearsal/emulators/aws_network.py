"""Network types in moto: VPC, subnets, gateways, routes, security groups, templates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from runfleet.rehearsal.emulators.aws_call import (
    Call,
    as_flag,
    pairs,
    pascal,
    without_empty,
)


def _tagged(call: Call, kind: str) -> dict[str, Any]:
    tags = call.tags()
    if not tags:
        return {}
    return {"TagSpecifications": [{"ResourceType": kind, "Tags": tags}]}


def vpc(call: Call) -> None:
    """Create a VPC and learn the ids of what comes with it."""
    ec2 = call.client("ec2")
    made = ec2.create_vpc(
        **call.take("cidrBlock", "instanceTenancy"),
        AmazonProvidedIpv6CidrBlock=call.flag("assignGeneratedIpv6CidrBlock"),
        **_tagged(call, "vpc"),
    )["Vpc"]["VpcId"]
    call.learn(made)
    for key in ("enableDnsSupport", "enableDnsHostnames"):
        if key in call.inputs:
            attribute = key[0].upper() + key[1:]
            value = {"Value": call.flag(key)}
            ec2.modify_vpc_attribute(VpcId=made, **{attribute: value})
    mine = [{"Name": "vpc-id", "Values": [made]}]
    groups = ec2.describe_security_groups(Filters=mine)["SecurityGroups"]
    call.learn(groups[0]["GroupId"], "defaultSecurityGroupId")
    tables = ec2.describe_route_tables(Filters=mine)["RouteTables"]
    call.learn(tables[0]["RouteTableId"], "mainRouteTableId")
    lists = ec2.describe_network_acls(Filters=mine)["NetworkAcls"]
    call.learn(lists[0]["NetworkAclId"], "defaultNetworkAclId")


def cidr_association(call: Call) -> None:
    """Add a range to a VPC."""
    made = call.client("ec2").associate_vpc_cidr_block(
        VpcId=call.made("vpcId"), **call.take("cidrBlock")
    )
    call.learn(made["CidrBlockAssociation"]["AssociationId"])


def subnet(call: Call) -> None:
    """Create a subnet; moto refuses a range outside the VPC or taken."""
    ec2 = call.client("ec2")
    made = ec2.create_subnet(
        VpcId=call.made("vpcId"),
        **call.take(
            "cidrBlock", "availabilityZone", "availabilityZoneId", "ipv6CidrBlock"
        ),
        **_tagged(call, "subnet"),
    )["Subnet"]["SubnetId"]
    call.learn(made)
    if "mapPublicIpOnLaunch" in call.inputs:
        ec2.modify_subnet_attribute(
            SubnetId=made,
            MapPublicIpOnLaunch={"Value": call.flag("mapPublicIpOnLaunch")},
        )


def security_group(call: Call) -> None:
    """Create a security group without the open egress rule that AWS adds."""
    ec2 = call.client("ec2")
    made = ec2.create_security_group(
        GroupName=call.text("name"),
        Description=call.text("description", "Managed by Pulumi"),
        **({"VpcId": call.made("vpcId")} if call.inputs.get("vpcId") else {}),
        **_tagged(call, "security-group"),
    )["GroupId"]
    call.learn(made)
    _empty_group(ec2, made)
    _inline_rules(call, made)


def default_security_group(call: Call) -> None:
    """Take over a VPC's default security group and close it."""
    ec2 = call.client("ec2")
    wanted = [
        {"Name": "vpc-id", "Values": [call.made("vpcId")]},
        {"Name": "group-name", "Values": ["default"]},
    ]
    found = ec2.describe_security_groups(Filters=wanted)["SecurityGroups"]
    group = found[0]["GroupId"]
    call.learn(group)
    _empty_group(ec2, group)
    _inline_rules(call, group)


def _empty_group(ec2: Any, group: str) -> None:
    found = ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"][0]
    if found["IpPermissionsEgress"]:
        ec2.revoke_security_group_egress(
            GroupId=group, IpPermissions=found["IpPermissionsEgress"]
        )
    if found["IpPermissions"]:
        ec2.revoke_security_group_ingress(
            GroupId=group, IpPermissions=found["IpPermissions"]
        )


def _inline_rules(call: Call, group: str) -> None:
    ec2 = call.client("ec2")
    for key, add in (
        ("ingress", ec2.authorize_security_group_ingress),
        ("egress", ec2.authorize_security_group_egress),
    ):
        for rule in call.items(key):
            add(GroupId=group, IpPermissions=[_wide_permission(call, rule, group)])


def _wide_permission(call: Call, rule: Mapping[str, Any], group: str) -> dict[str, Any]:
    """Return the permission of a rule with lists of sources."""
    text = str(rule.get("description") or "")
    note = {"Description": text} if text else {}

    def found(key: str) -> list[Any]:
        return cast("list[Any]", rule.get(key) or [])

    groups = [call.made_value(value) for value in found("securityGroups")]
    if rule.get("self") is True:
        groups.append(group)
    return without_empty(
        {
            "IpProtocol": str(rule.get("protocol", "-1")),
            "FromPort": rule.get("fromPort"),
            "ToPort": rule.get("toPort"),
            "IpRanges": [{"CidrIp": c, **note} for c in found("cidrBlocks")],
            "Ipv6Ranges": [{"CidrIpv6": c, **note} for c in found("ipv6CidrBlocks")],
            "PrefixListIds": [
                {"PrefixListId": p, **note} for p in found("prefixListIds")
            ],
            "UserIdGroupPairs": [{"GroupId": g, **note} for g in groups],
        }
    )


def group_rule(call: Call) -> None:
    """Create one ingress or egress rule of the newer, one-source form."""
    text = call.text("description")
    note = {"Description": text} if text else {}
    permission: dict[str, Any] = {"IpProtocol": str(call.inputs.get("ipProtocol"))}
    permission |= call.take("fromPort", "toPort")
    if call.inputs.get("cidrIpv4"):
        permission["IpRanges"] = [{"CidrIp": call.inputs["cidrIpv4"], **note}]
    if call.inputs.get("cidrIpv6"):
        permission["Ipv6Ranges"] = [{"CidrIpv6": call.inputs["cidrIpv6"], **note}]
    if call.inputs.get("prefixListId"):
        prefix = call.translate(call.inputs["prefixListId"])
        permission["PrefixListIds"] = [{"PrefixListId": prefix, **note}]
    if call.inputs.get("referencedSecurityGroupId"):
        group = call.made("referencedSecurityGroupId")
        permission["UserIdGroupPairs"] = [{"GroupId": group, **note}]
    ec2 = call.client("ec2")
    outward = "Egress" in call.kind
    add = (
        ec2.authorize_security_group_egress
        if outward
        else ec2.authorize_security_group_ingress
    )
    made = add(GroupId=call.made("securityGroupId"), IpPermissions=[permission])
    for rule in made.get("SecurityGroupRules", [])[:1]:
        call.learn(rule["SecurityGroupRuleId"])


def old_group_rule(call: Call) -> None:
    """Create one rule of the older form with lists of sources."""
    ec2 = call.client("ec2")
    group = call.made("securityGroupId")
    rule = dict(call.inputs)
    source = rule.get("sourceSecurityGroupId")
    rule["securityGroups"] = [source] if source else []
    add = (
        ec2.authorize_security_group_egress
        if call.text("type") == "egress"
        else ec2.authorize_security_group_ingress
    )
    add(GroupId=group, IpPermissions=[_wide_permission(call, rule, group)])


def internet_gateway(call: Call) -> None:
    """Create an internet gateway and attach it."""
    ec2 = call.client("ec2")
    target = call.made("vpcId") if call.inputs.get("vpcId") else ""
    made = ec2.create_internet_gateway(**_tagged(call, "internet-gateway"))
    id_ = made["InternetGateway"]["InternetGatewayId"]
    call.learn(id_)
    if target:
        ec2.attach_internet_gateway(InternetGatewayId=id_, VpcId=target)


def elastic_ip(call: Call) -> None:
    """Allocate an address."""
    made = call.client("ec2").allocate_address(
        Domain="vpc", **_tagged(call, "elastic-ip")
    )
    call.learn(made["AllocationId"])
    call.learn(made["AllocationId"], "allocationId")


def nat_gateway(call: Call) -> None:
    """Create a NAT gateway."""
    address = call.inputs.get("allocationId")
    made = call.client("ec2").create_nat_gateway(
        SubnetId=call.made("subnetId"),
        **({"AllocationId": call.made("allocationId")} if address else {}),
        **call.take("connectivityType"),
        **_tagged(call, "natgateway"),
    )
    call.learn(made["NatGateway"]["NatGatewayId"])


def route_table(call: Call) -> None:
    """Create a route table with its inline routes."""
    made = call.client("ec2").create_route_table(
        VpcId=call.made("vpcId"), **_tagged(call, "route-table")
    )["RouteTable"]["RouteTableId"]
    call.learn(made)
    for found in call.items("routes"):
        _add_route(call, made, found)


def route(call: Call) -> None:
    """Create one route."""
    _add_route(call, call.made("routeTableId"), call.inputs)


_TARGETS = {
    "egressOnlyGatewayId": "EgressOnlyInternetGatewayId",
    "gatewayId": "GatewayId",
    "natGatewayId": "NatGatewayId",
    "networkInterfaceId": "NetworkInterfaceId",
    "transitGatewayId": "TransitGatewayId",
    "vpcEndpointId": "VpcEndpointId",
    "vpcPeeringConnectionId": "VpcPeeringConnectionId",
}


def _add_route(call: Call, table: str, found: Mapping[str, Any]) -> None:
    arguments = {
        argument: call.made_value(found[key])
        for key, argument in _TARGETS.items()
        if found.get(key)
    }
    cidr = found.get("cidrBlock") or found.get("destinationCidrBlock")
    cidr6 = found.get("ipv6CidrBlock") or found.get("destinationIpv6CidrBlock")
    if cidr:
        arguments["DestinationCidrBlock"] = cidr
    if cidr6:
        arguments["DestinationIpv6CidrBlock"] = cidr6
    prefixes = found.get("destinationPrefixListId")
    if prefixes:
        arguments["DestinationPrefixListId"] = call.made_value(prefixes)
    call.client("ec2").create_route(RouteTableId=table, **arguments)


def route_table_association(call: Call) -> None:
    """Join a route table to a subnet or gateway."""
    key = "subnetId" if call.inputs.get("subnetId") else "gatewayId"
    made = call.client("ec2").associate_route_table(
        RouteTableId=call.made("routeTableId"),
        **{key[0].upper() + key[1:]: call.made(key)},
    )
    call.learn(made["AssociationId"])


def vpc_endpoint(call: Call) -> None:
    """Create a gateway or interface endpoint."""
    made = call.client("ec2").create_vpc_endpoint(
        VpcId=call.made("vpcId"),
        VpcEndpointType=call.text("vpcEndpointType", "Gateway"),
        ServiceName=call.text("serviceName"),
        **without_empty(
            {
                "PolicyDocument": call.document("policy")
                if call.inputs.get("policy")
                else None,
                "RouteTableIds": call.made_list("routeTableIds"),
                "SubnetIds": call.made_list("subnetIds"),
                "SecurityGroupIds": call.made_list("securityGroupIds"),
            }
        ),
        **call.take("privateDnsEnabled"),
        **_tagged(call, "vpc-endpoint"),
    )
    call.learn(made["VpcEndpoint"]["VpcEndpointId"])


def flow_log(call: Call) -> None:
    """Create flow logs of a VPC, subnet or interface."""
    for key, kind in (
        ("vpcId", "VPC"),
        ("subnetId", "Subnet"),
        ("eniId", "NetworkInterface"),
    ):
        if call.inputs.get(key):
            target = {"ResourceIds": [call.made(key)], "ResourceType": kind}
            break
    else:
        return
    destination = call.translate(call.inputs.get("logDestination"))
    kind = call.text("logDestinationType", "cloud-watch-logs")
    arguments: dict[str, Any] = {"LogDestinationType": kind}
    if kind == "s3" and isinstance(destination, str):
        call.made_value(f"arn:aws:s3:::{destination.split(':::')[-1].split('/')[0]}")
    arguments |= without_empty({"LogDestination": destination})
    made = call.client("ec2").create_flow_logs(
        **target,
        **arguments,
        **call.take(
            "trafficType",
            "maxAggregationInterval",
            "logFormat",
            DeliverLogsPermissionArn="iamRoleArn",
        ),
        **_tagged(call, "vpc-flow-log"),
    )
    for id_ in made.get("FlowLogIds", []):
        call.learn(id_)


_TEXT_FLAGS = ("DeleteOnTermination", "Encrypted", "AssociatePublicIpAddress")


def launch_template(call: Call) -> None:
    """Create a launch template from all inputs that belong to its data."""
    outside = {
        "defaultVersion",
        "description",
        "name",
        "namePrefix",
        "region",
        "tags",
        "updateDefaultVersion",
        "vpcSecurityGroupIds",
    }
    inside = {k: v for k, v in call.inputs.items() if k not in outside}
    data = cast("dict[str, Any]", _flags(pascal(call.translate(inside))))
    groups = call.made_list("vpcSecurityGroupIds")
    if groups:
        data["SecurityGroupIds"] = groups
    for interface in data.get("NetworkInterfaces", []):
        if "SecurityGroups" in interface:
            interface["Groups"] = interface.pop("SecurityGroups")
    if "TagSpecifications" in data:
        data["TagSpecifications"] = [
            {
                "ResourceType": found["resourceType"],
                "Tags": pairs(found.get("tags") or {}),
            }
            for found in call.items("tagSpecifications")
        ]
    if "Ebs" in str(data):
        for mapping in data.get("BlockDeviceMappings", []):
            if "Ebs" in mapping:
                mapping["Ebs"] = without_empty(mapping["Ebs"])
    made = call.client("ec2").create_launch_template(
        LaunchTemplateName=call.text("name"),
        LaunchTemplateData=data,
        **call.take(VersionDescription="description"),
        **_tagged(call, "launch-template"),
    )
    call.learn(made["LaunchTemplate"]["LaunchTemplateId"])


def _flags(value: Any) -> Any:
    """Return a value with the provider's textual booleans as booleans."""
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value)
        return {
            key: as_flag(item) if key in _TEXT_FLAGS else _flags(item)
            for key, item in items.items()
        }
    if isinstance(value, list):
        return [_flags(item) for item in cast("list[Any]", value)]
    return value


HANDLERS: Mapping[str, Callable[[Call], None]] = {
    "ec2/defaultSecurityGroup": default_security_group,
    "ec2/eip": elastic_ip,
    "ec2/flowLog": flow_log,
    "ec2/internetGateway": internet_gateway,
    "ec2/launchTemplate": launch_template,
    "ec2/natGateway": nat_gateway,
    "ec2/route": route,
    "ec2/routeTable": route_table,
    "ec2/routeTableAssociation": route_table_association,
    "ec2/securityGroup": security_group,
    "ec2/securityGroupRule": old_group_rule,
    "ec2/subnet": subnet,
    "ec2/vpc": vpc,
    "ec2/vpcEndpoint": vpc_endpoint,
    "ec2/vpcIpv4CidrBlockAssociation": cidr_association,
    "vpc/securityGroupEgressRule": group_rule,
    "vpc/securityGroupIngressRule": group_rule,
}
"""Creating function by ``module/type``."""
