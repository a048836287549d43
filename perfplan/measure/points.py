"""One operating point of a kernel, in the worker: resolve, numerics, A/A, ABBA. Every failure becomes a cell with a reason."""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfplan.measure import clock, numerics, rotation, rounds
from perfplan.measure.job import Job, PointFailed, Progress
from perfplan.measure.kernels import describe_error, first_line
from perfplan.models.base import Config, Point
from perfplan.models.record import Arm, Cache, Cell, Device, Validity

CPU_MEMORY_BUDGET = 1 << 30  # bytes of input sets on a CPU
GPU_MEMORY_SHARE = 0.5  # of the free device memory
GATE_SEED = 1_000  # seeds of the numerics gate; those of the timed sets start at 0


@dataclass
class Bench:
    """What stays the same over the points of a job."""

    kernel: Any
    job: Job
    device: Device
    device_name: str
    tell: Callable[[Progress], None]
    looked: Callable[[], None]  # called after each load of code, so that sources are noted

    @property
    def on_gpu(self) -> bool:
        return self.device_name != "cpu"


def measure_point(bench: Bench, index: int) -> Cell:
    """The cell of point `index`. Raises only for what the process does not survive (sticky CUDA errors)."""
    point = bench.job.points[index]
    cell = Cell(point=point, role="observed")
    try:
        return _measure(bench, point, bench.job.half_widths[index], cell)
    except PointFailed as failure:
        reason, detail = failure.reason, failure.detail
    except Exception as error:
        if clock.lost_context(error):
            raise
        reason, detail = _explain(error, Path(bench.job.root))
    return cell.model_copy(update={"validity": Validity(valid=False, reason=reason, detail=detail)})


def _explain(error: Exception, root: Path) -> tuple[Any, str]:
    name = type(error).__name__
    if name == "OutOfResources":  # Triton's; its fields have kept their names since 3.0
        required, limit, what = (getattr(error, field, None) for field in ("required", "limit", "name"))
        if isinstance(required, int) and isinstance(limit, int):
            unit = " bytes" if "memory" in str(what) else ""
            return "out-of-resources", f"{what}: needs {required:,}{unit}, the device has {limit:,}"
        return "out-of-resources", first_line(error)
    if name == "OutOfMemoryError" or isinstance(error, MemoryError) or "can't allocate memory" in first_line(error):
        return "out-of-memory", first_line(error) or name
    return "bad-kernel", describe_error(error, root)


def _measure(bench: Bench, point: Point, half_width: float, cell: Cell) -> Cell:
    bench.tell(Progress(point=point, stage="numerics"))
    arms = [_resolve(bench, point, config) for config in (bench.job.baseline, bench.job.candidate)]
    work = _optional(bench.kernel, "work", point, arms[0]) or {}
    notes = ["both arms resolve to the same configuration"] if arms[0] == arms[1] else []
    cell = cell.model_copy(update={"bytes": work.get("bytes"), "flops": work.get("flops"), "notes": notes})
    errors = _gate(bench, point, arms)
    if os.environ.get("TRITON_INTERPRET") == "1" and "triton" in sys.modules:
        raise PointFailed(
            "no-performance", "Triton's interpreter is on (TRITON_INTERPRET=1): numerics passed, nothing was timed"
        )
    timed = _Timed(bench, point, arms, work)
    sampled = rounds.sample_point(point, timed.arms, bench.job.measure, half_width, bench.tell)
    return cell.model_copy(
        update={
            **sampled.cell_fields(),
            "baseline": _arm(bench, point, arms[0], sampled.pairs.baseline, errors[0]),
            "candidate": _arm(bench, point, arms[1], sampled.pairs.candidate, errors[1]),
            "cache": timed.cache,
            "timer": timed.timer,
            "notes": [*notes, *timed.notes],
        }
    )


def _arm(bench: Bench, point: Point, config: Config, samples: list[float], error: float) -> Arm:
    grid = _optional(bench.kernel, "grid", point, config, facts(bench.device))
    return Arm(config=config, median=statistics.median(samples), samples=samples, error=error, grid=grid)


