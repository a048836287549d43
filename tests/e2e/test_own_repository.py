"""perfplan's own repository is one of its users: its log reads, its plan is current, its specs are valid."""

from __future__ import annotations

from pathlib import Path

from repository import Repo

OWN = Repo(Path(__file__).parents[2])


def test_our_own_plan_is_current_and_every_file_of_the_log_reads() -> None:
    done = OWN.perfplan("plan", "--check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_our_own_specs_are_valid() -> None:
    specs = sorted(str(path) for path in (OWN.root / "experiments").glob("*.yaml"))
    done = OWN.perfplan("check", "--no-kernel", *specs)
    assert done.returncode == 0, done.stderr


def test_the_reported_list_is_in_the_log_with_its_scope() -> None:
    plan = (OWN.root / "plans" / "DSV4_DECODE_PERF_PLAN.md").read_text()
    for technique in (
        "mscclpp",
        "SBO",
        "EP (expert",
        "All-reduce fusion",
        "torch.compile",
        "Persistent GEMM",
        "MTP",
        "NCCL Tree",
    ):
        (row,) = [
            line
            for line in plan.splitlines()
            if line.startswith("| ") and technique in line.split("|")[1] and "sm120" in line
        ]
        assert "reported" in row and "pcie" in row
    assert "~~moe-is-the-slope~~" in plan and "superseded by attention-is-the-slope" in plan
