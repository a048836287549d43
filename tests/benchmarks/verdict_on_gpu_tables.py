"""The tables of `verdicts_on_gpu.py`, made of the lines that it wrote."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from verdict_tables import table, wilson

BEGIN, END = "<!-- h200:begin -->", "<!-- h200:end -->"
COMMAND = "python tests/benchmarks/verdicts_on_gpu.py"
Row = dict[str, Any]


def write_tables(lines: Path, page: Path | None) -> None:
    """Print the tables of a sitting; replace the region of `page` by them."""
    made = region([json.loads(line) for line in lines.read_text().splitlines()])
    print(made)
    if page:
        before, rest = page.read_text().split(BEGIN)
        page.write_text(f"{before}{BEGIN}\n\n{made}\n{END}{rest.split(END)[1]}")


def region(rows: Sequence[Row]) -> str:
    """Machine, false alarms, injected effects, cost."""
    about, runs = rows[0], rows[1:]
    same, injected = [each for each in runs if not each["truth"]], [each for each in runs if each["truth"]]
    head = f"{about['device']}, torch {about['torch']}, Triton {about['triton']}; one sitting, `{COMMAND}`."
    return "\n".join([head, "", *_alarms(same), *_effects(injected), *_spread(same), *_cost(runs)])


def _rate(rows: Sequence[Row], holds: Callable[[Row], bool]) -> str:
    count = sum(map(holds, rows))
    low, high = wilson(count, len(rows))
    return f"{count} of {len(rows)} [{low:.1%}, {high:.1%}]"


def _said(change: str, *outcomes: str) -> Callable[[Row], bool]:
    return lambda row: row["perfplan"]["said"][change] in outcomes


def _alarms(same: Sequence[Row]) -> list[str]:
    rows = [
        ["perfplan, `[-3%, -1%]` confirmed", _rate(same, _said("[-3%, -1%]", "confirmed"))],
        ["perfplan, `within 1%` refuted", _rate(same, _said("within 1%", "refuted"))],
        ["perfplan, `<= 0%` settled either way (nominal 5%)", _rate(same, _said("<= 0%", "confirmed", "refuted"))],
    ]
    for limit in (0.005, 0.01, 0.02):
        for figure in ("median", "mean"):
            rate = _rate(same, lambda row, figure=figure, limit=limit: abs(row["do_bench"][figure]) > limit)  # type: ignore[misc]
            rows.append([f"do_bench twice, {figure}s differ by more than {limit:.1%}", rate])
    void = _rate(same, lambda row: "invalid" in row["perfplan"]["said"].values())
    note = f"perfplan called the point noisy, and said nothing, in {void}."
    return [
        f"**The same code in both arms**, {len(same)} runs: false claims.\n",
        table(["claim", "runs"], rows),
        note,
        "",
    ]


def _effects(injected: Sequence[Row]) -> list[str]:
    rows = []
    for truth in sorted({row["truth"] for row in injected}):
        of = [row for row in injected if row["truth"] == truth]
        band = next(iter(of[0]["perfplan"]["said"]))
        rows.append(
            [
                f"{truth:+.0%}",
                band,
                _rate(of, _said(band, "confirmed")),
                _rate(of, _said(band, "refuted")),
                _rate(of, lambda row, truth=truth: abs(row["do_bench"]["median"] - truth) <= 0.01),  # type: ignore[misc]
                _rate(of, lambda row, truth=truth: abs(row["do_bench"]["mean"] - truth) <= 0.01),  # type: ignore[misc]
            ]
        )
    head = [
        "truth",
        "band",
        "perfplan confirmed",
        "perfplan refuted (false)",
        "do_bench median in the band",
        "mean in the band",
    ]
    return ["**A known effect**, extra calls of the kernel in the candidate.\n", table(head, rows)]


def _spread(same: Sequence[Row]) -> list[str]:
    """How far from zero the effect of equal arms came out."""
    ways: list[tuple[str, Callable[[Row], float]]] = [
        ("perfplan", lambda row: row["perfplan"]["effect"]),
        ("do_bench medians", lambda row: row["do_bench"]["median"]),
        ("do_bench means", lambda row: row["do_bench"]["mean"]),
    ]
    rows = []
    for name, read in ways:
        errors = sorted(abs(read(row)) for row in same)
        cuts = (statistics.median(errors), errors[int(0.95 * (len(errors) - 1))], errors[-1])
        rows.append([name, *(f"{value:.3%}" for value in cuts)])
    return [
        "Distance from the truth, the same code in both arms.\n",
        table(["", "median", "95th percentile", "worst"], rows),
    ]


def _cost(runs: Sequence[Row]) -> list[str]:
    rows = []
    for name, wanted in (("A/A", False), ("injected", True)):
        of = [row for row in runs if bool(row["truth"]) == wanted]
        ours = statistics.median(row["perfplan"]["seconds"] for row in of)
        wall = statistics.median(row["perfplan"]["wall"] for row in of)
        theirs = statistics.median(row["do_bench"]["seconds"] for row in of)
        pairs = statistics.median(row["perfplan"]["pairs"] for row in of)
        rows.append([name, f"{pairs:.0f}", f"{ours:.2f} s", f"{wall:.2f} s", f"{theirs:.2f} s", f"{ours / theirs:.1f}"])
    head = [
        "runs",
        "pairs",
        "perfplan, sampling",
        "with inputs, captures, warm-up",
        "do_bench twice",
        "sampling over do_bench twice",
    ]
    return ["Time of a run, medians. The goal is a ratio of at most 4.\n", table(head, rows)]
