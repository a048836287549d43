"""The numerics gate: both arms against the kernel's float64 reference, on poisoned outputs and fresh inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from perfplan.measure.job import PointFailed
from perfplan.models.base import Config, Point

# Two fillings of an output before a call. An element that still has its poison after both was never written. NaN alone would
# hide an unwritten element where NaN is the right answer.
FLOAT_POISONS = (math.nan, -1.2345e3)
INTEGER_POISONS = (0x55, 0x2A)


def check_arm(
    kernel: Any, point: Point, config: Config, inputs: Mapping[str, Any], expected: Mapping[str, Any], device: str
) -> float:
    """Relative L2 error of one arm, the worst over its outputs. Raises PointFailed for what no tolerance forgives."""
    import torch

    before = {name: _fingerprint(tensor) for name, tensor in inputs.items()}
    results = []
    for filling in (0, 1):
        outputs = allocate(kernel, point, device, filling)
        call = kernel.prepare(point, config, inputs, outputs)
        _expect_callable(call)
        call()
        if device != "cpu":
            torch.cuda.synchronize()
        results.append(outputs)
    changed = [name for name, tensor in inputs.items() if _fingerprint(tensor) != before[name]]
    if changed:
        raise PointFailed("numerics", f"the kernel changed its input {changed[0]!r}")
    return max(_error(name, results[0][name], results[1][name], expected) for name in results[0])


def allocate(kernel: Any, point: Point, device: str, filling: int = 1) -> dict[str, Any]:
    """The outputs that the kernel declares, filled with the first (0) or second (1) poison of their dtype."""
    import torch

    return {
        name: torch.full(shape, _poison(dtype, filling), dtype=dtype, device=device)
        for name, (shape, dtype) in declared_outputs(kernel, point).items()
    }


def declared_outputs(kernel: Any, point: Point) -> dict[str, tuple[tuple[int, ...], Any]]:
    """What the kernel says of its outputs: name -> (shape, dtype). Raises PointFailed where it says it wrongly."""
    import torch

    declared = kernel.outputs(point)
    try:
        outputs = {name: (tuple(shape), dtype) for name, (shape, dtype) in declared.items()}
    except (TypeError, ValueError, AttributeError):
        raise PointFailed("bad-kernel", f"outputs() must give name -> (shape, dtype), not {declared!r}") from None
    if not outputs:
        raise PointFailed("bad-kernel", "outputs() declares no output")
    for name, (_, dtype) in outputs.items():
        if not isinstance(dtype, torch.dtype):
            raise PointFailed("bad-kernel", f"outputs()[{name!r}]: {dtype!r} is not a torch dtype")
    return outputs


def _poison(dtype: Any, filling: int) -> float | int | bool:
    import torch

    if dtype is torch.bool:
        return bool(filling)
    return (FLOAT_POISONS if dtype.is_floating_point or dtype.is_complex else INTEGER_POISONS)[filling]


def reference(kernel: Any, point: Point, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """The kernel's reference, checked for shape, names and precision."""
    import torch

    expected: Mapping[str, Any] = kernel.reference(point, inputs)
    declared = declared_outputs(kernel, point)
    if not isinstance(expected, Mapping) or set(expected) != set(declared):
        got = sorted(expected) if isinstance(expected, Mapping) else type(expected).__name__
        raise PointFailed("bad-kernel", f"reference() must give {sorted(declared)}, not {got}")
    for name, tensor in expected.items():
        shape = declared[name][0]
        if tuple(tensor.shape) != shape:
            raise PointFailed(
                "bad-kernel", f"{name}: reference() has shape {tuple(tensor.shape)}, outputs() declares {shape}"
            )
        if tensor.dtype.is_floating_point and tensor.dtype != torch.float64:
            raise PointFailed("bad-kernel", f"{name}: reference() is {tensor.dtype}, it must be float64")
    return expected


def _expect_callable(call: object) -> None:
    if not isinstance(call, Callable):  # type: ignore[arg-type]
        raise PointFailed("bad-kernel", f"prepare() must return the function to be timed, not {type(call).__name__}")


def _error(name: str, first: Any, second: Any, expected: Mapping[str, Any]) -> float:
    """Relative error of an output over both fillings; unwritten elements and misplaced non-finite values first."""
    want = expected[name].double()
    if not want.numel():
        raise PointFailed("bad-kernel", f"{name}: the output is empty, there is nothing to check")
    unwritten = _has_poison(first, 0) & _has_poison(second, 1)
    if bool(unwritten.any()):
        raise PointFailed(
            "numerics", f"{name}: {int(unwritten.sum()):,} of {first.numel():,} elements were never written"
        )
    worst = 0.0
    for result in (first.to(want.device).double(), second.to(want.device).double()):
        _expect_same_nonfinite(name, result, want)
        finite = want.isfinite()
        worst = max(worst, _relative(result[finite], want[finite]))
    return worst


def _has_poison(output: Any, filling: int) -> Any:
    import torch

    poison = _poison(output.dtype, filling)
    if poison != poison:
        return output.isnan()
    return output == torch.tensor(poison, dtype=output.dtype, device=output.device)


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


def _relative(result: Any, want: Any) -> float:
    """||result - want|| / ||want||, with ||result|| where the reference is zero."""
    if want.numel() == 0:
        return 0.0
    norm = float(want.norm())
    difference = float((result - want).norm())
    return difference / norm if norm > 0 else difference


def _fingerprint(tensor: Any) -> Any:
    """A checksum of the tensor's bytes: two sums over 64-bit words, one of them weighted by position (both wrap round)."""
    import torch

    if not isinstance(tensor, torch.Tensor) or not tensor.numel():
        return None
    raw = tensor.detach().contiguous().view(-1).view(torch.uint8)
    words = torch.nn.functional.pad(raw, (0, -raw.numel() % 8)).view(torch.int64)
    weights = torch.arange(1, words.numel() + 1, device=raw.device)
    return int(words.sum()), int((words * weights).sum())
