"""Timers. A sample is one pass over all input sets, `repeats` times, divided by the number of calls in it: seconds a call.

On a GPU a pass is a CUDA graph between two events. A spin kernel goes first, so that the launch of the graph is queued
before the clock starts and its latency is hidden. Where a kernel cannot be captured, plain launches are timed and the
timer's name says so. On a CPU it is a monotonic clock.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, Protocol

from perfplan.measure.kernels import first_line
from perfplan.measure.ticks import Ticks, make_ticks

Call = Callable[[], Any]
CPU_SAMPLE_SECONDS = 5e-3
GPU_SAMPLE_SECONDS = 1e-3
LOST_CONTEXT = (
    "illegal memory access",
    "device-side assert",
    "unspecified launch failure",
    "misaligned address",
    "illegal instruction",
)
MOST_REPEATS = 10_000
WARM_UP_SECONDS = 0.1  # on a GPU
MOST_WARM_UP_ROUNDS = 1_000
SPIN_CYCLES = 400_000  # about 0.2 ms: longer than the launch of a graph takes
STRAY_SHARE = 0.05  # of the time on the stream that the device may work on after it
STRAY_SECONDS = 50e-6  # what waiting for the device costs at the most


# Bound before a kernel is loaded, so that one that patches the time module or torch's events does not set its own clock.
_now_ns = time.perf_counter_ns
_now = time.perf_counter
_monotonic = time.monotonic


@dataclass(frozen=True)
class Reading:
    """One sample: the metric (seconds a call, for a kernel), and MHz of the SMs meanwhile where it could be read."""

    value: float
    mhz: float | None = None


class Pass(Protocol):
    """One arm, ready to be sampled."""

    timer: str
    note: str

    def sample(self) -> Reading:
        """Seconds a call, over one pass."""

    def once(self) -> float:
        """Seconds a call, going over the sets only once."""


class CpuPass:
    """One arm on the CPU."""

    timer = "perf-counter"
    note = ""

    def __init__(self, calls: Sequence[Call], repeats: int) -> None:
        self._calls = calls
        self._repeats = repeats

    def sample(self) -> Reading:
        return Reading(self._seconds(self._repeats))

    def once(self) -> float:
        return self._seconds(1)

    def _seconds(self, repeats: int) -> float:
        start = _now_ns()
        for _ in range(repeats):
            for call in self._calls:
                call()
        return max(1, _now_ns() - start) * 1e-9 / (repeats * len(self._calls))


class GpuPass:
    """One arm on a GPU: a captured graph, or with `capture` False plain launches."""

    def __init__(self, calls: Sequence[Call], repeats: int, capture: bool, ticks: Ticks | None = None) -> None:
        import torch

        self._torch = torch
        self._calls = calls  # a graph knows addresses only: the buffers must live as long as it does
        self._count = repeats * len(calls)
        self._ticks = ticks
        self.timer, self.note = ("cuda-graph", "") if capture else ("cuda-events", "")
        self._run: Call = (
            self._capture(calls, repeats) if capture else lambda: [call() for _ in range(repeats) for call in calls]
        )
        self._events = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)

    def _capture(self, calls: Sequence[Call], repeats: int) -> Call:
        torch = self._torch
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):  # first calls may compile or allocate; not inside a capture
            for call in calls:
                call()
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(repeats):
                for call in calls:
                    call()
        torch.cuda.synchronize()
        replay: Call = graph.replay
        return replay

    def sample(self) -> Reading:
        ticks = self._ticks
        seconds = self._timed(self._run, ticks) / self._count
        return Reading(seconds, ticks.mhz() if ticks else None)

    def once(self) -> float:
        return self._timed(lambda: [call() for call in self._calls], None) / len(self._calls)

    def _timed(self, run: Call, ticks: Ticks | None) -> float:
        start, end = self._events
        cuda = _events()
        cuda.synchronize()
        cuda.sleep(SPIN_CYCLES)
        if ticks:
            ticks.begin()
        cuda.record(start)
        run()
        cuda.record(end)
        if ticks:
            ticks.end()
        cuda.synchronize()
        return max(1e-9, float(cuda.elapsed(start, end)) * 1e-3)

    def stray(self) -> tuple[float, float]:
        """Seconds of one pass of plain calls on the current stream, and how long the device works on after its end."""
        cuda = _events()
        start, end = self._events
        cuda.synchronize()
        cuda.sleep(SPIN_CYCLES)
        cuda.record(start)
        for call in self._calls:
            call()
        cuda.record(end)
        cuda.wait(end)
        ended = _now()
        cuda.synchronize()
        return float(cuda.elapsed(start, end)) * 1e-3, _now() - ended


class CudaFunctions(NamedTuple):
    """torch's functions that a timer stands on, bound before any kernel of the user's is loaded."""

    synchronize: Callable[[], None]
    sleep: Callable[[int], None]
    record: Callable[[Any], None]
    elapsed: Callable[[Any, Any], float]
    wait: Callable[[Any], None]


@cache
def _events() -> CudaFunctions:
    import torch

    event = torch.cuda.Event
    return CudaFunctions(torch.cuda.synchronize, torch.cuda._sleep, event.record, event.elapsed_time, event.synchronize)


def bind() -> None:
    """Bind torch's timing functions now; called before a kernel is loaded."""
    _events()


