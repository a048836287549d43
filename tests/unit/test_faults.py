"""Every fault in tests/faults against the real worker process: what must come of it, and that it costs no other point."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from perfplan.errors import PerfplanError
from perfplan.judge import judge
from perfplan.measure.job import Job, Measured, Progress
from perfplan.measure.supervisor import Worker
from perfplan.models.base import Config
from perfplan.models.spec import Measure, Norm, Numerics, Spec

FAULTS = Path(__file__).parent.parent / "faults"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like a user's repository, with the faults in it."""
    made = tmp_path_factory.mktemp("root")
    shutil.copytree(FAULTS, made / "faults", ignore=shutil.ignore_patterns("__pycache__"))
    return made


@pytest.fixture
def worker(root: Path) -> Iterator[Worker]:
    with Worker(root) as started:
        yield started


def measure(worker: Worker, root: Path, name: str, **changes: object) -> Measured:
    """Both arms the same but for `passes`, at two points, with a small budget."""
    progress: list[Progress] = []
    job = Job(
        root=str(root),
        device="cpu",
        points=[{"rows": 64, "cols": 512}, {"rows": 128, "cols": 512}],
        half_widths=[0.2, 0.2],
        measure=Measure(min_pairs=8, max_pairs=8, seconds=5, timeout=20, cache="warm"),
        entry=f"faults/{name}.py:Kernel",
        baseline={"passes": 8},
        candidate={"passes": 1},
        max_rel_error=1e-6,
    )
    measured = worker.measure(job.model_copy(update=changes), progress.append)
    assert len(measured.cells) == len(job.points)
    return measured


EVERYWHERE: dict[str, tuple[str, ...]] = {  # fault -> reason and words of the detail, at both points
    "nan_output": ("numerics", "NaN"),
    "bad_shape": ("bad-kernel", "outputs() must give name -> (shape, dtype)"),
    "wants_all_memory": ("out-of-memory", "allocate memory"),
    "misplaced_infinity": ("numerics", "infinity in 1 elements where the reference has none"),
    "nan_for_infinity": ("numerics", "NaN in 1 elements where the reference has none"),
    "integers_not_written": ("numerics", "512 of 32,768 elements were never written"),
    "wrong_result": ("numerics", "relative-l2 error 0.01 is above"),
    "output_not_written": ("numerics", "512 of 32,768 elements were never written"),
    "returns_instead_of_writing": ("numerics", "never written"),
    "wrong_shape": ("bad-kernel", "reference() has shape (512,), outputs() declares (64, 512)"),
    "reference_not_float64": ("bad-kernel", "it must be float64"),
    "bad_dtype": ("bad-kernel", "is not a torch dtype"),
    "mutates_inputs": ("numerics", "changed its input 'x'"),
    "raises_in_call": ("bad-kernel", "no kernel image is available (faults/raises_in_call.py:"),
    "prepares_nothing": ("bad-kernel", "must return the function to be timed"),
    "writes_outside": ("numerics", "32 bytes after the output were overwritten"),
    "moves_output": ("numerics", "moved its output onto the input 'x'"),
    "computes_in_prepare": ("numerics", "baseline: the last timed output is wrong: y: relative-l2 error"),
    "works_at_first": ("numerics", "the last timed output is wrong: y: NaN in 32,768 elements"),
    "stale_output": ("numerics", "y: relative-l2 error 1.4"),
    "scale_off": ("numerics", "y: relative-l2 error 0.1 is above"),
    "caches_results": ("caches-results", "times as long after its inputs changed"),
    "same_inputs": ("bad-kernel", "the same values for every seed"),
    "unseeded_inputs": ("bad-kernel", "other values for the same seed"),
    "zero_reference": ("gate-too-weak", "y: a wrong result (zeros) has error 0 and would pass"),
    "claims_too_much": ("impossible-time", "1,000,000,000,000,000,000 flops in"),
    "works_in_the_background": ("numerics", "32,768 of 32,768 elements were never written"),
    "wrong_for_large_values": ("numerics", "(hard inputs: floats times 8)"),
    "mutates_inputs_later": ("numerics", "changed its input 'x' while it was timed"),
}


@pytest.mark.parametrize("name", EVERYWHERE)
def test_a_fault_voids_its_points_and_says_why(worker: Worker, root: Path, name: str) -> None:
    reason, words = EVERYWHERE[name]
    cells = measure(worker, root, name).cells
    assert [cell.validity.reason for cell in cells] == [reason, reason]
    assert words in cells[0].validity.detail
    assert all(cell.effect is None for cell in cells)


