"""What a template sees of a campaign: lists of rows whose fields are Markdown, escaped and linked already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from perfplan.deadends import dead_ends
from perfplan.layout import Layout
from perfplan.log import Log
from perfplan.models.campaign import Campaign
from perfplan.models.dead_end import DeadEnd
from perfplan.models.decision import Decision
from perfplan.models.record import Run
from perfplan.plan import answer, stale, states, tables, words
from perfplan.plan.links import Links
from perfplan.plan.markdown import text


@dataclass(frozen=True)
class View:
    """Everything that a plan says. All strings are Markdown in one line; lists are in the order of the document."""

    title: str
    about: str
    source: str  # link to the campaign's file
    target: list[str]
    premises: list[str]  # those that the campaign believes now
    best_lever: str
    last_run: str
    last_decision: str
    levers: list[tables.LeverRow]
    results: list[tables.ResultRow]
    experiments: list[tables.ExperimentRow]
    dead_ends: list[tables.DeadEndRow]
    lifted: list[str]  # dead ends that no longer block
    premise_history: list[tables.PremiseRow]
    stale: list[str]
    log: list[str]


@dataclass
class Material:
    """The part of the log that is about one campaign."""

    campaign: Campaign
    runs: list[Run]
    decisions: list[Decision]
    dead: list[DeadEnd]
    by_id: dict[str, Run] = field(init=False)

    def __post_init__(self) -> None:
        self.by_id = {run.id: run for run in self.runs}


def materials(log: Log) -> dict[str, Material]:
    """The material of every campaign, by id. Sorted by id here, so that the order of the log never shows."""
    runs = sorted(log.runs, key=lambda run: run.id)
    decisions = sorted(log.decisions, key=lambda entry: entry.id)
    dead = sorted(dead_ends(replace(log, runs=runs, decisions=decisions)), key=lambda each: (each.name, each.id))
    return {
        name: Material(
            log.campaigns[name],
            [run for run in runs if run.campaign == name],
            [entry for entry in decisions if entry.campaign == name],
            [each for each in dead if each.campaign == name],
        )
        for name in sorted(log.campaigns)
    }


def view(given: Material, layout: Layout, log: Log, charts: set[str]) -> View:
    """The view of a campaign. `charts` are the experiments that have a chart."""
    campaign, links = given.campaign, Links(log)
    premises = states.premises(given.decisions)
    levers = states.levers(given.decisions, given.runs, campaign)
    return View(
        title=text(campaign.title),
        about=text(campaign.about) if campaign.about else "",
        source=links.path(layout.relative(layout.campaign(campaign.id)), f"{campaign.id}.yaml"),
        target=_target(campaign),
        premises=answer.current_premises(premises, links),
        best_lever=answer.best_lever(states.best_lever(levers), links),
        last_run=answer.last_run(given.runs, links),
        last_decision=answer.last_decision(given.decisions, links),
        levers=[tables.lever_row(lever, premises, links) for lever in levers],
        results=tables.result_rows(given.runs, log, links),
        experiments=tables.experiment_rows(given.runs, campaign, charts, links),
        dead_ends=[tables.dead_end_row(each, links) for each in given.dead if each.status == "active"],
        lifted=[tables.lifted(each, links) for each in given.dead if each.status != "active"],
        premise_history=tables.premise_rows(premises, links),
        stale=_stale(given, levers, premises, layout, links),
        log=answer.log_lines(given.runs, given.decisions, links),
    )


def _target(campaign: Campaign) -> list[str]:
    lines = [
        f"Target: {text(campaign.target.model)} on {text(campaign.target.hardware)}",
        f"Objective: {text(campaign.target.objective)}",
    ]
    if campaign.operating_range:
        shown = (f"{text(axis)} {_range(values)}" for axis, values in campaign.operating_range.items())
        lines.append(f"Operating range: {', '.join(shown)}")
    if campaign.facts:
        lines.append(f"Facts: {text(', '.join(f'{name}={value}' for name, value in campaign.facts.items()))}")
    return lines


def _range(values: Sequence[object]) -> str:
    if len(values) == 2 and all(isinstance(each, (int, float)) for each in values):
        return text(values[0]) if values[0] == values[1] else f"{text(values[0])} to {text(values[1])}"
    return f"one of {', '.join(map(text, values))}"


def _stale(
    given: Material, levers: list[states.Lever], premises: dict[str, states.Premise], layout: Layout, links: Links
) -> list[str]:
    """Only what something rests on now: the newest run of each experiment on each device, and runs that are cited."""
    entries = [lever.entry for lever in levers if lever.entry is not None]
    cited = {run.id for run in states.latest_runs(given.runs)}
    cited |= {run_id for each in given.dead if each.status == "active" for run_id in each.evidence.runs}
    cited |= {run_id for each in premises.values() if each.current for run_id in each.wording.evidence.runs}
    cited |= {run_id for entry in entries for run_id in entry.evidence.runs}
    runs = [given.by_id[run_id] for run_id in cited if run_id in given.by_id]
    lines = [
        f"{text(found.run.experiment)} on {words.device(found.run.device)}, {links.run(found.run)}:"
        f" {text('; '.join(found.reasons))}"
        for found in stale.stale_runs(layout, given.campaign, runs, given.runs)
    ]
    lines += [
        f"{found.entry.kind} {text(found.entry.name)}, {links.dated(found.entry)} ({found.entry.evidence.kind}):"
        f" {text(found.reason)}"
        for found in stale.stale_figures(given.campaign, entries)
    ]
    return lines
