"""The other verbs in real repositories: init, new, check, query, show, decisions, doctor, detached runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from repository import KERNEL, SPEC, Repo


@pytest.fixture
def empty(tmp_path: Path) -> Repo:
    """A repository with nothing in it."""
    made = Repo(tmp_path / "empty")
    made.root.mkdir()
    made.git("init", "-q", "-b", "main")
    return made


def test_init_then_run_works_in_an_empty_repository(empty: Repo) -> None:
    done = empty.perfplan("init")
    assert done.returncode == 0, done.stderr
    assert empty.git("status", "--porcelain") == ""
    assert ".perfplan/" in (empty.root / ".gitignore").read_text().splitlines()
    again = empty.perfplan("init")
    assert again.returncode == 2
    assert all(
        name in again.stderr for name in ("plans/first-campaign.yaml", "kernels/example.py", "experiments/example.yaml")
    )
    ran = empty.perfplan("run", "experiments/example.yaml")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "confirmed" in ran.stdout
    assert empty.log()[0].startswith("perf(first-campaign): #fused-softmax")
    assert empty.git("status", "--porcelain") == ""
    run = json.loads(empty.records()[0].read_text())
    assert run["source"]["dirty"] is False and run["source"]["commit"]


def test_init_touches_nothing_where_one_of_its_files_exists(empty: Repo) -> None:
    empty.write("kernels/example.py", "mine\n")
    done = empty.perfplan("init")
    assert done.returncode == 2 and "kernels/example.py" in done.stderr
    assert not (empty.root / "plans").exists() and (empty.root / "kernels/example.py").read_text() == "mine\n"


def test_init_keeps_the_lines_of_gitignore_and_wants_a_repository(empty: Repo) -> None:
    empty.write(".gitignore", "build/")
    assert empty.perfplan("init", "--campaign", "decode", "--no-commit").returncode == 0
    assert (empty.root / ".gitignore").read_text() == "build/\n.perfplan/\n"
    assert (empty.root / "plans/decode.yaml").exists()
    shutil.rmtree(empty.root / ".git")
    done = empty.perfplan("init", "--campaign", "other")
    assert done.returncode == 7 and "git init" in done.stderr


def test_new_writes_a_commented_spec_and_tells_what_is_known(repo: Repo) -> None:
    add = [
        "dead-end",
        "add",
        "fewer-cols",
        "--technique",
        "Fewer columns",
        "--why",
        "no room",
        "--scope",
        "device.arch=sm120",
    ]
    assert repo.perfplan(*add).returncode == 0
    done = repo.perfplan("new", "fewer-cols", "--kernel", "kernels/row_sum.py:RowSum")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "experiments/fewer-cols.yaml\n"
    assert "known: dead-end fewer-cols" in done.stderr and "no room" in done.stderr
    text = (repo.root / "experiments/fewer-cols.yaml").read_text()
    assert "# passes: 4 by default" in text and "entry: kernels/row_sum.py:RowSum" in text
    ready = text.replace("{KNOB: VALUE}", "{passes: 1}").replace("[VALUE]", "[64]")
    repo.write("experiments/fewer-cols.yaml", ready)
    checked = repo.perfplan("check", "experiments/fewer-cols.yaml")
    assert checked.returncode == 0, checked.stderr
    assert "does not hold here" in checked.stdout
    assert repo.perfplan("new", "fewer-cols").returncode == 2
    assert repo.perfplan("new", "Fewer Cols").returncode == 2


def test_new_copies_another_spec_with_its_comments(repo: Repo) -> None:
    repo.write("experiments/sum-once.yaml", "# why not\n" + SPEC)
    assert repo.perfplan("new", "sum-twice", "--from", "sum-once").returncode == 0
    assert (repo.root / "experiments/sum-twice.yaml").read_text() == "# why not\n" + SPEC
    done = repo.perfplan("new", "sum-thrice", "--from", "sum-nonce")
    assert done.returncode == 2 and "did you mean" in done.stderr


def test_check_reports_all_files_and_all_errors_at_once(repo: Repo) -> None:
    repo.write("experiments/bad.yaml", SPEC.replace("lever:", "levre:").replace("min_pairs: 8", "min_pairs: x"))
    repo.write("experiments/unfit.yaml", SPEC.replace("{passes: 1}", "{pases: 1}"))
    done = repo.perfplan("check", "experiments/bad.yaml", "experiments/unfit.yaml", "experiments/sum-once.yaml")
    assert done.returncode == 2
    for says in (
        "bad.yaml:3: levre",
        "measure.min_pairs",
        "unfit.yaml:11: kernel.candidate.pases",
        "did you mean 'passes'?",
    ):
        assert says in done.stderr
    assert "experiments/sum-once.yaml: ok, 2 points x 2 arms x 8 to 16 pairs" in done.stdout
    data = json.loads(repo.perfplan("check", "--json", "experiments/sum-once.yaml").stdout)
    assert data["specs"][0]["cost"]["points"] == 2 and data["specs"][0]["problems"] == []


def test_check_exits_1_for_a_known_dead_end(repo: Repo) -> None:
    import platform

    add = [
        "dead-end",
        "add",
        "fewer-passes",
        "--technique",
        "Fewer passes",
        "--why",
        "tried",
        "--scope",
        f"device.arch={platform.machine()}",
    ]
    assert repo.perfplan(*add).returncode == 0
    done = repo.perfplan("check", "experiments/sum-once.yaml")
    assert done.returncode == 1 and "holds here" in done.stdout
    run = repo.perfplan("run", "experiments/sum-once.yaml")
    assert run.returncode == 3 and "Fewer passes" in run.stderr and repo.records() == []


def test_decisions_are_checked_written_and_committed(repo: Repo) -> None:
    said = [
        ["premise", "add", "moe", "--claim", "MoE is the slope", "--source", "a trace at batch 32"],
        [
            "premise",
            "revise",
            "attention",
            "--replaces",
            "moe",
            "--claim",
            "Attention is the slope",
            "--note",
            "a trace at batch 80",
        ],
        [
            "lever",
            "add",
            "split",
            "--claim",
            "Split",
            "--because",
            "waves",
            "--change",
            "[-25%, -15%]",
            "--at",
            "rows=64,256",
            "--rests-on",
            "attention",
        ],
        ["lever", "adopt", "split", "--why", "it is faster"],
        [
            "dead-end",
            "add",
            "tree",
            "--technique",
            "NCCL Tree",
            "--why",
            "no gain",
            "--scope",
            "interconnect=pcie",
            "--scope",
            "batch>=64",
        ],
        ["dead-end", "reopen", "tree", "--why", "NVLink is here"],
    ]
    for words in said:
        done = repo.perfplan(*words)
        assert done.returncode == 0, (words, done.stderr)
    assert len(repo.log()) == 1 + len(said) and repo.git("status", "--porcelain") == ""
    assert "revises premise" in repo.git("log", "--format=%B") or "revise premise" in repo.git("log", "--format=%s")
    plan = repo.plan()
    assert "~~moe~~" in plan and "Attention is the slope" in plan and "adopted" in plan
    entry = min((repo.root / "plans/test/decisions").glob("*-dead-end-tree.yaml")).read_text()
    assert "kind: reported" in entry and "batch: '>=64'" in entry


MISTAKES = [
    (["premise", "add", "p", "--claim", "a\x1bb"], "control character"),
    (["premise", "add", "x y", "--claim", "c"], "names have small letters"),
    (["premise", "revise", "gone", "--claim", "c"], "there is no premise 'gone'"),
    (["lever", "add", "l", "--claim", "c", "--rests-on", "gone"], "there is no premise 'gone'"),
    (["lever", "add", "l", "--claim", "c", "--change", "fast"], "is not a band"),
    (
        ["dead-end", "add", "d", "--technique", "t", "--why", "w", "--scope", "device.arhc=sm120"],
        "did you mean 'device.arch'?",
    ),
    (["dead-end", "add", "d", "--technique", "t", "--why", "w", "--run", "1999"], "no run or decision has an id"),
    (["dead-end", "retire", "gone", "--why", "w"], "there is no dead-end 'gone'"),
    (["premise", "add", "p", "--claim", "c", "--campaign", "tset"], "did you mean 'test'?"),
    (["premise", "add", "p", "--claim", "c", "--date", "yesterday"], "is not a day"),
]


@pytest.mark.parametrize(
    ("words", "says"), MISTAKES, ids=[" ".join(words[:3]) + f" {index}" for index, (words, _) in enumerate(MISTAKES)]
)
def test_a_mistake_in_a_decision_is_named_and_nothing_is_written(repo: Repo, words: list[str], says: str) -> None:
    done = repo.perfplan(*words)
    assert done.returncode in (1, 2) and says in done.stderr and "Traceback" not in done.stderr
    assert not (repo.root / "plans/test").exists() and repo.log() == ["start"]


def test_query_ranks_answers_and_says_whether_they_hold_here(repo: Repo) -> None:
    for name, technique, scope in (
        ("nccl-tree", "NCCL_ALGO=Tree", "interconnect=pcie"),
        ("compile", "torch.compile", "device.arch=sm120"),
    ):
        assert (
            repo.perfplan(
                "dead-end", "add", name, "--technique", technique, "--why", "no gain", "--scope", scope
            ).returncode
            == 0
        )
    done = repo.perfplan("query", "torch.compile")
    assert done.returncode == 0 and done.stdout.startswith("dead-end compile") and "here      no" in done.stdout
    assert repo.perfplan("query", "nccl_algo=tree").stdout.startswith("dead-end nccl-tree")
    data = json.loads(repo.perfplan("query", "--dead-ends", "--json", "no gain").stdout)
    assert data["matches"] == 2 and {each["applies_here"]["value"] for each in data["answers"]} == {"no", "unknown"}
    assert json.loads(repo.perfplan("query", "--arch", "sm120", "--json").stdout)["matches"] == 1
    nothing = repo.perfplan("query", "quantum")
    assert nothing.returncode == 1 and nothing.stdout == "" and "no match" in nothing.stderr


def test_show_gives_a_run_a_decision_and_a_dead_end_in_full(repo: Repo) -> None:
    assert repo.perfplan("run", "experiments/sum-once.yaml").returncode == 0
    run_id = repo.records()[0].stem
    shown = repo.perfplan("show", run_id[-8:]).stdout
    for says in (
        "verdict   confirmed",
        "rows=64",
        "timing    perf-counter, abba",
        "kernels/row_sum.py",
        "numerics  worst",
    ):
        assert says in shown
    assert json.loads(repo.perfplan("show", run_id, "--json").stdout)["id"] == run_id
    assert repo.perfplan("premise", "add", "p", "--claim", "something holds", "--run", run_id[-8:]).returncode == 0
    assert f"evidence  measured, {run_id}" in repo.perfplan("show", "p").stdout
    wrong = repo.perfplan("show", "sum-onec")
    assert wrong.returncode == 1 and "did you mean" in wrong.stderr


def test_a_detached_run_needs_no_repository_and_is_filed_against_the_history(repo: Repo) -> None:
    box = Repo(repo.root.parent / "box")
    shutil.copytree(repo.root, box.root, ignore=shutil.ignore_patterns(".git"))
    out = repo.root.parent / "out"
    done = box.perfplan("run", "--detached", str(out), "experiments/sum-once.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert box.records() == [] and not (box.root / "plans/TEST_PERF_PLAN.md").exists()
    filed = repo.perfplan("record", str(out))
    assert filed.returncode == 0, filed.stderr
    run = json.loads(repo.records()[0].read_text())
    assert run["source"]["detached"] and run["source"]["commit"] == repo.git("rev-parse", "HEAD~1").strip()
    assert repo.git("status", "--porcelain") == "" and "sum-once" in repo.plan()
    again = repo.perfplan("record", str(out))
    assert again.returncode == 0 and "already filed" in again.stdout and len(repo.records()) == 1


def test_a_detached_run_of_unknown_sources_is_refused_unless_allowed(repo: Repo) -> None:
    box = Repo(repo.root.parent / "box")
    shutil.copytree(repo.root, box.root, ignore=shutil.ignore_patterns(".git"))
    box.write("kernels/row_sum.py", KERNEL + "\n# changed on the box\n")
    out = repo.root.parent / "out"
    assert box.perfplan("run", "--detached", str(out), "experiments/sum-once.yaml").returncode == 0
    refused = repo.perfplan("record", str(out))
    assert (
        refused.returncode == 7
        and "kernels/row_sum.py" in refused.stderr
        and "--allow-unknown-source" in refused.stderr
    )
    assert repo.records() == []
    assert repo.perfplan("record", "--allow-unknown-source", str(out)).returncode == 0
    assert "unknown" in repo.plan()


def test_doctor_says_what_can_be_measured_here(repo: Repo) -> None:
    done = repo.perfplan("doctor")
    assert done.returncode == 0, done.stdout
    assert "measure on cpu: torch kernels" in done.stdout and "git: repository" in done.stdout
    data = json.loads(repo.perfplan("doctor", "--json").stdout)
    assert data["usable"] is True and {each["state"] for each in data["findings"]} <= {"ok", "missing", "broken"}


def test_unknown_commands_and_options_are_usage_errors(repo: Repo) -> None:
    done = repo.perfplan("qurey", "x")
    assert done.returncode == 2 and "did you mean 'query'?" in done.stderr
    assert repo.perfplan("run").returncode == 2
    assert repo.perfplan("-C", str(repo.root), "schema").returncode == 0


def test_a_command_is_measured_like_a_kernel(repo: Repo) -> None:
    repo.write("work.py", "import sys, time\ntime.sleep(float(sys.argv[1]))\nprint('rate: 1,234.5 tok/s')\n")
    spec = """\
