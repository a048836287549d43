"""The schedule: ABBA blocks, looks at the precision, and when to stop."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from perfplan.models.spec import Measure
from perfplan.stats import hodges_lehmann, signed_rank_interval

Sample = Callable[[], float]
Look = Callable[[int, float, float, float], None]  # pairs, estimate, low, high: relative changes
LOOK_EVERY = 4  # pairs between looks


@dataclass
class Pairs:
    """Samples of both arms; the i-th of each form a pair."""

    baseline: list[float] = field(default_factory=list)
    candidate: list[float] = field(default_factory=list)

    def log_ratios(self) -> list[float]:
        """log(candidate / baseline) of each pair."""
        return [math.log(b / a) for a, b in zip(self.baseline, self.candidate, strict=True)]


def block(baseline: Sample, candidate: Sample, pairs: Pairs, candidate_first: bool) -> None:
    """One ABBA (or BAAB) block: two pairs, one in each order, so that a linear drift cancels."""
    if candidate_first:
        b1, a1, a2, b2 = candidate(), baseline(), baseline(), candidate()
    else:
        a1, b1, b2, a2 = baseline(), candidate(), candidate(), baseline()
    pairs.baseline += [a1, a2]
    pairs.candidate += [b1, b2]


def sample_pairs(
    baseline: Sample, candidate: Sample, measure: Measure, half_width: float, seed: int, look: Look
) -> Pairs:
    """Sample until the interval's half-width is at most `half_width`, or the budget of pairs or seconds is spent.

    The rule looks at precision alone, never at what the estimate says, so that looking does not make false verdicts.
    """
    pairs, order = Pairs(), random.Random(seed)
    deadline = time.monotonic() + measure.seconds
    while len(pairs.baseline) < measure.max_pairs:
        block(baseline, candidate, pairs, order.random() < 0.5)
        count = len(pairs.baseline)
        late = time.monotonic() > deadline
        if count >= measure.min_pairs and (late or count % LOOK_EVERY == 0 or count == measure.min_pairs):
            estimate, low, high = summary(pairs.log_ratios())
            look(count, estimate, low, high)
            if late or (high - low) / 2 <= half_width:
                break
    return pairs


def sample_floor(baseline: Sample, again: Sample, pairs: int, seed: int) -> Pairs:
    """The baseline against itself, in the same blocks."""
    floor, order = Pairs(), random.Random(seed)
    while len(floor.baseline) < pairs:
        block(baseline, again, floor, order.random() < 0.5)
    return floor


def summary(log_ratios: Sequence[float]) -> tuple[float, float, float]:
    """Estimate and 95 % interval of a relative change."""
    low, high = signed_rank_interval(log_ratios)
    return math.expm1(hodges_lehmann(log_ratios)), math.expm1(low), math.expm1(high)
