"""Small fleets on IBM Cloud, and rehearsals of its rooms.

A rehearsal registers resources with the same monitor as ``runfleet rehearse`` does, so
tests see inputs under their wire names; ids and CRNs have the form of IBM Cloud's. It
does not prove that IBM Cloud accepts them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pulumi

from runfleet.catalogue.pins import Pin, Pins
from runfleet.clouds.ibm.floor import IbmFloor
from runfleet.clouds.protocols import StackSettings, StoreHandle
from runfleet.placement.lock import make_lock
from runfleet.placement.plan import (
    CellPlan,
    CentralPlan,
    plan_cell,
    plan_central,
)
from runfleet.rehearsal.record import Record, ResourceRecord
from runfleet.rehearsal.runner import rehearse
from runfleet.spec.fleet import Fleet
from runfleet.spec.load import build_fleet
from runfleet.spec.roles import StoreKind
from runfleet.spec.source import parse_source

ACCOUNT = "0123456789abcdef0123456789abcdef"
SECRETS = "11111111-2222-3333-4444-555555555555"
GROUP = "66666666-7777-8888-9999-000000000000"

FLEET = f"""\
version: 1
project: demo
owner:
  team: infra
  contact: {{to: infra@example.org, team: Infra team, response: 2h}}
github:
  organization: demo-org
  apps:
    ci: {{secret: ci-app, trust: untrusted-pr}}
    release: {{secret: release-app, trust: release}}
  runner_groups:
    ci: {{repositories: [demo-org/demo], public: true}}
    release:
      repositories: [demo-org/demo]
      workflows: [demo-org/demo/.github/workflows/release.yml@refs/heads/main]
      trust: release
central:
  provider: ibm
  account: "{ACCOUNT}"
  region: us-south
  funder: foundation
cells:
  ibm:
    provider: ibm
    account: "{ACCOUNT}"
    region: us-south
    zones: [us-south-1, us-south-2, us-south-3]
    cluster: demo-ibm
    network: {{cidr: 10.32.0.0/16}}
    base_nodes: {{machine: bx2-4x16, count: 3, disk: 100GiB}}
    funder: foundation
    runner_group: ci
    release_runner_group: release
    settings:
      secrets_manager:
        instance: {SECRETS}
        group: {GROUP}
        group_name: runfleet
pools:
  bx2:
    provider: ibm
    arch: amd64
    machines:
      - {{machine: bx2-16x64, weight: 100, disk: 250GiB}}
      - {{machine: bx2-16x64, weight: 100, disk: 100GiB, release: true}}
  l40s:
    provider: ibm
    arch: amd64
    gpu: true
    machines:
      - {{machine: gx3-24x120x1l40s, weight: 100, disk: 500GiB}}
runner_classes:
  small:
    role: builder
    trust: trusted
    hardware: {{arch: amd64, vcpu: 8, memory: 16GiB, disk: 10GiB}}
    scale: 0..10
    vendor: intel
    pool: bx2
  release:
    role: releaser
    trust: release
    hardware: {{arch: amd64, vcpu: 8, memory: 16GiB, disk: 10GiB}}
    scale: 0..4
    vendor: intel
    pool: bx2
  gpu:
    role: tester
    trust: untrusted-pr
    hardware:
      arch: amd64
      vcpu: 16
      memory: 64GiB
      accelerator: {{model: l40s, count: 1}}
    scale: 0..8
    vendor: nvidia
    pool: l40s
  idle:
    role: tester
    trust: untrusted-pr
    grants: []
    hardware: {{arch: amd64, vcpu: 8, memory: 16GiB, disk: 10GiB}}
    scale: 0..6
    vendor: intel
    pool: bx2
stores:
  cache: {{keep: 30d}}
  artifacts: {{}}
  shared: {{}}
  release: {{keep: 730d}}
  registry: {{}}
  telemetry: {{}}
budgets:
  foundation:
    monthly: 20000 USD
    alerts: [50%, 100%]
    contact: {{to: money@example.org}}
