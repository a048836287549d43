"""Our page of statistics against SciPy, and by properties."""

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from perfplan.stats import hodges_lehmann, holm, signed_rank_interval, signed_rank_p

values = st.lists(st.floats(-1, 1, allow_nan=False).map(lambda x: round(x, 9)), min_size=1, max_size=70)


@pytest.mark.parametrize("n", [6, 10, 25, 50])
@pytest.mark.parametrize("centre", [-0.3, 0.0, 0.2])
def test_p_values_equal_scipys_exact_wilcoxon(n: int, centre: float) -> None:
    rng = random.Random(n)
    xs = [rng.gauss(0, 1) for _ in range(n)]
    shifted = [x - centre for x in xs]
    less, greater = signed_rank_p(xs, centre)
    assert less == pytest.approx(scipy_stats.wilcoxon(shifted, alternative="less", method="exact").pvalue, abs=1e-12)
    assert greater == pytest.approx(
        scipy_stats.wilcoxon(shifted, alternative="greater", method="exact").pvalue, abs=1e-12
    )


@pytest.mark.parametrize("seed", range(5))
def test_p_values_of_many_pairs_equal_scipys_approximation(seed: int) -> None:
    rng = random.Random(seed)
    xs = [round(rng.gauss(0.1, 1), 1) + 0.05 for _ in range(100)]  # rounding makes ties
    less, greater = signed_rank_p(xs, 0.0)
    expect = {
        side: scipy_stats.wilcoxon(xs, alternative=side, method="approx", correction=True).pvalue
        for side in ("less", "greater")
    }
    assert less == pytest.approx(expect["less"], abs=2e-3)
    assert greater == pytest.approx(expect["greater"], abs=2e-3)


@pytest.mark.parametrize("n", [6, 9, 20, 45])
def test_interval_is_where_the_exact_test_stops_rejecting(n: int) -> None:
    rng = random.Random(n)
    xs = [rng.gauss(0, 1) for _ in range(n)]
    low, high = signed_rank_interval(xs, 0.95)
    inside, outside = 1e-9, -1e-9
    for nudge, rejected in ((inside, False), (outside, True)):
        for bound, sign in ((low, 1), (high, -1)):
            p = scipy_stats.wilcoxon([x - (bound + sign * nudge) for x in xs], method="exact").pvalue
            assert bool(p <= 0.05) is rejected


def test_too_few_values_give_an_unbounded_interval() -> None:
    assert signed_rank_interval([0.1] * 5, 0.95) == (-math.inf, math.inf)
    assert math.isfinite(signed_rank_interval([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], 0.95)[0])


@given(values, st.floats(-1, 1))
@settings(max_examples=50)
def test_estimate_moves_with_the_data_and_lies_in_the_interval(xs: list[float], shift: float) -> None:
    estimate = hodges_lehmann(xs)
    low, high = signed_rank_interval(xs)
    assert min(xs) - 1e-12 <= estimate <= max(xs) + 1e-12
    assert low <= estimate <= high
    assert hodges_lehmann([x + shift for x in xs]) == pytest.approx(estimate + shift, abs=1e-9)
    assert hodges_lehmann([-x for x in xs]) == pytest.approx(-estimate, abs=1e-12)


def test_coverage_is_nominal_under_heavy_tails() -> None:
    rng = random.Random(7)
    hits = 0
    for _ in range(400):
        xs = [rng.gauss(0.02, 0.01) * (5 if rng.random() < 0.03 else 1) for _ in range(20)]
        low, high = signed_rank_interval(xs)
        hits += low <= 0.02 <= high
    assert 0.92 <= hits / 400 <= 0.99


@pytest.mark.parametrize("bad", [[], [1.0, math.nan], [math.inf]])
def test_no_or_non_finite_values_are_refused(bad: list[float]) -> None:
    with pytest.raises(ValueError, match="value"):
        hodges_lehmann(bad)


def test_holm_rejects_step_by_step() -> None:
    assert holm([0.01, 0.04, 0.03], alpha=0.05) == [True, False, False]
    assert holm([0.01, 0.02, 0.03], alpha=0.05) == [True, True, True]
    assert holm([], alpha=0.05) == []
