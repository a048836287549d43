"""What a kernel declares of itself: its axes (workload sizes) and knobs (what a configuration can set)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from perfplan.models.base import Model, Scalar

TypeName = Literal["int", "float", "str", "bool"]


class Axis(Model):
    """A workload size. `default` is None for an axis that every operating point must give."""

    name: str
    type: TypeName
    default: Scalar | None = None
    choices: tuple[Scalar, ...] = ()

    def complaint(self, value: Scalar) -> str | None:
        """What is wrong with `value` on this axis, or None."""
        return _complaint(self.type, self.choices, (), value)


class Knob(Model):
    """A setting of the configuration. `words` are strings allowed beside the type, e.g. the name of a policy."""

    name: str
    type: TypeName
    default: Scalar
    choices: tuple[Scalar, ...] = ()
    words: tuple[str, ...] = ()
    min: float | None = None
    max: float | None = None
    help: str = ""

    def complaint(self, value: Scalar) -> str | None:
        """What is wrong with `value` for this knob, or None."""
        wrong = _complaint(self.type, self.choices, self.words, value)
        if wrong is None and isinstance(value, (int, float)) and not isinstance(value, bool):
            if self.min is not None and value < self.min:
                return f"{value} is below the least value {self.min:g}"
            if self.max is not None and value > self.max:
                return f"{value} is above the greatest value {self.max:g}"
        return wrong


class KernelInfo(Model):
    """The answer of a kernel that was asked to describe itself."""

    entry: str
    summary: str = ""
    axes: dict[str, Axis]
    knobs: dict[str, Knob]
    tolerance: Annotated[float, Field(gt=0)] | None = None
    optional: tuple[str, ...] = ()


def _complaint(type_name: str, choices: tuple[Scalar, ...], words: tuple[str, ...], value: Scalar) -> str | None:
    if isinstance(value, str) and value in words:
        return None
    allowed: tuple[type, ...] = {"int": (int,), "float": (int, float), "str": (str,), "bool": (bool,)}[type_name]
    fits = isinstance(value, allowed) and (type_name == "bool" or not isinstance(value, bool))
    options = [repr(word) for word in words]
    if not fits:
        return f"{value!r} is not of type {type_name}" + (f" nor one of {', '.join(options)}" if options else "")
    if choices and value not in choices:
        return f"{value!r} is not one of {', '.join([*map(repr, choices), *options])}"
    return None
