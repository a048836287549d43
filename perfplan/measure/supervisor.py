"""The parent's side of a measurement: starts the worker, listens, and outlives it.

A worker that dies or hangs at a point costs that point alone: a fresh one goes on with the rest.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import perfplan
from perfplan.errors import EnvironmentProblem, Exit, Location, PerfplanError, WorkerCrashed
from perfplan.measure.job import Described, Failure, Job, Measured, Progress
from perfplan.models.base import Point
from perfplan.models.record import Cell, Reason, SourceFile, Validity

DESCRIBE_SECONDS = 300.0  # importing torch and the kernel's own imports, on a slow disk
LOG_TAIL_LINES = 20
Tell = Callable[[Progress], None]


class _Died(Exception):
    """The worker is gone."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason: Reason = reason
        self.detail = detail


class Worker:
    """One worker process at a time for the repository at `root`. A context manager: no process survives it."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._process: subprocess.Popen[str] | None = None
        self._reader: int | None = None
        self._buffer = b""
        self._log: IO[bytes] | None = None
        self._at = -1  # the point that the worker is at

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def describe(self, entry: str | None, device: str) -> Described:
        """Ask the kernel (None: only the machine) and the device. `device` is auto, cpu, cuda or cuda:N.

        Raises PerfplanError for a kernel that cannot be used, EnvironmentProblem for a missing device or torch, and
        WorkerCrashed if the process dies.
        """
        try:
            self._send({"op": "describe", "entry": entry, "device": device})
            while True:
                event = self._receive(DESCRIBE_SECONDS)
                if event["kind"] == "described":
                    return Described.model_validate(event["value"])
                if event["kind"] == "failed":
                    raise _as_error(Failure.model_validate(event["value"]))
        except _Died as died:
            where = Location(entry.partition(":")[0]) if entry else None
            raise WorkerCrashed(
                f"the process that loads the kernel crashed: {died.detail}", hint=self.log_tail(), location=where
            ) from None

    def memory(self, entry: str, points: list[Point]) -> int | None:
        """Bytes of one input set at the largest of the points, where the kernel has a `memory` method and answers."""
        self._send({"op": "memory", "entry": entry, "points": points})
        with contextlib.suppress(_Died):
            answer = self._receive(DESCRIBE_SECONDS).get("bytes")
            return int(answer) if isinstance(answer, int) else None
        return None

    def measure(self, job: Job, tell: Tell) -> Measured:
        """Measure every point of the job. What goes wrong at a point is in its cell; nothing is raised for it."""
        if job.command is not None:
            from perfplan.measure.command import measure_command

            return measure_command(job, tell)
        cells: dict[int, Cell] = {}
        files: dict[str, SourceFile] = {}
        tails: list[str] = []
        while remaining := [index for index in range(len(job.points)) if index not in cells]:
            try:
                self._measure(job, remaining, cells, files, tell)
            except _Died as died:
                left = [index for index in remaining if index not in cells]
                at = self._at if self._at in left else left[0]
                tails.append(self.log_tail())
                validity = Validity(valid=False, reason=died.reason, detail=died.detail)
                cells[at] = Cell(point=job.points[at], role="observed", validity=validity)
                self._stop()
            except PerfplanError as error:  # the kernel cannot be loaded any more: what was measured before stays
                if not cells:
                    raise
                lost = Validity(valid=False, reason="bad-kernel", detail=str(error))
                cells |= {
                    at: Cell(point=job.points[at], role="observed", validity=lost)
                    for at in remaining
                    if at not in cells
                }
        if not all(cell.validity.valid for cell in cells.values()):
            tails.append(self.log_tail())
        tail = "\n".join(dict.fromkeys(each for each in tails if each))
        return Measured(
            cells=[cells[i] for i in range(len(job.points))],
            files=sorted(files.values(), key=lambda f: f.path),
            log_tail=tail,
        )

    def _measure(
        self, job: Job, only: list[int], cells: dict[int, Cell], files: dict[str, SourceFile], tell: Tell
    ) -> None:
        self._send({"op": "measure", "job": job.model_dump(mode="json"), "only": only})
        while True:
            event = self._receive(job.measure.timeout)
            kind = event["kind"]
            if kind == "progress":
                tell(Progress.model_validate(event["value"]))
            elif kind == "point":
                self._at = event["index"]
            elif kind == "cell":
                cells[event["index"]] = Cell.model_validate(event["value"])
            elif kind == "lost":
                raise _Died("crashed", f"the GPU context was lost: {event['detail']}")
            elif kind == "failed":
                raise _as_error(Failure.model_validate(event["value"]))
            elif kind == "done":
                files.update({each["path"]: SourceFile.model_validate(each) for each in event["files"]})
                return

    def log_tail(self) -> str:
        """The last lines that the worker printed."""
        if self._log is None:
            return ""
        self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - 16_384))
        lines = self._log.read().decode("utf-8", errors="replace").splitlines()
        return "\n".join(line[:300] for line in lines[-LOG_TAIL_LINES:])

    def _start(self) -> None:
        reader, writer = os.pipe()
        self._log = self._log or tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as the worker
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "perfplan.measure.worker", str(writer), str(self._root)],
                cwd=self._root,
                env=_environment(),
                stdin=subprocess.PIPE,
                stdout=self._log,
                stderr=self._log,
                pass_fds=(writer,),
                text=True,
                start_new_session=True,  # Ctrl-C goes to the parent alone, which then ends the whole group
            )
        finally:
            os.close(writer)
        self._reader, self._buffer = reader, b""

    def _send(self, request: dict[str, Any]) -> None:
        if self._process is None:
            self._start()
        assert self._process is not None and self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._obituary() from None

    def _receive(self, timeout: float) -> dict[str, Any]:
        """The next event. Raises _Died when the worker is gone or says nothing for `timeout` seconds."""
        assert self._reader is not None
        deadline = time.monotonic() + timeout
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([self._reader], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                self._kill()
                raise _Died("timed-out", f"no sign of life for {timeout:g} s, killed")
            chunk = os.read(self._reader, 1 << 16)
            if not chunk:
                raise self._obituary()
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        try:
            event = json.loads(line)
            if isinstance(event, dict) and isinstance(event.get("kind"), str):
                return event
        except ValueError:
            pass
        self._kill()
        raise _Died("crashed", "something else wrote to perfplan's own pipe, killed")

    def _obituary(self) -> _Died:
        assert self._process is not None
        code = self._process.wait()
        if code < 0:
            with contextlib.suppress(ValueError):
                return _Died("crashed", f"killed by {signal.Signals(-code).name}")
        return _Died("crashed", f"ended with exit code {code}")

    def _kill(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _stop(self) -> None:
        self._kill()
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        if self._reader is not None:
            os.close(self._reader)
        self._process, self._reader = None, None


def _environment() -> dict[str, str]:
    """Ours, so that the worker finds this very perfplan; -P keeps the user's files from shadowing the libraries."""
    folders = [str(Path(perfplan.__file__).parent.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}


class BadKernel(PerfplanError):
    """The kernel's file cannot be used."""

    exit_code = Exit.USAGE


def _as_error(failure: Failure) -> PerfplanError:
    if failure.kind == "environment":
        return EnvironmentProblem(failure.message, hint=failure.hint)
    where = Location(failure.path, failure.line) if failure.path else None
    return BadKernel(failure.message, hint=failure.hint, location=where)
