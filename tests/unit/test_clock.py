"""Timers and the arithmetic round them, as far as a CPU can tell."""

from __future__ import annotations

import math
import os
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfplan.measure.clock import CPU_SAMPLE_SECONDS, MOST_REPEATS, CpuPass, Reading, lost_context, repeats_for
from perfplan.measure.job import PointFailed
from perfplan.measure.rotation import COLD_FACTOR, MOST_SETS, cache_state, sets_needed
from perfplan.measure.rounds import Arms, Pairs, Sample, Station, Watch, block, planned_pairs, schedule
from perfplan.models.spec import Measure

TORCH_TAIL = "\nCUDA kernel errors might be asynchronously reported\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"


@pytest.mark.parametrize(
    ("first", "lost"),
    [
        ("CUDA error: an illegal memory access was encountered", True),
        ("CUDA error: device-side assert triggered", True),
        ("CUDA error: operation failed due to a previous error during capture", False),
        ("CUDA error: out of memory", False),
        ("", False),
    ],
)
def test_only_the_first_line_of_an_error_says_whether_the_context_is_lost(first: str, lost: bool) -> None:
    assert lost_context(RuntimeError(first + TORCH_TAIL)) is lost


@given(st.floats(1e-9, 10), st.integers(1, 64))
def test_a_sample_lasts_long_enough_against_the_clock(seconds: float, sets: int) -> None:
    repeats = repeats_for(seconds, sets, on_gpu=False)
    assert 1 <= repeats <= MOST_REPEATS
    assert repeats == MOST_REPEATS or repeats * seconds * sets >= CPU_SAMPLE_SECONDS * 0.999


def test_a_sample_is_seconds_for_one_call() -> None:
    timed = CpuPass([lambda: time.sleep(0.01)] * 2, repeats=2)
    assert 0.01 <= timed.sample().value < 0.03


@given(
    st.integers(1, 1 << 34),
    st.integers(1, 1 << 34),
    st.one_of(st.none(), st.integers(1, 1 << 28)),
    st.integers(0, 1 << 36),
)
def test_cold_is_said_only_where_the_bytes_prove_it(touched: int, stored: int, llc: int | None, budget: int) -> None:
    sets = sets_needed(touched, stored, llc, budget, "cold")
    assert 1 <= sets <= MOST_SETS
    assert sets == 1 or sets * stored <= max(budget, 0)
    state = cache_state(sets, touched, llc, "cold")
    assert (state.mode == "cold") == (llc is not None and sets * touched >= COLD_FACTOR * llc)
    assert state.bytes_touched == sets * touched
    assert (
        cache_state(1, touched, llc, "warm").mode == "warm" and sets_needed(touched, stored, llc, budget, "warm") == 1
    )


def test_a_block_has_each_order_once_and_pairs_stay_together() -> None:
    order: list[str] = []
    values = iter(range(1, 9))

    def arm(name: str) -> Reading:
        order.append(name)
        return Reading(float(next(values)))

    pairs = Pairs()
    block(lambda: arm("A"), lambda: arm("B"), pairs, candidate_first=False)
    block(lambda: arm("A"), lambda: arm("B"), pairs, candidate_first=True)
    assert "".join(order) == "ABBABAAB"
    both = [(a.value, b.value) for a, b in zip(pairs.baseline, pairs.candidate, strict=True)]
    assert both == [(1, 2), (4, 3), (6, 5), (7, 8)]


def station(
    baseline: Sample, candidate: Sample, measure: Measure, watch: Watch | None = None, batch: int = 1
) -> Station:
    return Station(
        point={"batch": batch}, arms=Arms(baseline, candidate, baseline), measure=measure, half_width=0.01,
        tell=lambda progress: None, watch=watch or Watch(),
    )  # fmt: skip


def sample(*stations: Station) -> None:
    for each in schedule(stations):
        each.visit()


def test_sampling_stops_on_precision_and_at_the_most_pairs() -> None:
    measure = Measure(min_pairs=8, max_pairs=20, seconds=60)
    exact = station(lambda: Reading(1.0), lambda: Reading(2.0), measure)
    sample(exact)
    assert len(exact.pairs.baseline) == 8 and exact.looks == [(8, 0.0)]
    assert len(exact.floor.baseline) == 10  # the floor is measured to its end all the same
    wild = iter([1.0, 5.0] * 1000)
    noisy = station(lambda: Reading(next(wild)), lambda: Reading(1.0), measure)
    sample(noisy)
    assert [pairs for pairs, _ in noisy.looks] == [20]


