"""Facts of the machine at hand, without torch: enough to say whether a scope covers it. Fast where there is no GPU."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from pathlib import Path

from perfplan.models.base import Scalar

# GPU facts in the order that nvidia-smi is asked for them
_QUERY = "name,compute_cap,driver_version,uuid"


@dataclass(frozen=True)
class Machine:
    """What can be known of this machine at once. A GPU's SM count is not among it: no tool tells it without a context."""

    gpus: tuple[str, ...] = ()
    uuid: str = ""  # of the first GPU
    arch: str = ""
    driver: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)

    def facts(self) -> dict[str, Scalar]:
        """Facts for scopes; of the first GPU where there are several."""
        known: dict[str, Scalar] = {f"versions.{name}": version for name, version in self.versions.items()}
        if self.gpus:
            known.update({"device.kind": "cuda", "device.name": self.gpus[0], "device.arch": self.arch})
            known["versions.driver"] = self.driver
        else:
            known.update({"device.kind": "cpu", "device.name": cpu_name(), "device.arch": platform.machine()})
        return known


@cache
def this_machine() -> Machine:
    """Ask nvidia-smi (if it is there) and the installed packages."""
    versions = {}
    for name in ("torch", "triton", "numpy"):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    rows = _nvidia_smi()
    if not rows:
        return Machine(versions=versions)
    _, capability, driver, uuid = rows[0]
    return Machine(tuple(row[0] for row in rows), uuid, "sm" + capability.replace(".", ""), driver, versions)


def cpu_name() -> str:
    """The processor's name as the kernel has it."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    match = re.search(r"^(?:model name|Hardware)\s*:\s*(.+)$", text, re.MULTILINE)
    return match[1].strip() if match else platform.processor() or platform.machine() or "CPU"


def _nvidia_smi() -> list[list[str]]:
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    command = [program, f"--query-gpu={_QUERY}", "--format=csv,noheader"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    rows = (
        [[cell.strip() for cell in line.split(",")] for line in answer.stdout.splitlines()]
        if answer.returncode == 0
        else []
    )
    return [row for row in rows if len(row) == 4]
