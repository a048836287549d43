"""The numerics gate: both arms against the kernel's float64 reference, on poisoned outputs and fresh inputs, before timing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from perfplan.measure import buffers, norms
from perfplan.measure.job import PointFailed
from perfplan.models.base import Config, Point
from perfplan.models.record import Gate
from perfplan.models.spec import Numerics

GATE_SEED = 1_000  # seeds of the gate; those of the timed sets start at 0
MAGNITUDE = 8.0  # what the derived hard inputs are multiplied by: a power of two, so that the values stay exact
_SCALED = ("torch.float64", "torch.float32", "torch.bfloat16", "torch.float16")


@dataclass(frozen=True)
class Subject:
    """A kernel at a point, and what its results must keep to."""

    kernel: Any
    point: Point
    device: str
    arms: tuple[Config, Config]  # baseline, candidate
    numerics: Numerics
    tolerance: float

    def inputs(self, seed: int) -> Mapping[str, Any]:
        """Inputs of a seed."""
        made: Mapping[str, Any] = self.kernel.inputs(self.point, seed, self.device)
        return made

    def error(self, name: str, result: Any, expected: Any) -> float:
        """Error of an output in the norm that was chosen. Raises PointFailed for a result that does not pass."""
        distance = norms.distance(name, result, expected, self.numerics.norm)
        refused = distance.refused(self.numerics.norm, self.tolerance)
        if refused:
            raise PointFailed("numerics", f"{name}: {refused}")
        return distance.error


@dataclass(frozen=True)
class Passed:
    """Errors of both arms, the worst of all inputs, and what the gate was."""

    errors: tuple[float, float]
    report: Gate


def check(subject: Subject, looked: Callable[[], None]) -> Passed:
    """Both arms on `seeds` fresh inputs and one hard set. Raises PointFailed for the first that is wrong.

    `looked` is called after each load of code, so that its sources are noted.
    """
    worst = [0.0, 0.0]
    references: list[Mapping[str, Any]] = []
    before: Mapping[str, Any] = {}
    for number in range(subject.numerics.seeds):
        inputs = subject.inputs(GATE_SEED + number)
        _expect_seeded(subject, inputs, before, number)
        before = buffers.checksums(inputs)
        expected = reference(subject.kernel, subject.point, inputs)
        _check_arms(subject, inputs, expected, worst, thorough=number == 0)
        references = [*references[:1], expected]
        looked()
    report = Gate(seeds=subject.numerics.seeds, controls=_controls(subject, references[0], references[-1]))
    adversarial = _adversarial(subject, worst)
    return Passed((worst[0], worst[1]), report.model_copy(update={"adversarial": adversarial}))


def _expect_seeded(subject: Subject, inputs: Mapping[str, Any], before: Mapping[str, Any], number: int) -> None:
    """Another seed gives other values; the same seed, asked once at the start, the same."""
    now = buffers.checksums(inputs)
    if before and now == before:
        raise PointFailed("bad-kernel", "inputs() gives the same values for every seed; draw them from the seed")
    if number == 0 and buffers.checksums(subject.inputs(GATE_SEED)) != now:
        raise PointFailed("bad-kernel", "inputs() gives other values for the same seed; draw them from the seed alone")


def _check_arms(
    subject: Subject, inputs: Mapping[str, Any], expected: Mapping[str, Any], worst: list[float], *, thorough: bool
) -> None:
    for arm, name in ((0, "baseline"), (1, "candidate")):
        try:
            found = check_arm(subject, subject.arms[arm], inputs, expected, thorough=thorough)
        except PointFailed as failure:
            raise PointFailed(failure.reason, f"{name}: {failure.detail}") from None
        worst[arm] = max(worst[arm], found)


def check_arm(
    subject: Subject, config: Config, inputs: Mapping[str, Any], expected: Mapping[str, Any], *, thorough: bool
) -> float:
    """Error of one arm, the worst over its outputs; with `thorough` once for each poison, else with NaN alone.

    Raises PointFailed for what no tolerance forgives: elements never written, bytes written outside, a changed input.
    """
    before = buffers.checksums(inputs)
    made = []
    for filling in range(buffers.FILLINGS) if thorough else (buffers.FILLINGS - 1,):
        outputs = buffers.allocate(subject.kernel, subject.point, subject.device, filling)
        call = subject.kernel.prepare(subject.point, config, inputs, buffers.tensors(outputs))
        expect_callable(call)
        call()
        synchronize(subject.device)
        for each in outputs.values():
            expect_in_place(each, inputs)
        made.append(outputs)
    altered = buffers.changed(inputs, before)
    if altered:
        raise PointFailed("numerics", f"the kernel changed its input {altered!r}")
    if thorough:
        _expect_written(made)
    return max(subject.error(name, each.tensor, expected[name]) for outputs in made for name, each in outputs.items())


def _expect_written(made: list[dict[str, buffers.Output]]) -> None:
    first, second = made[0], made[1]
    for name, each in first.items():
        if not each.tensor.numel():
            raise PointFailed("bad-kernel", f"{name}: the output is empty, there is nothing to check")
        unwritten = buffers.has_poison(each.tensor, 0) & buffers.has_poison(second[name].tensor, 1)
        if bool(unwritten.any()):
            count = int(unwritten.sum())
            raise PointFailed("numerics", f"{name}: {count:,} of {each.tensor.numel():,} elements were never written")


def expect_in_place(output: buffers.Output, inputs: Mapping[str, Any]) -> None:
    """Raises PointFailed where a kernel wrote outside of its output, or moved it."""
    fault = output.fault(inputs)
    if fault:
        raise PointFailed("numerics", fault)


def synchronize(device: str) -> None:
    """Wait for the device."""
    if device != "cpu":
        sys.modules["torch"].cuda.synchronize()


def expect_callable(call: object) -> None:
    """What prepare() returned must be a function."""
    if not callable(call):
        raise PointFailed("bad-kernel", f"prepare() must return the function to be timed, not {type(call).__name__}")


def reference(kernel: Any, point: Point, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """The kernel's reference, checked for shape, names and precision."""
    import torch

    expected: Mapping[str, Any] = kernel.reference(point, inputs)
    declared = buffers.declared_outputs(kernel, point)
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


