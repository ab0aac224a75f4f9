"""Data types in moto: buckets, logs, queues, events, registries, secrets, tables."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, cast

from runfleet.rehearsal.emulators.aws_call import (
    Call,
    Foreign,
    capital,
    pairs,
    pascal,
    without_empty,
)
from runfleet.rehearsal.emulators.base import Refused

# moto accepts capitals and underscores; AWS does not (Amazon S3 User Guide, "General
# purpose bucket naming rules").
_BUCKET_NAME = re.compile(r"[a-z0-9](?!.*\.\.)[a-z0-9.-]{1,61}[a-z0-9]")


def bucket(call: Call) -> None:
    """Create a bucket; moto refuses names that are taken, this table bad ones."""
    s3 = call.client("s3")
    name = call.text("bucket")
    if not _BUCKET_NAME.fullmatch(name):
        raise Refused(f"refused by the naming rules of S3: InvalidBucketName: {name}")
    arguments: dict[str, Any] = {}
    if call.region != "us-east-1":
        place = {"LocationConstraint": call.region}
        arguments["CreateBucketConfiguration"] = place
    if call.flag("objectLockEnabled"):
        arguments["ObjectLockEnabledForBucket"] = True
    s3.create_bucket(Bucket=name, **arguments)
    if call.tags():
        s3.put_bucket_tagging(Bucket=name, Tagging={"TagSet": call.tags()})
    call.know()


def public_access_block(call: Call) -> None:
    """Close a bucket to the public."""
    flags = (
        "blockPublicAcls",
        "blockPublicPolicy",
        "ignorePublicAcls",
        "restrictPublicBuckets",
    )
    call.client("s3").put_public_access_block(
        Bucket=call.made("bucket"),
        PublicAccessBlockConfiguration={
            capital(flag): call.flag(flag) for flag in flags
        },
    )


def encryption(call: Call) -> None:
    """Set a bucket's default encryption."""
    rules: list[dict[str, Any]] = []
    for found in call.items("rules"):
        default = cast(
            "dict[str, Any]", found.get("applyServerSideEncryptionByDefault") or {}
        )
        chosen = {
            "SSEAlgorithm": default.get("sseAlgorithm"),
            "KMSMasterKeyID": call.translate(default.get("kmsMasterKeyId")),
        }
        rule: dict[str, Any] = {
            "ApplyServerSideEncryptionByDefault": without_empty(chosen)
        }
        if "bucketKeyEnabled" in found:
            rule["BucketKeyEnabled"] = found["bucketKeyEnabled"]
        rules.append(rule)
    call.client("s3").put_bucket_encryption(
        Bucket=call.made("bucket"),
        ServerSideEncryptionConfiguration={"Rules": rules},
    )


def versioning(call: Call) -> None:
    """Set a bucket's versioning."""
    found = call.block("versioningConfiguration")
    status = {"Status": found.get("status"), "MFADelete": found.get("mfaDelete")}
    call.client("s3").put_bucket_versioning(
        Bucket=call.made("bucket"), VersioningConfiguration=without_empty(status)
    )


def bucket_policy(call: Call) -> None:
    """Set a bucket's policy."""
    call.client("s3").put_bucket_policy(
        Bucket=call.made("bucket"), Policy=call.document("policy")
    )


def ownership_controls(call: Call) -> None:
    """Set who owns a bucket's objects."""
    rule = {"ObjectOwnership": call.block("rule").get("objectOwnership")}
    call.client("s3").put_bucket_ownership_controls(
        Bucket=call.made("bucket"), OwnershipControls={"Rules": [rule]}
    )


