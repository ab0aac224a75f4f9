"""The fleet of the suite: the same classes, stores and grants on every floor.

Only the cell, the pools and the place of the central stores differ; a floor gives
them as YAML. Class by class, the fleet holds what a promise can be broken on: two
trust levels below release, a release class, one with ``grants: none`` and one with a
GPU and a single grant.
"""

from __future__ import annotations

from textwrap import indent

_TEMPLATE = """\
version: 1
project: demo
env: prod
owner:
  team: infra
  contact: {{to: infra@example.org, team: Infra team, response: 2h}}
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
    - {{repository: demo-org/demo, owner_id: 7, repository_id: 65600975}}
central: {central}
cells:
  {name}:
{cell}
    funder: foundation
    runner_group: ci
    release_runner_group: release
stores:
  cache: {{scopes: [local, central], keep: 14d}}
  artifacts: {{keep: 90d}}
  shared: {{}}
  release: {{scopes: [central]}}
  registry: {{keep: 30d}}
  telemetry: {{}}
pools:
{pools}
runner_classes:
  untrusted:
    role: tester
    trust: untrusted-pr
    hardware: {{arch: amd64, vcpu: 2, memory: 4GiB}}
    scale: 0..5
    vendor: intel
    pool: cpu
  trusted:
    role: builder
    trust: trusted
    hardware: {{arch: amd64, vcpu: 8, memory: 16GiB}}
    scale: 0..5
    vendor: intel
    pool: cpu
  plain:
    role: tester
    trust: untrusted-pr
    grants: none
    hardware: {{arch: amd64, vcpu: 2, memory: 4GiB}}
    scale: 0..5
    vendor: intel
    pool: cpu
  rel:
    role: releaser
    trust: release
    hardware: {{arch: amd64, vcpu: 8, memory: 16GiB}}
    scale: 0..2
    vendor: intel
    pool: cpu
  gpu:
    role: tester
    trust: untrusted-pr
    grants: [read cache local]
    hardware:
      arch: amd64
      vcpu: {gpu_vcpu}
      memory: {gpu_memory}
      accelerator: {{model: {gpu_model}, count: 1}}
    scale: 0..4
    vendor: nvidia
    pool: gpu
budgets:
  foundation:
    monthly: 12000 USD
    alerts: [50%, 100%]
    contact: {{to: budget@example.org}}
"""

_TESTER = frozenset(
    {
        "read cache local",
        "write cache local",
        "read artifacts local",
        "write artifacts local",
        "read registry local",
        "write registry local",
        "insert telemetry central",
    }
)
_BUILDER = _TESTER | {
    "write cache central",
    "write artifacts central",
    "write registry central",
}

MAY = {
    "untrusted": _TESTER,
    "trusted": _BUILDER,
    "plain": frozenset[str](),
    "rel": _BUILDER
    | {"write shared local", "write shared central", "write release central"},
    "gpu": frozenset({"read cache local"}),
}
"""What each class may do, on every floor: RFC-0049's roles, written out, so that the
table does not come from the code that hands out the grants."""

RELEASE = frozenset({"rel"})
"""Classes that share no machine with the others."""

GRANTED = frozenset(name for name, may in MAY.items() if may)
"""Classes with a cloud identity."""


def contract_fleet(
    name: str,
    cell: str,
    pools: str,
    central: str,
    gpu: tuple[str, float, str] = ("l4", 11, "40GiB"),
) -> str:
    """Return the text of the fleet file.

    Args:
        name: Name of the cell; it starts with the provider's.
        cell: The cell's own keys as YAML: provider, account, region, zones, cluster,
            network, base nodes.
        pools: The pools ``cpu`` (with machines for release) and ``gpu`` as YAML.
        central: The central section as YAML in one line.
        gpu: Model, CPUs and memory of the class with a GPU.
    """
    return _TEMPLATE.format(
        name=name,
        cell=indent(cell.strip("\n"), "    "),
        pools=indent(pools.strip("\n"), "  "),
        central=central,
        gpu_model=gpu[0],
        gpu_vcpu=gpu[1],
        gpu_memory=gpu[2],
    )
