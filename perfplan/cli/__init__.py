"""The command line: one file a verb family, each imported only when its command runs, and no logic here."""

from __future__ import annotations

import importlib
import os

import click

from perfplan import __version__

# name -> (module in perfplan.cli, attribute, one line of help). The help stands here so that `--help` imports nothing.
COMMANDS: dict[str, tuple[str, str, str]] = {
    "init": ("init", "init", "Set up a repository: a campaign, an example experiment, folders."),
    "new": ("new", "new", "Write a commented spec from a template; prints what the log knows of it."),
    "check": ("check", "check", "Validate specs without running them; dead ends and cost in advance."),
    "run": ("run", "run", "Run experiments: measure, judge, record, rewrite the plan, commit."),
    "record": ("record", "record", "File the records of detached runs after verifying their sources."),
    "commit": ("commit", "commit", "Commit records that are on disk but not in git yet."),
    "plan": ("plan", "plan", "Regenerate the plan documents, or check that they are current."),
    "query": ("query", "query", "Ask the log: runs, levers, premises, dead ends, and whether they hold here."),
    "show": ("show", "show", "Show one run, decision or dead end in full."),
    "dead-end": ("decide", "dead_end", "Add, retire or reopen an entry of the do-not-retread list."),
    "premise": ("decide", "premise", "State, revise or refute what the campaign believes."),
    "lever": ("decide", "lever", "Propose, adopt or retire a change that could help."),
    "schema": ("schema", "schema", "Print the JSON Schema of specs or campaigns, for editors."),
    "doctor": ("doctor", "doctor", "What this machine can do, what is missing, and the command that mends it."),
}

EXIT_CODES = """\b
Exit codes:
  0  done (a validly measured refutation is 0)
  1  a check found something: stale plan, bad record, match in `check`, no match in `query`, invalid run
  2  usage, or a bad spec
  3  stopped by a dead end
  4  the numerics gate failed
  5  the measured program crashed or timed out
  6  device or environment not as required
  7  git refuses: rebase in progress, a failing hook, no identity
  8  lock busy
  With `run --exit-code`: 10 refuted, 11 mixed, 12 inconclusive"""


class LazyGroup(click.Group):
    """Imports a command's module when it is called, not before: start-up is what agents wait for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, attribute, _ = COMMANDS[name]
        command: click.Command = getattr(importlib.import_module(f"perfplan.cli.{module}"), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_line) for name, (_, _, help_line) in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS:
            import difflib

            close = difflib.get_close_matches(name, COMMANDS, n=1)
            ctx.fail(f"no such command {name!r}" + (f"; did you mean {close[0]!r}?" if close else ""))
        return super().resolve_command(ctx, args)


@click.group(
    cls=LazyGroup, epilog=EXIT_CODES, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(__version__, "--version", prog_name="perfplan", message="%(prog)s %(version)s")
@click.option(
    "-C", "directory", metavar="DIR", type=click.Path(exists=True, file_okay=False), help="Run as if started in DIR."
)
def main(directory: str | None) -> None:
    """The decision log of a GPU-kernel performance campaign, tied to git.

    A hypothesis goes in as YAML, a measured verdict comes out as a commit, and the plan document is always a pure
    function of what is in the repository.
    """
    if directory:
        os.chdir(directory)
