"""Examples of the rules about fleet files."""

from __future__ import annotations

from policy_examples.support import Example

BASE = """\
project: demo
owner: {{team: infra{owner}}}
github:
  organization: demo-org
  runner_groups: {{ci: {{repositories: [demo-org/demo]}}}}
{github}
cells:
  aws:
    provider: aws
    account: "111122223333"
    region: us-east-1
    zones: [us-east-1a, us-east-1b]
    cluster: demo-ue1
    network: {{cidr: 10.12.0.0/16}}
    base_nodes: {{machine: m7i.4xlarge}}
    funder: foundation
    label_prefix: lf-
    runner_group: ci
pools:
  c7i:
    provider: aws
    arch: amd64
    gpu: {gpu}
    machines:
      - {{machine: c7i.12xlarge, disk: 600GiB{machine}}}
runner_classes:
  {name}:
    role: {role}
    trust: {trust}
    vendor: intel
    pool: c7i
    scale: {scale}
    triggers: [{triggers}]
    hardware: {{arch: {arch}, vcpu: {vcpu}, memory: {memory}{hardware}}}
{more}
"""

DEFAULTS = {
    "owner": ", contact: {to: infra@example.org}",
    "github": "",
    "machine": "",
    "gpu": "false",
    "name": "l-x86iamx-8-16",
    "role": "tester",
    "trust": "untrusted-pr",
    "scale": "0..10",
    "triggers": "all-prs",
    "arch": "amd64",
    "vcpu": "8",
    "memory": "16GiB",
    "hardware": "",
    "more": "",
}


def fleet(**parts: str) -> str:
    return BASE.format(**{**DEFAULTS, **parts})


def reservation(end: str, drawn: bool = True) -> str:
    return fleet(
        machine=", capacity: reserved, reservations: [block]" if drawn else "",
        more="reservations:\n  block:\n    id: cr-1\n    cell: aws\n"
        f"    machine: c7i.12xlarge\n    count: 2\n    start: 2026-01-01\n"
        f"    end: {end}\n",
    )


GPU = ", accelerator: {model: t4, count: 1}"
EXTERNAL = """\
  mac:
    role: tester
    trust: untrusted-pr
    vendor: apple
    placement: external
    scale: 0..4
    hardware: {{arch: arm64, os: macos, vcpu: 8, memory: 16GiB}}{contact}
"""
FEDERATION = "  federation: [{{repository: demo-org/demo{ids}}}]"

EXAMPLES = [
    Example("R-LABEL-01", "short", fleet()),
    Example(
        "R-LABEL-01",
        "too long with its prefix",
        fleet(name="a-label-of-exactly-forty-characters-long", vcpu="1"),
        ("has 43 characters with its prefix",),
    ),
    Example("R-LABEL-02", "true", fleet()),
    Example("R-LABEL-02", "another grammar", fleet(name="linux-demo-4")),
    Example(
        "R-LABEL-02",
        "size",
        fleet(vcpu="7", memory="15GiB"),
        ("says 8 vCPU, has 7; says 16 GiB, has 15 GiB",),
    ),
    Example(
        "R-LABEL-02",
        "instruction set",
        fleet(hardware=", features: [avx512]"),
        ("says amx, has avx512",),
    ),
    Example(
        "R-LABEL-02",
        "accelerators",
        fleet(name="l-x86iamx-8-16-t4-4", gpu="true", hardware=GPU),
        ("says 4 accelerators, has 1",),
    ),
    Example(
        "R-LABEL-02",
        "accelerator model",
        fleet(name="l-x86iamx-8-16-l4", gpu="true", hardware=GPU),
        ("says l4, has t4",),
    ),
    Example(
        "R-LABEL-02",
        "architecture",
        fleet(name="l-arm64g4-8-16"),
        ("says arm64, is amd64",),
    ),
    Example("R-SCALE-01", "bounded", fleet()),
    Example("R-SCALE-01", "open", fleet(scale="0.."), ("no maximum",)),
    Example("R-RESV-01", "running", reservation("2026-12-31")),
    Example("R-RESV-01", "ended", reservation("2026-05-31"), ("1 days ago",)),
    Example("R-RESV-02", "far", reservation("2026-07-02")),
    Example("R-RESV-02", "last day", reservation("2026-06-01"), ("in 0 days",)),
    Example("R-RESV-02", "soon", reservation("2026-07-01"), ("in 30 days",)),
    Example("R-RESV-02", "ended is another rule's", reservation("2026-05-31")),
    Example("R-RESV-03", "used", reservation("2026-12-31")),
    Example(
        "R-RESV-03", "unused", reservation("2026-12-31", False), ("no pool draws",)
    ),
    Example("R-TRIG-01", "a tester on all PRs", fleet()),
    Example(
        "R-TRIG-01",
        "a builder on all PRs",
        fleet(role="builder", trust="trusted"),
        ("role builder has all-prs",),
    ),
    Example(
        "R-CONTACT-01",
        "all have one",
        fleet(more=EXTERNAL.format(contact="\n    contact: {to: m@example.org}")),
    ),
    Example(
        "R-CONTACT-01",
        "none",
        fleet(owner="", more=EXTERNAL.format(contact="")),
        ("owner has no contact", "external class without a contact"),
    ),
    Example(
        "R-OIDC-01",
        "with ids",
        fleet(github=FEDERATION.format(ids=", owner_id: 1, repository_id: 2")),
    ),
    Example(
        "R-OIDC-01",
        "one id",
        fleet(github=FEDERATION.format(ids=", owner_id: 1")),
        ("has no repository_id",),
    ),
    Example("R-COST-03", "none idle", fleet(gpu="true", hardware=GPU)),
    Example(
        "R-COST-03",
        "idle",
        fleet(gpu="true", hardware=GPU, scale="2..10"),
        ("2 runners with accelerators",),
    ),
    Example("R-COST-04", "spot for tests", fleet(machine=", capacity: spot")),
    Example(
        "R-COST-04",
        "spot for releases",
        fleet(
            machine=", capacity: spot}\n      - {machine: c7i.24xlarge, "
            "disk: 600GiB, release: true, capacity: spot"
        ),
        ("c7i.24xlarge serves release classes and is spot",),
    ),
    Example(
        "R-COST-05",
        "budgeted",
        fleet(
            more="budgets:\n  foundation:\n    monthly: 10 USD\n"
            "    contact: {to: i@example.org}\n"
        ),
    ),
    Example("R-COST-05", "no budget", fleet(), ("foundation pays and has no budget",)),
]
