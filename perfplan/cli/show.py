"""`perfplan show`: one entry of the log in full."""

from __future__ import annotations

import json

import click

from perfplan.errors import Exit


@click.command()
@click.argument("entry", metavar="ID|NAME")
@click.option("--json", "as_json", is_flag=True, help="Print the entry as JSON.")
def show(entry: str, as_json: bool) -> int:
    """Show a run, a decision or a dead end in full. ID may be any unique prefix, or the short id that the plan shows."""
    from perfplan.cli.details import as_lines
    from perfplan.layout import find_layout
    from perfplan.log import load_log
    from perfplan.lookup import find_entry, namesakes

    log = load_log(find_layout())
    found = find_entry(log, entry)
    if as_json:
        click.echo(json.dumps({"schema_version": 1, **found.model_dump(mode="json")}, indent=1))
    else:
        click.echo("\n".join([*as_lines(found, log), *(f"see also  {words}" for words in namesakes(log, found))]))
    for problem in log.problems:
        click.echo(f"skipped: {problem}", err=True)
    return Exit.FOUND if log.problems else Exit.DONE
