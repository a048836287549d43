"""The measurement on a real GPU: known effects, limits of the device, and a kernel that takes the context down."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfplan.measure.job import Job, Measured
from perfplan.measure.supervisor import Worker
from perfplan.models.spec import Measure

pytestmark = pytest.mark.gpu

TORCH = """\
import torch


class Scale:
    axes = {"count": int}
    knobs = {"passes": 1, "break": False, "sync": False}

    def inputs(self, point, seed, device):
        generator = torch.Generator(device).manual_seed(seed)
        return {"x": torch.randn(point["count"], generator=generator, device=device)}

    def outputs(self, point):
        return {"y": ((point["count"],), torch.float32)}

    def reference(self, point, inputs):
        return {"y": inputs["x"].double() * 2}

    def prepare(self, point, config, inputs, outputs):
        x, y = inputs["x"], outputs["y"]
        wrong = torch.full((1,), 1 << 40, device=x.device, dtype=torch.int64)

        def call():
            for _ in range(config["passes"]):
                torch.mul(x, 2, out=y)
            if config["break"] and point["count"] == 1 << 21:
                x[wrong]
            if config["sync"]:
                torch.cuda.synchronize()
        return call
"""

# x @ x.T of 32 rows in one piece: all of x goes through shared memory, `cols` x 64 bytes of it
TRITON = """\
import torch
import triton
import triton.language as tl


@triton.jit
def _gram(x, y, COLS: tl.constexpr):
    row, column = tl.arange(0, 32), tl.arange(0, COLS)
    tile = tl.load(x + row[:, None] * COLS + column[None, :])
    tl.store(y + row[:, None] * 32 + row[None, :], tl.dot(tile, tl.trans(tile)))


class Gram:
    axes = {"cols": int}
    knobs = {"num_warps": 4}
    tolerance = 1e-2

    def inputs(self, point, seed, device):
        generator = torch.Generator(device).manual_seed(seed)
        return {"x": torch.randn(32, point["cols"], generator=generator, device=device, dtype=torch.float16)}

    def outputs(self, point):
        return {"y": ((32, 32), torch.float32)}

    def reference(self, point, inputs):
        x = inputs["x"].double()
        return {"y": x @ x.T}

    def prepare(self, point, config, inputs, outputs):
        return lambda: _gram[(1,)](inputs["x"], outputs["y"], COLS=point["cols"], num_warps=config["num_warps"])
"""


def measure(
    root: Path,
    text: str,
    name: str,
    points: list[dict[str, int]],
    baseline: dict[str, object],
    candidate: dict[str, object],
) -> Measured:
    (root / "kernel.py").write_text(text)
    entry = f"kernel.py:{name}"
    with Worker(root) as worker:
        described = worker.describe(entry, "cuda")
        assert described.kernel is not None
        defaults = {key: knob.default for key, knob in described.kernel.knobs.items()}
        job = Job(
            root=str(root), device=described.device_name, points=points, half_widths=[0.005] * len(points),
            measure=Measure(max_pairs=40, seconds=10, timeout=120), entry=entry, baseline={**defaults, **baseline},
            candidate={**defaults, **candidate}, max_rel_error=1e-2,
        )  # fmt: skip
        return worker.measure(job, lambda progress: None)


def test_a_known_factor_of_two_is_seen_through_a_cuda_graph_with_a_cold_cache(tmp_path: Path) -> None:
    (cell,) = measure(tmp_path, TORCH, "Scale", [{"count": 1 << 24}], {"passes": 2}, {"passes": 1}).cells
    assert cell.validity.valid, cell.validity
    assert cell.timer == "cuda-graph" and cell.cache.mode == "cold"
    assert cell.effect is not None and cell.floor is not None
    assert -0.56 < cell.effect.low < cell.effect.high < -0.40
    assert abs(cell.floor.estimate) < 0.01


def test_what_cannot_be_captured_is_timed_as_plain_launches_and_says_so(tmp_path: Path) -> None:
    (cell,) = measure(
        tmp_path, TORCH, "Scale", [{"count": 1 << 24}], {"passes": 2, "sync": True}, {"passes": 1, "sync": True}
    ).cells
    assert cell.validity.valid, cell.validity
    assert cell.timer == "cuda-events"
    assert any("not captured" in note for note in cell.notes)


def test_an_illegal_access_costs_its_own_point_only(tmp_path: Path) -> None:
    points = [{"count": 1 << 20}, {"count": 1 << 21}, {"count": 1 << 22}]
    cells = measure(tmp_path, TORCH, "Scale", points, {}, {"break": True}).cells
    assert [cell.validity.reason for cell in cells] == ["", "crashed", ""]
    assert "context was lost" in cells[1].validity.detail


def test_too_much_shared_memory_is_named_with_need_and_limit(tmp_path: Path) -> None:
    small, large = measure(tmp_path, TRITON, "Gram", [{"cols": 256}, {"cols": 8192}], {}, {"num_warps": 8}).cells
    assert small.validity.valid, small.validity
    assert large.validity.reason == "out-of-resources"
    assert "needs" in large.validity.detail and "the device has" in large.validity.detail
