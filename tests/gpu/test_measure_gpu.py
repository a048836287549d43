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
    knobs = {"passes": 1, "break": False, "sync": False, "side": False, "label": ""}

    def inputs(self, point, seed, device):
        generator = torch.Generator(device).manual_seed(seed)
        return {"x": torch.randn(point["count"], generator=generator, device=device)}

    def outputs(self, point):
        return {"y": ((point["count"],), torch.float32)}

    def reference(self, point, inputs):
        return {"y": inputs["x"].double() * 2}

    def prepare(self, point, config, inputs, outputs):
        x, y = inputs["x"], outputs["y"]
        side = torch.cuda.Stream()
        wrong = torch.full((1,), 1 << 40, device=x.device, dtype=torch.int64)

        def call():
            if config["side"]:
                side.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(side):
                    torch.mul(x, 2, out=y)
                return
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
    knobs = {"num_warps": 4, "label": ""}
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


# two configurations to choose from, tuned at the first call
AUTOTUNED = """\
import torch
import triton
import triton.language as tl

_CONFIGS = [triton.Config({"BLOCK": 1024}), triton.Config({"BLOCK": 2048})]


@triton.autotune(configs=_CONFIGS, key=["count"])
@triton.jit
def _double(x, y, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2 * tl.load(x + at, mask=at < count), mask=at < count)


class Double:
    axes = {"count": int}
    knobs = {"label": ""}

    def inputs(self, point, seed, device):
        generator = torch.Generator(device).manual_seed(seed)
        return {"x": torch.randn(point["count"], generator=generator, device=device)}

    def outputs(self, point):
        return {"y": ((point["count"],), torch.float32)}

    def reference(self, point, inputs):
        return {"y": inputs["x"].double() * 2}

    def prepare(self, point, config, inputs, outputs):
        grid = lambda meta: (triton.cdiv(point["count"], meta["BLOCK"]),)
        return lambda: _double[grid](inputs["x"], outputs["y"], point["count"])
"""


def measure(
    root: Path,
    text: str,
    name: str,
    points: list[dict[str, int]],
    baseline: dict[str, object],
    candidate: dict[str, object],
    **changes: object,
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
        return worker.measure(job.model_copy(update=changes), lambda progress: None)


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


def test_work_on_another_stream_is_found_where_the_timed_stream_is_done_too_soon(tmp_path: Path) -> None:
    (cell,) = measure(tmp_path, TORCH, "Scale", [{"count": 1 << 28}], {}, {"side": True}).cells
    assert cell.validity.reason == "other-stream", cell.validity
    assert "candidate: the device worked on for" in cell.validity.detail


def test_arms_that_differ_by_a_label_alone_launch_the_same_code(tmp_path: Path) -> None:
    (label,) = measure(tmp_path, TRITON, "Gram", [{"cols": 256}], {}, {"label": "new"}).cells
    assert label.validity.valid, label.validity
    assert label.same_code is True
    assert label.baseline.code == label.candidate.code != ""
    (warps,) = measure(tmp_path, TRITON, "Gram", [{"cols": 256}], {}, {"num_warps": 8}).cells
    assert warps.same_code is False
    launch = warps.candidate.launches[0]
    assert (launch.name, launch.grid, launch.block) == ("_gram", [1, 1, 1], [256, 1, 1])
    assert launch.registers and launch.shared > 0 and len(launch.code) == 16
    (passes,) = measure(tmp_path, TORCH, "Scale", [{"count": 1 << 24}], {}, {"passes": 2}).cells
    assert passes.same_code is False and len(passes.candidate.launches) == 2


def test_clocks_counters_and_the_timers_floor_are_in_the_record(tmp_path: Path) -> None:
    (cell,) = measure(tmp_path, TORCH, "Scale", [{"count": 1 << 24}], {"passes": 2}, {"passes": 1}).cells
    assert len(cell.baseline.clocks) == len(cell.baseline.samples)
    assert all(200 < mhz < 3000 for mhz in cell.baseline.clocks)
    assert cell.cycles is not None and -0.56 < cell.cycles.estimate < -0.40
    assert cell.power_capped is not None and 0 <= cell.power_capped <= 1
    assert cell.timer_floor is not None and 1e-8 < cell.timer_floor < 2e-5
    assert cell.gate.rechecked and cell.gate.seeds == 3


def test_an_autotuned_kernel_is_frozen_and_its_choice_is_recorded(tmp_path: Path) -> None:
    (cell,) = measure(tmp_path, AUTOTUNED, "Double", [{"count": 1 << 24}], {}, {"label": "new"}).cells
    assert cell.validity.valid, cell.validity
    (choice,) = [value for key, value in cell.candidate.tuned.items() if key.startswith("_double")]
    assert "BLOCK" in choice


def test_the_settings_of_the_card_are_read(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(TORCH)
    with Worker(tmp_path) as worker:
        described = worker.describe("kernel.py:Scale", "cuda")
    facts = described.device.facts
    assert described.device.uuid.startswith("GPU-")
    assert facts["power_limit_w"] > 50 and facts["clock_sm_max_mhz"] > 500
    assert {"vbios", "clocks_policy", "other_processes", "memory_used_before"} <= set(facts)
    assert {"driver", "cuda", "torch", "triton", "ptxas"} <= set(described.software)


def test_the_isolated_design_gives_the_same_effect(tmp_path: Path) -> None:
    measure_alone = Measure(max_pairs=40, seconds=10, timeout=120, design="isolated")
    (cell,) = measure(
        tmp_path, TORCH, "Scale", [{"count": 1 << 24}], {"passes": 2}, {"passes": 1}, measure=measure_alone
    ).cells
    assert cell.effect is not None and -0.56 < cell.effect.low < cell.effect.high < -0.40
