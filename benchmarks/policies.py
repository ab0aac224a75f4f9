"""How long all rules take over 1,000 and 10,000 resources, against checkov.

The same AWS resources are written twice: as a record of a rehearsal, which our rules
read, and as the plan of Terraform that checkov reads. Both tools judge whole
processes, interpreter included. They ask different numbers of questions, so the
ratio is also given per pair of rule and resource that was really judged.

checkov (https://github.com/bridgecrewio/checkov) has many dependencies of its own
and is not one of ours: install it in an environment beside this one and name it,
``CHECKOV=/path/to/bin/checkov make bench``. Without it the comparison says so.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measure import measure, python, report

SIZES = (1_000, 10_000)
STACK = "urn:pulumi:bench::runfleet"

_EVALUATE = """
import sys
from runfleet.rehearsal.record import read_record
from runfleet_policies.engine import Settings, evaluate
from runfleet_policies.registry import stack_rules
record = read_record(sys.argv[1])
print(len(evaluate(record.resources, stack_rules(), Settings(stack="bench"))))
"""

_TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Action": "sts:AssumeRole",
            "Principal": {"Service": "pods.eks.amazonaws.com"},
        }
    ],
}
_RIGHTS = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Action": ["s3:GetObject", "s3:PutObject"],
            "Resource": "arn:aws:s3:::cache/untrusted/*",
        }
    ],
}
_KINDS: Sequence[tuple[str, str, dict[str, Any]]] = (
    ("aws:ec2/vpc:Vpc", "aws_vpc", {"cidrBlock": "10.12.0.0/16"}),
    (
        "aws:ec2/subnet:Subnet",
        "aws_subnet",
        {"vpcId": "vpc-1", "cidrBlock": "10.12.0.0/20", "mapPublicIpOnLaunch": False},
    ),
    (
        "aws:ec2/securityGroup:SecurityGroup",
        "aws_security_group",
        {
            "description": "runners",
            "egress": [
                {
                    "protocol": "tcp",
                    "fromPort": 443,
                    "toPort": 443,
                    "cidrBlocks": ["0.0.0.0/0"],
                    "description": "GitHub",
                }
            ],
        },
    ),
    (
        "aws:ec2/launchTemplate:LaunchTemplate",
        "aws_launch_template",
        {
            "imageId": "ami-0123456789abcdef0",
            "metadataOptions": {"httpTokens": "required", "httpPutResponseHopLimit": 2},
            "blockDeviceMappings": [
                {"deviceName": "/dev/xvda", "ebs": {"encrypted": "true"}}
            ],
        },
    ),
    (
        "aws:iam/role:Role",
        "aws_iam_role",
        {"assumeRolePolicy": json.dumps(_TRUST), "maxSessionDuration": 3600},
    ),
    ("aws:iam/policy:Policy", "aws_iam_policy", {"policy": json.dumps(_RIGHTS)}),
    ("aws:kms/key:Key", "aws_kms_key", {"enableKeyRotation": True}),
    (
        "aws:ecr/repository:Repository",
        "aws_ecr_repository",
        {
            "name": "images",
            "imageTagMutability": "IMMUTABLE",
            "imageScanningConfiguration": {"scanOnPush": True},
        },
    ),
    (
        "aws:eks/nodeGroup:NodeGroup",
        "aws_eks_node_group",
        {
            "clusterName": "cluster",
            "nodeRoleArn": "arn:aws:iam::123456789012:role/nodes",
            "subnetIds": ["subnet-1"],
            "scalingConfig": {"desiredSize": 0, "maxSize": 10, "minSize": 0},
        },
    ),
    (
        "aws:sqs/queue:Queue",
        "aws_sqs_queue",
        {"name": "interruptions", "messageRetentionSeconds": 300},
    ),
)
"""Type at Pulumi, type at Terraform, properties: a cell's AWS side in small."""


@dataclass(frozen=True)
class Judged:
    """What one tool judged.

    Attributes:
        rules: How many of its rules found a resource to judge.
        pairs: How many pairs of rule and resource that were.
    """

    rules: int
    pairs: int


def run() -> None:
    """Print seconds in process and as a process, and the ratio to checkov."""
    in_process = [_in_process(size) for size in SIZES]
    growth = in_process[1] / in_process[0]
    print(
        f"all rules, {SIZES[0]} resources, in process: {in_process[0]:.3f} s "
        f"(target 0.5 s); {SIZES[1]}: {in_process[1]:.3f} s, {growth:.1f} times "
        "(target at most 12)",
        flush=True,
    )
    with tempfile.TemporaryDirectory() as folder:
        for size in SIZES:
            _against_checkov(Path(folder), size)


