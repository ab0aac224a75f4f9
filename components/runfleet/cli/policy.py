"""Commands on policies: the rules, and what each is about."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(
    help="The rules that stacks and fleet files are judged by.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
def list_rules(json: Json = False) -> None:
    """List all rules with severity, area, pack and title."""
    from runfleet.cli.output import print_json, print_table
    from runfleet_policies.explain import policy_table

    rules = policy_table()
    if json:
        print_json(rules)
        return
    columns = ("id", "severity", "area", "pack", "title")
    print_table(columns, ([rule[column] for column in columns] for rule in rules))
    typer.echo(f"{len(rules)} rules")


@app.command("explain")
def explain_rule(
    rule: Annotated[str, typer.Argument(help="Id of a rule, such as R-AWS-20.")],
    json: Json = False,
) -> None:
    """Say what a rule asks for, why, how to mend a breach and how to waive it."""
    from runfleet.cli.output import print_json
    from runfleet_policies.explain import explain, explain_data

    if json:
        print_json(explain_data(rule))
    else:
        typer.echo(explain(rule))
