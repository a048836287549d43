"""The simulation of verdicts: its schedule, its false alarms, and the page that it writes."""

from __future__ import annotations

import random
import re
from fractions import Fraction
from pathlib import Path

import pytest

import verdict_simulation as simulation
from verdict_tables import BEGIN, END, region, wilson

PAGE = Path(__file__).parents[2] / "docs/false-alarms.md"


def shape(text: str) -> str:
    """The text without its figures."""
    return re.sub(r"#(, #)*", "#", re.sub(r"\d[\d,.]*%?", "#", text)).replace("none |", "# |")


def test_abba_cancels_a_linear_ramp_exactly() -> None:
    ramp = [float(100 + i) for i in range(80)]  # no noise; whole numbers, so the sums are exact
    for seed in range(20):
        measured = simulation.abba(ramp, 0.0, random.Random(seed), lambda baseline, _: len(baseline) >= 40)
        assert measured.pairs == 40
        assert sum(map(Fraction, measured.baseline)) == sum(map(Fraction, measured.candidate))
        assert sorted(measured.baseline + measured.candidate) == ramp
        assert simulation.median_change(measured) > 0.1  # the usual order does not cancel it


def test_identical_code_rarely_gets_a_verdict() -> None:
    rng = random.Random(7)
    tallies = [simulation.alarms(rng, simulation.DRIFTS[i % len(simulation.DRIFTS)]) for i in range(200)]
    assert sum(tally["edge"] for tally in tallies) / 200 < 0.08
    assert not any(tally["gain"] or tally["same"] for tally in tallies)


def test_experiments_are_planned_by_perfplan_within_its_budget() -> None:
    pairs = {simulation.experiment(random.Random(seed), "none", "<= 0%").pairs for seed in range(20)}
    assert len(pairs) > 5 and all(10 <= each <= 120 for each in pairs)


def test_the_page_is_in_the_format_that_the_script_writes() -> None:
    text = PAGE.read_text()
    assert text.count(BEGIN) == text.count(END) == 1
    written = text[text.index(BEGIN) : text.index(END) + len(END)]
    assert shape(written) == shape(region(simulation.simulate(0.001, 1)))


def test_the_hand_written_rest_of_the_page_stays(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    simulation.write_region(page, f"{BEGIN}\nnew\n{END}")
    assert page.read_text() == f"before\n{BEGIN}\nnew\n{END}\nafter\n"


@pytest.mark.parametrize(("count", "low", "high"), [(0, 0.0, 0.0370), (5, 0.0215, 0.1118), (100, 0.9630, 1.0)])
def test_wilson_interval(count: int, low: float, high: float) -> None:
    assert wilson(count, 100) == pytest.approx((low, high), abs=1e-4)


def test_mann_whitney_equals_scipys() -> None:
    from scipy import stats

    rng = random.Random(3)
    xs, ys = [rng.gauss(0, 1) for _ in range(30)], [rng.gauss(0.5, 1) for _ in range(30)]
    expected = stats.mannwhitneyu(xs, ys, method="asymptotic").pvalue
    assert simulation.mann_whitney_p(xs, ys) == pytest.approx(expected, abs=1e-12)
