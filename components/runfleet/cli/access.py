"""The command ``runfleet access``: who may do what with which store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def access(
    file: Annotated[
        Path | None,
        typer.Argument(help="The fleet file; default: that of the stacks."),
    ] = None,
    records: Annotated[
        Path | None,
        typer.Option(
            "--records", help="Folder of the records; default: out/ of the project."
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Print every row, not one per role.")
    ] = False,
) -> None:
    """Compare what identities may do with what their grants say; exit 1 if unequal."""
    from runfleet.catalogue.read import read_fleet
    from runfleet.cli.output import print_json, print_table
    from runfleet.cli.project import find_fleet, find_root
    from runfleet.review.access import access_matrix, by_role, read_records

    path = file or find_fleet()
    fleet = read_fleet(path).fleet
    matrix = access_matrix(
        fleet, read_records(records or find_root() / "out", fleet), path
    )
    if json:
        print_json(matrix.as_dict())
    else:
        if full:
            print_table(
                ("stack", "class", "verb", "store", "scope", "expected", "allowed", ""),
                (
                    (
                        r.stack,
                        r.runner_class,
                        r.verb,
                        r.store,
                        r.scope,
                        r.expected,
                        r.allowed,
                        "" if r.equal else "DIFFERS",
                    )
                    for r in matrix.rows
                ),
            )
        else:
            print_table(
                ("stack", "role", "classes", "may", "equal to grants"),
                by_role(matrix),
            )
        for row in matrix.differences:
            typer.echo(f"DIFFERS {row.describe()}")
        typer.echo(
            f"{len(matrix.rows)} rows, {sum(matrix.identities.values())} identities, "
            f"{len(matrix.differences)} differences"
        )
        typer.echo("No emulator confirms these parts of the evaluation:")
        for line in matrix.not_cross_checked:
            typer.echo(f"  {line}")
    if matrix.differences:
        raise typer.Exit(1)
