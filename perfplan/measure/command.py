"""The second kind of experiment: a server or a script, measured as a whole process. One sample is one run of the command."""

from __future__ import annotations

import contextlib
import csv
import json
import math
import os
import re
import signal
import statistics
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from perfplan.blobs import file_blob
from perfplan.measure import rounds
from perfplan.measure.clock import Reading
from perfplan.measure.job import Job, Measured, PointFailed, Progress
from perfplan.models.base import Point
from perfplan.models.record import Arm, Cell, SourceFile, Validity
from perfplan.models.spec import CommandArm, Metric


def measure_command(job: Job, tell: Any) -> Measured:
    """Measure a command job, in rounds over its points. What goes wrong at a point is in its cell."""
    assert job.command is not None
    root = Path(job.root)
    cells: dict[int, Cell] = {}
    tails: list[str] = []
    stations: list[rounds.Station] = []
    index_of: dict[int, int] = {}

    def guarded(index: int, step: Callable[[], Any]) -> Any:
        try:
            return step()
        except PointFailed as failure:
            detail, _, tail = failure.detail.partition("\n")
            tails.append(tail)
            validity = Validity(valid=False, reason=failure.reason, detail=detail)
            cells[index] = _cell(job, index).model_copy(update={"validity": validity})
            return None

    for index in range(len(job.points)):
        station = guarded(index, partial(_station, job, index, tell))
        if station is not None:
            stations.append(station)
            index_of[id(station)] = index
    for station in rounds.schedule(stations):
        guarded(index_of[id(station)], station.visit)
        station.done = station.done or index_of[id(station)] in cells
    for station in stations:
        index = index_of[id(station)]
        if index not in cells:
            cells[index] = _filled(_cell(job, index), station)
    files = [
        SourceFile(path=path, blob=file_blob(root / path))
        for path in sorted(job.command.sources)
        if (root / path).is_file()
    ]
    return Measured(
        cells=[cells[i] for i in range(len(job.points))], files=files, log_tail="\n".join(filter(None, tails))
    )


def _cell(job: Job, index: int) -> Cell:
    return Cell(point=job.points[index], role="observed", metric=job.metric, timer="process")


def _station(job: Job, index: int, tell: Any) -> rounds.Station:
    """The point, after one run of each arm that warms up whatever there is to warm up."""
    point, command = job.points[index], job.command
    assert command is not None
    metric = command.metrics.get(job.metric)

    def sampler(arm: CommandArm) -> rounds.Sample:
        return lambda: Reading(run_once(arm, point, metric, Path(job.root), job.measure.timeout))

    baseline, candidate = sampler(command.baseline), sampler(command.candidate)
    tell(Progress(point=point, stage="warm-up"))
    for sample in (baseline, candidate):
        sample()
    arms = rounds.Arms(baseline, candidate, again=baseline)
    return rounds.Station(point=point, arms=arms, measure=job.measure, half_width=job.half_widths[index], tell=tell)


def _filled(cell: Cell, station: rounds.Station) -> Cell:
    def arm(readings: list[Reading]) -> Arm:
        values = [each.value for each in readings]
        return Arm(median=statistics.median(values), samples=values)

    pairs = station.pairs
    update = {**station.cell_fields(), "baseline": arm(pairs.baseline), "candidate": arm(pairs.candidate)}
    return cell.model_copy(update=update)


def run_once(arm: CommandArm, point: Point, metric: Metric | None, root: Path, timeout: float) -> float:
    """One run of an arm: its wall time in seconds, or the metric. Raises PointFailed for a run that failed."""
    argv = [_fill(word, point) for word in arm.argv]
    file = root / _fill(metric.file, point) if metric and metric.file else None
    before = _stamp(file)
    start = time.perf_counter()
    try:
        process = subprocess.Popen(
            argv, cwd=root, env={**os.environ, **arm.env}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise PointFailed("crashed", f"{argv[0]} cannot be started: {why}") from None
    try:
        output, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        _end(process)
        raise PointFailed("timed-out", f"{argv[0]} ran longer than {timeout:g} s, killed") from None
    except BaseException:
        _end(process)
        raise
    elapsed = time.perf_counter() - start
    text = output.decode("utf-8", errors="replace")
    if process.returncode:
        tail = "\n".join(text.splitlines()[-20:])
        raise PointFailed("crashed", f"{argv[0]} ended with exit code {process.returncode}\n{tail}")
    if file is not None and file.is_file() and _stamp(file) == before:
        raise PointFailed("bad-kernel", f"the command did not write {file.name} anew; what is there is from before")
    value = elapsed if metric is None else _read(metric, text, file)
    if not (math.isfinite(value) and value > 0):
        raise PointFailed("bad-kernel", f"the metric is {value}; a measured value is positive and finite")
    return value


def _stamp(file: Path | None) -> tuple[int, int, int] | None:
    """What changes when a file is written; a stale one must never count."""
    if file is None or not file.is_file():
        return None
    found = file.stat()
    return found.st_ino, found.st_mtime_ns, found.st_size


def _fill(word: str, point: Point) -> str:
    for axis, value in point.items():
        word = word.replace("{" + axis + "}", str(value))
    return word


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _read(metric: Metric, output: str, file: Path | None) -> float:
    if file is None:
        matches = re.findall(metric.pattern or r"$^", output)
        if not matches:
            raise PointFailed("bad-kernel", f"nothing in the output matches {metric.pattern!r}")
        found = matches[-1] if isinstance(matches[-1], str) else matches[-1][0]
        return _number(found, f"the pattern {metric.pattern!r}")
    if not file.is_file():
        raise PointFailed("bad-kernel", f"the command did not write {file.name}")
    assert metric.field is not None
    text = file.read_text(encoding="utf-8", errors="replace")
    try:
        value = (
            _from_csv(text, metric.field)
            if file.suffix == ".csv"
            else _from_json(text, metric.field, file.suffix == ".jsonl")
        )
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise PointFailed("bad-kernel", f"{file.name}: no {metric.field}: {error}") from None
    return _number(value, f"{file.name}: {metric.field}")


def _from_json(text: str, field: str, lines: bool) -> Any:
    value: Any = json.loads(text.strip().splitlines()[-1] if lines else text)
    for step in field.split("."):
        value = value[int(step)] if isinstance(value, list) else value[step]
    return value


def _from_csv(text: str, field: str) -> Any:
    return list(csv.DictReader(text.splitlines()))[-1][field]


def _number(value: Any, where: str) -> float:
    try:
        return float(str(value).replace(",", "")) if not isinstance(value, bool) else math.nan
    except ValueError:
        raise PointFailed("bad-kernel", f"{where} gives {value!r}, not a number") from None
