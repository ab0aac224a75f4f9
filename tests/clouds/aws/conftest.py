"""A small fleet on AWS, and a recorder of what a component registers.

The recorder keeps each whole registration: type, name, parent, exact inputs in wire
names, protection, dependencies and provider. It answers with ids and outputs of the
form that AWS gives, so that values pass from one resource to the next; it does not
prove that AWS accepts them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s
import pytest
from pulumi.runtime import mocks, rpc

from runfleet.catalogue.pins import Pin, Pins
from runfleet.placement.lock import make_lock
from runfleet.placement.plan import CellPlan, plan_cell
from runfleet.spec.load import build_fleet
from runfleet.spec.source import parse_source

FLEET = """\
version: 1
project: demo
owner:
  team: infra
  contact: {to: infra@example.org, team: Infra team, response: 2h}
github:
  organization: demo-org
  apps:
    ci: {secret: demo/github-app, trust: untrusted-pr}
    release: {secret: demo/github-app-release, trust: release}
  runner_groups:
    ci: {repositories: [demo-org/demo], public: true}
    release:
      repositories: [demo-org/demo]
      workflows: [demo-org/demo/.github/workflows/release.yml@refs/heads/main]
      trust: release
central:
  provider: aws
  account: "444455556666"
  region: us-east-1
  funder: foundation
cells:
  aws:
    provider: aws
    account: "111122223333"
    region: us-east-1
    zones: [us-east-1a, us-east-1b]
    cluster: demo-ue1
    network: {cidr: 10.12.0.0/16}
    admins: [demo-admin]
    base_nodes: {machine: m7g.4xlarge, count: 3, disk: 100GiB}
    funder: foundation
    runner_group: ci
    release_runner_group: release
  aws-two:
    provider: aws
    account: "111122223333"
    region: us-east-1
    zones: [us-east-1a, us-east-1b, us-east-1c]
    cluster: demo-two
    network: {cidr: 10.16.0.0/20, nat: single, egress: [192.0.2.0/24, 198.51.100.0/24]}
    api_access: {mode: allow-list, allow: [192.0.2.0/24]}
    base_nodes: {machine: m7i.xlarge}
    funder: foundation
    runner_group: ci
    settings:
      karpenter_replicas: 3
      log_retention_days: 30
      startup_taints: [{key: node-init.example.org/mirror}]
      pool_limits: {c7i: {cpu: '960'}}
pools:
  c7i:
    provider: aws
    arch: amd64
    machines:
      - {machine: c7i.24xlarge, weight: 100, disk: 1200GiB}
      - {machine: c7i.12xlarge, weight: 50, disk: 20GiB, capacity: spot}
      - {machine: c7i.12xlarge, weight: 100, disk: 600GiB, release: true}
  p5:
    provider: aws
    arch: amd64
    gpu: true
    machines:
      - machine: p5.48xlarge
        weight: 100
        disk: 3000GiB
        nvme: true
        capacity: reserved
        reservations: [h100-block]
        topology_policy: single-numa-node
        topology_scope: pod
        image_selector: {family: gpu}
    consolidate_after: 1h30m
    disruption: 0.5%
runner_classes:
  small:
    role: builder
    trust: trusted
    hardware: {arch: amd64, vcpu: 8, memory: 16GiB, disk: 10GiB}
    scale: 0..10
    vendor: intel
    pool: c7i
  release:
    role: releaser
    trust: release
    hardware: {arch: amd64, vcpu: 8, memory: 16GiB, disk: 10GiB}
    scale: 0..10
    vendor: intel
    pool: c7i
  h100:
    role: tester
    trust: untrusted-pr
    hardware:
      arch: amd64
      vcpu: 16
      memory: 64GiB
      accelerator: {model: h100, count: 1}
    scale: 0..8
    vendor: nvidia
    pool: p5
reservations:
  h100-block:
    id: cr-0123456789abcdef0
    cell: aws
    machine: p5.48xlarge
    count: 2
    start: 2026-01-01
    end: 2027-01-01
    zone: us-east-1b