"""

PINS = {"iks-version": "1.34.2", "iks-addon-cluster-autoscaler": "2.0.1"}
"""Pins with values of their own, so that tests see which one went where."""


def pins() -> Pins:
    return Pins(
        {
            name: Pin(value=value, kind="version", used_by=["ibm"], source="test")
            for name, value in PINS.items()
        }
    )


def fleet_of(text: str = FLEET) -> Fleet:
    return build_fleet(parse_source("fleet.yaml", text)).fleet


def plan_of(text: str = FLEET, cell: str = "ibm") -> CellPlan:
    fleet = fleet_of(text)
    return plan_cell(fleet, make_lock(fleet), fleet.cells[cell], pins())


def central_of(text: str = FLEET) -> CentralPlan:
    return plan_central(fleet_of(text), pins())


def run(program: Callable[[], Any], stack: str = "ibm") -> Record:
    return rehearse(program, project="demo", stack=stack, emulate=False)


def cell_program(
    plan: CellPlan,
    settings: StackSettings | None = None,
    central: Mapping[StoreKind, StoreHandle] | None = None,
) -> Callable[[], None]:
    """Return a program that makes the seven rooms as the cell's stack does."""

    def program() -> None:
        floor = IbmFloor()
        given = settings or StackSettings()
        cloud = floor.provider("ibm-cloud", plan, given)
        options = pulumi.ResourceOptions(provider=cloud)
        network = floor.network("ibm-network", plan, options)
        cluster = floor.cluster("ibm-cluster", plan, network, given, options)
        both = pulumi.ResourceOptions(providers=[cloud, cluster.kubernetes])
        secrets = floor.secrets_reader(
            "ibm-secrets", plan, cluster, "external-secrets", "external-secrets", both
        )
        assert [type(found).__name__ for found in secrets.ready] == [
            "IamTrustedProfileLink"
        ]
        autoscaler = floor.autoscaler("ibm-autoscaler", plan, network, cluster, both)
        for pool in plan.node_pools:
            floor.node_pool(
                f"ibm-pool-{pool.name}", plan, pool, network, cluster, autoscaler, both
            )
        stores = floor.stores("ibm-stores", plan, options)
        roles: dict[str, pulumi.Output[str]] = {}
        for planned in plan.classes:
            if planned.grants:
                roles[planned.name] = floor.runner_identity(
                    f"ibm-identity-{planned.name}",
                    plan,
                    planned,
                    cluster,
                    stores.handles,
                    central or {},
                    options,
                ).identity_id
        floor.budget("ibm-budget", plan, options)
        pulumi.export("stores", exported(stores.handles))
        pulumi.export("roles", roles)
        pulumi.export("kubeconfig", cluster.kubeconfig)
        pulumi.export("oidc_issuer", cluster.oidc_issuer)

    return program


def central_program(
    plan: CentralPlan, settings: StackSettings | None = None
) -> Callable[[], None]:
    """Return a program that makes what exists once as the stack ``central`` does."""

    def program() -> None:
        floor = IbmFloor()
        cloud = floor.provider("central-cloud", plan, settings or StackSettings())
        options = pulumi.ResourceOptions(provider=cloud)
        stores = floor.stores("central-stores", plan, options)
        promoter = floor.promoter("central-promoter", plan, stores.handles, options)
        floor.budget("central-budget", plan, options)
        pulumi.export("stores", exported(stores.handles))
        pulumi.export("promoter", promoter)

    return program


def exported(handles: Mapping[StoreKind, StoreHandle]) -> dict[str, Any]:
    return {str(kind): handle.exported() for kind, handle in handles.items()}


def imported(record: Record) -> dict[StoreKind, StoreHandle]:
    """Return the central stores as a cell sees them: another stack's outputs."""
    return {
        StoreKind(kind): StoreHandle(
            StoreKind(kind),
            "central",  # type: ignore[arg-type]
            **{
                name: pulumi.Output.from_input(value)
                for name, value in found.items()
                if name not in ("kind", "scope", "extra")
            },
            extra={
                name: pulumi.Output.from_input(value)
                for name, value in found.get("extra", {}).items()
            },
        )
        for kind, found in record.outputs["stores"].items()
    }


def one(record: Record, name: str) -> ResourceRecord:
    found = [resource for resource in record.resources if resource.name == name]
    assert len(found) == 1, f"{name}: {len(found)} registrations"
    return found[0]


def of_kind(record: Record, kind: str) -> list[ResourceRecord]:
    found = [r for r in record.resources if r.type.endswith(f":{kind}") and r.custom]
    assert found, f"no {kind}: the test would prove nothing"
    return found
