"""The numerics gate: both arms against the kernel's float64 reference, on poisoned outputs and fresh inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from perfplan.measure.job import PointFailed
from perfplan.models.base import Config, Point

POISON = -1.2345e3  # a finite pattern beside NaN: an output of NaN could be right, and NaN poison would hide it


def check_arm(
    kernel: Any, point: Point, config: Config, inputs: Mapping[str, Any], expected: Mapping[str, Any], device: str
) -> float:
    """Relative L2 error of one arm, the worst over its outputs. Raises PointFailed for what no tolerance forgives."""
    import torch

    before = {name: _fingerprint(tensor) for name, tensor in inputs.items()}
    results = []
    for poison in (math.nan, POISON):
        outputs = allocate(kernel, point, device, poison)
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


def allocate(kernel: Any, point: Point, device: str, poison: float = 0.0) -> dict[str, Any]:
    """The outputs that the kernel declares, filled with `poison`."""
    import torch

    declared = kernel.outputs(point)
    try:
        items = [(name, tuple(shape), dtype) for name, (shape, dtype) in declared.items()]
    except (TypeError, ValueError, AttributeError):
        raise PointFailed("bad-kernel", f"outputs() must give name -> (shape, dtype), not {declared!r}") from None
    if not items:
        raise PointFailed("bad-kernel", "outputs() declares no output")
    for name, _, dtype in items:
        if not isinstance(dtype, torch.dtype):
            raise PointFailed("bad-kernel", f"outputs()[{name!r}]: {dtype!r} is not a torch dtype")
    filled = {}
    for name, shape, dtype in items:
        value: Any = poison if dtype.is_floating_point or dtype.is_complex else -86
        filled[name] = (
            torch.full(shape, value, dtype=dtype, device=device)
            if dtype is not torch.bool
            else torch.zeros(shape, dtype=dtype, device=device)
        )
    return filled


def reference(kernel: Any, point: Point, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """The kernel's reference, checked for shape, names and precision."""
    import torch

    expected: Mapping[str, Any] = kernel.reference(point, inputs)
    declared = kernel.outputs(point)
    if not isinstance(expected, Mapping) or set(expected) != set(declared):
        got = sorted(expected) if isinstance(expected, Mapping) else type(expected).__name__
        raise PointFailed("bad-kernel", f"reference() must give {sorted(declared)}, not {got}")
    for name, tensor in expected.items():
        shape = tuple(declared[name][0])
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
    import torch

    want = expected[name]
    got, again = first.to(want.device).double(), second.to(want.device).double()
    never_written = (
        first.isnan() & (second == torch.tensor(POISON, dtype=second.dtype)) if first.is_floating_point() else None
    )
    if never_written is not None and bool(never_written.any()):
        count = int(never_written.sum())
        raise PointFailed("numerics", f"{name}: {count:,} of {first.numel():,} elements were never written")
    for result in (got, again):
        if not torch.equal(result.isfinite(), want.double().isfinite()):
            kind = "NaN" if bool(result.isnan().any()) else "infinity or a finite value in the wrong place"
            raise PointFailed("numerics", f"{name}: {kind} where the reference has none")
    finite = want.double().isfinite()
    return max(_relative(result[finite], want.double()[finite]) for result in (got, again))


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
