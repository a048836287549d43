"""Locks between processes: one filing at a time in a checkout, one measurement at a time on a device.

They are locks of the operating system: a process that dies, however it dies, lets go of them.
"""

from __future__ import annotations

import datetime
import getpass
import hashlib
import os
import re
import shlex
import socket
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from perfplan import atomic
from perfplan.errors import Locked
from perfplan.layout import Layout


@contextmanager
def filing_lock(layout: Layout, timeout: float = 60) -> Iterator[None]:
    """Held from the record to the commit; serialises the writers of one checkout. Not reentrant.

    Raises Locked, naming the holder, after `timeout` seconds.
    """
    layout.scratch.mkdir(parents=True, exist_ok=True)
    ignore = layout.scratch / ".gitignore"
    if not ignore.exists():
        atomic.write_text(ignore, "*\n")
    with _held(layout.scratch / "filing.lock", timeout, "the log of this checkout", lambda text: None):
        yield


@contextmanager
def device_lock(device_key: str, timeout: float, on_wait: Callable[[str], None]) -> Iterator[None]:
    """Held while a device is measured, for all checkouts of this user. `device_key`: the GPU's UUID, or `cpu`.

    `on_wait` is told once for whom this waits. Raises Locked after `timeout` seconds.
    """
    slug = re.sub(r"[^A-Za-z0-9_-]+", "-", device_key)[:60]
    digest = hashlib.sha256(device_key.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    with _held(_private_folder() / f"{slug}-{digest}.lock", timeout, f"device {device_key}", on_wait):
        yield


@contextmanager
def _held(path: Path, timeout: float, what: str, on_wait: Callable[[str], None]) -> Iterator[None]:
    import filelock

    lock = filelock.FileLock(path, thread_local=False)
    holder = path.with_suffix(".holder")
    try:
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            on_wait(f"waiting for {what}, held by {_who(holder)}")
            lock.acquire(timeout=timeout)
    except filelock.Timeout:
        raise Locked(
            f"{what} is still held after {timeout:g} s by {_who(holder)}",
            hint="wait for it or stop that process, then try again; there is no file to remove",
        ) from None
    except OSError as error:
        raise Locked(f"cannot lock {path}: {error.strerror}", hint="is the folder writable?") from None
    try:
        atomic.write_text(holder, _me())
        yield
    finally:
        holder.unlink(missing_ok=True)
        lock.release()


def _me() -> str:
    now = datetime.datetime.now(datetime.UTC)
    command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])[:200] if sys.argv else "python"
    return f"process {os.getpid()} on {socket.gethostname()} since {now:%Y-%m-%d %H:%M:%S} UTC: {command}"


def _who(holder: Path) -> str:
    try:
        return holder.read_text(encoding="utf-8").strip() or "another process"
    except (OSError, UnicodeDecodeError):
        return "another process"


def _private_folder() -> Path:
    """A folder for locks that only this user can write to, so that nobody can plant a file or a link there."""
    user = str(os.getuid()) if hasattr(os, "getuid") else getpass.getuser()
    folder = Path(tempfile.gettempdir()) / f"perfplan-{user}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    safe = stat.S_ISDIR(found.st_mode) and (
        not hasattr(os, "getuid") or (found.st_uid == os.getuid() and not found.st_mode & 0o022)
    )
    if not safe:
        raise Locked(
            f"{folder} is not a folder that only you can write to",
            hint=f"remove it, or set TMPDIR; expected: chmod 700 '{folder}'",
        )
    return folder
