"""The do-not-retread list: what the log says is dead, where, and whether a new experiment walks into it.

Entries come from decisions of kind dead-end, and by themselves from refuted runs, scoped by what was measured. A dead end
blocks only where its scope covers the device, the versions and the operating points at hand; where a fact is missing the
answer is unknown, which warns and does not block.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perfplan import scope as scopes
from perfplan.blobs import file_blob
from perfplan.log import Log
from perfplan.models.base import Point, Scalar
from perfplan.models.dead_end import DeadEnd
from perfplan.models.decision import Decision, Evidence
from perfplan.models.record import Cell, Device, Run
from perfplan.models.spec import Spec
from perfplan.scope import Answer, Value
from perfplan.units import effects, points
from perfplan.units import point as point_words


@dataclass(frozen=True)
class Match:
    """A dead end that a new experiment comes near, how, and whether it holds there."""

    dead_end: DeadEnd
    answer: Answer
    how: str  # same kernel and knobs, same technique


def dead_ends(log: Log) -> list[DeadEnd]:
    """Every dead end of the log, reported ones first, in order of campaign, name and id."""
    runs = [entry for group in _refuted_groups(log) if (entry := _from_runs(log, group)) is not None]
    found = [*_from_decisions(log), *runs]
    return sorted(found, key=lambda entry: (entry.campaign, entry.evidence.kind == "measured", entry.name, entry.id))


def matches(
    log: Log, spec: Spec, experiment: str, device: Device | None, software: Mapping[str, str], points: Sequence[Point]
) -> list[Match]:
    """The dead ends that this experiment comes near, those that hold here first.

    The caller stops at `yes`, warns at `unknown`, and says at `no` why it goes on.
    """
    facts = known_facts(log, spec, device, software)
    found = []
    for entry in dead_ends(log):
        how = _how_near(entry, spec, experiment)
        if how:
            found.append(Match(entry, _answer(log, entry, spec, facts, points), how))
    order = {"yes": 0, "unknown": 1, "no": 2}
    return sorted(found, key=lambda match: order[match.answer.value])


def known_facts(log: Log, spec: Spec, device: Device | None, software: Mapping[str, str]) -> dict[str, Scalar]:
    """What is known of the machine, the campaign and the experiment, for scopes."""
    campaign = log.campaigns.get(spec.campaign)
    facts: dict[str, Scalar] = dict(campaign.facts) if campaign else {}
    facts.update({f"versions.{name}": version for name, version in software.items()})
    if spec.kernel is not None:
        facts["kernel"] = spec.kernel.entry
        facts.update(
            {f"knobs.{name}": value for name, value in {**spec.kernel.baseline, **spec.kernel.candidate}.items()}
        )
    if device is not None:
        facts.update({"device.kind": device.kind, "device.arch": device.arch, "device.name": device.name})
        if device.sm_count is not None:
            facts["device.sm_count"] = device.sm_count
    return facts


def describe(match: Match) -> list[str]:
    """A match in a few lines: what, whether here, why, where, the evidence, and what would reopen it."""
    entry, answer = match.dead_end, match.answer
    here = {"yes": "holds here", "unknown": "may hold here", "no": "does not hold here"}[answer.value]
    where = f" at {answer.points}" if answer.points else ""
    lines = [
        f"dead end {entry.name} ({match.how}): {here}{where}",
        f"  technique: {entry.technique}",
        f"  why: {entry.reason}",
    ]
    lines.append(f"  scope: {scopes.scope_words(entry.scope)}")
    lines += [f"  {answer.value}: {line}" for line in answer.because]
    lines.append(f"  evidence: {entry.evidence.kind}, {entry.path}")
    if entry.reopen_when:
        lines.append(f"  reopens when: {' or '.join(scopes.scope_words(each) for each in entry.reopen_when)}")
    return lines


def _from_decisions(log: Log) -> Iterable[DeadEnd]:
    histories: dict[tuple[str, str], list[Decision]] = {}
    for decision in log.decisions:
        if decision.kind == "dead-end":
            histories.setdefault((decision.campaign, decision.name), []).append(decision)
    for (campaign, name), history in histories.items():
        stated = [each for each in history if each.action in ("propose", "revise")]
        if not stated:
            continue  # it retires or reopens a run's dead end
        entry, last = stated[-1], history[-1]
        status = {"retire": "retired", "reopen": "reopened"}.get(last.action, "active")
        yield DeadEnd(
            id=entry.id, campaign=campaign, name=name, technique=entry.technique or name, aliases=tuple(entry.aliases),
            reason=entry.reason or "", scope=entry.scope, reopen_when=tuple(entry.reopen_when), evidence=entry.evidence,
            kernel=entry.kernel, knobs=entry.knobs, tried=entry.tried, date=entry.date, status=status,
            history=tuple(each.id for each in history), path=log.paths.get(entry.id, ""),
        )  # fmt: skip


def _refuted_groups(log: Log) -> list[list[Run]]:
    """Runs of the same experiment, spec and device, oldest first."""
    groups: dict[tuple[str, str, str], list[Run]] = {}
    for run in log.runs:
        if run.verdict.outcome in ("refuted", "mixed", "confirmed"):
            groups.setdefault((run.experiment, run.device.name, run.source.spec.blob), []).append(run)
    return list(groups.values())


def _from_runs(log: Log, group: Sequence[Run]) -> DeadEnd | None:
    """The dead end of the latest refuted or mixed run of a group; a later confirmed one contradicts it."""
    refuted = [run for run in group if _dead_cells(run)]
    if not refuted:
        return None
    run, later = refuted[-1], group[-1]
    status = "active" if later is run else "contradicted"
    about = [
        d
        for d in log.decisions
        if d.kind == "dead-end" and d.campaign == run.campaign and d.name == run.experiment and d.id > run.id
    ]
    if about and about[-1].action in ("retire", "reopen"):
        status = {"retire": "retired", "reopen": "reopened"}[about[-1].action]
    return DeadEnd(
        id=run.id, campaign=run.campaign, name=run.experiment, technique=run.title,
        aliases=tuple(dict.fromkeys([run.lever, *run.techniques])), reason=run.dead_end_reason or _measured_reason(run),
        scope=_measured_scope(run), reopen_when=tuple(run.reopen_when),
        evidence=Evidence(kind="measured", runs=[each.id for each in refuted]), kernel=run.entry,
        knobs={k: v for k, v in run.changed.items() if isinstance(v, (str, int, float, bool))},
        tried=None, date=run.finished, status=status,
        history=(*(each.id for each in group), *(each.id for each in about)), path=log.paths.get(run.id, ""),
    )  # fmt: skip


def _dead_cells(run: Run) -> list[Cell]:
    if run.verdict.outcome not in ("refuted", "mixed"):
        return []
    return [cell for cell in run.predicted if cell.verdict.outcome == "refuted"]


def _measured_reason(run: Run) -> str:
    """What was measured against what was predicted, over the refuted points."""
    cells = _dead_cells(run)
    how = ", ".join(dict.fromkeys(cell.verdict.subcode.replace("-", " ") or "refuted" for cell in cells))
    bands = " or ".join(dict.fromkeys(cell.band.text for cell in cells if cell.band))
    measured = effects([cell.effect for cell in cells if cell.effect])
    where = points([cell.point for cell in cells], [cell.point for cell in run.cells])
    return f"{how}: {measured} at {where}, predicted {bands}"


def _measured_scope(run: Run) -> dict[str, Any]:
    """As wide as the evidence: this device, these versions (to the minor), the points that were refuted, these facts."""
    scope: dict[str, Any] = {"device.kind": run.device.kind, "device.name": run.device.name} if run.device.kind == "cpu" else {
        "device.arch": run.device.arch, "device.name": run.device.name
    }  # fmt: skip
    for name in ("torch", "triton"):
        version = _minor(run.software.get(name, ""))
        if version:
            scope[f"versions.{name}"] = f"~={version}.0"
    driver = re.match(r"\d+", run.software.get("driver", ""))
    if driver:
        scope["versions.driver"] = f">={driver[0]},<{int(driver[0]) + 1}"
    points = [cell.point for cell in _dead_cells(run)]
    for axis in points[0]:
        values = list(dict.fromkeys(point[axis] for point in points))
        scope[axis] = values if len(values) > 1 else values[0]
    return {**scope, **run.facts}


def _minor(version: str) -> str:
    match = re.match(r"(\d+\.\d+)", version)
    return match[1] if match else ""


def _how_near(entry: DeadEnd, spec: Spec, experiment: str) -> str:
    changed = spec.changed_knobs()
    same_kernel = spec.kernel is not None and entry.kernel == spec.kernel.entry
    if same_kernel and entry.knobs and all(changed.get(name) == value for name, value in entry.knobs.items()):
        return "same kernel and knobs"
    ours = {_plain(word) for word in (spec.lever, experiment, *spec.techniques)}
    theirs = {_plain(word) for word in (entry.name, entry.technique, *entry.aliases)}
    return "same technique" if ours & theirs else ""


def _plain(word: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", word.lower()).strip("-")


def _answer(log: Log, entry: DeadEnd, spec: Spec, facts: dict[str, Scalar], points: Sequence[Point]) -> Answer:
    if entry.status != "active":
        return Answer("no", (f"it is {entry.status}",))
    other = _other_change(log, entry, spec)
    if other:
        return Answer("no", (other,))
    return _by_points(log, entry, facts, points)


def _by_points(log: Log, entry: DeadEnd, facts: dict[str, Scalar], points: Sequence[Point]) -> Answer:
    """The scope's answer at the points that no reopening condition takes out: batch 32 does not reopen batch 64."""
    opened = [_reopening(log, entry, {**facts, **point}) for point in points or [{}]]
    reasons = tuple(dict.fromkeys(f"reopened: {words}" for state, words in opened if state == "yes"))
    left = [point for point, (state, _) in zip(points, opened, strict=False) if state != "yes"]
    if reasons and not left:
        return Answer("no", reasons)
    answer = scopes.covers(entry.scope, facts, left)
    if answer.value == "no":
        return Answer("no", (*answer.because, *reasons))
    doubts = tuple(dict.fromkeys(words for state, words in opened if state == "unknown"))
    return Answer("unknown", (*answer.because, *doubts), answer.points) if doubts else answer


