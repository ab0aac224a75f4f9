"""Derived ids, ARNs and outputs of the AWS provider (pulumi-aws 7).

Programs build policies from these values, so each has the form that AWS gives it:
the ARN formats are those of the Service Authorization Reference
(https://docs.aws.amazon.com/service-authorization/latest/reference/), the id
prefixes those of the EC2 API reference, and which value is a resource's id is the
provider's choice (its "import" sections in the Terraform registry).

Region and account come from the resource's own ``region``, then from its explicit
provider: ``region``, the first of ``allowedAccountIds``, or the account in
``assumeRoles`` or ``assumeRole``. Nothing said means ``us-east-1`` and the account
of AWS's documentation, 123456789012.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from runfleet.rehearsal.providers.subject import Derived, Subject

DEFAULT_ACCOUNT = "123456789012"
"""Account when neither resource nor provider names one."""

DEFAULT_REGION = "us-east-1"
"""Region when neither resource nor provider names one."""

_UNIQUE_ID = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_LOWER = "abcdefghijklmnopqrstuvwxyz0123456789"

EC2_IDS: Mapping[str, tuple[str, str]] = {
    "capacityReservation": ("cr-", "capacity-reservation"),
    "defaultNetworkAcl": ("acl-", "network-acl"),
    "defaultRouteTable": ("rtb-", "route-table"),
    "defaultSecurityGroup": ("sg-", "security-group"),
    "egressOnlyInternetGateway": ("eigw-", "egress-only-internet-gateway"),
    "eip": ("eipalloc-", "elastic-ip"),
    "eipAssociation": ("eipassoc-", ""),
    "flowLog": ("fl-", "vpc-flow-log"),
    "instance": ("i-", "instance"),
    "internetGateway": ("igw-", "internet-gateway"),
    "launchTemplate": ("lt-", "launch-template"),
    "managedPrefixList": ("pl-", "prefix-list"),
    "natGateway": ("nat-", "natgateway"),
    "networkAcl": ("acl-", "network-acl"),
    "networkInterface": ("eni-", "network-interface"),
    "routeTable": ("rtb-", "route-table"),
    "routeTableAssociation": ("rtbassoc-", ""),
    "securityGroup": ("sg-", "security-group"),
    "subnet": ("subnet-", "subnet"),
    "vpc": ("vpc-", "vpc"),
    "vpcDhcpOptions": ("dopt-", "dhcp-options"),
    "vpcEndpoint": ("vpce-", "vpc-endpoint"),
    "vpcIpv4CidrBlockAssociation": ("vpc-cidr-assoc-", ""),
    "vpcPeeringConnection": ("pcx-", "vpc-peering-connection"),
}
"""EC2 types: id prefix, and the resource word of the ARN (empty: has no ARN)."""


def derive(subject: Subject) -> Derived:
    """Derive id and computed outputs of one AWS resource."""
    found = _Aws(subject, *location(subject.inputs, subject.provider))
    _, _, rest = subject.type.partition(":")
    module, _, _ = rest.partition(":")
    service, _, kind = module.partition("/")
    rule = _RULES.get(module)
    if rule is not None:
        derived = rule(found)
    elif service == "ec2" and kind in EC2_IDS:
        derived = _ec2(found, kind)
    elif service == "s3" and kind.startswith("bucket"):
        bucket = subject.text("bucket") or found.digest_name()
        derived = Derived(bucket, {})
    else:
        derived = _other(found, service, kind)
    outputs = dict(derived.outputs)
    if service not in ("iam", "budgets"):
        outputs.setdefault("region", found.region)
    return Derived(subject.read_id or derived.id, outputs)


def location(inputs: Mapping[str, Any], provider: Mapping[str, Any]) -> tuple[str, str]:
    """Return (account, region) of a resource from its inputs and its provider's."""
    region = inputs.get("region") or provider.get("region") or DEFAULT_REGION
    accounts = _decoded(provider.get("allowedAccountIds"))
    if isinstance(accounts, list) and accounts:
        return str(cast("list[Any]", accounts)[0]), str(region)
    roles = _decoded(provider.get("assumeRoles") or provider.get("assumeRole"))
    first = cast("list[Any]", roles)[-1:] if isinstance(roles, list) else [roles]
    for role in first:
        arn = cast("dict[str, Any]", role).get("roleArn") if role else None
        if isinstance(arn, str) and arn.count(":") >= 5:
            return arn.split(":")[4], str(region)
    return DEFAULT_ACCOUNT, str(region)


