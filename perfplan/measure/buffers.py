"""Tensors of the harness: outputs between red zones, poison, checksums, where memory lies, and fresh content in place."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from perfplan.measure.job import PointFailed
from perfplan.models.base import Point

# What an output is filled with before a call: two finite patterns and NaN. An element that still has its poison after both
# finite ones was never written; NaN alone would hide one where NaN is the right answer, and a finite one alone may be right.
FLOAT_POISONS = (-1.2345e3, 7.6543e2, math.nan)
INTEGER_POISONS = (0x55, 0x2A, 0x33)
FILLINGS = len(FLOAT_POISONS)
RED_ZONE = 4096  # bytes before and after each output; keeps the payload aligned
RED_BYTE = 0xA5
_CHUNK = 1 << 26  # bytes that a checksum works on at once


@dataclass(frozen=True)
class Output:
    """An output between red zones. `tensor` is what the kernel gets; `raw` is the allocation as bytes."""

    name: str
    tensor: Any
    raw: Any
    address: int

    @property
    def nbytes(self) -> int:
        """Bytes of the payload."""
        return int(self.raw.numel()) - 2 * RED_ZONE

    def fault(self, inputs: Mapping[str, Any]) -> str:
        """What is wrong with the memory of this output after a call; empty where nothing is."""
        payload = slice(RED_ZONE, RED_ZONE + self.nbytes)
        if self.tensor.data_ptr() != self.address:
            over = next((name for name, each in inputs.items() if overlap(self.tensor, each)), None)
            where = f"onto the input {over!r}" if over else "to other memory"
            return f"{self.name}: the kernel moved its output {where}"
        for zone, side in ((self.raw[: payload.start], "before"), (self.raw[payload.stop :], "after")):
            hit = int((zone != RED_BYTE).sum())
            if hit:
                return f"{self.name}: {hit:,} bytes {side} the output were overwritten"
        return ""


def allocate(kernel: Any, point: Point, device: str, filling: int = 0) -> dict[str, Output]:
    """The outputs that the kernel declares, between red zones, filled with the poison `filling` of their dtype."""
    import torch

    outputs = {}
    for name, (shape, dtype) in declared_outputs(kernel, point).items():
        nbytes = math.prod(shape) * dtype.itemsize
        raw = torch.full((nbytes + 2 * RED_ZONE,), RED_BYTE, dtype=torch.uint8, device=device)
        tensor = raw[RED_ZONE : RED_ZONE + nbytes].view(dtype).view(shape)
        outputs[name] = Output(name, tensor, raw, tensor.data_ptr())
    fill(outputs, filling)
    return outputs


def fill(outputs: Mapping[str, Output], filling: int) -> None:
    """Poison the outputs."""
    for each in outputs.values():
        each.tensor.fill_(poison(each.tensor.dtype, filling))


def tensors(outputs: Mapping[str, Output]) -> dict[str, Any]:
    """The outputs as a kernel gets them."""
    return {name: each.tensor for name, each in outputs.items()}


def poison(dtype: Any, filling: int) -> float | int | bool:
    """The value of poison `filling` for a dtype."""
    import torch

    if dtype is torch.bool:
        return bool(filling % 2)
    return (FLOAT_POISONS if dtype.is_floating_point or dtype.is_complex else INTEGER_POISONS)[filling]


def has_poison(tensor: Any, filling: int) -> Any:
    """Where a tensor still has its poison, as a mask."""
    import torch

    value = poison(tensor.dtype, filling)
    if value != value:
        return tensor.isnan()
    return tensor == torch.tensor(value, dtype=tensor.dtype, device=tensor.device)


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


def checksums(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """A checksum of each tensor's bytes."""
    return {name: _checksum(tensor) for name, tensor in inputs.items()}


def changed(inputs: Mapping[str, Any], before: Mapping[str, Any]) -> str:
    """Name of the first input whose bytes differ from `before`; empty where none does."""
    return next((name for name, value in checksums(inputs).items() if value != before[name]), "")


def _checksum(tensor: Any) -> Any:
    """Two sums over 64-bit words, one of them weighted by position (both wrap round)."""
    import torch

    if not isinstance(tensor, torch.Tensor) or not tensor.numel():
        return None
    raw = tensor.detach().contiguous().view(-1).view(torch.uint8)
    plain = weighted = 0
    for start in range(0, raw.numel(), _CHUNK):
        chunk = raw[start : start + _CHUNK]
        words = torch.nn.functional.pad(chunk, (0, -chunk.numel() % 8)).view(torch.int64)
        weights = torch.arange(start + 1, start + 1 + words.numel(), device=raw.device)
        plain += int(words.sum())
        weighted += int((words * weights).sum())
    return plain, weighted


def storage_bytes(sets: Iterable[Mapping[str, Any]]) -> int:
    """Bytes of memory behind tensors, what they share counted once."""
    found = {}
    for each in sets:
        for tensor in each.values():
            if hasattr(tensor, "untyped_storage"):
                storage = tensor.untyped_storage()
                found[storage.data_ptr()] = int(storage.nbytes())
    return sum(found.values())


def overlap(one: Any, other: Any) -> bool:
    """Whether two tensors share memory."""
    if not hasattr(one, "untyped_storage") or not hasattr(other, "untyped_storage"):
        return False
    return bool(one.numel() and one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr())


def renew(inputs: Mapping[str, Any], constants: Iterable[str], shift: int) -> bool:
    """Give the floating-point inputs other content in place: rows rolled by `shift`. False where none could be changed.

    Rolling keeps the values' distribution and whole rows, so that what was valid stays valid, at the cost of one copy.
    """
    import torch

    kept, renewed = set(constants), False
    for name, tensor in inputs.items():
        if name in kept or not isinstance(tensor, torch.Tensor) or not tensor.is_floating_point():
            continue
        if tensor.numel() < 2 or not tensor.is_contiguous():
            continue
        rows = tensor.detach() if tensor.shape[0] > 1 else tensor.detach().view(-1, 1)
        raw = rows.view(torch.uint8) if rows.dim() > 1 else rows.view(-1, 1).view(torch.uint8)
        raw.copy_(raw.roll(1 + shift % (raw.shape[0] - 1), 0))
        renewed = True
    return renewed
