"""Commands on pins: what versions of things outside are used."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="Versions and digests of things outside, with source and date.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Lock = Annotated[
    Path | None,
    typer.Option("--file", help="A pins.lock that overrides the package's own."),
]


@app.command("list")
def list_pins(
    file: Lock = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List all pins with value, source and date."""
    from runfleet.catalogue.pins import load_pins
    from runfleet.cli.output import print_json, print_table

    pins = load_pins(file).pins
    if json:
        print_json({name: pin.model_dump(mode="json") for name, pin in pins.items()})
        return
    print_table(
        ("pin", "value", "used by", "read", "source"),
        (
            (name, pin.value, ", ".join(pin.used_by), pin.read or "", pin.source)
            for name, pin in sorted(pins.items())
        ),
    )


@app.command("refresh")
def refresh(
    file: Annotated[
        Path, typer.Option("--file", help="The pins.lock to write.")
    ] = Path("pins.lock"),
) -> None:
    """Read current versions from their sources, where the network allows."""
    from runfleet.catalogue.refresh import refresh_pins

    changes = refresh_pins(file)
    for change in changes:
        typer.echo(str(change))
    if not changes:
        typer.echo("all pins are current")
    if any(change.failed for change in changes):
        raise typer.Exit(3)
