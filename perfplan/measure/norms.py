"""How far a result is from the reference, and the wrong results that a gate must be able to tell. Pure torch arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from perfplan.measure.job import PointFailed

# One grossly wrong element drowns in the L2 norm of a large output. So no single error may exceed this many times the
# tolerance, relative to the largest value: far outside of rounding, which has no such tails.
OUTLIER_FACTOR = 16
MOST_OUTLIER = 0.5
WRONG_SCALE = 1.1


@dataclass(frozen=True)
class Distance:
    """How far a result is from the reference: in the chosen norm, and its worst element relative to the largest value."""

    error: float
    outlier: float

    def refused(self, norm: str, tolerance: float) -> str:
        """Why the gate refuses it; empty where it passes. NaN never passes."""
        if not self.error <= tolerance:
            return f"{norm} error {self.error:.3g} is above {tolerance:g}"
        if norm == "relative-l2" and not self.outlier <= outlier_bound(tolerance):
            return f"an element is off by {self.outlier:.0%} of the largest value of the reference"
        return ""


def distance(name: str, result: Any, expected: Any, norm: str) -> Distance:
    """How far an output is from the reference. Raises PointFailed for misplaced non-finite values, which go first.

    relative-l2: ||result - expected|| / ||expected||; max-normalised: max|.| / max|expected|; elementwise: the largest of
    |.| / max(|expected|, rms(expected)). Where the reference is zero, the absolute error. `expected` is float64.
    """
    want = expected.double()
    got = result.to(want.device).double()
    _expect_same_nonfinite(name, got, want)
    finite = want.isfinite()
    if not bool(finite.any()):
        return Distance(0.0, 0.0)
    got, want = got[finite], want[finite]
    return Distance(_in_norm(got, want, norm), _relative_max(got, want))


def outlier_bound(tolerance: float) -> float:
    """Error of a single element that is allowed, relative to the largest value."""
    return min(MOST_OUTLIER, OUTLIER_FACTOR * tolerance)


def controls(expected: Any, other: Any) -> Iterator[tuple[str, Any]]:
    """Wrong results that a sound gate refuses. `other` is the reference for other inputs of the same shape."""
    import torch

    finite = expected.isfinite()
    yield "zeros", torch.where(finite, 0.0, expected)
    yield "stale output", torch.where(finite & other.isfinite(), other, expected)
    off = expected.clone().contiguous()
    off.view(-1)[int(torch.where(finite, expected, 0.0).abs().argmax())] = 0.0  # off by all of the largest value
    yield "one element off", off
    yield f"scaled by {WRONG_SCALE}", torch.where(finite, expected * WRONG_SCALE, expected)


def _in_norm(got: Any, want: Any, norm: str) -> float:
    if norm == "max-normalised":
        return _relative_max(got, want)
    difference = (got - want).abs()
    if norm == "elementwise":
        scale = want.abs().clamp(min=float(want.square().mean().sqrt()))
        return float((difference / scale.where(scale > 0, scale.new_ones(()))).max())
    size = float(want.norm())
    gap = float(difference.norm())
    return gap / size if size > 0 else gap


def _relative_max(got: Any, want: Any) -> float:
    largest = float(want.abs().max())
    gap = float((got - want).abs().max())
    return gap / largest if largest > 0 else gap


def _expect_same_nonfinite(name: str, result: Any, want: Any) -> None:
    """NaN and either infinity must stand just where the reference has them."""
    for kind, here, there in (
        ("NaN", result.isnan(), want.isnan()),
        ("infinity", result.isposinf(), want.isposinf()),
        ("minus infinity", result.isneginf(), want.isneginf()),
    ):
        extra, missing = int((here & ~there).sum()), int((there & ~here).sum())
        if extra:
            raise PointFailed("numerics", f"{name}: {kind} in {extra:,} elements where the reference has none")
        if missing:
            raise PointFailed("numerics", f"{name}: no {kind} in {missing:,} elements where the reference has it")
