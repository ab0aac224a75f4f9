"""Commands on the fleet file: check, schema, place, import."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Annotated, Any

import typer

FleetFile = Annotated[Path, typer.Argument(help="The fleet file.", metavar="FILE")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

importers = typer.Typer(
    help="Turn another system's definitions into a fleet file.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


def check(
    file: FleetFile,
    json: Json = False,
    waived: Annotated[
        bool, typer.Option("--waived", help="Show waived findings too.")
    ] = False,
) -> None:
    """Check a fleet file: errors end with exit 2, findings with exit 1."""
    from runfleet.cli.output import print_findings, print_json, summary
    from runfleet.errors import InputError
    from runfleet.placement.moves import MovableFleet
    from runfleet.review.fleet import fleet_findings

    try:
        fleet_file = MovableFleet.load(file).file
    except InputError as error:
        if json:
            print_json({"errors": [p.as_dict() for p in error.problems]})
            raise typer.Exit(2) from None
        raise
    findings = fleet_findings(fleet_file, dt.date.today())
    if json:
        print_json({"errors": [], "findings": [f.as_dict() for f in findings]})
    else:
        print_findings(findings, waived=waived)
        fleet = fleet_file.fleet
        typer.echo(
            f"{file}: {len(fleet.cells)} cells, {len(fleet.runner_classes)} classes, "
            f"{len(fleet.pools)} pools; {summary(findings)}"
        )
    if any(not finding.waived_by for finding in findings):
        raise typer.Exit(1)


def schema() -> None:
    """Print the JSON Schema of the fleet file, for editors."""
    from runfleet.cli.output import print_json
    from runfleet.spec.schema import fleet_schema

    print_json(fleet_schema())


def place(
    file: FleetFile,
    to: Annotated[
        str | None,
        typer.Option(help="aws, gcp, azure, ibm, own, anywhere or cheapest."),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say why every other offer lost.")
    ] = False,
    only: Annotated[
        str | None, typer.Option("--class", help="Tell of this class only.")
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Write placement.lock.yaml beside FILE.")
    ] = False,
    json: Json = False,
) -> None:
    """Show, and with --write commit, which machines serve each class in each cell."""
    from runfleet.cli.output import print_json
    from runfleet.placement.moves import MovableFleet
    from runfleet.placement.report import place_report, write_placement

    movable = MovableFleet.load(file)
    if to is not None:
        movable = movable.to(to)
    report = place_report(movable, explained=explain, only=only)
    if json:
        print_json(report)
    else:
        _show_placement(report)
    if write:
        typer.echo(f"wrote {write_placement(movable, file)}", err=True)


def _show_placement(report: dict[str, Any]) -> None:
    from runfleet.cli.output import print_table

    print_table(
        ("class", "cell", "pool", "jobs/machine", "USD/job-hour", "machines"),
        [
            _served(str(entry["class"]), served)
            for entry in report["classes"]
            for served in entry["served"]
        ],
    )
    for entry in report["classes"]:
        for zero in entry["zeros"]:
            where = f" in {zero['cell']}" if zero["cell"] else ""
            typer.echo(f"{entry['class']}: zero{where}: {zero['why']}")
        for lost in entry.get("lost", ()):
            typer.echo(f"{entry['class']}: {_lost(lost)}")
    for name in report["external"]:
        typer.echo(f"{name}: not placed (external)")
    for cost in report["costs"]:
        typer.echo("cost " + ", ".join(f"{k} {v}" for k, v in cost.items()))
    for warning in report["warnings"]:
        typer.echo(f"warning: {warning}")


def _served(name: str, served: dict[str, Any]) -> tuple[object, ...]:
    first: dict[str, Any] = served["first"] or {}
    return (
        name,
        served["cell"],
        served["pool"],
        first.get("jobs", ""),
        _price(first.get("usd_job_h")),
        " ".join(served["machines"]),
    )


def _price(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3f}"


def _lost(lost: dict[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in lost.items() if value)


def routing(
    file: FleetFile,
    determinator: Annotated[
        bool,
        typer.Option(
            "--determinator", help="Write the runner determinator's settings instead."
        ),
    ] = False,
) -> None:
    """Print the map of labels to scale sets (arc.yaml) that jobs are routed by."""
    from runfleet.catalogue.read import read_fleet
    from runfleet.placement import routing as routes
    from runfleet.placement.lock import LOCK_NAME, read_lock

    fleet = read_fleet(file).fleet
    if determinator:
        text = routes.determinator_text(routes.determinator(fleet))
    else:
        text = routes.arc_yaml(fleet, read_lock(file.with_name(LOCK_NAME), fleet))
    typer.echo(text, nl=False)


@importers.command("osdc")
def import_osdc(
    clusters: Annotated[Path, typer.Argument(metavar="CLUSTERS.yaml")],
    nodepools: Annotated[Path, typer.Argument(metavar="NODEPOOLS_DIR")],
    runners: Annotated[Path, typer.Argument(metavar="RUNNERS_DIR")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The fleet file to write.")
    ] = Path("fleet.yaml"),
    cluster: Annotated[
        list[str] | None,
        typer.Option(help="Cluster to import; repeat for more. Default: lf-prod-*."),
    ] = None,
    arc: Annotated[
        Path | None,
        typer.Option(help="arc.yaml of pytorch/pytorch, for the older labels."),
    ] = None,
    load: Annotated[
        Path | None,
        typer.Option(help="Measured load (CSV), for maxima that are left open."),
    ] = None,
    revision: Annotated[
        str, typer.Option(help="Commit that the definitions were read at.")
    ] = "",
    account: Annotated[
        str, typer.Option(help="Account id, for clusters whose owner is not known.")
    ] = "",
    json: Json = False,
) -> None:
    """Import pytorch/ci-infra's osdc definitions and report what is not carried."""
    from runfleet.cli.output import print_json
    from runfleet.importers.osdc import LF_CLUSTERS, import_osdc
    from runfleet.importers.write import write_fleet

    result = import_osdc(
        clusters,
        nodepools,
        runners,
        clusters_wanted=tuple(cluster) if cluster else LF_CLUSTERS,
        arc=arc,
        load=load,
        revision=revision,
        account=account,
    )
    write_fleet(result.fleet, output)
    if json:
        report = [entry.as_dict() for entry in result.report]
        print_json({"output": str(output), "report": report})
        return
    for line in result.report:
        typer.echo(str(line))
    typer.echo(
        f"wrote {output}: {len(result.fleet['cells'])} cells, "
        f"{len(result.fleet['runner_classes'])} classes, "
        f"{len(result.fleet['pools'])} pools; {len(result.report)} remarks"
    )
