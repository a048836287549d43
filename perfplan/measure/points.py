"""The operating points of a job, in the worker: numerics of each, then rounds of timing over all, then what must hold after.

Every failure becomes a cell with a reason; the other points go on.
"""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from perfplan.measure import bounds, clock, gate, launches, rounds, tuned
from perfplan.measure.gate import Subject
from perfplan.measure.job import Job, PointFailed, Progress
from perfplan.measure.kernels import describe_error, first_line
from perfplan.measure.nvml import Gpu
from perfplan.measure.timed import BASELINE, CANDIDATE, NoRoom, Timed
from perfplan.measure.watch import ThrottleWatch
from perfplan.models.base import Config, Point
from perfplan.models.record import Arm, Cell, Device, Validity

CPU_MEMORY_BUDGET = 1 << 30  # bytes of input sets on a CPU
GPU_MEMORY_SHARE = 0.5  # of the free device memory


@dataclass
class Bench:
    """What stays the same over the points of a job."""

    kernel: Any
    job: Job
    device: Device
    device_name: str
    tell: Callable[[Progress], None]
    looked: Callable[[], None]  # called after each load of code, so that sources are noted
    at: Callable[[int], None]  # called before anything is done at a point: if the process dies, it was there
    gpu: Gpu | None = None
    peak: bounds.Peak = field(default_factory=lambda: bounds.Peak(None, None))

    @property
    def on_gpu(self) -> bool:
        return self.device_name != "cpu"

    @property
    def llc_bytes(self) -> int | None:
        """Size of the last-level cache: the spec's word before the device's."""
        return self.job.measure.llc_bytes or self.device.llc_bytes


@dataclass
class Gated:
    """A point whose numerics are right: the cell so far."""

    index: int
    subject: Subject
    cell: Cell
    errors: tuple[float, float]


@dataclass
class Ready:
    """A point that is prepared for timing."""

    gated: Gated
    timed: Timed
    station: rounds.Station
    watch: ThrottleWatch | None


def measure_points(bench: Bench, only: Sequence[int]) -> Iterator[tuple[int, Cell]]:
    """The cells of the points `only`, as they are done. Raises only for what the process does not survive."""
    waiting: list[Gated] = []
    for index in only:
        found = _guarded(bench, index, partial(_gate, bench, index))
        if isinstance(found, Cell):
            yield index, found
        else:
            waiting.append(found)
    while waiting:
        yield from _measure_group(bench, waiting)
        if bench.on_gpu:
            sys.modules["torch"].cuda.empty_cache()


def _measure_group(bench: Bench, waiting: list[Gated]) -> Iterator[tuple[int, Cell]]:
    """Time as many of the waiting points together as fit into memory; they leave the list."""
    group: list[Ready] = []
    budget = _budget(bench)
    while waiting:
        gated = waiting[0]
        try:
            ready = _guarded(bench, gated.index, partial(_ready, bench, gated, budget, not group))
        except NoRoom:
            break
        waiting.pop(0)
        if isinstance(ready, Cell):
            yield gated.index, ready
            continue
        budget -= ready.timed.stored
        group.append(ready)
    before = tuned.choices()
    failed = dict(_sample(bench, group))
    frozen = tuned.choices() == before
    for ready in group:
        index = ready.gated.index
        finish = partial(_finish, bench, ready, before, frozen)
        yield index, failed.get(index) or _guarded(bench, index, finish)


def _sample(bench: Bench, group: Sequence[Ready]) -> Iterator[tuple[int, Cell]]:
    """Visit the group's points round after round; gives those that failed."""
    index_of = {id(ready.station): ready.gated.index for ready in group}
    for station in rounds.schedule([ready.station for ready in group]):
        found = _guarded(bench, index_of[id(station)], station.visit)
        if isinstance(found, Cell):
            station.done = True
            yield index_of[id(station)], found


def _guarded(bench: Bench, index: int, step: Callable[[], Any]) -> Any:
    """What the step gives; a cell with the reason where it failed. Raises for a lost CUDA context."""
    bench.at(index)
    try:
        return step()
    except NoRoom:
        raise
    except PointFailed as failure:
        reason, detail = failure.reason, failure.detail
    except Exception as error:
        if clock.lost_context(error):
            raise
        reason, detail = _explain(error, Path(bench.job.root))
    validity = Validity(valid=False, reason=reason, detail=detail)
    return Cell(point=bench.job.points[index], role="observed", validity=validity)


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


