"""The cells of a run as rows of text: the one place that words a cell for a table."""

from __future__ import annotations

from perfplan.models.record import Cell, Run
from perfplan.units import interval, point, reading

Row = tuple[str, str, str, str, str, str]


def cell_rows(run: Run) -> list[Row]:
    """Point, baseline, candidate, effect with interval, predicted band, verdict."""
    return [_row(cell) for cell in run.cells]


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


def _row(cell: Cell) -> Row:
    baseline, candidate = (reading(cell.metric, arm.median) for arm in (cell.baseline, cell.candidate))
    band = f"{cell.band.text}{' (guard)' if cell.role == 'guard' else ''}" if cell.band else "-"
    return point(cell.point), baseline, candidate, interval(cell.effect) if cell.effect else "-", band, verdict_words(cell)