def partition(region: str) -> str:
    """Return the AWS partition that a region belongs to."""
    if region.startswith("cn-"):
        return "aws-cn"
    return "aws-us-gov" if region.startswith("us-gov-") else "aws"


def invoke(token: str, args: Mapping[str, Any], provider: Mapping[str, Any]) -> Any:
    """Answer the functions whose result follows from the provider's settings."""
    account, region = location(args, provider)
    division = partition(region)
    if token == "aws:index/getCallerIdentity:getCallerIdentity":
        arn = f"arn:{division}:iam::{account}:root"
        return {"accountId": account, "arn": arn, "id": account, "userId": account}
    if token == "aws:index/getRegion:getRegion":
        return {"id": region, "name": region, "region": region}
    if token == "aws:index/getPartition:getPartition":
        suffix = _suffix(division)
        reverse = ".".join(reversed(suffix.split(".")))
        return {
            "id": division,
            "partition": division,
            "dnsSuffix": suffix,
            "reverseDnsPrefix": reverse,
        }
    return None


@dataclass(frozen=True)
class _Aws:
    """A resource with the account and region it lives in."""

    subject: Subject
    account: str
    region: str

    @property
    def partition(self) -> str:
        return partition(self.region)

    def arn(
        self, service: str, resource: str, region: str = "", account: str = ""
    ) -> str:
        where = region or self.region
        owner = account or self.account
        return f"arn:{self.partition}:{service}:{where}:{owner}:{resource}"

    def global_arn(self, service: str, resource: str) -> str:
        return f"arn:{self.partition}:{service}::{self.account}:{resource}"

    def ec2_id(self, prefix: str, purpose: str = "") -> str:
        return f"{prefix}0{self.subject.digest(16, purpose)}"

    def name(self, key: str = "name") -> str:
        return self.subject.physical_name(key)

    def text(self, key: str, default: str = "") -> str:
        return self.subject.text(key, default)

    def digest_name(self) -> str:
        return f"{self.subject.name}-{self.subject.digest(8)}"


def _ec2(found: _Aws, kind: str) -> Derived:
    prefix, word = EC2_IDS[kind]
    id_ = found.ec2_id(prefix)
    outputs: dict[str, Any] = {}
    if word:
        outputs["arn"] = found.arn("ec2", f"{word}/{id_}")
    extra = _EC2_OUTPUTS.get(kind)
    if extra is not None:
        outputs.update(extra(found, id_))
    return Derived(id_, outputs)


def _vpc(found: _Aws, _: str) -> dict[str, Any]:
    return {
        "defaultNetworkAclId": found.ec2_id("acl-", "default"),
        "defaultRouteTableId": found.ec2_id("rtb-", "default"),
        "defaultSecurityGroupId": found.ec2_id("sg-", "default"),
        "dhcpOptionsId": found.ec2_id("dopt-", "default"),
        "mainRouteTableId": found.ec2_id("rtb-", "default"),
        "ownerId": found.account,
    }


def _eip(found: _Aws, id_: str) -> dict[str, Any]:
    # 198.18.0.0/15 is set aside for benchmarks (RFC 2544): nobody's address.
    number = int(found.subject.digest(8, "address"), 16) % (1 << 17)
    address = f"198.{18 + (number >> 16)}.{number >> 8 & 255}.{number & 255}"
    zone = "compute-1" if found.region == "us-east-1" else f"{found.region}.compute"
    return {
        "allocationId": id_,
        "associationId": found.ec2_id("eipassoc-", "association"),
        "publicIp": address,
        "publicDns": f"ec2-{address.replace('.', '-')}.{zone}.amazonaws.com",
    }


def _nat_gateway(found: _Aws, _: str) -> dict[str, Any]:
    return {
        "associationId": found.ec2_id("eipassoc-", "association"),
        "networkInterfaceId": found.ec2_id("eni-", "interface"),
    }


