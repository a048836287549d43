"""Facts of the device and versions of the software, as they go into the record. Runs in the worker."""

from __future__ import annotations

import os
import platform
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import perfplan
from perfplan.machine import cpu_name, this_machine
from perfplan.measure import nvml
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
    driver = this_machine().driver or nvml.driver_version()
    if driver:
        software["driver"] = driver
    if torch is not None and torch.version.cuda and (ptxas := _ptxas()):
        software["ptxas"] = ptxas
    if os.environ.get("TRITON_INTERPRET") == "1":
        software["triton-mode"] = "interpreter"
    return software


def _gpu(index: int) -> Device:
    import torch

    before = _used_before(index)
    found = torch.cuda.get_device_properties(index)
    uuid = str(getattr(found, "uuid", "") or "")
    uuid = uuid if not uuid or uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"
    gpu = nvml.open_gpu(uuid)
    settings = (
        {**gpu.settings(), **before}
        if gpu
        else {"nvml": "not available: clocks, throttling and other processes unknown"}
    )
    return Device(
        kind="cuda",
        name=found.name,
        arch=f"sm{found.major}{found.minor}",
        uuid=uuid,
        sm_count=found.multi_processor_count,
        memory_bytes=found.total_memory,
        llc_bytes=last_level_cache(found.name, getattr(found, "L2_cache_size", None) or None),
        shared_memory_per_cta=getattr(found, "shared_memory_per_block_optin", None),
        facts={"host_cpu": cpu_name(), **settings},
    )


@cache
def _used_before(index: int) -> dict[str, Any]:
    """Memory in use and processes on the GPU, asked once, before this process makes its own context there."""
    gpu = nvml.open_gpu(index=_physical(index))
    return gpu.others() if gpu else {}


def _physical(index: int) -> int:
    """Index on the machine of the index that CUDA_VISIBLE_DEVICES leaves; a UUID there is not resolved."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    numbers = [each.strip() for each in visible.split(",") if each.strip()]
    return int(numbers[index]) if index < len(numbers) and numbers[index].isdigit() else index


# Last-level caches that the driver does not report: the L2 is not the last one there (bytes).
LLC_BYTES = {"MI300": 256 << 20, "MI325": 256 << 20, "MI350": 256 << 20, "MI355": 256 << 20}


def last_level_cache(name: str, reported: int | None) -> int | None:
    """Size of the last-level cache: the reported L2, or more where the table knows of a cache behind it."""
    known = next((size for part, size in LLC_BYTES.items() if part in name), 0)
    return max(known, reported or 0) or None


# Settings that can turn a verdict, and that hold no secret.
ENVIRONMENT = (
    "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_LAUNCH_BLOCKING", "CUDA_MODULE_LOADING", "CUDA_CACHE_DISABLE",
    "CUBLAS_WORKSPACE_CONFIG", "NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_ALLOC_CONF", "TRITON_INTERPRET", "TRITON_PTXAS_PATH", "TRITON_DEFAULT_FP_FUSION", "TRITON_F32_DEFAULT",
    "DISABLE_PTXAS_OPT", "NCCL_ALGO", "NCCL_PROTO", "NCCL_NVLS_ENABLE", "NCCL_P2P_DISABLE", "OMP_NUM_THREADS", "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS", "ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "LD_PRELOAD", "PYTHONHASHSEED",
)  # fmt: skip


def read_environment() -> dict[str, str]:
    """The environment variables of the list above that are set."""
    return {name: os.environ[name][:200] for name in ENVIRONMENT if name in os.environ}


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


@cache
def _ptxas() -> str:
    """Version of the assembler that Triton uses; empty where it cannot be asked."""
    try:
        from triton import knobs

        return str(knobs.nvidia.ptxas.version).strip()
    except Exception:  # no Triton, or one without this knob
        return ""
