"""A fleet that is small enough to say by hand what each of its rows must be."""

from __future__ import annotations

from pathlib import Path

from contract.records import Rehearsed, read_project, rehearse_project, write_project
from spec.fleets import SMALL, changed

FLEET = changed(
    (
        "github: {organization: demo-org, runner_groups: {ci: {}}}\n",
        """\
github:
  organization: demo-org
  runner_groups: {ci: {}}
  federation:
    - {repository: demo-org/demo, owner_id: 7, repository_id: 65600975}
    - {repository: demo-org/other}
central:
  {provider: aws, account: "111122223333", region: us-east-1, funder: foundation}
stores:
  cache: {scopes: [local, central], keep: 14d}
  registry: {scopes: [local]}
""",
    ),
    (
        "    scale: 0..5\n    vendor: intel\n    pool: c7i\n",
        """\
    scale: 0..5
    vendor: intel
    pool: c7i
  wide:
    role: tester
    trust: untrusted-pr
    hardware: {arch: amd64, vcpu: 2, memory: 4GiB}
    scale: {min: 1}
    vendor: intel
    pool: c7i
    grants: none
  build:
    role: builder
    trust: trusted
    hardware: {arch: amd64, vcpu: 2, memory: 4GiB}
    scale: 0..7
    vendor: intel
    pool: c7i
    grants: [read cache local, write cache central]
  linux.rocm.gpu.1:
    role: publisher
    trust: trusted
    hardware:
      arch: amd64
      vcpu: 16
      memory: 128GiB
      accelerator: {model: mi300, count: 1, vendor: amd}
    scale: 0..10
    vendor: amd
    placement: external
    federation: rocm
    contact: {to: "#rocm-ci", team: AMD}
    grants: [write cache central]
""",
    ),
    document=SMALL,
)
"""Two stores, three classes in one cell and one that runs outside."""

CELL = "aws"


def rehearse_small(root: Path) -> Rehearsed:
    """Rehearse both stacks of the fleet in a new project."""
    fleet = write_project(root, FLEET, CELL)
    rehearse_project(root, CELL, root / "out")
    return read_project(root, fleet, CELL, root / "out")
