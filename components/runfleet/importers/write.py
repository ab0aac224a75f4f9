"""Write a fleet as a file that people like to read: comments, short lines, atomic.

Large sections are block mappings, what is short and belongs together stands on one
line, and each section begins with a comment that says what it is.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any, cast

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

from runfleet.errors import InputError, Problem

HEADER = "Fleet file: all runners of one project. `runfleet check` checks it."

SECTIONS = {
    "owner": "Who answers for the fleet.",
    "github": "The organisation that the runners serve. Secrets are named, never held.",
    "central": "Where the things are that exist once.",
    "cells": "Cells: one cluster in one account and region each. The name is the "
    "stack's.",
    "stores": "Stores: what roles are granted on.",
    "budgets": "Budgets, by funder.",
    "pools": "Pools: machines that serve the same classes; the highest weight is "
    "tried first.",
    "runner_classes": "Runner classes: what jobs ask for by label.",
    "reservations": "Reserved capacity.",
    "tenants": "Other projects that share the fleet.",
}

_ONE_LINE = frozenset(
    {
        "network",
        "api_access",
        "base_nodes",
        "runner_pods",
        "hardware",
        "triggers",
        "slo",
        "zones",
        "admins",
        "exclude_regions",
        "machines",
        "environment",
        "contact",
        "cells",
        "aliases",
        "features",
    }
)
_WIDTH = 140


def fleet_text(data: Mapping[str, Any], header: str = HEADER) -> str:
    """Return a fleet in the text form of its file.

    Args:
        data: The fleet as plain data: dicts, lists and scalars.
        header: Comment at the top.
    """
    top: Any = CommentedMap()
    for key, value in data.items():
        top[key] = _block(value, key, 0)
    top.yaml_set_start_comment(header)
    for key in data:
        if key in SECTIONS:
            top.yaml_set_comment_before_after_key(key, before=f"\n{SECTIONS[key]}")
    for section in ("cells", "pools", "runner_classes"):
        for name in list(data.get(section, {}))[1:]:
            top[section].yaml_set_comment_before_after_key(name, before="\n")
    yaml = YAML()
    yaml.width = _WIDTH
    yaml.indent(mapping=2, sequence=4, offset=2)
    stream = io.StringIO()
    yaml.dump(top, stream)  # type: ignore[reportUnknownMemberType]
    lines = stream.getvalue().splitlines()
    return (
        "\n".join("" if line.strip() == "#" else line.rstrip() for line in lines) + "\n"
    )


def write_fleet(
    data: Mapping[str, Any], path: str | FilePath, header: str = HEADER
) -> None:
    """Write a fleet file in one step: an old one stays until the new one is whole.

    Args:
        data: The fleet as plain data.
        path: The file to write.
        header: Comment at the top.

    Raises:
        InputError: The file cannot be written; nothing of it is left behind.
    """
    target = FilePath(path)
    content = fleet_text(data, header)
    temporary = target.with_name(f".{target.name}.tmp")
    try:
        temporary.write_text(content, encoding="utf-8")
        temporary.replace(target)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        message = f"cannot be written: {error.strerror or error}"
        raise InputError([Problem(str(path), 0, "", message)]) from None


def _block(value: Any, key: str, depth: int) -> Any:
    if isinstance(value, Mapping):
        result: Any = CommentedMap()
        for name, item in cast("Mapping[str, Any]", value).items():
            result[name] = _block(item, name, depth + 1)
        if depth and key in _ONE_LINE:
            result.fa.set_flow_style()
        return result
    if isinstance(value, list):
        sequence: Any = CommentedSeq(_flow(item) for item in cast("list[Any]", value))
        if depth and key in _ONE_LINE and key != "machines":
            sequence.fa.set_flow_style()
        return sequence
    return _scalar(value)


def _flow(value: Any) -> Any:
    if isinstance(value, Mapping):
        result: Any = CommentedMap()
        for name, item in cast("Mapping[str, Any]", value).items():
            result[name] = _flow(item)
        result.fa.set_flow_style()
        return result
    if isinstance(value, list):
        sequence: Any = CommentedSeq(_flow(item) for item in cast("list[Any]", value))
        sequence.fa.set_flow_style()
        return sequence
    return _scalar(value)


def _scalar(value: Any) -> Any:
    """Quote texts that YAML would read as something else, such as account ids."""
    if isinstance(value, str) and value.isdigit():
        return DoubleQuotedScalarString(value)
    return value
