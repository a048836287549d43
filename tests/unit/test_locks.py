"""Locks between real processes, also ones that are killed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from perfplan.errors import Exit, Locked
from perfplan.layout import Layout
from perfplan.locks import device_lock, filing_lock

FILING = (
    "from perfplan.locks import filing_lock as f; from perfplan.layout import Layout; from pathlib import Path; "
    "lock = f(Layout(Path.cwd()))"
)
DEVICE = "from perfplan.locks import device_lock as f; lock = f('GPU-1/x', 1, print)"


@contextmanager
def holder(code: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    program = f"{code}\nwith lock:\n    print('held', flush=True)\n    input()"
    process = subprocess.Popen(
        [sys.executable, "-c", program], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_busy_filing_lock_names_its_holder(tmp_path: Path) -> None:
    with holder(FILING, tmp_path) as other, pytest.raises(Locked) as caught, filing_lock(Layout(tmp_path), timeout=0.2):
        pass
    assert (
        f"process {other.pid} on " in caught.value.message
        and caught.value.exit_code == Exit.LOCKED
        and caught.value.hint
    )
    assert (tmp_path / ".perfplan/.gitignore").read_text() == "*\n"


def test_a_killed_holder_does_not_block(tmp_path: Path) -> None:
    with holder(FILING, tmp_path):
        pass
    with filing_lock(Layout(tmp_path), timeout=5):
        pass


def test_the_device_lock_says_for_whom_it_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    said: list[str] = []
    with holder(DEVICE, tmp_path) as other:
        with pytest.raises(Locked, match="GPU-1/x"), device_lock("GPU-1/x", 0.2, said.append):
            pass
        with device_lock("GPU-2", 0.2, said.append):
            pass
    assert len(said) == 1 and str(other.pid) in said[0]
    (folder,) = tmp_path.glob("perfplan-*")
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)
    with pytest.raises(Locked, match="only you"), device_lock("GPU-1/x", 0.2, said.append):
        pass
