"""Timers. A sample is one pass over all input sets, `repeats` times, divided by the number of calls in it: seconds a call.

On a GPU a pass is a CUDA graph between two events. A spin kernel goes first, so that the launch of the graph is queued
before the clock starts and its latency is hidden. Where a kernel cannot be captured, plain launches are timed and the
timer's name says so. On a CPU it is a monotonic clock.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from perfplan.measure.kernels import first_line

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


class Pass(Protocol):
    """One arm, ready to be sampled."""

    timer: str
    note: str

    def sample(self) -> float:
        """Seconds a call, over one pass."""


class CpuPass:
    """One arm on the CPU."""

    timer = "perf-counter"
    note = ""

    def __init__(self, calls: Sequence[Call], repeats: int) -> None:
        self._calls = calls
        self._repeats = repeats

    def sample(self) -> float:
        start = time.perf_counter_ns()
        for _ in range(self._repeats):
            for call in self._calls:
                call()
        return (time.perf_counter_ns() - start) * 1e-9 / (self._repeats * len(self._calls))


class GpuPass:
    """One arm on a GPU: a captured graph, or with `capture` False plain launches."""

    def __init__(self, calls: Sequence[Call], repeats: int, capture: bool) -> None:
        import torch

        self._torch = torch
        self._calls = calls  # a graph knows addresses only: the buffers must live as long as it does
        self._count = repeats * len(calls)
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

    def sample(self) -> float:
        start, end = self._events
        self._torch.cuda.synchronize()
        self._torch.cuda._sleep(SPIN_CYCLES)
        start.record()
        self._run()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) * 1e-3 / self._count


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
        start = time.perf_counter()
        for call in calls:
            call()
        settle()
        best = min(best, (time.perf_counter() - start) / len(calls))
    return best


def warm_up(arms: Sequence[Pass], on_gpu: bool) -> None:
    """Sample all arms in turn until clocks and caches have settled: a GPU that waited for a compiler has clocked down."""
    deadline = time.monotonic() + (WARM_UP_SECONDS if on_gpu else 0.0)
    for rounds in range(MOST_WARM_UP_ROUNDS):
        for arm in arms:
            arm.sample()
        if rounds >= 1 and time.monotonic() >= deadline:
            break


def make_passes(arms: Sequence[Sequence[Call]], repeats: int, on_gpu: bool) -> list[Pass]:
    """The arms as something to sample, all with the same timer: where one cannot be captured, none is."""
    if not on_gpu:
        return [CpuPass(calls, repeats) for calls in arms]
    import torch

    try:
        return [GpuPass(calls, repeats, capture=True) for calls in arms]
    except RuntimeError as error:
        if lost_context(error):
            raise
        torch.cuda.synchronize()
        plain: list[Pass] = [GpuPass(calls, repeats, capture=False) for calls in arms]
        reason = str(error).splitlines()[0][:150]
        for each in plain:
            each.note = f"not captured in a CUDA graph, plain launches are timed: {reason}"
        return plain


def lost_context(error: BaseException) -> bool:
    """Whether the CUDA context is lost with this error, and with it the process."""
    first = first_line(error)  # torch's further lines speak of device-side assertions at every error
    return any(words in first for words in LOST_CONTEXT)
