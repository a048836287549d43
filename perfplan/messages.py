"""Text of commit messages: a subject of 72 columns where it can be, plain words, trailers that git parses.

Text of the user never stands at the start of a line: it follows a label or an indent. So no line of it is a comment
(`#`), a divider (`---`) or a trailer, whatever it holds.
"""

from __future__ import annotations

import json
import textwrap
import unicodedata
from collections.abc import Iterable

from perfplan.cells import label, shared_axes, verdict_words
from perfplan.models.campaign import Campaign
from perfplan.models.decision import Decision
from perfplan.models.record import Cell, Run
from perfplan.units import interval, percent, points, reading

WIDTH = 72
SHORTEST_TITLE = 12  # columns; less of a title says nothing
MOST_CELLS = 40
MOST_TEXT = 2000  # characters of one text in the body; the record has the rest
MOST_TRAILER = 200
_JOINERS = "\u200c\u200d"  # within emoji and some scripts; every other invisible character goes


def run_message(run: Run, campaign: Campaign) -> str:
    """The message of a run's commit."""
    return _message(_run_subject(run, campaign), _run_body(run), _run_trailers(run))


def decision_message(decision: Decision, campaign: Campaign) -> str:
    """The message of a decision's commit."""
    trailers = {
        "Campaign": decision.campaign,
        "Decision": decision.id,
        "Kind": decision.kind,
        "Name": decision.name,
        "Action": decision.action,
    }
    return _message(_decision_subject(decision, campaign), _decision_body(decision), trailers)


def effect_text(run: Run) -> str:
    """The effects at the predicted points: one, or the range from the least to the greatest: `-21.9 to -15.0%`."""
    effects = sorted(cell.effect.estimate for cell in run.predicted if cell.effect is not None)
    if not effects:
        return ""
    low, high = percent(effects[0]), percent(effects[-1])
    text = low if low == high else f"{low.rstrip('%')} to {high}"
    metrics = {cell.metric for cell in run.predicted} - {"time"}
    return f"{text} {clean(min(metrics))}" if len(metrics) == 1 else text


def clean(text: str, limit: int = MOST_TEXT) -> str:
    """Text on one line: control and other invisible characters and line breaks become one space."""
    visible = "".join(" " if unicodedata.category(c)[0] in "CZ" and c not in _JOINERS else c for c in text)
    line = " ".join(visible.split())
    return line if len(line) <= limit else line[:limit].rstrip() + " [shortened]"


def _run_subject(run: Run, campaign: Campaign) -> str:
    head = f"{campaign.commit.type}({campaign.commit.scope or campaign.id}): #{clean(run.lever)}"
    effect, where = (
        effect_text(run),
        clean(points([cell.point for cell in run.predicted], [cell.point for cell in run.cells])),
    )
    verdict = run.verdict.outcome + (f" ({run.verdict.reason})" if run.verdict.reason else "")
    short = f" - {verdict}" + (f": {effect}" if effect else "")
    full = short + (f" at {where}" if where else "")
    room = WIDTH - len(head) - len(full) - 1
    title = clean(run.title)
    if len(title) > room:
        title = _cut(title, room) if room >= SHORTEST_TITLE else ""
    if title:
        return f"{head} {title}{full}"
    return head + (full if len(head) + len(full) <= WIDTH else short)


def _cut(text: str, room: int) -> str:
    """As many whole words of `text` as fit; '' if none does. A last word that leads on to nothing goes as well."""
    words, kept = text.split(), ""
    while words and len(kept) + len(words[0]) + bool(kept) <= room:
        kept = f"{kept} {words.pop(0)}".strip()
    loose = {"a", "an", "and", "at", "by", "for", "from", "in", "of", "on", "or", "so", "that", "the", "to", "with"}
    while words and kept and kept.rsplit(" ", 1)[-1].lower() in loose:
        kept = kept.rsplit(" ", 1)[0] if " " in kept else ""
    return kept


