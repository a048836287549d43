"""Drawing a chart as SVG with matplotlib: transparent, in mid tones that read on light and dark, colour-blind-safe."""

from __future__ import annotations

import io
import re
from itertools import pairwise
from typing import Any

from perfplan.plan.charts import ChartData, PredictedBand, stamp

_INK = "#757b83"  # 4.3 to 1 against white and against GitHub's dark background
_COLOURS = (
    "#0f80c0",
    "#d55e00",
    "#009e73",
    "#b5709a",
    "#b58900",
    "#6a6fbf",
)  # Okabe and Ito's, evened for both backgrounds
_MARKERS = ("o", "s", "^", "D", "v", "P")
_BAND = "#009e73"
_SETTINGS = {
    "svg.hashsalt": "perfplan",
    "svg.fonttype": "path",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib
    "font.size": 10,
    "text.color": _INK,
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.usetex": False,
    "text.parse_math": False,
}


def draw(data: ChartData) -> str:
    """The SVG of a chart, with the hash of its data in a comment."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        figure = Figure(figsize=(7.2, 3.8), layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.08))
        canvas = FigureCanvasSVG(figure)
        _draw(figure.subplots(), figure, data)
        buffer = io.StringIO()
        canvas.print_svg(buffer, metadata={"Date": None, "Title": _title(data)})
    svg = re.sub(r"[ \t]+$", "", buffer.getvalue(), flags=re.MULTILINE)
    return svg.replace("<svg ", f"{stamp(data.digest)}\n<svg ", 1)


def _title(data: ChartData) -> str:
    return f"{data.experiment}: {data.metric}, candidate over baseline"


def _draw(axes: Any, figure: Any, data: ChartData) -> None:
    figure.patch.set_alpha(0)
    axes.patch.set_alpha(0)
    axes.axhline(1.0, color=_INK, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    step = _step(data)
    for index, series in enumerate(data.series):
        shift = (
            (index - (len(data.series) - 1) / 2) * step * 0.12
        )  # so that intervals of several devices do not cover each other
        axes.errorbar(
            [mark.x + shift for mark in series.marks],
            [mark.ratio for mark in series.marks],
            yerr=[[mark.ratio - mark.low for mark in series.marks], [mark.high - mark.ratio for mark in series.marks]],
            color=_COLOURS[index % len(_COLOURS)],
            marker=_MARKERS[index % len(_MARKERS)],
            markersize=5,
            linewidth=1.4,
            elinewidth=1.6,
            capsize=3,
            label=series.label,
            zorder=3,
        )
    _set_limits(axes, data, step)
    _draw_bands(axes, data, step)
    axes.set_xticks([place for place, _ in data.ticks], [label for _, label in data.ticks])
    axes.set_xlabel(data.axis)
    axes.set_ylabel(f"{data.metric} ratio (1 = no change)")
    axes.set_title(_title(data), fontsize=11, loc="left", pad=10)
    columns = 2 if len(data.series) > 2 else 3
    figure.legend(*axes.get_legend_handles_labels(), frameon=False, fontsize=9, loc="outside lower left", ncols=columns)


def _step(data: ChartData) -> float:
    """The least distance between positions; what is drawn around a position reaches half of it to each side."""
    places = [place for place, _ in data.ticks]
    return min((right - left for left, right in pairwise(places)), default=1.0)


def _set_limits(axes: Any, data: ChartData, step: float) -> None:
    bounds = [bound for each in data.bands for bound in (each.low, each.high) if bound is not None]
    marks = [value for series in data.series for mark in series.marks for value in (mark.low, mark.high)]
    low, high = min([1.0, *bounds, *marks]), max([1.0, *bounds, *marks])
    margin = max((high - low) * 0.12, 0.01)
    axes.set_ylim(low - margin, high + margin)
    places = [place for place, _ in data.ticks]
    axes.set_xlim(places[0] - step * 0.7, places[-1] + step * 0.7)


def _draw_bands(axes: Any, data: ChartData, step: float) -> None:
    """Each band around its positions, from edge to edge of the plot where it is open."""
    bottom, top = axes.get_ylim()
    places = [place for place, _ in data.ticks]
    labelled: set[bool] = set()
    for band in data.bands:
        left, right = _reach(band, places, step)
        low = bottom if band.low is None else band.low
        high = top if band.high is None else band.high
        name = "guard (allowed)" if band.guard else "predicted"
        axes.fill_between(
            [left, right], [low, low], [high, high],
            facecolor=_INK if band.guard else _BAND,
            alpha=0.14 if band.guard else 0.24,
            linewidth=0,
            label="_" if band.guard in labelled else name,
            zorder=0,
        )  # fmt: skip
        labelled.add(band.guard)


def _reach(band: PredictedBand, places: list[float], step: float) -> tuple[float, float]:
    """Half-way to the neighbours, so that bands at neighbouring points join."""
    index = places.index(band.x)
    left = (places[index - 1] + band.x) / 2 if index else band.x - step / 2
    right = (places[index + 1] + band.x) / 2 if index + 1 < len(places) else band.x + step / 2
    return left, right
