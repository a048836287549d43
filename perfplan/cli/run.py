"""`perfplan run`: from a spec to a committed plan."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import click

from perfplan.errors import Exit, PerfplanError


@click.command()
@click.argument("specs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="SPEC...")
@click.option(
    "--device", default="auto", metavar="cuda:N|cpu", help="Where to run; a GPU where there is one by default."
)
@click.option("--retread", metavar="WHY", help="Run a known dead end all the same; the reason goes into the record.")
@click.option(
    "--no-commit", is_flag=True, help="Write the record and the plan, but leave the commit to `perfplan commit`."
)
@click.option(
    "--detached", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
    help="Needs no git repository: write only the record, under DIR, for `perfplan record DIR` in the checkout.",
)  # fmt: skip
@click.option(
    "--exit-code", "by_verdict", is_flag=True, help="Exit with 10, 11 or 12 for refuted, mixed or inconclusive."
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the records as JSON on standard output; progress goes to standard error.",
)
def run(
    specs: tuple[Path, ...],
    device: str,
    retread: str | None,
    no_commit: bool,
    detached: Path | None,
    by_verdict: bool,
    as_json: bool,
) -> int:
    """Run experiments: preflight, measure, judge, record, rewrite the plan, commit.

    The last lines give baseline, candidate and effect with its interval at each point, the verdict, the record and the
    commit. The exit code is that of the first spec that did not end with 0; the others are run all the same.
    """
    from perfplan.cli.display import Display
    from perfplan.cli.entry import print_error
    from perfplan.layout import find_layout
    from perfplan.pipeline import Request, run_spec
    from perfplan.run import exit_code

    if retread is not None and not retread.strip():
        raise click.BadParameter("say why it may work now", param_hint="--retread")
    request = Request(
        device=device, retread=retread, commit=not no_commit, detached=detached.absolute() if detached else None
    )
    layout = find_layout(specs[0].absolute().parent)
    codes: list[int] = []
    results = []
    for spec in specs:
        with Display((sys.stderr if as_json else sys.stdout) or Path(os.devnull).open("w")) as display:
            try:
                result = run_spec(spec.absolute(), layout, request, display.listener)
            except PerfplanError as error:
                if len(specs) == 1:
                    raise
                print_error(error)
                codes.append(error.exit_code)
                continue
            display.result(result)
        results.append(result)
        codes.append(exit_code(result.run, by_verdict))
        if result.refused is not None:
            print_error(result.refused)
            codes.append(result.refused.exit_code)
    if as_json:
        runs = [
            {"path": each.path, "commit": each.commit, "record": each.run.model_dump(mode="json")} for each in results
        ]
        click.echo(json.dumps({"schema_version": 1, "runs": runs}, indent=1))
    return next((code for code in codes if code), Exit.DONE)