def _vpc_endpoint(found: _Aws, id_: str) -> dict[str, Any]:
    outputs: dict[str, Any] = {"ownerId": found.account, "state": "available"}
    if found.text("vpcEndpointType", "Gateway") == "Gateway":
        outputs["prefixListId"] = f"pl-{found.subject.digest(8, 'prefix-list')}"
        return outputs
    service = found.text("serviceName").rpartition(".")[2]
    host = f"{id_}-{found.subject.letters(8, _LOWER)}.{service}.{found.region}"
    outputs["dnsEntries"] = [
        {"dnsName": f"{host}.vpce.amazonaws.com", "hostedZoneId": "Z7HUB22UULQXV"}
    ]
    subnets = found.subject.inputs.get("subnetIds")
    count = len(cast("list[Any]", subnets)) if isinstance(subnets, list) else 0
    outputs["networkInterfaceIds"] = [
        found.ec2_id("eni-", f"interface-{index}") for index in range(count)
    ]
    return outputs


def _launch_template(found: _Aws, _: str) -> dict[str, Any]:
    return {"name": found.name(), "latestVersion": 1, "defaultVersion": 1}


def _group(found: _Aws, _: str) -> dict[str, Any]:
    return {"name": found.name(), "ownerId": found.account}


def _owner(found: _Aws, _: str) -> dict[str, Any]:
    return {"ownerId": found.account}


_EC2_OUTPUTS: Mapping[str, Callable[[_Aws, str], dict[str, Any]]] = {
    "eip": _eip,
    "internetGateway": _owner,
    "launchTemplate": _launch_template,
    "natGateway": _nat_gateway,
    "routeTable": _owner,
    "securityGroup": _group,
    "defaultSecurityGroup": lambda found, _: {
        "name": "default",
        "ownerId": found.account,
    },
    "subnet": _owner,
    "vpc": _vpc,
    "vpcEndpoint": _vpc_endpoint,
}


def _security_group_rule(found: _Aws) -> Derived:
    id_ = found.ec2_id("sgr-")
    arn = found.arn("ec2", f"security-group-rule/{id_}")
    return Derived(id_, {"arn": arn, "securityGroupRuleId": id_})


def _old_security_group_rule(found: _Aws) -> Derived:
    return Derived(
        f"sgrule-{found.subject.digits(9)}",
        {"securityGroupRuleId": found.ec2_id("sgr-")},
    )


def _route(found: _Aws) -> Derived:
    table = found.text("routeTableId")
    return Derived(
        f"r-{table}{found.subject.digits(10)}",
        {"origin": "CreateRoute", "state": "active"},
    )


def _iam_path(found: _Aws) -> str:
    path = found.text("path", "/")
    return path if path.endswith("/") else f"{path}/"


def _unique(found: _Aws, prefix: str) -> str:
    return prefix + found.subject.letters(17, _UNIQUE_ID)


def _role(found: _Aws) -> Derived:
    name = found.name()
    arn = found.global_arn("iam", f"role{_iam_path(found)}{name}")
    return Derived(name, {"name": name, "arn": arn, "uniqueId": _unique(found, "AROA")})


def _policy(found: _Aws) -> Derived:
    name = found.name()
    arn = found.global_arn("iam", f"policy{_iam_path(found)}{name}")
    return Derived(arn, {"name": name, "arn": arn, "policyId": _unique(found, "ANPA")})


def _role_policy(found: _Aws) -> Derived:
    name = found.name()
    return Derived(f"{found.text('role')}:{name}", {"name": name})


def _role_attachment(found: _Aws) -> Derived:
    return Derived(f"{found.text('role')}/{found.text('policyArn')}", {})


def _instance_profile(found: _Aws) -> Derived:
    name = found.name()
    arn = found.global_arn("iam", f"instance-profile{_iam_path(found)}{name}")
    return Derived(name, {"name": name, "arn": arn, "uniqueId": _unique(found, "AIPA")})


def _user(found: _Aws) -> Derived:
    name = found.name()
    arn = found.global_arn("iam", f"user{_iam_path(found)}{name}")
    return Derived(name, {"name": name, "arn": arn, "uniqueId": _unique(found, "AIDA")})


def _oidc_provider(found: _Aws) -> Derived:
    issuer = found.text("url").removeprefix("https://")
    arn = found.global_arn("iam", f"oidc-provider/{issuer}")
    outputs: dict[str, Any] = {"arn": arn}
    if "thumbprintLists" not in found.subject.inputs:
        outputs["thumbprintLists"] = [found.subject.digest(40, "thumbprint")]
    return Derived(arn, outputs)


