"""Drops what heat or a power brake disturbed, and keeps the account of the power cap, which may be the steady state."""

from __future__ import annotations

import time

from perfplan.measure.nvml import POWER_CAP, Counters, Gpu
from perfplan.measure.rounds import Watch

LEAST_SECONDS = 1e-6  # of a counter's growth that counts


class ThrottleWatch(Watch):
    """Reads the accumulated counters round each block."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._before = Counters({})
        self._began = 0.0
        self._capped = self._watched = 0.0
        self._known = False

    def start(self) -> None:
        """A block begins."""
        self._before, self._began = self._gpu.counters(), time.monotonic()

    def disturbed(self) -> bool:
        """Whether a counter other than the power cap's grew during the block."""
        grown = self._gpu.counters().since(self._before)
        self._watched += time.monotonic() - self._began
        self._known = self._known or POWER_CAP in grown
        self._capped += grown.pop(POWER_CAP, 0.0)
        return any(seconds > LEAST_SECONDS for seconds in grown.values())

    @property
    def power_capped(self) -> float | None:
        """Share of the watched time under the power cap; None where it could not be read."""
        return round(min(1.0, self._capped / self._watched), 3) if self._known and self._watched else None
