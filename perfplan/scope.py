"""Scopes: where something holds, as small declarative conditions over facts, answered with yes, no or unknown.

A scope maps a fact to a condition: ``{device.arch: sm120, interconnect: pcie, batch: ">=64", versions.triton: "~=3.6"}``.
All conditions must hold. A fact that nobody wrote down, or that the machine at hand can't tell, is unknown and never
"everywhere"; one dimension that differs is enough for no.
"""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from perfplan.errors import Location, PerfplanError
from perfplan.models.base import Point, Scalar
from perfplan.units import points as point_words

Facts = Mapping[str, Scalar]
Value = Literal["yes", "no", "unknown"]

KNOWN_FACTS = (
    "device.kind",
    "device.arch",
    "device.name",
    "device.sm_count",
    "interconnect",
    "nodes",
    "model",
    "kernel",
)
KNOWN_PREFIXES = ("versions.", "knobs.", "device.")
# Names that look like an axis and are the tail of a fact: as an axis they would be unknown for ever
_SHORTENED = {
    **{name: f"device.{name}" for name in ("arch", "sm_count")},
    **{name: f"versions.{name}" for name in ("torch", "triton", "cuda", "driver", "nccl", "numpy", "python")},
}
_AXIS = re.compile(r"^[A-Za-z_][A-Za-z0-9_-]*$")
_COMPARISON = re.compile(r"^\s*(<=|>=|==|!=|~=|<|>)\s*(.+?)\s*$")
_NUMBERS = re.compile(r"^\d+(\.\d+)*")
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """Whether something holds, and the dimensions that decided it, in words."""

    value: Value
    because: tuple[str, ...] = ()
    points: str = ""  # of a run over several points: those that are covered


