"""Commits of exactly our files, with real git: what the user has staged, hooks, interrupts, odd names, refusals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from perfplan.blobs import blob_id
from perfplan.errors import GitRefused
from perfplan.git import open_repository
from repository import Repo


@pytest.fixture
def plain(tmp_path: Path) -> Repo:
    made = Repo(tmp_path / "répo with space")
    made.root.mkdir()
    made.git("init", "-q", "-b", "main")
    made.write("a.txt", "one\n")
    made.write("b.txt", "one\n")
    made.git("add", "-A")
    made.git("commit", "-q", "-m", "start")
    return made


def staged(repo: Repo) -> list[str]:
    return repo.git("ls-files", "--stage", "-z").split("\0")


def hook(repo: Repo, name: str, text: str) -> Path:
    path = repo.write(f".git/hooks/{name}", f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_only_our_files_are_committed_and_the_index_keeps_the_rest(plain: Repo) -> None:
    plain.write("a.txt", "staged\n")
    plain.git("add", "a.txt")
    plain.write("a.txt", "staged and then changed\n")
    plain.write("new.txt", "n\n")
    plain.git("add", "-N", "new.txt")
    plain.git("rm", "-q", "--cached", "b.txt")
    before = staged(plain)
    plain.write("r/é ü.json", "{}\n")
    sha = open_repository(plain.root).commit_paths([plain.root / "r/é ü.json"], "ours\n")
    assert plain.git("show", "--format=", "--name-only", "-z", sha).strip("\0\n") == "r/é ü.json"
    assert [line for line in staged(plain) if "r/" not in line] == before
    assert plain.git("status", "--porcelain", "-z").split("\0") == [
        "MM a.txt",
        "D  b.txt",
        " A new.txt",
        "?? b.txt",
        "",
    ]
    assert plain.git("diff", "new.txt") != ""


def test_a_path_of_ours_that_was_staged_or_announced_is_committed_as_it_is_on_disk(plain: Repo) -> None:
    plain.write("x.json", "old\n")
    plain.write("y.json", "y\n")
    plain.git("add", "x.json")
    plain.git("add", "-N", "y.json")
    plain.write("x.json", "new\n")
    (plain.root / "b.txt").unlink()
    open_repository(plain.root).commit_paths([Path("x.json"), Path("y.json"), Path("b.txt")], "ours\n")
    assert plain.git("show", "HEAD:x.json") == "new\n"
    assert plain.git("ls-tree", "--name-only", "HEAD").split() == ["a.txt", "x.json", "y.json"]
    assert plain.git("status", "--porcelain") == ""


def test_nothing_to_commit_gives_head(plain: Repo) -> None:
    repository = open_repository(plain.root)
    assert repository.commit_paths([Path("a.txt")], "none\n") == repository.head()


def test_the_first_commit_of_a_repository(tmp_path: Path) -> None:
    made = Repo(tmp_path)
    made.git("init", "-q", "-b", "main")
    made.write("other", "o")
    made.git("add", "other")
    made.write("x.json", "1")
    repository = open_repository(tmp_path)
    assert repository.head() is None and repository.branch() == "main"
    assert repository.source_state(["x.json"]).dirty == ("x.json",)
    sha = repository.commit_paths([Path("x.json")], "first\n")
    assert made.git("rev-parse", "HEAD").strip() == sha
    assert made.git("status", "--porcelain") == "A  other\n"


@pytest.mark.parametrize("name", ["pre-commit", "commit-msg"])
def test_a_failing_hook_is_quoted_and_changes_nothing(plain: Repo, name: str) -> None:
    hook(plain, name, "for i in $(seq 40); do echo line $i; done; echo no >&2; exit 1")
    plain.write("a.txt", "staged\n")
    plain.git("add", "a.txt")
    plain.write("x.json", "1")
    index = (plain.root / ".git/index").read_bytes()
    with pytest.raises(GitRefused, match="line 40\nno") as caught:
        open_repository(plain.root).commit_paths([Path("x.json")], "m\n")
    assert "line 5\n" not in caught.value.message and "perfplan commit" in caught.value.hint
    assert (plain.root / ".git/index").read_bytes() == index
    assert (plain.root / "x.json").read_text() == "1"
    assert not list((plain.root / ".git").glob("*perfplan*")) and not (plain.root / ".git/index.lock").exists()


@pytest.mark.parametrize("adding", ["git add x.json", "git add a.txt"])
def test_a_hook_that_changes_the_commit_is_undone(plain: Repo, adding: str) -> None:
    hook(plain, "pre-commit", f"echo more >> x.json; echo more >> a.txt; {adding}")
    plain.write("x.json", "1\n")
    head, index = plain.git("rev-parse", "HEAD"), (plain.root / ".git/index").read_bytes()
    with pytest.raises(GitRefused, match="a hook changed"):
        open_repository(plain.root).commit_paths([Path("x.json")], "m\n")
    assert plain.git("rev-parse", "HEAD") == head
    assert (plain.root / ".git/index").read_bytes() == index
    assert (plain.root / "x.json").read_text() == "1\n"


@pytest.mark.parametrize("settings", [("commit.gpgsign", "true", "gpg.program", "false"), ("core.hooksPath", "hooks")])
def test_signing_and_hooks_are_the_users(plain: Repo, settings: tuple[str, ...]) -> None:
    for key, value in zip(settings[::2], settings[1::2], strict=True):
        plain.git("config", key, value)
    plain.write("hooks/pre-commit", "#!/bin/sh\necho gpg failed; exit 1\n").chmod(0o755)
    plain.write("x.json", "1")
    with pytest.raises(GitRefused, match="gpg failed"):
        open_repository(plain.root).commit_paths([Path("x.json")], "m\n")


def test_an_ignored_path_is_refused_with_the_rule(plain: Repo) -> None:
    plain.write(".gitignore", "*.json\n")
    plain.write("x.json", "1")
    with pytest.raises(GitRefused, match=r"x\.json is ignored by \.gitignore:1"):
        open_repository(plain.root).commit_paths([Path("x.json")], "m\n")


def test_a_worktree_and_a_sub_folder(plain: Repo, tmp_path: Path) -> None:
    plain.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    (tmp_path / "side/sub").mkdir()
    (tmp_path / "side/sub/x.json").write_text("1")
    repository = open_repository(tmp_path / "side" / "sub")
    assert repository.uncommitted(["."]) == ["x.json"]
    assert repository.source_state(["x.json"]).dirty == ("x.json",)
    repository.commit_paths([Path("x.json")], "m\n")
    assert plain.git("show", "side:sub/x.json") == "1"
    assert repository.commit_with({"x.json": blob_id(b"1")}) == repository.head()
    assert repository.committed(["."]) == {"x.json"}
    assert subprocess.check_output(["git", "status", "--porcelain"], cwd=tmp_path / "side") == b""


def test_interrupt_during_a_slow_hook_leaves_no_half_commit(plain: Repo) -> None:
    hook(plain, "pre-commit", "touch started; exec sleep 3")
    plain.write("x.json", "1")
    head, index = plain.git("rev-parse", "HEAD"), (plain.root / ".git/index").read_bytes()
    code = (
        "from pathlib import Path; from perfplan.git import open_repository as o; "
        "o(Path.cwd()).commit_paths([Path('x.json')], 'm')"
    )
    running = subprocess.Popen(
        [sys.executable, "-c", code], cwd=plain.root, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    while not (plain.root / "started").exists() and running.poll() is None:
        time.sleep(0.02)
    os.kill(running.pid, signal.SIGINT)
    assert "KeyboardInterrupt" in running.communicate(timeout=20)[1]
    assert plain.git("rev-parse", "HEAD") == head
    assert (plain.root / ".git/index").read_bytes() == index
    assert not (plain.root / ".git/index.lock").exists()


def test_interrupt_after_the_commit_stands_still_updates_the_index(plain: Repo) -> None:
    hook(plain, "post-commit", "kill -INT $(cat parent); sleep 0.3")
    plain.write("x.json", "1")
    code = (
        "import os; from pathlib import Path; from perfplan.git import open_repository as o; "
        "Path('parent').write_text(str(os.getpid())); o(Path.cwd()).commit_paths([Path('x.json')], 'm')"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=plain.root, capture_output=True, text=True, check=False)
    assert "KeyboardInterrupt" in done.stderr
    assert plain.git("show", "HEAD:x.json") == "1"
    assert plain.git("status", "--porcelain") == "?? parent\n"


def test_source_state_sees_changed_untracked_and_ignored_files_and_leaves_no_objects(plain: Repo) -> None:
    plain.write(".git/info/exclude", "ig.py\n")
    plain.write("ig.py", "ignored\n")
    plain.write("a.txt", "two\n")
    plain.write("big.py", "x\n" * 60_000)
    objects = plain.git("count-objects", "-v")
    state = open_repository(plain.root).source_state(["a.txt", "b.txt", "ig.py", "big.py"])
    assert state.dirty == ("a.txt", "big.py", "ig.py")
    assert (
        state.diff is not None
        and "-one\n+two\n" in state.diff
        and "cut here" in state.diff
        and len(state.diff) < 70_000
    )
    assert plain.git("count-objects", "-v") == objects
    assert open_repository(plain.root).source_state(["b.txt"]).diff is None


def test_a_blob_counts_only_when_a_commit_holds_it(plain: Repo) -> None:
    plain.write("c.txt", "loose\n")
    plain.git("add", "c.txt")
    repository = open_repository(plain.root)
    one, loose = blob_id(b"one\n"), blob_id(b"loose\n")
    assert repository.has_blobs({one, loose, "0" * 40, "nonsense"}) == {one}
    first = repository.head()
    plain.git("commit", "-q", "-m", "c")
    plain.write("a.txt", "two\n")
    plain.git("commit", "-q", "-am", "two")
    assert repository.commit_with({"a.txt": one, "c.txt": loose}) == plain.git("rev-parse", "HEAD~1").strip()
    plain.git("reset", "-q", "--hard", str(first))
    assert repository.commit_with({"a.txt": one, "c.txt": loose}) is None
    plain.git("branch", "side", "ORIG_HEAD")
    assert repository.commit_with({"c.txt": loose}) == plain.git("rev-parse", "side").strip()


SPOILERS = {
    "merge": ("MERGE_HEAD", "git merge --abort"),
    "pick": ("CHERRY_PICK_HEAD", "git cherry-pick --abort"),
    "revert": ("REVERT_HEAD", "git revert --abort"),
    "rebase": ("rebase-merge/x", "git rebase --abort"),
    "bisect": ("BISECT_LOG", "git bisect reset"),
}


@pytest.mark.parametrize("name", SPOILERS)
def test_an_operation_in_progress_is_named(plain: Repo, name: str) -> None:
    path, hint = SPOILERS[name]
    open_repository(plain.root).refuse_if_unready()
    plain.write(f".git/{path}", plain.git("rev-parse", "HEAD"))
    with pytest.raises(GitRefused, match="in progress") as caught:
        open_repository(plain.root).refuse_if_unready()
    assert hint in caught.value.hint


def test_detached_head_identity_and_lock(plain: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    plain.write(".git/index.lock", "")
    monkeypatch.setattr("perfplan.git.repository.INDEX_LOCK_PATIENCE", 0.1)
    with pytest.raises(GitRefused, match=r"index\.lock"):
        open_repository(plain.root).refuse_if_unready()
    (plain.root / ".git/index.lock").unlink()
    plain.git("checkout", "-q", "--detach")
    assert open_repository(plain.root).branch() is None
    with pytest.raises(GitRefused, match="detached") as caught:
        open_repository(plain.root).refuse_if_unready()
    assert "git switch -c" in caught.value.hint
    plain.git("switch", "-q", "main")
    for variable in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "EMAIL"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(GitRefused, match="identity") as caught:
        open_repository(plain.root).refuse_if_unready()
    assert "git config user.name" in caught.value.hint


def test_no_repository_a_bare_one_and_no_git(tmp_path: Path) -> None:
    with pytest.raises(GitRefused, match="not in a git repository"):
        open_repository(tmp_path)
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "bare")], check=True)
    with pytest.raises(GitRefused, match="bare"):
        open_repository(tmp_path / "bare")


def test_a_repository_with_sha256_objects(tmp_path: Path) -> None:
    made = Repo(tmp_path)
    made.git("init", "-q", "-b", "main", "--object-format=sha256")
    path = made.write("x.json", "1")
    repository = open_repository(tmp_path)
    assert len(repository.commit_paths([path], "one\n")) == 64
    path.unlink()
    repository.commit_paths([path], "gone\n")
    assert made.git("status", "--porcelain") == "" and repository.committed(["."]) == set()
    assert repository.has_blobs({blob_id(b"1")}) == set()
