"""Finding one entry of the log by id, short id or name."""

from __future__ import annotations

import difflib

from perfplan.deadends import dead_ends
from perfplan.errors import NotFound
from perfplan.ids import resolve
from perfplan.log import Log
from perfplan.models.dead_end import DeadEnd
from perfplan.models.decision import Decision
from perfplan.models.record import Run

Entry = Run | Decision | DeadEnd


def namesakes(log: Log, entry: Entry) -> list[str]:
    """Other entries of the log under the same name, in a few words each: a lever and its refuted run are often called alike."""
    name = entry.experiment if isinstance(entry, Run) else entry.name
    found = {each.id: f"dead end {each.id} [{each.status}]" for each in dead_ends(log) if each.name == name}
    found |= {
        run.id: f"run {run.id} [{run.verdict.outcome}]"
        for run in log.runs
        if run.experiment == name and run.id not in found
    }
    found |= {each.id: f"{each.kind} {each.id} [{each.action}]" for each in log.decisions if each.name == name}
    return [words for entry_id, words in found.items() if entry_id != entry.id]


def find_entry(log: Log, wanted: str) -> Entry:
    """The run, decision or dead end that `wanted` names. A name stands for its newest entry. Raises NotFound or PerfplanError."""
    by_name: dict[str, Entry] = {decision.name: decision for decision in log.decisions}
    by_name.update({entry.name: entry for entry in dead_ends(log)})
    for run in log.runs:
        by_name.setdefault(run.experiment, run)
        if isinstance(by_name[run.experiment], Run):
            by_name[run.experiment] = run
    if wanted in by_name:
        return by_name[wanted]
    by_id: dict[str, Entry] = {**{run.id: run for run in log.runs}, **{each.id: each for each in log.decisions}}
    try:
        return by_id[resolve(wanted, by_id)]
    except NotFound as error:
        close = difflib.get_close_matches(wanted, by_name, n=1)
        if close:
            raise NotFound(f"nothing in the log is called {wanted!r}", hint=f"did you mean {close[0]!r}?") from None
        raise error from None
