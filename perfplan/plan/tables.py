"""The rows of the plan's tables. All strings are escaped Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from perfplan.cells import label, shared_axes
from perfplan.log import Log
from perfplan.models.campaign import Campaign
from perfplan.models.dead_end import DeadEnd
from perfplan.models.record import Cell, Run
from perfplan.plan import words
from perfplan.plan.answer import PAST
from perfplan.plan.links import Links
from perfplan.plan.markdown import figures, html_text, link, sentence, struck, text
from perfplan.plan.states import Lever, Premise
from perfplan.units import interval, reading


@dataclass(frozen=True)
class LeverRow:
    """A lever: what was decided, what is expected, what was measured, and on what it rests."""

    name: str
    state: str
    expected: str
    best: str
    verdicts: str
    claim: str
    because: str
    risk: str
    rests_on: str
    evidence: str


def lever_row(lever: Lever, premises: Mapping[str, Premise], links: Links) -> LeverRow:
    """One lever. Its best effect and its verdicts name the runs."""
    name, entry = text(lever.name), lever.entry
    state = links.entry(lever.history[-1].id, lever.state) if lever.history else lever.state
    if entry is not None:
        claim, because, evidence = entry.claim, entry.because, f"{links.evidence(entry.evidence)}, {links.dated(entry)}"
    elif not lever.latest:  # a decision that retires what no readable entry proposes
        claim, because, evidence = None, None, ""
    else:  # only runs know it: what the newest one set out to show
        run = max(lever.latest, key=lambda each: each.id)
        claim, because, evidence = run.hypothesis.claim, run.hypothesis.because, f"hypothesis of {links.run(run)}"
    return LeverRow(
        name=name if lever.open else struck(name),
        state=state,
        expected=words.prediction(entry.expected) if entry and entry.expected else "-",
        best=_best(lever, links),
        verdicts="<br>".join(_latest(run, links) for run in lever.latest) or "-",
        claim=sentence(claim) if claim else "",
        because=sentence(because) if because else "",
        risk=sentence(entry.risk) if entry and entry.risk else "",
        rests_on=", ".join(_rests_on(name, premises) for name in lever.rests_on),
        evidence=evidence,
    )


def _best(lever: Lever, links: Links) -> str:
    gain = lever.best
    if gain is None or gain.cell.effect is None:
        return "-"
    where = f" at {text(label(gain.cell, gain.run))}" if gain.cell.point else ""
    beyond = "" if gain.in_range else ", outside of the operating range"
    beyond += "" if gain.whole else ", in a mixed run"
    return (
        f"{words.metric(gain.cell.metric)}{figures(interval(gain.cell.effect))}{where}, {links.run(gain.run)}{beyond}"
    )


def _latest(run: Run, links: Links) -> str:
    return f"{words.verdict(run)} on {words.device(run.device)}, {links.run(run)}"


def _rests_on(name: str, premises: Mapping[str, Premise]) -> str:
    """A premise by name, marked when it has fallen."""
    premise = premises.get(name)
    if premise is None:
        return f"{text(name)} (not in the log)"
    if premise.current:
        return text(name)
    by = f" by {text(premise.superseded_by)}" if premise.standing == "superseded" else ""
    return f"**fallen: premise {struck(text(name))} {premise.standing}{by}**"


@dataclass(frozen=True)
class ResultRow:
    """A run."""

    experiment: str
    predicted: str
    measured: str
    verdict: str
    device: str
    commit: str
    run: str
    marks: str


def result_rows(runs: Sequence[Run], log: Log, links: Links) -> list[ResultRow]:
    """Every run, by experiment, device and time: what two branches add mostly lands in different places."""
    ordered = sorted(runs, key=lambda run: (run.experiment, run.device.name, run.id))
    return [_result_row(run, log, links) for run in ordered]


def _result_row(run: Run, log: Log, links: Links) -> ResultRow:
    predictions = run.hypothesis.predicts
    bands = dict.fromkeys(f"{words.metric(each.metric)}{figures(each.change.text)}" for each in predictions)
    return ResultRow(
        experiment=links.experiment(run.experiment),
        predicted="; ".join(bands),
        measured=words.measured(run.predicted),
        verdict=words.verdict(run),
        device=words.device(run.device),
        commit=f"`{run.source.commit[:10]}`" if run.source.commit else "unknown",
        run=links.run(run),
        marks="; ".join(_marks(run, log, links)) or "-",
    )


def _marks(run: Run, log: Log, links: Links) -> Iterable[str]:
    if run.evidence != "measured":
        yield run.evidence
    if run.source.dirty:
        yield "dirty source"
    if run.source.unknown:
        yield f"unknown source: {', '.join(text(path) for path in sorted(run.source.unknown))}"
    if run.retread is not None:
        known = ", ".join(links.entry(each) for each in run.retread.entries)
        yield f"retread of {known}: {text(run.retread.why)}" if known else f"retread: {text(run.retread.why)}"
    spec = log.specs.get(run.experiment)
    if spec is None:
        yield "spec gone or broken"
    elif spec.blob != run.source.spec.blob:
        yield "spec edited since"


@dataclass(frozen=True)
class CellRow:
    """One operating point of a run."""

    point: str
    baseline: str
    candidate: str
    effect: str
    predicted: str
    verdict: str


@dataclass(frozen=True)
class CellsOfRun:
    """A run, cell by cell."""

    summary: str  # HTML, not Markdown: it stands in a <summary>
    link: str
    claim: str
    cells: list[CellRow]
    shared: str  # the axes on which all cells agree


@dataclass(frozen=True)
class ExperimentRow:
    """An experiment whose runs are worth showing cell by cell, with its chart."""

    name: str
    chart: str
    runs: list[CellsOfRun]


def experiment_rows(runs: Sequence[Run], campaign: Campaign, charts: set[str], links: Links) -> list[ExperimentRow]:
    """Experiments with runs of several points, in order of name."""
    shown = sorted(
        (run for run in runs if len(run.cells) > 1), key=lambda run: (run.experiment, run.device.name, run.id)
    )
    return [
        ExperimentRow(
            name=links.experiment(name),
            chart=f"!{link(f'{name}: ratio over the operating points', f'{campaign.id}/{name}.svg')}"
            if name in charts
            else "",
            runs=[_cells_of_run(run, links) for run in group],
        )
        for name, group in ((name, list(group)) for name, group in groupby(shown, key=lambda run: run.experiment))
    ]


def _cells_of_run(run: Run, links: Links) -> CellsOfRun:
    return CellsOfRun(
        summary=html_text(f"{words.device_name(run.device)}, {run.started[:10]}: {words.verdict(run)}"),
        link=links.run(run),
        claim=sentence(run.hypothesis.claim),
        cells=[_cell_row(cell, run) for cell in run.cells],
        shared=text(shared_axes(run)),
    )


def _cell_row(cell: Cell, run: Run) -> CellRow:
    guard = " (guard)" if cell.role == "guard" else ""
    return CellRow(
        point=text(label(cell, run)) or "-",
        baseline=figures(reading(cell.metric, cell.baseline.median)),
        candidate=figures(reading(cell.metric, cell.candidate.median)),
        effect=f"{words.metric(cell.metric)}{figures(interval(cell.effect))}" if cell.effect else "-",
        predicted=f"{figures(cell.band.text)}{guard}" if cell.band else "-",
        verdict=words.cell_verdict(cell),
    )


@dataclass(frozen=True)
class DeadEndRow:
    """An entry of the do-not-retread list."""

    technique: str
    why: str
    scope: str
    evidence: str
    reopens: str


def dead_end_row(entry: DeadEnd, links: Links) -> DeadEndRow:
    """A dead end in force."""
    tried = f" Implementations tried: {entry.tried}." if entry.tried is not None else ""
    return DeadEndRow(
        technique=f"{text(entry.technique)} ({links.path(entry.path, entry.id.rsplit('-', 1)[-1])})",
        why=f"{sentence(entry.reason)}{tried}",
        scope=words.condition(entry.scope),
        evidence=links.evidence(entry.evidence),
        reopens=words.conditions(entry.reopen_when),
    )


def lifted(entry: DeadEnd, links: Links) -> str:
    """A dead end that no longer blocks, in one line."""
    last = entry.history[-1] if entry.history else entry.id
    return f"{struck(text(entry.technique))} {entry.status}, {links.entry(last)}: {text(entry.reason)}"


@dataclass(frozen=True)
class PremiseRow:
    """One entry in the history of a premise."""

    name: str
    date: str
    action: str
    claim: str
    evidence: str


def premise_rows(premises: Mapping[str, Premise], links: Links) -> list[PremiseRow]:
    """Every entry about every premise, by name and time; a premise that has fallen is struck through."""
    rows = []
    for premise in premises.values():
        name = text(premise.name) if premise.current else struck(text(premise.name))
        for entry in premise.history:
            because = f"Because: {entry.because}" if entry.because else None
            said = " ".join(sentence(each) for each in (entry.claim, because, entry.note) if each)
            action = PAST[entry.action] if entry.action == "propose" else f"**{PAST[entry.action]}**"
            if premise.standing == "superseded" and entry is premise.history[-1]:
                action += f", **superseded by {text(premise.superseded_by)}**"
            rows.append(PremiseRow(name, links.dated(entry), action, said, links.evidence(entry.evidence)))
    return rows
