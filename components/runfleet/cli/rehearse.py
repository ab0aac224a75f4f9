"""The command ``runfleet rehearse``: run the stacks without a cloud account."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path
from typing import Annotated, Any

import typer


def rehearse(
    stacks: Annotated[
        list[str] | None,
        typer.Argument(help="Stacks to rehearse; default: all.", metavar="[STACK]..."),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Folder for the records; default: out/ of the project."
        ),
    ] = None,
    emulate: Annotated[
        bool,
        typer.Option(help="Create AWS resources in an emulator, which refuses errors."),
    ] = True,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", min=1, help="Stacks rehearsed at once.")
    ] = os.cpu_count() or 1,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Rehearse stacks: run the real program offline, record and judge the result.

    Ends with exit 1 when a stack does not rehearse or has findings that no waiver
    covers.
    """
    from runfleet.cli.output import print_json
    from runfleet.cli.progress import Progress
    from runfleet.cli.project import find_fleet, find_root, find_stacks
    from runfleet.errors import InputError, Problem
    from runfleet.rehearsal.stacks import rehearse_stacks
    from runfleet.review.summary import summarise
    from runfleet.spec.source import nearest

    root = find_root()
    out = folder or root / "out"
    known = find_stacks(root)
    wanted = stacks or known
    unknown = [
        Problem(
            "stacks", 0, name, "there is no stack of this name",
            allowed=", ".join(known), nearest=nearest(name, known),
        )
        for name in wanted
        if name not in known
    ]  # fmt: skip
    if unknown:
        raise InputError(unknown)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or str(error)
        message = f"records cannot be written there: {reason}"
        raise InputError([Problem(str(out), 0, "--out", message)]) from None
    with Progress(wanted) as progress:
        fleet = find_fleet(root)
        results = rehearse_stacks(
            root,
            wanted,
            out,
            emulate=emulate,
            jobs=jobs,
            on_event=progress.event,
            sources=[p for p in _sources(fleet) if p.exists()],
        )
    failed = {r.stack: r.error for r in results if r.error}
    summaries = summarise(fleet, out, wanted, dt.date.today(), failed)
    if json:
        print_json([summary.as_dict() for summary in summaries])
    else:
        for summary in summaries:
            _show(summary, out)
    if not all(summary.good for summary in summaries):
        raise typer.Exit(1)


def _sources(fleet: Path) -> list[Path]:
    """Return the files that a record is made from."""
    from runfleet.catalogue.pins import PINS_NAME
    from runfleet.placement.lock import LOCK_NAME

    return [fleet, fleet.with_name(LOCK_NAME), fleet.with_name(PINS_NAME)]


def _show(summary: Any, out: Path) -> None:
    from runfleet.cli.output import print_findings, print_table
    from runfleet.cli.output import summary as count

    typer.echo()
    if summary.error:
        typer.echo(f"stack {summary.stack}: does not rehearse")
        typer.echo(f"  {summary.error}")
        return
    total = sum(summary.types.values())
    print_table(
        ("type", "resources"),
        summary.types.items(),
        title=f"stack {summary.stack}: {total} resources of {len(summary.types)} types",
    )
    if summary.classes:
        typer.echo()
        print_table(
            ("role", "trust", "classes", "pools", "node pools", "runners at most"),
            (row.cells() for row in summary.classes),
            title=f"{summary.class_count} runner classes, "
            f"{summary.node_pools} node pools",
        )
    if summary.access:
        typer.echo()
        print_table(
            ("role", "classes", "may", "equal to grants"),
            (row.cells() for row in summary.access),
            title=f"access: {summary.identities} identities",
        )
    typer.echo()
    print_findings(summary.findings)
    typer.echo(count(summary.findings))
    if summary.unresolved_pins:
        names = ", ".join(summary.unresolved_pins)
        typer.echo(f"{len(summary.unresolved_pins)} unresolved pins: {names}")
    typer.echo(f"record: {out / summary.stack / 'record.json'}")
