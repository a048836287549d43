"""`perfplan commit`: what is on disk but not in git yet."""

from __future__ import annotations

import json

import click

from perfplan.errors import Exit


@click.command()
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--json", "as_json", is_flag=True, help="Print the commits as JSON on standard output.")
def commit(ids: tuple[str, ...], as_json: bool) -> int:
    """Commit records and decisions that are on disk but not in git yet: one commit each, oldest first, all by default.

    An ID may be any unique prefix. The plan is rewritten before each commit.
    """
    from perfplan.commits import commit_pending, pending
    from perfplan.ids import resolve
    from perfplan.layout import find_layout

    layout = find_layout()
    known = [entry.id for entry in pending(layout)]
    wanted = [resolve(each, known) for each in ids] if ids else known
    made = commit_pending(layout, wanted)
    if as_json:
        commits = [
            {"id": entry, "commit": each.sha, "paths": each.paths, "left_out": each.left_out} for entry, each in made
        ]
        click.echo(json.dumps({"schema_version": 1, "commits": commits}, indent=1))
        return Exit.FOUND if any(each.damaged for _, each in made) else Exit.DONE
    for entry, each in made:
        click.echo(f"{entry}  {each.sha[:12]}")
        for path in each.left_out:
            click.echo(f"note: {path} was edited after the run, so it stays uncommitted", err=True)
        for path in each.damaged:
            click.echo(f"error: {path} is damaged, so the plan was left as it is; `git checkout -- {path}`", err=True)
    if not made:
        click.echo("nothing to commit: every record and decision is in git", err=True)
    return Exit.FOUND if any(each.damaged for _, each in made) else Exit.DONE
