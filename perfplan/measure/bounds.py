"""What no device can do: a time below the time that the bytes or the arithmetic need at the device's peak. Pure arithmetic."""

from __future__ import annotations

from dataclasses import dataclass

# Dense floating-point operations that an SM can start in a clock, in the narrowest type it multiplies, rounded up. From the
# whitepapers: A100 int8 624 TOPS / 108 SMs / 1.41 GHz = 4,096; H100 fp8 1,979 TFLOPS / 132 / 1.83 = 8,192; B200 fp4
# 10 PFLOPS / 148 / 1.96 = 34,500; B300 fp4 15 PFLOPS / 160 / 1.92 = 48,800; RTX PRO 6000 fp4 2 PFLOPS / 188 / 2.6 = 4,100.
FLOPS_A_CLOCK = {
    "80": 4096,
    "86": 4096,
    "87": 4096,
    "89": 4096,
    "90": 8192,
    "100": 40960,
    "103": 53248,
    "120": 8192,
    "121": 8192,
}
# No processor does more: 2,048 operations a core and clock (AMX in bfloat16) at 6 GHz, 2 TB/s from memory.
CPU_FLOPS_A_CORE = 2048 * 6e9
CPU_BANDWIDTH = 2e12
SLACK = 0.95  # counters and clocks are rounded


@dataclass(frozen=True)
class Peak:
    """Bytes and floating-point operations a second, at the very most; None where it is not known."""

    bandwidth: float | None
    flops: float | None


def gpu_peak(arch: str, sm_count: int | None, highest_clock: float | None, bandwidth: float | None) -> Peak:
    """Peak of a GPU from its architecture (`sm90`), SMs, highest SM clock (Hz) and bus bandwidth (bytes/s)."""
    a_clock = FLOPS_A_CLOCK.get(arch.removeprefix("sm"))
    flops = a_clock * sm_count * highest_clock if a_clock and sm_count and highest_clock else None
    return Peak(bandwidth, flops)


def cpu_peak(cores: int) -> Peak:
    """Peak of a CPU, generously."""
    return Peak(CPU_BANDWIDTH, CPU_FLOPS_A_CORE * cores)


def impossible(seconds: float, nbytes: int | None, flops: int | None, peak: Peak, *, cold: bool) -> str:
    """Why a call cannot have taken so little time; empty where it can.

    nbytes, flops: of one call at the least. Bytes count only where the cache was cold: a warm cache may hold them.
    """
    if cold and nbytes and peak.bandwidth and seconds < SLACK * nbytes / peak.bandwidth:
        rate = nbytes / seconds / 1e9
        return f"{nbytes:,} bytes in {seconds * 1e6:.3g} us are {rate:,.0f} GB/s; the device has {peak.bandwidth / 1e9:,.0f}"
    if flops and peak.flops and seconds < SLACK * flops / peak.flops:
        rate = flops / seconds / 1e12
        return f"{flops:,} flops in {seconds * 1e6:.3g} us are {rate:,.0f} Tflop/s; the device has {peak.flops / 1e12:,.0f}"
    return ""
