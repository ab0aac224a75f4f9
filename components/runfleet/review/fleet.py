"""Findings of a fleet file and of records, with the fleet's waivers applied."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from pathlib import Path

from runfleet.rehearsal.record import Record
from runfleet.spec.findings import Finding
from runfleet.spec.load import FleetFile
from runfleet_policies.configuration import POLICIES_NAME, load_parameters
from runfleet_policies.engine import Settings, evaluate, evaluate_fleet
from runfleet_policies.registry import fleet_rules, stack_rules
from runfleet_policies.waivers import apply_waivers, load_waivers

WAIVERS_NAME = "waivers.yaml"


def fleet_findings(
    file: FleetFile, today: dt.date, waivers: Path | None = None
) -> list[Finding]:
    """Judge a fleet file, with the waivers that stand beside it.

    Args:
        file: The fleet file.
        today: The day that dates are compared with.
        waivers: The waiver file; default: ``waivers.yaml`` beside the fleet file,
            when there is one.

    Raises:
        InputError: The waiver file has problems.
    """
    beside = Path(file.source.file)
    parameters = load_parameters(beside.with_name(POLICIES_NAME))
    findings = evaluate_fleet(file.fleet, file.source, today, parameters=parameters)
    judged = [rule.id for rule in fleet_rules()]
    path = waivers or beside.with_name(WAIVERS_NAME)
    return _waived(findings, path, today, ("",), judged)


def record_findings(
    records: Iterable[Record], fleet_path: Path, today: dt.date
) -> Mapping[str, list[Finding]]:
    """Judge records with all rules, with the waivers beside the fleet file.

    Returns:
        Findings by stack; those about the waivers themselves stand under ``""``.

    Raises:
        InputError: The waiver file has problems.
    """
    rules = stack_rules()
    parameters = load_parameters(fleet_path.with_name(POLICIES_NAME))
    judged = [rule.id for rule in rules]
    by_stack: dict[str, list[Finding]] = {}
    findings: list[Finding] = []
    for record in records:
        by_stack[record.stack] = []
        findings += evaluate(
            record.resources,
            rules,
            Settings(stack=record.stack, today=today, parameters=parameters),
        )
    path = fleet_path.with_name(WAIVERS_NAME)
    for finding in _waived(findings, path, today, tuple(by_stack), judged):
        by_stack.setdefault(finding.stack, []).append(finding)
    return by_stack


def _waived(
    findings: list[Finding],
    path: Path,
    today: dt.date,
    stacks: tuple[str, ...],
    judged: list[str],
) -> list[Finding]:
    if not path.exists():
        return findings
    return apply_waivers(load_waivers(path), findings, today, stacks, judged)
