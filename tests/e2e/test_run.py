"""`perfplan run` in real repositories: the whole way from a spec to a commit, and everything that can stand in it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time

import pytest

from repository import KERNEL, SPEC, Repo


def test_a_spec_becomes_a_record_a_plan_and_a_commit(repo: Repo) -> None:
    done = repo.perfplan("run", "experiments/sum-once.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "confirmed" in done.stdout and "rows=64" in done.stdout
    (record,) = repo.records()
    run = json.loads(record.read_text())
    assert run["verdict"]["outcome"] == "confirmed"
    assert run["source"]["commit"] == repo.git("rev-parse", "HEAD~1").strip()
    assert run["source"]["dirty"] is False
    blobs = {each["path"]: each["blob"] for each in [run["source"]["spec"], *run["source"]["files"]]}
    assert blobs == {
        path: repo.git("rev-parse", f"HEAD:{path}").strip()
        for path in ("experiments/sum-once.yaml", "kernels/row_sum.py")
    }
    assert all(len(cell["baseline"]["samples"]) >= 8 for cell in run["cells"])
    assert "sum-once" in repo.plan()
    assert repo.git("status", "--porcelain") == ""
    subject = repo.log()[0]
    assert subject.startswith("perf(test): #fewer-passes") and "confirmed" in subject
    trailers = repo.git("log", "-1", "--format=%(trailers:key=Perfplan-Run,valueonly)").strip()
    assert trailers == run["id"]
    assert repo.perfplan("plan", "--check").returncode == 0


def test_a_refuted_run_enters_the_list_and_stops_the_next_try(repo: Repo) -> None:
    repo.write("experiments/sum-once.yaml", SPEC.replace('"<= -30%"', '">= +30%"'))
    done = repo.perfplan("run", "--exit-code", "experiments/sum-once.yaml")
    assert done.returncode == 10, done.stdout + done.stderr
    assert "wrong-sign" in done.stdout
    again = repo.perfplan("run", "experiments/sum-once.yaml")
    assert again.returncode == 3
    assert "dead end" in again.stderr and "--retread" in again.stderr
    assert len(repo.records()) == 1
    anyway = repo.perfplan("run", "--retread", "new idea: rows fit the cache", "experiments/sum-once.yaml")
    assert anyway.returncode == 0, anyway.stderr
    run = json.loads(repo.records()[-1].read_text())
    assert run["retread"]["why"] == "new idea: rows fit the cache"
    assert "new idea: rows fit the cache" in repo.git("log", "-1", "--format=%B")


def test_json_is_alone_on_standard_output(repo: Repo) -> None:
    done = repo.perfplan("run", "--json", "--no-commit", "experiments/sum-once.yaml")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["schema_version"] == 1
    assert answer["runs"][0]["record"]["verdict"]["outcome"] == "confirmed"
    assert answer["runs"][0]["commit"] is None
    assert repo.log() == ["start"]
    assert repo.perfplan("commit").returncode == 0
    assert len(repo.log()) == 2 and repo.git("status", "--porcelain") == ""


def test_a_dirty_kernel_is_measured_and_recorded_as_dirty_with_its_diff(repo: Repo) -> None:
    repo.write("kernels/row_sum.py", KERNEL + "\n# not committed\n")
    assert repo.perfplan("run", "experiments/sum-once.yaml").returncode == 0
    run = json.loads(repo.records()[0].read_text())
    assert run["source"]["dirty"] is True
    assert "+# not committed" in run["source"]["diff"]
    assert "dirty" in repo.plan()
    assert repo.git("status", "--porcelain") == " M kernels/row_sum.py\n"


def test_what_the_user_had_staged_or_changed_stays_as_it_was(repo: Repo) -> None:
    repo.write("staged.txt", "staged\n")
    repo.git("add", "staged.txt")
    repo.write("staged.txt", "staged, then changed\n")
    repo.write("loose.txt", "untracked\n")
    before = repo.git("status", "--porcelain"), repo.git("ls-files", "--stage", "staged.txt")
    assert repo.perfplan("run", "experiments/sum-once.yaml").returncode == 0
    assert (repo.git("status", "--porcelain"), repo.git("ls-files", "--stage", "staged.txt")) == before
    assert "staged.txt" not in repo.git("show", "--stat", "--format=", "HEAD")


def _rebase(repo: Repo) -> None:
    repo.git("switch", "-q", "-c", "other")
    repo.write("a.txt", "one\n")
    repo.git("add", "a.txt")
    repo.git("commit", "-q", "-m", "one")
    repo.git("switch", "-q", "main")
    repo.write("a.txt", "two\n")
    repo.git("add", "a.txt")
    repo.git("commit", "-q", "-m", "two")
    repo.git("rebase", "other", check=False)


def _merge(repo: Repo) -> None:
    _rebase(repo)
    repo.git("rebase", "--abort")
    repo.git("merge", "other", check=False)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda repo: repo.git("checkout", "-q", "--detach"), "detached"),
        (_rebase, "rebase"),
        (_merge, "merge"),
    ],
    ids=["detached-head", "rebase", "merge"],
)
def test_git_that_will_not_commit_is_found_before_anything_is_measured(repo: Repo, spoil: object, says: str) -> None:
    spoil(repo)  # type: ignore[operator]
    done = repo.perfplan("run", "experiments/sum-once.yaml")
    assert done.returncode == 7
    assert says in done.stderr and "hint" in done.stderr and "Traceback" not in done.stderr
    assert repo.records() == []


def test_no_identity_is_found_before_anything_is_measured(repo: Repo) -> None:
    nobody = dict.fromkeys(
        ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "EMAIL"), ""
    )
    repo.git("config", "user.useConfigOnly", "true")
    done = repo.perfplan("run", "experiments/sum-once.yaml", **nobody)
    assert done.returncode == 7
    assert "git config" in done.stderr
    assert repo.records() == []


def test_no_repository_is_a_clear_error(repo: Repo) -> None:
    (repo.root / ".git").rename(repo.root.parent / "hidden")
    done = repo.perfplan("run", "experiments/sum-once.yaml")
    assert done.returncode == 7
    assert "git" in done.stderr and "Traceback" not in done.stderr


def test_the_first_commit_of_a_repository_can_be_ours(repo: Repo) -> None:
    repo.git("update-ref", "-d", "HEAD")
    done = repo.perfplan("run", "experiments/sum-once.yaml")
    assert done.returncode == 0, done.stderr
    assert len(repo.log()) == 1
    assert json.loads(repo.records()[0].read_text())["source"]["commit"] is None


def test_a_failing_hook_leaves_the_record_for_a_later_commit(repo: Repo) -> None:
    hook = repo.write(".git/hooks/pre-commit", "#!/bin/sh\necho the hook says no\nexit 1\n")
    hook.chmod(0o755)
    done = repo.perfplan("run", "experiments/sum-once.yaml")
    assert done.returncode == 7
    assert "the hook says no" in done.stderr and "perfplan commit" in done.stdout + done.stderr
    assert len(repo.records()) == 1 and repo.log() == ["start"]
    assert repo.git("diff", "--cached", "--name-only") == ""
    hook.unlink()
    assert repo.perfplan("commit").returncode == 0
    assert len(repo.log()) == 2 and repo.git("status", "--porcelain") == ""


BAD_SPECS = {
    "conflict-markers": ("<<<<<<< HEAD\n" + SPEC, "conflict"),
    "tab": (SPEC.replace("  claim", "\tclaim"), "tab"),
    "python-tag": (SPEC.replace("title: Sum once", "title: !!python/object:os.system {}"), "tag"),
    "duplicate-key": (SPEC + "title: again\n", "title"),
    "misspelt-key": (SPEC.replace("lever:", "levre:"), "lever"),
    "missing-kernel": (SPEC.replace("row_sum.py", "gone.py"), "gone.py"),
    "missing-class": (SPEC.replace(":RowSum", ":RowSun"), "RowSum"),
    "unknown-knob": (SPEC.replace("{passes: 1}", "{pases: 1}"), "passes"),
    "unknown-axis": (SPEC.replace("points: {rows: [64, 256]}", "points: {rows: [64, 256], rwos: 3}"), "rwos"),
    "point-not-measured": (SPEC.replace("at: {rows: [64, 256]}", "at: {rows: [64, 128]}"), "128"),
    "unknown-campaign": (SPEC.replace("campaign: test", "campaign: tset"), "test"),
    "not-a-band": (SPEC.replace('"<= -30%"', "fast"), "band"),
    "empty": ("", "empty"),
}


@pytest.mark.parametrize("name", BAD_SPECS)
def test_a_bad_spec_is_named_with_file_and_reason(repo: Repo, name: str) -> None:
    text, says = BAD_SPECS[name]
    repo.write("experiments/sum-once.yaml", text)
    done = repo.perfplan("run", "experiments/sum-once.yaml")
    assert done.returncode == 2, done.stdout + done.stderr
    assert "experiments/sum-once.yaml" in done.stderr or "kernels/" in done.stderr
    assert says in done.stderr and "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) < 25
    assert repo.records() == []


BAD_KERNELS = {
    "raises-on-import": (KERNEL + "\nraise RuntimeError('no such library')\n", 2, "no such library"),
    "nan": (KERNEL.replace("return call", "return lambda: outputs['y'].fill_(float('nan'))"), 4, "NaN"),
    "wrong-result": (KERNEL.replace("return call", "return lambda: (call(), outputs['y'].mul_(1.01))"), 4, "error"),
    "wrong-shape": (KERNEL.replace(".sum(dim=1)}", ".sum()}"), 1, "shape"),
    "raises-in-prepare": (
        KERNEL.replace("        def call", "        raise ValueError('passes must be even')\n        def call"),
        1,
        "passes must be even",
    ),
    "dies": (
        KERNEL.replace("def call():", "def call():\n            import os; os.kill(os.getpid(), 11)"),
        5,
        "crashed",
    ),
}


@pytest.mark.parametrize("name", BAD_KERNELS)
def test_a_bad_kernel_never_costs_the_record(repo: Repo, name: str) -> None:
    text, code, says = BAD_KERNELS[name]
    repo.write("kernels/row_sum.py", text)
    done = repo.perfplan("run", "experiments/sum-once.yaml")
    assert done.returncode == code, done.stdout + done.stderr
    assert says in done.stdout + done.stderr and "Traceback" not in done.stderr
    if code != 2:
        run = json.loads(repo.records()[0].read_text())
        assert run["verdict"]["outcome"] == "invalid"
        assert "invalid" in repo.plan()


def test_one_impossible_point_is_invalid_and_the_others_are_measured(repo: Repo) -> None:
    text = KERNEL.replace(
        "        def call", "        if point['rows'] == 256: raise ValueError('256 rows do not fit')\n        def call"
    )
    repo.write("kernels/row_sum.py", text)
    done = repo.perfplan("run", "experiments/sum-once.yaml")
    cells = {cell["point"]["rows"]: cell for cell in json.loads(repo.records()[0].read_text())["cells"]}
    assert done.returncode == 1
    assert cells[64]["verdict"]["outcome"] == "confirmed"
    assert cells[256]["verdict"]["outcome"] == "invalid" and "256 rows do not fit" in cells[256]["validity"]["detail"]


def test_a_record_cut_short_is_named_and_skipped(repo: Repo) -> None:
    assert repo.perfplan("run", "experiments/sum-once.yaml").returncode == 0
    (record,) = repo.records()
    whole = record.read_text()
    record.write_text(whole[: len(whole) // 2])
    for command in (["plan", "--stdout"], ["query", "sum"]):
        done = repo.perfplan(*command)
        assert done.returncode == 1
        assert record.name in done.stderr and "Traceback" not in done.stderr
    record.write_text(whole.replace('"pairs"', '"pears"', 1))
    assert record.name in repo.perfplan("plan", "--stdout").stderr


def test_two_runs_at_once_both_land(repo: Repo) -> None:
    repo.write("experiments/sum-again.yaml", SPEC.replace("Sum once", "Sum again"))
    racers = [repo.start("run", f"experiments/{name}.yaml") for name in ("sum-once", "sum-again")]
    for racer in racers:
        output = racer.communicate(timeout=200)
        assert racer.returncode == 0, output
    assert len(repo.records()) == 2 and len(repo.log()) == 3
    assert repo.git("status", "--porcelain") == ""
    assert repo.perfplan("plan", "--check").returncode == 0


@pytest.mark.parametrize("after", [0.3, 2.5, 4.0, 6.0])
def test_ctrl_c_leaves_nothing_half_done(repo: Repo, after: float) -> None:
    running = repo.start("run", "experiments/sum-once.yaml")
    time.sleep(after)
    os.killpg(running.pid, signal.SIGINT)
    output = running.communicate(timeout=60)
    assert running.returncode in (0, 130), output
    assert "Traceback" not in output[1]
    assert repo.git("diff", "--cached", "--name-only") == ""
    assert not list((repo.root / "experiments").rglob("*.tmp"))
    for _ in range(50):
        left = subprocess.run(
            ["ps", "-o", "stat=", "-g", str(running.pid)], capture_output=True, text=True, check=False
        ).stdout
        if all(state.startswith("Z") for state in left.split()):
            break
        time.sleep(0.1)
    assert all(state.startswith("Z") for state in left.split()), (
        left
    )  # the dead that nobody has collected yet are no harm
    assert repo.perfplan("plan").returncode == 0  # the next command works
