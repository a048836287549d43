"""What the history of a repository holds."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping

from perfplan.git.program import Program

_STEP = 500  # commits asked about in one go
_OBJECT = re.compile(r"^[0-9a-f]{40}([0-9a-f]{24})?$")


def reachable(program: Program, blobs: set[str]) -> set[str]:
    """Those of `blobs` that a commit of any ref, or of HEAD, holds."""
    wanted = {blob for blob in blobs if _OBJECT.match(blob)}
    answers = program.must("cat-file", "--batch-check", stdin=_lines(sorted(wanted))).text.splitlines()
    stored = {line.split()[0] for line in answers if line.split()[1:2] == ["blob"]}
    if not stored:
        return set()
    listed = program.must("rev-list", "--objects", "--no-object-names", "--all", *_head(program))
    return stored.intersection(listed.text.split("\n"))


def newest_with(program: Program, files: Mapping[str, str]) -> str | None:
    """The newest commit whose tree has each path at its blob; of HEAD's history first, then of any ref."""
    for commits in _histories(program):
        while chunk := list(itertools.islice(commits, _STEP)):
            lines = [f"{commit}:{path}" for commit in chunk for path in files]
            found = program.must("cat-file", "--batch-check=%(objectname)", stdin=_lines(lines)).text.split("\n")
            expected = list(files.values())
            for number, commit in enumerate(chunk):
                if found[number * len(expected) : (number + 1) * len(expected)] == expected:
                    return commit
    return None


def _histories(program: Program) -> Iterator[Iterator[str]]:
    head = _head(program)
    if head:
        yield iter(program.must("rev-list", *head).text.split())
    yield iter(program.must("rev-list", "--all", *(["--not", *head] if head else [])).text.split())


def _head(program: Program) -> list[str]:
    return ["HEAD"] if program.ask("rev-parse", "--verify", "--quiet", "HEAD").status == 0 else []


def _lines(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
