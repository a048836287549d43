"""Evidence that has gone stale: the source changed, the point lies outside of the range, the versions moved on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from perfplan.blobs import file_blob
from perfplan.layout import Layout
from perfplan.models.campaign import Campaign
from perfplan.models.decision import Decision
from perfplan.models.record import Run
from perfplan.plan.states import outside
from perfplan.units import points as points_text


@dataclass(frozen=True)
class StaleRun:
    """A run that something rests on, and why it no longer speaks for the code, the range or the versions of today."""

    run: Run
    reasons: tuple[str, ...]  # plain text, not escaped


@dataclass(frozen=True)
class StaleFigure:
    """A figure of a decision that is about points outside of the operating range."""

    entry: Decision
    reason: str


def stale_runs(layout: Layout, campaign: Campaign, cited: Iterable[Run], runs: Sequence[Run]) -> list[StaleRun]:
    """Those of `cited` that are stale, in order of experiment and id. `runs` are all runs of the campaign."""
    newest = {(run.device.kind, run.device.name): run for run in sorted(runs, key=lambda each: each.id)}

    @cache
    def current(path: str) -> str | None:
        try:
            return file_blob(layout.root / path)
        except OSError:
            return None

    found = []
    for run in sorted(cited, key=lambda each: (each.experiment, each.id)):
        reasons = [
            *_source_reasons(run, {each.path: current(each.path) for each in run.source.files}),
            *_range_reasons(run, campaign),
            *_version_reasons(run, newest[(run.device.kind, run.device.name)]),
        ]
        if reasons:
            found.append(StaleRun(run, tuple(reasons)))
    return found


def _source_reasons(run: Run, current: Mapping[str, str | None]) -> Iterable[str]:
    for each in sorted(run.source.files, key=lambda file: file.path):
        if current[each.path] is None:
            yield f"{each.path} is gone"
        elif current[each.path] != each.blob:
            yield f"{each.path} changed since"


def _range_reasons(run: Run, campaign: Campaign) -> Iterable[str]:
    beyond = [cell.point for cell in run.predicted if outside(cell.point, campaign.operating_range)]
    if beyond:
        yield f"outside of the operating range at {points_text(beyond)}"


def _version_reasons(run: Run, newest: Run) -> Iterable[str]:
    """Perfplan's own version is left out: it measures, it is not measured."""
    for name in sorted(run.software.keys() & newest.software.keys() - {"perfplan"}):
        if run.software[name] != newest.software[name]:
            yield f"{name} {run.software[name]}; the newest run on this device has {newest.software[name]}"


def stale_figures(campaign: Campaign, entries: Iterable[Decision]) -> list[StaleFigure]:
    """Expectations that are stated for points outside of the operating range."""
    found = []
    for entry in sorted(entries, key=lambda each: (each.name, each.id)):
        at = entry.expected.at if entry.expected else {}
        beyond = [
            f"{axis}={value}" for axis in at for value in at[axis] if outside({axis: value}, campaign.operating_range)
        ]
        if beyond:
            found.append(StaleFigure(entry, f"expected at {', '.join(beyond)}, outside of the operating range"))
    return found
