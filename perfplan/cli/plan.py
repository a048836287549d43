"""`perfplan plan`: regenerate the plan documents, or check that they are current."""

from __future__ import annotations

import click

from perfplan.errors import Exit
from perfplan.layout import Layout, find_layout
from perfplan.locks import filing_lock
from perfplan.log import Log, load_log


@click.command()
@click.argument("campaigns", nargs=-1, metavar="[CAMPAIGN]...")
@click.option(
    "--check", "mode", flag_value="check", help="Write nothing; exit 1 and print a diff where a plan is stale."
)
@click.option("--stdout", "mode", flag_value="stdout", help="Write nothing; print the documents.")
@click.option(
    "--resolve",
    "mode",
    flag_value="resolve",
    help="Settle a merge conflict in a plan; hand-written regions keep both sides.",
)
def plan(campaigns: tuple[str, ...], mode: str | None) -> int:
    """Regenerate the plan of every campaign, or of each CAMPAIGN named, from the files. Commits nothing."""
    layout = find_layout()
    if mode in ("check", "stdout"):
        return _run(layout, campaigns, mode)
    with filing_lock(layout):  # a run that files its record at the same time must not be overwritten by older text
        return _run(layout, campaigns, mode or "write")


def _run(layout: Layout, campaigns: tuple[str, ...], mode: str) -> int:
    log = load_log(layout)
    for problem in log.problems:
        click.echo(f"skipped: {problem}", err=True)
    code = _MODES[mode](layout, log, campaigns)
    return max(code, Exit.FOUND if log.problems else Exit.DONE)


def _write(layout: Layout, log: Log, campaigns: tuple[str, ...]) -> int:
    from perfplan.plan import write_documents

    _say([layout.relative(path) for path in write_documents(layout, log, campaigns)])
    return Exit.DONE


def _check(layout: Layout, log: Log, campaigns: tuple[str, ...]) -> int:
    from perfplan.plan import check_documents

    stale = check_documents(layout, log, campaigns)
    for each in stale:
        click.echo(each.diff, nl=False)
    for each in stale:
        click.echo(f"stale: {layout.relative(each.path)}", err=True)
    if stale:
        click.echo("`perfplan plan` regenerates it", err=True)
    return Exit.FOUND if stale else Exit.DONE


def _stdout(layout: Layout, log: Log, campaigns: tuple[str, ...]) -> int:
    from perfplan.plan import build_documents

    for document in build_documents(layout, log, campaigns):
        click.echo(document.text, nl=False)
    return Exit.DONE


def _resolve(layout: Layout, log: Log, campaigns: tuple[str, ...]) -> int:
    from perfplan.plan import resolve_documents

    resolved = resolve_documents(layout, log, campaigns)
    paths = [layout.relative(path) for path in resolved.paths]
    _say(paths)
    for shown, names in resolved.both.items():
        click.echo(
            f"{shown}: both sides wrote in {', '.join(names)}; both are kept and marked, edit it before you commit",
            err=True,
        )
    if paths:
        click.echo(f"now: git add {' '.join(paths)}", err=True)
    return Exit.DONE


def _say(paths: list[str]) -> None:
    for path in paths:
        click.echo(path)
    if not paths:
        click.echo("no campaign in plans/; `perfplan init` writes one", err=True)


_MODES = {"write": _write, "check": _check, "stdout": _stdout, "resolve": _resolve}
