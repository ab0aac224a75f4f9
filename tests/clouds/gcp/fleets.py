"""A fleet on Google Cloud with one of everything, and a recorder of programs.

The program runs under the recording monitor of a rehearsal, so inputs, parents,
protection, providers and dependencies are exactly what the engine would get. It does
not prove that Google accepts them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pulumi

from runfleet.catalogue.pins import Pins, load_pins
from runfleet.clouds.gcp.floor import GcpFloor
from runfleet.clouds.protocols import StackSettings, StoreHandle
from runfleet.placement.lock import make_lock
from runfleet.placement.plan import CellPlan, CentralPlan, plan_cell, plan_central
from runfleet.rehearsal.record import Record, ResourceRecord
from runfleet.rehearsal.runner import rehearse
from runfleet.spec.fleet import Fleet
from runfleet.spec.load import build_fleet
from runfleet.spec.roles import Scope, StoreKind
from runfleet.spec.source import parse_source

PROJECT = "demo-ci"
NUMBER = "123456789012"
CENTRAL_PROJECT = "demo-central"
CENTRAL_NUMBER = "210987654321"

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
  federation:
    - {repository: demo-org/demo, owner_id: 11, repository_id: 22}
    - {repository: demo-org/vision}
central:
  provider: gcp
  account: demo-central
  account_number: "210987654321"
  region: us-east1
  funder: foundation
stores:
  cache: {keep: 30d}
  artifacts: {}
  shared: {}
  release: {}
  registry: {}
  telemetry: {}
budgets:
  foundation:
    monthly: 12000.50 USD
    alerts: [50%, 90%]
    contact: {to: ci@example.org}
cells:
  gcp:
    provider: gcp
    account: demo-ci
    account_number: "123456789012"
    region: us-central1
    zones: [us-central1-a, us-central1-b]
    cluster: demo-uc1
    network: {cidr: 10.20.0.0/16}
    admins: ["group:infra@example.org", "user:ann@example.org"]
    base_nodes: {machine: e2-standard-4, count: 3, disk: 100GiB}
    funder: foundation
    runner_group: ci
    release_runner_group: release
    settings:
      admin_groups_domain: example.org
      billing_account: 01AB23-45CD67-89EF01
      pools:
        n2: {max_nodes: 40}
        flex: {flex_start: true, queued: true, longest_run: 24h, gpu_driver: LATEST}
        tpu: {tpu_topology: 4x4}
  gcp-two:
    provider: gcp
    account: demo-ci
    account_number: "123456789012"
    region: us-east1
    zones: [us-east1-b, us-east1-c]
    cluster: demo-ue1
    network:
      cidr: 10.24.0.0/20
      pods: 10.64.0.0/14
      services: 10.25.0.0/20
      egress: [192.0.2.0/24, 198.51.100.0/24]
    api_access: {mode: allow-list, allow: [192.0.2.0/24]}
    base_nodes: {machine: n2-standard-4}
    funder: foundation
    runner_group: ci
    settings:
      release_channel: STABLE
      organization_policies: true
      auto_provisioning: {cpu: 1000, memory: 4000, nvidia-l4: 8}
pools:
  n2:
    provider: gcp
    arch: amd64
    machines:
      - {machine: n2-standard-48, weight: 100, disk: 600GiB}
      - {machine: n2-standard-16, weight: 50, disk: 200GiB, capacity: spot}
      - {machine: n2-standard-48, weight: 100, disk: 600GiB, release: true}
  c4a:
    provider: gcp
    arch: arm64
    machines: [{machine: c4a-standard-16, disk: 100GiB}]
    exclude_regions: [us-east1]
  h100:
    provider: gcp
    arch: amd64
    gpu: true
    machines:
      - machine: a3-highgpu-8g
        weight: 100
        disk: 1000GiB
        nvme: true
        capacity: reserved
        reservations: [h100-block]
        topology_policy: single-numa-node
        topology_scope: pod
    consolidate_after: 20m
    exclude_regions: [us-east1]
  flex:
    provider: gcp
    arch: amd64
    gpu: true
    machines: [{machine: g2-standard-48, disk: 300GiB}]
    exclude_regions: [us-east1]
  tpu:
    provider: gcp
    arch: amd64
    gpu: true
    machines: [{machine: ct6e-standard-4t, disk: 100GiB}]
    exclude_regions: [us-east1]
runner_classes:
  tests: &class
    role: tester
    trust: untrusted-pr
    hardware: {arch: amd64, vcpu: 8, memory: 16GiB, disk: 10GiB}
    scale: 0..10
    vendor: intel
    pool: n2
  builds: {<<: *class, role: builder, trust: trusted}
  publishes: {<<: *class, role: publisher, trust: trusted}
  releases: {<<: *class, role: releaser, trust: release}
  nothing: {<<: *class, grants: none}
  arm:
    <<: *class
    hardware: {arch: arm64, vcpu: 8, memory: 16GiB, disk: 10GiB}
    pool: c4a
    grants: [read cache local]
  gpus:
    <<: *class
    hardware:
      arch: amd64
      vcpu: 16
      memory: 64GiB
      accelerator: {model: h100, count: 1}
    vendor: nvidia
    pool: h100
  small-gpus:
    <<: *class
    hardware:
      arch: amd64
      vcpu: 8
      memory: 32GiB
      accelerator: {model: l4, count: 1}
    vendor: nvidia
    pool: flex
  tpus:
    <<: *class
    hardware:
      arch: amd64
      vcpu: 100
      memory: 300GiB
      accelerator: {model: tpu-v6e, count: 4, vendor: google}
    vendor: google
    pool: tpu
  donated:
    <<: *class
    pool: null
    role: builder
    trust: trusted
    placement: external
    federation: "ci:rocm"
    contact: {to: rocm@example.org}
reservations:
  h100-block:
    id: h100-block
    cell: gcp
    machine: a3-highgpu-8g
    count: 2
    start: 2026-01-01
    end: 2027-01-01
    zone: us-central1-b
"""

