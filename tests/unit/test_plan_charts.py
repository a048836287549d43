"""Charts: what they show, and that they change only with their data."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

from perfplan.plan.charts import chart_data, is_ours, stamp, stamped
from perfplan.plan.drawing import draw
from plan_log import CPU, cell, run


def test_one_point_has_no_chart() -> None:
    assert chart_data([run(1, 1, cells=[cell(64, -0.2)])]) is None
    assert chart_data([run(1, 1, cells=[cell(64, -0.2), cell(80, None)])]) is None
    assert chart_data([]) is None


def test_the_newest_run_of_each_device_is_a_series() -> None:
    data = chart_data([run(1, 1), run(2, 2, cells=[cell(64, -0.16), cell(80, -0.17)]), run(1, 3, device=CPU)])
    assert data is not None
    assert data.axis == "batch"
    assert [series.label for series in data.series] == ["Some Xeon", "NVIDIA H200"]
    assert [(mark.x, mark.ratio) for mark in data.series[1].marks] == [(64, 0.84), (80, 0.83)]


def test_bands_and_guards() -> None:
    data = chart_data([run(1, 1)])
    assert data is not None
    assert [(band.x, band.low, band.high, band.guard) for band in data.bands] == [
        (32, None, 1.01, True),
        (64, 0.75, 0.85, False),
        (80, 0.75, 0.85, False),
    ]


def test_axes_that_are_words_are_placed_by_position() -> None:
    cells = [cell(64, -0.2).model_copy(update={"point": {"mode": mode}}) for mode in ("graph", "eager")]
    data = chart_data([run(1, 1, cells=cells)])
    assert data is not None
    assert data.ticks == ((0.0, "eager"), (1.0, "graph"))


def test_the_hash_follows_the_data_and_not_the_order_of_runs() -> None:
    first, second = run(1, 1), run(2, 2, device=CPU)
    one, other = chart_data([first, second]), chart_data([second, first])
    changed = chart_data([first, run(2, 2, device=CPU, cells=[cell(32, 0.0), cell(64, -0.21)])])
    assert one is not None and other is not None and changed is not None
    assert one.digest == other.digest != changed.digest


def test_a_drawing_is_whole_and_the_same_twice() -> None:
    data = chart_data([run(1, 1), run(1, 2, device=CPU)])
    assert data is not None
    svg = draw(data)
    assert svg == draw(data)
    assert stamped(svg) == data.digest
    root = ElementTree.fromstring(svg)
    assert root.tag.endswith("svg")
    assert "<dc:date>" not in svg


def test_names_of_devices_are_drawn_as_they_are() -> None:
    strange = CPU.model_copy(update={"name": "<b>$x_1$ & _hidden"})
    data = chart_data([run(1, 1, device=strange)])
    assert data is not None
    ElementTree.fromstring(draw(data))


def test_a_damaged_chart_is_not_current() -> None:
    digest = "a" * 64
    good = f"{stamp(digest)}\n<svg></svg>\n"
    assert stamped(good) == digest
    assert stamped(good.replace("</svg>", "")) is None
    assert stamped(f"<<<<<<< HEAD\n{good}") is None
    assert stamped(stamp(digest) + good) is None
    assert is_ours(f"<<<<<<< HEAD\n{good}") and not is_ours("<svg></svg>")
