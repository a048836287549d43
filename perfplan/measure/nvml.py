"""What NVML tells of a GPU: its settings for the record, and the counters that say whether a sample was disturbed.

Instantaneous flags miss short events; the driver's accumulated counters do not. Reads only, never sets anything.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import Any

# reason -> NVML field value: nanoseconds spent under it since the driver was loaded (nvml.h, NVML_FI_DEV_*)
POWER_CAP = "power-cap"
COUNTERS = {POWER_CAP: 74, "software thermal": 269, "hardware thermal": 270, "power brake": 271}
SETTLED_REASONS = {0x2: "application clocks", 0x10: "sync boost", 0x100: "display clocks"}  # a policy, not an event


@dataclass(frozen=True)
class Counters:
    """Seconds spent under each reason so far; a reason that could not be read is absent."""

    seconds: dict[str, float]

    def since(self, earlier: Counters) -> dict[str, float]:
        """Seconds under each reason between two readings."""
        return {name: value - earlier.seconds[name] for name, value in self.seconds.items() if name in earlier.seconds}


class Gpu:
    """One GPU, by UUID or index. Use `open_gpu`."""

    def __init__(self, library: Any, handle: Any) -> None:
        self._nvml = library
        self._handle = handle

    def counters(self) -> Counters:
        """The accumulated counters of slow-down reasons."""
        found: dict[str, float] = {}
        with contextlib.suppress(Exception):
            values = self._nvml.nvmlDeviceGetFieldValues(self._handle, list(COUNTERS.values()))
            for name, value in zip(COUNTERS, values, strict=True):
                if value.nvmlReturn == 0:
                    found[name] = int(value.value.ullVal) * 1e-9
        return Counters(found)

    def clock(self) -> int | None:
        """MHz of the SMs now."""
        found = self._ask("nvmlDeviceGetClockInfo", self._nvml.NVML_CLOCK_SM)
        return int(found) if found else None

    def peak_bandwidth(self) -> float | None:
        """Bytes a second that the memory bus can carry: 2 transfers x highest clock x width."""
        clock = self._ask("nvmlDeviceGetMaxClockInfo", self._nvml.NVML_CLOCK_MEM)
        width = self._ask("nvmlDeviceGetMemoryBusWidth")
        return 2e6 * clock * width / 8 if clock and width else None

    def highest_clock(self) -> float | None:
        """Hz of the SMs at the most."""
        found = self._ask("nvmlDeviceGetMaxClockInfo", self._nvml.NVML_CLOCK_SM)
        return float(found) * 1e6 if found else None

    def others(self) -> dict[str, Any]:
        """Other processes on the GPU; and, asked before this process used it, the memory in use."""
        found: dict[str, Any] = {}
        processes = self._ask("nvmlDeviceGetComputeRunningProcesses")
        if processes is not None:
            found["other_processes"] = sum(each.pid != os.getpid() for each in processes)
        memory = self._ask("nvmlDeviceGetMemoryInfo")
        if memory is not None:
            found["memory_used_before"] = int(memory.used)
        return found

    def settings(self) -> dict[str, Any]:
        """Facts that can turn a verdict: power limit, clocks policy, ECC, MIG, VBIOS. What cannot be read is left out."""
        nvml = self._nvml
        power = self._ask("nvmlDeviceGetPowerManagementLimit")
        usual = self._ask("nvmlDeviceGetPowerManagementDefaultLimit")
        ecc, mig = self._ask("nvmlDeviceGetEccMode"), self._ask("nvmlDeviceGetMigMode")
        reasons = self._ask("nvmlDeviceGetCurrentClocksEventReasons")
        persistence = self._ask("nvmlDeviceGetPersistenceMode")
        facts = {
            "vbios": self._ask("nvmlDeviceGetVbiosVersion"),
            "power_limit_w": power / 1000 if power else None,
            "power_limit_default_w": usual / 1000 if usual else None,
            "clock_sm_max_mhz": self._ask("nvmlDeviceGetMaxClockInfo", nvml.NVML_CLOCK_SM),
            "clock_memory_max_mhz": self._ask("nvmlDeviceGetMaxClockInfo", nvml.NVML_CLOCK_MEM),
            "clocks_policy": None if reasons is None else _policy(reasons),
            "ecc": None if ecc is None else bool(ecc[0]),
            "mig": None if mig is None else bool(mig[0]),
            "persistence": None if persistence is None else bool(persistence),
        }
        return {name: value for name, value in facts.items() if value is not None}

    def _ask(self, query: str, *arguments: Any) -> Any:
        """The answer, or None where this GPU, driver or library has none."""
        try:
            answer = getattr(self._nvml, query)(self._handle, *arguments)
        except Exception:  # NVMLError, or a query that this version of the library lacks
            return None
        return answer.decode() if isinstance(answer, bytes) else answer


def open_gpu(uuid: str = "", index: int = 0) -> Gpu | None:
    """The GPU of this UUID (or NVML index); None where NVML cannot be used."""
    try:
        import pynvml

        pynvml.nvmlInit()
        return Gpu(pynvml, pynvml.nvmlDeviceGetHandleByUUID(uuid) if uuid else pynvml.nvmlDeviceGetHandleByIndex(index))
    except Exception:  # not installed, no driver, or a device that it does not know
        return None


def driver_version() -> str:
    """Version of the driver, empty where NVML cannot be used."""
    try:
        import pynvml

        pynvml.nvmlInit()
        answer: Any = pynvml.nvmlSystemGetDriverVersion()
    except Exception:  # not installed, or broken in ways of its own; the record then lacks the driver
        return ""
    return answer.decode() if isinstance(answer, bytes) else str(answer)


def _policy(reasons: int) -> str:
    held = [words for bit, words in SETTLED_REASONS.items() if reasons & bit]
    return ", ".join(held) or "default"