def test_one_element_off_in_many_is_seen_where_the_norm_alone_would_pass_it(worker: Worker, root: Path) -> None:
    cell, _ = measure(worker, root, "one_element_off", max_rel_error=0.05).cells
    assert cell.validity.reason == "numerics"
    assert "an element is off by" in cell.validity.detail


@pytest.mark.parametrize("norm", ["relative-l2", "max-normalised", "elementwise"])
@pytest.mark.parametrize(("tolerance", "control"), [(0.2, "scaled by 1.1"), (2.0, "would pass")])
def test_a_tolerance_that_a_plainly_wrong_result_would_meet_voids_the_point(
    worker: Worker, root: Path, norm: Norm, tolerance: float, control: str
) -> None:
    cell, _ = measure(worker, root, "sound", max_rel_error=tolerance, numerics=Numerics(norm=norm)).cells
    assert cell.validity.reason == "gate-too-weak"
    assert control in cell.validity.detail


def test_a_kernel_that_stops_the_clock_is_timed_all_the_same(worker: Worker, root: Path) -> None:
    for cell in measure(worker, root, "patches_the_clock").cells:
        assert cell.validity.valid, cell.validity
        assert cell.baseline.median is not None and cell.baseline.median > 1e-6
        assert cell.effect is not None and cell.effect.high < -0.3


def test_a_baseline_that_is_not_like_itself_is_noisy(worker: Worker, root: Path) -> None:
    cells = measure(worker, root, "slower_each_time").cells
    spec = Spec.model_validate(
        {
            "campaign": "c", "title": "t", "lever": "l",
            "hypothesis": {"claim": "c", "because": "b", "predicts": {"change": "<= -5%"}},
            "kernel": {"entry": "k.py:K", "candidate": {"passes": 1}},
        }
    )  # fmt: skip
    judged = judge(spec, cells, "cpu")
    assert (judged.verdict.outcome, judged.verdict.reason) == ("invalid", "noisy")
    assert "the baseline against itself shows" in judged.verdict.summary


AT_ONE_POINT = {
    "raises_in_prepare": ("bad-kernel", "64 rows do not fit a tile"),
    "kills_itself": ("crashed", "SIGSEGV"),
    "leaves": ("crashed", "exit code 3"),
    "out_of_resources": ("out-of-resources", "shared memory: needs 102,400 bytes, the device has 101,376"),
}


@pytest.mark.parametrize("name", AT_ONE_POINT)
def test_a_fault_at_one_point_leaves_the_others_alone(worker: Worker, root: Path, name: str) -> None:
    reason, words = AT_ONE_POINT[name]
    measured = measure(worker, root, name)
    bad, good = measured.cells
    assert (bad.validity.reason, good.validity.valid) == (reason, True)
    assert words in bad.validity.detail
    assert good.effect is not None and good.effect.estimate < -0.3
    assert name != "leaves" or "goodbye" in measured.log_tail


def test_a_hang_is_killed_after_its_time_and_the_others_go_on(worker: Worker, root: Path) -> None:
    patient = Measure(min_pairs=8, max_pairs=8, seconds=5, timeout=6, cache="warm")
    bad, good = measure(worker, root, "hangs", measure=patient).cells
    assert (bad.validity.reason, good.validity.valid) == ("timed-out", True)
    assert "6 s" in bad.validity.detail


@pytest.mark.parametrize("name", ["sound", "prints_a_lot"])
def test_a_sound_kernel_gives_paired_samples_and_its_sources(worker: Worker, root: Path, name: str) -> None:
    measured = measure(worker, root, name)
    for cell in measured.cells:
        assert cell.validity.valid, cell.validity
        assert len(cell.baseline.samples) == len(cell.candidate.samples) == 8
        assert cell.effect is not None and cell.effect.high < -0.3
        assert cell.floor is not None and cell.floor.pairs >= 10
        assert cell.baseline.error == cell.candidate.error == 0.0
        assert cell.timer == "perf-counter"
    blobs = {each.path: each.blob for each in measured.files}
    imported = ["faults/__init__.py", "faults/sound.py"] if name != "sound" else []
    paths = sorted({f"faults/{name}.py", *imported})
    assert sorted(blobs) == paths
    hashed = subprocess.run(
        ["git", "hash-object", *paths], cwd=root, capture_output=True, text=True, check=True
    ).stdout.split()
    assert [blobs[path] for path in paths] == hashed


