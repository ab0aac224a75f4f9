"""Fleet documents for tests: a small one and one that uses every section."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from textwrap import dedent

import pytest

from runfleet.errors import InputError, Problem
from runfleet.spec.fleet import Fleet
from runfleet.spec.load import Check, build_fleet
from runfleet.spec.source import parse_source

FULL = """\
version: 1
project: demo
env: prod
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
    - {repository: demo-org/demo, owner_id: 21003710, repository_id: 65600975}
central:
  provider: aws
  account: "111122223333"
  region: us-east-1
  funder: foundation
cells:
  aws:
    provider: aws
    account: "111122223333"
    region: us-east-1
    zones: [us-east-1a, us-east-1b]
    cluster: demo-ue1
    network:
      cidr: 10.12.0.0/16
      services: 172.20.0.0/16
      nat: per-zone
      egress: [0.0.0.0/0]
    api_access: {mode: allow-list, allow: [192.0.2.0/24]}
    admins: [demo-admin]
    base_nodes: {machine: m7i.4xlarge, count: 3, disk: 100GiB}
    runner_pods: {pool: m8g, cpu: 0.75, memory: 1GiB}
    funder: foundation
    label_prefix: lf-
    runner_group: ci
    release_runner_group: release
    weight: 60
    settings: {authentication: API}
  gcp:
    provider: gcp
    account: demo-project
    account_number: "1234567890"
    region: us-central1
    zones: [us-central1-a, us-central1-b]
    cluster: demo-uc1
    network: {cidr: 10.20.0.0/16, pods: 10.24.0.0/14}
    base_nodes: {machine: n2-standard-8}
    funder: gcp-credits
    runner_group: ci
  own-lab:
    provider: own
    cluster: lab
    kubeconfig: lab/kubeconfig
    funder: lab
    runner_group: ci
stores:
  cache: {scopes: [local, central], keep: 14d}
  artifacts: {keep: 90d}
  shared: {}
  release: {scopes: [central]}
  registry: {keep: 30d}
  telemetry: {}
pools:
  c7i:
    provider: aws
    arch: amd64
    machines:
      - {machine: c7i.24xlarge, weight: 100, disk: 1200GiB}
      - {machine: c7i.12xlarge, weight: 50, disk: 600GiB, capacity: spot}
      - {machine: c7i.12xlarge, weight: 100, disk: 600GiB, release: true}
    consolidate_after: 15m
    disruption: 10%
  m8g:
    provider: aws
    arch: arm64
    machines: [{machine: m8g.8xlarge, disk: 200GiB}]
  p5:
    provider: aws
    arch: amd64
    gpu: true
    exclude_regions: [us-east-2]
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
        labels: {demo/tier: gpu}
  n2:
    provider: gcp
    arch: amd64
    machines: [{machine: n2-standard-32, disk: 500GiB}]
runner_classes:
  l-x86iavx512-16-128:
    role: tester
    trust: untrusted-pr
    hardware: {arch: amd64, vcpu: 15, memory: 116GiB, disk: 150GiB, features: [avx512]}
    scale: 0..150
    triggers: [on-demand, periodic, some-prs, all-prs]
    vendor: intel
    pool: c7i
    aliases: [linux.4xlarge]
    slo: {queue: 5m, availability: 99.5%, infra_failures: 1%, response: 4h}
    environment: {CACHE: "1"}
    source: imported
  l-x86iavx512-8-32:
    role: builder
    trust: trusted
    hardware: {arch: amd64, vcpu: 8, memory: 32GiB}
    scale: {min: 1, max: 40, burst: 10, fallback: 5, warm: 1, derived: measured load}
    vendor: intel
    funder: intel
    pool: c7i
    cells: [aws]
    grants: [read cache local, write cache central]
    tenant: vision
  rel-l-x86iavx512-8-64:
    role: releaser
    trust: release
    hardware: {arch: amd64, vcpu: 8, memory: 64GiB}
    scale: 0..4
    vendor: intel
    pool: c7i
  l-x86iamx-22-225-h100:
    role: tester
    trust: untrusted-pr
    hardware:
      arch: amd64
      vcpu: 22
      memory: 225GiB
      accelerator: {model: h100, count: 1, memory: 80GiB, vendor: nvidia}
      whole_node: false
      machine: p5.48xlarge
    scale: 0..8
    vendor: nvidia
    pool: p5
  l-x86iavx2-4-16:
    role: tester
    trust: untrusted-pr
    hardware: {arch: amd64, vcpu: 4, memory: 16GiB}
    scale: 0..20
    vendor: intel
    pool: n2
    grants: none
  linux.rocm.gpu.gfx942.1:
    role: publisher
    trust: trusted
    hardware:
      arch: amd64
      vcpu: 16
      memory: 128GiB
      accelerator: {model: mi300, count: 1, vendor: amd, partition: dpx}
    scale: 0..10
    vendor: amd
    funder: amd
    placement: external
    federation: rocm
    contact: {to: "#rocm-ci", team: AMD}
reservations:
  h100-block:
    id: cr-0123456789abcdef0
    cell: aws
    machine: p5.48xlarge
    count: 2
    start: 2026-01-01
    end: 2026-12-31
    zone: us-east-1a
tenants:
  vision:
    repositories: [demo-org/vision]
    quota: {l-x86iavx512-8-32: 10, accelerator/h100: 2}
    share: 2
    contact: {to: https://example.org/vision}
budgets:
  foundation:
    monthly: 12000 USD
    alerts: [50%, 100%]
    contact: {to: budget@example.org}
    credit: 100000 USD
labels:
  cost-center: ci
"""

SMALL = """\
project: demo
owner: {team: infra}
github: {organization: demo-org, runner_groups: {ci: {}}}
cells:
  aws:
    provider: aws
    account: "111122223333"
    region: us-east-1
    zones: [us-east-1a, us-east-1b]
    cluster: demo
    network: {cidr: 10.12.0.0/16}
    base_nodes: {machine: m7i.large}
    funder: foundation
    runner_group: ci
pools:
  c7i:
    provider: aws
    arch: amd64
    machines: [{machine: c7i.large, disk: 100GiB}]
runner_classes:
  l-x86iavx2-2-4:
    role: tester
    trust: untrusted-pr
    hardware: {arch: amd64, vcpu: 2, memory: 4GiB}
    scale: 0..5
    vendor: intel
    pool: c7i
"""


def fleet_of(text: str) -> Fleet:
    """Return the fleet of a document that has no problems."""
    return build_fleet(parse_source("fleet.yaml", dedent(text))).fleet


def problems_of(text: str, checks: Iterable[Check] = ()) -> list[Problem]:
    """Return every problem of a document that has some."""
    with pytest.raises(InputError) as caught:
        build_fleet(parse_source("fleet.yaml", dedent(text)), checks)
    assert caught.value.exit_code == 2
    return caught.value.problems


def changed(*changes: tuple[str, str], document: str = FULL) -> str:
    """Return a document with texts replaced; each must stand there exactly once."""
    for old, new in changes:
        assert document.count(old) == 1, f"{old!r} stands {document.count(old)} times"
        document = document.replace(old, new)
    return document


def line_of(text: str, document: str) -> int:
    """Return the 1-based number of the only line that holds a text."""
    found = [n for n, line in enumerate(document.splitlines(), 1) if text in line]
    assert len(found) == 1, f"{text!r} stands on lines {found}"
    return found[0]


Mutate = Callable[[str], str]
