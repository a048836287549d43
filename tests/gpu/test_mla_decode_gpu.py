"""MlaDecode on an NVIDIA GPU: numerics of the Triton back end over layouts, lengths and tiles; graphs; resources."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from kernels.mla_decode import MlaDecode  # noqa: E402

pytestmark = pytest.mark.gpu

KERNEL = MlaDecode()
POINT = {
    "batch": 5,
    "kv_len": 523,
    "heads": 64,
    "dtype": "bf16",
    "layout": "contiguous",
    "page_size": 64,
    "lengths": "ragged",
}
CONFIG = {"nsplit": 2, "block_h": 32, "block_n": 32, "num_warps": 4, "num_stages": 2, "backend": "triton"}


def relative_error(out: torch.Tensor, reference: torch.Tensor) -> float:
    return ((out.double() - reference).norm() / reference.norm()).item()


def error_of(point: dict[str, Any], config: dict[str, Any], seed: int = 0) -> float:
    inputs = KERNEL.inputs(point, seed, "cuda")
    out = torch.full_like(inputs["q"], float("nan"))
    KERNEL.prepare(point, config, inputs, {"out": out})()
    assert not out[inputs["lengths"] == 0].any()
    return relative_error(out, KERNEL.reference(point, inputs)["out"])


@pytest.mark.parametrize("nsplit", [1, 2, 3, 16, 40])
@pytest.mark.parametrize("layout, page_size", [("contiguous", 64), ("paged", 64), ("paged", 1), ("paged", 24)])
@pytest.mark.parametrize("tile", [(32, 32, 4, 2), (64, 64, 8, 2), (16, 32, 4, 4)])
def test_matches_the_reference(tile: tuple[int, ...], layout: str, page_size: int, nsplit: int) -> None:
    names = ("block_h", "block_n", "num_warps", "num_stages")
    config = {**CONFIG, **dict(zip(names, tile, strict=True)), "nsplit": nsplit}
    assert error_of({**POINT, "layout": layout, "page_size": page_size}, config, seed=nsplit) < 6.7e-3


@pytest.mark.parametrize("change", [{"dtype": "fp16"}, {"heads": 16}, {"heads": 8}, {"lengths": "full"}, {"kv_len": 1}])
def test_matches_the_reference_at_other_points(change: dict[str, Any]) -> None:
    assert error_of({**POINT, **change}, CONFIG) < 6.7e-3


@pytest.mark.parametrize("nsplit", [1, 2, 16])
@pytest.mark.parametrize("layout", ["contiguous", "paged"])
def test_hard_inputs_pass_the_gate(layout: str, nsplit: int) -> None:
    point = {**POINT, "layout": layout}
    config = {**CONFIG, "nsplit": nsplit}
    inputs = KERNEL.adversarial(point, 0, "cuda")
    out = torch.full_like(inputs["q"], float("nan"))
    KERNEL.prepare(point, config, inputs, {"out": out})()
    assert relative_error(out, KERNEL.reference(point, inputs)["out"]) < KERNEL.tolerance


@pytest.mark.parametrize("nsplit", [1, 4])
@pytest.mark.parametrize("backend", ["triton", "torch"])
def test_call_can_be_captured_in_a_cuda_graph(backend: str, nsplit: int) -> None:
    inputs = KERNEL.inputs(POINT, 0, "cuda")
    out = torch.empty_like(inputs["q"])
    call = KERNEL.prepare(POINT, {**CONFIG, "nsplit": nsplit, "backend": backend}, inputs, {"out": out})
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    inputs["q"].copy_(torch.randn_like(inputs["q"]))
    out.fill_(float("nan"))
    graph.replay()
    assert relative_error(out, KERNEL.reference(POINT, inputs)["out"]) < 6.7e-3


def test_too_much_shared_memory_is_reported_by_triton() -> None:
    from triton.runtime.errors import OutOfResources

    with pytest.raises(OutOfResources):
        error_of(POINT, {**CONFIG, "block_h": 64, "block_n": 128, "num_warps": 8, "num_stages": 4})


def test_wave_aware_counts_the_ctas_that_an_sm_really_holds() -> None:
    gpu = torch.cuda.get_device_properties()
    device = {
        "kind": "cuda",
        "name": gpu.name,
        "arch": f"sm{gpu.major}{gpu.minor}",
        "sm_count": gpu.multi_processor_count,
    }
    assert KERNEL.ctas_per_sm(POINT, {**CONFIG, "block_h": 64, "num_warps": 8}, device) == 1
    assert KERNEL.ctas_per_sm(POINT, {**CONFIG, "block_h": 16}, device) >= 2
    resolved = KERNEL.resolve({**POINT, "batch": 1, "kv_len": 4096}, {**CONFIG, "nsplit": "wave-aware"}, device)
    assert resolved["nsplit"] == 16