def _service_linked_role(found: _Aws) -> Derived:
    service = found.text("awsServiceName")
    name = f"AWSServiceRoleFor{service.partition('.')[0].title()}"
    arn = found.global_arn("iam", f"role/aws-service-role/{service}/{name}")
    return Derived(
        arn, {"arn": arn, "name": name, "path": f"/aws-service-role/{service}/"}
    )


def _bucket(found: _Aws) -> Derived:
    given = found.text("bucket")
    prefix = found.text("bucketPrefix", found.subject.name + "-")
    name = given or (prefix + found.subject.digest(7, "auto-name")).lower()
    suffix = _suffix(found.partition)
    return Derived(
        name,
        {
            "bucket": name,
            "arn": f"arn:{found.partition}:s3:::{name}",
            "bucketDomainName": f"{name}.s3.{suffix}",
            "bucketRegion": found.region,
            "bucketRegionalDomainName": f"{name}.s3.{found.region}.{suffix}",
        },
    )


def _bucket_object(found: _Aws) -> Derived:
    bucket, key = found.text("bucket"), found.text("key", found.subject.name)
    arn = f"arn:{found.partition}:s3:::{bucket}/{key}"
    return Derived(f"{bucket}/{key}", {"arn": arn, "key": key})


def _kms_key(found: _Aws) -> Derived:
    multi = found.subject.inputs.get("multiRegion") is True
    id_ = f"mrk-{found.subject.digest(32)}" if multi else found.subject.uuid()
    return Derived(id_, {"arn": found.arn("kms", f"key/{id_}"), "keyId": id_})


def _kms_alias(found: _Aws) -> Derived:
    name = found.text("name") or f"alias/{found.name()}"
    target = found.text("targetKeyId")
    target_arn = (
        target if target.startswith("arn:") else found.arn("kms", f"key/{target}")
    )
    return Derived(
        name,
        {
            "name": name,
            "arn": found.arn("kms", name),
            "targetKeyArn": target_arn,
        },
    )


def _log_group(found: _Aws) -> Derived:
    name = found.name()
    return Derived(name, {"name": name, "arn": found.arn("logs", f"log-group:{name}")})


def _queue(found: _Aws) -> Derived:
    name = found.name()
    if found.subject.inputs.get("fifoQueue") is True and not name.endswith(".fifo"):
        name += ".fifo"
    url = (
        f"https://sqs.{found.region}.{_suffix(found.partition)}/{found.account}/{name}"
    )
    return Derived(url, {"name": name, "url": url, "arn": found.arn("sqs", name)})


def _topic(found: _Aws) -> Derived:
    name = found.name()
    arn = found.arn("sns", name)
    return Derived(arn, {"name": name, "arn": arn, "owner": found.account})


def _topic_subscription(found: _Aws) -> Derived:
    arn = f"{found.text('topic')}:{found.subject.uuid()}"
    return Derived(arn, {"arn": arn, "ownerId": found.account})


def _event_rule(found: _Aws) -> Derived:
    name = found.name()
    bus = found.text("eventBusName", "default")
    path = name if bus == "default" else f"{bus}/{name}"
    return Derived(path, {"name": name, "arn": found.arn("events", f"rule/{path}")})


def _event_target(found: _Aws) -> Derived:
    target = found.text("targetId") or f"{found.subject.name}-{found.subject.digest(7)}"
    return Derived(f"{found.text('rule')}-{target}", {"targetId": target})


def _ecr_repository(found: _Aws) -> Derived:
    name = found.name()
    host = f"{found.account}.dkr.ecr.{found.region}.{_suffix(found.partition)}"
    return Derived(
        name,
        {
            "name": name,
            "arn": found.arn("ecr", f"repository/{name}"),
            "registryId": found.account,
            "repositoryUrl": f"{host}/{name}",
        },
    )


def _ecr_part(found: _Aws) -> Derived:
    name = found.text("repository") or found.account
    return Derived(name, {"registryId": found.account})


def _ecr_prefix(found: _Aws) -> Derived:
    prefix = found.text("ecrRepositoryPrefix") or found.text("prefix")
    return Derived(prefix or found.digest_name(), {"registryId": found.account})


def _secret(found: _Aws) -> Derived:
    name = found.name()
    suffix = found.subject.letters(6, _LOWER, "secret")
    arn = found.arn("secretsmanager", f"secret:{name}-{suffix}")
    return Derived(arn, {"name": name, "arn": arn})


def _secret_version(found: _Aws) -> Derived:
    secret, version = found.text("secretId"), found.subject.uuid()
    return Derived(f"{secret}|{version}", {"arn": secret, "versionId": version})


