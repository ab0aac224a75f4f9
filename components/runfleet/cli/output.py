"""Printing for people and for programs: tables, findings, JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import typer

from runfleet.spec.findings import Finding

PIPE_WIDTH = 120
"""Characters of a table line where there is no terminal to fit it to."""


def print_json(data: Any) -> None:
    """Print data as indented JSON with sorted keys."""
    typer.echo(json.dumps(data, indent=2, sort_keys=True, default=str))


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str = ""
) -> None:
    """Print rows as a table: fitted on a terminal, never cut in a pipe.

    Args:
        columns: The headings.
        rows: The cells; anything that can be a text.
        title: A line above the table.
    """
    from rich.console import Console
    from rich.table import Table

    console = Console(
        file=sys.stdout,
        width=None if sys.stdout.isatty() else PIPE_WIDTH,
        highlight=False,
    )
    table = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(_cell(value) for value in row))
    with console.capture() as captured:
        if title:
            console.print(title, style="bold", markup=False)
        console.print(table)
    for line in captured.get().splitlines():
        typer.echo(line.rstrip())


def print_findings(findings: Sequence[Finding], *, waived: bool = False) -> None:
    """Print findings, worst first, each with its place, reason and fix.

    Args:
        findings: What to print.
        waived: Whether to print those that a waiver covers too.
    """
    shown = [f for f in findings if waived or not f.waived_by]
    for finding in sorted(shown, key=lambda f: (f.severity.rank, f.rule, f.where)):
        place = f"{finding.file}:{finding.line}: " if finding.file else ""
        state = " (cannot tell)" if finding.cannot_tell else ""
        if finding.waived_by:
            state += f" (waived by {finding.waived_by})"
        typer.echo(f"{place}{finding.severity} {finding.rule}{state} {finding.where}")
        typer.echo(f"    {finding.why}")
        typer.echo(f"    fix: {finding.fix}")


def summary(findings: Sequence[Finding]) -> str:
    """Return the line that counts findings and waivers."""
    open_ = [f for f in findings if not f.waived_by]
    waived = len(findings) - len(open_)
    if not open_:
        return f"no findings ({waived} waived)" if waived else "no findings"
    counts = ", ".join(
        f"{sum(1 for f in open_ if f.severity == severity)} {severity}"
        for severity in sorted({f.severity for f in open_}, key=lambda s: s.rank)
    )
    return f"{len(open_)} findings ({counts}), {waived} waived"


def _cell(value: object) -> str:
    from rich.markup import escape

    if isinstance(value, bool):
        return "yes" if value else "no"
    return escape(str(value))