def resources(count: int) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Yield type, Terraform type, name and properties of resources in turns."""
    tags = {f"ci_{key}": "shared" for key in ("project", "env", "funder", "owner")}
    for index in range(count):
        kind, terraform, properties = _KINDS[index % len(_KINDS)]
        yield kind, terraform, f"r{index}", {**properties, "tags": tags}


def record(count: int) -> Any:
    """Return the record of a rehearsal with as many resources."""
    from runfleet.rehearsal.record import Record, ResourceRecord

    return Record(
        project="runfleet",
        stack="bench",
        resources=tuple(
            ResourceRecord(
                urn=f"{STACK}::{kind}::{name}",
                type=kind,
                name=name,
                id=f"{name}-id",
                inputs=properties,
                outputs=properties,
            )
            for kind, _, name, properties in resources(count)
        ),
    )


def plan(count: int) -> dict[str, Any]:
    """Return Terraform's plan of the same resources, as ``terraform show`` has it."""
    entries = [
        {
            "address": f"{terraform}.{name}",
            "mode": "managed",
            "type": terraform,
            "name": name,
            "provider_name": "registry.terraform.io/hashicorp/aws",
            "schema_version": 1,
            "values": {key: _block(value) for key, value in _snake(found).items()},
        }
        for _, terraform, name, found in resources(count)
    ]
    changes = [
        {
            **{key: e[key] for key in ("address", "mode", "type", "name")},
            "change": {"actions": ["create"], "before": None, "after": e["values"]},
        }
        for e in entries
    ]
    return {
        "format_version": "1.2",
        "terraform_version": "1.9.0",
        "planned_values": {"root_module": {"resources": entries}},
        "resource_changes": changes,
    }


def pairs(count: int) -> Judged:
    """Return how many pairs our rules judge; a stack rule counts once per stack."""
    from runfleet_policies.registry import stack_rules
    from runfleet_policies.view import StackView

    stack = StackView(record(count).resources, "bench")
    found = [
        len({view.urn for view in stack.of(*rule.types)}) if rule.resource else 1
        for rule in stack_rules()
    ]
    return Judged(sum(number > 0 for number in found), sum(found))


def _in_process(count: int) -> float:
    from runfleet_policies.engine import Settings, evaluate
    from runfleet_policies.registry import stack_rules

    made, rules = record(count).resources, stack_rules()
    samples: list[float] = []
    for _ in range(6):
        start = time.perf_counter()
        evaluate(made, rules, Settings(stack="bench"))
        samples.append(time.perf_counter() - start)
    return statistics.median(samples[1:])


def _against_checkov(folder: Path, count: int) -> None:
    from runfleet.rehearsal.record import write_record
    from runfleet_policies.registry import stack_rules

    own = folder / f"record-{count}.json"
    write_record(record(count), own)
    target = "2 s" if count == SIZES[0] else "none"
    commands = [python(_EVALUATE, str(own))]
    checkov = os.environ.get("CHECKOV") or shutil.which("checkov")
    if checkov is None:
        (ours,) = measure(commands)
        print(
            f"all rules, {count} resources, process: {ours.seconds:.3f} s, "
            f"{ours.peak_mib:.0f} MiB (target {target}); checkov: not installed",
            flush=True,
        )
        return
    theirs_at = folder / f"plan-{count}.json"
    theirs_at.write_text(json.dumps(plan(count)), encoding="utf-8")
    options = ["--framework", "terraform_plan", "--skip-download", "--soft-fail"]
    scan = [checkov, "-f", str(theirs_at), *options]
    judged = _checkov_judged([*scan, "-o", "json"])
    ours, theirs = measure([*commands, [*scan, "--quiet", "--compact"]], runs=1)
    report(f"all rules, {count} resources", ours, "checkov", theirs, target)
    mine = pairs(count)
    ratio = (ours.seconds / mine.pairs) / (theirs.seconds / judged.pairs)
    print(
        f"  ours: {len(stack_rules())} rules, {mine.rules} with something to judge, "
        f"{mine.pairs} pairs, {ours.seconds / mine.pairs * 1e6:.0f} us a pair; "
        f"checkov: {judged.rules} rules with something to judge, {judged.pairs} pairs, "
        f"{theirs.seconds / judged.pairs * 1e6:.0f} us a pair; ratio {ratio:.2f}",
        flush=True,
    )


def _checkov_judged(command: Sequence[str]) -> Judged:
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    reports = found if isinstance(found, list) else [found]
    checks = [
        check
        for one in reports
        for kind in ("passed_checks", "failed_checks")
        for check in one["results"][kind]
    ]
    return Judged(len({check["check_id"] for check in checks}), len(checks))


def _snake(value: Any) -> Any:
    """Return properties in Terraform's spelling; keys of tags stay."""
    if isinstance(value, dict):
        return {
            re.sub(r"(?<!^)(?=[A-Z])", "_", key).lower(): _snake(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_snake(item) for item in value]
    return value


def _block(value: Any) -> Any:
    """Return a value as a plan has it: a nested block is a list of one."""
    if isinstance(value, dict) and not any(key.startswith("ci_") for key in value):
        return [{key: _block(item) for key, item in value.items()}]
    if isinstance(value, list):
        return [
            {key: _block(inner) for key, inner in item.items()}
            if isinstance(item, dict)
            else item
            for item in value
        ]
    return value
