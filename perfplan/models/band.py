"""A predicted change of a metric: an interval of relative changes, closed, possibly open to one side.

Written in a spec as ``[-25%, -15%]``, ``<= -5%``, ``>= +3%`` or ``within 1%``.
"""

from __future__ import annotations

import math
import re
from typing import Any

from pydantic import GetJsonSchemaHandler, model_serializer, model_validator
from pydantic_core import CoreSchema

from perfplan.models.base import Model

_PERCENT = re.compile(r"^\s*([+-]?\d+(?:\.\d+)?)\s*%\s*$")
_ONE_SIDED = re.compile(r"^\s*(<=|>=)\s*(.+)$")
_LISTED = re.compile(r"^\s*\[([^,]+),([^,]+)\]\s*$")
_WITHIN = re.compile(r"^\s*within\s+(.+)$")
EXPECTED = "expected a band such as [-25%, -15%], '<= -5%', '>= +3%' or 'within 1%'"


class Band(Model):
    """Relative changes from `low` to `high`: -0.25 is 25 % less. None is unbounded on that side."""

    low: float | None = None
    high: float | None = None

    @model_validator(mode="before")
    @classmethod
    def _read(cls, value: Any) -> Any:
        if isinstance(value, (str, list, tuple)):
            return _parse(value)
        return value

    @model_validator(mode="after")
    def _ordered(self) -> Band:
        if self.low is None and self.high is None:
            raise ValueError(EXPECTED)
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(
                f"the lower bound {self.low:+.4g} is above the upper bound {self.high:+.4g}; write the smaller first"
            )
        if self.high is not None and self.high <= -1:
            raise ValueError("a change of -100% or less is not possible")
        return self

    @model_serializer
    def _write(self) -> dict[str, float | None]:
        return {"low": self.low, "high": self.high}

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """As it is written in a spec: text, or a list of two percentages."""
        percentage = {"type": "string", "pattern": r"^\s*[+-]?\d+(\.\d+)?\s*%\s*$"}
        text = {"type": "string", "pattern": r"^\s*(<=|>=|within\s|\[)", "examples": ["<= -5%", ">= +3%", "within 1%"]}
        return {"anyOf": [{"type": "array", "items": percentage, "minItems": 2, "maxItems": 2}, text]}

    @property
    def width(self) -> float:
        """Width in relative change; infinite for a one-sided band."""
        if self.low is None or self.high is None:
            return math.inf
        return self.high - self.low

    @property
    def text(self) -> str:
        """The band as a spec has it: `[-25%, -15%]`, `<= -5%`, `>= +3%`; 'within 1%' comes out as `[-1%, +1%]`."""
        if self.low is None:
            return f"<= {_signed(self.high)}"
        if self.high is None:
            return f">= {_signed(self.low)}"
        return f"[{_signed(self.low)}, {_signed(self.high)}]"

    def contains(self, low: float, high: float) -> bool:
        """Whether the interval [low, high] lies inside the band."""
        return (self.low is None or low >= self.low) and (self.high is None or high <= self.high)

    def disjoint(self, low: float, high: float) -> bool:
        """Whether the interval [low, high] lies outside the band."""
        return (self.low is not None and high < self.low) or (self.high is not None and low > self.high)


def _parse(value: Any) -> dict[str, float | None]:
    if isinstance(value, (list, tuple)):
        if len(value) != 2:
            raise ValueError(f"{len(value)} values; {EXPECTED}")
        return {"low": _percent(value[0]), "high": _percent(value[1])}
    listed = _LISTED.match(value)
    if listed:
        return {"low": _percent(listed[1]), "high": _percent(listed[2])}
    one_sided = _ONE_SIDED.match(value)
    if one_sided:
        bound = _percent(one_sided[2])
        return {"low": None, "high": bound} if one_sided[1] == "<=" else {"low": bound, "high": None}
    within = _WITHIN.match(value)
    if within:
        bound = _percent(within[1])
        if bound < 0:
            raise ValueError(f"'within' takes a positive percentage, not {within[1].strip()}")
        return {"low": -bound, "high": bound}
    raise ValueError(f"{value!r} is not a band; {EXPECTED}")


def _signed(change: float | None) -> str:
    return f"{round((change or 0.0) * 100, 10):+.10g}%".replace("+0%", "0%").replace("-0%", "0%")


def _percent(value: Any) -> float:
    match = _PERCENT.match(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"{value!r} is not a percentage; {EXPECTED}")
    return round(float(match[1]) / 100, 12)
