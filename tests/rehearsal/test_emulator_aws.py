"""moto beside the rehearsal: it accepts what is right and refuses what is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pulumi
import pulumi_aws as aws
import pytest
import rehearsal_programs as programs

from runfleet.rehearsal.emulators.aws import NOT_EMULATED, AwsEmulator, handlers
from runfleet.rehearsal.emulators.base import Emulator
from runfleet.rehearsal.errors import RehearsalError
from runfleet.rehearsal.record import dump_record
from runfleet.rehearsal.runner import rehearse


def everything() -> None:
    """Every type that moto backs, joined as a real cell joins them."""
    o = pulumi.ResourceOptions(provider=programs.provider())
    tags = {"ci_env": "prod"}
    key = aws.kms.Key("key", enable_key_rotation=True, tags=tags, opts=o)
    aws.kms.Alias("alias", name="alias/cell", target_key_id=key.id, opts=o)
    vpc = aws.ec2.Vpc(
        "vpc",
        cidr_block="10.0.0.0/16",
        enable_dns_hostnames=True,
        enable_dns_support=True,
        tags=tags,
        opts=o,
    )
    aws.ec2.VpcIpv4CidrBlockAssociation(
        "more", vpc_id=vpc.id, cidr_block="10.1.0.0/16", opts=o
    )
    aws.ec2.DefaultSecurityGroup("default", vpc_id=vpc.id, opts=o)
    subnet = aws.ec2.Subnet(
        "subnet",
        vpc_id=vpc.id,
        cidr_block="10.0.1.0/24",
        availability_zone="us-east-2a",
        map_public_ip_on_launch=False,
        tags=tags,
        opts=o,
    )
    gateway = aws.ec2.InternetGateway("igw", vpc_id=vpc.id, opts=o)
    address = aws.ec2.Eip("eip", domain="vpc", opts=o)
    nat = aws.ec2.NatGateway(
        "nat", subnet_id=subnet.id, allocation_id=address.id, opts=o
    )
    table = aws.ec2.RouteTable(
        "table",
        vpc_id=vpc.id,
        routes=[{"cidr_block": "0.0.0.0/0", "gateway_id": gateway.id}],
        opts=o,
    )
    private = aws.ec2.RouteTable("private", vpc_id=vpc.id, opts=o)
    aws.ec2.Route(
        "route",
        route_table_id=private.id,
        destination_cidr_block="0.0.0.0/0",
        nat_gateway_id=nat.id,
        opts=o,
    )
    aws.ec2.RouteTableAssociation(
        "association", route_table_id=table.id, subnet_id=subnet.id, opts=o
    )
    group = aws.ec2.SecurityGroup("group", vpc_id=vpc.id, description="nodes", opts=o)
    aws.vpc.SecurityGroupIngressRule(
        "in",
        security_group_id=group.id,
        referenced_security_group_id=group.id,
        ip_protocol="-1",
        description="nodes among themselves",
        opts=o,
    )
    aws.vpc.SecurityGroupEgressRule(
        "out",
        security_group_id=group.id,
        cidr_ipv4="0.0.0.0/0",
        ip_protocol="tcp",
        from_port=443,
        to_port=443,
        opts=o,
    )
    aws.ec2.SecurityGroup(
        "inline",
        vpc_id=vpc.id,
        description="inline rules",
        ingress=[
            {
                "protocol": "tcp",
                "from_port": 443,
                "to_port": 443,
                "cidr_blocks": ["10.0.0.0/16"],
                "security_groups": [group.id],
            }
        ],
        opts=o,
    )
    aws.ec2.SecurityGroupRule(
        "old",
        type="ingress",
        security_group_id=group.id,
        protocol="tcp",
        from_port=22,
        to_port=22,
        cidr_blocks=["10.0.0.0/8"],
        opts=o,
    )
    aws.ec2.VpcEndpoint(
        "s3",
        vpc_id=vpc.id,
        service_name="com.amazonaws.us-east-2.s3",
        route_table_ids=[table.id],
        opts=o,
    )
    aws.ec2.VpcEndpoint(
        "sts",
        vpc_id=vpc.id,
        service_name="com.amazonaws.us-east-2.sts",
        vpc_endpoint_type="Interface",
        private_dns_enabled=True,
        subnet_ids=[subnet.id],
        security_group_ids=[group.id],
        opts=o,
    )
    logs = aws.cloudwatch.LogGroup(
        "logs", name="/fleet/flow", retention_in_days=30, kms_key_id=key.arn, opts=o
    )
    role = aws.iam.Role(
        "role",
        name="runner",
        assume_role_policy=programs.TRUST,
        max_session_duration=3600,
        tags=tags,
        opts=o,
    )
    aws.ec2.FlowLog(
        "flow",
        vpc_id=vpc.id,
        traffic_type="ALL",
        log_destination=logs.arn,
        iam_role_arn=role.arn,
        opts=o,
    )
    bucket = aws.s3.Bucket("bucket", bucket="cell-cache", tags=tags, opts=o)
    policy = aws.iam.Policy(
        "policy",
        policy=bucket.arn.apply(lambda a: programs.policy("s3:GetObject", f"{a}/*")),
        opts=o,
    )
    aws.iam.RolePolicyAttachment(
        "attach", role=role.name, policy_arn=policy.arn, opts=o
    )
    aws.iam.RolePolicyAttachment(
        "aws-managed",
        role=role.name,
        policy_arn="arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy",
        opts=o,
    )
    aws.iam.RolePolicy(
        "inline-policy",
        role=role.id,
        policy=programs.policy("sqs:SendMessage", "arn:aws:sqs:us-east-2:1:q"),
        opts=o,
    )
    profile = aws.iam.InstanceProfile("profile", role=role.name, opts=o)
    aws.iam.OpenIdConnectProvider(
        "github",
        url="https://token.actions.githubusercontent.com",
        client_id_lists=["sts.amazonaws.com"],
        opts=o,
    )
    template = aws.ec2.LaunchTemplate(
        "template",
        metadata_options={
            "http_tokens": "required",
            "http_put_response_hop_limit": 1,
            "http_endpoint": "enabled",
        },
        block_device_mappings=[
            {
                "device_name": "/dev/xvda",
                "ebs": {
                    "encrypted": "true",
                    "delete_on_termination": "true",
                    "kms_key_id": key.arn,
                    "volume_size": 100,
                    "volume_type": "gp3",
                },
            }
        ],
        network_interfaces=[
            {"associate_public_ip_address": "false", "security_groups": [group.id]}
        ],
        tag_specifications=[{"resource_type": "instance", "tags": tags}],
        iam_instance_profile={"name": profile.name},
        tags=tags,
        opts=o,
    )
    aws.s3.BucketPublicAccessBlock(
        "closed",
        bucket=bucket.id,
        block_public_acls=True,
        block_public_policy=True,
        ignore_public_acls=True,
        restrict_public_buckets=True,
        opts=o,
    )
    aws.s3.BucketServerSideEncryptionConfiguration(
        "encrypted",
        bucket=bucket.id,
        rules=[
            {
                "apply_server_side_encryption_by_default": {
                    "sse_algorithm": "aws:kms",
                    "kms_master_key_id": key.arn,
                },
                "bucket_key_enabled": True,
            }
        ],
        opts=o,
    )
    aws.s3.BucketVersioning(
        "versions",
        bucket=bucket.id,
        versioning_configuration={"status": "Enabled"},
        opts=o,
    )
    aws.s3.BucketOwnershipControls(
        "owner",
        bucket=bucket.id,
        rule={"object_ownership": "BucketOwnerEnforced"},
        opts=o,
    )
    aws.s3.BucketLifecycleConfiguration(
        "lifecycle",
        bucket=bucket.id,
        rules=[
            {
                "id": "expire",
                "status": "Enabled",
                "filter": {"prefix": "cache/"},
                "expiration": {"days": 30},
                "noncurrent_version_expiration": {"noncurrent_days": 7},
                "abort_incomplete_multipart_upload": {"days_after_initiation": 1},
            },
            {
                "id": "cold",
                "status": "Enabled",
                "transitions": [{"days": 60, "storage_class": "GLACIER"}],
            },
        ],
        opts=o,
    )
    aws.s3.BucketPolicy(
        "tls",
        bucket=bucket.id,
        policy=bucket.arn.apply(
            lambda a: json.dumps(
                {
                    "Version": "2012-10-17",
                    "Statement": [
                        {
                            "Effect": "Deny",
                            "Principal": "*",
                            "Action": "s3:*",
                            "Resource": [a, f"{a}/*"],
                            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
                        }
                    ],
                }
            )
        ),
        opts=o,
    )
    locked = aws.s3.Bucket(
        "release", bucket="cell-release", object_lock_enabled=True, opts=o
    )
    aws.s3.BucketObjectLockConfiguration(
        "lock",
        bucket=locked.id,
        rule={"default_retention": {"mode": "GOVERNANCE", "days": 30}},
        opts=o,
    )
    queue = aws.sqs.Queue(
        "queue", name="interrupt", sqs_managed_sse_enabled=True, tags=tags, opts=o
    )
    aws.sqs.QueuePolicy(
        "queue-policy",
        queue_url=queue.url,
        policy=queue.arn.apply(lambda a: programs.policy("sqs:SendMessage", a)),
        opts=o,
    )
    rule = aws.cloudwatch.EventRule(
        "rule",
        event_pattern='{"source":["aws.ec2"]}',
        description="interruptions",
        opts=o,
    )
    aws.cloudwatch.EventTarget("target", rule=rule.name, arn=queue.arn, opts=o)
    topic = aws.sns.Topic("topic", name="alerts", opts=o)
    repository = aws.ecr.Repository(
        "images",
        name="ci/runner",
        image_tag_mutability="IMMUTABLE",
        image_scanning_configuration={"scan_on_push": True},
        encryption_configurations=[{"encryption_type": "KMS", "kms_key": key.arn}],
        tags=tags,
        opts=o,
    )
    lifecycle = {
        "rules": [
            {
                "rulePriority": 1,
                "selection": {
                    "tagStatus": "untagged",
                    "countType": "sinceImagePushed",
                    "countUnit": "days",
                    "countNumber": 14,
                },
                "action": {"type": "expire"},
            }
        ]
    }
    aws.ecr.LifecyclePolicy(
        "images-lifecycle",
        repository=repository.name,
        policy=json.dumps(lifecycle),
        opts=o,
    )
    aws.ecr.RepositoryPolicy(
        "images-policy",
        repository=repository.name,
        policy=programs.policy("ecr:BatchGetImage", "*"),
        opts=o,
    )
    secret = aws.secretsmanager.Secret("app", name="app", kms_key_id=key.arn, opts=o)
    aws.secretsmanager.SecretVersion(
        "app-value", secret_id=secret.id, secret_string="x", opts=o
    )
    aws.secretsmanager.SecretPolicy(
        "app-policy",
        secret_arn=secret.arn,
        policy=programs.policy("secretsmanager:GetSecretValue", "*"),
        opts=o,
    )
    aws.dynamodb.Table(
        "table-data",
        name="events",
        billing_mode="PAY_PER_REQUEST",
        hash_key="id",
        range_key="at",
        attributes=[{"name": "id", "type": "S"}, {"name": "at", "type": "N"}],
        tags=tags,
        opts=o,
    )
    aws.kinesis.FirehoseDeliveryStream(
        "telemetry",
        name="telemetry",
        destination="extended_s3",
        extended_s3_configuration={
            "bucket_arn": bucket.arn,
            "role_arn": role.arn,
            "prefix": "events/",
            "buffering_size": 64,
            "buffering_interval": 60,
            "kms_key_arn": key.arn,
        },
        tags=tags,
        opts=o,
    )
    aws.budgets.Budget(
        "budget",
        name="funder",
        budget_type="COST",
        limit_amount="1000",
        limit_unit="USD",
        time_unit="MONTHLY",
        time_period_start="2026-01-01_00:00",
        cost_filters=[{"name": "TagKeyValue", "values": ["user:ci_funder$lf"]}],
        notifications=[
            {
                "comparison_operator": "GREATER_THAN",
                "threshold": 80,
                "threshold_type": "PERCENTAGE",
                "notification_type": "ACTUAL",
                "subscriber_email_addresses": ["ops@example.org"],
                "subscriber_sns_topic_arns": [topic.arn],
            }
        ],
        opts=o,
    )
    cluster = aws.eks.Cluster(
        "cluster",
        name="cell",
        role_arn=role.arn,
        version="1.33",
        vpc_config={
            "subnet_ids": [subnet.id],
            "security_group_ids": [group.id],
            "endpoint_private_access": True,
            "endpoint_public_access": False,
        },
        access_config={"authentication_mode": "API"},
        enabled_cluster_log_types=["api", "audit"],
        encryption_config={
            "provider": {"key_arn": key.arn},
            "resources": ["secrets"],
        },
        tags=tags,
        opts=o,
    )
    aws.eks.NodeGroup(
        "base",
        cluster_name=cluster.name,
        node_group_name="base",
        node_role_arn=role.arn,
        subnet_ids=[subnet.id],
        scaling_config={"min_size": 2, "max_size": 4, "desired_size": 2},
        launch_template={
            "id": template.id,
            "version": template.latest_version.apply(str),
        },
        taints=[{"key": "base", "value": "true", "effect": "NO_SCHEDULE"}],
        update_config={"max_unavailable": 1},
        labels={"pool": "base"},
        tags=tags,
        opts=o,
    )
    aws.eks.PodIdentityAssociation(
        "pod",
        cluster_name=cluster.name,
        namespace="runners",
        service_account="runner",
        role_arn=role.arn,
        opts=o,
    )


@pytest.fixture
def emulator(monkeypatch: pytest.MonkeyPatch) -> AwsEmulator:
    """The emulator that the next rehearsal uses."""
    made = AwsEmulator()

    def emulators() -> dict[str, Emulator]:
        return {"aws": made}

    monkeypatch.setattr("runfleet.rehearsal.runner._emulators", emulators)
    return made


def test_every_type_is_created_for_real_and_the_record_is_the_same(
    emulator: AwsEmulator,
) -> None:
    with_moto = rehearse(everything, project="fleet", stack="aws", emulate=True)
    without = rehearse(everything, project="fleet", stack="aws", emulate=False)
    assert dump_record(with_moto) == dump_record(without)
    assert list(with_moto.unknowns()) == []
    skipped = {urn.split("::")[2]: reason for urn, reason in emulator.skipped}
    assert skipped == {
        "aws:eks/podIdentityAssociation:PodIdentityAssociation": "moto lacks EKS Pod "
        "Identity"
    }
    made = {urn.split("::")[2].partition(":")[2] for urn in emulator.created}
    assert {token.partition(":")[0] for token in made} == handlers().keys()


def test_no_type_is_both_emulated_and_not() -> None:
    lacking = {token[4:].partition(":")[0] for token in NOT_EMULATED}
    assert not lacking & handlers().keys()


def outside_vpc() -> None:
    vpc = aws.ec2.Vpc("vpc", cidr_block="10.0.0.0/16")
    aws.ec2.Subnet("subnet", vpc_id=vpc.id, cidr_block="10.9.0.0/24")


def overlapping() -> None:
    vpc = aws.ec2.Vpc("vpc", cidr_block="10.0.0.0/16")
    for name in ("one", "two"):
        aws.ec2.Subnet(name, vpc_id=vpc.id, cidr_block="10.0.1.0/24")


def bad_document() -> None:
    role = aws.iam.Role("role", assume_role_policy=programs.TRUST)
    document = programs.policy("s3:GetObject", "*", effect="Allowed")
    aws.iam.RolePolicy("inline", role=role.id, policy=document)


def bad_trust() -> None:
    aws.iam.Role("role", assume_role_policy=programs.policy("s3:GetObject", "*"))


def bad_bucket() -> None:
    aws.s3.Bucket("bucket", bucket="Not_A_Bucket")


def unknown_managed_policy() -> None:
    role = aws.iam.Role("role", assume_role_policy=programs.TRUST)
    arn = "arn:aws:iam::aws:policy/AmazonEKSNoSuchPolicy"
    aws.iam.RolePolicyAttachment("attach", role=role.name, policy_arn=arn)


def bad_queue() -> None:
    aws.sqs.Queue("queue", name="a" * 81)


def bad_pattern() -> None:
    aws.cloudwatch.EventRule("rule", event_pattern="{not json")


def bad_type() -> None:
    aws.cloudwatch.LogGroup("logs", name="/a", retention_in_days=30, tags={"k": "v"})
    aws.ec2.Vpc("vpc", cidr_block="10.0.0.0/33")


@pytest.mark.parametrize(
    ("program", "name", "message"),
    [
        (outside_vpc, "subnet", "InvalidSubnet.Range: The CIDR '10.9.0.0/24'"),
        (overlapping, "two", "InvalidSubnet.Conflict"),
        (bad_document, "inline", "MalformedPolicyDocument"),
        (bad_trust, "role", "MalformedPolicyDocument"),
        (bad_bucket, "bucket", "Not_A_Bucket"),
        (unknown_managed_policy, "attach", "NoSuchEntity"),
        (bad_queue, "queue", "Can only include alphanumeric characters"),
        (bad_pattern, "rule", "InvalidEventPatternException"),
        (bad_type, "vpc", "10.0.0.0/33"),
    ],
)
def test_what_aws_would_refuse_is_refused(
    program: Callable[[], Any], name: str, message: str
) -> None:
    with pytest.raises(RehearsalError) as caught:
        rehearse(program, project="fleet", stack="aws")
    assert caught.value.subject.endswith(f"::{name}")
    assert message in caught.value.reason
    assert caught.value.exit_code == 1


def test_two_accounts_may_have_the_same_names(emulator: AwsEmulator) -> None:
    def program() -> None:
        for account in ("111122223333", "444455556666"):
            provider = aws.Provider(
                account, region="us-east-2", allowed_account_ids=[account]
            )
            aws.iam.Role(
                f"role-{account}",
                name="runner",
                assume_role_policy=programs.TRUST,
                opts=pulumi.ResourceOptions(provider=provider),
            )

    record = rehearse(program, project="fleet", stack="aws")
    assert [role.outputs["arn"] for role in record.by_type("aws:iam/role:Role")] == [
        "arn:aws:iam::111122223333:role/runner",
        "arn:aws:iam::444455556666:role/runner",
    ]
    assert len(emulator.created) == 2


def test_references_outside_the_stack_are_left_alone(emulator: AwsEmulator) -> None:
    def program() -> None:
        aws.ec2.Subnet("subnet", vpc_id="vpc-adopted", cidr_block="10.0.0.0/24")

    rehearse(program, project="fleet", stack="aws")
    (skipped,) = emulator.skipped
    assert skipped[1] == "refers to vpc-adopted, which this stack does not make"
    assert emulator.created == []


def test_the_refusal_does_not_show_a_secret() -> None:
    def program() -> None:
        aws.s3.Bucket("bucket", bucket=pulumi.Output.secret("Hidden_Name"))

    with pytest.raises(RehearsalError) as caught:
        rehearse(program, project="fleet", stack="aws")
    assert "Hidden_Name" not in str(caught.value)
    assert "[secret]" in str(caught.value)


def test_the_environment_is_not_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "no-such-profile")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    rehearse(programs.network, project="fleet", stack="aws")