def _eks_cluster(found: _Aws) -> Derived:
    name = found.name()
    host = found.subject.digest(32, "endpoint").upper()
    suffix = f"{found.region}.eks.{_suffix(found.partition)}"
    issuer_host = f"oidc.eks.{found.region}.{_suffix(found.partition)}"
    body = base64.b64encode(found.subject.digest(64, "ca").encode()).decode()
    pem = f"-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n"
    given = found.subject.inputs.get("vpcConfig")
    vpc = dict(cast("Mapping[str, Any]", given)) if isinstance(given, Mapping) else {}
    vpc["clusterSecurityGroupId"] = found.ec2_id("sg-", "cluster")
    return Derived(
        name,
        {
            "name": name,
            "arn": found.arn("eks", f"cluster/{name}"),
            "endpoint": f"https://{host}.gr7.{suffix}",
            "certificateAuthority": {"data": base64.b64encode(pem.encode()).decode()},
            "identities": [{"oidcs": [{"issuer": f"https://{issuer_host}/id/{host}"}]}],
            "status": "ACTIVE",
            "vpcConfig": vpc,
        },
    )


def _eks_node_group(found: _Aws) -> Derived:
    cluster, name = found.text("clusterName"), found.name("nodeGroupName")
    unique = found.subject.uuid()
    return Derived(
        f"{cluster}:{name}",
        {
            "nodeGroupName": name,
            "arn": found.arn("eks", f"nodegroup/{cluster}/{name}/{unique}"),
            "resources": [{"autoscalingGroups": [{"name": f"eks-{name}-{unique}"}]}],
            "status": "ACTIVE",
        },
    )


def _eks_addon(found: _Aws) -> Derived:
    cluster, name = found.text("clusterName"), found.text("addonName")
    path = f"addon/{cluster}/{name}/{found.subject.uuid()}"
    return Derived(f"{cluster}:{name}", {"arn": found.arn("eks", path)})


def _eks_access_entry(found: _Aws) -> Derived:
    cluster, principal = found.text("clusterName"), found.text("principalArn")
    parts = principal.split(":")
    owner = parts[4] if len(parts) > 5 else found.account
    who = parts[-1].rpartition("/")[2]
    path = f"access-entry/{cluster}/role/{owner}/{who}/{found.subject.uuid()}"
    return Derived(f"{cluster}:{principal}", {"accessEntryArn": found.arn("eks", path)})


def _eks_access_policy(found: _Aws) -> Derived:
    parts = ("clusterName", "principalArn", "policyArn")
    return Derived("#".join(found.text(part) for part in parts), {})


def _eks_pod_identity(found: _Aws) -> Derived:
    id_ = f"a-{found.subject.letters(17, _LOWER)}"
    path = f"podidentityassociation/{found.text('clusterName')}/{id_}"
    return Derived(
        id_, {"associationId": id_, "associationArn": found.arn("eks", path)}
    )


def _dynamodb_table(found: _Aws) -> Derived:
    name = found.name()
    arn = found.arn("dynamodb", f"table/{name}")
    outputs: dict[str, Any] = {"name": name, "arn": arn}
    if found.subject.inputs.get("streamEnabled") is True:
        label = "2000-01-01T00:00:00.000"
        outputs |= {"streamArn": f"{arn}/stream/{label}", "streamLabel": label}
    return Derived(name, outputs)


def _firehose(found: _Aws) -> Derived:
    name = found.name()
    arn = found.arn("firehose", f"deliverystream/{name}")
    outputs = {"name": name, "arn": arn, "destinationId": "destinationId-000000000001"}
    return Derived(arn, {**outputs, "versionId": "1"})


def _budget(found: _Aws) -> Derived:
    name, account = found.name(), found.text("accountId", found.account)
    arn = f"arn:{found.partition}:budgets::{account}:budget/{name}"
    return Derived(
        f"{account}:{name}", {"name": name, "arn": arn, "accountId": account}
    )


def _auto_scaling_group(found: _Aws) -> Derived:
    name = found.name()
    path = f"autoScalingGroup:{found.subject.uuid()}:autoScalingGroupName/{name}"
    return Derived(name, {"name": name, "arn": found.arn("autoscaling", path)})


def _cost_tag(found: _Aws) -> Derived:
    return Derived(found.text("tagKey") or found.digest_name(), {})