def _gate(bench: Bench, index: int) -> Gated:
    point, job = bench.job.points[index], bench.job
    bench.tell(Progress(point=point, stage="numerics"))
    arms = _resolve(bench, point, job.baseline), _resolve(bench, point, job.candidate)
    assert job.max_rel_error is not None
    subject = Subject(bench.kernel, point, bench.device_name, arms, job.numerics, job.max_rel_error)
    passed = gate.check(subject, bench.looked)
    if os.environ.get("TRITON_INTERPRET") == "1" and "triton" in sys.modules:
        raise PointFailed(
            "no-performance", "Triton's interpreter is on (TRITON_INTERPRET=1): numerics passed, nothing was timed"
        )
    work = _optional(bench.kernel, "work", point, arms[0]) or {}
    notes = ["both arms resolve to the same configuration"] if arms[0] == arms[1] else []
    cell = Cell(
        point=point, role="observed", bytes=work.get("bytes"), flops=work.get("flops"), notes=notes, gate=passed.report
    )
    return Gated(index, subject, cell, passed.errors)


def _ready(bench: Bench, gated: Gated, budget: int, alone: bool) -> Ready:
    measure = bench.job.measure
    bench.tell(Progress(point=gated.subject.point, stage="preparing"))
    timed = Timed(gated.subject, measure, bench.llc_bytes, budget, alone=alone)
    arms = timed.arms()
    watch = ThrottleWatch(bench.gpu) if bench.gpu else None
    station = rounds.Station(
        point=gated.subject.point,
        arms=arms.isolated() if measure.design == "isolated" else arms,
        measure=measure,
        half_width=bench.job.half_widths[gated.index],
        tell=bench.tell,
        watch=watch or rounds.Watch(),
        renew=timed.renew,
        lead=True,
    )
    return Ready(gated, timed, station, watch)


def _finish(bench: Bench, ready: Ready, chosen: dict[str, str], frozen: bool) -> Cell:
    """What must hold after the timing, then the cell. `chosen`: autotuned configurations; `frozen`: they stayed."""
    gated, timed, pairs = ready.gated, ready.timed, ready.station.pairs
    bench.tell(Progress(point=gated.subject.point, stage="recheck"))
    if not frozen:
        raise PointFailed("tuned-while-timed", "an autotuner chose a configuration inside the timed section")
    fields = ready.station.cell_fields()
    samples = {BASELINE: [each.value for each in pairs.baseline], CANDIDATE: [each.value for each in pairs.candidate]}
    _expect_possible(bench, ready, samples)
    checked = timed.expect_sound()
    arms = [
        _arm(bench, ready, arm, readings).model_copy(update={"tuned": chosen})
        for arm, readings in ((BASELINE, pairs.baseline), (CANDIDATE, pairs.candidate))
    ]
    update = {
        **fields,
        "baseline": arms[0],
        "candidate": arms[1],
        "same_code": arms[0].code == arms[1].code if arms[0].code and arms[1].code else None,
        "power_capped": ready.watch.power_capped if ready.watch else None,
        "timer_floor": timed.timer_floor,
        "cache": timed.cache,
        "timer": timed.timer,
        "notes": [*gated.cell.notes, *timed.notes],
        "gate": gated.cell.gate.model_copy(update={"rechecked": checked}),
    }
    return gated.cell.model_copy(update=update)


def _expect_possible(bench: Bench, ready: Ready, samples: Mapping[int, list[float]]) -> None:
    cell = ready.gated.cell
    cold = ready.timed.cache.mode == "cold"
    for arm, name in ((BASELINE, "baseline"), (CANDIDATE, "candidate")):
        why = bounds.impossible(statistics.median(samples[arm]), cell.bytes, cell.flops, bench.peak, cold=cold)
        if why:
            raise PointFailed("impossible-time", f"{name}: {why}")


def _arm(bench: Bench, ready: Ready, arm: int, readings: Sequence[clock.Reading]) -> Arm:
    subject, config = ready.gated.subject, ready.gated.subject.arms[arm]
    values = [each.value for each in readings]
    read = launches.read_launches(ready.timed.calls[arm][0]) if bench.on_gpu else []
    return Arm(
        config=config,
        median=statistics.median(values),
        samples=values,
        clocks=[round(each.mhz) for each in readings if each.mhz],
        error=ready.gated.errors[arm],
        grid=_optional(bench.kernel, "grid", subject.point, config, facts(bench.device)),
        launches=read,
        code=launches.code_of(read),
    )


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


def _budget(bench: Bench) -> int:
    if not bench.on_gpu:
        return CPU_MEMORY_BUDGET
    return int(sys.modules["torch"].cuda.mem_get_info()[0] * GPU_MEMORY_SHARE)
