"""How often perfplan's verdicts are wrong, by simulation: false alarms, power, coverage; beside the usual way.

    python tests/benchmarks/verdict_simulation.py [--scale 1] [--write docs/false-alarms.md]

Samples are drawn on a simulated clock: true time x noise x drift. perfplan's own judge settles them. The usual way gets
the very same clock: all of A first, then all of B. `--write` replaces the generated region of that page.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from statistics import NormalDist

from perfplan.effects import interval_of
from perfplan.judge import judge, target_half_width
from perfplan.measure.clock import Reading
from perfplan.measure.rounds import Arms, Station, schedule
from perfplan.models.band import Band
from perfplan.models.record import Arm, Cell
from perfplan.models.spec import Measure, Spec
from perfplan.stats import signed_rank_interval
from verdict_tables import (
    BEGIN,
    DRIFTS,
    EDGE,
    EFFECTS,
    END,
    FIXED,
    GAIN,
    HARD,
    PAIRS,
    POINTS,
    SAME,
    STOPPED,
    THRESHOLDS,
    WAYS,
    Results,
    Tally,
    region,
)

SEED = 1
AMOUNT = 0.03  # of a drift, over the session
SESSION = 120  # samples in which a drift gets that far: about what a point takes, A/A included
MEASURE = Measure()  # the defaults: 10 to 120 pairs, half-width 0.5 %
LOOK_EVERY = 4  # pairs
COUNTS = {"alarms": 10_000, "families": 2000, "power": 1000, "practical": 1000, "causes": 4000}  # for each setting
CHUNK = 100  # simulations of one task

Job = tuple[str, tuple[str | float, ...], int, int]  # study, its setting, index of the chunk, simulations


@dataclass(frozen=True)
class Measured:
    """An experiment's samples: paired, and the same clock in the usual order."""

    baseline: list[float]
    candidate: list[float]
    first: list[float]
    second: list[float]

    @property
    def pairs(self) -> int:
        return len(self.baseline)


def make_clock(rng: random.Random, drift: str, samples: int, session: int) -> list[float]:
    """What each sample's true time is multiplied by, in order of time: noise x drift."""
    factors, level, moment, step = [], 0.0, rng.random() * session, AMOUNT / math.sqrt(session)
    amount = rng.choice((-AMOUNT, AMOUNT))
    correlated, phase = rng.gauss(0, 0.01), rng.random() * math.tau
    for i in range(samples):
        noise = rng.gauss(0, 0.01) + (rng.expovariate(1 / 0.05) if rng.random() < 0.03 else 0.0)
        if drift == "ramp":
            level = amount * i / session
        elif drift == "step":
            level = amount * (i >= moment)
        elif drift == "walk":
            level += rng.gauss(0, step)
        elif drift == "correlated":  # AR(1), half of it carries over; as large as the noise itself
            level = correlated = 0.5 * correlated + rng.gauss(0, 0.01 * math.sqrt(0.75))
        elif drift == "cycle":
            level = 0.01 * math.cos(phase + i * math.tau / 4)
        factors.append((1 + noise) * math.exp(level))
    return factors


def abba(
    clock: Sequence[float],
    effect: float,
    rng: random.Random,
    enough: Callable[[list[float], list[float]], bool],
    blocks: bool = True,
) -> Measured:
    """Blocks A B B A or B A A B, by chance, until it is enough or the clock ends. Without `blocks`: each pair by chance."""
    baseline: list[float] = []
    candidate: list[float] = []
    for i in range(0, len(clock) - 3, 4):
        one = rng.random() < 0.5
        other = not one if blocks else rng.random() < 0.5
        for at, swap in ((i, one), (i + 2, other)):
            baseline.append(clock[at + swap])
            candidate.append(clock[at + (not swap)] * (1 + effect))
        if enough(baseline, candidate):
            break
    half = len(baseline)
    return Measured(baseline, candidate, list(clock[:half]), [x * (1 + effect) for x in clock[half : 2 * half]])


def ratios(baseline: Sequence[float], candidate: Sequence[float]) -> list[float]:
    return [math.log(b / a) for a, b in zip(baseline, candidate, strict=True)]