def test_the_plan_is_made_from_the_baseline_against_itself_and_not_from_what_is_judged() -> None:
    measure = Measure(min_pairs=10, max_pairs=100, seconds=60)
    spread = [0.02, -0.02, 0.01, -0.01, 0.015, -0.015, 0.005, -0.005, 0.018, -0.018]
    planned = planned_pairs(spread, 0.005, measure)
    assert 20 < planned < 100 and planned % 2 == 0
    assert planned_pairs(spread, 0.0025, measure) == 100
    assert planned_pairs([x / 100 for x in spread], 0.005, measure) == 10
    calm = station(lambda: Reading(1.0), lambda: Reading(1.0), measure)
    sample(calm)
    assert calm.looks == [(10, 0.0)]


def test_a_candidate_far_noisier_than_the_floor_gets_all_pairs_at_once() -> None:
    wild = iter([1.0, 1.5, 0.8, 1.2] * 1000)
    noisy = station(lambda: Reading(1.0), lambda: Reading(next(wild)), Measure(min_pairs=8, max_pairs=40, seconds=60))
    sample(noisy)
    assert [pairs for pairs, _ in noisy.looks] == [8, 40]


def test_the_budget_of_seconds_ends_a_point_with_the_pairs_it_has() -> None:
    wild = iter([1.0, 5.0] * 1000)

    def slow() -> Reading:
        time.sleep(0.005)
        return Reading(next(wild))

    tired = station(slow, lambda: Reading(1.0), Measure(min_pairs=8, max_pairs=1000, seconds=0.05))
    sample(tired)
    assert 8 <= len(tired.pairs.baseline) < 40


def test_every_round_visits_each_open_point_once_in_changing_order() -> None:
    measure = Measure(min_pairs=8, max_pairs=8, seconds=60)
    stations = [station(lambda: Reading(1.0), lambda: Reading(2.0), measure, batch=batch) for batch in range(5)]
    visits: list[object] = []
    for each in schedule(stations):
        each.visit()
        visits.append(each.point["batch"])
    rounds = [visits[i : i + 5] for i in range(0, len(visits), 5)]
    assert all(sorted(map(str, each)) == ["0", "1", "2", "3", "4"] for each in rounds)
    assert len({tuple(each) for each in rounds}) > 1


class Hot(Watch):
    """Disturbed in every `period`-th block."""

    def __init__(self, period: int) -> None:
        self._period, self._blocks = period, 0

    def disturbed(self) -> bool:
        self._blocks += 1
        return self._blocks % self._period == 0


def test_disturbed_blocks_are_dropped_pairwise_and_too_many_void_the_point() -> None:
    measure = Measure(min_pairs=8, max_pairs=40, seconds=60)
    rare = station(lambda: Reading(1.0), lambda: Reading(2.0), measure, Hot(7))
    sample(rare)
    assert rare.dropped > 0 and rare.cell_fields()["dropped"] == rare.dropped
    assert len(rare.pairs.baseline) == len(rare.pairs.candidate) >= 8
    for period in (3, 1):
        often = station(lambda: Reading(1.0), lambda: Reading(2.0), measure, Hot(period))
        sample(often)
        with pytest.raises(PointFailed, match="slowed the GPU") as failed:
            often.cell_fields()
        assert failed.value.reason == "throttled"


def test_the_isolated_design_settles_an_arm_before_each_of_its_samples() -> None:
    order: list[str] = []

    def arm(name: str) -> Sample:
        def sample() -> Reading:
            order.append(name)
            return Reading(1.0)

        return sample

    arms = Arms(arm("A"), arm("B"), arm("C")).isolated()
    block(arms.baseline, arms.candidate, Pairs(), candidate_first=False)
    assert "".join(order) == "AAAA" + "BBBB" + "BBBB" + "AAAA"


def test_cycles_are_time_times_clock_and_need_every_clock() -> None:
    pairs = Pairs([Reading(1.0, 1000.0)], [Reading(0.9, 2000.0)])
    assert pairs.cycle_log_ratios() == [pytest.approx(math.log(1.8))]
    assert Pairs([Reading(1.0, 1000.0)], [Reading(0.9)]).cycle_log_ratios() == []


def test_the_clock_stamp_compiles_for_hopper() -> None:
    """Without a GPU: what it reads must be the counter and the timer of SM 0."""
    triton = pytest.importorskip("triton")
    if os.environ.get("TRITON_INTERPRET") == "1":
        pytest.skip("the interpreter does not compile")
    from triton.backends.compiler import GPUTarget

    from perfplan.measure.ticks_triton import stamp

    source = triton.compiler.ASTSource(fn=stamp, signature={"out": "*i64"})
    ptx = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 1}).asm["ptx"]
    assert "%smid" in ptx and "%clock64" in ptx and "%globaltimer" in ptx
