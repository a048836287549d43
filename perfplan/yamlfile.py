"""Reading hand-written YAML strictly, with the line of every key and value.

Only plain data: mappings, sequences, strings, numbers, true, false, null, by the YAML 1.2 core schema (so `no`, `on`,
`1:30` and dates are strings and `1e-3` is a number). Tags, anchors, duplicate keys, tabs and merge-conflict markers are
errors. All problems of a file that can be found at once are reported at once.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from perfplan.errors import BadInput, Location, Problem

KeyPath = tuple[str | int, ...]

MAX_BYTES = 1 << 20
MAX_DEPTH = 50
_INT = re.compile(r"^[-+]?[0-9]+$")
_PREFIXED = {"0x": 16, "0o": 8}
_FLOAT = re.compile(r"^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$")
_SPECIAL = {
    "true": True,
    "false": False,
    "null": None,
    "~": None,
    "": None,
    ".inf": float("inf"),
    "-.inf": float("-inf"),
}
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


@dataclass(frozen=True)
class Document:
    """A YAML file as data, with the line of each key path (a mapping's key, or a value in a list)."""

    path: str
    content: bytes
    data: dict[str, Any]
    lines: dict[KeyPath, int] = field(default_factory=dict)

    def locate(self, *keys: str | int) -> Location:
        """The place of a key path; of its nearest parent where the path itself is not in the file."""
        known = keys
        while known and known not in self.lines:
            known = known[:-1]
        return Location(self.path, self.lines.get(known, 1), ".".join(map(str, keys)))


def read_document(path: Path, shown: str) -> Document:
    """Read a YAML file; `shown` is its name in messages. Raises BadInput."""
    content = _read_bytes(path, shown)
    text = _decode(content, shown)
    _refuse_markers(text, shown)
    reader = _Reader(shown)
    try:
        if "*" in text:
            _refuse_aliases(text, shown)
        nodes = list(yaml.compose_all(text, Loader=_LOADER))
    except yaml.MarkedYAMLError as error:
        raise _syntax_problem(error, text, shown) from None
    except yaml.YAMLError as error:
        raise _problem(shown, 0, f"is not YAML: {error}") from None
    except RecursionError:
        raise _problem(shown, 0, "is nested too deeply") from None
    if len(nodes) > 1:
        raise _problem(
            shown, nodes[1].start_mark.line + 1, "a second document starts here", "one file holds one document"
        )
    if not nodes or nodes[0] is None:
        raise _problem(shown, 0, "is empty", "`perfplan new NAME` writes a template")
    if not isinstance(nodes[0], yaml.MappingNode):
        raise _problem(shown, nodes[0].start_mark.line + 1, "expected `key: value` lines at the top level")
    data = reader.build(nodes[0], ())
    if reader.problems:
        raise BadInput(reader.problems)
    return Document(shown, content, data, reader.lines)


def _read_bytes(path: Path, shown: str) -> bytes:
    try:
        if path.exists() and not path.is_file():
            raise _problem(shown, 0, "is a folder, not a file" if path.is_dir() else "is not a file")
        if path.stat().st_size > MAX_BYTES:
            raise _problem(shown, 0, f"is larger than {MAX_BYTES >> 20} MiB; that is no hand-written file")
        return path.read_bytes()
    except FileNotFoundError:
        near = difflib.get_close_matches(path.name, [each.name for each in path.parent.glob("*.yaml")], n=1)
        hint = f"did you mean {near[0]}?" if near else "check the path"
        raise _problem(shown, 0, "there is no such file", hint) from None
    except IsADirectoryError:
        raise _problem(shown, 0, "is a folder, not a file") from None
    except OSError as error:
        raise _problem(shown, 0, f"cannot be read: {error.strerror}") from None


def _decode(content: bytes, shown: str) -> str:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise _problem(shown, line, "is not UTF-8 text", "save the file as UTF-8") from None
    control = _CONTROL.search(text)
    if control:
        line = text[: control.start()].count("\n") + 1
        raise _problem(shown, line, f"holds the control character {control[0]!r}", "remove it")
    return text


def _refuse_markers(text: str, shown: str) -> None:
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith(("<<<<<<< ", ">>>>>>> ")) or line == "<<<<<<<":
            raise _problem(
                shown,
                number,
                "a merge conflict is not resolved here",
                "choose a side and remove the <<<<<<<, =======, >>>>>>> lines",
            )


def _refuse_aliases(text: str, shown: str) -> None:
    """An alias makes two places share a value, and a chain of them a file that grows without bound when it is read."""
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.AliasEvent):
            raise _problem(
                shown,
                (event.start_mark.line if event.start_mark else 0) + 1,
                "an alias (*name) is used",
                "write the value out",
            )


