"""Making an entry of the decision log: checked against the log, written, committed."""

from __future__ import annotations

import datetime
import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from perfplan import ids, scope
from perfplan.campaigns import choose_campaign
from perfplan.commits import commit_decisions, regenerate
from perfplan.deadends import dead_ends
from perfplan.decisions import decision_path, write_decision
from perfplan.errors import Location, PerfplanError
from perfplan.layout import Layout
from perfplan.locks import filing_lock
from perfplan.log import Log, load_log
from perfplan.models.decision import Decision


@dataclass(frozen=True)
class EntryRequest:
    """What was asked for. `fields` are those of the kind: claim, scope, expected ..."""

    kind: str
    action: str
    name: str
    campaign: str | None = None
    runs: Sequence[str] = ()
    evidence: str = "reported"
    source: str | None = None
    note: str | None = None
    day: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Entered:
    """An entry that is on disk. `remarks` are what the user should know now."""

    decision: Decision
    path: str
    commit: str | None
    remarks: tuple[str, ...] = ()


def enter(layout: Layout, request: EntryRequest, *, commit: bool) -> Entered:
    """Check, write and commit an entry. Raises PerfplanError for what does not fit the log; nothing is written then."""
    log = load_log(layout)
    decision = _decision(log, request)
    write_decision(layout, decision)
    path = layout.relative(decision_path(layout, decision))
    remarks = tuple(_touched(log, decision)) if request.kind == "lever" and request.action == "adopt" else ()
    if commit:
        return Entered(decision, path, commit_decisions(layout, [decision]).sha, remarks)
    with filing_lock(layout):
        regenerate(layout)
    return Entered(decision, path, None, remarks)


def _decision(log: Log, request: EntryRequest) -> Decision:
    campaign = choose_campaign(log.campaigns, request.campaign)
    fields = {
        key: value for key, value in request.fields.items() if value not in (None, [], {}, ()) and key != "replaces"
    }
    previous = _previous(log, request, campaign)
    _check_references(log, request, campaign, fields)
    when = _when(request.day)
    evidence = {
        "kind": "measured" if request.runs else request.evidence,
        "runs": _runs(log, request.runs),
        "source": request.source,
    }
    try:
        return Decision.model_validate(
            {
                "id": ids.new_id(when), "campaign": campaign, "kind": request.kind, "action": request.action, "name": request.name,
                "date": ids.timestamp(when), "evidence": evidence, "supersedes": previous.id if previous else None,
                "note": request.note, **fields,
            }
        )  # fmt: skip
    except ValidationError as error:
        raise PerfplanError("; ".join(_in_words(each) for each in error.errors())) from None


def _in_words(error: Any) -> str:
    key = ".".join(str(step) for step in error["loc"])
    if error["type"] == "string_pattern_mismatch" and key == "name":
        return f"{error['input']!r}: names have small letters, digits, '.', '_' and '-' only"
    message = str(error["ctx"]["error"]) if error["type"] == "value_error" else error["msg"]
    return f"{key}: {message}" if key else message


def _previous(log: Log, request: EntryRequest, campaign: str) -> Decision | None:
    """The entry that this one continues. A first entry must be new; any other needs one."""
    name = request.fields.get("replaces") or request.name
    same = [each for each in log.decisions if (each.kind, each.campaign) == (request.kind, campaign)]
    history = [each for each in same if each.name == name]
    if request.action == "propose":
        if history:
            raise PerfplanError(
                f"{request.kind} {request.name!r} is in the log already",
                hint=f"`perfplan {request.kind} revise {request.name}` changes it",
            )
        return None
    if history:
        return history[-1]
    if request.kind == "dead-end" and any(
        entry.name == name and entry.campaign == campaign for entry in dead_ends(log)
    ):
        return None  # that of a refuted run
    raise PerfplanError(
        f"there is no {request.kind} {name!r} in {campaign}", hint=_close(name, (each.name for each in same))
    )


def _check_references(log: Log, request: EntryRequest, campaign: str, fields: Mapping[str, Any]) -> None:
    premises = log.premises(campaign)
    for name in fields.get("rests_on", []):
        if name not in premises:
            raise PerfplanError(f"there is no premise {name!r} in {campaign}", hint=_close(name, premises))
    if request.kind == "dead-end":
        scope.check(fields.get("scope", {}), Location("--scope"))
        for condition in fields.get("reopen_when", []):
            scope.check(condition, Location("--reopen-when"), reopening=True)


def _runs(log: Log, prefixes: Iterable[str]) -> list[str]:
    known = [run.id for run in log.runs]
    return [ids.resolve(each, known) for each in prefixes]


def _when(day: str | None) -> datetime.datetime:
    """The time of the entry: now, or now's time of day on the given day, so that entries of one day keep their order."""
    now = datetime.datetime.now(datetime.UTC)
    if day is None:
        return now
    try:
        return datetime.datetime.combine(datetime.date.fromisoformat(day), now.timetz())
    except ValueError:
        raise PerfplanError(f"{day!r} is not a day", hint="write it as 2026-12-01") from None


def _touched(log: Log, adopted: Decision) -> list[str]:
    """Dead ends whose assumptions an adopted lever may have changed: those about a kernel or knobs that its runs changed."""
    runs = [run for run in log.runs if run.lever == adopted.name]
    kernels, knobs = {run.entry for run in runs}, {knob for run in runs for knob in run.changed}
    lines = []
    for entry in dead_ends(log):
        if entry.status != "active" or entry.name in {run.experiment for run in runs}:
            continue
        shared = sorted(knobs & set(entry.knobs))
        if shared or (entry.kernel and entry.kernel in kernels):
            about = f"knobs {', '.join(shared)}" if shared else f"kernel {entry.kernel}"
            lines.append(f"look again: dead end {entry.name} is about the same {about} ({entry.path})")
    return lines


def _close(name: str, known: Iterable[str]) -> str:
    names = sorted(set(known))
    close = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(names) or 'none'}"
