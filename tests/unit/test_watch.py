"""Throttling by accumulated counters, and what NVML tells, with the counters of a GPU that is not here."""

from __future__ import annotations

from typing import Any

import pytest

from perfplan.measure import nvml
from perfplan.measure.nvml import COUNTERS, POWER_CAP, Counters
from perfplan.measure.watch import ThrottleWatch


class Readings:
    """Counters that grow as they are told to, in place of a GPU's."""

    def __init__(self, *readings: dict[str, float]) -> None:
        self._readings = iter(readings)

    def counters(self) -> Counters:
        return Counters(next(self._readings))


def watch(*readings: dict[str, float]) -> ThrottleWatch:
    return ThrottleWatch(Readings(*readings))  # type: ignore[arg-type]


@pytest.mark.parametrize("reason", [name for name in COUNTERS if name != POWER_CAP])
def test_heat_and_the_power_brake_disturb_a_block(reason: str) -> None:
    quiet = dict.fromkeys(COUNTERS, 5.0)
    watching = watch(quiet, quiet, quiet, {**quiet, reason: 5.1})
    watching.start()
    assert not watching.disturbed()
    watching.start()
    assert watching.disturbed()


def test_the_power_cap_disturbs_nothing_and_its_share_is_kept() -> None:
    watching = watch({POWER_CAP: 1.0}, {POWER_CAP: 1.0 + 1e9})
    watching.start()
    assert not watching.disturbed()
    assert watching.power_capped == 1.0


def test_counters_that_cannot_be_read_disturb_nothing_and_say_so() -> None:
    watching = watch({}, {})
    watching.start()
    assert not watching.disturbed()
    assert watching.power_capped is None


class Library:
    """A library whose every query fails, as on a GPU that does not support it."""

    NVML_CLOCK_SM = NVML_CLOCK_MEM = 1

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


def test_a_card_that_tells_nothing_gives_no_facts_and_no_error() -> None:
    gpu = nvml.Gpu(Library(), None)
    assert (gpu.settings(), gpu.others(), gpu.counters().seconds) == ({}, {}, {})
    assert (gpu.clock(), gpu.peak_bandwidth(), gpu.highest_clock()) == (None, None, None)


def test_without_a_driver_there_is_no_gpu() -> None:
    pytest.importorskip("pynvml")
    if nvml.open_gpu() is not None:
        pytest.skip("there is a GPU here")
    assert nvml.driver_version() == ""
