"""The verdict: what the measured cells say of the hypothesis. Pure arithmetic; nothing here is decided by hand.

A cell is settled by the signed-rank test against the edges of its predicted band. Its p-value is the least level at which
the two-sided interval of the effect lies inside the band (confirmed) or outside of it (refuted); Holm's procedure over all
predicted cells and guards keeps the chance of one false verdict in a run at 5 % or less.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from perfplan.effects import log_ratios
from perfplan.models.band import Band
from perfplan.models.base import Point
from perfplan.models.record import Cell, CellVerdict, Interval, Outcome, Subcode, Validity, Verdict
from perfplan.models.spec import Spec
from perfplan.stats import holm, signed_rank_p
from perfplan.units import percent, points

ALPHA = 0.05
CYCLE_MARGIN = 0.01  # how far the cycles' interval must lie outside of the band before the clock explains an effect
NO_EFFECT = 0.005  # an interval within +-0.5 % is called no effect, as is one that holds zero
MAX_NOISE = {"cuda": 0.005, "cpu": 0.03}  # A/A effect that voids a point, where the spec sets none


@dataclass(frozen=True)
class Judged:
    """The cells with their verdicts, and the verdict of the run."""

    cells: list[Cell]
    verdict: Verdict


def judge(spec: Spec, cells: Sequence[Cell], device_kind: str) -> Judged:
    """Give each measured cell its role, band and verdict, and the hypothesis its own."""
    more_is_better = _more_is_better(spec)
    placed = [_void_if_noisy(_place(spec, cell), spec, device_kind) for cell in cells]
    measured = [cell for cell in placed if cell.validity.valid]
    if measured and all(cell.baseline.config == cell.candidate.config != {} for cell in measured):
        placed = [_void_no_op(cell, "come to the same configuration") for cell in placed]
    elif measured and all(cell.same_code for cell in measured):
        placed = [_void_no_op(cell, "launch the same compiled code with the same arguments") for cell in placed]
    judged = [_with_merit(cell, more_is_better) for cell in _settle(placed)]
    return Judged(judged, overall(judged))


def band_for(spec: Spec, point: Point) -> tuple[str, Band | None, str]:
    """Role, band and metric at an operating point. A guard is looked up after the predictions."""
    for prediction in spec.hypothesis.predicts:
        if prediction.applies(point):
            return "predicted", prediction.change, prediction.metric
    for guard in spec.guards:
        if guard.applies(point):
            return "guard", guard.change, guard.metric
    return "observed", None, spec.hypothesis.predicts[0].metric


def target_half_width(band: Band | None, least: float) -> float:
    """Precision at which a point may stop: a quarter of the predicted band's width, but no finer than `least`."""
    return max(least, band.width / 4) if band is not None and math.isfinite(band.width) else least


def overall(cells: Sequence[Cell]) -> Verdict:
    """The verdict over all predicted cells and guards.

    Confirmed needs every one of them. Confirmed in some cells and refuted in others is mixed, as is a broken guard beside
    a confirmed cell. An invalid cell leaves the verdict invalid unless the others are already mixed.
    """
    predicted = [cell for cell in cells if cell.role == "predicted"]
    guards = [cell for cell in cells if cell.role == "guard"]
    by_outcome = {
        outcome: [cell for cell in predicted if cell.verdict.outcome == outcome]
        for outcome in ("confirmed", "refuted", "inconclusive", "invalid")
    }
    broken = [cell for cell in guards if cell.verdict.outcome == "refuted"]
    confirmed, refuted = by_outcome["confirmed"], by_outcome["refuted"]
    wrong = [cell for cell in cells if cell.validity.reason == "numerics"]
    if wrong:
        return _invalid(wrong[0], "the numerics gate failed")
    if confirmed and (refuted or broken):
        parts = [f"confirmed at {_at(confirmed, cells)}"]
        parts += [f"refuted at {_at(refuted, cells)}"] if refuted else []
        parts += [f"guard broken at {_at(broken, cells)}"] if broken else []
        return Verdict(
            outcome="mixed", subcode="guard-broken" if broken and not refuted else "", summary="; ".join(parts)
        )
    void = [cell for cell in (*predicted, *guards) if cell.verdict.outcome == "invalid"]
    if void:
        return _invalid(void[0], f"{void[0].validity.reason.replace('-', ' ')} at {_at(void, cells)}")
    if by_outcome["inconclusive"]:
        unsettled = by_outcome["inconclusive"]
        clocked = [cell for cell in unsettled if cell.verdict.subcode == "clock-explained"]
        if clocked:
            summary = f"at {_at(clocked, cells)} the time is in the band, but the SM clock explains it: in cycles {_cycle_span(clocked)}"
            return Verdict(outcome="inconclusive", subcode="clock-explained", summary=summary)
        return Verdict(outcome="inconclusive", summary=_why_inconclusive(unsettled, cells))
    if refuted:
        subcodes = {cell.verdict.subcode for cell in refuted}
        subcode = subcodes.pop() if len(subcodes) == 1 else ""
        return Verdict(
            outcome="refuted", subcode=subcode, summary=f"refuted at {_at(refuted, cells)}: {_span(refuted)}"
        )
    unsure = [cell for cell in guards if cell.verdict.outcome == "inconclusive"]
    if unsure:
        return Verdict(outcome="inconclusive", summary=f"the guard at {_at(unsure, cells)} is not settled")
    return Verdict(outcome="confirmed", summary=f"confirmed at {_at(confirmed, cells)}: {_span(confirmed)}")


