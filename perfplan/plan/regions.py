"""Hand-written regions of a generated document: found by their markers, kept as they are, never dropped."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from perfplan.errors import Exit, Location, PerfplanError

_MARKER = re.compile(r"^\s*<!-- perfplan:(begin|end) ([a-z0-9][a-z0-9-]*) -->\s*$")
_NEARLY = re.compile(r"<!--\s*perfplan\s*:\s*(begin|end)\b", re.IGNORECASE)
_OURS, _BASE, _THEIRS, _END = "<<<<<<<", "|||||||", "=======", ">>>>>>>"

Numbered = tuple[int, str]  # line number from 1, text without its line end


class PlanProblem(PerfplanError):
    """The plan on disk cannot be used as it is: broken markers, or an unresolved merge."""

    exit_code = Exit.FOUND


@dataclass(frozen=True)
class Merged:
    """The regions of a document after a merge. `both` names those in which both sides wrote and both were kept."""

    regions: dict[str, str]
    both: tuple[str, ...] = ()


def begin(name: str) -> str:
    """The line before a region."""
    return f"<!-- perfplan:begin {name} -->"


def end(name: str) -> str:
    """The line after a region."""
    return f"<!-- perfplan:end {name} -->"


def block(name: str, content: str) -> str:
    """A region with its markers. `content` is whole lines or nothing."""
    return f"{begin(name)}\n{content}{end(name)}"


def read_regions(document: str, shown: str) -> dict[str, str]:
    """Name -> content (whole lines) of every region. Raises PlanProblem for broken markers or an unresolved merge."""
    lines = list(_numbered(document))
    conflict = next((number for number, line in lines if _is_conflict(line)), None)
    if conflict is not None:
        raise PlanProblem(
            "has the conflict markers of an unfinished merge",
            location=Location(shown, conflict),
            hint="`perfplan plan --resolve` settles it",
        )
    return _parse(lines, shown)


def merge_regions(document: str, shown: str) -> Merged:
    """The regions of a document that may hold conflict markers. No line of either side is lost."""
    ours, theirs = _sides(_numbered(document), shown)
    ours_regions, theirs_regions = _parse(ours, shown), _parse(theirs, shown)
    merged: dict[str, str] = {}
    both = []
    for name in dict.fromkeys([*ours_regions, *theirs_regions]):
        content, doubled = _union(ours_regions.get(name, ""), theirs_regions.get(name, ""))
        merged[name] = content
        if doubled:
            both.append(name)
    return Merged(merged, tuple(both))


def _numbered(document: str) -> Iterator[Numbered]:
    lines = document.replace("\r\n", "\n").split("\n")
    if lines and not lines[-1]:
        lines.pop()
    yield from enumerate(lines, start=1)


def _is_conflict(line: str) -> bool:
    return line.startswith((f"{_OURS} ", f"{_END} ")) or line in (_OURS, _END)


def _parse(lines: Iterable[Numbered], shown: str) -> dict[str, str]:
    regions: dict[str, str] = {}
    name, opened, content = "", 0, ""
    for number, line in lines:
        marker = _MARKER.match(line)
        if marker is None:
            if _NEARLY.search(line):
                raise _broken(
                    shown,
                    number,
                    "is not a whole marker line",
                    "write `<!-- perfplan:begin NAME -->` on a line of its own",
                )
            content += f"{line}\n" if name else ""
        elif marker[1] == "begin":
            if name:
                raise _broken(
                    shown, number, f"region {marker[2]!r} begins inside region {name!r} of line {opened}", _PAIR
                )
            if marker[2] in regions:
                raise _broken(shown, number, f"region {marker[2]!r} is there twice", "give one of them another name")
            name, opened, content = marker[2], number, ""
        else:
            if name != marker[2]:
                where = f"region {name!r} of line {opened} is open" if name else "no region is open"
                raise _broken(shown, number, f"region {marker[2]!r} ends here, but {where}", _PAIR)
            regions[name] = content
            name = ""
    if name:
        raise _broken(shown, opened, f"region {name!r} never ends", _PAIR)
    return regions


_PAIR = "each `perfplan:begin NAME` needs its own `perfplan:end NAME`, one after the other"


def _broken(shown: str, line: int, message: str, hint: str) -> PlanProblem:
    return PlanProblem(message, location=Location(shown, line), hint=hint)


def _sides(lines: Iterable[Numbered], shown: str) -> tuple[list[Numbered], list[Numbered]]:
    """Both sides of a conflicted file, each line with its number in the file."""
    ours: list[Numbered] = []
    theirs: list[Numbered] = []
    state, opened = "", 0
    for number, line in lines:
        if not state and (line.startswith(f"{_OURS} ") or line == _OURS):
            state, opened = _OURS, number
        elif state == _OURS and (line.startswith(f"{_BASE} ") or line == _BASE):
            state = _BASE
        elif state in (_OURS, _BASE) and line == _THEIRS:
            state = _THEIRS
        elif state == _THEIRS and (line.startswith(f"{_END} ") or line == _END):
            state = ""
        else:
            if state in ("", _OURS):
                ours.append((number, line))
            if state in ("", _THEIRS):
                theirs.append((number, line))
    if state:
        raise PlanProblem(
            "a conflict begins here and never ends",
            location=Location(shown, opened),
            hint="`git checkout -m -- FILE` restores it",
        )
    return ours, theirs


def _union(ours: str, theirs: str) -> tuple[str, bool]:
    """All lines of both sides, those in common once. True where both sides wrote differently at one place."""
    mine, other = ours.splitlines(keepends=True), theirs.splitlines(keepends=True)
    lines: list[str] = []
    doubled = False
    for tag, first, last, start, stop in difflib.SequenceMatcher(None, mine, other, autojunk=False).get_opcodes():
        if tag == "replace":
            doubled = True
            lines += [
                "*(merge, this side:)*\n",
                *mine[first:last],
                "*(merge, other side:)*\n",
                *other[start:stop],
                "*(end of merge)*\n",
            ]
        else:
            lines += mine[first:last] if tag in ("equal", "delete") else other[start:stop]
    return "".join(lines), doubled
