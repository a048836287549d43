"""The do-not-retread list from decisions and refuted runs, and when it stops a new experiment."""

from __future__ import annotations

from pathlib import Path

import pytest

import plan_log
from perfplan.deadends import Match, dead_ends, describe, matches
from perfplan.layout import Layout
from perfplan.log import Log, load_log
from perfplan.models.dead_end import DeadEnd
from perfplan.models.decision import Decision
from perfplan.models.record import Device, Run
from perfplan.models.spec import Spec
from perfplan.spec import read_spec

SOFTWARE = {"torch": "2.11.0+cu130", "triton": "3.6.0", "driver": "580.159.03"}
MEASURED = {
    "software": SOFTWARE, "entry": "kernels/k.py:K", "changed": {"nsplit": 4}, "facts": {"interconnect": "pcie"},
}  # fmt: skip
POINTS = [{"batch": batch, "kv_len": 2048} for batch in (32, 64, 80)]


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return plan_log.make_repository(tmp_path)


def log_of(layout: Layout, *entries: Run | Decision) -> Log:
    plan_log.file_all(layout, list(entries))
    return load_log(layout)


def only(log: Log) -> DeadEnd:
    (entry,) = dead_ends(log)
    return entry


def refuted(day: int = 1, tail: int = 1, **fields: object) -> Run:
    cells = [plan_log.cell(batch, 0.0) for batch in (64, 80)] + [plan_log.cell(32, 0.0, "<= +1%", role="guard")]
    return plan_log.run(day, tail, "refuted", cells=cells, **{**MEASURED, **fields})


def ask(
    log: Log, layout: Layout, device: Device = plan_log.H200, software: dict[str, str] | None = None, **changes: object
) -> list[Match]:
    spec_file = read_spec(layout.experiments / "waves.yaml", layout)
    spec = Spec.model_validate({**spec_file.spec.model_dump(), **changes})
    return matches(log, spec, "waves", device, software or SOFTWARE, POINTS)


def test_a_refuted_run_enters_by_itself_scoped_by_what_it_measured(layout: Layout) -> None:
    entry = only(log_of(layout, refuted()))
    assert (entry.name, entry.status, entry.evidence.kind) == ("waves", "active", "measured")
    assert entry.scope["device.name"] == "NVIDIA H200" and entry.scope["versions.triton"] == "~=3.6.0"
    assert entry.scope["versions.driver"] == ">=580,<581"
    assert entry.scope["batch"] == [64, 80] and entry.scope["interconnect"] == "pcie"
    assert "0.0%" in entry.reason and "batch=64,80" in entry.reason


@pytest.mark.parametrize("outcome", ["confirmed", "inconclusive", "invalid"])
def test_what_was_not_refuted_is_not_dead(layout: Layout, outcome: str) -> None:
    assert dead_ends(log_of(layout, plan_log.run(1, 1, outcome))) == []


def test_the_same_run_again_is_stopped_with_the_points_that_are_dead(layout: Layout) -> None:
    (match,) = ask(log_of(layout, refuted()), layout)
    assert (match.answer.value, match.how) == ("yes", "same kernel and knobs")
    assert match.answer.points == "batch=64,80"
    text = "\n".join(describe(match))
    assert "holds here" in text and "evidence: measured" in text


OTHER_CARD = Device(kind="cuda", name="NVIDIA A100", arch="sm80", sm_count=108)


@pytest.mark.parametrize(
    ("device", "software", "value", "says"),
    [
        (OTHER_CARD, SOFTWARE, "no", "here NVIDIA A100"),
        (plan_log.H200, {**SOFTWARE, "triton": "3.7.1"}, "no", "here 3.7.1"),
        (plan_log.H200, {**SOFTWARE, "driver": "595.12"}, "no", "here 595.12"),
        (plan_log.H200, {"torch": "2.11.0", "triton": "3.6.0"}, "unknown", "driver"),
    ],
)
def test_elsewhere_it_does_not_block_and_the_dimension_is_named(
    layout: Layout, device: Device, software: dict[str, str], value: str, says: str
) -> None:
    (match,) = ask(log_of(layout, refuted()), layout, device, software)
    assert match.answer.value == value
    assert any(says in line for line in match.answer.because)


def test_other_knobs_of_the_same_kernel_are_another_experiment(layout: Layout) -> None:
    kernel = {"entry": "kernels/k.py:K", "baseline": {"nsplit": 2}, "candidate": {"nsplit": 8}}
    (match,) = ask(log_of(layout, refuted()), layout, kernel=kernel)
    assert match.answer.value == "no"
    assert match.answer.because == ("it was measured with nsplit=4, here nsplit=8",)


