"""What goes to the worker and what comes back: typed values that travel as JSON lines."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from perfplan.models.base import Config, Model, Point
from perfplan.models.kernel import KernelInfo
from perfplan.models.record import Cell, Device, Reason, SourceFile
from perfplan.models.spec import CommandArms, Measure, Numerics


class Job(Model):
    """One measurement: both arms at each point. `half_widths[i]` is the precision (relative) at which point i stops."""

    root: str
    device: str  # cpu, cuda:N
    points: list[Point]
    half_widths: list[float]
    measure: Measure
    entry: str | None = None
    baseline: Config = Field(default_factory=dict)
    candidate: Config = Field(default_factory=dict)
    max_rel_error: float | None = None
    numerics: Numerics = Field(default_factory=Numerics)
    command: CommandArms | None = None
    metric: str = "time"


class Described(Model):
    """A kernel and the machine, asked before anything is measured."""

    kernel: KernelInfo | None
    device: Device
    device_name: str  # cpu, cuda:N
    software: dict[str, str]
    environment: dict[str, str] = Field(default_factory=dict)


class Progress(Model):
    """Where a measurement is: the point, the stage (numerics, A/A, A/B), and the estimate so far as relative changes."""

    point: Point
    stage: str
    pairs: int = 0
    most_pairs: int = 0  # at which sampling ends in any case
    estimate: float | None = None
    low: float | None = None
    high: float | None = None


class Measured(Model):
    """What a job brought: a cell for each point, in order, and the repository's files that the code came from."""

    cells: list[Cell]
    files: list[SourceFile]
    log_tail: str = ""


class Failure(Model):
    """Why a worker could not answer, for a PerfplanError in the parent."""

    kind: Literal["input", "environment"]
    message: str
    hint: str = ""
    path: str = ""
    line: int = 0


class PointFailed(Exception):
    """A point cannot be measured; the others go on."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason: Reason = reason
        self.detail = detail
