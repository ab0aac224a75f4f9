"""Say what the rules are: for ``runfleet policy list`` and ``explain``, and for pages.

Everything comes from the rule objects, so that what is explained is what is judged.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping

from runfleet.errors import InputError, Problem
from runfleet.spec.source import nearest
from runfleet_policies.registry import all_rules, rule_named
from runfleet_policies.rule import Rule
from runfleet_policies.statements import statements

_CLOUDS: Mapping[str, str] = {
    "AWS": "AWS",
    "GCP": "Google Cloud",
    "AZ": "Azure",
    "IBM": "IBM Cloud",
    "K8S": "Kubernetes",
    "ARC": "ARC",
    "GH": "GitHub",
}
_SUBJECTS: Mapping[str, str] = {
    "resource": "each resource of a stack",
    "stack": "a whole stack",
    "fleet": "the fleet file",
    "waiver": "the waivers",
}


def policy_table(rules: Iterable[Rule] | None = None) -> list[dict[str, object]]:
    """Return one plain row per rule, sorted by id, for tables and ``--json``.

    Keys: ``id``, ``severity``, ``area``, ``pack``, ``subject`` (``resource``,
    ``stack``, ``fleet`` or ``waiver``), ``title``, ``anchors``, ``types``,
    ``parameters`` (names) and ``remediates``.

    Args:
        rules: The rules; default: all.
    """
    return [
        {
            "id": rule.id,
            "severity": str(rule.severity),
            "area": area(rule),
            "pack": str(rule.pack),
            "subject": rule.subject,
            "title": rule.title,
            "anchors": list(rule.anchors),
            "types": list(rule.types),
            "parameters": [parameter.name for parameter in rule.parameters],
            "remediates": rule.remediate is not None,
        }
        for rule in (all_rules() if rules is None else rules)
    ]


def find_rule(rule_id: str) -> Rule:
    """Return the rule with an id, whatever its case.

    Raises:
        InputError: There is no such rule; the nearest id is named.
    """
    found = rule_named(rule_id)
    if found is None:
        close = nearest(rule_id.upper(), (rule.id for rule in all_rules()))
        problem = Problem(
            "runfleet policy",
            0,
            "ID",
            "is not a rule",
            found=rule_id,
            nearest=close,
        )
        raise InputError([problem])
    return found


def explain_data(rule_id: str) -> dict[str, object]:
    """Return everything about a rule as plain data, for ``--json``.

    The keys of :func:`policy_table`, and ``rationale``, ``fix``, ``level``,
    ``statements`` (id and text), ``settings`` (name, default, what) and ``waiver``.

    Raises:
        InputError: There is no such rule; the nearest id is named.
    """
    rule = find_rule(rule_id)
    (row,) = policy_table([rule])
    return {
        **row,
        "rationale": rule.rationale,
        "fix": rule.fix,
        "level": level(rule),
        "statements": [
            {"id": number, "text": text} for number, text in statements_of(rule)
        ],
        "settings": [
            {"name": p.name, "default": p.default, "what": p.what}
            for p in rule.parameters
        ],
        "waiver": waiver_of(rule),
    }


def explain(rule_id: str, width: int = 80) -> str:
    """Return a rule's explanation as text for a terminal.

    Args:
        rule_id: The rule's id, in any case.
        width: Longest line.

    Raises:
        InputError: There is no such rule; the nearest id is named.
    """
    rule = find_rule(rule_id)
    parts = [
        f"{rule.id}  {rule.severity}  {area(rule)}  pack {rule.pack}",
        rule.title + ".",
        _wrapped(f"Why: {rule.rationale}", width),
        _wrapped(f"Fix: {rule.fix}", width),
        _wrapped(f"Judges: {_SUBJECTS[rule.subject]}{_types(rule)}", width),
    ]
    asked = [f"  {number}  {text}" for number, text in statements_of(rule)]
    standards = [name for name in rule.anchors if not _numbered(name)]
    if standards:
        asked.append(f"  {', '.join(standards)}")
    if asked:
        parts.append("\n".join(["Asked for by:", *asked]))
    if rule.parameters:
        listed = [
            _wrapped(f"  {p.name} = {p.default!r}  {p.what}", width, "    ")
            for p in rule.parameters
        ]
        parts.append("\n".join(["Parameters (policies.yaml):", *listed]))
    if rule.remediate is not None:
        parts.append("It can mend what it finds: set its level to remediate.")
    waiver = waiver_of(rule)
    if waiver:
        parts.append("To waive it (waivers.yaml):\n" + _indented(waiver))
    return "\n\n".join(parts)


def area(rule: Rule) -> str:
    """Return what a rule is about: a cloud, Kubernetes, ARC, GitHub or the fleet."""
    return _CLOUDS.get(rule.id.split("-")[1], "fleet")


def level(rule: Rule) -> str:
    """Return how Pulumi's engine treats a breach without configuration."""
    return "mandatory" if rule.severity.rank < 2 else "advisory"


def statements_of(rule: Rule) -> list[tuple[str, str]]:
    """Return number and text of the working group's statements a rule answers."""
    texts = {found.id: found.text for found in statements()}
    return [(name, texts[name]) for name in rule.anchors if name in texts]


def waiver_of(rule: Rule) -> str:
    """Return an entry of ``waivers.yaml`` for a rule, to be filled in.

    Empty for the rules about waivers, which cannot be waived.
    """
    if rule.subject == "waiver":
        return ""
    fleet = rule.subject == "fleet"
    place = "runner_classes.NAME" if fleet else "urn:pulumi:*::NAME*"
    return (
        f"- rule: {rule.id}\n"
        f'  resource: "{place}"\n'
        + ("" if fleet else "  stack: aws\n")
        + "  owner: who-answers-for-it\n"
        "  reason: why the rule does not apply here\n"
        "  approval: https://github.com/OWNER/REPO/pull/NUMBER\n"
        "  expires: 2027-01-31\n"
    )


def _numbered(anchor: str) -> bool:
    return anchor in {found.id for found in statements()}


def _types(rule: Rule) -> str:
    return f" of {', '.join(rule.types)}" if rule.types else ""


def _wrapped(text: str, width: int, indent: str = "  ") -> str:
    return textwrap.fill(
        text,
        width,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _indented(text: str) -> str:
    return textwrap.indent(text, "  ").rstrip()