def lifecycle(call: Call) -> None:
    """Set a bucket's lifecycle rules."""
    rules: list[dict[str, Any]] = []
    for found in call.items("rules"):
        given = dict(found)
        filter_ = given.pop("filter", None)
        rule = cast("dict[str, Any]", pascal(given))
        rule["ID"] = rule.pop("Id", "")
        if filter_ is not None or "Prefix" not in rule:
            rule["Filter"] = _lifecycle_filter(filter_ or {})
        rules.append(rule)
    call.client("s3").put_bucket_lifecycle_configuration(
        Bucket=call.made("bucket"), LifecycleConfiguration={"Rules": rules}
    )


def _lifecycle_filter(given: Mapping[str, Any]) -> dict[str, Any]:
    both = given.get("and")
    if both:
        values = cast("dict[str, Any]", pascal({**both, "tags": None}))
        values["Tags"] = pairs(both.get("tags") or {})
        return {"And": without_empty(values)}
    return without_empty(cast("dict[str, Any]", pascal(dict(given)))) or {"Prefix": ""}


def object_lock(call: Call) -> None:
    """Set a bucket's object lock rule."""
    rule = call.block("rule")
    configuration: dict[str, Any] = {"ObjectLockEnabled": "Enabled"}
    if rule:
        configuration["Rule"] = pascal(rule)
    call.client("s3").put_object_lock_configuration(
        Bucket=call.made("bucket"), ObjectLockConfiguration=configuration
    )


def log_group(call: Call) -> None:
    """Create a log group with its retention."""
    logs = call.client("logs")
    name = call.text("name")
    logs.create_log_group(
        logGroupName=name,
        **without_empty(
            {
                "kmsKeyId": call.translate(call.inputs.get("kmsKeyId")),
                "tags": call.block("tags"),
            }
        ),
    )
    if call.inputs.get("retentionInDays"):
        logs.put_retention_policy(
            logGroupName=name, retentionInDays=call.inputs["retentionInDays"]
        )
    call.know()


_QUEUE = {
    "ContentBasedDeduplication": "contentBasedDeduplication",
    "DelaySeconds": "delaySeconds",
    "FifoQueue": "fifoQueue",
    "KmsMasterKeyId": "kmsMasterKeyId",
    "MaximumMessageSize": "maxMessageSize",
    "MessageRetentionPeriod": "messageRetentionSeconds",
    "ReceiveMessageWaitTimeSeconds": "receiveWaitTimeSeconds",
    "RedrivePolicy": "redrivePolicy",
    "SqsManagedSseEnabled": "sqsManagedSseEnabled",
    "VisibilityTimeout": "visibilityTimeoutSeconds",
}


def queue(call: Call) -> None:
    """Create a queue."""
    attributes = {
        key: _attribute(call.translate(call.inputs[name]))
        for key, name in _QUEUE.items()
        if call.inputs.get(name) is not None
    }
    if call.inputs.get("policy"):
        attributes["Policy"] = call.document("policy")
    made = call.client("sqs").create_queue(
        QueueName=call.text("name"), Attributes=attributes, tags=call.block("tags")
    )
    call.know()
    call.learn(made["QueueUrl"])
    call.learn(made["QueueUrl"], "url")


