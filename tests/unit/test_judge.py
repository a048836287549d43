"""The verdict, cell by cell and over a run, from samples made for the purpose."""

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfplan.effects import interval_of, log_ratios
from perfplan.judge import ALPHA, judge
from perfplan.models.record import Arm, Cell, Interval, Validity
from perfplan.models.spec import Spec


def spec(
    change: object = ("-25%", "-15%"), points: tuple[int, ...] = (64, 80), guards: list[dict[str, object]] | None = None
) -> Spec:
    return Spec.model_validate(
        {
            "campaign": "c",
            "title": "t",
            "lever": "l",
            "hypothesis": {"claim": "c", "because": "b", "predicts": {"change": change, "at": {"batch": list(points)}}},
            "kernel": {"entry": "k.py:K", "candidate": {"n": 2}},
            "points": {"batch": [32, 64, 80, 96]},
            "guards": guards or [],
        }
    )


def cell(
    batch: int, effect: float, *, pairs: int = 30, noise: float = 0.005, floor: float = 0.0, seed: int = 0
) -> Cell:
    rng = random.Random(seed * 1000 + batch)
    baseline = [1e-4 * math.exp(rng.gauss(0, noise)) for _ in range(pairs)]
    candidate = [b * (1 + effect) * math.exp(rng.gauss(0, noise)) for b in baseline]
    measured = Cell(
        point={"batch": batch},
        role="observed",
        baseline=Arm(config={"n": 1}, samples=baseline),
        candidate=Arm(config={"n": 2}, samples=candidate),
        floor=Interval(estimate=floor, low=floor - 1e-3, high=floor + 1e-3, pairs=10),
    )
    return measured.model_copy(update={"effect": interval_of(log_ratios(measured))})


def outcome(*cells: Cell, **kwargs: object) -> tuple[str, str]:
    verdict = judge(spec(**kwargs), cells, "cuda").verdict  # type: ignore[arg-type]
    return verdict.outcome, verdict.subcode


@pytest.mark.parametrize(
    ("effect", "expected"),
    [
        (-0.20, ("confirmed", "")),
        (-0.10, ("refuted", "smaller-than-predicted")),
        (-0.30, ("refuted", "larger-than-predicted")),
        (+0.10, ("refuted", "wrong-sign")),
        (0.0, ("refuted", "no-effect")),
        (-0.15, ("inconclusive", "")),
    ],
)
def test_interval_against_band_gives_the_verdict(effect: float, expected: tuple[str, str]) -> None:
    assert outcome(cell(64, effect), cell(80, effect)) == expected


@pytest.mark.parametrize(
    ("change", "effect", "expected"),
    [
        ("<= -5%", -0.60, ("confirmed", "")),
        ("<= -5%", -0.02, ("refuted", "smaller-than-predicted")),
        (">= +5%", +0.02, ("refuted", "smaller-than-predicted")),
        (">= +5%", -0.02, ("refuted", "wrong-sign")),
        (">= +5%", +0.30, ("confirmed", "")),
        ("within 1%", 0.001, ("confirmed", "")),
        ("within 1%", 0.05, ("refuted", "larger-than-predicted")),
        ("<= +1%", 0.05, ("refuted", "larger-than-predicted")),
    ],
)
def test_one_sided_and_non_inferiority_bands(change: str, effect: float, expected: tuple[str, str]) -> None:
    assert outcome(cell(64, effect), cell(80, effect), change=change) == expected


def test_confirmed_here_and_refuted_there_is_mixed() -> None:
    judged = judge(spec(), [cell(64, -0.2), cell(80, 0.0)], "cuda")
    assert judged.verdict.outcome == "mixed"
    assert "confirmed at batch=64" in judged.verdict.summary
    assert "refuted at batch=80" in judged.verdict.summary


def test_a_win_that_breaks_a_guard_is_mixed() -> None:
    guards: list[dict[str, object]] = [{"change": "<= +1%", "at": {"batch": [32]}}]
    assert outcome(cell(64, -0.2), cell(80, -0.2), cell(32, 0.05), guards=guards) == ("mixed", "guard-broken")
    assert outcome(cell(64, -0.2), cell(80, -0.2), cell(32, -0.05), guards=guards) == ("confirmed", "")
    assert outcome(cell(64, 0.0), cell(80, 0.0), cell(32, 0.05), guards=guards)[0] == "refuted"