def _place(spec: Spec, cell: Cell) -> Cell:
    role, band, metric = band_for(spec, cell.point)
    return cell.model_copy(update={"role": role, "band": band, "metric": metric})


def _void_if_noisy(cell: Cell, spec: Spec, device_kind: str) -> Cell:
    """A point whose A/A arm shows an effect is not evidence of anything."""
    floor = cell.floor
    if not cell.validity.valid or floor is None:
        return cell
    limit = spec.measure.max_noise or MAX_NOISE.get(device_kind, MAX_NOISE["cpu"])
    clear = not floor.low <= 0 <= floor.high
    if clear and abs(floor.estimate) > limit:
        detail = f"the baseline against itself shows {percent(floor.estimate)}, more than {percent(limit).lstrip('+')}"
        return cell.model_copy(update={"validity": Validity(valid=False, reason="noisy", detail=detail)})
    return cell


def _void_no_op(cell: Cell, how: str) -> Cell:
    if not cell.validity.valid:
        return cell
    detail = f"both arms {how} at every point, so nothing was compared"
    return cell.model_copy(update={"validity": Validity(valid=False, reason="no-op-change", detail=detail)})


def _settle(cells: Sequence[Cell]) -> list[Cell]:
    """Verdict of each cell, with Holm's correction over those that have a band and a valid effect."""
    open_cells = [
        i for i, cell in enumerate(cells) if cell.band is not None and cell.validity.valid and cell.effect is not None
    ]
    decisions = {i: _decide(cells[i]) for i in open_cells}
    accepted = dict(zip(open_cells, holm([decisions[i][1] for i in open_cells], ALPHA), strict=True))
    settled = []
    for i, cell in enumerate(cells):
        if cell.band is None:
            verdict = CellVerdict(outcome=None if cell.validity.valid else "invalid")
        elif i not in decisions:
            verdict = CellVerdict(outcome="invalid")
        elif accepted[i]:
            outcome, p_value = decisions[i]
            subcode = _how_refuted(cell.band, cell.effect) if outcome == "refuted" and cell.effect else ""
            verdict = CellVerdict(outcome=outcome, subcode=subcode, p_value=p_value)
            if outcome == "confirmed" and _clock_explained(cell):
                verdict = _inconclusive(cell, p_value).model_copy(
                    update={"subcode": "clock-explained", "pairs_needed": None}
                )
        else:
            verdict = _inconclusive(cell, decisions[i][1])
        settled.append(cell.model_copy(update={"verdict": verdict}))
    return settled


def _decide(cell: Cell) -> tuple[Outcome, float]:
    """Which way the cell leans, and the p-value of deciding so: twice the greatest one-sided p against the band's edges."""
    assert cell.band is not None
    xs = log_ratios(cell)
    below_low, above_low = (
        (1.0, 0.0) if cell.band.low is None else signed_rank_p(xs, math.log1p(max(cell.band.low, -0.999999)))
    )
    below_high, above_high = (0.0, 1.0) if cell.band.high is None else signed_rank_p(xs, math.log1p(cell.band.high))
    inside = min(1.0, 2 * max(above_low, below_high))
    outside = min(1.0, 2 * min(below_low, above_high))
    return ("confirmed", inside) if inside <= outside else ("refuted", outside)


