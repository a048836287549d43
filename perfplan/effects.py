"""From paired samples to an effect with its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence

from perfplan.models.record import Cell, Interval
from perfplan.stats import hodges_lehmann, signed_rank_interval

FLOOR_CONFIDENCE = 0.99  # an A/A effect must be clearly there before it voids a point


def interval_of(log_ratios: Sequence[float], confidence: float = 0.95) -> Interval:
    """Effect as a relative change (exp(log ratio) - 1), from one log ratio a pair."""
    low, high = signed_rank_interval(log_ratios, confidence)
    return Interval(
        estimate=math.expm1(hodges_lehmann(log_ratios)),
        low=math.expm1(low),
        high=math.expm1(high),
        confidence=confidence,
        pairs=len(log_ratios),
    )


def log_ratios(cell: Cell) -> list[float]:
    """log(candidate / baseline) of each pair of samples."""
    pairs = zip(cell.baseline.samples, cell.candidate.samples, strict=True)
    return [math.log(candidate / baseline) for baseline, candidate in pairs]