def until_precise(change: str) -> Callable[[list[float], list[float]], bool]:
    """The rule that perfplan does not have: to stop when the very pairs that are judged look precise, every four pairs."""
    target = target_half_width(Band.model_validate(change), MEASURE.half_width)

    def enough(baseline: list[float], candidate: list[float]) -> bool:
        count = len(baseline)
        if count < MEASURE.min_pairs or (count % LOOK_EVERY and count != MEASURE.min_pairs):
            return False
        low, high = signed_rank_interval(ratios(baseline, candidate))
        return (math.expm1(high) - math.expm1(low)) / 2 <= target

    return enough


def experiment(rng: random.Random, drift: str, change: str, effect: float = 0.0) -> Measured:
    """One operating point, scheduled by perfplan itself: A/A, the plan made from it, ABBA."""
    clock = make_clock(rng, drift, 6 * MEASURE.max_pairs, SESSION)
    ticking = iter(clock)

    def baseline() -> Reading:
        return Reading(next(ticking))

    def candidate() -> Reading:
        return Reading(next(ticking) * (1 + effect))

    station = Station(
        point={"experiment": rng.getrandbits(64)},  # seeds the order of the arms
        arms=Arms(baseline, candidate, again=baseline),
        measure=MEASURE,
        half_width=target_half_width(Band.model_validate(change), MEASURE.half_width),
        tell=lambda progress: None,
    )
    for each in schedule([station]):
        each.visit()
    pairs = station.pairs
    half = len(pairs.baseline)
    return Measured(
        [each.value for each in pairs.baseline],
        [each.value for each in pairs.candidate],
        clock[:half],
        [x * (1 + effect) for x in clock[half : 2 * half]],
    )


@lru_cache
def spec_for(change: str, points: int) -> Spec:
    """A spec that predicts `change` at so many points."""
    return Spec.model_validate(
        {
            "campaign": "simulation", "title": "Simulate", "lever": "none",
            "hypothesis": {"claim": "simulated", "because": "simulated", "predicts": {"change": change}},
            "kernel": {"entry": "k.py:K", "baseline": {"n": 1}, "candidate": {"n": 2}},
            "points": {"cell": list(range(points))},
        }
    )  # fmt: skip


def cells_of(measured: Sequence[Measured]) -> list[Cell]:
    """The cells of a run, as the worker hands them to the judge."""
    return [
        Cell(
            point={"cell": index},
            role="observed",
            baseline=Arm(config={"n": 1}, samples=each.baseline),
            candidate=Arm(config={"n": 2}, samples=each.candidate),
            effect=interval_of(ratios(each.baseline, each.candidate)),
        )
        for index, each in enumerate(measured)
    ]


def outcomes(change: str, cells: Sequence[Cell]) -> list[str]:
    """What perfplan says of each cell."""
    return [str(cell.verdict.outcome) for cell in judge(spec_for(change, len(cells)), cells, "cuda").cells]


def settled(outcome: str) -> bool:
    return outcome in ("confirmed", "refuted")


def median_change(measured: Measured) -> float:
    """The usual way: the median of all of B over the median of all of A, minus 1."""
    return statistics.median(measured.second) / statistics.median(measured.first) - 1


