"""How numbers are written for people. The one place that formats times, changes and operating points."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from perfplan.models.base import Point, Scalar
from perfplan.models.record import Interval


def percent(change: float) -> str:
    """A relative change: -0.2512 is `-25.1%`; from 100 % up without a decimal; never `-0.0%`."""
    value = change * 100
    text = f"{value:+.0f}%" if abs(value) >= 99.95 else f"{value:+.1f}%"
    return "0.0%" if float(text.rstrip("%")) == 0 else text


def interval(effect: Interval) -> str:
    """`-25.1% [-26.0%, -24.2%]`."""
    return f"{percent(effect.estimate)} [{percent(effect.low)}, {percent(effect.high)}]"


def seconds(value: float) -> str:
    """A duration to three or four significant figures in the unit that suits: `140.2 us`, `1.234 ms`, `2.50 s`."""
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if value >= factor:
            return f"{_figures(value / factor)} {unit}"
    return f"{_figures(value / 1e-9)} ns"


def _figures(value: float) -> str:
    return f"{value:.1f}" if value >= 100 else f"{value:.2f}" if value >= 10 else f"{value:.3f}"


def size(count: int) -> str:
    """Bytes in binary units: `50.0 KiB`."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            break
        value /= 1024
    return f"{count} B" if unit == "B" else f"{value:.1f} {unit}"


def point(values: Point) -> str:
    """`batch=64, kv_len=2048`."""
    return ", ".join(f"{axis}={value}" for axis, value in values.items())


def varying(points: Sequence[Point]) -> list[str]:
    """The axes on which the points differ, in the order of the first point."""
    if not points:
        return []
    return [axis for axis in points[0] if len({repr(each.get(axis)) for each in points}) > 1]


def points(values: Sequence[Point], among: Sequence[Point] = ()) -> str:
    """A set of points in few words, by the axes on which they (or all of `among`) differ: `batch=64,72,80`."""
    if not values:
        return ""
    axes = varying(among or values) or list(values[0])[:1]
    return ", ".join(f"{axis}={_listing(each.get(axis) for each in values)}" for axis in axes)


def _listing(values: Iterable[Scalar | None]) -> str:
    seen = list(dict.fromkeys(str(value) for value in values))
    return ",".join(seen)


def reading(metric: str, value: float | None) -> str:
    """What an arm measured: `time` is in seconds, any other metric is a bare number to four figures; None is `-`."""
    if value is None:
        return "-"
    return seconds(value) if metric == "time" else f"{value:.4g}"


def effects(measured: Sequence[Interval]) -> str:
    """The effects at several points: smallest to largest estimate and the hull of the intervals; at one point its interval."""
    if len(measured) == 1:
        return interval(measured[0])
    estimates = sorted(each.estimate for each in measured)
    hull = f"[{percent(min(each.low for each in measured))}, {percent(max(each.high for each in measured))}]"
    first, last = percent(estimates[0]), percent(estimates[-1])
    return f"{first} {hull}" if first == last else f"{first} to {last} {hull}"
