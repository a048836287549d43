"""What the decisions and the runs say together: premises, levers, the best lever. Nothing here formats text."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from perfplan.models.base import Point, Scalar
from perfplan.models.campaign import Campaign
from perfplan.models.decision import Decision
from perfplan.models.record import Cell, Run

Standing = Literal["stands", "revised", "superseded", "refuted", "retired"]
FALLEN: tuple[Standing, ...] = ("superseded", "refuted", "retired")


@dataclass(frozen=True)
class Premise:
    """A premise with its history, oldest first. `wording` is the entry whose claim is in force."""

    name: str
    standing: Standing
    wording: Decision
    history: tuple[Decision, ...]
    superseded_by: str = ""  # name of the premise that took its place

    @property
    def current(self) -> bool:
        """Whether the campaign believes it now."""
        return self.standing not in FALLEN


@dataclass(frozen=True)
class Gain:
    """A better effect in a confirmed cell: which run, which cell. The run may be mixed: refuted or a guard broken elsewhere."""

    run: Run
    cell: Cell
    in_range: bool

    @property
    def size(self) -> float:
        """Magnitude as |log(candidate / baseline)|, which ranks speed-ups whichever way the metric counts."""
        return abs(math.log1p(self.cell.effect.estimate)) if self.cell.effect else 0.0

    @property
    def whole(self) -> bool:
        """Whether the run as a whole is confirmed."""
        return self.run.verdict.outcome == "confirmed"

    @property
    def rank(self) -> tuple[bool, bool, float]:
        """Measured on a GPU, then confirmed as a whole, then by size."""
        return self.run.device.kind == "cuda", self.whole, self.size


@dataclass(frozen=True)
class Lever:
    """A lever: what was decided, what is expected, what was measured."""

    name: str
    state: str  # proposed, adopted, retired, reopened; "in test" for one that only runs know
    entry: Decision | None  # the entry whose claim is in force
    history: tuple[Decision, ...]
    latest: tuple[Run, ...]  # newest run of each experiment on each device
    best: Gain | None
    rests_on: tuple[str, ...]

    @property
    def open(self) -> bool:
        return self.state != "retired"


def premises(decisions: Iterable[Decision]) -> dict[str, Premise]:
    """Every premise by name, in order of name."""
    histories = _histories(decisions, "premise")
    owner = {entry.id: entry.name for history in histories.values() for entry in history}
    successor = {
        owner[entry.supersedes]: entry.name
        for history in histories.values()
        for entry in history
        if entry.supersedes in owner and owner[entry.supersedes] != entry.name
    }
    return {name: _premise(name, history, successor.get(name, "")) for name, history in sorted(histories.items())}


def _premise(name: str, history: Sequence[Decision], successor: str) -> Premise:
    wording = next((each for each in reversed(history) if each.claim), history[-1])
    standing: Standing = {"propose": "stands", "revise": "revised", "refute": "refuted", "retire": "retired"}[
        history[-1].action
    ]  # type: ignore[assignment]
    if successor and standing in ("stands", "revised"):
        standing = "superseded"
    return Premise(name, standing, wording, tuple(history), successor)


def levers(decisions: Iterable[Decision], runs: Sequence[Run], campaign: Campaign) -> list[Lever]:
    """Every lever that a decision or a run names, in order of name."""
    histories = _histories(decisions, "lever")
    of_lever: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        of_lever[run.lever].append(run)
    return [_lever(name, histories.get(name, []), of_lever[name], campaign) for name in sorted({*histories, *of_lever})]


def _lever(name: str, history: Sequence[Decision], runs: Sequence[Run], campaign: Campaign) -> Lever:
    entry = next((each for each in reversed(history) if each.claim), None)
    words = {"propose": "proposed", "adopt": "adopted", "retire": "retired", "reopen": "reopened"}
    state = next(
        (words[each.action] for each in reversed(history) if each.action in words), "proposed" if history else "in test"
    )
    latest = tuple(latest_runs(runs))
    names = {*(entry.rests_on if entry else ()), *(name for run in latest for name in run.rests_on)}
    return Lever(name, state, entry, tuple(history), latest, best_gain(runs, campaign), tuple(sorted(names)))


def best_gain(runs: Iterable[Run], campaign: Campaign) -> Gain | None:
    """The largest confirmed improvement: within the operating range before outside of it, on a GPU before a CPU.

    Of each experiment on each device only the newest run with a verdict on the hypothesis counts: what a later run took
    back is no gain.
    """
    decided = latest_runs(run for run in runs if run.verdict.outcome in ("confirmed", "refuted", "mixed"))
    gains = [
        Gain(run, cell, not outside(cell.point, campaign.operating_range))
        for run in decided
        if run.verdict.outcome in ("confirmed", "mixed")
        for cell in run.predicted
        if cell.verdict.outcome == "confirmed" and cell.merit == "better" and cell.effect and cell.effect.estimate > -1
    ]
    return max(gains, key=lambda gain: (gain.in_range, gain.rank, gain.run.id), default=None)


@dataclass(frozen=True)
class Best:
    """The lever to name first: by what was measured, else by what is expected."""

    lever: Lever
    gain: Gain | None


def best_lever(all_levers: Sequence[Lever]) -> Best | None:
    """The open or adopted lever with the largest gain measured within the range, else the largest expected and not refuted."""
    usable = [lever for lever in all_levers if lever.open]
    measured = [lever for lever in usable if lever.best is not None and lever.best.in_range]
    if measured:
        lever = max(measured, key=lambda each: (each.best.rank if each.best else (False, False, 0.0), each.name))
        return Best(lever, lever.best)
    expected = [lever for lever in usable if expected_size(lever) > 0]
    untried = [lever for lever in expected if all(run.verdict.outcome != "refuted" for run in lever.latest)]
    candidates = untried or expected
    return Best(max(candidates, key=lambda each: (expected_size(each), each.name)), None) if candidates else None


def expected_size(lever: Lever) -> float:
    """Middle of the expected band as a magnitude; of a one-sided band its bound; 0 where nothing is expected."""
    if lever.entry is None or lever.entry.expected is None:
        return 0.0
    band = lever.entry.expected.change
    bounds = [bound for bound in (band.low, band.high) if bound is not None]
    return abs(sum(bounds) / len(bounds))


def latest_runs(runs: Iterable[Run]) -> list[Run]:
    """The newest run of each experiment on each device, in order of experiment and device."""
    newest: dict[tuple[str, str, str], Run] = {}
    for run in sorted(runs, key=lambda each: each.id):
        newest[(run.experiment, run.device.kind, run.device.name)] = run
    return [newest[key] for key in sorted(newest)]


def outside(point: Mapping[str, Scalar], operating_range: Mapping[str, Sequence[Scalar]]) -> list[str]:
    """The axes on which `point` lies outside of the range. An axis that the range does not name is never outside."""
    return [axis for axis, allowed in operating_range.items() if axis in point and not _within(point[axis], allowed)]


def _within(value: Scalar, allowed: Sequence[Scalar]) -> bool:
    if len(allowed) == 2 and all(isinstance(each, (int, float)) for each in (value, *allowed)):
        return float(allowed[0]) <= float(value) <= float(allowed[1])
    return not allowed or value in allowed


def points_of(cells: Iterable[Cell]) -> list[Point]:
    """The operating points of the cells."""
    return [cell.point for cell in cells]


def _histories(decisions: Iterable[Decision], kind: str) -> dict[str, list[Decision]]:
    histories: dict[str, list[Decision]] = defaultdict(list)
    for entry in sorted(decisions, key=lambda each: each.id):
        if entry.kind == kind:
            histories[entry.name].append(entry)
    return histories
