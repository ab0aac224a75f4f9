"""``policies.yaml``: the parameters of rules, where a fleet needs others than usual.

The file stands beside the fleet file. Rules are never switched off there: an
exception is a waiver, which is dated and owned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path as FilePath
from typing import Any

from pydantic import Field, ValidationError

from runfleet.errors import InputError, Problem
from runfleet.spec.base import Spec, Version
from runfleet.spec.load import model_problems
from runfleet.spec.source import Source, nearest, read_source
from runfleet_policies.registry import all_rules

POLICIES_NAME = "policies.yaml"


class PolicyConfiguration(Spec):
    """The content of ``policies.yaml``."""

    version: Version = Field(default=1, description="Version of this format.")
    parameters: dict[str, dict[str, Any]] = Field(
        default_factory=dict[str, dict[str, Any]],
        description="Parameters by rule id and name.",
    )


def load_parameters(path: str | FilePath) -> Mapping[str, Mapping[str, Any]]:
    """Read the parameters of rules; none when the file does not exist.

    Args:
        path: The file.

    Raises:
        InputError: The file has problems; all of them are in it.
    """
    if not FilePath(path).exists():
        return {}
    source = read_source(path)
    try:
        found = PolicyConfiguration.model_validate(source.data or {})
    except ValidationError as error:
        problems = model_problems(error, PolicyConfiguration, source)
        raise InputError([*source.problems, *problems]) from None
    problems = [*source.problems, *_problems(found, source)]
    if problems:
        raise InputError(problems)
    return found.parameters


def _problems(found: PolicyConfiguration, source: Source) -> Iterator[Problem]:
    rules = {rule.id: rule for rule in all_rules()}
    for rule_id, values in found.parameters.items():
        rule = rules.get(rule_id)
        if rule is None:
            yield source.problem(
                ("parameters", rule_id),
                "is not a rule",
                found=rule_id,
                nearest=nearest(rule_id, rules),
            )
            continue
        known = {parameter.name: parameter for parameter in rule.parameters}
        for name, value in values.items():
            path = ("parameters", rule_id, name)
            if name not in known:
                yield source.problem(
                    path,
                    f"is not a parameter of {rule_id}",
                    found=name,
                    allowed=", ".join(sorted(known)) or "none",
                    nearest=nearest(name, known),
                )
            elif not isinstance(value, type(known[name].default)):
                yield source.problem(
                    path,
                    "has the wrong type",
                    found=type(value).__name__,
                    allowed=type(known[name].default).__name__,
                )
