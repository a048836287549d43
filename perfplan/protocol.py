"""What perfplan asks of a kernel, and nothing more.

A kernel is a class in a file of the user's repository, named in a spec as ``kernels/softmax.py:Softmax``. It needs no
import from perfplan: plain attributes and methods of these names are enough. `docs/kernel-protocol.md` has a worked
example. `Kernel` below is for type checkers and readers; `read_axes` and `read_knobs` turn a kernel's declarations into
typed values and name what is wrong with them.

The order of calls in a run, for each operating point: ``inputs`` (once for each input set and seed), ``outputs`` (the
harness allocates what it declares), ``resolve``, ``prepare`` (once for each arm and input set, untimed), then the
callable that ``prepare`` returned, many times, timed. ``reference`` is called on the inputs of the numerics gate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from perfplan.models.base import Scalar
from perfplan.models.kernel import Axis, Knob

Point = Mapping[str, Scalar]
Config = Mapping[str, Scalar]
Tensors = Mapping[str, Any]  # name -> torch.Tensor; torch is not imported here, it costs a second


class Kernel(Protocol):
    """A kernel that perfplan can measure. Methods marked *optional* may be absent.

    Attributes:
        axes: the workload sizes, e.g. ``{"batch": int, "kv_len": int, "heads": 64}``. A type makes the axis required,
            a value is its default (and gives its type), a list or tuple gives the allowed values, the first being the default.
        knobs: what a configuration can set, e.g. ``{"nsplit": 2, "num_warps": [4, 8]}``. A value is the default, a list
            gives the choices with the default first. A dict says more: ``{"default": 2, "type": int, "min": 1,
            "words": ["wave-aware"], "help": "number of KV splits"}`` (``words`` are strings allowed beside the type).
        constants: optional; names of inputs that ``prepare`` may read in advance (weights that it repacks): they keep their
            content while the kernel is timed, other floating-point inputs do not.
        tolerance: optional; the relative L2 error ``||out - ref|| / ||ref||`` allowed where the spec sets none.
    """

    axes: Mapping[str, Any]
    knobs: Mapping[str, Any]

    def inputs(self, point: Point, seed: int, device: str) -> Tensors:
        """Fresh random inputs on ``device`` ("cpu", "cuda:0"). The same seed gives the same values."""

    def outputs(self, point: Point) -> Mapping[str, tuple[tuple[int, ...], Any]]:
        """Name -> (shape, torch.dtype) of each output. The harness allocates and poisons them."""

    def reference(self, point: Point, inputs: Tensors) -> Tensors:
        """The right answer in float64, from the inputs as they are (already quantised). Same names and shapes as outputs."""

    def prepare(self, point: Point, config: Config, inputs: Tensors, outputs: Tensors) -> Callable[[], None]:
        """Allocate scratch, plan, and return the function to be timed: it reads ``inputs`` and fills ``outputs``.

        ``config`` has every knob, after ``resolve``. Raise ValueError for a configuration that cannot work, saying why.
        The callable must launch on the current CUDA stream and be safe to capture in a CUDA graph; where it isn't, the
        harness times plain launches and says so in the record.
        """

    def resolve(self, point: Point, config: Config, device: Mapping[str, Any]) -> Mapping[str, Scalar]:
        """Optional. Turn policies into numbers (``nsplit: wave-aware`` -> 3). ``device`` has kind, name, arch, sm_count."""

    def work(self, point: Point, config: Config) -> Mapping[str, int]:
        """Optional. ``bytes`` moved through device memory at the least, and ``flops``, of one call."""

    def grid(self, point: Point, config: Config, device: Mapping[str, Any]) -> int:
        """Optional. Number of CTAs of the main kernel of one call."""

    def adversarial(self, point: Point, seed: int, device: str) -> Tensors:
        """Optional. Hard inputs for the numerics gate: large values, ties, ragged lengths. By default floats times 8."""

    def memory(self, point: Point) -> int:
        """Optional. Bytes of one input set with its outputs and scratch, for the cost estimate of `perfplan check`."""


REQUIRED_METHODS = ("inputs", "outputs", "reference", "prepare")
OPTIONAL_METHODS = ("resolve", "work", "grid", "adversarial", "memory")

_TYPE_NAMES: dict[type, str] = {int: "int", float: "float", str: "str", bool: "bool"}


def read_axes(declared: Mapping[str, Any]) -> dict[str, Axis]:
    """The kernel's ``axes`` as typed values. Raises ValueError naming the axis that is declared wrongly."""
    axes = {}
    for name, declaration in declared.items():
        if isinstance(declaration, type):
            axes[name] = Axis(name=name, type=_type_name(name, declaration))
        elif isinstance(declaration, (list, tuple)):
            axes[name] = Axis(
                name=name,
                type=_type_name(name, _common_type(name, declaration)),
                default=declaration[0],
                choices=tuple(declaration),
            )
        else:
            axes[name] = Axis(name=name, type=_type_name(name, type(declaration)), default=declaration)
    return axes


def read_knobs(declared: Mapping[str, Any]) -> dict[str, Knob]:
    """The kernel's ``knobs`` as typed values. Raises ValueError naming the knob that is declared wrongly."""
    return {name: _read_knob(name, declaration) for name, declaration in declared.items()}


def _read_knob(name: str, declaration: Any) -> Knob:
    if isinstance(declaration, Mapping):
        unknown = set(declaration) - {"default", "type", "choices", "words", "min", "max", "help"}
        if unknown:
            raise ValueError(f"knob {name!r}: unknown field {sorted(unknown)[0]!r}")
        if "default" not in declaration:
            raise ValueError(f"knob {name!r}: needs a default")
        fields = {key: declaration[key] for key in ("min", "max", "help") if key in declaration}
        default = declaration["default"]
        return Knob(
            name=name,
            type=_type_name(name, declaration.get("type", type(default))),
            default=default,
            choices=tuple(declaration.get("choices", ())),
            words=tuple(declaration.get("words", ())),
            **fields,
        )
    if isinstance(declaration, (list, tuple)):
        kind = _common_type(name, declaration)
        return Knob(name=name, type=_type_name(name, kind), default=declaration[0], choices=tuple(declaration))
    return Knob(name=name, type=_type_name(name, type(declaration)), default=declaration)


def _common_type(name: str, values: Any) -> type:
    if not values:
        raise ValueError(f"{name!r}: an empty list of choices; give at least one value, the default first")
    kinds = {type(value) for value in values}
    if len(kinds) > 1:
        raise ValueError(f"{name!r}: choices of several types: {list(values)!r}")
    kind: type = kinds.pop()
    return kind


def _type_name(name: str, kind: Any) -> str:
    if kind not in _TYPE_NAMES:
        raise ValueError(f"{name!r}: type {getattr(kind, '__name__', kind)!r} is not one of int, float, str, bool")
    return _TYPE_NAMES[kind]
