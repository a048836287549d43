"""The entry point: runs the command line and turns errors into one clear message and an exit code."""

from __future__ import annotations

import signal
import sys

import click

from perfplan.cli import main
from perfplan.errors import EnvironmentProblem, Exit, PerfplanError


def entry() -> None:
    """Run perfplan. Errors that the user can mend are printed without a traceback; only our own bugs have one."""
    for number in (signal.SIGTERM, signal.SIGHUP):  # end as with Ctrl-C: the worker stopped, the index left alone
        signal.signal(number, signal.default_int_handler)
    code = run(sys.argv[1:])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is done: a late Ctrl-C must not turn the exit code into a signal
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run with `arguments` and return the exit code."""
    try:
        code = main.main(arguments, prog_name="perfplan", standalone_mode=False)
        return int(code) if isinstance(code, int) else Exit.DONE
    except PerfplanError as error:
        print_error(error)
        return error.exit_code
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        error.show(sys.stderr)
        return Exit.USAGE
    except (KeyboardInterrupt, click.Abort):
        click.echo("\ninterrupted; nothing half-written is left behind", err=True)
        return Exit.INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        return Exit.DONE
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print_error(EnvironmentProblem(f"{where}{error.strerror or error}", hint="mend it and run the command again"))
        return Exit.ENVIRONMENT
    except Exception:
        import traceback

        traceback.print_exc()
        click.echo(
            "\nThis is a bug in perfplan. Please report it with the lines above and the command that you ran.", err=True
        )
        return 70  # EX_SOFTWARE: not one of the documented codes, so that a bug is never taken for a verdict


def print_error(error: PerfplanError) -> None:
    """`error: ...` on standard error, with the hint on a line of its own."""
    click.echo(click.style("error: ", fg="red", bold=True) + str(error), err=True)
    if error.hint:
        click.echo(click.style(" hint: ", fg="cyan", bold=True) + error.hint, err=True)
