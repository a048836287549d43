"""One entry of the log in full, as lines of text."""

from __future__ import annotations

from perfplan.cells import cell_rows, label, shared_axes
from perfplan.log import Log
from perfplan.models.dead_end import DeadEnd
from perfplan.models.decision import Decision, Evidence
from perfplan.models.record import Run
from perfplan.scope import scope_words
from perfplan.units import point, size


def as_lines(entry: Run | Decision | DeadEnd, log: Log) -> list[str]:
    """The entry for a reader."""
    if isinstance(entry, Run):
        return _run(entry, log)
    return _dead_end(entry) if isinstance(entry, DeadEnd) else _decision(entry, log)


def _run(run: Run, log: Log) -> list[str]:
    how = run.verdict.subcode or run.verdict.reason
    lines = [
        f"run {run.id}  {run.experiment}: {run.title}",
        f"verdict   {run.verdict.outcome}{f' ({how})' if how else ''}: {run.verdict.summary}",
        f"claim     {run.hypothesis.claim}",
        f"because   {run.hypothesis.because}",
        f"campaign  {run.campaign}, lever {run.lever}",
    ]
    lines += (
        [f"kernel    {run.entry}", f"baseline  {point(run.baseline)}", f"candidate {point(run.candidate)}"]
        if run.entry
        else []
    )
    lines += [f"all at    {shared_axes(run)}"] if shared_axes(run) else []
    lines += ["", *_table(run), ""]
    for cell in run.cells:
        lines += [f"{label(cell, run)}: {note}" for note in cell.notes]
        if not cell.validity.valid:
            lines.append(f"{label(cell, run)}: {cell.validity.reason}: {cell.validity.detail}")
    return [*lines, *_circumstances(run), f"record    {log.paths.get(run.id, '')}"]


def _table(run: Run) -> list[str]:
    rows = [("point", "baseline", "candidate", "effect", "predicted", "verdict"), *cell_rows(run)]
    widths = [max(len(row[column]) for row in rows) for column in range(6)]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _circumstances(run: Run) -> list[str]:
    lines = []
    first = next((cell for cell in run.cells if cell.effect), None)
    if first is not None:
        cache = first.cache
        lines.append(
            f"timing    {first.timer}, {run.design}, cache {cache.mode} ({cache.sets} sets, {size(cache.bytes_touched)} touched"
            + (f", last level {size(cache.llc_bytes)})" if cache.llc_bytes else ")")
        )
        errors = [arm.error for cell in run.cells for arm in (cell.baseline, cell.candidate) if arm.error is not None]
        if errors:
            lines.append(f"numerics  worst {run.norm} error {max(errors):.3g}, allowed {run.max_rel_error:g}")
    lines.append(
        f"device    {run.device.name} ({run.device.arch})"
        + (f", {run.device.sm_count} SMs" if run.device.sm_count else "")
    )
    lines.append("software  " + ", ".join(f"{name} {version}" for name, version in run.software.items()))
    source = run.source
    state = " (dirty)" if source.dirty else ""
    commit = f"commit {source.commit}{state}" if source.commit else "in no commit"
    lines.append(f"sources   {commit}" + (", detached run" if source.detached else ""))
    lines += [
        f"          {each.blob[:12]}  {each.path}{' (dirty)' if each.dirty else ''}"
        for each in (source.spec, *source.files)
    ]
    if source.unknown:
        lines.append(f"unknown   {', '.join(source.unknown)}: not in the history when it was filed")
    if run.retread:
        lines.append(f"retread   {run.retread.why} (known: {', '.join(run.retread.entries)})")
    lines.append(f"measured  {run.started} to {run.finished}")
    return lines + (["output", *(f"  {line}" for line in run.log_tail.splitlines())] if run.log_tail else [])


def _evidence(evidence: Evidence) -> str:
    return ", ".join([evidence.kind, *evidence.runs, *([evidence.source] if evidence.source else [])])


def _dead_end(entry: DeadEnd) -> list[str]:
    lines = [
        f"dead end {entry.name}  [{entry.status}]",
        f"technique {entry.technique}",
        f"why       {entry.reason}",
        f"scope     {scope_words(entry.scope)}",
        f"evidence  {_evidence(entry.evidence)}",
    ]
    lines += [f"tried     {entry.tried} implementations"] if entry.tried is not None else []
    lines += [f"kernel    {entry.kernel}, knobs {point(entry.knobs)}"] if entry.kernel else []
    lines += [f"reopens   when {scope_words(each)}" for each in entry.reopen_when]
    return [*lines, f"history   {', '.join(entry.history)}", f"file      {entry.path}"]


def _decision(decision: Decision, log: Log) -> list[str]:
    fields = [
        ("claim", decision.claim), ("because", decision.because), ("technique", decision.technique), ("why", decision.reason),
        ("risk", decision.risk), ("rests on", ", ".join(decision.rests_on)), ("note", decision.note),
        ("expected", f"{decision.expected.metric} {decision.expected.change.text}" if decision.expected else None),
        ("scope", scope_words(decision.scope) if decision.scope else None),
    ]  # fmt: skip
    history = [each for each in log.decisions if each.kind == decision.kind and each.name == decision.name]
    lines = [f"{decision.kind} {decision.name}  [{decision.action}]  {decision.id}  {decision.date}"]
    lines += [f"{label:<9} {text}" for label, text in fields if text]
    lines += [f"evidence  {_evidence(decision.evidence)}"]
    lines += [f"history   {each.date} {each.action}  {each.id}" for each in history] if len(history) > 1 else []
    return [*lines, f"file      {log.paths.get(decision.id, '')}"]
