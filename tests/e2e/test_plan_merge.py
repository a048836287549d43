"""Merging branches that add to the log: git reports a conflict, or the text is right, or `--check` says it is not."""

from __future__ import annotations

import random
import shutil
import sys
from pathlib import Path

import pytest

from repository import Repo

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))
from perfplan.layout import Layout
from perfplan.log import load_log
from perfplan.models.decision import Decision
from perfplan.models.record import Run
from perfplan.plan import build_documents, check_documents, resolve_documents, write_documents
from plan_log import campaign_story, cell, decision, file_all, make_repository, run

PLAN = "plans/TEST_PERF_PLAN.md"
PAIRS = 25


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    """A repository with a campaign under way and its plan committed."""
    repo = Repo(tmp_path_factory.mktemp("base"))
    repo.git("init", "-q", "-b", "main")
    layout = make_repository(repo.root)
    file_all(layout, campaign_story())
    write_documents(layout, load_log(layout))
    commit(repo)
    return repo


def commit(repo: Repo) -> None:
    repo.git("add", "-A")
    repo.git("commit", "-q", "-m", "step")


def additions(draw: random.Random) -> list[Run | Decision]:
    """One to three new entries on days before, between and after what is there."""
    made: list[Run | Decision] = []
    for _ in range(draw.randint(1, 3)):
        day, tail = draw.randint(1, 12), draw.getrandbits(32)
        name = draw.choice(["nsplit", "alpha", "omega", "torch-compile", "moe-is-the-slope"])
        kind = draw.choice(["run", "run", "premise", "lever", "dead-end"])
        if kind == "run":
            outcome = draw.choice(["confirmed", "refuted", "inconclusive"])
            cells = [cell(64, draw.choice([-0.2, -0.24, 0.0]))]
            made.append(run(day, tail, outcome, draw.choice(["waves", "alpha", "omega"]), cells=cells, lever=name))
        else:
            made.append(decision(day, tail, kind, draw.choice(["propose", "revise"]), name))
    return made


def branch(repo: Repo, name: str, draw: random.Random) -> str:
    """Add entries on a branch, sometimes a note too, as its author would: regenerate and commit. Returns the note."""
    repo.git("checkout", "-q", "-B", name, "main")
    layout = Layout(repo.root)
    file_all(layout, additions(draw))
    note = f"note of {name}" if draw.random() < 0.4 else ""
    if note:
        region = draw.choice(["summary", "notes"])
        plan = repo.root / PLAN
        text = plan.read_text(encoding="utf-8")
        plan.write_text(
            text.replace(f"<!-- perfplan:end {region}", f"{note}\n<!-- perfplan:end {region}"), encoding="utf-8"
        )
    write_documents(layout, load_log(layout))
    commit(repo)
    return note


def test_any_two_branches_end_in_the_regenerated_text(base: Repo, tmp_path: Path) -> None:
    outcomes = set()
    for seed in range(PAIRS):
        repo = Repo(tmp_path / str(seed))
        shutil.copytree(base.root, repo.root)
        notes = [branch(repo, name, random.Random(f"{name} {seed}")) for name in ("left", "right")]
        merge = repo.git("merge", "-q", "-m", "merge", "left", check=False)
        layout, log = Layout(repo.root), load_log(Layout(repo.root))
        assert log.problems == []
        unmerged = repo.git("diff", "--name-only", "--diff-filter=U").split()
        assert set(unmerged) <= {PLAN}, merge  # records and decisions never conflict
        if unmerged:
            outcomes.add("conflict")
            resolve_documents(layout, log)
        else:
            (document,) = build_documents(layout, log)
            same = (repo.root / PLAN).read_text(encoding="utf-8") == document.text
            assert same == (check_documents(layout, log) == [])
            outcomes.add("clean" if same else "caught")
            write_documents(layout, log)
        text = (repo.root / PLAN).read_text(encoding="utf-8")
        assert text == build_documents(layout, log)[0].text
        assert check_documents(layout, log) == []
        assert all(note in text for note in notes)
        assert all(f"[{entry.id[-8:]}]" in text for entry in [*log.runs, *log.decisions])
        shutil.rmtree(repo.root)
    assert {"conflict", "clean"} <= outcomes


def test_a_clean_merge_into_a_wrong_text_is_caught(base: Repo, tmp_path: Path) -> None:
    """One side refutes a premise, the other brings a lever that rests on it, which must then be marked."""
    repo = Repo(tmp_path / "repo")
    shutil.copytree(base.root, repo.root)
    layout = Layout(repo.root)
    new = run(
        7, 0xF1, "inconclusive", "alpha", lever="zeta", cells=[cell(64, -0.15)], rests_on=["attention-is-the-slope"]
    )
    for name, entry in (("left", decision(6, 0xF2, "premise", "refute", "attention-is-the-slope")), ("right", new)):
        repo.git("checkout", "-q", "-B", name, "main")
        file_all(layout, [entry])
        write_documents(layout, load_log(layout))
        commit(repo)
    repo.git("merge", "-q", "-m", "merge", "left")
    check = repo.perfplan("plan", "--check")
    assert check.returncode == 1
    assert any(line.startswith("+") and "zeta" in line and "fallen" in line for line in check.stdout.splitlines())
    assert repo.perfplan("plan").returncode == 0 and repo.perfplan("plan", "--check").returncode == 0


def test_the_command_settles_a_conflict_and_says_what_to_do(base: Repo, tmp_path: Path) -> None:
    repo = Repo(tmp_path / "repo")
    shutil.copytree(base.root, repo.root)
    layout = Layout(repo.root)
    for name in ("left", "right"):
        repo.git("checkout", "-q", "-B", name, "main")
        file_all(layout, [decision(20, ord(name[0]), "lever", "propose", f"lever-{name}")])
        plan = repo.root / PLAN
        text = plan.read_text(encoding="utf-8")
        plan.write_text(
            text.replace("<!-- perfplan:end notes", f"words of {name}\n<!-- perfplan:end notes"), encoding="utf-8"
        )
        assert repo.perfplan("plan").returncode == 0
        commit(repo)
    repo.git("merge", "-q", "left", check=False)
    refused = repo.perfplan("plan")
    assert refused.returncode == 1 and "--resolve" in refused.stderr and "Traceback" not in refused.stderr
    done = repo.perfplan("plan", "--resolve")
    assert done.returncode == 0 and "git add" in done.stderr and "both sides wrote in notes" in done.stderr
    text = (repo.root / PLAN).read_text(encoding="utf-8")
    assert "words of left" in text and "words of right" in text and "<<<<<<<" not in text
    assert "lever-left" in text and "lever-right" in text
    assert repo.perfplan("plan", "--check").returncode == 0


def test_check_prints_a_diff_and_a_broken_record_is_named(base: Repo, tmp_path: Path) -> None:
    repo = Repo(tmp_path / "repo")
    shutil.copytree(base.root, repo.root)
    assert repo.perfplan("plan", "--check").returncode == 0
    file_all(Layout(repo.root), [decision(20, 1, "premise", "propose", "fresh")])
    stale = repo.perfplan("plan", "--check")
    assert (
        stale.returncode == 1
        and "+++ plans/TEST_PERF_PLAN.md (regenerated)" in stale.stdout
        and "stale:" in stale.stderr
    )
    record = repo.records()[0]
    record.write_text(record.read_text(encoding="utf-8")[:200], encoding="utf-8")
    broken = repo.perfplan("plan")
    assert broken.returncode == 1 and record.name in broken.stderr
    assert "fresh" in (repo.root / PLAN).read_text(encoding="utf-8")