LABELS = {
    "ci_project": "demo",
    "ci_env": "prod",
    "ci_vendor": "shared",
    "ci_funder": "foundation",
    "ci_provider": "gcp",
    "ci_role": "shared",
    "ci_runner_class": "shared",
    "ci_runner_label": "shared",
    "ci_trust": "shared",
    "ci_owner": "infra",
    "ci_stack": "gcp",
    "ci_managed_by": "runfleet",
    "ci_cost_model": "on-demand",
}
"""The required labels of shared things in the first cell."""


def fleet(text: str = FLEET) -> Fleet:
    """Return the fleet of a text."""
    return build_fleet(parse_source("fleet.yaml", text)).fleet


def changed(*pairs: tuple[str, str]) -> str:
    """Return the fleet's text with some places changed; each must be there."""
    text = FLEET
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return text


def plan_of(cell: str = "gcp", known: Fleet | None = None) -> CellPlan:
    """Return the plan of a cell."""
    known = known or fleet()
    return plan_cell(known, make_lock(known), known.cells[cell], pins())


def central_of(known: Fleet | None = None) -> CentralPlan:
    """Return the plan of the stack ``central``."""
    return plan_central(known or fleet(), pins())


def pins() -> Pins:
    """Return the package's pins."""
    return load_pins()


def record(program: Callable[[], Any], stack: str = "gcp") -> Record:
    """Run a program under the recording monitor."""
    return rehearse(program, project="demo", stack=stack, emulate=False, preview=False)


