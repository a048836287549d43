"""Timers and the arithmetic round them, as far as a CPU can tell."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfplan.measure.clock import CPU_SAMPLE_SECONDS, MOST_REPEATS, CpuPass, lost_context, repeats_for
from perfplan.measure.rotation import COLD_FACTOR, MOST_SETS, cache_state, sets_needed
from perfplan.measure.rounds import Pairs, block, sample_pairs
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
    assert 0.01 <= timed.sample() < 0.03


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

    def arm(name: str) -> float:
        order.append(name)
        return float(next(values))

    pairs = Pairs()
    block(lambda: arm("A"), lambda: arm("B"), pairs, candidate_first=False)
    block(lambda: arm("A"), lambda: arm("B"), pairs, candidate_first=True)
    assert "".join(order) == "ABBABAAB"
    assert list(zip(pairs.baseline, pairs.candidate, strict=True)) == [(1, 2), (4, 3), (6, 5), (7, 8)]


def test_sampling_stops_on_precision_and_at_the_most_pairs() -> None:
    measure = Measure(min_pairs=8, max_pairs=20, seconds=60)
    looks: list[int] = []
    exact = sample_pairs(lambda: 1.0, lambda: 2.0, measure, 0.01, 0, lambda pairs, *_: looks.append(pairs))
    assert len(exact.baseline) == 8 and looks == [8]
    wild = iter([1.0, 5.0] * 1000)
    noisy = sample_pairs(lambda: next(wild), lambda: 1.0, measure, 0.01, 0, lambda *_: None)
    assert len(noisy.baseline) == 20
