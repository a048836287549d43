"""One commit of exactly the given files, through the git program, with the user's index left alone.

`git commit --only` cannot take untracked files, and adding them first would change the index even when a hook fails.
So the index lock is held for the whole time, as git itself does; the commit is made from a scratch index (HEAD and
our files); and the user's index, with only our entries changed, moves into place when the commit stands. Whatever goes
wrong before, the index has not been touched.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from perfplan.errors import GitRefused
from perfplan.git.program import Program, tail, zipped

KEPT = "the files stay on disk; when that is mended: `perfplan commit`"
Entries = dict[str, str]  # path -> "mode object"; a path that is not there has been removed


@dataclass(frozen=True)
class IndexFiles:
    """The user's index, and the folder for scratch ones: that of the repository, so that moves are atomic."""

    path: Path
    folder: Path


def commit_files(program: Program, index: IndexFiles, names: Sequence[str], message: str, head: str | None) -> str:
    """Commit `names` (from the top of the working tree) on top of `head`. Returns the commit."""
    top = Program(Path(program.must("rev-parse", "--show-toplevel").text))
    with (
        _deferred_interrupt() as interrupt,
        _index_lock(index.path) as lock,
        tempfile.TemporaryDirectory(prefix="perfplan-", dir=index.folder) as folder,
    ):
        scratch, following = Path(folder) / "index", Path(folder) / "following"
        entries = _stage(top, index.path, scratch, names, head)
        if _unchanged(top, scratch, head):
            if head is None:
                raise GitRefused("there is nothing to commit")
            return head
        _carry_over(top, index.path, following, names, entries)
        before = {name: _content(top.folder / name) for name in names}
        try:
            interrupt.stop_if_asked()
            _commit(top, scratch, Path(folder), message, interrupt)
        except BaseException:
            # an interrupt may come when the commit already stands
            landed = _head(top)
            if landed is None or landed == head:
                _restore(top, before)
                raise
        commit = _verified(top, head, entries, names, before)
        shutil.copyfile(following, lock)
        lock.replace(index.path)
        return commit


def _stage(top: Program, index: Path, scratch: Path, names: Sequence[str], head: str | None) -> Entries:
    """Make the scratch index: HEAD and our files as they are on disk."""
    if index.exists():
        shutil.copyfile(index, scratch)  # for its stat data: nothing has to be read again
    env = {"GIT_INDEX_FILE": str(scratch)}
    top.must("read-tree", *(["--reset", head] if head else ["--empty"]), env=env)
    answer = top.ask("update-index", "--add", "--remove", "-z", "--stdin", stdin=zipped(names), env=env)
    if answer.status != 0:
        raise GitRefused(f"git cannot take the files: {tail(answer.stderr)}", hint=KEPT)
    listed = top.must("ls-files", "--stage", "-z", "--", *names, env=env).names
    return {name: f"{mode} {oid}" for name, mode, oid in map(_staged, listed)}


def _staged(line: str) -> tuple[str, str, str]:
    fields, name = line.split("\t", 1)
    mode, oid, _ = fields.split(" ")
    return name, mode, oid


def _unchanged(top: Program, scratch: Path, head: str | None) -> bool:
    env = {"GIT_INDEX_FILE": str(scratch)}
    if head is None:
        return not top.must("ls-files", "-z", env=env).names
    return top.ask("diff-index", "--cached", "--quiet", head, env=env).status == 0


def _carry_over(top: Program, index: Path, following: Path, names: Sequence[str], entries: Entries) -> None:
    """Make the index that follows the commit: the user's, with our entries as they are committed."""
    if index.exists():
        shutil.copyfile(index, following)
    null = "0" * len(top.must("hash-object", "--stdin").text)  # 40 or 64 digits
    lines = [f"{entries[name]}\t{name}" if name in entries else f"0 {null}\t{name}" for name in names]
    top.must("update-index", "-z", "--index-info", stdin=zipped(lines), env={"GIT_INDEX_FILE": str(following)})


