"""`perfplan doctor`: what this machine can do."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from perfplan.errors import Exit

_MARKS = {"ok": ("green", "ok  "), "missing": ("yellow", "-   "), "broken": ("red", "!!  ")}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON on standard output.")
def doctor(as_json: bool) -> int:
    """Say what this machine can do, what is missing, and the command that mends it.

    Exits with 6 where no experiment can run here.
    """
    from pathlib import Path

    from perfplan.doctor import examine

    findings = examine(Path.cwd())
    usable = any(each.name.startswith("measure on") and each.state == "ok" for each in findings)
    if as_json:
        click.echo(
            json.dumps(
                {"schema_version": 1, "usable": usable, "findings": [asdict(each) for each in findings]}, indent=1
            )
        )
    else:
        for each in findings:
            colour, mark = _MARKS[each.state]
            click.echo(click.style(mark, fg=colour, bold=True) + f"{each.name}: {each.detail}")
            if each.mend:
                click.echo(f"      {each.mend}")
    return Exit.DONE if usable else Exit.ENVIRONMENT
