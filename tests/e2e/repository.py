"""A real repository with a campaign, a small torch kernel of a known effect and a spec, and the command as users run it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

CAMPAIGN = """\
title: A test campaign
target: {model: none, hardware: any, objective: less time}
max_rel_error: 1e-4
operating_range: {rows: [64, 256]}
"""

# `passes` times the same sum: a candidate with 1 pass against 4 has a known, large effect
KERNEL = """\
import torch


class RowSum:
    '''Sum of each row, done `passes` times.'''

    axes = {"rows": int, "cols": 4096}
    knobs = {"passes": 4}

    def inputs(self, point, seed, device):
        generator = torch.Generator(device=device).manual_seed(seed)
        return {"x": torch.rand(point["rows"], point["cols"], generator=generator, device=device)}

    def outputs(self, point):
        return {"y": ((point["rows"],), torch.float32)}

    def reference(self, point, inputs):
        return {"y": inputs["x"].double().sum(dim=1)}

    def prepare(self, point, config, inputs, outputs):
        def call():
            for _ in range(config["passes"]):
                torch.sum(inputs["x"], dim=1, out=outputs["y"])
        return call
"""

SPEC = """\
campaign: test
title: Sum once
lever: fewer-passes
hypothesis:
  claim: one pass takes a quarter of the time of four
  because: each pass reads the input once
  predicts: {change: "<= -30%", at: {rows: [64, 256]}}
kernel:
  entry: kernels/row_sum.py:RowSum
  baseline: {passes: 4}
  candidate: {passes: 1}
points: {rows: [64, 256]}
measure: {min_pairs: 8, max_pairs: 16, seconds: 10, cache: warm, max_noise: 0.9, half_width: 0.05}
"""


@dataclass
class Repo:
    """A working copy under test."""

    root: Path

    def git(self, *arguments: str, check: bool = True) -> str:
        done = subprocess.run(["git", *arguments], cwd=self.root, capture_output=True, text=True, check=False)
        assert not check or done.returncode == 0, done.stderr
        return done.stdout

    def perfplan(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "perfplan", *arguments],
            cwd=self.root,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
            env={**os.environ, **environment},
        )

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Run in the background, in a process group of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "perfplan", *arguments],
            cwd=self.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def write(self, path: str, text: str) -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        return target

    def records(self) -> list[Path]:
        return sorted((self.root / "experiments").glob("*/*.json"))

    def plan(self) -> str:
        return (self.root / "plans" / "TEST_PERF_PLAN.md").read_text(encoding="utf-8")

    def log(self) -> list[str]:
        return self.git("log", "--format=%s").splitlines()
