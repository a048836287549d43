"""The SM clock during a sample: cycles over nanoseconds between two stamps, both taken on the same SM of the device.

NVML's reading is of one moment and late by up to tens of milliseconds; the counters on the device are of the sample itself.
"""

from __future__ import annotations

from typing import Any


class Ticks:
    """Two stamps round a sample. Use `make_ticks`."""

    def __init__(self, first: Any, last: Any, stamps: Any) -> None:
        self._first, self._last = first, last
        self._stamps = stamps

    def begin(self) -> None:
        """Queue the first stamp."""
        self._first.replay()

    def end(self) -> None:
        """Queue the last stamp."""
        self._last.replay()

    def mhz(self) -> float | None:
        """MHz between the stamps, after the device was waited for; None where SM 0 was not met."""
        cycles, nanoseconds, cycles_after, nanoseconds_after = self._stamps.tolist()
        self._stamps.zero_()
        if not cycles or not cycles_after or nanoseconds_after <= nanoseconds:
            return None
        found = (cycles_after - cycles) / (nanoseconds_after - nanoseconds) * 1e3
        return found if 10 < found < 10_000 else None


def make_ticks() -> Ticks | None:
    """Stamps for the current GPU; None where there is no Triton, or it cannot compile them."""
    try:
        import torch

        from perfplan.measure.ticks_triton import stamp

        stamps = torch.zeros(4, dtype=torch.int64, device="cuda")
        ctas = 2 * torch.cuda.get_device_properties().multi_processor_count
        halves = stamps[:2], stamps[2:]
        for half in halves:
            stamp[(ctas,)](half, num_warps=1)
        torch.cuda.synchronize()
        graphs = []
        for half in halves:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                stamp[(ctas,)](half, num_warps=1)
            graphs.append(graph)
        stamps.zero_()
        return Ticks(graphs[0], graphs[1], stamps)
    except Exception:  # no Triton, an interpreter in its place, or a GPU that it does not know
        return None
