"""The ``runfleet`` command.

Commands import what they need when they run, so that ``runfleet --help`` answers at
once. Errors that a person can cause end with one message and their exit code: 0
done, 1 findings, 2 bad input, 3 something needed is missing.
"""

from __future__ import annotations

import sys

import typer

from runfleet import __version__
from runfleet.cli import access, doctor, fleet, pins, policy, rehearse
from runfleet.errors import RunfleetError

app = typer.Typer(
    name="runfleet",
    help="Portable CI runner fleets: one fleet file, any cloud, least privilege.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("check")(fleet.check)
app.command("schema")(fleet.schema)
app.command("place")(fleet.place)
app.command("routing")(fleet.routing)
app.add_typer(fleet.importers, name="import")
app.command("rehearse")(rehearse.rehearse)
app.command("access")(access.access)
app.command("doctor")(doctor.doctor)
app.add_typer(pins.app, name="pins")
app.add_typer(policy.app, name="policy")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"runfleet {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False,
        "--version",
        callback=_version,
        is_eager=True,
        help="Print the version and exit.",
    ),
) -> None:
    """Portable CI runner fleets: one fleet file, any cloud, least privilege."""


def run() -> None:
    """Run the command line; end the process with the exit code of its outcome."""
    try:
        app()
    except RunfleetError as error:
        typer.echo(str(error), err=True)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        typer.echo("stopped", err=True)
        sys.exit(130)
    except BrokenPipeError:
        # Whoever read our output has gone; there is nobody left to tell.
        sys.stderr.close()
        sys.exit(0)
