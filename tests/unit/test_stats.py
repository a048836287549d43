"""Our page of statistics against SciPy, and by properties."""

import itertools
import math
import random
from collections.abc import Sequence

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


def enumerated_p(xs: Sequence[float], centre: float) -> tuple[float, float]:
    """The one-sided p-values by trying every pattern of signs."""
    differences = [x - centre for x in xs]
    ranks = scipy_stats.rankdata([abs(d) for d in differences])
    observed = sum(r if d > 0 else r / 2 if d == 0 else 0.0 for d, r in zip(differences, ranks, strict=True))
    sums = [sum(itertools.compress(ranks, signs)) for signs in itertools.product((0, 1), repeat=len(xs))]
    return sum(s <= observed for s in sums) / len(sums), sum(s >= observed for s in sums) / len(sums)


@pytest.mark.parametrize("n", [1, 2, 5, 8, 11])
@pytest.mark.parametrize("centre", [-0.5, 0.0, 0.7])
def test_p_values_equal_an_enumeration_of_all_signs(n: int, centre: float) -> None:
    rng = random.Random(n)
    xs = [rng.gauss(0.3, 1) for _ in range(n)]
    assert signed_rank_p(xs, centre) == pytest.approx(enumerated_p(xs, centre), abs=1e-12)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("steps", [1, 2, 4])
def test_p_values_of_few_tied_pairs_are_near_the_enumeration(seed: int, steps: int) -> None:
    rng = random.Random(seed)
    xs = [round(rng.gauss(0.8, 1) * steps) / steps for _ in range(10)]  # ties and zeros, so the normal approximation
    _, greater = signed_rank_p(xs, 0.0)
    _, expected = enumerated_p(xs, 0.0)
    if expected < 0.1:
        assert greater == pytest.approx(expected, abs=0.015)


@pytest.mark.parametrize("seed", range(5))
def test_values_at_the_centre_count_half_as_in_scipys_zsplit(seed: int) -> None:
    rng = random.Random(seed)
    xs = [round(rng.gauss(0.1, 1), 1) for _ in range(80)] + [0.0] * 3
    ours = signed_rank_p(xs, 0.0)
    for p, side in zip(ours, ("less", "greater"), strict=True):
        theirs = scipy_stats.wilcoxon(xs, zero_method="zsplit", alternative=side, method="approx", correction=True)
        assert p == pytest.approx(theirs.pvalue, abs=1e-12)


@pytest.mark.parametrize("n", [6, 7, 9, 11])
def test_interval_equals_brute_force_over_all_centres(n: int) -> None:
    """The test can change its mind only at a Walsh average: try the middle of each gap between two of them."""
    rng = random.Random(n)
    xs = [rng.gauss(0, 1) for _ in range(n)]
    walsh = sorted((xs[i] + xs[j]) / 2 for i in range(n) for j in range(i, n))
    kept = [gap for gap in itertools.pairwise(walsh) if 2 * min(enumerated_p(xs, sum(gap) / 2)) > 0.05]
    assert signed_rank_interval(xs) == pytest.approx((kept[0][0], kept[-1][1]), abs=1e-12)


@pytest.mark.parametrize("n", [10, 60, 61, 80, 120])
def test_what_lies_outside_of_the_interval_is_rejected(n: int) -> None:
    rng = random.Random(n)
    xs = [rng.gauss(0, 1) for _ in range(n)]
    low, high = signed_rank_interval(xs)
    for centre in (low - 1e-9, high + 1e-9):
        assert 2 * min(signed_rank_p(xs, centre)) <= 0.05


@given(st.lists(st.floats(0, 0.1), min_size=1, max_size=6))
@settings(max_examples=50)
def test_holm_equals_the_closed_test(ps: list[float]) -> None:
    """A hypothesis falls where Bonferroni rejects every set of hypotheses that holds it (Marcus, Peritz, Gabriel 1976)."""
    sets = [c for size in range(1, len(ps) + 1) for c in itertools.combinations(range(len(ps)), size)]
    rejected = {each for each in sets if min(ps[i] for i in each) <= 0.05 / len(each)}
    assert holm(ps) == [all(each in rejected for each in sets if i in each) for i in range(len(ps))]
