"""Decode attention on one GPU, row by row of a table of peers, as a Markdown table and JSON.

    python tests/benchmarks/h200_anchors.py --markdown docs/h200-anchors.md --json h200-anchors.json

Every row: KV rows of 512 bf16 gathered by random indices from a pool (page_size 1), merge included. A time is the
median of 40 CUDA-graph replays over 8 rotating input sets, each with a pool and indices of its own. Every configuration
that is timed is first compared with the float64 reference. The best of a short list stands in the table.
"""

from __future__ import annotations

import argparse
import datetime
import json
import statistics
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from kernels.mla_decode import MlaDecode  # noqa: E402

KERNEL = MlaDecode()
TOLERANCE = 6.7e-3
SETS, REPLAYS = 8, 40

# heads, KV rows, batch -> us of the fastest of three peers, measured on an H200 on 2026-12-01 (torch 2.11, Triton 3.6):
# SGLang 0.5.23's paged sparse decode for DeepSeek-V4 with its own split rule, with 4 splits, and its dense decode
PEERS = {
    (64, 640, 64): 78.4, (64, 640, 80): 112.9, (64, 640, 128): 132.2,
    (64, 2048, 16): 71.8, (64, 2048, 64): 186.9, (64, 2048, 80): 276.5, (64, 2048, 128): 341.3,
    (16, 640, 64): 35.9, (16, 640, 80): 45.4, (16, 640, 128): 60.1,
    (16, 2048, 16): 34.3, (16, 2048, 64): 80.3, (16, 2048, 80): 96.6, (16, 2048, 128): 147.3,
}  # fmt: skip

# heads -> (block_h, block_n, num_warps, num_stages)
TILES = {64: [(64, 64, 8, 2), (64, 32, 8, 3), (64, 32, 8, 4)], 16: [(16, 64, 4, 2), (16, 32, 4, 3), (16, 64, 8, 3)]}
NSPLITS = [1, 2, 3, 4, 5, 6, 8, 11, 16]


def graph(call: Callable[[], Any]) -> torch.cuda.CUDAGraph:
    """`call` as a CUDA graph, after one plain call that compiles it."""
    call()
    torch.cuda.synchronize()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        call()
    return captured


def median_us(replays: list[Callable[[], None]], count: int = REPLAYS) -> float:
    """Median time of `count` calls that take turns, in microseconds, by events."""
    until = time.perf_counter() + 0.03  # a GPU that idled while a kernel was compiled needs a while to clock up
    while time.perf_counter() < until:
        for replay in replays:
            replay()
        torch.cuda.synchronize()
    events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(count)]
    torch.cuda.synchronize()
    torch.cuda._sleep(2_000_000)  # the GPU waits while the replays are queued, so that no launch is waited for
    for index, (start, end) in enumerate(events):
        start.record()
        replays[index % len(replays)]()
        end.record()
    torch.cuda.synchronize()
    return statistics.median(start.elapsed_time(end) for start, end in events) * 1e3


def copy_gbs() -> float:
    """Bandwidth of a device-to-device copy of 2 GiB, bytes read and written, in GB/s."""
    source = torch.empty(2**31, dtype=torch.uint8, device="cuda").random_()
    target = torch.empty_like(source)
    return 2 * source.numel() / median_us([lambda: target.copy_(source)], 10) / 1e3


class Row:
    """The input sets of one row of the table, with outputs and the reference of the first set."""

    def __init__(self, heads: int, kv_len: int, batch: int) -> None:
        axes = {"batch": batch, "kv_len": kv_len, "heads": heads, "dtype": "bf16"}
        self.point = {**axes, "layout": "paged", "page_size": 1, "lengths": "full"}
        self.sets = [KERNEL.inputs(self.point, seed, "cuda") for seed in range(SETS)]
        self.outs = [torch.empty_like(inputs["q"]) for inputs in self.sets]
        self.reference = KERNEL.reference(self.point, self.sets[0])["out"]

    def calls(self, config: dict[str, Any]) -> list[Callable[[], Any]]:
        """The kernel's call for each input set."""
        return [
            KERNEL.prepare(self.point, config, inputs, {"out": out})
            for inputs, out in zip(self.sets, self.outs, strict=True)
        ]

    def measure(self, calls: list[Callable[[], Any]]) -> tuple[float, float]:
        """(median time in us, relative L2 error). An error above the tolerance is raised, not timed."""
        self.outs[0].fill_(float("nan"))
        graphs = [graph(call) for call in calls]
        self.outs[0].fill_(float("nan"))
        graphs[0].replay()
        error = ((self.outs[0].double() - self.reference).norm() / self.reference.norm()).item()
        if not error <= TOLERANCE:
            raise ArithmeticError(f"{self.point}: relative error {error:.3g} > {TOLERANCE}")
        return median_us([captured.replay for captured in graphs]), error


