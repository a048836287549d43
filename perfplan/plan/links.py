"""Links of the plan to the files that its figures come from, relative to the folder of the plans."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from perfplan import ids
from perfplan.log import Log
from perfplan.models.decision import Decision, Evidence
from perfplan.models.record import Run
from perfplan.plan.markdown import link, source, text


class Links:
    """Knows where each record, entry and spec lies. What has no file is named without a link."""

    def __init__(self, log: Log) -> None:
        self._paths: Mapping[str, str] = log.paths
        self._specs = {name: each.path for name, each in log.specs.items()}

    def entry(self, entry_id: str, label: str = "") -> str:
        """A run or decision by the short form of its id, linked to its file."""
        shown = label or ids.short(entry_id)
        return self.path(self._paths[entry_id], shown) if entry_id in self._paths else text(shown)

    def dated(self, entry: Decision) -> str:
        """The day of an entry, linked to its file."""
        return self.entry(entry.id, entry.date[:10])

    def experiment(self, name: str) -> str:
        """An experiment, linked to its spec where that still exists."""
        return self.path(self._specs[name], name) if name in self._specs else text(name)

    def path(self, path: str, label: str) -> str:
        """A file of the repository."""
        return link(label, posixpath.relpath(path, "plans"))

    def run(self, run: Run) -> str:
        """A run by its short id."""
        return self.entry(run.id)

    def evidence(self, evidence: Evidence) -> str:
        """The class of evidence, the runs it names, and its source."""
        runs = ", ".join(self.entry(run_id) for run_id in evidence.runs)
        named = [part for part in (runs, source(evidence.source) if evidence.source else "") if part]
        return f"{evidence.kind}: {'; '.join(named)}" if named else evidence.kind
