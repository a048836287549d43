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
SHOWN_EVERY = 4  # pairs between reports of how far it is
LEAST_FLOOR_PAIRS = 10  # of the A/A arm
SETTLE = 3  # untimed samples before each sample of the isolated design
MOST_DROPPED = 0.2  # share of pairs that may be dropped
PLAN_MARGIN = 0.9  # the interval of ten pairs is wider than n pairs would make one by a third; with some to spare
FAR_OFF = 1.5  # times the wanted half-width, at which the planned pairs were far too few: the candidate is noisier
_monotonic = time.monotonic


def planned_pairs(floor: Sequence[float], half_width: float, measure: Measure) -> int:
    """How many pairs give an interval of `half_width`, by the spread of the A/A pairs: n ~ (half-width seen / wanted)^2.

    The plan comes from samples that are not judged. To stop on the spread of the very pairs that are judged makes false
    verdicts: a sample that happens to look calm stops early, and is wrong more often (docs/false-alarms.md).
    """
    seen = interval_of(floor).half_width
    wanted = PLAN_MARGIN * len(floor) * (seen / half_width) ** 2 if math.isfinite(seen) else math.inf
    most = measure.max_pairs
    return most if wanted >= most else min(most, max(measure.min_pairs, 2 * math.ceil(wanted / 2)))


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


def block(baseline: Sample, candidate: Sample, pairs: Pairs, candidate_first: bool, lead: bool = False) -> None:
    """One ABBA (or BAAB) block: two pairs, one in each order, so that a linear drift cancels.

    With `lead` an untimed sample goes first: after a pause the first one takes longer (0.2 % on an H200).
    """
    if lead:
        (candidate if candidate_first else baseline)()
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
    lead: bool = False  # an untimed sample before each block
    floor: Pairs = field(default_factory=Pairs)
    pairs: Pairs = field(default_factory=Pairs)
    looks: list[tuple[int, float]] = field(default_factory=list)
    visits: int = 0
    dropped: int = 0
    seconds: float = 0.0
    done: bool = False

    def __post_init__(self) -> None:
        # the order of the arms: the same wherever the point is measured
        self._owed: dict[int, bool] = {}
        self.planned = self.measure.max_pairs  # until the floor says how many it takes
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
            if self._floor_full():
                self.planned = planned_pairs(self.floor.log_ratios(), self.half_width, self.measure)
        if len(self.pairs.baseline) < self.planned:
            self._block(self.arms.baseline, self.arms.candidate, self.pairs)
        self.seconds += _monotonic() - start
        self._look()

    def _floor_full(self) -> bool:
        return len(self.floor.baseline) >= max(LEAST_FLOOR_PAIRS, self.measure.min_pairs)

    def _block(self, baseline: Sample, candidate: Sample, pairs: Pairs) -> None:
        fresh = Pairs()
        self.watch.start()
        block(baseline, candidate, fresh, self._candidate_first(pairs), self.lead)
        if self.watch.disturbed():
            self.dropped += len(fresh.baseline)
            return
        pairs.baseline += fresh.baseline
        pairs.candidate += fresh.candidate

    def _candidate_first(self, pairs: Pairs) -> bool:
        """By chance for a first block, the other way round for the next, so that what a position costs falls on both arms."""
        key = id(pairs)
        if key in self._owed:
            return self._owed.pop(key)
        first = self._order.random() < 0.5
        self._owed[key] = not first
        return first

    def _look(self) -> None:
        """End at the planned pairs; where they are far from precise enough, once more at the most pairs; or out of time."""
        count, most = len(self.pairs.baseline), self.measure.max_pairs
        late = self.seconds > self.measure.seconds and count >= self.measure.min_pairs
        lost = self.visits * 2 > max(LEAST_FLOOR_PAIRS, most) * (1 + 2 * MOST_DROPPED)  # too many blocks were dropped
        ends = (self._floor_full() and count >= self.planned) or late or lost
        if count >= self.measure.min_pairs and (ends or count % SHOWN_EVERY == 0):
            seen = interval_of(self.pairs.log_ratios())
            self.tell(
                Progress(
                    point=self.point, stage="A/B", pairs=count, most_pairs=most,
                    estimate=seen.estimate, low=seen.low, high=seen.high,
                )
            )  # fmt: skip
            if ends:
                self.looks.append((count, round(min(seen.half_width, 1e9), 6)))
                if not (late or lost) and count < most and seen.half_width > FAR_OFF * self.half_width:
                    self.planned, ends = most, False
        self.done = ends and (self._floor_full() or lost)

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
