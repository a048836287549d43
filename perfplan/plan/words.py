"""Typed values in the words of the plan: verdicts, bands, scopes. All text comes out escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from perfplan.cells import verdict_words
from perfplan.models.base import Scalar
from perfplan.models.record import Cell, Device, Run
from perfplan.models.spec import Prediction
from perfplan.plan.markdown import figures, text
from perfplan.scope import scope_words
from perfplan.units import effects, points


def verdict(run: Run) -> str:
    """`refuted (no-effect)`."""
    how = run.verdict.subcode or run.verdict.reason
    return f"{run.verdict.outcome} ({how})" if how else run.verdict.outcome


def cell_verdict(cell: Cell) -> str:
    """The verdict of a cell, and for one that was not measured soundly the details."""
    detail = f": {text(cell.validity.detail)}" if not cell.validity.valid and cell.validity.detail else ""
    return verdict_words(cell) + detail


def device(value: Device) -> str:
    """`NVIDIA H200 (sm90)`; a CPU is marked as one."""
    return text(device_name(value))


def device_name(value: Device) -> str:
    """The same as plain text, not escaped."""
    return f"{value.name} ({value.arch if value.kind == 'cuda' else f'{value.kind}, {value.arch}'})"


def metric(name: str) -> str:
    """Nothing for `time`, which is the rule; the name and a blank for any other metric."""
    return "" if name == "time" else f"{text(name)} "


def prediction(value: Prediction) -> str:
    """`[-25%, -15%] at batch=64,72`."""
    at = listed(value.at)
    return f"{metric(value.metric)}{figures(value.change.text)}{f' at {at}' if at else ''}"


def listed(at: Mapping[str, Sequence[Scalar]]) -> str:
    """Axis by axis the values: `batch=64,72, kv_len=2048`."""
    return ", ".join(text(f"{axis}={','.join(map(str, values))}") for axis, values in at.items())


def measured(cells: Sequence[Cell]) -> str:
    """The effects of the cells at their points, metric by metric; `-` where nothing was measured."""
    parts = []
    for name in dict.fromkeys(cell.metric for cell in cells):
        of_metric = [cell for cell in cells if cell.metric == name and cell.effect is not None]
        if of_metric:
            shown = effects([cell.effect for cell in of_metric if cell.effect is not None])
            at = points([cell.point for cell in of_metric])
            parts.append(f"{metric(name)}{figures(shown)}{f' at {text(at)}' if at else ''}")
    return "; ".join(parts) or "-"


def condition(value: Mapping[str, Any]) -> str:
    """A scope in words; one that states nothing says so."""
    return text(scope_words(value)) if value else "not stated"


def conditions(values: Sequence[Mapping[str, Any]]) -> str:
    """What would reopen a dead end: any one of the conditions."""
    return ", or ".join(condition(each) for each in values) or "not stated"
