"""A repository: where it stands, what differs from HEAD, what its history holds, and commits of given files."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfplan.errors import GitRefused
from perfplan.git import history
from perfplan.git.committing import IndexFiles, commit_files
from perfplan.git.program import Program, tail, zipped

DIFF_LIMIT = 64 * 1024  # bytes of diff kept in a record
INDEX_LOCK_PATIENCE = 3.0  # seconds; editors take the lock for a moment at any time

# file or folder in .git -> (what is in progress, how to finish it, how to abort it)
_OPERATIONS = {
    "rebase-merge": ("a rebase", "git rebase --continue", "git rebase --abort"),
    "rebase-apply": ("a rebase or `git am`", "git rebase --continue", "git rebase --abort"),
    "MERGE_HEAD": ("a merge", "git merge --continue", "git merge --abort"),
    "CHERRY_PICK_HEAD": ("a cherry-pick", "git cherry-pick --continue", "git cherry-pick --abort"),
    "REVERT_HEAD": ("a revert", "git revert --continue", "git revert --abort"),
    "BISECT_LOG": ("a bisect", "git bisect good|bad", "git bisect reset"),
}


@dataclass(frozen=True)
class SourceState:
    """How some files on disk differ from HEAD. `diff` is None where none does; cut at 64 KiB, which it then says."""

    dirty: tuple[str, ...]
    diff: str | None


def open_repository(root: Path) -> Repository:
    """The repository that holds `root`.

    Raises GitRefused: git not installed, no repository, a bare one, or one that belongs to somebody else.
    """
    program = Program(root)
    answer = program.ask("rev-parse", "--is-bare-repository", "--show-prefix", "--absolute-git-dir")
    if answer.status != 0:
        raise _unusable(root, answer.stderr)
    bare, prefix, git_dir = answer.text.split("\n")
    if bare == "true":
        raise GitRefused(f"{root} is a bare repository", hint="work in a clone of it, or in `git worktree add ../work`")
    if program.ask("rev-parse", "--is-inside-work-tree").text != "true":
        raise GitRefused(f"{root} is inside of .git, not in a working tree", hint="run perfplan where your files are")
    return Repository(program, prefix, Path(git_dir))


def _unusable(root: Path, words: str) -> GitRefused:
    if "dubious ownership" in words or "unsafe repository" in words:
        hint = f"if you trust it: git config --global --add safe.directory '{root}'"
        return GitRefused(f"git does not trust {root}: it belongs to another user", hint=hint)
    if "not a git repository" in words:
        return GitRefused(
            f"{root} is not in a git repository",
            hint="run `git init` there, or measure with `perfplan run --detached DIR`",
        )
    return GitRefused(f"git cannot use {root}: {tail(words)}", hint="see what `git status` says there")


class Repository:
    """Paths that go in or come out are relative to the folder that it was opened with, with forward slashes."""

    def __init__(self, program: Program, prefix: str, git_dir: Path) -> None:
        self._git = program
        self._prefix = prefix  # of the folder within the working tree; empty at its top
        self._git_dir = git_dir
        self.root = program.folder

    def head(self) -> str | None:
        """The commit checked out; None where there are no commits yet."""
        answer = self._git.ask("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        return answer.text if answer.status == 0 else None

    def branch(self) -> str | None:
        """Name of the branch, also of one without commits; None for a detached HEAD."""
        answer = self._git.ask("symbolic-ref", "--quiet", "--short", "HEAD")
        return answer.text if answer.status == 0 else None

    def refuse_if_unready(self) -> None:
        """Raises GitRefused where a commit would fail or land in the wrong place. Costs a few milliseconds."""
        for name, (what, finish, abort) in _OPERATIONS.items():
            if self._inside(name).exists():
                raise GitRefused(
                    f"{what} is in progress", hint=f"finish it (`{finish}`) or leave it (`{abort}`), then try again"
                )
        unmerged = sorted({line.split("\t", 1)[-1] for line in self._git.must("ls-files", "--unmerged", "-z").names})
        if unmerged:
            raise GitRefused(
                f"unmerged paths: {', '.join(unmerged[:5])}", hint="resolve the conflicts and `git add` the files"
            )
        if self.branch() is None:
            raise GitRefused("HEAD is detached: a commit would belong to no branch", hint="git switch -c NAME")
        for variable, role in (("GIT_AUTHOR_IDENT", "author"), ("GIT_COMMITTER_IDENT", "committer")):
            answer = self._git.ask("-c", "user.useConfigOnly=true", "var", variable)
            if answer.status != 0:
                hint = "git config user.name 'Your Name' && git config user.email you@example.org"
                raise GitRefused(f"git has no identity for the {role} of a commit", hint=hint)
        self._wait_for_index()

    def source_state(self, paths: Sequence[str]) -> SourceState:
        """Which of `paths` differ from HEAD on disk (untracked and ignored ones too), and how.

        Objects go to a scratch folder: nothing in the repository changes.
        """
        with tempfile.TemporaryDirectory(prefix="perfplan-") as scratch:
            env = {"GIT_INDEX_FILE": str(Path(scratch) / "index"), **self._objects_in(Path(scratch) / "objects")}
            base = self._base_tree(env)
            self._git.must("read-tree", base, env=env)
            self._git.must("update-index", "--add", "--remove", "-z", "--stdin", stdin=zipped(paths), env=env)
            compare = (
                "diff-index",
                "--cached",
                "--no-ext-diff",
                "--no-textconv",
                "--no-renames",
                "--no-color",
                "--relative",
            )
            dirty = self._git.must(*compare, "--name-only", "-z", base, "--", *paths, env=env).names
            if not dirty:
                return SourceState((), None)
            form = ("-p", "--unified=3", "--src-prefix=a/", "--dst-prefix=b/", "--full-index", "--diff-algorithm=myers")
            diff = self._git.must(*compare, *form, base, "--", *paths, env=env).stdout
        return SourceState(tuple(sorted(dirty)), _cut(diff))

    def commit_paths(self, paths: Sequence[Path], message: str) -> str:
        """Commit exactly these files, new, changed or deleted, and return the commit; HEAD where nothing differs.

        What the user has staged or changed otherwise stays as it is; of `paths` the index has afterwards what was
        committed. Raises GitRefused with the words of the hook that failed; the index is then as it was before.
        """
        names = [self._name(path) for path in dict.fromkeys(paths)]
        self._refuse_ignored(names)
        self._wait_for_index()
        index = IndexFiles(self._inside("index"), self._git_dir)
        return commit_files(self._git, index, [self._prefix + name for name in names], message, self.head())

    def has_blobs(self, blobs: Iterable[str]) -> set[str]:
        """Those of `blobs` that some commit of some ref holds. One merely in the object store does not count."""
        return history.reachable(self._git, set(blobs))

    def commit_with(self, files: Mapping[str, str]) -> str | None:
        """The newest commit whose tree has each path at its blob: of HEAD's history first, then of any ref."""
        return history.newest_with(self._git, {self._prefix + path: blob for path, blob in files.items()})

    def uncommitted(self, prefixes: Sequence[str]) -> list[str]:
        """Files under `prefixes` that are untracked, or differ from HEAD on disk or in the index; not ignored ones."""
        entries = self._git.must(
            "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", "--", *prefixes
        ).names
        return sorted(entry[3:].removeprefix(self._prefix) for entry in entries)

    def committed(self, prefixes: Sequence[str]) -> set[str]:
        """Files under `prefixes` in HEAD."""
        if self.head() is None:
            return set()
        return set(self._git.must("ls-tree", "-r", "--name-only", "-z", "HEAD", "--", *prefixes).names)

    def _inside(self, name: str) -> Path:
        return self.root / self._git.must("rev-parse", "--git-path", name).text

    def _name(self, path: Path) -> str:
        absolute = path if path.is_absolute() else self.root / path
        folder = absolute.parent.resolve()  # not the file itself: a link is committed as a link
        try:
            return (folder / absolute.name).relative_to(self.root.resolve()).as_posix()
        except ValueError:
            raise GitRefused(f"{path} is outside of the repository {self.root}") from None

    def _refuse_ignored(self, names: Sequence[str]) -> None:
        env = {"GIT_LITERAL_PATHSPECS": "0"}  # check-ignore refuses it
        answer = self._git.ask("check-ignore", "-v", "-z", "--stdin", stdin=zipped(names), env=env)
        if answer.status not in (0, 1):
            raise GitRefused(f"git check-ignore failed: {tail(answer.stderr)}")
        fields = answer.stdout.decode("utf-8", "replace").split("\0")
        if len(fields) >= 4:
            source, line, pattern, path = fields[:4]
            hint = f"take the pattern {pattern!r} out, or add '!/{self._prefix}{path}' after it, then `perfplan commit`"
            raise GitRefused(f"{path} is ignored by {source}:{line}, so it cannot be committed", hint=hint)

    def _wait_for_index(self) -> None:
        lock = self._inside("index.lock")
        deadline = time.monotonic() + INDEX_LOCK_PATIENCE
        while lock.exists():
            if time.monotonic() > deadline:
                raise GitRefused(
                    f"another git process holds {lock}", hint="let it finish; if none is running, remove that file"
                )
            time.sleep(0.05)

    def _base_tree(self, env: Mapping[str, str]) -> str:
        return self.head() or self._git.must("hash-object", "-w", "-t", "tree", "--stdin", env=env).text

    def _objects_in(self, folder: Path) -> dict[str, str]:
        folder.mkdir()
        known = os.environ.get("GIT_ALTERNATE_OBJECT_DIRECTORIES")
        alternates = [str(self._inside("objects").resolve()), *([known] if known else [])]
        return {"GIT_OBJECT_DIRECTORY": str(folder), "GIT_ALTERNATE_OBJECT_DIRECTORIES": os.pathsep.join(alternates)}


def _cut(diff: bytes) -> str:
    text = diff[:DIFF_LIMIT].decode("utf-8", "replace")
    return text if len(diff) <= DIFF_LIMIT else f"{text}\n[cut here: the whole diff has {len(diff)} bytes]\n"
