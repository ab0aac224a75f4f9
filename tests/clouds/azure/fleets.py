"""Small fleets on Azure, and what a whole stack of them registers.

A cell is built as the program builds it (``runfleet.program``), under the rehearsal,
which runs transforms as the engine does; so the tests see inputs under their wire names
with the tags on them. It does not prove that Azure accepts them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pulumi

from runfleet.catalogue.pins import Pin, Pins
from runfleet.clouds.azure.floor import AzureFloor
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
from runfleet.spec.roles import Scope, StoreKind
from runfleet.spec.source import parse_source

SUBSCRIPTION = "aaaaaaaa-1111-2222-3333-444444444444"
CENTRAL_SUBSCRIPTION = "bbbbbbbb-1111-2222-3333-444444444444"
TENANT = "cccccccc-1111-2222-3333-444444444444"
DEPLOYER = "dddddddd-1111-2222-3333-444444444444"
ADMINS = "eeeeeeee-1111-2222-3333-444444444444"
GROUP = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/demo-eus"

FLEET = f"""\
project: demo
owner: {{team: infra}}
github:
  organization: demo-org
  apps:
    ci: {{secret: demo/github-app, trust: untrusted-pr}}
    release: {{secret: demo/github-app-release, trust: release}}
  runner_groups:
    ci: {{repositories: [demo-org/demo], public: true}}
    release:
      repositories: [demo-org/demo]
      workflows: [demo-org/demo/.github/workflows/release.yml@refs/heads/main]
      trust: release
  federation:
    - {{repository: demo-org/demo, owner_id: 11, repository_id: 22}}
    - {{repository: demo-org/vision}}
central:
  provider: %(central)s
  account: {CENTRAL_SUBSCRIPTION}
  account_number: {TENANT}
  region: eastus2
  funder: foundation
cells:
  azure:
    provider: azure
    account: {SUBSCRIPTION}
    account_number: {TENANT}
    region: eastus
    zones: ["1", "2"]
    cluster: demo-eus
    network: {{cidr: 10.20.0.0/16}}
    admins: [{ADMINS}]
    base_nodes: {{machine: Standard_D4ds_v6, count: 3, disk: 100GiB}}
    funder: foundation
    runner_group: ci
    release_runner_group: release
    settings: {{budget_start: 2026-11-01, deployers: [{DEPLOYER}]}}
  azure-gpu:
    provider: azure
    account: {SUBSCRIPTION}
    account_number: {TENANT}
    region: eastus2
    zones: [eastus2-1, eastus2-2, eastus2-3]
    cluster: demo-gpu
    network:
      cidr: 10.24.0.0/20
      pods: 10.128.0.0/12
      services: 10.25.0.0/16
      nat: single
      egress: [192.0.2.0/24, 198.51.100.0/24]
    api_access: {{mode: allow-list, allow: [192.0.2.0/24]}}
    base_nodes: {{machine: Standard_D4ds_v6}}
    funder: foundation
    runner_group: ci
    settings:
      log_retention_days: 90
      node_image: AzureLinux
      redundancy: LRS
      kubelogin: workloadidentity
      pool_limits: {{mi300x: 2}}
stores:
  cache: {{keep: 30d}}
  artifacts: {{}}
  shared: {{}}
  release: {{}}
  registry: {{}}
  telemetry: {{}}
budgets:
  foundation:
    monthly: 12000.50 USD
    alerts: [50%%, 90%%]
    contact: {{to: "%(contact)s"}}
pools:
  das:
    provider: azure
    arch: amd64
    exclude_regions: [eastus2]
    machines:
      - {{machine: Standard_D32as_v6, weight: 100, disk: 600GiB}}
      - {{machine: Standard_D16as_v6, weight: 50, disk: 20GiB, capacity: spot}}
      - {{machine: Standard_D16as_v6, weight: 100, disk: 300GiB, release: true}}
  h100:
    provider: azure
    arch: amd64
    gpu: true
    exclude_regions: [eastus]
    machines:
      - machine: Standard_NC40ads_H100_v5
        weight: 80
        disk: 1000GiB
        capacity: reserved
        reservations: [h100]
        topology_policy: single-numa-node
    consolidate_after: 1h30m
  mi300x:
    provider: azure
    arch: amd64
    gpu: true
    exclude_regions: [eastus]
    machines:
      - {{machine: Standard_ND96isr_MI300X_v5, weight: 90, disk: 3000GiB, nvme: true}}
  dps:
    provider: azure
    arch: arm64
    exclude_regions: [eastus]
    machines: [{{machine: Standard_D32ps_v6, disk: 300GiB}}]