def test_it_reopens_when_a_stated_condition_holds(layout: Layout) -> None:
    log = log_of(layout, refuted(reopen_when=[{"kernel": "changed"}, {"device.sm_count": "changed"}]))
    assert ask(log, layout)[0].answer.value == "yes"
    smaller = plan_log.H200.model_copy(update={"sm_count": 120})
    (match,) = ask(log, layout, smaller)
    assert match.answer.value == "no" and "reopened: sm_count changed" in match.answer.because
    (layout.root / "kernels/k.py").write_text("def kernel(): 'faster'\n")
    (match,) = ask(log, layout)
    assert match.answer.value == "no" and "reopened: kernel changed" in match.answer.because


def test_a_later_confirmed_run_contradicts_it(layout: Layout) -> None:
    log = log_of(layout, refuted(1, 1), plan_log.run(2, 2, "confirmed", **MEASURED))
    assert only(log).status == "contradicted"
    assert ask(log, layout)[0].answer.value == "no"


@pytest.mark.parametrize(("action", "status"), [("retire", "retired"), ("reopen", "reopened")])
def test_a_decision_lifts_it(layout: Layout, action: str, status: str) -> None:
    log = log_of(layout, refuted(1, 1), plan_log.decision(2, 2, "dead-end", action, "waves"))
    assert only(log).status == status
    assert ask(log, layout)[0].answer.value == "no"


def test_a_reported_entry_matches_by_technique_alias_or_lever(layout: Layout) -> None:
    entry = plan_log.decision(
        1,
        1,
        "dead-end",
        "propose",
        "wave-splits",
        technique="Wave-aware NSPLIT",
        aliases=["nsplit"],
        scope={"device.arch": "sm90"},
    )
    log = log_of(layout, entry)
    (match,) = ask(log, layout)
    assert (match.how, match.answer.value) == ("same technique", "yes")
    assert ask(log, layout, lever="other") == []
    assert ask(log, layout, lever="other", techniques=["wave-aware-nsplit"])[0].answer.value == "yes"


def test_a_revision_takes_the_place_of_the_entry_and_keeps_its_history(layout: Layout) -> None:
    first = plan_log.decision(1, 1, "dead-end", "propose", "tree", scope={"interconnect": "pcie"})
    second = plan_log.decision(2, 2, "dead-end", "revise", "tree", scope={"interconnect": "nvlink"})
    entry = only(log_of(layout, first, second))
    assert entry.scope == {"interconnect": "nvlink"} and len(entry.history) == 2


def test_a_mixed_run_is_dead_only_where_it_was_refuted(layout: Layout) -> None:
    cells = [plan_log.cell(64, -0.2), plan_log.cell(80, 0.0)]
    entry = only(log_of(layout, plan_log.run(1, 1, "mixed", cells=cells, **MEASURED)))
    assert entry.scope["batch"] == 80


def reported(**fields: object) -> Decision:
    return plan_log.decision(1, 1, "dead-end", "propose", "tried", technique="Tried", aliases=["nsplit"], **fields)


def test_a_point_outside_does_not_reopen_the_points_inside(layout: Layout) -> None:
    scope = {"device.arch": "sm90", "batch": ">=60"}
    (match,) = ask(log_of(layout, reported(scope=scope, reopen_when=[{"batch": "<60"}])), layout)
    assert (match.answer.value, match.answer.points) == ("yes", "batch=64,80")


@pytest.mark.parametrize("fact", ["versions.torch", "kernel"])
def test_reopening_on_a_change_of_what_nobody_wrote_down_is_unknown_and_does_not_block(
    layout: Layout, fact: str
) -> None:
    log = log_of(layout, reported(scope={"device.arch": "sm90"}, reopen_when=[{fact: "changed"}]))
    (match,) = ask(log, layout)
    assert match.answer.value == "unknown"
    assert any(fact in line for line in match.answer.because)


def test_a_run_on_a_nightly_build_stops_its_own_repetition(layout: Layout) -> None:
    software = {**SOFTWARE, "torch": "2.13.0.dev20260101+cu130"}
    (match,) = ask(log_of(layout, refuted(software=software)), layout, software=software)
    assert match.answer.value == "yes"


@pytest.mark.parametrize(
    ("kernel", "says"),
    [
        ({"candidate": {"nsplit": 4, "w": 8}}, "it was measured with nsplit=4, here nsplit=4, w=8"),
        ({"baseline": {"nsplit": 1}}, "it was measured against nsplit=2, here against nsplit=1"),
        ({"entry": "kernels/other.py:K"}, "it is about kernels/k.py:K"),
    ],
)
def test_another_change_under_the_same_lever_goes_on_and_is_named(
    layout: Layout, kernel: dict[str, object], says: str
) -> None:
    log = log_of(layout, refuted(baseline={"nsplit": 2}))
    whole = {"entry": "kernels/k.py:K", "baseline": {"nsplit": 2}, "candidate": {"nsplit": 4}}
    (match,) = ask(log, layout, kernel={**whole, **kernel})
    assert (match.answer.value, match.answer.because) == ("no", (says,))
