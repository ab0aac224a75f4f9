"""Whole projects in worker processes: repeatable, in order, with clear errors."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from runfleet.errors import InputError
from runfleet.rehearsal.record import read_record
from runfleet.rehearsal.stacks import rehearse_stacks

COMPONENTS = Path(__file__).parents[2] / "components"

PROGRAM = """
import asyncio, os, sys
import pulumi
import pulumi_aws as aws
import helper

print("noise on standard output")
pulumi.log.warn("a pin is unresolved")
stack = pulumi.get_stack()
assert os.getcwd() == os.path.dirname(os.path.abspath(__file__))
assert pulumi.get_project() == "fleet"
options = pulumi.ResourceOptions(provider=aws.Provider("p", region="us-east-2"))
if stack == "central":
    bucket = aws.s3.Bucket("release", bucket="release", opts=options)
    pulumi.export("bucket", bucket.bucket)
    pulumi.export("key", pulumi.Output.secret("central-secret"))
elif stack == "broken":
    raise ValueError("this cell has no network")
else:
    central = pulumi.StackReference("central")
    for index in range(helper.COUNT):
        vpc = aws.ec2.Vpc(f"vpc-{index}", cidr_block=f"10.{index}.0.0/16",
                          opts=options)
        subnet = aws.ec2.Subnet(f"subnet-{index}", vpc_id=vpc.id, opts=options,
                                cidr_block=f"10.{index}.1.0/24")
        subnet.arn.apply(lambda arn, i=index: aws.ssm.Parameter(
            f"late-{i}", type="String", value=arn, opts=options))
    both = pulumi.Output.all(central.get_output("key"), central.get_output("bucket"))
    aws.ssm.Parameter("joined", type="String", opts=options,
                      value=both.apply("/".join))
    pulumi.export("token", pulumi.Config().require_secret("token"))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of three stacks."""
    files = {
        "Pulumi.yaml": "name: fleet\nruntime: python\nmain: stacks\n"
        "stackConfigDir: stacks\n",
        "stacks/__main__.py": PROGRAM,
        "stacks/helper.py": "COUNT = 8\n",
        "stacks/Pulumi.central.yaml": "config: {}\n",
        "stacks/Pulumi.aws.yaml": "config:\n  token:\n    secure: AAABAOxv\n",
        "stacks/Pulumi.broken.yaml": "config: {}\n",
    }
    for name, text in files.items():
        path = tmp_path / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "project"


def worker(root: Path, stack: str, out: Path, seed: str, *more: str) -> list[Any]:
    command = [sys.executable, "-m", "runfleet.rehearsal.worker", stack]
    command += ["--root", str(root), "--out", str(out), *more]
    environment = {
        **os.environ,
        "PYTHONPATH": str(COMPONENTS),
        "PYTHONHASHSEED": seed,
    }
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False
    )
    events = [json.loads(line) for line in done.stdout.splitlines()]
    expected = events[-1].get("exit_code", 0)
    assert done.returncode == expected, done.stderr
    return events


def test_records_are_byte_identical_between_processes_and_without_moto(
    project: Path, tmp_path: Path
) -> None:
    texts: set[bytes] = set()
    for seed, more in (("1", []), ("2", ["--no-emulate"])):
        out = tmp_path / f"out-{seed}"
        worker(project, "central", out, seed, "--no-emulate")
        events = worker(project, "aws", out, seed, *more)
        assert events[-1]["event"] == "done"
        texts.add((out / "aws" / "record.json").read_bytes())
    (text,) = texts
    assert b"central-secret" not in text
    record = read_record(tmp_path / "out-1" / "aws" / "record.json")
    assert record.count_by_type() == {
        "aws:ec2/subnet:Subnet": 8,
        "aws:ec2/vpc:Vpc": 8,
        "aws:ssm/parameter:Parameter": 9,
        "pulumi:providers:aws": 1,
    }
    assert record.references == ("central",)


def test_stacks_run_in_order_and_report_all_they_do(
    project: Path, tmp_path: Path
) -> None:
    events: list[Mapping[str, Any]] = []
    source = project / "stacks" / "helper.py"
    outcomes = rehearse_stacks(
        project,
        ["aws", "broken", "central", "missing"],
        tmp_path / "out",
        emulate=False,
        jobs=2,
        on_event=events.append,
        sources=[source],
    )
    assert [outcome.stack for outcome in outcomes] == [
        "aws",
        "broken",
        "central",
        "missing",
    ]
    aws, broken, central, missing = outcomes
    assert (aws.exit_code, central.exit_code) == (0, 0)
    assert aws.record == (tmp_path / "out" / "aws" / "record.json").resolve()
    record = read_record(aws.record)
    assert aws.resources == len(record.resources)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    assert record.sources["stacks/helper.py"] == digest
    assert set(record.sources) == {
        "Pulumi.yaml",
        "stacks/Pulumi.aws.yaml",
        "stacks/__main__.py",
        "stacks/helper.py",
    }
    assert broken.exit_code == 1
    assert broken.error.startswith("ValueError: this cell has no network (")
    assert "__main__.py:18)" in broken.error
    assert missing.exit_code == 3
    assert "stack missing has no settings" in missing.error
    assert events[0]["stack"] == "central"
    logged = [found["message"] for found in events if found["event"] == "log"]
    assert logged.count("a pin is unresolved") == 3
    assert any(
        found["event"] == "progress" and found["resources"] == 20 for found in events
    )
    assert not (tmp_path / "out" / "broken").exists()


def test_a_failed_stack_stops_those_that_wait_for_it(
    project: Path, tmp_path: Path
) -> None:
    outcomes = rehearse_stacks(
        project,
        ["broken", "aws"],
        tmp_path,
        emulate=False,
        after={"aws": ["broken"]},
    )
    assert [found.exit_code for found in outcomes] == [1, 1]
    assert outcomes[1].error == (
        "not rehearsed: it reads the outputs of broken, which failed"
    )


def test_a_cell_alone_says_that_central_comes_first(
    project: Path, tmp_path: Path
) -> None:
    (outcome,) = rehearse_stacks(project, ["aws"], tmp_path, emulate=False)
    assert outcome.exit_code == 3
    assert "get it with: runfleet rehearse central" in outcome.error


def test_a_circle_is_refused(project: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="wait for each other: a, b"):
        rehearse_stacks(project, ["a", "b"], tmp_path, after={"a": ["b"], "b": ["a"]})


def test_records_are_read_without_pulumi_and_cloud_sdks() -> None:
    code = (
        "import sys, runfleet.rehearsal, runfleet.rehearsal.record, "
        "runfleet.rehearsal.compare, runfleet.rehearsal.settings, "
        "runfleet.rehearsal.stacks, runfleet.rehearsal.worker;"
        "bad = {'pulumi', 'boto3', 'moto', 'google.protobuf'} & set(sys.modules);"
        "sys.exit(str(bad) if bad else 0)"
    )
    environment = {**os.environ, "PYTHONPATH": str(COMPONENTS)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
