"""`perfplan new`: a commented spec from a template."""

from __future__ import annotations

import click

from perfplan.errors import Exit


@click.command()
@click.argument("name")
@click.option("--from", "other", metavar="EXPERIMENT", help="Copy the spec of another experiment, comments and all.")
@click.option("--campaign", metavar="NAME", help="Campaign of the experiment; the only one by default.")
@click.option("--lever", metavar="NAME", help="Lever that it tests; NAME by default.")
@click.option(
    "--kernel", "entry", metavar="FILE.py:CLASS", help="Kernel to measure; its axes and knobs go into the comments."
)
def new(name: str, other: str | None, campaign: str | None, lever: str | None, entry: str | None) -> int:
    """Write experiments/NAME.yaml, a commented spec, and print what the log already knows about its lever."""
    from perfplan.ask import known_about
    from perfplan.campaigns import choose_campaign
    from perfplan.layout import find_layout
    from perfplan.log import load_log
    from perfplan.measure.supervisor import Worker
    from perfplan.scaffold import new_spec
    from perfplan.spec import read_spec_text

    layout = find_layout()
    log = load_log(layout)
    source = read_spec_text(layout, other) if other else None
    kernel = None
    if entry:
        with Worker(layout.root) as worker:
            kernel = worker.describe(entry, "cpu").kernel
    path = new_spec(layout, name, choose_campaign(log.campaigns, campaign), lever or name, entry, kernel, source)
    known = known_about(log, [name, *([lever] if lever else [])])
    click.echo("\n".join(known) if known else f"the log knows nothing about {lever or name} yet", err=True)
    click.echo(layout.relative(path))
    return Exit.DONE