runner_classes:
  tests: &class
    role: tester
    trust: untrusted-pr
    vendor: amd
    pool: das
    scale: 0..5
    hardware: {{arch: amd64, vcpu: 8, memory: 16GiB, disk: 10GiB}}
  builds: {{<<: *class, role: builder, trust: trusted}}
  nightlies: {{<<: *class, role: publisher, trust: trusted}}
  releases: {{<<: *class, role: releaser, trust: release}}
  nothing: {{<<: *class, grants: none}}
  arm: {{<<: *class, pool: dps, hardware: {{arch: arm64, vcpu: 8, memory: 16GiB}}}}
  h100:
    <<: *class
    vendor: nvidia
    pool: h100
    hardware:
      arch: amd64
      vcpu: 8
      memory: 16GiB
      accelerator: {{model: h100, count: 1}}
  mi300x:
    <<: *class
    pool: mi300x
    scale: 0..40
    hardware:
      arch: amd64
      vcpu: 8
      memory: 16GiB
      accelerator: {{model: mi300x, count: 1, vendor: amd}}
  donated:
    role: tester
    trust: untrusted-pr
    vendor: amd
    placement: external
    federation: "ci:rocm"
    scale: 0..5
    hardware: {{arch: amd64, vcpu: 8, memory: 16GiB}}
    contact: {{to: rocm@example.org}}
reservations:
  h100:
    id: {GROUP}/providers/Microsoft.Compute/capacityReservationGroups/h100
    cell: azure-gpu
    machine: Standard_NC40ads_H100_v5
    count: 2
    start: 2026-01-01
"""

PINS = Pins(
    {
        name: Pin(value=value, kind="version", used_by=["azure"], source="test")
        for name, value in {"aks-version": "1.33"}.items()
    }
)

Build = Callable[[pulumi.ResourceOptions, pulumi.ProviderResource], Any]


def fleet(
    central: str = "azure", contact: str = "ci@example.org", text: str = FLEET
) -> Fleet:
    """Return a small fleet with one class and one shape of every kind that matters."""
    filled = text % {"central": central, "contact": contact}
    return build_fleet(parse_source("fleet.yaml", filled)).fleet


def cell_plan(known: Fleet | None = None, cell: str = "azure") -> CellPlan:
    """Return the plan of a cell."""
    known = known or fleet()
    return plan_cell(known, make_lock(known), known.cells[cell], PINS)


def central_plan(known: Fleet | None = None) -> CentralPlan:
    """Return the plan of the stack ``central``."""
    return plan_central(known or fleet(), PINS)


@dataclass(frozen=True)
class Recording:
    """What a stack registered."""

    record: Record

    def __getitem__(self, name: str) -> ResourceRecord:
        found = [r for r in self.record.resources if r.name == name]
        assert len(found) == 1, f"{name}: {len(found)} registrations"
        return found[0]

    def inputs(self, name: str) -> dict[str, Any]:
        return dict(self[name].inputs)

    def of(self, kind: str) -> list[ResourceRecord]:
        return [r for r in self.record.resources if r.type == f"azure-native:{kind}"]

    @property
    def native(self) -> list[ResourceRecord]:
        return [r for r in self.record.resources if r.type.startswith("azure-native:")]

    def children(self, parent: str) -> dict[str, str]:
        urn = self[parent].urn
        return {r.name: r.type for r in self.record.resources if r.parent == urn}

    def after(self, name: str) -> set[str]:
        return {urn.rpartition("::")[2] for urn in self[name].dependencies}


def run(program: Callable[[], Any], stack: str = "azure") -> Recording:
    """Run a program under the rehearsal and return what it registered."""
    return Recording(
        rehearse(program, project="demo", stack=stack, emulate=False, preview=False)
    )


def build_cell(
    plan: CellPlan,
    settings: StackSettings | None = None,
    central: Mapping[StoreKind, StoreHandle] | None = None,
) -> None:
    """Make all rooms of a cell, in the program's order."""
    made, given = AzureFloor(), settings or StackSettings()
    provider = made.provider(f"{plan.stack}-cloud", plan, given)
    options = pulumi.ResourceOptions(provider=provider)
    name = plan.stack
    network = made.network(f"{name}-network", plan, options)
    cluster = made.cluster(f"{name}-cluster", plan, network, given, options)
    autoscaler = made.autoscaler(f"{name}-autoscaler", plan, network, cluster, options)
    for pool in plan.node_pools:
        made.node_pool(
            f"{name}-pool-{pool.name}",
            plan,
            pool,
            network,
            cluster,
            autoscaler,
            options,
        )
    stores = made.stores(f"{name}-stores", plan, options)
    known = central_handles(plan) if central is None else central
    for planned in plan.classes:
        if planned.grants:
            identity = made.runner_identity(
                f"{name}-identity-{planned.name}",
                plan,
                planned,
                cluster,
                stores.handles,
                known,
                options,
            )
            pulumi.export(
                f"identity:{planned.name}",
                {
                    "id": identity.identity_id,
                    "annotations": dict(identity.service_account_annotations),
                    "pod_labels": dict(identity.pod_labels),
                    "endpoints": list(identity.endpoints),
                },
            )
    made.budget(f"{name}-budget", plan, options)
    made.secrets_reader(
        f"{name}-secrets", plan, cluster, "external-secrets", "eso", options
    )
    pulumi.export("kubeconfig", cluster.kubeconfig)
    pulumi.export("endpoint", cluster.endpoint)
    pulumi.export("stores", {str(k): h.exported() for k, h in stores.handles.items()})
    pulumi.export("service_ranges", list(network.service_ranges))
    pulumi.export("api_ranges", list(network.api_ranges))


