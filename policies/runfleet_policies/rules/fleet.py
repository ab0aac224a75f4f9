"""The fleet file: what can be built and still should not be.

Errors (what cannot be built) are found when the file is read; these rules judge a
fleet that reads well.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

from runfleet.spec.classes import Hardware, PlacementMode, RunnerClass
from runfleet.spec.findings import Severity
from runfleet.spec.fleet import Fleet
from runfleet.spec.grammar import TARGET_LENGTH, LabelClaim, parse_label
from runfleet.spec.roles import ROLE_TRIGGERS
from runfleet_policies.rule import Breach, Context, Pack, Parameter, Rule
from runfleet_policies.view import FleetView

_FEATURE_RANK = {"avx2": 0, "avx512": 1, "amx": 2}
"""Each of these instruction sets comes with the ones before it."""


def rules() -> tuple[Rule, ...]:
    """Return the rules about fleet files."""
    return (
        Rule(
            id="R-LABEL-01",
            severity=Severity.MEDIUM,
            title="Labels leave room for what ARC adds",
            rationale="ARC adds 21 characters to a scale set's name and Kubernetes "
            "labels end at 63 (actions-runner-controller#2697).",
            fix=f"shorten the label to {TARGET_LENGTH} characters, prefix included",
            pack=Pack.LABELLING,
            anchors=("O27",),
            fleet=_long_labels,
            parameters=(
                Parameter("longest", TARGET_LENGTH, "Most characters of a label."),
            ),
        ),
        Rule(
            id="R-LABEL-02",
            severity=Severity.LOW,
            title="A label tells the truth about its own size",
            rationale="People choose a runner by its label and size their jobs for "
            "what it says.",
            fix="rename the class, or give it what its label says",
            pack=Pack.LABELLING,
            anchors=("O27", "O04"),
            fleet=_lies,
        ),
        Rule(
            id="R-SCALE-01",
            severity=Severity.HIGH,
            title="Every class has a maximum",
            rationale="Without one, a loop in a workflow can spend a vendor's whole "
            "donation in a night.",
            fix="write scale as 0..N",
            pack=Pack.COST,
            anchors=("S07", "O33"),
            fleet=_unbounded,
        ),
        Rule(
            id="R-RESV-01",
            severity=Severity.HIGH,
            title="No reservation has ended",
            rationale="Jobs that count on reserved machines wait for machines that "
            "are no longer there.",
            fix="renew the reservation or remove it",
            pack=Pack.COST,
            anchors=("O33",),
            fleet=_ended,
        ),
        Rule(
            id="R-RESV-02",
            severity=Severity.MEDIUM,
            title="No reservation ends within thirty days",
            rationale="Reserved accelerators take weeks to renew.",
            fix="renew the reservation",
            pack=Pack.COST,
            anchors=("O33", "O52"),
            fleet=_ending,
            parameters=(Parameter("days", 30, "Days of warning."),),
        ),
        Rule(
            id="R-RESV-03",
            severity=Severity.MEDIUM,
            title="Every reservation is used by a pool",
            rationale="A reservation is paid whether machines run or not.",
            fix="name it in a pool machine's reservations, or end it",
            pack=Pack.COST,
            anchors=("O52",),
            fleet=_unused,
        ),
        Rule(
            id="R-TRIG-01",
            severity=Severity.HIGH,
            title="A class has only the triggers that its role allows",
            rationale="RFC-0049 lets pull requests use testers only: a builder that "
            "runs on all pull requests lets strangers write what others build on.",
            fix="drop the trigger, or split a tester class off",
            anchors=("S28", "S17"),
            fleet=_triggers,
        ),
        Rule(
            id="R-CONTACT-01",
            severity=Severity.MEDIUM,
            title="Somebody can be reached about every class",
            rationale="Donated machines fail at night too; an alert without a "
            "receiver is not answered.",
            fix="add a contact",
            pack=Pack.LABELLING,
            anchors=("O10", "O12", "O32"),
            fleet=_contacts,
        ),
        Rule(
            id="R-OIDC-01",
            severity=Severity.MEDIUM,
            title="Federated repositories have their numeric ids",
            rationale="The immutable subject form needs both numbers; without them a "
            "repository that is renamed or moved loses access, or leaves a name that "
            "somebody else can take.",
            fix="add owner_id and repository_id (gh api repos/OWNER/REPO)",
            anchors=("S31",),
            fleet=_federation,
        ),
    )


def label_lies(name: str, hardware: Hardware) -> list[str]:
    """Return what a label says that its hardware does not give.

    Args:
        name: The label, with or without a cell's prefix.
        hardware: What a job on the class gets.

    Returns:
        One text per lie; none for a label that follows another grammar.
    """
    claim = parse_label(name)
    return [] if claim is None else list(_compare(claim, hardware))


def _compare(claim: LabelClaim, hardware: Hardware) -> Iterator[str]:
    if claim.vcpu != hardware.vcpu:
        yield f"says {claim.vcpu} vCPU, has {hardware.vcpu:g}"
    if claim.memory_gib != hardware.memory.gib:
        yield f"says {claim.memory_gib} GiB, has {hardware.memory.gib:g} GiB"
    if claim.arch != hardware.arch:
        yield f"says {claim.arch}, is {hardware.arch}"
    accelerator = hardware.accelerator
    count = accelerator.count if accelerator is not None else 0
    if claim.gpu_count != count:
        yield f"says {claim.gpu_count} accelerators, has {count:g}"
    elif accelerator is not None and claim.gpu != accelerator.model:
        yield f"says {claim.gpu}, has {accelerator.model}"
    ranks = [_FEATURE_RANK[f] for f in hardware.features if f in _FEATURE_RANK]
    if claim.feature and ranks and max(ranks) < _FEATURE_RANK[claim.feature]:
        yield f"says {claim.feature}, has {', '.join(hardware.features)}"


def longest_label(fleet: Fleet, runner_class: RunnerClass) -> str:
    """Return the longest label that jobs use for a class in any cell."""
    names = [
        cell.runner_label(runner_class.name)
        for cell in fleet.cells.values()
        if any(c.name == runner_class.name for c in fleet.classes_in(cell))
    ]
    return max([*names, runner_class.name], key=len)


def _long_labels(view: FleetView, context: Context) -> Iterator[Breach]:
    fleet = view.fleet
    prefixes: dict[str, int] = {}
    for cell in fleet.cells.values():
        for found in fleet.classes_in(cell):
            length = len(cell.label_prefix)
            prefixes[found.name] = max(prefixes.get(found.name, 0), length)
    limit = context.number("longest")
    for name, found in fleet.runner_classes.items():
        for label in (name, *found.aliases):
            length = len(label) + prefixes.get(name, 0)
            if length > limit:
                why = f"{label} has {length} characters with its prefix, limit {limit}"
                yield Breach(why, path=("runner_classes", name))


def _lies(view: FleetView, context: Context) -> Iterator[Breach]:
    for name, found in view.fleet.runner_classes.items():
        lies = label_lies(name, found.hardware)
        if lies:
            path = ("runner_classes", name)
            yield Breach("; ".join(lies), path=path)


def _unbounded(view: FleetView, context: Context) -> Iterator[Breach]:
    for name, found in view.fleet.runner_classes.items():
        if found.placement is PlacementMode.EXTERNAL:
            continue
        if found.scale.max is None:
            path = ("runner_classes", name)
            why = "scale has no maximum"
            yield Breach(why, path=path, line_path=(*path, "scale"))


def _ended(view: FleetView, context: Context) -> Iterator[Breach]:
    for name, end in _ends(view):
        if end < context.today:
            why = f"ended on {end}, {(context.today - end).days} days ago"
            yield _reservation(name, why)


def _ending(view: FleetView, context: Context) -> Iterator[Breach]:
    for name, end in _ends(view):
        left = (end - context.today).days
        if 0 <= left <= context.number("days"):
            yield _reservation(name, f"ends on {end}, in {left} days")


def _ends(view: FleetView) -> Iterator[tuple[str, dt.date]]:
    for name, found in view.fleet.reservations.items():
        if found.end is not None:
            yield name, found.end


def _reservation(name: str, why: str) -> Breach:
    path = ("reservations", name)
    return Breach(why, path=path, line_path=(*path, "end"))


def _unused(view: FleetView, context: Context) -> Iterator[Breach]:
    used = {
        name
        for pool in view.fleet.pools.values()
        for machine in pool.machines
        for name in machine.reservations
    }
    for name in view.fleet.reservations:
        if name not in used:
            yield Breach("no pool draws from it", path=("reservations", name))


def _triggers(view: FleetView, context: Context) -> Iterator[Breach]:
    for name, found in view.fleet.runner_classes.items():
        allowed = ROLE_TRIGGERS[found.role]
        wrong = [str(t) for t in found.triggers if t not in allowed]
        if wrong:
            path = ("runner_classes", name)
            may = ", ".join(sorted(str(t) for t in allowed))
            why = f"role {found.role} has {', '.join(wrong)}; allowed: {may}"
            yield Breach(why, path=path, line_path=(*path, "triggers"))


def _contacts(view: FleetView, context: Context) -> Iterator[Breach]:
    if view.fleet.owner.contact is None:
        yield Breach("the fleet's owner has no contact", path=("owner",))
    for found in view.fleet.external():
        if found.contact is None:
            why = "an external class without a contact"
            yield Breach(why, path=("runner_classes", found.name))


def _federation(view: FleetView, context: Context) -> Iterator[Breach]:
    for index, found in enumerate(view.fleet.github.federation):
        missing = [
            name
            for name, value in (
                ("owner_id", found.owner_id),
                ("repository_id", found.repository_id),
            )
            if value is None
        ]
        if missing:
            why = f"{found.repository} has no {' and no '.join(missing)}"
            yield Breach(why, path=("github", "federation", index))
