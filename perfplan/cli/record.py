"""`perfplan record`: file the records of detached runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from perfplan.errors import Exit, Location, PerfplanError


@click.command()
@click.argument("place", metavar="DIR", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--allow-unknown-source",
    is_flag=True,
    help="File it although its sources are not in the history; the plan shows that.",
)
@click.option(
    "--no-commit",
    is_flag=True,
    help="File the records and rewrite the plan, but leave the commit to `perfplan commit`.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what was filed as JSON on standard output.")
def record(place: Path, allow_unknown_source: bool, no_commit: bool, as_json: bool) -> int:
    """File the records in DIR (or one record) of `perfplan run --detached DIR`, after verifying their sources.

    Each goes to experiments/ with the commit that holds its sources, and is committed with the plan. One that was filed
    before is left as it is. A bad one is named and skipped; the others are filed, and the exit code tells.
    """
    from perfplan.cli.entry import print_error
    from perfplan.commits import commit_pending, regenerate
    from perfplan.filing import detached_records, file_record
    from perfplan.git import open_repository
    from perfplan.layout import find_layout
    from perfplan.locks import filing_lock

    layout = find_layout()
    repository = open_repository(layout.root)
    if not no_commit:
        repository.refuse_if_unready()
    codes: list[int] = []
    rows: list[dict[str, Any]] = []
    for path in detached_records(place):
        try:
            filed = file_record(path, layout, repository, allow_unknown_source)
            made = [] if no_commit else commit_pending(layout, [filed.run.id])
        except PerfplanError as error:
            error.location = error.location or Location(str(path))
            print_error(error)
            codes.append(error.exit_code)
            continue
        sha = made[0][1].sha if made else None
        source = {"source_commit": filed.run.source.commit, "unknown": filed.run.source.unknown}
        rows.append({"id": filed.run.id, "path": filed.path, "new": filed.new, "commit": sha, **source})
        if not as_json:
            state = "filed" if filed.new else "already filed"
            from_commit = (
                f"sources from {filed.run.source.commit[:12]}" if filed.run.source.commit else "sources unknown"
            )
            click.echo(
                f"{filed.run.id}  {state}: {filed.path}, {from_commit}" + (f", committed as {sha[:12]}" if sha else "")
            )
    if no_commit and any(row["new"] for row in rows):
        with filing_lock(layout):
            regenerate(layout)
    if as_json:
        click.echo(json.dumps({"schema_version": 1, "records": rows}, indent=1))
    return next((code for code in codes if code), Exit.DONE)
