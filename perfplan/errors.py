"""One exception root, the exit codes of every command, and problems that know their place in a file."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass


class Exit(enum.IntEnum):
    """Exit codes of every command (DESIGN section 7)."""

    DONE = 0
    FOUND = (
        1  # a check found something: stale plan, bad record, a match in `check`, an invalid run, no match in `query`
    )
    USAGE = 2  # usage, or a bad spec
    DEAD_END = 3
    NUMERICS = 4
    CRASHED = 5  # the measured program crashed or timed out
    ENVIRONMENT = 6  # device or environment not as required
    GIT = 7
    LOCKED = 8
    REFUTED = 10  # with --exit-code
    MIXED = 11
    INCONCLUSIVE = 12
    INTERRUPTED = 130


@dataclass(frozen=True, order=True)
class Location:
    """A place in a file: `path:line: key`. Lines count from 1; 0 means the file as a whole."""

    path: str
    line: int = 0
    key: str = ""

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {self.key}" if self.key else place


@dataclass(frozen=True)
class Problem:
    """Something wrong in a user's file: where, what, and what to do."""

    location: Location
    message: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.location}: {self.message}" + (f" ({self.hint})" if self.hint else "")


class PerfplanError(Exception):
    """An error that the user can mend. The command line prints it without a traceback and exits with `exit_code`."""

    exit_code: Exit = Exit.USAGE

    def __init__(self, message: str, *, hint: str = "", location: Location | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.location = location

    def __str__(self) -> str:
        return f"{self.location}: {self.message}" if self.location else self.message


MOST_SHOWN = 15  # problems printed at once: one screen


class BadInput(PerfplanError):
    """One or more problems in the user's files, all reported at once."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        shown = [str(problem)[:600] for problem in self.problems[:MOST_SHOWN]]
        more = len(self.problems) - len(shown)
        super().__init__("\n".join([*shown, *([f"... and {more} more"] if more else [])]))


class GitRefused(PerfplanError):
    """Git will not do it now: no repository, a rebase in progress, a hook that failed, no identity."""

    exit_code = Exit.GIT


class Locked(PerfplanError):
    """Another process holds the lock."""

    exit_code = Exit.LOCKED


class EnvironmentProblem(PerfplanError):
    """The device or the environment is not as required."""

    exit_code = Exit.ENVIRONMENT


class WorkerCrashed(PerfplanError):
    """The process that measures died or hung before it could say anything useful."""

    exit_code = Exit.CRASHED


class BadRecord(PerfplanError):
    """A record or decision on disk that cannot be used: cut short, tampered with, or of an unknown schema."""

    exit_code = Exit.FOUND


class NotFound(PerfplanError):
    """Nothing of that name in the log."""

    exit_code = Exit.FOUND
