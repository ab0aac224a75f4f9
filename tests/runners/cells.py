"""A small cell that uses every part of the runner side, and how to record it."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from runfleet.catalogue.pins import Pin, Pins
from runfleet.clouds.protocols import AppSecretSource
from runfleet.placement import CellPlan, PlannedClass, make_lock, plan_cell
from runfleet.runners.isolation import EgressException
from runfleet.runners.runners import Runners, RunnersArgs
from runfleet.spec import Fleet
from runfleet.spec.load import build_fleet
from runfleet.spec.source import parse_source

FLEET = """\
version: 1
project: demo
owner: {team: infra, contact: {to: infra@example.org}}
github:
  organization: demo-org
  apps:
    jobs: {secret: app-jobs, trust: untrusted-pr}
    release: {secret: app-release, trust: release}
  runner_groups:
    ci: {repositories: [demo-org/demo, demo-org/other], public: true}
    release:
      repositories: [demo-org/demo]
      workflows: [demo-org/demo/.github/workflows/release.yml@refs/heads/main]
      trust: release
    closed: {repositories: [demo-org/demo], trust: release}
  federation:
    - {repository: demo-org/demo, owner_id: 7, repository_id: 65600975}
central: {provider: aws, account: "111122223333", region: us-east-1, funder: f}
cells:
  aws:
    provider: aws
    account: "111122223333"
    region: us-east-1
    zones: [us-east-1a, us-east-1b]
    cluster: demo
    network: {cidr: 10.12.0.0/16, services: 172.20.0.0/16}
    base_nodes: {machine: m7i.4xlarge}
    runner_pods: {pool: runners}
    funder: f
    label_prefix: lf-
    runner_group: ci
    release_runner_group: release
pools:
  runners:
    provider: aws
    arch: arm64
    machines: [{machine: m8g.8xlarge, disk: 600GiB}]
  c7i:
    provider: aws
    arch: amd64
    machines:
      - {machine: c7i.12xlarge, disk: 900GiB, weight: 100}
      - {machine: c7i.24xlarge, disk: 1800GiB, weight: 80}
      - {machine: c7i.12xlarge, disk: 900GiB, release: true}
  g6:
    provider: aws
    arch: amd64
    gpu: true
    machines: [{machine: g6.12xlarge, disk: 600GiB}]
tenants:
  vision: {quota: {x86-8-16: 10, accelerator/l4: 5}}
runner_classes:
  x86-8-16:
    role: tester
    trust: untrusted-pr
    vendor: intel
    hardware: {arch: amd64, vcpu: 8, memory: 16GiB, disk: 150GiB}
    scale: 0..40
    pool: c7i
    environment: {PYTORCH_TEST: "1"}
  x86-plain:
    role: tester
    trust: untrusted-pr
    grants: none
    vendor: intel
    hardware: {arch: amd64, vcpu: 0.25, memory: 512MiB, disk: 5GiB}
    scale: {min: 1}
    pool: c7i
  l4:
    role: tester
    trust: untrusted-pr
    vendor: nvidia
    tenant: vision
    hardware:
      arch: amd64
      vcpu: 11.5
      memory: 40GiB
      disk: 150GiB
      accelerator: {model: l4, count: 2}
    scale: 2..12
    pool: g6
  l4-4:
    role: tester
    trust: untrusted-pr
    vendor: nvidia
    tenant: vision
    hardware:
      arch: amd64
      vcpu: 45
      memory: 160GiB
      disk: 150GiB
      accelerator: {model: l4, count: 4}
    scale: 0..4
    pool: g6
  rel-x86:
    role: releaser
    trust: release
    vendor: intel
    hardware: {arch: amd64, vcpu: 44, memory: 80GiB, disk: 600GiB}
    scale: 0..5
    pool: c7i