def _syntax_problem(error: yaml.MarkedYAMLError, text: str, shown: str) -> BadInput:
    mark = error.problem_mark or error.context_mark
    line = mark.line + 1 if mark else 0
    lines = text.splitlines()
    here = lines[line - 1] if 0 < line <= len(lines) else ""
    if "\t" in here[: len(here) - len(here.lstrip())]:
        return _problem(shown, line, "a tab is used for indentation", "YAML wants spaces")
    what = (error.problem or "is not YAML").replace("%", "the character %")
    return _problem(
        shown,
        line,
        f"is not YAML: {what}",
        "check quotes, brackets and indentation; quote a value that starts with <, >, %, @ or *",
    )


def _problem(shown: str, line: int, message: str, hint: str = "") -> BadInput:
    return BadInput([Problem(Location(shown, line), message, hint)])


class _Loader(yaml.SafeLoader):
    pass


_LOADER: Any = getattr(yaml, "CSafeLoader", _Loader)


class _Reader:
    """Builds plain data from YAML nodes, noting lines and problems on the way."""

    def __init__(self, shown: str) -> None:
        self.shown = shown
        self.lines: dict[KeyPath, int] = {}
        self.problems: list[Problem] = []

    def build(self, node: yaml.Node, path: KeyPath) -> Any:
        line = node.start_mark.line + 1
        self.lines.setdefault(path, line)
        if len(path) > MAX_DEPTH:
            return self._say(line, path, f"is nested deeper than {MAX_DEPTH} levels")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            self._refuse_tag(node, path, "tag:yaml.org,2002:seq")
            return [self.build(each, (*path, index)) for index, each in enumerate(node.value)]
        return self._scalar(node, path)

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Any]:
        self._refuse_tag(node, path, "tag:yaml.org,2002:map")
        data: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                self._say(line, path, "a key must be a plain word")
                continue
            key = str(key_node.value)
            if key in data:
                self._say(
                    line, (*path, key), f"stands twice, first on line {self.lines[(*path, key)]}", "keep one of them"
                )
                continue
            self.lines[(*path, key)] = line
            data[key] = self.build(value_node, (*path, key))
        return data

    def _scalar(self, node: yaml.Node, path: KeyPath) -> Any:
        text = str(node.value)
        if getattr(node, "style", None) in ("'", '"', "|", ">"):
            self._refuse_tag(node, path, "tag:yaml.org,2002:str")
            if _CONTROL.search(text):
                return self._say(node.start_mark.line + 1, path, "holds a control character", "remove it")
            return text
        if not node.tag.startswith("tag:yaml.org,2002:") or _explicit(node):
            return self._say(
                node.start_mark.line + 1, path, f"the tag {node.tag!r} is not allowed", "write a plain value"
            )
        value = _plain(text)
        if isinstance(value, int) and abs(value) >= 1 << 63:
            return self._say(
                node.start_mark.line + 1, path, "is too large a number", "the limit is 2 to the power of 63"
            )
        return value

    def _refuse_tag(self, node: yaml.Node, path: KeyPath, expected: str) -> None:
        if node.tag != expected:
            self._say(node.start_mark.line + 1, path, f"the tag {node.tag!r} is not allowed", "write a plain value")

    def _say(self, line: int, path: KeyPath, message: str, hint: str = "") -> None:
        self.problems.append(Problem(Location(self.shown, line, ".".join(map(str, path))), message, hint))


def _explicit(node: yaml.Node) -> bool:
    """Whether the tag of a plain scalar was written out (`!!int "3"` gives a tag that the text alone would not)."""
    return node.tag.rpartition(":")[2] not in ("str", "int", "float", "bool", "null", "timestamp", "merge", "value")


def _plain(text: str) -> Any:
    lowered = text.lower()
    if lowered in _SPECIAL:
        return _SPECIAL[lowered]
    if _INT.match(text):
        return int(text) if len(text) < 40 else 1 << 64  # too large in any case, and slow to read
    prefix = _PREFIXED.get(text[:2])
    if prefix and len(text) > 2:
        try:
            return int(text[2:], prefix)
        except ValueError:
            return text
    return float(text) if _FLOAT.match(text) else text