def check(scope: Mapping[str, Any], where: Location, *, reopening: bool = False) -> None:
    """Raises PerfplanError for a fact or condition that cannot be understood. `changed` is for reopening conditions only."""
    for fact, condition in scope.items():
        place = Location(where.path, where.line, f"{where.key}.{fact}" if where.key else fact)
        if not _is_fact(fact):
            known = [*KNOWN_FACTS, "versions.<name>", "knobs.<name>", "<axis>"]
            close = [_SHORTENED[fact]] if fact in _SHORTENED else difflib.get_close_matches(fact, KNOWN_FACTS, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"facts: {', '.join(known)}"
            raise PerfplanError("is not a fact", hint=hint, location=place)
        for each in condition if isinstance(condition, list) else [condition]:
            _check_condition(each, place, reopening)
            if fact.startswith("versions.") and isinstance(each, float):
                hint = f'write it in quotes, "{each}": as a number 2.10 is 2.1'
                raise PerfplanError("a version is text", hint=hint, location=place)


def evaluate(scope: Mapping[str, Any], facts: Facts) -> Answer:
    """Whether the scope covers these facts."""
    if not scope:
        return Answer("unknown", ("nobody wrote down where it holds",))
    no, unknown = [], []
    for fact, condition in scope.items():
        if fact not in facts:
            unknown.append(f"{_label(fact)} {condition_words(condition)}: not known here")
        elif not meets(fact, condition, facts[fact]):
            no.append(f"holds for {_label(fact)} {condition_words(condition)}, here {facts[fact]}")
    if no:
        return Answer("no", tuple(no))
    return Answer("unknown", tuple(unknown)) if unknown else Answer("yes")


def covers(scope: Mapping[str, Any], facts: Facts, points: Sequence[Point]) -> Answer:
    """Whether the scope covers any of the operating points, and which."""
    if not points:
        return evaluate(scope, facts)
    answers = [(point, evaluate(scope, {**facts, **point})) for point in points]
    for value in ("yes", "unknown", "no"):
        found = [(point, answer) for point, answer in answers if answer.value == value]
        if found:
            because = dict.fromkeys(line for _, answer in found for line in answer.because)
            covered = [point for point, _ in found] if any(axis in scope for axis in points[0]) else []
            return Answer(value, tuple(because)[:4], point_words(covered, points) if value != "no" else "")
    raise AssertionError("unreachable")


def meets(fact: str, condition: Any, value: Scalar) -> bool:
    """Whether a fact's value meets a condition. A plain version is compared as one: 2.11.0 is 2.11.0+cu130 too."""
    if fact.startswith("versions."):
        parts = condition if isinstance(condition, list) else [condition]
        return any(holds(str(each) if _COMPARISON.match(str(each)) else f"=={each}", str(value)) for each in parts)
    return holds(condition, value)


def holds(condition: Any, value: Scalar) -> bool:
    """Whether a value meets a condition: equality, any of a list, or comparisons joined by commas."""
    if isinstance(condition, list):
        return any(holds(each, value) for each in condition)
    if isinstance(condition, str) and _COMPARISON.match(condition):
        return all(_compare(part, value) for part in condition.split(","))
    if isinstance(condition, str) and isinstance(value, str):
        return condition.casefold() == value.casefold()
    if isinstance(condition, str) != isinstance(value, str):
        return str(condition).casefold() == str(value).casefold()
    return bool(condition == value)


def scope_words(scope: Mapping[str, Any]) -> str:
    """The scope in few words: `sm120, pcie, nodes 1, batch >=64`."""
    return ", ".join(_phrase(fact, condition) for fact, condition in scope.items()) or "not written down"


def condition_words(condition: Any) -> str:
    """`64, 72 or 80`, `>=64`."""
    if isinstance(condition, list):
        words = [str(each) for each in condition]
        return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " or " + words[-1]
    return str(condition)


def _phrase(fact: str, condition: Any) -> str:
    words = condition_words(condition)
    if words == "changed":
        return f"{_label(fact)} changed"
    if fact in ("device.arch", "device.name", "interconnect", "model", "device.kind", "kernel"):
        return words
    return f"{_label(fact)} {words}"


def _label(fact: str) -> str:
    return fact.removeprefix("versions.").removeprefix("knobs.").removeprefix("device.")


def _is_fact(fact: str) -> bool:
    if fact in KNOWN_FACTS:
        return True
    if fact in _SHORTENED:
        return False
    if fact.startswith(KNOWN_PREFIXES):
        return not fact.startswith("device.") and len(fact.partition(".")[2]) > 0
    return bool(_AXIS.match(fact)) and not difflib.get_close_matches(
        fact, ("interconnect", "kernel", "model", "nodes"), n=1, cutoff=0.8
    )


def _check_condition(condition: Any, where: Location, reopening: bool) -> None:
    if isinstance(condition, (dict, type(None))):
        raise PerfplanError("expected a value, a list of values, or a comparison such as '>=64'", location=where)
    if condition == "changed" and not reopening:
        raise PerfplanError("'changed' is for reopening conditions only", location=where)
    if isinstance(condition, str) and condition.lstrip()[:1] in ("<", ">", "=", "!", "~"):
        for part in condition.split(","):
            if not _COMPARISON.match(part):
                raise PerfplanError(
                    f"{part.strip()!r} is not a comparison", hint="write '>=64' or '>=60,<=96'", location=where
                )


def _compare(part: str, value: Scalar) -> bool:
    match = _COMPARISON.match(part)
    if match is None:
        return False
    sign, bound = match[1], match[2]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            return sign in _OPERATORS and _OPERATORS[sign](value, float(bound))
        except ValueError:
            return False
    return _compare_versions(sign, bound, str(value))


def _compare_versions(sign: str, bound: str, value: str) -> bool:
    """PEP 440 of the release: 2.11.0+cu130 and 2.11.0a0+hash are 2.11.0. Dotted numbers for what is not PEP 440.

    A nightly build counts as its release, or the scope of a run on one (`~=2.11.0`) would not cover that very run.
    """
    plain = value.partition("+")[0]
    try:
        return Version(Version(plain).base_version) in SpecifierSet(f"{sign}{bound}", prereleases=True)
    except (InvalidVersion, InvalidSpecifier):
        pass
    ours, theirs = _dotted(plain), _dotted(bound)
    if not _NUMBERS.match(plain) or not _NUMBERS.match(bound):
        return _OPERATORS[sign](plain.casefold(), bound.casefold()) if sign in ("==", "!=") else False
    if sign == "~=":
        return ours >= theirs and ours[: max(1, len(theirs) - 1)] == theirs[: max(1, len(theirs) - 1)]
    return _OPERATORS[sign](ours, theirs)


def _dotted(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text))


def as_scope(words: Iterable[str]) -> dict[str, Any]:
    """`k=v` words of the command line as a scope. `batch>=64` and `batch=64,72` are understood. Raises PerfplanError."""
    scope: dict[str, Any] = {}
    for word in words:
        match = re.match(r"^([A-Za-z_][\w.-]*?)\s*(<=|>=|==|!=|~=|<|>|=)\s*(.+)$", word)
        if match is None:
            raise PerfplanError(
                f"{word!r} is not a condition", hint="write FACT=VALUE, such as device.arch=sm120 or 'batch>=64'"
            )
        fact, sign, text = match[1], match[2], match[3].strip()
        if sign != "=":
            scope[fact] = f"{sign}{text}"
        elif text[:1] in "<>!~":
            scope[fact] = text
        else:
            texts = [each.strip() for each in text.split(",")]
            values: list[Scalar] = list(texts) if fact.startswith("versions.") else [_scalar(each) for each in texts]
            scope[fact] = values if len(values) > 1 else values[0]
    return scope


def _scalar(text: str) -> Scalar:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text.lower(), text)
