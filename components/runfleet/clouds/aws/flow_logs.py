"""Flow logs: a record of every connection in a cell's network, kept encrypted.

They are what an investigation starts from: who connected to whom, and when. The log
group is stateful, so it is protected and retained; the role that writes to it is
bound to this account's flow logs.
"""

from __future__ import annotations

import pulumi
import pulumi_aws as aws

from runfleet.clouds.aws.keys import encryption_key, logs_may_use
from runfleet.clouds.aws.names import LOG_GROUP, Place
from runfleet.clouds.aws.roles import service_role, trusts_service
from runfleet.clouds.aws.tags import tags


def flow_logs(
    name: str,
    place: Place,
    network_id: pulumi.Input[str],
    retention_days: int,
    parent: pulumi.Resource,
) -> None:
    """Log every connection of a network.

    Args:
        name: Name of the network; the resources are ``<name>-flow-log...``.
        place: Where it is.
        network_id: Id of the VPC.
        retention_days: How long the logs are kept.
        parent: The component that they belong to.
    """
    group_name = LOG_GROUP.encode("runfleet", place.cluster, "flow-logs")
    key = encryption_key(
        f"{name}-flow-logs-key",
        "flow-logs",
        place,
        [logs_may_use(place, group_name)],
        parent,
    )
    group = aws.cloudwatch.LogGroup(
        f"{name}-flow-logs",
        name=group_name,
        retention_in_days=retention_days,
        kms_key_id=key.arn,
        tags=tags(place.labels, Name=f"{name}-flow-logs"),
        opts=pulumi.ResourceOptions(parent=parent, protect=True, retain_on_delete=True),
    )
    role, attached = service_role(
        f"{name}-flow-logs-role",
        "flow-logs",
        place,
        {
            **trusts_service("vpc-flow-logs.amazonaws.com"),
            "Condition": {
                "StringEquals": {"aws:SourceAccount": place.account},
                "ArnLike": {"aws:SourceArn": place.arn("ec2", "vpc-flow-log/*")},
            },
        },
        parent,
        policies={
            "write": [
                {
                    "Sid": "Write",
                    "Effect": "Allow",
                    "Action": [
                        "logs:CreateLogStream",
                        "logs:DescribeLogStreams",
                        "logs:PutLogEvents",
                    ],
                    "Resource": [
                        place.arn("logs", f"log-group:{group_name}"),
                        place.arn("logs", f"log-group:{group_name}:log-stream:*"),
                    ],
                },
                {
                    "Sid": "Find",
                    "Effect": "Allow",
                    "Action": ["logs:DescribeLogGroups"],
                    "Resource": [place.arn("logs", "log-group:*")],
                },
            ]
        },
    )
    aws.ec2.FlowLog(
        f"{name}-flow-log",
        vpc_id=network_id,
        traffic_type="ALL",
        log_destination_type="cloud-watch-logs",
        log_destination=group.arn,
        iam_role_arn=role.arn,
        max_aggregation_interval=600,
        tags=tags(place.labels, Name=f"{name}-flow-log"),
        opts=pulumi.ResourceOptions(parent=parent, depends_on=attached),
    )
