"""A fleet on four clouds and own hardware, and the machines that it is placed on."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path

from runfleet.catalogue.machines import Machine, Machines, Status
from runfleet.placement.fit import allocatable, features_of
from runfleet.placement.moves import MovableFleet
from runfleet.placement.offers import Offer, PriceKind
from runfleet.placement.tables import tables
from runfleet.spec.cells import Provider
from runfleet.spec.load import build_fleet
from runfleet.spec.source import parse_source

TODAY = dt.date(2026, 9, 1)

FLEET = """\
project: demo
owner: {team: infra}
github:
  organization: demo-org
  runner_groups:
    ci: {}
    release: {repositories: [demo-org/demo], trust: release,
      workflows: [demo-org/demo/.github/workflows/r.yml@refs/heads/main]}
cells:
  aws:
    provider: aws
    account: "111122223333"
    region: us-east-1
    zones: [us-east-1a, us-east-1b]
    cluster: demo-ue1
    network: {cidr: 10.12.0.0/16}
    base_nodes: {machine: m7i.4xlarge, count: 3}
    funder: foundation
    label_prefix: lf-
    runner_group: ci
    release_runner_group: release
    runner_pods: {pool: c7i}
  aws-ue2:
    provider: aws
    account: "111122223333"
    region: us-east-2
    zones: [us-east-2a, us-east-2b]
    cluster: demo-ue2
    network: {cidr: 10.13.0.0/16}
    base_nodes: {machine: m7i.4xlarge, count: 3}
    funder: foundation
    label_prefix: lf-
    runner_group: ci
    release_runner_group: release
    runner_pods: {pool: c7i}
  gcp:
    provider: gcp
    account: demo-project
    account_number: "1234567890"
    region: us-central1
    zones: [us-central1-a, us-central1-b]
    cluster: demo-uc1
    network: {cidr: 10.20.0.0/16, pods: 10.64.0.0/14}
    base_nodes: {machine: n2-standard-8}
    funder: gcp-credits
    runner_group: ci
  azure:
    provider: azure
    account: 00000000-0000-0000-0000-000000000000
    account_number: 00000000-0000-0000-0000-000000000001
    region: eastus
    zones: ["1", "2"]
    cluster: demo-eus
    network: {cidr: 10.24.0.0/16, pods: 10.68.0.0/14}
    base_nodes: {machine: Standard_D8ds_v6}
    funder: azure-credits
    runner_group: ci
    release_runner_group: release
  ibm:
    provider: ibm
    account: 0123456789abcdef0123456789abcdef
    region: us-south
    zones: [us-south-1, us-south-2]
    cluster: demo-uss
    network: {cidr: 10.28.0.0/16, pods: 10.72.0.0/14}
    base_nodes: {machine: bx2-8x32}
    funder: ibm-credits
    runner_group: ci
  own-lab:
    provider: own
    cluster: lab
    kubeconfig: lab/kubeconfig
    funder: lab
    runner_group: ci
pools:
  c7i:
    provider: aws
    arch: amd64
    machines:
      - {machine: c7i.16xlarge, weight: 50, disk: 800GiB}
      - {machine: c7i.8xlarge, weight: 100, disk: 400GiB}
      - {machine: c7i.8xlarge, weight: 100, disk: 400GiB, release: true}
  g6:
    provider: aws
    arch: amd64
    gpu: true
    exclude_regions: [us-east-2]
    machines:
      - {machine: g6.8xlarge, disk: 300GiB}
      - {machine: g6.48xlarge, weight: 80, disk: 1300GiB}
  z:
    provider: own
    arch: s390x
    machines: [{machine: linuxone, disk: 100GiB, capacity: donated}]
runner_classes:
  cpu:
    role: tester
    trust: untrusted-pr
    hardware: {arch: amd64, vcpu: 8, memory: 15GiB, features: [amx]}
    scale: 1..40
    vendor: intel
    pool: c7i
    aliases: [linux.2xlarge]
  l4:
    role: tester
    trust: untrusted-pr
    hardware: {arch: amd64, vcpu: 10, memory: 30GiB, accelerator: {model: l4}}
    scale: 0..8
    vendor: nvidia
    pool: g6
  rel:
    role: releaser
    trust: release
    hardware: {arch: amd64, vcpu: 8, memory: 15GiB}
    scale: 0..4
    vendor: intel
    pool: c7i
  t4:
    role: tester
    trust: untrusted-pr
    hardware: {arch: amd64, vcpu: 4, memory: 16GiB, accelerator: {model: t4}}
    scale: 0..4
    vendor: nvidia
    cells: [azure]
  z-big:
    role: tester
    trust: untrusted-pr
    hardware: {arch: s390x, vcpu: 4, memory: 16GiB}
    scale: 0..4
    vendor: ibm
    pool: z
  linux.rocm.gpu.gfx942.1:
    role: tester
    trust: untrusted-pr
    hardware: {arch: amd64, vcpu: 16, memory: 128GiB}
    scale: 0..10
    vendor: amd
    placement: external
    contact: {to: "#rocm-ci", team: AMD}
"""

PYTORCH = Path(__file__).parents[2] / "playbooks" / "pytorch"


def movable(text: str = FLEET, machines: Machines | None = None) -> MovableFleet:
    """Return a fleet that can be moved, from a document without problems."""
    file = build_fleet(parse_source("fleet.yaml", text))
    return MovableFleet(file, machines or Machines.load())


def machine(name: str = "made.1x", **changes: object) -> Machine:
    """Return a machine of AWS with 16 vCPU and 64 GiB at 1 USD, or as changed."""
    plain = Machine(
        provider=Provider.AWS,
        name=name,
        arch="amd64",
        vcpu=16,
        memory_gib=64,
        accelerator_vendor="",
        accelerator="",
        accelerator_as_named="",
        accelerator_count=0,
        accelerator_memory_gib=None,
        ondemand_usd_h=1.0,
        spot_usd_h=None,
        price_region="us-east-1",
        status=Status.AVAILABLE,
        reason="",
        node_name="",
        as_of=dt.date(2026, 8, 1),
        source="made",
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def offer(
    of: Machine | None = None,
    kind: PriceKind = PriceKind.LIST,
    usd_h: float | None = 1.0,
    **changes: object,
) -> Offer:
    """Return an offer in cell ``aws`` at 1 USD, or as changed."""
    bought = of or machine()
    made = Offer(
        machine=bought,
        cell="aws",
        region="us-east-1",
        kind=kind,
        usd_h=usd_h,
        price_region="us-east-1" if usd_h is not None else "",
        as_of=bought.as_of,
        room=allocatable(bought),
        extra=tables().job[bought.provider],
        features=features_of(bought),
    )
    return replace(made, **changes)  # type: ignore[arg-type]
