"""The schedule: ABBA blocks, looks at the precision, and when to stop."""

from __future__ import annotations

import math
import random
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

from perfplan.effects import FLOOR_CONFIDENCE, interval_of
from perfplan.measure.job import Progress
from perfplan.models.base import Point
from perfplan.models.record import Interval
from perfplan.models.spec import Measure

Sample = Callable[[], float]
Look = Callable[[int, float, float, float], None]  # pairs, estimate, low, high: relative changes
LOOK_EVERY = 4  # pairs between looks
LEAST_FLOOR_PAIRS = 10  # of the A/A arm


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
            seen = interval_of(pairs.log_ratios())
            look(count, seen.estimate, seen.low, seen.high)
            if late or seen.half_width <= half_width:
                break
    return pairs


def sample_floor(baseline: Sample, again: Sample, pairs: int, seed: int) -> Pairs:
    """The baseline against itself, in the same blocks."""
    floor, order = Pairs(), random.Random(seed)
    while len(floor.baseline) < pairs:
        block(baseline, again, floor, order.random() < 0.5)
    return floor


@dataclass(frozen=True)
class Sampled:
    """What was sampled at a point: the baseline against itself, and both arms."""

    floor: Pairs
    pairs: Pairs

    def cell_fields(self) -> dict[str, Interval]:
        """Effect and A/A floor with their intervals, as a cell has them."""
        return {
            "effect": interval_of(self.pairs.log_ratios()),
            "floor": interval_of(self.floor.log_ratios(), FLOOR_CONFIDENCE),
        }


@dataclass(frozen=True)
class Arms:
    """How to take a sample of each arm; `again` is the baseline once more, prepared by itself."""

    baseline: Sample
    candidate: Sample
    again: Sample


def sample_point(
    point: Point, arms: Arms, measure: Measure, half_width: float, tell: Callable[[Progress], None]
) -> Sampled:
    """A/A first, then ABBA until the precision is reached or the budget is spent; tells its progress."""
    seed = zlib.crc32(
        repr(sorted(point.items())).encode()
    )  # of the order of the arms: the same wherever it is measured
    tell(Progress(point=point, stage="A/A"))
    floor = sample_floor(arms.baseline, arms.again, max(LEAST_FLOOR_PAIRS, measure.min_pairs), seed)
    most = measure.max_pairs

    def look(pairs: int, estimate: float, low: float, high: float) -> None:
        tell(Progress(point=point, stage="A/B", pairs=pairs, most_pairs=most, estimate=estimate, low=low, high=high))

    return Sampled(floor, sample_pairs(arms.baseline, arms.candidate, measure, half_width, seed, look))
