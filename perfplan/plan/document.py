"""Building, writing and checking the plan documents of a repository."""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from perfplan import atomic
from perfplan.errors import BadInput, Location, NotFound, Problem
from perfplan.layout import Layout
from perfplan.log import Log
from perfplan.models.record import Run
from perfplan.plan.charts import ChartData, chart_data, is_ours, stamped
from perfplan.plan.regions import merge_regions, read_regions
from perfplan.plan.render import render
from perfplan.plan.view import Material, materials, view

RegionReader = Callable[[str, str], Mapping[str, str]]


@dataclass(frozen=True)
class Chart:
    """A chart of the plan. Drawn only when `svg` is asked for, which is what costs time."""

    path: Path
    data: ChartData

    @property
    def digest(self) -> str:
        """SHA-256 of the data; a file that carries it is current, whichever matplotlib drew it."""
        return self.data.digest

    @property
    def svg(self) -> str:
        """The drawing."""
        from perfplan.plan.drawing import draw

        return draw(self.data)


@dataclass(frozen=True)
class Document:
    """The plan of one campaign: its text, its charts, and charts on disk that it has no longer."""

    campaign: str
    path: Path
    text: str
    charts: tuple[Chart, ...]
    superfluous: tuple[Path, ...]


@dataclass(frozen=True)
class Stale:
    """A file of the plan that is not what the records say, with a unified diff from what is on disk."""

    path: Path
    diff: str


@dataclass(frozen=True)
class Resolved:
    """The outcome of `resolve_documents`. `both` names regions, by plan, in which both sides of a merge were kept."""

    paths: list[Path]
    both: dict[str, tuple[str, ...]]


def build_documents(layout: Layout, log: Log, campaigns: Collection[str] = ()) -> list[Document]:
    """The plan of every campaign, or of those named, from the files alone.

    Reads the hand-written regions of the plans on disk, and the blobs of the source files that records name. Raises
    PlanProblem for broken markers and BadInput for a broken template.
    """
    return _build(layout, log, campaigns, read_regions)


def write_documents(layout: Layout, log: Log, campaigns: Collection[str] = ()) -> list[Path]:
    """Write what differs and remove charts that are no more. Returns every path of the plan, removed ones too."""
    return _write(build_documents(layout, log, campaigns))


def check_documents(layout: Layout, log: Log, campaigns: Collection[str] = ()) -> list[Stale]:
    """The files that are not current; empty where all is well."""
    return [stale for document in build_documents(layout, log, campaigns) for stale in _differences(document, layout)]


def resolve_documents(layout: Layout, log: Log, campaigns: Collection[str] = ()) -> Resolved:
    """Regenerate after a merge. Regions with conflicts keep the lines of both sides."""
    both: dict[str, tuple[str, ...]] = {}

    def read(text: str, shown: str) -> Mapping[str, str]:
        merged = merge_regions(text, shown)
        if merged.both:
            both[shown] = merged.both
        return merged.regions

    documents = _build(layout, log, campaigns, read)
    return Resolved(_write(documents), both)


def _build(layout: Layout, log: Log, campaigns: Collection[str], regions: RegionReader) -> list[Document]:
    unknown = sorted(set(campaigns) - set(log.campaigns))
    if unknown:
        raise NotFound(f"no campaign {unknown[0]!r}", hint=f"there are: {', '.join(sorted(log.campaigns)) or 'none'}")
    _refuse_shared_names(layout, log)
    return [
        _document(given, layout, log, regions)
        for name, given in materials(log).items()
        if not campaigns or name in campaigns
    ]


def _refuse_shared_names(layout: Layout, log: Log) -> None:
    owners: dict[str, list[str]] = defaultdict(list)
    for name in sorted(log.campaigns):
        owners[log.campaigns[name].plan_name].append(name)
    for plan_name, names in owners.items():
        if len(names) > 1:
            where = Location(layout.relative(layout.campaign(names[1])))
            raise BadInput(
                [Problem(where, f"has the same plan file as {names[0]}: {plan_name}", "set `plan:` to another name")]
            )


