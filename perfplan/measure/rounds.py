"""The schedule: rounds over the operating points in changing order, ABBA blocks at each, looks at the precision, and the end."""

from __future__ import annotations

import math
import random
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from perfplan.effects import FLOOR_CONFIDENCE, interval_of
from perfplan.measure.clock import Reading
from perfplan.measure.job import PointFailed, Progress
from perfplan.models.base import Point
from perfplan.models.spec import Measure

Sample = Callable[[], Reading]
LOOK_EVERY = 4  # pairs between looks
LEAST_FLOOR_PAIRS = 10  # of the A/A arm
SETTLE = 3  # untimed samples before each sample of the isolated design
MOST_DROPPED = 0.2  # share of pairs that may be dropped
_monotonic = time.monotonic


@dataclass
class Pairs:
    """Samples of both arms; the i-th of each form a pair."""

    baseline: list[Reading] = field(default_factory=list)
    candidate: list[Reading] = field(default_factory=list)

    def log_ratios(self) -> list[float]:
        """log(candidate / baseline) of each pair."""
        return [math.log(b.value / a.value) for a, b in zip(self.baseline, self.candidate, strict=True)]

    def cycle_log_ratios(self) -> list[float]:
        """The same in SM cycles: value x clock. Empty where a clock is missing."""
        found = []
        for a, b in zip(self.baseline, self.candidate, strict=True):
            if not a.mhz or not b.mhz:
                return []
            found.append(math.log(b.value * b.mhz / (a.value * a.mhz)))
        return found


@dataclass(frozen=True)
class Arms:
    """How to take a sample of each arm; `again` is the baseline once more, prepared by itself."""

    baseline: Sample
    candidate: Sample
    again: Sample

    def isolated(self) -> Arms:
        """The same, each sample led by untimed ones of its own arm: for arms that disturb each other."""

        def alone(sample: Sample) -> Sample:
            def settled() -> Reading:
                for _ in range(SETTLE):
                    sample()
                return sample()

            return settled

        return Arms(alone(self.baseline), alone(self.candidate), alone(self.again))


class Watch:
    """Says after each block whether the machine disturbed it. This one watches nothing."""

    def start(self) -> None:
        """A block begins."""

    def disturbed(self) -> bool:
        """Whether the block that just ended must be dropped."""
        return False


def block(baseline: Sample, candidate: Sample, pairs: Pairs, candidate_first: bool) -> None:
    """One ABBA (or BAAB) block: two pairs, one in each order, so that a linear drift cancels."""
    if candidate_first:
        b1, a1, a2, b2 = candidate(), baseline(), baseline(), candidate()
    else:
        a1, b1, b2, a2 = baseline(), candidate(), candidate(), baseline()
    pairs.baseline += [a1, a2]
    pairs.candidate += [b1, b2]


@dataclass
class Station:
    """One operating point, ready to be sampled, and what was sampled so far. A round visits each open station once."""

    point: Point
    arms: Arms
    measure: Measure
    half_width: float  # precision (relative) at which it stops
    tell: Callable[[Progress], None]
    watch: Watch = field(default_factory=Watch)
    renew: Callable[[], None] | None = None  # called before every other visit
    floor: Pairs = field(default_factory=Pairs)
    pairs: Pairs = field(default_factory=Pairs)
    looks: list[tuple[int, float]] = field(default_factory=list)
    visits: int = 0
    dropped: int = 0
    seconds: float = 0.0
    done: bool = False

    def __post_init__(self) -> None:
        # the order of the arms: the same wherever the point is measured
        self._settled = False  # the pairs of both arms are enough; the floor may not be
        self._order = random.Random(zlib.crc32(repr(sorted(self.point.items())).encode()))

    def visit(self) -> None:
        """One A/A block while the floor needs it, one A/B block, and a look. Sets `done`."""
        start = _monotonic()
        if self.visits == 0:
            self.tell(Progress(point=self.point, stage="A/A"))
        if self.renew is not None and self.visits % 2 == 0:
            self.renew()
        self.visits += 1
        if not self._floor_full():
            self._block(self.arms.baseline, self.arms.again, self.floor)
        if not self._settled:
            self._block(self.arms.baseline, self.arms.candidate, self.pairs)
            self._look(_monotonic() - start)
        self.seconds += _monotonic() - start
        self.done = self._settled and (self._floor_full() or self._spent())

    def _floor_full(self) -> bool:
        return len(self.floor.baseline) >= max(LEAST_FLOOR_PAIRS, self.measure.min_pairs)

    def _spent(self) -> bool:
        """Whether there were as many visits as the budget of pairs allows, with some to spare for dropped ones."""
        most = max(LEAST_FLOOR_PAIRS, self.measure.max_pairs)
        return self.visits * 2 > most * (1 + 2 * MOST_DROPPED)

    def _block(self, baseline: Sample, candidate: Sample, pairs: Pairs) -> None:
        fresh = Pairs()
        self.watch.start()
        block(baseline, candidate, fresh, self._order.random() < 0.5)
        if self.watch.disturbed():
            self.dropped += len(fresh.baseline)
            return
        pairs.baseline += fresh.baseline
        pairs.candidate += fresh.candidate

    def _look(self, seconds: float) -> None:
        """The rule looks at precision alone, never at what the estimate says, so that looking makes no false verdicts."""
        count, measure = len(self.pairs.baseline), self.measure
        late = self.seconds + seconds > measure.seconds
        full = count >= measure.max_pairs or self._spent()
        self._settled = full
        if count < measure.min_pairs or not (late or full or count % LOOK_EVERY == 0 or count == measure.min_pairs):
            return
        seen = interval_of(self.pairs.log_ratios())
        self.looks.append((count, round(min(seen.half_width, 1e9), 6)))
        self._settled = full or late or seen.half_width <= self.half_width
        self.tell(
            Progress(
                point=self.point, stage="A/B", pairs=count, most_pairs=measure.max_pairs,
                estimate=seen.estimate, low=seen.low, high=seen.high,
            )
        )  # fmt: skip

    def cell_fields(self) -> dict[str, Any]:
        """Effect, A/A floor and cycles with their intervals, as a cell has them. Raises PointFailed where too much was dropped."""
        kept = len(self.pairs.baseline) + len(self.floor.baseline)
        if not self.pairs.baseline or not self.floor.baseline or self.dropped > MOST_DROPPED * (self.dropped + kept):
            share = self.dropped / (self.dropped + kept)
            raise PointFailed("throttled", f"heat or a power brake slowed the GPU in {share:.0%} of the pairs")
        cycles = self.pairs.cycle_log_ratios()
        return {
            "effect": interval_of(self.pairs.log_ratios()),
            "floor": interval_of(self.floor.log_ratios(), FLOOR_CONFIDENCE),
            "cycles": interval_of(cycles) if cycles else None,
            "looks": self.looks,
            "dropped": self.dropped,
        }


def schedule(stations: Sequence[Station], seed: int = 0) -> Iterator[Station]:
    """The stations in the order of their visits: rounds over all that are open, reshuffled each time."""
    order, waiting = random.Random(seed), list(stations)
    while waiting:
        order.shuffle(waiting)
        yield from waiting
        waiting = [each for each in waiting if not each.done]