def stray_work(arm: Pass) -> str:
    """Whether work of an arm goes on after the timed stream is done: how, or empty. The least of three tries counts."""
    if not isinstance(arm, GpuPass):
        return ""
    tries = [arm.stray() for _ in range(3)]
    on_stream, after = min(each[0] for each in tries), min(each[1] for each in tries)
    if after > max(STRAY_SHARE * on_stream, STRAY_SECONDS):
        return (
            f"the device worked on for {after * 1e6:.0f} us after the timed stream was done ({on_stream * 1e6:.0f} us)"
        )
    return ""


def repeats_for(seconds_a_call: float, sets: int, on_gpu: bool) -> int:
    """How often a pass goes over the sets so that a sample is long against the timer's resolution."""
    wanted = GPU_SAMPLE_SECONDS if on_gpu else CPU_SAMPLE_SECONDS
    return max(1, min(MOST_REPEATS, math.ceil(wanted / max(seconds_a_call * sets, 1e-9))))


def rough_seconds(calls: Sequence[Call], on_gpu: bool) -> float:
    """Seconds a call, roughly, after a first call that compiles and warms up."""
    import torch

    def settle() -> None:
        if on_gpu:
            torch.cuda.synchronize()

    for call in calls:
        call()
    settle()
    best = math.inf
    for _ in range(3):
        start = _now()
        for call in calls:
            call()
        settle()
        best = min(best, (_now() - start) / len(calls))
    return best


def warm_up(arms: Sequence[Pass], on_gpu: bool) -> None:
    """Sample all arms in turn until clocks and caches have settled: a GPU that waited for a compiler has clocked down."""
    deadline = _monotonic() + (WARM_UP_SECONDS if on_gpu else 0.0)
    for rounds in range(MOST_WARM_UP_ROUNDS):
        for arm in arms:
            arm.sample()
        if rounds >= 1 and _monotonic() >= deadline:
            break


def make_passes(arms: Sequence[Sequence[Call]], repeats: int, on_gpu: bool) -> list[Pass]:
    """The arms as something to sample, all with the same timer: where one cannot be captured, none is."""
    if not on_gpu:
        return [CpuPass(calls, repeats) for calls in arms]
    import torch

    ticks = make_ticks()
    try:
        return [GpuPass(calls, repeats, capture=True, ticks=ticks) for calls in arms]
    except RuntimeError as error:
        if lost_context(error):
            raise
        torch.cuda.synchronize()
        plain: list[Pass] = [GpuPass(calls, repeats, capture=False, ticks=ticks) for calls in arms]
        reason = str(error).splitlines()[0][:150]
        for each in plain:
            each.note = f"not captured in a CUDA graph, plain launches are timed: {reason}"
        return plain


def no_op(on_gpu: bool) -> Call:
    """The least that a timed call can do: nothing on a CPU, one tiny kernel on a GPU."""
    if not on_gpu:
        return lambda: None
    import torch

    call: Call = torch.zeros(1, device="cuda").zero_
    return call


def lost_context(error: BaseException) -> bool:
    """Whether the CUDA context is lost with this error, and with it the process."""
    first = first_line(error)  # torch's further lines speak of device-side assertions at every error
    return any(words in first for words in LOST_CONTEXT)