def best_of(row: Row) -> dict[str, Any]:
    """Time every configuration of the row's list; the fastest as a result."""
    results = []
    for block_h, block_n, num_warps, num_stages in TILES[row.point["heads"]]:
        for nsplit in NSPLITS:
            tile = {"block_h": block_h, "block_n": block_n, "num_warps": num_warps, "num_stages": num_stages}
            config = {"nsplit": nsplit, **tile, "backend": "triton"}
            time_us, error = row.measure(row.calls(config))
            results.append({"config": config, "us": time_us, "error": error})
    return min(results, key=lambda result: result["us"])


def markdown(report: dict[str, Any]) -> str:
    """The report as a page."""
    about = (
        f"{report['gpu']}, driver {report['driver']}, torch {report['torch']}, Triton {report['triton']}. bf16; KV "
        "rows of 512 gathered by random indices (page_size 1); merge included; median of "
        f"{REPLAYS} CUDA-graph replays over {SETS} rotating input sets. Copy bandwidth in the same sitting, read + "
        f"write: {report['copy_gbs']:,.0f} GB/s. Floor: bytes of KV rows, q and out over that bandwidth. Best peer: "
        "the fastest of SGLang 0.5.23's decode kernels on an H200 on 2026-12-01. Tile: block_h, block_n, num_warps, "
        "num_stages; tile and nsplit are the fastest of a short list. Error: relative L2 against a float64 reference."
    )
    lines = [
        "# Decode attention against peers on one GPU",
        "",
        f"Generated by `{report['command']}` on {report['date']}; not edited by hand.",
        "",
        textwrap.fill(about, 120),
        "",
        "| heads | KV rows | batch | floor us | best peer us | mla_decode us | peer / ours | nsplit | tile | error |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in report["rows"]:
        config = row["config"]
        tile = "/".join(str(config[knob]) for knob in ("block_h", "block_n", "num_warps", "num_stages"))
        lines.append(
            f"| {row['heads']} | {row['kv_len']} | {row['batch']} | {row['floor_us']:.1f} | {row['peer_us']:.1f} "
            f"| {row['us']:.1f} | {row['peer_us'] / row['us']:.2f} | {config['nsplit']} | {tile} | {row['error']:.1e} |"
        )
    return "\n".join(lines) + "\n"


def measure(date: str) -> dict[str, Any]:
    """The report: the machine, and every row of PEERS measured."""
    import triton

    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    report: dict[str, Any] = {
        "command": "python tests/benchmarks/h200_anchors.py",
        "date": date,
        "gpu": torch.cuda.get_device_name(),
        "driver": subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()[0],
        "torch": torch.__version__,
        "triton": triton.__version__,
        "copy_gbs": copy_gbs(),
        "rows": [],
    }
    for (heads, kv_len, batch), peer_us in PEERS.items():
        row = Row(heads, kv_len, batch)
        floor_us = KERNEL.work(row.point, {})["bytes"] / report["copy_gbs"] / 1e3
        shape = {"heads": heads, "kv_len": kv_len, "batch": batch, "peer_us": peer_us, "floor_us": floor_us}
        report["rows"].append({**shape, **best_of(row)})
    return report


def main() -> None:
    """Measure (or read an earlier run's JSON), print the page, write what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--date", default=datetime.date.today().isoformat(), help="date of the run, default today")
    parser.add_argument("--markdown", type=Path, help="write the table there")
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--from-json", type=Path, help="measure nothing: make the page from an earlier run's figures")
    arguments = parser.parse_args()
    report = json.loads(arguments.from_json.read_text()) if arguments.from_json else measure(arguments.date)
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")
    if arguments.markdown:
        arguments.markdown.write_text(markdown(report))
    print(markdown(report))


if __name__ == "__main__":
    main()
