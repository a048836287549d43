"""The lines of the plan that are sentences: the answer that comes first, and the log that comes last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perfplan.cells import label
from perfplan.models.decision import Decision
from perfplan.models.record import Run
from perfplan.plan import words
from perfplan.plan.links import Links
from perfplan.plan.markdown import figures, sentence, text
from perfplan.plan.states import Best, Premise
from perfplan.units import interval

PAST = {
    "propose": "proposed",
    "revise": "revised",
    "adopt": "adopted",
    "refute": "refuted",
    "retire": "retired",
    "reopen": "reopened",
}


def current_premises(premises: Mapping[str, Premise], links: Links) -> list[str]:
    """A line for each premise that the campaign believes now."""
    return [
        f"**{text(each.name)}**: {sentence(each.wording.claim or '')}"
        f" ({links.evidence(each.wording.evidence)}, {links.dated(each.wording)})"
        for each in premises.values()
        if each.current
    ]


def best_lever(best: Best | None, links: Links) -> str:
    """The lever to name first, with its effect and the kind of evidence that it rests on."""
    if best is None:
        return "none yet: no open lever has a confirmed or an expected gain."
    name = f"**{text(best.lever.name)}** ({best.lever.state})"
    if best.gain is not None and (cell := best.gain.cell).effect is not None:
        run = best.gain.run
        effect = f"{words.metric(cell.metric)}{figures(interval(cell.effect))}"
        where = f" at {text(label(cell, run))}" if cell.point else ""
        kind = f"{run.evidence} and confirmed there on {words.device(run.device)} by run {links.run(run)}"
        rest = "" if best.gain.whole else f". The run as a whole is mixed: {text(run.verdict.summary)}"
        return f"{name}: {effect}{where}, {kind}{rest}."
    entry = best.lever.entry
    if entry is None or entry.expected is None:
        return name
    stated = f"{links.evidence(entry.evidence)}, {links.dated(entry)}"
    expected = f"{name}: expected {words.prediction(entry.expected)} ({stated})."
    tried = ", ".join(
        f"{words.verdict(run)} on {words.device(run.device)} ({links.run(run)})" for run in best.lever.latest
    )
    so_far = f" Measured so far: {tried}." if tried else " It has not been measured yet."
    return f"{expected}{so_far} Nothing is confirmed."


def last_run(runs: Sequence[Run], links: Links) -> str:
    """The newest run in one line."""
    if not runs:
        return "none yet."
    return _run_line(runs[-1], links)


def last_decision(decisions: Sequence[Decision], links: Links) -> str:
    """The newest decision in one line."""
    if not decisions:
        return "none yet."
    return _decision_line(decisions[-1], links)


def log_lines(runs: Sequence[Run], decisions: Sequence[Decision], links: Links) -> list[str]:
    """Runs and decisions, the newest day first.

    Within a day they are in order of what they are about, not of the clock: entries that two branches add then mostly
    land in different places, and git merges them into the same text that perfplan would write.
    """
    lines = [(run.started[:10], f"run {run.experiment}", run.id, _run_line(run, links)) for run in runs]
    lines += [(each.date[:10], f"{each.kind} {each.name}", each.id, _decision_line(each, links)) for each in decisions]
    lines.sort(key=lambda line: line[1:3])
    lines.sort(key=lambda line: line[0], reverse=True)
    return [line[3] for line in lines]


def _run_line(run: Run, links: Links) -> str:
    effect = words.measured(run.predicted)
    shown = f", {effect}" if effect != "-" else ""
    return (
        f"{run.started[:10]} {links.run(run)} run of {links.experiment(run.experiment)} on {words.device(run.device)}:"
        f" {words.verdict(run)}{shown}"
    )


def _decision_line(entry: Decision, links: Links) -> str:
    kind = entry.kind.replace("-", " ")
    said = entry.note or entry.claim or entry.technique or ""
    return f"{entry.date[:10]} {links.entry(entry.id)} {kind} **{text(entry.name)}** {PAST[entry.action]}: {text(said)}"
