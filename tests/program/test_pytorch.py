"""The PyTorch fleet of this checkout, rehearsed whole: what is reviewed is deployed."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from contract.records import texts
from program.golden import FLEET, STACKS, read_golden, rehearse_pytorch, summary
from runfleet.placement.lock import LOCK_NAME, Lock, read_lock
from runfleet.rehearsal.record import Record, dump_record
from runfleet.review.access import access_matrix
from runfleet.spec import Fleet, load_fleet

pytestmark = pytest.mark.slow

CELLS = ("aws", "aws-ue2")
SCALE_SET = "kubernetes:actions.github.com/v1alpha1:AutoscalingRunnerSet"
CONFIG_MAP = "kubernetes:core/v1:ConfigMap"
NODE_POOL = "kubernetes:karpenter.sh/v1:NodePool"

SECRETS = {
    "a private key": re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
    "an AWS key": re.compile(r"\b(AKIA|ASIA)[0-9A-Z]{16}\b"),
    "a GitHub token": re.compile(r"\b(gh[pousr]_|github_pat_)[A-Za-z0-9_]{20,}"),
    "a bearer token": re.compile(r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\."),
    "a key of a kubeconfig": re.compile(r'"(client-key-data|token|password)": *"[^"]'),
    "a password in an address": re.compile(r"\b[a-z]+://[^/\s:@]+:[^/\s:@]+@"),
}


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pytorch")


@pytest.fixture(scope="module")
def records(out: Path) -> dict[str, Record]:
    return rehearse_pytorch(out, emulate=True)


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    return load_fleet(FLEET).fleet


@pytest.fixture(scope="module")
def lock(fleet: Fleet) -> Lock:
    return read_lock(FLEET.with_name(LOCK_NAME), fleet)


def test_resources_by_type_and_stack(records: Mapping[str, Record]) -> None:
    """A difference is a finding or a decision: see :mod:`program.golden`."""
    assert summary(records) == read_golden()


def test_nothing_is_unknown_before_the_deployment(
    records: Mapping[str, Record],
) -> None:
    assert [u for record in records.values() for u in record.unknowns()] == []


@pytest.mark.parametrize("cell", CELLS)
def test_each_class_is_where_the_lock_says_and_once(
    records: Mapping[str, Record], fleet: Fleet, lock: Lock, cell: str
) -> None:
    deployed = Counter(
        s.inputs["spec"]["runnerScaleSetName"] for s in records[cell].by_type(SCALE_SET)
    )
    wanted = [
        fleet.cells[cell].runner_label(placed.runner_class)
        for placed in lock.placed
        if placed.cell == cell
    ]
    assert len(wanted) == 44
    assert deployed == Counter(wanted)
    assert set(deployed.values()) == {1}


def test_no_label_is_registered_twice(records: Mapping[str, Record]) -> None:
    """Two scale sets of a runner group with one name would share its jobs."""
    named = Counter(
        (s.inputs["spec"]["runnerGroup"], s.inputs["spec"]["runnerScaleSetName"])
        for cell in CELLS
        for s in records[cell].by_type(SCALE_SET)
    )
    assert len(named) == 88
    assert set(named.values()) == {1}


@dataclass(frozen=True)
class Pod:
    """Where a pod may run.

    Attributes:
        runner_class: Class that it is for.
        selector: Labels that its node must have.
        tolerations: Taints that it bears.
    """

    runner_class: str
    selector: Mapping[str, str]
    tolerations: Sequence[Mapping[str, str]]

    def fits(self, pool: Mapping[str, Any]) -> bool:
        """Say whether the scheduler puts it on a node of a Karpenter node pool.

        Source: Kubernetes documentation, "Assigning Pods to Nodes" and "Taints and
        Tolerations".
        """
        template = pool["spec"]["template"]
        labels = template["metadata"]["labels"]
        return all(labels.get(k) == v for k, v in self.selector.items()) and all(
            any(_tolerates(toleration, taint) for toleration in self.tolerations)
            for taint in template["spec"]["taints"]
            if taint["effect"] in ("NoSchedule", "NoExecute")
        )


def _tolerates(toleration: Mapping[str, str], taint: Mapping[str, str]) -> bool:
    return (
        toleration.get("effect", taint["effect"]) == taint["effect"]
        and toleration.get("key", taint["key"]) == taint["key"]
        and (
            toleration.get("operator", "Equal") == "Exists"
            or toleration.get("value") == taint["value"]
        )
    )


def job_pods(record: Record) -> Iterator[Pod]:
    """Yield the job pods that the container hooks make of their template."""
    for found in record.by_type(CONFIG_MAP):
        for name, text in found.inputs["data"].items():
            if name == "job-pod.yaml":
                spec = json.loads(text)["spec"]
                labels = found.inputs["metadata"]["labels"]
                yield Pod(
                    labels["ci_runner_class"], spec["nodeSelector"], spec["tolerations"]
                )


def runner_pods(record: Record) -> Iterator[Pod]:
    """Yield the runner pods of the scale sets."""
    for found in record.by_type(SCALE_SET):
        spec = found.inputs["spec"]["template"]["spec"]
        labels = found.inputs["metadata"]["labels"]
        yield Pod(labels["ci_runner_class"], spec["nodeSelector"], spec["tolerations"])


def fitting(pod: Pod, record: Record) -> dict[str, set[str]]:
    """Return the machines that take a pod, by pool."""
    found: dict[str, set[str]] = {}
    for pool in record.by_type(NODE_POOL):
        if pod.fits(pool.inputs):
            labels = pool.inputs["spec"]["template"]["metadata"]["labels"]
            found.setdefault(labels["node-fleet"], set()).add(labels["instance-type"])
    return found


@pytest.mark.parametrize("cell", CELLS)
def test_jobs_match_exactly_the_pool_of_the_lock(
    records: Mapping[str, Record], lock: Lock, cell: str
) -> None:
    wanted = {
        placed.runner_class: {placed.pool: {rung.machine for rung in placed.rungs}}
        for placed in lock.placed
        if placed.cell == cell
    }
    record = records[cell]
    found = {pod.runner_class: fitting(pod, record) for pod in job_pods(record)}
    assert found == wanted


@pytest.mark.parametrize("cell", CELLS)
def test_runners_match_exactly_one_pool(
    records: Mapping[str, Record], fleet: Fleet, lock: Lock, cell: str
) -> None:
    pods = list(runner_pods(records[cell]))
    placed = {p.runner_class: p for p in lock.placed if p.cell == cell}
    assert sorted(pod.runner_class for pod in pods) == sorted(placed)
    for pod in pods:
        (pool,) = fitting(pod, records[cell])
        if fleet.runner_classes[pod.runner_class].release:
            assert pool == placed[pod.runner_class].pool
        else:
            assert pool == fleet.cells[cell].runner_pods.pool


def test_a_wider_selector_would_be_noticed(records: Mapping[str, Record]) -> None:
    pod = next(job_pods(records["aws"]))
    wide = replace(pod, selector={}, tolerations=[{"operator": "Exists"}])
    assert len(fitting(pod, records["aws"])) == 1
    assert len(fitting(wide, records["aws"])) == 29, "every pool that a class uses"


def secrets_in(text: str) -> list[str]:
    """Return the kinds of secrets that stand in a text."""
    return [kind for kind, pattern in SECRETS.items() if pattern.search(text)]


@pytest.mark.parametrize("stack", STACKS)
def test_no_secret_stands_in_clear(records: Mapping[str, Record], stack: str) -> None:
    record = records[stack]
    assert secrets_in(dump_record(record)) == []
    found = [
        (resource.urn, path, kinds)
        for resource in record.resources
        for path, text in (*texts(resource.inputs), *texts(resource.outputs))
        if (kinds := secrets_in(text))
    ]
    assert found == []
    assert record.by_type("kubernetes:core/v1:Secret") == ()


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("a private key", "x-----BEGIN RSA PRIVATE KEY-----\nabc"),
        ("an AWS key", "key AKIA" + "ABCDEFGHIJKLMNOP"),
        ("a GitHub token", "ghs_" + "a" * 36),
        ("a bearer token", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc"),
        ("a key of a kubeconfig", '{"user": {"token": "abc"}}'),
        ("a password in an address", "https://user:word@example.org/x"),
    ],
)
def test_a_secret_would_be_noticed(kind: str, text: str) -> None:
    assert secrets_in(text) == [kind]


def test_policies_allow_exactly_what_the_grants_say(
    records: Mapping[str, Record], fleet: Fleet
) -> None:
    matrix = access_matrix(fleet, records, FLEET)
    assert [difference.describe() for difference in matrix.differences] == []
    shown = {(row.stack, row.runner_class) for row in matrix.rows}
    assert {stack for stack, _ in shown} == set(STACKS)
    assert sum(stack in CELLS for stack, _ in shown) == 88


def test_the_same_bytes_without_emulators(
    records: Mapping[str, Record], out: Path, tmp_path: Path
) -> None:
    rehearse_pytorch(tmp_path, emulate=False)
    for stack in records:
        first = (out / stack / "record.json").read_bytes()
        assert (tmp_path / stack / "record.json").read_bytes() == first, stack
