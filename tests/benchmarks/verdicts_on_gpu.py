"""False alarms and misses on a real GPU: perfplan beside `triton.testing.do_bench` twice, interleaved in one sitting.

    python tests/benchmarks/verdicts_on_gpu.py --out verdicts.jsonl          on a machine with a GPU, about 8 minutes
    python tests/benchmarks/verdicts_on_gpu.py --table verdicts.jsonl --write docs/false-alarms.md     anywhere

A/A: the attention kernel against itself. Injected: an arm calls it 50 times, the other 51 or more often, so that the true
effect is known to be +2 %, +4 % or +6 %. Every run has inputs, buffers and captured graphs of its own; perfplan's schedule
and judge are the real ones. The numerics gate and the check for equal code are left out: here the code *is* equal.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # for the kernels

from verdict_on_gpu_tables import write_tables  # noqa: E402

CALLS = 50  # of the kernel in one timed function, where an effect is injected
POINTS = ({"batch": 32, "kv_len": 2048}, {"batch": 80, "kv_len": 2048}, {"batch": 128, "kv_len": 2048})
CONFIG = {"nsplit": 2, "block_h": 64, "block_n": 64, "num_warps": 8}
AT_CALLS = {"batch": 80, "kv_len": 640}  # less work, as it is done fifty times
SEED = 20261201


def kernel_class() -> Any:
    """The attention kernel with `extra` more calls than `calls`, and inputs of its own for each run."""
    from kernels.mla_decode import MlaDecode

    class Repeated(MlaDecode):
        def __init__(self, run: int, calls: int) -> None:
            self.run, self.calls = run, calls

        def inputs(self, point: Mapping[str, Any], seed: int, device: str) -> dict[str, Any]:
            return super().inputs(point, seed + 100 * self.run, device)

        def work(self, point: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, int]:
            return {} if self.calls > 1 else super().work(point, config)

        def prepare(self, point: Any, config: Any, inputs: Any, outputs: Any) -> Callable[[], Any]:
            call, many = super().prepare(point, config, inputs, outputs), self.calls + config["extra"]

            def repeated() -> None:
                for _ in range(many):
                    call()

            return call if many == 1 else repeated

    return Repeated


def subject(run: int, calls: int, extra: int, point: Mapping[str, Any]) -> Any:
    """The kernel at a point with both arms, as perfplan's worker has it."""
    from perfplan.measure.gate import Subject
    from perfplan.models.spec import Numerics

    kernel = kernel_class()(run, calls)
    full = {"heads": 64, "dtype": "bf16", "layout": "contiguous", "page_size": 64, "lengths": "full", **point}
    config = {"num_stages": 2, "backend": "triton", "extra": 0, **CONFIG}
    return Subject(kernel, full, "cuda:0", (config, {**config, "extra": extra}), Numerics(), kernel.tolerance)


def by_perfplan(about: Any, bands: list[str]) -> dict[str, Any]:
    """What perfplan says of the candidate for each band: its schedule, its judge."""
    import torch

    from perfplan.judge import judge, target_half_width
    from perfplan.measure import rounds
    from perfplan.measure.timed import Timed
    from perfplan.models.band import Band
    from perfplan.models.record import Arm, Cell
    from perfplan.models.spec import Measure, Spec

    measure, llc = Measure(), torch.cuda.get_device_properties().L2_cache_size
    begin = time.perf_counter()
    timed = Timed(about, measure, llc, sys.maxsize, alone=True)
    band = Band.model_validate(bands[0])
    station = rounds.Station(
        point=about.point, arms=timed.arms(), measure=measure, half_width=target_half_width(band, measure.half_width),
        tell=lambda progress: None, renew=timed.renew, lead=True,
    )  # fmt: skip
    for each in rounds.schedule([station]):
        each.visit()
    wall = time.perf_counter() - begin
    baseline, candidate = ([each.value for each in side] for side in (station.pairs.baseline, station.pairs.candidate))
    cell = Cell(
        point=about.point, role="observed", baseline=Arm(config={"arm": 1}, samples=baseline),
        candidate=Arm(config={"arm": 2}, samples=candidate), **station.cell_fields(),
    )  # fmt: skip
    said = {}
    for change in bands:
        spec = Spec.model_validate(
            {
                "campaign": "c", "title": "t", "lever": "l", "kernel": {"entry": "k.py:K", "candidate": {"extra": 1}},
                "hypothesis": {"claim": "c", "because": "b", "predicts": {"change": change}},
            }
        )  # fmt: skip
        judged = judge(spec, [cell], "cuda").cells[0]
        said[change] = judged.verdict.outcome if judged.validity.valid else "invalid"
    effect, cycles = cell.effect, cell.cycles
    assert effect is not None
    return {
        "said": said, "effect": effect.estimate, "low": effect.low, "high": effect.high, "pairs": effect.pairs,
        "floor": cell.floor.estimate if cell.floor else None, "cycles": cycles.estimate if cycles else None,
        "seconds": station.seconds, "wall": wall, "microseconds": statistics.median(baseline) * 1e6,
    }  # fmt: skip


