"""`perfplan query`: ask the log."""

from __future__ import annotations

import json

import click

from perfplan.errors import Exit

VERDICTS = ("confirmed", "refuted", "mixed", "inconclusive", "invalid")


@click.command()
@click.argument("text", nargs=-1)
@click.option("--dead-ends", is_flag=True, help="Only the do-not-retread list.")
@click.option("--campaign", metavar="NAME", help="Only this campaign.")
@click.option("--lever", metavar="NAME", help="Only what is about this lever.")
@click.option("--verdict", type=click.Choice(VERDICTS), help="Only runs with this verdict.")
@click.option("--arch", metavar="ARCH", help="Only what was found on this architecture, for instance sm120.")
@click.option("--kernel", metavar="PART", help="Only where the kernel's entry holds this text.")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1), help="At most so many answers.")
@click.option("--json", "as_json", is_flag=True, help="Print the answers as JSON; docs/dead-ends.md documents it.")
def query(
    text: tuple[str, ...], dead_ends: bool, campaign: str | None, lever: str | None, verdict: str | None, arch: str | None,
    kernel: str | None, limit: int, as_json: bool,
) -> int:  # fmt: skip
    """Ask the log for runs, dead ends, levers and premises; the best match first.

    Each answer says where it holds and whether that is here. No match exits with 1, as grep does.
    """
    from perfplan.ask import Wanted, ask
    from perfplan.layout import find_layout
    from perfplan.log import load_log
    from perfplan.machine import this_machine

    log = load_log(find_layout())
    words = tuple(word for each in text for word in each.split())
    found = ask(log, Wanted(words, dead_ends, campaign, lever, verdict, arch, kernel), this_machine().facts())
    shown = found[:limit]
    if as_json:
        from perfplan.cli.answers import as_data

        click.echo(
            json.dumps(
                {"schema_version": 1, "matches": len(found), "answers": [as_data(each) for each in shown]}, indent=1
            )
        )
    else:
        from perfplan.cli.answers import print_answers

        print_answers(shown, len(found))
    for problem in log.problems:
        click.echo(f"skipped: {problem}", err=True)
    return Exit.FOUND if log.problems or not found else Exit.DONE