def facts(device: Device) -> dict[str, Any]:
    """What a kernel's resolve and grid are told of the device."""
    return {
        "kind": device.kind,
        "name": device.name,
        "arch": device.arch,
        "sm_count": device.sm_count,
        "shared_memory_per_cta": device.shared_memory_per_cta,
    }


def _optional(kernel: Any, name: str, *arguments: Any) -> Any:
    method = getattr(kernel, name, None)
    return method(*arguments) if callable(method) else None


def _resolve(bench: Bench, point: Point, config: Config) -> Config:
    resolved = _optional(bench.kernel, "resolve", point, dict(config), facts(bench.device))
    if resolved is None:
        return dict(config)
    if not isinstance(resolved, Mapping):
        raise PointFailed("bad-kernel", f"resolve() must give knob -> value, not {type(resolved).__name__}")
    return {**config, **resolved}


def _gate(bench: Bench, point: Point, arms: list[Config]) -> list[float]:
    """Errors of both arms over all seeds, or PointFailed for the first arm above the tolerance."""
    worst = [0.0, 0.0]
    tolerance = bench.job.max_rel_error
    assert tolerance is not None
    for seed in range(bench.job.seeds):
        inputs = bench.kernel.inputs(point, GATE_SEED + seed, bench.device_name)
        expected = numerics.reference(bench.kernel, point, inputs)
        for arm, name in ((0, "baseline"), (1, "candidate")):
            try:
                error = numerics.check_arm(bench.kernel, point, arms[arm], inputs, expected, bench.device_name)
            except PointFailed as failure:
                raise PointFailed(failure.reason, f"{name}: {failure.detail}") from None
            if not error <= tolerance:
                raise PointFailed("numerics", f"{name}: relative error {error:.3g} is above {tolerance:g}")
            worst[arm] = max(worst[arm], error)
        bench.looked()
    return worst


class _Timed:
    """Both arms and the baseline once more, prepared over the same rotating input sets."""

    def __init__(self, bench: Bench, point: Point, arms: list[Config], work: Mapping[str, int]) -> None:
        kernel, device = bench.kernel, bench.device_name
        first = kernel.inputs(point, 0, device)
        outputs = numerics.allocate(kernel, point, device)
        stored = _bytes(first) + _bytes(outputs)
        touched = min(stored, work["bytes"]) if work.get("bytes") else stored
        mode = bench.job.measure.cache
        count = rotation.sets_needed(
            touched, stored + 2 * _bytes(outputs), bench.device.llc_bytes, _budget(bench), mode
        )
        self.cache: Cache = rotation.cache_state(count, touched, bench.device.llc_bytes, mode)
        sets = [first, *(kernel.inputs(point, seed, device) for seed in range(1, count))]

        def calls(config: Config) -> list[clock.Call]:
            return [kernel.prepare(point, config, each, numerics.allocate(kernel, point, device)) for each in sets]

        prepared = [calls(config) for config in (arms[0], arms[1], arms[0])]
        seconds = max(clock.rough_seconds(each, bench.on_gpu) for each in prepared[:2])
        repeats = clock.repeats_for(seconds, count, bench.on_gpu)
        passes = clock.make_passes(prepared, repeats, bench.on_gpu)
        clock.warm_up(passes, bench.on_gpu)
        self.arms = rounds.Arms(*(each.sample for each in passes))
        self.timer = passes[0].timer
        self.notes = sorted({each.note for each in passes if each.note})


def _bytes(tensors: Mapping[str, Any]) -> int:
    return sum(int(t.untyped_storage().nbytes()) for t in tensors.values() if hasattr(t, "untyped_storage"))


def _budget(bench: Bench) -> int:
    if not bench.on_gpu:
        return CPU_MEMORY_BUDGET
    import torch

    return int(torch.cuda.mem_get_info()[0] * GPU_MEMORY_SHARE)
