"""The spec: a hypothesis about a lever, and the kernel configuration or command that tests it. Hand-written YAML."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints, field_validator, model_validator

from perfplan.models.band import Band
from perfplan.models.base import Config, Model, Point, Scalar

Slug = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=80)]


def _printable(text: str) -> str:
    if re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", text):
        raise ValueError("holds a control character; remove it")
    return text


Line = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=200, pattern=r"^[^\r\n]*$"),
    AfterValidator(_printable),
]
Text = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=4000), AfterValidator(_printable)
]
Condition = dict[str, Any]  # a scope: fact -> condition, see perfplan.scope


class Prediction(Model):
    """A metric, a band of relative change (candidate over baseline, minus 1), and the operating points where it must hold."""

    metric: str = Field("time", description="what is measured; a kernel has 'time' (seconds, less is better)")
    change: Band = Field(description="the band: [-25%, -15%], '<= -5%', '>= +3%' or 'within 1%'")
    at: dict[str, list[Scalar]] = Field(
        default_factory=dict, description="axis -> values; an axis left out means all its values"
    )

    @field_validator("at", mode="before", json_schema_input_type=dict[str, list[Scalar] | Scalar])
    @classmethod
    def _scalars_are_lists(cls, value: Any) -> Any:
        if isinstance(value, dict):
            return {axis: item if isinstance(item, list) else [item] for axis, item in value.items()}
        return value

    def applies(self, point: Point) -> bool:
        """Whether this prediction is about `point`."""
        return all(axis in point and point[axis] in values for axis, values in self.at.items())


class Hypothesis(Model):
    """Claim, reason, prediction."""

    claim: Text = Field(description="what should happen, in a sentence")
    because: Text = Field(description="the mechanism that makes it so")
    predicts: list[Prediction] = Field(min_length=1, description="one prediction, or a list of them")

    @field_validator("predicts", mode="before", json_schema_input_type=list[Prediction] | Prediction)
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        return [value] if isinstance(value, dict) else value


class KernelArms(Model):
    """The kernel and the two configurations that are compared."""

    entry: str = Field(
        description="path/to/file.py:ClassName, from the repository's root", pattern=r"^[^:]+\.py:[A-Za-z_]\w*$"
    )
    baseline: Config = Field(default_factory=dict, description="knob -> value; the kernel's defaults fill the rest")
    candidate: Config = Field(min_length=1, description="knob -> value; what is left out is the baseline's")


class CommandArm(Model):
    """One arm of a command experiment."""

    argv: list[str] = Field(
        min_length=1, description="program and arguments; {axis} stands for the operating point's value"
    )
    env: dict[str, str] = Field(default_factory=dict, description="environment variables added for this arm")


class Metric(Model):
    """Where a command's metric comes from: its wall time, a pattern in its output, or a field of a file that it writes."""

    unit: str = Field(description="e.g. s, ms, tok/s, GB/s")
    better: str = Field("less", pattern="^(less|more)$", description="which way is better: less or more")
    pattern: str | None = Field(
        None, description="regular expression with one group, searched in stdout; the last match counts"
    )
    file: str | None = Field(None, description="JSON, JSONL or CSV file that the command writes, relative to the root")
    field: str | None = Field(
        None, description="dotted path (JSON) or column (CSV) of the value; the last line or row counts"
    )

    @model_validator(mode="after")
    def _one_source(self) -> Metric:
        if self.pattern and self.file:
            raise ValueError("take the metric from a pattern or from a file, not both")
        if self.pattern is not None:
            _expect_one_group(self.pattern)
        if self.file and (Path(self.file).is_absolute() or ".." in Path(self.file).parts):
            raise ValueError(f"the file {self.file!r} is not inside of the repository; give a path from its root")
        if self.file and not self.field:
            raise ValueError("a file needs a field: the dotted path or column that holds the value")
        return self


def _expect_one_group(pattern: str) -> None:
    try:
        groups = re.compile(pattern).groups
    except re.error as error:
        raise ValueError(f"the pattern {pattern!r} is not a regular expression: {error}") from None
    if groups != 1:
        raise ValueError(f"the pattern {pattern!r} has {groups} groups; put the value, and only it, in (parentheses)")


class CommandArms(Model):
    """A server or a script that is measured as a whole process."""

    baseline: CommandArm
    candidate: CommandArm
    metrics: dict[str, Metric] = Field(
        default_factory=dict, description="name -> source; 'time' (wall seconds) is always there"
    )
    sources: list[str] = Field(
        default_factory=list, description="files of the repository that the command runs; their blobs are recorded"
    )


