"""Facts of the device and versions of the software, as they go into the record. Runs in the worker."""

from __future__ import annotations

import os
import platform
import re
import sys
from pathlib import Path
from typing import Any

import perfplan
from perfplan.machine import cpu_name, this_machine
from perfplan.models.record import Device


class NoDevice(Exception):
    """The device that was asked for is not there."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def pick(asked: str) -> str:
    """`auto`, `cpu`, `cuda` or `cuda:N` as cpu or cuda:N. Raises NoDevice."""
    if asked == "cpu":
        return "cpu"
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if asked == "auto":
        return "cuda:0" if count else "cpu"
    match = re.fullmatch(r"cuda(?::(\d+))?", asked)
    if match is None:
        raise NoDevice(f"{asked!r} is not a device", "expected cpu, cuda or cuda:N")
    index = int(match[1] or 0)
    if not count:
        raise NoDevice(
            f"{asked}: torch sees no NVIDIA GPU here",
            "`perfplan doctor` says what is missing; --device cpu runs on the CPU",
        )
    if index >= count:
        raise NoDevice(f"{asked}: there are {count} GPUs, cuda:0 to cuda:{count - 1}", "choose one of them")
    return f"cuda:{index}"


def read_device(name: str) -> Device:
    """Facts of `cpu` or `cuda:N`."""
    return _cpu() if name == "cpu" else _gpu(int(name.partition(":")[2]))


def read_machine(asked: str) -> Device:
    """The device of a command experiment, without torch: the first GPU where there is one and `asked` is not cpu."""
    machine = this_machine()
    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", asked):
        raise NoDevice(f"{asked!r} is not a device", "expected cpu, cuda or cuda:N")
    if asked == "cpu" or (asked == "auto" and not machine.gpus):
        return _cpu()
    if not machine.gpus:
        raise NoDevice(f"{asked}: nvidia-smi shows no GPU here", "--device cpu runs on the CPU")
    facts = {"gpus": len(machine.gpus), "host_cpu": cpu_name()}
    return Device(kind="cuda", name=machine.gpus[0], arch=machine.arch, uuid=machine.uuid, facts=facts)


def read_software() -> dict[str, str]:
    """Versions that can turn a verdict. What is not installed is left out."""
    software = {"python": platform.python_version(), "perfplan": perfplan.__version__, **this_machine().versions}
    torch = sys.modules.get("torch")
    if torch is not None and torch.version.cuda:
        software["cuda"] = torch.version.cuda
    driver = this_machine().driver or _nvml("nvmlSystemGetDriverVersion")
    if driver:
        software["driver"] = driver
    if os.environ.get("TRITON_INTERPRET") == "1":
        software["triton-mode"] = "interpreter"
    return software


def _gpu(index: int) -> Device:
    import torch

    found = torch.cuda.get_device_properties(index)
    uuid = str(getattr(found, "uuid", "") or "")
    return Device(
        kind="cuda",
        name=found.name,
        arch=f"sm{found.major}{found.minor}",
        uuid=uuid if not uuid or uuid.startswith("GPU-") else f"GPU-{uuid}",
        sm_count=found.multi_processor_count,
        memory_bytes=found.total_memory,
        llc_bytes=getattr(found, "L2_cache_size", None) or None,
        shared_memory_per_cta=getattr(found, "shared_memory_per_block_optin", None),
        facts={"host_cpu": cpu_name()},
    )


def _cpu() -> Device:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else None
    return Device(
        kind="cpu",
        name=cpu_name(),
        arch=platform.machine(),
        memory_bytes=memory,
        llc_bytes=_llc_bytes(),
        facts=_cpu_facts(),
    )


def _cpu_facts() -> dict[str, Any]:
    torch = sys.modules.get("torch")  # a command experiment runs without
    return {"cores": os.cpu_count() or 1, **({"torch_threads": torch.get_num_threads()} if torch else {})}


def _llc_bytes() -> int | None:
    """Size of the largest cache that the kernel knows of, in bytes."""
    sizes = []
    for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        match = re.fullmatch(r"(\d+)([KMG]?)", path.read_text(encoding="ascii", errors="replace").strip())
        if match:
            sizes.append(int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2]])
    return max(sizes, default=None)


def _nvml(query: str) -> str:
    """A text from NVML, empty where there is none."""
    try:
        import pynvml

        pynvml.nvmlInit()
        try:
            answer: Any = getattr(pynvml, query)()
        finally:
            pynvml.nvmlShutdown()
    except Exception:  # the library is missing or broken in ways of its own; the record then lacks the driver
        return ""
    return answer.decode() if isinstance(answer, bytes) else str(answer)
