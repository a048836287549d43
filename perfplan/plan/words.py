"""Typed values in the words of the plan: verdicts, bands, scopes. All text comes out escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from perfplan.models.base import Scalar
from perfplan.models.record import Cell, Device, Run
from perfplan.models.spec import Prediction
from perfplan.plan.markdown import figures, text
from perfplan.units import effects, points


def verdict(run: Run) -> str:
    """`refuted (no-effect)`."""
    how = run.verdict.subcode or run.verdict.reason
    return f"{run.verdict.outcome} ({how})" if how else run.verdict.outcome


def cell_verdict(cell: Cell) -> str:
    """The verdict of a cell; of a guard whether it holds; of one that was not measured soundly why."""
    if not cell.validity.valid:
        detail = f": {text(cell.validity.detail)}" if cell.validity.detail else ""
        return f"invalid ({cell.validity.reason}){detail}" if cell.validity.reason else f"invalid{detail}"
    outcome: str = cell.verdict.outcome or "observed"
    if cell.role == "guard":
        outcome = {"confirmed": "holds", "refuted": "broken"}.get(outcome, outcome)
    return f"{outcome} ({cell.verdict.subcode})" if cell.verdict.subcode else outcome


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
    """A scope in words: `device.arch is sm120 and batch >= 60`; nothing stated says so."""
    return " and ".join(_clause(fact, each) for fact, each in _flat(value)) or "not stated"


def conditions(values: Sequence[Mapping[str, Any]]) -> str:
    """What would reopen a dead end: any one of the conditions."""
    return ", or ".join(condition(each) for each in values) or "not stated"


def _flat(value: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    flat: list[tuple[str, Any]] = []
    for fact, each in value.items():
        if isinstance(each, Mapping) and each:
            flat += _flat(each, f"{prefix}{fact}.")
        else:
            flat.append((f"{prefix}{fact}", each))
    return flat


def _clause(fact: str, wanted: Any) -> str:
    name = text(fact)
    if isinstance(wanted, (list, tuple)):
        return f"{name} in {', '.join(text(each) for each in wanted)}"
    if wanted == "changed":
        return f"{name} changed"
    stated = str(wanted)
    return f"{name} {text(stated)}" if stated[:1] in "<>=!" and stated else f"{name} is {text(stated)}"
