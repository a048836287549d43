"""Asking the log: everything that it knows about some words, ranked, each with where it holds. From the files, without torch."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from perfplan import scope as scopes
from perfplan.deadends import dead_ends
from perfplan.ids import short
from perfplan.log import Log
from perfplan.models.base import Scalar
from perfplan.models.dead_end import DeadEnd
from perfplan.models.decision import Decision
from perfplan.models.record import Cell, Run
from perfplan.scope import Answer
from perfplan.units import interval, percent, points

Kind = Literal["dead-end", "run", "lever", "premise"]
_WORD = re.compile(r"[a-z0-9]+")


@dataclass(frozen=True)
class Wanted:
    """What is asked for; what is None or empty does not narrow the answer."""

    words: tuple[str, ...] = ()
    dead_ends_only: bool = False
    campaign: str | None = None
    lever: str | None = None
    verdict: str | None = None
    arch: str | None = None
    kernel: str | None = None


@dataclass(frozen=True)
class Found:
    """One answer: a run, a decision or a dead end. `here` says whether it applies to the machine at hand."""

    kind: Kind
    id: str
    campaign: str
    name: str
    title: str
    state: str  # verdict of a run, status of a dead end, action of a decision
    reason: str
    evidence: str
    path: str
    date: str
    scope: Mapping[str, object] = field(default_factory=dict)
    scope_words: str = ""
    here: Answer | None = None
    kernel: str = ""
    arch: str = ""
    rank: float = 0.0
    prose: str = ""  # searched, not shown
    names: tuple[str, ...] = ()  # searched first
    lever: str = ""


def ask(log: Log, wanted: Wanted, facts: Mapping[str, Scalar]) -> list[Found]:
    """Everything that fits, best first. With no words: everything that fits the facets, newest first."""
    candidates = list(_everything(log, facts))
    fitting = [each for each in candidates if _fits(each, wanted)]
    if not wanted.words:
        newest = sorted(fitting, key=lambda each: each.id, reverse=True)
        return sorted(newest, key=lambda each: each.kind != "dead-end")
    ranked = [(score, each) for each in fitting if (score := _score(each, wanted.words)) > 0]
    best = max((score for score, _ in ranked), default=0.0)
    complete = [(score, each) for score, each in ranked if score >= 1]
    chosen = complete or [(score, each) for score, each in ranked if score >= best]
    return [each for _, each in sorted(chosen, key=lambda pair: (-pair[0], pair[1].kind != "dead-end", pair[1].id))]


def known_about(log: Log, words: Sequence[str]) -> list[str]:
    """What the log knows of a lever or technique, a line each, dead ends first. For `perfplan new`."""
    found: dict[str, Found] = {}
    for word in words:
        for each in ask(log, Wanted(words=(word,)), {}):
            if _score(each, (word,)) >= 1:
                found[each.id] = each
    ordered = sorted(found.values(), key=lambda each: (each.kind != "dead-end", each.id))
    return [f"known: {each.kind} {each.name} [{each.state}] {each.reason}  ({each.path})" for each in ordered]


def dead_end_found(entry: DeadEnd, facts: Mapping[str, Scalar]) -> Found:
    """A dead end as an answer."""
    here = scopes.evaluate(entry.scope, facts) if entry.status == "active" else Answer("no", (f"it is {entry.status}",))
    sources = [*entry.evidence.runs, *([entry.evidence.source] if entry.evidence.source else [])]
    return Found(
        kind="dead-end", id=entry.id, campaign=entry.campaign, name=entry.name, title=entry.technique, state=entry.status,
        reason=entry.reason, evidence=f"{entry.evidence.kind}: {', '.join(sources)}" if sources else entry.evidence.kind,
        path=entry.path, date=entry.date, scope=entry.scope, scope_words=scopes.scope_words(entry.scope), here=here,
        kernel=entry.kernel or "", arch=str(entry.scope.get("device.arch", "")), prose=entry.reason,
        names=(entry.name, entry.technique, *entry.aliases, *(f"{k}={v}" for k, v in entry.knobs.items())),
    )  # fmt: skip


def _everything(log: Log, facts: Mapping[str, Scalar]) -> Iterable[Found]:
    for entry in dead_ends(log):
        yield dead_end_found(entry, facts)
    for run in log.runs:
        yield _run_found(run, log, facts)
    for decision in log.decisions:
        if decision.kind != "dead-end":
            yield _decision_found(decision, log)


def _run_found(run: Run, log: Log, facts: Mapping[str, Scalar]) -> Found:
    scope = {"device.kind": run.device.kind, "device.name": run.device.name}
    return Found(
        kind="run", id=run.id, campaign=run.campaign, name=run.experiment, title=run.title, state=run.verdict.outcome,
        reason=_effects(run) or run.verdict.summary, evidence=f"measured on {run.device.name}", path=log.paths.get(run.id, ""),
        date=run.finished, scope=scope, scope_words=f"{run.device.name}, {points([cell.point for cell in run.cells])}",
        here=scopes.evaluate(scope, facts), kernel=run.entry or "", arch=run.device.arch, lever=run.lever,
        prose=f"{run.hypothesis.claim} {run.hypothesis.because} {run.verdict.summary}",
        names=(run.experiment, run.lever, *run.techniques, run.title, *(f"{k}={v}" for k, v in run.changed.items())),
    )  # fmt: skip


def _decision_found(decision: Decision, log: Log) -> Found:
    sources = [*decision.evidence.runs, *([decision.evidence.source] if decision.evidence.source else [])]
    kind: Kind = "premise" if decision.kind == "premise" else "lever"
    return Found(
        kind=kind, id=decision.id, campaign=decision.campaign, name=decision.name, title=decision.claim or decision.name,
        state=decision.action, reason=decision.claim or decision.note or "", path=log.paths.get(decision.id, ""), date=decision.date,
        evidence=f"{decision.evidence.kind}: {', '.join(sources)}" if sources else decision.evidence.kind,
        prose=f"{decision.claim or ''} {decision.because or ''} {decision.note or ''}", names=(decision.name,),
        lever=decision.name if kind == "lever" else "",
    )  # fmt: skip


def _effects(run: Run) -> str:
    settled: list[Cell] = [cell for cell in run.predicted if cell.effect]
    if len(settled) == 1 and settled[0].effect:
        return interval(settled[0].effect)
    estimates = [cell.effect.estimate for cell in settled if cell.effect]
    return (
        f"{percent(min(estimates))} to {percent(max(estimates))} at {points([cell.point for cell in settled], [cell.point for cell in run.cells])}"
        if estimates
        else ""
    )


def _fits(found: Found, wanted: Wanted) -> bool:
    if wanted.dead_ends_only and found.kind != "dead-end":
        return False
    exact = ((wanted.campaign, found.campaign), (wanted.verdict, found.state), (wanted.arch, found.arch))
    if any(asked is not None and asked.casefold() != given.casefold() for asked, given in exact):
        return False
    if wanted.lever is not None and _plain(wanted.lever) not in {_plain(each) for each in (found.lever, *found.names)}:
        return False
    return wanted.kernel is None or wanted.kernel.casefold() in found.kernel.casefold()


def _score(found: Found, words: Sequence[str]) -> float:
    """Above 1 where every word is found: 4 for a name itself, 3 within names, 2 in prose; below 1 the share of words found."""
    query = _plain(" ".join(words))
    names = [_plain(each) for each in found.names]
    if query in names:
        return 4.0
    in_names, anywhere = (
        " ".join(names),
        " ".join([*names, _plain(found.prose), _plain(found.kernel), found.id, short(found.id)]),
    )
    parts = [_plain(word) for word in words if _plain(word)]
    if not parts:
        return 0.0
    in_names += " " + " ".join(each.replace(" ", "") for each in names)  # "allreduce" is "all-reduce"
    if all(part in in_names for part in parts):
        return 3.0
    if all(part in anywhere for part in parts):
        return 2.0
    return sum(part in anywhere for part in parts) / (len(parts) + 1)


def _plain(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))