def _other_change(log: Log, entry: DeadEnd, spec: Spec) -> str:
    """Where a dead end is about another change under the same name, which; a lever has many implementations."""
    if entry.kernel and spec.kernel and entry.kernel != spec.kernel.entry:
        return f"it is about {entry.kernel}"
    run = log.run(entry.id)
    if run is None:
        return ""
    if spec.command is not None:
        same = run.candidate == spec.command.candidate.model_dump(exclude_defaults=True)
        return "" if same else "it was measured with another command"
    assert spec.kernel is not None
    changed, baseline = spec.changed_knobs(), spec.kernel.baseline
    if changed != run.changed:
        return f"it was measured with {point_words(run.changed)}, here {point_words(changed)}"
    before = {name: was for name, was in run.baseline.items() if name in baseline and was != baseline[name]}
    if before:
        here = {name: baseline[name] for name in before}
        return f"it was measured against {point_words(before)}, here against {point_words(here)}"
    return ""


def _reopening(log: Log, entry: DeadEnd, facts: Mapping[str, Scalar]) -> tuple[Value, str]:
    """Whether a reopening condition holds, and which; unknown where nobody wrote down what it is compared with."""
    evidence = next((run for run_id in reversed(entry.evidence.runs) if (run := log.run(run_id)) is not None), None)
    doubt = ""
    for condition in entry.reopen_when:
        states = {fact: _condition_holds(log, evidence, fact, wanted, facts) for fact, wanted in condition.items()}
        if all(state == "yes" for state in states.values()):
            return "yes", scopes.scope_words(condition)
        if "no" not in states.values():
            missing = " and ".join(fact for fact, state in states.items() if state == "unknown")
            doubt = doubt or f"nobody wrote down the {missing} of the evidence, so it may have changed"
    return ("unknown", doubt) if doubt else ("no", "")


def _condition_holds(log: Log, evidence: Run | None, fact: str, wanted: Any, facts: Mapping[str, Scalar]) -> Value:
    if wanted != "changed":
        return "yes" if fact in facts and scopes.meets(fact, wanted, facts[fact]) else "no"
    if evidence is None:
        return "unknown"
    if fact == "kernel":
        return (
            "yes" if any(_blob_now(log, each.path) not in (None, each.blob) for each in evidence.source.files) else "no"
        )
    before = _evidence_fact(evidence, fact)
    if fact not in facts:
        return "no"
    if before is None:
        return "unknown"
    return "yes" if facts[fact] != before else "no"


def _evidence_fact(run: Run, fact: str) -> Scalar | None:
    if fact.startswith("versions."):
        return run.software.get(fact.removeprefix("versions."))
    if fact.startswith("device."):
        value: Scalar | None = getattr(run.device, fact.removeprefix("device."), None)
        return value
    return run.facts.get(fact)


def _blob_now(log: Log, path: str) -> str | None:
    file = log.layout.root / path
    return file_blob(file) if file.is_file() else None