def _document(given: Material, layout: Layout, log: Log, regions: RegionReader) -> Document:
    campaign = given.campaign
    folder = layout.charts(campaign.id)
    charts = tuple(Chart(folder / f"{name}.svg", data) for name, data in _chart_data(given.runs).items())
    path = layout.plans / campaign.plan_name
    kept = regions(_read(path) or "", layout.relative(path))
    template = layout.root / campaign.template if campaign.template else None
    if template is not None and not template.resolve().is_relative_to(layout.root.resolve()):
        where = Location(layout.relative(layout.campaign(campaign.id)), 0, "template")
        raise BadInput(
            [Problem(where, f"{campaign.template} is outside of the repository", "give a path from its root")]
        )
    seen = view(given, layout, log, {chart.data.experiment for chart in charts})
    text = render(seen, kept, template, campaign.template or "")
    return Document(campaign.id, path, text, charts, tuple(_superfluous(folder, charts)))


def _chart_data(runs: list[Run]) -> dict[str, ChartData]:
    of_experiment: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        of_experiment[run.experiment].append(run)
    found = {name: chart_data(of_experiment[name]) for name in sorted(of_experiment)}
    return {name: data for name, data in found.items() if data is not None}


def _superfluous(folder: Path, charts: tuple[Chart, ...]) -> Iterator[Path]:
    """Charts that perfplan drew once. A picture that somebody put there by hand is none of ours."""
    current = {chart.path for chart in charts}
    for path in sorted(folder.glob("*.svg")):
        if path not in current and is_ours(_read(path) or ""):
            yield path


def _write(documents: list[Document]) -> list[Path]:
    paths = []
    for document in documents:
        for chart in document.charts:
            if stamped(_read(chart.path) or "") != chart.digest:
                atomic.write_text(chart.path, chart.svg)
        for path in document.superfluous:
            path.unlink(missing_ok=True)
        if _read(document.path) != document.text:
            atomic.write_text(document.path, document.text)
        paths += [document.path, *(chart.path for chart in document.charts), *document.superfluous]
    return paths


def _differences(document: Document, layout: Layout) -> Iterator[Stale]:
    on_disk = _read(document.path)
    if on_disk != document.text:
        shown = layout.relative(document.path)
        lines = difflib.unified_diff(
            (on_disk or "").splitlines(keepends=True),
            document.text.splitlines(keepends=True),
            f"{shown} (on disk)" if on_disk is not None else "/dev/null",
            f"{shown} (regenerated)",
        )
        yield Stale(
            document.path,
            "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines),
        )
    for chart in document.charts:
        svg = _read(chart.path)
        digest = stamped(svg or "")
        if digest != chart.digest:
            state = (
                "missing"
                if svg is None
                else f"perfplan-data: {digest}"
                if digest
                else "not a whole chart of perfplan's"
            )
            yield _chart_stale(chart.path, layout, state, f"perfplan-data: {chart.digest}")
    for path in document.superfluous:
        yield _chart_stale(path, layout, "on disk", "no experiment has this chart any more")


def _chart_stale(path: Path, layout: Layout, before: str, after: str) -> Stale:
    shown = layout.relative(path)
    return Stale(path, f"--- {shown} (on disk)\n+++ {shown} (regenerated)\n@@ chart @@\n-{before}\n+{after}\n")


def _read(path: Path) -> str | None:
    """A text file with LF line ends, as a checkout with CRLF conversion may have others; None where there is none."""
    try:
        return path.read_bytes().decode("utf-8").replace("\r\n", "\n")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UnicodeDecodeError as error:
        raise BadInput(
            [Problem(Location(str(path)), f"is not UTF-8 text: {error.reason}", "restore it with git, or delete it")]
        ) from None
