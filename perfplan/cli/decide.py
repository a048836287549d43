"""`perfplan dead-end`, `premise`, `lever`: write an entry of the decision log and commit it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from perfplan.errors import Exit

Command = Callable[..., int]


def _common(command: Command) -> Command:
    """Options that every entry has."""
    options = (
        click.argument("name"),
        click.option("--campaign", metavar="NAME", help="Campaign of the entry; the only one by default."),
        click.option("--run", "runs", multiple=True, metavar="ID", help="A run that is the evidence; it is then `measured`."),
        click.option("--source", metavar="TEXT", help="Who said so, or a file or link."),
        click.option(
            "--evidence", type=click.Choice(("reported", "derived", "imported")), default="reported", show_default=True,
            help="Class of the evidence, where no run is named.",
        ),
        click.option("--note", metavar="TEXT", help="Why this entry is made."),
        click.option("--date", metavar="YYYY-MM-DD", help="Day of the decision; today by default."),
        click.option("--no-commit", is_flag=True, help="Leave the entry to `perfplan commit`."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def _why(command: Command) -> Command:
    return click.option("--why", "note", required=True, metavar="TEXT", help="Why.")(command)


def _enter(kind: str, action: str, options: dict[str, Any], **fields: Any) -> int:
    """Write and commit an entry, and print where it went."""
    from perfplan.entries import EntryRequest, enter
    from perfplan.layout import find_layout

    request = EntryRequest(
        kind=kind, action=action, name=options["name"], campaign=options.get("campaign"), runs=options.get("runs", ()),
        evidence=options.get("evidence", "reported"), source=options.get("source"), note=options.get("note"),
        day=options.get("date"), fields=fields,
    )  # fmt: skip
    entered = enter(find_layout(), request, commit=not options.get("no_commit", False))
    click.echo(f"entry   {entered.path}")
    if entered.commit:
        click.echo(f"commit  {entered.commit[:12]}")
    for line in entered.remarks:
        click.echo(line, err=True)
    return Exit.DONE


@click.group("dead-end")
def dead_end() -> None:
    """Add, retire or reopen an entry of the do-not-retread list."""


def _dead_end_options(command: Command) -> Command:
    options = (
        click.option("--technique", required=True, metavar="TEXT", help="What is not to be tried again."),
        click.option("--why", "reason", required=True, metavar="TEXT", help="The reason, best a mechanism."),
        click.option(
            "--scope",
            multiple=True,
            metavar="FACT=VALUE",
            help="Where it is dead: device.arch=sm120, 'batch>=64', versions.triton=~=3.6.",
        ),
        click.option("--alias", "aliases", multiple=True, metavar="NAME", help="Another name of the technique."),
        click.option(
            "--reopen-when", multiple=True, metavar="FACT=VALUE", help="What would reopen it; several are alternatives."
        ),
        click.option("--tried", type=click.IntRange(0), help="How many implementations were tried."),
        click.option("--kernel", metavar="FILE.py:CLASS", help="The kernel that it is about."),
        click.option("--knob", "knobs", multiple=True, metavar="KNOB=VALUE", help="A knob whose change is dead."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _dead_end_fields(options: dict[str, Any]) -> dict[str, Any]:
    from perfplan.scope import as_scope

    return {
        "technique": options["technique"], "reason": options["reason"], "scope": as_scope(options["scope"]),
        "aliases": list(options["aliases"]), "reopen_when": [as_scope([each]) for each in options["reopen_when"]],
        "tried": options["tried"], "kernel": options["kernel"], "knobs": as_scope(options["knobs"]),
    }  # fmt: skip


@dead_end.command("add")
@_dead_end_options
@_common
def dead_end_add(**options: Any) -> int:
    """Add an entry: a technique, why it is dead, and where."""
    return _enter("dead-end", "propose", options, **_dead_end_fields(options))


@dead_end.command("revise")
@_dead_end_options
@_common
def dead_end_revise(**options: Any) -> int:
    """Replace an entry by a better one; the old one stays in the history."""
    return _enter("dead-end", "revise", options, **_dead_end_fields(options))


@dead_end.command("retire")
@_why
@_common
def dead_end_retire(**options: Any) -> int:
    """Take an entry off the list for good. NAME is that of the entry, or the experiment of a refuted run."""
    return _enter("dead-end", "retire", options)


@dead_end.command("reopen")
@_why
@_common
def dead_end_reopen(**options: Any) -> int:
    """Let an entry be tried again. NAME is that of the entry, or the experiment of a refuted run."""
    return _enter("dead-end", "reopen", options)


@dead_end.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print the entries as JSON; docs/dead-ends.md documents it.")
@click.pass_context
def dead_end_list(context: click.Context, as_json: bool) -> int:
    """List the entries; the same as `perfplan query --dead-ends`."""
    from perfplan.cli.query import query

    code: int = context.invoke(query, dead_ends=True, limit=1000, as_json=as_json)
    return code


@click.group()
def premise() -> None:
    """State, revise or refute what the campaign believes."""


def _claim(command: Command) -> Command:
    command = click.option("--because", metavar="TEXT", help="The mechanism or the observation behind it.")(command)
    return click.option("--claim", required=True, metavar="TEXT", help="What is claimed, in a sentence.")(command)


@premise.command("add")
@_claim
@_common
def premise_add(**options: Any) -> int:
    """State a premise."""
    return _enter("premise", "propose", options, claim=options["claim"], because=options["because"])


@premise.command("revise")
@_claim
@click.option(
    "--replaces", metavar="NAME", help="The premise that this one takes the place of, where it has another name."
)
@_common
def premise_revise(**options: Any) -> int:
    """Revise a premise: the new claim takes the place of the old one, which stays in the history."""
    return _enter(
        "premise", "revise", options, claim=options["claim"], because=options["because"], replaces=options["replaces"]
    )


@premise.command("refute")
@_why
@_common
def premise_refute(**options: Any) -> int:
    """Say that a premise does not hold."""
    return _enter("premise", "refute", options)


@premise.command("retire")
@_why
@_common
def premise_retire(**options: Any) -> int:
    """Take a premise off the list without judging it."""
    return _enter("premise", "retire", options)


@click.group()
def lever() -> None:
    """Propose, adopt or retire a change that could help."""


def _lever_options(command: Command) -> Command:
    options = (
        click.option("--change", metavar="BAND", help="Expected change of the metric: '[-25%, -15%]', '<= -5%'."),
        click.option("--metric", default="time", show_default=True, help="The metric."),
        click.option("--at", multiple=True, metavar="AXIS=VALUES", help="Where it is expected: batch=64,72,80."),
        click.option("--risk", metavar="TEXT", help="What could go wrong."),
        click.option("--rests-on", multiple=True, metavar="PREMISE", help="A premise that it rests on."),
    )
    for option in reversed(options):
        command = option(command)
    return _claim(command)


def _lever_fields(options: dict[str, Any]) -> dict[str, Any]:
    from perfplan.scope import as_scope

    expected = None
    if options["change"]:
        expected = {"metric": options["metric"], "change": options["change"], "at": as_scope(options["at"])}
    return {
        "claim": options["claim"], "because": options["because"], "expected": expected, "risk": options["risk"],
        "rests_on": list(options["rests_on"]),
    }  # fmt: skip


@lever.command("add")
@_lever_options
@_common
def lever_add(**options: Any) -> int:
    """Propose a lever."""
    return _enter("lever", "propose", options, **_lever_fields(options))


@lever.command("revise")
@_lever_options
@_common
def lever_revise(**options: Any) -> int:
    """Revise a lever's claim or expectation."""
    return _enter("lever", "revise", options, **_lever_fields(options))


def _lever_step(action: str, text: str) -> None:
    @lever.command(action, help=text)
    @_why
    @_common
    def step(**options: Any) -> int:
        return _enter("lever", action, options)


_lever_step("adopt", "Adopt a lever: it is in use from now on.")
_lever_step("retire", "Retire a lever: it is not followed any more.")
_lever_step("reopen", "Reopen a retired lever.")