def mann_whitney_p(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Two-sided, normal approximation; the samples have no ties."""
    order = sorted([(x, 0) for x in xs] + [(y, 1) for y in ys])
    ranks = sum(rank for rank, (_, of_ys) in enumerate(order, 1) if of_ys)
    n, m = len(xs), len(ys)
    sd = math.sqrt(n * m * (n + m + 1) / 12)
    return 2 * NormalDist().cdf(-max(0.0, abs(ranks - m * (n + m + 1) / 2) - 0.5) / sd)


def alarms(rng: random.Random, drift: str) -> Tally:
    """One A/A experiment; all three claims have the same stop rule, so they are about the same samples."""
    measured = experiment(rng, drift, EDGE)
    cells = cells_of([measured])
    edge, gain, same = (outcomes(change, cells)[0] for change in (EDGE, GAIN, SAME))
    tally = Tally({"edge": settled(edge), "faster": edge == "confirmed", "gain": gain == "confirmed"})
    tally.update({"same": same == "refuted", "mann-whitney": mann_whitney_p(measured.first, measured.second) < 0.05})
    tally.update({f"medians {limit}": abs(median_change(measured)) > limit for limit in THRESHOLDS})
    stopped = max(least for least in STOPPED if measured.pairs >= least)
    tally.update({f"stopped {stopped}": 1, f"stopped {stopped} edge": settled(edge)})
    return tally


def families(rng: random.Random, drift: str) -> Tally:
    """One A/A run of several points: whether any of them got a verdict."""
    cells = cells_of([experiment(rng, drift, EDGE) for _ in range(POINTS)])
    return Tally({"any": any(map(settled, outcomes(EDGE, cells)))})


def power(rng: random.Random, drift: str, effect: float, pairs: float) -> Tally:
    """One experiment of exactly so many pairs with a true slow-down."""
    clock = make_clock(rng, drift, 2 * int(pairs), 2 * int(pairs))
    measured = abba(clock, effect, rng, lambda baseline, _: len(baseline) >= pairs)
    (cell,) = cells_of([measured])
    outcome = outcomes(">= 0%", [cell])[0]
    change = median_change(measured)
    tally = Tally({"confirmed": outcome == "confirmed", "refuted": outcome == "refuted"})
    tally.update({"medians": change > 0.01, "medians wrong": change < -0.01})
    tally.update({"covered": cell.effect is not None and cell.effect.low <= effect <= cell.effect.high})
    return tally


def practical(rng: random.Random, drift: str) -> Tally:
    """One experiment whose prediction is right: truth +2 %, band +-1 % about it."""
    measured = experiment(rng, drift, "[+1%, +3%]", 0.02)
    return Tally({outcomes("[+1%, +3%]", cells_of([measured]))[0]: 1, f"{measured.pairs} pairs": 1})


def causes(rng: random.Random, drift: str, way: str) -> Tally:
    """One A/A experiment in which a cause of false verdicts is taken away, or made worse."""
    if way == "plan":
        measured = experiment(rng, drift, EDGE)
    elif way == "looks":
        measured = abba(make_clock(rng, drift, 2 * MEASURE.max_pairs, SESSION), 0.0, rng, until_precise(EDGE))
    else:
        clock = make_clock(rng, drift, 2 * FIXED, SESSION)
        measured = abba(clock, 0.0, rng, lambda baseline, _: len(baseline) >= FIXED, blocks=way == "fixed")
    return Tally({"edge": settled(outcomes(EDGE, cells_of([measured]))[0])})


STUDIES: dict[str, Callable[..., Tally]] = {
    "alarms": alarms, "families": families, "power": power, "practical": practical, "causes": causes,
}  # fmt: skip


def settings() -> list[tuple[str, tuple[str | float, ...]]]:
    """Every study with every setting of it."""
    simple = [(study, (drift,)) for study in ("alarms", "families", "practical") for drift in DRIFTS]
    grid = [("power", (drift, effect, pairs)) for drift in DRIFTS for effect in EFFECTS for pairs in PAIRS]
    return [*simple, *grid, *(("causes", (drift, way)) for drift in ("none", *HARD) for way in WAYS)]


def work(job: Job) -> tuple[tuple[str | float, ...], Tally]:
    """A chunk of simulations; its seed depends on nothing but what it is."""
    study, setting, chunk, count = job
    rng, tally = random.Random(f"{SEED} {study} {setting} {chunk}"), Tally()
    for _ in range(count):
        tally.update(STUDIES[study](rng, *setting))
    tally["n"] = count
    return (study, *setting), tally


def simulate(scale: float, processes: int) -> Results:
    """All studies, `scale` times as many simulations as published."""
    jobs: list[Job] = []
    for study, setting in settings():
        count = max(1, round(COUNTS[study] * scale))
        jobs += [(study, setting, chunk, min(CHUNK, count - chunk * CHUNK)) for chunk in range(-(-count // CHUNK))]
    results: Results = {}
    with multiprocessing.Pool(processes) as pool:
        for key, tally in pool.imap(work, jobs):
            results.setdefault(key, Tally()).update(tally)
    return results


def write_region(page: Path, made: str) -> None:
    """Put the tables between the page's markers; the rest of the page stays."""
    before, rest = page.read_text().split(BEGIN)
    page.write_text(before + made + rest.split(END)[1])


def main() -> None:
    """Simulate, print the tables, write what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the published number of simulations")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--write", type=Path, metavar="PAGE", help="replace the generated region of this page")
    arguments = parser.parse_args()
    made = region(simulate(arguments.scale, arguments.processes))
    print(made)
    if arguments.write:
        write_region(arguments.write, made)


if __name__ == "__main__":
    main()