class Guard(Prediction):
    """A bound that must not break, e.g. ``<= +1%`` at other points. A win that breaks one is `mixed`."""


Norm = Literal["relative-l2", "max-normalised", "elementwise"]


class Numerics(Model):
    """The numerics gate."""

    max_rel_error: float | None = Field(
        None, gt=0, description="||out - ref|| / ||ref|| allowed; the kernel's own tolerance by default"
    )
    norm: Norm = Field(
        "relative-l2",
        description="what max_rel_error bounds: relative-l2 ||out - ref|| / ||ref||; max-normalised max|out - ref| / max|ref|; "
        "elementwise max of |out - ref| / max(|ref|, rms(ref))",
    )
    seeds: int = Field(3, ge=3, le=20, description="fresh inputs to check at each operating point")
    adversarial: bool = Field(True, description="check one set of hard inputs too: the kernel's own, or floats times 8")


class Measure(Model):
    """Budget and shape of the measurement. Half-width and noise are relative (0.005 is 0.5 %)."""

    min_pairs: int = Field(10, ge=8, le=1000, description="pairs before the first look; below 8 no verdict is possible")
    max_pairs: int = Field(120, ge=8, le=5000, description="pairs at the most, for each operating point")
    seconds: float = Field(60, gt=0, le=86_400, description="time budget of one operating point, seconds")
    half_width: float = Field(
        0.005, gt=0, lt=1, description="stop when the interval's half-width is this or a quarter of the band"
    )
    max_noise: float | None = Field(
        None, gt=0, lt=1, description="A/A effect above which a point is invalid: 0.5 % on a GPU, 3 % on a CPU"
    )
    timeout: float = Field(
        600, gt=0, le=86_400, description="seconds without a sign of life after which the run is killed"
    )
    cache: str = Field(
        "cold", pattern="^(cold|warm)$", description="cold: rotate inputs through more than the last-level cache"
    )
    llc_bytes: int | None = Field(
        None, gt=0, description="size of the last-level cache in bytes, where what the device reports is wrong"
    )
    design: Literal["abba", "isolated"] = Field(
        "abba",
        description="isolated: untimed calls of the same arm before each sample, for arms that disturb each other (collectives)",
    )

    @model_validator(mode="after")
    def _min_below_max(self) -> Measure:
        if self.min_pairs > self.max_pairs:
            raise ValueError(f"min_pairs ({self.min_pairs}) is above max_pairs ({self.max_pairs})")
        return self


class IfRefuted(Model):
    """What the dead end says if the hypothesis is refuted."""

    reason: Text | None = Field(None, description="why, in a sentence; the measured effect by default")
    reopen_when: list[Condition] = Field(
        default_factory=list, description="conditions that would reopen it, e.g. {kernel: changed}"
    )


class Spec(Model):
    """One experiment."""

    campaign: Slug = Field(description="id of the campaign: the name of a file in plans/, without .yaml")
    title: Line = Field(description="a short imperative line; it heads the commit")
    lever: Slug = Field(description="the lever that this tests")
    techniques: list[Slug] = Field(
        default_factory=list, description="other names under which the log may know this idea"
    )
    rests_on: list[Slug] = Field(default_factory=list, description="premises that this rests on")
    hypothesis: Hypothesis
    kernel: KernelArms | None = None
    command: CommandArms | None = None
    points: dict[str, list[Scalar]] = Field(
        default_factory=dict, description="axis -> value or list of values; every combination is measured"
    )
    guards: list[Guard] = Field(default_factory=list, description="bounds that must not break")
    numerics: Numerics = Field(default_factory=Numerics)
    measure: Measure = Field(default_factory=Measure)
    if_refuted: IfRefuted = Field(default_factory=IfRefuted)

    @field_validator("points", mode="before", json_schema_input_type=dict[str, list[Scalar] | Scalar])
    @classmethod
    def _scalars_are_lists(cls, value: Any) -> Any:
        if isinstance(value, dict):
            return {axis: item if isinstance(item, list) else [item] for axis, item in value.items()}
        return value

    @model_validator(mode="after")
    def _one_kind(self) -> Spec:
        if (self.kernel is None) == (self.command is None):
            raise ValueError("a spec has either kernel: or command:")
        return self

    def cells(self) -> list[Point]:
        """Every operating point, in the order of the spec (the last axis runs fastest)."""
        axes = list(self.points)
        return [dict(zip(axes, values, strict=True)) for values in itertools.product(*self.points.values())]

    def changed_knobs(self) -> Config:
        """The knobs that the candidate sets otherwise than the baseline."""
        if self.kernel is None:
            return {}
        return {k: v for k, v in self.kernel.candidate.items() if self.kernel.baseline.get(k) != v}