def _clock_explained(cell: Cell) -> bool:
    """Whether the effect in SM cycles lies outside of the band by more than CYCLE_MARGIN: the clock moved, not the work."""
    band, cycles = cell.band, cell.cycles
    if band is None or cycles is None:
        return False
    below = band.low is not None and cycles.high < band.low - CYCLE_MARGIN
    above = band.high is not None and cycles.low > band.high + CYCLE_MARGIN
    return below or above


def _how_refuted(band: Band, effect: Interval) -> Subcode:
    """How the effect missed the band. Only a band that excludes zero predicts a direction."""
    if effect.low <= 0 <= effect.high or max(abs(effect.low), abs(effect.high)) <= NO_EFFECT:
        promised = not (band.low or -math.inf) <= 0 <= (band.high if band.high is not None else math.inf)
        if promised:
            return "no-effect"
    predicted = -1 if band.high is not None and band.high < 0 else 1 if band.low is not None and band.low > 0 else 0
    if predicted == 0:
        return "larger-than-predicted"
    if effect.estimate * predicted < 0:
        return "wrong-sign"
    beyond_high = band.high is not None and effect.estimate > band.high
    return "smaller-than-predicted" if beyond_high == (predicted < 0) else "larger-than-predicted"


def _inconclusive(cell: Cell, p_value: float) -> CellVerdict:
    """Says what this precision could have told apart, and how many pairs would settle the cell at the spread that was seen."""
    assert cell.band is not None and cell.effect is not None
    edges = [edge for edge in (cell.band.low, cell.band.high) if edge is not None]
    distance = min(abs(cell.effect.estimate - edge) for edge in edges)
    pairs = cell.effect.pairs
    half_width = cell.effect.half_width
    needed = math.ceil(pairs * (half_width / distance) ** 2) if distance > 0 and math.isfinite(half_width) else None
    if needed is not None:
        needed = max(needed, pairs + 1)
        needed = (
            needed if needed <= 100 * pairs else None
        )  # the effect lies on the edge of the band: more pairs won't settle it
    return CellVerdict(outcome="inconclusive", p_value=p_value, detectable=_detectable(cell), pairs_needed=needed)


def _detectable(cell: Cell) -> float:
    """Least distance from a band's edge that these pairs settle with 80 % power, from the interval's half-width."""
    assert cell.effect is not None
    z = NormalDist().inv_cdf
    return cell.effect.half_width * (z(0.975) + z(0.8)) / z(0.975)


def _with_merit(cell: Cell, more_is_better: set[str]) -> Cell:
    effect = cell.effect
    if effect is None or not cell.validity.valid:
        return cell
    if effect.low <= 0 <= effect.high:
        return cell.model_copy(update={"merit": "within-noise"})
    better = (effect.estimate > 0) == (cell.metric in more_is_better)
    return cell.model_copy(update={"merit": "better" if better else "worse"})


def _more_is_better(spec: Spec) -> set[str]:
    metrics = spec.command.metrics if spec.command else {}
    return {name for name, metric in metrics.items() if metric.better == "more"}


def _invalid(cell: Cell, summary: str) -> Verdict:
    detail = f": {cell.validity.detail}" if cell.validity.detail else ""
    return Verdict(outcome="invalid", reason=cell.validity.reason, summary=summary + detail)


def _why_inconclusive(cells: Sequence[Cell], among: Sequence[Cell]) -> str:
    worst = max(cells, key=lambda cell: cell.verdict.detectable or 0.0)
    needed = worst.verdict.pairs_needed
    more = (
        f"about {needed} pairs would settle it"
        if needed
        else "the effect lies at the edge of the band, more pairs won't settle it"
    )
    return (
        f"not settled at {_at(cells, among)}: detectable {percent(worst.verdict.detectable or 0.0).lstrip('+')}; {more}"
    )


def _at(cells: Sequence[Cell], among: Sequence[Cell]) -> str:
    return points([cell.point for cell in cells], [cell.point for cell in among])


def _span(cells: Sequence[Cell]) -> str:
    return _range([cell.effect.estimate for cell in cells if cell.effect])


def _cycle_span(cells: Sequence[Cell]) -> str:
    return _range([cell.cycles.estimate for cell in cells if cell.cycles])


def _range(estimates: Sequence[float]) -> str:
    low, high = min(estimates), max(estimates)
    return percent(low) if percent(low) == percent(high) else f"{percent(low)} to {percent(high)}"