def build_central(plan: CentralPlan) -> None:
    """Make all that the stack ``central`` has, in the program's order."""
    made, given = AzureFloor(), StackSettings()
    provider = made.provider("central-cloud", plan, given)
    options = pulumi.ResourceOptions(provider=provider)
    stores = made.stores("central-stores", plan, options)
    promoter = made.promoter("central-promoter", plan, stores.handles, options)
    federated = {
        each.name: made.federated_identity(
            f"central-federated-{each.name}", plan, each, stores.handles, options
        )
        for each in plan.external
        if each.federation
    }
    made.budget("central-budget", plan, options)
    pulumi.export("account", dict(made.account("account", plan, given, options)))
    pulumi.export("promoter", promoter)
    pulumi.export("federated", federated)
    pulumi.export("stores", {str(k): h.exported() for k, h in stores.handles.items()})


def central_record(known: Fleet | None = None) -> Recording:
    """Return the record of the stack ``central``."""
    plan = central_plan(known)
    return run(lambda: build_central(plan), "central")


def central_handles(plan: CellPlan) -> dict[StoreKind, StoreHandle]:
    """Return the central stores as the program reads them from another stack."""
    place = plan.fleet.central
    if place is None or str(place.provider) != "azure":
        return {}
    exported = central_record(plan.fleet).record.outputs["stores"]
    return {
        store.kind: StoreHandle.imported(
            store.kind, Scope.CENTRAL, pulumi.Output.from_input(exported[store.name])
        )
        for store in plan.central_stores
    }


def cell_record(
    known: Fleet | None = None,
    cell: str = "azure",
    settings: StackSettings | None = None,
) -> Recording:
    """Return the record of a cell."""
    plan = cell_plan(known, cell)
    central = central_handles_of(plan)
    return run(lambda: build_cell(plan, settings, central()), cell)


def central_handles_of(plan: CellPlan) -> Callable[[], dict[StoreKind, StoreHandle]]:
    """Rehearse the stack ``central`` now; make its handles when they are needed."""
    place = plan.fleet.central
    if place is None or str(place.provider) != "azure":
        return dict[StoreKind, StoreHandle]
    exported = central_record(plan.fleet).record.outputs["stores"]
    return lambda: {
        store.kind: StoreHandle.imported(
            store.kind, Scope.CENTRAL, pulumi.Output.from_input(exported[store.name])
        )
        for store in plan.central_stores
    }