campaign: test
title: Sleep less
lever: sleep
hypothesis: {claim: half the sleep takes less time, because: it sleeps less, predicts: {change: "<= -20%"}}
command:
  baseline: {argv: [python3, work.py, "0.{ms}"]}
  candidate: {argv: [python3, work.py, "0.0{ms}"]}
  sources: [work.py]
points: {ms: 3}
measure: {min_pairs: 8, max_pairs: 8, max_noise: 0.9, half_width: 0.2}
"""
    repo.write("experiments/sleep.yaml", spec)
    done = repo.perfplan("run", "experiments/sleep.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    run = json.loads((repo.root / "experiments/sleep").glob("*.json").__next__().read_text())
    assert run["verdict"]["outcome"] == "confirmed" and run["cells"][0]["timer"] == "process"
    assert [each["path"] for each in run["source"]["files"]] == ["work.py"]
    repo.write("experiments/fails.yaml", spec.replace("0.0{ms}", "never").replace("lever: sleep", "lever: other"))
    failed = repo.perfplan("run", "experiments/fails.yaml")
    assert failed.returncode == 5 and "exit code 1" in failed.stdout and "Traceback" not in failed.stderr


def test_a_premise_that_nobody_stated_is_a_mistake_in_a_spec(repo: Repo) -> None:
    repo.write("experiments/sum-once.yaml", SPEC + "rests_on: [sums-are-the-slope]\n")
    done = repo.perfplan("check", "--no-kernel", "experiments/sum-once.yaml")
    assert done.returncode == 2 and "there is no premise 'sums-are-the-slope'" in done.stderr
    assert repo.perfplan("premise", "add", "sums-are-the-slope", "--claim", "c").returncode == 0
    assert repo.perfplan("check", "--no-kernel", "experiments/sum-once.yaml").returncode == 0


def test_a_command_needs_no_torch(repo: Repo) -> None:
    repo.write("no/torch.py", "raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')\n")
    spec = SPEC[: SPEC.index("kernel:")].replace(", at: {rows: [64, 256]}", "")
    arms = "command:\n  baseline: {argv: [sleep, '0.05']}\n  candidate: {argv: [sleep, '0.01']}\nmeasure: {min_pairs: 8, max_pairs: 8, max_noise: 0.9}\n"
    repo.write("experiments/naps.yaml", spec + arms)
    done = repo.perfplan("run", "experiments/naps.yaml", PYTHONPATH=str(repo.root / "no"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "confirmed" in done.stdout and repo.log()[0].startswith("perf(test): #fewer-passes")


COMMAND = """\
campaign: test
title: Nap less
lever: nap
hypothesis: {claim: c, because: b, predicts: {metric: m, change: "<= -5%"}}
command:
  baseline: {argv: [sh, -c, "sleep 0.01"]}
  candidate: {argv: [sh, -c, "sleep 0.005"]}
  metrics: {m: {unit: s, file: FILE, field: a}}