def cell_record(
    plan: CellPlan,
    settings: StackSettings | None = None,
    central: Mapping[StoreKind, StoreHandle] | None = None,
) -> Record:
    """Record all rooms of a cell, as the program makes them."""

    def program() -> None:
        floor, chosen = GcpFloor(), settings or StackSettings()
        name = plan.cell.name
        cloud = pulumi.ResourceOptions(
            provider=floor.provider(f"{name}-cloud", plan, chosen)
        )
        network = floor.network(f"{name}-network", plan, cloud)
        cluster = floor.cluster(f"{name}-cluster", plan, network, chosen, cloud)
        autoscaler = floor.autoscaler(
            f"{name}-autoscaler", plan, network, cluster, cloud
        )
        for pool in plan.node_pools:
            floor.node_pool(
                f"{name}-pool-{pool.name}",
                plan,
                pool,
                network,
                cluster,
                autoscaler,
                cloud,
            )
        stores = floor.stores(f"{name}-stores", plan, cloud)
        known = central if central is not None else imported_central(plan.fleet)
        for planned in plan.classes:
            if planned.grants:
                floor.runner_identity(
                    f"{name}-identity-{planned.name}",
                    plan,
                    planned,
                    cluster,
                    stores.handles,
                    known,
                    cloud,
                )
        floor.budget(f"{name}-budget", plan, cloud)
        secrets = floor.secrets_reader(
            f"{name}-secrets",
            plan,
            cluster,
            "external-secrets",
            "external-secrets",
            cloud,
        )
        pulumi.export("secrets_annotations", dict(secrets.annotations))
        pulumi.export("oidc_issuer", cluster.oidc_issuer)
        pulumi.export("kubeconfig", cluster.kubeconfig)
        pulumi.export(
            "stores", {str(k): h.exported() for k, h in stores.handles.items()}
        )

    return record(program, plan.stack)


def central_record(plan: CentralPlan, settings: StackSettings | None = None) -> Record:
    """Record the stack ``central``, as the program makes it."""

    def program() -> None:
        floor, chosen = GcpFloor(), settings or StackSettings()
        cloud = pulumi.ResourceOptions(
            provider=floor.provider("central-cloud", plan, chosen)
        )
        handles = floor.stores("central-stores", plan, cloud).handles
        promoter = floor.promoter("central-promoter", plan, handles, cloud)
        federated = {
            c.name: floor.federated_identity(
                f"central-federated-{c.name}", plan, c, handles, cloud
            )
            for c in plan.external
            if c.federation
        }
        floor.budget("central-budget", plan, cloud)
        pulumi.export("promoter", promoter)
        pulumi.export("federated", federated)
        pulumi.export("account", dict(floor.account("central", plan, chosen, cloud)))
        pulumi.export("stores", {str(k): h.exported() for k, h in handles.items()})

    return record(program, "central")


def imported_central(known: Fleet) -> dict[StoreKind, StoreHandle]:
    """Return the central stores as a cell sees them: another stack's outputs."""
    from runfleet.clouds.gcp import addresses
    from runfleet.clouds.gcp.grants import roles_of
    from runfleet.spec.roles import Trust

    site = addresses.central_site(known)
    if site is None:
        return {}
    found: dict[StoreKind, StoreHandle] = {}
    for store in known.stores_in(Scope.CENTRAL):
        place = addresses.place_of(site, store)
        extra = {
            f"role/{what}": site.role_name(what) for what in roles_of([store.kind])
        }
        for trust in Trust:
            if trust in place.repositories:
                extra[f"repository_id/{trust}"] = place.repositories[trust]
            if trust in place.topics:
                extra[f"topic/{trust}"] = place.topics[trust]
        exported = {"bucket": place.bucket, "extra": extra}
        found[store.kind] = StoreHandle.imported(
            store.kind, Scope.CENTRAL, pulumi.Output.from_input(exported)
        )
    return found


def one(found: Record, name: str) -> ResourceRecord:
    """Return the resource of a logical name."""
    (resource,) = [r for r in found.resources if r.name == name]
    return resource


def of_type(found: Record, token: str) -> list[ResourceRecord]:
    """Return the resources of a type; there must be some."""
    made = [r for r in found.resources if r.type == token]
    assert made, f"no {token}: the test would prove nothing"
    return made


def parent_name(resource: ResourceRecord) -> str:
    """Return the logical name of a resource's parent."""
    return (resource.parent or "").rpartition("::")[2]
