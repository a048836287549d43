"""Commit messages against real git: whatever the text of the user, git parses our trailers and loses no line."""

from __future__ import annotations

import subprocess
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from perfplan.messages import clean, decision_message, effect_text, run_message
from perfplan.models.campaign import Campaign
from perfplan.models.decision import Decision
from perfplan.models.record import Run

CAMPAIGN = Campaign.model_validate(
    {
        "id": "dsv4-decode",
        "title": "t",
        "target": {"model": "m", "hardware": "h", "objective": "o"},
        "commit": {"scope": "dsv4"},
    }
)


def a_cell(batch: int, effect: float | None, outcome: str = "confirmed") -> dict[str, Any]:
    interval = (
        None if effect is None else {"estimate": effect, "low": effect - 0.01, "high": effect + 0.01, "pairs": 10}
    )
    return {
        "point": {"batch": batch, "kv_len": 2048}, "role": "predicted", "band": {"low": -0.25, "high": -0.15},
        "baseline": {"median": 1.4e-4}, "candidate": {"median": 1.05e-4}, "effect": interval,
        "verdict": {"outcome": outcome},
    }  # fmt: skip


def a_run(**changes: Any) -> Run:
    data: dict[str, Any] = {
        "id": "20261201-142233-7f3a9c2e", "experiment": "wave", "campaign": "dsv4-decode", "title": "Fill whole waves",
        "lever": "nsplit", "started": "2026-12-01T14:22:33Z", "finished": "2026-12-01T14:23:33Z",
        "hypothesis": {"claim": "c", "because": "b", "predicts": {"change": "<= -5%"}},
        "device": {"kind": "cuda", "name": "GPU", "arch": "sm90"},
        "source": {"spec": {"path": "experiments/wave.yaml", "blob": "0" * 40}},
        "cells": [a_cell(64, -0.219), a_cell(80, -0.15)], "verdict": {"outcome": "confirmed"},
    }  # fmt: skip
    return Run.model_validate({**data, **changes})


def trailers(message: str) -> list[str]:
    done = subprocess.run(
        ["git", "interpret-trailers", "--parse"], input=message.encode(), capture_output=True, check=True
    )
    return done.stdout.decode().splitlines()


def test_the_subject_says_lever_title_verdict_effect_and_points() -> None:
    subject = run_message(a_run(title="Waves"), CAMPAIGN).splitlines()[0]
    assert subject == "perf(dsv4): #nsplit Waves - confirmed: -21.9 to -15.0% at batch=64,80"


def test_a_long_title_is_cut_at_a_word_then_dropped_and_the_verdict_stays() -> None:
    cut = run_message(
        a_run(title="Fill waves of the whole grid that nobody looked at", cells=[a_cell(64, -0.2)]), CAMPAIGN
    ).splitlines()[0]
    assert cut == "perf(dsv4): #nsplit Fill waves - confirmed: -20.0% at batch=64"
    many = a_run(
        title="word " * 30,
        lever="a-rather-long-name-of-a-lever",
        cells=[a_cell(each, -0.2) for each in range(100, 140)],
    )
    assert (
        run_message(many, CAMPAIGN).splitlines()[0] == "perf(dsv4): #a-rather-long-name-of-a-lever - confirmed: -20.0%"
    )


def test_an_invalid_run_gives_its_reason() -> None:
    run = a_run(cells=[a_cell(64, None, "invalid")], verdict={"outcome": "invalid", "reason": "numerics"})
    message = run_message(run, CAMPAIGN)
    assert effect_text(run) == "" and "invalid (numerics)" in message.splitlines()[0]
    assert "Perfplan-Effect: not measured" in trailers(message)


def test_a_revised_premise_reads_as_such() -> None:
    decision = Decision(
        id="20261201-142233-7f3a9c2e", campaign="dsv4-decode", kind="premise", action="revise", name="slope",
        date="2026-12-01T14:22:33Z", claim="attention is the slope, MoE a fixed floor",
    )  # fmt: skip
    message = decision_message(decision, CAMPAIGN)
    assert message.splitlines()[0] == "docs(dsv4): revise premise slope: attention is the slope, MoE a fixed"
    assert [line.split(":")[0] for line in trailers(message)] == [
        f"Perfplan-{key}" for key in ("Campaign", "Decision", "Kind", "Name", "Action")
    ]


NASTY = st.lists(
    st.sampled_from(
        [
            "\n",
            "# x",
            "---",
            "\n---\n",
            "Signed-off-by: me",
            "Perfplan-Run: forged",
            "\x00",
            "\r",
            "\u2028",
            "🙂",
            "w" * 10_000,
            "a b",
            "\n\n",
            " ",
        ]
    )
    | st.text(max_size=40),
    max_size=8,
).map("".join)


@settings(max_examples=40, deadline=None)
@given(NASTY, NASTY, NASTY)
def test_no_text_of_the_user_breaks_the_trailers_or_starts_a_comment(one: str, two: str, three: str) -> None:
    run = a_run(title="t").model_copy(update={"title": one, "lever": three or "x"})
    hypothesis = run.hypothesis.model_copy(update={"claim": two, "because": three})
    verdict = run.verdict.model_copy(update={"summary": one})
    message = run_message(run.model_copy(update={"hypothesis": hypothesis, "verdict": verdict}), CAMPAIGN)
    parsed = trailers(message)
    assert [line.split(":")[0] for line in parsed] == [
        f"Perfplan-{key}" for key in ("Campaign", "Experiment", "Run", "Verdict", "Lever", "Effect")
    ]
    assert parsed[2] == f"Perfplan-Run: {run.id}"
    assert not [line for line in message.splitlines() if line.startswith(("#", "---"))]
    assert all(len(line) <= 72 for line in message.split("\n")[1:] if not line.startswith("Perfplan-"))


def test_invisible_characters_go_and_emoji_stay() -> None:
    assert clean("a\x00b\u202ec\nd  👩\u200d🚀") == "a b c d 👩\u200d🚀"
