"""Running the git program: arguments in, bytes out, and errors that say what to do."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from perfplan.errors import GitRefused

# what a user may have configured must not change what is parsed here
_FIXED = ("-c", "core.quotePath=false", "-c", "color.ui=false", "--no-optional-locks")


@dataclass(frozen=True)
class Answer:
    """What git answered. `status` is its exit status."""

    status: int
    stdout: bytes
    stderr: str

    @property
    def text(self) -> str:
        """Standard output without its last newline; bytes that are not UTF-8 survive as surrogates."""
        return self.stdout.decode("utf-8", "surrogateescape").rstrip("\n")

    @property
    def names(self) -> list[str]:
        """Standard output of a command with -z."""
        return [each for each in self.stdout.decode("utf-8", "surrogateescape").split("\0") if each]


class Program:
    """The git program, run in `folder`."""

    def __init__(self, folder: Path) -> None:
        try:
            import git
        except ImportError as error:  # GitPython looks for the program when it is imported
            raise GitRefused(
                "git is not installed, or not on PATH", hint="install git, version 2.25 or newer"
            ) from error
        self.folder = folder
        self._missing = git.exc.GitCommandNotFound
        self._git = git.Git(str(folder))

    def ask(self, *arguments: str, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> Answer:
        """Run and answer, whatever the exit status. Messages are in English."""
        with tempfile.TemporaryFile() as file:
            file.write(stdin)
            file.seek(0)
            try:
                status, stdout, stderr = self._git.execute(
                    ["git", *_FIXED, *arguments],
                    istream=file,
                    env={"GIT_LITERAL_PATHSPECS": "1", **(env or {})},
                    with_extended_output=True,
                    with_exceptions=False,
                    stdout_as_string=False,
                    strip_newline_in_stdout=False,
                )
            except self._missing:
                raise GitRefused(
                    "git is not installed, or not on PATH", hint="install git, version 2.25 or newer"
                ) from None
        output = stdout if isinstance(stdout, bytes) else str(stdout).encode()
        return Answer(int(status), output, str(stderr))

    def must(self, *arguments: str, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> Answer:
        """Run; raises GitRefused with git's own words where it fails."""
        answer = self.ask(*arguments, stdin=stdin, env=env)
        if answer.status != 0:
            raise GitRefused(f"git {arguments[0]} failed: {tail(answer.stderr) or f'exit status {answer.status}'}")
        return answer


def zipped(names: Iterable[str]) -> bytes:
    """Names for the standard input of a command with -z."""
    return b"".join(name.encode("utf-8", "surrogateescape") + b"\0" for name in names)


def tail(output: str, lines: int = 20) -> str:
    """The last lines of a program's output."""
    return "\n".join(output.strip().splitlines()[-lines:])