def _parameter(found: _Aws) -> Derived:
    name = found.name()
    return Derived(
        name,
        {
            "name": name,
            "arn": found.arn("ssm", f"parameter/{name.removeprefix('/')}"),
            "version": 1,
        },
    )


def _named(service: str, word: str, separator: str = "/") -> Callable[[_Aws], Derived]:
    def rule(found: _Aws) -> Derived:
        name = found.name()
        arn = found.arn(service, f"{word}{separator}{name}")
        return Derived(name, {"name": name, "arn": arn})

    return rule


def _of(key: str) -> Callable[[_Aws], Derived]:
    return lambda found: Derived(found.text(key) or found.digest_name(), {})


def _other(found: _Aws, service: str, kind: str) -> Derived:
    """Derive for a type without a rule: a stable id and an ARN of common form."""
    id_ = found.digest_name()
    return Derived(id_, {"arn": found.arn(service, f"{kind.lower()}/{id_}")})


def _suffix(division: str) -> str:
    return "amazonaws.com.cn" if division == "aws-cn" else "amazonaws.com"


def _decoded(value: Any) -> Any:
    """Return provider inputs that are lists or objects, which travel as JSON text."""
    if isinstance(value, str):
        try:
            return json.loads(value)
        except json.JSONDecodeError:
            return None
    return value


_RULES: Mapping[str, Callable[[_Aws], Derived]] = {
    "autoscaling/group": _auto_scaling_group,
    "budgets/budget": _budget,
    "cloudwatch/eventBus": _named("events", "event-bus"),
    "cloudwatch/eventRule": _event_rule,
    "cloudwatch/eventTarget": _event_target,
    "cloudwatch/logGroup": _log_group,
    "cloudwatch/metricAlarm": _named("cloudwatch", "alarm", ":"),
    "costexplorer/costAllocationTag": _cost_tag,
    "dynamodb/table": _dynamodb_table,
    "ebs/encryptionByDefault": lambda found: Derived(found.region, {}),
    "ec2/instanceMetadataDefaults": lambda found: Derived(found.region, {}),
    "ec2/placementGroup": _named("ec2", "placement-group"),
    "ec2/route": _route,
    "ec2/securityGroupRule": _old_security_group_rule,
    "ecr/lifecyclePolicy": _ecr_part,
    "ecr/pullThroughCacheRule": _ecr_prefix,
    "ecr/registryPolicy": _ecr_part,
    "ecr/registryScanningConfiguration": _ecr_part,
    "ecr/repository": _ecr_repository,
    "ecr/repositoryCreationTemplate": _ecr_prefix,
    "ecr/repositoryPolicy": _ecr_part,
    "eks/accessEntry": _eks_access_entry,
    "eks/accessPolicyAssociation": _eks_access_policy,
    "eks/addon": _eks_addon,
    "eks/cluster": _eks_cluster,
    "eks/nodeGroup": _eks_node_group,
    "eks/podIdentityAssociation": _eks_pod_identity,
    "glue/catalogDatabase": _named("glue", "database"),
    "iam/instanceProfile": _instance_profile,
    "iam/openIdConnectProvider": _oidc_provider,
    "iam/policy": _policy,
    "iam/role": _role,
    "iam/rolePolicy": _role_policy,
    "iam/rolePolicyAttachment": _role_attachment,
    "iam/serviceLinkedRole": _service_linked_role,
    "iam/user": _user,
    "kinesis/firehoseDeliveryStream": _firehose,
    "kms/alias": _kms_alias,
    "kms/key": _kms_key,
    "lambda/function": _named("lambda", "function", ":"),
    "s3/bucket": _bucket,
    "s3/bucketObject": _bucket_object,
    "s3/bucketObjectv2": _bucket_object,
    "s3/bucketV2": _bucket,
    "secretsmanager/secret": _secret,
    "secretsmanager/secretPolicy": _of("secretArn"),
    "secretsmanager/secretVersion": _secret_version,
    "sns/topic": _topic,
    "sns/topicPolicy": _of("arn"),
    "sns/topicSubscription": _topic_subscription,
    "sqs/queue": _queue,
    "sqs/queuePolicy": _of("queueUrl"),
    "ssm/parameter": _parameter,
    "vpc/securityGroupEgressRule": _security_group_rule,
    "vpc/securityGroupIngressRule": _security_group_rule,
}
