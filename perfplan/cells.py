"""The cells of a run as rows of text: the one place that words a cell for a table."""

from __future__ import annotations

from perfplan.models.record import Cell, Run
from perfplan.units import interval, point, points, reading, varying

Row = tuple[str, str, str, str, str, str]


def cell_rows(run: Run) -> list[Row]:
    """Point, baseline, candidate, effect with interval, predicted band, verdict."""
    return [_row(cell, label(cell, run)) for cell in run.cells]


def label(cell: Cell, run: Run) -> str:
    """The cell's place among the run's: `batch=64`, without the axes on which they all agree."""
    return points([cell.point], [each.point for each in run.cells])


def shared_axes(run: Run) -> str:
    """What all cells of a run have in common: `kv_len=2048, heads=64`; empty where they share nothing or there is one."""
    all_points = [cell.point for cell in run.cells]
    differing = varying(all_points) or list(all_points[0])[:1] if all_points else []
    return point({axis: value for axis, value in all_points[0].items() if axis not in differing}) if all_points else ""


def verdict_words(cell: Cell) -> str:
    """`confirmed`, `refuted (no-effect)`, `invalid (noisy)`; a guard holds or is broken; `observed` without a band."""
    outcome = cell.verdict.outcome
    if not cell.validity.valid:
        return f"invalid ({cell.validity.reason})"
    if outcome is None:
        return "observed"
    if cell.role == "guard" and outcome in ("confirmed", "refuted"):
        return {"confirmed": "holds", "refuted": "broken"}[outcome]
    return f"{outcome} ({cell.verdict.subcode})" if cell.verdict.subcode else outcome


def _row(cell: Cell, where: str) -> Row:
    baseline, candidate = (reading(cell.metric, arm.median) for arm in (cell.baseline, cell.candidate))
    band = f"{cell.band.text}{' (guard)' if cell.role == 'guard' else ''}" if cell.band else "-"
    return where, baseline, candidate, interval(cell.effect) if cell.effect else "-", band, verdict_words(cell)
