"""The chart of an experiment: what it shows, as plain data with a hash. Drawing is in `drawing`."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from perfplan.models.record import Cell, Run
from perfplan.plan.states import latest_runs, points_of
from perfplan.units import varying

FORMAT = 1  # part of the hash: raise it when the drawing changes so much that every chart should be redrawn
_STAMP = re.compile(r"<!-- perfplan-data: ([0-9a-f]{64}) -->")


@dataclass(frozen=True)
class Mark:
    """One measured ratio (candidate over baseline) with its interval, at position `x`."""

    x: float
    ratio: float
    low: float
    high: float


@dataclass(frozen=True)
class Series:
    """The marks of one device, and of one value of the axes that do not run along x."""

    label: str
    marks: tuple[Mark, ...]


@dataclass(frozen=True)
class PredictedBand:
    """Predicted ratios at position `x`; None is open to that side. A guard's bound is one too."""

    x: float
    low: float | None
    high: float | None
    guard: bool


@dataclass(frozen=True)
class ChartData:
    """All that a chart shows. `ticks` are (position, label); ratios are candidate over baseline."""

    experiment: str
    metric: str
    axis: str
    ticks: tuple[tuple[float, str], ...]
    series: tuple[Series, ...]
    bands: tuple[PredictedBand, ...]

    @property
    def digest(self) -> str:
        """SHA-256 of the data, which decides whether a chart is current."""
        content = json.dumps([FORMAT, dataclasses.asdict(self)], sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(content.encode()).hexdigest()


def stamp(digest: str) -> str:
    """The comment that a chart carries."""
    return f"<!-- perfplan-data: {digest} -->"


def stamped(svg: str) -> str | None:
    """The hash that a chart carries; None for a file that is not a whole chart of ours."""
    found = _STAMP.findall(svg)
    whole = svg.rstrip().endswith("</svg>") and not re.search(r"^(<<<<<<<|>>>>>>>)", svg, re.MULTILINE)
    return found[0] if len(found) == 1 and whole else None


def is_ours(svg: str) -> bool:
    """Whether perfplan drew this file, whole or not."""
    return _STAMP.search(svg) is not None


def chart_data(runs: Sequence[Run]) -> ChartData | None:
    """The chart of one experiment from its newest run on each device; None where no run has effects at several points.

    The x axis is the numeric axis with the most values that vary, else the first axis that varies, by position.
    """
    latest = latest_runs(runs)
    measured = [(run, [cell for cell in run.cells if cell.effect is not None]) for run in latest]
    metric = next((cell.metric for _, cells in measured for cell in cells if cell.role == "predicted"), "time")
    kept = [(run, [cell for cell in cells if cell.metric == metric]) for run, cells in measured]
    every = [cell for _, cells in kept for cell in cells]
    axes = varying(points_of(every))
    if not any(varying(points_of(cells)) for _, cells in kept):
        return None
    axis = max(
        axes,
        key=lambda each: (
            _numeric(every, each),
            len({repr(cell.point.get(each)) for cell in every}),
            -axes.index(each),
        ),
    )
    places = _places(every, axis)
    series = [
        one for run, cells in kept for one in _series(run, cells, axis, [each for each in axes if each != axis], places)
    ]
    newest = max((run for run, cells in kept if cells), key=lambda run: run.id)
    return ChartData(
        newest.experiment,
        metric,
        axis,
        _ticks(every, axis, places),
        tuple(series),
        _bands(newest, metric, axis, places),
    )


def _numeric(cells: Sequence[Cell], axis: str) -> bool:
    values = [cell.point.get(axis) for cell in cells]
    return all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in values)


def _places(cells: Sequence[Cell], axis: str) -> dict[str, float]:
    """Position along x of each value of the axis, by the value's repr."""
    values = list(dict.fromkeys(cell.point.get(axis) for cell in cells))
    if _numeric(cells, axis):
        return {repr(value): float(value) for value in sorted(values, key=float)}  # type: ignore[arg-type]
    return {name: float(index) for index, name in enumerate(sorted(map(repr, values)))}


def _ticks(cells: Sequence[Cell], axis: str, places: dict[str, float]) -> tuple[tuple[float, str], ...]:
    labels = {places[repr(cell.point.get(axis))]: str(cell.point.get(axis)) for cell in cells}
    return tuple(sorted(labels.items()))


def _series(
    run: Run, cells: Sequence[Cell], axis: str, others: Sequence[str], places: dict[str, float]
) -> list[Series]:
    groups: dict[str, list[Mark]] = {}
    for cell in cells:
        if cell.effect is not None:
            label = ", ".join([run.device.name, *(f"{each}={cell.point.get(each)}" for each in others)])
            bounds = (1 + cell.effect.estimate, 1 + cell.effect.low, 1 + cell.effect.high)
            groups.setdefault(label, []).append(
                Mark(places[repr(cell.point.get(axis))], *(round(each, 6) for each in bounds))
            )
    return [Series(label, tuple(sorted(marks, key=lambda mark: mark.x))) for label, marks in sorted(groups.items())]


def _bands(run: Run, metric: str, axis: str, places: dict[str, float]) -> tuple[PredictedBand, ...]:
    bands: dict[float, PredictedBand] = {}
    for cell in run.cells:
        place = places.get(repr(cell.point.get(axis)))
        if cell.band is not None and cell.metric == metric and place is not None:
            low, high = (None if bound is None else round(1 + bound, 6) for bound in (cell.band.low, cell.band.high))
            bands.setdefault(place, PredictedBand(place, low, high, cell.role == "guard"))
    return tuple(bands[place] for place in sorted(bands))
