"""The child process that loads and measures the user's kernel. It may die at any moment; the supervisor outlives it.

Requests come as JSON lines on standard input, answers go as JSON lines to the pipe whose number is the first argument, so
that what the kernel prints cannot disturb them. One process answers `describe` and then `measure`: importing torch once
is enough.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from perfplan.measure import bounds, clock, devices, kernels, nvml
from perfplan.measure.job import Described, Failure, Job, Progress
from perfplan.measure.sources import LoadedSources
from perfplan.models.base import Point
from perfplan.models.record import Device

ORPHAN_CHECK_SECONDS = 1.0


class Channel:
    """The pipe to the supervisor."""

    def __init__(self, number: int) -> None:
        self._file = os.fdopen(number, "w", encoding="utf-8", buffering=1)

    def send(self, kind: str, value: BaseModel | None = None, **fields: Any) -> None:
        body = {"kind": kind, **fields, **({"value": value.model_dump(mode="json")} if value else {})}
        self._file.write(json.dumps(body) + "\n")
        self._file.flush()


class Session:
    """What the worker has loaded."""

    def __init__(self, root: Path, channel: Channel) -> None:
        self.root = root
        self.channel = channel
        self.kernel: Any = None
        self.entry = ""
        self.sources: LoadedSources | None = None

    def load(self, entry: str) -> Any:
        """The kernel of `entry`, loaded once."""
        if self.entry != entry:
            import torch  # before the watch begins, so that it is not taken for the kernel's

            if torch.cuda.is_available():
                clock.bind()
            self.sources = LoadedSources(self.root)
            self.kernel = kernels.load(self.root, entry)
            self.entry = entry
            self.sources.look()
        return self.kernel

    def describe(self, entry: str | None, device: str) -> None:
        info = kernels.describe(self.load(entry), entry) if entry else None
        name = devices.pick(device) if entry else device
        found = devices.read_device(name) if entry else devices.read_machine(device)
        software = devices.read_software()
        environment = devices.read_environment()
        self.channel.send(
            "described",
            Described(kernel=info, device=found, device_name=name, software=software, environment=environment),
        )

    def memory(self, entry: str, points: list[Point]) -> None:
        method = getattr(self.load(entry), "memory", None)
        try:
            largest = max((int(method(point)) for point in points), default=None) if callable(method) else None
        except Exception:  # an estimate; a kernel that raises here will say why when it is measured
            largest = None
        self.channel.send("memory", bytes=largest)

    def measure(self, job: Job, only: list[int]) -> None:
        from perfplan.measure import points

        assert job.entry is not None
        kernel = self.load(job.entry)
        assert self.sources is not None
        if job.device != "cpu":
            import torch

            torch.cuda.set_device(job.device)
        device = devices.read_device(job.device)
        gpu = nvml.open_gpu(device.uuid) if job.device != "cpu" else None
        bench = points.Bench(
            kernel=kernel,
            job=job,
            device=device,
            device_name=job.device,
            tell=self._tell,
            looked=self.sources.look,
            at=lambda index: self.channel.send("point", index=index),
            gpu=gpu,
            peak=_peak(device, gpu),
        )
        try:
            for index, cell in points.measure_points(bench, only):
                self.channel.send("cell", cell, index=index)
        except Exception as error:  # only what the CUDA context does not survive
            self.channel.send("lost", detail=f"{type(error).__name__}: {kernels.first_line(error)}")
            os._exit(70)
        self.channel.send("done", files=[each.model_dump() for each in self.sources.files()])

    def _tell(self, progress: Progress) -> None:
        self.channel.send("progress", progress)


def _peak(device: Device, gpu: nvml.Gpu | None) -> bounds.Peak:
    if device.kind == "cpu":
        return bounds.cpu_peak(os.cpu_count() or 1)
    clock_hz, bandwidth = (gpu.highest_clock(), gpu.peak_bandwidth()) if gpu else (None, None)
    return bounds.gpu_peak(device.arch, device.sm_count, clock_hz, bandwidth)


def end_with(parent: int) -> None:
    """End this process soon after its parent is gone: a killed supervisor must not leave a worker on the GPU."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(ORPHAN_CHECK_SECONDS)
        os._exit(71)

    threading.Thread(target=watch, daemon=True).start()


def main() -> None:
    """Answer requests until standard input ends."""
    end_with(os.getppid())
    requests = os.fdopen(os.dup(0), encoding="utf-8")  # what the kernel reads from standard input is not ours
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    channel = Channel(int(sys.argv[1]))
    session = Session(Path(sys.argv[2]), channel)
    for line in requests:
        request = json.loads(line)
        try:
            if request["op"] == "describe":
                session.describe(request["entry"], request["device"])
            elif request["op"] == "memory":
                session.memory(request["entry"], request["points"])
            else:
                session.measure(Job.model_validate(request["job"]), request["only"])
        except kernels.BadKernel as error:
            channel.send(
                "failed", Failure(kind="input", message=str(error), hint=error.hint, path=error.path, line=error.line)
            )
        except devices.NoDevice as error:
            channel.send("failed", Failure(kind="environment", message=str(error), hint=error.hint))
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            hint = "pip install torch, or pip install 'perfplan[gpu]'"
            channel.send("failed", Failure(kind="environment", message="torch is not installed", hint=hint))


if __name__ == "__main__":
    main()
