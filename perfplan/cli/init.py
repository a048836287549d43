"""`perfplan init`: set up a repository."""

from __future__ import annotations

import click

from perfplan.errors import Exit


@click.command()
@click.option("--campaign", default="first-campaign", show_default=True, metavar="NAME", help="Id of the campaign.")
@click.option("--no-commit", is_flag=True, help="Leave the files uncommitted.")
def init(campaign: str, no_commit: bool) -> int:
    """Set up a git repository: a campaign, an example experiment that runs on a CPU at once, and folders.

    Never overwrites a file. Commits just what it wrote.
    """
    from pathlib import Path

    from perfplan.git import open_repository
    from perfplan.layout import Layout
    from perfplan.scaffold import init_repository

    repository = open_repository(Path.cwd())
    if not no_commit:
        repository.refuse_if_unready()
    layout = Layout(Path.cwd().resolve())
    written = init_repository(layout, campaign)
    for path in written:
        click.echo(f"wrote   {layout.relative(path)}")
    if not no_commit:
        commit = repository.commit_paths(written, f"chore(perfplan): start campaign {campaign}\n")
        click.echo(f"commit  {commit[:12]}")
    click.echo(
        "\nNext:\n  perfplan run experiments/example.yaml\n  perfplan new NAME   # your own experiment", err=True
    )
    return Exit.DONE