def _attribute(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else json.dumps(value)


def queue_policy(call: Call) -> None:
    """Set a queue's policy."""
    call.client("sqs").set_queue_attributes(
        QueueUrl=call.made("queueUrl"), Attributes={"Policy": call.document("policy")}
    )


def topic(call: Call) -> None:
    """Create a topic."""
    attributes = {"KmsMasterKeyId": call.translate(call.inputs.get("kmsMasterKeyId"))}
    made = call.client("sns").create_topic(
        Name=call.text("name"),
        Attributes=without_empty(attributes),
        Tags=call.tags(),
    )
    call.learn(made["TopicArn"])


def event_rule(call: Call) -> None:
    """Create a rule; moto refuses malformed patterns and schedules."""
    call.client("events").put_rule(
        Name=call.text("name"),
        State=call.text("state", "ENABLED"),
        **call.take(
            "eventPattern", "scheduleExpression", "description", "eventBusName"
        ),
        Tags=call.tags(),
    )
    call.know()
    call.learn(call.text("name"))


def event_target(call: Call) -> None:
    """Add a target to a rule."""
    target = {"Id": call.text("targetId"), "Arn": call.translate(call.text("arn"))}
    target |= call.take("roleArn", "input", "inputPath")
    call.client("events").put_targets(
        Rule=call.made("rule"), Targets=[target], **call.take("eventBusName")
    )


def repository(call: Call) -> None:
    """Create an image repository."""
    scan = call.block("imageScanningConfiguration")
    encryptions = call.items("encryptionConfigurations")
    arguments: dict[str, Any] = call.take(imageTagMutability="imageTagMutability")
    if scan:
        arguments["imageScanningConfiguration"] = {
            "scanOnPush": scan.get("scanOnPush") is True
        }
    if encryptions:
        chosen = call.translate(encryptions[0])
        arguments["encryptionConfiguration"] = without_empty(
            {
                "encryptionType": chosen.get("encryptionType"),
                "kmsKey": chosen.get("kmsKey"),
            }
        )
    call.client("ecr").create_repository(
        repositoryName=call.text("name"), tags=call.tags(), **arguments
    )
    call.know()


def repository_lifecycle(call: Call) -> None:
    """Set a repository's lifecycle; moto checks the whole document."""
    call.client("ecr").put_lifecycle_policy(
        repositoryName=call.made("repository"),
        lifecyclePolicyText=call.document("policy"),
    )


def repository_policy(call: Call) -> None:
    """Set a repository's policy."""
    call.client("ecr").set_repository_policy(
        repositoryName=call.made("repository"), policyText=call.document("policy")
    )


def secret(call: Call) -> None:
    """Create a secret without a value."""
    made = call.client("secretsmanager").create_secret(
        Name=call.text("name"), **call.take("description", "kmsKeyId"), Tags=call.tags()
    )
    call.learn(made["ARN"])
    call.learn(made["ARN"], "arn")


def secret_version(call: Call) -> None:
    """Put a value into a secret."""
    value = call.text("secretString") or call.text("secretStringWo")
    if value:
        call.client("secretsmanager").put_secret_value(
            SecretId=call.made("secretId"), SecretString=value
        )


def secret_policy(call: Call) -> None:
    """Set a secret's policy."""
    call.client("secretsmanager").put_resource_policy(
        SecretId=call.made("secretArn"), ResourcePolicy=call.document("policy")
    )


def table(call: Call) -> None:
    """Create a table."""
    keys = [{"AttributeName": call.text("hashKey"), "KeyType": "HASH"}]
    if call.inputs.get("rangeKey"):
        keys.append({"AttributeName": call.text("rangeKey"), "KeyType": "RANGE"})
    mode = call.text("billingMode", "PROVISIONED")
    arguments: dict[str, Any] = {"BillingMode": mode}
    if mode == "PROVISIONED":
        arguments["ProvisionedThroughput"] = {
            "ReadCapacityUnits": call.inputs.get("readCapacity", 1),
            "WriteCapacityUnits": call.inputs.get("writeCapacity", 1),
        }
    made = call.client("dynamodb").create_table(
        TableName=call.text("name"),
        KeySchema=keys,
        AttributeDefinitions=[
            {"AttributeName": found["name"], "AttributeType": found["type"]}
            for found in call.items("attributes")
        ],
        Tags=call.tags(),
        **arguments,
        **call.take("deletionProtectionEnabled"),
    )
    call.know()
    call.learn(made["TableDescription"]["TableArn"], "arn")


_STREAM_S3 = {
    "BucketARN": "bucketArn",
    "CompressionFormat": "compressionFormat",
    "ErrorOutputPrefix": "errorOutputPrefix",
    "Prefix": "prefix",
    "RoleARN": "roleArn",
}


def delivery_stream(call: Call) -> None:
    """Create a delivery stream to S3; other destinations are left alone."""
    given = call.block("extendedS3Configuration")
    if call.text("destination") != "extended_s3" or not given:
        raise Foreign("only delivery streams to S3 are created in moto")
    target = {
        key: call.translate(given[name])
        for key, name in _STREAM_S3.items()
        if given.get(name)
    }
    size, seconds = given.get("bufferingSize"), given.get("bufferingInterval")
    hints = without_empty({"SizeInMBs": size, "IntervalInSeconds": seconds})
    if hints:
        target["BufferingHints"] = hints
    if given.get("kmsKeyArn"):
        key = {"AWSKMSKeyARN": call.translate(given["kmsKeyArn"])}
        target["EncryptionConfiguration"] = {"KMSEncryptionConfig": key}
    call.client("firehose").create_delivery_stream(
        DeliveryStreamName=call.text("name"),
        DeliveryStreamType="DirectPut",
        ExtendedS3DestinationConfiguration=target,
        **({"Tags": call.tags()} if call.tags() else {}),
    )
    call.know()


def budget(call: Call) -> None:
    """Create a budget with its notifications."""
    filters = {
        found["name"]: found.get("values", []) for found in call.items("costFilters")
    }
    amount, unit = call.inputs.get("limitAmount"), call.text("limitUnit", "USD")
    details = {
        "BudgetName": call.text("name"),
        "BudgetType": call.text("budgetType", "COST"),
        "TimeUnit": call.text("timeUnit"),
        "BudgetLimit": {"Amount": str(amount), "Unit": unit} if amount else None,
        "CostFilters": filters,
    }
    start = call.text("timePeriodStart")
    if start:
        moment = datetime.strptime(start, "%Y-%m-%d_%H:%M").replace(tzinfo=UTC)
        details["TimePeriod"] = {"Start": moment}
    call.client("budgets").create_budget(
        AccountId=call.text("accountId", call.account),
        Budget=without_empty(details),
        NotificationsWithSubscribers=[
            _notification(found) for found in call.items("notifications")
        ],
    )


def _notification(found: Mapping[str, Any]) -> dict[str, Any]:
    people = [
        {"SubscriptionType": kind, "Address": address}
        for key, kind in (
            ("subscriberEmailAddresses", "EMAIL"),
            ("subscriberSnsTopicArns", "SNS"),
        )
        for address in cast("list[str]", found.get(key) or [])
    ]
    return {
        "Notification": {
            "NotificationType": found.get("notificationType"),
            "ComparisonOperator": found.get("comparisonOperator"),
            "Threshold": found.get("threshold"),
            "ThresholdType": found.get("thresholdType"),
        },
        "Subscribers": people,
    }


HANDLERS: Mapping[str, Callable[[Call], None]] = {
    "budgets/budget": budget,
    "cloudwatch/eventRule": event_rule,
    "cloudwatch/eventTarget": event_target,
    "cloudwatch/logGroup": log_group,
    "dynamodb/table": table,
    "ecr/lifecyclePolicy": repository_lifecycle,
    "ecr/repository": repository,
    "ecr/repositoryPolicy": repository_policy,
    "kinesis/firehoseDeliveryStream": delivery_stream,
    "s3/bucket": bucket,
    "s3/bucketLifecycleConfiguration": lifecycle,
    "s3/bucketObjectLockConfiguration": object_lock,
    "s3/bucketOwnershipControls": ownership_controls,
    "s3/bucketPolicy": bucket_policy,
    "s3/bucketPublicAccessBlock": public_access_block,
    "s3/bucketServerSideEncryptionConfiguration": encryption,
    "s3/bucketVersioning": versioning,
    "secretsmanager/secret": secret,
    "secretsmanager/secretPolicy": secret_policy,
    "secretsmanager/secretVersion": secret_version,
    "sns/topic": topic,
    "sqs/queue": queue,
    "sqs/queuePolicy": queue_policy,
}
"""Creating function by ``module/type``."""