def test_one_unsettled_cell_leaves_the_run_inconclusive_and_says_what_would_settle_it() -> None:
    judged = judge(spec(), [cell(64, -0.2), cell(80, -0.155, noise=0.03, pairs=10)], "cuda")
    assert judged.verdict.outcome == "inconclusive"
    unsettled = judged.cells[1].verdict
    assert unsettled.detectable and unsettled.detectable > 0.01
    assert unsettled.pairs_needed is None or unsettled.pairs_needed > 10


def test_points_outside_prediction_and_guards_are_only_observed() -> None:
    judged = judge(spec(), [cell(64, -0.2), cell(80, -0.2), cell(96, 0.5)], "cuda")
    assert judged.verdict.outcome == "confirmed"
    assert (judged.cells[2].role, judged.cells[2].verdict.outcome, judged.cells[2].merit) == ("observed", None, "worse")


@pytest.mark.parametrize(
    ("kind", "floor", "valid"), [("cuda", 0.02, False), ("cpu", 0.02, True), ("cpu", 0.2, False), ("cuda", 1e-4, True)]
)
def test_an_effect_of_the_baseline_against_itself_voids_the_point(kind: str, floor: float, valid: bool) -> None:
    judged = judge(spec(), [cell(64, -0.2, floor=floor), cell(80, -0.2)], kind)
    assert judged.cells[0].validity.valid is valid
    assert judged.verdict.outcome == ("confirmed" if valid else "invalid")
    if not valid:
        assert judged.verdict.reason == "noisy"


def invalid(batch: int, reason: str) -> Cell:
    return Cell(point={"batch": batch}, role="observed", validity=Validity(valid=False, reason=reason, detail="why"))  # type: ignore[arg-type]


def test_an_unmeasured_cell_is_invalid_and_never_a_refutation() -> None:
    verdict = judge(spec(), [cell(64, 0.0), invalid(80, "out-of-resources")], "cuda").verdict
    assert (verdict.outcome, verdict.reason) == ("invalid", "out-of-resources")
    assert "batch=80" in verdict.summary and "why" in verdict.summary


def test_a_wrong_result_anywhere_voids_the_run_even_where_it_was_only_observed() -> None:
    verdict = judge(spec(), [cell(64, -0.2), cell(80, -0.2), invalid(96, "numerics")], "cuda").verdict
    assert (verdict.outcome, verdict.reason) == ("invalid", "numerics")


def test_arms_that_resolve_alike_everywhere_are_no_change() -> None:
    same = [
        each.model_copy(update={"candidate": each.candidate.model_copy(update={"config": {"n": 1}})})
        for each in (cell(64, 0.0), cell(80, 0.0))
    ]
    verdict = judge(spec(), same, "cuda").verdict
    assert (verdict.outcome, verdict.reason) == ("invalid", "no-op-change")
    partly = judge(spec(), [same[0], cell(80, -0.2)], "cuda")
    assert [each.verdict.outcome for each in partly.cells] == ["refuted", "confirmed"]


def test_more_is_better_turns_merit_round() -> None:
    data = spec().model_dump(exclude={"kernel"})
    arm = {"argv": ["x"]}
    data["command"] = {
        "baseline": arm,
        "candidate": arm,
        "metrics": {"rate": {"unit": "tok/s", "better": "more", "pattern": "(.)"}},
    }
    data["hypothesis"]["predicts"] = [{"metric": "rate", "change": ">= +5%", "at": {"batch": [64]}}]
    judged = judge(Spec.model_validate(data), [cell(64, 0.2)], "cpu")
    assert (judged.verdict.outcome, judged.cells[0].merit) == ("confirmed", "better")


