"""Statistics of paired measurements: Hodges-Lehmann estimate, Wilcoxon signed-rank interval and p-value. Pure, stdlib only.

Inputs are differences, here log(candidate / baseline) of each pair. Source of the formulas: Hollander, Wolfe and Chicken,
"Nonparametric Statistical Methods", 3rd ed., sections 3.1 to 3.3. For up to `EXACT` pairs the null distribution is counted
exactly; above, the normal approximation with tie and continuity correction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist, median

EXACT = 60
_NORMAL = NormalDist()


def hodges_lehmann(xs: Sequence[float]) -> float:
    """The median of all pairwise means (Walsh averages). Raises ValueError for no or non-finite values."""
    return float(median(_walsh_averages(xs)))


def signed_rank_interval(xs: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """Interval for the centre at no less than `confidence`, from the ordered Walsh averages.

    With so few values that no finite interval has the confidence (5 or fewer at 95 %), it is unbounded.
    """
    averages = sorted(_walsh_averages(xs))
    dropped = _critical(len(xs), (1 - confidence) / 2)
    if dropped < 1:
        return -math.inf, math.inf
    return averages[dropped - 1], averages[len(averages) - dropped]


def signed_rank_p(xs: Sequence[float], centre: float) -> tuple[float, float]:
    """One-sided p-values against the hypothesis that the true centre is `centre`: (of "it is less", of "it is greater").

    The first is small where the values lie below `centre`. Values equal to `centre` count half to each side.
    """
    _check(xs)
    differences = [x - centre for x in xs]
    ranks = _midranks([abs(d) for d in differences])
    positive = sum(r if d > 0 else r / 2 if d == 0 else 0.0 for d, r in zip(differences, ranks, strict=True))
    total = len(xs) * (len(xs) + 1) / 2
    return _lower_tail(positive, ranks), _lower_tail(total - positive, ranks)


def holm(p_values: Sequence[float], alpha: float = 0.05) -> list[bool]:
    """Which of the hypotheses are rejected at family-wise level `alpha` (Holm 1979), in the order given."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    rejected = [False] * len(p_values)
    for step, index in enumerate(order):
        if p_values[index] > alpha / (len(p_values) - step):
            break
        rejected[index] = True
    return rejected


def _check(xs: Sequence[float]) -> None:
    if not xs:
        raise ValueError("no values")
    if not all(math.isfinite(x) for x in xs):
        raise ValueError("a value is not finite")


def _walsh_averages(xs: Sequence[float]) -> list[float]:
    _check(xs)
    return [(xs[i] + xs[j]) / 2 for i in range(len(xs)) for j in range(i, len(xs))]


def _critical(n: int, tail: float) -> int:
    """How many Walsh averages to drop at each end plus one: the least k with P(W <= k) > tail under the null; 0 where none is."""
    if n <= EXACT:
        counts = _null_counts(n)
        cumulative = 0
        for k, count in enumerate(counts):
            cumulative += count
            if cumulative > tail * (1 << n):
                return k
    mean, sd = n * (n + 1) / 4, math.sqrt(n * (n + 1) * (2 * n + 1) / 24)
    return max(0, math.floor(mean + _NORMAL.inv_cdf(tail) * sd))


@lru_cache(maxsize=256)
def _null_counts(n: int) -> tuple[int, ...]:
    """Number of sign patterns of ranks 1..n that give each sum of positive ranks 0..n(n+1)/2."""
    counts = [1]
    for rank in range(1, n + 1):
        shifted = [0] * rank + counts
        counts = [a + b for a, b in zip(counts + [0] * rank, shifted, strict=True)]
    return tuple(counts)


def _midranks(magnitudes: Sequence[float]) -> list[float]:
    order = sorted(range(len(magnitudes)), key=magnitudes.__getitem__)
    ranks = [0.0] * len(magnitudes)
    start = 0
    while start < len(order):
        end = start
        while end + 1 < len(order) and magnitudes[order[end + 1]] == magnitudes[order[start]]:
            end += 1
        for position in range(start, end + 1):
            ranks[order[position]] = (start + end) / 2 + 1
        start = end + 1
    return ranks


def _lower_tail(statistic: float, ranks: Sequence[float]) -> float:
    """P(W <= statistic) under the null, given the ranks."""
    n = len(ranks)
    tied = len(set(ranks)) < n
    if n <= EXACT and not tied:
        counts = _null_counts(n)
        return min(1.0, sum(counts[: math.floor(statistic) + 1]) / (1 << n))
    mean = n * (n + 1) / 4
    sd = math.sqrt(sum(r * r for r in ranks) / 4)  # equals the textbook variance, ties included
    return min(1.0, _NORMAL.cdf((statistic + 0.5 - mean) / sd))