def _commit(top: Program, scratch: Path, folder: Path, message: str, interrupt: _Interrupt) -> None:
    text, output = folder / "message", folder / "output"
    text.write_text(message, encoding="utf-8", newline="\n")
    settings = ("-c", "i18n.commitEncoding=UTF-8", "-c", "commit.verbose=false")
    command = ["git", *settings, "commit", "--quiet", "--cleanup=whitespace", "-F", str(text)]
    with output.open("wb") as sink:  # a file, not a pipe: a hook that outlives git would keep a pipe open
        child = subprocess.Popen(
            command,
            cwd=top.folder,
            env={**os.environ, "GIT_INDEX_FILE": str(scratch), "GIT_EDITOR": ":"},
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
        )
        with interrupt.passed_to(child):
            status = child.wait()
    interrupt.stop_if_asked()
    if status != 0:
        words = tail(output.read_text(encoding="utf-8", errors="replace"))
        raise GitRefused(f"git would not commit (exit status {status}):\n{words}", hint=KEPT)


def _verified(
    top: Program, head: str | None, entries: Entries, names: Sequence[str], before: Mapping[str, bytes | None]
) -> str:
    """The commit just made. It is undone where it does not hold our very files, or holds others: a hook can do that."""
    commit = _head(top)
    if commit is None:
        raise GitRefused("git made no commit and said nothing", hint=KEPT)
    listed = top.must("ls-tree", "-r", "-z", commit, "--", *names).names
    there = {
        name: f"{fields.split(' ')[0]} {fields.split(' ')[2]}"
        for fields, name in (line.split("\t", 1) for line in listed)
    }
    altered = {name for name in names if there.get(name) != entries.get(name)}
    base = [head] if head else ["--root"]
    touched = top.must("diff-tree", "-r", "--no-commit-id", "--no-renames", "--name-only", "-z", *base, commit).names
    altered |= set(touched) - set(names)
    if altered:
        undo = ["HEAD", head, commit] if head else ["-d", "HEAD", commit]
        top.must("update-ref", "-m", "perfplan: a hook changed the files", *undo)
        _restore(top, before)
        raise GitRefused(
            f"a hook changed what was to be committed: {', '.join(sorted(altered)[:5])}; the commit was taken back",
            hint="keep formatters away from experiments/*/*.json and the generated plan, then `perfplan commit`",
        )
    _restore(top, before)
    return commit


def _restore(top: Program, before: Mapping[str, bytes | None]) -> None:
    """Give our files back the content that they had: a hook may have reformatted them."""
    for name, content in before.items():
        path = top.folder / name
        if content is not None and not path.is_symlink() and _content(path) != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() and not path.is_symlink() else None


def _head(top: Program) -> str | None:
    answer = top.ask("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    return answer.text if answer.status == 0 else None


@contextmanager
def _index_lock(index: Path) -> Iterator[Path]:
    """Hold git's own lock of the index."""
    lock = index.with_name(index.name + ".lock")
    try:
        os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except FileExistsError:
        raise GitRefused(
            f"another git process holds {lock}", hint=f"let it finish, or remove that file; {KEPT}"
        ) from None
    except OSError as error:
        raise GitRefused(f"{lock} cannot be written: {error.strerror}", hint=KEPT) from None
    try:
        yield lock
    finally:
        lock.unlink(missing_ok=True)  # gone already where it became the index


class _Interrupt:
    """Ctrl-C, kept until git has ended: then it is known whether the commit stands."""

    def __init__(self) -> None:
        self.asked = False
        self._child: subprocess.Popen[bytes] | None = None

    def note(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        if self._child is not None:
            self._child.send_signal(signal.SIGINT)

    @contextmanager
    def passed_to(self, child: subprocess.Popen[bytes]) -> Iterator[None]:
        self._child = child
        if self.asked:
            child.send_signal(signal.SIGINT)
        try:
            yield
        finally:
            self._child = None

    def stop_if_asked(self) -> None:
        if self.asked:
            raise KeyboardInterrupt


@contextmanager
def _deferred_interrupt() -> Iterator[_Interrupt]:
    interrupt = _Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt  # only the main thread gets signals
        return
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    previous = {number: signal.signal(number, interrupt.note) for number in numbers}
    try:
        yield interrupt
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    interrupt.stop_if_asked()
