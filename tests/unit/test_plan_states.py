"""What decisions and runs say together."""

from __future__ import annotations

from perfplan.models.campaign import Campaign
from perfplan.plan.states import best_gain, best_lever, levers, outside, premises
from plan_log import CPU, cell, decision, entry_id, run

CAMPAIGN = Campaign.model_validate(
    {
        "id": "test",
        "title": "t",
        "target": {"model": "m", "hardware": "h", "objective": "o"},
        "operating_range": {"batch": [32, 96]},
    }
)


def test_the_last_entry_of_a_premise_decides() -> None:
    entries = [
        decision(1, 1, "premise", "propose", "a"),
        decision(2, 2, "premise", "revise", "a", claim="better put"),
        decision(3, 3, "premise", "propose", "b"),
        decision(4, 4, "premise", "refute", "b"),
    ]
    found = premises(reversed(entries))
    assert (found["a"].standing, found["a"].wording.claim) == ("revised", "better put")
    assert found["a"].current and not found["b"].current
    assert found["b"].wording.claim == "b holds"


def test_a_premise_that_another_one_supersedes_has_fallen() -> None:
    entries = [
        decision(1, 1, "premise", "propose", "old"),
        decision(2, 2, "premise", "propose", "new", supersedes=entry_id(1, 1)),
    ]
    found = premises(entries)
    assert (found["old"].standing, found["old"].superseded_by) == ("superseded", "new")
    assert found["new"].current


def test_a_revision_of_a_lever_keeps_its_state() -> None:
    entries = [
        decision(1, 1, "lever", "propose", "x"),
        decision(2, 2, "lever", "adopt", "x"),
        decision(3, 3, "lever", "revise", "x", claim="new words"),
    ]
    (lever,) = levers(entries, [], CAMPAIGN)
    assert (lever.state, lever.entry and lever.entry.claim) == ("adopted", "new words")


def test_a_lever_that_only_runs_know_is_there() -> None:
    (lever,) = levers([], [run(1, 1, lever="quiet")], CAMPAIGN)
    assert (lever.name, lever.state, lever.history) == ("quiet", "in test", ())


def test_the_best_gain_is_within_the_range_and_on_a_gpu_first() -> None:
    far = run(1, 1, experiment="far", cells=[cell(128, -0.24)])
    on_cpu = run(1, 2, experiment="cpu", device=CPU, cells=[cell(64, -0.23)])
    small = run(1, 3, experiment="small", cells=[cell(64, -0.17)])
    large = run(1, 4, experiment="large", cells=[cell(64, -0.2)])
    gain = best_gain([far, on_cpu, small, large], CAMPAIGN)
    assert gain is not None and gain.run.experiment == "large"
    outer = best_gain([far], CAMPAIGN)
    assert outer is not None and not outer.in_range


def test_a_gain_that_a_later_run_took_back_is_none() -> None:
    won, lost, crashed = (
        run(1, 1),
        run(2, 2, "refuted", cells=[cell(64, 0.0)]),
        run(3, 3, "invalid", cells=[cell(64, None)]),
    )
    assert best_gain([won, lost], CAMPAIGN) is None
    gain = best_gain([won, crashed], CAMPAIGN)
    assert gain is not None and gain.run.id == won.id


def test_the_best_lever_is_measured_before_it_is_expected() -> None:
    entries = [
        decision(1, 1, "lever", "propose", "measured", expected={"change": "[-25%, -15%]"}),
        decision(1, 2, "lever", "propose", "promised", expected={"change": "<= -60%"}),
    ]
    best = best_lever(levers(entries, [run(1, 3, lever="measured")], CAMPAIGN))
    assert best is not None and best.lever.name == "measured" and best.gain is not None
    best = best_lever(levers(entries, [], CAMPAIGN))
    assert best is not None and best.lever.name == "promised" and best.gain is None


def test_a_retired_lever_is_never_the_best() -> None:
    entries = [decision(1, 1, "lever", "propose", "x"), decision(2, 2, "lever", "retire", "x")]
    assert best_lever(levers(entries, [run(1, 3, lever="x")], CAMPAIGN)) is None


def test_outside_of_the_range() -> None:
    allowed = {"batch": [32, 96], "mode": ["graph", "eager"]}
    assert outside({"batch": 128, "mode": "graph"}, allowed) == ["batch"]
    assert outside({"batch": 32, "mode": "lazy"}, allowed) == ["mode"]
    assert outside({"other": 1}, allowed) == []
