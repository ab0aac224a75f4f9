"""Records what a component registers, and fleets small enough to read.

The monitor keeps each whole request, so that tests see inputs under their wire names,
parents, protection and providers. Outputs are the inputs plus an ARN of the form that
AWS gives the type; this does not prove that AWS accepts the inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws
from pulumi.runtime import mocks, rpc

from runfleet.catalogue.pins import Pins
from runfleet.placement.lock import make_lock
from runfleet.placement.plan import CellPlan, CentralPlan, plan_cell, plan_central
from runfleet.spec.fleet import Fleet
from runfleet.spec.load import build_fleet
from runfleet.spec.source import parse_source

ACCOUNT = "111122223333"
CENTRAL_ACCOUNT = "444455556666"


@dataclass(frozen=True)
class Registered:
    """One registration."""

    type: str
    name: str
    parent: str
    inputs: Mapping[str, Any]
    protect: bool
    retain: bool
    provider: str
    dependencies: tuple[str, ...]


class _Mocks(mocks.Mocks):
    def call(self, args: mocks.MockCallArgs) -> Any:
        raise AssertionError(f"components invoke nothing, this one {args.token}")

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        state = dict(args.inputs)
        identity = f"{args.name}-id"
        where = "us-east-1:" + ACCOUNT
        by_type = {
            "aws:s3/bucket:Bucket": lambda: f"arn:aws:s3:::{state['bucket']}",
            "aws:ecr/repository:Repository": lambda: (
                f"arn:aws:ecr:{where}:repository/{state['name']}"
            ),
            "aws:kinesis/firehoseDeliveryStream:FirehoseDeliveryStream": lambda: (
                f"arn:aws:firehose:{where}:deliverystream/{state['name']}"
            ),
            "aws:iam/role:Role": lambda: f"arn:aws:iam::{ACCOUNT}:role/{state['name']}",
            "aws:iam/policy:Policy": lambda: (
                f"arn:aws:iam::{ACCOUNT}:policy/{state['name']}"
            ),
            "aws:kms/key:Key": lambda: f"arn:aws:kms:{where}:key/{args.name}",
            "aws:sns/topic:Topic": lambda: f"arn:aws:sns:{where}:{state['name']}",
            "aws:budgets/budget:Budget": lambda: (
                f"arn:aws:budgets::{ACCOUNT}:budget/{state['name']}"
            ),
            "aws:iam/openIdConnectProvider:OpenIdConnectProvider": lambda: (
                f"arn:aws:iam::{ACCOUNT}:oidc-provider/"
                + state["url"].removeprefix("https://")
            ),
        }
        if args.typ in by_type:
            state["arn"] = by_type[args.typ]()
        if args.typ == "aws:ecr/repository:Repository":
            state["repositoryUrl"] = (
                f"{ACCOUNT}.dkr.ecr.us-east-1.amazonaws.com/{state['name']}"
            )
        if args.typ == "aws:kms/key:Key":
            state["keyId"] = args.name
        return identity, state


class _Monitor(mocks.MockMonitor):
    def __init__(self) -> None:
        super().__init__(_Mocks())
        self.found: list[Registered] = []

    def RegisterResource(self, request: Any) -> Any:
        if request.type != "pulumi:pulumi:Stack":
            self.found.append(
                Registered(
                    request.type,
                    request.name,
                    _parent(request.parent),
                    rpc.deserialize_properties(request.object),
                    request.protect,
                    request.retainOnDelete,
                    request.provider.rpartition("::")[0].rpartition("::")[2],
                    tuple(urn.rpartition("::")[2] for urn in request.dependencies),
                )
            )
        return super().RegisterResource(request)


def _parent(urn: str) -> str:
    """Return the logical name of a parent; empty for the stack."""
    head, _, name = urn.rpartition("::")
    return "" if head.endswith("::pulumi:pulumi:Stack") else name


class Recording:
    """What a program registered, by name: the order of registrations varies."""

    def __init__(self, found: list[Registered]) -> None:
        self.all = sorted(found, key=lambda registered: registered.name)

    def of(self, type: str) -> list[Registered]:
        return [r for r in self.all if r.type == type]

    def one(self, name: str) -> Registered:
        (found,) = [r for r in self.all if r.name == name]
        return found

    @property
    def names(self) -> list[str]:
        return [r.name for r in self.all]


def record(program: Callable[[pulumi.ResourceOptions], Any]) -> Recording:
    """Run a program under an explicit provider and return what it registered."""
    monitor = _Monitor()
    mocks.set_mocks(_Mocks(), "runfleet", "aws", preview=False, monitor=monitor)

    @pulumi.runtime.test
    def run() -> Any:
        provider = aws.Provider(
            "account", region="us-east-1", allowed_account_ids=[ACCOUNT]
        )
        return program(pulumi.ResourceOptions(provider=provider))

    run()
    return Recording([r for r in monitor.found if r.name != "account"])


FLEET = """
project: pytorch
owner: {team: infra}
github:
  organization: pytorch
  runner_groups: {lf: {repositories: [pytorch/pytorch]}}
  federation:
    - {repository: pytorch/pytorch, owner_id: 21003710, repository_id: 65600975}
    - {repository: pytorch/vision}
central: {provider: aws, account: "%(central)s", region: us-east-2, funder: lf}
cells:
  aws:
    provider: aws
    account: "111122223333"
    region: us-east-1
    zones: [us-east-1a, us-east-1b]
    cluster: lf-ue1
    network: {cidr: 10.12.0.0/16}
    base_nodes: {machine: m7i.4xlarge}
    funder: lf
    runner_group: lf
stores:
  cache: {keep: 30d}
  artifacts: {}
  shared: {}
  release: {}
  registry: {}
  telemetry: {}
budgets:
  lf:
    monthly: 12000.50 USD
    alerts: [50%%, 90%%]
    contact: {to: "%(contact)s"}
pools:
  c7i:
    provider: aws
    arch: amd64
    machines:
      - {machine: c7i.12xlarge, disk: 100GiB}
      - {machine: c7i.12xlarge, disk: 100GiB, release: true}
runner_classes:
  tests: &class
    role: tester
    trust: untrusted-pr
    vendor: intel
    pool: c7i
    scale: 0..5
    hardware: {arch: amd64, vcpu: 8, memory: 16GiB}
  builds: {<<: *class, role: builder, trust: trusted}
  releases: {<<: *class, role: releaser, trust: release}
  nothing: {<<: *class, grants: none}
  donated:
    role: tester
    trust: untrusted-pr
    vendor: amd
    placement: external
    federation: "ci:rocm"
    scale: 0..5
    hardware: {arch: amd64, vcpu: 8, memory: 16GiB}
    contact: {to: rocm@example.org}
"""


def fleet(
    central: str = ACCOUNT, contact: str = "ci@example.org", more: str = ""
) -> Fleet:
    """Return a small fleet with one class of every kind that matters here."""
    text = FLEET % {"central": central, "contact": contact} + more
    return build_fleet(parse_source("fleet.yaml", text)).fleet


def cell_plan(known: Fleet | None = None) -> CellPlan:
    """Return the plan of the cell ``aws``."""
    known = known or fleet()
    return plan_cell(known, make_lock(known), known.cells["aws"], Pins({}))


def central_plan(known: Fleet | None = None) -> CentralPlan:
    """Return the plan of the stack ``central``."""
    return plan_central(known or fleet(), Pins({}))
