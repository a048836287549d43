"""Checks before any time is spent on a device: the spec against its campaign and its kernel, and the cost in advance. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from perfplan.errors import Problem
from perfplan.models.base import Config, Point
from perfplan.models.campaign import Campaign
from perfplan.models.kernel import KernelInfo
from perfplan.models.spec import Spec
from perfplan.spec import SpecFile
from perfplan.units import size


@dataclass(frozen=True)
class Cost:
    """What a run takes at the most. `memory_bytes` is of one input set at the largest point, where the kernel tells it."""

    points: int
    min_pairs: int
    max_pairs: int
    seconds: float
    memory_bytes: int | None = None

    @property
    def text(self) -> str:
        """`6 points x 2 arms x 10 to 120 pairs, at most 6 min, 84.0 MiB an input set`."""
        many = "1 point" if self.points == 1 else f"{self.points} points"
        time = f"{self.seconds:.0f} s" if self.seconds < 120 else f"{self.seconds / 60:.0f} min"
        memory = f", {size(self.memory_bytes)} an input set" if self.memory_bytes else ""
        return f"{many} x 2 arms x {self.min_pairs} to {self.max_pairs} pairs, at most {time} of sampling{memory}"

    def as_data(self) -> dict[str, int | float | None]:
        """The cost as JSON data."""
        return asdict(self)


def check_campaign(spec_file: SpecFile, campaigns: Mapping[str, Campaign]) -> list[Problem]:
    """The campaign must exist."""
    wanted = spec_file.spec.campaign
    if wanted in campaigns:
        return []
    hint = _hint(wanted, campaigns) if campaigns else "`perfplan init` writes a first one"
    return [Problem(spec_file.locate("campaign"), f"there is no plans/{wanted}.yaml", hint)]


def check_premises(spec_file: SpecFile, premises: Iterable[str]) -> list[Problem]:
    """The premises that the experiment rests on must be in the log."""
    known = sorted(set(premises))
    return [
        Problem(spec_file.locate("rests_on", index), f"there is no premise {name!r}", _hint(name, known))
        for index, name in enumerate(spec_file.spec.rests_on)
        if name not in known
    ]


def check_kernel(spec_file: SpecFile, kernel: KernelInfo) -> list[Problem]:
    """Axes, knobs and their values against what the kernel declares; everything at once."""
    spec = spec_file.spec
    return [*_axis_problems(spec_file, spec, kernel), *_knob_problems(spec_file, spec, kernel)]


def full_config(kernel: KernelInfo, config: Config) -> Config:
    """The configuration with the kernel's defaults for what it leaves out, in the kernel's order."""
    return {**{name: knob.default for name, knob in kernel.knobs.items()}, **config}


def full_points(kernel: KernelInfo, spec: Spec) -> list[Point]:
    """The spec's operating points with the kernel's defaults for axes that it leaves out."""
    defaults = {name: axis.default for name, axis in kernel.axes.items() if axis.default is not None}
    return [
        {**point, **{name: value for name, value in defaults.items() if name not in point}} for point in spec.cells()
    ]


def cost(spec: Spec, points: Sequence[Point], memory_bytes: int | None = None) -> Cost:
    """What a run takes at the most, from the spec's budget."""
    measure = spec.measure
    return Cost(len(points), measure.min_pairs, measure.max_pairs, measure.seconds * len(points), memory_bytes)


def _axis_problems(spec_file: SpecFile, spec: Spec, kernel: KernelInfo) -> Iterable[Problem]:
    for name, values in spec.points.items():
        where = spec_file.locate("points", name)
        if name not in kernel.axes:
            yield Problem(where, f"{kernel.entry} has no axis of this name", _hint(name, kernel.axes))
            continue
        for value in values:
            complaint = kernel.axes[name].complaint(value)
            if complaint:
                yield Problem(where, complaint, "")
    for name, axis in kernel.axes.items():
        if axis.default is None and name not in spec.points:
            yield Problem(
                spec_file.locate("points"),
                f"lacks the axis {name!r} ({axis.type})",
                f"{kernel.entry} has no default for it",
            )


def _knob_problems(spec_file: SpecFile, spec: Spec, kernel: KernelInfo) -> Iterable[Problem]:
    if spec.kernel is None:
        return
    for arm, config in (("baseline", spec.kernel.baseline), ("candidate", spec.kernel.candidate)):
        for name, value in config.items():
            where = spec_file.locate("kernel", arm, name)
            if name not in kernel.knobs:
                yield Problem(where, f"{kernel.entry} has no knob of this name", _hint(name, kernel.knobs))
            elif complaint := kernel.knobs[name].complaint(value):
                yield Problem(where, complaint, kernel.knobs[name].help)


def _hint(name: str, known: Iterable[str]) -> str:
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(names) or 'none'}"