def test_false_verdicts_over_identical_arms_stay_under_the_level() -> None:
    """A/A: of a band that promises 15 to 25 % nothing is confirmed; 'within 0.2 %' at 6 cells is not refuted more than 5 %."""
    refuted = 0
    for seed in range(150):
        cells = [cell(batch, 0.0, pairs=12, seed=seed) for batch in (64, 80)]
        assert judge(spec(), cells, "cuda").verdict.outcome == "refuted"
        refuted += judge(spec("within 0.001%"), cells, "cuda").verdict.outcome == "refuted"
    assert refuted / 150 <= ALPHA + 0.035  # three standard errors


@given(st.lists(st.floats(-0.5, 0.5), min_size=2, max_size=2), st.integers(8, 40), st.floats(0.001, 0.2))
@settings(max_examples=60, deadline=None)
def test_every_cell_gets_a_verdict_that_agrees_with_its_interval(
    effects: list[float], pairs: int, noise: float
) -> None:
    cells = [cell(batch, effect, pairs=pairs, noise=noise) for batch, effect in zip((64, 80), effects, strict=True)]
    for each in judge(spec(), cells, "cuda").cells:
        assert each.effect is not None and each.band is not None
        if each.verdict.outcome == "confirmed":
            assert each.band.contains(each.effect.low, each.effect.high)
        elif each.verdict.outcome == "refuted":
            assert each.band.disjoint(each.effect.low, each.effect.high)
            assert each.verdict.subcode
        else:
            assert each.verdict.outcome == "inconclusive"


def with_cycles(measured: Cell, effect: float, width: float = 0.001) -> Cell:
    cycles = Interval(estimate=effect, low=effect - width, high=effect + width, pairs=30)
    return measured.model_copy(update={"cycles": cycles})


@pytest.mark.parametrize(
    ("cycles", "expected"),
    [
        (-0.20, ("confirmed", "")),  # the work shrank with the time
        (-0.145, ("confirmed", "")),  # within 1 % of the band's edge
        (-0.13, ("inconclusive", "clock-explained")),
        (0.0, ("inconclusive", "clock-explained")),
        (-0.30, ("inconclusive", "clock-explained")),
    ],
)
def test_a_gain_in_time_that_is_none_in_cycles_is_explained_by_the_clock(
    cycles: float, expected: tuple[str, str]
) -> None:
    judged = judge(spec(), [with_cycles(cell(64, -0.2), cycles), with_cycles(cell(80, -0.2), -0.2)], "cuda")
    assert (judged.verdict.outcome, judged.verdict.subcode) == expected
    assert judged.cells[1].verdict.outcome == "confirmed"
    if expected[1]:
        assert "the SM clock explains it" in judged.verdict.summary and "batch=64" in judged.verdict.summary


def test_the_clock_takes_no_refutation_back() -> None:
    judged = judge(spec(), [with_cycles(cell(64, 0.0), -0.2), with_cycles(cell(80, 0.0), -0.2)], "cuda")
    assert (judged.verdict.outcome, judged.verdict.subcode) == ("refuted", "no-effect")


@pytest.mark.parametrize("width", [0.5, 0.2, 0.0])
def test_a_cycle_effect_inside_of_a_narrow_band_never_explains_it_away(width: float) -> None:
    change = f"within {width}%" if width else "within 0.3%"
    cells = [with_cycles(cell(batch, 0.0, noise=1e-4), 0.0) for batch in (64, 80)]
    assert outcome(*cells, change=change) == ("confirmed", "")


def same(measured: Cell, same_code: bool | None) -> Cell:
    return measured.model_copy(update={"same_code": same_code})


def test_arms_that_launch_the_same_code_at_every_point_are_no_change() -> None:
    judged = judge(spec(), [same(cell(64, -0.2), True), same(cell(80, -0.2), True)], "cuda")
    assert (judged.verdict.outcome, judged.verdict.reason) == ("invalid", "no-op-change")
    assert "launch the same compiled code" in judged.verdict.summary


@pytest.mark.parametrize("other", [False, None])
def test_a_policy_that_changes_nothing_at_one_point_is_measured_there(other: bool | None) -> None:
    judged = judge(spec(), [same(cell(64, 0.0), True), same(cell(80, -0.2), other)], "cuda")
    assert judged.verdict.outcome == "mixed"
    assert judged.cells[0].verdict.subcode == "no-effect"