def by_do_bench(about: Any) -> dict[str, Any]:
    """The usual way: do_bench of one arm, then of the other, with its defaults; the change of its mean and its median."""
    from triton.testing import do_bench

    from perfplan.measure import buffers

    inputs = about.inputs(0)
    outputs = buffers.tensors(buffers.allocate(about.kernel, about.point, about.device))
    calls = [about.kernel.prepare(about.point, config, inputs, outputs) for config in about.arms]
    for call in calls:
        call()
    begin = time.perf_counter()
    first, second = (do_bench(call, return_mode="all") for call in calls)
    seconds = time.perf_counter() - begin
    return {
        "mean": statistics.fmean(second) / statistics.fmean(first) - 1,
        "median": statistics.median(second) / statistics.median(first) - 1,
        "seconds": seconds,
    }


def jobs(same: int, injected: int) -> list[tuple[int, int, Mapping[str, Any]]]:
    """(calls, extra, point) of every run, in changing order."""
    runs = [(1, 0, POINTS[i % len(POINTS)]) for i in range(same)]
    runs += [(CALLS, extra, AT_CALLS) for extra in (1, 2, 3) for _ in range(injected if extra == 1 else injected // 2)]
    random.Random(SEED).shuffle(runs)
    return runs


def sitting(same: int, injected: int, seconds: float) -> Iterator[dict[str, Any]]:
    """Every run by both ways, in an order that changes from run to run; ends early after `seconds`."""
    import torch
    import triton

    order, end = random.Random(SEED + 1), time.monotonic() + seconds
    card = torch.cuda.get_device_properties()
    yield {"device": card.name, "torch": torch.__version__, "triton": triton.__version__}
    for run, (calls, extra, point) in enumerate(jobs(same, injected)):
        if time.monotonic() > end:
            return
        about = subject(run, calls, extra, point)
        truth = extra / calls
        bands = (
            ["[-3%, -1%]", "within 1%", "<= 0%"]
            if not extra
            else [f"[{truth - 0.01:+.0%}, {truth + 0.01:+.0%}]", ">= 0%"]
        )
        ways: list[tuple[str, Callable[[], dict[str, Any]]]] = [
            ("perfplan", lambda about=about, bands=bands: by_perfplan(about, bands)),  # type: ignore[misc]
            ("do_bench", lambda about=about: by_do_bench(about)),  # type: ignore[misc]
        ]
        order.shuffle(ways)
        row: dict[str, Any] = {"run": run, "truth": truth, "calls": calls, "point": dict(point)}
        for name, way in ways:
            row[name] = way()
            torch.cuda.empty_cache()
        yield row


def main() -> None:
    """Measure, or make the tables of what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, metavar="FILE", help="measure, and write one JSON line a run")
    parser.add_argument("--same", type=int, default=120, help="A/A runs")
    parser.add_argument("--injected", type=int, default=40, help="runs at +2%%; half as many at +4%% and +6%%")
    parser.add_argument("--seconds", type=float, default=540, help="stop after so long")
    parser.add_argument("--table", type=Path, metavar="FILE", help="print the tables of a sitting")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="and put them into this page")
    arguments = parser.parse_args()
    if arguments.out:
        with arguments.out.open("w") as file:
            for row in sitting(arguments.same, arguments.injected, arguments.seconds):
                file.write(json.dumps(row) + "\n")
                file.flush()
    if arguments.table:
        write_tables(arguments.table, arguments.write)


if __name__ == "__main__":
    main()