"""

PINS = {
    "eks-version": "1.35",
    "eks-node-release": "1.35.2-20260318",
    "eks-image-al2023": "al2023@v20260318",
    "karpenter-chart": "1.14.1",
    "eks-addon-vpc-cni": "v1.1",
    "eks-addon-kube-proxy": "v1.2",
    "eks-addon-pod-identity-agent": "v1.3",
    "eks-addon-coredns": "v1.4",
    "eks-addon-ebs-csi-driver": "v1.5",
}
"""Pins with values of their own, so that tests see which one went where."""


@dataclass(frozen=True)
class Recorded:
    """One registration.

    Attributes:
        type: Type token.
        name: Logical name.
        parent: Logical name of the parent; empty for the stack.
        inputs: Inputs in wire names.
        provider: Logical name of the explicit provider; empty for the default one.
        protect: Whether it is protected.
        retain: Whether it is kept on delete.
        after: Logical names of what it depends on.
        read: Id, when an existing thing is read and not made.
        custom: Whether it is a custom resource and not a component.
        delete_timeout: Longest delete, as written.
    """

    type: str
    name: str
    parent: str
    inputs: dict[str, Any]
    provider: str
    protect: bool
    retain: bool
    after: frozenset[str]
    read: str = ""
    custom: bool = True
    delete_timeout: str = ""


@dataclass
class Recording:
    """All registrations of one run."""

    resources: list[Recorded] = field(default_factory=list[Recorded])
    outputs: dict[str, Any] = field(default_factory=dict[str, Any])

    def __getitem__(self, name: str) -> Recorded:
        found = [resource for resource in self.resources if resource.name == name]
        assert len(found) == 1, f"{name}: {len(found)} registrations"
        return found[0]

    def of_type(self, token: str) -> list[Recorded]:
        return [resource for resource in self.resources if resource.type == token]

    def statements(self, name: str, key: str = "policy") -> list[dict[str, Any]]:
        """Return the statements of a policy document."""
        document = json.loads(self[name].inputs[key])
        assert document["Version"] == "2012-10-17"
        return document["Statement"]

    def children(self, parent: str) -> dict[str, str]:
        """Return name and type of the children of a component."""
        found = [r for r in self.resources if r.parent == parent]
        made = {resource.name: resource.type for resource in found}
        assert len(made) == len(found), "two children have one name"
        return made


_IDS = {
    "aws:ec2/vpc:Vpc": "vpc-0",
    "aws:ec2/subnet:Subnet": "subnet-0",
    "aws:ec2/securityGroup:SecurityGroup": "sg-0",
    "aws:ec2/launchTemplate:LaunchTemplate": "lt-0",
}


class _Mocks(mocks.Mocks):
    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        digits = hashlib.sha256(args.name.encode()).hexdigest()[:16]
        id_ = args.resource_id or f"{_IDS.get(args.typ, f'{args.name}:')}{digits}"
        state = dict(args.inputs)
        state.setdefault("arn", f"arn:of:{args.name}")
        state.setdefault("name", args.name)
        more: dict[str, Any] = {
            "aws:ec2/eip:Eip": {"allocationId": f"eipalloc-{digits}"},
            "aws:ec2/vpcEndpoint:VpcEndpoint": {"prefixListId": "pl-1"},
            "aws:ec2/launchTemplate:LaunchTemplate": {"latestVersion": 1},
            "aws:kms/key:Key": {"keyId": f"key-of-{args.name}"},
            "aws:eks/nodeGroup:NodeGroup": {
                "resources": [{"autoscalingGroups": [{"name": "eks-base"}]}]
            },
        }.get(args.typ, {})
        if args.typ == "aws:eks/cluster:Cluster":
            vpc_config = dict(state.get("vpcConfig") or {})
            more = {
                "endpoint": "https://api.example.org",
                "certificateAuthority": {"data": "Q0E="},
                "vpcConfig": {**vpc_config, "clusterSecurityGroupId": "sg-0ec5"},
            }
        return id_, state | more

    def call(self, args: mocks.MockCallArgs) -> dict[str, Any]:
        raise AssertionError(f"{args.token}: a room asks the cloud nothing")


class _Monitor(mocks.MockMonitor):
    def __init__(self, recording: Recording) -> None:
        super().__init__(_Mocks())
        self._recording = recording

    def RegisterResource(self, request: Any) -> Any:
        if request.type != "pulumi:pulumi:Stack":
            self._keep(request, "")
        return super().RegisterResource(request)

    def ReadResource(self, request: Any) -> Any:
        self._keep(request, request.id)
        return super().ReadResource(request)

    def _keep(self, request: Any, read: str) -> None:
        source = request.properties if read else request.object
        parent = request.parent.rpartition("::")
        stack = request.parent.endswith("pulumi:pulumi:Stack::project-stack")
        self._recording.resources.append(
            Recorded(
                type=request.type,
                name=request.name,
                parent="" if stack else parent[2],
                inputs=rpc.deserialize_properties(source),
                provider=request.provider.rpartition("::")[0].rpartition("::")[2],
                protect=bool(getattr(request, "protect", False)),
                retain=bool(getattr(request, "retainOnDelete", False)),
                after=frozenset(
                    urn.rpartition("::")[2] for urn in request.dependencies
                ),
                read=read,
                custom=bool(getattr(request, "custom", True)),
                delete_timeout="" if read else request.customTimeouts.delete,
            )
        )


Build = Callable[[pulumi.ResourceOptions, pulumi.ProviderResource], Any]


Record = Callable[[Build], Recording]


@pytest.fixture(scope="session")
def record() -> Record:
    """Run a component with an explicit AWS provider and record what it registers."""

    def run(build: Build) -> Recording:
        recording = Recording()
        mocks.set_mocks(_Mocks(), monitor=_Monitor(recording))

        @pulumi.runtime.test
        def program() -> None:
            cloud = aws.Provider("cloud", region="us-east-1")
            kubernetes = k8s.Provider("kubernetes", kubeconfig="{}")
            made = build(pulumi.ResourceOptions(providers=[cloud]), kubernetes)
            for name, value in vars(made).items():
                if isinstance(value, pulumi.Output) and name[0] != "_":
                    value.apply(
                        lambda found, name=name: recording.outputs.update({name: found})
                    )

        program()
        return recording

    return run


def id_of(prefix: str, name: str) -> str:
    """Return the id that the recorder gives a resource."""
    return f"{prefix}0{hashlib.sha256(name.encode()).hexdigest()[:16]}"


LABELS = {
    "ci_project": "demo",
    "ci_env": "prod",
    "ci_vendor": "shared",
    "ci_funder": "foundation",
    "ci_provider": "aws",
    "ci_role": "shared",
    "ci_runner_class": "shared",
    "ci_runner_label": "shared",
    "ci_trust": "shared",
    "ci_owner": "infra",
    "ci_stack": "aws",
    "ci_managed_by": "runfleet",
    "ci_cost_model": "on-demand",
}
"""The required labels of shared things in the first cell."""


def plan_of(text: str = FLEET, cell: str = "aws") -> CellPlan:
    """Return the plan of a cell of a fleet."""
    fleet = build_fleet(parse_source("fleet.yaml", text)).fleet
    pins = Pins(
        {
            name: Pin(value=value, kind="version", used_by=["aws"], source="test")
            for name, value in PINS.items()
        }
    )
    return plan_cell(fleet, make_lock(fleet), fleet.cells[cell], pins)


@pytest.fixture(scope="session")
def plan() -> CellPlan:
    """The plan of the first cell."""
    return plan_of()


@pytest.fixture(scope="session")
def second_plan() -> CellPlan:
    """The plan of the second cell, which differs in every setting."""
    return plan_of(cell="aws-two")