def _controls(subject: Subject, one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, float]:
    """Errors of plainly wrong results, the least over the outputs. Raises PointFailed where the gate would let one pass."""
    found: dict[str, float] = {}
    for output, expected in one.items():
        for name, wrong in norms.controls(expected.double(), other[output].double()):
            distance = norms.distance(output, wrong, expected, subject.numerics.norm)
            if not distance.refused(subject.numerics.norm, subject.tolerance):
                detail = f"{output}: a wrong result ({name}) has error {distance.error:.3g} and would pass"
                raise PointFailed("gate-too-weak", f"{detail} at tolerance {subject.tolerance:g}")
            error = distance.error if distance.error > subject.tolerance else distance.outlier
            found[name] = min(found.get(name, error), error)
    return found


def _adversarial(subject: Subject, worst: list[float]) -> str:
    """Check the arms on hard inputs: the kernel's own where it has some, else floats times 8. Says which."""
    if not subject.numerics.adversarial:
        return "off in the spec"
    own = getattr(subject.kernel, "adversarial", None)
    seed = GATE_SEED + subject.numerics.seeds
    if callable(own):
        inputs, words = own(subject.point, seed, subject.device), "the kernel's own"
    else:
        inputs, words = _magnified(subject.inputs(seed)), f"floats times {MAGNITUDE:g}"
    expected = reference(subject.kernel, subject.point, inputs)
    if not callable(own) and _overflows(subject, expected):
        return f"none: {words} overflow the output"
    try:
        _check_arms(subject, inputs, expected, worst, thorough=False)
    except PointFailed as failure:
        raise PointFailed(failure.reason, f"{failure.detail} (hard inputs: {words})") from None
    return words


def _magnified(inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: tensor.mul(MAGNITUDE) if str(getattr(tensor, "dtype", "")) in _SCALED else tensor
        for name, tensor in inputs.items()
    }


def _overflows(subject: Subject, expected: Mapping[str, Any]) -> bool:
    import torch

    for name, (_, dtype) in buffers.declared_outputs(subject.kernel, subject.point).items():
        if dtype.is_floating_point:
            finite = expected[name][expected[name].isfinite()]
            if finite.numel() and float(finite.abs().max()) > torch.finfo(dtype).max / 2:
                return True
    return False
