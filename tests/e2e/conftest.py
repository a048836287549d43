"""The repository that the end-to-end tests run in."""

from __future__ import annotations

from pathlib import Path

import pytest

from repository import CAMPAIGN, KERNEL, SPEC, Repo


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A repository with one commit: campaign, kernel and spec."""
    made = Repo(tmp_path / "repo")
    made.root.mkdir()
    made.git("init", "-q", "-b", "main")
    made.write(".gitignore", ".perfplan/\n__pycache__/\n")
    made.write("plans/test.yaml", CAMPAIGN)
    made.write("kernels/row_sum.py", KERNEL)
    made.write("experiments/sum-once.yaml", SPEC)
    made.git("add", "-A")
    made.git("commit", "-q", "-m", "start")
    return made
