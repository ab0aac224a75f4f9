"""The command ``runfleet doctor``: what a real deployment lacks on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def doctor(
    file: Annotated[
        Path | None,
        typer.Argument(help="The fleet file; default: that of the stacks."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what a real deployment needs, what is missing, and the line that gets it."""
    from runfleet.cli.output import print_json, print_table
    from runfleet.cli.project import find_fleet, find_root
    from runfleet.review.readiness import check_readiness

    root = find_root()
    results = check_readiness(root, file or find_fleet(root))
    missing = [result for result in results if not result.ok]
    if json:
        print_json([result.as_dict() for result in results])
    else:
        print_table(
            ("", "what", "needed for", "found"),
            (
                ("ok" if r.ok else "MISSING", r.name, r.needed_for, r.found)
                for r in results
            ),
        )
        for result in missing:
            typer.echo(f"{result.name}: get it with: {result.remedy}")
        typer.echo(f"{len(results) - len(missing)} ok, {len(missing)} missing")
    if missing:
        raise typer.Exit(3)