"""

DIGEST = "sha256:" + "a" * 64
IMAGE = f"ghcr.io/actions/actions-runner@{DIGEST}"

PINS: Mapping[str, str] = {
    "arc-version": "0.14.2",
    "arc-controller-image": "unresolved",
    "arc-runner-image": DIGEST,
    "external-secrets-chart": "1.2.3",
    "nvidia-device-plugin-chart": "0.19.0",
}

EXCEPTION = EgressException(
    name="package mirror",
    cidr="10.50.0.0/24",
    ports=(8080,),
    part="job",
    reason="builds download from it",
    owner="infra",
    expires=dt.date(2027, 1, 31),
    classes=frozenset({"x86-8-16"}),
)


@dataclass(frozen=True)
class Identity:
    """A cloud identity as the runner side sees it."""

    identity_id: pulumi.Output[str]
    service_account_annotations: Mapping[str, pulumi.Input[str]]
    pod_labels: Mapping[str, pulumi.Input[str]]
    endpoints: tuple[str, ...] = ("169.254.170.23:80", "[fd00:ec2::23]:80")


@dataclass(frozen=True)
class Made:
    """One resource that a program registered, with inputs as on the wire."""

    type: str
    name: str
    inputs: dict[str, Any]


@dataclass
class Recording(pulumi.runtime.Mocks):
    """Keeps every registration; answers with the inputs."""

    made: list[Made] = field(default_factory=list)

    def new_resource(self, args: pulumi.runtime.MockResourceArgs):
        self.made.append(Made(args.typ, args.name, dict(args.inputs)))
        return f"{args.name}-id", dict(args.inputs)

    def call(self, args: pulumi.runtime.MockCallArgs):
        raise AssertionError(f"a program calls {args.token}")


@dataclass(frozen=True)
class Cluster:
    """What a program made, easy to look up."""

    made: list[Made]

    def of(self, kind: str) -> list[Made]:
        return [m for m in self.made if m.type.rpartition(":")[2] == kind]

    def one(self, kind: str, name: str, namespace: str | None = None) -> dict[str, Any]:
        found = [
            m.inputs
            for m in self.of(kind)
            if m.inputs["metadata"]["name"] == name
            and m.inputs["metadata"].get("namespace") == namespace
        ]
        assert len(found) == 1, f"{len(found)} {kind} {namespace}/{name}"
        return found[0]

    def release(self, name: str) -> dict[str, Any]:
        (found,) = [m.inputs for m in self.of("Release") if m.inputs["name"] == name]
        return found

    def template(self, planned: PlannedClass) -> dict[str, Any]:
        data = self.one("ConfigMap", "hook-template", planned.runner_namespace)
        return json.loads(data["data"]["job-pod.yaml"])


def fleet_of(text: str = FLEET) -> Fleet:
    return build_fleet(parse_source("fleet.yaml", text)).fleet


def pins_of(**values: str) -> Pins:
    named = {key.replace("_", "-"): value for key, value in values.items()}
    return Pins(
        {
            name: Pin(value=value, kind="version", used_by=["all"], source="test")
            for name, value in (dict(PINS) | named).items()
        }
    )


def plan_of(fleet: Fleet, cell: str = "aws") -> CellPlan:
    return plan_cell(fleet, make_lock(fleet), fleet.cells[cell], pins_of())


def record(program: Callable[[], None]) -> Cluster:
    recording = Recording()
    pulumi.runtime.set_mocks(recording)
    pulumi.runtime.test(program)()
    return Cluster(recording.made)


def app_source(planned: PlannedClass) -> AppSecretSource:
    key = "app-release" if planned.runner_class.release else "app-jobs"
    settings = {"service": "SecretsManager", "region": "us-east-1"}
    return AppSecretSource("aws", settings, key)


def record_runners(plan: CellPlan, **more: Any) -> Cluster:
    """Record the runner side of a plan; classes with grants get an identity."""

    def program() -> None:
        provider = kubernetes.Provider("cluster", kubeconfig="{}")
        identities = {
            p.name: Identity(
                pulumi.Output.from_input("role"),
                {"example.com/identity": f"role-of-{p.name}"},
                {"example.com/use-identity": "true"},
            )
            if p.grants
            else None
            for p in plan.classes
        }
        arguments = {
            "plan": plan,
            "identities": identities,
            "app_secrets": {p.name: app_source(p) for p in plan.classes},
            "exceptions": [EXCEPTION],
            "registries": ["111122223333.dkr.ecr.us-east-1.amazonaws.com"],
            **more,
        }
        Runners(
            "aws-runners",
            RunnersArgs(**arguments),
            pulumi.ResourceOptions(provider=provider),
        )

    return record(program)


def class_of(plan: CellPlan, name: str) -> PlannedClass:
    return next(p for p in plan.classes if p.name == name)
