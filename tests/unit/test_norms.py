"""Norms, the wrong results that a gate must refuse, red zones, and inputs that change in place."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from perfplan.measure import bounds, buffers, norms  # noqa: E402
from perfplan.measure.job import PointFailed  # noqa: E402

NORMS = ("relative-l2", "max-normalised", "elementwise")


def tensor(*values: float) -> Any:
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.parametrize(
    ("norm", "expected"), [("relative-l2", 1 / 5), ("max-normalised", 1 / 4), ("elementwise", 1 / 12.5**0.5)]
)
def test_each_norm_is_what_its_name_says(norm: str, expected: float) -> None:
    assert norms.distance("y", tensor(4.0, 4.0), tensor(3.0, 4.0), norm).error == pytest.approx(expected)


@pytest.mark.parametrize("norm", NORMS)
@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=20), st.floats(1e-3, 1e3))
@settings(max_examples=50)
def test_a_norm_does_not_depend_on_the_scale_and_is_zero_for_the_right_result(
    norm: str, values: list[float], scale: float
) -> None:
    want = tensor(*values)
    assert norms.distance("y", want, want, norm).error == 0.0
    wrong = want + 0.5 * want.abs().max()
    found = norms.distance("y", wrong, want, norm).error
    assert norms.distance("y", wrong * scale, want * scale, norm).error == pytest.approx(found, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_non_finite_value_passes_only_where_the_reference_has_it(norm: str, bad: float) -> None:
    assert norms.distance("y", tensor(1.0, bad), tensor(1.0, bad), norm).error == 0.0
    for result, want in ((tensor(1.0, bad), tensor(1.0, 2.0)), (tensor(1.0, 2.0), tensor(1.0, bad))):
        with pytest.raises(PointFailed):
            norms.distance("y", result, want, norm)


def test_nan_never_passes_a_comparison() -> None:
    assert norms.Distance(math.nan, 0.0).refused("relative-l2", 0.1)
    assert norms.Distance(0.0, math.nan).refused("relative-l2", 0.1)


@pytest.mark.parametrize("norm", NORMS)
def test_a_tight_gate_refuses_every_control_and_a_wide_one_does_not(norm: str) -> None:
    generator = torch.Generator().manual_seed(0)
    want, other = (torch.randn(10_000, generator=generator, dtype=torch.float64) for _ in range(2))
    names = []
    for name, wrong in norms.controls(want, other):
        names.append(name)
        assert norms.distance("y", wrong, want, norm).refused(norm, 6.7e-3), name
    assert names == ["zeros", "stale output", "one element off", "scaled by 1.1"]
    passing = [
        name
        for name, wrong in norms.controls(want, other)
        if not norms.distance("y", wrong, want, norm).refused(norm, 0.5)
    ]
    assert "scaled by 1.1" in passing


class Outputs:
    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self._outputs = {"y": (shape, dtype)}

    def outputs(self, point: object) -> dict[str, Any]:
        return self._outputs


DTYPES = [torch.float32, torch.bfloat16, torch.float64, torch.int32, torch.uint8, torch.bool, torch.complex64]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (7, 1, 2)])
def test_outputs_lie_between_red_zones_in_any_dtype_and_shape(dtype: Any, shape: tuple[int, ...]) -> None:
    for filling in range(buffers.FILLINGS):
        output = buffers.allocate(Outputs(shape, dtype), {}, "cpu", filling)["y"]
        assert output.tensor.shape == shape and output.tensor.dtype == dtype and output.tensor.is_contiguous()
        assert bool(buffers.has_poison(output.tensor, filling).all())
        assert output.fault({}) == ""
        output.raw[buffers.RED_ZONE - 1] = 0
        output.raw[buffers.RED_ZONE + output.nbytes] = 0
        assert "1 bytes before the output" in output.fault({})


@given(st.integers(0, 1 << 16), st.integers(2, 40), st.integers(1, 5))
@settings(max_examples=60)
def test_renewed_inputs_hold_the_same_rows_in_another_order(shift: int, rows: int, cols: int) -> None:
    x = torch.arange(rows * cols, dtype=torch.float32).view(rows, cols)
    before, address = x.clone(), x.data_ptr()
    index = torch.arange(rows)
    assert buffers.renew({"x": x, "index": index}, (), shift)
    assert x.data_ptr() == address and not torch.equal(x, before)
    assert torch.equal(x.sort(0).values, before)
    assert torch.equal(index, torch.arange(rows))  # integers stay
    kept = x.clone()
    assert not buffers.renew({"x": x}, ("x",), shift) and torch.equal(x, kept)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float64])
@pytest.mark.parametrize("shape", [(6,), (1, 6), (3, 2, 2)])
def test_any_floating_dtype_is_renewed(dtype: Any, shape: tuple[int, ...]) -> None:
    count = math.prod(shape)
    x = torch.arange(count, dtype=torch.float32).view(shape).to(dtype)
    before = x.clone()
    assert buffers.renew({"x": x}, (), 1)
    assert sorted(x.float().flatten().tolist()) == sorted(before.float().flatten().tolist())
    assert not torch.equal(x.float(), before.float())


def test_a_checksum_sees_one_bit_and_two_values_that_changed_places() -> None:
    x = torch.arange(1000, dtype=torch.float32)
    before = buffers.checksums({"x": x})
    x[17] = torch.nextafter(x[17], torch.tensor(1e9))
    assert buffers.changed({"x": x}, before) == "x"
    x = torch.arange(1000, dtype=torch.float32)
    x[[3, 500]] = x[[500, 3]]
    assert buffers.changed({"x": x}, before) == "x"


def test_memory_that_sets_share_counts_once() -> None:
    shared, own = torch.zeros(100), [torch.zeros(10), torch.zeros(10)]
    assert buffers.storage_bytes([{"w": shared, "x": own[0]}, {"w": shared, "x": own[1]}]) == 400 + 80


@given(st.integers(1, 1 << 40), st.floats(1e9, 1e13), st.floats(0.1, 10))
def test_only_a_time_below_the_bound_is_impossible(nbytes: int, bandwidth: float, factor: float) -> None:
    peak = bounds.Peak(bandwidth, None)
    seconds = factor * nbytes / bandwidth
    said = bounds.impossible(seconds, nbytes, None, peak, cold=True)
    assert bool(said) == (factor < bounds.SLACK) or factor == pytest.approx(bounds.SLACK)
    assert bounds.impossible(seconds, nbytes, None, peak, cold=False) == ""
    assert bounds.impossible(seconds, nbytes, None, bounds.Peak(None, None), cold=True) == ""


@pytest.mark.parametrize(
    ("board", "arch", "sms", "clock_mhz", "flops"),
    [  # dense peak of the narrowest type, from the makers' data sheets
        ("A100", "sm80", 108, 1410, 624e12),
        ("L40S", "sm89", 142, 2520, 733e12),
        ("H200", "sm90", 132, 1830, 1979e12),
        ("B200", "sm100", 148, 1965, 10e15),
        ("RTX PRO 6000", "sm120", 188, 2600, 2e15),
    ],
)
def test_no_board_beats_its_bound(board: str, arch: str, sms: int, clock_mhz: int, flops: float) -> None:
    bound = bounds.gpu_peak(arch, sms, clock_mhz * 1e6, None).flops
    assert bound is not None and flops * bounds.SLACK <= bound <= 2.5 * flops, board