points: {n: 1}
measure: {min_pairs: 8, max_pairs: 8, max_noise: 0.9}
"""


def test_a_metric_never_costs_the_user_a_file(repo: Repo) -> None:
    outside = repo.root.parent / "outside.json"
    outside.write_text('{"a": 1}')
    for file in (str(outside), "../outside.json"):
        repo.write("experiments/nap.yaml", COMMAND.replace("FILE", file))
        done = repo.perfplan("run", "experiments/nap.yaml")
        assert done.returncode == 2 and "is not inside of the repository" in done.stderr
    kept = repo.write("kernels/row_sum.json", '{"a": 1}')
    repo.write("experiments/nap.yaml", COMMAND.replace("FILE", "kernels/row_sum.json"))
    stale = repo.perfplan("run", "experiments/nap.yaml")
    assert stale.returncode == 1 and "did not write row_sum.json anew" in stale.stdout
    assert kept.read_text() == '{"a": 1}' and outside.read_text() == '{"a": 1}'


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ('"<= -30%"', '"<= -200%"', "a change of -100% or less is not possible"),
        ('"<= -30%"', "within -1%", "positive percentage"),
        ("at: {rows: [64, 256]}", "at: {rows: []}", "has no values"),
        ("seconds: 10", "seconds: .inf", "measure.seconds"),
        ("points: {rows: [64, 256]}", "points: {rows: [64, 256, 99999999999999999999]}", "too large a number"),
        ("title: Sum once", 'title: "a\\0b"', "control character"),
        ("title: Sum once", "title: !!binary aGk=", "tag"),
    ],
)
def test_values_that_would_fail_later_are_refused_at_once(repo: Repo, before: str, after: str, says: str) -> None:
    assert before in SPEC
    repo.write("experiments/sum-once.yaml", SPEC.replace(before, after))
    done = repo.perfplan("check", "--no-kernel", "experiments/sum-once.yaml")
    assert done.returncode == 2 and says in done.stderr and "Traceback" not in done.stderr


def test_a_damaged_record_never_vanishes_from_the_committed_plan(repo: Repo) -> None:
    assert repo.perfplan("run", "experiments/sum-once.yaml").returncode == 0
    (record,) = repo.records()
    whole, plan = record.read_text(), repo.plan()
    record.write_text(whole[:200])
    repo.write("experiments/sum-again.yaml", SPEC.replace("Sum once", "Sum again"))
    done = repo.perfplan("run", "experiments/sum-again.yaml")
    assert done.returncode == 1 and "the plan is not rewritten" in done.stderr and record.name in done.stderr
    assert repo.plan() == plan and len(repo.log()) == 3
    record.write_text(whole)
    assert repo.perfplan("plan").returncode == 0 and "sum-again" in repo.plan()


def test_a_record_that_cannot_be_written_is_kept_elsewhere(repo: Repo) -> None:
    repo.write("experiments/sum-once", "a file where the folder of the records should be\n")
    done = repo.perfplan("run", "experiments/sum-once.yaml")
    assert done.returncode == 6 and "the record is safe in" in done.stderr and "Traceback" not in done.stderr
    kept = Path(done.stderr.split("the record is safe in ")[1].split(";")[0])
    assert json.loads(kept.read_text())["verdict"]["outcome"] == "confirmed"


def test_a_kernel_that_reads_standard_input_does_not_hang(repo: Repo) -> None:
    repo.write("kernels/row_sum.py", KERNEL + "\nimport sys\nsys.stdin.read()\n")
    assert repo.perfplan("check", "experiments/sum-once.yaml").returncode == 0


def test_many_mistakes_stay_on_one_screen(repo: Repo) -> None:
    repo.write("experiments/sum-once.yaml", SPEC + "".join(f"key{i}: 1\n" for i in range(500)))
    done = repo.perfplan("check", "--no-kernel", "experiments/sum-once.yaml")
    assert done.returncode == 2 and "... and " in done.stderr and len(done.stderr.splitlines()) < 25
