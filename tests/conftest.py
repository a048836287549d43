"""GPU tests are marked `gpu` and skip, saying so, where torch sees no NVIDIA GPU."""

from __future__ import annotations

import os

import pytest

# git in tests: no configuration of the machine's user, a fixed identity, English messages
os.environ.update(
    GIT_CONFIG_GLOBAL=os.devnull,
    GIT_CONFIG_SYSTEM=os.devnull,
    GIT_AUTHOR_NAME="A Tester",
    GIT_AUTHOR_EMAIL="tester@example.org",
    GIT_COMMITTER_NAME="A Tester",
    GIT_COMMITTER_EMAIL="tester@example.org",
    LC_ALL="C.UTF-8",
    OMP_NUM_THREADS="1",  # tests run side by side on few cores
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs a GPU; torch is imported only if there is such a test."""
    wanting = [item for item in items if item.get_closest_marker("gpu")]
    if wanting and not _has_gpu():
        for item in wanting:
            item.add_marker(pytest.mark.skip(reason="no NVIDIA GPU here"))


def _has_gpu() -> bool:
    try:
        import torch
    except ImportError:
        return False
    return bool(torch.cuda.is_available())