UNUSABLE = {
    "raises_on_import": "a_library_that_does_not_exist",
    "missing_method": "lacks reference",
    "bad_knobs": "choices of several types",
    "no_such_class": "did you mean Kernle?",
    "gone": "there is no such file",
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_file_that_cannot_be_used_is_named_before_anything_is_measured(worker: Worker, name: str) -> None:
    with pytest.raises(PerfplanError) as caught:
        worker.describe(f"faults/{name}.py:Kernel", "cpu")
    shown = f"{caught.value} {caught.value.hint}"
    assert f"faults/{name}.py" in shown and UNUSABLE[name] in shown


def test_an_entry_does_not_leave_the_repository(worker: Worker, root: Path) -> None:
    outside = root.parent / "outside.py"
    outside.write_text("class Kernel: pass\n")
    (root / "link.py").symlink_to(outside)
    for entry in ("../outside.py:Kernel", "link.py:Kernel"):
        with pytest.raises(PerfplanError, match="outside of the repository"):
            worker.describe(entry, "cpu")


def test_invalid_python_is_named_with_its_line(worker: Worker, root: Path) -> None:
    (root / "broken.py").write_text("x = 1\nclass Kernel\n")
    with pytest.raises(PerfplanError) as caught:
        worker.describe("broken.py:Kernel", "cpu")
    assert str(caught.value).startswith("broken.py:2: is not valid Python")


@pytest.mark.parametrize(("device", "words"), [("cuda:7", "cuda:7"), ("tpu", "is not a device")])
def test_a_device_that_is_not_there_is_an_environment_problem(worker: Worker, device: str, words: str) -> None:
    with pytest.raises(PerfplanError, match=words) as caught:
        worker.describe("faults/sound.py:Kernel", device)
    assert caught.value.exit_code == 6


def test_both_arms_alike_is_noted_and_shows_no_effect(worker: Worker, root: Path) -> None:
    same: Config = {"passes": 8}
    cell = measure(worker, root, "sound", candidate=same).cells[0]
    assert cell.notes == ["both arms resolve to the same configuration"]
    assert cell.effect is not None and abs(cell.effect.estimate) < 0.5


def test_the_interpreter_checks_numerics_and_never_yields_a_time(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton")
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    (root / "interpreted.py").write_text(
        "import triton\nfrom faults.sound import Kernel\nKernel = type('Kernel', (Kernel,), {})\n"
    )
    with Worker(root) as worker:
        cells = measure(worker, root, "sound", entry="interpreted.py:Kernel").cells
    assert {cell.validity.reason for cell in cells} == {"no-performance"}


def test_no_process_outlives_the_worker(root: Path) -> None:
    with Worker(root) as worker:
        worker.describe("faults/sound.py:Kernel", "cpu")
        assert worker._process is not None
        pid = worker._process.pid
    alive = subprocess.run(["pgrep", "-g", str(pid)], capture_output=True, text=True, check=False).stdout
    assert alive == ""


def test_a_worker_does_not_outlive_a_supervisor_that_was_killed(root: Path) -> None:
    script = (
        "import os, signal, sys; from pathlib import Path; from perfplan.measure.supervisor import Worker; "
        "worker = Worker(Path(sys.argv[1])); worker.describe('faults/sound.py:Kernel', 'cpu'); "
        "print(worker._process.pid, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    killed = subprocess.run([sys.executable, "-c", script, str(root)], capture_output=True, text=True, check=False)
    worker_id = killed.stdout.strip()
    assert killed.returncode == -9 and worker_id
    for _ in range(50):
        state = subprocess.run(
            ["ps", "-o", "stat=", "-p", worker_id], capture_output=True, text=True, check=False
        ).stdout
        if not state.strip() or state.startswith("Z"):
            return
        time.sleep(0.1)
    pytest.fail(f"worker {worker_id} is still there: {state}")


def test_the_table_of_faults_names_every_fault_there_is() -> None:
    page = (Path(__file__).parents[2] / "docs/gates.md").read_text()
    table = page[page.index("## Fault by fault") : page.index("## What is not caught")]
    listed = set(re.findall(r"`(\w+)`", table))
    there = {path.stem for path in FAULTS.glob("*.py")} - {"__init__", "sound"}
    assert listed == there
