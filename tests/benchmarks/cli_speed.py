"""How long the commands take that people and agents wait for, as whole processes.

    python tests/benchmarks/cli_speed.py [--runs 1000] [--repeat 10]

Makes a scratch repository with that many run records (copies of a real shape, with raw samples), then times each command
and prints a Markdown table of medians. `git status` in the same repository is the yardstick. Budgets: DESIGN section 8.
"""

from __future__ import annotations

import argparse
import datetime
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from perfplan.effects import interval_of, log_ratios
from perfplan.ids import new_id, timestamp
from perfplan.judge import judge
from perfplan.models.record import Arm, Cell, Device, Run, Source, SourceFile
from perfplan.models.spec import Spec
from perfplan.records import write_run

CAMPAIGN = "title: Speed\ntarget: {model: none, hardware: any, objective: less time}\n"
SPEC = """\
campaign: speed
title: Sum once
lever: {lever}
hypothesis: {{claim: it is faster, because: it does less, predicts: {{change: [-25%, -15%], at: {{batch: [32, 64, 80]}}}}}}
kernel: {{entry: "kernels/k.py:K", baseline: {{n: 2}}, candidate: {{n: 3}}}}
points: {{batch: [32, 64, 80]}}
"""
COMMANDS = {
    "git status": ["git", "status", "--porcelain"],
    "perfplan --help": ["--help"],
    "perfplan query": ["query", "lever-7"],
    "perfplan query --dead-ends": ["query", "--dead-ends", "lever-7"],
    "perfplan plan --check": ["plan", "--check"],
}


def make_repository(root: Path, runs: int) -> None:
    """A campaign, one experiment for every 20 runs, and the records."""
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / "plans").mkdir()
    (root / "experiments").mkdir()
    (root / "plans" / "speed.yaml").write_text(CAMPAIGN)
    rng = random.Random(0)
    start = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    for index in range(runs):
        lever = f"lever-{index // 20}"
        text = SPEC.format(lever=lever)
        (root / "experiments" / f"{lever}.yaml").write_text(text)
        run = make_run(lever, start + datetime.timedelta(minutes=index), rng)
        path = root / "experiments" / lever / f"{run.id}.json"
        path.parent.mkdir(exist_ok=True)
        write_run(path, run)


def make_run(lever: str, when: datetime.datetime, rng: random.Random) -> Run:
    """A run of three points with 30 pairs each, judged as a real one is."""
    import yaml

    spec = Spec.model_validate(yaml.safe_load(SPEC.format(lever=lever)))
    effect = rng.choice([-0.2, 0.0, -0.1])
    cells = []
    for point in spec.cells():
        baseline = [1e-4 * rng.gauss(1, 0.005) for _ in range(30)]
        candidate = [each * (1 + effect) * rng.gauss(1, 0.005) for each in baseline]
        cell = Cell(
            point=point,
            role="observed",
            baseline=Arm(config={"n": 2}, median=statistics.median(baseline), samples=baseline),
            candidate=Arm(config={"n": 3}, median=statistics.median(candidate), samples=candidate),
            timer="cuda-graph",
        )
        cells.append(cell.model_copy(update={"effect": interval_of(log_ratios(cell))}))
    judged = judge(spec, cells, "cuda")
    device = Device(kind="cuda", name=rng.choice(["NVIDIA H200", "NVIDIA A100"]), arch="sm90", sm_count=132)
    return Run(
        id=new_id(when), experiment=lever, campaign="speed", title=spec.title, lever=lever, started=timestamp(when),
        finished=timestamp(when), hypothesis=spec.hypothesis, entry="kernels/k.py:K", baseline={"n": 2}, candidate={"n": 3},
        changed={"n": 3}, device=device, software={"torch": "2.11.0", "triton": "3.6.0"},
        source=Source(spec=SourceFile(path=f"experiments/{lever}.yaml", blob="0" * 40)), cells=judged.cells, verdict=judged.verdict,
    )  # fmt: skip


def main() -> None:
    """Make the repository, time the commands, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=10)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        make_repository(root, arguments.runs)
        subprocess.run([sys.executable, "-m", "perfplan", "plan"], cwd=root, check=True, capture_output=True)
        samples: dict[str, list[float]] = {name: [] for name in COMMANDS}
        for _ in range(arguments.repeat):
            for name, command in COMMANDS.items():  # interleaved, so that all see the same machine
                argv = command if command[0] == "git" else [sys.executable, "-m", "perfplan", *command]
                begin = time.perf_counter()
                subprocess.run(argv, cwd=root, capture_output=True, check=False)
                samples[name].append(time.perf_counter() - begin)
    print(
        f"{arguments.runs} runs, median of {arguments.repeat}; {platform.machine()}, Python {platform.python_version()}\n"
    )
    print("| command | median | against git status |\n| --- | --- | --- |")
    yardstick = statistics.median(samples["git status"])
    for name, values in samples.items():
        median = statistics.median(values)
        print(f"| `{name}` | {median * 1000:.0f} ms | {median / yardstick:.1f}x |")


if __name__ == "__main__":
    main()
