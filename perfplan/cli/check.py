"""`perfplan check`: validate specs without running them."""

from __future__ import annotations

import json
from pathlib import Path

import click

from perfplan.errors import MOST_SHOWN, Exit


@click.command()
@click.argument("specs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="SPEC...")
@click.option(
    "--device", default="auto", metavar="cuda:N|cpu", help="Device that the dead ends and the cost are about."
)
@click.option("--no-kernel", is_flag=True, help="Don't load the kernel: only what the files say.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON on standard output.")
def check(specs: tuple[Path, ...], device: str, no_kernel: bool, as_json: bool) -> int:
    """Validate specs without running them: every error at once, dead ends, and what a run would cost.

    Exits with 2 for a bad spec, with 1 for a spec that is a known dead end here.
    """
    from perfplan.checking import check_spec
    from perfplan.deadends import describe
    from perfplan.layout import find_layout
    from perfplan.log import load_log

    layout = find_layout(specs[0].absolute().parent)
    log = load_log(layout)
    reports = [check_spec(path.absolute(), layout, log, None if no_kernel else device) for path in specs]
    if as_json:
        click.echo(json.dumps({"schema_version": 1, "specs": [report.as_data() for report in reports]}, indent=1))
    for report in reports:
        for problem in report.problems[:MOST_SHOWN]:
            click.echo(click.style("error: ", fg="red", bold=True) + str(problem)[:600], err=True)
        if len(report.problems) > MOST_SHOWN:
            click.echo(f"... and {len(report.problems) - MOST_SHOWN} more", err=True)
        if not as_json:
            for match in report.matches:
                click.echo("\n".join(describe(match)))
            if report.cost is not None:
                click.echo(f"{report.path}: ok, {report.cost.text}")
    return max((report.exit_code for report in reports), key=_severity, default=Exit.DONE)


def _severity(code: Exit) -> int:
    return (Exit.DONE, Exit.FOUND, Exit.ENVIRONMENT, Exit.CRASHED, Exit.USAGE).index(code)
