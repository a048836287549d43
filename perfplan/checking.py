"""What `perfplan check` finds out about a spec: everything that `run` would stop at, and the cost, without measuring."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfplan import deadends, preflight
from perfplan.errors import BadInput, Exit, Location, PerfplanError, Problem
from perfplan.layout import Layout
from perfplan.log import Log
from perfplan.machine import this_machine
from perfplan.measure.supervisor import Worker
from perfplan.models.base import Point
from perfplan.spec import SpecFile, read_spec


@dataclass(frozen=True)
class Report:
    """The findings about one spec. `cost` is None where the spec has problems."""

    path: str
    problems: tuple[Problem, ...] = ()
    matches: tuple[deadends.Match, ...] = ()
    cost: preflight.Cost | None = None
    exit_code: Exit = Exit.DONE

    def as_data(self) -> dict[str, Any]:
        """The findings as JSON data."""
        return {
            "path": self.path,
            "problems": [
                {
                    "path": p.location.path,
                    "line": p.location.line,
                    "key": p.location.key,
                    "message": p.message,
                    "hint": p.hint,
                }
                for p in self.problems
            ],
            "dead_ends": [
                {
                    "id": m.dead_end.id,
                    "name": m.dead_end.name,
                    "how": m.how,
                    "applies": m.answer.value,
                    "because": list(m.answer.because),
                }
                for m in self.matches
            ],
            "cost": None if self.cost is None else self.cost.as_data(),
        }


def check_spec(path: Path, layout: Layout, log: Log, device: str | None) -> Report:
    """Check one spec; with `device` None the kernel is not loaded."""
    shown = str(path)
    try:
        shown = layout.relative(path)
        spec_file = read_spec(path, layout)
        problems = [
            *preflight.check_campaign(spec_file, log.campaigns),
            *preflight.check_premises(spec_file, log.premises(spec_file.spec.campaign)),
        ]
        if device is None or spec_file.spec.kernel is None:
            return _finish(shown, spec_file, problems, spec_file.spec.cells(), log)
        return _with_kernel(shown, spec_file, problems, layout, log, device)
    except BadInput as error:
        return Report(shown, error.problems, exit_code=Exit.USAGE)
    except PerfplanError as error:
        problem = Problem(error.location or Location(shown), error.message, error.hint)
        return Report(shown, (problem,), exit_code=error.exit_code)


def _with_kernel(
    shown: str, spec_file: SpecFile, problems: list[Problem], layout: Layout, log: Log, device: str
) -> Report:
    assert spec_file.spec.kernel is not None
    with Worker(layout.root) as worker:
        described = worker.describe(spec_file.spec.kernel.entry, device)
        assert described.kernel is not None
        found = [*problems, *preflight.check_kernel(spec_file, described.kernel)]
        if found:
            return Report(shown, tuple(found), exit_code=Exit.USAGE)
        points = preflight.full_points(described.kernel, spec_file.spec)
        memory = worker.memory(spec_file.spec.kernel.entry, points)
    matches = deadends.matches(log, spec_file.spec, spec_file.experiment, described.device, described.software, points)
    return _report(shown, matches, preflight.cost(spec_file.spec, points, memory))


def _finish(shown: str, spec_file: SpecFile, problems: list[Problem], points: list[Point], log: Log) -> Report:
    if problems:
        return Report(shown, tuple(problems), exit_code=Exit.USAGE)
    software = dict(this_machine().versions)
    matches = deadends.matches(log, spec_file.spec, spec_file.experiment, None, software, points)
    return _report(shown, matches, preflight.cost(spec_file.spec, points))


def _report(shown: str, matches: list[deadends.Match], cost: preflight.Cost) -> Report:
    stops = any(match.answer.value == "yes" for match in matches)
    return Report(shown, (), tuple(matches), cost, Exit.FOUND if stops else Exit.DONE)
