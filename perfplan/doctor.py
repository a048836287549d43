"""What this machine can do and what is missing. Torch is asked in a process of its own: a broken one cannot take us along."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import perfplan
from perfplan.errors import PerfplanError
from perfplan.machine import cpu_name, this_machine

TORCH_SECONDS = 120
_ASK_TORCH = (
    "import json, torch; "
    "print(json.dumps({'version': torch.__version__, 'cuda': torch.version.cuda, "
    "'gpus': [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())] if torch.cuda.is_available() else []}))"
)


@dataclass(frozen=True)
class Finding:
    """One line of the report. `mend` is the command that helps, where something is missing or broken."""

    name: str
    state: Literal["ok", "missing", "broken"]
    detail: str
    mend: str = ""


def examine(folder: Path) -> list[Finding]:
    """Everything worth knowing, in the order in which things depend on each other."""
    torch = _torch()
    return [
        Finding("perfplan", "ok", f"{perfplan.__version__} on Python {platform.python_version()}"),
        *_git(folder),
        *_gpu(),
        torch[0],
        *_triton(),
        *_profilers(),
        *_back_ends(torch[1]),
    ]


def _git(folder: Path) -> list[Finding]:
    from perfplan.git import open_repository

    if shutil.which("git") is None:
        return [Finding("git", "missing", "not installed; only `run --detached` works", "install git")]
    try:
        repository = open_repository(folder)
    except PerfplanError as error:
        return [Finding("git", "missing", str(error), error.hint)]
    try:
        repository.refuse_if_unready()
    except PerfplanError as error:
        return [Finding("git", "broken", str(error), error.hint)]
    return [Finding("git", "ok", f"repository {repository.root}, branch {repository.branch()}, identity set")]


def _gpu() -> list[Finding]:
    machine = this_machine()
    if not machine.gpus:
        return [Finding("GPU", "missing", f"nvidia-smi shows none; the CPU is {cpu_name()}")]
    listed = ", ".join(machine.gpus)
    return [Finding("GPU", "ok", f"{listed} ({machine.arch}), driver {machine.driver}")]


def _torch() -> tuple[Finding, dict[str, Any]]:
    if not _version("torch"):
        return Finding("torch", "missing", "not installed", "pip install torch"), {}
    command = [sys.executable, "-c", _ASK_TORCH]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=TORCH_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return Finding("torch", "broken", f"no answer in {TORCH_SECONDS} s"), {}
    if answer.returncode:
        last = (answer.stderr.strip().splitlines() or ["it died without a word"])[-1]
        return Finding("torch", "broken", f"cannot be imported: {last}", "pip install --force-reinstall torch"), {}
    found: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    built = f"built for CUDA {found['cuda']}" if found["cuda"] else "built for the CPU"
    sees = f", sees {', '.join(found['gpus'])}" if found["gpus"] else ", sees no GPU"
    return Finding("torch", "ok", f"{found['version']}, {built}{sees}"), found


def _triton() -> list[Finding]:
    version, numpy = _version("triton"), _version("numpy")
    if not version:
        return [Finding("triton", "missing", "not installed; kernels in torch work without", "pip install triton")]
    findings = [Finding("triton", "ok", version)]
    if not numpy:
        findings.append(Finding("triton interpreter", "missing", "needs numpy", "pip install numpy"))
    elif version.startswith("3.6") and _numbers(numpy) >= (2, 4):
        detail = f"triton {version} breaks under numpy {numpy} in loops with tensor bounds"
        findings.append(Finding("triton interpreter", "broken", detail, "pip install 'numpy<2.4'"))
    else:
        findings.append(
            Finding("triton interpreter", "ok", "TRITON_INTERPRET=1 checks numerics (not in bf16), never speed")
        )
    return findings


def _profilers() -> list[Finding]:
    path = shutil.which("ncu")
    return (
        [Finding("ncu", "ok", path)]
        if path
        else [Finding("ncu", "missing", "not on the PATH; only needed to import its reports")]
    )


def _back_ends(torch: dict[str, Any]) -> list[Finding]:
    if not torch:
        return [
            Finding(
                "measure on", "missing", "a kernel needs torch; command: experiments run without", "pip install torch"
            )
        ]
    cpu = Finding("measure on cpu", "ok", "torch kernels and commands, timed for real")
    if torch["gpus"]:
        return [Finding(f"measure on cuda:{index}", "ok", name) for index, name in enumerate(torch["gpus"])] + [cpu]
    mend = (
        "install a torch build for CUDA, on a machine with an NVIDIA GPU"
        if not torch["cuda"]
        else "check the driver with nvidia-smi"
    )
    return [Finding("measure on cuda", "missing", "torch sees no GPU", mend), cpu]


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
