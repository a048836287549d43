"""Commits of runs and decisions in real repositories: what goes in, what stays out, two at once, a refusal."""

from __future__ import annotations

import json

from perfplan.commits import commit_decisions, commit_run, pending
from perfplan.decisions import write_decision
from perfplan.layout import Layout
from perfplan.models.decision import Decision
from records import a_run, file_run
from repository import SPEC, Repo


def test_record_spec_and_plan_are_committed_and_nothing_else(repo: Repo) -> None:
    repo.write("experiments/sum-once.yaml", SPEC + "# new\n")
    repo.write("kernels/row_sum.py", "# the user's\n")
    repo.git("add", "kernels/row_sum.py")
    repo.write("notes.txt", "mine\n")
    commit = commit_run(Layout(repo.root), file_run(repo, a_run(repo)))
    shown = set(repo.git("show", "--format=", "--name-only", commit.sha).split())
    assert {"experiments/sum-once.yaml", "plans/TEST_PERF_PLAN.md"} < shown <= set(commit.paths)
    assert all(path.startswith(("experiments/sum-once", "plans/")) for path in shown)
    assert repo.git("status", "--porcelain") == "M  kernels/row_sum.py\n?? notes.txt\n"
    assert commit.left_out == ()


def test_a_spec_edited_after_the_run_stays_uncommitted_and_that_is_said(repo: Repo) -> None:
    run = file_run(repo, a_run(repo))
    repo.write("experiments/sum-once.yaml", SPEC + "# edited\n")
    commit = commit_run(Layout(repo.root), run)
    assert commit.left_out == ("experiments/sum-once.yaml",)
    assert repo.git("status", "--porcelain") == " M experiments/sum-once.yaml\n"


def test_a_decision_is_committed_with_the_plan(repo: Repo) -> None:
    layout = Layout(repo.root)
    decision = Decision(
        id="20261201-142233-7f3a9c2e", campaign="test", kind="premise", action="propose", name="slope",
        date="2026-12-01T14:22:33Z", claim="passes are the cost",
    )  # fmt: skip
    path = write_decision(layout, decision)
    commit = commit_decisions(layout, [decision])
    assert layout.relative(path) in commit.paths
    assert repo.log()[0] == "docs(test): propose premise slope: passes are the cost"
    assert repo.git("status", "--porcelain") == "" and pending(layout) == []


def test_commit_takes_all_that_is_pending_in_order_or_the_one_named(repo: Repo) -> None:
    runs = [file_run(repo, a_run(repo, number)) for number in (3, 1, 2)]
    done = repo.perfplan("commit", runs[0].id)
    assert done.returncode == 0, done.stderr
    assert [each.id for each in pending(Layout(repo.root))] == [runs[1].id, runs[2].id]
    done = repo.perfplan("commit", "--json")
    assert [each["id"] for each in json.loads(done.stdout)["commits"]] == [runs[1].id, runs[2].id]
    assert len(repo.log()) == 4 and repo.git("status", "--porcelain") == ""
    assert "nothing to commit" in repo.perfplan("commit").stderr
    assert repo.perfplan("commit", "nosuch").returncode == 1


def test_two_processes_at_once_both_land(repo: Repo) -> None:
    runs = [file_run(repo, a_run(repo, number)) for number in (1, 2)]
    racers = [repo.start("commit", run.id) for run in runs]
    for racer in racers:
        output = racer.communicate(timeout=60)
        assert racer.returncode == 0, output
    assert len(repo.log()) == 3 and repo.git("status", "--porcelain") == ""


def test_a_failing_hook_leaves_all_on_disk(repo: Repo) -> None:
    hook = repo.write(".git/hooks/pre-commit", "#!/bin/sh\necho the hook says no\nexit 1\n")
    hook.chmod(0o755)
    run = file_run(repo, a_run(repo))
    done = repo.perfplan("commit")
    assert done.returncode == 7 and "the hook says no" in done.stderr and "perfplan commit" in done.stderr
    assert Layout(repo.root).record(run.experiment, run.id).exists() and run.id in [
        each.id for each in pending(Layout(repo.root))
    ]
    hook.unlink()
    assert repo.perfplan("commit").returncode == 0
    assert repo.git("status", "--porcelain") == ""
