"""MlaDecode on a CPU: the torch back end, the split rule, what is refused, and the Triton kernels in the interpreter.

Triton must see TRITON_INTERPRET=1 before it is imported, so the interpreted cases run in one process of their own: this
file as a script, which prints the relative error of every case as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
torch = pytest.importorskip("torch")

from kernels.mla_decode import MlaDecode, decode_torch, wave_aware_nsplit  # noqa: E402

KERNEL = MlaDecode()
TOLERANCE = 6.7e-3  # the campaign's numerics gate
POINT = {
    "batch": 3,
    "kv_len": 75,
    "heads": 16,
    "dtype": "fp16",
    "layout": "contiguous",
    "page_size": 64,
    "lengths": "ragged",
}
CONFIG = {"nsplit": 2, "block_h": 16, "block_n": 16, "num_warps": 4, "num_stages": 2, "backend": "auto"}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "one split": ({}, {"nsplit": 1}),
    "two splits": ({}, {}),
    "more splits than tiles": ({}, {"nsplit": 7}),
    "full lengths": ({"lengths": "full"}, {"nsplit": 3}),
    "pages of a tile or more": ({"layout": "paged", "page_size": 32}, {}),
    "rows gathered one by one": ({"layout": "paged", "page_size": 1}, {}),
    "pages that tiles straddle": ({"layout": "paged", "page_size": 5}, {}),
    "fewer heads than a block": ({"heads": 8}, {}),
    "heads not a multiple of a block": ({"heads": 40, "kv_len": 33}, {"block_h": 32}),
    "a single row": ({"batch": 1, "kv_len": 1}, {}),
}


def relative_error(out: torch.Tensor, reference: torch.Tensor) -> float:
    return ((out.double() - reference).norm() / reference.norm()).item()


def error_of(point: dict[str, Any], config: dict[str, Any], seed: int = 0) -> float:
    """Relative L2 error; every row that no request may read, and the output before the call, is NaN."""
    inputs = KERNEL.inputs(point, seed, "cpu")
    if point["layout"] == "contiguous":
        for rows, length in zip(inputs["kv"], inputs["lengths"].tolist(), strict=True):
            rows[length:] = float("nan")
    out = torch.full_like(inputs["q"], float("nan"))
    KERNEL.prepare(point, config, inputs, {"out": out})()
    assert not out[inputs["lengths"] == 0].any()
    return relative_error(out, KERNEL.reference(point, inputs)["out"])


@pytest.mark.parametrize("case", CASES)
def test_torch_back_end_matches_the_reference(case: str) -> None:
    point, config = CASES[case]
    assert error_of({**POINT, "dtype": "fp32", **point}, {**CONFIG, **config}) < 2e-6


def test_torch_back_end_passes_the_gate_in_bf16() -> None:
    assert error_of({**POINT, "dtype": "bf16"}, CONFIG) < TOLERANCE


def test_reference_is_softmax_attention_with_the_sink_as_a_logit_without_value() -> None:
    point = {**POINT, "batch": 1, "lengths": "full"}
    inputs = KERNEL.inputs(point, 0, "cpu")
    q, kv = inputs["q"][0].double(), inputs["kv"][0].double()
    exponentials = torch.exp(q @ kv.T / 512**0.5)
    expected = exponentials @ kv / (exponentials.sum(1) + torch.exp(inputs["sink"].double()))[:, None]
    assert torch.allclose(KERNEL.reference(point, inputs)["out"][0], expected)


@pytest.mark.parametrize("layout", ["contiguous", "paged"])
def test_hard_inputs_pass_the_gate_and_hold_what_they_promise(layout: str) -> None:
    point = {**POINT, "dtype": "bf16", "layout": layout}
    inputs = KERNEL.adversarial(point, 0, "cpu")
    assert 0 in inputs["lengths"] and 75 in inputs["lengths"]
    assert (inputs["kv"][0] == inputs["kv"][0, :1]).all()
    out = torch.full_like(inputs["q"], float("nan"))
    KERNEL.prepare(point, CONFIG, inputs, {"out": out})()
    assert relative_error(out, KERNEL.reference(point, inputs)["out"]) < TOLERANCE


def test_same_seed_gives_the_same_inputs_and_another_seed_others() -> None:
    point = {**POINT, "layout": "paged", "page_size": 16}
    first, again, other = (KERNEL.inputs(point, seed, "cpu") for seed in (1, 1, 2))
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["kv"], other["kv"])


def test_ragged_lengths_hold_an_empty_and_a_full_request() -> None:
    lengths = KERNEL.inputs({**POINT, "batch": 5}, 3, "cpu")["lengths"]
    assert sorted(lengths.tolist()) == [0, 18, 37, 56, 75]


def test_paged_requests_share_no_page_of_a_pool_with_pages_to_spare() -> None:
    inputs = KERNEL.inputs({**POINT, "layout": "paged", "page_size": 1}, 0, "cpu")
    assert inputs["table"].unique().numel() == inputs["table"].numel() == 225
    assert len(inputs["kv"]) > 225


def test_wave_aware_takes_the_fewest_waves_times_iterations_and_the_smaller_of_equals() -> None:
    assert wave_aware_nsplit(base=128, slots=188, tiles=10) == 10  # 7 waves x 1 iteration; nsplit 2: 2 x 5
    assert wave_aware_nsplit(base=128, slots=376, tiles=10) == 5  # 2 x 2; nsplit 2: 1 x 5
    assert wave_aware_nsplit(base=160, slots=376, tiles=10) == 2
    assert wave_aware_nsplit(base=128, slots=132, tiles=10) == 1  # nsplit 10 is as good
    assert wave_aware_nsplit(base=1, slots=132, tiles=64) == 16  # the most that it tries


def test_resolve_turns_wave_aware_into_a_number_for_a_gpu_that_is_not_here() -> None:
    device = {"kind": "cuda", "name": "another", "arch": "sm120", "sm_count": 188}
    point = {**POINT, "batch": 32, "kv_len": 2048, "heads": 64, "dtype": "bf16"}
    config = {**CONFIG, "nsplit": "wave-aware", "block_h": 32, "block_n": 32, "backend": "triton"}
    assert KERNEL.ctas_per_sm(point, config, device) == 1
    assert KERNEL.ctas_per_sm(point, config, {**device, "arch": "sm90"}) == 2
    resolved = KERNEL.resolve(point, config, device)
    assert resolved == {**config, "nsplit": wave_aware_nsplit(64, 188, 64)}
    assert KERNEL.grid(point, resolved, device) == 64 * resolved["nsplit"]


def test_resolve_on_a_cpu_counts_cores_as_slots_and_requests_as_base(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    device = {"kind": "cpu", "name": "a CPU", "sm_count": None}
    config = {**CONFIG, "nsplit": "wave-aware"}
    assert KERNEL.resolve({**POINT, "batch": 1, "kv_len": 160}, config, device)["nsplit"] == 4
    assert KERNEL.resolve({**POINT, "batch": 4, "kv_len": 160}, config, device)["nsplit"] == 1


def test_resolve_leaves_a_number_alone() -> None:
    assert KERNEL.resolve(POINT, CONFIG, {"kind": "cpu"}) == CONFIG


@pytest.mark.parametrize(
    "change, message",
    [
        ({"nsplit": "wave-aware"}, "resolve"),
        ({"nsplit": 0}, "nsplit 0: at least 1"),
        ({"block_h": 24}, "block_h 24: must be a power of 2"),
        ({"block_h": 8}, "block_h 8: at least 16"),
        ({"block_n": 48}, "block_n 48"),
        ({"num_warps": 3}, "num_warps 3"),
        ({"backend": "triton"}, "GPU|not installed"),
    ],
)
def test_prepare_refuses_what_cannot_work(change: dict[str, Any], message: str) -> None:
    inputs = KERNEL.inputs(POINT, 0, "cpu")
    with pytest.raises(ValueError, match=message):
        KERNEL.prepare(POINT, {**CONFIG, **change}, inputs, {"out": inputs["q"].clone()})


def test_work_counts_kv_rows_once_and_two_products() -> None:
    work = KERNEL.work({**POINT, "batch": 80, "kv_len": 2048, "heads": 64, "lengths": "full"}, CONFIG)
    assert work == {"bytes": (80 * 2048 + 2 * 80 * 64) * 1024, "flops": 4 * 64 * 80 * 2048 * 512}


def test_memory_covers_the_tensors() -> None:
    point = {**POINT, "layout": "paged", "page_size": 16}
    inputs = KERNEL.inputs(point, 0, "cpu")
    assert KERNEL.memory(point) >= inputs["kv"].nbytes + 2 * inputs["q"].nbytes


def test_declarations_are_what_the_protocol_reads() -> None:
    from perfplan.protocol import read_axes, read_knobs

    axes, knobs = read_axes(KERNEL.axes), read_knobs(KERNEL.knobs)
    assert all(axes[name].complaint(value) is None for name, value in POINT.items())
    baseline = {name: knob.default for name, knob in knobs.items()}
    assert (baseline["nsplit"], baseline["block_h"], baseline["block_n"], baseline["num_warps"]) == (2, 32, 32, 4)
    assert knobs["nsplit"].complaint("wave-aware") is None


def test_torch_back_end_runs_without_triton() -> None:
    code = "import sys; sys.modules['triton'] = None; import kernels.mla_decode as m; print(m.triton)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "None", done.stderr


@pytest.fixture(scope="module")
def interpreted() -> dict[str, Any]:
    """What this file prints when run under Triton's interpreter."""
    pytest.importorskip("triton")
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run([sys.executable, __file__], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("case", CASES)
def test_interpreted_triton_matches_the_reference(case: str, interpreted: dict[str, Any]) -> None:
    assert interpreted[case] < 1e-3


def test_interpreted_triton_refuses_bf16(interpreted: dict[str, Any]) -> None:
    assert "dtype fp16" in interpreted["refusal of bf16"]


def test_gate_catches_the_bf16_products_of_the_interpreter(interpreted: dict[str, Any]) -> None:
    assert not interpreted["bf16 despite the refusal"] <= TOLERANCE


def interpret() -> dict[str, Any]:
    """The relative error of every case, the message that bf16 is refused with, and the error of bf16 all the same."""
    from kernels import mla_decode_triton

    config = {**CONFIG, "backend": "triton"}
    found: dict[str, Any] = {
        case: error_of({**POINT, **point}, {**config, **change}) for case, (point, change) in CASES.items()
    }
    try:
        error_of({**POINT, "dtype": "bf16"}, config)
    except ValueError as refusal:
        found["refusal of bf16"] = str(refusal)
    inputs = KERNEL.inputs({**POINT, "dtype": "bf16"}, 0, "cpu")
    out = torch.empty_like(inputs["q"])
    mla_decode_triton.decode(
        inputs["q"], inputs["kv"], None, inputs["lengths"], inputs["sink"], out, None, None,
        scale=512**-0.5, nsplit=1, block_h=16, block_n=16, num_warps=4, num_stages=1,
    )  # fmt: skip
    reference = KERNEL.reference(POINT, inputs)["out"]
    found["bf16 despite the refusal"] = relative_error(out, reference)
    decode_torch(
        inputs["q"], inputs["kv"], None, inputs["lengths"], inputs["sink"], out, nsplit=1, block_n=16, longest=75
    )
    assert relative_error(out, reference) <= TOLERANCE  # the inputs are fine, the interpreter's product is not
    return found


if __name__ == "__main__":
    print(json.dumps(interpret()))