def _run_body(run: Run) -> list[list[str]]:
    hypothesis = [_labelled("Claim", run.hypothesis.claim), _labelled("Because", run.hypothesis.because)]
    shown = [_cell(cell, run) for cell in run.cells[:MOST_CELLS]]
    if len(run.cells) > MOST_CELLS:
        shown.append(f"- and {len(run.cells) - MOST_CELLS} more points, in the record")
    notes = [_labelled("Measured on", f"{run.device.name} ({run.device.arch})")]
    if len(run.cells) > 1 and shared_axes(run):
        notes.append(_labelled("All at", shared_axes(run)))
    if run.verdict.summary:
        notes.append(_labelled("Verdict", run.verdict.summary))
    if run.verdict.reason:
        notes.append(_labelled("Invalid", run.verdict.reason))
    if run.source.dirty:
        dirty = [each.path for each in run.source.files if each.dirty]
        notes.append(_labelled("Measured with uncommitted changes in", ", ".join(dirty) or "the sources"))
    if run.source.unknown:
        notes.append(_labelled("Not in the history", ", ".join(run.source.unknown)))
    if run.retread is not None:
        entries = ", ".join(run.retread.entries)
        notes.append(_labelled("Known dead end, run all the same", f"{run.retread.why} ({entries})"))
    return [hypothesis, shown, notes]


def _cell(cell: Cell, run: Run) -> str:
    parts = []
    if cell.baseline.median is not None and cell.candidate.median is not None:
        parts.append(f"{reading(cell.metric, cell.baseline.median)} -> {reading(cell.metric, cell.candidate.median)}")
    if cell.effect is not None:
        parts.append(interval(cell.effect))
    if cell.band is not None:
        parts.append(f"{'allowed' if cell.role == 'guard' else 'predicted'} {cell.band.text}")
    outcome = verdict_words(cell)
    if not cell.validity.valid:
        outcome += f" {cell.validity.detail}"
    return _wrapped(f"- {clean(label(cell, run)) or 'all'}: {', '.join([*parts, clean(outcome, 300)])}")


def _run_trailers(run: Run) -> dict[str, str]:
    effect, where = effect_text(run), points([cell.point for cell in run.predicted], [cell.point for cell in run.cells])
    return {
        "Campaign": run.campaign,
        "Experiment": run.experiment,
        "Run": run.id,
        "Verdict": run.verdict.outcome + (f" ({run.verdict.reason})" if run.verdict.reason else ""),
        "Lever": run.lever,
        "Effect": f"{effect} at {where}" if effect and where else effect or "not measured",
    }


def _decision_subject(decision: Decision, campaign: Campaign) -> str:
    scope = campaign.commit.scope or campaign.id
    what = decision.kind.replace("-", " ")
    action = "add" if (decision.kind, decision.action) == ("dead-end", "propose") else decision.action
    head = f"docs({scope}): {action} {what} {decision.name}"
    gist = decision.claim or decision.reason or decision.note or ""
    cut = _cut(clean(gist), WIDTH - len(head) - 2)
    return f"{head}: {cut}" if len(cut) >= SHORTEST_TITLE or cut == clean(gist) != "" else head


def _decision_body(decision: Decision) -> list[list[str]]:
    expected = decision.expected
    conditions = [json.dumps(each, ensure_ascii=False, default=str) for each in decision.reopen_when]
    evidence = [decision.evidence.kind, *decision.evidence.runs, decision.evidence.source or ""]
    texts = {
        "Claim": decision.claim,
        "Because": decision.because,
        "Expected": f"{expected.metric} {expected.change.text}" if expected else None,
        "Risk": decision.risk,
        "Rests on": ", ".join(decision.rests_on),
        "Technique": decision.technique,
        "Reason": decision.reason,
        "Scope": json.dumps(decision.scope, ensure_ascii=False, default=str) if decision.scope else None,
        "Reopens when": " or ".join(conditions),
        "Note": decision.note,
        "Evidence": ", ".join(filter(None, evidence)),
        "Supersedes": decision.supersedes,
    }
    return [[_labelled(label, text) for label, text in texts.items() if text]]


def _labelled(label: str, text: str) -> str:
    return _wrapped(f"{label}: {clean(text)}")


def _wrapped(text: str) -> str:
    return textwrap.fill(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False)


def _message(subject: str, paragraphs: Iterable[Iterable[str]], trailers: dict[str, str]) -> str:
    body = ["\n".join(lines) for lines in paragraphs]
    last = "\n".join(f"Perfplan-{key}: {clean(value, MOST_TRAILER) or 'none'}" for key, value in trailers.items())
    return "\n\n".join([subject, *filter(None, body), last]) + "\n"
